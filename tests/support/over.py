"""Where an episode is over, by a slow and obvious definition."""

import numpy as np


def slow_over(P_hsat, r_hsa, allowed_hsa):
    """Where from this step on every allowed action surely stays and pays nothing."""
    H, S, A = r_hsa.shape
    over_hs = np.ones((H, S), dtype=bool)
    for h, s in np.ndindex(H, S):
        for later in range(h, H):
            for a in range(A):
                if not allowed_hsa[later, s, a]:
                    continue
                reached = {t for t in range(S) if P_hsat[later, s, a, t] > 0.0}
                if reached != {s} or r_hsa[later, s, a] != 0.0:
                    over_hs[h, s] = False
    return over_hs
