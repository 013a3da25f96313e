"""Counts of people: independent of the order, and without a trace of who is forgotten."""

import copy
import pickle

import numpy as np

from counsel.estimate.people_counts import PeopleCounts
from tests.support.each import each_seed

S, A = 4, 3


def drawn_decisions(seed, size=200):
    rng = np.random.default_rng(seed)
    columns = (
        rng.integers(3, size=size),
        rng.integers(S, size=size),
        rng.integers(A + 1, size=size),
    )
    for person, state, advice, action in zip(*columns, rng.integers(A, size=size), strict=True):
        yield person, (state, None if advice == A else advice, action)


def counted(decisions):
    counts = PeopleCounts()
    for person, cell in decisions:
        counts.add(person, cell)
    return counts


@each_seed(range(20))
def test_the_order_of_decisions_does_not_matter(seed):
    decisions = list(drawn_decisions(seed))
    order = np.random.default_rng(seed + 1).permutation(len(decisions))
    first, again = counted(decisions), counted(decisions[i] for i in order)
    assert first.everybody.cells == again.everybody.cells
    assert {p: c.cells for p, c in first.people.items()} == {
        p: c.cells for p, c in again.people.items()
    }


@each_seed(range(20))
def test_arrays_hold_every_decision_once(seed):
    decisions = list(drawn_decisions(seed))
    counts = counted(decisions)
    own, everybody = counts.arrays(1, np.ones((S, A), dtype=np.bool_))
    for arrays, cells in (
        (own, [cell for person, cell in decisions if person == 1]),
        (everybody, [cell for _, cell in decisions]),
    ):
        for s in range(S):
            for a in range(A):
                there = [cell for cell in cells if cell[0] == s]
                assert arrays.silent[s, a] == sum(c == (s, None, a) for c in there)
                assert arrays.given[s, a] == sum(c[1] == a for c in there)
                assert arrays.matched[s, a] == sum(c[1] == a == c[2] for c in there)
                assert arrays.refusing[s, a] == sum(
                    c[2] == a and c[1] not in (None, a) for c in there
                )
    assert counts.decisions(1) == (sum(p == 1 for p, _ in decisions), len(decisions))


def test_forgetting_a_person_leaves_no_trace():
    decisions = list(drawn_decisions(3))
    counts = counted(decisions)
    assert counts.forget(1)
    assert not counts.forget(1)
    kept = counted((person, cell) for person, cell in decisions if person != 1)
    assert counts.everybody.cells == kept.everybody.cells
    assert counts.everybody.pieces == kept.everybody.pieces
    assert sorted(counts.people) == sorted(kept.people)


def test_copies_do_not_share_what_is_added_later():
    counts = counted(drawn_decisions(4))
    twins = counts.copy(), pickle.loads(pickle.dumps(counts)), copy.deepcopy(counts)
    before = dict(counts.everybody.cells)
    counts.add(0, (0, None, 0), 5)
    for twin in twins:
        assert twin.everybody.cells == before
        twin.add(0, (0, None, 0), 5)
        assert twin.everybody.cells == counts.everybody.cells


@each_seed(range(5))
def test_levels_are_forgotten_copied_and_sum_to_the_pieces(seed):
    rng, counts, others = np.random.default_rng(seed), PeopleCounts(), PeopleCounts()
    for person, cell in drawn_decisions(seed):
        level = int(rng.integers(3))
        counts.add(person, cell, level=level)
        if person != 1:
            others.add(person, cell, level=level)
    twin = counts.copy()
    possible = np.ones((S, A), dtype=bool)
    for person in range(3):
        own, _ = counts.by_level(person, possible)
        given = np.zeros((S, A))
        np.add.at(given, (own.state, own.advice), own.given)
        assert (given == counts.arrays(person, possible)[0].given).all()
        assert (own.matched <= own.given).all()
    assert counts.forget(1)
    assert counts.everybody.levels == others.everybody.levels
    assert twin.everybody.levels != counts.everybody.levels
    assert twin.forget(1)
    assert twin.everybody.levels == others.everybody.levels
