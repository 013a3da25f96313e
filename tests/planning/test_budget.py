"""An expected budget: exact, within the budget, random in one cell at most, and its price."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import counsel
from tests.support import examples, oracles
from tests.support.each import each, each_seed
from tests.support.problems import adapt
from tests.support.strategies import case, problems, rules, tiny, tiny_hull

SEEDS = range(40)


def budgets(top, least=0.0):
    """Zero, inside, at the top and beyond it; not only round numbers."""
    return [*np.linspace(least, top, 7), top + 0.5]


def random_cells(policy):
    return policy.random.cell.size


# -------------------------------------------------------------------------------- the value


@each_seed(SEEDS)
def test_value_at_every_budget_is_the_brute_force_hull(seed):
    _, problem = tiny(seed)
    x, y = tiny_hull(seed)
    for budget in budgets(x[-1]):
        plan = counsel.solve(problem, budget=budget)
        assert plan.value == pytest.approx(oracles.best_budget(x, y, budget), abs=1e-9)


@each_seed(SEEDS)
def test_value_at_every_budget_is_the_occupancy_lp(seed):
    dense, problem = case(seed)
    for budget in budgets(counsel.solve(problem).advice_count):
        lp = oracles.occupancy_lp(*dense, budget=budget)
        assert counsel.solve(problem, budget=budget).value == pytest.approx(lp.value, abs=1e-7)


@each_seed(SEEDS)
def test_policy_and_mixture_reach_the_value_and_stay_within_the_budget(seed):
    dense, problem = case(seed)
    for budget in budgets(counsel.solve(problem).advice_count):
        plan = counsel.solve(problem, budget=budget)
        for policy in (plan.policy, plan.mixture):
            reached = counsel.evaluate(problem, policy)
            assert reached.value == pytest.approx(plan.value, abs=1e-9)
            assert reached.advice_count == pytest.approx(plan.advice_count, abs=1e-9)
            assert reached.advice_count <= budget + 1e-9
        table_hsb = plan.policy.probabilities()
        oracle = oracles.evaluate(*dense[:4], dense.start_s, table_hsb)
        assert oracle.value == pytest.approx(plan.value, abs=1e-9)
        assert oracle.pieces <= budget + 1e-9


@given(problems(), st.floats(0.0, 5.0))
def test_no_budget_is_ever_exceeded(dense, budget):
    problem = adapt(dense)
    plan = counsel.solve(problem, budget=budget)
    assert plan.advice_count <= budget + 1e-9
    assert counsel.evaluate(problem, plan.policy).advice_count <= budget + 1e-9
    assert counsel.evaluate(problem, plan.mixture).advice_count <= budget + 1e-9


@given(problems(), st.floats(0.0, 4.0), st.floats(0.0, 4.0))
def test_a_larger_budget_is_worth_at_least_as_much(dense, one, other):
    problem = adapt(dense)
    low, high = sorted((one, other))
    less, more = counsel.solve(problem, budget=low), counsel.solve(problem, budget=high)
    assert less.value <= more.value + 1e-10
    assert less.price >= more.price - 1e-9


@each("budget", [1e-300, 1e-12, 1e-6])
def test_a_minute_budget_is_worth_its_price(budget):
    problem = adapt(examples.silent_then_advised())
    plan = counsel.solve(problem, budget=budget)
    assert plan.value == pytest.approx(1.5 * budget, rel=1e-9)
    assert plan.price == pytest.approx(1.5)
    assert counsel.evaluate(problem, plan.policy).advice_count <= budget * (1 + 1e-9)


@each_seed(SEEDS)
def test_no_budget_means_silence(seed):
    dense, problem = case(seed)
    plan = counsel.solve(problem, budget=0)
    silent_hs = np.full(dense.r_hsa.shape[:2], problem.n_actions)
    silent = oracles.evaluate(
        *dense[:4], dense.start_s, oracles.stochastic(silent_hs, problem.n_actions)
    )
    assert plan.advice_count == 0.0
    assert plan.value == pytest.approx(silent.value, abs=1e-10)
    said = counsel.evaluate(problem, plan.policy)
    assert said.advice_count == 0.0


@each_seed(SEEDS)
def test_a_budget_beyond_the_top_is_no_limit_and_costs_nothing(seed):
    _, problem = case(seed)
    free = counsel.solve(problem)
    plan = counsel.solve(problem, budget=free.advice_count + 0.01)
    assert plan.price == 0.0
    assert plan.value == pytest.approx(free.value, abs=1e-10)
    assert plan.advice_count == pytest.approx(free.advice_count, abs=1e-10)
    assert len(plan.mixture.policies) == 1


def test_a_budget_averages_over_the_start_distribution():
    # Two starts: in the first a piece is worth 1, in the second 0.4. With half a piece on
    # average it all goes to the first, whose chance is 1/2.
    mdp = counsel.MDP(
        np.array([[0, 0], [1, 1]]), [[0.0, 1.0], [0.0, 0.4]], horizon=1, start=[0.5, 0.5]
    )
    problem = counsel.AdviceProblem(mdp, counsel.Human(np.eye(2)[[0, 0]], 1.0))
    plan = counsel.solve(problem, budget=0.5)
    assert (plan.value, plan.advice_count) == (0.5, 0.5)
    assert plan.policy.advice.tolist() == [[1, 2]]
    dearer = counsel.solve(problem, budget=0.75)
    assert dearer.value == pytest.approx(0.5 + 0.25 * 0.4)
    assert dearer.price == pytest.approx(0.4)
    assert dearer.policy.at(0, 1) == pytest.approx({1: 0.5, 2: 0.5})


# ---------------------------------------------------------------------- how random it is


@each_seed(SEEDS)
def test_at_most_one_cell_is_random(seed):
    _, problem = case(seed)
    for budget in budgets(counsel.solve(problem).advice_count):
        assert random_cells(counsel.solve(problem, budget=budget).policy) <= 1


@given(problems(most=(5, 3, 5)), st.floats(0.0, 3.0))
def test_at_most_one_cell_is_random_on_any_problem(dense, budget):
    policy = counsel.solve(adapt(dense), budget=budget).policy
    assert random_cells(policy) <= 1
    np.testing.assert_allclose(policy.probabilities().sum(axis=-1), 1.0, rtol=0, atol=1e-12)


@each_seed(SEEDS)
def test_the_mixture_draws_between_two_certain_policies_on_both_sides_of_the_budget(seed):
    _, problem = case(seed)
    top = counsel.solve(problem).advice_count
    for budget in budgets(top)[1:-2]:
        plan = counsel.solve(problem, budget=budget)
        assert all(random_cells(policy) == 0 for policy in plan.mixture.policies)
        assert sum(plan.mixture.weights) == pytest.approx(1.0, abs=1e-12)
        assert min(plan.mixture.weights) > 0.0
        counts = [counsel.evaluate(problem, p).advice_count for p in plan.mixture.policies]
        if len(counts) == 2:
            assert counts[0] <= budget + 1e-12 < counts[1] + 1e-12
            assert np.dot(counts, plan.mixture.weights) == pytest.approx(budget, abs=1e-10)
        else:
            assert counts[0] == pytest.approx(budget, abs=1e-10)


def test_half_a_piece_is_drawn_by_a_fair_coin():
    problem = adapt(examples.advice_repels(0.9))  # advice gains 0.4
    plan = counsel.solve(problem, budget=0.5)
    assert plan.policy.at(0, 0) == pytest.approx({0: 0.5, 2: 0.5})
    assert plan.mixture.weights == pytest.approx((0.5, 0.5))
    assert plan.value == pytest.approx(0.7)


# --------------------------------------------------------------------------------- the price


@each_seed(SEEDS)
def test_the_price_on_an_edge_is_its_slope(seed):
    _, problem = tiny(seed)
    x, y = tiny_hull(seed)
    for left in range(len(x) - 1):
        inside = (x[left] + x[left + 1]) / 2
        slope = (y[left + 1] - y[left]) / (x[left + 1] - x[left])
        assert counsel.solve(problem, budget=inside).price == pytest.approx(slope, abs=1e-9)


@each_seed(SEEDS)
def test_the_price_at_a_vertex_is_the_slope_to_its_right(seed):
    _, problem = tiny(seed)
    x, y = tiny_hull(seed)
    vertices = counsel.frontier(problem).vertices
    right = [*(np.diff(y) / np.diff(x)), 0.0]
    for vertex, slope in zip(vertices, right, strict=True):
        plan = counsel.solve(problem, budget=vertex.advice_count)
        assert plan.price == pytest.approx(slope, abs=1e-9)
        assert random_cells(plan.policy) == 0


def advised_by_chance(share, steps):
    """Return a problem whose vertices spend 0, share × steps and steps pieces.

    Each state is drawn anew at each step. Advice is worth 1/2 in one state, which has this share,
    and 1/12 in the other.
    """
    law = [1.0 - share, share]
    mdp = counsel.MDP(
        np.broadcast_to(law, (2, 2, 2)), [[0, 1 / 12], [0, 0.5]], horizon=steps, start=law
    )
    return counsel.AdviceProblem(mdp, counsel.Human([[1.0, 0.0]] * 2, adherence=1.0))


CHANCES = [(0.1, 30), (0.2, 15), (0.3, 10), (0.05, 60), (0.6, 5), (0.7, 10), (0.14, 50)]
"""Vertices that lie above, below and exactly at a whole number of pieces, by rounding."""


@each(("share", "steps"), CHANCES)
def test_the_price_at_a_vertex_does_not_depend_on_its_rounding(share, steps):
    # The vertex at 3.000000000000002 pieces had the price of the edge before it with D = 3: 0.5.
    problem, budget = advised_by_chance(share, steps), round(share * steps)
    front = counsel.frontier(problem)
    for solve in (partial(counsel.solve, problem), lambda *, budget: front.at_budget(budget)):
        for rounding in (-3e-13, -2e-16, 0.0, 2e-16, 3e-13):
            plan = solve(budget=budget * (1.0 + rounding))
            assert plan.price == pytest.approx(1 / 12, rel=1e-12)
            assert random_cells(plan.policy) == 0
            assert plan.advice_count == pytest.approx(budget, rel=1e-12)
        for beyond, price in ((-3e-12, 0.5), (3e-12, 1 / 12)):  # three times the tolerance
            plan = solve(budget=budget * (1.0 + beyond))
            assert plan.price == pytest.approx(price, rel=1e-12)
            assert plan.advice_count == pytest.approx(budget * (1.0 + beyond), rel=1e-14)
        assert solve(budget=steps * (1.0 - 3e-12)).price == pytest.approx(1 / 12, rel=1e-12)
        assert solve(budget=steps * (1.0 - 3e-13)).price == 0.0


def test_rounding_makes_vertices_above_and_below_their_true_count():
    # The test above would say little if every vertex were exact.
    spent = [counsel.frontier(advised_by_chance(*c)).vertices[1].advice_count for c in CHANCES]
    true = [round(share * steps) for share, steps in CHANCES]
    assert {np.sign(a - b) for a, b in zip(spent, true, strict=True)} == {-1.0, 0.0, 1.0}


@each_seed(range(20))
def test_the_price_lies_between_the_duals_of_the_lp_just_below_and_just_above(seed):
    dense, problem = case(seed)
    top = counsel.solve(problem).advice_count
    for budget in np.linspace(0.05, top + 0.1, 5):
        plan = counsel.solve(problem, budget=budget)
        below = oracles.occupancy_lp(*dense, budget=budget - 1e-5).price
        above = oracles.occupancy_lp(*dense, budget=budget + 1e-5).price
        assert above - 1e-6 <= plan.price <= below + 1e-6


def test_named_example_prices():
    problem = adapt(examples.silent_then_advised())  # (0, 0), (1, 3/2), (2, 2)
    price = {d: counsel.solve(problem, budget=d).price for d in (0, 0.5, 1, 1.5, 2, 3)}
    assert price == pytest.approx({0: 1.5, 0.5: 1.5, 1: 0.5, 1.5: 0.5, 2: 0.0, 3: 0.0})


@each_seed(SEEDS)
def test_values_are_those_at_the_price(seed):
    dense, problem = case(seed)
    plan = counsel.solve(problem, budget=0.6)
    np.testing.assert_allclose(
        plan.values, oracles.plan(*dense, penalty=plan.price).V_hs, rtol=0, atol=1e-9
    )
    # Strong duality: with slack left the price is 0, else V_β(start) + β D is the value.
    dual = dense.start_s @ plan.values[0] + plan.price * 0.6
    assert dual == pytest.approx(plan.value, abs=1e-9)


def test_a_plan_with_a_budget_pays_no_penalty():
    plan = counsel.solve(adapt(examples.silent_then_advised()), budget=1.5)
    assert plan.penalty == 0.0
    assert plan.penalised_value == plan.value == pytest.approx(1.75)


# ----------------------------------------------------------------------- rules and bad input


@each_seed(range(0, 60, 3))
def test_budgets_with_forbidden_and_required_cells_equal_the_lp(seed):
    dense, problem = case(seed)
    forbidden_hs, required_hs = rules(seed, dense.r_hsa.shape)
    masks = {"forbidden": forbidden_hs, "required": required_hs}
    vertices = counsel.frontier(problem, **masks).vertices
    for budget in budgets(vertices[-1].advice_count, vertices[0].advice_count):
        lp = oracles.occupancy_lp(
            *dense, budget=budget + 1e-12, forbidden_hs=forbidden_hs, required_hs=required_hs
        )
        plan = counsel.solve(problem, budget=budget, **masks)
        assert plan.value == pytest.approx(lp.value, abs=1e-7)
        assert random_cells(plan.policy) <= 1
        reached = counsel.evaluate(problem, plan.policy)
        assert reached.advice_count <= budget + 1e-9
        assert reached.value == pytest.approx(plan.value, abs=1e-9)
        table_hsb = plan.policy.probabilities()
        assert (table_hsb[forbidden_hs, -1] == 1.0).all()
        assert (table_hsb[required_hs, -1] == 0.0).all()


def test_a_budget_too_small_for_what_must_be_said_names_the_least_count():
    mdp = counsel.MDP(np.zeros((1, 2), dtype=int), [[0.0, 1.0]], horizon=3)
    problem = counsel.AdviceProblem(mdp, counsel.Human([[1.0, 0.0]], 0.5))
    with pytest.raises(counsel.CounselError, match=r"budget is 2\.5 but .* takes 3 pieces"):
        counsel.solve(problem, budget=2.5, required=[True])
    plan = counsel.solve(problem, budget=3, required=[True])
    assert plan.advice_count == 3.0
    assert plan.value == pytest.approx(1.5)


def test_the_least_count_is_that_of_the_plan_that_steers_past_what_must_be_said():
    problem = adapt(examples.silent_then_advised())
    required = np.zeros((3, 3), dtype=bool)
    required[1:, 2] = True  # silence leads to two must-say cells, one piece avoids both
    with pytest.raises(counsel.CounselError, match="takes 1 pieces"):
        counsel.solve(problem, budget=0.5, required=required)
    assert counsel.solve(problem, budget=1, required=required).value == pytest.approx(1.5)


@each("budget", [-0.1, np.nan, np.inf, -np.inf])
def test_a_budget_that_is_no_finite_number_from_zero_up_is_an_error(budget):
    with pytest.raises(counsel.CounselError, match=r"budget is .*at least 0"):
        counsel.solve(case(7)[1], budget=budget)
    with pytest.raises(counsel.CounselError, match=r"budget is .*at least 0"):
        counsel.frontier(case(7)[1]).at_budget(budget)


def test_a_cell_the_budget_never_reaches_says_what_is_best_at_its_price():
    # Found in review: it kept the advice of another price, and the explanation contradicted it.
    mdp = counsel.MDP(np.array([[0, 0], [1, 1]]), [[0.0, 1.0], [0.0, 1.0]], horizon=1)
    problem = counsel.AdviceProblem(mdp, counsel.Human([[1.0, 0.0]] * 2, 0.8))
    plan = counsel.solve(problem, budget=1)
    told = counsel.explain(problem, plan, step=0, state=1)
    assert (told.advice, told.price) == (1, 0.0)
