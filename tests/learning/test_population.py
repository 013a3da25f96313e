"""A population: many people, each advised by what is believed of them and of everybody."""

import numpy as np
import pytest

import counsel
from counsel import CounselError, Simulator
from counsel.learning.population import Limit, Population
from counsel.testing import check_learner
from counsel.worlds import make
from tests.support.each import each
from tests.support.problems import adapt, draw

WARD = make("ward")
CALL = 2


def person_like(lift):
    return counsel.AdviceProblem(WARD.mdp, counsel.Human(WARD.policy[0], lift=lift))


@pytest.mark.parametrize("limit", [{"penalty": 0.05}, {"budget": 1.0}, {"budget": 2, "hard": True}])
@pytest.mark.parametrize("algorithm", ["ucb-ad", "thompson"])
def test_it_is_a_learner(algorithm, limit):
    def build(problem):
        population = Population(problem.without_adherence(), algorithm=algorithm)
        return population.learner(0, rng=np.random.default_rng(1), **limit)

    check_learner(build, WARD)
    check_learner(build, make("night-shift"))


@each("seed", range(6))
def test_it_is_a_learner_of_any_world(seed):
    def build(problem):
        return Population(problem.without_adherence()).learner(3, penalty=0.1)

    check_learner(build, adapt(draw(seed)))


def test_people_share_what_they_teach():
    population, simulator = Population(WARD.without_adherence()), Simulator(person_like(0.9))
    before = population.estimate(7).lift[CALL]
    learner = population.learner(1, penalty=0.02)
    for _ in counsel.learn(learner, simulator, episodes=300, rng=np.random.default_rng(0)):
        pass
    after = population.estimate(7)
    assert before == 0.5
    assert after.lift[CALL] > 0.75
    assert after.exposure.max() == 0.0
    # Who was never observed is advised as everybody: by a plan nearly as good as the best.
    best = counsel.solve(person_like(0.9), penalty=0.02).penalised_value
    worth = counsel.evaluate(person_like(0.9), population.learner(7, penalty=0.02).policy)
    assert best - (worth.value - 0.02 * worth.advice_count) < 0.05


def test_who_listens_less_is_told_apart():
    population, rng = (
        Population(WARD.without_adherence(), knows_habit=True),
        np.random.default_rng(2),
    )
    truth = {1: 0.85, 2: 0.15}
    learners = {p: population.learner(p, penalty=0.02) for p in truth}
    for person, lift in truth.items():
        simulator = Simulator(person_like(lift))
        for _ in counsel.learn(learners[person], simulator, episodes=300, rng=rng):
            pass
    for person, lift in truth.items():
        estimate = population.estimate(person)
        # Four standard errors by the person's own pieces, and what leaning on the other costs.
        error, lean = 0.5 / np.sqrt(estimate.exposure[CALL]), 5 / (5 + estimate.exposure[CALL])
        assert estimate.exposure[CALL] > 25
        assert abs(estimate.lift[CALL] - lift) < 4 * error + 0.7 * lean


def test_a_hard_budget_is_kept_live():
    population = Population(WARD.without_adherence(), knows_habit=True)
    learner = population.learner(0, budget=1, hard=True)
    state = WARD.mdp.state_labels.index("deteriorating")
    advice = learner.advise(0, state)
    assert advice != WARD.defer
    learner.observe(counsel.Move(0, state, advice, 0, 0.0, state))
    assert all(learner.advise(step, s) == WARD.defer for step in range(1, 6) for s in range(5))
    learner.finish()
    assert learner.advise(0, state) != WARD.defer, "the next episode has a budget of its own"


def test_plans_are_renewed_when_counts_have_grown_by_a_tenth():
    population = Population(WARD.without_adherence(), knows_habit=True)
    population.counts.add(1, (1, CALL, CALL), 100)
    plan = population.plan(2, Limit())
    assert not population.has_moved(plan.decisions, 2)
    population.counts.add(1, (1, CALL, CALL), 5)
    assert not population.has_moved(plan.decisions, 2), "a few pieces of others change little"
    population.counts.add(1, (1, CALL, CALL), 10)
    assert population.has_moved(plan.decisions, 2)
    again = population.plan(2, Limit())
    population.counts.add(2, (1, CALL, 0))
    assert population.has_moved(again.decisions, 2), "the first decision of their own counts"
    population.counts.forget(1)
    assert population.has_moved(again.decisions, 2), "decisions were taken out"


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"algorithm": "magic"}, "algorithm is 'magic'"),
        ({"must_say": {9: 0}}, "must_say has state 9"),
        ({"must_say": {0: 7}}, "advice 7"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong, what):
    with pytest.raises(CounselError, match=what):
        Population(WARD.without_adherence(), **wrong)


def test_more_than_a_learner_may_know_is_refused():
    with pytest.raises(CounselError, match=r"give problem.without_adherence\(\)"):
        Population(WARD)
    with pytest.raises(CounselError, match="rewards that are known"):
        Population(WARD.without_adherence().without_rewards())
    with pytest.raises(CounselError, match="act alike at every step"):
        Population(make("night-shift").without_adherence(), knows_habit=True)


def test_limits_that_make_no_sense_are_refused():
    population = Population(WARD.without_adherence())
    with pytest.raises(CounselError, match="give one or the other"):
        population.learner(0, penalty=0.1, budget=1.0)
    with pytest.raises(CounselError, match="person must be a whole number of at least 0, not -1"):
        population.learner(-1)
    with pytest.raises(CounselError, match="give rng"):
        Population(WARD.without_adherence(), algorithm="thompson").learner(0)


def test_a_state_of_another_world_is_not_restored():
    learner = Population(make("flappy-bird/greedy").without_adherence()).learner(0)
    simulator = Simulator(make("flappy-bird/greedy"))
    learner.update(simulator.play(learner.policy, episodes=3, rng=np.random.default_rng(0)))
    other = Population(WARD.without_adherence()).learner(0)
    with pytest.raises(CounselError, match="this problem has 5 states"):
        other.restore(learner.state())
