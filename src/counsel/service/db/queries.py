"""Queries that read from the database and add to it, many rows at a time, inside a transaction.

Statements are built once: building one takes SQLAlchemy longer than running it takes SQLite.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa

from counsel.service.db.prepared import PreparedStatement
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


# Given to the driver as they are: SQLAlchemy takes longer over a list than the database does.
_ACCOUNTS = {
    "sqlite": "SELECT number, spent, ended FROM episodes "
    "WHERE number IN (SELECT value FROM json_each(?))",
    "postgresql": "SELECT number, spent, ended FROM episodes WHERE number = ANY(%s::bigint[])",
}
_IS_REPORTED = "EXISTS (SELECT 1 FROM outcomes o WHERE o.episode = d.episode AND o.step = d.step)"
_DECIDED_CELLS = {
    "sqlite": f"SELECT d.episode, d.step, {_IS_REPORTED} FROM json_each(?) AS c "
    "CROSS JOIN decisions AS d ON d.episode = json_extract(c.value, '$[0]') "
    "AND d.step = json_extract(c.value, '$[1]')",
    "postgresql": f"SELECT d.episode, d.step, {_IS_REPORTED} "
    "FROM unnest(%s::bigint[], %s::integer[]) AS c (episode, step) "
    # OFFSET keeps PostgreSQL from reading the whole table, as a plan for a small one would.
    "CROSS JOIN LATERAL (SELECT episode, step FROM decisions "
    "WHERE episode = c.episode AND step = c.step OFFSET 0) AS d",
}
# For pairs SQLite would scan the whole table. This may match more cells than asked for.
_AMONG = decisions.c.episode.in_(sa.bindparam("numbers", expanding=True)) & decisions.c.step.in_(
    sa.bindparam("steps", expanding=True)
)
_DECISIONS = sa.select(decisions).where(_AMONG)
_SPEND = PreparedStatement(
    sa.update(episodes)
    .where(episodes.c.number == sa.bindparam("which"))
    .values(spent=episodes.c.spent + sa.bindparam("more")),
    ("which", "more"),
)
_END = PreparedStatement(
    sa.update(episodes)
    .where(episodes.c.number == sa.bindparam("which"), episodes.c.ended.is_(None))
    .values(ended=sa.bindparam("at"), terminated=sa.bindparam("is_terminated")),
    ("which", "at", "is_terminated"),
)
_PERSON = sa.select(people.c.id).where(
    people.c.tenant == sa.bindparam("tenant"), people.c.name == sa.bindparam("name")
)
_PACED = sa.select(advisers.c.paced_episodes, advisers.c.paced_pieces).where(
    advisers.c.id == sa.bindparam("adviser")
)
_ADD_PACED_COST = PreparedStatement(
    sa.update(advisers)
    .where(advisers.c.id == sa.bindparam("which"))
    .values(paced_pieces=advisers.c.paced_pieces + sa.bindparam("more")),
    ("which", "more"),
)
_DECISION = [column.name for column in decisions.c if column.name != "seq"]
_OUTCOME = [column.name for column in outcomes.c if column.name not in ("seq", "replaced_by")]
_ADD_DECISIONS = PreparedStatement(sa.insert(decisions), _DECISION)
_ADD_FIRST_OUTCOMES = PreparedStatement(sa.insert(outcomes), _OUTCOME)
_ADD_OUTCOMES = sa.insert(outcomes)
_VERSION = (
    sa.select(outcomes.c.seq)
    .where(
        outcomes.c.episode == sa.bindparam("number"),
        outcomes.c.step == sa.bindparam("at_step"),
        outcomes.c.version == sa.bindparam("newer"),
    )
    .scalar_subquery()
)
_ADD_LATE_OUTCOME = sa.insert(outcomes).values(
    {name: sa.bindparam(f"its_{name}") for name in _OUTCOME} | {"replaced_by": _VERSION}
)
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
    sa.select(sa.func.max(outcomes.c.replaced_by))
    .where(outcomes.c.replaced_by.is_not(None))  # read from the index, which has few rows
    .scalar_subquery(),
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
    database, distinct = connection.dialect.name, list(set(numbers))
    given = (json.dumps(distinct),) if database == "sqlite" else (distinct,)
    return {
        number: Account(amount(spent), ended is not None)
        for number, spent, ended in connection.exec_driver_sql(_ACCOUNTS[database], given)
    }


def decisions_at(connection: sa.Connection, cells: Collection[Cell]) -> dict[Cell, sa.Row[Any]]:
    """Return the recorded decisions of some cells, and perhaps of others."""
    rows = connection.execute(_DECISIONS, _bounds(cells))
    return {(row.episode, row.step): row for row in rows}


def decided_cells(connection: sa.Connection, cells: Collection[Cell]) -> dict[Cell, bool]:
    """Return those cells that have a recorded decision, and whether an outcome is on record."""
    database, given = connection.dialect.name, tuple[Any, ...]()
    if database == "sqlite":
        given = (json.dumps(list(cells)),)
    else:
        given = ([number for number, _ in cells], [step for _, step in cells])
    rows = connection.exec_driver_sql(_DECIDED_CELLS[database], given)
    return {(episode, step): bool(is_reported) for episode, step, is_reported in rows}


def _bounds(cells: Collection[Cell]) -> dict[str, list[int]]:
    return {
        "numbers": list({number for number, _ in cells}),
        "steps": list({step for _, step in cells}),
    }


def add_decisions(
    connection: sa.Connection, rows: list[dict[str, Any]], spent: Mapping[int, Amount]
) -> None:
    """Add decisions, and the cost of their advice to the account of each episode."""
    _ADD_DECISIONS.run(connection, rows)
    _add(connection, _SPEND, spent)


def end_episodes(connection: sa.Connection, ends: Iterable[Mapping[str, Any]]) -> None:
    """End episodes that have not ended; each has ``which``, ``at`` and ``is_terminated``."""
    _END.run(connection, ends)


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
    _add(connection, _ADD_PACED_COST, costs)


def amount(cost: float) -> Amount:
    """Return a cost as an int if it is whole."""
    return int(cost) if float(cost).is_integer() else float(cost)


def _add(
    connection: sa.Connection, change: PreparedStatement, amounts: Mapping[Any, Amount]
) -> None:
    change.run(connection, [{"which": which, "more": more} for which, more in amounts.items()])


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

    ``replaces`` is the version that an outcome corrects, None for the first one; ``replaced`` is
    the version that replaced an outcome before it came, None for one that counts.
    """
    first = [row for row in rows if row["replaces"] is None and row["replaced"] is None]
    _ADD_FIRST_OUTCOMES.run(connection, first)
    for row in rows:
        place = {"number": row["episode"], "at_step": row["step"]}
        if row["replaces"] is not None:
            added = connection.execute(_ADD_OUTCOMES, {name: row[name] for name in _OUTCOME})
            change = place | {"old": row["replaces"], "new": _number(added)}
            connection.execute(_REPLACE, change)
        elif row["replaced"] is not None:  # its number is above that of the one that counts
            its = {f"its_{name}": row[name] for name in _OUTCOME}
            connection.execute(_ADD_LATE_OUTCOME, its | place | {"newer": row["replaced"]})
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
    last, change, replacement = connection.execute(_LAST_SEQ).one()
    until = ReadUpTo(max(last or 0, after.outcome), max(change or 0, after.change))
    if until == after:
        return after, []
    values = {"after": after.outcome, "last": until.outcome}
    values |= {"changes_before": after.change, "changes": until.change}
    rows = list[Any]()
    if until.outcome > after.outcome:
        rows += connection.execute(_OUTCOMES_SINCE, values)
        if (replacement or 0) > after.outcome:
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
