"""Bootstrap over people: draw people with replacement, and repeat an estimate on each draw.

Episodes of one person are alike, so people are drawn with all their episodes; a log that does not
name people, or names only one, is drawn by episodes. Only sums over blocks of people are needed:
counts of a log by the blocks of its tally (see ``count.py``), weighted episodes by up to 500 random
blocks.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from counsel._arrays import Floats, Ints
from counsel.estimate.intervals import Z
from counsel.logs.count import TALLY_COUNTS, TALLY_KEYS, Tally

NOT_DRAWN = 1e-6
"""The weight of a block that was not drawn."""

FEWEST_BLOCKS = 10
"""With fewer blocks than this a bootstrap has no interval."""

DRAWS, BLOCKS = 2000, 500
"""Draws of weighted episodes, and the number of blocks they are put into."""


@dataclass(frozen=True, slots=True)
class ValueEstimate:
    """An estimate of the reward per episode, or of a difference, with its 95 % interval.

    The interval is infinite if there are fewer than ten people, or episodes, to draw from.
    """

    value: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval lies on one side of 0."""
        return self.low > 0.0 or self.high < 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """A number, and the same number on each draw of so many blocks.

    The difference of two numbers from the same draws is paired: what both have in common cancels.
    """

    value: float
    draws: Floats
    blocks: int
    parts: int = 1  # into which the blocks are put, each with estimates of its own

    def __sub__(self, other: "Draws") -> "Draws":
        return Draws(self.value - other.value, self.draws - other.draws, self.blocks, self.parts)

    @property
    def estimate(self) -> ValueEstimate:
        """The number with its 95 % interval.

        The interval is the middle 95 % of the draws, by Weibull's quantiles (the k-th of n draws
        lies at k / (n + 1)), stretched away from the number: draws of few blocks vary too little,
        by √((B − 1) / B) for B blocks in a part, and their own spread is uncertain, so Student's
        quantile stands in for the normal one.
        """
        if self.blocks < FEWEST_BLOCKS:
            return ValueEstimate(float(self.value), -np.inf, np.inf)
        low, high = np.quantile(self.draws, (0.025, 0.975), method="weibull")
        wider = few_blocks_factor(self.blocks, self.parts)
        ends = (self.value + wider * (end - self.value) for end in (low, high))
        return ValueEstimate(float(self.value), *map(float, ends))


def few_blocks_factor(blocks: int, parts: int = 1) -> float:
    """Return how much wider than the normal interval of a bootstrap one over few blocks must be."""
    from scipy.special import stdtrit

    return float(stdtrit(blocks - parts, 0.975) / Z * np.sqrt(blocks / (blocks - parts)))


def half_of(block: Ints) -> Ints:
    """Return the half of the log, 0 or 1, that each block belongs to."""
    return block % 2


def keep_half(tally: Tally, half: int) -> Tally:
    """Return the counts of one half of the blocks; the others count a millionth."""
    return _weigh(tally, np.where(half_of(np.arange(tally.n_blocks)) == half, 1.0, NOT_DRAWN))


@dataclass(frozen=True, slots=True, eq=False)
class TallySampler:
    """Draws the blocks of a tally with replacement, many times.

    Decisions of one kind are added up over the blocks of a half, so a drawn tally is short: its
    blocks are the two halves.
    """

    tally: Tally
    short: Tally  # one row for each kind of decisions and half
    kind: Ints  # the row of ``short`` that each row of the tally is added to

    @classmethod
    def of(cls, tally: Tally) -> "TallySampler":
        """Prepare the draws of a tally."""
        keys = {name: getattr(tally, name) for name in TALLY_KEYS}
        keys["block"] = half_of(tally.block)
        keys |= tally.more_keys
        order = np.lexsort(list(keys.values())[::-1])
        is_new = np.ones(order.size, dtype=np.bool_)
        is_new[1:] = False
        for column in keys.values():
            is_new[1:] |= column[order[1:]] != column[order[:-1]]
        kind = np.empty_like(order)
        kind[order] = np.cumsum(is_new) - 1
        firsts: dict[str, Any] = {name: column[order[is_new]] for name, column in keys.items()}
        return cls(tally, replace(tally, **firsts), kind)

    def draw(self, rng: np.random.Generator) -> Tally:
        """Return the counts of as many blocks, drawn with replacement.

        A block that is not drawn counts a millionth: a pair of state and action that occurs in no
        drawn block keeps the estimate of the whole log instead of becoming unknown.
        """
        blocks, size = self.tally.n_blocks, self.short.step.size
        drawn = rng.multinomial(blocks, np.full(blocks, 1.0 / blocks))
        each = np.where(drawn > 0, drawn, NOT_DRAWN)[self.tally.block]
        counts: dict[str, Any] = {
            name: np.bincount(self.kind, getattr(self.tally, name) * each, size)
            for name in TALLY_COUNTS
        }
        return replace(self.short, **counts)


def _weigh(tally: Tally, weight: Floats) -> Tally:
    """Return the counts with each block weighted."""
    each = weight[tally.block]
    return replace(tally, **{name: getattr(tally, name) * each for name in TALLY_COUNTS})


@dataclass(frozen=True, slots=True, eq=False)
class BlockDraws:
    """People, or episodes, in random blocks, and bootstrap draws of the blocks.

    The same draws serve all policies: policies that agree get the same intervals.
    """

    block: Ints  # the block of each episode
    times: Floats  # how often each draw contains each block [draw, block]

    @classmethod
    def draw(cls, cluster: Ints, rng: np.random.Generator) -> "BlockDraws":
        """Put the clusters of episodes [episode] into blocks and draw the blocks."""
        clusters = int(cluster.max(initial=-1)) + 1
        block = (rng.permutation(clusters) % BLOCKS)[cluster]
        blocks = max(min(clusters, BLOCKS), 1)
        times = rng.multinomial(blocks, np.full(blocks, 1.0 / blocks), size=DRAWS)
        return cls(block, times.astype(np.float64))

    @property
    def n_blocks(self) -> int:
        """The number of blocks."""
        return int(self.times.shape[1])

    def of(self, sums: Floats, statistic: Callable[[Floats], Floats]) -> Draws:
        """Return a statistic of sums over blocks [block, …], also on each draw."""
        drawn = (self.times @ sums.reshape(len(sums), -1)).reshape(len(self.times), *sums.shape[1:])
        return Draws(float(statistic(sums.sum(axis=0))), statistic(drawn), len(sums))
