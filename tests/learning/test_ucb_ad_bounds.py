"""Bounds of one's own: in plain Python, and as a Numba function."""

import math

import numba
import numpy as np
import pytest

import counsel
from counsel import UCBAD
from counsel.estimate.bounds import interval
from counsel.learning import KL, PaperBonus, Theory
from counsel.testing import check_learner
from counsel.worlds import make

SMALL = "flappy-bird-budget/greedy"
"""A world in which few cells can occur, so that UCB-AD has a compiled loop."""


def rng(seed=0):
    return np.random.default_rng(seed)


class Same:
    """A bound of one's own that equals a built-in one: its function in plain Python."""

    def __init__(self, bound):
        self.bound = bound

    def rule(self, *, groups, horizon):
        built_in = self.bound.rule(groups=groups, horizon=horizon)
        return lambda matched, given, level: built_in(matched, given, level)


class OwnBonus:
    """The bonus of the paper, written anew."""

    def __init__(self, compiled):
        # One function for all learners: the loop is compiled anew for another.
        self.upper = numba.njit(self.plain) if compiled else self.plain

    @staticmethod
    def plain(matched, given, _level):
        if given == 1:
            return 1.0
        return min(matched / given + 0.4 * math.sqrt(2.0 * math.log(given) / given), 1.0)

    def rule(self, *, groups, horizon):
        return self.upper


class Growing:
    """A Numba function that depends on the level: a bonus that grows with the episodes."""

    def __init__(self, compiled):
        self.compiled = compiled

    def rule(self, *, groups, horizon):
        def upper(matched, given, level):
            return min(matched / given + math.sqrt(level / (2.0 * given)), 1.0)

        return numba.njit(upper) if self.compiled else upper


def run(bound, world, *, every=1, episodes=150, **options):
    problem = make(world)
    setting = problem.without_adherence()
    if options.pop("unknown_rewards", False):
        setting = setting.without_rewards()
    learner = UCBAD(setting, bound=bound, **options)
    simulator = counsel.Simulator(problem)
    *_, last = counsel.learn(learner, simulator, episodes=episodes, every=every, rng=rng(2))
    return learner, last


def assert_same(runs):
    (learner, last), (other, expected) = runs
    assert last.regret == pytest.approx(expected.regret, rel=1e-12)
    assert last.value_gap == pytest.approx(expected.value_gap, rel=1e-12, abs=1e-15)
    np.testing.assert_array_equal(learner.policy.advice, other.policy.advice)
    for name in ("given", "matched", "upper"):
        np.testing.assert_array_equal(learner.state()[name], other.state()[name])


BOUNDS = [KL(), KL(delta=0.1), Theory(delta=0.1, episodes=150), PaperBonus()]


@pytest.mark.parametrize("bound", BOUNDS, ids=str)
@pytest.mark.parametrize("world", [SMALL, "night-shift"])
def test_a_bound_of_ones_own_that_equals_a_built_in_one_learns_the_same(bound, world):
    own = run(Same(bound), world)
    assert not own[0].can_run
    assert_same((own, run(bound, world)))


@pytest.mark.parametrize(
    "options",
    [{"may_repel": True}, {"budget": 1.0}, {"unknown_rewards": True}, {"groups": [0, 1, 2]}],
    ids=str,
)
def test_it_does_so_with_every_setting(options):
    runs = [run(bound, "night-shift", every=5, **options) for bound in (Same(KL()), KL())]
    assert_same(runs)


@pytest.mark.slow
def test_a_numba_function_runs_in_the_compiled_loop():
    bound = OwnBonus(compiled=True)
    for every in (1, 7):
        own, last = run(bound, SMALL, every=every)
        assert own.can_run
        assert_same(((own, last), run(PaperBonus(), SMALL, every=every)))
        assert_same(((own, last), run(OwnBonus(compiled=False), SMALL, every=every)))


@pytest.mark.slow
def test_a_numba_function_may_depend_on_the_level():
    own, last = run(Growing(compiled=True), SMALL, episodes=300)
    assert own.can_run
    assert_same(((own, last), run(Growing(compiled=False), SMALL, episodes=300)))


def test_a_numba_function_learns_where_there_is_no_compiled_loop():
    own, last = run(OwnBonus(compiled=True), "night-shift", budget=2.0)
    assert not own.can_run
    assert_same(((own, last), run(PaperBonus(), "night-shift", budget=2.0)))


@pytest.mark.parametrize("bound", BOUNDS, ids=str)
def test_the_interval_of_a_bound_of_ones_own(bound):
    sizes = {"groups": 3, "horizon": 12, "episode": 500}
    matched, given = [0, 0, 1, 8, 80, 100], [0, 2, 1, 10, 100, 100]
    for own, expected in zip(
        interval(Same(bound), matched, given, **sizes),
        interval(bound, matched, given, **sizes),
        strict=True,
    ):
        np.testing.assert_array_equal(own, expected)


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [False, True])
def test_a_learner_with_a_bound_of_ones_own_passes_what_every_learner_must(compiled):
    bound = OwnBonus(compiled)
    check_learner(lambda p: UCBAD(p.without_adherence(), bound=bound), make(SMALL))


class NoRule:
    pass


class NoFunction:
    def rule(self, *, groups, horizon):
        return 0.5


class OutOfRange:
    def __init__(self, value):
        self.value = value

    def rule(self, *, groups, horizon):
        return lambda matched, given, level: self.value


@pytest.mark.parametrize(
    ("bound", "words"),
    [
        (NoRule(), "bound is .*; give KL"),
        (0.3, "bound is 0.3; give KL"),
        (NoFunction(), "NoFunction.rule returned 0.5; it must return a function"),
        (OutOfRange(1.5), "the bound is 1.5 for 0 matches in 1; it must be from 0 to 1"),
        (OutOfRange(math.nan), "the bound is nan for 0 matches in 1"),
    ],
)
def test_what_is_no_bound_is_refused(bound, words):
    setting = make("night-shift").without_adherence()
    with pytest.raises(counsel.CounselError, match=words):
        UCBAD(setting, bound=bound)
