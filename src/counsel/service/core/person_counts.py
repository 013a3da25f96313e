"""What was seen of people: counts, and nothing else.

For every person and state: what they did when nothing was shown, and what they did when advised
what. Counts do not depend on the order in which outcomes arrive, so the same log always makes the
same counts, whenever it is read.
"""

import io
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SILENCE = -1
"""What is heard where nothing was shown or seen."""


class Tables(NamedTuple):
    """Counts as arrays [s, a].

    ``silent``: taken when nothing was shown; ``refusing``: taken against advice; ``given`` and
    ``matched``: advice that was seen, and taken.
    """

    silent: NDArray[np.int64]
    refusing: NDArray[np.int64]
    given: NDArray[np.int64]
    matched: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Observation:
    """A decision with its outcome, as the log has it, and how often."""

    person: int
    state: int
    heard: int
    action: int
    times: int = 1


class Counts:
    """How often each action was taken in each state on hearing what, of one person or of all."""

    __slots__ = ("cells", "decisions", "pieces")

    def __init__(self) -> None:
        self.cells: dict[tuple[int, int, int], int] = {}
        self.decisions = self.pieces = 0

    def add(self, cell: tuple[int, int, int], times: int) -> None:
        """Count (state, heard, action), or take it out again where ``times`` is negative."""
        left = self.cells.get(cell, 0) + times
        if left:
            self.cells[cell] = left
        else:
            self.cells.pop(cell, None)
        self.decisions += times
        self.pieces += times if cell[1] != SILENCE else 0

    def tables(self, n_states: int, n_actions: int) -> Tables:
        """Return the counts as arrays."""
        made = Tables(*(np.zeros((n_states, n_actions), dtype=np.int64) for _ in range(4)))
        for (state, heard, action), times in self.cells.items():
            if heard == SILENCE:
                made.silent[state, action] += times
                continue
            made.given[state, heard] += times
            (made.matched if action == heard else made.refusing)[state, action] += times
        return made


class Seen:
    """Counts of each person and of everybody; read by planners while more is added."""

    def __init__(self) -> None:
        self.everybody = Counts()
        self.people: dict[int, Counts] = {}
        self.lock = threading.Lock()

    def learn(self, happened: Observation) -> None:
        """Count what happened."""
        cell = (happened.state, happened.heard, happened.action)
        with self.lock:
            self.everybody.add(cell, happened.times)
            self.people.setdefault(happened.person, Counts()).add(cell, happened.times)

    def forget(self, person: int) -> bool:
        """Take out all that was seen of one person; say whether there was anything."""
        with self.lock:
            counts = self.people.pop(person, Counts())
            for cell, times in counts.cells.items():
                self.everybody.add(cell, -times)
        return counts.decisions > 0

    def clear(self) -> None:
        """Take out all that was seen."""
        with self.lock:
            self.everybody, self.people = Counts(), {}

    def tables(self, person: int, n_states: int, n_actions: int) -> tuple[Tables, Tables]:
        """Return the counts of one person and of everybody, of one moment."""
        with self.lock:
            own = self.people.get(person, Counts()).tables(n_states, n_actions)
            return own, self.everybody.tables(n_states, n_actions)

    def amount(self, person: int) -> tuple[int, int]:
        """Return how many decisions of one person were seen, and of everybody."""
        own = self.people.get(person)
        return 0 if own is None else own.decisions, self.everybody.decisions


def pack(seen: Mapping[str, Seen]) -> bytes:
    """Return the counts of all advisers as a file without pickle."""
    names = list(seen)
    rows = [
        (i, person, *cell, times)
        for i, name in enumerate(names)
        for person, counts in seen[name].people.items()
        for cell, times in counts.cells.items()
    ]
    sink = io.BytesIO()
    table = np.array(rows, dtype=np.int64).reshape(-1, 6)
    np.savez_compressed(sink, advisers=np.array(json.dumps(names)), table=table)
    return sink.getvalue()


def unpack(content: bytes) -> Iterator[tuple[str, Observation]]:
    """Yield what ``pack`` was given, adviser by adviser."""
    with np.load(io.BytesIO(content), allow_pickle=False) as packed:
        names = json.loads(str(packed["advisers"]))
        for i, *happened in packed["table"].tolist():
            yield names[i], Observation(*happened)
