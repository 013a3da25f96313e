"""Counts of people as a file without pickle, saved so that a start need not read the whole log."""

import io
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from counsel.estimate.people_counts import PeopleCounts

SILENCE = -1
"""Silence in the file."""


class CountSnapshot(NamedTuple):
    """The counts of all advisers, as a file has them.

    The rows of ``cells`` are adviser, person, state, advice, action and count; those of ``levels``
    have the level before the count. ``changes`` is the last change of a level that was counted.
    """

    advisers: list[str]
    cells: list[list[int]]
    levels: list[list[int]]
    changes: int

    def add_to(self, counts_of: Callable[[str], PeopleCounts]) -> None:
        """Add everything to the counts of each adviser."""
        for i, person, state, advice, action, times in self.cells:
            heard = None if advice == SILENCE else advice
            counts_of(self.advisers[i]).add(person, (state, heard, action), times)
        for i, person, *cell, times in self.levels:
            state, advice, action, level = cell
            counts_of(self.advisers[i]).add_level(person, (state, advice, action, level), times)


def pack(counts: Mapping[str, PeopleCounts], changes: int = 0) -> bytes:
    """Return the counts of all advisers as a file."""
    names = list(counts)
    cells = [
        (i, person, state, SILENCE if advice is None else advice, action, times)
        for i, name in enumerate(names)
        for person, own in counts[name].people.items()
        for (state, advice, action), times in own.cells.items()
    ]
    levels = [
        (i, person, *cell, times)
        for i, name in enumerate(names)
        for person, own in counts[name].people.items()
        for cell, times in own.levels.items()
    ]
    file = io.BytesIO()
    np.savez_compressed(
        file,
        advisers=np.array(json.dumps(names)),
        table=_table(cells, 6),
        levels=_table(levels, 7),
        changes=np.array(changes),
    )
    return file.getvalue()


def unpack(content: bytes) -> CountSnapshot:
    """Return what ``pack`` saved; files of earlier versions have no levels."""
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        names = json.loads(str(file["advisers"]))
        levels = file["levels"].tolist() if "levels" in file else []
        changes = int(file["changes"]) if "changes" in file else 0
        return CountSnapshot(names, file["table"].tolist(), levels, changes)


def _table(rows: list[Any], columns: int) -> NDArray[np.int64]:
    return np.array(rows, dtype=np.int64).reshape(-1, columns)
