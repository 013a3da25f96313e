"""Compiled hash of the tables of each state."""

import numpy as np

from counsel._arrays import Ints
from counsel._jit import kernel

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
"""2⁶⁴ divided by the golden ratio: spreads the bits of every number."""


@kernel
def hash_states(table_lsn: Ints, hash_s: Ints) -> None:
    """Mix the numbers of each state, at every layer, into its hash."""
    L, S, N = table_lsn.shape
    for layer in range(L):
        for s in range(S):
            mixed = hash_s[s]
            for n in range(N):
                mixed = (mixed ^ table_lsn[layer, s, n]) * MULTIPLIER
                mixed ^= mixed >> np.uint64(29)
            hash_s[s] = mixed
