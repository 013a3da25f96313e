"""Lists of what a tenant has, page by page, read from the database without waking anything."""

from contextlib import suppress
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSON

from counsel.errors import CounselError
from counsel.service.core.desk import Desk
from counsel.service.db.api_keys import LARGEST_ID
from counsel.service.db.engine import read
from counsel.service.db.model_queries import SIZE, content_of
from counsel.service.db.tables import IS_KEPT, advisers, episodes, erasures, models, people
from counsel.service.errors import NotFoundError


def page_of_advisers(
    desk: Desk, tenant: int, after: str | None, limit: int, *, archived: bool = False
) -> list[sa.Row[Any]]:
    """Return the advisers of a tenant that were created after one of them, oldest first.

    Those that are archived are left out, unless ``archived``.
    """
    mine = sa.select(advisers).where(advisers.c.tenant == tenant)
    those = IS_KEPT if archived else advisers.c.archived.is_(None)
    return read(desk.reading, _following(desk, mine.where(those), tenant, advisers, after, limit))


def page_of_models(desk: Desk, tenant: int, after: str | None, limit: int) -> list[dict[str, Any]]:
    """Return the models of a tenant after one of them, oldest first, without their content."""
    mine = sa.select(models.c.id, models.c.name, models.c.created, SIZE)
    mine = mine.where(models.c.tenant == tenant)
    query = _following(desk, mine, tenant, models, after, limit)
    with desk.reading.connect() as connection:
        rows = connection.execute(query).all()
        users = count_users(connection, tenant) if rows else {}
    return [dict(row._mapping) | {"advisers": users.get(row.id, 0)} for row in rows]


def count_users(connection: sa.Connection, tenant: int) -> dict[str, int]:
    """Return how many advisers of a tenant each source has, archived ones included."""
    settings = advisers.c.settings
    source = (
        sa.case((sa.func.json_valid(settings), sa.func.json_extract(settings, "$.source")))
        if connection.dialect.name == "sqlite"
        else sa.cast(settings, JSON)["source"].as_string()
    )
    query = sa.select(source, sa.func.count()).where(advisers.c.tenant == tenant, IS_KEPT)
    rows = connection.execute(query.group_by(sa.text("1")))
    return {str(name): int(count) for name, count in rows}


def model_content(desk: Desk, tenant: int, model: str) -> bytes:
    """Return the file of a model."""
    with desk.reading.connect() as connection:
        content = content_of(connection, tenant, model)
    if content is None:
        raise NotFoundError(f"there is no model {model[:40]!r}")
    return content


def describe_model(desk: Desk, tenant: int, model: str) -> dict[str, Any]:
    """Return a model as in the list."""
    mine = (models.c.id == model) & (models.c.tenant == tenant)
    query = sa.select(models.c.id, models.c.name, models.c.created, SIZE).where(mine)
    with desk.reading.connect() as connection:
        row = connection.execute(query).first()
        if row is None:
            raise NotFoundError(f"there is no model {model[:40]!r}")
        users = count_users(connection, tenant).get(model, 0)
    return dict(row._mapping) | {"advisers": users}


class EpisodesOf(NamedTuple):
    """Whose episodes to list: those of an adviser, or of one person with it."""

    tenant: int
    adviser: str
    person: str | None


def page_of_episodes(
    desk: Desk, whose: EpisodesOf, after: str | None, limit: int
) -> list[sa.Row[Any]]:
    """Return episodes before one of them, newest first."""
    tenant, adviser, person = whose
    its_own = (advisers.c.id == adviser) & (advisers.c.tenant == tenant)
    if not read(desk.reading, sa.select(advisers.c.id).where(its_own)):
        raise NotFoundError(f"there is no adviser {adviser[:40]!r}")
    which = episodes.c.adviser == adviser
    if person is not None:
        which &= episodes.c.person == desk.person(tenant, person)
    if after is not None:
        listed = episodes.c.adviser == adviser
        number, _ = _place(desk, episodes.c.number, listed, after)
        which &= episodes.c.number < number
    page = sa.select(episodes).where(which).order_by(episodes.c.number.desc()).limit(limit)
    some = page.subquery()
    query = (
        sa.select(some, people.c.name)
        .join(people, people.c.id == some.c.person)
        .order_by(some.c.number.desc())
    )
    return read(desk.reading, query)


def episode_fields(row: sa.Row[Any]) -> dict[str, Any]:
    """Return an episode in a list; its row has the name of the person."""
    names = ("id", "started", "ended", "terminated", "held_out", "mode", "spent")
    fields = row._mapping
    return {"person": row.name, **{name: fields[name] for name in names}}


def advisers_in_use(desk: Desk, tenant: int) -> list[sa.Row[Any]]:
    """Return the ids and names of the advisers of a tenant that are not archived, oldest first."""
    mine = (advisers.c.tenant == tenant) & advisers.c.archived.is_(None)
    query = sa.select(advisers.c.id, advisers.c.name).where(mine)
    return read(desk.reading, query.order_by(advisers.c.created, advisers.c.id))


def list_people(desk: Desk, tenant: int, after: str | None, limit: int) -> list[dict[str, Any]]:
    """Return the people of a tenant after a name, each with their number of episodes."""
    is_erased = people.c.id.in_(sa.select(erasures.c.person))  # the row goes last
    mine = sa.select(people).where(people.c.tenant == tenant, ~is_erased)
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


def cursor(place: float, id_: str) -> str:
    """Return the ``after`` of the page after a row: its id, and its place if it is deleted.

    The place is when the row was created, or the number of an episode.
    """
    return f"{id_}@{place!r}"


def _following(  # noqa: PLR0913
    desk: Desk,
    query: sa.Select[Any],
    tenant: int,
    table: sa.Table,
    after: str | None,
    limit: int,
) -> sa.Select[Any]:
    """Return the query for the rows that were created after one of them, oldest first."""
    if after is not None:
        created, id_ = _place(desk, table.c.created, table.c.tenant == tenant, after)
        place = sa.tuple_(table.c.created, table.c.id)
        query = query.where(place > sa.tuple_(sa.literal(created), sa.literal(id_)))
    return query.order_by(table.c.created, table.c.id).limit(limit)


def _place(
    desk: Desk, column: sa.Column[Any], is_mine: sa.ColumnElement[bool], after: str
) -> tuple[float, str]:
    """Return the place and the id of the last row of the page before, which may be deleted.

    Of a row that is there, the id alone is enough.
    """
    id_, _, text = after.rpartition("@")
    if id_:
        with suppress(ValueError):
            place = column.type.python_type(text)
            if abs(place) <= LARGEST_ID:
                return place, id_
    else:
        known = sa.select(column).where(column.table.c.id == after, is_mine)
        for row in read(desk.reading, known):
            return row[0], after
    raise CounselError(f"after is {after[:40]!r}; take it from the Link header of the last page")
