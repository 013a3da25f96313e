"""Intervals of shares and means, 95 % each.

* Wilson's interval of a share of k among n: where the score test does not reject.
* Student's interval of a mean from its count, sum and sum of squares. It is right for means of many
  or of numbers that are nearly normal; rewards that are almost always 0 need some hundreds.
"""

import numpy as np
from numpy.typing import ArrayLike

from counsel._arrays import Floats

Z = 1.959963984540054
"""The normal quantile of a two-sided 95 % interval."""


def wilson(hits: ArrayLike, of: ArrayLike) -> tuple[Floats, Floats]:
    """Return the ends of Wilson's interval of ``hits`` among ``of``; [0, 1] among none.

    ``hits`` and ``of`` need not be whole: a share with a known variance has an effective count.
    """
    k, n = np.asarray(hits, dtype=np.float64), np.asarray(of, dtype=np.float64)
    some = n > 0.0
    share = np.divide(k, n, out=np.zeros(np.broadcast(k, n).shape), where=some)
    size = np.where(some, n, 1.0) + Z**2
    middle = (n * share + Z**2 / 2.0) / size
    half = Z * np.sqrt(np.maximum(n * share * (1.0 - share), 0.0) + Z**2 / 4.0) / size
    low = np.where(some, np.maximum(middle - half, 0.0), 0.0)
    high = np.where(some, np.minimum(middle + half, 1.0), 1.0)
    return low, high


def student(count: ArrayLike, total: ArrayLike, squares: ArrayLike) -> tuple[Floats, Floats]:
    """Return the ends of Student's interval of a mean; without bounds from fewer than two."""
    from scipy.special import stdtrit

    n = np.asarray(count, dtype=np.float64)
    mean = np.asarray(total, dtype=np.float64) / np.maximum(n, 1.0)
    spread = np.maximum(np.asarray(squares, dtype=np.float64) - n * mean**2, 0.0)
    freedom = np.maximum(n - 1.0, 1.0)
    half = stdtrit(freedom, 0.975) * np.sqrt(spread / freedom / np.maximum(n, 1.0))
    half = np.where(n > 1.0, half, np.inf)
    return mean - half, mean + half
