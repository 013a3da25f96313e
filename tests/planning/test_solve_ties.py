"""``solve`` breaks ties by the rule, also where sums differ by rounding only."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import counsel
from tests.support import examples
from tests.support.each import each, each_seed
from tests.support.problems import adapt
from tests.support.strategies import case, problems

PENALTIES = (0.0, 0.05, 0.3)


def test_silence_wins_where_advice_can_wait():
    problem = adapt(examples.advice_can_wait())
    for penalty in (0.0, 0.3, 0.9):
        plan = counsel.solve(problem, penalty=penalty)
        assert plan.policy.advice[0, 0] == problem.defer
        assert (plan.value, plan.advice_count) == (1.0, 1.0)


def test_advice_now_wins_where_silence_would_say_more_later():
    problem = adapt(examples.silent_then_advised())
    plan = counsel.solve(problem, penalty=0.5)
    assert plan.policy.advice[0, 0] == 0  # 1.5 − 0.5 now or 2 − 2 · 0.5 later: one piece or two
    assert plan.advice_count == 1.0


def test_equal_advice_goes_to_the_lowest_index():
    mdp = counsel.MDP(np.zeros((1, 4), dtype=int), [[0.0, 1.0, 1.0, 1.0]], horizon=1)
    problem = counsel.AdviceProblem(mdp, counsel.Human([[1.0, 0.0, 0.0, 0.0]], 1.0))
    assert counsel.solve(problem).policy.advice[0, 0] == 1


def test_fewer_expected_pieces_later_beat_a_lower_index():
    # Both actions earn 1 in all; the second leads where nothing needs to be said.
    next_state = np.array([[1, 2, 3], [1, 1, 1], [2, 2, 2], [3, 3, 3]])
    reward_sa = np.zeros((4, 3))
    reward_sa[1] = [1.0, 1.0, 0.0]
    reward_sa[2] = 1.0
    mdp = counsel.MDP(next_state, reward_sa, horizon=2)
    problem = counsel.AdviceProblem(mdp, counsel.Human(np.eye(3)[[2] * 4], 1.0))
    plan = counsel.solve(problem)
    assert plan.policy.advice[0, 0] == 1
    assert (plan.value, plan.advice_count) == (1.0, 1.0)


def test_advice_the_person_takes_anyway_is_not_given():
    mdp = counsel.MDP(np.zeros((1, 2), dtype=int), [[1.0, 0.0]], horizon=3)
    problem = counsel.AdviceProblem(mdp, counsel.Human([[1.0, 0.0]], 0.5))
    assert counsel.solve(problem).advice_count == 0.0


def test_sums_that_differ_only_by_rounding_tie():
    # 0.1 + 0.2 and 0.3 differ in the last bit; advice for that bit would be a piece for nothing.
    next_state = np.array([[1, 2], [1, 1], [2, 2]])
    reward_hsa = np.zeros((2, 3, 2))
    reward_hsa[0, 0] = [0.1, 0.0]
    reward_hsa[1, 1], reward_hsa[1, 2] = 0.2, 0.3
    mdp = counsel.MDP(next_state, reward_hsa, horizon=2)
    problem = counsel.AdviceProblem(mdp, counsel.Human(np.eye(2)[[1] * 3], 1.0))
    assert counsel.solve(problem).advice_count == 0.0


@each("wait", [0, 1])
def test_rewards_that_cancel_tie_too(wait):
    # As above with −0.3 first (``wait`` steps later): both ways are worth 0, one of them 6e-17.
    next_state = np.array([[1, 2], [1, 1], [2, 2]])
    reward_hsa = np.zeros((3 + wait, 3, 2))
    reward_hsa[wait, 0 if wait == 0 else 1, 0] = -0.3
    reward_hsa[wait, 1, 1] = -0.3
    reward_hsa[wait + 1, 1], reward_hsa[wait + 2, 1] = 0.1, 0.2
    mdp = counsel.MDP(next_state, reward_hsa, horizon=3 + wait)
    problem = counsel.AdviceProblem(mdp, counsel.Human(np.eye(2)[[1] * 3], 1.0))
    assert counsel.solve(problem).advice_count == 0.0
    assert counsel.solve(problem, budget=1, hard=True).advice_count == 0.0


@each("scale", [1e-9, 1e9])
@each_seed(range(0, 60, 3))
def test_the_unit_of_reward_does_not_change_what_is_said(seed, scale):
    dense, problem = case(seed)
    scaled = adapt(dense._replace(r_hsa=scale * dense.r_hsa))
    for penalty in PENALTIES:
        plan = counsel.solve(problem, penalty=penalty)
        other = counsel.solve(scaled, penalty=scale * penalty)
        np.testing.assert_array_equal(plan.policy.advice, other.policy.advice)
        assert other.value == pytest.approx(scale * plan.value, rel=1e-12, abs=scale * 1e-12)


@given(problems(), st.floats(-3.0, 3.0))
def test_a_constant_reward_adds_one_per_step_left_and_changes_no_advice(dense, more):
    r_hsa = np.where(dense.allowed_hsa, np.round(4 * dense.r_hsa) / 4, 0.0)
    plain = counsel.solve(adapt(dense._replace(r_hsa=r_hsa)), penalty=0.1)
    richer = counsel.solve(adapt(dense._replace(r_hsa=r_hsa + more)), penalty=0.1)
    H = len(r_hsa)
    left_h1 = np.arange(H, -1, -1)[:, None]
    np.testing.assert_allclose(richer.values, plain.values + more * left_h1, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(richer.policy.advice, plain.policy.advice)
