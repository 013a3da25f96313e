"""RF-Express as published: the numbers of the formulas, the trap of ties, and its stopping rule."""

import math

import numpy as np
import pytest

import counsel
from counsel.baselines import RFExpress
from counsel.baselines._rf_express_kernels import plan_express, plan_plug_in
from counsel.learning._rfe_kernels import phi
from counsel.model.machine import machine_rewards
from counsel.testing import check_learner
from counsel.worlds import make
from tests.support.boxes import box_of
from tests.support.each import each_seed

BASE = math.log(3 * 2 * 2 * 3 / 0.1)


def rng(seed=0):
    return np.random.default_rng(seed)


def test_the_numbers_of_the_formulas():
    seen = [phi(float(n), BASE, 2) for n in (0, 10, 1000)]
    np.testing.assert_allclose(seen, [12.0449871, 16.8407777, 25.8624967], atol=1e-7)
    assert 15 * 9 * phi(10.0, BASE, 2) / 10 == pytest.approx(227.350498, abs=1e-6)
    counts = np.zeros((3, 2, 2, 2), np.int64)
    counts[..., 0] = 100_000
    W = np.empty((4, 2))
    plan_express(
        box_of(counts, np.zeros((1, 2, 2))),
        1.0,
        BASE,
        np.zeros((3, 2)),
        np.zeros((3, 2), np.int16),
        W,
    )
    assert W[0, 0] == pytest.approx(0.1946432621, abs=1e-10)
    assert W[0, 0] + 3 * math.e * math.sqrt(W[0, 0]) == pytest.approx(3.7924300609, abs=1e-9)


def slow_W(counts, base, scale):
    H, S, _, _ = counts.shape
    W = np.zeros((H + 1, S))
    for h in reversed(range(H)):
        n = counts[h].sum(axis=2)
        N = np.maximum(n, 1)
        phi = base + S * np.log(8 * math.e * (n + 1))
        row = scale * 15 * H**2 * phi / N + (1 + 1 / H) * (counts[h] / N[..., None]) @ W[h + 1]
        W[h] = np.where(n > 0, np.minimum(H, row), H).max(axis=1)
    return W


@each_seed(range(20))
def test_plans_are_those_of_a_slow_obvious_version(seed):
    random = rng(seed)
    H, S, B = (int(random.integers(2, 5)) for _ in range(3))
    most = 10 ** int(random.integers(2, 8))
    counts = random.integers(0, most, (H, S, B, S)) * (random.random((H, S, B, S)) < 0.6)
    reward = random.random((H, S, B))
    advice, W, V = np.zeros((H, S), np.int16), np.empty((H + 1, S)), np.empty((H + 1, S))
    box = box_of(counts, reward)
    plan_express(box, 0.1, 5.0, np.zeros((H, S)), advice, W)
    np.testing.assert_allclose(W, slow_W(counts, 5.0, 0.1), rtol=1e-12)
    # W falls when a count grows and p̂ stays; it is H at first.
    again = np.empty((H + 1, S))
    plan_express(box_of(2 * counts, reward), 0.1, 5.0, np.zeros((H, S)), advice, again)
    assert (again <= W + 1e-12).all()
    plan_express(box_of(0 * counts, reward), 0.1, 5.0, np.zeros((H, S)), advice, again)
    assert (again[:H] == H).all()
    plan_plug_in(box, advice, V)
    n = counts.sum(axis=3, keepdims=True)
    p = np.where(n > 0, counts / np.maximum(n, 1), 1 / S)
    best = np.zeros((H + 1, S))
    for h in reversed(range(H)):
        best[h] = (reward[h] + p[h] @ best[h + 1]).max(axis=1)
    np.testing.assert_allclose(V, best, atol=1e-12)


def built(problem, **options):
    return RFExpress(problem.shape, rng=rng(), reward=machine_rewards(problem), **options)


@pytest.mark.parametrize("world", ["night-shift", "flappy-bird-budget/greedy"])
def test_it_passes_what_every_learner_must(world):
    check_learner(lambda p: built(p, penalty=0.1), make(world))
    check_learner(lambda p: RFExpress(p.shape, rng=rng(), reward=None), make(world))


class FirstIndex(RFExpress):
    """Breaks ties as argmax does: the trap."""

    def best_advice(self):
        H, S, A = self._sizes
        advice = np.full((H, S), A, dtype=np.int16)
        self._fill_advice(np.zeros((H, S)), advice)
        return advice


def test_with_ties_broken_by_the_lowest_index_it_plays_one_policy_for_ever():
    # The named trap (BASELINES 4.3): all W are at the cap, so nothing but ties decides.
    problem = make("flappy-bird-budget/greedy")
    tried, gaps = {}, {}
    for kind in (RFExpress, FirstIndex):
        learner = kind(problem.shape, rng=rng(), reward=machine_rewards(problem))
        *_, last = counsel.learn(
            learner, counsel.Simulator(problem), episodes=3000, every=10, rng=rng(1)
        )
        tried[kind], gaps[kind] = (learner.state()["_visits"] > 0).sum(), last.value_gap
    assert tried[FirstIndex] < 0.25 * tried[RFExpress]
    assert gaps[RFExpress] < 0.01
    assert gaps[FirstIndex] > 0.5


def test_the_stopping_rule_fires_and_what_it_promises_holds():
    mdp = counsel.MDP([[0, 1], [0, 1]], [[0.0, 0.3], [0.6, 1.0]], horizon=2)
    problem = counsel.AdviceProblem(mdp, counsel.Human([[0.7, 0.3], [0.3, 0.7]], 0.9))
    learner = built(problem, epsilon=0.5, scale=1e-4)
    assert not learner.done
    assert learner.uncertainty == 2.0
    simulator, random = counsel.Simulator(problem), rng(2)
    while not learner.done:
        learner.explore(simulator, episodes=20, rng=random)
    W = learner.uncertainty
    assert W + 3 * math.e * math.sqrt(W) <= 0.25
    gap = counsel.solve(problem).value - counsel.evaluate(problem, learner.policy).value
    assert gap <= 0.5
    # In cents the rule fires at the same time.
    cents = counsel.AdviceProblem(mdp.paying(100 * mdp.reward[0]), problem.human)
    other = built(cents, epsilon=50.0, scale=1e-4)
    simulator, random = counsel.Simulator(cents), rng(2)
    while not other.done:
        other.explore(simulator, episodes=20, rng=random)
    assert other.episode == learner.episode


def test_without_an_epsilon_it_never_stops_of_itself():
    problem = make("night-shift")
    learner = built(problem)
    learner.explore(counsel.Simulator(problem), episodes=10, rng=rng())
    assert not learner.done
    with pytest.raises(counsel.CounselError, match="epsilon is 0"):
        built(problem, epsilon=0.0)
