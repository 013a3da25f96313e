"""How much people listen at each level of a memory: the fading of their lift.

With π the habit, λ_u the lift of a unit (a state and advice) and f_m the fading of level m, advice
at level m is matched with probability

    π + λ_u f_m (1 − π)

so matches in each unit and level are binomial. The likeliest lifts and fading are found together by
Fisher scoring, with the habit as estimated; the lifts are eliminated, so that only the few numbers
of the fading are solved for. The fading is free, f = 1 at the level of reference, or *geometric*,
f_m = exp(−γ z_m) with z how tired the level is (``MemoryKind.scale``): one number, which a test can
tell from 0 with far less data. A pair of state and advice that was given rarely has the lift of all
such pairs of its advice.

Errors are jackknifed over blocks of people, of the habit too.
"""

from dataclasses import dataclass

import numpy as np

from counsel._arrays import Bools, Floats, Ints
from counsel.estimate.habit import Habit, likeliest_habit
from counsel.estimate.intervals import Z
from counsel.logs.bootstrap import FEWEST_BLOCKS, few_blocks_factor
from counsel.logs.count import Tally
from counsel.logs.memory_kind import MemoryKind

RARE = 30.0
"""A pair of state and advice that was given less often has no lift of its own."""

THIN = 30.0
"""The fading of a level with fewer pieces is taken from the geometric fading."""

LEAST_SHARE = 0.05
"""With a smaller share of the pieces the start is not the level of reference."""

ROUNDS = 60
CLOSE = 1e-12  # a likelihood that falls by this share has not fallen but for rounding
CONVERGED = 1e-9
EDGE = 1e-9  # the least chance of a match, and of a refusal
MOST_STEP = 0.5  # the most that γ of a geometric fading changes at a time
RANGE = (-2.0, 4.0)
"""Factors beyond are not looked for: there the lift is too small for a fading."""

MOST_NUMBERS = 20_000_000
"""The most numbers of a jackknife at a time; with more, blocks are merged."""


@dataclass(frozen=True, slots=True, eq=False)
class LevelCounts:
    """Pieces of advice that were seen and matched, by pair and level.

    Arrays are [pair, m] and [pair], possibly with further axes before. Pairs of one unit share a
    lift and lie next to each other; ``first`` is the first pair of each unit.
    """

    given: Floats
    matched: Floats
    habit: Floats  # of the advised action
    room: Floats  # 1 − habit, times what else multiplies the lift
    first: Ints
    order: Ints  # the place of each pair before they were sorted

    @classmethod
    def of(cls, given: Floats, matched: Floats, habit: Floats, unit: Ints) -> "LevelCounts":
        """Sort pairs by unit."""
        order = np.argsort(unit, kind="stable")
        first = np.flatnonzero(np.diff(unit[order], prepend=-1))
        own = habit[..., order]
        return cls(given[..., order, :], matched[..., order, :], own, 1.0 - own, first, order)

    def by_unit(self, pairs: Floats, axis: int = -1) -> Floats:
        """Return sums over the pairs of each unit."""
        total: Floats = np.add.reduceat(pairs, self.first, axis=axis)
        return total

    def spread(self, units: Floats) -> Floats:
        """Return the number of its unit for each pair."""
        sizes = np.diff(np.append(self.first, self.given.shape[-2]))
        return np.repeat(units, sizes, axis=-1)

    def chances(self, lift: Floats, fading: Floats) -> Floats:
        """Return the chance of a match [pair, m], given lifts [unit]."""
        moved = (self.spread(lift) * self.room)[..., None] * fading[..., None, :]
        chance: Floats = np.clip(self.habit[..., None] + moved, EDGE, 1.0 - EDGE)
        return chance

    def log_likelihood(self, lift: Floats, fading: Floats) -> Floats:
        """Return the log likelihood."""
        chance = self.chances(lift, fading)
        missed = self.given - self.matched
        log: Floats = (self.matched * np.log(chance) + missed * np.log1p(-chance)).sum((-2, -1))
        return log


@dataclass(frozen=True, slots=True, eq=False)
class LikeliestFading:
    """The likeliest lifts [unit] and fading [m], and the log likelihood there."""

    lift: Floats
    fading: Floats
    height: Floats


def fit_plain(counts: LevelCounts) -> LikeliestFading:
    """Return the likeliest lifts without any fading."""
    return _climb(counts, _no_fading(counts), np.zeros((counts.given.shape[-1], 0)))


def fit_geometric(counts: LevelCounts, scale: Floats) -> LikeliestFading:
    """Return the likeliest lifts and f_m = exp(−γ z_m) for a scale z [m]."""
    return _climb(counts, _no_fading(counts), scale[:, None], is_geometric=True)


def fit_free(counts: LevelCounts, reference: int, start: Floats | None = None) -> LikeliestFading:
    """Return the likeliest lifts and a factor for each level that has pieces."""
    M = counts.given.shape[-1]
    seen = counts.given.reshape(-1, M).sum(axis=0) > 0.0
    free = np.eye(M)[:, (np.arange(M) != reference) & seen]
    return _climb(counts, _no_fading(counts) if start is None else start, free)


def _no_fading(counts: LevelCounts) -> Floats:
    return np.ones((*counts.given.shape[:-2], counts.given.shape[-1]))


def _climb(
    counts: LevelCounts, fading: Floats, basis: Floats, *, is_geometric: bool = False
) -> LikeliestFading:
    """Climb the likelihood from a fading, by Fisher scoring; steps that do not climb are shortened.

    ``basis`` [m, number] is how each number changes the fading, or if it is geometric minus its
    logarithm.
    """
    n, k = counts.given, counts.matched
    beyond = counts.by_unit((k - n * counts.habit[..., None]).sum(axis=-1))
    room = counts.by_unit(n.sum(axis=-1) * counts.room)
    lift = np.clip(_ratio(beyond, room), -1.0, 1.0)
    height = counts.log_likelihood(lift, fading)
    length = np.ones(height.shape)
    for _ in range(ROUNDS):
        slopes = -basis * fading[..., None] if is_geometric else basis
        up, change = _scoring_step(counts, lift, fading, slopes)
        change = length[..., None] * change
        if is_geometric:
            change = np.clip(change, -MOST_STEP, MOST_STEP)
        moved = (basis @ change[..., None])[..., 0]
        new_fading = fading * np.exp(-moved) if is_geometric else fading + moved
        new_fading = np.clip(new_fading, *RANGE)
        new_lift = np.clip(lift + length[..., None] * up, -1.0, 1.0)
        new = counts.log_likelihood(new_lift, new_fading)
        climbs = new >= height - CLOSE * np.abs(height)
        far = np.abs(new_fading - fading).max(axis=-1, initial=0.0) + np.abs(new - height)
        lift = np.where(climbs[..., None], new_lift, lift)
        fading = np.where(climbs[..., None], new_fading, fading)
        height = np.where(climbs, new, height)
        length = np.where(climbs, np.minimum(2.0 * length, 1.0), length / 4.0)
        if (far[climbs] < CONVERGED).all() and (length[~climbs] < CONVERGED).all():
            break
    return LikeliestFading(lift, fading, height)


def _scoring_step(
    counts: LevelCounts, lift: Floats, fading: Floats, slopes: Floats
) -> tuple[Floats, Floats]:
    """Return the step of Fisher scoring: of the lifts [unit], and of the numbers of the fading."""
    n, k, room = counts.given, counts.matched, counts.room[..., None]
    chance = counts.chances(lift, fading)
    weight = room / (chance * (1.0 - chance))
    surprise, info = (k - n * chance) * weight, n * weight * room
    own, f = counts.spread(lift)[..., None], fading[..., None, :]
    score_u = counts.by_unit((surprise * f).sum(axis=-1))
    info_u = counts.by_unit((info * f**2).sum(axis=-1)) + EDGE
    score_m, info_m = (surprise * own).sum(axis=-2), (info * own**2).sum(axis=-2)
    # The lifts are eliminated: what remains is as large as the fading has numbers.
    cross = counts.by_unit(info * f * own, axis=-2) @ slopes
    turned = np.swapaxes(cross, -1, -2)
    inner = np.swapaxes(slopes, -1, -2) @ (info_m[..., None] * slopes)
    inner = inner - turned @ (cross / info_u[..., None]) + EDGE * np.eye(slopes.shape[-1])
    right = (score_m[..., None, :] @ slopes)[..., 0, :]
    right = right - (turned @ (score_u / info_u)[..., None])[..., 0]
    change: Floats = np.linalg.solve(inner, right[..., None])[..., 0]
    up: Floats = (score_u - (cross @ change[..., None])[..., 0]) / info_u
    return up, change


def _ratio(part: Floats, whole: Floats) -> Floats:
    share: Floats = np.divide(part, whole, out=np.zeros(part.shape), where=whole > 0.0)
    return share


def level_counts(tally: Tally, habit: Habit) -> LevelCounts | None:
    """Return the pieces by pair and level; None if no habit that advice could change is known."""
    pairs = _Pairs.of(tally, habit)
    if not pairs.cell.size:
        return None
    given, matched = pairs.count(tally.times), pairs.count(tally.times * pairs.same)
    own = habit.policy[pairs.cell, pairs.advice]
    return LevelCounts.of(given, matched, own, pairs.units(given.sum(axis=-1)))


def estimate_fading(tally: Tally, habit: Habit) -> Floats:
    """Return the fading of each level [m] for a plan: at least 0, and 1 at the reference."""
    kind, counts = _kind_of(tally), level_counts(tally, habit)
    if counts is None:
        return np.ones(kind.n_levels)
    pieces = counts.given.sum(axis=0)
    fading = unmix(_fading(counts, kind), kind, reference_level(kind, pieces))
    return np.maximum(fading, 0.0)


def unmix(fading: Floats, kind: MemoryKind, reference: int) -> Floats:
    """Return a fading [m] as it is if the same people were found on each level."""
    if not kind.mix:
        return fading
    mix = np.array(kind.mix)
    same: Floats = fading * (mix[reference] / mix)
    return same


def _fading(counts: LevelCounts, kind: MemoryKind) -> Floats:
    """Return the free fading, and the geometric one at levels with few pieces."""
    pieces = counts.given.sum(axis=0)
    reference = reference_level(kind, pieces)
    geometric = fit_geometric(counts, kind.scale - kind.scale[reference]).fading
    free = fit_free(counts, reference).fading
    fading: Floats = np.where(pieces >= THIN, free, geometric)
    fading[reference] = 1.0
    return fading


def reference_level(kind: MemoryKind, pieces: Floats) -> int:
    """Return the level whose fading is 1: the start, or the most frequent if the start is rare."""
    if pieces[kind.start] >= LEAST_SHARE * pieces.sum():
        return kind.start
    return int(pieces.argmax())


def _kind_of(tally: Tally) -> MemoryKind:
    if tally.memory is None or tally.level is None:
        raise TypeError("the counts have no levels")
    return tally.memory


@dataclass(frozen=True, slots=True, eq=False)
class FadingEstimate:
    """The fading of a log's people by level [m], with 95 % intervals over blocks of people.

    The interval is infinite, from 0, at levels with few pieces, whose factor is that of a geometric
    fading; with few people; and where the search ends at a bound (``RANGE``), with all people or
    without one block: the bound hides how far factors spread.
    """

    kind: MemoryKind
    reference: int
    pieces: Floats  # that were seen
    factor: Floats
    low: Floats
    high: Floats

    @property
    def is_known(self) -> Bools:
        """Whether the factor of each level is estimated from its own pieces."""
        return self.pieces >= THIN

    @property
    def falls(self) -> bool:
        """Whether people clearly listen less at some level than at a less tired one."""
        return bool(((self._tired > 0.0) & (self.high < 1.0)).any()) or bool(
            ((self._tired < 0.0) & (self.low > 1.0)).any()
        )

    @property
    def rises(self) -> bool:
        """Whether people clearly listen more at some level than at a less tired one."""
        return bool(((self._tired > 0.0) & (self.low > 1.0)).any()) or bool(
            ((self._tired < 0.0) & (self.high < 1.0)).any()
        )

    @property
    def _tired(self) -> Floats:
        """How much more tired each level is than the level of reference."""
        tired: Floats = self.kind.scale - self.kind.scale[self.reference]
        return tired


def fading_with_errors(tally: Tally, habit: Habit) -> FadingEstimate | None:
    """Return the fading with intervals jackknifed over blocks; None if nothing can be told."""
    kind, counts = _kind_of(tally), level_counts(tally, habit)
    if counts is None:
        return None
    factor, pieces = _fading(counts, kind), counts.given.sum(axis=0)
    reference = reference_level(kind, pieces)
    others = _without_each_block(tally, habit)
    error = np.full(factor.shape, np.inf)
    if others is not None:
        start = np.broadcast_to(np.clip(factor, *RANGE), (len(others.given), factor.size)).copy()
        left_out = fit_free(others, reference, start).fading
        B = len(left_out)
        square = ((left_out - left_out.mean(axis=0)) ** 2).sum(axis=0)
        error = np.sqrt((B - 1.0) / B * square) * few_blocks_factor(B)
        stopped = _is_at_bound(factor) | _is_at_bound(left_out).any(axis=0)
        error = np.where(stopped, np.inf, error)
    factor, error = (unmix(numbers, kind, reference) for numbers in (factor, error))
    half = np.where(pieces >= THIN, Z * error, np.inf)
    half[reference] = 0.0
    low, mean, high = (np.maximum(end, 0.0) for end in (factor - half, factor, factor + half))
    return FadingEstimate(kind, reference, pieces, mean, low, high)


def _is_at_bound(factor: Floats) -> Bools:
    """Whether the search for each factor ended at a bound of ``RANGE``."""
    return np.asarray((factor <= RANGE[0]) | (factor >= RANGE[1]))


def _without_each_block(tally: Tally, habit: Habit) -> LevelCounts | None:
    """Return the counts without each block [block, pair, m]; None if there are too few blocks."""
    pairs, S, A = _Pairs.of(tally, habit), len(tally.states), len(tally.actions)
    cells = habit.policy.shape[0]
    numbers = pairs.cell.size * pairs.levels + 4 * cells * A
    blocks = min(tally.n_blocks, max(MOST_NUMBERS // max(numbers, 1), FEWEST_BLOCKS))
    if tally.n_blocks < FEWEST_BLOCKS:
        return None
    block = tally.block % blocks
    given, matched = (
        pairs.count(weight, block, blocks) for weight in (tally.times, tally.times * pairs.same)
    )
    cell, heard = tally.layer * S + tally.state, tally.heard
    advised, same = heard < A, heard == tally.action

    def without(where: Bools, column: Ints) -> Floats:
        key = ((block * cells + cell) * A + column)[where]
        total = np.bincount(key, tally.times[where], blocks * cells * A)
        by_block = total.reshape(blocks, cells, A).astype(np.float64)
        others: Floats = by_block.sum(axis=0) - by_block
        return others.reshape(-1, A)

    everything = np.ones(cell.size, dtype=np.bool_)
    policy, _ = likeliest_habit(
        without(~advised, tally.action),
        without(advised & ~same, tally.action),
        without(advised & ~same, heard),
        without(everything, tally.action),
    )
    own = policy.reshape(blocks, cells, A)[:, pairs.cell, pairs.advice]
    unit = pairs.units(given.sum(axis=(0, 2)))
    given, matched = (total.sum(axis=0) - total for total in (given, matched))
    return LevelCounts.of(given, matched, np.minimum(own, 1.0 - EDGE), unit)


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """The pairs of cell and advice of which matches say something, and the pair of each row."""

    cell: Ints
    advice: Ints
    row: Ints  # rows of the tally with advice that was seen, in one of the pairs
    pair: Ints  # their pairs
    level: Ints  # their levels
    same: Bools  # whether each row of the tally is a match
    levels: int

    @classmethod
    def of(cls, tally: Tally, habit: Habit) -> "_Pairs":
        kind, A = _kind_of(tally), len(tally.actions)
        cell, heard = tally.layer * len(tally.states) + tally.state, tally.heard
        said = np.minimum(heard, A - 1)
        kept = (heard < A) & habit.known[cell] & (habit.policy[cell, said] < 1.0)
        kept &= tally.times > 0.0
        row = np.flatnonzero(kept)
        key, pair = np.unique(cell[row] * A + heard[row], return_inverse=True)
        level = np.asarray(tally.level)[row]
        return cls(key // A, key % A, row, pair, level, heard == tally.action, kind.n_levels)

    def count(self, weight: Floats, block: Ints | None = None, blocks: int = 1) -> Floats:
        """Return sums by pair and level [pair, m], or by block too [block, pair, m]."""
        P, M = self.cell.size, self.levels
        key = self.pair * M + self.level
        if block is not None:
            key = key + block[self.row] * (P * M)
        total = np.bincount(key, weight[self.row], blocks * P * M).astype(np.float64)
        return total.reshape((P, M) if block is None else (blocks, P, M))

    def units(self, given: Floats) -> Ints:
        """Return the unit of each pair: its own, or for rare pairs that of their advice."""
        return np.where(given >= RARE, np.arange(given.size), given.size + self.advice)
