"""The largest problem of the benchmarks; the others are worlds of the catalogue."""

import numpy as np
import scipy.sparse as sp

import counsel


def random_sparse(states: int = 1_000_000) -> counsel.AdviceProblem:
    """Return a random world: A = 4, 8 successors, H = 20, a person with a random policy."""
    rng = np.random.default_rng(0)
    actions, successors = 4, 8
    rows = states * actions
    weight = rng.random((rows, successors))
    weight /= weight.sum(axis=1, keepdims=True)
    index = rng.integers(states, size=rows * successors, dtype=np.int32)
    indptr = np.arange(0, rows * successors + 1, successors)
    matrix = sp.csr_matrix((weight.reshape(-1), index, indptr), shape=(rows, states))
    mdp = counsel.MDP(matrix, rng.random((states, actions)), horizon=20)
    person = counsel.Human(rng.dirichlet(np.ones(actions), states), 0.8)
    return counsel.AdviceProblem(mdp, person)
