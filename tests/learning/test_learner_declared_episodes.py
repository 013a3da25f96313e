"""A guarantee for a declared number of episodes is not stretched to more."""

import numpy as np
import pytest

import counsel
from counsel import UCBAD, CounselError
from counsel.baselines import EULER, UCBVI, QLearning
from counsel.learning import KL, Move, Theory
from counsel.learning.files import resume, suspend
from counsel.model.machine import machine_rewards
from counsel.worlds import make

DECLARED = 10


def rng(seed=0):
    return np.random.default_rng(seed)


def black_box(kind, problem):
    return kind(problem.shape, rng=rng(), reward=machine_rewards(problem), episodes=DECLARED)


def with_theory(problem, **options):
    bound = Theory(delta=0.1, episodes=DECLARED)
    return UCBAD(problem.without_adherence(), bound=bound, **options)


LEARNERS = {
    "ucb-ad, compiled": with_theory,
    "ucb-ad, budget": lambda p: with_theory(p, budget=1.0, rng=rng()),
    "euler": lambda p: black_box(EULER, p),
    "ucbvi": lambda p: black_box(UCBVI, p),
    "q-learning": lambda p: black_box(QLearning, p),
}
BEYOND = r"episodes is 10 but \w+ has learnt from {} and is to learn from {} more; .* episodes={} "

pytestmark = pytest.mark.parametrize("build", LEARNERS.values(), ids=LEARNERS)


@pytest.fixture(scope="module")
def problem():
    return make("night-shift")


def test_learn_refuses_more_episodes_than_declared_before_it_plays(build, problem):
    # Theory(episodes=10) and EULER(episodes=10) ran 500 episodes, with bounds that were not valid.
    learner, simulator = build(problem), counsel.Simulator(problem)
    with pytest.raises(CounselError, match=BEYOND.format(0, 500, 500)):
        next(counsel.learn(learner, simulator, episodes=500, rng=rng()))
    assert learner.episode == 0


def test_learn_runs_the_declared_episodes_and_no_more(build, problem):
    learner, simulator = build(problem), counsel.Simulator(problem)
    *_, last = counsel.learn(learner, simulator, episodes=DECLARED, rng=rng())
    assert last.episode == learner.episode == learner.most_episodes == DECLARED
    problem.check_fits(learner.policy)
    with pytest.raises(CounselError, match=BEYOND.format(10, 1, 11)):
        next(counsel.learn(learner, simulator, episodes=1, rng=rng(), after=last))


def test_update_refuses_episodes_beyond_and_counts_nothing(build, problem):
    learner, simulator = build(problem), counsel.Simulator(problem)
    learner.update(simulator.play(learner.policy, episodes=7, rng=rng()))
    more = simulator.play(learner.policy, episodes=4, rng=rng())
    before = learner.state()
    with pytest.raises(CounselError, match=BEYOND.format(7, 4, 11)):
        learner.update(more)
    after = learner.state()
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value, err_msg=name)


def test_a_live_episode_beyond_is_refused(build, problem):
    learner, simulator = build(problem), counsel.Simulator(problem)
    learner.update(simulator.play(learner.policy, episodes=DECLARED, rng=rng()))
    learner.observe(Move(0, 1, 1, 1, 0.84, 0))
    with pytest.raises(CounselError, match=BEYOND.format(10, 1, 11)):
        learner.finish()
    learner.finish()  # an empty episode is no episode


def test_a_resumed_run_keeps_the_declared_number(build, problem, tmp_path):
    first, second, simulator = build(problem), build(problem), counsel.Simulator(problem)
    chance = rng()
    *_, record = counsel.learn(first, simulator, episodes=6, rng=chance)
    suspend(first, tmp_path / "run.npz", rng=chance, record=record)
    chance, record = resume(second, tmp_path / "run.npz")
    with pytest.raises(CounselError, match=BEYOND.format(6, 5, 11)):
        next(counsel.learn(second, simulator, episodes=5, rng=chance, after=record))
    *_, last = counsel.learn(second, simulator, episodes=4, rng=chance, after=record)
    assert last.episode == DECLARED


def test_a_loop_of_its_own_and_a_burn_in_refuse_as_well(build, problem):
    learner, simulator = build(problem), counsel.Simulator(problem)
    if hasattr(learner, "burn_in"):
        with pytest.raises(CounselError, match=BEYOND.format(0, 11, 11)):
            learner.burn_in(simulator, episodes=11, rng=rng())
    if getattr(learner, "can_run", False):
        with pytest.raises(CounselError, match=BEYOND.format(0, 11, 11)):
            learner.run(simulator, best=0.0, episodes=11, every=1, rng=rng())
    assert learner.episode == 0


def test_bounds_for_any_number_of_episodes_have_no_limit(build, problem):
    for bound in (None, KL(delta=0.1)):
        learner = UCBAD(problem.without_adherence(), bound=bound)
        assert learner.most_episodes is None
    assert build(problem).most_episodes == DECLARED
