"""The database: opened, brought up to date, and written to in groups.

Many callers wait for their row to be on disk, and a disk is asked most cheaply once for all of
them. The *committer* is one thread that takes everything that has arrived while the last
transaction was under way, writes it in one transaction, and only then lets the callers go on. A job
that fails takes nobody with it: its group is then done one by one.

On PostgreSQL several services may write at a time. Each transaction takes one lock first, so rows
become visible in the order of their ``seq``, and whoever follows the log misses none.
"""

import asyncio
import os
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from alembic.util import CommandError

from counsel.errors import CounselError

Waiter = Future[Any] | asyncio.Future[Any]
"""Who waits: a thread, or an event loop."""

Batch = Callable[[sa.Connection, list[Any]], list[Any]]
_T = TypeVar("_T")

MOST = 1000
"""Items in one transaction."""

KEPT_OPEN, MORE_OPEN = 5, 45
"""Connections that are kept, and more for as many threads as may ask at once."""

LOCK = 0x636F756E73656C
"""What services on one PostgreSQL database wait for before they write."""


def open_engine(url: str) -> sa.Engine:
    """Connect to a database and bring its tables up to date.

    Parameters
    ----------
    url
        ``sqlite:///counsel.db``, a path of a SQLite file, or ``postgresql+psycopg://…``.
    """
    address = _address(url)
    try:
        if address.get_backend_name() == "sqlite" and address.database not in (
            None,
            "",
            ":memory:",
        ):
            # It holds what people did: nobody else on the machine may read it.
            os.close(os.open(str(address.database), os.O_CREAT | os.O_RDWR, 0o600))
        options: dict[str, Any] = {"pool_size": KEPT_OPEN, "max_overflow": MORE_OPEN}
        if address.get_backend_name() != "sqlite":
            # Whoever waited for the lock must see what was committed meanwhile.
            options |= {"pool_pre_ping": True, "isolation_level": "READ COMMITTED"}
        engine = sa.create_engine(address, hide_parameters=True, **options)
        if engine.dialect.name == "sqlite":
            sa.event.listen(engine, "connect", _prepare_sqlite)
        try:
            migrate(engine)
        except BaseException:
            engine.dispose()  # close its connections
            raise
    except (sa.exc.SQLAlchemyError, OSError, CommandError) as fault:
        reason = " ".join(str(getattr(fault, "orig", None) or fault).split())
        if isinstance(fault, CommandError):
            reason = "it was made by another version of Counsel"
        raise CounselError(
            f"the database {_shown(address)} cannot be opened: {reason[:300]}"
        ) from None
    return engine


def without_password(url: str) -> str:
    """Return the address of a database as it may be shown."""
    return _shown(_address(url)) if "://" in url else url


def is_shared(url: str) -> bool:
    """Whether several processes may serve from a database."""
    return _address(url).get_backend_name() == "postgresql"


def _shown(address: sa.URL) -> str:
    secret = {name: "hidden" for name in address.query if "pass" in name.lower()}
    return address.update_query_dict(secret).render_as_string(hide_password=True)


@contextmanager
def writing(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Yield a connection in a transaction that nobody else writes beside."""
    with engine.connect() as connection:
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        else:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(LOCK)))
        yield connection
        connection.commit()


def migrate(engine: sa.Engine) -> None:
    """Bring the tables of a database up to date; two services that start at once take turns."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    with writing(engine) as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _address(url: str) -> sa.URL:
    """Return the address of a database; a plain path is a SQLite file."""
    if "://" not in url:
        return sa.URL.create("sqlite", database=url)
    try:
        address = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        raise CounselError(
            "the database is no address; write sqlite:///FILE or "
            "postgresql+psycopg://user:password@host/name"
        ) from None
    if address.drivername in ("postgresql", "postgres"):
        address = address.set(drivername="postgresql+psycopg")
    if address.drivername not in ("sqlite", "postgresql+psycopg"):
        raise CounselError(
            f"the database is of kind {address.drivername!r}; it must be sqlite or "
            "postgresql+psycopg"
        )
    return address


def _prepare_sqlite(connection: Any, _: object) -> None:  # noqa: ANN401 (the driver's own)
    """Set up a connection: write ahead, wait for the disk, hold to foreign keys, and wait in line.

    Transactions are begun by hand: the driver would begin them too late for the migrations.
    """
    connection.isolation_level = None
    for pragma in (
        "journal_mode = WAL",
        "synchronous = FULL",
        "foreign_keys = ON",
        "busy_timeout = 10000",
    ):
        connection.execute(f"PRAGMA {pragma}")


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
        self.hand_in("job", job, done)
        return done

    def hand_in(self, kind: str, item: Any, done: Waiter) -> None:  # noqa: ANN401 (the batch's own)
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
        with writing(self.engine) as connection:
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
