"""Intervals of shares and means: those of SciPy, and they hold as often as they say."""

import numpy as np
import pytest

from counsel.estimate.intervals import band, interval, student, wilson
from tests.support.drawn_choices import held
from tests.support.each import each
from tests.support.later import Later

stats = Later("scipy.stats")


def test_wilson_is_scipys():
    for n in (1, 2, 7, 100, 5000):
        for k in {0, 1, n // 3, n - 1, n}:
            ends = stats.binomtest(k, n).proportion_ci(method="wilson")
            assert np.array(wilson(k, n)) == pytest.approx([ends.low, ends.high], abs=1e-12)
    assert np.array(wilson(0, 0)).tolist() == [0.0, 1.0]


def test_student_is_scipys():
    rng = np.random.default_rng(1)
    for n in (2, 3, 10, 500):
        x = rng.gamma(2.0, size=n)
        ends = stats.t.interval(0.95, n - 1, loc=x.mean(), scale=stats.sem(x))
        assert student(n, x.sum(), (x**2).sum()) == pytest.approx(ends, abs=1e-9)
    assert np.array(student([0, 1], [0.0, 2.0], [0.0, 4.0])).tolist() == [
        [-np.inf, -np.inf],
        [np.inf, np.inf],
    ]


@each("n", [2, 3, 5, 12, 40])
def test_intervals_over_repeats_are_students(n):
    values = np.random.default_rng(n).normal(3.0, 2.0, n)
    low, high = stats.t.interval(0.95, n - 1, values.mean(), stats.sem(values))
    mean, *ends = interval(values)
    assert mean == pytest.approx(values.mean())
    assert ends == pytest.approx([low, high])
    assert np.isnan(band(np.ones((1, 3)))).all()


@each("n", [3, 10, 100, 3000])
def test_own_intervals_of_shares_hold_as_often_as_they_say(n):
    # 12,000 shares: a standard error of 0.002. Wilson's averages 0.95 over θ, not at each θ.
    rng = np.random.default_rng(7)
    theta = rng.uniform(size=12_000)
    assert 0.94 < held(*wilson(rng.binomial(n, theta), n), theta) < 0.962
    p = rng.dirichlet(np.ones(4), 3000)
    counts = rng.multinomial(n, p)
    assert 0.94 < held(*wilson(counts, n), p) < 0.962


@each("n", [2, 3, 10, 100])
def test_intervals_of_mean_rewards_hold_as_often_as_they_say(n):
    # 10,000 means: three standard errors are 0.0065.
    rng = np.random.default_rng(8)
    x = rng.normal(3.0, 2.0, (10_000, n))
    assert held(*student(n, x.sum(axis=1), (x**2).sum(axis=1)), 3.0) == pytest.approx(
        0.95, abs=0.0065
    )
