"""Counts of what people did: of each person, and of all of them together.

For every person and state: what the person did when nothing was shown, and what they did on each
piece of advice they saw. Counts do not depend on the order in which decisions arrive, so the same
log always gives the same counts.
"""

import threading
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Cell = tuple[int, int | None, int]
"""State, the advice that was seen (None for silence), and the action taken."""


class DecisionCounts(NamedTuple):
    """Counts [s, a]: actions in silence and against advice, advice that was seen, and matches."""

    silent: NDArray[np.int64]
    refusing: NDArray[np.int64]
    given: NDArray[np.int64]
    matched: NDArray[np.int64]


class SparseCounts:
    """How often each action was taken in each state on each advice, by one person or by all."""

    __slots__ = ("cells", "decisions", "pieces")

    def __init__(self) -> None:
        self.cells: dict[Cell, int] = {}
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

    def add(self, person: int, cell: Cell, times: int = 1) -> None:
        """Count decisions of a person; a negative number takes them out again."""
        with self.lock:
            self.everybody.add(cell, times)
            self.people.setdefault(person, SparseCounts()).add(cell, times)

    def forget(self, person: int) -> bool:
        """Take out all decisions of a person, and return whether there were any."""
        with self.lock:
            counts = self.people.pop(person, SparseCounts())
            for cell, times in counts.cells.items():
                self.everybody.add(cell, -times)
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
                for cell, times in counts.cells.items():
                    twin.add(person, cell, times)
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
