"""Erasing a person: afterwards nothing of them is in the database, its log or its freed pages.

The name goes first, with a row in ``erasures`` by which every service forgets what it has learnt.
Their episodes follow (``deletion.py``), and last the row without a name that they had.
"""

import time
from collections.abc import Sequence
from uuid import uuid4

import sqlalchemy as sa

from counsel.service.core.audit import record
from counsel.service.core.deletion import delete_for_good
from counsel.service.core.desk import Desk
from counsel.service.db.api_keys import KeyHolder
from counsel.service.db.tables import episodes, erasures, people, snapshots


def erase_person(desk: Desk, tenant: int, name: str, holder: KeyHolder | None = None) -> list[str]:
    """Delete a person with all their data, and return what an operator has to see to."""
    number = desk.person(tenant, name)

    def begin(connection: sa.Connection) -> None:
        nobody = {"name": f"erased {uuid4().hex}"}
        connection.execute(sa.update(people).where(people.c.id == number).values(nobody))
        connection.execute(sa.delete(snapshots))
        _drop_samples(connection)
        connection.execute(sa.insert(erasures), {"person": number, "at": time.time()})
        record(connection, holder or KeyHolder(tenant, "admin"), "person erased", number)

    desk.committer.submit(begin).result()
    return _delete(desk, [number])


def _drop_samples(connection: sa.Connection) -> None:
    """Drop the names that ANALYZE of some builds of SQLite has sampled for the planner."""
    if connection.dialect.name == "sqlite" and sa.inspect(connection).has_table("sqlite_stat4"):
        connection.exec_driver_sql("DELETE FROM sqlite_stat4 WHERE tbl = 'people'")


def finish_erasures(desk: Desk) -> None:
    """Finish what was interrupted: people who are erased and still have a row."""
    query = sa.select(people.c.id).where(people.c.id.in_(sa.select(erasures.c.person)))
    with desk.reading.connect() as connection:
        left = list(connection.scalars(query))
    if left:
        _delete(desk, left)


def _delete(desk: Desk, numbers: Sequence[int]) -> list[str]:
    theirs = [episodes.c.person == number for number in numbers]
    rows = sa.delete(people).where(people.c.id.in_(numbers))
    return delete_for_good(desk, theirs, lambda connection: connection.execute(rows))
