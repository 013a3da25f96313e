"""Small worlds to spoil, and the check that bad input is refused in one clear line."""

import numpy as np
import pytest
import scipy.sparse as sp

import counsel
from counsel import MDP, AdviceProblem

NAN, INF = float("nan"), float("inf")

# Two states, two actions, three steps: action 0 swaps the states, action 1 stays.
SWAP = np.array([[1, 0], [0, 1]])
HALF = np.full((2, 2), 0.5)


def world(**changes):
    given = {"transition": SWAP, "reward": np.zeros((2, 2)), "horizon": 3} | changes
    return MDP(given.pop("transition"), given.pop("reward"), **given)


def dense(*entries, steps=None):
    """Good transitions [s, a, t] (or by step) with some entries changed."""
    P = (SWAP[..., None] == np.arange(2)).astype(float)
    P = P if steps is None else np.tile(P, (steps, 1, 1, 1))
    for index, value in entries:
        P[index] = value
    return P


def sparse(*entries):
    """The same as a matrix [s·A + a, t] with some stored entries changed."""
    matrix = sp.csr_matrix(dense().reshape(4, 2))
    for i, value in entries:
        matrix.data[i] = value
    return matrix


def sparse_to(next_state, at=1):
    """A sparse matrix, one entry of which leads to a state that need not exist."""
    matrix = sparse()
    matrix.indices = matrix.indices.astype(np.int64)
    matrix.indices[at] = next_state
    return matrix


def changed(array, index, value, dtype=None):
    other = np.array(array, dtype=dtype)
    other[index] = value
    return other


def toy(*rows):
    """A toy-text dictionary of one state and one action."""
    return {0: {0: list(rows)}}


def case(name, build, *fragments):
    return pytest.param(build, fragments, id=name)


def join(human, **changes):
    return AdviceProblem(world(**changes), human)


def check_refused(build, fragments):
    """Build something bad: one line must name what is wrong."""
    with pytest.raises(counsel.CounselError) as caught:
        build()
    message = str(caught.value)
    assert "\n" not in message
    assert [fragment for fragment in fragments if fragment not in message] == []
