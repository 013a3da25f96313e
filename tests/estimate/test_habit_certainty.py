"""Bounds and estimates at the ends: no match, no refusal, one rounding below 1, 10^9 counts."""

from decimal import Decimal, localcontext

import numpy as np

from counsel.estimate._bound_kernels import kl_above
from counsel.estimate.bounds import KL, PaperBonus, Theory, interval
from counsel.estimate.habit import chance_of_others, estimate_habit
from counsel.estimate.pooling import AdviceCounts, pool

ULP = 2.0**-53
MEANS = (0.0, 5e-324, 1e-300, 1e-17, ULP, 1e-12, 1e-9, 0.5, 1.0 - 1e-9, 1.0 - 1e-12, 1.0 - ULP)
LEVELS = (1e-9, 1e-6, 1e-3, 0.1, 1.0, 30.0, 700.0, 1e4)
"""From 10^9 pieces of advice to none at all."""


def divergence(p, q):
    """kl(p, q) with 400 digits."""
    value = Decimal(0)
    if p > 0:
        value += p * (p / q).ln()
    if p < 1:
        value += (1 - p) * ((1 - p) / (1 - q)).ln()
    return value


def assert_bound(p, level, got, close, case):
    """Check that the divergence crosses the level within ``close`` of the bound."""
    with localcontext(prec=400):
        p, level, got, close = (Decimal(float(x)) for x in (p, level, got, close))
        assert 0 <= got <= 1, case
        assert got >= p - close, case
        if got - close > p:
            assert divergence(p, got - close) <= level, case
        if max(got, p) + close < 1:
            assert divergence(p, max(got, p) + close) >= level, case


def test_the_divergence_bound_holds_from_no_match_to_one_rounding_below_one():
    for p in MEANS:
        for level in LEVELS:
            got = kl_above(p, level)
            assert_bound(p, level, got, 2e-12, f"p {p!r}, level {level!r}: {got!r}")
    for level in (0.0, *LEVELS):
        assert kl_above(1.0, level) == 1.0


def test_intervals_of_a_billion_pieces_of_advice_are_exact():
    n = 10**9
    matched = np.array([0, 0, 1, 0, 1, n // 2, n - 1, n])
    given = np.array([0, 1, 1, n, n, n, n, n])
    low, high = interval(KL(delta=0.1), matched, given, groups=3, horizon=12, episode=500)
    assert (low[0], high[0]) == (0.0, 1.0)
    for k, m, a, b in zip(matched[1:], given[1:], low[1:], high[1:], strict=True):
        with localcontext(prec=60):
            level = float((Decimal(30) * (Decimal(int(m)) + 1)).ln() / int(m))
        case = f"{k} of {m}: {a!r} to {b!r}"
        assert_bound(k / m, level, b, 2e-12, case)
        assert_bound((m - k) / m, level, 1.0 - a, 2e-12, case)


def test_every_interval_lies_in_zero_to_one_and_holds_the_mean():
    n = 10**9
    matched = np.array([0, 0, 1, 0, 1, 2, 0, 1, n - 1, n])
    given = np.array([0, 1, 1, 2, 2, 2, n, n, n, n])
    mean = np.divide(matched, given, out=np.full(given.shape, 0.5), where=given > 0)
    for bound in (KL(), KL(delta=1e-12), Theory(delta=0.1, episodes=10**6), PaperBonus()):
        for episode in (0, 1, 10**9):
            low, high = interval(bound, matched, given, groups=7, horizon=9, episode=episode)
            case = f"{bound}, episode {episode}: {low.tolist()}, {high.tolist()}"
            assert np.isfinite([low, high]).all(), case
            assert (high <= 1.0).all(), case
            assert (high >= mean - 1e-15).all(), case
            assert (low >= 0.0).all(), case
            assert (low <= mean + 1e-15).all(), case


def test_the_chance_of_others_keeps_its_digits():
    policy = np.array([[1.0 - 1e-12, 1e-12, 0.0], [1.0, 1e-200, 1e-250], [0.25, 0.5, 0.25]])
    expected = [[1e-12, 1.0 - 1e-12, 1.0], [1e-200, 1.0, 1.0], [0.75, 0.5, 0.75]]
    np.testing.assert_allclose(chance_of_others(policy), expected, rtol=4 * ULP)
    np.testing.assert_array_equal(chance_of_others(policy[None]), chance_of_others(policy)[None])


def test_pooling_is_finite_whatever_the_habit_and_the_counts():
    habits = np.array([0.0, 5e-324, 1e-300, 1e-17, ULP, 0.5, 1.0 - 1e-12, 1.0 - ULP, 1.0])
    counts = [(0, 0), (0, 1), (1, 1), (0, 10**9), (1, 10**9), (10**9 - 1, 10**9), (10**9, 10**9)]
    for size in (np.inf, 1.0, 1e9):
        for k, given in counts:
            heard = AdviceCounts(
                unit=np.arange(habits.size),
                family=np.zeros(habits.size, dtype=np.int64),
                given=np.full(habits.size, float(given)),
                matched=np.full(habits.size, float(k)),
                habit=habits,
                size=np.full(habits.size, size),
            )
            with np.errstate(all="raise", under="ignore"):
                pooled = pool(heard)
            case = f"{k} of {given}, size {size}"
            for name in ("mean", "low", "high"):
                end = getattr(pooled, name)
                assert np.isfinite(end).all(), f"{case}: {name} {end}"
                assert (np.abs(end) <= 1.0).all(), f"{case}: {name} {end}"


def test_habits_are_distributions_whatever_the_counts():
    some = (0.0, 1e-6, 1.0, 1e9)
    for silent in some:
        for refusing in some:
            for rare in (0.0, 1e-6, 1.0):
                silence = np.array([[silent, rare, 0.0]])
                refused = np.array([[0.0, refusing, rare]])
                against = np.array([[refusing, 0.0, rare]])
                with np.errstate(all="raise", under="ignore"):
                    habit = estimate_habit(silence, against, refused, silence + against)
                case = f"silent {silent}, refusing {refusing}, rare {rare}: {habit.policy}"
                assert abs(habit.policy.sum() - 1.0) <= 1e-12, case
                assert (habit.policy >= 0.0).all(), case
                assert np.isfinite(habit.size).all(), case
                assert (habit.low <= habit.high).all(), case
