"""Lifts pooled in families: the posterior summed over a box, and intervals that hold."""

import numpy as np
import pytest
from scipy import stats

from counsel.estimate import pooling
from counsel.estimate.habit import estimate_habit
from counsel.estimate.pooling import GRID, AdviceCounts, likeliest, pool, pool_estimates
from tests.support import slow_logs
from tests.support.drawn_choices import draw_choices_of_many, draw_lifts, held, pooled
from tests.support.each import each


@pytest.mark.parametrize(
    ("given", "matched", "habits"),
    [
        ([10, 30], [1, 6], [0.0, 0.0]),
        ([3, 1], [3, 0], [0.3, 0.6]),
        ([1, 1, 1, 1], [1, 1, 1, 0], [0.1, 0.3, 0.6, 0.3]),
        ([100, 10, 10, 10, 100], [39, 6, 7, 2, 68], [0.1, 0.1, 0.1, 0.1, 0.3]),
        ([10, 3, 3, 10, 10, 30], [10, 2, 3, 10, 10, 30], [0.1, 0.6, 0.1, 0.0, 0.3, 0.3]),
        ([10, 30, 100, 1, 10, 10], [6, 26, 72, 0, 6, 1], [0.0, 0.6, 0.6, 0.0, 0.6, 0.1]),
    ],
)
def test_pooling_is_the_posterior_summed_over_a_box(given, matched, habits):
    # The net is 12 spreads by 13 middles up to three standard errors: worth 0.02 where a family
    # says next to nothing, and 0.005 elsewhere.
    found, slow = pooled(given, matched, habits), slow_logs.pooled(given, matched, habits)
    far = 0.02 if sum(given) < 10 else 0.01
    for name in ("mean", "low", "high"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(slow, name), atol=far, err_msg=name
        )


@pytest.mark.parametrize(
    ("given", "matched", "habits", "sizes"),
    [
        ([30, 1000], [20, 498], [0.3, 0.3], [10, np.inf]),
        ([1000, 1000], [645, 460], [0.6, 0.3], [20, 20]),
        ([100, 30, 10], [62, 14, 7], [0.3, 0.1, 0.6], [10, 50, 50]),
    ],
)
def test_pooling_with_a_habit_that_is_not_well_known(given, matched, habits, sizes):
    # Five points stand for the habit and are exact for a normal one; a Beta of ten is skewed.
    found = pooled(given, matched, habits, sizes)
    slow = slow_logs.pooled(given, matched, habits, sizes)
    for name in ("mean", "low", "high"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(slow, name), atol=0.025, err_msg=name
        )


@pytest.mark.parametrize(
    ("own", "error"),
    [
        ([0.1, 0.3], [0.1, 0.05]),
        ([0.1, 0.3, 0.5, 0.2], [0.1, 0.05, 0.2, np.inf]),
        ([-0.4, 0.9, 0.2, 0.3, 0.1], [0.3, 0.2, 0.03, 0.04, 0.02]),
        ([0.2, 0.21, 0.19, 0.2, 0.22, 0.18], [0.05, 0.05, 0.06, 0.04, 0.05, 0.05]),
    ],
)
def test_estimates_with_errors_are_pooled_as_the_posterior_summed_over_a_box(own, error):
    # The same net as above, and the same tolerance.
    own, error = np.array(own), np.array(error)
    found, slow = pool_estimates(own, error), slow_logs.pooled_estimates(own, error)
    np.testing.assert_array_equal(found.own, own)
    np.testing.assert_array_equal(found.own_error, error)
    for name in ("mean", "low", "high"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(slow, name), atol=0.01, err_msg=name
        )
    assert found.families.sum() == pytest.approx(1.0)


def test_the_likeliest_lift_of_one_cell_is_its_excess_over_the_habit():
    rng = np.random.default_rng(4)
    n, pi = rng.integers(1, 200, 40).astype(float), rng.uniform(0.0, 0.8, 40)
    k = rng.binomial(n.astype(int), 0.5).astype(float)
    units = np.arange(40)
    own, error = likeliest(AdviceCounts(units, units * 0, n, k, pi, np.full(40, np.inf)))
    raw = (k / n - pi) / (1.0 - pi)
    # No lift is below −1, even where a habit would allow it.
    np.testing.assert_allclose(own, np.maximum(raw, -1.0), atol=1e-9)
    inside = (k > 1) & (n - k > 1) & (n > 50) & (raw > -1.0)
    share = k / n
    expected = np.sqrt(share * (1.0 - share) / n) / (1.0 - pi)
    np.testing.assert_allclose(error[inside], expected[inside], rtol=0.05)
    assert inside.sum() > 5


def test_the_error_of_a_lift_counts_how_well_the_habit_is_known():
    # λ = (m − π) / (1 − π), so its derivative by π is −(1 − λ) / (1 − π).
    n, k = np.full(4, 5_000.0), np.array([1_500.0, 2_500.0, 3_500.0, 4_500.0])
    pi, size = np.array([0.1, 0.3, 0.5, 0.2]), np.array([20.0, 100.0, 1_000.0, np.inf])
    units = np.arange(4)
    own, error = likeliest(AdviceCounts(units, units * 0, n, k, pi, size))
    shown = np.where(np.isfinite(size), size, 1.0)
    known = stats.beta.var(shown * pi + 0.5, shown * (1.0 - pi) + 0.5)
    known[3] = 0.0
    share = k / n
    expected = share * (1.0 - share) / n + (1.0 - own) ** 2 * known
    np.testing.assert_allclose(error, np.sqrt(expected) / (1.0 - pi), rtol=1e-3)


def test_shares_of_zero_and_one_have_an_error():
    n, k = np.array([5.0, 5.0, 400.0]), np.array([0.0, 5.0, 400.0])
    units = np.arange(3)
    own, error = likeliest(AdviceCounts(units, units * 0, n, k, np.zeros(3), np.full(3, np.inf)))
    np.testing.assert_allclose(own, [0.0, 1.0, 1.0], atol=1e-9)
    even = (k + 1.0) / (n + 2.0)
    np.testing.assert_allclose(error, np.sqrt(even * (1.0 - even) / n), rtol=1e-9)


def test_of_a_very_large_family_an_even_sample_is_asked(monkeypatch):
    asked, net = [], pooling._net

    def watched(like, own, error):
        asked.append(own)
        return net(like, own, error)

    monkeypatch.setattr(pooling, "_net", watched)
    own = np.linspace(0.0, 0.6, 4_500)  # sorted: the first ones alone would tell something else
    error = np.full(own.size, 0.1)
    error[100:200] = np.inf
    pool_estimates(own, error)
    assert asked[0].size == 1467  # of 4,400 that are known every third
    assert asked[0].mean() == pytest.approx(own[np.isfinite(error)].mean(), abs=1e-3)
    heard = AdviceCounts(
        np.arange(4_500), np.zeros(4_500, int), np.full(4_500, 20.0), np.round(20.0 * own),
        np.zeros(4_500), np.full(4_500, np.inf),
    )  # fmt: skip
    found = pool(heard)
    assert asked[1].size == 1500
    monkeypatch.setattr(pooling, "SAMPLE", 4_500)
    everybody = pool(heard)
    assert asked[2].size == 4_500
    # A third of them knows the mean of the family to 0.005, of which a quarter reaches a unit.
    np.testing.assert_allclose(found.mean, everybody.mean, atol=2.5e-3)


def test_with_much_data_pooling_keeps_each_units_own():
    given = [40_000] * 4
    matched = [6_000, 16_000, 22_000, 38_000]
    found = pooled(given, matched, [0.1, 0.1, 0.1, 0.1])
    np.testing.assert_allclose(found.mean, (np.array(matched) / 40_000 - 0.1) / 0.9, atol=1e-6)
    half = 1.96 * np.sqrt(0.15 * 0.85 / 40_000) / 0.9
    assert found.high[0] - found.low[0] == pytest.approx(2 * half, rel=0.01)
    close = pooled([2000] * 4, [300, 800, 1100, 1900], [0.1] * 4)
    np.testing.assert_allclose(close.mean, close.own, atol=0.003)


def test_units_that_are_alike_are_pulled_together():
    rng = np.random.default_rng(5)
    matched = rng.binomial(20, 0.5, 100)
    found = pooled([20] * 100, matched, [0.0] * 100)
    assert np.std(found.own) > 0.1
    assert np.std(found.mean) < 0.3 * np.std(found.own)
    common = matched.sum() / 2000
    assert found.mean.mean() == pytest.approx(common, abs=0.005)
    apart = pooled([20] * 100, rng.binomial(20, np.linspace(0.05, 0.95, 100)), [0.0] * 100)
    assert np.std(apart.mean) > 0.8 * np.std(apart.own)


def test_a_unit_without_data_is_its_family():
    unit, family = np.array([0, 1, 3, 4]), np.array([0, 0, 0, 1, 1, 1])
    n, k = np.array([50.0, 80.0, 50.0, 80.0]), np.array([10.0, 20.0, 40.0, 70.0])
    found = pool(AdviceCounts(unit, family, n, k, np.zeros(4), np.full(4, np.inf)))
    density = found.families / found.families.sum(axis=1, keepdims=True)
    assert found.mean[[2, 5]] == pytest.approx(density @ GRID, abs=1e-9)
    assert found.mean[2] < 0.4 < 0.6 < found.mean[5]
    assert np.isnan(found.own[[2, 5]]).all()
    assert (found.high[[2, 5]] - found.low[[2, 5]] > 0.3).all()
    # Where nobody was ever heard, any lift from 0 to 1 is as likely as any other.
    nobody = pool(AdviceCounts(unit[:0], family[:2], n[:0], k[:0], n[:0], n[:0]))
    assert nobody.mean == pytest.approx([0.5, 0.5])


@pytest.mark.slow
@each(
    ("actions", "n", "silent"),
    [
        (3, 3, 90),
        (3, 10, 300),
        (3, 100, 3000),
        (3, 3000, 90_000),
        (3, 10, 3),
        (3, 100, 3),
        (3, 3000, 3),
        (2, 3, 5),
        (2, 100, 5),
        (2, 3000, 5),
        (2, 3000, 20),
    ],
)
def test_pooled_intervals_hold_as_often_as_they_say(actions, n, silent):
    # 80 families of four units for each action: 640 or 960 lifts that depend on each other a
    # little through μ, τ and π; three standard errors of 0.95 are 0.025. Where data are thin they
    # hold more often than they say, as the flat prior thinks of wider families than are drawn.
    rng = np.random.default_rng(10)
    S, families = 4, 80
    pi = rng.dirichlet(np.full(actions, 2.0), (families, S))
    by_family = np.swapaxes(pi, 1, 2).reshape(-1, S)
    lift = np.swapaxes(draw_lifts(rng, by_family).reshape(families, actions, S), 1, 2)
    flat_pi, flat_lift = pi.reshape(-1, actions), lift.reshape(-1, actions)
    alone, against, matched = draw_choices_of_many(rng, flat_pi, flat_lift, n=n, silent=silent)
    own = estimate_habit(alone, against, n - matched, alone + against)
    given = np.full(matched.size, float(n))
    cell, b = np.indices(matched.shape).reshape(2, -1)
    keep = own.policy.ravel() < 1.0
    family = cell // S * actions + b
    units = np.arange(matched.size)
    heard = AdviceCounts(
        units[keep],
        family,
        given[keep],
        matched.ravel()[keep],
        own.policy.ravel()[keep],
        own.size.ravel()[keep],
    )
    found = pool(heard)
    got = held(found.low[keep], found.high[keep], flat_lift.ravel()[keep])
    assert 0.925 < got < 0.99
