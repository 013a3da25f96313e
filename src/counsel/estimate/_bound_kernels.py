"""Compiled confidence bounds of a probability from k matches in n.

Each kind of bound is a branch of ``upper_bound``; ``bounds.py`` explains them. Kernels trust their
input: 0 ≤ k ≤ n.
"""

from typing import NamedTuple

import numpy as np

from counsel._arrays import Floats, Ints
from counsel._jit import kernel

THEORY, PAPER, KL_LEVEL, KL_EVERY = range(4)


class Rule(NamedTuple):
    """A built-in bound as numbers: the meaning of ``first`` and ``second`` depends on the kind."""

    kind: int
    first: float
    second: float

    def __call__(self, matched: float, given: int, level: float) -> float:
        """Return the upper end, as the function of any other bound does."""
        return upper_bound(self, matched, given, level)


@kernel
def kl_above(p: float, c: float) -> float:
    """Return the largest q with kl(p, q) = p log(p / q) + (1 − p) log((1 − p) / (1 − q)) ≤ c.

    As a function of y = log(1 − q) the divergence is convex and falls towards the root, so Newton's
    steps from below never pass it. They start from the better of two bounds: kl(p, q) ≥ 2 (q − p)²,
    and kl(p, q) ≥ p log p + (1 − p) log((1 − p) / (1 − q)).
    """
    if p >= 1.0:
        return 1.0
    if p <= 0.0:
        return float(-np.expm1(-c))
    own = p * np.log(p) + (1.0 - p) * np.log(1.0 - p) - c
    room = np.exp(own / (1.0 - p))  # a lower bound of 1 − q
    room = max(room, 1.0 - p - np.sqrt(0.5 * c))
    if room < 1e-300:
        return 1.0
    for _ in range(50):
        q = 1.0 - room
        if q <= p:
            return p
        value = own - p * np.log(q) - (1.0 - p) * np.log(room)
        step = value * q / (q - p)
        if not step > 1e-14:
            break
        room *= np.exp(step)
    return float(max(1.0 - room, p))


@kernel
def upper_bound(rule: Rule, k: float, n: int, level: float) -> float:
    """Return the upper end for k matches in n."""
    if n == 0:
        return 1.0
    p = k / n
    if rule.kind == KL_LEVEL:
        return kl_above(p, level / n)
    if rule.kind == KL_EVERY:
        return kl_above(p, (rule.first + np.log(n + 1.0)) / n)
    if n == 1:
        return 1.0
    if rule.kind == PAPER:
        return float(min(p + rule.first * np.sqrt(2.0 * np.log(n) / n), 1.0))
    spread = np.sqrt(p * (1.0 - p))
    width = min(
        2.0 * np.sqrt(rule.first / n),
        spread * np.sqrt(2.0 * rule.first / n) + 7.0 * rule.first / (3.0 * (n - 1.0)),
    )
    x = max(spread - np.sqrt(2.0 * rule.second / (n - 1.0)), 0.0)
    return float(min(p + width, 0.5 + 0.5 * np.sqrt(max(1.0 - 4.0 * x * x, 0.0)), 1.0))


@kernel
def fill_upper(rule: Rule, sum_g: Floats, count_g: Ints, level: float, high_g: Floats) -> None:
    """Fill the upper end of each mean of numbers in [0, 1]; their sum may miss it by rounding."""
    for g in range(count_g.size):
        total = min(max(sum_g[g], 0.0), float(count_g[g]))
        high_g[g] = upper_bound(rule, total, count_g[g], level)
