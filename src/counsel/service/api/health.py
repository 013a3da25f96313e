"""Liveness and readiness.

``/healthz`` says that the process answers, whatever its database does: a service that is restarted
because its database is away is not there when the database comes back. ``/readyz`` says whether the
service can do its work: the planner is compiled, a row can be written in time, the thread that
writes is not stuck, and the disk has room. Plans that cannot be made are counted; must-say advice
does not need them. All who ask at the same time share one row: anybody may ask, without a key.
"""

import asyncio
import shutil
import time
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from fastapi import FastAPI
from fastapi.responses import JSONResponse

from counsel import __version__
from counsel._arrays import brief
from counsel.errors import CounselError
from counsel.service.core.desk import Desk
from counsel.service.db.tables import probes
from counsel.service.warm_up import WarmUp


def add_health(app: FastAPI, desk: Desk, warm_up: WarmUp | None = None) -> None:
    """Add the two routes."""
    write, file = _SharedWrite(desk), _File(desk)

    @app.api_route("/healthz", methods=["GET", "HEAD"], include_in_schema=False)
    async def healthz() -> dict[str, str]:
        return {"status": "ok", "version": __version__}

    @app.api_route("/readyz", methods=["GET", "HEAD"], include_in_schema=False)
    async def readyz() -> JSONResponse:
        checks = {
            "planner": None if warm_up is None else warm_up.fault(),
            "database": file.fault() or await write.fault(),
            "writer": _writer(desk),
            "disk": file.lacks_room(),
        }
        is_ready = all(fault is None for fault in checks.values())
        answer: dict[str, Any] = {
            "status": "ready" if is_ready else "not ready",
            **{name: fault or "ok" for name, fault in checks.items()},
            "plans_failing": desk.plans.failing,
            "version": __version__,
        }
        return JSONResponse(answer, 200 if is_ready else 503)


class _SharedWrite:
    """A row that is written to see whether one can be: for all callers who wait at the same time.

    Callers must share an event loop, or come one after the other.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._written: asyncio.Future[str | None] | None = None

    async def fault(self) -> str | None:
        """Return what goes wrong, if anything does."""
        if self._written is None or self._written.done():
            self._written = asyncio.ensure_future(self._write())
        return await asyncio.shield(self._written)

    async def _write(self) -> str | None:
        desk = self._desk
        try:
            written = asyncio.wrap_future(desk.committer.submit(_probe))
            await asyncio.wait_for(written, desk.settings.lock_seconds)
        except TimeoutError:
            return f"no row was written within {desk.settings.lock_seconds:g} s"
        except (sa.exc.SQLAlchemyError, CounselError) as fault:
            return brief(str(getattr(fault, "orig", fault)))
        return None


def _probe(connection: sa.Connection) -> None:
    connection.execute(sa.delete(probes))
    connection.execute(sa.insert(probes), {"at": time.time()})


def _writer(desk: Desk) -> str | None:
    committer = desk.committer
    if not committer.is_alive:
        return "the thread that writes has ended"
    if committer.writing_for > desk.settings.request_seconds:
        return f"a transaction has lasted for {committer.writing_for:.0f} s"
    return None


class _File:
    """The file of a SQLite database: whether it is the one that was opened, and has room.

    What is written into a file that was deleted, or replaced by another, is gone after a restart.
    """

    def __init__(self, desk: Desk) -> None:
        name = desk.engine.url.database
        is_file = desk.engine.dialect.name == "sqlite" and name and name != ":memory:"
        self._path = Path(str(name)).resolve() if is_file else None
        self._needed = desk.settings.disk_bytes
        self._opened = self._identity()

    def fault(self) -> str | None:
        """Return that the file is not there any more, if so."""
        if self._identity() == self._opened:
            return None
        return f"{self._path} was deleted or replaced while the service runs; stop the service"

    def lacks_room(self) -> str | None:
        """Return that its disk is full, if it is; PostgreSQL watches its own."""
        if self._path is None:
            return None
        free = shutil.disk_usage(self._path.parent).free
        if free >= self._needed:
            return None
        return f"{free / 1e6:.0f} MB are free; {self._needed / 1e6:.0f} MB are needed"

    def _identity(self) -> tuple[int, int] | None:
        try:
            found = None if self._path is None else self._path.stat()
        except OSError:
            return None
        return None if found is None else (found.st_dev, found.st_ino)
