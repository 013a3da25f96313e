"""The habit that ``Structured`` believes in is the likeliest there is."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from counsel.model.human import advised_law
from tests.support.each import each_seed
from tests.support.problems import adapt, draw
from tests.support.structured import (
    count_tables,
    explored,
    free_choices,
    log_likelihood,
    mostly_silent,
    random_groups,
    settled,
)


def likeliest(table):
    """The least upper bound of the log likelihood, and a π that comes close to it.

    In log π the likelihood is concave, so a descent on the weights of a softmax finds the maximum;
    where there is none it follows the way out until the slope is gone (10⁻¹¹ of a count).
    """
    free, A = free_choices(table), table.shape[1]
    kinds, rows = np.flatnonzero(free.sum(axis=0)), np.flatnonzero(free.sum(axis=1))
    chosen, left_out = free[np.ix_(rows, kinds)], rows[:, None] == kinds

    def log_laws(x):
        """Log of π among what remains, for each set of choices that occurred."""
        weights = np.where(left_out, -np.inf, x)
        return weights - logsumexp(weights, axis=1, keepdims=True)

    def loss(x):
        logs = log_laws(x)
        value = (chosen * np.where(chosen > 0, logs, 0.0)).sum()
        slope = (chosen - chosen.sum(axis=1, keepdims=True) * np.exp(logs)).sum(axis=0)
        return -value / chosen.sum(), -slope / chosen.sum()

    found = minimize(
        loss, np.zeros(kinds.size), jac=True, method="BFGS", options={"gtol": 1e-11, "maxiter": 999}
    )
    own = np.zeros(A)
    own[kinds] = softmax(found.x)
    return -found.fun * chosen.sum(), own


def shortfall(table):
    """How much likelier than π̂ a habit can be, as a logarithm."""
    return likeliest(table)[0] - log_likelihood(table, settled(table))


@pytest.mark.slow
def test_the_habit_is_the_likeliest_where_each_action_is_mostly_seen_in_silence():
    worst = 0.0
    for table in count_tables(1500, seed=0):
        if mostly_silent(table):
            worst = max(worst, shortfall(table))
            # The descent stops at a slope of 10⁻¹¹, which leaves π within 10⁻⁶.
            np.testing.assert_allclose(settled(table), likeliest(table)[1], atol=1e-6)
    assert worst < 1e-8


@pytest.mark.parametrize("table", list(count_tables(12, seed=1)))
def test_silence_alone_makes_a_habit_of_frequencies_whatever_was_matched(table):
    A = table.shape[1]
    silence = table[A] + 1
    matches = np.diag(np.diag(table[:A]))
    for before in (np.zeros((A, A), int), matches):
        own = settled(np.vstack((before, silence)))
        np.testing.assert_allclose(own, silence / silence.sum(), rtol=1e-15)


def test_refusals_of_one_advice_sharpen_only_the_odds_of_the_others():
    # Then the maximum is known: π(b) as in silence, the others as in silence and refusals together.
    rng = np.random.default_rng(2)
    for _ in range(300):
        A = int(rng.integers(2, 6))
        b, silence = int(rng.integers(A)), rng.integers(1, 100, A)
        table = np.zeros((A + 1, A), int)
        table[A], table[b] = silence, rng.integers(0, silence + 1)
        both = silence + table[b]
        both[b] = 0
        expected = (1 - silence[b] / silence.sum()) * both / both.sum()
        expected[b] = silence[b] / silence.sum()
        np.testing.assert_allclose(settled(table), expected, atol=1e-8)


@pytest.mark.slow
def test_a_person_who_is_left_alone_one_time_in_five_is_known_as_well_as_can_be():
    rng = np.random.default_rng(5)
    for _ in range(200):
        A = int(rng.integers(2, 6))
        own = rng.dirichlet(np.ones(A))
        theta, table = rng.uniform(own, 1.0), np.zeros((A + 1, A), int)
        for b, times in enumerate(rng.multinomial(3000, [0.8 / A] * A + [0.2])):
            table[b] = rng.multinomial(times, own if b == A else advised_law(own, b, theta[b]))
        if (table[A] > 0).all():
            assert shortfall(table) < 1e-8


def test_one_action_only_is_certain_and_matches_alone_are_even():
    np.testing.assert_array_equal(settled(np.array([[0, 0], [0, 0], [0, 7]])), [0, 1])
    np.testing.assert_array_equal(settled(np.array([[0, 4], [0, 9], [0, 0]])), [0, 1])
    np.testing.assert_array_equal(settled(np.array([[5, 4], [0, 0], [0, 3]])), [0, 1])
    matches = np.array([[5, 0, 0], [0, 0, 0], [0, 0, 1], [0, 0, 0]])
    np.testing.assert_array_equal(settled(matches), [0.5, 0, 0.5])
    np.testing.assert_array_equal(settled(np.zeros((4, 3))), [0, 0, 0])


def uneven_tables(n, *, seed):
    """Tables in which some advice was given a million times and some hardly ever."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        A = int(rng.integers(2, 6))
        mean = 10.0 ** rng.uniform(0, 6, (A + 1, 1)) * rng.random((A + 1, A)) ** 2
        yield rng.poisson(mean * (rng.random((A + 1, A)) < rng.choice([0.3, 0.6, 1.0])))


@pytest.mark.slow
def test_the_habit_is_the_likeliest_where_advice_repels_and_counts_are_uneven():
    # Refused five times in six, done alone 16 times in 17: the refusals say nothing more.
    repelled = np.array([[193, 1047], [0, 0], [16, 1]])
    np.testing.assert_allclose(settled(repelled), [16 / 17, 1 / 17], atol=1e-6)
    for table in uneven_tables(400, seed=5):
        if free_choices(table).any():
            # Logarithms of a million choices, to 10⁻¹⁰ of it.
            assert shortfall(table) < 1e-4


def test_the_habit_is_a_distribution_over_what_was_seen():
    for table in count_tables(300, seed=3):
        own, free = settled(table), free_choices(table).sum(axis=0)
        if table.sum():
            assert own.sum() == pytest.approx(1.0, abs=1e-12)
        np.testing.assert_array_equal(own > 0, free > 0 if free.any() else table.sum(axis=0) > 0)


@pytest.mark.slow
@each_seed(range(12))
def test_where_it_explores_itself_the_habit_is_the_likeliest(seed):
    problem = adapt(draw(seed, most=(4, 5, 3)))
    for episodes in (20, 200, 2000):
        groups = random_groups(problem, seed)
        learner = explored(problem, episodes=episodes, seed=seed, groups=groups)
        for h, s in np.argwhere(learner._transitions.visits.sum(axis=2) > 0):
            table = learner._actions[h, s]
            assert learner.habit[h, s] == pytest.approx(settled(table), abs=0)
            if free_choices(table).any():
                assert shortfall(table) < 1e-4


@pytest.mark.slow
def test_the_habit_is_the_likeliest_for_any_log():
    # Each of these was once missed. Inside: the ten silent steps, which alone say something, give
    # 0.1, and fifty rounds of the usual iteration 0.411.
    inside = np.array([[0, 1000], [1000, 0], [1, 9]])
    # At the edge, where less is always likelier: they give 0.0131.
    edge = np.array([[0, 0], [2, 0], [0, 1]])
    # From a person with π = (0.787, 0.213), silent one time in a hundred: 0.773 instead of 0.811.
    person = np.array([[11887, 3012], [2591, 12213], [241, 56]])
    drawn = [table for table in count_tables(300, seed=4) if free_choices(table).any()]
    assert max(map(shortfall, (inside, edge, person, *drawn))) < 1e-4
