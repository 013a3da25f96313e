"""The simulator draws the same episodes from the same seed, however they are cut."""

import pickle

import numpy as np
import pytest

import counsel
from counsel import MDP, AdviceProblem, Human, Mixture, Policy, Simulator
from counsel.simulate import simulator as module
from counsel.simulate._episode_kernels import BLOCK
from counsel.simulate.simulator import NUMBERS
from tests.support import oracles
from tests.support.each import each_seed
from tests.support.problems import adapt
from tests.support.simulated import (
    CAR,
    COLUMNS,
    drawn_hard,
    everything,
    never,
    of_each_kind,
    policies,
    world,
)


def same_records(one, other):
    assert one.defer == other.defer
    for name in ("first", *COLUMNS, "terminated"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def same_counts(one, other):
    assert one.live == other.live
    for name in ("decisions", "rewards", "pieces"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def joined(parts):
    """Put batches of records one after another."""
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in (*COLUMNS, "terminated")
    }
    lengths = np.concatenate([part.lengths for part in parts])
    first = np.concatenate(([0], np.cumsum(lengths)))
    return counsel.simulate.Episodes(first=first, defer=parts[0].defer, **columns)


def long_world():
    """So many steps that a chunk of numbers is no longer than a block of episodes."""
    P = np.array([[[0.5, 0.5], [0.1, 0.9]], [[0.3, 0.7], [1.0, 0.0]]])
    mdp = MDP(P, [[0.0, 1.0], [2.0, 0.5]], horizon=700, start=[0.5, 0.5])
    return AdviceProblem(mdp, Human([[0.5, 0.5], [0.2, 0.8]], 0.6))


def splits(chunk):
    """Ways to draw the same number of episodes, around the ends of blocks and of chunks."""
    n = 2 * chunk + BLOCK + 9
    yield n, [1, n - 1]
    yield n, [BLOCK - 1, 1, BLOCK + 1, n - 2 * BLOCK - 1]
    yield n, [BLOCK, n - BLOCK]
    yield n, [chunk - 1, chunk + 1, BLOCK + 9]
    yield n, [chunk, chunk, BLOCK + 9]
    yield n, [chunk + 1, n - chunk - 1]
    yield n, [37] * (n // 37) + [n % 37] * (n % 37 > 0)


@pytest.mark.parametrize("name", ["flappy-bird/safe", CAR, "long", 5, 18])
@pytest.mark.parametrize("kind", ["random", "mixture"])
def test_one_batch_or_many_are_the_same_episodes_to_the_last_bit(name, kind):
    problem = long_world() if name == "long" else world(name)
    if name == "long":
        policy = everything(problem)
        if kind == "mixture":
            policy = Mixture((policy, drawn_hard(problem, 3)), (0.5, 0.5))
    else:
        policy = policies(name)[kind]
    simulator = Simulator(problem)
    chunk = max(BLOCK, NUMBERS // simulator.draws)
    assert (chunk == BLOCK) == (name == "long")
    counting = name != "car-driving/myopic"  # there a batch of counts is 57 MB
    for n, parts in splits(chunk):
        assert sum(parts) == n
        once, many = np.random.default_rng(1), np.random.default_rng(1)
        whole = simulator.play(policy, episodes=n, rng=once)
        same_records(whole, joined([simulator.play(policy, episodes=k, rng=many) for k in parts]))
        assert once.bit_generator.state == many.bit_generator.state
        if counting:
            once, many = np.random.default_rng(1), np.random.default_rng(1)
            sums = [simulator.count(policy, episodes=k, rng=many) for k in parts]
            total = sums[0]
            for part in sums[1:]:
                total = total + part
            same_counts(simulator.count(policy, episodes=n, rng=once), total)
            assert once.bit_generator.state == many.bit_generator.state


def test_how_many_numbers_are_drawn_at_a_time_changes_nothing(monkeypatch):
    problem, policy = world("night-shift"), policies("night-shift")["mixture"]
    simulator = Simulator(problem)
    episodes = simulator.play(policy, episodes=1_000, rng=np.random.default_rng(2))
    counts = simulator.count(policy, episodes=1_000, rng=np.random.default_rng(2))
    for numbers in (1, 3_000, 2**20):
        monkeypatch.setattr(module, "NUMBERS", numbers)
        same_records(episodes, simulator.play(policy, episodes=1_000, rng=np.random.default_rng(2)))
        same_counts(counts, simulator.count(policy, episodes=1_000, rng=np.random.default_rng(2)))


@pytest.mark.parametrize("kind", [np.random.PCG64, np.random.MT19937, np.random.Philox])
def test_any_generator_will_do_and_is_used_equally(kind):
    problem, n = world("night-shift"), 500
    simulator, states = Simulator(problem), []
    for policy in (*policies("night-shift").values(), never(problem)):
        for draw_some in (simulator.play, simulator.count):
            rng = np.random.Generator(kind(4))
            draw_some(policy, episodes=n, rng=rng)
            states.append(rng.random(3).tolist())
    assert all(state == states[0] for state in states)
    fresh = np.random.Generator(kind(4))
    fresh.random(n * simulator.draws)
    assert fresh.random(3).tolist() == states[0]


def starts_of(problem, policy, seed):
    episodes = Simulator(problem).play(policy, episodes=2_000, rng=np.random.default_rng(seed))
    assert (episodes.lengths > 0).all()
    return episodes.state[episodes.first[:-1]]


def many_starts():
    """A problem that may start anywhere and never ends."""
    problem = adapt(oracles.random_problem(np.random.default_rng(0), 6, 3, 4))
    mdp = MDP(problem.mdp.kernel, problem.mdp.reward, horizon=4, start=np.full(6, 1 / 6))
    return AdviceProblem(mdp, problem.human)


def test_the_same_seed_starts_in_the_same_states_under_any_policy():
    problem = many_starts()
    starts = [starts_of(problem, policy, 3) for policy in of_each_kind(problem)]
    assert len(set(starts[0].tolist())) == 6
    for other in starts[1:]:
        np.testing.assert_array_equal(starts[0], other)


def test_the_same_seed_starts_in_the_same_states_under_a_mixture_too():
    # One number once drew both the policy and the start, so a mixture started elsewhere.
    problem = many_starts()
    mixture = Mixture(of_each_kind(problem)[:3], (0.2, 0.3, 0.5))
    np.testing.assert_array_equal(
        starts_of(problem, never(problem), 3), starts_of(problem, mixture, 3)
    )


@each_seed(range(6))
def test_policies_that_differ_later_have_the_same_luck_before(seed):
    problem = adapt(oracles.random_problem(np.random.default_rng(seed), 4, 3, 6))
    table = everything(problem, seed).probabilities()
    changed = table.copy()
    changed[3:] = everything(problem, seed + 100).probabilities()[3:]
    one, other = (
        Simulator(problem).play(
            Policy.from_probabilities(t), episodes=3_000, rng=np.random.default_rng(seed)
        )
        for t in (table, changed)
    )
    for name in COLUMNS:
        early = [getattr(e, name)[e.step < 3] for e in (one, other)]
        np.testing.assert_array_equal(*early, err_msg=name)
    assert (one.advice[one.step >= 3] != other.advice[other.step >= 3]).any()


@pytest.mark.parametrize("name", ["flappy-bird-budget/greedy", "night-shift", 4, 13])
def test_a_simulator_that_was_pickled_draws_the_same(name):
    policy = policies(name)["mixture"]
    simulator = Simulator(world(name))
    loaded, loaded_policy = pickle.loads(pickle.dumps((simulator, policy)))
    for one, other, check in (
        (simulator.play, loaded.play, same_records),
        (simulator.count, loaded.count, same_counts),
    ):
        check(
            one(policy, episodes=700, rng=np.random.default_rng(8)),
            other(loaded_policy, episodes=700, rng=np.random.default_rng(8)),
        )


def test_another_seed_gives_other_episodes():
    simulator, policy = Simulator(world("night-shift")), policies("night-shift")["plan"]
    one, other = (
        simulator.play(policy, episodes=100, rng=np.random.default_rng(seed)) for seed in (1, 2)
    )
    assert (one.action != other.action).any()
