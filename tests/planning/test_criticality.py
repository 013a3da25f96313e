"""Criticality: the largest penalty at which advising in a cell still pays."""

import numpy as np
import pytest
from hypothesis import given, settings

import counsel
from counsel.planning import criticality
from counsel.planning.prepared_problem import model_of
from tests.support import examples, oracles
from tests.support.each import each, each_seed
from tests.support.problems import adapt
from tests.support.strategies import case, problems, rules

SEEDS = range(60)


def advised(problem, penalty, **masks):
    """Return where something is said at a penalty [h, s]."""
    return counsel.solve(problem, penalty=penalty, **masks).policy.advice < problem.n_actions


def check_against_solve(problem, critical_hs, near=1e-6, **masks):
    """Advised just below, silent just above and at every higher penalty that is tried."""
    tops = np.unique(np.round(critical_hs[np.isfinite(critical_hs)], 12))
    for c in tops[tops > 2 * near]:
        assert advised(problem, c - near, **masks)[np.abs(critical_hs - c) < 1e-11].all()
    for penalty in [*(tops + near), *np.linspace(near, 1.2 * tops.max(initial=0.0) + 1, 25)]:
        silent_hs = critical_hs < penalty - near / 2
        assert not advised(problem, penalty, **masks)[silent_hs].any()
    beyond = 2.0 * tops.max(initial=500.0)
    said_hs = advised(problem, beyond, **masks)
    np.testing.assert_array_equal(said_hs, np.isinf(critical_hs))


@each_seed(SEEDS)
def test_every_cell_equals_the_oracle(seed):
    dense, problem = case(seed)
    critical = counsel.criticality(problem)
    assert critical.exact
    np.testing.assert_array_equal(critical.lower, critical.upper)
    np.testing.assert_allclose(critical.lower, oracles.criticality(*dense[:5]), rtol=0, atol=1e-7)


@each_seed(SEEDS)
def test_every_cell_is_advised_just_below_and_silent_from_just_above(seed):
    _, problem = case(seed)
    check_against_solve(problem, counsel.criticality(problem).lower)


@given(problems(most=(4, 3, 4)))
def test_no_cell_of_any_problem_is_advised_above_its_criticality(dense):
    problem = adapt(dense)
    critical_hs = counsel.criticality(problem).lower
    for penalty in np.linspace(0.003, 1.3, 8):
        assert (critical_hs[advised(problem, penalty)] >= penalty - 1e-9).all()


@given(problems(most=(5, 3, 5)))
@settings(max_examples=50)
def test_no_single_advice_is_worth_more_than_the_range_of_an_episode(dense):
    critical_hs = counsel.criticality(adapt(dense)).lower
    H = len(critical_hs)
    left_h1 = np.arange(H, 0, -1)[:, None]
    spread = np.ptp(dense.r_hsa[dense.allowed_hsa])
    assert (critical_hs >= 0.0).all()
    assert (critical_hs <= left_h1 * spread + 1e-9).all()


@each_seed(SEEDS)
def test_the_first_edge_of_the_frontier_is_the_most_critical_reachable_cell_or_less(seed):
    _, problem = case(seed)
    vertices = counsel.frontier(problem).vertices
    critical_hs = counsel.criticality(problem).lower
    assert critical_hs.max() >= vertices[0].penalties[0] - 1e-9
    assert not advised(problem, critical_hs.max() + 1e-9).any()


def test_a_cell_silent_at_a_low_penalty_and_advised_at_a_higher_one():
    problem = adapt(examples.silent_then_advised())
    critical = counsel.criticality(problem)
    expected_hs = np.zeros((3, 3))
    expected_hs[0, 0] = 1.5
    expected_hs[1:, 2] = 1.0
    np.testing.assert_allclose(critical.lower, expected_hs, rtol=0, atol=1e-12)
    said = [bool(advised(problem, penalty)[0, 0]) for penalty in (0.1, 0.4, 0.6, 1.4, 1.6)]
    assert said == [False, False, True, True, False]


def test_a_cell_whose_advice_comes_goes_and_comes_back():
    problem = adapt(examples.advised_silent_advised())
    assert counsel.criticality(problem).lower[0, 0] == pytest.approx(1.5, abs=1e-12)
    said = [bool(advised(problem, penalty)[0, 0]) for penalty in (0.1, 0.3, 0.7, 1.6)]
    assert said == [True, False, True, False]


def test_a_tie_for_a_whole_range_of_penalties_is_no_gain():
    critical_hs = counsel.criticality(adapt(examples.advice_can_wait())).lower
    np.testing.assert_allclose(critical_hs, [[0, 0, 0], [0, 0, 1]], rtol=0, atol=1e-12)


def test_forbidding_the_later_advice_makes_the_earlier_one_critical():
    forbidden = np.zeros((2, 3), dtype=bool)
    forbidden[1, 2] = True
    critical = counsel.criticality(adapt(examples.advice_can_wait()), forbidden=forbidden)
    np.testing.assert_allclose(critical.lower, [[1, 0, 0], [0, 0, 0]], rtol=0, atol=1e-12)


def test_cells_that_no_optimal_policy_reaches_are_ranked_too():
    problem = adapt(examples.advice_is_not_action_later())  # the best advice avoids state 1
    assert counsel.evaluate(problem, counsel.solve(problem).policy).occupancy[1, 1] < 0.5
    silent_start = counsel.MDP(
        problem.mdp.kernel,
        problem.mdp.reward,
        horizon=2,
        start=2,  # nobody is ever in state 1
    )
    unreached = counsel.AdviceProblem(silent_start, problem.human)
    np.testing.assert_allclose(
        counsel.criticality(unreached).lower, counsel.criticality(problem).lower
    )
    assert counsel.criticality(unreached).lower[1, 1] == pytest.approx(0.75)


def test_without_reverse_advice_repelled_people_are_never_critical():
    problem = adapt(examples.advice_repels(0.1))
    assert counsel.criticality(problem).lower[0, 0] == pytest.approx(0.4)
    assert counsel.criticality(problem, allow_reverse=False).lower[0, 0] == 0.0


@each_seed(range(0, 60, 3))
def test_rewards_in_another_unit_scale_criticality(seed):
    dense, problem = case(seed)
    scaled = adapt(dense._replace(r_hsa=1e-6 * dense.r_hsa))
    np.testing.assert_allclose(
        1e6 * counsel.criticality(scaled).lower,
        counsel.criticality(problem).lower,
        rtol=1e-9,
        atol=1e-9,
    )


@each_seed(range(0, 60, 3))
def test_a_constant_reward_changes_no_criticality(seed):
    dense, problem = case(seed)
    shifted = adapt(dense._replace(r_hsa=dense.r_hsa - 0.37))
    np.testing.assert_allclose(
        counsel.criticality(shifted).lower, counsel.criticality(problem).lower, rtol=0, atol=1e-9
    )


# ------------------------------------------------------------------- almost certain people


@each("rare", [1e-2, 1e-4, 1e-5, 1e-7, 1e-9])
@each("theta", [0.3, 0.5, 1.0])
def test_what_follows_is_worth_little_but_not_nothing_once_advice_there_stops(theta, rare):
    # In state 1 advice is worth θ and silence ``rare``: from β = θ − rare on it is silent, and
    # going there is worth 1 + rare: that is what the advice in state 0 can bear. Were state 1
    # advised at every penalty, 1 + θ − β would leave it only (1 + θ) / 2.
    next_state = np.array([[1, 2], [1, 1], [2, 2]])
    reward_hsa = np.zeros((2, 3, 2))
    reward_hsa[0, 0, 0] = reward_hsa[1, 1, 0] = 1.0
    own_sa = np.array([[0.0, 1.0], [rare, 1.0 - rare], [0.0, 1.0]])
    theta_sa = np.array([[1.0, 1.0], [theta, 1.0], [1.0, 1.0]])
    mdp = counsel.MDP(next_state, reward_hsa, horizon=2)
    problem = counsel.AdviceProblem(mdp, counsel.Human(own_sa, theta_sa))
    critical_hs = counsel.criticality(problem).lower
    assert critical_hs[1, 1] == pytest.approx(theta - rare, abs=1e-9)
    assert critical_hs[0, 0] == pytest.approx(1.0 + rare, abs=1e-9)


def almost_certain(seed, rare):
    """Draw a problem where each person nearly always does one thing; half of them may react."""
    S, A, H = 3, 3, 4
    dense = oracles.random_problem(np.random.default_rng(seed), S, A, H, repel=seed % 2 == 0)
    own_hsa = np.full((H, S, A), rare)
    habit_hs1 = dense.pi_hsa.argmax(axis=-1)[..., None]
    np.put_along_axis(own_hsa, habit_hs1, 1.0 - (A - 1) * rare, axis=-1)
    return dense._replace(pi_hsa=own_hsa)


@each("rare", [1e-3, 1e-5, 1e-7, 1e-9, 1e-11])
@each_seed([*range(10), 25, 32, 33, 53, 60, 71, 81, 112])
def test_almost_certain_people_are_advised_just_below_and_not_above(seed, rare):
    problem = adapt(almost_certain(seed, rare))
    check_against_solve(problem, counsel.criticality(problem).lower)


@each("rare", [1e-3, 1e-5, 1e-7, 1e-9, 1e-11])
@each_seed([*range(10), 22, 32, 33, 53, 60, 71, 81, 116])
def test_so_are_almost_certain_people_to_whom_something_must_be_said(seed, rare):
    dense = almost_certain(seed, rare)
    _, required_hs = rules(seed, dense.r_hsa.shape)
    problem = adapt(dense)
    critical_hs = counsel.criticality(problem, required=required_hs).lower
    check_against_solve(problem, critical_hs, required=required_hs)


# ------------------------------------------------------------------------- what must be said


@each_seed(SEEDS)
def test_with_rules_every_cell_is_advised_just_below_and_silent_from_just_above(seed):
    dense, problem = case(seed)
    forbidden_hs, required_hs = rules(seed, dense.r_hsa.shape)
    masks = {"forbidden": forbidden_hs, "required": required_hs}
    critical_hs = counsel.criticality(problem, **masks).lower
    assert np.isinf(critical_hs[required_hs]).all()
    assert (critical_hs[forbidden_hs] == 0.0).all()
    check_against_solve(problem, critical_hs, **masks)


@each("max_kinks", [4_000_000, 0])
def test_where_something_must_be_said_criticality_is_infinite(max_kinks):
    problem = adapt(examples.silent_then_advised())
    critical = counsel.criticality(problem, required=[False, True, False], max_kinks=max_kinks)
    assert np.isinf(critical.lower[:, 1]).all()
    assert np.isinf(critical.upper[:, 1]).all()
    assert np.isfinite(critical.lower[:, [0, 2]]).all()


def test_advice_that_avoids_two_must_say_cells_pays_at_every_penalty():
    problem = adapt(examples.silent_then_advised())
    required = np.zeros((3, 3), dtype=bool)
    required[1:, 2] = True
    assert advised(problem, 1e6, required=required)[0, 0]
    assert counsel.criticality(problem, required=required).lower[0, 0] == np.inf


def test_advice_that_avoids_one_must_say_cell_pays_at_every_penalty():
    # One piece now for one later, and ½ more reward: better at any penalty.
    problem = adapt(examples.silent_then_advised())
    required = np.zeros((3, 3), dtype=bool)
    required[2, 2] = True
    assert advised(problem, 1e6, required=required)[0, 0]
    assert counsel.criticality(problem, required=required).lower[0, 0] == np.inf


# ----------------------------------------------------------------------------- on a grid


def unbroken(problem, top):
    """Return the cells that are advised at all penalties up to some number and at none above."""
    said_nhs = np.stack([advised(problem, penalty) for penalty in np.linspace(0.0, top, 80)])
    return (np.diff(said_nhs.astype(int), axis=0) <= 0).all(axis=0)


@each("grid", [5, 64])
@each_seed(range(0, 60, 2))
def test_the_grid_brackets_the_exact_criticality_where_advice_never_comes_back(seed, grid):
    _, problem = case(seed)
    exact = counsel.criticality(problem).lower
    rough = counsel.criticality(problem, max_kinks=0, grid=grid)
    assert not rough.exact
    cells = unbroken(problem, 1.1 * exact.max() + 0.01)
    assert cells.any()
    assert (rough.lower[cells] <= exact[cells] + 1e-9).all()
    assert (exact[cells] <= rough.upper[cells] + 1e-9).all()


@each_seed(range(0, 60, 2))
def test_every_cell_is_advised_at_its_lower_bound_and_silent_from_its_upper_bound_on(seed):
    _, problem = case(seed)
    rough = counsel.criticality(problem, max_kinks=0, grid=16)
    gaps = (rough.upper - rough.lower)[rough.upper > 0.0]
    if not gaps.size:
        assert counsel.criticality(problem).lower.max() <= 1e-9
        return
    step = gaps[0]
    np.testing.assert_allclose(gaps, step)
    for i in range(17):
        said_hs = advised(problem, i * step)
        assert said_hs[np.isclose(rough.lower, i * step) & (rough.upper > 0.0)].all()
        assert not said_hs[rough.upper <= i * step + 1e-12].any()


@each_seed(range(10))
def test_a_finer_grid_is_narrower_and_covers_the_most_critical_cell(seed):
    dense = oracles.random_problem(np.random.default_rng(seed), 4, 3, 4)
    problem = adapt(dense)
    exact = counsel.criticality(problem).lower.max()
    for grid in (8, 64, 512):
        rough = counsel.criticality(problem, max_kinks=0, grid=grid)
        # The grid ends at most a factor of two above the last penalty that changes anything.
        assert np.max(rough.upper - rough.lower) <= 2 * exact / grid + 1e-12
        assert rough.lower.max() <= exact <= rough.upper.max() + 1e-12


def test_too_many_pieces_fall_back_to_a_grid():
    dense = oracles.random_problem(np.random.default_rng(1), 5, 3, 6)
    problem = adapt(dense)
    assert counsel.criticality(problem).exact
    assert not counsel.criticality(problem, max_kinks=20).exact


def test_rewards_in_another_unit_scale_the_grid():
    dense, problem = case(8)
    scaled = counsel.criticality(
        adapt(dense._replace(r_hsa=1e-6 * dense.r_hsa)), max_kinks=0, grid=32
    )
    plain = counsel.criticality(problem, max_kinks=0, grid=32)
    np.testing.assert_allclose(1e6 * scaled.lower, plain.lower)
    np.testing.assert_allclose(1e6 * scaled.upper, plain.upper)


def test_a_world_without_rewards_has_nothing_critical():
    mdp = counsel.MDP(np.zeros((1, 2), dtype=int), np.zeros((1, 2)), horizon=2)
    problem = counsel.AdviceProblem(mdp, counsel.Human([[0.5, 0.5]], 1.0))
    for max_kinks in (0, 1000):
        assert (counsel.criticality(problem, max_kinks=max_kinks).upper == 0.0).all()


@pytest.mark.parametrize(
    ("name", "given"), [("grid", 0), ("grid", 1.5), ("max_kinks", -1), ("max_kinks", "many")]
)
def test_sizes_must_be_whole_numbers(name, given):
    with pytest.raises(counsel.CounselError, match=f"{name} must be a whole number"):
        counsel.criticality(case(7)[1], **{name: given})


def test_the_grid_leaves_open_how_much_sparing_a_must_say_cell_can_bear():
    # Found in review: the grid called a criticality of ∞ exactly 0.
    problem = adapt(examples.silent_then_advised())
    required_hs = np.zeros((3, 3), dtype=bool)
    required_hs[2, 2] = True
    exact = counsel.criticality(problem, required=required_hs)
    grid = counsel.criticality(problem, required=required_hs, max_kinks=0)
    assert not grid.exact
    assert (grid.lower <= exact.lower).all()
    assert (grid.upper >= exact.upper).all()


@each("per_step", [False, True])
def test_functions_of_rows_computed_first_or_state_by_state_give_the_same_bits(
    per_step, monkeypatch
):
    rng = np.random.default_rng(5)
    rows = rng.dirichlet(np.full(6, 0.5), size=(4 if per_step else 1, 3))
    transition = rows[:, rng.integers(3, size=(6, 2))]
    mdp = counsel.MDP(
        transition if per_step else transition[0], rng.random((6, 2)), horizon=4, start=2
    )
    problem = counsel.AdviceProblem(mdp, counsel.Human(rng.dirichlet([1, 1], size=6), 0.7))
    results = []
    for worth in (0, 1_000_000):
        monkeypatch.setattr(criticality, "WORTH_SHARING", worth)
        results.append(counsel.criticality(problem).lower)
    assert results[0].tobytes() == results[1].tobytes()
    assert (results[0] > 0.0).any()


def test_steps_that_share_rows_and_steps_that_do_not_alternate():
    # Found by comparing with the planner before: the rows of a shared step were used again in the
    # step before it, which shares none.
    rng = np.random.default_rng(8)
    H, S, A = 5, 6, 2
    P_hsat = rng.dirichlet(np.full(S, 0.5), size=(H, S, A))
    P_hsat[::2] = P_hsat[::2, :1, :1]
    r_hsa, pi_hsa = rng.random((H, S, A)), rng.dirichlet([1.0, 1.0], size=(H, S))
    theta_hsa, start = np.full((H, S, A), 0.9), np.full(S, 1.0 / S)
    problem = counsel.AdviceProblem(
        counsel.MDP(P_hsat, r_hsa, horizon=H, start=start), counsel.Human(pi_hsa, theta_hsa)
    )
    assert criticality._rows_first(model_of(problem)).tolist() == [True, False, True, False, True]
    allowed_hsa = np.ones((H, S, A), dtype=bool)
    oracle = oracles.criticality(P_hsat, r_hsa, pi_hsa, theta_hsa, allowed_hsa)
    np.testing.assert_allclose(counsel.criticality(problem).lower, oracle, rtol=0, atol=1e-7)
