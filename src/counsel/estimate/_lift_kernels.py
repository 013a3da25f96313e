"""The likeliest lift of many units, by bisection."""

import numpy as np

from counsel._arrays import Floats, Ints
from counsel._jit import kernel

HALVINGS = 60
LEAST = 1e-12  # the least chance of a match, and of a refusal


@kernel
def bisect_lifts(
    unit: Ints,
    given: Floats,
    matched: Floats,
    habit: Floats,
    fading: Floats,
    least: Floats,
    lift: Floats,
) -> None:
    """Write the lift of each unit at which the log likelihood of its pairs no longer rises.

    Pairs of cell and unit have one entry in ``unit``, ``given``, ``matched``, ``habit``, which
    is below 1, and ``fading``, which multiplies the lift; lifts lie between ``least`` and 1.
    """
    low, high = least.copy(), np.ones(least.size)
    slope = np.empty(least.size)
    for _ in range(HALVINGS):
        for u in range(least.size):
            lift[u] = (low[u] + high[u]) / 2.0
            slope[u] = 0.0
        for i in range(unit.size):
            u = unit[i]
            moved = fading[i] * lift[u]
            m = moved + (1.0 - moved) * habit[i]
            m = min(max(m, LEAST), 1.0 - LEAST)
            rise = matched[i] / m - (given[i] - matched[i]) / (1.0 - m)
            slope[u] += rise * (1.0 - habit[i]) * fading[i]
        for u in range(least.size):
            if slope[u] > 0.0:
                low[u] = lift[u]
            else:
                high[u] = lift[u]
    for u in range(least.size):
        lift[u] = (low[u] + high[u]) / 2.0
