"""Tuned constants: every learner has the same right to them, on other maps than those reported.

A learner runs with several factors on every map. Each half of the maps then gets the factor with
the least median loss on the *other* half, so no map has a say in the factor it is judged with.
"""

import numpy as np

from counsel._arrays import Floats, Ints


def best_on_other_half(loss: Floats) -> Ints:
    """Return for each map the factor with the least median loss on the other half of the maps.

    ``loss`` is [factor, map]; a single map has the first factor.
    """
    maps = loss.shape[1]
    chosen = np.zeros(maps, dtype=np.int64)
    is_first = np.arange(maps) < (maps + 1) // 2
    for half in (is_first, ~is_first):
        if half.any() and not half.all():
            chosen[half] = np.median(loss[:, ~half], axis=1).argmin()
    return chosen


def of_each(values: Floats, chosen: Ints) -> Floats:
    """Return for each map the value [factor, map] with the factor chosen for it."""
    picked: Floats = values[chosen, np.arange(values.shape[1])]
    return picked
