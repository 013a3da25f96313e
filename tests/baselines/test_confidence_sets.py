"""UCFH and UC-CFH: intervals, extended value iteration, the extended programme, and phases."""

import math

import numpy as np
import pytest

import counsel
from counsel.baselines import UCCFH, UCFH
from counsel.baselines._confidence_set_kernels import (
    fill_intervals,
    interval,
    narrow_interval,
)
from counsel.model.machine import machine_rewards
from tests.support.each import each_seed


def rng(seed=0):
    return np.random.default_rng(seed)


# The numbers of the constants (T-C1, T-C2).


def four_states(kind, **options):
    mdp = counsel.MDP([[0, 1], [1, 2], [2, 3], [3, 0]], [[0.0, 1.0]] + [[0.5, 0.5]] * 3, horizon=3)
    problem = counsel.AdviceProblem(mdp, counsel.Human(np.full((4, 2), 0.5), 0.8))
    support = np.eye(4, dtype=bool) | np.roll(np.eye(4, dtype=bool), 1, axis=1)
    return problem, kind(
        problem.shape,
        rng=rng(),
        reward=machine_rewards(problem),
        epsilon=1.0,
        delta=0.5,
        support=support,
        **options,
    )


def test_the_constants_by_hand():
    # T-C1 has A = 2 machine actions; here silence makes it 3, so U is larger by 3/2.
    extra = math.log(1.5)
    _, ucfh = four_states(UCFH)
    _, uc_cfh = four_states(UCCFH, budget=1.0)
    assert ucfh.sets.most_successors == 2
    assert ucfh.sets.log == pytest.approx(9.2651839 + extra, abs=1e-6)
    assert uc_cfh.sets.log == pytest.approx(8.8597188 + extra, abs=1e-6)
    assert uc_cfh.sets.m == pytest.approx(2 * ucfh.sets.m)
    assert uc_cfh.sets.least_visits == pytest.approx(uc_cfh.sets.m / 48)


def test_the_rule_of_the_paper_asks_for_nine_hundred_thousand_visits():
    # S = 35, A = 4, H = 5, C = 7, ε = 1, δ = 0.5 in BASELINES 3.6.
    mdp = counsel.MDP(np.arange(35)[:, None] * np.ones((1, 3), int), np.eye(35)[:, :3], horizon=5)
    problem = counsel.AdviceProblem(mdp, counsel.Human(np.full((35, 3), 1 / 3), 0.8))
    support = (np.arange(35)[None, :] - np.arange(35)[:, None]) % 35 < 7
    learner = UCFH(
        problem.shape, rng=rng(), reward=machine_rewards(problem), delta=0.5, support=support
    )
    assert learner.sets.m == pytest.approx(6.37e8, rel=0.01)
    assert learner.sets.least_visits == pytest.approx(9.1e5, rel=0.01)
    assert learner.sets.log - math.log(6 / 4) == pytest.approx(14.1, abs=0.05)


def test_the_intervals_by_hand():
    log = 8.8597188
    for n, low, high in (
        (20, (0.0, 0.22937), (0.77063, 1.0)),
        (0, (0, 0), (1, 1)),
        (1, (0, 0), (1, 1)),
    ):
        ends = [interval(p, float(n), log) for p in (0.3, 0.7)]
        np.testing.assert_allclose(ends, np.transpose((low, high)), atol=1e-5)
    for n, width in ((2000, 0.047063), (20000, 0.014674)):
        np.testing.assert_allclose(
            interval(0.3, float(n), log), (0.3 - width, 0.3 + width), atol=1e-6
        )


def by_search(p, n, log):
    """The hull of all q within the three bounds, on a fine grid."""
    q = np.linspace(0, 1, 400_001)
    ok = np.abs(q - p) <= math.sqrt(log / (2 * n))
    if n > 1:
        ok &= np.abs(q - p) <= math.sqrt(2 * p * (1 - p) * log / n) + 7 * log / (3 * (n - 1))
        ok &= np.abs(np.sqrt(q * (1 - q)) - math.sqrt(p * (1 - p))) <= math.sqrt(2 * log / (n - 1))
    return q[ok].min(), q[ok].max()


@each_seed(range(60))
def test_the_third_bound_narrows_to_the_hull_of_what_all_three_allow(seed):
    random = rng(seed)
    n = int(10 ** random.uniform(0, 6))
    p = random.integers(0, n + 1) / n
    log = random.uniform(0.1, 12)
    # The grid has steps of 2.5e-6; √(q (1 − q)) is steep at 0 and 1, so one step of slack.
    np.testing.assert_allclose(narrow_interval(p, float(n), log), by_search(p, n, log), atol=1e-5)


def test_all_intervals_hold_at_once_as_often_as_promised():
    # 1 − δ over the whole run is what is promised for δ₁ and phases; here one look at 200 worlds.
    S, B, H, delta, held = 4, 3, 3, 0.5, 0
    log = math.log(4 * 2 * S * B * H * math.log2(4 * S * S * H * H) * S / delta)
    for seed in range(200):
        random = rng(seed)
        n = random.integers(1, 2000, (H, S, B))
        p = random.dirichlet(np.full(S, 0.5), (H, S, B))
        counts = random.multinomial(n, p)
        low, high = np.empty(p.size), np.empty(p.size)
        times = np.repeat(n.reshape(-1), S).astype(float)
        fill_intervals(counts.reshape(-1) / times, times, log, low, high)
        held += bool(((low <= p.reshape(-1)) & (p.reshape(-1) <= high)).all())
    assert held >= 200 * (1 - delta)
    assert held >= 198  # far more: the union bound is wide
