"""Group commit: one transaction for everything that arrived while the last one was under way.

Many callers wait for their row to be on disk, and a disk is asked most cheaply once for all of
them. The *committer* is one thread that writes everything that is waiting in one transaction, and
only then lets the callers continue. When a group fails, its jobs are run one by one, so that a
faulty job affects no other.
"""

import asyncio
import queue
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

import sqlalchemy as sa

from counsel.errors import CounselError
from counsel.service.db.engine import write_transaction

Waiter = Future[Any] | asyncio.Future[Any]
"""Who waits: a thread, or an event loop."""

Batch = Callable[[sa.Connection, list[Any]], list[Any]]
_T = TypeVar("_T")

MOST = 1000
"""Items in one transaction."""


@dataclass(slots=True)
class _Waiting:
    """Something to be done, how, and who waits for it."""

    kind: str
    item: Any
    done: "Waiter"


class Committer:
    """Does what many callers hand in, in as few transactions as possible.

    Parameters
    ----------
    engine
        The database.
    batches
        What is done with items of each kind, all those of one transaction at once and in this order
        of kinds: it returns what each gets, and an exception where one is refused. Jobs come first.
    after
        Called at the end of each transaction; what it returns is called once that is durable, and
        before anybody who waits goes on.
    """

    def __init__(
        self,
        engine: sa.Engine,
        batches: Mapping[str, Batch] | None = None,
        after: Callable[[sa.Connection], Callable[[], None]] | None = None,
    ) -> None:
        self.engine = engine
        self.transactions = 0
        self._batches: dict[str, Batch] = {"job": _do_jobs, **(batches or {})}
        self._after = after
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="committer", daemon=True)
        self._closed = False
        self._thread.start()

    def submit(self, job: Callable[[sa.Connection], _T]) -> "Future[_T]":
        """Run a job in the next transaction; the future is done when that is durable."""
        done: Future[_T] = Future()
        self.enqueue("job", job, done)
        return done

    def enqueue(self, kind: str, item: Any, done: Waiter) -> None:  # noqa: ANN401 (the batch's own)
        """Hand in an item of a kind; ``done`` is told once what became of it is durable."""
        if self._closed:
            raise CounselError("the service is stopping; nothing more is written")
        self._queue.put(_Waiting(kind, item, done))

    def close(self) -> None:
        """Do what has been handed in, and stop."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
            self._thread.join()

    def _work(self) -> None:
        stopping = False
        while not stopping:
            group: list[_Waiting] = []
            waiting = self._queue.get()
            while waiting is not None:
                group.append(waiting)
                if len(group) == MOST or self._queue.empty():
                    break
                waiting = self._queue.get()
            stopping = waiting is None
            if group:
                self._write(group)

    def _write(self, group: list[_Waiting]) -> None:
        """Do a group at once; one by one where that fails."""
        try:
            results = self._transact(group)
        except Exception as fault:
            if len(group) > 1:
                for one in group:
                    self._write([one])
                return
            results = [(group[0], fault)]
        loops = dict[asyncio.AbstractEventLoop, list[tuple[Waiter, Any]]]()
        for waiting, result in results:
            if isinstance(waiting.done, asyncio.Future):
                loops.setdefault(waiting.done.get_loop(), []).append((waiting.done, result))
            else:
                _tell([(waiting.done, result)])
        for loop, those in loops.items():
            loop.call_soon_threadsafe(_tell, those)

    def _transact(self, group: list[_Waiting]) -> list[tuple[_Waiting, Any]]:
        """Do a group in one transaction and return what each gets."""
        results: list[tuple[_Waiting, Any]] = []
        with write_transaction(self.engine) as connection:
            for kind, batch in self._batches.items():
                those = [one for one in group if one.kind == kind]
                if those:
                    done = batch(connection, [one.item for one in those])
                    results += zip(those, done, strict=True)
            then = self._after(connection) if self._after else None
        self.transactions += 1
        if then:
            then()
        return results


def _tell(those: list[tuple[Waiter, Any]]) -> None:
    """Let those go on who wait; somebody who has gone meanwhile is not told."""
    for done, result in those:
        if done.cancelled():
            continue
        if isinstance(result, Exception):
            done.set_exception(result)
        else:
            done.set_result(result)


def _do_jobs(connection: sa.Connection, jobs: list[Any]) -> list[Any]:
    return [job(connection) for job in jobs]
