"""The world and the person behind the counts of a log, with every gap filled.

A pair of state and action without an outcome has the outcomes of the same pair at other steps, else
those of other actions in the state; a state without any is never left. Rewards are filled likewise.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from counsel._arrays import Bools, Floats, Ints, unlayered
from counsel.estimate.habit import Habit, least_lift
from counsel.logs.count import Tally
from counsel.model.human import Human
from counsel.model.mdp import MDP
from counsel.model.memory import Memory


@dataclass(frozen=True, slots=True, eq=False)
class Moves:
    """How often each outcome followed each pair, by pair and outcome in rising order.

    ``row`` is the number of the pair, ``then`` the state that followed, ``times`` how often.
    """

    row: Ints
    then: Ints
    times: Floats

    @classmethod
    def of(cls, row: Ints, then: Ints, times: Floats, states: int) -> "Moves":
        """Add up the moves with the same pair and outcome."""
        key, where = np.unique(row * states + then, return_inverse=True)
        total = np.bincount(where, times, key.size).astype(np.float64)
        return cls(key // states, key % states, total)

    def matrix(self, rows: int, states: int) -> sp.csr_matrix:
        """Return the moves as a sparse matrix [row, then]."""
        first = np.searchsorted(self.row, np.arange(rows + 1))
        return sp.csr_matrix((self.times, self.then, first), shape=(rows, states))

    def take(self, rows: Ints, places: Ints) -> "Moves":
        """Return the moves of rows ``places``, with the numbers ``rows`` instead."""
        first, last = (np.searchsorted(self.row, places, side) for side in ("left", "right"))
        length = last - first
        start = np.repeat(first - (np.cumsum(length) - length), length)
        entry = start + np.arange(start.size)
        return Moves(np.repeat(rows, length), self.then[entry], self.times[entry])

    def join(self, other: "Moves", states: int) -> "Moves":
        """Return these moves and those of other rows."""
        if not other.row.size:
            return self
        row, then = np.append(self.row, other.row), np.append(self.then, other.then)
        order = np.argsort(row * states + then)
        times = np.append(self.times, other.times)
        return Moves(row[order], then[order], times[order])


def count_moves(tally: Tally, cell: Ints) -> Moves:
    """Return how often each outcome followed each pair, the end as the state after the last."""
    S, A = len(tally.states), len(tally.actions)
    ends = tally.ends
    known = ((tally.then >= 0) | ends) & (tally.times > 0.0)
    row = (cell * A + tally.action)[known]
    then = np.where(ends, S, tally.then)[known]
    return Moves.of(row, then, tally.times[known], S + 1)


class WorldBuilder:
    """Builds the world from counts and fills all gaps.

    ``taken``, ``priced`` and ``paid`` are [cell, a]: decisions, those with a reward, and the sum of
    these rewards; ``going`` [cell, a] are records that broke off: such a decision did not end the
    episode, and what followed is unknown, so the other moves of its pair stand in.
    """

    def __init__(  # noqa: PLR0913 (all that a world is made of)
        self,
        tally: Tally,
        taken: Floats,
        priced: Floats,
        paid: Floats,
        moves: Moves,
        going: Floats,
    ) -> None:
        S, A = len(tally.states), len(tally.actions)
        L = len(taken) // S
        over = bool(tally.ends.any())
        T = S + over
        self.L, self.S, self.A, self.T = L, S, A, T
        taken_lsa = taken.reshape(L, S, A)
        self.visited: Bools = np.asarray(taken_lsa.any(axis=2))  # [l, s]
        self.known = self.visited.any(axis=0)
        self.unknown = np.flatnonzero(~self.known)
        ever = taken_lsa.any(axis=0)
        allowed = np.ones((L, T, A), dtype=np.bool_)
        allowed[:, :S] = np.where(self.visited[:, :, None], taken_lsa > 0.0, ever)
        allowed[:, self.unknown] = True
        self.allowed = allowed
        labels = (*tally.states, *([_unused_name("over", tally.states)] if over else []))
        start = np.bincount(tally.state[tally.opens], tally.times[tally.opens], T)
        self.mdp = MDP(
            self._kernel(_with_cuts(moves, going.reshape(-1), S), tally),
            self._reward(priced.reshape(L, S, A), paid.reshape(L, S, A)),
            horizon=tally.horizon,
            start=start / start.sum(),
            allowed=allowed if L > 1 else allowed[0],
            state_labels=labels,
            action_labels=tally.actions,
        )

    def _kernel(self, moves: Moves, tally: Tally) -> object:
        """Return shares of outcomes by step, else over all steps, else over all actions there."""
        L, S, A, T = self.L, self.S, self.A, self.T
        cell, action = moves.row // A, moves.row % A
        state = cell % S
        wide = ((cell // S) * T + state) * A + action
        counts = Moves(wide, moves.then, moves.times)
        rows = L * T * A
        missing: Ints = np.flatnonzero(
            self.allowed.reshape(-1) & (np.bincount(wide, minlength=rows) == 0)
        )
        self.guessed_rows = 0
        if L > 1:
            pooled = Moves.of(state * A + action, moves.then, moves.times, T)
            counts, missing = self._fill(counts, missing, pooled, missing % (T * A))
        else:
            self.guessed_rows = int(np.isin(missing // A, np.flatnonzero(self.known)).sum())
        by_state = Moves.of(state, moves.then, moves.times, T)
        counts, missing = self._fill(counts, missing, by_state, missing // A % T)
        stay = Moves(np.arange(T), np.arange(T), np.ones(T))
        counts, _ = self._fill(counts, missing, stay, missing // A % T)
        shares = _shares(counts, rows)
        if tally.endings_by_step and L == 1 and T > S:
            return self._with_endings(shares, tally)
        matrix, size = shares.matrix(rows, T), T * A
        return matrix if L == 1 else [matrix[i * size : (i + 1) * size] for i in range(L)]

    def _fill(self, counts: Moves, missing: Ints, source: Moves, place: Ints) -> tuple[Moves, Ints]:
        """Give missing rows the moves of rows of a source; also return what is still missing."""
        found = source.take(missing, place)
        still = missing[~np.isin(missing, found.row)]
        return counts.join(found, self.T), still

    def _with_endings(self, pooled: Moves, tally: Tally) -> list[sp.csr_matrix]:
        """Return the pooled outcomes with the endings of each step.

        The chance to end is that of the state and action at this step, with one more observation
        that has the chance of all decisions at the step.
        """
        S, A, T, H = self.S, self.A, self.T, tally.horizon
        ends = tally.ends
        seen = ends | (tally.then >= 0) | tally.goes_on
        pair = ((tally.step * S + tally.state) * A + tally.action)[seen]
        times = tally.times[seen]
        known, ended = (
            np.bincount(pair, weight, H * S * A).reshape(H, S * A)
            for weight in (times, times * ends[seen])
        )
        goes = (pooled.then != S) | (pooled.row >= S * A)
        row, then, share = pooled.row[goes], pooled.then[goes], pooled.times[goes]
        left = np.bincount(row, share, T * A)
        never = left[: S * A] == 0.0  # nothing else ever followed
        layers = []
        for h in range(H):
            usual = ended[h].sum() / max(known[h].sum(), 1e-300)
            chance = np.zeros(T * A)
            chance[: S * A] = np.where(never, 1.0, (ended[h] + usual) / (known[h] + 1.0))
            scale = np.divide(1.0 - chance, left, out=np.zeros_like(left), where=left > 0.0)
            going, over = Moves(row, then, scale[row] * share), np.flatnonzero(chance)
            layer = going.join(Moves(over, np.full(over.size, S), chance[over]), T)
            layers.append(layer.matrix(T * A, T))
            layers[-1].eliminate_zeros()
        return layers

    def _reward(self, priced: Floats, paid: Floats) -> Floats:
        """Return mean rewards by step, else over all steps, else of the state, else of all."""
        L, S, A, T = self.L, self.S, self.A, self.T
        n, total = priced, paid
        for axes in ((0,), (0, 2), (0, 1, 2)):
            lack = n == 0.0
            if not lack.any():
                break
            n = np.where(lack, priced.sum(axis=axes, keepdims=True), n)
            total = np.where(lack, paid.sum(axis=axes, keepdims=True), total)
        reward = np.zeros((L, T, A))
        reward[:, :S] = np.divide(total, n, out=np.zeros((L, S, A)), where=n > 0.0)
        reward[~self.allowed] = 0.0
        return reward if L > 1 else reward[0]


def _with_cuts(moves: Moves, going: Floats, S: int) -> Moves:
    """Return moves in which records that broke off count as going on."""
    if not going.any():
        return moves
    ends = moves.then == S
    known = np.bincount(moves.row, moves.times * ~ends, going.size)
    scale = np.divide(known + going, known, out=np.ones(going.size), where=known > 0.0)
    times = np.where(ends, moves.times, moves.times * scale[moves.row])
    return Moves(moves.row, moves.then, times)


def _shares(moves: Moves, rows: int) -> Moves:
    """Return the share of each move among those of its row."""
    total = np.bincount(moves.row, moves.times, rows)
    return Moves(moves.row, moves.then, moves.times / total[moves.row])


def build_person(world: WorldBuilder, habit: Habit, lift: Floats) -> Human:
    """Return the person; without data every action is as likely and advice has no effect."""
    L, S, A, T = world.L, world.S, world.A, world.T
    own = np.full((L, T, A), 1.0 / A)
    lifts = np.zeros((L, T, A))
    own[:, :S], lifts[:, :S] = habit.policy.reshape(L, S, A), lift.reshape(L, S, A)
    if L > 1:
        weight = world.visited[:, :, None]
        count = np.maximum(weight.sum(axis=0), 1)
        mean = (own[:, :S] * weight).sum(axis=0) / count
        own[:, :S] = np.where(weight, own[:, :S], mean)
        lifts[:, :S] = np.where(weight, lifts[:, :S], 0.0)
    own[:, world.unknown] = 1.0 / A
    lifts[:, world.unknown] = 0.0
    lifts[~world.allowed] = 0.0
    lifts = np.maximum(lifts, least_lift(own))
    return Human(own if L > 1 else own[0], lift=lifts if L > 1 else lifts[0])


def person_with_memory(person: Human, memory: Memory, fading: Floats) -> Human:
    """Return the person with a memory; where a fading makes a lift impossible, that lift is cut.

    Lifts are cut level by level, so the lift at other levels stays the one that was estimated.
    """
    own = unlayered(person.policy)
    faded = fading[:, None, None, None] * person.lift  # [m, layer, s, a]
    lift = np.clip(faded, least_lift(person.policy), 1.0)
    if np.array_equal(lift, faded):
        return Human(own, lift=unlayered(person.lift), memory=memory, fading=fading)
    return Human(own, lift=np.stack([unlayered(level) for level in lift]), memory=memory)


def _unused_name(name: str, taken: tuple[str, ...]) -> str:
    """Return a name that no state has."""
    while name in taken:
        name += "′"
    return name
