"""Counts are the same after they were saved and read again."""

import io

import numpy as np

from counsel.estimate.people_counts import PeopleCounts
from counsel.service.core.count_snapshot import pack, unpack


def test_counts_are_the_same_after_packing():
    rng = np.random.default_rng(6)
    counts = {"a": PeopleCounts(), "b": PeopleCounts(), "nothing counted": PeopleCounts()}
    for name in ("a", "b"):
        for person, state, advice, action in rng.integers((3, 5, 4, 3), size=(300, 4)).tolist():
            level = int(rng.integers(4)) if name == "b" else None  # people with a memory
            counts[name].add(person, (state, None if advice == 3 else advice, action), 1, level)
    again = {name: PeopleCounts() for name in counts}
    snapshot = unpack(pack(counts, changes=17))
    snapshot.add_to(again.__getitem__)
    assert snapshot.changes == 17
    for name, original in counts.items():
        assert again[name].everybody.cells == original.everybody.cells
        assert again[name].everybody.pieces == original.everybody.pieces
        assert again[name].everybody.levels == original.everybody.levels
        assert bool(original.everybody.levels) == (name == "b")
        assert {p: c.cells for p, c in again[name].people.items()} == {
            p: c.cells for p, c in original.people.items()
        }


def test_a_file_of_an_earlier_version_has_no_levels():
    file = io.BytesIO()
    table = np.array([[0, 1, 2, -1, 0, 5]])
    np.savez_compressed(file, advisers=np.array('["a"]'), table=table)
    snapshot, counts = unpack(file.getvalue()), PeopleCounts()
    snapshot.add_to({"a": counts}.__getitem__)
    assert (snapshot.changes, snapshot.levels) == (0, [])
    assert counts.people[1].cells == {(2, None, 0): 5}
