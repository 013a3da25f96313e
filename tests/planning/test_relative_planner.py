"""Discounts near 1, where values are large and what advice changes is in their last digits."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import counsel
from counsel.planning import prepared_problem
from tests.support.discounted_oracle import machine
from tests.support.each import each, each_seed

WORLDS = ["machine-repair", "inventory", "call-centre", "call-centre/tiring"]


def drawn(rng, discount, *, n_states=3):
    """Return a problem whose probabilities sum to 1 without rounding."""

    def exact(shape):
        table = np.round(rng.dirichlet(np.full(shape[-1], 0.5), size=shape[:-1]) * 2.0**20)
        table[..., -1] = 2.0**20 - table[..., :-1].sum(axis=-1)
        return table / 2.0**20

    S, A = n_states, 2
    mdp = counsel.MDP(exact((S, A, S)), rng.normal(size=(S, A)), discount=discount)
    lift = np.round(rng.uniform(size=(S, A)) * 2.0**20) / 2.0**20
    return counsel.AdviceProblem(mdp, counsel.Human(exact((S, A)), lift=lift))


def exact_value(problem, advice, penalty):
    """Solve the linear equations of a policy in fractions; return the value of state 0."""
    S, gamma = problem.n_states, Fraction(problem.discount)
    rows = [[Fraction(int(s == t)) for t in range(S)] + [Fraction(0)] for s in range(S)]
    for s, b in enumerate(advice):
        habit = [Fraction(float(chance)) for chance in problem.policy[0, s]]
        lift = Fraction(0) if b == problem.defer else Fraction(float(problem.lift[0, s, b]))
        for a, chance in enumerate(habit):
            mass = (1 - lift) * chance + (lift if a == b else 0)
            states, chances = problem.mdp.kernel.successors(0, s, a)
            for t, p in zip(states, chances, strict=True):
                rows[s][t] -= gamma * mass * Fraction(float(p))
            rows[s][S] += mass * Fraction(float(problem.mdp.reward[0, s, a]))
        rows[s][S] -= 0 if b == problem.defer else Fraction(penalty)
    for i in range(S):
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for j in range(S):
            if j != i:
                rows[j] = [x - rows[j][i] * y for x, y in zip(rows[j], rows[i], strict=True)]
    return rows[0][S]


@each_seed(range(12))
@pytest.mark.parametrize("discount", [0.999, 1 - 1e-6, 1 - 1e-8])
@pytest.mark.parametrize("penalty", [0.0, 0.125])
def test_no_policy_is_better_by_more_than_the_error_in_fractions(seed, discount, penalty):
    problem = drawn(np.random.default_rng(seed), discount)
    plan = counsel.solve(problem, penalty=penalty)
    choices = itertools.product(range(problem.defer + 1), repeat=problem.n_states)
    best = max(exact_value(problem, advice, penalty) for advice in choices)
    own = exact_value(problem, plan.policy.advice[0].tolist(), penalty)
    assert abs(Fraction(plan.net_value) - best) <= plan.error
    assert best - own <= plan.error
    assert plan.error <= 1e-6 * (problem.mdp.reward_size + 2.0 * penalty) / (1.0 - discount)


@pytest.mark.slow
@each("name", WORLDS)
@each("away", [1e-4, 1e-6, 1e-8])
def test_a_discount_almost_1_is_planned_as_well_as_the_average(name, away):
    """With a discount of 1 − 1e-8 plans were silent, and told values above every reward."""
    problem = counsel.make(name)
    average, endless = problem.without_end(average=True), problem.without_end(1.0 - away)
    per_step = counsel.solve(average)
    plan = counsel.solve(endless)
    assert plan.value * away == pytest.approx(per_step.value, abs=100 * away + 1e-6)
    assert plan.advice_count * away == pytest.approx(per_step.advice_count, abs=100 * away + 1e-6)
    budget = 0.3 * plan.advice_count
    limited = counsel.solve(endless, budget=budget)
    outcome = counsel.evaluate(endless, limited.policy)
    assert outcome.value == pytest.approx(limited.value, rel=1e-7)
    assert outcome.advice_count == pytest.approx(budget, rel=1e-7)
    kinks, of_average = (counsel.criticality(each).lower for each in (endless, average))
    np.testing.assert_allclose(kinks, of_average, atol=2000 * away + 1e-7)
    assert len(counsel.frontier(endless).vertices) >= len(counsel.frontier(average).vertices)


def test_a_world_that_ends_keeps_its_value_where_the_discount_is_almost_1():
    """Of the ward, worth 400 for ever, plans told a value of 476 million."""
    ward = counsel.make("ward/tiring")
    values = [counsel.solve(ward.without_end(1.0 - away)).value for away in (1e-6, 1e-8)]
    assert values == pytest.approx([393.7, 393.9], abs=0.1)


def test_relative_values_give_the_plans_of_values(monkeypatch):
    rng = np.random.default_rng(3)
    problem = drawn(rng, 0.9, n_states=6)
    plain = [counsel.solve(problem, penalty=beta) for beta in (0.0, 0.1)]
    monkeypatch.setattr(prepared_problem, "NEAR_ONE", 0.5)
    monkeypatch.setattr("counsel.planning.planners.NEAR_ONE", 0.5)
    same = counsel.AdviceProblem(problem.mdp, problem.human)
    for beta, plan in zip((0.0, 0.1), plain, strict=True):
        other = counsel.solve(same, penalty=beta)
        np.testing.assert_allclose(other.values, plan.values, rtol=1e-12)
        np.testing.assert_array_equal(other.policy.advice, plan.policy.advice)
        assert other.advice_count == pytest.approx(plan.advice_count, rel=1e-12)
    brackets = [counsel.criticality(p, max_kinks=0) for p in (problem, same)]
    exact = counsel.criticality(problem).lower
    for bracket in brackets:
        assert (bracket.lower <= exact + 1e-9).all()
        assert (exact <= bracket.upper + 1e-9).all()


@each("end", [{"discount": 0.999}, {"average": True}])
def test_a_policy_that_always_speaks_is_evaluated_without_sweeps(monkeypatch, end):
    """Its cost is 1 in every cell; what was left of cost less gain was rounding, and was swept."""
    rng, S, A = np.random.default_rng(0), 400, 3
    P = np.zeros((S, A, S))
    np.put_along_axis(P, rng.integers(S, size=(S, A, 4)), 0.25, axis=2)
    P /= P.sum(axis=2, keepdims=True)
    mdp = counsel.MDP(P, rng.random((S, A)), **end)
    habit, lift = rng.dirichlet(np.ones(A), size=S), rng.uniform(0.1, 1.0, size=(S, A))
    problem = counsel.AdviceProblem(mdp, counsel.Human(habit, lift=lift))

    def swept(*_args):
        raise AssertionError("swept")

    monkeypatch.setattr("counsel.planning.linear_equations.Equations._sweep", swept)
    plan = counsel.solve(problem, budget=0.2 if "average" in end else 200.0)
    assert plan.error <= 1e-9 / (1.0 if "average" in end else 1e-3)


def test_errors_of_values_do_not_grow_with_the_changes_of_plans():
    """Plans on this ring alternated, each evaluated more roughly, until they were refused."""
    rng, S = np.random.default_rng(5), 283
    P = np.zeros((S, 2, S))
    P[np.arange(S)[:, None], [0, 1], (np.arange(S)[:, None] + [1, S // 2]) % S] = 1.0
    mdp = counsel.MDP(P, rng.random((S, 2)).round(2), discount=0.999)
    human = counsel.Human(rng.dirichlet(np.ones(2), S), lift=rng.random((S, 2)))
    problem = counsel.AdviceProblem(mdp, human)
    world, plan = machine(problem), counsel.solve(problem)
    better = (world.reward + 0.999 * world.P @ plan.values[0]).max(axis=1)
    assert plan.error <= 1e-6
    assert np.abs(better - plan.values[0]).max() <= 1e-9


def test_a_discount_too_near_1_is_refused():
    problem = counsel.make("machine-repair").without_end(1.0 - 1e-12)
    with pytest.raises(
        counsel.CounselError, match=r"discount 0\.999999999999 is too near 1: .* av"
    ):
        counsel.solve(problem)
