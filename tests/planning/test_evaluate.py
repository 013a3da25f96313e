"""``evaluate``: what any policy is worth, against a forward pass written another way."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import counsel
from tests.support import examples, oracles
from tests.support.each import each_seed
from tests.support.problems import adapt, masked_problem
from tests.support.strategies import case, problems, random_policy

SEEDS = range(50)


def check(evaluation, outcome):
    assert evaluation.value == pytest.approx(outcome.value, abs=1e-12)
    assert evaluation.advice_count == pytest.approx(outcome.pieces, abs=1e-12)
    np.testing.assert_allclose(evaluation.reward, outcome.reward_h, rtol=0, atol=1e-12)
    np.testing.assert_allclose(evaluation.advice_rate, outcome.advice_h, rtol=0, atol=1e-12)
    np.testing.assert_allclose(evaluation.occupancy, outcome.occupancy_hs, rtol=0, atol=1e-12)


@each_seed(SEEDS)
def test_a_random_policy_is_worth_what_the_oracle_says(seed):
    dense, problem = case(seed)
    table_hsb = random_policy(np.random.default_rng(seed), dense.allowed_hsa)
    outcome = oracles.evaluate(*dense[:4], dense.start_s, table_hsb)
    check(counsel.evaluate(problem, counsel.Policy.from_probabilities(table_hsb)), outcome)


@each_seed(SEEDS)
def test_a_certain_policy_is_worth_what_the_oracle_says(seed):
    dense, problem = case(seed)
    table_hsb = random_policy(np.random.default_rng(seed), dense.allowed_hsa)
    advice_hs = table_hsb.argmax(axis=-1)
    outcome = oracles.evaluate(
        *dense[:4], dense.start_s, oracles.stochastic(advice_hs, problem.n_actions)
    )
    policy = counsel.Policy(advice_hs, n_actions=problem.n_actions)
    check(counsel.evaluate(problem, policy), outcome)


@each_seed(SEEDS)
def test_a_policy_that_counts_its_pieces_is_worth_what_the_oracle_says(seed):
    dense, problem = case(seed)
    rng = np.random.default_rng(seed)
    H, S, A = dense.r_hsa.shape
    tables = [random_policy(rng, dense.allowed_hsa).argmax(axis=-1) for _ in range(3)]
    advice_khs = np.stack([np.full((H, S), A), *tables])  # more or fewer pieces than steps
    outcome, _ = oracles.evaluate_hard(*dense[:4], dense.start_s, advice_khs)
    check(counsel.evaluate(problem, counsel.Policy(advice_khs, n_actions=A)), outcome)


@each_seed(SEEDS)
def test_random_cells_on_any_plane_are_worth_the_mean_of_what_they_may_say(seed):
    # A random cell counts once in an episode, so a policy with one is the mean of two.
    dense, problem = case(seed)
    rng = np.random.default_rng(seed)
    H, S, A = dense.r_hsa.shape
    tables = [random_policy(rng, dense.allowed_hsa).argmax(axis=-1) for _ in range(2)]
    advice_khs = np.stack([np.full((H, S), A), *tables])
    k, h, s = int(rng.integers(1, 3)), int(rng.integers(H)), int(rng.integers(S))
    other_khs = advice_khs.copy()
    other_khs[k, h, s] = A
    table = 0.25 * np.eye(A + 1)[advice_khs] + 0.75 * np.eye(A + 1)[other_khs]
    got = counsel.evaluate(problem, counsel.Policy.from_probabilities(table))
    parts = [
        counsel.evaluate(problem, counsel.Policy(advice, n_actions=A))
        for advice in (advice_khs, other_khs)
    ]
    for name in ("value", "advice_count", "reward", "advice_rate", "occupancy", "pieces"):
        mean = 0.25 * getattr(parts[0], name) + 0.75 * getattr(parts[1], name)
        np.testing.assert_allclose(getattr(got, name), mean, atol=1e-12)


@each_seed(SEEDS)
def test_a_mixture_is_worth_the_weighted_mean_of_its_policies(seed):
    dense, problem = case(seed)
    rng = np.random.default_rng(seed)
    tables = [random_policy(rng, dense.allowed_hsa) for _ in range(3)]
    weights = tuple(rng.dirichlet(np.ones(3)))
    mixture = counsel.Mixture(
        tuple(counsel.Policy.from_probabilities(table) for table in tables), weights
    )
    parts = [oracles.evaluate(*dense[:4], dense.start_s, table) for table in tables]
    mean = oracles.Outcome(
        *(
            sum(w * field for w, field in zip(weights, fields, strict=True))
            for fields in zip(*parts, strict=True)
        )
    )
    check(counsel.evaluate(problem, mixture), mean)


def test_a_mixture_may_hold_a_policy_that_counts():
    _, problem = case(7)
    hard = counsel.solve(problem, budget=1, hard=True)
    free = counsel.solve(problem)
    mixed = counsel.evaluate(problem, counsel.Mixture((hard.policy, free.policy), (0.25, 0.75)))
    assert mixed.value == pytest.approx(0.25 * hard.value + 0.75 * free.value, abs=1e-12)


@given(problems(), st.integers(0, 2**32 - 1))
def test_occupancy_is_a_distribution_at_every_step(dense, seed):
    policy = counsel.Policy.from_probabilities(
        random_policy(np.random.default_rng(seed), dense.allowed_hsa)
    )
    evaluation = counsel.evaluate(adapt(dense), policy)
    assert (evaluation.occupancy >= 0.0).all()
    np.testing.assert_allclose(evaluation.occupancy.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    np.testing.assert_allclose(evaluation.occupancy[0], dense.start_s, rtol=0, atol=1e-15)
    assert ((evaluation.advice_rate >= 0.0) & (evaluation.advice_rate <= 1.0 + 1e-12)).all()
    assert evaluation.reward.sum() == pytest.approx(evaluation.value, abs=1e-12)
    assert evaluation.advice_rate.sum() == pytest.approx(evaluation.advice_count, abs=1e-12)


@given(problems(), st.integers(0, 2**32 - 1))
def test_no_policy_is_worth_more_than_the_plan(dense, seed):
    problem = adapt(dense)
    policy = counsel.Policy.from_probabilities(
        random_policy(np.random.default_rng(seed), dense.allowed_hsa)
    )
    other = counsel.evaluate(problem, policy)
    for penalty in (0.0, 0.2):
        best = counsel.solve(problem, penalty=penalty).penalised_value
        assert other.value - penalty * other.advice_count <= best + 1e-10


@given(problems(), st.floats(0.0, 1.0))
def test_a_plan_evaluates_to_what_it_claims(dense, penalty):
    problem = adapt(dense)
    plan = counsel.solve(problem, penalty=penalty)
    for policy in (plan.policy, plan.mixture):
        evaluation = counsel.evaluate(problem, policy)
        assert evaluation.value == pytest.approx(plan.value, abs=1e-10)
        assert evaluation.advice_count == pytest.approx(plan.advice_count, abs=1e-10)


def test_named_example_in_full():
    problem = adapt(examples.silent_then_advised())
    policy = counsel.Policy([[0, 2, 2], [2, 2, 0], [2, 2, 2]], n_actions=2)
    evaluation = counsel.evaluate(problem, policy)
    assert (evaluation.value, evaluation.advice_count) == (1.5, 1.0)
    assert evaluation.reward.tolist() == [0.0, 0.75, 0.75]
    assert evaluation.advice_rate.tolist() == [1.0, 0.0, 0.0]
    assert evaluation.occupancy.tolist() == [[1, 0, 0], [0, 1, 0], [0, 1, 0]]


def test_never_advising_is_the_person_alone():
    dense, problem = case(12)
    never = counsel.Policy.never(
        horizon=problem.horizon, n_states=problem.n_states, n_actions=problem.n_actions
    )
    evaluation = counsel.evaluate(problem, never)
    x_s, value = dense.start_s, 0.0
    for h in range(problem.horizon):
        value += x_s @ (dense.pi_hsa[h] * dense.r_hsa[h]).sum(axis=1)
        x_s = np.einsum("s,sa,sat->t", x_s, dense.pi_hsa[h], dense.P_hsat[h])
    assert evaluation.value == pytest.approx(value, abs=1e-12)
    assert evaluation.advice_count == 0.0


def test_advice_where_the_person_cannot_be_still_counts_for_nothing():
    problem = adapt(examples.silent_then_advised())
    everywhere_else = np.zeros((3, 3), dtype=int)
    everywhere_else[0, 0] = everywhere_else[1:, 2] = 2  # silent where the person will be
    policy = counsel.Policy(everywhere_else, n_actions=2)
    assert counsel.evaluate(problem, policy).advice_count == 0.0


# ------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("shape", "n_actions"), [((2, 3), 2), ((3, 4), 2), ((3, 3), 1), ((3, 3), 3)]
)
def test_a_policy_for_another_problem_is_an_error_that_names_both_sizes(shape, n_actions):
    problem = adapt(examples.silent_then_advised())  # 3 steps, 3 states, 2 actions
    policy = counsel.Policy(np.zeros(shape, dtype=int), n_actions=n_actions)
    sizes = rf"{shape[0]} steps, {shape[1]} states and {n_actions} actions.* has 3, 3 and 2"
    with pytest.raises(counsel.CounselError, match=sizes):
        counsel.evaluate(problem, policy)


def test_advising_an_action_that_is_not_allowed_is_an_error_that_names_the_cell():
    policy = counsel.Policy([[2, 2], [2, 1]], n_actions=2)
    with pytest.raises(counsel.CounselError, match=r"not allowed at \[h=1, s=1\]"):
        counsel.evaluate(masked_problem(), policy)


def test_of_two_cells_that_are_not_allowed_the_first_is_named():
    problem = masked_problem([0, 1])
    policy = counsel.Policy([[2, 2], [1, 1]], n_actions=2)
    with pytest.raises(counsel.CounselError, match=r"not allowed at \[h=1, s=0\]"):
        counsel.evaluate(problem, policy)


def test_advising_it_with_some_probability_is_an_error_too():
    table = np.zeros((2, 2, 3))
    table[..., 2] = 1.0
    table[1, 1] = [0.0, 0.1, 0.9]
    with pytest.raises(counsel.CounselError, match=r"not allowed at \[h=1, s=1\]"):
        counsel.evaluate(masked_problem(), counsel.Policy.from_probabilities(table))


def test_advising_it_with_some_pieces_left_is_an_error_too():
    advice = np.full((3, 2, 2), 2)
    advice[2, 1, 1] = 1
    with pytest.raises(counsel.CounselError, match=r"not allowed at \[h=1, s=1\]"):
        counsel.evaluate(masked_problem(), counsel.Policy(advice, n_actions=2))


def test_advising_it_inside_a_mixture_is_an_error_too():
    good = counsel.Policy([[2, 2], [2, 2]], n_actions=2)
    bad = counsel.Policy([[2, 2], [2, 1]], n_actions=2)
    with pytest.raises(counsel.CounselError, match="not allowed"):
        counsel.evaluate(masked_problem(), counsel.Mixture((good, bad), (0.5, 0.5)))


def test_a_random_cell_whose_likeliest_advice_is_not_allowed_is_an_error():
    table = np.zeros((2, 2, 3))
    table[..., 2] = 1.0
    table[1, 1] = [0.0, 0.9, 0.1]
    with pytest.raises(counsel.CounselError, match=r"not allowed at \[h=1, s=1\]"):
        counsel.evaluate(masked_problem(), counsel.Policy.from_probabilities(table))
