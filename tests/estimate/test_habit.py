"""The likeliest habit: a general optimiser's, told where there is one, and how well it is known."""

import numpy as np
import pytest

from counsel.estimate.habit import estimate_habit
from counsel.estimate.intervals import wilson
from tests.support import slow_logs
from tests.support.drawn_choices import draw_choices_of_many, held
from tests.support.each import each


def draw_choices(rng, *, most_actions=5, silences=(0, 1, 5, 50), refusals=(1, 3, 30, 1000)):
    """Free choices of a person: silent [a] and against advice [b, a]."""
    A = int(rng.integers(2, most_actions + 1))
    pi = rng.dirichlet(np.ones(A))
    silent = rng.multinomial(rng.choice(silences), pi).astype(float)
    against = np.zeros((A, A))
    for b in np.flatnonzero(rng.random(A) < 0.6):
        rest = np.where(np.arange(A) == b, 0.0, pi)
        against[b] = rng.multinomial(rng.choice(refusals), rest / rest.sum())
    return silent, against


def habit(silent, against):
    silent, against = np.asarray(silent, dtype=float), np.asarray(against, dtype=float)
    taken = silent + against.sum(axis=0)
    return estimate_habit(
        silent[None], against.sum(axis=0)[None], against.sum(axis=1)[None], taken[None]
    )


def test_the_habit_is_the_one_a_general_optimiser_finds():
    rng = np.random.default_rng(2)
    compared = sized = 0
    for _ in range(80):
        silent, against = draw_choices(rng)
        found = habit(silent, against)
        if not found.known[0]:
            continue
        expected = slow_logs.habit(silent, against)
        # The optimiser stops some 1e-4 before a maximum at 0 or 1.
        np.testing.assert_allclose(found.policy[0], expected, atol=2e-4)
        compared += 1
        if expected.min() > 1e-2 and against.sum() > 0:
            sizes = slow_logs.habit_sizes(found.policy[0], silent, against)
            np.testing.assert_allclose(found.size[0], sizes, rtol=1e-2)
            sized += 1
    assert compared > 50
    assert sized > 25


def test_many_refusals_that_say_nothing_do_not_hide_a_few_silent_decisions():
    # With two actions a refusal can only be the other one: π is that of the silent decisions.
    for m in (10, 1000, 100_000):
        found = habit([2, 3], [[0, m], [2 * m, 0]])
        np.testing.assert_allclose(found.policy, [[0.4, 0.6]], atol=1e-6)
        np.testing.assert_allclose(found.size, [[5.0, 5.0]], rtol=1e-6)
        np.testing.assert_allclose(found.low[0], wilson([2, 3], 5)[0], atol=1e-6)


def test_only_silence_gives_shares_and_their_counts():
    found = habit([2, 0, 6], np.zeros((3, 3)))
    assert found.policy[0].tolist() == [0.25, 0.0, 0.75]
    assert found.size[0].tolist() == [8.0, 8.0, 8.0]
    assert found.high[0] == pytest.approx(wilson([2, 0, 6], 8)[1])


@pytest.mark.slow
def test_a_habit_is_told_where_its_likelihood_has_one_maximum():
    rng = np.random.default_rng(3)
    seen = set()
    for _ in range(100):
        A = int(rng.integers(2, 5))
        silent = rng.integers(0, 3, A) * (rng.random() < 0.2)
        against = rng.integers(0, 3, (A, A)) * (rng.random((A, A)) < 0.6)
        against = against * (rng.random(A) < 0.6)[:, None]
        np.fill_diagonal(against, 0)
        if silent.sum() + against.sum() == 0:
            continue
        told = bool(habit(silent, against).known[0])
        assert told == slow_logs.habit_is_unique(silent, against), (silent, against)
        seen.add((told, bool(silent.sum()), int((against.sum(axis=1) > 0).sum())))
    assert len(seen) > 6


def test_refusals_of_two_that_all_went_to_the_other_tell_nothing():
    # (π₁ / (π₁ + π₂))³ (π₀ / (π₀ + π₂))² is 1 wherever π₂ = 0.
    found = habit([0, 0, 0], [[0, 3, 0], [2, 0, 0], [0, 0, 0]])
    assert not found.known[0]
    assert habit([0, 0, 0], [[0, 3, 1], [2, 0, 0], [0, 0, 0]]).known[0]


@each("silent", [3, 20, 1000])
@each("n", [3, 10, 100, 3000])
def test_intervals_of_the_habit_hold_as_often_as_they_say(n, silent):
    # 2,000 cells of three dependent shares: a standard error of 0.0035 on two of them each.
    rng = np.random.default_rng(9)
    pi = rng.dirichlet(np.full(3, 2.0), 2000)
    lift = rng.uniform(0.0, 0.9, pi.shape)
    alone, against, matched = draw_choices_of_many(rng, pi, lift, n=n, silent=silent)
    found = estimate_habit(alone, against, n - matched, alone + against)
    assert found.known.all()
    assert 0.935 < held(found.low, found.high, pi) < 0.97
