"""Learners as one would write them in Python and NumPy: peers of Counsel's.

They do the same as the learner of the same name, know the same, and are not judged while they run,
which Counsel's are. Tables are dense where a world is small; single episodes go through Python
lists, which are faster to look up than arrays.
"""

import math
from bisect import bisect
from functools import cached_property
from random import Random

import numpy as np

import counsel
from benchmarks.vectors import Vectors, chances
from counsel._arrays import Floats, Ints


class Game:
    """One episode at a time, step by step."""

    def __init__(self, problem: counsel.AdviceProblem, seed: int) -> None:
        self.horizon, self.start = problem.horizon, int(problem.mdp.start.argmax())
        laws = [chances(problem, h) for h in range(number_of_layers(problem))]
        tables = [np.cumsum(law, axis=2)[:, :, :-1].tolist() for law in laws]
        self.upto_hsba = tables if len(tables) > 1 else tables * self.horizon
        self.is_sure = has_no_chance(problem)
        if self.is_sure:
            self.next_sa = next_states(problem).tolist()
        else:
            matrix = problem.mdp.kernel.to_dense()
            self.upto_sat = np.cumsum(matrix, axis=2)[:, :, :-1].tolist()
        self.reward_sa = problem.mdp.reward[0].tolist()
        self.over_s = problem.mdp.over[0].tolist()
        self.random = Random(seed).random

    def step(self, h: int, s: int, b: int) -> tuple[int, int]:
        """Return what the person does, and where it leads."""
        a = bisect(self.upto_hsba[h][s][b], self.random())
        return a, self.next_sa[s][a] if self.is_sure else bisect(self.upto_sat[s][a], self.random())


def number_of_layers(problem: counsel.AdviceProblem) -> int:
    """Return 1 if the person is the same at every step, else the number of steps."""
    return max(len(problem.human.policy), len(problem.human.adherence))


def has_no_chance(problem: counsel.AdviceProblem) -> bool:
    """Return whether every state and action has only one next state."""
    return bool((np.diff(problem.mdp.kernel.indptr) == 1).all())


def next_states(problem: counsel.AdviceProblem) -> Ints:
    """Return the only next state of each state and action."""
    kernel = problem.mdp.kernel
    return kernel.next_state[kernel.row[0]].astype(np.int64)


class PlainUCBAD:
    """UCB-AD with the bound ``KL()``: backward induction, and bounds where something was seen."""

    def __init__(self, problem: counsel.AdviceProblem, *, seed: int, penalty: float = 0.0) -> None:
        self.penalty = penalty
        mdp, layers = problem.mdp, number_of_layers(problem)
        self.own = np.array(problem.policy[:layers])
        self.reward, self.over, self.horizon = np.array(mdp.reward[0]), mdp.over[0], mdp.horizon
        self.rng, self.seed, self.problem = np.random.default_rng(seed), seed, problem
        self.is_sure = has_no_chance(problem)
        if self.is_sure:
            self.next = next_states(problem)
        else:
            self.matrix = mdp.kernel.to_sparse()
        self.given, self.matched = np.zeros(self.own.shape), np.zeros(self.own.shape)
        self.upper = np.ones(self.own.shape)
        self.moot = self.own >= 1.0  # advice that changes nothing
        self.changed, self.episode, self.power = np.zeros(self.own.shape, bool), 0, 0

    @cached_property
    def game(self) -> Game:
        """Single episodes."""
        return Game(self.problem, self.seed)

    @cached_property
    def vectors(self) -> Vectors:
        """Many episodes at once, where the person is the same at every step."""
        _, S, A = self.own.shape
        silent = counsel.Policy.never(horizon=self.horizon, n_states=S, n_actions=A)
        return Vectors(self.problem, silent)

    def bound(self) -> None:
        """Find the largest θ with n kl(k / n, θ) ≤ log(1 + t), by halving, where it has changed."""
        power = 2 ** (self.episode.bit_length() - 1) if self.episode else 0
        where = self.given > 0 if power != self.power else self.changed
        self.power, self.changed = power, np.zeros(self.own.shape, bool)
        n = self.given[where]
        p, most = self.matched[where] / n, math.log1p(power) / n
        low, high = p, np.ones(n.size)
        for _ in range(40):
            q = 0.5 * (low + high)
            with np.errstate(divide="ignore", invalid="ignore"):
                first = np.where(p > 0, p * np.log(p / q), 0.0)
                divergence = first + np.where(p < 1, (1 - p) * np.log((1 - p) / (1 - q)), 0.0)
            fits = divergence <= most
            low, high = np.where(fits, q, low), np.where(fits, high, q)
        self.upper[where] = low

    def plan(self) -> tuple[Ints, Floats]:
        """Return the advice [h, s], and what it is hoped to be worth in each state."""
        self.bound()
        L, S, A = self.own.shape
        rest = np.where(self.moot, 1.0, 1.0 - self.own)
        lift = np.where(self.moot, 0.0, np.maximum((self.upper - self.own) / rest, 0.0))
        advice, V, each = np.empty((self.horizon, S), np.int64), np.zeros(S), np.arange(S)
        for h in reversed(range(self.horizon)):
            onward = V[self.next] if self.is_sure else (self.matrix @ V).reshape(S, A)
            Q, layer = self.reward + onward, h % L
            silent = np.einsum("sa,sa->s", self.own[layer], Q)
            gain = lift[layer] * (Q - silent[:, None])
            b = gain.argmax(axis=1)
            top = gain[each, b] - self.penalty
            advice[h] = np.where(top > 0, b, A)
            V = np.where(self.over, 0.0, silent + np.maximum(top, 0.0))
        return advice, V

    def play(self, advice: Ints) -> None:
        """Play one episode and count matches."""
        game, s, (L, _, A) = self.game, self.game.start, self.own.shape
        for h in range(self.horizon):
            b = int(advice[h, s])
            a, t = game.step(h, s, b)
            if b < A and not self.moot[h % L, s, b]:
                self.given[h % L, s, b] += 1
                self.matched[h % L, s, b] += a == b
                self.changed[h % L, s, b] = True
            s = t
            if game.over_s[s]:
                break
        self.episode += 1

    def play_many(self, advice: Ints, episodes: int) -> None:
        """Play many episodes and count matches."""
        _, S, A = self.own.shape
        self.vectors.advice_hs = advice
        for _, move in self.vectors.steps(episodes, self.rng):
            said = move.advice < A
            cell = move.state[said] * A + move.advice[said]
            hit = move.action[said] == move.advice[said]
            counted = ~self.moot.reshape(-1)[cell]
            cell, hit = cell[counted], hit[counted]
            self.given[0] += np.bincount(cell, minlength=S * A).reshape(S, A)
            self.matched[0] += np.bincount(cell[hit], minlength=S * A).reshape(S, A)
            self.changed.reshape(-1)[cell] = True
        self.episode += episodes


class PlainRFE:
    """RFE: explore where most is uncertain, with dense counts of what followed.

    It looks ahead as Counsel's does, and does not plan a policy.
    """

    UNSEEN = 1e12

    def __init__(self, problem: counsel.AdviceProblem, *, scale: float, seed: int) -> None:
        self.game = Game(problem, seed)
        H, S, B = problem.horizon, problem.n_states, problem.n_actions + 1
        self.counts = np.zeros((H, S, B, S))
        self.visits = np.zeros((H, S, B), np.int64).tolist()
        self.ahead = np.zeros((H, S, B)).tolist()
        self.ended = np.zeros((H + 1, S), bool)
        self.base = 6.0 * (math.log(4.0 * S * B * H) + 1.0 - math.log(0.1))
        self.scale = 16.0 * H * H * scale

    def look_behind(self) -> None:
        """Work out what is uncertain behind each advice."""
        H, S, B, _ = self.counts.shape
        ahead, most = np.zeros((H, S, B)), np.zeros(S)
        for h in reversed(range(H)):
            n = self.counts[h].sum(axis=2)
            N = np.maximum(n, 1.0)
            ahead[h] = (1.0 + 1.0 / H) * (self.counts[h] @ most) / N
            own = self.scale * (self.base + S * (np.log(8.0 * (N + 1.0)) + 1.0)) / N
            most = np.where((n > 0).all(axis=1), (own + ahead[h]).max(axis=1), self.UNSEEN)
            most[self.ended[h]] = 0.0
        self.ahead = ahead.tolist()

    def play(self) -> None:
        """Play one episode where most is uncertain by now."""
        game, S = self.game, self.counts.shape[1]
        s, log, random = game.start, math.log, game.random
        scale, base = self.scale, self.base + S * (1.0 + math.log(8.0))
        for h in range(game.horizon):
            visits, ahead = self.visits[h][s], self.ahead[h][s]
            value = [
                scale * (base + S * log(n + 1.0)) / n + more if n else self.UNSEEN
                for n, more in zip(visits, ahead, strict=True)
            ]
            top = max(value)
            tied = [b for b, number in enumerate(value) if number == top]
            b = tied[0] if len(tied) == 1 else tied[int(random() * len(tied))]
            _, t = game.step(h, s, b)
            visits[b] += 1
            self.counts[h, s, b, t] += 1
            s = t
            if game.over_s[s]:
                self.ended[h + 1 :, s] = True
                break


class PlainUCBVI:
    """UCBVI with the Bernstein–Freedman bonus as one would write it in NumPy: dense tables."""

    def __init__(
        self, problem: counsel.AdviceProblem, *, episodes: int, rng: np.random.Generator
    ) -> None:
        machine = problem.machine()
        H, S, B = problem.horizon, problem.n_states, problem.n_actions + 1
        self.reward, self.over = machine.reward[0], problem.mdp.over[0]
        self.upto = machine.kernel.to_dense().cumsum(axis=2)
        self.start = int(problem.mdp.start.argmax())
        self.counts, self.Q = np.zeros((H, S, B, S)), np.full((H, S, B), float(H))
        self.log = np.log(5 * H * S * B * episodes * H / 0.1)
        self.rng = rng

    def plan(self) -> Ints:
        """Return the advice [h, s]."""
        (H, S, B, _), L = self.counts.shape, self.log
        advice, V, after = np.empty((H, S), dtype=int), np.zeros(S), np.ones(S)
        for h in reversed(range(H)):
            n = self.counts[h].sum(axis=2)
            N = np.maximum(n, 1)
            p = self.counts[h] / N[..., None]
            mean = p @ V
            variance = np.maximum(p @ V**2 - mean**2, 0)
            cap = np.minimum(1e4 * H**5 * S**2 * B * L**2 / np.maximum(after, 1), H**2)
            onward = p @ cap if h < H - 1 else 0.0
            bonus = np.sqrt(8 * L * variance / N) + 14 * H * L / (3 * N) + np.sqrt(8 * onward / N)
            lowered = np.minimum(self.Q[h], self.reward + mean + bonus)
            self.Q[h] = np.where(n > 0, lowered, H)
            advice[h] = (self.Q[h] + 1e-9 * self.rng.random((S, B))).argmax(axis=1)
            V = np.where(self.over, 0.0, self.Q[h].max(axis=1))
            after = n.sum(axis=1)
        return advice

    def play(self, advice: Ints) -> None:
        """Play one episode and count it."""
        s = self.start
        for h in range(len(advice)):
            b = advice[h, s]
            t = int(np.searchsorted(self.upto[s, b], self.rng.random(), side="right"))
            self.counts[h, s, b, t] += 1
            s = t
            if self.over[s]:
                break


class PlainQLearning:
    """Q-learning with the Hoeffding bonus, in a Python loop; advice is chosen at each step."""

    def __init__(self, problem: counsel.AdviceProblem, *, episodes: int, seed: int) -> None:
        H, S, B = problem.horizon, problem.n_states, problem.n_actions + 1
        self.game = Game(problem, seed)
        low, high = problem.shape.reward_range
        reward = problem.machine().reward[0]
        self.reward = ((reward - low) / (high - low)).tolist()
        self.rest = -low / (high - low)
        self.Q = np.full((H, S, B), float(H)).tolist()
        self.V = np.vstack((np.full((H, S), float(H)), np.zeros(S))).tolist()
        self.visits = np.zeros((H, S, B), np.int64).tolist()
        log = math.log(2.0 * S * B * H * episodes / 0.1)
        self.width = math.sqrt(H**3 * log)

    def play(self) -> None:
        """Play one episode and learn from each move."""
        game, H = self.game, self.game.horizon
        s = game.start
        for h in range(H):
            Q = self.Q[h][s]
            top = max(Q)
            tied = [b for b, number in enumerate(Q) if number == top]
            b = tied[0] if len(tied) == 1 else tied[int(game.random() * len(tied))]
            _, t = game.step(h, s, b)
            over = game.over_s[t]
            onward = (H - h - 1) * self.rest if over else self.V[h + 1][t]
            self.visits[h][s][b] += 1
            n = self.visits[h][s][b]
            rate = (H + 1.0) / (H + n)
            bonus = self.width / math.sqrt(n)
            Q[b] += rate * (self.reward[s][b] + onward + bonus - Q[b])
            self.V[h][s] = min(float(H), max(Q))
            if over:
                break
            s = t

    @property
    def steps(self) -> int:
        """How many moves were learnt from."""
        return int(np.array(self.visits).sum())


def regret(problem: counsel.AdviceProblem, policies: list[Ints], *, penalty: float = 0.0) -> float:
    """Return the sum of the value gaps of the policies that were played, one per episode."""
    best, judged = counsel.solve(problem, penalty=penalty).penalised_value, dict[bytes, float]()
    total = 0.0
    for advice in policies:
        key = advice.tobytes()
        if key not in judged:
            policy = counsel.Policy(advice, n_actions=problem.n_actions)
            worth = counsel.evaluate(problem, policy)
            judged[key] = best - (worth.value - penalty * worth.advice_count)
        total += judged[key]
    return total
