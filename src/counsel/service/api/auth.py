"""The check of API keys: a key that was looked up is trusted for a few seconds."""

import time
from collections.abc import Awaitable, Callable

import sqlalchemy as sa
from fastapi import Request
from starlette.exceptions import HTTPException

from counsel.service.api.lanes import Lane
from counsel.service.db.api_keys import KeyHolder, holder_of

TRUSTED_SECONDS = 5.0
"""Seconds for which a key is not looked up again; a revoked key stops working after them."""


class ApiKeyCheck:
    """Checks that a request carries a valid key with a sufficient role.

    With a ``tenant``, every request is that tenant's and needs no key.
    """

    def __init__(self, engine: sa.Engine, lane: Lane, tenant: int | None) -> None:
        self.engine, self.lane, self.tenant = engine, lane, tenant
        self._trusted: dict[str, tuple[float, KeyHolder]] = {}

    def __call__(self, role: str) -> Callable[[Request], Awaitable[KeyHolder]]:
        """Return a dependency that admits callers with at least this role."""

        async def check(request: Request) -> KeyHolder:
            if self.tenant is not None:
                return KeyHolder(self.tenant, "admin")
            scheme, _, key = request.headers.get("authorization", "").partition(" ")
            holder = await self._holder(key.strip()) if scheme.lower() == "bearer" else None
            if holder is None:
                raise HTTPException(401, "give a valid key: Authorization: Bearer KEY")
            if not holder.may(role):
                raise HTTPException(
                    403, f"this key has the role {holder.role}; the request needs {role}"
                )
            return holder

        check.role = role  # type: ignore[attr-defined]  # the OpenAPI document shows it
        return check

    async def _holder(self, key: str) -> KeyHolder | None:
        until, known = self._trusted.get(key, (0.0, None))
        if time.monotonic() < until:
            return known
        holder = await self.lane.run(self._look_up, key)
        if holder is not None:
            if len(self._trusted) > 10_000:
                self._trusted.clear()
            self._trusted[key] = (time.monotonic() + TRUSTED_SECONDS, holder)
        return holder

    def _look_up(self, key: str) -> KeyHolder | None:
        with self.engine.connect() as connection:
            return holder_of(connection, key)
