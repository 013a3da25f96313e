"""Counts of people as a file without pickle, saved so that a start need not read the whole log."""

import io
import json
from collections.abc import Iterator, Mapping

import numpy as np

from counsel.estimate.people_counts import Cell, PeopleCounts

SILENCE = -1
"""Silence in the file."""


def pack(counts: Mapping[str, PeopleCounts]) -> bytes:
    """Return the counts of all advisers as a file."""
    names = list(counts)
    rows = [
        (i, person, state, SILENCE if advice is None else advice, action, times)
        for i, name in enumerate(names)
        for person, own in counts[name].people.items()
        for (state, advice, action), times in own.cells.items()
    ]
    file = io.BytesIO()
    table = np.array(rows, dtype=np.int64).reshape(-1, 6)
    np.savez_compressed(file, advisers=np.array(json.dumps(names)), table=table)
    return file.getvalue()


def unpack(content: bytes) -> Iterator[tuple[str, int, Cell, int]]:
    """Yield adviser, person, cell and count of everything that ``pack`` saved."""
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        names = json.loads(str(file["advisers"]))
        for i, person, state, advice, action, times in file["table"].tolist():
            yield names[i], person, (state, None if advice == SILENCE else advice, action), times
