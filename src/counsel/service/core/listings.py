"""Lists of what a tenant has, page by page, read from the database without waking anything."""

from typing import Any

import sqlalchemy as sa

from counsel.service.core.desk import Desk
from counsel.service.db.engine import read
from counsel.service.db.tables import advisers, episodes, people


def page_of_advisers(desk: Desk, tenant: int, after: str | None, limit: int) -> list[sa.Row[Any]]:
    """Return the advisers of a tenant that were created after one of them, oldest first."""
    mine = sa.select(advisers).where(advisers.c.tenant == tenant)
    if after is not None:
        created = sa.select(advisers.c.created).where(advisers.c.id == after).scalar_subquery()
        place = sa.tuple_(advisers.c.created, advisers.c.id)
        mine = mine.where(place > sa.tuple_(created, sa.literal(after)))
    return read(desk.reading, mine.order_by(advisers.c.created, advisers.c.id).limit(limit))


def advisers_in_use(desk: Desk, tenant: int) -> list[sa.Row[Any]]:
    """Return the ids and names of the advisers of a tenant that are not archived, oldest first."""
    mine = (advisers.c.tenant == tenant) & advisers.c.archived.is_(None)
    query = sa.select(advisers.c.id, advisers.c.name).where(mine)
    return read(desk.reading, query.order_by(advisers.c.created, advisers.c.id))


def list_people(desk: Desk, tenant: int, after: str | None, limit: int) -> list[dict[str, Any]]:
    """Return the people of a tenant after a name, each with their number of episodes."""
    mine = sa.select(people).where(people.c.tenant == tenant)
    if after is not None:
        mine = mine.where(people.c.name > after)
    page = mine.order_by(people.c.name).limit(limit).subquery()
    query = (
        sa.select(page.c.name, page.c.created, sa.func.count(episodes.c.number))
        .join(episodes, episodes.c.person == page.c.id, isouter=True)
        .group_by(page.c.id, page.c.name, page.c.created)
        .order_by(page.c.name)
    )
    return [
        {"name": name, "created": created, "episodes": count}
        for name, created, count in read(desk.reading, query)
    ]
