"""Erasing a person: afterwards nothing of them is in the database, its log or its freed pages.

The name goes first, with a row in ``erasures`` by which every service forgets what it has learnt.
Episodes then go some at a time, so that advice does not wait, and an erasure that was interrupted
is finished by the next start.

A deleted row stays on disk until its place is overwritten. SQLite overwrites it at once
(``secure_delete``), and its write-ahead log is emptied. PostgreSQL keeps old rows until a table is
vacuumed: the tables with words of people are written anew, the others, which have only numbers, are
vacuumed, and a checkpoint ends the need for older parts of its log. What a service may not do there
is returned in words.
"""

import logging
import time
from uuid import uuid4

import sqlalchemy as sa

from counsel._arrays import brief
from counsel.service.core.audit import record
from counsel.service.core.desk import Desk
from counsel.service.db.api_keys import KeyHolder
from counsel.service.db.tables import episodes, erasures, people, snapshots

LOG = logging.getLogger("counsel.service")

AT_ONCE = 50
"""Episodes that are deleted in one transaction."""

PATIENCE = 5.0
"""Seconds to wait for readers that keep SQLite's log from being emptied."""

WORDS, NUMBERS = ("people", "remarks"), ("episodes", "decisions", "outcomes", "snapshots")
"""Tables with words of people, and tables with numbers only."""


def erase_person(desk: Desk, tenant: int, name: str, holder: KeyHolder | None = None) -> list[str]:
    """Delete a person with all their data, and return what an operator has to see to."""
    number = desk.person(tenant, name)

    def begin(connection: sa.Connection) -> None:
        nobody = {"name": f"erased {uuid4().hex}"}
        connection.execute(sa.update(people).where(people.c.id == number).values(nobody))
        connection.execute(sa.delete(snapshots))
        connection.execute(sa.insert(erasures), {"person": number, "at": time.time()})
        record(connection, holder or KeyHolder(tenant, "admin"), "person erased", number)

    desk.committer.submit(begin).result()
    _delete(desk, number)
    return scrub(desk.engine)


def finish_erasures(desk: Desk) -> None:
    """Finish what was interrupted: people who are erased and still have rows."""
    query = sa.select(people.c.id).where(people.c.id.in_(sa.select(erasures.c.person)))
    with desk.reading.connect() as connection:
        left = list(connection.scalars(query))
    for number in left:
        _delete(desk, number)
    if left:
        scrub(desk.engine)


def _delete(desk: Desk, number: int) -> None:
    """Delete the episodes of a person, some at a time, then the person."""
    some = sa.select(episodes.c.number).where(episodes.c.person == number).limit(AT_ONCE)

    def delete(connection: sa.Connection) -> bool:
        numbers = list(connection.scalars(some))
        connection.execute(sa.delete(episodes).where(episodes.c.number.in_(numbers)))
        if len(numbers) < AT_ONCE:
            connection.execute(sa.delete(people).where(people.c.id == number))
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
