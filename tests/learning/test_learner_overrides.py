"""A subclass that overrides a method of a learner is obeyed, whatever loop would run instead."""

import numpy as np
import pytest

import counsel
from counsel import RFE, UCBAD, Structured, Thompson
from counsel.baselines import EULER, UCBVI, UCCFH, UCFH, Fixed, QLearning, RFExpress
from counsel.learning.learner import Explorer, Runner, is_overridden
from counsel.model.machine import machine_rewards
from counsel.worlds import make

LEARNERS = (UCBAD, Thompson, RFE, Structured)
BASELINES = (EULER, UCBVI, QLearning, RFExpress, UCFH, UCCFH, Fixed)


SMALL = "flappy-bird-budget/greedy"
"""A world small enough for the compiled loop of UCB-AD."""


def rng(seed=0):
    return np.random.default_rng(seed)


def built(kind, problem):
    if issubclass(kind, UCBAD):
        return kind(problem.without_adherence())
    if issubclass(kind, Thompson):
        return kind(problem.without_adherence(), rng=rng())
    if issubclass(kind, RFE | Structured):
        return kind(problem.shape, rng=rng())
    options = {"episodes": 100} if issubclass(kind, UCBVI | EULER | QLearning) else {}
    if issubclass(kind, UCCFH):
        options["budget"] = 1.0
    return kind(problem.shape, rng=rng(), reward=machine_rewards(problem), **options)


def spying(kind, name):
    """A subclass that counts the calls of one method, or of one property, and changes nothing."""
    calls = []
    original = getattr(kind, name)
    if isinstance(original, property):

        def get(self):
            calls.append(name)
            return original.fget(self)

        return type("Spy", (kind,), {name: property(get)}), calls

    def call(self, *arguments, **named):
        calls.append(name)
        return original(self, *arguments, **named)

    return type("Spy", (kind,), {name: call}), calls


def run(learner, problem, *, episodes=20, every=5):
    simulator = counsel.Simulator(problem)
    *_, last = counsel.learn(learner, simulator, episodes=episodes, every=every, rng=rng(1))
    return last


CALLED = {
    UCBAD: ("believe", "count", "policy", "update"),
    Thompson: ("believe", "count", "policy", "update"),
    RFE: ("advise", "observe", "finish", "update", "best_advice", "policy", "explore"),
    Structured: ("advise", "observe", "finish", "update", "best_advice", "policy", "explore"),
    UCBVI: ("best_advice", "draw", "drawn", "policy", "update"),
    EULER: ("best_advice", "draw", "drawn", "policy", "update"),
    QLearning: ("best_advice", "draw", "drawn", "policy", "update"),
    UCFH: ("best_advice", "draw", "drawn", "policy", "update"),
    UCCFH: ("draw", "drawn", "policy", "update"),
    RFExpress: ("advise", "observe", "finish", "best_advice", "draw", "policy", "update"),
}


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, names in CALLED.items() for name in names]
)
def test_learn_calls_an_overridden_method(kind, name):
    problem = make(SMALL)
    subclass, calls = spying(kind, name)
    learner = built(subclass, problem)
    calls.clear()
    run(learner, problem, episodes=3, every=1)
    assert calls


@pytest.mark.parametrize("kind", [UCBAD, UCBVI])
def test_a_method_overridden_without_a_change_gives_the_run_of_the_compiled_loop(kind):
    problem = make(SMALL)
    fast = built(kind, problem)
    assert fast.can_run
    expected = run(fast, problem, episodes=60)
    for name in ("policy", "update", *(("believe", "count") if kind is UCBAD else ("draw",))):
        subclass, _ = spying(kind, name)
        slow = built(subclass, problem)
        assert not slow.can_run
        assert run(slow, problem, episodes=60).regret == pytest.approx(expected.regret, rel=1e-12)
        np.testing.assert_array_equal(slow.policy.advice, fast.policy.advice)


class Pessimist(UCBAD):
    """Believes that nobody listens."""

    def believe(self):
        self.matches.plan.pull[:] = np.nan


class Quiet(UCBVI):
    """Never says a word."""

    def best_advice(self):
        return np.full(self.shape.allowed.shape[:2], self.shape.n_actions, dtype=np.int16)


@pytest.mark.parametrize("kind", [Pessimist, Quiet])
def test_the_advice_of_an_overriding_method_is_what_is_played(kind):
    problem = make(SMALL)
    learner = built(kind, problem)
    assert not learner.can_run
    assert run(learner, problem).advice_count == 0.0


@pytest.mark.parametrize("kind", [RFE, Structured, RFExpress])
def test_an_explorer_tries_what_an_overriding_method_advises(kind):
    class Silent(kind):
        def advise(self, step, state):
            return self.shape.n_actions

    problem = make("night-shift")
    learner = built(Silent, problem)
    run(learner, problem)
    assert learner.episode == 20
    counts = learner.state()["_actions" if kind is Structured else "_visits"]
    by_advice = counts.sum(axis=3) if kind is Structured else counts
    assert by_advice[..., -1].sum() == 20 * problem.horizon == by_advice.sum()


def test_a_method_replaced_on_the_object_is_obeyed_too():
    problem = make(SMALL)
    learner = UCBAD(problem.without_adherence())
    assert learner.can_run
    learner.believe = lambda: learner.matches.plan.pull.fill(np.nan)
    assert not learner.can_run
    assert run(learner, problem).advice_count == 0.0


def test_a_subclass_that_adds_a_method_keeps_the_compiled_loop():
    class Named(UCBAD):
        name = "ours"

        def state(self):
            return super().state() | {"name": self.name}

    problem = make(SMALL)
    assert Named(problem.without_adherence()).can_run
    assert not is_overridden(Named(problem.without_adherence()), UCBAD, "believe", "update")


def test_a_compiled_loop_that_is_not_to_be_used_is_refused():
    problem = make(SMALL)
    learner = Pessimist(problem.without_adherence())
    with pytest.raises(counsel.CounselError, match="no compiled loop"):
        learner.run(counsel.Simulator(problem), best=0.0, episodes=1, every=1, rng=rng())


def test_every_loop_of_a_learner_is_tested_here():
    problem = make(SMALL)
    own_loops = {
        kind
        for kind in (*LEARNERS, *BASELINES)
        if kind is not Fixed and isinstance(built(kind, problem), Runner | Explorer)
    }
    assert own_loops == {UCBAD, UCBVI, RFE, Structured, RFExpress}


@pytest.mark.parametrize("kind", [*LEARNERS, *BASELINES])
def test_no_learner_is_more_than_two_classes_deep(kind):
    assert len(kind.__mro__) <= 3, kind.__mro__
