"""Problems, counts and learners that the tests of ``Structured`` share."""

import math
from collections import Counter

import numpy as np
import pytest

import counsel
from counsel import Structured
from counsel.estimate._habit_kernels import settle_habit
from counsel.worlds import make
from tests.support.problems import adapt, draw


def fresh(problem, *, seed=0, **options):
    return Structured(problem.shape, rng=np.random.default_rng(seed), **options)


def explored(problem, *, episodes, updates=1, seed=0, **options):
    learner, simulator = fresh(problem, seed=seed, **options), counsel.Simulator(problem)
    rng = np.random.default_rng(seed + 1)
    for _ in range(updates):
        learner.explore(simulator, episodes=episodes // updates, rng=rng)
    return learner


def with_an_end(seed, *, start=None):
    """A random world of three steps whose last state is the end; rewards from −1 to 1."""
    rng = np.random.default_rng(seed)
    S, A, H = 4, 2 + seed % 2, 3
    P = rng.dirichlet(np.full(S, 0.5), size=(S, A))
    P[-1] = np.eye(S)[-1]
    reward = rng.uniform(-1.0, 1.0, (S, A))
    reward[-1] = 0.0
    own = rng.dirichlet(np.ones(A), size=S)
    first = np.append(rng.dirichlet(np.ones(S - 1)), 0.0) if start is None else start
    mdp = counsel.MDP(P, reward, horizon=H, start=first)
    return counsel.AdviceProblem(mdp, counsel.Human(own, rng.uniform(own, 1.0)))


def random_groups(problem, seed):
    """None, or numbers that pairs share: [a], [s, a] or [h, s, a]."""
    H, S, A = problem.horizon, problem.n_states, problem.n_actions
    shape = (None, (A,), (S, A), (H, S, A))[seed % 4]
    return None if shape is None else np.random.default_rng(seed).integers(0, 4, shape) * 3


def settled(table):
    """π̂ of how often each action [a] followed each advice or silence [b]."""
    own = np.full(table.shape[1], np.nan)
    settle_habit(table.astype(np.int32), own)
    return own


def free_choices(table):
    """The same table without matches, which say nothing about the habit."""
    A = table.shape[1]
    return np.where(np.arange(A + 1)[:, None] == np.arange(A), 0, table)


def log_likelihood(table, own):
    """Log of the chance of all free choices: refusals of b are draws from π without b."""
    total = 0.0
    for b, row in enumerate(free_choices(table)):
        left = np.where(np.arange(own.size) == b, 0.0, own)
        for a in np.flatnonzero(row):
            if left[a] == 0.0:
                return -math.inf
            total += row[a] * math.log(left[a] / left.sum())
    return total


def count_tables(n, *, seed):
    """Tables of counts with A = 2 … 5, few to thousands, full and with many zeros, of all kinds."""
    rng = np.random.default_rng(seed)
    for i in range(n):
        A, size, filled = int(rng.integers(2, 6)), rng.choice([1, 3, 10, 100, 1000]), rng.random()
        mean = size * rng.random((A + 1, A)) * (rng.random((A + 1, A)) < max(0.3, filled))
        table = rng.poisson(mean)
        if i % 5 == 1:
            table[A] = 0  # only advice was given
        elif i % 5 == 2:
            table[A] = rng.multinomial(rng.integers(4), np.ones(A) / A)  # hardly any silence
        elif i % 5 == 3:
            table[A] += 1 + free_choices(table)[:A].sum(axis=0)  # each action more often unasked
        yield table


def mostly_silent(table):
    """Tell whether each action was seen more often in silence than in refusals."""
    return bool((table[-1] > free_choices(table)[:-1].sum(axis=0)).all())


def follows(learner):
    """How often each state followed each (h, s, a), read off the chains of links."""
    seen = Counter()
    for h, s, a in np.ndindex(*learner._transitions.head.shape):
        j = learner._transitions.head[h, s, a]
        while j >= 0:
            state, times, onward = learner._transitions.links[j].tolist()
            assert (h, s, a, state) not in seen
            seen[h, s, a, state], j = times, onward
    return seen


PROBLEMS = [
    *(pytest.param(adapt(draw(seed, most=(5, 4, 4))), seed, id=f"{seed}") for seed in range(12)),
    *(pytest.param(with_an_end(seed), seed, id=f"ends {seed}") for seed in range(4)),
    pytest.param(make("flappy-bird-budget/greedy"), 1, id="flappy"),
]


def tables(learner):
    """Next states [h, s, a, t] as a dense array."""
    H, S, A = learner._transitions.visits.shape
    dense = np.zeros((H, S, A, S))
    for where, times in follows(learner).items():
        dense[where] = times
    return dense


def group_table(learner):
    """The groups [h, s, m · A + a]."""
    return np.broadcast_to(learner._group, (learner.shape.horizon, *learner._group.shape[1:]))


def small_and_random(seed=9):
    """Three states, three actions, two steps; anything can happen, and advice never repels."""
    rng = np.random.default_rng(seed)
    own = rng.dirichlet(np.full(3, 2.0), size=3)
    mdp = counsel.MDP(rng.dirichlet(np.ones(3), size=(3, 3)), rng.random((3, 3)), horizon=2)
    return counsel.AdviceProblem(mdp, counsel.Human(own, rng.uniform(own, 1.0)))
