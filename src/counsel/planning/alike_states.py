"""States that are alike in everything, planned once.

Two states with the same rows, rewards, habit, lift, costs and masks at every step have the same
value and the same best advice: the car world has 4,005 kinds of states among 59,050. The problem
of kinds has one state per kind, and the same loops plan it. Sums run over the same numbers in the
same order, so the results in each state are the same to the last bit.
"""

import numpy as np
from numpy.typing import NDArray

from counsel._arrays import Ints, one_type
from counsel.planning._alike_kernels import hash_states
from counsel.planning._backward_kernels import Model

MOST_KINDS = 0.5
"""Above this share of kinds all states are planned."""

PER_STATE = (
    "row_lsa",
    "reward_lsa",
    "policy_lsa",
    "lift_lsa",
    "pull_lsa",
    "permitted_lsa",
    "required_ls",
    "cost_lsa",
    "same_ls",
)


def kinds_of_states(model: Model) -> NDArray[np.int32] | None:
    """Return the kind [s] of each state, numbered from 0; None if most states are of their own."""
    _, S, A = model.policy_lsa.shape
    if model.first_row_l[1] == S * A:  # every pair has a row of its own
        return None
    tables = [_bits(model, name) for name in PER_STATE]
    hash_s = np.zeros(S, dtype=np.uint64)
    for table in tables:
        hash_states(table, hash_s)
    _, representative, kind_s = np.unique(hash_s, return_index=True, return_inverse=True)
    if representative.size > MOST_KINDS * S:
        return None
    for table in tables:
        if not np.array_equal(table, table[:, representative[kind_s]]):
            return None  # two states that differ have the same hash
    kinds: NDArray[np.int32] = kind_s.astype(np.int32)
    return kinds


def model_of_kinds(model: Model, kind_s: Ints) -> Model:
    """Return the model with one state per kind."""
    _, representative = np.unique(kind_s, return_index=True)
    tables = {name: getattr(model, name) for name in PER_STATE}
    small = {
        name: table[:, representative] if table.shape[1] == kind_s.size else table
        for name, table in tables.items()
    }
    return one_type(model._replace(**small, next_state=kind_s[model.next_state]))


def _bits(model: Model, name: str) -> NDArray[np.uint64]:
    """Return a table as whole numbers [layer, s, n] that are equal where its bits are."""
    table, S = getattr(model, name), model.policy_lsa.shape[1]
    if table.shape[1] != S:  # the same in every state
        return np.zeros((1, S, 0), dtype=np.uint64)
    numbers = table if table.dtype == np.float64 else table.astype(np.int64)
    bits: NDArray[np.uint64] = (
        np.ascontiguousarray(numbers).reshape(len(table), S, -1).view(np.uint64)
    )
    return bits
