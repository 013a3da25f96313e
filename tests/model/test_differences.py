"""The first thing in which two problems differ."""

import pickle

import pytest

import counsel
from counsel.model.differences import first_difference


@pytest.mark.parametrize("world", ["ward", "ward/tiring", "machine-repair"])
def test_a_problem_built_anew_is_the_same(world):
    problem = counsel.make(world)
    assert first_difference(problem, counsel.make(world)) is None
    assert first_difference(problem, pickle.loads(pickle.dumps(problem))) is None


def test_the_first_difference_is_named():
    ward, weekly = counsel.make("ward"), counsel.make("call-centre")
    costly = counsel.AdviceProblem(ward.mdp, ward.human, cost=2.0)
    endless = ward.without_end(0.9)
    assert first_difference(ward, costly) == "cost"
    assert first_difference(ward, weekly) == "steps (6 and 26)"
    assert first_difference(ward, endless) == "discount (None and 0.9)"
    assert first_difference(endless, ward.without_end(0.8)) == "discount (0.9 and 0.8)"
    assert first_difference(ward, counsel.make("ward/tiring")).startswith("levels of memory (1 and")
    deaf = counsel.AdviceProblem(ward.mdp, counsel.Human(ward.human.policy, 0.0))
    assert first_difference(ward, deaf) == "lift"
