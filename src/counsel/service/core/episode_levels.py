"""The levels of episodes on record: read for a decision, and kept up to date by what arrives.

A decision is made on the level that the record has at that moment. An outcome that arrives late, or
is corrected, may change the level of later steps: those that were decided already are noted in
``level_changes``, so that what is learnt counts each piece on the level on which it really found
the person. Where a memory lasts over episodes, the changes reach the episodes started later.
"""

from collections.abc import Collection, Iterable

import sqlalchemy as sa

from counsel.service.core.episode import Episode
from counsel.service.core.level_moves import Happening, LevelMoves
from counsel.service.core.live_adviser import LiveAdviser
from counsel.service.db import level_queries
from counsel.service.db.level_queries import Step


class EpisodeLevels:
    """What happened in an episode so far, and the level that follows at each step."""

    def __init__(
        self, moves: LevelMoves, episode: str, start: int | None, steps: Iterable[Step]
    ) -> None:
        self._moves, self._episode, self._start = moves, episode, start
        self._happenings = {one.step: Happening(one.said, one.action, one.seen) for one in steps}

    def add(self, step: int, advice: int | None) -> None:
        """Add a decision, whose outcome is not yet on record."""
        self._happenings[step] = Happening(advice)

    @property
    def last_step(self) -> int:
        """The last step that was decided; −1 if there is none."""
        return max(self._happenings, default=-1)

    def at(self, step: int) -> int:
        """Return the level at a step."""
        return self.up_to(step)[step]

    def up_to(self, step: int) -> list[int]:
        """Return the level at each step, up to and with one."""
        return self._moves.follow(self._episode, self._start, self._happenings, step)

    @property
    def now(self) -> int:
        """The level after the last step that was decided."""
        return self.at(self.last_step + 1)


def read_levels(
    connection: sa.Connection, episodes: Collection[Episode]
) -> dict[int, EpisodeLevels]:
    """Return what happened in those of some episodes whose adviser's model has a memory."""
    mine = {one.number: one for one in episodes if one.live.moves is not None}
    if not mine:
        return {}
    starts = level_queries.first_levels(connection, mine)
    steps = level_queries.steps_of(connection, mine)
    return {
        number: EpisodeLevels(one.live.moves, one.id, starts.get(number), steps[number])
        for number, one in mine.items()
        if one.live.moves is not None
    }


def first_level(connection: sa.Connection, live: LiveAdviser, person: int) -> int | None:
    """Return the level at which a new episode starts; None for that of a newcomer."""
    if live.moves is None or not live.keeps_level:
        return None
    last = level_queries.last_episode(connection, live.id, person)
    if last is None:
        return live.moves.start
    steps = level_queries.steps_of(connection, [last.number])[last.number]
    return EpisodeLevels(live.moves, last.id, last.level, steps).now


def update_levels(connection: sa.Connection, changed: Iterable[Episode]) -> None:
    """Note how new outcomes and decisions of some episodes change levels on record."""
    mine = {one.number: one for one in changed if one.live.moves is not None}
    for _, episode in sorted(mine.items()):
        _update_from(connection, episode)


def _update_from(connection: sa.Connection, episode: Episode) -> None:
    """Update an episode and, where the memory lasts, the person's later ones."""
    live, moves = episode.live, episode.live.moves
    number, id_ = episode.number, episode.id
    start = level_queries.first_levels(connection, [number]).get(number)
    while moves is not None:
        steps = level_queries.steps_of(connection, [number])[number]
        levels = EpisodeLevels(moves, id_, start, steps)
        before = level_queries.changed_levels(connection, number)
        now = levels.up_to(levels.last_step + 1)
        changes = {
            one.step: now[one.step]
            for one in steps
            if one.level is not None and before.get(one.step, one.level) != now[one.step]
        }
        level_queries.add_level_changes(connection, number, changes)
        if not live.keeps_level:
            return
        following = level_queries.next_episode(connection, live.id, episode.person, number)
        if following is None or following.level == now[-1]:
            return
        start = now[-1]
        number, id_ = following.number, following.id
        level_queries.set_first_level(connection, number, start)
