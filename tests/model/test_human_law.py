"""The law of equation (1) for one decision, and the draw of an action from it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import counsel
from counsel.model.human import advised_law, draw_index
from counsel.worlds import AdviceWrapper, make
from tests.support.cart_people import Counter
from tests.support.each import each
from tests.support.exact import exact_law
from tests.support.later import Later

stats = Later("scipy.stats")


# The law and the draw themselves.


@st.composite
def people(draw):
    """A distribution, often with zeros, sometimes certain or all but certain; an advice; θ."""
    n = draw(st.integers(1, 6))
    weights = draw(
        st.lists(
            st.one_of(st.just(0.0), st.floats(0.0, 1.0), st.floats(1e-300, 1e-290)),
            min_size=n,
            max_size=n,
        )
    )
    if sum(weights) == 0.0:
        weights[draw(st.integers(0, n - 1))] = 1.0
    own = np.array(weights) / sum(weights)
    return (
        own,
        draw(st.integers(0, n - 1)),
        draw(st.one_of(st.floats(0.0, 1.0), st.sampled_from([0.0, 1.0]))),
    )


@given(people())
def test_the_law_is_equation_one(person):
    own, advice, theta = person
    before = own.copy()
    law = advised_law(own, advice, theta)
    # A sum of six and three roundings, each within 2^-53 of what it rounds; or below all normals.
    for got, exact in zip(law.tolist(), exact_law(own.tolist(), advice, theta), strict=True):
        assert got == pytest.approx(float(exact), rel=1e-14, abs=1e-300)
    np.testing.assert_array_equal(own, before)


def test_the_law_holds_for_someone_all_but_certain():
    # A soft-optimal person gives exp(-740) to an action that is much worse: a number so small that
    # dividing by it overflows. Such a person is read as certain, here and by ``Human``; the law of
    # what was read is equation 1 without exception.
    own = np.array([1.0, 0.0, np.exp(-740.0)])
    assert own[2] > 0.0
    env = AdviceWrapper(Counter(), lambda o: own, 0.25)
    env.reset(seed=0)
    assert env._law(5).tolist() == [1.0, 0.0, 0.0]
    assert counsel.Human([own], 0.25).policy.tolist() == [[[1.0, 0.0, 0.0]]]
    assert advised_law(own, 0, 0.25).tolist() == [0.25, 0.0, 0.75]
    own = np.array([1.0, 0.0, 1e-306])
    for theta in (0.0, 0.25, 1.0):
        law = advised_law(own, 0, theta)
        exact = [float(p) for p in exact_law(own.tolist(), 0, theta)]
        assert law.tolist() == pytest.approx(exact, rel=1e-14)


@each("advice", range(3))
def test_advice_changes_nothing_for_the_certain(advice):
    own = np.eye(3)[1]
    for theta in (0.0, 0.3, 1.0):
        wanted = (
            own if advice == 1 else [theta * (a == advice) + (1 - theta) * own[a] for a in range(3)]
        )
        assert advised_law(own, advice, theta).tolist() == pytest.approx(list(wanted), abs=1e-15)


@pytest.mark.parametrize("world", ["flappy-bird/greedy", "flappy-bird/safe", "night-shift"])
def test_the_law_is_the_problems_own(world):
    problem = make(world)
    for h in range(problem.horizon):
        for s in range(problem.n_states):
            for b in range(problem.n_actions):
                law = advised_law(problem.policy[h, s], b, problem.adherence[h, s, b])
                np.testing.assert_allclose(law, problem.law(h, s, b), rtol=0, atol=1e-14)


class Fixed:
    """A generator that draws one number."""

    def __init__(self, number):
        self.number = number

    def random(self):
        return self.number


JUST_BELOW_ONE = 1.0 - 2.0**-53  # the largest number a generator draws


@given(people(), st.one_of(st.floats(0.0, JUST_BELOW_ONE), st.sampled_from([0.0, JUST_BELOW_ONE])))
def test_a_draw_never_has_probability_zero(person, number):
    probability, _, _ = person
    assert probability[draw_index(probability, Fixed(number))] > 0.0


def test_rounding_never_draws_the_impossible():
    # What is left of the largest number after all shares may be above 0 by a rounding; zeros at
    # either end must not be drawn for it.
    rng = np.random.default_rng(1)
    for _ in range(500):
        probability = np.zeros(14)
        probability[2:12] = rng.dirichlet(np.ones(10))
        assert draw_index(probability, Fixed(0.0)) == 2
        assert draw_index(probability, Fixed(JUST_BELOW_ONE)) == 11


@each(("number", "drawn"), [(0.0, 1), (0.25, 1), (0.5, 3), (0.625, 4), (0.9, 4)])
def test_a_number_on_a_border_belongs_to_what_follows(number, drawn):
    # Binary fractions, so the borders 1/2 and 5/8 are exact.
    assert draw_index(np.array([0.0, 0.5, 0.0, 0.125, 0.375, 0.0]), Fixed(number)) == drawn


@given(people(), st.floats(0.0, JUST_BELOW_ONE))
def test_a_draw_is_where_the_sum_passes_the_number(person, number):
    probability, _, _ = person
    drawn = draw_index(probability, Fixed(number))
    upto = np.cumsum(probability) / probability.sum()
    assert (upto[drawn - 1] if drawn else 0.0) <= number + 1e-12
    assert number <= upto[drawn] + 1e-12


def test_draws_come_as_often_as_their_probabilities_say():
    probability, rng = np.array([0.0, 0.5, 0.0, 0.125, 0.375, 0.0]), np.random.default_rng(0)
    seen = np.bincount([draw_index(probability, rng) for _ in range(8000)], minlength=6)
    live = probability > 0.0
    assert seen[~live].tolist() == [0, 0, 0]
    expected = 8000 * probability[live]
    assert stats.chi2.sf(((seen[live] - expected) ** 2 / expected).sum(), 2) > 1e-6
