"""The level of a person's memory, followed through an episode from what is on record.

At each step something moves the level (``model/memory.py``):

- *silence*: nothing was shown, also in shadow mode, in an episode that is kept silent, and at a
  step that nobody asked about; or advice was shown but not seen.
- *a match*: the person did as they were advised.
- *a refusal*: they did something else, or their outcome is not on record. A piece that nobody
  answers counts as refused until its outcome arrives.

Where a matrix is not certain, the next level is drawn. The draw follows from the episode's id,
which is random, and the step: any process that reads the record finds the same level, and a
corrected outcome changes nothing but what depends on it.
"""

import hashlib
from collections.abc import Mapping
from typing import NamedTuple

from counsel.model.memory import Memory

SILENCE, MATCH, REFUSAL = range(3)
"""What moves a level, as the matrices of a memory are numbered."""


class Happening(NamedTuple):
    """What was shown at a step, or None, and what came of it as far as it is on record."""

    advice: int | None
    action: int | None = None
    seen: bool | None = None

    @property
    def kind(self) -> int:
        """Whether it counts as silence, a match or a refusal."""
        if self.advice is None or self.seen is False:
            return SILENCE
        return MATCH if self.action == self.advice else REFUSAL


class LevelMoves:
    """How the levels of a memory move, prepared for following one episode after the other."""

    def __init__(self, memory: Memory) -> None:
        self.start, self.n_levels = memory.newcomer, memory.n_levels
        self._rows: list[list[list[tuple[int, float]]]] = [
            [[(to, float(row[to])) for to in row.nonzero()[0].tolist()] for row in matrix]
            for matrix in memory.after
        ]

    def first(self, level: int | None) -> int:
        """Return the level at which an episode starts; by default that of a newcomer."""
        return level if level is not None and 0 <= level < self.n_levels else self.start

    def after(self, level: int, kind: int, episode: str, step: int) -> int:
        """Return the level after a step of an episode, which is given by its id."""
        row = self._rows[kind][level]
        to = row[0][0]
        if len(row) > 1:
            left = draw_at(episode, step) * sum(chance for _, chance in row)
            for drawn, chance in row:
                to, left = drawn, left - chance
                if left < 0.0:
                    break
        return to

    def follow(
        self, episode: str, start: int | None, happenings: Mapping[int, Happening], until: int
    ) -> list[int]:
        """Return the level before each step of an episode, up to and with step ``until``."""
        levels = [self.first(start)]
        for step in range(until):
            happening = happenings.get(step)
            kind = SILENCE if happening is None else happening.kind
            levels.append(self.after(levels[-1], kind, episode, step))
        return levels


def draw_at(episode: str, step: int) -> float:
    """Return a number in [0, 1) that is as good as drawn, the same whoever asks."""
    digest = hashlib.sha256(f"level {episode}-{step}".encode()).digest()
    return (int.from_bytes(digest[:8], "big") >> 11) * 2.0**-53
