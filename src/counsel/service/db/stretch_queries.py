"""Queries about the stretches of shared limits, for advisers that have one only."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa

from counsel.service.db.tables import stretches as table

KEPT = 100
"""Stretches of an adviser whose rows are kept."""


class StretchKey(NamedTuple):
    """An adviser, the length of its stretches, and when one of them starts, in seconds."""

    adviser: str
    seconds: int
    start: int


_THESE = sa.select(table).where(
    table.c.adviser.in_(sa.bindparam("advisers", expanding=True)),
    table.c.start.in_(sa.bindparam("starts", expanding=True)),
)
_MINE = (table.c.adviser == sa.bindparam("of")) & (table.c.seconds == sa.bindparam("length"))
_THIS = sa.select(table).where(_MINE, table.c.start == sa.bindparam("begun"))
_LAST = sa.select(table).where(_MINE).order_by(table.c.start.desc())
_BEFORE = _LAST.where(table.c.start < sa.bindparam("begun")).limit(1)
_LATER = sa.select(sa.func.count()).where(_MINE, table.c.start > sa.bindparam("begun"))
_ADD = sa.insert(table)
_UPDATE = (
    sa.update(table)
    .where(_MINE, table.c.start == sa.bindparam("begun"))
    .values({name: sa.bindparam(f"new_{name}") for name in ("pieces", "spent", "priced", "seen")})
)
_FIRST_KEPT = (
    sa.select(table.c.start)
    .where(_MINE)
    .order_by(table.c.start.desc())
    .offset(KEPT - 1)
    .limit(1)
    .scalar_subquery()
)
_PRUNE = sa.delete(table).where(_MINE, table.c.start < _FIRST_KEPT)


def stretches(
    connection: sa.Connection, keys: Collection[StretchKey]
) -> dict[StretchKey, sa.Row[Any]]:
    """Return the rows of some stretches, and perhaps of others."""
    if len(keys) == 1:  # as nearly always; lists of values take longer
        (key,) = keys
        row = connection.execute(_THIS, _values(key)).first()
        return {} if row is None else {key: row}
    wanted = {"advisers": list({key.adviser for key in keys})}
    rows = connection.execute(_THESE, wanted | {"starts": list({key.start for key in keys})})
    return {StretchKey(row.adviser, row.seconds, row.start): row for row in rows}


def last_stretches(
    connection: sa.Connection, adviser: str, seconds: int, most: int
) -> list[sa.Row[Any]]:
    """Return the last stretches of an adviser that have a row, oldest first."""
    values = {"of": adviser, "length": seconds}
    return list(connection.execute(_LAST.limit(most), values))[::-1]


def neighbours(connection: sa.Connection, key: StretchKey) -> tuple[sa.Row[Any] | None, bool]:
    """Return the stretch before one, if it has a row, and whether the one itself may have had one.

    It may if there are as many later ones as are kept.
    """
    values = _values(key)
    before = connection.execute(_BEFORE, values).first()
    return before, int(connection.scalar(_LATER, values) or 0) >= KEPT


def add_stretch(connection: sa.Connection, row: Mapping[str, Any]) -> None:
    """Add the row of a stretch, and delete those that are no longer kept."""
    connection.execute(_ADD, dict(row))
    connection.execute(_PRUNE, {"of": row["adviser"], "length": row["seconds"]})


def update_stretches(
    connection: sa.Connection, rows: Iterable[tuple[StretchKey, Mapping[str, Any]]]
) -> None:
    """Write what has changed in the rows of some stretches."""
    values = [
        _values(key) | {f"new_{name}": value for name, value in row.items()} for key, row in rows
    ]
    connection.execute(_UPDATE, values)


def _values(key: StretchKey) -> dict[str, Any]:
    return {"of": key.adviser, "length": key.seconds, "begun": key.start}
