"""Deleting for good: episodes some at a time, then what is left of them in the database's files.

Advice does not wait for a long transaction. The row of a person or an adviser goes last, after the
files are scrubbed, so that the next start finds and finishes what a crash interrupted.

A deleted row stays on disk until its place is overwritten. SQLite overwrites it at once
(``secure_delete``), and its write-ahead log is emptied. PostgreSQL keeps old rows until a table is
vacuumed: the tables with words of people are written anew, the others, which have only numbers, are
vacuumed, and a checkpoint ends the need for older parts of its log. What a service may not do there
is returned in words.
"""

import logging
import time
from collections.abc import Callable, Iterable

import sqlalchemy as sa

from counsel._arrays import brief
from counsel.service.core.desk import Desk
from counsel.service.db.tables import episodes

LOG = logging.getLogger("counsel.service")

AT_ONCE = 50
"""Episodes that are deleted in one transaction."""

PATIENCE = 5.0
"""Seconds to wait for readers that keep SQLite's log from being emptied."""

WORDS, NUMBERS = ("people", "remarks"), ("episodes", "decisions", "outcomes", "snapshots")
"""Tables with words of people, and tables with numbers only."""


def delete_for_good(
    desk: Desk,
    those: Iterable[sa.ColumnElement[bool]],
    finish: Callable[[sa.Connection], object],
) -> list[str]:
    """Delete the episodes of each condition, scrub, and finish; return what could not be done."""
    for condition in those:
        _delete_episodes(desk, condition)
    remains = scrub(desk.engine)
    desk.committer.submit(finish).result()
    return remains


def _delete_episodes(desk: Desk, condition: sa.ColumnElement[bool]) -> None:
    some = sa.select(episodes.c.number).where(condition).limit(AT_ONCE)

    def delete(connection: sa.Connection) -> bool:
        numbers = list(connection.scalars(some))
        connection.execute(sa.delete(episodes).where(episodes.c.number.in_(numbers)))
        return len(numbers) == AT_ONCE

    while desk.committer.submit(delete).result():
        pass


def scrub(engine: sa.Engine) -> list[str]:
    """Remove deleted rows from the files of the database; return what could not be done."""
    is_sqlite = engine.dialect.name == "sqlite"
    return _empty_log(engine) if is_sqlite else _vacuum(engine)


def _empty_log(engine: sa.Engine) -> list[str]:
    deadline = time.monotonic() + PATIENCE
    while True:
        with engine.connect() as connection:
            busy = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()[0]
        if not busy:
            return []
        if time.monotonic() > deadline:
            return ["the write-ahead log of SQLite is in use and holds old rows until it is not"]
        time.sleep(0.05)


def _vacuum(engine: sa.Engine) -> list[str]:
    left = list[str]()
    steps = {
        **{f"VACUUM (FULL) {table}": f"vacuum {table}" for table in WORDS},
        **{f"VACUUM {table}": f"vacuum {table}" for table in NUMBERS},
        "SELECT pg_switch_wal()": "allow pg_switch_wal to the service, or wait for the next "
        "segment of the write-ahead log",
        "CHECKPOINT": "give the service the role pg_checkpoint, or wait for the next checkpoint",
    }
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("SET statement_timeout = 0")
        try:
            for statement, advice in steps.items():
                try:
                    connection.exec_driver_sql(statement)
                except sa.exc.DBAPIError as fault:
                    LOG.warning("%s failed: %s", statement, brief(str(fault.orig)))
                    left.append(f"old rows may be on disk; {advice}")
        finally:
            connection.invalidate()  # the next caller gets a connection with its deadlines
    return left
