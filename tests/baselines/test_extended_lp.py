"""The extended linear programme against its dual, by hand and by extended value iteration."""

import numpy as np
import pytest
import scipy.optimize
from numpy.random import default_rng

import counsel
from counsel.baselines._confidence_set_kernels import (
    fill_intervals,
    narrow_interval,
    plan_extended,
)
from counsel.baselines.extended_lp import Flows, solve_extended
from tests.support.boxes import box_of
from tests.support.each import each, each_seed

# The extended programme (T-C3, T-C4).


def groups_of(low, high, reward, start):
    """All rows and flows of dense intervals [h, s, b, t]."""
    H, S, B, _ = low.shape
    step, state, advice = np.indices((H, S, B)).reshape(3, -1)
    ends = np.where(np.repeat(step, S) == H - 1, 0.0, np.nan)
    return Flows(
        step,
        state,
        advice,
        np.broadcast_to(reward, (H, S, B)).reshape(-1),
        (advice < B - 1).astype(float),
        np.arange(step.size + 1) * S,
        np.tile(np.arange(S), step.size),
        low.reshape(-1),
        high.reshape(-1),
        ends,
    ), start


def solved(low, high, reward, start, budget):
    _H, S, B, _ = low.shape
    groups, start = groups_of(low, high, reward, start)
    return solve_extended(groups, start, n_states=S, defer=B - 1, budget=budget)


def toy(width):
    """s0 leads to good or bad; advice makes good likelier; good pays 1 at the second step."""
    p = np.zeros((2, 3, 2, 3))
    p[0, 0, 0], p[0, 0, 1] = (0, 0.9, 0.1), (0, 0.5, 0.5)
    p[0, 1, :, 1] = p[0, 2, :, 2] = p[1, :, :, 0] = 1.0
    low, high = p.copy(), p.copy()
    low[0, 0, :, 1:] -= width
    high[0, 0, :, 1:] += width
    reward = np.zeros((2, 3, 2))
    reward[1, 1] = 1.0
    return low, high, reward, np.array([1.0, 0.0, 0.0])


@each(
    ("width", "budget", "value"),
    [(0, 0, 0.5), (0, 0.25, 0.6), (0, 0.5, 0.7), (0, 1, 0.9), (0, 9, 0.9), (0.05, 0.5, 0.75)],
)
def test_the_toy_by_hand(width, budget, value):
    found = solved(*toy(width), budget)
    assert found.value == pytest.approx(value, abs=1e-9)
    assert found.x[0] == pytest.approx(min(budget, 1.0), abs=1e-9)
    if budget == 0.5:
        assert found.price == pytest.approx(0.4, abs=1e-9)


def random_boxes(seed):
    random = default_rng(seed)
    H, S, B = int(random.integers(1, 5)), int(random.integers(2, 5)), int(random.integers(2, 4))
    p = random.dirichlet(np.full(S, 0.6), (H, S, B))
    n = random.integers(0, 10 ** int(random.integers(1, 5)), (H, S, B))
    counts = random.multinomial(n, p)
    share = counts / np.maximum(n, 1)[..., None]
    log = random.uniform(0.5, 8)
    low, high = np.empty(p.size), np.empty(p.size)
    times = np.repeat(n.reshape(-1), S).astype(float)
    fill_intervals(share.reshape(-1), times, log, low, high)
    reward, start = random.random((H, S, B)), random.dirichlet(np.ones(S))
    return p, counts, low.reshape(p.shape), high.reshape(p.shape), reward, start, log


def extended_values(low, high, reward, cost):
    """Extended value iteration at a price, slowly: the inner maxima of a step by scipy's linprog.

    They are independent of each other, so the maximum of their sum is the maximum of each.
    """
    H, S, B, _ = low.shape
    V = np.zeros(S)
    for h in reversed(range(H)):
        inner = scipy.optimize.linprog(
            np.tile(-V, S * B),
            A_eq=np.kron(np.eye(S * B), np.ones(S)),
            b_eq=np.ones(S * B),
            bounds=np.stack((low[h].reshape(-1), high[h].reshape(-1)), axis=1),
        )
        ahead = inner.x.reshape(S, B, S) @ V
        V = (reward[h] - cost * (np.arange(B) < B - 1) + ahead).max(axis=1)
    return V


@each_seed(range(12))
def test_without_a_budget_the_programme_is_extended_value_iteration(seed):
    _, _, low, high, reward, start, _ = random_boxes(seed)
    found = solved(low, high, reward, start, None)
    assert found.value == pytest.approx(start @ extended_values(low, high, reward, 0.0), abs=1e-7)


@each_seed(range(30))
def test_the_compiled_extended_value_iteration_is_the_slow_one(seed):
    _, counts, _, _, reward, _, log = random_boxes(seed)
    H, S, _B, _ = counts.shape
    n = counts.sum(axis=3)
    low, high = np.empty(counts.shape), np.empty(counts.shape)
    for index in np.ndindex(*counts.shape):
        times = float(n[index[:3]])
        low[index], high[index] = narrow_interval(counts[index] / max(times, 1.0), times, log)
    V = np.empty((H + 1, S))
    none = np.zeros(0, np.int64)
    everything = np.arange(S + 1) * S, np.tile(np.arange(S), S)
    slow = extended_values(low, high, reward, 0.0)
    for follows in ((none, none), everything):
        plan_extended(
            box_of(counts, reward), log, *follows, np.zeros((H, S)), np.zeros((H, S), np.int16), V
        )
        np.testing.assert_allclose(V[0], slow, atol=1e-9)


@pytest.mark.slow
@each_seed(range(8))
def test_the_programme_equals_its_dual(seed):
    # max within a budget D = min over prices c ≥ 0 of (extended values at c) + c D.
    _, _, low, high, reward, start, _ = random_boxes(seed)
    budget = default_rng(seed).uniform(0.1, 1.5)
    found = solved(low, high, reward, start, budget)

    def dual(price):
        return start @ extended_values(low, high, reward, price) + price * budget

    least = scipy.optimize.minimize_scalar(
        dual, bounds=(0.0, 5.0), method="bounded", options={"xatol": 1e-7}
    )
    assert found.value == pytest.approx(min(least.fun, dual(0.0)), abs=1e-5)
    assert dual(found.price) == pytest.approx(found.value, abs=1e-6)


@each_seed(range(25))
def test_zero_width_is_the_plug_in_and_wider_boxes_promise_more(seed):
    p, _, low, high, reward, start, _ = random_boxes(seed)
    H, S, B, _ = p.shape
    # The same world for our exact planner: actions are the advice, and, last, to be left alone.
    alone = np.zeros((S, B))
    alone[:, -1] = 1.0
    mdp = counsel.MDP(p, reward, horizon=H, start=start)
    problem = counsel.AdviceProblem(mdp, counsel.Human(alone, 1.0))
    inside = ((low <= p) & (p <= high)).all()
    last = -np.inf
    for budget in (0.0, 0.3, 0.8, 1.7, None):
        plug_in = solved(p, p, reward, start, budget)
        best = (
            counsel.solve(problem, budget=budget) if budget is not None else counsel.solve(problem)
        )
        assert plug_in.value == pytest.approx(best.value, abs=1e-7)
        found = solved(low, high, reward, start, budget)
        assert found.value >= last - 1e-7
        last = found.value
        if inside:
            assert found.value >= best.value - 1e-7
        if budget is not None:
            assert found.advice_count <= budget + 1e-7
