"""Counts of what people did: of each person, and of all of them together.

For every person and state: what the person did when nothing was shown, and what they did on each
piece of advice they saw; where the person has a memory, on which level it found them. Counts do not
depend on the order in which decisions arrive, so the same log always gives the same counts.
"""

import threading
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from counsel.estimate.faded_lift import LevelCounts

Cell = tuple[int, int | None, int]
"""State, the advice that was seen (None for silence), and the action taken."""

LevelCell = tuple[int, int, int, int]
"""State, the advice that was seen, the action taken, and the level of the person's memory."""


class DecisionCounts(NamedTuple):
    """Counts [s, a]: actions in silence and against advice, advice that was seen, and matches."""

    silent: NDArray[np.int64]
    refusing: NDArray[np.int64]
    given: NDArray[np.int64]
    matched: NDArray[np.int64]


class SparseCounts:
    """How often each action was taken in each state on each advice, by one person or by all.

    ``levels`` counts the pieces of people with a memory by level.
    """

    __slots__ = ("cells", "decisions", "levels", "pieces")

    def __init__(self) -> None:
        self.cells: dict[Cell, int] = {}
        self.levels: dict[LevelCell, int] = {}
        self.decisions = self.pieces = 0

    def add(self, cell: Cell, times: int) -> None:
        """Add to a count; a negative number takes decisions out again."""
        count = self.cells.get(cell, 0) + times
        if count:
            self.cells[cell] = count
        else:
            self.cells.pop(cell, None)
        self.decisions += times
        self.pieces += times if cell[1] is not None else 0

    def add_level(self, cell: LevelCell, times: int) -> None:
        """Add to the count of a level; a negative number takes pieces out again."""
        count = self.levels.get(cell, 0) + times
        if count:
            self.levels[cell] = count
        else:
            self.levels.pop(cell, None)

    def add_all(self, other: "SparseCounts", sign: int) -> None:
        """Add all counts of another, or take them out where ``sign`` is −1."""
        for cell, times in other.cells.items():
            self.add(cell, sign * times)
        for level_cell, times in other.levels.items():
            self.add_level(level_cell, sign * times)

    def by_level(self, possible: NDArray[np.bool_]) -> LevelCounts:
        """Return the pieces of each level, without actions that are not ``possible`` [s, a]."""
        cells = dict[tuple[int, int, int], list[int]]()
        for (state, advice, action, level), times in self.levels.items():
            if possible[state, action]:
                pair = cells.setdefault((state, advice, level), [0, 0])
                pair[0] += times
                pair[1] += times if action == advice else 0
        state_n, advice_n, level_n = np.array(list(cells), dtype=np.int64).reshape(-1, 3).T
        given, matched = np.array(list(cells.values()), dtype=np.float64).reshape(-1, 2).T
        return LevelCounts(state_n, advice_n, level_n, given, matched)

    def arrays(self, possible: NDArray[np.bool_]) -> DecisionCounts:
        """Return the counts as arrays [s, a], without actions that are not ``possible`` [s, a]."""
        counts = DecisionCounts(*(np.zeros(possible.shape, np.int64) for _ in range(4)))
        for (state, advice, action), times in self.cells.items():
            if not possible[state, action]:
                continue
            if advice is None:
                counts.silent[state, action] += times
                continue
            counts.given[state, advice] += times
            (counts.matched if action == advice else counts.refusing)[state, action] += times
        return counts


@dataclass(slots=True)
class PeopleCounts:
    """Counts of each person and of everybody; safe to read while another thread adds to them."""

    everybody: SparseCounts = field(default_factory=SparseCounts)
    people: dict[int, SparseCounts] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def add(self, person: int, cell: Cell, times: int = 1, level: int | None = None) -> None:
        """Count decisions of a person; a negative number takes them out again.

        ``level`` is the level of the person's memory, if there is one.
        """
        with self.lock:
            self.everybody.add(cell, times)
            self.people.setdefault(person, SparseCounts()).add(cell, times)
        state, advice, action = cell
        if level is not None and advice is not None:
            self.add_level(person, (state, advice, action, level), times)

    def add_level(self, person: int, cell: LevelCell, times: int) -> None:
        """Count pieces of a person by level, which are counted without it, too."""
        with self.lock:
            self.everybody.add_level(cell, times)
            self.people.setdefault(person, SparseCounts()).add_level(cell, times)

    def forget(self, person: int) -> bool:
        """Take out all decisions of a person, and return whether there were any."""
        with self.lock:
            counts = self.people.pop(person, SparseCounts())
            self.everybody.add_all(counts, -1)
        return counts.decisions > 0

    def clear(self) -> None:
        """Take out all decisions."""
        with self.lock:
            self.everybody, self.people = SparseCounts(), {}

    def copy(self) -> "PeopleCounts":
        """Return the counts of this moment."""
        twin = PeopleCounts()
        with self.lock:
            for person, counts in self.people.items():
                twin.people.setdefault(person, SparseCounts()).add_all(counts, 1)
                twin.everybody.add_all(counts, 1)
        return twin

    def arrays(
        self, person: int, possible: NDArray[np.bool_]
    ) -> tuple[DecisionCounts, DecisionCounts]:
        """Return the counts of a person and of everybody, both of one moment.

        Actions that are not ``possible`` [s, a] are left out.
        """
        with self.lock:
            own = self.people.get(person, SparseCounts()).arrays(possible)
            return own, self.everybody.arrays(possible)

    def by_level(self, person: int, possible: NDArray[np.bool_]) -> tuple[LevelCounts, LevelCounts]:
        """Return the pieces by level of a person and of everybody, both of one moment."""
        with self.lock:
            own = self.people.get(person, SparseCounts()).by_level(possible)
            return own, self.everybody.by_level(possible)

    def count_impossible(self, possible: NDArray[np.bool_]) -> int:
        """Return how many decisions ended in an action that is not ``possible`` [s, a]."""
        with self.lock:
            cells = self.everybody.cells.items()
            return sum(times for (state, _, action), times in cells if not possible[state, action])

    def decisions(self, person: int) -> tuple[int, int]:
        """Return how many decisions of a person were counted, and of everybody."""
        own = self.people.get(person)
        return 0 if own is None else own.decisions, self.everybody.decisions

    def __getstate__(self) -> dict[str, object]:
        return {"everybody": self.everybody, "people": self.people}

    def __setstate__(self, state: dict[str, object]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self.lock = threading.Lock()
