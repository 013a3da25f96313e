"""Gymnasium environments as worlds to learn in: states, ends, budgets, and what is refused."""

from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.wrappers import TransformAction, TransformObservation, TransformReward
from numpy.random import default_rng

import counsel
from counsel import CounselError
from counsel.learning import learn_live
from counsel.simulate import Environment
from counsel.worlds import AdviceEnv, AdviceWrapper, from_gymnasium, make
from tests.support.corridors import Corridor, walker

RIGHT, DEFER, OVER = 1, 2, 4  # as learners count, from 0


def world(env=None, horizon=8, reward_range=(0.0, 1.0)):
    return Environment(walker() if env is None else env, horizon=horizon, reward_range=reward_range)


def always(advice, horizon=8):
    return counsel.Policy(np.full((horizon, 5), advice), n_actions=2)


def play(environment, policy, episodes=1, seed=0):
    return environment.play(policy, episodes=episodes, rng=np.random.default_rng(seed))


def test_a_learner_may_know_the_sizes_and_one_state_more_for_the_end():
    environment = world(walker(cost=[1.0, 3.0]), horizon=7, reward_range=(-1, 2))
    shape = environment.shape
    assert (shape.horizon, shape.n_states, shape.n_actions) == (7, 5, 2)
    assert shape.reward_range == (-1, 2)
    assert environment.over == OVER
    np.testing.assert_array_equal(shape.cost, np.broadcast_to([1.0, 3.0], (7, 5, 2)))


def test_decisions_count_from_zero_and_an_end_leads_to_the_state_of_its_own():
    # The environment shows the first cell when the episode ends; learners must not see it as such.
    games = play(world(), always(RIGHT), episodes=2)
    assert games.lengths.tolist() == [4, 4]
    assert games.state.tolist() == [0, 1, 2, 3] * 2
    assert games.next_state.tolist() == [1, 2, 3, OVER] * 2
    assert games.action.tolist() == games.advice.tolist() == [RIGHT] * 8
    assert games.reward.tolist() == [0.0, 0.0, 0.0, 1.0] * 2
    assert games.terminated.tolist() == [True, True]
    games.check_fits(8, 5, 2)


@pytest.mark.parametrize(("most", "horizon", "steps"), [(100, 3, 3), (2, 8, 2)])
def test_an_episode_that_is_cut_has_not_ended(most, horizon, steps):
    games = play(world(walker(most), horizon), always(DEFER, horizon))
    assert games.lengths.tolist() == [steps]
    assert games.next_state[-1] == 0
    assert not games.terminated[0]
    assert games.pieces.tolist() == [0]


def test_an_end_at_the_horizon_is_an_end():
    games = play(world(horizon=4), always(RIGHT, 4))
    assert games.terminated.tolist() == [True]


def test_a_hard_budget_is_kept_and_a_mixture_draws_one_policy_for_each_episode():
    environment = world()
    advice = np.full((3, 8, 5), RIGHT)
    advice[0] = DEFER
    twice = counsel.Policy(advice, n_actions=2)
    assert play(environment, twice, episodes=5).pieces.tolist() == [2] * 5
    mixture = counsel.Mixture((always(RIGHT), always(DEFER)), (0.25, 0.75))
    games = play(environment, mixture, episodes=400)
    assert set(games.pieces.tolist()) == {0, 4}
    # The share of 400 draws with probability 0.25 has a standard error of 0.022.
    assert abs(games.terminated.mean() - 0.25) < 4 * 0.022


def test_the_same_generator_gives_the_same_episodes():
    environment = world(walker(adherence=0.5))
    first, again, other = (play(environment, always(RIGHT), 20, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.action, again.action)
    assert first.action.tolist() != other.action.tolist()
    # The episodes differ from one another: only the first has a seed.
    assert len(set(first.lengths.tolist())) > 1


def test_attributes_of_other_environments_mean_what_their_authors_want():
    # An environment may have a problem, a penalty and a cost of its own.
    env = walker(cost=2.0)
    env.unwrapped.problem, env.unwrapped.penalty, env.unwrapped.cost = "balance", 3.0, "high"
    shown = TransformObservation(env, lambda seen: seen, env.observation_space)
    assert (world(shown).shape.cost == 2.0).all()
    assert play(world(shown), always(RIGHT)).rewards.tolist() == [1.0]


@pytest.mark.slow
def test_playing_a_plan_in_the_lake_earns_its_value():
    rng = np.random.default_rng(4)
    own, theta = rng.dirichlet(np.ones(4), size=16), rng.uniform(0.5, 1.0, size=(16, 4))
    problem = from_gymnasium("FrozenLake-v1", horizon=50, human=counsel.Human(own, theta))
    lake = gymnasium.make("FrozenLake-v1")
    env = AdviceWrapper(lake, lambda s: own[s], lambda s, b: theta[s, b])
    environment = Environment(env, horizon=50, reward_range=(0.0, 1.0))
    policy = counsel.solve(problem, penalty=0.002).policy
    games = play(environment, policy, episodes=1500)
    exact = counsel.evaluate(problem, policy)
    assert 0.1 < exact.value < 0.9
    for seen, mean in ((games.rewards, exact.value), (games.pieces, exact.advice_count)):
        assert abs(seen.mean() - mean) < 4 * seen.std(ddof=1) / 1500**0.5


# What is refused.


def seen_as(space, number):
    return TransformObservation(walker(), lambda seen: number, space)


REFUSED = {
    "no environment": (lambda: "CartPole-v1", "env is 'CartPole-v1'; give a Gymnasium environment"),
    "a known problem": (
        lambda: AdviceEnv(make("night-shift")),
        r"use counsel.Simulator\(env.unwrapped.problem\) and counsel.learn",
    ),
    "a penalty": (
        lambda: walker(penalty=0.3),
        "env charges a penalty of 0.3; give the penalty to the learner instead",
    ),
    "actions that are numbers": (
        lambda: TransformAction(walker(), int, spaces.Box(0.0, 1.0)),
        r"the actions of env are .*; wrap it in counsel.worlds.AdviceWrapper",
    ),
    "observations that are numbers": (
        lambda: AdviceWrapper(gymnasium.make("CartPole-v1"), lambda seen: 0, 0.5),
        "turn them into Discrete cells with gymnasium.wrappers.TransformObservation",
    ),
}


@pytest.mark.parametrize(("env", "fault"), REFUSED.values(), ids=REFUSED)
def test_an_environment_that_cannot_be_learnt_in_is_refused(env, fault):
    with pytest.raises(CounselError, match=fault):
        world(env())


@pytest.mark.parametrize("settings", [{"horizon": 0}, {"reward_range": (1.0, 0.0)}])
def test_sizes_that_make_no_sense_are_refused(settings):
    with pytest.raises(CounselError, match=next(iter(settings))):
        world(**settings)


FAULTY = {
    "a reward out of its range": (
        lambda: TransformReward(walker(), lambda reward: reward + 2.0),
        r"the reward at step 0 in state 0 is 2; reward_range is \(0, 1\), so give a range",
    ),
    "a reward that is no number": (
        lambda: TransformReward(walker(), lambda reward: np.nan),
        "the reward at step 0 in state 0 is nan",
    ),
    "a cell beyond the last": (
        lambda: seen_as(spaces.Discrete(4), 4),
        r"an observation is 4; the observation space of env is Discrete\(4\)",
    ),
    "a cell before the first": (
        lambda: seen_as(spaces.Discrete(4, start=2), 1),
        "observation is 1",
    ),
    "a cell that is not whole": (lambda: seen_as(spaces.Discrete(4), 0.5), "observation is 0.5"),
    "nobody in the environment": (
        lambda: TransformAction(Corridor(), lambda advice: 5, spaces.Discrete(3)),
        'info has no "action" after a step; wrap env in counsel.worlds.AdviceWrapper',
    ),
}


@pytest.mark.parametrize(("env", "fault"), FAULTY.values(), ids=FAULTY)
def test_what_an_environment_must_not_do_is_named(env, fault):
    with pytest.raises(CounselError, match=fault):
        play(world(env()), always(RIGHT))


def test_an_action_out_of_range_is_named():
    class Odd(AdviceWrapper):
        def step(self, action):
            *rest, info = super().step(action)
            return (*rest, {**info, "action": 9})

    env = Odd(Corridor(), lambda seen: 5, 0.5)
    with pytest.raises(CounselError, match=r'info\["action"\] is 9; actions run from 5 to 6'):
        play(world(env), always(RIGHT))


def test_arguments_of_play_are_checked():
    environment, rng = world(), np.random.default_rng(0)
    with pytest.raises(CounselError, match="8 steps, 4 states and 2 actions; the problem has 8, 5"):
        environment.play(counsel.Policy(np.full((8, 4), 2), n_actions=2), episodes=1, rng=rng)
    with pytest.raises(CounselError, match="give a Policy or a Mixture"):
        environment.play("never", episodes=1, rng=rng)
    with pytest.raises(CounselError, match="episodes"):
        environment.play(always(RIGHT), episodes=0, rng=rng)
    with pytest.raises(CounselError, match="rng"):
        environment.play(always(RIGHT), episodes=1, rng=3)


# ------------------------------------------------------------------------------- memories


def tiring_lake(memory, fading):
    """The frozen lake, and a person who walks at random and tires of advice."""
    lake = gymnasium.make("FrozenLake-v1", is_slippery=False)
    return AdviceWrapper(lake, lambda cell: [0.25] * 4, adherence=0.9, memory=memory, fading=fading)


def test_levels_of_a_memory_are_part_of_every_decision():
    memory = counsel.Memory.pieces(2)
    environment = Environment(
        tiring_lake(memory, [1.0, 0.5, 0.0]), horizon=6, reward_range=(0.0, 1.0)
    )
    assert environment.shape.memory is memory
    assert environment.shape.n_states == 17
    seen = []

    def advise(step, state, level):
        seen.append(level)
        return 0 if step % 2 == 0 else 4  # left, at every second step

    moves = list(environment.decide(advise, seed=1))
    assert [move.level for move in moves] == seen
    assert seen == [0, 1, 1, 2, 2, 2][: len(seen)]


def test_advice_that_takes_no_level_is_blind_to_the_memory():
    environment = Environment(
        tiring_lake(counsel.Memory.pieces(2), [1.0, 0.5, 0.0]), horizon=6, reward_range=(0.0, 1.0)
    )
    moves = list(environment.decide(lambda step, state: 0, seed=1))
    assert {move.advice for move in moves} == {0}


def test_a_policy_with_levels_is_played_on_the_level_of_the_person():
    memory = counsel.Memory.pieces(1)
    environment = Environment(tiring_lake(memory, [1.0, 0.5]), horizon=5, reward_range=(0.0, 1.0))
    advice = np.full((2, 5, 17), 4)
    advice[0, 1:] = 2  # once: from the second step on, before any piece was given
    policy = counsel.Policy(advice, n_actions=4, levels=2)
    episodes = environment.play(policy, episodes=20, rng=default_rng(0))
    long = episodes.lengths > 2
    assert (episodes.pieces[long] == 1).all()
    spoken = episodes.advice != 4
    assert (episodes.level[spoken] == 0).all()
    with pytest.raises(counsel.CounselError, match="for 3 levels of memory; the person has 2"):
        environment.check_fits(counsel.Policy(np.full((3, 5, 17), 4), n_actions=4, levels=3))


@pytest.mark.parametrize("kind", [counsel.Structured, counsel.RFE])
def test_learners_learn_live_from_a_person_with_a_memory(kind):
    memory = counsel.Memory.pieces(1)
    environment = Environment(tiring_lake(memory, [1.0, 0.2]), horizon=8, reward_range=(0.0, 1.0))
    learner = kind(environment.shape, rng=default_rng(0))
    records = list(learn_live(learner, environment, episodes=20, rng=default_rng(1)))
    assert len(records) == 20
    assert learner.episode == 20
    assert learner.policy.levels == 2
    other = kind(replace(environment.shape, memory=counsel.Memory.since(1)), rng=default_rng(0))
    with pytest.raises(counsel.CounselError, match=r"after_silence\[m=0, m′=0\] is 0"):
        next(learn_live(other, environment, episodes=1, rng=default_rng(1)))
