"""Episodes of people with a memory: levels are carried along and recorded, and values are exact."""

import pickle

import numpy as np
import pytest

import counsel
from counsel import AdviceProblem, Memory
from tests.support.each import each

EPISODES = 20_000
MEMORIES = {
    "pieces": (Memory.pieces(3), [1.0, 0.7, 0.5, 0.35]),
    "since": (Memory.since(2), [0.2, 0.6, 1.0]),
    "refusals": (Memory.refusals(2), [1.0, 0.5, 0.1]),
    "dose": (Memory.dose(0.6, 4), [1.0, 0.8, 0.4, 0.2]),
    "joined": (Memory.pieces(1) * Memory.since(1), [0.5, 1.0, 0.3, 0.7]),
}
LIMITS = [{}, {"penalty": 0.05}, {"budget": 1.5}, {"budget": 2, "hard": True}]


def tiring(name, world="night-shift"):
    problem = counsel.make(world)
    memory, fading = MEMORIES[name]
    return AdviceProblem(problem.mdp, problem.human.with_memory(memory, fading))


@pytest.mark.parametrize("name", MEMORIES)
def test_means_are_the_exact_values(name):
    problem = tiring(name)
    for limit in LIMITS:
        plan = counsel.solve(problem, **limit)
        for policy in (plan.policy, plan.mixture):
            rng = np.random.default_rng(7)
            counts = counsel.Simulator(problem).count(policy, episodes=EPISODES, rng=rng)
            for drawn, exact in (
                (counts.rewards, plan.value),
                (counts.pieces, plan.advice_count),
            ):
                error = drawn.std() / np.sqrt(EPISODES)
                assert abs(drawn.mean() - exact) <= 4.5 * error + 1e-12  # 40 means are compared


@pytest.mark.parametrize("name", MEMORIES)
def test_records_have_the_level_of_every_decision(name):
    problem = tiring(name, "flappy-bird/safe")
    plan, rng = counsel.solve(problem), np.random.default_rng(0)
    episodes = counsel.Simulator(problem).play(plan.policy, episodes=500, rng=rng)
    after, start = problem.memory.after, problem.memory.start
    for i in range(len(episodes)):
        first, end = episodes.first[i : i + 2]
        assert episodes.level[first] == start
        for row in range(first, end - 1):
            said, did = episodes.advice[row], episodes.action[row]
            outcome = 0 if said == episodes.defer else 1 if did == said else 2
            assert after[outcome, episodes.level[row], episodes.level[row + 1]] > 0.0
    advice = plan.policy.advice[episodes.level, episodes.step, episodes.state]
    assert (advice == episodes.advice).all()


def test_counting_and_recording_draw_the_same_episodes():
    problem = tiring("dose")
    policy = counsel.solve(problem, penalty=0.05).policy
    simulator = pickle.loads(pickle.dumps(counsel.Simulator(problem)))
    recorded = simulator.play(policy, episodes=300, rng=np.random.default_rng(3))
    counted = simulator.count(policy, episodes=300, rng=np.random.default_rng(3))
    np.testing.assert_allclose(recorded.rewards, counted.rewards, atol=1e-9)
    assert (recorded.pieces == counted.pieces).all()


def test_people_without_a_memory_have_no_level_and_the_same_episodes_as_with_one_level():
    plain = counsel.make("night-shift")
    one = AdviceProblem(plain.mdp, plain.human.with_memory(Memory([[1.0]], [[1.0]])))
    policy = counsel.solve(plain, penalty=0.05).policy
    played = [
        counsel.Simulator(problem).play(policy, episodes=200, rng=np.random.default_rng(1))
        for problem in (plain, one)
    ]
    assert played[0].level is None
    assert (played[1].level == 0).all()
    for name in ("state", "advice", "action", "reward", "next_state"):
        assert (getattr(played[0], name) == getattr(played[1], name)).all()


@each("limit", LIMITS)
def test_a_blind_policy_meets_the_same_person(limit):
    """Advice that does not depend on the level is given to a person whose lift does."""
    problem = tiring("pieces")
    policy = counsel.solve(problem.without_memory(), **limit).policy
    exact = counsel.evaluate(problem, policy)
    rng = np.random.default_rng(5)
    counts = counsel.Simulator(problem).count(policy, episodes=EPISODES, rng=rng)
    assert abs(counts.rewards.mean() - exact.value) <= 4.5 * counts.rewards.std() / EPISODES**0.5


def test_planning_for_the_memory_is_worth_what_the_world_is_known_for():
    """Numbers of an independent computation: 7.65 with 5.4 pieces, against 6.54 with 7.4."""
    problem = counsel.make("flappy-bird/tiring")
    best = counsel.solve(problem)
    blind = counsel.evaluate(problem, counsel.solve(counsel.make("flappy-bird/safe")).policy)
    numbers = (best.value, best.advice_count, blind.value, blind.advice_count)
    assert [round(number, 2) for number in numbers] == [7.65, 5.39, 6.54, 7.4]
    assert counsel.solve(problem.without_memory()).value == pytest.approx(
        counsel.solve(counsel.make("flappy-bird/safe")).value
    )


def test_learners_know_the_memory_but_not_the_lift_and_may_be_blind_to_it():
    problem = counsel.make("ward/tiring")
    setting = problem.without_adherence()
    assert setting.memory is problem.memory
    assert setting.groups.shape == (6, *problem.policy.shape)
    assert not hasattr(setting, "human")
    assert problem.shape.memory is problem.memory
    learner = counsel.UCBAD(problem.without_memory().without_adherence())
    records = list(
        counsel.learn(
            learner, counsel.Simulator(problem), episodes=50, rng=np.random.default_rng(0)
        )
    )
    assert records
