"""Compiled loops that find the cells that can occur and number them anew."""

import numpy as np

from counsel._arrays import Bools, Floats, Ints
from counsel._jit import kernel


@kernel
def reach_forward(
    row_lsa: Ints,
    policy_lsa: Floats,
    speak_lsa: Bools,
    indptr: Ints,
    next_state: Ints,
    start_s: Floats,
    begin: Ints,
    states: Ints,
) -> bool:
    """List the states that can occur at each step, whatever is advised.

    Those of step h go to ``states[begin[h] : begin[h + 1]]``, in order. Returns False when there
    are more cells than ``states`` has room for.
    """
    S, A = start_s.size, policy_lsa.shape[2]
    H = begin.size - 1
    now, then = np.zeros(S, np.bool_), np.zeros(S, np.bool_)
    for s in range(S):
        now[s] = start_s[s] > 0.0
    fill = 0
    begin[0] = 0
    for h in range(H):
        row_sa = row_lsa[h if row_lsa.shape[0] > 1 else 0]
        policy_sa = policy_lsa[h if policy_lsa.shape[0] > 1 else 0]
        speak_sa = speak_lsa[h if speak_lsa.shape[0] > 1 else 0]
        then[:] = False
        for s in range(S):
            if not now[s]:
                continue
            if fill == states.size:
                return False
            states[fill] = s
            fill += 1
            for a in range(A):
                i = row_sa[s, a]
                if i >= 0 and (policy_sa[s, a] > 0.0 or speak_sa[s, a]):
                    for j in range(indptr[i], indptr[i + 1]):
                        then[next_state[j]] = True
        now, then = then, now
        begin[h + 1] = fill
    return True


@kernel
def renumber_rows(
    row_lsa: Ints,
    policy_lsa: Floats,
    speak_lsa: Bools,
    indptr: Ints,
    next_state: Ints,
    probability: Floats,
    begin: Ints,
    states: Ints,
    new_row_hsa: Ints,
    first_row_h: Ints,
    new_indptr: Ints,
    new_next_state: Ints,
    new_probability: Floats,
) -> None:
    """Copy the rows that can be used, each once a step, with next states by their new number."""
    H, A, S = begin.size - 1, new_row_hsa.shape[2], policy_lsa.shape[1]
    number_s = np.zeros(S, np.int64)
    new_row = np.full(indptr.size - 1, -1, np.int64)
    rows, fill = 0, 0
    new_indptr[0] = 0
    new_row_hsa[:] = -1
    for h in range(H):
        old_sa = row_lsa[h if row_lsa.shape[0] > 1 else 0]
        policy_sa = policy_lsa[h if policy_lsa.shape[0] > 1 else 0]
        speak_sa = speak_lsa[h if speak_lsa.shape[0] > 1 else 0]
        first_row_h[h] = rows
        if h + 1 < H:
            for k in range(begin[h + 1], begin[h + 2]):
                number_s[states[k]] = k - begin[h + 1]
        else:
            number_s[:] = 0
        for k in range(begin[h], begin[h + 1]):
            s = states[k]
            for a in range(A):
                i = old_sa[s, a]
                if i < 0 or not (policy_sa[s, a] > 0.0 or speak_sa[s, a]):
                    continue
                if new_row[i] < first_row_h[h]:
                    new_row[i] = rows
                    for j in range(indptr[i], indptr[i + 1]):
                        new_next_state[fill] = number_s[next_state[j]]
                        new_probability[fill] = probability[j]
                        fill += 1
                    rows += 1
                    new_indptr[rows] = fill
                new_row_hsa[h, k - begin[h], a] = new_row[i]
    first_row_h[H] = rows


@kernel
def count_rows(
    row_lsa: Ints, policy_lsa: Floats, speak_lsa: Bools, indptr: Ints, begin: Ints, states: Ints
) -> tuple[int, int]:
    """Return how many rows and entries ``renumber_rows`` will copy."""
    H, A = begin.size - 1, policy_lsa.shape[2]
    seen = np.full(indptr.size - 1, -1, np.int64)
    rows, entries = 0, 0
    for h in range(H):
        old_sa = row_lsa[h if row_lsa.shape[0] > 1 else 0]
        policy_sa = policy_lsa[h if policy_lsa.shape[0] > 1 else 0]
        speak_sa = speak_lsa[h if speak_lsa.shape[0] > 1 else 0]
        for k in range(begin[h], begin[h + 1]):
            s = states[k]
            for a in range(A):
                i = old_sa[s, a]
                if i >= 0 and seen[i] < h and (policy_sa[s, a] > 0.0 or speak_sa[s, a]):
                    seen[i] = h
                    rows += 1
                    entries += indptr[i + 1] - indptr[i]
    return rows, entries
