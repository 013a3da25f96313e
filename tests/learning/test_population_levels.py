"""A population of people who tire: the lift is learnt, and how it fades is the model's."""

import numpy as np
import pytest

from counsel import CounselError, Human, Memory, Simulator, evaluate, learn, make, solve
from counsel.learning.population import NOBODY, Limit, Population
from counsel.testing import check_learner
from tests.support.each import each
from tests.support.tiring_people import MEMORIES, RANDOM, tiring_problem


def population(memory, fading, **more):
    problem = tiring_problem(memory, fading)
    setting = problem.without_adherence()
    return problem, Population(setting, knows_habit=True, fading=fading, **more)


def live_through(people, problem, episodes, rng):
    """Count what the person of a problem does on random advice."""
    memory = problem.memory
    for _ in range(episodes):
        level, state = memory.start, 0
        for step in range(problem.horizon):
            advice = int(rng.integers(problem.n_actions + 1))
            law = problem.law(step, state, advice, level)
            action = int(rng.choice(problem.n_actions, p=law))
            heard = None if advice == problem.defer else advice
            people.counts.add(1, (state, heard, action), level=level)
            chances = memory.next_levels(level, advice, action, defer=problem.defer)
            level, state = int(rng.choice(memory.n_levels, p=chances)), int(rng.integers(2))


@each("name", ["pieces", "refusals", "random"])
def test_the_lift_is_learnt_through_the_fading_and_plans_become_the_best(name):
    problem, people = population(*MEMORIES[name])
    live_through(people, problem, 400, np.random.default_rng(5))
    estimate = people.estimate(1)
    assert estimate.lift == pytest.approx(np.full(3, 0.8), abs=0.12)
    low, high = people.faded_interval(1)
    assert (low < estimate.lift).all()
    assert (estimate.lift < high).all()
    plan = people.plan(1, Limit(penalty=0.05)).plan
    assert plan.policy.levels == problem.n_levels
    best = solve(problem, penalty=0.05)
    worth = evaluate(problem, plan.policy)
    assert worth.value - 0.05 * worth.advice_count == pytest.approx(best.net_value, rel=0.01)


def test_somebody_who_takes_the_lift_for_constant_learns_another():
    problem, people = population(*MEMORIES["pieces"])
    live_through(people, problem, 400, np.random.default_rng(5))
    _, blind = population(None, None)
    blind.counts = people.counts
    assert (blind.estimate(1).lift < 0.65).all(), "the mean over levels"


@each("algorithm", ["ucb-ad", "thompson"])
def test_a_memory_that_does_not_fade_changes_no_plan(algorithm):
    problem, people = population(Memory.pieces(2), np.ones(3), algorithm=algorithm)
    live_through(people, problem, 30, np.random.default_rng(2))
    _, plain = population(None, None, algorithm=algorithm)
    plain.counts = people.counts
    mine, same = (
        one.plan(1, Limit(budget=1.5), np.random.default_rng(3)).plan for one in (people, plain)
    )
    assert mine.value == pytest.approx(same.value, abs=1e-12)
    for plane in mine.policy.planes:  # but for the random cell, which may be another one
        assert (plane != same.policy.advice).sum() <= 1
    assert people.faded_interval(1) is None


def test_must_say_advice_is_part_of_what_people_do_on_the_start_level():
    _, people = population(*MEMORIES["since"], must_say={1: 2})
    planned = people.estimate(NOBODY).planned_lift[2]  # rested at the start
    person = people.problem(people.estimate(NOBODY))
    assert person.policy[0, 1, 2] == pytest.approx(0.2 + 0.8 * planned)
    assert not person.level_lift[:, :, 1].any()


@pytest.mark.slow
@pytest.mark.parametrize("limit", [{"penalty": 0.05}, {"budget": 2, "hard": True}])
def test_the_learner_of_one_person_knows_the_memory(limit):
    def build(problem):
        people = Population(problem.without_adherence(), fading=np.array([1.0, 0.5, 0.1]))
        return people.learner(0, rng=np.random.default_rng(1), **limit)

    check_learner(build, tiring_problem(*MEMORIES["refusals"]))


def test_a_learner_goes_on_with_the_levels_it_has_counted():
    problem, people = population(*MEMORIES["random"])
    learner = people.learner(1, penalty=0.05)
    *_, _ = learn(learner, Simulator(problem), episodes=20, rng=np.random.default_rng(0))
    _, others = population(*MEMORIES["random"])
    again = others.learner(1, penalty=0.05)
    again.restore(learner.state())
    assert others.counts.everybody.levels == people.counts.everybody.levels
    assert (again.policy.advice == learner.policy.advice).all()
    _, fewer = population(Memory.pieces(1), np.array([1.0, 0.5]))
    with pytest.raises(CounselError, match="level 2; the memory of this population has 2 levels"):
        fewer.learner(1).restore(learner.state())
    state = learner.state()
    del state["level_counts"]
    with pytest.raises(CounselError, match="the counts have no levels; the memory of this"):
        again.restore(state)


def test_the_fading_of_a_memory_is_not_learnt():
    with pytest.raises(
        CounselError, match=r"memory \(pieces=3\), whose fading is not learnt; give"
    ):
        Population(tiring_problem(*MEMORIES["pieces"]).without_adherence())


def test_a_fading_needs_a_memory():
    with pytest.raises(CounselError, match="fading is a factor for each level of a memory"):
        Population(tiring_problem(None, None).without_adherence(), fading=np.ones(4))


def test_the_fading_of_a_person_is_given_or_follows_from_the_lifts():
    memory, fading = MEMORIES["random"]
    given = tiring_problem(memory, fading).human
    assert given.fading.tolist() == list(fading)
    table = Human([[0.5, 0.5]], lift=[[0.4, 0.2], [0.2, 0.1], [0.8, 0.4]], memory=RANDOM)
    assert table.fading == pytest.approx([2.0, 1.0, 4.0]), "1 on the start level"
    uneven = Human([[0.5, 0.5]], lift=[[0.4, 0.2], [0.2, 0.2], [0.8, 0.4]], memory=RANDOM)
    assert uneven.fading is None
    silent = Human([[0.5, 0.5]], lift=0.0, memory=RANDOM)
    assert silent.fading.tolist() == [1.0, 1.0, 1.0]
    deaf = Human([[0.5, 0.5]], lift=[[0.5], [0.0], [0.5]] * np.ones(2), memory=RANDOM)
    assert deaf.fading is None, "on the start level nothing moves them"
    assert make("ward").human.fading is None
