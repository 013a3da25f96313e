"""Exponents: how a count grows with the size of a problem, fitted for each seed.

The exponent is the slope of log(count) over log(size), by least squares. A count is *censored* if
its run ended before the count was final: it is then a lower bound. Three rules keep the fits
honest:

* a size at which more than a tenth of the seeds are censored is left out, for all seeds, and
  nothing is fitted to fewer than three sizes;
* a seed that is censored at one of the other sizes, or has a count of 0 there, has no exponent
  (NaN); a claim takes such a seed for one that may lie on either side;
* two learners are compared at the sizes at which both can be fitted.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from counsel._arrays import Bools, Floats

MOST_CENSORED = 0.1  # the share of censored seeds above which a size is left out
FEWEST_SIZES = 3


class Counts(NamedTuple):
    """The episodes counted at one size [seed], and which counts are lower bounds."""

    size: float
    episodes: Floats
    censored: Bools

    @property
    def is_usable(self) -> bool:
        """Whether an exponent may be fitted through this size."""
        return bool(self.censored.mean() <= MOST_CENSORED)


def usable_sizes(*learners: Sequence[Counts]) -> list[float]:
    """Return the sizes at which every one of these learners can be fitted."""
    sizes = [{counts.size for counts in along if counts.is_usable} for along in learners]
    return sorted(set.intersection(*sizes))


def exponents(along: Sequence[Counts], sizes: Sequence[float] | None = None) -> Floats:
    """Return the exponent of each seed over these sizes, by default over all that are usable."""
    chosen = usable_sizes(along) if sizes is None else sizes
    used = [counts for counts in along if counts.size in chosen]
    if len(used) < FEWEST_SIZES:
        return np.full(along[0].episodes.size, np.nan)
    is_known = np.stack([(counts.episodes > 0.0) & ~counts.censored for counts in used])
    count = np.stack([counts.episodes for counts in used])
    return slopes([counts.size for counts in used], np.where(is_known, count, np.nan))


def slopes(size: Sequence[float] | Floats, count: Floats) -> Floats:
    """Return the slopes of log(count) [size, …] over log(size); NaN where a count is NaN."""
    x = np.log(np.asarray(size, dtype=np.float64))
    x -= x.mean()
    return np.asarray(np.tensordot(x / (x @ x), np.log(count), axes=1))


def log_ratio(less: Sequence[Counts], more: Sequence[Counts]) -> Floats:
    """Return the mean over sizes of log(count / count) for each seed that both have.

    A censored count in ``more`` makes it an upper bound, which is NaN unless it is below 0; a
    censored count in ``less``, or a count of 0 in ``more``, makes it NaN. A count of 0 in ``less``
    is taken for 1.
    """
    seeds = min(less[0].episodes.size, more[0].episodes.size)
    a, b = (np.stack([counts.episodes[:seeds] for counts in along]) for along in (less, more))
    less_bound, more_bound = (
        np.stack([counts.censored[:seeds] for counts in along]) for along in (less, more)
    )
    ratio = np.log(np.maximum(a, 1.0)) - np.log(np.maximum(b, 1.0))
    mean = np.where(less_bound | (b == 0.0), np.nan, ratio).mean(axis=0)
    return np.asarray(np.where(more_bound.any(axis=0) & ~(mean < 0.0), np.nan, mean))
