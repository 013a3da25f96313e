"""Counts of the machine's world as the learners of it keep them."""

import numpy as np

from counsel.baselines._optimism_kernels import EmpiricalMDP
from counsel.learning._transition_kernels import Chains


def chains_of(counts_hsbt):
    """Chains that hold these counts of next states."""
    H, S, B, _ = counts_hsbt.shape
    head, links = np.full((H, S, B), -1), []
    for h, s, b, t in np.argwhere(counts_hsbt > 0):
        links.append((t, counts_hsbt[h, s, b, t], head[h, s, b]))
        head[h, s, b] = len(links) - 1
    table = np.array(links, dtype=np.int64).reshape(-1, 3)
    return Chains(counts_hsbt.sum(axis=3), head, table, np.array([len(links)]))


def box_of(counts, reward):
    H, S, B, _ = counts.shape
    zero = np.zeros((H + 1, S), dtype=bool)
    return EmpiricalMDP(
        chains_of(counts), np.ones((1, S, B), dtype=bool), reward, zero, zero.copy(), 0.0
    )
