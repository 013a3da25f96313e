"""Means over independent repeats and their 95 % intervals: mean ± t · s / √n (Student)."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from counsel._arrays import Floats


class Interval(NamedTuple):
    """A mean over seeds and the ends of its 95 % interval, NaN with a single seed."""

    mean: float
    low: float
    high: float


def interval(values: Sequence[float] | Floats) -> Interval:
    """Return the mean of repeats with its interval."""
    numbers = np.asarray(values, dtype=np.float64)
    low, high = band(numbers[:, None])
    return Interval(float(numbers.mean()), float(low[0]), float(high[0]))


def band(y_kx: Floats) -> tuple[Floats, Floats]:
    """Return the ends of the interval at each x, over the repeats k."""
    from scipy.special import stdtrit

    n, mean = len(y_kx), y_kx.mean(axis=0)
    if n < 2:
        return np.full(mean.shape, math.nan), np.full(mean.shape, math.nan)
    half: Floats = stdtrit(n - 1, 0.975) * y_kx.std(axis=0, ddof=1) / math.sqrt(n)
    return mean - half, mean + half
