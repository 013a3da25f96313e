"""Remove old rows from the files of the database: what was deleted or replaced stays there a while.

SQLite overwrites a deleted row at once (``secure_delete``), but its write-ahead log has old rows
until the log is emptied, which a reader prevents. PostgreSQL keeps old rows until a table is
vacuumed: the tables with words of people are written anew, the others, which have only numbers, are
vacuumed, and a checkpoint ends the need for older parts of its log. No vacuum removes a row that a
transaction from before the deletion may still read, and PostgreSQL does not say that it stayed.

Advice never waits for a reader because of this. SQLite's log is emptied if that is possible at
once. To write a table anew PostgreSQL needs it for itself, and whoever uses the table meanwhile
queues behind that request, so the request is given up soon and made again later.
"""

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import sqlalchemy as sa

from counsel._arrays import brief
from counsel.service.db.group_commit import is_lock_timeout

LOG = logging.getLogger("counsel.service")

PATIENCE = 5.0
"""Seconds to wait for readers and locks of others."""

LOCK_SECONDS = 0.1
"""Seconds for which advice may queue behind a request for a table."""

PAUSE, LOCK_PAUSE = 0.05, 0.5
"""Seconds between attempts, and between requests for a table."""

WORDS = ("people", "remarks", "pg_statistic")
"""Tables with words of people; the planner's statistics had some before they were dropped."""

NUMBERS = ("episodes", "decisions", "level_changes", "outcomes", "snapshots")
"""Tables with numbers of people only."""


class Remains(NamedTuple):
    """Why old rows may be on disk: what an operator must change, and what others hold for now."""

    forbidden: list[str]
    held: list[str]


def scrub(engine: sa.Engine) -> Remains:
    """Remove deleted rows from the files of the database; return what could not be done."""
    return _empty_log(engine) if engine.dialect.name == "sqlite" else _vacuum(engine)


def _attempt(attempt: Callable[[], str], deadline: float, pause: float) -> str:
    """Attempt something until nothing is in its way; return what is at the deadline."""
    while (obstacle := attempt()) and time.monotonic() + pause < deadline:
        time.sleep(pause)
    return obstacle


# SQLite


def _empty_log(engine: sa.Engine) -> Remains:
    with engine.connect() as connection:
        patience = connection.exec_driver_sql("PRAGMA busy_timeout").scalar_one()
        # A checkpoint that waits for a reader keeps the lock of writers meanwhile.
        connection.exec_driver_sql("PRAGMA busy_timeout = 0")
        try:
            deadline = time.monotonic() + PATIENCE
            obstacle = _attempt(lambda: _truncate_log(connection), deadline, PAUSE)
        finally:
            connection.exec_driver_sql(f"PRAGMA busy_timeout = {patience}")
    return Remains([], [obstacle] if obstacle else [])


def _truncate_log(connection: sa.Connection) -> str:
    connection.exec_driver_sql("PRAGMA wal_checkpoint(PASSIVE)").all()  # keeps no writer waiting
    busy = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()[0]
    if busy:
        return "a reader of the database keeps old rows in SQLite's write-ahead log until it ends"
    return ""


# PostgreSQL

_MAY = sa.text("""
SELECT coalesce(current_setting('wal_recycle', true) = 'on', false) AS recycles,
    has_function_privilege('pg_switch_wal()', 'EXECUTE') AS switches,
    pg_has_role('pg_checkpoint', 'USAGE') AS checkpoints
""")

_FENCE = sa.text("SELECT pg_snapshot_xmax(pg_current_snapshot())::text")
"""The number of the next transaction: all deletions have smaller ones."""

_OLDER = sa.text("""
WITH fence AS (SELECT CAST(CAST(:fence AS xid8) AS xid) AS number, CAST(:fence AS xid8) AS long)
SELECT concat('session ', pid, ' (' || nullif(application_name, '') || ')') AS name
FROM fence, pg_stat_activity
WHERE pid <> pg_backend_pid() AND (age(backend_xid) > age(number) OR (
    age(backend_xmin) > age(number) AND coalesce(datname = current_database(), true)
    AND pid NOT IN (SELECT pid FROM pg_stat_progress_vacuum)))
UNION ALL SELECT concat('replication slot ', slot_name)
FROM fence, pg_replication_slots WHERE age(xmin) > age(number)
UNION ALL SELECT 'another transaction'
FROM fence WHERE pg_snapshot_xmin(pg_current_snapshot()) < long
LIMIT 1
""")
"""Who may read rows that were deleted before the fence.

A session does by its snapshot, if it is in this database or sends what a standby reads; a vacuum
under way does not count. While a transaction from before the fence is running, wherever it is, new
snapshots may read these rows, too. When none is, and no snapshot has them, nobody ever reads them.
"""


def _vacuum(engine: sa.Engine) -> Remains:
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        forbidden, held = list[str](), ""
        try:
            connection.exec_driver_sql("SET statement_timeout = 0")
            forbidden, statements = _permissions(connection)
            held = _vacuum_tables(connection, forbidden)
            for statement in () if held else statements:
                connection.exec_driver_sql(statement)
        except sa.exc.DBAPIError as fault:
            LOG.warning("old rows are not removed: %s", brief(str(fault.orig)))
            held = "the database failed to remove old rows; the log of the service has the reason"
        finally:
            connection.invalidate()  # the next caller gets a connection with its deadlines
    return Remains(forbidden, [held] if held else [])


def _permissions(connection: sa.Connection) -> tuple[list[str], list[str]]:
    """Return what the server does not allow, and statements that clean its log."""
    may, forbidden, statements = connection.execute(_MAY).one(), list[str](), list[str]()
    for is_allowed, statement, advice in (
        (may.switches, "SELECT pg_switch_wal()", "allow pg_switch_wal to the service, or wait for "
         "the next segment of the write-ahead log"),
        (may.checkpoints, "CHECKPOINT", "give the service the role pg_checkpoint, or wait for the "
         "next checkpoint"),
    ):  # fmt: skip
        if is_allowed:
            statements.append(statement)
        else:
            forbidden.append(f"old rows may be on disk; {advice}")
    if may.recycles:
        forbidden.append(
            "old segments of the write-ahead log keep old rows, because wal_recycle is on; set it "
            "to off"
        )
    return forbidden, statements


def _vacuum_tables(connection: sa.Connection, forbidden: list[str]) -> str:
    """Vacuum all tables with rows of people; return what prevents that for now.

    What the server forbids is added to ``forbidden``.
    """
    deadline, fence = time.monotonic() + PATIENCE, connection.scalar(_FENCE)

    def find_reader() -> str:
        reader = connection.scalar(_OLDER, {"fence": fence})
        if reader is None:
            return ""
        return f"{reader} began before the deletion and keeps old rows on disk until it ends"

    def write_anew(table: str) -> str:
        try:
            connection.exec_driver_sql(f"VACUUM (FULL) {table}")
        except sa.exc.OperationalError as fault:
            if not is_lock_timeout(fault):
                raise
            return f"a session that uses the table {table} keeps its old rows on disk until it ends"
        return ""

    def note_warning(diagnostic: Any) -> None:  # noqa: ANN401 (the driver's own)
        if diagnostic.severity_nonlocalized == "WARNING":
            forbidden.append(
                f"old rows may be on disk: {diagnostic.message_primary}; let the service own its "
                "database"
            )

    driver: Any = connection.connection.driver_connection
    driver.add_notice_handler(note_warning)
    held = _attempt(find_reader, deadline, PAUSE)
    connection.exec_driver_sql(f"SET lock_timeout = {round(1000 * LOCK_SECONDS)}")
    for table in WORDS:
        held = held or _attempt(partial(write_anew, table), deadline, LOCK_PAUSE)
    connection.exec_driver_sql("RESET lock_timeout")
    for table in () if held else NUMBERS:
        connection.exec_driver_sql(f"VACUUM {table}")
    return held
