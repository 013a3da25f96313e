"""Group commit: one transaction for everything that arrived while the last one was under way.

Many callers wait for their row to be on disk, and writing to disk is cheapest once for all of them.
The *committer* is one thread that writes everything that is waiting in one transaction, and only
then lets the callers continue. When a group fails because of an item, its items are written one by
one, so that a faulty item affects no other; when the database fails, the whole group does at once.
Callers who have given up waiting are not written for.

Of large items, e.g. reports of a thousand outcomes, a transaction has one at most, so that whoever
sends many of them keeps others waiting for one and not for all of them.
"""

import asyncio
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

import sqlalchemy as sa

from counsel.errors import CounselError
from counsel.service.db.engine import write_transaction
from counsel.service.errors import BusyError

Waiter = Future[Any] | asyncio.Future[Any]
"""The future of a caller, in a thread or in an event loop."""

Batch = Callable[[sa.Connection, list[Any]], list[Any]]
_T = TypeVar("_T")

MOST, LARGE = 1000, 100
"""Items per transaction, at most; and the rows from which on an item is large."""

DATABASE_FAULTS = (
    sa.exc.OperationalError,
    sa.exc.InternalError,
    sa.exc.InterfaceError,
    sa.exc.TimeoutError,
)
"""Raised by a database that does not answer, is locked, full or read-only: no fault of an item."""


class _Submission(NamedTuple):
    """An item, its kind, the future of its caller, and about how many rows it writes."""

    kind: str
    item: Any
    done: Waiter
    rows: int


class Committer:
    """Writes what many callers submit, in as few transactions as possible.

    ``batches`` has a function for each kind of items, which takes all items of one transaction and
    returns the result of each, an exception where an item is refused. Jobs come first, then this
    order. ``after`` is called at the end of each transaction. The function it returns is called
    once the transaction is durable, before any caller continues. ``observe`` is called with the
    seconds and the items of each group; submissions beyond ``most_waiting`` are refused.
    """

    def __init__(
        self,
        engine: sa.Engine,
        batches: Mapping[str, Batch] | None = None,
        after: Callable[[sa.Connection], Callable[[], None]] | None = None,
        most_waiting: int = 100_000,
    ) -> None:
        self.engine, self.most_waiting = engine, most_waiting
        self.transactions = self.failed = 0
        self.observe: Callable[[float, int], None] = lambda _seconds, _items: None
        self._writing_since: float | None = None
        self._batches: dict[str, Batch] = {"job": _do_jobs, **(batches or {})}
        self._after = after
        self._queue: queue.SimpleQueue[_Submission | None] = queue.SimpleQueue()
        self._large = deque[_Submission]()
        self._thread = threading.Thread(target=self._work, name="committer", daemon=True)
        self._closed = False
        self._thread.start()

    def submit(self, job: Callable[[sa.Connection], _T], rows: int = 1) -> "Future[_T]":
        """Run a job in the next transaction; the future is done when that is durable."""
        done: Future[_T] = Future()
        self.enqueue("job", job, done, rows)
        return done

    def enqueue(self, kind: str, item: Any, done: Waiter, rows: int = 1) -> None:  # noqa: ANN401
        """Submit an item of a kind; ``done`` gets the result once it is durable.

        ``rows`` is about how many it writes: large items take turns.
        """
        if self._closed:
            raise CounselError("the service is stopping and accepts no more requests")
        if self.waiting >= self.most_waiting:
            raise BusyError("too many requests wait for the database; try again")
        self._queue.put(_Submission(kind, item, done, rows))

    @property
    def waiting(self) -> int:
        """How many items wait to be written."""
        return self._queue.qsize() + len(self._large)

    @property
    def writing_for(self) -> float:
        """For how many seconds the transaction under way has lasted; 0 if there is none."""
        since = self._writing_since
        return 0.0 if since is None else time.monotonic() - since

    @property
    def is_alive(self) -> bool:
        """Whether the thread that writes is there."""
        return self._thread.is_alive()

    def close(self, timeout: float | None = None) -> None:
        """Write what was submitted, and stop; give up after ``timeout`` seconds."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
            self._thread.join(timeout)

    def _work(self) -> None:
        large, stopping = self._large, False
        while large or not stopping:
            group: list[_Submission] = []
            while not stopping and len(group) < MOST:
                if self._queue.empty() and (group or large):
                    break
                submission = self._queue.get()
                if submission is None:
                    stopping = True
                elif submission.rows >= LARGE:
                    large.append(submission)
                else:
                    group.append(submission)
            if large:
                group.append(large.popleft())
            group = [submission for submission in group if not submission.done.cancelled()]
            if group:
                self._writing_since = time.monotonic()
                self._write(group)
                self.observe(time.monotonic() - self._writing_since, len(group))
                self._writing_since = None

    def _write(self, group: list[_Submission]) -> None:
        """Write a group at once, or one by one if an item fails."""
        try:
            results = self._transact(group)
        except DATABASE_FAULTS as fault:
            self.failed += 1
            if not is_lock_timeout(fault):
                # Connections that were opened while the database was read-only stay so.
                self.engine.dispose()
            results = [(submission, fault) for submission in group]
        except Exception as fault:
            if len(group) > 1:
                for submission in group:
                    self._write([submission])
                return
            results = [(group[0], fault)]
        loops = dict[asyncio.AbstractEventLoop, list[tuple[Waiter, Any]]]()
        for submission, result in results:
            done = submission.done
            if isinstance(done, asyncio.Future):
                loops.setdefault(done.get_loop(), []).append((done, result))
            else:
                _resolve([(done, result)])
        for loop, resolved in loops.items():
            loop.call_soon_threadsafe(_resolve, resolved)

    def _transact(self, group: list[_Submission]) -> list[tuple[_Submission, Any]]:
        """Write a group in one transaction and return the result of each item."""
        results: list[tuple[_Submission, Any]] = []
        with write_transaction(self.engine) as connection:
            for kind, batch in self._batches.items():
                submissions = [submission for submission in group if submission.kind == kind]
                if submissions:
                    items = [submission.item for submission in submissions]
                    results += zip(submissions, batch(connection, items), strict=True)
            finish = self._after(connection) if self._after else None
        self.transactions += 1
        if finish:
            finish()
        return results


def is_lock_timeout(fault: BaseException) -> bool:
    """Whether a fault is that another service, or program, has the database's lock."""
    cause = getattr(fault, "orig", None)
    is_locked = getattr(cause, "sqlstate", None) == "55P03"  # PostgreSQL's lock_not_available
    return is_locked or "database is locked" in str(cause)


def _resolve(results: list[tuple[Waiter, Any]]) -> None:
    """Set the results of futures, except those that were cancelled meanwhile."""
    for done, result in results:
        if done.cancelled():
            continue
        if isinstance(result, Exception):
            done.set_exception(result)
        else:
            done.set_result(result)


def _do_jobs(connection: sa.Connection, jobs: list[Any]) -> list[Any]:
    return [job(connection) for job in jobs]
