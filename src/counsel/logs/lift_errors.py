"""Errors of lifts on logs of people who differ: by blocks of people, not by decisions.

Decisions of one person are alike, so a hundred decisions of one person say less than one decision
each of a hundred. The lift over several cells and advice, λ = (K − P) / (N − P) with N pieces of
advice seen, K matched and P = Σ n π that would have been matched anyway, changes with each decision
by

    advice b seen in cell c       (1{matched} − λ − (1 − λ) π_cb) / (N − P)
    a choice a without advice     −(1 − λ) Σ_b n_cb (1{a = b} − π_cb) / size_cb / (N − P)

where ``size`` is the effective number of choices behind π, and after a refusal of b' the
expectation is π_cb / (1 − π_cb'). The square sum of these changes over blocks is the variance. The
*design effect* is that variance over the one that independent decisions would have.
"""

from dataclasses import dataclass

import numpy as np

from counsel._arrays import Floats, Ints
from counsel.estimate.habit import Habit, chance_of_others
from counsel.logs.count import Tally

MOST_SUMS = 50_000_000
"""The most sums by block and key; with more, each key has the design effect of all together."""


@dataclass(frozen=True, slots=True, eq=False)
class LiftCounts:
    """Counts by cell and advice, and the habit they are compared with; arrays are [cell, b]."""

    given: Floats  # pieces of advice that were seen, 0 where the lift is unknown
    matched: Floats
    habit: Habit

    def lifts(self, key: Ints, keys: int) -> tuple[Floats, Floats]:
        """Return the lift of each key [key] and its room N − P; NaN where there is no room."""
        own, flat = self.habit.policy, key.reshape(-1)
        n, k, p = (
            np.bincount(flat, column.reshape(-1), keys).astype(np.float64)
            for column in (self.given, self.matched, self.given * own)
        )
        room = n - p
        lift = np.divide(k - p, room, out=np.full(keys, np.nan), where=room > 0.0)
        return lift, room


def lift_variances(tally: Tally, counts: LiftCounts, key: Ints, keys: int) -> Floats:
    """Return the variance of the lift of each key, by blocks; NaN where it is unknown.

    ``key`` [cell, b] names the key of each pair.
    """
    lift, room = counts.lifts(key, keys)
    own, size, n_cb = counts.habit.policy, counts.habit.size, counts.given
    rest = chance_of_others(own)
    A, B = len(tally.actions), tally.n_blocks
    cell = tally.layer * len(tally.states) + tally.state
    heard, times = tally.heard, tally.times
    change = np.zeros((B, keys))
    free = heard != tally.action
    silent = heard == A
    for b in np.flatnonzero(n_cb.sum(axis=0) > 0.0):
        of = key[cell, b]
        at_lift = np.nan_to_num(lift[of])
        pi = own[cell, b]
        mine = (heard == b) & (n_cb[cell, b] > 0.0)
        moved = np.where(mine, (tally.action == b) - at_lift - (1.0 - at_lift) * pi, 0.0)
        other = rest[cell, np.where(silent, 0, heard)]
        among = np.where(silent, pi, np.divide(pi, other, out=np.zeros_like(pi), where=other > 0.0))
        known = size[cell, b]
        weight = np.divide(n_cb[cell, b], known, out=np.zeros_like(known), where=known > 0.0)
        surprise = np.where(free & (heard != b), (tally.action == b) - among, 0.0)
        moved -= (1.0 - at_lift) * weight * surprise
        np.add.at(change, (tally.block, of), times * moved)
    variance = (change**2).sum(axis=0)
    return _over_room(variance, room)


def match_variances(tally: Tally, key: Ints, keys: int) -> Floats:
    """Return the variance of the share of seen advice that is matched, by blocks [key]."""
    A = len(tally.actions)
    seen = tally.heard < A
    cell = (tally.layer * len(tally.states) + tally.state)[seen]
    of, times = key[cell, tally.heard[seen]], tally.times[seen]
    same = (tally.heard == tally.action)[seen]
    n = np.bincount(of, times, keys)
    n = np.maximum(n, 1e-100)  # nothing over nothing is 0
    share = np.bincount(of, times * same, keys) / n
    change = np.zeros((tally.n_blocks, keys))
    np.add.at(change, (tally.block[seen], of), times * (same - share[of]))
    variance: Floats = (change**2).sum(axis=0) / n**2
    return variance


def design_effects(tally: Tally, habit: Habit, given: Floats, matched: Floats) -> Floats:
    """Return by how much the variance of the lift of each advice exceeds that of decisions [b]."""
    cells, A = given.shape
    usable = habit.known[:, None] & (habit.policy < 1.0)
    counts = LiftCounts(np.where(usable, given, 0.0), np.where(usable, matched, 0.0), habit)
    key = np.broadcast_to(np.arange(A), (cells, A))
    by_block = lift_variances(tally, counts, key, A)
    alone = decision_variances(counts, key, A)
    ratio = np.divide(by_block, alone, out=np.ones(A), where=alone > 0.0)
    effects: Floats = np.maximum(np.nan_to_num(ratio, nan=1.0), 1.0)
    return effects


def decision_variances(counts: LiftCounts, key: Ints, keys: int) -> Floats:
    """Return the variance of the lift of each key if all decisions were independent."""
    lift, room = counts.lifts(key, keys)
    own, size = counts.habit.policy, counts.habit.size
    at = np.nan_to_num(lift)[key]
    m = np.clip(at + (1.0 - at) * own, 0.0, 1.0)
    doubt = np.divide(own * (1.0 - own), size, out=np.zeros_like(own), where=size > 0.0)
    each = counts.given * m * (1.0 - m) + ((1.0 - at) * counts.given) ** 2 * doubt
    total = np.bincount(key.reshape(-1), each.reshape(-1), keys).astype(np.float64)
    return _over_room(total, room)


def fits_in_memory(tally: Tally, keys: int) -> bool:
    """Whether sums by block and key fit in memory."""
    return tally.n_blocks * keys <= MOST_SUMS


def _over_room(variance: Floats, room: Floats) -> Floats:
    """Return the variance of a lift, given that of its numerator."""
    out: Floats = np.full(room.shape, np.nan)
    np.divide(variance, room**2, out=out, where=room > 0.0)
    return out
