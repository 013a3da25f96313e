"""The simulator draws random rewards; certain ones take no random number."""

import csv
from dataclasses import replace

import numpy as np
import pytest

import counsel
from counsel import MDP, AdviceProblem, Human, Simulator
from counsel.simulate import bernoulli
from counsel.worlds import AdviceEnv, make


def rng(seed=0):
    return np.random.default_rng(seed)


def wide(name, low, high, law=bernoulli):
    """A world of the catalogue whose rewards are drawn from a range."""
    return replace(make(name), reward_range=(low, high), reward_law=law)


def as_a_function(cells, u):
    """The same law, which compiled loops do not know."""
    return bernoulli(cells, u)


def triangle(cells, u):
    """Rewards between twice the mean and 0, both ends included, by a quadratic law."""
    return 2.0 * cells.mean * np.where(u < 0.5, u, 1.0 - u) * 2.0


WORLDS = {
    "night-shift": (-1.0, 2.0),  # the next state is drawn
    "flappy-bird/safe": (-3.0, 4.0),  # it is certain, and episodes end, where nothing is paid
    "car-driving/myopic": (0.0, 2.0),  # an episode may be over at its start
}


def test_a_declared_range_alone_changes_no_episode():
    problem = make("night-shift")
    policy = counsel.solve(problem, penalty=0.05).policy
    declared = replace(problem, reward_range=(-5, 5))
    one, other = (Simulator(p).play(policy, episodes=50, rng=rng()) for p in (problem, declared))
    for name in ("state", "advice", "action", "reward", "next_state"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert Simulator(problem).draws == Simulator(declared).draws


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("law", [bernoulli, as_a_function, triangle])
def test_random_rewards_are_the_same_for_any_split_and_recorded_or_counted(name, law):
    problem = wide(name, *WORLDS[name], law)
    policy, simulator = counsel.solve(problem, penalty=0.1).policy, Simulator(problem)
    whole = simulator.play(policy, episodes=200, rng=rng(1))
    random = rng(1)
    parts = [simulator.play(policy, episodes=n, rng=random).reward for n in (1, 63, 64, 72)]
    np.testing.assert_array_equal(np.concatenate(parts), whole.reward)
    counted = simulator.count(policy, episodes=200, rng=rng(1))
    # Sums of at most 20 rewards in another order.
    np.testing.assert_allclose(counted.rewards, whole.rewards, rtol=0, atol=1e-12)
    assert counted.live == whole.state.size


def test_a_function_and_the_compiled_law_draw_the_same_rewards():
    policy = counsel.solve(make("night-shift")).policy
    one, other = (
        Simulator(wide("night-shift", -1, 2, law)).play(policy, episodes=100, rng=rng(2))
        for law in (bernoulli, as_a_function)
    )
    np.testing.assert_array_equal(one.reward, other.reward)
    assert set(one.reward) == {-1.0, 2.0}


@pytest.mark.parametrize("law", [bernoulli, triangle])
def test_rewards_have_the_means_of_the_world_and_episodes_its_value(law):
    problem = wide("night-shift", -1, 2, law)
    policy = counsel.solve(problem, penalty=0.05).policy
    episodes = Simulator(problem).play(policy, episodes=20_000, rng=rng(3))
    cell = (episodes.state, episodes.action.astype(int))
    times, paid = np.zeros((4, 3)), np.zeros((4, 3))
    np.add.at(times, cell, 1)
    np.add.at(paid, cell, episodes.reward)
    seen = times > 0
    # A reward within a range of 3 has a standard error of at most 1.5 / √n: five of them.
    error = np.abs(paid[seen] / times[seen] - problem.mdp.reward[0][seen])
    assert (error <= 5 * 1.5 / np.sqrt(times[seen])).all()
    value = counsel.evaluate(problem, policy).value
    spread = episodes.rewards.std() / np.sqrt(len(episodes))
    assert abs(episodes.rewards.mean() - value) <= 4 * spread


def test_nothing_is_paid_where_an_episode_is_over():
    # The mean of the end is 0, in the middle of the range: it must not pay −1 or 1.
    mdp = MDP([[1, 1], [1, 1]], [[0.5, 0.5], [0.0, 0.0]], horizon=6)
    person = Human(np.full((2, 2), 0.5), 0.5)
    problem = AdviceProblem(mdp, person, reward_range=(-1, 1), reward_law=bernoulli)
    silent, simulator = counsel.Policy(np.full((6, 2), 2), n_actions=2), Simulator(problem)
    counted = simulator.count(silent, episodes=300, rng=rng())
    assert set(counted.rewards) == {-1.0, 1.0}
    explorer = counsel.RFE(problem.shape, rng=rng())
    explorer.explore(simulator, episodes=300, rng=rng())
    assert (explorer.expected_reward()[:, 1] == 0.0).all()


def test_a_log_carries_random_rewards(tmp_path):
    problem = make("night-shift", random_rewards=True)
    policy = counsel.solve(problem).policy
    episodes = Simulator(problem).play(policy, episodes=20, rng=rng())
    counsel.save_log(episodes, tmp_path / "log.csv", problem=problem)
    with open(tmp_path / "log.csv", newline="") as file:
        rewards = [float(row["reward"]) for row in csv.DictReader(file)]
    assert rewards == episodes.reward.tolist()
    assert set(rewards) == {-0.2, 1.0}
    with pytest.raises(counsel.CounselError, match="not from this problem"):
        counsel.save_log(episodes, tmp_path / "log.csv", problem=make("night-shift"))
    narrow = replace(problem, reward_range=(-0.2, 1.5))
    wider = Simulator(narrow).play(policy, episodes=20, rng=rng())
    with pytest.raises(counsel.CounselError, match=r"is 1.5, outside reward_range \(-0.2, 1\)"):
        counsel.save_log(wider, tmp_path / "log.csv", problem=problem)


def test_the_environment_pays_random_rewards_and_certain_ones_take_no_number():
    certain, random = (AdviceEnv(make("night-shift", random_rewards=r)) for r in (False, True))
    paid = []
    for seed in range(40):
        random.reset(seed=seed)
        ended = False
        while not ended:
            _, reward, terminated, truncated, _ = random.step(random.problem.defer)
            paid.append(reward)
            ended = terminated or truncated
    assert set(paid) == {-0.2, 1.0}
    certain.reset(seed=3)
    state = certain.np_random.bit_generator.state["state"]["state"]
    certain.step(certain.problem.defer)
    twice = rng(0)
    twice.bit_generator.state = certain.np_random.bit_generator.state | {
        "state": certain.np_random.bit_generator.state["state"] | {"state": state}
    }
    twice.random(2)  # one number draws the action, one the next state
    assert twice.bit_generator.state == certain.np_random.bit_generator.state
