"""Bootstrap over people: draw people with replacement, and repeat an estimate on each draw.

Episodes of one person are alike, so people are drawn with all their episodes; a log that does not
name people, or names only one, is drawn by episodes. Only sums over blocks of people are needed:
counts of a log by the blocks of its tally (see ``count.py``), weighted episodes by up to 500 random
blocks.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from counsel._arrays import Floats, Ints
from counsel.logs.count import TALLY_COUNTS, Tally

NOT_DRAWN = 1e-6
"""The weight of a block that was not drawn."""

FEWEST_BLOCKS = 10
"""With fewer blocks than this a bootstrap has no interval."""

DRAWS, BLOCKS = 2000, 500
"""Draws of weighted episodes, and the number of blocks they are put into."""


@dataclass(frozen=True, slots=True)
class ValueEstimate:
    """An estimate of the reward per episode, with its 95 % interval.

    The interval is infinite if there are fewer than ten people, or episodes, to draw from.
    """

    value: float
    low: float
    high: float


def resample_tally(tally: Tally, rng: np.random.Generator) -> Tally:
    """Return the counts of as many blocks, drawn with replacement.

    A block that is not drawn counts a millionth: a pair of state and action that occurs in no drawn
    block keeps the estimate of the whole log instead of becoming unknown.
    """
    blocks = tally.n_blocks
    drawn = rng.multinomial(blocks, np.full(blocks, 1.0 / blocks))
    weight = np.where(drawn > 0, drawn, NOT_DRAWN)[tally.block]
    return replace(tally, **{name: getattr(tally, name) * weight for name in TALLY_COUNTS})


def estimate_from_draws(value: float, draws: Floats, blocks: int) -> ValueEstimate:
    """Return an estimate with the middle 95 % of its bootstrap draws as its interval.

    The quantiles are Weibull's: the k-th of n draws lies at k / (n + 1), so that the interval of
    few draws is not too narrow.
    """
    if blocks < FEWEST_BLOCKS:
        return ValueEstimate(float(value), -np.inf, np.inf)
    low, high = np.quantile(draws, (0.025, 0.975), method="weibull")
    return ValueEstimate(float(value), float(low), float(high))


@dataclass(frozen=True, slots=True, eq=False)
class BlockDraws:
    """People, or episodes, in random blocks, and bootstrap draws of the blocks.

    The same draws serve all policies: policies that agree get the same intervals.
    """

    block: Ints  # the block of each episode
    times: Ints  # how often each draw contains each block [draw, block]

    @classmethod
    def draw(cls, cluster: Ints, rng: np.random.Generator) -> "BlockDraws":
        """Put the clusters of episodes [episode] into blocks and draw the blocks."""
        clusters = int(cluster.max(initial=-1)) + 1
        block = (rng.permutation(clusters) % BLOCKS)[cluster]
        blocks = max(min(clusters, BLOCKS), 1)
        return cls(block, rng.multinomial(blocks, np.full(blocks, 1.0 / blocks), size=DRAWS))

    @property
    def n_blocks(self) -> int:
        """The number of blocks."""
        return int(self.times.shape[1])

    def estimate(self, sums: Floats, statistic: Callable[[Floats], Floats]) -> ValueEstimate:
        """Return a statistic of sums over blocks [block, …], with its interval over draws."""
        drawn = (self.times @ sums.reshape(len(sums), -1)).reshape(len(self.times), *sums.shape[1:])
        value = float(statistic(sums.sum(axis=0)))
        return estimate_from_draws(value, statistic(drawn), len(sums))
