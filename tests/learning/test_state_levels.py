"""Pairs of state and level as states: how RFE learns with a memory."""

import numpy as np
import pytest
from numpy.random import default_rng

import counsel
from counsel import RFE, Simulator
from counsel.learning.state_levels import pair_episodes, pair_shape, policy_by_level


def tiring(memory):
    """A map that ends, and a pilot who tires."""
    plain = counsel.make("flappy-bird-budget/greedy")
    human = plain.human.with_memory(memory, 0.7 ** np.arange(memory.n_levels))
    return counsel.AdviceProblem(plain.mdp, human, cost=np.arange(1.0, 4.0))


def test_the_shape_of_pairs_begins_on_the_start_level():
    problem = tiring(counsel.Memory.since(2))
    pairs = pair_shape(problem.shape)
    assert pairs.memory is None
    assert pairs.n_states == 3 * problem.n_states
    assert pairs.start == 3 * problem.shape.start + 2
    assert pairs.allowed.shape == pairs.cost.shape == (problem.horizon, pairs.n_states, 3)
    plain = problem.without_memory().shape
    assert pair_shape(plain) is plain


def test_costs_and_masks_of_a_state_are_those_of_its_pairs():
    shape = counsel.Shape(
        horizon=2,
        n_states=2,
        n_actions=2,
        reward_range=(0, 1),
        allowed=[[True, False], [True, True]],
        cost=[[1.0, 2.0], [3.0, 4.0]],
        memory=counsel.Memory.pieces(1),
    )
    pairs = pair_shape(shape)
    assert pairs.cost[0].tolist() == [[1, 2], [1, 2], [3, 4], [3, 4]]
    assert pairs.allowed[0, :, 1].tolist() == [False, False, True, True]


def test_episodes_go_from_pair_to_pair():
    problem = tiring(counsel.Memory.pieces(2))
    policy = counsel.solve(problem).policy
    batch = Simulator(problem).play(policy, episodes=40, rng=default_rng(0))
    pairs = pair_episodes(batch, problem.memory)
    assert np.array_equal(pairs.state // 3, batch.state)
    assert np.array_equal(pairs.state % 3, batch.level)
    assert np.array_equal(pairs.next_state // 3, batch.next_state)
    follows = np.flatnonzero(pairs.episode[1:] == pairs.episode[:-1])
    assert np.array_equal(pairs.next_state[follows], pairs.state[follows + 1])
    # The level after the last decision: one piece more if it was advised.
    last = pairs.first[1:] - 1
    spoken = batch.advice[last] != batch.defer
    assert np.array_equal(pairs.next_state[last] % 3, np.minimum(batch.level[last] + spoken, 2))


@pytest.mark.parametrize("is_random", [False, True])
def test_a_policy_on_pairs_has_a_plane_for_each_level(is_random):
    H, S, A, M = 2, 3, 2, 2
    chances = default_rng(0).dirichlet(np.ones(A + 1), size=(H, S * M))
    if not is_random:
        chances = np.eye(A + 1)[chances.argmax(axis=-1)]
    policy = policy_by_level(counsel.Policy.from_probabilities(chances), M)
    assert policy.levels == M
    for h, s, m in np.ndindex(H, S, M):
        at = policy.at(h, s, level=m)
        assert [at.get(b, 0.0) for b in range(A + 1)] == pytest.approx(chances[h, s * M + m])


def test_rfe_marks_an_end_on_every_level():
    problem = tiring(counsel.Memory.pieces(2))
    learner = RFE(problem.shape, rng=default_rng(0))
    learner.explore(Simulator(problem), episodes=30, rng=default_rng(1))
    ended = learner._ends.ended.reshape(problem.horizon + 1, problem.n_states, 3)
    assert ended.any()
    assert np.array_equal(ended.any(axis=2), ended.all(axis=2))


def test_rfe_comes_to_the_plan_that_knows_the_memory():
    """One state, two hours; who was advised in the first does not listen in the second."""
    mdp = counsel.MDP(np.ones((1, 2, 1)), [[[0.0, 1.0]], [[0.0, 2.0]]], horizon=2)
    memory = counsel.Memory.pieces(1)
    human = counsel.Human([[0.9, 0.1]], lift=0.9, memory=memory, fading=[1.0, 0.0])
    problem = counsel.AdviceProblem(mdp, human)
    learner = RFE(problem.shape, rng=default_rng(0))
    learner.explore(Simulator(problem), episodes=600, rng=default_rng(1))
    best = counsel.solve(problem)
    assert learner.policy.levels == 2
    assert counsel.evaluate(problem, learner.policy).value == pytest.approx(best.value)
    for limit in ({"penalty": 0.3}, {"budget": 0.5}, {"budget": 1, "hard": True}):
        plan = learner.plan(**limit)
        assert plan.policy.levels == 2
        gap = counsel.solve(problem, **limit).value - counsel.evaluate(problem, plan.policy).value
        assert abs(gap) < 0.1


def test_the_level_must_be_given_and_in_range():
    problem = tiring(counsel.Memory.pieces(2))
    learner = RFE(problem.shape, rng=default_rng(0))
    for arguments, said in (
        ((0, 0), r"knows the memory of the person \(pieces=2\); give level, from 0 to 2"),
        ((0, 0, 3), "level is 3"),
        ((0, problem.n_states, 0), f"state is {problem.n_states}"),
    ):
        with pytest.raises(counsel.CounselError, match=said):
            learner.advise(*arguments)
