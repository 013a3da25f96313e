"""Threads that serve tenants in turn, so that one with much to do keeps no other waiting for long.

Each tenant has a queue of its own, and a free thread takes the first call of the tenant that was
served longest ago. The last free thread is left to tenants who have no call at work: a tenant with
many long reads never has all threads. Where ``each`` is given, one tenant has so many threads at
most. Calls that belong to no tenant have a queue like one, and may take every thread.
"""

import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeVar

_R = TypeVar("_R")

TENANT: ContextVar[int | None] = ContextVar("tenant", default=None)
"""The tenant of the request that is being handled, once its key was checked."""


class _Call(NamedTuple):
    """A call and the future of its result."""

    function: Callable[[], Any]
    result: Future[Any]


class FairThreads:
    """So many threads at most, started when they are needed, ``each`` of them for one tenant."""

    def __init__(self, name: str, threads: int, each: int | None = None) -> None:
        self.name, self.threads, self.each = name, threads, each or threads
        self._waiting: OrderedDict[Hashable, deque[_Call]] = OrderedDict()
        self._at_work: Counter[Hashable] = Counter()
        self._changed = threading.Condition()
        self._started = self._idle = 0
        self._closed = False

    def submit(self, function: Callable[[], _R], tenant: Hashable = None) -> "Future[_R]":
        """Call a function in the next thread that has a turn for its tenant."""
        result: Future[_R] = Future()
        with self._changed:
            if self._closed:
                raise RuntimeError(f"the threads of {self.name} have ended")
            self._waiting.setdefault(tenant, deque()).append(_Call(function, result))
            # A thread that was woken counts as idle until it runs.
            waiting = sum(map(len, self._waiting.values()))
            if self._idle < waiting and self._started < self.threads:
                self._started += 1
                name = f"{self.name}_{self._started}"
                threading.Thread(target=self._work, name=name, daemon=True).start()
            self._changed.notify()
        return result

    def close(self) -> None:
        """Stop without waiting for calls at work; those that wait are cancelled."""
        with self._changed:
            self._closed = True
            for call in (call for calls in self._waiting.values() for call in calls):
                call.result.cancel()
            self._waiting.clear()
            self._changed.notify_all()

    def _next(self) -> tuple[Hashable, _Call] | None:
        """Take the call whose turn it is; None if there is none that may have a thread."""
        free = self.threads - self._at_work.total()
        for tenant, calls in self._waiting.items():
            busy = self._at_work[tenant]
            if tenant is not None and busy and (free <= 1 or busy >= self.each):
                continue
            call = calls.popleft()
            if calls:
                self._waiting.move_to_end(tenant)
            else:
                del self._waiting[tenant]
            return tenant, call
        return None

    def _work(self) -> None:
        while True:
            with self._changed:
                self._idle += 1
                while (turn := self._next()) is None and not self._closed:
                    self._changed.wait()
                self._idle -= 1
                if turn is None:
                    return
                tenant, call = turn
                self._at_work[tenant] += 1
            if call.result.set_running_or_notify_cancel():
                try:
                    result = call.function()
                except BaseException as fault:
                    call.result.set_exception(fault)
                else:
                    call.result.set_result(result)
                    del result
            del call, turn
            with self._changed:
                self._at_work[tenant] -= 1
                self._changed.notify()  # another call of this tenant may now have a thread
