"""Liveness and readiness.

``/healthz`` says that the process answers, whatever its database does: a service that is restarted
because its database is away is not there when the database comes back. ``/readyz`` says whether the
service can do its work: the planner is compiled, a row can be written in time, the thread that
writes is not stuck, and the disk has room. Plans that cannot be made are counted; must-say advice
does not need them.
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

    @app.get("/healthz", include_in_schema=False)
    async def healthz() -> dict[str, str]:
        return {"status": "ok", "version": __version__}

    @app.get("/readyz", include_in_schema=False)
    async def readyz() -> JSONResponse:
        checks = {
            "planner": None if warm_up is None else warm_up.fault(),
            "database": await _write(desk),
            "writer": _writer(desk),
            "disk": _disk(desk),
        }
        is_ready = all(fault is None for fault in checks.values())
        answer: dict[str, Any] = {
            "status": "ready" if is_ready else "not ready",
            **{name: fault or "ok" for name, fault in checks.items()},
            "plans_failing": desk.plans.failing,
            "version": __version__,
        }
        return JSONResponse(answer, 200 if is_ready else 503)


async def _write(desk: Desk) -> str | None:
    """Write a row and return what went wrong, if anything did."""

    def probe(connection: sa.Connection) -> None:
        connection.execute(sa.delete(probes))
        connection.execute(sa.insert(probes), {"at": time.time()})

    try:
        written = asyncio.wrap_future(desk.committer.submit(probe))
        await asyncio.wait_for(written, desk.settings.lock_seconds)
    except TimeoutError:
        return f"no row was written within {desk.settings.lock_seconds:g} s"
    except (sa.exc.SQLAlchemyError, CounselError) as fault:
        return brief(str(getattr(fault, "orig", fault)))
    return None


def _writer(desk: Desk) -> str | None:
    committer = desk.committer
    if not committer.is_alive:
        return "the thread that writes has ended"
    if committer.writing_for > desk.settings.request_seconds:
        return f"a transaction has lasted for {committer.writing_for:.0f} s"
    return None


def _disk(desk: Desk) -> str | None:
    """Return that the disk of a SQLite file is full, if it is; PostgreSQL watches its own."""
    database = desk.engine.url.database
    if desk.engine.dialect.name != "sqlite" or not database or database == ":memory:":
        return None
    free = shutil.disk_usage(Path(database).resolve().parent).free
    if free < desk.settings.disk_bytes:
        return f"{free / 1e6:.0f} MB are free; {desk.settings.disk_bytes / 1e6:.0f} MB are needed"
    return None
