"""What is read from the record and added to it, many rows at a time, inside a transaction.

Statements are built once: SQLAlchemy takes longer to build one than SQLite to run it.
"""

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from counsel.service.core.person_counts import SILENCE, Happened
from counsel.service.db.tables import advisers, decisions, episodes, erasures, outcomes

Cell = tuple[int, int]
"""A step of an episode: (number of the episode, step)."""

SAME_STEP = (decisions.c.episode == outcomes.c.episode) & (decisions.c.step == outcomes.c.step)
"""What joins an outcome to its decision."""


class Account(NamedTuple):
    """How an episode stands."""

    spent: int
    ended: bool


_ACCOUNTS = sa.select(episodes.c.number, episodes.c.spent, episodes.c.ended).where(
    episodes.c.number.in_(sa.bindparam("numbers", expanding=True))
)
# Pairs as such would have SQLite look through the whole table; more cells than asked for are found.
_AMONG = decisions.c.episode.in_(sa.bindparam("numbers", expanding=True)) & decisions.c.step.in_(
    sa.bindparam("steps", expanding=True)
)
_DECIDED = sa.select(decisions).where(_AMONG)
_KNOWN = sa.select(decisions.c.episode, decisions.c.step).where(_AMONG)
_SPEND = (
    sa.update(episodes)
    .where(episodes.c.number == sa.bindparam("which"))
    .values(spent=episodes.c.spent + sa.bindparam("more"))
)
_COUNT = (
    sa.update(advisers)
    .where(advisers.c.id == sa.bindparam("which"))
    .values(paced_pieces=advisers.c.paced_pieces + sa.bindparam("more"))
)
_ADD_DECISIONS = sa.insert(decisions)
_ADD_OUTCOMES = {
    "postgresql": postgresql.insert(outcomes).on_conflict_do_nothing(),
    "sqlite": sqlite.insert(outcomes).on_conflict_do_nothing(),
}
_HEARD = sa.case(
    (decisions.c.shown & outcomes.c.seen & decisions.c.advice.is_not(None), decisions.c.advice),
    else_=SILENCE,
).label("heard")
_WHAT = (episodes.c.adviser, episodes.c.person, decisions.c.state, _HEARD, outcomes.c.action)
_NEWS = (
    sa.select(*_WHAT, sa.func.count(), sa.func.max(outcomes.c.seq))
    .select_from(outcomes)
    .join(decisions, SAME_STEP)
    .join(episodes, episodes.c.number == outcomes.c.episode)
    .where(outcomes.c.seq > sa.bindparam("after"))
    .group_by(*_WHAT)
)
_ERASED = (
    sa.select(erasures.c.seq, erasures.c.person)
    .where(erasures.c.seq > sa.bindparam("after"))
    .order_by(erasures.c.seq)
)


def accounts(connection: sa.Connection, numbers: Iterable[int]) -> dict[int, Account]:
    """Return how episodes stand; those that are not there are left out."""
    return {
        number: Account(spent, ended is not None)
        for number, spent, ended in connection.execute(_ACCOUNTS, {"numbers": list(set(numbers))})
    }


def decided(connection: sa.Connection, cells: Collection[Cell]) -> dict[Cell, sa.Row[Any]]:
    """Return the decisions on record of some cells, perhaps among others."""
    rows = connection.execute(_DECIDED, _bounds(cells))
    return {(row.episode, row.step): row for row in rows}


def known_cells(connection: sa.Connection, cells: Collection[Cell]) -> set[Cell]:
    """Return those cells that a decision is on record of, perhaps among others."""
    rows = connection.execute(_KNOWN, _bounds(cells))
    return {(episode, step) for episode, step in rows}


def _bounds(cells: Collection[Cell]) -> dict[str, list[int]]:
    return {
        "numbers": list({number for number, _ in cells}),
        "steps": list({step for _, step in cells}),
    }


def add_decisions(
    connection: sa.Connection, rows: list[dict[str, Any]], spent: dict[int, int]
) -> None:
    """Put decisions on record, with the pieces spent since in each episode."""
    if rows:
        connection.execute(_ADD_DECISIONS, rows)
    if spent:
        told = [{"which": number, "more": more} for number, more in spent.items()]
        connection.execute(_SPEND, told)


def count_pieces(connection: sa.Connection, pieces: dict[str, int]) -> None:
    """Add pieces to what was given on the expected budget of each adviser."""
    if pieces:
        told = [{"which": adviser, "more": more} for adviser, more in pieces.items()]
        connection.execute(_COUNT, told)


def add_outcomes(connection: sa.Connection, rows: list[dict[str, Any]]) -> None:
    """Put outcomes on record; one that is there already is the same one sent again."""
    if rows:
        connection.execute(_ADD_OUTCOMES[connection.dialect.name], rows)


def news(connection: sa.Connection, after: int) -> tuple[int, list[tuple[str, Happened]]]:
    """Return up to where outcomes are on record, and what happened since, adviser by adviser."""
    found, last = list[tuple[str, Happened]](), after
    rows = connection.execute(_NEWS, {"after": after})
    for adviser, person, state, heard, action, times, seq in rows:
        found.append((adviser, Happened(person, state, heard, action, times)))
        last = max(last, seq)
    return last, found


def erased_since(connection: sa.Connection, after: int) -> tuple[int, list[int]]:
    """Return up to where people were deleted, and who since."""
    rows = connection.execute(_ERASED, {"after": after}).all()
    return (rows[-1].seq if rows else after), [row.person for row in rows]
