"""A population: many people, each advised by what is believed of them and of everybody."""

import numpy as np
import pytest

import counsel
from counsel import CounselError, Simulator
from counsel.estimate.person import POPULATION_WEIGHT
from counsel.learning.population import Limit, Population
from counsel.model.human import draw_index
from counsel.testing import check_learner
from counsel.worlds import make
from tests.support.problems import adapt, draw

WARD = make("ward")
CALL = 2


PRIOR = counsel.AdviceProblem(WARD.mdp, counsel.Human(np.full((5, 3), 1 / 3), lift=0.0))
"""The ward for a machine that knows nothing of the people in it."""


def add(population, decisions):
    for person, cell, *times in decisions:
        population.counts.add(person, cell, *times)


def lived(population, person, truth, episodes, rng, *, silent=0.2, limit=None):
    """Advise somebody for some episodes, some of them in silence, and return the decisions."""
    decisions, A = [], truth.n_actions
    moves = truth.mdp.kernel.to_sparse().toarray()
    for _ in range(episodes):
        policy = population.plan(person, limit or Limit(), rng).plan.policy
        is_quiet, spent, began = rng.random() < silent, 0, len(decisions)
        state = draw_index(truth.mdp.start, rng)
        for step in range(truth.horizon):
            advice = policy.draw(step, state, rng, policy.left_after(spent))
            advice = A if is_quiet else advice
            spent += advice < A
            action = draw_index(truth.law(step, state, advice), rng)
            decisions.append((person, (state, advice if advice < A else None, action)))
            state = draw_index(moves[state * A + action], rng)
            if truth.mdp.over[step, state]:
                break
        add(population, decisions[began:])
    return decisions


def person_like(lift):
    return counsel.AdviceProblem(WARD.mdp, counsel.Human(WARD.policy[0], lift=lift))


@pytest.mark.parametrize("world", ["ward", pytest.param("night-shift", marks=pytest.mark.slow)])
@pytest.mark.parametrize("limit", [{"penalty": 0.05}, {"budget": 1.0}, {"budget": 2, "hard": True}])
@pytest.mark.parametrize("algorithm", ["ucb-ad", "thompson"])
def test_it_is_a_learner(algorithm, limit, world):
    def build(problem):
        population = Population(problem.without_adherence(), algorithm=algorithm)
        return population.learner(0, rng=np.random.default_rng(1), **limit)

    check_learner(build, make(world))


@pytest.mark.parametrize(
    "seeds", [range(2), pytest.param(range(2, 6), marks=pytest.mark.slow)], ids=["two", "four"]
)
def test_it_is_a_learner_of_any_world(seeds):
    def build(problem):
        return Population(problem.without_adherence()).learner(3, penalty=0.1)

    for seed in seeds:
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
    learner.observe(counsel.learning.Move(0, state, advice, 0, 0.0, state))
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


def test_the_same_decisions_in_any_order_make_the_same_plans():
    rng = np.random.default_rng(0)
    first, limit = Population(PRIOR.without_adherence()), Limit(budget=1.0)
    decisions = lived(first, 7, WARD, 30, rng, limit=limit)
    decisions += lived(first, 8, WARD, 10, rng, limit=limit)
    again = Population(PRIOR.without_adherence())
    add(again, (decisions[i] for i in rng.permutation(len(decisions))))
    for person in (7, 8, 9):
        mine, other = first.plan(person, limit), again.plan(person, limit)
        np.testing.assert_array_equal(mine.plan.policy.advice, other.plan.policy.advice)
        np.testing.assert_array_equal(mine.estimate.planned_lift, other.estimate.planned_lift)
        np.testing.assert_array_equal(mine.estimate.habit, other.estimate.habit)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["ucb-ad", "thompson"])
def test_it_learns_who_listens_and_what_they_do_alone(algorithm):
    rng = np.random.default_rng(2)
    population, limit = Population(PRIOR.without_adherence(), algorithm), Limit(penalty=0.02)
    keen, deaf = person_like(0.8), person_like(0.1)
    for _ in range(3):
        lived(population, 1, keen, 120, rng, limit=limit)
        lived(population, 2, deaf, 120, rng, limit=limit)
    estimates = [population.estimate(person, rng) for person in (1, 2)]
    for estimate, truth in zip(estimates, (0.8, 0.1), strict=True):
        # The standard error by the person's own pieces, and what leaning on the other costs.
        error = 0.5 / np.sqrt(estimate.exposure[CALL])
        lean = POPULATION_WEIGHT / (POPULATION_WEIGHT + estimate.exposure[CALL]) * 0.5
        assert estimate.exposure[CALL] > 25
        assert abs(estimate.lift[CALL] - truth) < 4 * error + lean
    often = population.counts_of(1)[1].silent.sum(axis=1) > 100
    assert often.sum() >= 2
    np.testing.assert_allclose(estimates[0].habit[often], WARD.policy[0, often], atol=0.1)
    # Planned for the keen one it is worth nearly what there is to have.
    best = counsel.solve(keen, penalty=0.02)
    worth = counsel.evaluate(keen, population.plan(1, limit, rng).plan.policy)
    alone = counsel.evaluate(keen, counsel.Policy.never(horizon=6, n_states=5, n_actions=3)).value
    assert worth.value - 0.02 * worth.advice_count - alone > 0.8 * (best.penalised_value - alone)


def test_a_new_person_starts_as_everybody_and_drifts_to_their_own():
    population = Population(WARD.without_adherence(), knows_habit=True)
    rng = np.random.default_rng(3)

    def advise(person, n, lift):
        matches = rng.random(n) < lift + (1 - lift) * WARD.policy[0, 1, CALL]
        add(population, ((person, (1, CALL, CALL if match else 0)) for match in matches))

    for person in range(20):
        advise(person, 100, 0.7)
    new = population.estimate(99)
    assert new.lift[CALL] == pytest.approx(0.7, abs=4 * 0.5 / np.sqrt(2000))
    lifts = [new.lift[CALL]]
    for _ in range(4):
        advise(99, 50, 0.0)
        lifts.append(population.estimate(99).lift[CALL])
    assert lifts == sorted(lifts, reverse=True)
    assert lifts[-1] < 0.12
    assert population.estimate(0).lift[CALL] == pytest.approx(0.7, abs=0.15)


def test_optimism_shrinks_with_pieces_and_is_never_below_the_estimate():
    population = Population(WARD.without_adherence(), knows_habit=True)
    gaps = []
    for _ in range(5):
        add(population, [(1, (1, CALL, CALL), 40), (1, (1, CALL, 0), 40)])
        estimate = population.estimate(1)
        assert (estimate.planned_lift >= estimate.lift).all()
        gaps.append(estimate.planned_lift[CALL] - estimate.lift[CALL])
    assert gaps == sorted(gaps, reverse=True)


def test_what_must_be_said_is_outside_the_budget_and_known_to_the_planner():
    critical = WARD.mdp.state_labels.index("critical")
    free = Population(WARD.without_adherence(), knows_habit=True)
    bound = Population(WARD.without_adherence(), knows_habit=True, must_say={critical: CALL})
    person_plan = bound.plan(1, Limit(budget=1.0))
    assert (person_plan.plan.policy.advice[:, critical] == WARD.defer).all()
    assert person_plan.plan.advice_count == pytest.approx(1.0)
    # The planner's person acts in that state as one who is advised so.
    lift = person_plan.estimate.planned_lift[CALL]
    expected = (1 - lift) * WARD.policy[0, critical]
    expected[CALL] += lift
    np.testing.assert_allclose(person_plan.problem.policy[0, critical], expected)
    # What need not be paid for there is spent elsewhere: it is worth more than the budget alone.
    assert person_plan.plan.value > free.plan(1, Limit(budget=1.0)).plan.value


def test_a_hard_budget_counts_what_was_spent():
    population = Population(WARD.without_adherence(), knows_habit=True)
    policy = population.plan(1, Limit(budget=2, hard=True)).plan.policy
    state = WARD.mdp.state_labels.index("deteriorating")
    assert next(iter(policy.at(0, state, policy.left_after(0)))) != WARD.defer
    for spent in (2, 3):
        for step in range(6):
            for s in range(5):
                assert policy.at(step, s, policy.left_after(spent)) == {WARD.defer: 1.0}


def test_always_is_the_best_action_at_every_step():
    population = Population(WARD.without_adherence(), knows_habit=True, must_say={3: CALL})
    person_plan = population.plan(1, Limit(always=True))
    advice, ends = person_plan.plan.policy.advice, WARD.mdp.over[0]
    assert (advice[:, 3] == WARD.defer).all(), "what must be said is said apart"
    assert (advice[:, ~ends & (np.arange(5) != 3)] != WARD.defer).all()
    worth = counsel.evaluate(person_plan.problem, person_plan.plan.policy)
    assert person_plan.plan.advice_count == pytest.approx(worth.advice_count)
    with pytest.raises(CounselError, match="takes no penalty"):
        Limit(always=True, budget=1.0)


def test_people_who_change_over_the_episode_are_learnt_but_not_taken_as_known():
    shift = make("night-shift")
    Population(shift.without_adherence()).plan(1, Limit(budget=1.0))
    with pytest.raises(CounselError, match="knows_habit is for people"):
        Population(shift.without_adherence(), knows_habit=True)


def test_a_few_decisions_of_many_do_not_renew_a_plan():
    population = Population(WARD.without_adherence(), knows_habit=True)
    population.counts.add(2, (1, CALL, 0), 100)
    last = population.plan(2, Limit())
    population.counts.add(2, (1, None, 0), 5)
    assert not population.has_moved(last.decisions, 2)


def test_masks_that_change_with_the_step_are_kept_to():
    """Found by a learner of any world: habits were put on actions that were not allowed."""
    allowed = np.ones((3, 2, 2), dtype=bool)
    allowed[1, 0, 1] = allowed[2, 1, 0] = False
    mdp = counsel.MDP(np.full((3, 2, 2, 2), 0.5), np.ones((2, 2)), horizon=3, allowed=allowed)
    policy = np.where(allowed, 0.5, 0.0)
    policy /= policy.sum(axis=2, keepdims=True)
    problem = counsel.AdviceProblem(mdp, counsel.Human(policy, lift=0.5))
    believed = Population(problem.without_adherence()).plan(0, Limit(penalty=0.01)).problem
    assert (believed.policy[~allowed] == 0.0).all()
    assert (believed.lift[~allowed] == 0.0).all()
    np.testing.assert_allclose(believed.policy.sum(axis=2), 1.0)
