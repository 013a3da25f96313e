"""``solve`` with forbidden and required cells."""

import numpy as np
import pytest

import counsel
from tests.support import oracles
from tests.support.each import each, each_seed
from tests.support.strategies import case, rules

PENALTIES = (0.0, 0.05, 0.3)


@each("penalty", PENALTIES)
@each_seed(range(0, 60, 2))
def test_forbidden_and_required_cells_give_the_oracle_plan(seed, penalty):
    dense, problem = case(seed)
    forbidden_hs, required_hs = rules(seed, dense.r_hsa.shape)
    oracle = oracles.plan(
        *dense, penalty=penalty, forbidden_hs=forbidden_hs, required_hs=required_hs
    )
    plan = counsel.solve(problem, penalty=penalty, forbidden=forbidden_hs, required=required_hs)
    np.testing.assert_allclose(plan.values, oracle.V_hs, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(plan.policy.advice, oracle.advice_hs)
    assert plan.advice_count == pytest.approx(oracle.pieces, abs=1e-10)


@each_seed(range(20))
def test_masks_by_state_hold_at_every_step(seed):
    dense, problem = case(seed)
    forbidden_hs, required_hs = rules(seed, dense.r_hsa.shape)
    forbidden_s, required_s = forbidden_hs[0], required_hs[0]
    H = problem.horizon
    oracle = oracles.plan(
        *dense,
        penalty=0.05,
        forbidden_hs=np.tile(forbidden_s, (H, 1)),
        required_hs=np.tile(required_s, (H, 1)),
    )
    plan = counsel.solve(problem, penalty=0.05, forbidden=forbidden_s, required=required_s)
    np.testing.assert_array_equal(plan.policy.advice, oracle.advice_hs)


@each_seed(range(40))
def test_one_piece_of_advice_can_be_forbidden_and_the_person_may_still_do_it(seed):
    dense, problem = case(seed)
    forbidden_hsa = np.random.default_rng(seed).random(dense.r_hsa.shape) < 0.4
    oracle = oracles.plan(
        *dense._replace(allowed_hsa=dense.allowed_hsa & ~forbidden_hsa), penalty=0.05
    )
    plan = counsel.solve(problem, penalty=0.05, forbidden=forbidden_hsa)
    np.testing.assert_allclose(plan.values, oracle.V_hs, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(plan.policy.advice, oracle.advice_hs)


def test_a_cell_both_forbidden_and_required_is_an_error_that_names_it():
    _, problem = case(7)
    both = np.zeros((problem.horizon, problem.n_states), dtype=bool)
    both[1, 2] = True
    with pytest.raises(counsel.CounselError, match=r"required\[h=1, s=2\].*forbidden"):
        counsel.solve(problem, forbidden=both, required=both)


def test_requiring_a_cell_where_each_advice_is_forbidden_one_by_one_is_an_error():
    _, problem = case(7)
    required = np.zeros((problem.horizon, problem.n_states), dtype=bool)
    required[2, 0] = True
    forbidden = np.repeat(required[..., None], problem.n_actions, axis=2)
    with pytest.raises(counsel.CounselError, match=r"required\[h=2, s=0\]"):
        counsel.solve(problem, forbidden=forbidden, required=required)


@pytest.mark.parametrize("name", ["forbidden", "required"])
@pytest.mark.parametrize("function", [counsel.solve, counsel.frontier, counsel.criticality])
def test_a_mask_of_the_wrong_shape_is_an_error_that_names_the_shapes(name, function):
    _, problem = case(7)  # 3 states, 2 actions, 3 steps
    with pytest.raises(counsel.CounselError, match=rf"{name} is bool of shape \(4,\).*\(3, 3\)"):
        function(problem, **{name: np.zeros(4, dtype=bool)})


@pytest.mark.parametrize("name", ["forbidden", "required"])
@pytest.mark.parametrize("given", [[0, 1, 0], [0.0, 1.0, 0.0], ["no", "no", "yes"]])
def test_a_mask_that_is_not_boolean_is_an_error(name, given):
    with pytest.raises(counsel.CounselError, match=f"{name} is .*expected booleans"):
        counsel.solve(case(7)[1], **{name: given})


def test_required_by_action_is_an_error():
    with pytest.raises(counsel.CounselError, match="required is bool of shape"):
        counsel.solve(case(7)[1], required=np.zeros((3, 3, 2), dtype=bool))


def test_a_ragged_mask_is_an_error():
    with pytest.raises(counsel.CounselError, match="forbidden is ragged"):
        counsel.solve(case(7)[1], forbidden=[[True, False, False], [True]])
