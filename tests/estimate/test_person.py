"""What is believed of one person, against the formulas written out for each advice and state."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from counsel import CounselError
from counsel.estimate.people_counts import DecisionCounts
from counsel.estimate.person import PersonModel
from tests.support.each import each_seed

S, A = 4, 3


def drawn_counts(rng, size):
    silent, refusing, matched = (rng.integers(size + 1, size=(S, A)) for _ in range(3))
    # Whoever refuses one advice does another action: the sums over a state must agree.
    given = matched.copy()
    for s in range(S):
        for a in range(A):
            others = [b for b in range(A) if b != a]
            for _ in range(refusing[s, a]):
                given[s, rng.choice(others)] += 1
    return DecisionCounts(silent, refusing, given, matched)


def divergence(p, q):
    first = p * math.log(p / q) if p > 0 else 0.0
    return first + ((1 - p) * math.log((1 - p) / (1 - q)) if p < 1 else 0.0)


def slow_upper(lift, weight, level):
    """Return the largest λ with weight · kl(lift, λ) ≤ level by a root search."""
    top = 1.0 - 1e-15
    if lift >= top or weight * divergence(lift, top) <= level:
        return 1.0
    return brentq(lambda q: weight * divergence(lift, q) - level, lift, top, xtol=1e-14)


@each_seed(range(30))
def test_the_lift_leans_on_everybody(seed):
    rng = np.random.default_rng(seed)
    own, others = drawn_counts(rng, 6), drawn_counts(rng, 30)
    everybody = DecisionCounts(*(x + y for x, y in zip(own, others, strict=True)))
    habit = rng.dirichlet(np.ones(A), size=S)
    estimate = PersonModel(habit, knows_habit=True).estimate(own, everybody)
    for b in range(A):
        moved, exposure = (
            (
                sum(n.matched[s, b] - n.given[s, b] * habit[s, b] for s in range(S))
                for n in (own, everybody)
            ),
            [sum(n.given[s, b] * (1 - habit[s, b]) for s in range(S)) for n in (own, everybody)],
        )
        mine, all_ = moved
        common = min(max((all_ + 0.5) / (exposure[1] + 1.0), 0.0), 1.0)
        lift = min(max((mine + 5.0 * common) / (exposure[0] + 5.0), 0.0), 1.0)
        assert estimate.lift[b] == pytest.approx(lift, abs=1e-12)
        assert estimate.exposure[b] == pytest.approx(exposure[0], abs=1e-9)
        level = math.log(1 + everybody.given.sum())
        bound = slow_upper(lift, exposure[0] + 5.0, level)
        assert estimate.planned_lift[b] == pytest.approx(bound, abs=1e-7)


def test_a_state_that_was_never_met_keeps_the_prior_habit():
    prior = np.array([[0.2, 0.8], [0.5, 0.5]])
    empty = DecisionCounts(*np.zeros((4, 2, 2), dtype=np.int64))
    silent = np.array([[0, 0], [30, 10]])
    own = empty._replace(silent=silent)
    habit = PersonModel(prior).estimate(own, own).habit
    np.testing.assert_allclose(habit[0], prior[0], atol=1e-9)
    # The population's habit is (30 + 5/2) / 45; it counts for five more decisions of the person.
    np.testing.assert_allclose(habit[1, 0], (30 + 5 * (32.5 / 45)) / 45, atol=1e-9)


def test_thompson_draws_around_the_estimate():
    rng = np.random.default_rng(0)
    counts = DecisionCounts(*np.zeros((4, 1, 2), dtype=np.int64))
    counts.given[0, 0], counts.matched[0, 0] = 400, 300
    model = PersonModel(np.array([[0.0, 1.0]]), knows_habit=True, algorithm="thompson")
    draws = np.array([model.estimate(counts, counts, rng).planned_lift[0] for _ in range(4000)])
    # Beta(405 λ̂ + 1/2, 405 (1 − λ̂) + 1/2): its mean and its spread, four standard errors each way.
    lift, n = model.estimate(counts, counts, rng).lift[0], 406.0
    spread = math.sqrt(lift * (1 - lift) / n)
    assert abs(draws.mean() - lift) < 4 * spread / math.sqrt(4000) + 1 / n
    assert draws.std() == pytest.approx(spread, rel=4 / math.sqrt(2 * 4000) + 0.01)


def test_an_algorithm_that_does_not_exist_is_refused():
    with pytest.raises(CounselError, match="algorithm is 'magic'; it must be one of ucb-ad"):
        PersonModel(np.ones((1, 1)), algorithm="magic")


def test_thompson_needs_a_source_of_draws():
    counts = DecisionCounts(*np.zeros((4, 1, 2), dtype=np.int64))
    model = PersonModel(np.array([[0.5, 0.5]]), algorithm="thompson")
    with pytest.raises(CounselError, match="give rng"):
        model.estimate(counts, counts)
