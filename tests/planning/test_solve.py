"""``solve`` without a limit and at a penalty: against every oracle, its ties, masks and errors."""

import contextlib
import io
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mdptoolbox.mdp import FiniteHorizon

import counsel
from tests.support import examples, oracles
from tests.support.each import each, each_seed
from tests.support.peers import quantecon_ddp
from tests.support.problems import adapt
from tests.support.strategies import case, problems, rules, tiny

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


# ------------------------------------------------------------------------------------ ties


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


# ------------------------------------------------------------------- almost certain people


def exact_values(next_hsa, reward_hsa, own_hsa, theta_hsa):
    """Plan with fractions: V [h, s] without any rounding, by equation (1)."""
    H, S, A = reward_hsa.shape
    fractions = np.vectorize(Fraction, otypes=[object])
    reward, own, theta = fractions(reward_hsa), fractions(own_hsa), fractions(theta_hsa)
    V = [[Fraction(0)] * S for _ in range(H + 1)]
    for h in reversed(range(H)):
        for s in range(S):
            q = [reward[h, s, a] + V[h + 1][next_hsa[h, s, a]] for a in range(A)]
            mass = sum(own[h, s])
            options = [sum(own[h, s, a] * q[a] for a in range(A)) / mass]
            for b in range(A):
                rest = sum(own[h, s, c] for c in range(A) if c != b)
                away = sum(own[h, s, c] * q[c] for c in range(A) if c != b)
                if rest:
                    options.append(theta[h, s, b] * q[b] + (1 - theta[h, s, b]) * away / rest)
            V[h][s] = max(options)
    return np.array([[float(v) for v in row] for row in V])


@pytest.mark.parametrize("adherence", ["any", "just above habit", "full"])
@each("rare", [1e-6, 1e-9, 1e-12])
@each_seed(range(4))
def test_an_almost_certain_person_is_planned_for_without_losing_digits(seed, rare, adherence):
    rng = np.random.default_rng(seed)
    H, S, A = 4, 4, 3
    next_hsa = rng.integers(S, size=(H, S, A))
    reward_hsa = rng.normal(size=(H, S, A))
    own_hsa = np.full((H, S, A), rare)
    habit_hs = rng.integers(A, size=(H, S))
    np.put_along_axis(own_hsa, habit_hs[..., None], 1.0 - (A - 1) * rare, axis=-1)
    theta_hsa = {
        "any": rng.random((H, S, A)),
        "just above habit": np.minimum(1.0, own_hsa + rare * rng.random((H, S, A))),
        "full": np.ones((H, S, A)),
    }[adherence]
    problem = counsel.AdviceProblem(
        counsel.MDP(next_hsa, reward_hsa, horizon=H), counsel.Human(own_hsa, theta_hsa)
    )
    exact_hs = exact_values(next_hsa, reward_hsa, own_hsa, theta_hsa)
    plan = counsel.solve(problem)
    np.testing.assert_allclose(plan.values, exact_hs, rtol=0, atol=1e-9)
    assert counsel.evaluate(problem, plan.policy).value == pytest.approx(exact_hs[0, 0], abs=1e-9)


# ------------------------------------------------------------------------------- the masks


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


# -------------------------------------------------------------------------- reverse advice


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


# ------------------------------------------------------------------------------ bad input


@each("penalty", [-0.1, -1e-300, np.nan, np.inf, -np.inf])
def test_a_penalty_that_is_no_finite_number_from_zero_up_is_an_error(penalty):
    with pytest.raises(counsel.CounselError, match=r"penalty is .*at least 0"):
        counsel.solve(case(7)[1], penalty=penalty)


@pytest.mark.parametrize("given", ["much", "0.5", b"1", [0.1, 0.2], {}, 1j])
@pytest.mark.parametrize("name", ["penalty", "budget"])
def test_a_penalty_or_budget_that_is_no_number_is_an_error(name, given):
    with pytest.raises(counsel.CounselError, match=f"{name} must be a number"):
        counsel.solve(case(7)[1], **{name: given})


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
