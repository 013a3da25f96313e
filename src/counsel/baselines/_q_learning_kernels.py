"""Compiled loops of optimistic Q-learning.

Rewards lie in [0, 1] here: units are changed outside. Kernels trust their input.
"""

from typing import NamedTuple

import numpy as np

from counsel._arrays import Bools, Floats, Ints
from counsel._jit import as_int64, inlined, kernel
from counsel.learning._rfe_kernels import pick_top
from counsel.model._kernels import layer_of

HOEFFDING, BERNSTEIN = range(2)


class QBonus(NamedTuple):
    """Which bonus, its constants, and ι."""

    kind: int
    c1: float
    c2: float
    log: float


class QTable(NamedTuple):
    """What Q-learning keeps: of each row visits, Q, sums of V and V² of what followed, and β."""

    visits_hsb: Ints
    Q_hsb: Floats
    V_hs: Floats
    sum_hsb: Floats
    square_hsb: Floats
    width_hsb: Floats


@inlined
def hoeffding_width(n: float, H: int, log: float) -> float:
    """Return √(H³ ι / n)."""
    return float(np.sqrt(float(H) ** 3 * log / n))


@inlined
def bernstein_width(
    n: float, total: float, square: float, H: int, rows: int, constants: QBonus
) -> float:
    """Return β_n = min{c₁ (√(H (W + H) ι / n) + √(H⁷ S B) ι / n), c₂ √(H³ ι / n)}; rows is S B."""
    mean = total / n
    spread = max(square / n - mean * mean, 0.0)
    sharp = np.sqrt(H / n * (spread + H) * constants.log)
    sharp += np.sqrt(float(H) ** 7 * rows) * constants.log / n
    return float(min(constants.c1 * sharp, constants.c2 * hoeffding_width(n, H, constants.log)))


@kernel
def learn_row(
    table: QTable, constants: QBonus, h: int, s: int, b: int, reward: float, onward: float
) -> None:
    """Take one move in: Q ← (1 − α) Q + α (r + V_{h+1}(t) + bonus), α = (H + 1) / (H + n)."""
    H, S, B = table.Q_hsb.shape
    table.visits_hsb[h, s, b] += 1
    n = float(table.visits_hsb[h, s, b])
    rate = (H + 1.0) / (H + n)
    if constants.kind == HOEFFDING:
        bonus = constants.c1 * hoeffding_width(n, H, constants.log)
    else:
        table.sum_hsb[h, s, b] += onward
        table.square_hsb[h, s, b] += onward * onward
        width = bernstein_width(
            n, table.sum_hsb[h, s, b], table.square_hsb[h, s, b], H, S * B, constants
        )
        bonus = (width - (1.0 - rate) * table.width_hsb[h, s, b]) / (2.0 * rate)
        table.width_hsb[h, s, b] = width
    table.Q_hsb[h, s, b] += rate * (reward + onward + bonus - table.Q_hsb[h, s, b])


@kernel
def learn_moves(
    first: Ints,
    state: Ints,
    advice: Ints,
    reward: Floats,
    next_state: Ints,
    open_lsb: Bools,
    over_hs: Bools,
    unreachable_hs: Bools,
    rest: float,
    constants: QBonus,
    table: QTable,
) -> None:
    """Learn from whole episodes, move by move in the order they happened.

    Where ``over_hs`` is true nothing more can happen and a step pays ``rest``; where
    ``unreachable_hs`` is true nobody was to come, and a step pays 0, the least.
    """
    H, _, B = table.Q_hsb.shape
    for n in range(first.size - 1):
        for i in range(first[n], first[n + 1]):
            h, s, t = i - first[n], as_int64(state[i]), as_int64(next_state[i])
            onward = table.V_hs[h + 1, t]
            if over_hs[h + 1, t]:
                onward = (H - h - 1) * rest
            elif unreachable_hs[h + 1, t]:
                onward = 0.0
            learn_row(table, constants, h, s, as_int64(advice[i]), reward[i], onward)
            layer, top = layer_of(open_lsb.shape[0], h), 0.0
            for b in range(B):
                if open_lsb[layer, s, b]:
                    top = max(top, table.Q_hsb[h, s, b])
            table.V_hs[h, s] = min(float(H), top)


@kernel
def pick_advice(
    Q_hsb: Floats, open_lsb: Bools, over_hs: Bools, tie_hs: Floats, advice_hs: Ints
) -> None:
    """Fill the advice with the largest Q; silence where nothing more can happen."""
    H, S, B = Q_hsb.shape
    value_b = np.empty(B)
    for h in range(H):
        layer = layer_of(open_lsb.shape[0], h)
        for s in range(S):
            if over_hs[h, s]:
                advice_hs[h, s] = B - 1
                continue
            for b in range(B):
                value_b[b] = Q_hsb[h, s, b] if open_lsb[layer, s, b] else -np.inf
            advice_hs[h, s] = pick_top(value_b, tie_hs[h, s])
