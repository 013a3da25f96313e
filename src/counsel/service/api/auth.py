"""The check of API keys: a key that was looked up is trusted for a few seconds.

Keys that were valid when last seen are looked up beside the advice that they ask for; others wait
in a lane of their own, so that guessing keeps nobody from being advised. Keys that are not valid
are not remembered. When a key was last used is written about once per minute.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from fastapi import Request
from starlette.exceptions import HTTPException

from counsel.errors import CounselError
from counsel.service.api.failed_logins import (
    FREE,
    MOST_DELAYED,
    WINDOW_SECONDS,
    FailedLogins,
    delay_of,
)
from counsel.service.api.lanes import Lanes
from counsel.service.api.request_rates import RequestRates
from counsel.service.core.desk import Desk
from counsel.service.core.fair_threads import TENANT
from counsel.service.db.api_keys import NOTED_EVERY, KeyHolder, holder_of, note_use

LOG = logging.getLogger("counsel.service.auth")

TRUSTED_SECONDS = 5.0
"""Seconds for which a key is not looked up again; a revoked key stops working after them."""

HOLDER = "counsel.holder"
"""Where the scope of a request has the holder of its key, once that was checked."""

REMEMBERED = 10_000
"""Keys that are remembered, all of them valid when they were looked up."""


class ApiKeyCheck:
    """Checks that a request carries a valid key with a sufficient role.

    With a ``tenant``, every request is that tenant's and needs no key. ``rates`` refuses requests
    of a tenant that sends too many; ``on_failure`` is called for every key that is not valid.
    """

    def __init__(
        self,
        desk: Desk,
        lanes: Lanes,
        tenant: int | None,
        rates: RequestRates,
        on_failure: Callable[[], None] | None = None,
    ) -> None:
        self.desk, self.lanes, self.tenant, self.on_failure = desk, lanes, tenant, on_failure
        self.rates, self.failed = rates, FailedLogins()
        self._trusted: dict[str, tuple[float, KeyHolder]] = {}
        self._noted: dict[int, float] = {}

    def __call__(self, role: str) -> Callable[[Request], Awaitable[KeyHolder]]:
        """Return a dependency that admits callers with at least this role."""

        async def check(request: Request) -> KeyHolder:
            known: KeyHolder | None = request.scope.get(HOLDER)
            if known is None:
                known = request.scope[HOLDER] = await admit(request)
            return known

        async def admit(request: Request) -> KeyHolder:
            if self.tenant is not None:
                TENANT.set(self.tenant)
                self.rates.admit(self.tenant)
                return KeyHolder(self.tenant, "admin")
            scheme, _, key = request.headers.get("authorization", "").partition(" ")
            is_bearer = scheme.lower() == "bearer"
            holder = await self._holder(key.strip()) if is_bearer else None
            if holder is None:
                if is_bearer:
                    await self._delay(request)
                raise HTTPException(401, "give a valid key: Authorization: Bearer KEY")
            TENANT.set(holder.tenant)
            self.rates.admit(holder.tenant)
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
        lane = self.lanes.logins if known is None else self.lanes.advising
        holder = await lane.run(self._look_up, key)
        if holder is None:
            self._trusted.pop(key, None)
            return None
        if len(self._trusted) >= REMEMBERED:
            self._trusted.clear()
        self._trusted[key] = (time.monotonic() + TRUSTED_SECONDS, holder)
        self._note_use(holder)
        return holder

    def _look_up(self, key: str) -> KeyHolder | None:
        with self.desk.engine.connect() as connection:
            return holder_of(connection, key)

    def _note_use(self, holder: KeyHolder) -> None:
        """Have the use of a key written, without waiting, if that is due."""
        key, now = holder.key, time.time()
        if key is not None and now - self._noted.get(key, 0.0) >= NOTED_EVERY:
            if len(self._noted) >= REMEMBERED:
                self._noted.clear()
            self._noted[key] = now
            with suppress(CounselError):  # a later use is written
                self.desk.committer.submit(lambda connection: note_use(connection, key, now))

    async def _delay(self, request: Request) -> None:
        """Count and log a failure, and hold its answer back if there were many before."""
        address = "unknown" if request.client is None else request.client.host
        failures = self.failed.add(address)
        if self.on_failure is not None:
            self.on_failure()
        if failures <= FREE:
            LOG.warning("a key from %s is not valid", address)
        elif failures == FREE + 1:
            LOG.warning("keys from %s are not valid: further ones are answered later", address)
        seconds = delay_of(failures)
        if not seconds:
            return
        if self.failed.delayed >= MOST_DELAYED:
            raise HTTPException(
                429,
                "too many keys that are not valid; try again later",
                {"Retry-After": f"{WINDOW_SECONDS:.0f}"},
            )
        self.failed.delayed += 1
        try:
            await asyncio.sleep(seconds)
        finally:
            self.failed.delayed -= 1
