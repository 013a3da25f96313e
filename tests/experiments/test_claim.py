"""The rule that decides claims: its intervals, its three verdicts, and how often it is wrong."""

import json
import math

import numpy as np
import pytest
from scipy.stats import binom, binomtest

import counsel
from counsel.experiments.claim import (
    LEVEL,
    SEEDS,
    Claim,
    Exact,
    Median,
    Share,
    Verdict,
    decide,
    digits,
    settle,
)

HOLDS, FAILS, UNKNOWN = Verdict.HOLDS, Verdict.FAILS, Verdict.UNKNOWN


# Intervals.


@pytest.mark.parametrize(("hits", "runs"), [(0, 24), (3, 24), (24, 24), (1, 1), (40, 100)])
def test_the_interval_of_a_share_is_the_exact_one_of_scipy(hits, runs):
    values = np.append(np.zeros(hits), np.ones(runs - hits))
    share, low, high = Share(0.5).estimate(values)
    exact = binomtest(hits, runs).proportion_ci(LEVEL, method="exact")
    assert (share, low, high) == pytest.approx((hits / runs, exact.low, exact.high))
    other = Share(0.5, above=True).estimate(values)
    assert other == pytest.approx((1.0 - share, 1.0 - high, 1.0 - low))


def test_the_interval_of_a_median_lies_between_ordered_values():
    # Of 24 values the 6th and the 19th: with probability 0.0066 the median lies outside, with the
    # 7th and the 18th it would be 0.023.
    middle, low, high = Median().estimate(np.arange(24.0)[::-1])
    assert (middle, low, high) == (11.5, 5.0, 18.0)
    assert 2.0 * binom.cdf(5, 24, 0.5) <= 1.0 - LEVEL < 2.0 * binom.cdf(6, 24, 0.5)
    assert Median().estimate(np.arange(8.0)) == (3.5, 0.0, 7.0)
    assert Median().estimate(np.arange(7.0)) == (3.0, -math.inf, math.inf)


def test_a_run_without_a_value_widens_the_interval_in_both_directions():
    values = np.arange(24.0)
    values[[3, 20]] = np.nan
    full, fewer = Median().estimate(np.arange(24.0)), Median().estimate(values)
    assert fewer.low < full.low
    assert fewer.high > full.high
    share = Share(12.0).estimate(values)
    assert share.low == Share(12.0).estimate(np.append(np.zeros(11), np.full(13, 99.0))).low
    assert share.high == Share(12.0).estimate(np.append(np.zeros(13), np.full(11, 99.0))).high
    assert share.value == 11 / 22


# Three verdicts.


def test_the_three_verdicts_on_a_median():
    few = np.linspace(1.0, 2.0, 12)
    values = np.random.default_rng(0).permutation(few)
    for limit, below in ((2.5, HOLDS), (0.5, FAILS), (1.5, UNKNOWN)):
        assert decide(Median(), values, limit, above=False) is below
    for limit, above in ((0.5, HOLDS), (2.5, FAILS), (1.5, UNKNOWN)):
        assert decide(Median(), values, limit, above=True) is above


def test_the_three_verdicts_on_a_share():
    def verdict(hits, runs=SEEDS):
        values = np.ones(runs)
        values[np.linspace(0, runs - 1, hits).astype(int)] = 0.0
        return Claim.share("Text.", "value", values, below=0.5).verdict

    assert [verdict(hits) for hits in (24, 23, 16, 4)] == [HOLDS, UNKNOWN, UNKNOWN, FAILS]
    assert verdict(95, 100) is HOLDS


def test_a_limit_itself_is_not_below():
    assert Claim.exact("Text.", "pieces", 2.0, above=2.0).verdict is HOLDS
    assert Claim.exact("Text.", "gap", 0.05, below=0.05).verdict is FAILS
    ties = [0.0] * 24
    assert Claim.median("Text.", "difference", ties, below=0.0).verdict is FAILS
    assert Claim.share("Text.", "difference", ties, below=0.0).verdict is FAILS


def test_quarters_of_the_runs_that_disagree_leave_a_claim_open():
    # The interval of all runs is below 1, but the last quarter alone says the opposite.
    values = np.append(np.zeros(30), np.full(10, 5.0))
    assert Median().estimate(values).high < 1.0
    assert decide(Median(), values, 1.0, above=False) is UNKNOWN
    mixed = np.random.default_rng(0).permutation(values)
    assert decide(Median(), mixed, 1.0, above=False) is HOLDS


@pytest.mark.parametrize("runs", range(8))
@pytest.mark.parametrize("statistic", [Median(), Share(1.0)])
def test_with_too_few_runs_a_claim_cannot_be_told(runs, statistic):
    assert decide(statistic, [0.0] * runs, 0.9, above=True) is UNKNOWN
    assert decide(Median(), [0.0] * runs, 0.9, above=False) is UNKNOWN


@pytest.mark.parametrize("statistic", [Median(), Share(1.0)])
def test_without_any_value_a_claim_cannot_be_told(statistic):
    assert decide(statistic, [math.nan] * 24, 0.5, above=True) is UNKNOWN
    assert decide(statistic, [math.nan] * 24, 0.5, above=False) is UNKNOWN
    assert Claim.exact("Text.", "gap", math.nan, below=1.0).verdict is UNKNOWN


def test_blocks_that_differ_settle_nothing():
    assert settle([HOLDS] * 4) is HOLDS
    assert settle([FAILS] * 4) is FAILS
    assert settle([HOLDS, HOLDS, HOLDS, UNKNOWN]) is UNKNOWN
    assert settle([HOLDS, FAILS, HOLDS, FAILS]) is UNKNOWN


# How often the rule is wrong.


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, size: rng.lognormal(0.0, 2.0, size) - 1.0,  # a long tail on one side
        lambda rng, size: -rng.pareto(0.5, size) + 3.0,  # without a mean
        lambda rng, size: rng.normal(size=size) * rng.choice([1e-3, 1e3], size=size),
    ],
)
def test_at_the_limit_a_verdict_on_a_median_is_rarely_given(draw):
    # The median is the limit, so each verdict is wrong as often as not: at most 1 % get one.
    # 4,000 repeats: 1 % plus four standard deviations.
    rng = np.random.default_rng(1)
    verdicts = [decide(Median(), draw(rng, 24), 0.0, above=False) for _ in range(4000)]
    wrong = 1.0 - verdicts.count(UNKNOWN) / len(verdicts)
    assert wrong <= 0.01 + 4.0 * math.sqrt(0.01 * 0.99 / len(verdicts))


@pytest.mark.parametrize("share", [0.8, 0.79])
def test_at_the_limit_a_share_is_rarely_said_to_be_large_enough(share):
    rng = np.random.default_rng(2)
    values = (rng.random((4000, 60)) >= share).astype(float)
    verdicts = [decide(Share(0.5), row, 0.8, above=True) for row in values]
    most = 0.005 + 4.0 * math.sqrt(0.005 * 0.995 / len(verdicts))
    assert verdicts.count(HOLDS) / len(verdicts) <= most
    if share == 0.8:
        assert verdicts.count(FAILS) / len(verdicts) <= most


def test_a_clear_difference_is_told_almost_always():
    # A rule that never decides would pass the tests above.
    rng = np.random.default_rng(3)
    draws = rng.lognormal(0.0, 1.0, (400, 24))
    verdicts = [decide(Median(), row, 8.0, above=False) for row in draws]
    assert verdicts.count(HOLDS) >= 390


# Claims as text and as JSON.


def test_a_claim_says_what_was_compared_with_what():
    claim = Claim.share("It ends well.", "the gap", [0.0] * 23 + [1.0], below=0.05, note="more")
    assert claim.stated == "share of runs in which the gap is below 0.05: at least 80%"
    assert claim.measured == "96% of 24 runs [73%, 100%]; more"
    assert claim.sentence.startswith("It ends well. Whether this holds cannot be told: 96% of 24")
    median = Claim.median("Text.", "regret", np.arange(24.0), below=100.0, unit="maps")
    assert median.stated == "median over maps of regret: below 100"
    assert median.measured == "median 11.5 [5, 18], 24 maps"
    assert median.sentence.endswith("This holds: median 11.5 [5, 18], 24 maps.")
    exact = Claim.exact("Text.", "the gap", 0.0376, below=1e-9)
    assert exact.measured == "0.0376, exactly"
    assert "This does not hold" in exact.sentence


@pytest.mark.parametrize(
    "claim",
    [
        Claim.share("A.", "x", np.random.default_rng(0).normal(size=30), above=0.1, source="ours"),
        Claim.median("B.", "y", [1.0, math.nan, math.inf, 2.0 / 3.0], below=0.1, unit="maps"),
        Claim.exact("C.", "z", 1.0 / 3.0, above=0.1, note="n"),
    ],
)
def test_a_saved_claim_has_the_same_verdict(claim):
    text = json.dumps(claim.record(), allow_nan=False)
    again = Claim.from_record(json.loads(text))
    assert str(again) == str(claim)  # NaN is not equal to itself
    assert again.verdict is claim.verdict
    assert json.loads(text)["verdict"] == claim.verdict.value


def test_a_claim_needs_exactly_one_limit():
    for limits in ({}, {"below": 1.0, "above": 2.0}):
        with pytest.raises(counsel.CounselError, match="give one of them"):
            Claim.median("Text.", "x", [1.0], **limits)
    with pytest.raises(counsel.CounselError, match="an exact claim has 2 values"):
        Exact().estimate(np.ones(2))
    assert Claim.median("Text.", "x", [1.0], above=0.0).limit == 0.0


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"), (1e-12, "0"), (0.00042, "0.0004"), (0.0123456, "0.0123"), (12.345, "12.3"),
        (1234.5, "1,230"), (832_232.0, "832,000"), (-0.5, "-0.5"), (math.inf, "∞"),
        (-math.inf, "−∞"), (math.nan, "–"),
    ],
)  # fmt: skip
def test_numbers_have_three_digits(number, text):
    assert digits(number) == text
