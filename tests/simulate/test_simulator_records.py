"""Records and counts of the simulator: where episodes end, and what is counted."""

from itertools import pairwise

import numpy as np
import pytest

from counsel import MDP, AdviceProblem, CounselError, Human, Policy, Simulator
from tests.support import examples
from tests.support.each import each_seed
from tests.support.frequencies import check_binomial
from tests.support.over import slow_over
from tests.support.problems import adapt
from tests.support.simulated import (
    COLUMNS,
    ends,
    everything,
    never,
    of_each_kind,
    patchwork,
    policies,
    world,
)


def with_ends(name):
    """Return a world in which episodes end early, and where they do."""
    if isinstance(name, str):
        return world(name), world(name).mdp.over
    dense = ends(name)
    return adapt(dense), slow_over(dense.P_hsat, dense.r_hsa, dense.allowed_hsa)


RAGGED = ["flappy-bird/greedy", "flappy-bird-budget/greedy", "car-driving/myopic", *range(6)]


def check_ragged(problem, over_hs, episodes):
    """Records hang together and stop exactly where an episode is over."""
    H, n = problem.horizon, len(episodes)
    first, lengths = episodes.first, episodes.lengths
    assert first[0] == 0
    assert first[-1] == episodes.state.size
    assert first.size == n + 1 == episodes.terminated.size + 1
    assert (lengths >= 0).all()
    assert (lengths <= H).all()
    assert {getattr(episodes, name).size for name in COLUMNS} == {first[-1]}
    step, episode = episodes.step, episodes.episode
    for i, (begin, end) in enumerate(pairwise(first[:200])):
        assert step[begin:end].tolist() == list(range(end - begin))
        assert (episode[begin:end] == i).all()
    assert (np.bincount(episode, minlength=n) == lengths).all()
    goes_on = episode[1:] == episode[:-1]
    assert (step[1:][goes_on] == step[:-1][goes_on] + 1).all()
    assert (step[1:][~goes_on] == 0).all()
    assert (episodes.state[1:][goes_on] == episodes.next_state[:-1][goes_on]).all()
    # No decision is taken where it is over, and none is missing where it is not.
    assert not over_hs[step, episodes.state].any()
    rows = lengths > 0
    last = episodes.next_state[first[1:][rows] - 1]
    stopped = lengths[rows] < H
    assert over_hs[lengths[rows][stopped], last[stopped]].all()
    assert (episodes.terminated[rows] == over_hs[np.minimum(lengths[rows], H - 1), last]).all()
    assert episodes.terminated[~rows].all()  # it started where it is over


@pytest.mark.parametrize("name", RAGGED)
def test_records_stop_exactly_where_the_episode_is_over(name):
    problem, over_hs = with_ends(name)
    for policy in of_each_kind(problem) if isinstance(name, int) else policies(name).values():
        episodes = Simulator(problem).play(policy, episodes=4_000, rng=np.random.default_rng(3))
        check_ragged(problem, over_hs, episodes)
        assert len(set(episodes.lengths.tolist())) > 1
        bird = str(name).startswith("flappy-bird")  # which always ends: on a wall or past the map
        assert episodes.terminated.all() if bird else 0 < episodes.terminated.mean() < 1


@each_seed(range(6))
def test_an_episode_that_starts_where_it_is_over_has_no_decision(seed):
    problem, over_hs = with_ends(seed)
    n = 20_000
    episodes = Simulator(problem).play(
        everything(problem), episodes=n, rng=np.random.default_rng(seed)
    )
    check_binomial((episodes.lengths == 0).sum(), n, problem.mdp.start @ over_hs[0])
    assert (episodes.lengths == 0).any()
    assert not episodes.rewards[episodes.lengths == 0].any()


def test_a_world_that_is_over_from_the_start_has_no_decisions_at_all():
    mdp = MDP(np.array([[0, 0]]), [[0.0, 0.0]], horizon=4)
    problem = AdviceProblem(mdp, Human([[0.5, 0.5]], 0.5))
    simulator, policy = Simulator(problem), Policy(np.zeros((4, 1), dtype=int), n_actions=2)
    episodes = simulator.play(policy, episodes=3_000, rng=np.random.default_rng(0))
    assert (len(episodes), episodes.state.size) == (3_000, 0)
    assert episodes.terminated.all()
    assert episodes.rewards.tolist() == [0.0] * 3_000
    assert episodes.pieces.tolist() == [0] * 3_000
    assert episodes.step.size == episodes.episode.size == 0
    counts = simulator.count(policy, episodes=3_000, rng=np.random.default_rng(0))
    assert counts.live == 0
    assert (counts.pieces == 4).all()  # as ``evaluate`` has it, it is still advised


@pytest.mark.parametrize("name", [*RAGGED, "night-shift"])
def test_records_and_counts_are_the_same_episodes(name):
    problem, over_hs = with_ends(name)
    H, S, A = problem.horizon, problem.n_states, problem.n_actions
    n = 3_000
    kinds = of_each_kind(problem) if isinstance(name, int) else policies(name).values()
    for policy in kinds:
        simulator = Simulator(problem)
        episodes = simulator.play(policy, episodes=n, rng=np.random.default_rng(7))
        counts = simulator.count(policy, episodes=n, rng=np.random.default_rng(7))
        assert len(counts) == len(episodes) == n
        assert counts.live == episodes.state.size
        np.testing.assert_array_equal(counts.rewards, episodes.rewards)  # to the last bit
        # What the records leave out are the steps of those who have ended, where they ended.
        more = counts.decisions.copy()
        np.subtract.at(more, (episodes.step, episodes.state, episodes.advice, episodes.action), 1)
        assert (more >= 0).all()
        assert not more[~over_hs].any()
        rows = episodes.lengths > 0
        where = episodes.next_state[episodes.first[1:][rows] - 1]
        absorbed_hs = np.zeros((H, S), dtype=np.int64)
        for h in range(H):
            np.add.at(absorbed_hs[h], where[episodes.lengths[rows] <= h], 1)
        idle_hs = more.sum(axis=(2, 3))
        born_over = idle_hs - absorbed_hs  # those who started there have no row to say so
        assert (born_over == born_over[0]).all()
        assert born_over[0].sum() == (~rows).sum()
        assert (born_over[0][~over_hs[0]] == 0).all()
        assert (counts.decisions.sum(axis=(1, 2, 3)) == n).all()
        # And what they hear there is what the policy says.
        if isinstance(policy, Policy) and policy.advice.ndim == 2 and not policy.random.cell.size:
            for h, s in np.argwhere(over_hs & (idle_hs > 0)):
                assert more[h, s, policy.advice[h, s]].sum() == idle_hs[h, s]
            assert counts.pieces.sum() - episodes.pieces.sum() == more[:, :, :A].sum()
            assert (counts.pieces >= episodes.pieces).all()


def test_a_problem_without_chance_is_recorded_to_the_letter():
    problem = adapt(examples.silent_then_advised())
    policy = Policy([[0, 2, 2], [2, 2, 0], [2, 2, 2]], n_actions=2)
    episodes = Simulator(problem).play(policy, episodes=2, rng=np.random.default_rng(0))
    assert episodes.first.tolist() == [0, 3, 6]
    assert episodes.state.tolist() == [0, 1, 1] * 2
    assert episodes.advice.tolist() == [0, 2, 2] * 2
    assert episodes.action.tolist() == [0, 1, 1] * 2
    assert episodes.reward.tolist() == [0.0, 0.75, 0.75] * 2
    assert episodes.next_state.tolist() == [1, 1, 1] * 2
    assert episodes.matched.tolist() == [True, False, False] * 2
    assert episodes.step.tolist() == [0, 1, 2] * 2
    assert episodes.episode.tolist() == [0, 0, 0, 1, 1, 1]
    assert episodes.rewards.tolist() == [1.5, 1.5]
    assert episodes.pieces.tolist() == [1, 1]
    assert episodes.lengths.tolist() == [3, 3]
    assert not episodes.terminated.any()
    assert (len(episodes), repr(episodes)) == (2, "Episodes(2 episodes, 6 decisions)")


def test_counts_say_what_was_seen_given_and_matched():
    problem = adapt(examples.silent_then_advised())
    policy = Policy([[0, 2, 2], [2, 1, 0], [2, 2, 2]], n_actions=2)  # advice 1 is what they do
    counts = Simulator(problem).count(policy, episodes=5, rng=np.random.default_rng(0))
    assert counts.visits.tolist() == [[5, 0, 0], [0, 5, 0], [0, 5, 0]]
    assert counts.given.tolist() == [5, 5]
    assert counts.matched.tolist() == [5, 5]
    assert counts.pieces.tolist() == [2] * 5
    assert counts.rewards.tolist() == [1.5] * 5
    assert counts.live == 15
    assert (len(counts), repr(counts)) == (5, "Counts(5 episodes, 15 decisions)")
    deaf = AdviceProblem(problem.mdp, Human(problem.policy, 0.0))
    heard = Simulator(deaf).count(policy, episodes=5, rng=np.random.default_rng(0))
    # Unmoved they go to state 2, where advice 0 is given in vain.
    assert heard.visits.tolist() == [[5, 0, 0], [0, 0, 5], [0, 0, 5]]
    assert heard.given.tolist() == [10, 0]
    assert heard.matched.tolist() == [0, 0]


@each_seed(range(8))
def test_given_and_matched_are_those_of_the_records(seed):
    problem = patchwork(seed)
    policy, simulator = everything(problem), Simulator(problem)
    episodes = simulator.play(policy, episodes=2_000, rng=np.random.default_rng(seed))
    counts = simulator.count(policy, episodes=2_000, rng=np.random.default_rng(seed))
    assert counts.live == counts.decisions.sum()  # none of these problems ends early
    A = problem.n_actions
    assert counts.given.tolist() == np.bincount(episodes.advice, minlength=A + 1)[:A].tolist()
    matched = episodes.advice[episodes.matched]
    assert counts.matched.tolist() == np.bincount(matched, minlength=A).tolist()
    assert episodes.matched.tolist() == (episodes.action == episodes.advice).tolist()
    np.testing.assert_array_equal(counts.pieces, episodes.pieces)
    assert episodes.pieces.sum() == counts.given.sum()
    assert counts.visits.tolist() == [
        np.bincount(episodes.state[episodes.step == h], minlength=problem.n_states).tolist()
        for h in range(problem.horizon)
    ]


def test_counts_add_up():
    problem, policy = world("night-shift"), policies("night-shift")["random"]
    simulator, rng = Simulator(problem), np.random.default_rng(0)
    one, other = (simulator.count(policy, episodes=n, rng=rng) for n in (30, 12))
    both = one + other
    assert len(both) == 42
    assert both.live == one.live + other.live
    assert (both.decisions == one.decisions + other.decisions).all()
    assert both.rewards.tolist() == [*one.rewards, *other.rewards]
    assert both.pieces.tolist() == [*one.pieces, *other.pieces]
    for name in ("visits", "given", "matched"):
        assert (getattr(both, name) == getattr(one, name) + getattr(other, name)).all()


def test_counts_of_another_shape_or_kind_cannot_be_added():
    one, other = (
        Simulator(patchwork(seed)).count(
            never(patchwork(seed)), episodes=3, rng=np.random.default_rng(0)
        )
        for seed in (0, 1)
    )
    assert one.decisions.shape != other.decisions.shape
    for wrong in (other, 1, None, one.decisions):
        with pytest.raises(CounselError, match="same shape"):
            one + wrong


def test_what_was_drawn_cannot_be_changed():
    problem, policy = world("night-shift"), policies("night-shift")["plan"]
    simulator, rng = Simulator(problem), np.random.default_rng(0)
    counts = simulator.count(policy, episodes=3, rng=rng)
    episodes = simulator.play(policy, episodes=3, rng=rng)
    for name in ("first", *COLUMNS, "terminated"):
        assert not getattr(episodes, name).flags.writeable, name
    for name in ("decisions", "rewards", "pieces"):
        assert not getattr(counts, name).flags.writeable, name


def test_the_sum_of_counts_cannot_be_changed_either():
    # Added counts were once left open to writing.
    problem, policy = world("night-shift"), policies("night-shift")["plan"]
    counts = Simulator(problem).count(policy, episodes=3, rng=np.random.default_rng(0))
    for name in ("decisions", "rewards", "pieces"):
        assert not getattr(counts + counts, name).flags.writeable, name
