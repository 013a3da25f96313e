"""Episodes as one would draw them with NumPy: thousands at a time, step by step.

A peer of ``counsel.Simulator`` and the arm of the peers that learn. Episodes that are over are left
out of the steps that follow.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

import counsel
from counsel._arrays import Floats, Ints

AT_ONCE = 10_000
"""Episodes that go together: more no longer fit into the cache, and are slower."""


class Moves(NamedTuple):
    """One step of the episodes that are not over."""

    episode: Ints
    state: Ints
    advice: Ints
    action: Ints
    reward: Floats
    next_state: Ints


class Vectors:
    """A problem in plain tables, and a policy to play."""

    def __init__(self, problem: counsel.AdviceProblem, policy: counsel.Policy) -> None:
        self.advice_hs = policy.advice.astype(np.int64)
        self.horizon, self.n_actions = problem.horizon, problem.n_actions
        self.upto_sba = np.cumsum(chances(problem), axis=2)
        self.upto_sba[:, :, -1] = 1.0
        self.reward_sa, self.over_s = np.array(problem.mdp.reward[0]), problem.mdp.over[0]
        self.upto_start = np.cumsum(problem.mdp.start)
        kernel = problem.mdp.kernel  # each distinct row is stored once: few enough for the cache
        self.row_sa, self.next_state = kernel.row[0].astype(np.int64), kernel.next_state
        self.sure = bool((np.diff(kernel.indptr) == 1).all())
        length = np.diff(kernel.indptr)
        of = np.repeat(np.arange(length.size), length)
        upto = np.cumsum(kernel.probability)
        upto -= np.concatenate(([0.0], upto))[kernel.indptr[:-1]][of]
        upto[kernel.indptr[1:] - 1] = 1.0
        self.upto_entry = of + upto

    def steps(self, episodes: int, rng: np.random.Generator) -> Iterator[tuple[int, Moves]]:
        """Yield what happens at each step."""
        for first in range(0, episodes, AT_ONCE):
            n = np.arange(first, min(first + AT_ONCE, episodes))
            s = np.searchsorted(self.upto_start, rng.random(n.size), side="right")
            for h in range(self.horizon):
                b = self.advice_hs[h, s]
                u, upto = rng.random(s.size), self.upto_sba[s, b]
                a = np.zeros(s.size, np.int64)
                for i in range(self.n_actions - 1):
                    a += u >= upto[:, i]
                t = self.follow(self.row_sa[s, a], rng)
                yield h, Moves(n, s, b, a, self.reward_sa[s, a], t)
                live = ~self.over_s[t]
                n, s = n[live], t[live]
                if not n.size:
                    break

    def follow(self, row: Ints, rng: np.random.Generator) -> Ints:
        """Return the next states."""
        if self.sure:
            return self.next_state[row]
        entry = np.searchsorted(self.upto_entry, row + rng.random(row.size), side="right")
        return self.next_state[np.minimum(entry, self.next_state.size - 1)]

    def count(self, episodes: int, rng: np.random.Generator) -> tuple[Ints, Floats]:
        """Return how often each decision [h, s, b, a] was taken, and the reward of each episode."""
        S, B, A = self.upto_sba.shape
        decisions = np.zeros((self.horizon, S * B * A), np.int64)
        rewards = np.zeros(episodes)
        for h, move in self.steps(episodes, rng):
            cell = (move.state * B + move.advice) * A + move.action
            if 10 * cell.size > decisions.shape[1]:
                decisions[h] += np.bincount(cell, minlength=decisions.shape[1])
            else:
                np.add.at(decisions[h], cell, 1)
            rewards[move.episode] += move.reward
        return decisions.reshape(self.horizon, S, B, A), rewards

    def play(self, episodes: int, rng: np.random.Generator) -> list[tuple[int, Moves]]:
        """Return every decision, in the order it was drawn."""
        return list(self.steps(episodes, rng))


def chances(problem: counsel.AdviceProblem, step: int = 0) -> Floats:
    """Return P(a | s, b) at a step, silence last, by equation 1 of the paper."""
    own, theta = problem.policy[step], problem.adherence[step]
    S, A = own.shape
    table = np.empty((S, A + 1, A))
    table[:, A] = own
    for b in range(A):
        rest = 1.0 - own[:, b]
        moved = np.where(rest > 0.0, (1.0 - theta[:, b]) / np.where(rest > 0.0, rest, 1.0), 0.0)
        table[:, b] = own * moved[:, None]
        table[:, b, b] = np.where(rest > 0.0, theta[:, b], 1.0)
    return table
