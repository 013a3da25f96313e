"""Lanes: threads of their own for advising, for reading and for changing.

A summary that takes a second, or a thousand lists at once, must not keep anybody from being
advised. Each lane has its own threads and a queue that ends: what does not fit is answered with
503. A caller who gives up is taken out of the queue; a thread that is at work finishes, since
whatever it waits for has a deadline of its own.
"""

import asyncio
import contextvars
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial, wraps
from typing import ParamSpec, TypeVar

from counsel.service.errors import BusyError
from counsel.service.settings import ServiceSettings

_P = ParamSpec("_P")
_R = TypeVar("_R")

ADVISING_THREADS, CHANGING_THREADS, LOGIN_THREADS = 16, 4, 2
WAITING = 50
"""Requests that may wait for each thread of a lane."""


class Lane:
    """Threads for one kind of work; decorates a function that FastAPI then awaits."""

    def __init__(self, name: str, threads: int) -> None:
        self.name, self.most = name, threads * (1 + WAITING)
        self.pending = 0
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)

    async def run(self, function: Callable[..., _R], *arguments: object) -> _R:
        """Call a function in a thread of this lane."""
        if self.pending >= self.most:
            raise BusyError(f"too many requests wait for {self.name}; try again")
        self.pending += 1
        context = contextvars.copy_context()
        future = self._pool.submit(context.run, function, *arguments)
        loop = asyncio.get_running_loop()
        future.add_done_callback(lambda _: self._leave_from_thread(loop))
        return await asyncio.wrap_future(future)

    def __call__(self, function: Callable[_P, _R]) -> Callable[_P, Awaitable[_R]]:
        """Return a coroutine function that runs this one in the lane."""

        @wraps(function)
        async def run(*arguments: _P.args, **named: _P.kwargs) -> _R:
            return await self.run(partial(function, *arguments, **named))

        return run

    def close(self) -> None:
        """Stop without waiting for threads that are at work."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _leave_from_thread(self, loop: asyncio.AbstractEventLoop) -> None:
        with suppress(RuntimeError):  # the loop has ended, and nobody counts any more
            loop.call_soon_threadsafe(self._leave)

    def _leave(self) -> None:
        self.pending -= 1


class Lanes:
    """The lanes of a service."""

    def __init__(self, settings: ServiceSettings) -> None:
        self.advising = Lane("advising", ADVISING_THREADS)
        self.reading = Lane("reading", settings.reading_threads)
        self.changing = Lane("changing", CHANGING_THREADS)
        self.logins = Lane("logins", LOGIN_THREADS)  # keys that were not seen before
        self.all = (self.advising, self.reading, self.changing, self.logins)

    def close(self) -> None:
        """Stop all threads."""
        for lane in self.all:
            lane.close()
