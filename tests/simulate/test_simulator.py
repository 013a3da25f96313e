"""The simulator: extreme cases, from one state and one action to a million states."""

import numpy as np
import pytest
import scipy.sparse as sp

from counsel import MDP, AdviceProblem, Human, Policy, Simulator
from counsel.simulate._episode_kernels import BLOCK
from tests.support import oracles
from tests.support.each import each, each_seed
from tests.support.frequencies import SLIP, check_binomial, check_chi_square
from tests.support.later import Later
from tests.support.problems import adapt
from tests.support.simulated import (
    COLUMNS,
    check_evaluation,
    everything,
    law_table,
    never,
    patchwork,
)

stats = Later("scipy.stats")

TINY = 1e-12


def test_what_is_almost_impossible_hardly_ever_happens_and_the_rest_is_right():
    P = np.zeros((4, 3, 4))
    P[0, 0] = [TINY, 0.5 - TINY, 0.5 - TINY, TINY]
    P[0, 1] = [1 - 3 * TINY, TINY, TINY, TINY]
    P[0, 2] = [0.25, 0.25, 0.25, 0.25]
    P[1:] = P[0][None, ::-1, ::-1]
    pi = np.array([[TINY, 1 - 2 * TINY, TINY], [0.5, 0.5 - TINY, TINY], [1 / 3] * 3, [1, 0, 0]])
    theta = np.array([[TINY, 1 - TINY, 0.5], [0.5, TINY, 1 - TINY], [0, 1, TINY], [0.3, TINY, 1]])
    start = [0.4 - TINY, TINY, 0.3, 0.3]
    problem = AdviceProblem(
        MDP(P, np.zeros((4, 3)), horizon=4, start=np.array(start)), Human(pi, theta)
    )
    table = np.tile([TINY, 0.5 - TINY, 0.3, 0.2], (4, 4, 1))
    table[:, 1] = [0.3, 0.3, 0.4 - TINY, TINY]
    table[:, 2] = [0.25, 0.25, 0.25, 0.25]
    policy = Policy.from_probabilities(table)
    n = 300_000
    simulator = Simulator(problem)
    counts = simulator.count(policy, episodes=n, rng=np.random.default_rng(2))
    heard_hsb = counts.decisions.sum(axis=-1)
    check_binomial(counts.visits[0], n, problem.mdp.start)
    check_binomial(heard_hsb, counts.visits[..., None], table)
    check_binomial(counts.decisions, heard_hsb[..., None], law_table(problem))
    check_evaluation(problem, policy, counts)
    episodes = simulator.play(policy, episodes=n, rng=np.random.default_rng(3))
    moves = np.zeros((4, 3, 4), dtype=np.int64)
    np.add.at(moves, (episodes.state, episodes.action, episodes.next_state), 1)
    check_binomial(moves, moves.sum(axis=-1, keepdims=True), P)
    check_chi_square(moves, P)


def test_rare_but_real_chances_are_met():
    # 2e-4 in a start of 1,000 states, a row of 1,000, a policy, a habit and an adherence.
    rare, S = 2e-4, 1_000
    rows = np.full(S, rare / (S - 1))
    rows[7] = 1.0 - rare
    pi, theta = [[rare, 1 - rare]] * S, [[0.5, rare]] * S
    mdp = MDP(np.tile(rows, (S, 2, 1)), np.zeros((S, 2)), horizon=2, start=rows)
    problem = AdviceProblem(mdp, Human(pi, theta))
    policy = Policy.from_probabilities(np.tile([rare, 0.5, 0.5 - rare], (2, S, 1)))
    n = 1_000_000
    counts = Simulator(problem).count(policy, episodes=n, rng=np.random.default_rng(1))
    check_binomial(counts.visits, n, rows)
    check_binomial(counts.visits[:, 7], n, 1.0 - rare)
    hsba = counts.decisions
    check_binomial(hsba[:, :, 0].sum(), 2 * n, rare)
    check_binomial(hsba[:, :, 1, 1].sum(), hsba[:, :, 1].sum(), rare)
    check_binomial(hsba[:, :, 2, 0].sum(), hsba[:, :, 2].sum(), rare)
    check_binomial(hsba[:, :, 0, 0].sum(), hsba[:, :, 0].sum(), 0.5)


def test_one_state_one_action_one_step():
    problem = AdviceProblem(MDP(np.array([[0]]), [[2.5]], horizon=1), Human([[1.0]], 0.3))
    simulator, policy = Simulator(problem), Policy([[0]], n_actions=1)
    episodes = simulator.play(policy, episodes=3, rng=np.random.default_rng(0))
    columns = [getattr(episodes, name).tolist() for name in COLUMNS]
    assert columns == [[0] * 3, [0] * 3, [0] * 3, [2.5] * 3, [0] * 3]
    assert episodes.first.tolist() == [0, 1, 2, 3]
    assert not episodes.terminated.any()
    counts = simulator.count(policy, episodes=3, rng=np.random.default_rng(0))
    assert counts.decisions.tolist() == [[[[3], [0]]]]
    assert counts.rewards.tolist() == [2.5] * 3
    assert counts.matched.tolist() == [3]  # they do it anyway, whatever θ is


@each("episodes", [1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK])
def test_as_many_episodes_are_drawn_as_were_asked_for(episodes):
    problem = patchwork(5)
    rng = np.random.default_rng(0)
    drawn = Simulator(problem).play(everything(problem), episodes=episodes, rng=rng)
    assert len(drawn) == episodes
    counts = Simulator(problem).count(everything(problem), episodes=np.int64(episodes), rng=rng)
    assert len(counts) == counts.rewards.size == counts.pieces.size == episodes
    assert (counts.decisions.sum(axis=(1, 2, 3)) == episodes).all()


@each_seed(range(6))
def test_adherence_1_always_matches_and_0_never_does_unless_they_would_anyway(seed):
    dense = oracles.random_problem(
        np.random.default_rng(seed), 4, 3, 4, deterministic_people=seed % 2 == 1
    )
    for theta in (0.0, 1.0):
        problem = adapt(dense._replace(theta_hsa=np.full_like(dense.theta_hsa, theta)))
        episodes = Simulator(problem).play(
            everything(problem), episodes=5_000, rng=np.random.default_rng(seed)
        )
        spoken = episodes.advice != problem.defer
        said = np.minimum(episodes.advice, problem.n_actions - 1)
        anyway = problem.policy[episodes.step, episodes.state, said] == 1.0
        assert spoken.any()
        assert anyway.any() or seed % 2 == 0
        due = spoken & (anyway if theta == 0.0 else True)
        np.testing.assert_array_equal(episodes.matched, due)


def test_forty_actions():
    rng = np.random.default_rng(4)
    A = 40
    pi = rng.dirichlet(np.full(A, 0.5), size=3)
    pi[2, ::2] = 0.0
    pi /= pi.sum(axis=1, keepdims=True)
    mdp = MDP(rng.dirichlet(np.ones(3), size=(3, A)), rng.random((3, A)), horizon=3)
    problem = AdviceProblem(mdp, Human(pi, rng.random((3, A))))
    policy, n = everything(problem), 300_000
    counts = Simulator(problem).count(policy, episodes=n, rng=np.random.default_rng(4))
    heard_hsb, law = counts.decisions.sum(axis=-1), law_table(problem)
    assert check_binomial(counts.decisions, heard_hsb[..., None], law) > 5_000
    check_chi_square(counts.decisions, law)
    check_chi_square(heard_hsb, policy.probabilities())
    check_evaluation(problem, policy, counts)


def test_as_many_actions_as_there_may_be():
    A = 32_766  # advice is stored in two bytes; silence is 32,766
    pi = np.full((1, A), 1 / A)
    problem = AdviceProblem(MDP(np.zeros((1, A), dtype=int), [1.0], horizon=2), Human(pi, 1.0))
    episodes = Simulator(problem).play(
        Policy([[A - 1], [A]], n_actions=A), episodes=2_000, rng=np.random.default_rng(0)
    )
    assert (episodes.advice.reshape(-1, 2) == [A - 1, A]).all()
    advised, alone = episodes.action.reshape(-1, 2).T
    assert (advised == A - 1).all()
    assert 0 <= alone.min() < A / 100  # the tenth of a thousandth smallest and largest are near
    assert A - A / 100 < alone.max() < A
    assert (episodes.pieces == 1).all()
    # Uniform: the largest gap between the shares and a straight line (Kolmogorov).
    assert stats.kstest((alone + 0.5) / A, "uniform").pvalue > SLIP


def test_a_start_with_one_tiny_entry():
    S, n = 5, 1_000_000
    start = np.array([0.25, 0.25, 1e-5, 0.25, 0.25 - 1e-5])
    mdp = MDP(np.arange(S)[:, None], np.arange(S) * 1.0, horizon=1, start=start)
    problem = AdviceProblem(mdp, Human(np.ones((S, 1)), 1.0))
    counts = Simulator(problem).count(never(problem), episodes=n, rng=np.random.default_rng(0))
    assert counts.visits[0, 2] > 0
    check_binomial(counts.visits[0], n, start)
    np.testing.assert_array_equal(np.bincount(counts.rewards.astype(int)), counts.visits[0])


@pytest.mark.slow
def test_smoke_a_million_states():
    S = 1_000_000
    rng = np.random.default_rng(0)
    step = rng.integers(1, 50, size=(2 * S, 2))
    columns = (np.arange(2 * S)[:, None] // 2 + step) % S
    matrix = sp.csr_matrix(
        (np.full(4 * S, 0.5), columns.reshape(-1), np.arange(0, 4 * S + 1, 2)), shape=(2 * S, S)
    )
    mdp = MDP(matrix, np.ones(S), horizon=3, start=np.full(S, 1 / S))
    problem = AdviceProblem(mdp, Human(np.full((S, 2), 0.5), 0.8))
    policy = Policy(np.zeros((3, S), dtype=int), n_actions=2)
    episodes = Simulator(problem).play(policy, episodes=20_000, rng=rng)
    assert (episodes.lengths == 3).all()
    check_binomial(episodes.matched.sum(), 60_000, 0.8)
    assert ((episodes.next_state - episodes.state) % S < 50).all()
    starts = episodes.state[episodes.first[:-1]]
    assert stats.kstest((starts + 0.5) / S, "uniform").pvalue > SLIP
