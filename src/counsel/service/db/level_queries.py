"""Queries about the levels of memories, inside a transaction; for advisers with a memory only."""

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

import sqlalchemy as sa

from counsel.service.db.queries import LAST_OUTCOME
from counsel.service.db.tables import decisions, episodes, level_changes, outcomes

_SAID = sa.case((decisions.c.shown, decisions.c.advice)).label("said")
_NUMBERS: sa.BindParameter[Any] = sa.bindparam("numbers", expanding=True)
_STEPS = (
    sa.select(
        decisions.c.episode,
        decisions.c.step,
        decisions.c.level,
        _SAID,
        outcomes.c.action,
        outcomes.c.seen,
    )
    .join(outcomes, LAST_OUTCOME, isouter=True)
    .where(decisions.c.episode.in_(_NUMBERS))
    .order_by(decisions.c.episode, decisions.c.step)
)
_CHANGED = (
    sa.select(level_changes.c.episode, level_changes.c.step, level_changes.c.level)
    .where(level_changes.c.episode.in_(_NUMBERS))
    .order_by(level_changes.c.seq)
)
_ADD_CHANGES = sa.insert(level_changes)
_WITH_PERSON = (
    sa.select(episodes.c.number, episodes.c.id, episodes.c.level)
    .where(
        episodes.c.person == sa.bindparam("person"), episodes.c.adviser == sa.bindparam("adviser")
    )
    .limit(1)
)
_LAST = _WITH_PERSON.order_by(episodes.c.number.desc())
_NEXT = _WITH_PERSON.where(episodes.c.number > sa.bindparam("after")).order_by(episodes.c.number)
_SET_START = (
    sa.update(episodes)
    .where(episodes.c.number == sa.bindparam("which"))
    .values(level=sa.bindparam("new_level"))
)


class Step(NamedTuple):
    """A step on record: what was shown (None is silence), what the person did, and the level.

    ``level`` is that of the decision when it was made; ``action`` is None without an outcome.
    """

    step: int
    level: int | None
    said: int | None
    action: int | None
    seen: bool | None


class EpisodeStart(NamedTuple):
    """An episode, and the level at which it starts as far as it is on record."""

    number: int
    id: str
    level: int | None


def steps_of(connection: sa.Connection, numbers: Collection[int]) -> dict[int, list[Step]]:
    """Return the steps on record of some episodes, in order; each episode has an entry."""
    steps: dict[int, list[Step]] = {number: [] for number in numbers}
    for row in connection.execute(_STEPS, {"numbers": list(numbers)}):
        steps[row.episode].append(Step(*row[1:]))
    return steps


def changed_levels(connection: sa.Connection, number: int) -> dict[int, int]:
    """Return the level of those steps of an episode whose level on record was changed."""
    rows = connection.execute(_CHANGED, {"numbers": [number]})
    return {step: level for _, step, level in rows}


def add_level_changes(connection: sa.Connection, number: int, levels: dict[int, int]) -> None:
    """Record the levels of some steps of an episode as they are now."""
    if levels:
        rows = [{"episode": number, "step": step, "level": m} for step, m in levels.items()]
        connection.execute(_ADD_CHANGES, rows)


def last_episode(connection: sa.Connection, adviser: str, person: int) -> EpisodeStart | None:
    """Return the last episode of a person with an adviser."""
    row = connection.execute(_LAST, {"adviser": adviser, "person": person}).first()
    return None if row is None else EpisodeStart(*row)


def next_episode(
    connection: sa.Connection, adviser: str, person: int, after: int
) -> EpisodeStart | None:
    """Return the episode of a person with an adviser that follows one of them."""
    values = {"adviser": adviser, "person": person, "after": after}
    row = connection.execute(_NEXT, values).first()
    return None if row is None else EpisodeStart(*row)


def set_first_level(connection: sa.Connection, number: int, level: int) -> None:
    """Set the level at which an episode starts."""
    connection.execute(_SET_START, {"which": number, "new_level": level})


def first_levels(connection: sa.Connection, numbers: Iterable[int]) -> dict[int, int | None]:
    """Return the level at which each of some episodes starts, as far as it is on record."""
    mine = episodes.c.number.in_(list(numbers))
    rows = connection.execute(sa.select(episodes.c.number, episodes.c.level).where(mine))
    return {row.number: row.level for row in rows}
