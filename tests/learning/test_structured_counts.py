"""What ``Structured`` counts, against a slow tally and a plain loop, and that nothing biases it."""

import math
from collections import Counter, defaultdict

import numpy as np
import pytest

import counsel
from counsel.learning import Move
from counsel.learning._structured_kernels import (
    back_up,
    count_decision,
    fill_uncertainty,
)
from counsel.learning._transition_kernels import count_transition
from counsel.simulate import simulator as simulating
from counsel.simulate._episode_kernels import draw_action, draw_row, draw_start
from tests.support.structured import (
    PROBLEMS,
    explored,
    follows,
    fresh,
    random_groups,
    with_an_end,
)


def anyhow(problem, *, seed):
    """A policy that says anything allowed, or nothing, with chances drawn for every cell."""
    H, S, A = problem.horizon, problem.n_states, problem.n_actions
    chance = np.random.default_rng(seed).dirichlet(np.ones(A + 1), size=(H, S))
    chance[..., :A][~problem.mdp.allowed] = 0.0
    return counsel.Policy.from_probabilities(chance / chance.sum(axis=2, keepdims=True))


# What is counted.


class Tally:
    """The same counts, kept in dictionaries, one decision at a time."""

    def __init__(self, problem, groups):
        H, S, A = self.sizes = problem.horizon, problem.n_states, problem.n_actions
        table = np.arange(S * A).reshape(S, A) if groups is None else np.asarray(groups)
        self.group = np.broadcast_to(table, (H, S, A))
        self.actions, self.visits, self.follows = Counter(), Counter(), Counter()
        self.earned = defaultdict(float)
        self.unasked = defaultdict(set)
        self.given, self.matched = Counter(), Counter()
        self.starts, self.ended, self.idle = Counter(), set(), 0

    def add(self, h, s, b, a, reward, t):
        A = self.sizes[2]
        silent = b == A
        would_do_otherwise = bool(self.unasked[h, s] - {b})
        if not silent and would_do_otherwise:
            self.given[self.group[h, s, b]] += 1
            if a == b:
                self.matched[self.group[h, s, b]] += 1
        if silent or a != b:
            self.unasked[h, s].add(a)
        self.actions[h, s, b, a] += 1
        self.visits[h, s, a] += 1
        self.earned[h, s, a] += reward
        self.follows[h, s, a, t] += 1
        if h == 0:
            self.starts[s] += 1

    def check(self, learner):
        H, S, A = self.sizes
        for name, found, shape in (
            ("_actions", self.actions, (H, S, A + 1, A)),
            ("_visits", self.visits, (H, S, A)),
            ("_reward_sum", self.earned, (H, S, A)),
            ("_starts", {(s,): n for s, n in self.starts.items()}, (S,)),
        ):
            table = np.zeros(shape)
            for where, number in found.items():
                table[where] = number
            np.testing.assert_array_equal(learner.state()[name], table, err_msg=name)
        expected = np.zeros((H, S, A), bool)
        for (h, s), done in self.unasked.items():
            expected[h, s] = [bool(done - {b}) for b in range(A)]
        np.testing.assert_array_equal(learner._free, expected)
        matched, given = (learner.matched, learner.given)
        ids = sorted(set(self.group.reshape(-1).tolist()))
        assert [self.given[g] for g in ids] == given.tolist()
        assert [self.matched[g] for g in ids] == matched.tolist()
        assert follows(learner) == self.follows
        assert learner._ends.idle[0] == self.idle
        over = np.zeros((H + 1, S), bool)
        for step, state in self.ended:
            over[step:, state] = True
        np.testing.assert_array_equal(learner._ends.ended, over)


def tally_of(problem, groups, log):
    """Count a log of the simulator."""
    tally = Tally(problem, groups)
    for n in range(len(log)):
        rows = range(log.first[n], log.first[n + 1])
        for h, i in enumerate(rows):
            tally.add(
                h, log.state[i], log.advice[i], log.action[i], log.reward[i], log.next_state[i]
            )
        if log.terminated[n] and len(rows):
            tally.ended.add((len(rows), log.next_state[rows[-1]]))
        tally.idle += len(rows) == 0
    return tally


@pytest.mark.parametrize(("problem", "seed"), PROBLEMS)
def test_it_counts_what_a_slow_tally_counts_however_the_log_is_cut(problem, seed):
    groups, simulator = random_groups(problem, seed), counsel.Simulator(problem)
    policy, rng = anyhow(problem, seed=seed), np.random.default_rng(seed)
    log = simulator.play(policy, episodes=120, rng=rng)
    tally = tally_of(problem, groups, log)
    whole = fresh(problem, groups=groups)
    whole.update(log)
    tally.check(whole)
    cut, rng = fresh(problem, groups=groups), np.random.default_rng(seed)
    for episodes in (1, 1, 40, 3, 70, 5):
        cut.update(simulator.play(policy, episodes=episodes, rng=rng))
    tally.check(cut)
    assert cut.episode == whole.episode == 120
    for name in ("_own", "_ahead", "_most"):
        np.testing.assert_array_equal(getattr(cut, name), getattr(whole, name))


def test_episodes_that_are_over_at_the_start_count_however_the_log_is_cut():
    problem = with_an_end(0, start=[0.5, 0.0, 0.0, 0.5])
    simulator, policy = counsel.Simulator(problem), anyhow(problem, seed=0)
    whole, cut = fresh(problem), fresh(problem)
    log = simulator.play(policy, episodes=30, rng=np.random.default_rng(1))
    assert log.lengths[0] == 0
    whole.update(log)
    assert whole._ends.starts.sum() + whole._ends.idle[0] == 30
    rng = np.random.default_rng(1)
    for _ in range(30):
        cut.update(simulator.play(policy, episodes=1, rng=rng))
    np.testing.assert_array_equal(cut._ends.starts, whole._ends.starts)
    assert cut._ends.idle[0] == whole._ends.idle[0] > 0
    # In what was learnt they begin where nothing can happen, once such a state is known.
    over = np.flatnonzero(whole._ends.ended[0])
    if over.size:
        assert whole.model().mdp.start[over[0]] == pytest.approx(whole._ends.idle[0] / 30)


# The compiled loop of exploration against a plain one.


def plainly(learner, problem, *, episodes, rng):
    """Explore one decision at a time; return the episodes as lists of moves, and which ended."""
    simulator, H = counsel.Simulator(problem), problem.horizon
    scene, over, reward = simulator.scene, problem.mdp.over, problem.mdp.reward
    chance = bool((scene.leads_lsa < 0).any())
    layered, played = len(scene.leads_lsa) > 1, []
    value_b = np.empty(problem.n_actions + 1)
    for u_nw in simulator.batches(episodes, rng):
        tie_nh = learner.rng.random((len(u_nw), H))
        learner._transitions.make_room(len(u_nw) * H)
        counts, ground = learner._counts, learner._structure
        known = (learner._exploration, learner._ahead_hsad)
        for u_w, tie_h in zip(u_nw, tie_nh, strict=True):
            numbers = iter(u_w[2:])
            s, moves = int(draw_start(scene, u_w[1])), []
            learner._ends.starts[s] += 1
            for h in range(H):
                if over[h, s]:
                    learner._ends.ended[h:, s] = True
                    learner._most[h:, s] = 0.0
                    break
                fill_uncertainty(counts, ground, *known, h, s, 0, value_b)
                top = np.flatnonzero(value_b == value_b.max())
                b = int(top[int(tie_h[h] * top.size)])
                person = h if len(scene.person_lsc) > 1 else 0
                a = int(draw_action(scene.person_lsc, person, s, b, next(numbers)))
                t = int(scene.leads_lsa[h if layered else 0, s, a])
                u = next(numbers) if chance else 0.0
                t = int(draw_row(scene, -1 - t, u)) if t < 0 else t
                moves.append(Move(h, s, b, a, float(reward[h, s, a]), t))
                count_decision(counts, ground, h, s, 0, b, a, moves[-1].reward)
                count_transition(counts.chains, h, s, a, t)
                s = t
            for move in reversed(moves):
                back_up(
                    counts, ground, learner._exploration, move.step, move.state,
                    learner._ahead_hsad, learner._most_hms, value_b,
                )  # fmt: skip
            played.append((moves, len(moves) < H))
    return played


@pytest.mark.parametrize(("problem", "seed"), PROBLEMS)
def test_exploring_is_a_plain_loop_and_the_same_as_being_told_live(problem, seed, monkeypatch):
    # Numbers in batches of 64 episodes, so that exploring goes through several.
    monkeypatch.setattr(simulating, "NUMBERS", 1)
    groups = random_groups(problem, seed)
    ours, mirror, live = (fresh(problem, seed=7, groups=groups) for _ in range(3))
    rngs = [np.random.default_rng(seed) for _ in range(2)]
    tally, simulator = Tally(problem, groups), counsel.Simulator(problem)
    for episodes in (1, 100):
        ours.explore(simulator, episodes=episodes, rng=rngs[0])
        for moves, ended in plainly(mirror, problem, episodes=episodes, rng=rngs[1]):
            for move in moves:
                tally.add(*move[:6])
                live.observe(move)
            live.finish(terminated=ended)
            if ended and moves:
                tally.ended.add((len(moves), moves[-1].next_state))
        mirror._look_ahead(episodes)
    tally.check(ours)
    tally.check(live)
    assert ours.episode == live.episode == 101
    for name in ("_own", "_actions", "_reward_sum", "_given", "_matched", "_ahead", "_most"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(live, name))


def test_episodes_that_are_over_at_the_start_are_explored_as_such():
    problem = with_an_end(0, start=[0.4, 0.1, 0.0, 0.5])
    learner = explored(problem, episodes=4000)
    # 4,000 draws of 0.5: four standard errors are 126.
    assert learner._ends.starts[3] == pytest.approx(2000, abs=126)
    assert learner._ends.starts.sum() == 4000
    assert learner._transitions.visits[0].sum() == 4000 - learner._ends.starts[3]
    assert set(np.flatnonzero(learner._ends.ended[0])) == {3}


# How much the person listens, without bias.


def mostly_certain():
    """Twelve states drawn anew at every step; in ten the person does 0 anyway; θ = 0.6 throughout.

    What is done has no effect, so that how often each advice is given says nothing about matches.
    """
    own = np.full((12, 2), [1.0, 0.0])
    own[10:] = 0.3, 0.7
    even = np.full((12, 2, 12), 1 / 12)
    mdp = counsel.MDP(even, np.full((12, 2), [0.0, 1.0]), horizon=10, start=np.full(12, 1 / 12))
    return counsel.AdviceProblem(mdp, counsel.Human(own, 0.6))


def standard_errors(sample, expected):
    """How many standard errors the mean of a sample is away."""
    sample = np.asarray(sample)
    return (sample.mean() - expected) / (sample.std(ddof=1) / math.sqrt(sample.size))


def from_the_first_refusal_on(log):
    """The trap: the match rate of each cell from its first refusal on, that one included."""
    refused, given, matched = set(), 0, 0
    rows = zip(log.step, log.state, log.advice, log.action, strict=True)
    for h, s, b, a in (map(int, row) for row in rows):
        if a != b:
            refused.add((h, s))
        if (h, s) in refused:
            given, matched = given + 1, matched + (a == b)
    return matched / given


def test_cells_where_the_person_would_do_it_anyway_do_not_bias_heed():
    problem, ours, naive, trapped = mostly_certain(), [], [], []
    simulator = counsel.Simulator(problem)
    advise_0 = counsel.Policy(np.zeros((10, 12), int), n_actions=2)
    # Measured: 0.601 (0.3 standard errors off), 0.932 (512) and 0.350 (−72).
    for seed in range(500):
        # Thirty episodes: each cell is seen two or three times.
        log = simulator.play(advise_0, episodes=30, rng=np.random.default_rng(seed))
        learner = fresh(problem, groups=[0, 1])
        learner.update(log)
        matched, given = (int(count[0]) for count in (learner.matched, learner.given))
        assert given > 0
        ours.append(matched / given)
        naive.append(log.matched.mean())
        trapped.append(from_the_first_refusal_on(log))
    assert abs(standard_errors(ours, 0.6)) < 4
    assert standard_errors(naive, 0.6) > 100
    assert np.mean(naive) > 0.9
    assert standard_errors(trapped, 0.6) < -20
    assert np.mean(trapped) < 0.5


def test_heed_is_not_biased_where_what_was_seen_decides_what_is_advised():
    # Then how often depends on what was matched, and only matches − θ · given has mean 0.
    problem, off = mostly_certain(), []
    for seed in range(300):
        learner = explored(problem, episodes=60, seed=seed, groups=[0, 0])
        matched, given = (int(count[0]) for count in (learner.matched, learner.given))
        off.append(matched - 0.6 * given)
        # None of advice 0 where the person does 0 anyway is counted.
        assert not learner._free[:, :10, 0].any()
        assert given <= learner._actions[:, :, :2].sum() - learner._actions[:, :10, 0].sum()
    assert abs(standard_errors(off, 0.0)) < 4
