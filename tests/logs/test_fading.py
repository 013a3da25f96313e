"""The fading of a lift by level: against a general optimiser, and without a fading."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from counsel.logs.count import count_log
from counsel.logs.estimate import Sharing, estimate
from counsel.logs.fading import (
    LevelCounts,
    fading_with_errors,
    fit_free,
    fit_geometric,
    fit_plain,
    level_counts,
)
from counsel.logs.memory_kind import MemoryKind
from counsel.logs.read import read_log
from tests.support.memory_logs import tiring_ward, ward_rows


def drawn_counts(seed, pairs=4, levels=3, pieces=400, units=None):
    """Matches of some pairs at some levels, and the truth behind them."""
    rng = np.random.default_rng(seed)
    unit = np.arange(pairs) if units is None else np.asarray(units)
    lift, fading = rng.uniform(0.3, 0.8, unit.max() + 1), np.linspace(1.0, 0.4, levels)
    habit = rng.uniform(0.1, 0.5, pairs)
    given = rng.integers(pieces // 2, pieces, (pairs, levels)).astype(float)
    chance = habit[:, None] + (lift[unit] * (1.0 - habit))[:, None] * fading
    matched = rng.binomial(given.astype(int), chance).astype(float)
    return LevelCounts.of(given, matched, habit, unit)


def highest(counts, fading_of, numbers):
    """The highest likelihood by a general optimiser, and the fading there."""
    units = counts.first.size

    def loss(x):
        lift = counts.spread(x[:units])
        chance = counts.habit[:, None] + (lift * counts.room)[:, None] * fading_of(x[units:])
        if (chance <= 0.0).any() or (chance >= 1.0).any():
            return np.inf
        missed = counts.given - counts.matched
        return -(counts.matched * np.log(chance) + missed * np.log(1.0 - chance)).sum()

    x = np.concatenate((np.full(units, 0.5), np.full(numbers, 0.7 if numbers > 1 else 0.3)))
    for _ in range(4):
        x = minimize(loss, x, method="Nelder-Mead", options={"maxiter": 20_000, "fatol": 1e-11}).x
    return -loss(x), fading_of(x[units:])


@pytest.mark.parametrize("units", [None, [0, 1, 1]])
def test_free_fading_is_the_likeliest(units):
    counts = drawn_counts(seed=1, pairs=3, units=units)
    height, fading = highest(counts, lambda f: np.append(1.0, f), 2)
    found = fit_free(counts, reference=0)
    assert found.height == pytest.approx(height, abs=1e-6)
    np.testing.assert_allclose(found.fading, fading, atol=1e-4)


def test_geometric_fading_is_the_likeliest_with_one_number():
    counts, scale = drawn_counts(seed=2), np.array([0.0, 1.0, 2.5])
    height, fading = highest(counts, lambda gamma: np.exp(-gamma * scale), 1)
    found = fit_geometric(counts, scale)
    assert found.height == pytest.approx(height, abs=1e-6)
    np.testing.assert_allclose(found.fading, fading, atol=1e-4)
    assert fit_plain(counts).height < found.height < fit_free(counts, 0).height


def test_many_counts_at_once_are_those_one_by_one():
    parts = [drawn_counts(seed) for seed in range(3)]
    joined = replace(
        parts[0],
        **{
            name: np.stack([getattr(part, name) for part in parts])
            for name in ("given", "matched", "habit", "room")
        },
    )
    found = fit_free(joined, reference=0)
    for i, part in enumerate(parts):
        np.testing.assert_allclose(found.fading[i], fit_free(part, 0).fading, atol=1e-7)


def test_matches_that_do_not_fade_have_the_fading_one():
    rng = np.random.default_rng(0)
    habit, lift = np.array([0.2, 0.4]), np.array([0.5, 0.7])
    given = rng.integers(100, 200, (2, 4)).astype(float)
    chance = habit + lift * (1.0 - habit)
    counts = LevelCounts.of(given, given * chance[:, None], habit, np.arange(2))
    for found in (fit_free(counts, 0), fit_geometric(counts, np.arange(4.0))):
        np.testing.assert_allclose(found.fading, 1.0, atol=1e-6)
        np.testing.assert_allclose(found.lift, lift, atol=1e-6)


@pytest.fixture(scope="module")
def tally():
    """A small log of nurses who tire, counted by the pieces so far."""
    log = read_log(ward_rows(tiring_ward(0.6), 600, seed=4))
    return count_log(log, memory=MemoryKind.parse("pieces=3"))


def test_levels_are_counted_beside_all_else(tally):
    plain = tally.without_levels()
    assert plain.times.sum() == tally.times.sum()
    opens = tally.level[tally.opens]
    assert (opens == 0).all()
    assert tally.start_level == 0
    habit = estimate(plain, Sharing()).habit
    counts = level_counts(tally, habit)
    advised = (tally.heard < len(tally.actions)) & (tally.times > 0)
    assert counts.given.sum() == tally.times[advised].sum()


@pytest.mark.slow
def test_intervals_are_those_of_leaving_out_each_block(tally):
    found = fading_with_errors(tally, estimate(tally, Sharing()).habit)
    assert found.reference == 0
    assert found.factor[0] == found.low[0] == found.high[0] == 1.0
    blocks, left_out = tally.n_blocks, []
    for block in range(blocks):
        others = replace(tally, times=np.where(tally.block == block, 0.0, tally.times))
        habit = estimate(others.without_levels(), Sharing()).habit
        left_out.append(fading_with_errors(others, habit).factor)
    left_out = np.array(left_out)[:, 1]
    error = np.sqrt((blocks - 1) / blocks * ((left_out - left_out.mean()) ** 2).sum())
    half = (found.high[1] - found.low[1]) / 2
    assert half / 1.96 == pytest.approx(error, rel=0.15)  # wider by Student's quantile


def test_a_fading_of_one_estimates_the_lifts_without_a_memory(tally, monkeypatch):
    import counsel.logs.estimate as module

    monkeypatch.setattr(module, "estimate_fading", lambda *_: np.ones(4))
    with_levels = estimate(tally, Sharing(share="advice"))
    plain = estimate(tally.without_levels(), Sharing(share="advice"))
    np.testing.assert_allclose(with_levels.lift, plain.lift, atol=0.01)
    np.testing.assert_allclose(
        estimate(tally, Sharing(), shrink=False).lift,
        estimate(tally.without_levels(), Sharing(), shrink=False).lift,
        atol=1e-9,
    )
