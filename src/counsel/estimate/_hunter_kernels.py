"""Hunter's iteration for the likeliest habit of many cells."""

import numpy as np

from counsel._arrays import Bools, Floats
from counsel._jit import kernel

TINY = 1e-300


@kernel
def hunter_rounds(
    policy: Floats, free: Floats, silent: Floats, refused: Floats, rounds: int, close: float
) -> Bools:
    """Improve π [cell, a] in place, each cell until no entry changes by more than ``close``.

    ``free`` [cell, a] are free choices, ``silent`` [cell] decisions in silence, ``refused``
    [cell, b] refusals. Return which cells still change after so many rounds.
    """
    C, A = policy.shape
    live = np.ones(C, np.bool_)
    new, per_set, after = np.empty(A), np.empty(A), np.zeros(A + 1)
    for c in range(C):
        for _ in range(rounds):
            for b in range(A - 1, -1, -1):
                after[b] = after[b + 1] + policy[c, b]
            sets, before = 0.0, 0.0
            for b in range(A):
                per_set[b] = 0.0
                if refused[c, b] > 0.0:
                    per_set[b] = refused[c, b] / max(before + after[b + 1], TINY)
                sets += per_set[b]
                before += policy[c, b]
            total = 0.0
            for a in range(A):
                new[a] = 0.0
                if free[c, a] > 0.0:
                    new[a] = free[c, a] / max(silent[c] + sets - per_set[a], TINY)
                total += new[a]
            change = 0.0
            for a in range(A):
                share = new[a] / total
                change = max(change, abs(share - policy[c, a]))
                policy[c, a] = share
            if not change > close:
                live[c] = False
                break
    return live
