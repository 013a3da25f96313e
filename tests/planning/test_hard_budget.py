"""A hard budget: the best plan that no episode overspends."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import counsel
from tests.support import examples, oracles
from tests.support.each import each, each_seed
from tests.support.problems import adapt
from tests.support.strategies import case, problems, rules

SEEDS = range(50)


def from_start(dense, V_khs):
    """Return the value from the start with each number of pieces [k]."""
    return np.array([float(oracles.expect(dense.start_s, V_hs[0])) for V_hs in V_khs])


@each_seed(SEEDS)
def test_values_with_every_number_of_pieces_left_equal_the_oracle(seed):
    dense, problem = case(seed)
    H = problem.horizon
    V_khs = oracles.hard_budget(*dense[:5], H)
    for budget in range(H + 1):
        plan = counsel.solve(problem, budget=budget, hard=True)
        np.testing.assert_allclose(plan.values, V_khs[: budget + 1], rtol=0, atol=1e-10)
        assert plan.value == pytest.approx(from_start(dense, V_khs)[budget], abs=1e-10)


@each_seed(SEEDS)
def test_the_policy_reaches_its_value_and_no_path_overspends(seed):
    dense, problem = case(seed)
    for budget in range(4):
        plan = counsel.solve(problem, budget=budget, hard=True)
        outcome, most = oracles.evaluate_hard(*dense[:4], dense.start_s, plan.policy.advice)
        assert most <= budget
        assert outcome.value == pytest.approx(plan.value, abs=1e-10)
        assert outcome.pieces == pytest.approx(plan.advice_count, abs=1e-10)


@given(problems(), st.integers(0, 5))
def test_no_path_of_any_problem_overspends(dense, budget):
    plan = counsel.solve(adapt(dense), budget=budget, hard=True)
    _, most = oracles.evaluate_hard(*dense[:4], dense.start_s, plan.policy.advice)
    assert most <= budget
    assert plan.policy.budget == min(budget, len(dense.r_hsa))


@each_seed(SEEDS)
def test_the_price_is_what_the_last_piece_adds(seed):
    dense, problem = case(seed)
    value_k = from_start(dense, oracles.hard_budget(*dense[:5], problem.horizon))
    for budget in range(1, problem.horizon + 1):
        price = counsel.solve(problem, budget=budget, hard=True).price
        assert price == pytest.approx(value_k[budget] - value_k[budget - 1], abs=1e-10)


@each_seed(range(20))
def test_no_pieces_means_silence_and_the_missing_piece_is_beyond_price(seed):
    _, problem = case(seed)
    plan = counsel.solve(problem, budget=0, hard=True)
    assert (plan.policy.advice == problem.defer).all()
    assert plan.advice_count == 0.0
    assert plan.price == np.inf
    assert plan.value == pytest.approx(counsel.solve(problem, budget=0).value, abs=1e-10)


@each_seed(SEEDS)
def test_more_pieces_than_steps_are_no_limit_and_cost_nothing(seed):
    _, problem = case(seed)
    free = counsel.solve(problem)
    for more in (1, 3):
        plan = counsel.solve(problem, budget=problem.horizon + more, hard=True)
        assert plan.value == pytest.approx(free.value, abs=1e-10)
        assert plan.price == 0.0
        assert plan.policy.budget == problem.horizon
        assert plan.advice_count == pytest.approx(free.advice_count, abs=1e-9)


@given(problems(), st.integers(0, 4))
def test_a_hard_budget_is_worth_no_more_than_the_same_on_average(dense, budget):
    problem = adapt(dense)
    hard = counsel.solve(problem, budget=budget, hard=True)
    assert hard.value <= counsel.solve(problem, budget=budget).value + 1e-10


def test_named_example_values_and_prices():
    problem = adapt(examples.silent_then_advised())
    plans = [counsel.solve(problem, budget=k, hard=True) for k in range(4)]
    assert [plan.value for plan in plans] == pytest.approx([0.0, 1.5, 2.0, 2.0])
    assert [plan.price for plan in plans] == pytest.approx([np.inf, 1.5, 0.5, 0.0])
    assert plans[1].policy.at(0, 0, 1) == {0: 1.0}  # one piece: take the safe way at once
    assert plans[2].policy.at(0, 0, 2) == {problem.defer: 1.0}  # two: spend both on the better way


def test_ties_say_least():
    problem = adapt(examples.advice_can_wait())
    plan = counsel.solve(problem, budget=2, hard=True)
    assert plan.advice_count == 1.0
    assert plan.policy.at(0, 0, 2) == {problem.defer: 1.0}


@each_seed(SEEDS)
def test_a_hard_plan_says_no_more_than_any_other_of_its_value(seed):
    # The oracle's recursion on (value, −pieces): fewest expected pieces among the best.
    dense, problem = case(seed)
    P_hsbt, r_hsb = oracles.machine(*dense[:4])
    may_hsb = oracles.permitted(dense.allowed_hsa)
    H, S, B = r_hsb.shape
    K = min(2, H)
    V_khs, N_khs = np.zeros((K + 1, H + 1, S)), np.zeros((K + 1, H + 1, S))
    for h, k, s in [(h, k, s) for h in reversed(range(H)) for k in range(K + 1) for s in range(S)]:
        options = []
        for b in np.flatnonzero(may_hsb[h, s]):
            spent = int(b < B - 1)
            if spent <= k:
                p_t = P_hsbt[h, s, b]
                value = r_hsb[h, s, b] + p_t @ V_khs[k - spent, h + 1]
                options.append((value, spent + p_t @ N_khs[k - spent, h + 1]))
        best = max(value for value, _ in options)
        V_khs[k, h, s] = best
        N_khs[k, h, s] = min(pieces for value, pieces in options if value >= best - 1e-12)
    plan = counsel.solve(problem, budget=K, hard=True)
    assert plan.advice_count == pytest.approx(dense.start_s @ N_khs[K, 0], abs=1e-9)


@each_seed(range(20))
def test_reverse_advice_is_marked_for_every_number_of_pieces_left(seed):
    dense = oracles.random_problem(np.random.default_rng(seed), 3, 3, 3, repel=True)
    plan = counsel.solve(adapt(dense), budget=2, hard=True)
    repels_hsa = dense.theta_hsa < dense.pi_hsa
    expected = [
        [k, h, s]
        for k, h, s in np.argwhere(plan.policy.advice < 3).tolist()
        if repels_hsa[h, s, plan.policy.advice[k, h, s]]
    ]
    assert sorted(plan.reverse.tolist()) == sorted(expected)


# ------------------------------------------------------------------------- what must be said


@each_seed(SEEDS)
def test_forbidden_and_required_cells_give_the_oracle_values_or_an_error(seed):
    dense, problem = case(seed)
    forbidden_hs, required_hs = rules(seed, dense.r_hsa.shape)
    masks = {"forbidden": forbidden_hs, "required": required_hs}
    V_khs = oracles.hard_budget(
        *dense[:5], problem.horizon, forbidden_hs=forbidden_hs, required_hs=required_hs
    )
    value_k = from_start(dense, V_khs)
    for budget in range(problem.horizon + 1):
        if np.isneginf(value_k[budget]):
            with pytest.raises(
                counsel.CounselError, match=f"budget is {budget} but an episode may require more"
            ):
                counsel.solve(problem, budget=budget, hard=True, **masks)
            continue
        plan = counsel.solve(problem, budget=budget, hard=True, **masks)
        np.testing.assert_allclose(plan.values, V_khs[: budget + 1], rtol=0, atol=1e-10)
        outcome, most = oracles.evaluate_hard(*dense[:4], dense.start_s, plan.policy.advice)
        assert most <= budget
        assert outcome.value == pytest.approx(plan.value, abs=1e-10)
        assert outcome.pieces == pytest.approx(plan.advice_count, abs=1e-10)


def test_the_seeds_above_hold_both_feasible_and_infeasible_budgets():
    found = set()
    for seed in SEEDS:
        dense, _ = case(seed)
        _, required_hs = rules(seed, dense.r_hsa.shape)
        V_khs = oracles.hard_budget(*dense[:5], 1, required_hs=required_hs)
        found |= set(np.isneginf(from_start(dense, V_khs)).tolist())
    assert found == {True, False}


def test_an_unaffordable_must_say_cell_is_an_error():
    problem = adapt(examples.silent_then_advised())
    with pytest.raises(
        counsel.CounselError, match=r"budget is 2 but an episode may require more than that"
    ):
        counsel.solve(problem, budget=2, hard=True, required=[True, True, True])
    plan = counsel.solve(problem, budget=3, hard=True, required=[True, True, True])
    assert plan.advice_count == 3.0
    assert plan.price == np.inf  # with a piece less it cannot be done


def test_what_must_be_said_and_cannot_be_afforded_is_avoided_by_advice_that_always_works():
    # Silence leads to state 2, where both steps need a piece; one piece avoids them.
    problem = adapt(examples.silent_then_advised())
    required = np.zeros((3, 3), dtype=bool)
    required[1:, 2] = True
    plan = counsel.solve(problem, budget=1, hard=True, required=required)
    assert plan.policy.at(0, 0, 1) == {0: 1.0}
    assert plan.value == pytest.approx(1.5)


def test_advice_that_may_fail_cannot_avoid_what_cannot_be_afforded():
    dense = examples.silent_then_advised()
    unsure = dense._replace(theta_hsa=np.full_like(dense.theta_hsa, 0.999))
    required = np.zeros((3, 3), dtype=bool)
    required[1:, 2] = True
    with pytest.raises(counsel.CounselError, match="budget is 1 but"):
        counsel.solve(adapt(unsure), budget=1, hard=True, required=required)


def test_a_must_say_cell_reached_by_the_rarest_slip_still_counts():
    # Advised, the person still slips with probability 5e-14: a path that cannot be afforded.
    dense = examples.silent_then_advised()
    pi_hsa, theta_hsa = dense.pi_hsa.copy(), dense.theta_hsa.copy()
    pi_hsa[0, 0] = [1.0 - 1e-13, 1e-13]
    theta_hsa[0, 0] = 1.0 - 5e-14
    required = np.zeros((3, 3), dtype=bool)
    required[1:, 2] = True
    rare = dense._replace(pi_hsa=pi_hsa, theta_hsa=theta_hsa)
    V_khs = oracles.hard_budget(*rare[:5], 1, required_hs=required)
    assert np.isneginf(V_khs[1, 0, 0])
    with pytest.raises(counsel.CounselError, match="budget is 1 but"):
        counsel.solve(adapt(rare), budget=1, hard=True, required=required)


@each("rare", [0.1, 0.003, 1.7e-5, 1e-7, 3.3e-9, 7e-11])
def test_advice_that_surely_repels_avoids_what_cannot_be_afforded(rare):
    # The person almost surely goes to state 2; told to, with θ = 0, they never do.
    dense = examples.silent_then_advised()
    pi_hsa, theta_hsa = dense.pi_hsa.copy(), dense.theta_hsa.copy()
    pi_hsa[0, 0] = [rare, 1.0 - rare]
    theta_hsa[0, 0] = [0.5, 0.0]
    required = np.zeros((3, 3), dtype=bool)
    required[1:, 2] = True
    spiteful = dense._replace(pi_hsa=pi_hsa, theta_hsa=theta_hsa)
    plan = counsel.solve(adapt(spiteful), budget=1, hard=True, required=required)
    assert plan.policy.at(0, 0, 1) == {1: 1.0}
    assert plan.value == pytest.approx(1.5)


# ------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize("budget", [1.5, -1, np.nan, np.inf, "2", True, [1]])
def test_a_hard_budget_that_is_no_whole_number_from_zero_up_is_an_error(budget):
    with pytest.raises(counsel.CounselError, match="hard budget must be a whole number"):
        counsel.solve(case(7)[1], budget=budget, hard=True)


def test_hard_without_a_budget_is_an_error():
    with pytest.raises(counsel.CounselError, match="a hard limit needs a budget"):
        counsel.solve(case(7)[1], hard=True)
    with pytest.raises(counsel.CounselError, match="a hard limit needs a budget"):
        counsel.solve(case(7)[1], hard=True, penalty=0.1)


@each("budget", [2.0, np.float64(2.0), np.int64(2)])
def test_a_whole_number_may_be_written_in_any_type(budget):
    plan = counsel.solve(case(7)[1], budget=budget, hard=True)
    assert plan.policy.budget == 2
    assert plan.hard


def test_a_plan_without_a_hard_budget_does_not_count_pieces():
    assert not counsel.solve(case(7)[1], budget=2).hard
