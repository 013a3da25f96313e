"""``Structured`` with a memory: how much people listen is learnt on each level, all else once."""

import numpy as np
import pytest
from numpy.random import default_rng

import counsel
from counsel import Simulator, Structured
from tests.support.structured import small_and_random


def tiring(memory, fading):
    plain = small_and_random()
    return counsel.AdviceProblem(plain.mdp, plain.human.with_memory(memory, fading))


def played(problem, *, episodes, seed=0):
    """Return episodes with random advice."""
    H, S, A = problem.policy.shape
    policy = counsel.Policy.from_probabilities(np.full((H, S, A + 1), 1.0 / (A + 1)))
    return Simulator(problem).play(policy, episodes=episodes, rng=default_rng(seed))


def test_the_world_and_the_habit_are_counted_on_all_levels_together():
    problem = tiring(counsel.Memory.pieces(1), [1.0, 0.2])
    batch = played(problem, episodes=200)
    plain = Structured(problem.without_memory().shape, rng=default_rng(0))
    learner = Structured(problem.shape, rng=default_rng(0))
    plain.update(batch)
    learner.update(batch)
    assert np.array_equal(learner._transitions.visits, plain._transitions.visits)
    assert np.array_equal(learner.habit, plain.habit)
    by_level = learner.given.reshape(2, -1)
    assert np.array_equal(by_level.sum(axis=0), plain.given)
    assert (by_level.sum(axis=1) > 0).all()


def test_one_level_is_the_learner_without_a_memory():
    problem = tiring(counsel.Memory([[1.0]], [[1.0]]), [1.0])
    plain = Structured(problem.without_memory().shape, rng=default_rng(0), penalty=0.02)
    learner = Structured(problem.shape, rng=default_rng(0), penalty=0.02)
    for seed in range(5):
        batch = played(problem, episodes=20, seed=seed)
        plain.update(batch)
        learner.update(batch)
        assert learner.uncertainty == plain.uncertainty
        assert np.array_equal(learner.policy.advice[0], plain.policy.advice)
        for h, s in np.ndindex(problem.horizon, problem.n_states):
            assert learner.advise(h, s, 0) == plain.advise(h, s)


@pytest.mark.parametrize("memory", [counsel.Memory.pieces(1), counsel.Memory.refusals(1)])
def test_it_comes_to_the_plan_that_knows_the_memory(memory):
    problem = tiring(memory, [1.0, 0.1])
    learner = Structured(problem.shape, rng=default_rng(0))
    learner.update(played(problem, episodes=20_000))
    best = counsel.solve(problem, penalty=0.02)
    plan = learner.plan(penalty=0.02)
    outcome = counsel.evaluate(problem, plan.policy)
    assert outcome.value - 0.02 * outcome.advice_cost >= best.penalised_value - 0.005
    assert learner.model().memory is memory


def test_its_groups_have_a_level_axis():
    problem = tiring(counsel.Memory.pieces(1), [1.0, 0.5])
    shared = Structured(problem.shape, rng=default_rng(0), groups=[[0, 1, 2], [3, 4, 4]])
    assert shared.groups.shape == (2, 1, 3, 3)
    assert shared.groups[:, 0, 0].tolist() == [[0, 1, 2], [3, 4, 4]]
    assert shared.given.size == 5
    with pytest.raises(counsel.CounselError, match=r"for a memory of 2 levels, expected"):
        Structured(problem.shape, rng=default_rng(0), groups=[0, 1, 2])


def test_the_level_must_be_given_and_in_range():
    problem = tiring(counsel.Memory.pieces(1), [1.0, 0.5])
    learner = Structured(problem.shape, rng=default_rng(0))
    with pytest.raises(counsel.CounselError, match="give level, from 0 to 1"):
        learner.advise(0, 0)
    with pytest.raises(counsel.CounselError, match="level is 2"):
        learner.advise(0, 0, 2)
    with pytest.raises(counsel.CounselError, match="the episodes have no levels"):
        learner.update(played(problem.without_memory(), episodes=1))
