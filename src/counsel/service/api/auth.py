"""Who may come in: keys looked at once and believed for a few seconds."""

import time
from collections.abc import Awaitable, Callable

import sqlalchemy as sa
from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from counsel.service.db.api_keys import Holder, holder_of

REMEMBERED = 5.0
"""Seconds for which a key that was looked up is believed: a revoked one works no longer."""


class Doorman:
    """Looks at keys: who holds one, and whether that is enough.

    Parameters
    ----------
    engine
        Where keys are kept.
    tenant
        Whose data everybody sees; without it every request needs a key.
    """

    def __init__(self, engine: sa.Engine, tenant: int | None) -> None:
        self.engine, self.tenant = engine, tenant
        self._known: dict[str, tuple[float, Holder]] = {}

    def __call__(self, role: str) -> Callable[[Request], Awaitable[Holder]]:
        """Return what lets in who may do so much."""

        async def enter(request: Request) -> Holder:
            if self.tenant is not None:
                return Holder(self.tenant, "admin")
            scheme, _, key = request.headers.get("authorization", "").partition(" ")
            holder = await self._holder(key.strip()) if scheme.lower() == "bearer" else None
            if holder is None:
                raise HTTPException(401, "give a key that is valid: Authorization: Bearer KEY")
            if not holder.may(role):
                raise HTTPException(403, f"this key may {holder.role}; that takes {role}")
            return holder

        enter.role = role  # type: ignore[attr-defined]  # the OpenAPI document tells it
        return enter

    async def _holder(self, key: str) -> Holder | None:
        until, known = self._known.get(key, (0.0, None))
        if time.monotonic() < until:
            return known
        holder = await run_in_threadpool(self._look_up, key)
        if holder is not None:
            if len(self._known) > 10_000:
                self._known.clear()
            self._known[key] = (time.monotonic() + REMEMBERED, holder)
        return holder

    def _look_up(self, key: str) -> Holder | None:
        with self.engine.connect() as connection:
            return holder_of(connection, key)
