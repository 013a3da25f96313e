"""``solve`` with advice that repels."""

import numpy as np
import pytest

import counsel
from tests.support import examples, oracles
from tests.support.each import each_seed
from tests.support.problems import adapt

PENALTIES = (0.0, 0.05, 0.3)


def test_reverse_advice_is_found_and_marked():
    problem = adapt(examples.advice_repels(0.1))
    plan = counsel.solve(problem)
    assert plan.value == pytest.approx(0.9)
    assert plan.policy.advice[0, 0] == 1
    assert plan.reverse.tolist() == [[0, 0]]


def test_a_hard_budget_marks_reverse_advice_with_the_pieces_left():
    plan = counsel.solve(adapt(examples.advice_repels(0.1)), budget=1, hard=True)
    assert plan.reverse.tolist() == [[1, 0, 0]]


def test_an_expected_budget_marks_reverse_advice():
    plan = counsel.solve(adapt(examples.advice_repels(0.1)), budget=1)
    assert plan.reverse.tolist() == [[0, 0]]


def test_without_reverse_advice_the_machine_stays_silent():
    plan = counsel.solve(adapt(examples.advice_repels(0.1)), allow_reverse=False)
    assert (plan.value, plan.advice_count, len(plan.reverse)) == (0.5, 0.0, 0)


def reactive(seed):
    """Draw a problem whose person does the opposite in many places."""
    dense = oracles.random_problem(np.random.default_rng(seed), 3, 3, 3, repel=True)
    return dense, adapt(dense)


def test_reactive_problems_do_use_reverse_advice():
    found = [len(counsel.solve(reactive(seed)[1]).reverse) > 0 for seed in range(20)]
    assert sum(found) >= 10


@each_seed(range(20))
def test_reverse_marks_are_the_advised_cells_with_negative_lift_and_advantage(seed):
    dense, problem = reactive(seed)
    for penalty in PENALTIES:
        plan = counsel.solve(problem, penalty=penalty)
        oracle = oracles.plan(*dense, penalty=penalty)
        expected = []
        for h, s in np.argwhere(oracle.advice_hs < problem.n_actions):
            b = oracle.advice_hs[h, s]
            q_a = dense.r_hsa[h, s] + dense.P_hsat[h, s] @ oracle.V_hs[h + 1]
            if dense.theta_hsa[h, s, b] < dense.pi_hsa[h, s, b]:
                assert q_a[b] < dense.pi_hsa[h, s] @ q_a  # advised although it repels
                expected.append([h, s])
        assert plan.reverse.tolist() == expected


@each_seed(range(20))
def test_without_reverse_the_plan_is_that_of_a_world_where_repelling_advice_is_masked(seed):
    dense, problem = reactive(seed)
    attracts_hsa = dense.theta_hsa >= dense.pi_hsa
    for penalty in PENALTIES:
        plan = counsel.solve(problem, penalty=penalty, allow_reverse=False)
        oracle = oracles.plan(
            *dense._replace(allowed_hsa=dense.allowed_hsa & attracts_hsa), penalty=penalty
        )
        np.testing.assert_allclose(plan.values, oracle.V_hs, rtol=0, atol=1e-10)
        np.testing.assert_array_equal(plan.policy.advice, oracle.advice_hs)
        assert len(plan.reverse) == 0


@each_seed(range(20))
def test_budgets_and_the_frontier_respect_the_ban_on_reverse_advice(seed):
    dense, problem = reactive(seed)
    masked = dense._replace(allowed_hsa=dense.allowed_hsa & (dense.theta_hsa >= dense.pi_hsa))
    lp = oracles.occupancy_lp(*masked, budget=0.7)
    plan = counsel.solve(problem, budget=0.7, allow_reverse=False)
    assert plan.value == pytest.approx(lp.value, abs=1e-8)
    vertex = counsel.frontier(problem, allow_reverse=False).vertices[-1]
    assert vertex.value == pytest.approx(oracles.plan(*masked).value, abs=1e-10)
    V_khs = oracles.hard_budget(*masked[:5], 1)
    hard = counsel.solve(problem, budget=1, hard=True, allow_reverse=False)
    assert hard.value == pytest.approx(dense.start_s @ V_khs[1, 0], abs=1e-10)


def test_a_must_say_cell_where_all_advice_repels_keeps_it():
    problem = adapt(examples.advice_repels(0.1))
    plan = counsel.solve(problem, required=[True], allow_reverse=False)
    assert plan.policy.advice[0, 0] == 1
    assert plan.value == pytest.approx(0.9)
    assert plan.reverse.tolist() == [[0, 0]]
