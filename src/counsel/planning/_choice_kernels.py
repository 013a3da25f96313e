"""The compiled rule of choice in one cell, with its ties.

Among the choices whose first value ties with the best, take the best second value, then silence,
then the lowest index. ``break_tie`` compares gains over silence; ``pick`` compares values, where
silence is not possible or some action is infeasible.
"""

from typing import NamedTuple

import numpy as np

from counsel._arrays import Floats
from counsel._jit import as_int64, kernel
from counsel.model._kernels import cost_of
from counsel.planning._gain_kernels import gain

Pair = tuple[float, float]

TIE = 1e-12
"""Values within this share of their size are tied: rounding must not decide the advice."""

NO_MASS = 1e-12
"""An adherence below this share of the habit is rounding: the advice is never matched."""


class Aim(NamedTuple):
    """Maximise weight0 · reward − price0 · cost; break ties by weight1 · reward − price1 · cost.

    ``price0_h`` has one price, or one per step. ``size0`` and ``size1`` are added to the size of
    the values in a cell when ties are detected: values that cancel do not show what earlier sums
    have lost to rounding. No value exceeds ``most0``.
    """

    weight0: float
    price0_h: Floats
    size0: float
    most0: float
    weight1: float
    price1: float
    size1: float


@kernel
def break_tie(
    policy_sa: Floats,
    pull_sa: Floats,
    cost_sa: Floats,
    s: int,
    q_2a: Floats,
    alone: Pair,
    aim: Aim,
    price: float,
    required: bool,
) -> tuple[int, float, float]:
    """Choose between advice and silence: return the choice and its two gains over silence."""
    A = q_2a.shape[1]
    top, size0, size1 = -np.inf if required else 0.0, aim.size0, aim.size1
    for a in range(A):
        pull = pull_sa[s, a]
        if policy_sa[s, a] > 0.0 or pull == pull:
            size0 += abs(q_2a[0, a])
            size1 += abs(q_2a[1, a])
        if pull == pull:
            cost = price * cost_of(cost_sa, s, a)
            top = max(top, gain(policy_sa, s, a, pull, q_2a, 0, alone[0]) - cost)
    tied = top - TIE * size0
    best, best0, best1 = A, 0.0, 0.0 if tied <= 0.0 and not required else -np.inf
    for a in range(A):
        pull = pull_sa[s, a]
        if pull == pull:
            cost = cost_of(cost_sa, s, a)
            net = gain(policy_sa, s, a, pull, q_2a, 0, alone[0]) - price * cost
            if net >= tied:
                second = gain(policy_sa, s, a, pull, q_2a, 1, alone[1]) - aim.price1 * cost
                if second > best1 + TIE * size1:
                    best, best0, best1 = a, net, second
    return best, best0, best1


@kernel
def advised(
    policy_sa: Floats, s: int, a: int, lift: float, q_2a: Floats, c: int, alone: float
) -> float:
    """Return the value of advising ``a``, also if some action is infeasible (−∞).

    Then the law is summed in full, so that an infeasible action of probability 0 does not count.
    """
    if alone > -np.inf and q_2a[c, a] > -np.inf:
        return alone + gain(policy_sa, s, a, lift, q_2a, c, alone)
    total, theta = 0.0, policy_sa[s, a]
    for b in range(q_2a.shape[1]):
        if b != a and policy_sa[s, b] > 0.0:
            theta += lift * policy_sa[s, b]
            if lift < 1.0:
                total += (1.0 - lift) * policy_sa[s, b] * q_2a[c, b]
    if theta > NO_MASS * policy_sa[s, a]:
        total += theta * q_2a[c, a]
    return total


@kernel
def pick(value_2a: Floats, quiet: Pair, tolerance: Pair) -> int:
    """Return the best choice by both values of each advice and of silence (−∞: not possible)."""
    A = value_2a.shape[1]
    top = quiet[0]
    for a in range(A):
        top = max(top, value_2a[0, a])
    if top == -np.inf:
        return as_int64(A)
    tied = top - tolerance[0]
    best, best1 = A, quiet[1] if quiet[0] >= tied else -np.inf
    for a in range(A):
        if value_2a[0, a] >= tied and value_2a[1, a] > best1 + tolerance[1]:
            best, best1 = a, value_2a[1, a]
    return as_int64(best)
