"""What is read from the record and added to it, many rows at a time, inside a transaction."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from counsel.service.seen import SILENCE, Happened
from counsel.service.tables import advisers, decisions, episodes, erasures, outcomes

Cell = tuple[int, int]
"""A step of an episode: (number of the episode, step)."""


class Account(NamedTuple):
    """How an episode stands."""

    spent: int
    ended: bool


def accounts(connection: sa.Connection, numbers: Iterable[int]) -> dict[int, Account]:
    """Return how episodes stand; those that are not there are left out."""
    columns = (episodes.c.number, episodes.c.spent, episodes.c.ended)
    query = sa.select(*columns).where(episodes.c.number.in_(set(numbers)))
    return {
        number: Account(spent, ended is not None)
        for number, spent, ended in connection.execute(query)
    }


def decided(connection: sa.Connection, cells: Iterable[Cell]) -> dict[Cell, sa.Row[Any]]:
    """Return the decisions on record of some cells."""
    query = sa.select(decisions).where(_among(decisions, cells))
    return {(row.episode, row.step): row for row in connection.execute(query)}


def add_decisions(
    connection: sa.Connection, rows: list[dict[str, Any]], spent: dict[int, int]
) -> None:
    """Put decisions on record, with the pieces spent since in each episode."""
    if rows:
        connection.execute(sa.insert(decisions), rows)
    if spent:
        change = (
            sa.update(episodes)
            .where(episodes.c.number == sa.bindparam("which"))
            .values(spent=episodes.c.spent + sa.bindparam("more"))
        )
        told = [{"which": number, "more": more} for number, more in spent.items()]
        connection.execute(change, told)


def count_pieces(connection: sa.Connection, pieces: dict[str, int]) -> None:
    """Add pieces to what was given on the expected budget of each adviser."""
    for adviser, more in pieces.items():
        connection.execute(
            sa.update(advisers)
            .where(advisers.c.id == adviser)
            .values(paced_pieces=advisers.c.paced_pieces + more)
        )


def known_cells(connection: sa.Connection, cells: Iterable[Cell]) -> set[Cell]:
    """Return those cells that a decision is on record of."""
    query = sa.select(decisions.c.episode, decisions.c.step).where(_among(decisions, cells))
    return {(episode, step) for episode, step in connection.execute(query)}


def add_outcomes(connection: sa.Connection, rows: list[dict[str, Any]]) -> None:
    """Put outcomes on record; one that is there already is the same one sent again."""
    if rows:
        dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
        connection.execute(dialect.insert(outcomes).on_conflict_do_nothing(), rows)


def news(connection: sa.Connection, after: int) -> tuple[int, list[tuple[str, Happened]]]:
    """Return up to where outcomes are on record, and what happened since, adviser by adviser."""
    spoken = decisions.c.shown & outcomes.c.seen & decisions.c.advice.is_not(None)
    heard = sa.case((spoken, decisions.c.advice), else_=SILENCE).label("heard")
    kept = (
        episodes.c.adviser,
        episodes.c.person,
        decisions.c.state,
        heard,
        outcomes.c.action,
    )
    query = (
        sa.select(*kept, sa.func.count(), sa.func.max(outcomes.c.seq))
        .select_from(outcomes)
        .join(
            decisions,
            (decisions.c.episode == outcomes.c.episode) & (decisions.c.step == outcomes.c.step),
        )
        .join(episodes, episodes.c.number == outcomes.c.episode)
        .where(outcomes.c.seq > after)
        .group_by(*kept)
    )
    found, last = list[tuple[str, Happened]](), after
    for adviser, person, state, told, action, times, seq in connection.execute(query):
        found.append((adviser, Happened(person, state, told, action, times)))
        last = max(last, seq)
    return last, found


def erased_since(connection: sa.Connection, after: int) -> tuple[int, list[int]]:
    """Return up to where people were deleted, and who since."""
    query = sa.select(erasures.c.seq, erasures.c.person).where(erasures.c.seq > after)
    rows = connection.execute(query.order_by(erasures.c.seq)).all()
    return (rows[-1].seq if rows else after), [row.person for row in rows]


def _among(table: sa.Table, cells: Iterable[Cell]) -> sa.ColumnElement[bool]:
    return sa.tuple_(table.c.episode, table.c.step).in_(set(cells))
