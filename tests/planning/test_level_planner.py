"""Plans for people with a memory: equal to an oracle that was written from the formulas alone."""

import os
from dataclasses import replace

import numba
import numpy as np
import pytest

import counsel
from counsel.planning import _backward_kernels, _level_kernels, level_planner, planners
from counsel.planning.reference_policies import never_advise
from tests.support import memory_oracle as o
from tests.support.drawn_memories import COSTS, LIFTS, MEMORIES, draw
from tests.support.each import each, each_seed, each_seed_up_to
from tests.support.memory_criticality_oracle import cheapest_lines
from tests.support.memory_model import action_probabilities, choices, price_of
from tests.support.problems import adapt_memory, without_slips

SMALL = {"H": 3, "S": 2, "A": 3}
"""Sizes of problems of which the quick tests solve hundreds."""

PENALTIES = (0.0, 0.1, 0.7)

KINDS = [
    *({"memory": memory} for memory in MEMORIES),
    *({"lifts": lifts} for lifts in LIFTS),
    *({"costs": costs} for costs in COSTS),
    *({name: True} for name in ("masks", "required", "negative", "certain", "coarse")),
    *({"stationary": is_stationary} for is_stationary in (True, False)),
]
"""What a drawn problem is certain to have; all else is drawn."""


def close(x, y, tolerance=1e-9):
    np.testing.assert_allclose(x, y, rtol=0, atol=tolerance)


def outcome_of(evaluation):
    return evaluation.value, evaluation.advice_count, evaluation.advice_cost


def random_policy(P, rng, *, levels=True):
    """Draw a policy [m, h, s, advice] with certain and random cells; ``levels`` may be False."""
    table = np.zeros((P.M, P.H, P.S, P.A + 1))
    for m, h, s in np.ndindex(table.shape[:3]):
        if m and not levels:
            table[m, h, s] = table[0, h, s]
            continue
        possible = choices(P, h, s)
        picked = rng.choice(possible, size=rng.integers(1, len(possible) + 1), replace=False)
        table[m, h, s, picked] = rng.dirichlet(np.ones(len(picked)))
    return table


# ------------------------------------------------------------------------------- penalties


def check_penalties(P):
    """Values and advice in every cell, and value, count and cost from the start."""
    problem, masks = adapt_memory(P)
    for penalty in PENALTIES:
        plan = counsel.solve(problem, penalty=penalty, **masks)
        V, advice, W, _ = o.plan_full(P, penalty)
        close(plan.values.swapaxes(0, 1), V)
        np.testing.assert_array_equal(plan.policy.advice.swapaxes(0, 1), advice)
        expected = o.evaluate(P, o.as_policy(P, advice))
        close((plan.value, plan.advice_count, plan.advice_cost), expected)
        close(plan.advice_cost, o.start_mean(P, W[0]))
        close(plan.net_value, o.start_mean(P, V[0]))
        close(plan.penalised_value, plan.net_value)


@each_seed(range(40))
def test_values_and_advice_equal_the_oracle_at_every_penalty_with_its_ties(seed):
    check_penalties(draw(seed, **SMALL))


@each("kind", KINDS)
@each_seed(range(2))
def test_every_kind_of_problem_equals_the_oracle(seed, kind):
    check_penalties(draw(1000 + seed, **SMALL, **kind))


@each_seed_up_to(200, 2000)
def test_thousands_of_larger_problems_equal_the_oracle(seed):
    check_penalties(draw(seed))


@each_seed(range(30))
def test_a_penalty_for_each_step_is_charged_at_that_step(seed):
    P = draw(seed, **SMALL)
    problem, masks = adapt_memory(P)
    penalty_h = np.random.default_rng(seed).random(P.H)
    plan = counsel.solve(problem, penalty=penalty_h, **masks)
    V, _ = o.plan(replace(P, cost=P.cost * penalty_h[:, None, None]), 1.0)
    close(plan.values.swapaxes(0, 1), V)
    close(plan.net_value, o.start_mean(P, V[0]))
    expected = o.evaluate(P, plan.policy.probabilities())
    close((plan.value, plan.advice_count, plan.advice_cost), expected)


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
@each("planning_kernel", [_level_kernels.plan_back_levels, _backward_kernels.plan_back])
def test_a_penalty_for_each_step_compiles_nothing_anew(planning_kernel):
    """Found by use: a read-only table of penalties was another type, seconds to compile."""
    problems = (adapt_memory(draw(1, **SMALL))[0], counsel.make("night-shift"))
    for problem in problems:
        counsel.solve(problem, penalty=0.1)
    compiled = len(planning_kernel.signatures)
    for problem in problems:
        counsel.solve(problem, penalty=np.full(problem.horizon, 0.1))
    assert len(planning_kernel.signatures) == compiled > 0


@each_seed(range(20))
def test_a_level_that_nothing_moves_was_planned_as_if_it_were_the_first_level(seed):
    """Every row of every matrix was equal: a mood of the day, drawn whatever is said and done."""
    P = draw(seed, **SMALL, memory="random", M=3, lifts="levels", costs="one")
    mood = np.random.default_rng(seed).dirichlet(np.ones(P.M))
    moods = np.tile(mood if seed % 2 else np.eye(P.M)[seed % P.M], (P.M, 1))
    P = replace(P, K0=moods, Kplus=moods, Kminus=moods)
    check_penalties(P)
    check_hard(P, (2,))


# ------------------------------------------------------------------------------ evaluation


def check_evaluation(P, seed):
    problem, _ = adapt_memory(P)
    rng = np.random.default_rng(seed)
    by_level = random_policy(P, rng)
    policy = counsel.Policy.from_probabilities(by_level, levels=P.M)
    evaluation = counsel.evaluate(problem, policy)
    close(outcome_of(evaluation), o.evaluate(P, by_level))
    close(evaluation.level_occupancy.sum(axis=(1, 2)), 1.0, 1e-12)
    close(evaluation.reward.sum(), evaluation.value, 1e-12)
    blind = random_policy(P, rng, levels=False)
    evaluation = counsel.evaluate(problem, counsel.Policy.from_probabilities(blind[0]))
    close(outcome_of(evaluation), o.evaluate(P, blind))


@each_seed(range(60))
def test_any_policy_with_levels_or_blind_to_them_is_evaluated_exactly(seed):
    check_evaluation(draw(seed, **SMALL), seed)


@each_seed_up_to(100, 1000)
def test_policies_of_larger_problems_are_evaluated_exactly(seed):
    check_evaluation(draw(seed), seed)


@each_seed(range(40))
def test_any_policy_with_a_hard_budget_and_levels_is_evaluated_exactly(seed):
    P = draw(seed, **SMALL, costs="whole" if seed % 2 else "one", required=False)
    problem, _ = adapt_memory(P)
    rng, budget = np.random.default_rng(seed), 3
    advice = np.empty((budget + 1, P.M, P.H, P.S), dtype=int)
    for k, m, h, s in np.ndindex(advice.shape):
        affordable = [c for c in choices(P, h, s) if price_of(P, h, s, c) <= k]
        advice[k, m, h, s] = rng.choice(affordable)
    policy = counsel.Policy(advice, n_actions=P.A, levels=P.M)
    *expected, most = o.evaluate_hard(P, budget, advice)
    assert most <= budget
    close(outcome_of(counsel.evaluate(problem, policy)), expected)
    blind = counsel.Policy(advice[:, 0], n_actions=P.A)
    same = np.repeat(advice[:, :1], P.M, axis=1)
    *expected, _ = o.evaluate_hard(P, budget, same)
    close(outcome_of(counsel.evaluate(problem, blind)), expected)


# ------------------------------------------------------------------------- expected budgets


def check_budgets(P, shares=(0.35, 0.8)):
    problem, masks = adapt_memory(P)
    least = o.start_mean(P, cheapest_lines(P)[1][0])
    most = counsel.solve(problem, **masks).advice_cost
    for share in shares:
        budget = least + share * (most - least)
        plan = counsel.solve(problem, budget=budget, **masks)
        close(plan.value, o.budget_lp(P, budget).value, 1e-7)
        close(plan.advice_cost, budget)
        for policy in (plan.policy, plan.mixture):
            evaluation = counsel.evaluate(problem, policy)
            close(evaluation.value, plan.value)
            close(evaluation.advice_cost, budget)
        close(o.evaluate(P, plan.policy.probabilities())[::2], (plan.value, budget))
        close(counsel.evaluate(problem, plan.policy).advice_count, plan.advice_count)
        assert plan.policy.random.cell.size <= 1
        assert len(plan.mixture.policies) <= 2
        assert all(part.random.cell.size == 0 for part in plan.mixture.policies)
        # The price is a multiplier: the Lagrangian at it is the value, and least.
        V, _ = o.plan(P, plan.price)
        close(o.start_mean(P, V[0]) + plan.price * budget, plan.value, 1e-8)
        close(plan.values.swapaxes(0, 1), V)
    if least > 1e-6:
        with pytest.raises(counsel.CounselError, match="but the required advice takes"):
            counsel.solve(problem, budget=0.9 * least, **masks)


@each_seed(range(18))
def test_a_budget_equals_the_occupancy_lp_on_states_and_levels(seed):
    check_budgets(draw(seed, **SMALL))


@each_seed_up_to(60, 600)
def test_budgets_of_larger_problems_equal_the_occupancy_lp(seed):
    check_budgets(draw(seed), shares=(0.1, 0.5, 0.9, 1.0))


@each_seed(range(5))
def test_every_vertex_and_every_edge_of_the_frontier_is_optimal(seed):
    P = draw(seed, **SMALL)
    problem, masks = adapt_memory(P)
    front = counsel.frontier(problem, **masks)
    assert front.complete
    cost = np.array([vertex.advice_cost for vertex in front.vertices])
    value = np.array([vertex.value for vertex in front.vertices])
    budgets = np.concatenate((cost[1:], (cost[1:] + cost[:-1]) / 2))
    values, _, _ = o.frontier_points(P, budgets + 1e-10)
    close(np.interp(budgets, cost, value), values, 1e-7)
    for vertex in front.vertices:
        evaluation = counsel.evaluate(problem, vertex.policy)
        close(outcome_of(evaluation), (vertex.value, vertex.advice_count, vertex.advice_cost))
        assert vertex.policy.levels == P.M
    if len(cost) > 1:
        middle = float(budgets[-1])
        plan = counsel.solve(problem, budget=middle, **masks)
        close(front.at_budget(middle).value, plan.value)
        close(
            front.at_penalty(0.1).net_value, counsel.solve(problem, penalty=0.1, **masks).net_value
        )


# ------------------------------------------------------------------------------ hard budgets


def check_hard(P, budgets):
    P = without_slips(P)
    problem, masks = adapt_memory(P)
    for budget in budgets:
        expected = o.hard_budget(P, budget)
        if expected.value == -np.inf:
            with pytest.raises(counsel.CounselError, match="an episode may require more than"):
                counsel.solve(problem, budget=budget, hard=True, **masks)
            continue
        plan = counsel.solve(problem, budget=budget, hard=True, **masks)
        K = plan.policy.budget + 1
        assert plan.policy.levels == P.M
        np.testing.assert_allclose(plan.values, expected.V[:K], rtol=0, atol=1e-9)
        feasible = expected.advice[:K] >= 0
        np.testing.assert_array_equal(plan.policy.advice[feasible], expected.advice[:K][feasible])
        close(plan.value, expected.value)
        *outcome, most = o.evaluate_hard(P, K - 1, plan.policy.advice)
        assert most <= budget
        close((plan.value, plan.advice_count, plan.advice_cost), outcome)
        close(outcome_of(counsel.evaluate(problem, plan.policy)), outcome)
        with_less = o.hard_budget(P, budget - 1).value if budget else -np.inf
        np.testing.assert_allclose(plan.price, expected.value - with_less, rtol=0, atol=1e-9)


@each_seed(range(20))
def test_a_hard_budget_with_a_memory_equals_the_oracle_and_no_path_overspends(seed):
    costs = "whole" if seed % 2 else "one"
    check_hard(draw(seed, H=3, S=2, A=2, costs=costs), (0, 1, 3))


@each_seed_up_to(100, 1000)
def test_hard_budgets_of_larger_problems_equal_the_oracle(seed):
    costs = "whole" if seed % 2 else "one"
    check_hard(draw(seed, costs=costs), (seed % 7,))


def test_advice_that_surely_repels_is_relied_on_despite_rounding():
    # On level 2, advice 0 is never matched, but its law rounds to 1e-16. A match would lead to
    # required advice that could not be paid for.
    P = draw(40606, costs="one")
    assert 0.0 < action_probabilities(P, 2, 0, 1, 0)[0] < 1e-15
    check_hard(P, (3,))
    problem, masks = adapt_memory(P)
    plan = counsel.solve(problem, budget=3, hard=True, **masks)
    assert plan.policy.at(0, 1, pieces_left=1, level=2) == {0: 1.0}
    assert plan.values[1, 2, 0, 1] == pytest.approx(1.1155394708683926, abs=1e-12)


@each_seed(range(10))
def test_a_hard_budget_beyond_the_steps_is_no_limit(seed):
    P = draw(seed, **SMALL, costs="one")
    problem, masks = adapt_memory(P)
    free = counsel.solve(problem, **masks)
    plan = counsel.solve(problem, budget=P.H + 2, hard=True, **masks)
    assert (plan.policy.budget, plan.price) == (P.H, 0.0)
    close((plan.value, plan.advice_cost), (free.value, free.advice_cost))


# ---------------------------------------------------------------------- smaller problems inside


def with_copies(P, copies):
    """Return the problem with several states that are alike in place of each."""
    S = P.S
    source = np.tile(np.arange(S), copies)

    def spread(x, axis=1):
        return x.take(source, axis=axis)

    p = spread(P.p)[..., source] / copies
    return replace(
        P,
        p=p,
        r=spread(P.r),
        start=P.start[source] / copies,
        allowed=spread(P.allowed),
        habit=spread(P.habit),
        lift=spread(P.lift, 2),
        cost=spread(P.cost),
        forbidden=spread(P.forbidden),
        required=spread(P.required),
    )


@each_seed(range(8))
def test_states_that_are_alike_have_the_plan_of_one(seed):
    P = draw(seed, **SMALL, stationary=True)
    many = with_copies(P, 4)
    problem, masks = adapt_memory(many)
    plan = counsel.solve(problem, penalty=0.1, **masks)
    planner = planners.planner_for(problem, plan.constraints)
    assert planner.part.start.size <= P.S
    V, advice = o.plan(P, 0.1)
    close(plan.values.swapaxes(0, 1), np.tile(V, 4))
    np.testing.assert_array_equal(plan.policy.advice.swapaxes(0, 1), np.tile(advice, 4))
    close(plan.value, counsel.evaluate(problem, plan.policy).value)
    small, masks = adapt_memory(P)
    critical = np.tile(counsel.criticality(small, **masks).lower, 4)
    np.testing.assert_allclose(
        counsel.criticality(problem, **adapt_memory(many)[1]).lower, critical, atol=1e-9
    )


def by_step(P, unreachable):
    """Return the problem on states (h, s), of which S can occur at a step, and unreachable ones."""
    H, S, A, M = P.H, P.S, P.A, P.M
    N = H * S + unreachable
    p, r = np.zeros((H, N, A, N)), np.ones((H, N, A))
    habit, cost = np.full((H, N, A), 1.0 / A), np.ones((H, N, A))
    lift, start = np.full((M, H, N, A), 0.5), np.zeros(N)
    allowed, forbidden = np.ones((H, N, A), dtype=bool), np.zeros((H, N, A), dtype=bool)
    required = np.zeros((H, N), dtype=bool)
    p[..., -1] = 1.0
    start[:S] = P.start
    for h in range(H):
        here = slice(h * S, (h + 1) * S)
        p[h, here] = 0.0
        then = slice((h + 1) * S, (h + 2) * S) if h + 1 < H else slice(0, S)
        p[h, here, :, then] = P.p[h]
        r[h, here], habit[h, here], cost[h, here] = P.r[h], P.habit[h], P.cost[h]
        lift[:, h, here], allowed[h, here] = P.lift[:, h], P.allowed[h]
        forbidden[h, here], required[h, here] = P.forbidden[h], P.required[h]
    return replace(
        P,
        p=p,
        r=r,
        start=start,
        allowed=allowed,
        habit=habit,
        lift=lift,
        cost=cost,
        forbidden=forbidden,
        required=required,
    )


@each_seed(range(8))
def test_where_few_cells_can_occur_only_these_are_planned_and_values_are_the_same(seed):
    P = draw(seed, **SMALL)
    wide = by_step(P, 12)
    problem, masks = adapt_memory(wide)
    plan = counsel.solve(problem, penalty=0.1, **masks)
    search = planners.planner_for(problem, plan.constraints, search=True)
    assert search.part.cells is not None
    V, advice, W, _ = o.plan_full(P, 0.1)
    close((plan.net_value, plan.advice_cost), (o.start_mean(P, V[0]), o.start_mean(P, W[0])))
    for h in range(P.H):
        here = slice(h * P.S, (h + 1) * P.S)
        close(plan.values[:, h, here], V[h])
        np.testing.assert_array_equal(plan.policy.advice[:, h, here], advice[h])
    budget = 0.5 * (
        o.start_mean(P, cheapest_lines(P)[1][0]) + counsel.solve(problem, **masks).advice_cost
    )
    found = counsel.solve(problem, budget=budget, **masks)
    close(found.value, o.budget_lp(P, budget).value, 1e-7)
    close(counsel.evaluate(problem, found.policy).advice_cost, budget)


# ----------------------------------------------------------------------------------- bad input


def large(levels, states, horizon):
    mdp = counsel.MDP(np.zeros((states, 2), dtype=int), np.zeros((states, 2)), horizon=horizon)
    habit = np.full((states, 2), 0.5)
    memory = counsel.Memory.pieces(levels - 1)
    return counsel.AdviceProblem(mdp, counsel.Human(habit, lift=0.5, memory=memory))


def test_a_plan_that_would_not_fit_in_memory_is_refused_with_its_sizes():
    problem = large(levels=300, states=1000, horizon=10_000)
    message = (
        r"a memory of 300 levels takes a plan of 300 levels × 10000 × 1000 cells, 45 GB; give a "
        "memory with fewer levels"
    )
    for plan in (
        lambda: counsel.solve(problem),
        lambda: counsel.solve(problem, budget=3),
        lambda: counsel.frontier(problem),
        lambda: counsel.criticality(problem),
    ):
        with pytest.raises(counsel.CounselError, match=message):
            plan()


@pytest.mark.slow
def test_an_evaluation_that_would_not_fit_in_memory_ended_in_a_memory_error():
    problem = large(levels=600, states=1000, horizon=10_000)
    with pytest.raises(counsel.CounselError) as fault:
        counsel.evaluate(problem, never_advise(problem))
    assert str(fault.value) == (
        "a memory of 600 levels takes an evaluation of 600 levels × 10000 × 1000 cells, 45 GB; "
        "give a memory with fewer levels"
    )


def test_a_hard_budget_that_would_not_fit_with_the_memory_is_refused_with_its_sizes():
    problem = large(levels=50, states=1000, horizon=1000)
    message = "takes a plan of 101 budgets × 50 levels × 1000 × 1000 cells, 75 GB"
    with pytest.raises(counsel.CounselError, match=message):
        counsel.solve(problem, budget=100, hard=True)


def test_a_plan_that_exceeds_the_memory_of_the_machine_was_once_tried(monkeypatch):
    """The limit was 32 GB on every machine."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert min(machine, 2**35) == level_planner.MOST_BYTES
    monkeypatch.setattr(level_planner, "MOST_BYTES", 8.0 * 4 * 5 * (2 * 3 + 5) - 1.0)
    with pytest.raises(counsel.CounselError, match="a plan of 4 levels × 3 × 5 cells"):
        counsel.solve(large(levels=4, states=5, horizon=3))


@pytest.mark.parametrize("kind", ["pieces", "refusals"])
def test_cells_where_nothing_is_said_any_more_need_no_second_value(kind):
    """Where no advice changes anything, silence says least, and the plan is the oracle's."""
    mdp = counsel.MDP([[0, 0], [0, 1]], [[0.0, 0.0], [0.0, 1.0]], horizon=4)
    memory = getattr(counsel.Memory, kind)(2)
    person = counsel.Human([[0.5, 0.5], [0.7, 0.3]], lift=0.6, memory=memory)
    plan = counsel.solve(counsel.AdviceProblem(mdp, person))
    assert (plan.policy.advice[:, :, 0] == 2).all()  # state 0 keeps everybody, whatever is said
    assert (plan.policy.advice[:, :, 1] == 1).all()


def test_a_policy_is_asked_for_a_level_it_has():
    problem, masks = adapt_memory(draw(0, **SMALL, memory="pieces", M=2))
    plan = counsel.solve(problem, penalty=0.1, **masks)
    for level in (3, -1, 1.5, "tired"):
        with pytest.raises(counsel.CounselError, match="level"):
            plan.policy.at(0, 0, level=level)
        with pytest.raises(counsel.CounselError, match="level"):
            problem.law(0, 0, 0, level=level)
