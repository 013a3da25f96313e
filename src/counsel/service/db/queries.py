"""Queries that read from the database and add to it, many rows at a time, inside a transaction.

Statements are built once: building one takes SQLAlchemy longer than running it takes SQLite.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa

from counsel.service.db.tables import (
    advisers,
    decisions,
    episodes,
    erasures,
    level_changes,
    outcomes,
    people,
    remarks,
)

Cell = tuple[int, int]
"""A step of an episode: (number of the episode, step)."""

Observed = tuple[str, int, int, int | None, int, int | None, int]
"""Adviser, person, state, advice heard (None for silence), action, level of the person's memory
(None without a memory), and how often.

A negative number takes back outcomes that were replaced by another version, or were counted on
another level.
"""


class ReadUpTo(NamedTuple):
    """How far the log was read: the last outcome, and the last change of a level."""

    outcome: int = 0
    change: int = 0


LAST_OUTCOME = (
    (decisions.c.episode == outcomes.c.episode)
    & (decisions.c.step == outcomes.c.step)
    & outcomes.c.replaced_by.is_(None)
)
"""Joins a decision to the last version of its outcome."""

REMARK = (
    (remarks.c.episode == outcomes.c.episode)
    & (remarks.c.step == outcomes.c.step)
    & (remarks.c.version == outcomes.c.version)
)
"""Joins an outcome to what was said about it."""


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
_ADD_OUTCOMES = sa.insert(outcomes)
_ADD_REMARKS = sa.insert(remarks)
_REPORTED = (
    sa.select(outcomes, remarks.c.reason_code, remarks.c.comment)
    .join(remarks, REMARK, isouter=True)
    .where(
        outcomes.c.episode.in_(sa.bindparam("numbers", expanding=True)),
        outcomes.c.step.in_(sa.bindparam("steps", expanding=True)),
    )
    .order_by(outcomes.c.version)
)
_REPLACE = (
    sa.update(outcomes)
    .where(
        outcomes.c.episode == sa.bindparam("number"),
        outcomes.c.step == sa.bindparam("at_step"),
        outcomes.c.version == sa.bindparam("old"),
    )
    .values(replaced_by=sa.bindparam("new"))
)
_HEARD = sa.case((decisions.c.shown & outcomes.c.seen, decisions.c.advice)).label("heard")
_OBSERVED = (episodes.c.adviser, episodes.c.person, decisions.c.state, _HEARD, outcomes.c.action)
_AFTER: sa.BindParameter[int] = sa.bindparam("after")
_LAST: sa.BindParameter[int] = sa.bindparam("last")
_CHANGES_BEFORE: sa.BindParameter[int] = sa.bindparam("changes_before")
_CHANGES: sa.BindParameter[int] = sa.bindparam("changes")


def _level(as_of: sa.BindParameter[int]) -> sa.Case[int | None]:
    """Return the level of a decision as it was when ``as_of`` was the last change."""
    changed = (
        sa.select(level_changes.c.level)
        .where(
            level_changes.c.episode == decisions.c.episode,
            level_changes.c.step == decisions.c.step,
            level_changes.c.seq <= as_of,
        )
        .order_by(level_changes.c.seq.desc())
        .limit(1)
        .correlate(decisions)
        .scalar_subquery()
    )
    level = sa.func.coalesce(changed, decisions.c.level)
    return sa.case((decisions.c.level.is_not(None), level))


_DECIDED = (decisions.c.episode == outcomes.c.episode) & (decisions.c.step == outcomes.c.step)
_OBSERVATIONS = (
    sa.select(*_OBSERVED, _level(_CHANGES).label("on_level"), sa.func.count())
    .select_from(outcomes)
    .join(decisions, _DECIDED)
    .join(episodes, episodes.c.number == outcomes.c.episode)
    .group_by(*_OBSERVED, sa.literal_column("on_level"))
)
_OUTCOMES_SINCE = _OBSERVATIONS.where(
    outcomes.c.seq > _AFTER,
    outcomes.c.seq <= _LAST,
    outcomes.c.replaced_by.is_(None) | (outcomes.c.replaced_by > _LAST),
)
_REPLACED_SINCE = _OBSERVATIONS.where(
    outcomes.c.replaced_by > _AFTER, outcomes.c.replaced_by <= _LAST, outcomes.c.seq <= _AFTER
)
_MOVED_SINCE = (
    sa.select(*_OBSERVED, _level(_CHANGES_BEFORE), _level(_CHANGES))
    .select_from(outcomes)
    .join(decisions, _DECIDED)
    .join(episodes, episodes.c.number == outcomes.c.episode)
    .where(
        sa.exists().where(
            level_changes.c.episode == decisions.c.episode,
            level_changes.c.step == decisions.c.step,
            level_changes.c.seq > _CHANGES_BEFORE,
            level_changes.c.seq <= _CHANGES,
        ),
        outcomes.c.episode.in_(
            sa.select(level_changes.c.episode).where(
                level_changes.c.seq > _CHANGES_BEFORE, level_changes.c.seq <= _CHANGES
            )
        ),
        outcomes.c.seq <= _AFTER,
        outcomes.c.replaced_by.is_(None) | (outcomes.c.replaced_by > _AFTER),
    )
)
_LAST_SEQ = sa.select(
    sa.select(sa.func.max(outcomes.c.seq)).scalar_subquery(),
    sa.select(sa.func.max(level_changes.c.seq)).scalar_subquery(),
)
_HIGHEST_SEQ = {
    "sqlite": sa.text("SELECT seq FROM sqlite_sequence WHERE name = 'outcomes'"),
    "postgresql": sa.text("SELECT last_value FROM outcomes_seq_seq"),
}
_ERASED = (
    sa.select(erasures.c.seq, erasures.c.person)
    .where(erasures.c.seq > sa.bindparam("after"))
    .order_by(erasures.c.seq)
)


def find_started(connection: sa.Connection, adviser: str, request: str) -> sa.Row[Any] | None:
    """Return the episode that an earlier request with the same digest started, if any."""
    mine = (episodes.c.adviser == adviser) & (episodes.c.request == request)
    return connection.execute(sa.select(episodes).where(mine)).first()


def person_number(connection: sa.Connection, tenant: int, name: str) -> int | None:
    """Return the number of a person of a tenant, or None if there is nobody of that name."""
    return connection.scalar(_PERSON, {"tenant": tenant, "name": name})


def person_name(connection: sa.Connection, number: int) -> str | None:
    """Return the name of a person."""
    return connection.scalar(sa.select(people.c.name).where(people.c.id == number))


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


CONTENT = ("action", "reward", "next_state", "seen", "reason_code", "comment")
"""The fields in which two versions of an outcome may differ."""


def reported_outcomes(
    connection: sa.Connection, cells: Collection[Cell]
) -> dict[Cell, list[Mapping[str, Any]]]:
    """Return all versions of the outcomes of some cells, and perhaps of others, oldest first."""
    versions = dict[Cell, list[Mapping[str, Any]]]()
    for row in connection.execute(_REPORTED, _bounds(cells)).mappings():
        versions.setdefault((row["episode"], row["step"]), []).append(dict(row))
    return versions


def add_outcomes(connection: sa.Connection, rows: list[dict[str, Any]]) -> None:
    """Add outcomes with their versions, and what was said about them.

    ``replaces`` is the version that an outcome corrects, None for the first one.
    """
    names = [column.name for column in outcomes.c if column.name not in ("seq", "replaced_by")]
    first = [row for row in rows if row["replaces"] is None]
    if first:
        connection.execute(_ADD_OUTCOMES, [{name: row[name] for name in names} for row in first])
    for row in rows:
        if row["replaces"] is not None:
            added = connection.execute(_ADD_OUTCOMES, {name: row[name] for name in names})
            place = {"number": row["episode"], "at_step": row["step"], "old": row["replaces"]}
            connection.execute(_REPLACE, place | {"new": _number(added)})
    said = [
        {column.name: row[column.name] for column in remarks.c}
        for row in rows
        if row["reason_code"] is not None or row["comment"] is not None
    ]
    if said:
        connection.execute(_ADD_REMARKS, said)


def _number(added: sa.CursorResult[Any]) -> int:
    """Return the number of the row that was added."""
    key = added.inserted_primary_key
    return int(key[0]) if key is not None else 0


def outcomes_since(connection: sa.Connection, after: ReadUpTo) -> tuple[ReadUpTo, list[Observed]]:
    """Return how far the log goes, and what was observed since it was read up to ``after``.

    What becomes durable meanwhile is left for the next time. A decision whose level has changed
    since its outcome was counted is taken out on the old level and counted on the new one.
    """
    last, change = connection.execute(_LAST_SEQ).one()
    until = ReadUpTo(max(last or 0, after.outcome), max(change or 0, after.change))
    if until == after:
        return after, []
    values = {"after": after.outcome, "last": until.outcome}
    values |= {"changes_before": after.change, "changes": until.change}
    rows = list[Any]()
    if until.outcome > after.outcome:
        rows += connection.execute(_OUTCOMES_SINCE, values)
        replaced = connection.execute(_REPLACED_SINCE, values)
        rows += [(*row[:-1], -row[-1]) for row in replaced]
    if until.change > after.change:
        for *cell, before, now in connection.execute(_MOVED_SINCE, values):
            rows += [(*cell, before, -1), (*cell, now, 1)]
    return until, rows


def highest_seq(connection: sa.Connection) -> int:
    """Return the largest sequence number that an outcome ever had, though it may be deleted."""
    return int(connection.scalar(_HIGHEST_SEQ[connection.dialect.name]) or 0)


def erased_since(connection: sa.Connection, after: int) -> tuple[int, list[int]]:
    """Return the sequence number of the last erasure, and the people erased after a number."""
    rows = connection.execute(_ERASED, {"after": after}).all()
    return (rows[-1].seq if rows else after), [row.person for row in rows]
