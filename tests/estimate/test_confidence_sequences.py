"""Confidence sequences against slow definitions, and how often they ever miss the truth."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import betabinom, binom

from counsel.estimate import confidence_sequences as sequences
from counsel.estimate.confidence_sequences import AdviceCounts, Sums
from counsel.estimate.intervals import student, wilson
from tests.support import sequence_coverage
from tests.support.each import each

LEVEL = math.log(20.0)


def log_mixture(k, n, p):
    """The mixture of ``share_sequence``, term by term."""
    terms = [
        math.exp(x * k) * (1.0 + p * math.expm1(x)) ** -n / (2 * len(sequences.TILTS))
        for size in sequences.TILTS
        for x in (size, -size)
    ]
    return math.log(math.fsum(terms))


@each(("k", "n"), [(0, 12), (3, 20), (10, 20), (20, 20), (29, 80)])
def test_a_share_is_covered_where_the_mixture_is_below_its_level(k, n):
    low, high = sequences.share_sequence(k, n)
    for end, other in ((float(low), k / n), (float(high), k / n)):
        if 0.0 < end < 1.0:
            # Ends are outside by as much as the terms of the other sign weigh, and no more.
            assert -1e-9 <= log_mixture(k, n, end) - LEVEL < 0.02
        assert log_mixture(k, n, (end + other) / 2.0) < LEVEL
    assert low <= k / n <= high


def test_sequences_are_wider_than_usual_intervals_and_narrow_as_counts_grow():
    n = np.array([10, 100, 1_000, 10_000, 1_000_000])
    for share in (0.0, 0.03, 0.5, 0.9):
        k = np.floor(n * share)
        usual = wilson(k, n)
        for sequence in (sequences.share_sequence, sequences.constant_share_sequence):
            low, high = sequence(k, n)
            assert (low <= usual[0] + 1e-12).all()
            assert (high >= usual[1] - 1e-12).all()
            assert (np.diff(high - low) < 0.0).all()
    low, high = sequences.share_sequence([0, 5], [0, 5])
    assert (low[0], high[0], high[1]) == (0.0, 1.0, 1.0)


def test_the_ends_of_misses_mirror_those_of_hits():
    n, k = np.meshgrid([1, 7, 60], [0, 1])
    for sequence in (sequences.share_sequence, sequences.constant_share_sequence):
        low, high = sequence(k, n)
        other_low, other_high = sequence(n - k, n)
        np.testing.assert_allclose(low, 1.0 - other_high, atol=1e-12)
        np.testing.assert_allclose(high, 1.0 - other_low, atol=1e-12)


@each(("k", "n"), [(1, 9), (5, 9), (40, 200)])
def test_a_constant_share_is_covered_where_beta_binomial_odds_are_below_20(k, n):
    def excess(p):
        return betabinom.logpmf(k, n, 0.5, 0.5) - binom.logpmf(k, n, p) - LEVEL

    low, high = sequences.constant_share_sequence(k, n)
    assert low == pytest.approx(brentq(excess, 1e-9, k / n), abs=1e-9)
    assert high == pytest.approx(brentq(excess, k / n, 1.0 - 1e-9), abs=1e-9)


def test_a_weighted_share_is_the_extreme_of_the_convex_set():
    """The largest and the smallest on a fine grid of the habits of two states, of three."""
    weights, hits, of = np.array([0.7, 0.3, 0.0]), np.array([8, 3, 2]), np.array([30, 4, 10])
    p = np.linspace(0.0005, 0.9995, 1000)
    logs = [
        betabinom.logpmf(k, n, 0.5, 0.5) - binom.logpmf(k, n, p)
        for k, n in zip(hits, of, strict=True)
    ]
    both = logs[0][:, None] + logs[1] + logs[2].min()
    inside = both < math.log(40.0)
    inside &= (logs[0] < math.log(120.0))[:, None] & (logs[1] < math.log(120.0))
    means = (0.7 * p[:, None] + 0.3 * p)[inside]
    low, high = sequences.weighted_share_sequence(weights, hits, of)
    assert low <= means.min() < low + 0.003
    assert high - 0.003 < means.max() <= high


def test_without_silence_a_habit_may_be_anything():
    low, high = sequences.weighted_share_sequence([0.5, 0.5], [0, 0], [0, 0])
    assert (low, high) == (0.0, 1.0)
    low, high = sequences.weighted_share_sequence([0.5, 0.5], [0, 40], [0, 80])
    assert 0.0 < low < 0.25 < 0.75 < high < 1.0  # the first state has any habit


def test_a_lift_needs_silence_in_the_states_of_the_advice():
    counts = AdviceCounts([50, 0], [40, 0], [0, 500], [0, 100])
    low, high = sequences.lift_sequence(counts)
    assert low == -np.inf
    assert high == pytest.approx(sequences.share_sequence(40, 50, 0.025)[1])


def test_a_lift_with_a_known_habit_follows_from_the_share_alone():
    low, high = sequences.share_sequence(60, 100)
    counts = AdviceCounts([60, 40], [50, 10], [0, 0], [0, 0])
    ends = sequences.lift_sequence(counts, habit=[0.5, 0.2])
    habit = 0.6 * 0.5 + 0.4 * 0.2
    assert ends == pytest.approx([(end - habit) / (1.0 - habit) for end in (low, high)])
    assert sequences.lift_sequence(counts, habit=[1.0, 1.0]) == (-np.inf, 1.0)


def test_lifts_of_many_advices_are_computed_at_once():
    rng = np.random.default_rng(3)
    silent = rng.integers(0, 60, 5)
    given, unprompted = rng.integers(0, 40, (3, 5)), rng.binomial(silent, 0.3, (3, 5))
    matched = rng.binomial(given, 0.6)
    low, high = sequences.lift_sequence(AdviceCounts(given, matched, silent, unprompted))
    for b in range(3):
        counts = AdviceCounts(given[b], matched[b], silent, unprompted[b])
        assert sequences.lift_sequence(counts) == pytest.approx((low[b], high[b]))


@each("seed", range(4))
def test_the_variance_of_a_bounded_mean_is_bounded_in_any_order(seed):
    """What the docstring says of V, whose summands depend on the order."""
    rng = np.random.default_rng(seed)
    values = rng.permutation(np.concatenate((rng.random(30), np.ones(20), np.zeros(seed * 20))))
    if seed == 3:
        values = np.sort(values)
    n = np.arange(1, values.size)
    guesses = np.concatenate(([0.5], np.cumsum(values)[:-1] / n))
    spread = values.size * values.var()
    harmonic = sum(1.0 / i for i in range(2, values.size + 1))
    assert ((values - guesses) ** 2).sum() <= 0.25 + spread + min(spread, harmonic)


@each(("n", "variance"), [(1, 0.0), (40, 0.2), (5_000, 0.01)])
def test_a_bounded_mean_is_covered_where_the_mixture_is_below_its_level(n, variance):
    spread = n * variance
    v = 0.25 + spread + min(spread, sum(1.0 / i for i in range(2, n + 1)))
    rates = sequences.RATES

    def excess(s):
        parts = np.exp((np.log1p(-rates) + rates) * v) * np.cosh(rates * s)
        return math.log(parts.mean()) - LEVEL

    half = 10.0 * brentq(excess, 0.0, 200.0) / n
    sums = Sums(n, 2.0 * n, 100.0 * spread + 4.0 * n)  # of numbers between −3 and 7, with mean 2
    low, high = sequences.bounded_mean_sequence(sums, -3.0, 7.0)
    assert low == pytest.approx(max(2.0 - half, -3.0), abs=1e-6)
    assert high == pytest.approx(min(2.0 + half, 7.0), abs=1e-6)


def test_no_numbers_say_nothing():
    assert sequences.bounded_mean_sequence(Sums(0, 0.0, 0.0), -1.0, 2.0) == (-1.0, 2.0)
    assert sequences.mean_sequence(Sums(0, 0.0, 0.0)) == (-np.inf, np.inf)
    few = Sums(sequences.LEAST - 1, 0.0, 5.0)
    assert sequences.difference_sequence(Sums(10_000, 0.0, 50.0), few) == (-np.inf, np.inf)


def test_a_mean_is_covered_where_the_mixture_of_students_ratio_is_below_its_level():
    values = np.random.default_rng(0).normal(3.0, 2.0, 50)
    sums = Sums(50, values.sum(), (values**2).sum())
    low, high = sequences.mean_sequence(sums)
    error, g = values.std(ddof=1) / math.sqrt(50), sequences.EFFECT**2 * 50
    for end in (low, high):
        t = (values.mean() - end) / error
        odds = ((1.0 + t**2 / 49) / (1.0 + t**2 / 49 / (1.0 + g))) ** 25 / math.sqrt(1.0 + g)
        assert odds == pytest.approx(20.0)
    usual = student(*sums.arrays())
    assert low < usual[0] < usual[1] < high


def test_the_weighted_difference_is_the_mean_of_weighted_rewards():
    rng = np.random.default_rng(1)
    is_silent, rewards = rng.random(300) < 0.2, rng.random(300) * 4.0 - 1.0
    kinds = [
        Sums(kind.sum(), rewards[kind].sum(), (rewards[kind] ** 2).sum())
        for kind in (~is_silent, is_silent)
    ]
    parts = (rewards - 1.0) * np.where(is_silent, -1.0 / 0.2, 1.0 / 0.8)
    sums = Sums(300, parts.sum(), (parts**2).sum())
    expected = sequences.bounded_mean_sequence(sums, -10.0, 10.0)
    ends = sequences.weighted_difference_sequence(*kinds, 0.2, (-1.0, 3.0))
    assert ends == pytest.approx(np.clip(expected, -4.0, 4.0))


RUNS, LOOKS = 200, 2_000
ENOUGH = int(binom.ppf(1e-3, RUNS, 0.95))
"""Covered runs that a sequence with exactly 95 % coverage falls below in one of 1,000 studies."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "share 0.03",
        "share 0.5",
        "constant share 0.97",
        "share that depends on the past",
        "lift 0.3, habit 0.5 known",
        "bounded mean, rare",
        *(name for name in sequence_coverage.cases() if name.startswith("worth")),
    ],
)
def test_no_look_misses_the_truth_in_95_of_100_runs(name):
    assert sequence_coverage.covered(name, RUNS, LOOKS, seed=1) >= ENOUGH


@pytest.mark.slow
@pytest.mark.parametrize("habit", [0.2, 0.5])
@pytest.mark.parametrize("moved", [0.0, 0.3])
def test_no_look_at_a_lift_misses_the_truth_in_95_of_100_runs(habit, moved):
    name = f"lift {moved}, habit {habit}"
    assert sequence_coverage.covered(name, RUNS, 400, seed=1) >= ENOUGH


@pytest.mark.slow
def test_usual_intervals_miss_the_truth_sooner_or_later():
    """The study can tell: an interval for one look does not cover at 2,000."""
    for name in ("usual: share 0.5", "usual: worth, normal, 0.1 silent"):
        assert sequence_coverage.covered(name, RUNS, LOOKS, seed=1) < 0.8 * RUNS


@pytest.mark.slow
def test_looks_that_the_study_passes_over_are_covered():
    for play in (
        lambda screen: sequence_coverage.share(
            0.3, sequence_coverage.share_sequence, screen=screen
        ),
        lambda screen: sequence_coverage.lift(0.5, 0.3, screen=screen),
    ):
        for seed in range(3):
            quick, slow = (
                play(screen)(np.random.default_rng(seed), 300) for screen in (True, False)
            )
            assert (quick == slow).all()
