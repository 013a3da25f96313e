"""Queries that read from the database and add to it, many rows at a time, inside a transaction.

Statements are built once: building one takes SQLAlchemy longer than running it takes SQLite.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from counsel.service.db.tables import advisers, decisions, episodes, erasures, outcomes, people

Cell = tuple[int, int]
"""A step of an episode: (number of the episode, step)."""

Observed = tuple[str, int, int, int | None, int, int, int]
"""Adviser, person, state, advice heard (None for silence), action, how often, last ``seq``."""

SAME_STEP = (decisions.c.episode == outcomes.c.episode) & (decisions.c.step == outcomes.c.step)
"""Joins an outcome to its decision."""


Amount = int | float
"""A cost of advice: an int if it is whole, as it is if every piece costs 1."""


class Account(NamedTuple):
    """The cost of the advice in an episode, and whether it has ended."""

    spent: Amount
    ended: bool


_ACCOUNTS = sa.select(episodes.c.number, episodes.c.spent, episodes.c.ended).where(
    episodes.c.number.in_(sa.bindparam("numbers", expanding=True))
)
# For pairs SQLite would scan the whole table. This may match more cells than asked for.
_AMONG = decisions.c.episode.in_(sa.bindparam("numbers", expanding=True)) & decisions.c.step.in_(
    sa.bindparam("steps", expanding=True)
)
_DECISIONS = sa.select(decisions).where(_AMONG)
_DECIDED_CELLS = sa.select(decisions.c.episode, decisions.c.step).where(_AMONG)
_SPEND = (
    sa.update(episodes)
    .where(episodes.c.number == sa.bindparam("which"))
    .values(spent=episodes.c.spent + sa.bindparam("more"))
)
_PERSON = sa.select(people.c.id).where(
    people.c.tenant == sa.bindparam("tenant"), people.c.name == sa.bindparam("name")
)
_PACED = sa.select(advisers.c.paced_episodes, advisers.c.paced_pieces).where(
    advisers.c.id == sa.bindparam("adviser")
)
_ADD_PACED_COST = (
    sa.update(advisers)
    .where(advisers.c.id == sa.bindparam("which"))
    .values(paced_pieces=advisers.c.paced_pieces + sa.bindparam("more"))
)
_ADD_DECISIONS = sa.insert(decisions)
_ADD_OUTCOMES = {
    "postgresql": postgresql.insert(outcomes).on_conflict_do_nothing(),
    "sqlite": sqlite.insert(outcomes).on_conflict_do_nothing(),
}
_HEARD = sa.case((decisions.c.shown & outcomes.c.seen, decisions.c.advice)).label("heard")
_OBSERVED = (episodes.c.adviser, episodes.c.person, decisions.c.state, _HEARD, outcomes.c.action)
_OUTCOMES_SINCE = (
    sa.select(*_OBSERVED, sa.func.count(), sa.func.max(outcomes.c.seq))
    .select_from(outcomes)
    .join(decisions, SAME_STEP)
    .join(episodes, episodes.c.number == outcomes.c.episode)
    .where(outcomes.c.seq > sa.bindparam("after"))
    .group_by(*_OBSERVED)
)
_ERASED = (
    sa.select(erasures.c.seq, erasures.c.person)
    .where(erasures.c.seq > sa.bindparam("after"))
    .order_by(erasures.c.seq)
)


def person_number(connection: sa.Connection, tenant: int, name: str) -> int | None:
    """Return the number of a person of a tenant, or None if there is nobody of that name."""
    return connection.scalar(_PERSON, {"tenant": tenant, "name": name})


def episode_accounts(connection: sa.Connection, numbers: Iterable[int]) -> dict[int, Account]:
    """Return the accounts of episodes, without those that do not exist."""
    return {
        number: Account(amount(spent), ended is not None)
        for number, spent, ended in connection.execute(_ACCOUNTS, {"numbers": list(set(numbers))})
    }


def decisions_at(connection: sa.Connection, cells: Collection[Cell]) -> dict[Cell, sa.Row[Any]]:
    """Return the recorded decisions of some cells, and perhaps of others."""
    rows = connection.execute(_DECISIONS, _bounds(cells))
    return {(row.episode, row.step): row for row in rows}


def decided_cells(connection: sa.Connection, cells: Collection[Cell]) -> set[Cell]:
    """Return those cells that have a recorded decision, and perhaps others."""
    rows = connection.execute(_DECIDED_CELLS, _bounds(cells))
    return {(episode, step) for episode, step in rows}


def _bounds(cells: Collection[Cell]) -> dict[str, list[int]]:
    return {
        "numbers": list({number for number, _ in cells}),
        "steps": list({step for _, step in cells}),
    }


def add_decisions(
    connection: sa.Connection, rows: list[dict[str, Any]], spent: Mapping[int, Amount]
) -> None:
    """Add decisions, and the cost of their advice to the account of each episode."""
    if rows:
        connection.execute(_ADD_DECISIONS, rows)
    if spent:
        _add(connection, _SPEND, spent)


def paced_counts(connection: sa.Connection, adviser: str) -> tuple[int, Amount]:
    """Return the episodes charged to an adviser's expected budget, and the cost of their advice."""
    counted, cost = connection.execute(_PACED, {"adviser": adviser}).one()
    return counted, amount(cost)


def add_paced_episode(connection: sa.Connection, adviser: str) -> None:
    """Charge one more episode to an adviser's expected budget."""
    change = sa.update(advisers).where(advisers.c.id == adviser)
    connection.execute(change.values(paced_episodes=advisers.c.paced_episodes + 1))


def add_paced_cost(connection: sa.Connection, costs: Mapping[str, Amount]) -> None:
    """Charge costs to the expected budget of each adviser."""
    if costs:
        _add(connection, _ADD_PACED_COST, costs)


def amount(cost: float) -> Amount:
    """Return a cost as an int if it is whole."""
    return int(cost) if float(cost).is_integer() else float(cost)


def _add(connection: sa.Connection, change: sa.Update, amounts: Mapping[Any, Amount]) -> None:
    rows = [{"which": which, "more": more} for which, more in amounts.items()]
    connection.execute(change, rows)


def add_outcomes(connection: sa.Connection, rows: list[dict[str, Any]]) -> None:
    """Add outcomes, except where the decision has an outcome already: that was sent twice."""
    if rows:
        connection.execute(_ADD_OUTCOMES[connection.dialect.name], rows)


def outcomes_since(connection: sa.Connection, after: int) -> tuple[int, list[Observed]]:
    """Return the sequence number of the last outcome, and what was observed after a number."""
    rows: list[Any] = list(connection.execute(_OUTCOMES_SINCE, {"after": after}))
    return max((row[-1] for row in rows), default=after), rows


def erased_since(connection: sa.Connection, after: int) -> tuple[int, list[int]]:
    """Return the sequence number of the last erasure, and the people erased after a number."""
    rows = connection.execute(_ERASED, {"after": after}).all()
    return (rows[-1].seq if rows else after), [row.person for row in rows]
