"""Fitted exponents: exact powers, noise with known coverage, censored counts and counts of 0."""

import numpy as np
import pytest

from counsel.experiments.claim import Median
from counsel.experiments.exponents import Counts, exponents, log_ratio, slopes, usable_sizes

SIZES = (8.0, 12.0, 16.0, 24.0)
CLEAR = np.zeros(24, dtype=bool)


def powers(exponent, *, factor=3.0, sizes=SIZES, noise=1.0):
    """The same count for every seed at each size, times ``noise`` [size, seed]."""
    noise = np.broadcast_to(noise, (len(sizes), CLEAR.size))
    return [Counts(x, factor * x**exponent * n, CLEAR) for x, n in zip(sizes, noise, strict=True)]


def capped(along, most):
    """What is seen of the counts in runs of so many episodes."""
    return [Counts(c.size, np.minimum(c.episodes, most), c.episodes > most) for c in along]


def test_the_exponent_of_a_power_is_its_exponent():
    np.testing.assert_allclose(exponents(powers(2.0)), 2.0)
    np.testing.assert_allclose(exponents(powers(-0.5)), -0.5)
    assert slopes([2.0, 4.0, 8.0], np.array([5.0, 20.0, 80.0])) == pytest.approx(2.0)


@pytest.mark.parametrize("most", [np.inf, 3000.0])
def test_the_interval_over_seeds_covers_a_known_exponent(most):
    # Noise is cut off beyond two deviations, so that the counts at the last size are all above 3000
    # and those at the others below: a cap of 3000 censors one size for all seeds. 99 % intervals
    # miss in more than 3 % of 400 repeats with a probability below 0.1 %; fits through censored
    # counts would miss nearly always.
    rng, covered, repeats, exponent = np.random.default_rng(5), 0, 400, 2.5
    for _ in range(repeats):
        noise = rng.lognormal(sigma=0.2, size=(len(SIZES), CLEAR.size))
        noise[-1], noise[:-1] = np.maximum(noise[-1], 0.6), np.minimum(noise[:-1], 1.6)
        along = capped(powers(exponent, factor=1.8, noise=noise), most)
        assert usable_sizes(along) == list(SIZES if most == np.inf else SIZES[:3])
        _, low, high = Median().estimate(exponents(along))
        covered += low <= exponent <= high
    assert covered >= 0.97 * repeats


def test_a_fit_through_censored_counts_would_miss_the_exponent():
    along = capped(powers(2.5, factor=1.8), 3000.0)
    seen = np.stack([counts.episodes for counts in along])
    assert slopes(SIZES, seen)[0] < 2.2
    assert exponents(along)[0] == pytest.approx(2.5)


def test_a_size_is_left_out_if_more_than_a_tenth_of_the_seeds_are_censored():
    along = powers(2.0)
    for hidden, is_used in ((2, True), (3, False)):
        censored = np.arange(24) < hidden
        counts = Counts(SIZES[-1], along[-1].episodes, censored)
        fits = exponents([*along[:-1], counts])
        assert (SIZES[-1] in usable_sizes([*along[:-1], counts])) is is_used
        assert np.isnan(fits).tolist() == (censored & is_used).tolist()


def test_a_seed_with_a_count_of_0_has_no_exponent():
    along = powers(2.0)
    nothing = np.where(np.arange(24) == 7, 0.0, along[0].episodes)
    fits = exponents([Counts(SIZES[0], nothing, CLEAR), *along[1:]])
    assert np.flatnonzero(np.isnan(fits)).tolist() == [7]
    np.testing.assert_allclose(np.delete(fits, 7), 2.0)


def test_fewer_than_three_sizes_have_no_exponent():
    assert np.isnan(exponents(powers(2.0, sizes=SIZES[:2]))).all()
    assert not np.isnan(exponents(powers(2.0, sizes=SIZES[:3]))).any()


def test_two_learners_are_compared_where_both_can_be_fitted():
    short = capped(powers(3.0, factor=1.0), 5000.0)  # 24³ is above
    assert usable_sizes(powers(2.0), short) == [8.0, 12.0, 16.0]
    assert usable_sizes(powers(2.0), capped(powers(3.0), 1.0)) == []


def test_a_ratio_is_the_geometric_mean_over_sizes():
    less, more = powers(2.0, factor=1.0), powers(2.0, factor=10.0)
    np.testing.assert_allclose(np.exp(log_ratio(less, more)), 0.1)
    np.testing.assert_allclose(np.exp(log_ratio(more, less)), 10.0)


def test_a_censored_ratio_is_an_upper_bound_or_unknown():
    small, large = powers(0.0, factor=10.0), powers(0.0, factor=1000.0)
    # The larger count is only a lower bound: the ratio is at most this.
    np.testing.assert_allclose(np.exp(log_ratio(small, capped(large, 100.0))), 0.1)
    # A bound of the smaller one says nothing, nor does an upper bound above 1.
    assert np.isnan(log_ratio(capped(small, 5.0), large)).all()
    assert np.isnan(log_ratio(small, capped(large, 5.0))).all()


def test_counts_of_0_never_favour_the_learner_that_is_said_to_have_fewer():
    nothing, ten = powers(0.0, factor=0.0), powers(0.0, factor=10.0)
    np.testing.assert_allclose(np.exp(log_ratio(nothing, ten)), 0.1)  # 0 counts as 1
    assert np.isnan(log_ratio(ten, nothing)).all()


def test_learners_with_different_numbers_of_seeds_are_compared_on_the_seeds_of_both():
    more = [Counts(c.size, c.episodes[:5], c.censored[:5]) for c in powers(0.0, factor=100.0)]
    np.testing.assert_allclose(np.exp(log_ratio(powers(0.0, factor=10.0), more)), [0.1] * 5)
