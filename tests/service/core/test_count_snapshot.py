"""Counts are the same after they were saved and read again."""

import numpy as np

from counsel.estimate.people_counts import PeopleCounts
from counsel.service.core.count_snapshot import pack, unpack


def test_counts_are_the_same_after_packing():
    rng = np.random.default_rng(6)
    counts = {"a": PeopleCounts(), "b": PeopleCounts(), "nothing counted": PeopleCounts()}
    for name in ("a", "b"):
        for person, state, advice, action in rng.integers((3, 5, 4, 3), size=(300, 4)).tolist():
            counts[name].add(person, (state, None if advice == 3 else advice, action))
    again = {name: PeopleCounts() for name in counts}
    for name, person, cell, times in unpack(pack(counts)):
        again[name].add(person, cell, times)
    for name, original in counts.items():
        assert again[name].everybody.cells == original.everybody.cells
        assert again[name].everybody.pieces == original.everybody.pieces
        assert {p: c.cells for p, c in again[name].people.items()} == {
            p: c.cells for p, c in original.people.items()
        }
