"""The oracles of memories checked against each other and against enumeration."""

import itertools

import numpy as np
import pytest

from tests.support import memory_oracle as o
from tests.support.drawn_memories import draw
from tests.support.each import each_seed
from tests.support.memory_criticality_oracle import breakpoints, cheapest_lines
from tests.support.memory_model import (
    action_probabilities,
    choices,
    dose,
    join,
    level_row,
    pieces,
    price_of,
    refusals,
    since,
)

SMALL = {"H": 2, "S": 2, "A": 2, "M": 2, "memory": "random", "coarse": False}


def close(x, y, tolerance=1e-9):
    np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


def episodes(P, choose):
    """Return probability, reward, pieces and cost of every possible episode.

    ``choose`` returns a choice for a step, a state, a level and what was said and done before.
    """

    def go_on(h, s, m, probability, reward, count, cost, history):
        if probability == 0:
            return
        if h == P.H:
            yield probability, reward, count, cost
            return
        c = choose(h, s, m, history)
        habit = P.habit[h, s]
        for a in range(P.A):
            if c == P.A:
                taken, K = habit[a], P.K0
            else:
                lift = P.lift[m, h, s, c] if habit[c] < 1 else 0
                taken = (1 - lift) * habit[a] + (lift if a == c else 0)
                K = P.Kplus if a == c else P.Kminus
            for t, n in np.ndindex(P.S, P.M):
                yield from go_on(
                    h + 1,
                    t,
                    n,
                    probability * max(taken, 0.0) * P.p[h, s, a, t] * K[m, n],
                    reward + P.r[h, s, a],
                    count + (c < P.A),
                    cost + price_of(P, h, s, c),
                    (*history, (s, m, c, a)),
                )

    starts = [go_on(0, s, P.start_level, P.start[s], 0, 0, 0, ()) for s in range(P.S)]
    return np.array(list(itertools.chain(*starts)))


def test_the_levels_of_named_memories():
    for memory in (
        pieces(3),
        since(3),
        dose(0.7, 5),
        dose(0.0, 2),
        refusals(2),
        join(pieces(2), dose(0.5, 4)),
    ):
        for K in (memory.K0, memory.Kplus, memory.Kminus):
            assert (K >= 0).all()
            close(K.sum(axis=1), 1)
    for decay, levels in ((0.7, 5), (0.0, 3), (0.5, 4), (0.9, 11)):
        memory, grid = dose(decay, levels), np.linspace(0, 1 / (1 - decay), levels)
        close(memory.K0 @ grid, decay * grid)
        close(memory.Kplus @ grid, decay * grid + 1)
        close(memory.Kminus, memory.Kplus)
        assert (np.count_nonzero(memory.K0, axis=1) <= 2).all()
    one, other = since(2), refusals(1)
    both = join(one, other)
    close(both.Kminus, np.kron(one.Kminus, other.Kminus))
    assert both.start == 2 * 2 + 0
    assert (one.start, one.K0[0, 1], one.Kplus[2, 0]) == (2, 1, 1)


def test_a_seed_draws_one_problem():
    for seed in (3, 4):
        one, other = draw(seed), draw(seed)
        for name in ("p", "r", "lift", "habit", "K0", "cost", "forbidden", "required"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def check_plan(P):
    """Plans are worth what evaluation says, and a gain is what advice adds to silence."""
    for penalty in (0.0, 0.1, 0.7):
        V, advice, W, Q = o.plan_full(P, penalty)
        value, _, cost = o.evaluate(P, o.as_policy(P, advice))
        close(value - penalty * cost, o.start_mean(P, V[0]))
        close(cost, o.start_mean(P, W[0]))
        *_, gain = o.terms(P, V)
        net = gain - penalty * P.cost[:, None]
        silent = np.broadcast_to(Q[..., -1:], net.shape)
        possible = np.isfinite(Q[..., :-1]) & np.isfinite(silent)
        close(Q[..., :-1][possible] - silent[possible], net[possible])


def check_budgets(P):
    """The LP equals the least of the Lagrangian, and its policy is worth what it says."""
    close(o.budget_lp(P, 1e6).value, o.start_mean(P, o.plan(P)[0][0]), 1e-8)
    penalties = np.array(breakpoints(P))
    nets = np.array([o.start_mean(P, o.plan(P, penalty)[0][0]) for penalty in penalties])
    least = o.start_mean(P, cheapest_lines(P)[1][0])
    for budget in (least, least + 0.2, least + 0.9):
        best = o.budget_lp(P, budget + 1e-9)
        dual = (nets + penalties * (budget + 1e-9)).min()  # the least is at a breakpoint
        close(best.value, dual, 1e-7)
        if best.price < 1e6 and budget > least:
            at_price = o.start_mean(P, o.plan(P, best.price)[0][0])
            close(at_price + best.price * budget, dual, 1e-6)
        value, _, cost = o.evaluate(P, best.policy)
        close(value, best.value, 1e-7)
        assert cost <= budget + 1e-7
    if least > 0.05:
        assert o.budget_lp(P, least - 0.02).value == -np.inf


@each_seed(range(10))
def test_plans_evaluations_and_gains_agree(seed):
    check_plan(draw(seed, H=3, S=2))


@each_seed(range(2))
def test_the_lp_is_the_dual_of_the_penalty(seed):
    check_budgets(draw(seed, H=2, S=2, A=2, M=2))


@pytest.mark.slow
@each_seed(range(40))
def test_larger_plans_and_budgets_agree_as_well(seed):
    P = draw(seed)
    check_plan(P)
    check_budgets(P)


def check_all_policies(seed):
    """Compare plans and budgets with all deterministic policies of two steps."""
    P = draw(seed, **SMALL)
    cells = [(m, h, s) for h, m, s in np.ndindex(2, 2, 2) if h or m == P.start_level]
    outcomes = []
    for picked in itertools.product(*(choices(P, h, s) for m, h, s in cells)):
        policy = np.zeros((2, 2, 2, 3))
        policy[..., 2] = 1
        choice_at = dict(zip(cells, picked, strict=True))
        for cell, c in choice_at.items():
            policy[cell] = np.eye(3)[c]
        outcome = o.evaluate(P, policy)
        outcomes.append((outcome[0], outcome[2]))
        if len(outcomes) % 100 == 1:
            every = episodes(P, lambda h, s, m, _, at=choice_at: at[m, h, s])
            close(every[:, 0].sum(), 1)
            close(every[:, 0] @ every[:, 1:], outcome)
    value, cost = np.array(outcomes).T
    for penalty in (0, 0.2, 0.5, 2.0):
        close((value - penalty * cost).max(), o.start_mean(P, o.plan(P, penalty)[0][0]))
    for budget in (cost.min() + 0.1, cost.min() + 0.5):
        low, high = cost <= budget, cost > budget
        best = value[low].max()
        if high.any():
            share = (budget - cost[low, None]) / (cost[None, high] - cost[low, None])
            mixed = value[low, None] * (1 - share) + value[None, high] * share
            best = max(best, mixed.max())
        close(o.budget_lp(P, budget).value, best, 1e-7)


@pytest.mark.slow
@each_seed(range(6))
def test_no_policy_of_two_steps_is_better(seed):
    check_all_policies(seed)


@each_seed(range(10))
def test_no_rule_with_a_hard_budget_is_better_even_if_it_knows_the_whole_past(seed):
    P = draw(seed, **SMALL | {"costs": "whole" if seed % 2 else "one"})

    def last(t, n, left):
        worth = [
            float(action_probabilities(P, n, 1, t, c) @ P.r[1, t])
            for c in choices(P, 1, t)
            if price_of(P, 1, t, c) <= left
        ]
        return max(worth, default=-np.inf)

    def first(s, c, left):
        value = 0.0
        taken = action_probabilities(P, P.start_level, 0, s, c)
        for a, t, n in np.ndindex(2, 2, 2):
            chance = taken[a] * P.p[0, s, a, t] * level_row(P, P.start_level, c, a)[n]
            if chance > 0:
                value += chance * (P.r[0, s, a] + last(t, n, left))
        return value

    for budget in range(5):
        total = 0.0
        for s in np.flatnonzero(P.start):
            left = {c: budget - price_of(P, 0, s, c) for c in choices(P, 0, s)}
            worth = [first(s, c, left[c]) for c in left if left[c] >= 0]
            total += P.start[s] * max(worth, default=-np.inf)
        close(o.hard_budget(P, budget).value, total)


def check_hard(P, *, enumerate_episodes):
    """No episode overspends, more budget is worth no less, and a large one is no limit."""
    last = -np.inf
    for budget in (0, 1, 2, 4, 3 * P.H):
        hard = o.hard_budget(P, budget)
        assert hard.value >= last - 1e-9
        last = hard.value
        if hard.value == -np.inf:
            continue
        *outcome, most = o.evaluate_hard(P, budget, hard.advice)
        close(outcome[0], hard.value)
        assert most <= budget
        assert hard.value <= o.budget_lp(P, budget).value + 1e-7
        if enumerate_episodes:

            def choose(h, s, m, history, budget=budget, hard=hard):
                spent = sum(price_of(P, i, past[0], past[2]) for i, past in enumerate(history))
                return hard.advice[int(budget - spent), m, h, s]

            every = episodes(P, choose)
            close(every[:, 0] @ every[:, 1:], outcome)
            assert every[:, 3].max() <= budget
    close(last, o.start_mean(P, o.plan(P)[0][0]))


@each_seed(range(4))
def test_a_hard_budget_is_kept_in_every_episode(seed):
    costs = "whole" if seed % 2 else "one"
    check_hard(draw(seed, **SMALL | {"costs": costs}), enumerate_episodes=True)


@pytest.mark.slow
@each_seed(range(20))
def test_a_hard_budget_is_kept_in_larger_problems(seed):
    costs = "whole" if seed % 2 else "one"
    check_hard(draw(seed, costs=costs), enumerate_episodes=False)
    check_hard(draw(seed, **SMALL | {"H": 3, "costs": "whole"}), enumerate_episodes=True)


@pytest.mark.slow
def test_simulated_episodes_have_the_evaluated_means():
    for seed in range(10):  # a statistical claim, for these seeds only
        P = draw(seed)
        policy = 0.5 * o.as_policy(P, o.plan(P, 0.05)[1])
        for m, h, s in np.ndindex(policy.shape[:3]):
            possible = choices(P, h, s)
            policy[m, h, s, possible] += 0.5 / len(possible)
        value, count, cost = o.evaluate(P, policy)
        sample = o.simulate(P, policy, 2000, np.random.default_rng(seed))
        assert abs(value - sample.value) <= 4 * sample.value_error + 1e-9
        assert abs(count - sample.pieces) <= 4 * sample.pieces_error + 1e-9
        assert abs(cost - sample.cost) <= 4 * sample.cost_error + 1e-9
