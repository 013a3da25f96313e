"""The lift of people who tire: likelihood, bounds and draws against formulas written out."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import beta

from counsel.estimate.faded_lift import (
    FadedPieces,
    LevelCounts,
    drawn_lift,
    exposure_of,
    faded_pieces,
    lift_quantiles,
    likeliest_lift,
    upper_faded_lift,
)
from counsel.estimate.people_counts import PeopleCounts
from counsel.estimate.person import PersonModel
from tests.support.each import each_seed

S, A = 4, 3
FADING = np.array([1.0, 0.6, 0.25])


def drawn_pieces(rng, fading=FADING, size=12):
    """Pieces of advice to somebody with random lifts, and the lifts."""
    lift, habit = rng.uniform(0.05, 0.95, A), rng.dirichlet(np.ones(A), size=S)
    cells = [(s, b, m) for s in range(S) for b in range(A) for m in range(len(fading))]
    state, advice, level = np.array(cells).T
    given = rng.integers(size, size=state.size)
    own = habit[state, advice]
    moved = np.minimum(fading[level] * lift[advice], 1.0)
    matched = rng.binomial(given, own + (1.0 - own) * moved)
    counts = LevelCounts(state, advice, level, given.astype(float), matched.astype(float))
    return counts, habit, lift


def slow_likelihood(counts, habit, fading, b, lift, hits, misses):
    total = hits * math.log(lift) + misses * math.log(1.0 - lift)
    for s, advice, m, n, k in zip(*counts, strict=True):
        if advice == b:
            theta = habit[s, b] + fading[m] * lift * (1.0 - habit[s, b])
            total += k * math.log(theta) + (n - k) * math.log(1.0 - theta)
    return total


@each_seed(range(10))
def test_estimate_and_bound_are_those_of_the_likelihood_written_out(seed):
    rng = np.random.default_rng(seed)
    counts, habit, _ = drawn_pieces(rng)
    hits, misses = rng.uniform(0.3, 4.0, (2, A))
    pieces = faded_pieces(counts, habit, FADING, hits, misses)
    lift, level = likeliest_lift(pieces), 2.5
    upper = upper_faded_lift(pieces, lift, level)
    for b in range(A):

        def height(x, b=b):
            return slow_likelihood(counts, habit, FADING, b, x, hits[b], misses[b])

        best = minimize_scalar(lambda x: -height(x), bounds=(1e-9, 1 - 1e-9), method="bounded",
                               options={"xatol": 1e-10})  # fmt: skip
        assert lift[b] == pytest.approx(best.x, abs=1e-6)
        least = height(best.x) - level
        bound = brentq(lambda x, least=least: least - height(x), best.x, 1.0 - 1e-12)
        assert upper[b] == pytest.approx(bound, abs=1e-5)


@each_seed(range(5))
def test_rested_people_who_never_act_alone_are_as_without_a_memory(seed):
    rng = np.random.default_rng(seed)
    given = rng.integers(1, 20, A).astype(float)
    matched = rng.binomial(given.astype(int), 0.4).astype(float)
    hits, misses = np.full(A, 0.7), np.full(A, 1.3)
    zero = np.zeros(A, dtype=int)
    counts = LevelCounts(zero, np.arange(A), zero, given, matched)
    pieces = faded_pieces(counts, np.zeros((1, A)), np.ones(1), hits, misses)
    share = (matched + hits) / (given + 2.0)
    assert likeliest_lift(pieces) == pytest.approx(share, abs=1e-12)
    assert exposure_of(pieces).tolist() == given.tolist()
    for tail in (0.025, 0.5, 0.975):
        quantiles = beta.ppf(tail, matched + hits + 0.5, given - matched + misses + 0.5)
        assert lift_quantiles(pieces, tail) == pytest.approx(quantiles, abs=1e-5)


def test_draws_are_of_the_density():
    rng = np.random.default_rng(0)
    counts, habit, _ = drawn_pieces(rng)
    half = np.full(A, 0.5)
    pieces = faded_pieces(counts, habit, FADING, half, half)
    drawn = np.array([drawn_lift(pieces, rng) for _ in range(300)])
    for share in (0.25, 0.5, 0.75):
        below = (drawn <= lift_quantiles(pieces, share)).mean(axis=0)
        assert below == pytest.approx(share, abs=0.08)


def test_a_level_that_listens_better_than_the_base_has_no_lift_above_1():
    one = np.ones(1)
    counts = LevelCounts(*np.zeros((3, 1), dtype=int), 20.0 * one, 19.0 * one)
    pieces = faded_pieces(counts, np.zeros((1, 1)), np.array([2.0]), 0.5 * one, 0.5 * one)
    assert likeliest_lift(pieces)[0] == pytest.approx(0.475, abs=0.02)
    assert upper_faded_lift(pieces, likeliest_lift(pieces), 50.0)[0] <= 0.5
    assert lift_quantiles(pieces, 0.999)[0] <= 0.5


def test_pieces_that_cannot_say_anything_are_left_out():
    two, nine = np.arange(2), np.full(2, 9.0)
    counts = LevelCounts(two, np.zeros(2, int), two, nine, nine)
    certain = np.array([[1.0, 0.0], [0.5, 0.5]])
    pieces = faded_pieces(counts, certain, np.array([1.0, 0.0]), np.ones(2), np.ones(2))
    assert pieces.advice.size == 0, "one acts so anyway, the other does not listen at all"
    assert isinstance(pieces, FadedPieces)
    assert likeliest_lift(pieces).tolist() == pytest.approx([0.5, 0.5])


def counted(pieces, rng):
    """People counts with these pieces: refusals are any other action."""
    counts = PeopleCounts()
    for s, b, m, n, k in zip(*(column.tolist() for column in pieces), strict=True):
        for i in range(int(n)):
            action = b if i < k else (b + 1 + int(rng.integers(A - 1))) % A
            counts.add(0, (s, b, action), level=m)
    return counts


@each_seed(range(3))
def test_levels_that_are_all_alike_make_no_difference(seed):
    rng = np.random.default_rng(seed)
    pieces, habit, _ = drawn_pieces(rng, np.ones(3))
    counts = counted(pieces, rng)
    possible = np.ones((S, A), dtype=bool)
    own, everybody = counts.arrays(0, possible)
    plain = PersonModel(habit, knows_habit=True).estimate(own, everybody)
    levels = counts.by_level(0, possible)
    same = PersonModel(habit, knows_habit=True, fading=np.ones(3))
    estimate = same.estimate(own, everybody, levels=levels)
    for name in ("lift", "exposure", "planned_lift"):
        assert getattr(estimate, name).tolist() == getattr(plain, name).tolist()


@pytest.mark.slow
def test_the_upper_bound_and_the_interval_hold_for_people_who_tire():
    """Of one person alone, who is the population: so the interval is that of the population."""
    rng, missed, outside, looks = np.random.default_rng(1), 0, 0, 0
    for _ in range(150):
        pieces, habit, lift = drawn_pieces(rng, size=40)
        counts = counted(pieces, rng)
        possible = np.ones((S, A), dtype=bool)
        own, everybody = counts.arrays(0, possible)
        model = PersonModel(habit, knows_habit=True, fading=FADING)
        levels = counts.by_level(0, possible)
        estimate = model.estimate(own, everybody, levels=levels)
        low, high = model.faded_interval(None, everybody, levels)
        missed += int((estimate.planned_lift < lift).sum())
        outside += int(((lift < low) | (high < lift)).sum())
        looks += A
    assert missed == 0
    assert outside / looks == pytest.approx(0.05, abs=0.03)
