"""95 % confidence intervals of shares (Wilson) and of means (Student).

* Wilson's interval of a share of k among n: the shares that the score test does not reject.
* Student's interval of a mean, mean ± t · s / √n. It is valid for means of many numbers or of
  numbers that are nearly normal; rewards that are almost always 0 need a few hundred.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from counsel._arrays import Floats

Z = 1.959963984540054
"""The normal quantile of a two-sided 95 % interval."""


class Interval(NamedTuple):
    """A mean over independent repeats and the ends of its 95 % interval, NaN for one repeat."""

    mean: float
    low: float
    high: float


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
    """Return the ends of Student's interval of a mean from a count, a sum and a sum of squares.

    The ends are infinite for a count below two.
    """
    n = np.asarray(count, dtype=np.float64)
    mean = np.asarray(total, dtype=np.float64) / np.maximum(n, 1.0)
    spread = np.maximum(np.asarray(squares, dtype=np.float64) - n * mean**2, 0.0)
    half = _student_half(n, np.sqrt(spread / np.maximum(n - 1.0, 1.0)))
    return mean - half, mean + half


def interval(values: Sequence[float] | Floats) -> Interval:
    """Return the mean of repeats with its interval."""
    numbers = np.asarray(values, dtype=np.float64)
    low, high = band(numbers[:, None])
    return Interval(float(numbers.mean()), float(low[0]), float(high[0]))


def band(y_kx: Floats) -> tuple[Floats, Floats]:
    """Return the ends of Student's interval at each x over the repeats k; NaN for one repeat."""
    n, mean = len(y_kx), y_kx.mean(axis=0)
    if n < 2:
        return np.full(mean.shape, np.nan), np.full(mean.shape, np.nan)
    half = _student_half(np.asarray(float(n)), y_kx.std(axis=0, ddof=1))
    return mean - half, mean + half


def _student_half(count: Floats, deviation: Floats) -> Floats:
    """Return t · s / √n for the sample standard deviation s; infinite for a count below two."""
    from scipy.special import stdtrit

    half = stdtrit(np.maximum(count - 1.0, 1.0), 0.975) * deviation / np.sqrt(np.maximum(count, 1))
    return np.where(count > 1.0, half, np.inf)
