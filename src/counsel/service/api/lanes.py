"""Lanes: threads of their own for advising, reading, changing, logins and parsing.

A summary that takes a second, or a thousand lists at once, must not keep anybody from being
advised, and those of one tenant must not keep another's waiting. Each lane has its own threads,
which serve tenants in turn (``fair_threads.py``), and a queue that ends, half of which is the most
for one tenant: what does not fit is answered with 503. A caller who gives up is taken out of the
queue; a thread that is at work finishes, since whatever it waits for has a deadline of its own.
"""

import asyncio
import contextvars
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial, wraps
from typing import ParamSpec, TypeVar

from counsel.service.core.fair_threads import TENANT, FairThreads
from counsel.service.errors import BusyError
from counsel.service.settings import ServiceSettings

_P = ParamSpec("_P")
_R = TypeVar("_R")

ADVISING_THREADS, CHANGING_THREADS, LOGIN_THREADS = 16, 4, 2
WAITING = 50
"""Requests that may wait for each thread of a lane."""


class Lane:
    """Threads for one kind of work; decorates a function that FastAPI then awaits.

    One tenant has ``threads`` at most; there is one more for the others.
    """

    def __init__(self, name: str, threads: int) -> None:
        self.name, self.most = name, threads * (1 + WAITING)
        self.pending = 0
        self._pending_of: Counter[int | None] = Counter()
        self._threads = FairThreads(name, threads + 1)

    async def run(self, function: Callable[..., _R], *arguments: object) -> _R:
        """Call a function in a thread of this lane."""
        tenant = TENANT.get()
        is_full = tenant is not None and self._pending_of[tenant] >= self.most // 2
        if is_full or self.pending >= self.most:
            raise BusyError(f"too many requests wait for {self.name}; try again")
        self.pending += 1
        self._pending_of[tenant] += 1
        call = partial(contextvars.copy_context().run, function, *arguments)
        future = self._threads.submit(call, tenant)
        loop = asyncio.get_running_loop()
        future.add_done_callback(lambda _: self._leave_from_thread(loop, tenant))
        return await asyncio.wrap_future(future)

    def __call__(self, function: Callable[_P, _R]) -> Callable[_P, Awaitable[_R]]:
        """Return a coroutine function that runs this one in the lane."""

        @wraps(function)
        async def run(*arguments: _P.args, **named: _P.kwargs) -> _R:
            return await self.run(partial(function, *arguments, **named))

        return run

    def close(self) -> None:
        """Stop without waiting for threads that are at work."""
        self._threads.close()

    def _leave_from_thread(self, loop: asyncio.AbstractEventLoop, tenant: int | None) -> None:
        with suppress(RuntimeError):  # the loop has ended, and nobody counts any more
            loop.call_soon_threadsafe(self._leave, tenant)

    def _leave(self, tenant: int | None) -> None:
        self.pending -= 1
        self._pending_of[tenant] -= 1
        if not self._pending_of[tenant]:
            del self._pending_of[tenant]


class Lanes:
    """The lanes of a service."""

    def __init__(self, settings: ServiceSettings) -> None:
        self.advising = Lane("advising", ADVISING_THREADS)
        self.reading = Lane("reading", settings.reading_threads)
        self.changing = Lane("changing", CHANGING_THREADS)
        self.logins = Lane("logins", LOGIN_THREADS)  # keys that were not seen before
        self.parsing = Lane("parsing", 1)  # large bodies, whose parsers hold the interpreter
        self.all = (self.advising, self.reading, self.changing, self.logins, self.parsing)

    def close(self) -> None:
        """Stop all threads."""
        for lane in self.all:
            lane.close()
