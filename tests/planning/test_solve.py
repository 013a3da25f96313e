"""``solve`` without a limit and at a penalty: against every oracle and peer, and its errors."""

import contextlib
import io
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mdptoolbox.mdp import FiniteHorizon

import counsel
from tests.support import oracles
from tests.support.each import each, each_seed
from tests.support.peers import quantecon_ddp
from tests.support.problems import adapt
from tests.support.strategies import case, problems, tiny

SEEDS = range(60)
PENALTIES = (0.0, 0.05, 0.3)


# ---------------------------------------------------------------------------- the optimum


@each_seed(SEEDS)
@each("penalty", PENALTIES)
def test_values_policy_and_count_equal_the_oracle_in_every_cell(seed, penalty):
    dense, problem = case(seed)
    oracle, plan = oracles.plan(*dense, penalty=penalty), counsel.solve(problem, penalty=penalty)
    np.testing.assert_allclose(plan.values, oracle.V_hs, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(plan.policy.advice, oracle.advice_hs)
    assert plan.penalised_value == pytest.approx(oracle.value, abs=1e-10)
    assert plan.advice_count == pytest.approx(oracle.pieces, abs=1e-10)


@given(problems(), st.floats(0.0, 2.0))
def test_any_penalty_on_any_problem_equals_the_oracle(dense, penalty):
    oracle, plan = (
        oracles.plan(*dense, penalty=penalty),
        counsel.solve(adapt(dense), penalty=penalty),
    )
    np.testing.assert_allclose(plan.values, oracle.V_hs, rtol=0, atol=1e-10)


@each_seed(range(40))
def test_no_policy_beats_the_plan_and_none_as_good_says_less(seed):
    dense, problem = tiny(seed)
    count_n, value_n = oracles.brute_force(*dense)
    for penalty in PENALTIES:
        plan = counsel.solve(problem, penalty=penalty)
        best = oracles.best_penalised(count_n, value_n, penalty)
        assert plan.penalised_value == pytest.approx(best, abs=1e-10)
        as_good_n = value_n - penalty * count_n >= best - 1e-10
        assert plan.advice_count == pytest.approx(count_n[as_good_n].min(), abs=1e-9)


@each_seed(range(20))
def test_value_equals_the_occupancy_lp(seed):
    dense, problem = case(seed)
    for penalty in PENALTIES:
        lp = oracles.occupancy_lp(*dense, penalty=penalty)
        plan = counsel.solve(problem, penalty=penalty)
        assert plan.penalised_value == pytest.approx(lp.value, abs=1e-8)


@each_seed(SEEDS)
def test_value_is_the_reward_and_penalised_value_pays_for_each_piece(seed):
    dense, problem = case(seed)
    plan = counsel.solve(problem, penalty=0.1)
    table_hsb = oracles.stochastic(plan.policy.advice, problem.n_actions)
    reached = oracles.evaluate(*dense[:4], dense.start_s, table_hsb)
    assert plan.value == pytest.approx(reached.value, abs=1e-10)
    assert plan.advice_count == pytest.approx(reached.pieces, abs=1e-10)
    assert plan.penalised_value == plan.value - 0.1 * plan.advice_count
    assert plan.price == plan.penalty == 0.1


def test_no_penalty_is_a_penalty_of_zero():
    _, problem = case(3)
    free, zero = counsel.solve(problem), counsel.solve(problem, penalty=0)
    assert free.values.tobytes() == zero.values.tobytes()
    assert (free.penalty, free.price, free.value) == (0.0, 0.0, free.penalised_value)


# ------------------------------------------------------------- solvers written by others


def stationary(seed):
    """Draw a problem that never changes with the step: what other solvers can express."""
    rng = np.random.default_rng(seed)
    S, A = int(rng.integers(2, 9)), int(rng.integers(1, 5))
    transition_sat = rng.dirichlet(np.full(S, 0.4), size=(S, A))
    mdp = counsel.MDP(transition_sat, rng.normal(size=(S, A)), horizon=int(rng.integers(1, 9)))
    own_sa = rng.dirichlet(np.full(A, 0.5), size=S)
    human = counsel.Human(own_sa, np.maximum(rng.random((S, A)), own_sa))
    return counsel.AdviceProblem(mdp, human)


@pytest.mark.slow
@each_seed(range(20))
def test_quantecon_on_the_machine_mdp_finds_the_same_values(seed):
    ddp = quantecon_ddp()
    problem = stationary(seed)
    machine = problem.machine()
    S, B = machine.n_states, machine.n_actions
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="infinite horizon solution methods are disabled with beta=1"
        )
        model = ddp.DiscreteDP(
            machine.reward[0].ravel(),
            machine.kernel.to_sparse(),
            1.0,
            np.repeat(np.arange(S), B),
            np.tile(np.arange(B), S),
        )
    values, _ = ddp.backward_induction(model, problem.horizon)
    np.testing.assert_allclose(counsel.solve(problem).values, values, rtol=0, atol=1e-10)


@each_seed(range(20))
def test_pymdptoolbox_on_the_machine_mdp_finds_the_same_values(seed):
    problem = stationary(seed)
    machine = problem.machine()
    transition_bst = np.ascontiguousarray(machine.kernel.to_dense().swapaxes(0, 1))
    with contextlib.redirect_stdout(io.StringIO()):  # it prints a remark on discount 1
        model = FiniteHorizon(transition_bst, machine.reward[0], 1.0, problem.horizon)
    model.run()
    np.testing.assert_allclose(counsel.solve(problem).values, model.V.T, rtol=0, atol=1e-10)


# ------------------------------------------------------------ the form of what is given


def every_answer(problem):
    """Return all that planning says about a problem, as plain numbers."""
    front, critical = counsel.frontier(problem), counsel.criticality(problem)
    plans = [
        counsel.solve(problem, penalty=0.1),
        counsel.solve(problem, budget=0.7),
        counsel.solve(problem, budget=2, hard=True),
    ]
    return {
        "value": [(plan.value, plan.advice_count, plan.price) for plan in plans],
        "values": [plan.values.tolist() for plan in plans],
        "advice": [plan.policy.advice.tolist() for plan in plans],
        "evaluation": [counsel.evaluate(problem, plan.policy).reward.tolist() for plan in plans],
        "frontier": [(v.advice_count, v.value, v.penalties) for v in front.vertices],
        "criticality": critical.lower.tolist(),
        "sentence": str(counsel.explain(problem, plans[0], step=1, state=0)),
    }


@each_seed(range(5))
def test_a_table_given_once_is_that_table_at_every_step(seed):
    rng = np.random.default_rng(seed)
    S, A, H = 4, 3, 3
    transition, reward = rng.dirichlet(np.full(S, 0.4), size=(S, A)), rng.normal(size=(S, A))
    own, theta = rng.dirichlet(np.ones(A), size=S), rng.random((S, A))
    once = counsel.AdviceProblem(
        counsel.MDP(transition, reward, horizon=H), counsel.Human(own, theta)
    )
    again = counsel.AdviceProblem(
        counsel.MDP(np.stack([transition] * H), np.stack([reward] * H), horizon=H),
        counsel.Human(np.stack([own] * H), np.stack([theta] * H)),
    )
    assert every_answer(once) == every_answer(again)


@pytest.mark.parametrize("adherence", [0.8, [0.8, 0.8, 0.8]])
def test_one_adherence_for_all_is_that_adherence_everywhere(adherence):
    rng = np.random.default_rng(3)
    mdp = counsel.MDP(rng.dirichlet(np.ones(4), size=(4, 3)), rng.normal(size=(4, 3)), horizon=3)
    own = rng.dirichlet(np.ones(3), size=4)
    short = counsel.AdviceProblem(mdp, counsel.Human(own, adherence))
    full = counsel.AdviceProblem(mdp, counsel.Human(own, np.full((4, 3), 0.8)))
    assert every_answer(short) == every_answer(full)


def test_the_order_of_arrays_in_memory_changes_nothing():
    dense, problem = case(7)
    turned = adapt(dense._replace(**{k: np.asfortranarray(v) for k, v in dense._asdict().items()}))
    assert every_answer(turned) == every_answer(problem)


# ------------------------------------------------------------------------------ bad input


@each("penalty", [-0.1, -1e-300, np.nan, np.inf, -np.inf])
def test_a_penalty_that_is_no_finite_number_from_zero_up_is_an_error(penalty):
    with pytest.raises(counsel.CounselError, match=r"penalty is .*at least 0"):
        counsel.solve(case(7)[1], penalty=penalty)


@pytest.mark.parametrize("given", ["much", "0.5", b"1", {}, 1j])
@pytest.mark.parametrize("name", ["penalty", "budget"])
def test_a_penalty_or_budget_that_is_no_number_is_an_error(name, given):
    with pytest.raises(counsel.CounselError, match=f"{name} must be a number"):
        counsel.solve(case(7)[1], **{name: given})


def test_a_budget_for_each_step_is_an_error():
    with pytest.raises(counsel.CounselError, match="budget must be a number"):
        counsel.solve(case(7)[1], budget=[0.1, 0.2])


def test_penalty_and_budget_together_are_an_error():
    with pytest.raises(counsel.CounselError, match="penalty or a budget, not both"):
        counsel.solve(case(7)[1], penalty=0.1, budget=1.0)


@pytest.mark.parametrize("threads", [0, -1, 1.5, "two", True])
def test_threads_must_be_a_whole_number_from_one_up(threads):
    with pytest.raises(counsel.CounselError, match="threads must be a whole number"):
        counsel.solve(case(7)[1], threads=threads)


def test_solving_leaves_the_problem_as_it_was():
    _, problem = case(5)
    before = [problem.mdp.reward.copy(), problem.policy.copy(), problem.lift.copy()]
    counsel.solve(problem, budget=1)
    after = [problem.mdp.reward, problem.policy, problem.lift]
    assert all(np.array_equal(x, y) for x, y in zip(before, after, strict=True))


def test_a_second_solve_does_not_overwrite_the_first_plan():
    _, problem = case(7)
    first = counsel.solve(problem, penalty=0.0)
    kept = (first.values.copy(), first.policy.advice.copy())
    counsel.solve(problem, penalty=1.0)
    counsel.frontier(problem)
    np.testing.assert_array_equal(first.values, kept[0])
    np.testing.assert_array_equal(first.policy.advice, kept[1])
