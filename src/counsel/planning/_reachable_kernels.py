"""Compiled loops that list the reachable cells and renumber their rows."""

import numpy as np

from counsel._arrays import Floats, Ints
from counsel._jit import kernel
from counsel.model._kernels import layer_of
from counsel.planning._backward_kernels import Model


@kernel
def list_cells(
    model: Model, row_lsa: Ints, start_s: Floats, begin: Ints, states: Ints
) -> tuple[int, int]:
    """List the states that can occur at each step, whatever is advised.

    ``row_lsa`` is −1 for actions that are never taken. The states of step h go to
    ``states[begin[h] : begin[h + 1]]``, sorted. Returns the number of distinct rows and of entries
    that they use, added up over the steps; −1 if ``states`` is too short, or more than half of the
    states can occur at one step, so that a search in a large world ends early.
    """
    L, S, A = row_lsa.shape
    indptr, next_state = model.indptr, model.next_state
    now, then = np.zeros(S, np.bool_), np.zeros(S, np.bool_)
    for s in range(S):
        now[s] = start_s[s] > 0.0
    last_use = np.full(indptr.size - 1, -1, np.int64)
    fill, rows, entries = 0, 0, 0
    begin[0] = 0
    for h in range(begin.size - 1):
        row_sa = row_lsa[layer_of(L, h)]
        then[:] = False
        width = 0
        for s in range(S):
            if not now[s]:
                continue
            if fill == states.size:
                return -1, -1
            states[fill] = s
            fill += 1
            for a in range(A):
                i = row_sa[s, a]
                if i >= 0 and last_use[i] < h:
                    last_use[i] = h
                    rows += 1
                    entries += indptr[i + 1] - indptr[i]
                    for j in range(indptr[i], indptr[i + 1]):
                        width += not then[next_state[j]]
                        then[next_state[j]] = True
            if 2 * width > S:
                return -1, -1
        now, then = then, now
        begin[h + 1] = fill
    return rows, entries


@kernel
def renumber_rows(model: Model, row_lsa: Ints, begin: Ints, states: Ints, small: Model) -> None:
    """Copy the rows in use to ``small``, once per step, with next states by their new number."""
    L, S, A = row_lsa.shape
    indptr, first_row_h, new_row_hsa = model.indptr, small.first_row_l, small.row_lsa
    H = begin.size - 1
    number_s = np.zeros(S, np.int64)
    new_row = np.full(indptr.size - 1, -1, np.int64)
    rows, fill = 0, 0
    small.indptr[0] = 0
    new_row_hsa[:] = -1
    for h in range(H):
        first_row_h[h] = rows
        if h + 1 < H:
            for k in range(begin[h + 1], begin[h + 2]):
                number_s[states[k]] = k - begin[h + 1]
        else:
            number_s[:] = 0
        for k in range(begin[h], begin[h + 1]):
            for a in range(A):
                i = row_lsa[layer_of(L, h), states[k], a]
                if i < 0:
                    continue
                if new_row[i] < first_row_h[h]:
                    new_row[i] = rows
                    for j in range(indptr[i], indptr[i + 1]):
                        small.next_state[fill] = number_s[model.next_state[j]]
                        small.probability[fill] = model.probability[j]
                        fill += 1
                    rows += 1
                    small.indptr[rows] = fill
                new_row_hsa[h, k - begin[h], a] = new_row[i]
    first_row_h[H] = rows
