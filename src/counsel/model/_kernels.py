"""Compiled loops that sort, sum and check transition rows, and compute lifts and advantages."""

import numpy as np

from counsel._arrays import Bools, Floats, Ints
from counsel._jit import inlined, kernel

GOOD, BAD_NUMBER, BAD_SUM = 0, 1, 2
"""Results of ``tidy_rows``: sound rows, an invalid probability, a row that does not sum to 1."""


@inlined
def layer_of(layers: int, h: int) -> int:
    """Return the layer of step ``h``."""
    return h if layers > 1 else 0


@inlined
def cost_of(cost_sa: Floats, s: int, a: int) -> float:
    """Return the cost of a piece of advice from a table with one row, or one per state."""
    cost: float = cost_sa[layer_of(cost_sa.shape[0], s), a]
    return cost


@inlined
def first_at_least(sorted_n: Ints, number: int) -> int:
    """Return the place of the first of sorted numbers that is ``number`` or more, or their count.

    A plain loop: Numba takes over a second to compile ``np.searchsorted`` into a kernel.
    """
    low, high = 0, sorted_n.size
    while low < high:
        middle = (low + high) >> 1
        if sorted_n[middle] < number:
            low = middle + 1
        else:
            high = middle
    return low


Keys = Ints | Floats

RUN = 64
"""Length of the runs that are sorted by insertion; longer rows are merged from runs."""


@kernel
def sort_run(index: Keys, data: Keys, begin: int, end: int) -> None:
    """Sort a short run by next state, in place and stably."""
    for i in range(begin + 1, end):
        key, value, j = index[i], data[i], i
        while j > begin and index[j - 1] > key:
            index[j], data[j] = index[j - 1], data[j - 1]
            j -= 1
        index[j], data[j] = key, value


@kernel
def sort_row(index: Keys, data: Keys, begin: int, end: int) -> None:
    """Sort one row by next state, in place and stably.

    Plain loops: NumPy's argsort and fancy indexing take five seconds to compile.
    """
    for start in range(begin, end, RUN):
        sort_run(index, data, start, min(start + RUN, end))
    width = RUN
    if end - begin <= width:
        return
    left_index, left_data = np.empty(end - begin, index.dtype), np.empty(end - begin, data.dtype)
    while width < end - begin:
        for start in range(begin, end - width, 2 * width):
            middle, stop = start + width, min(start + 2 * width, end)
            for i in range(width):
                left_index[i], left_data[i] = index[start + i], data[start + i]
            i, j, fill = 0, middle, start
            while i < width:
                if j < stop and index[j] < left_index[i]:
                    index[fill], data[fill] = index[j], data[j]
                    j += 1
                else:
                    index[fill], data[fill] = left_index[i], left_data[i]
                    i += 1
                fill += 1
        width *= 2


@kernel
def tidy_rows(
    indptr: Ints, index: Ints, data: Floats, tolerance: float, new_indptr: Ints
) -> tuple[int, int, float]:
    """Sort every row, sum repeated next states and drop zeros, in place; fill ``new_indptr``.

    Returns GOOD, or the fault with its entry or row and the faulty number. An empty row is
    accepted: it may belong to an action that is not allowed.
    """
    fill = 0
    new_indptr[0] = 0
    for row in range(indptr.size - 1):
        begin, end = indptr[row], indptr[row + 1]
        for i in range(begin, end):
            if not (data[i] >= 0.0 and data[i] < np.inf):
                return BAD_NUMBER, i, data[i]
        sort_row(index, data, begin, end)
        total, start = 0.0, fill
        for i in range(begin, end):
            if data[i] == 0.0:
                continue
            total += data[i]
            if fill > start and index[fill - 1] == index[i]:
                data[fill - 1] += data[i]
            else:
                index[fill], data[fill] = index[i], data[i]
                fill += 1
        if fill > start and abs(total - 1.0) > tolerance:
            return BAD_SUM, row, total
        new_indptr[row + 1] = fill
    return GOOD, 0, 0.0


@kernel
def same_row(indptr: Ints, index: Ints, bits: Ints, row: int, other: int) -> bool:
    """Return whether two rows are equal to the last bit."""
    shift = indptr[other] - indptr[row]
    if indptr[other + 1] - indptr[row + 1] != shift:
        return False
    for i in range(indptr[row], indptr[row + 1]):
        if index[i] != index[i + shift] or bits[i] != bits[i + shift]:
            return False
    return True


@kernel
def share_rows(indptr: Ints, index: Ints, bits: Ints, row_lp: Ints, first_row_l: Ints) -> Bools:
    """Assign numbers to the distinct rows of each layer by first use; return which to keep.

    Fills ``row_lp[layer, pair]`` with the number of the pair's row, −1 if empty. ``bits`` are the
    bits of the probabilities as integers.
    """
    L, P = row_lp.shape
    size = 16
    while size < 2 * P:
        size *= 2
    mask = np.uint64(size - 1)
    table = np.empty(size, np.int64)
    keep = np.zeros(L * P, np.bool_)
    distinct = 0
    first_row_l[0] = 0
    for layer in range(L):
        table[:] = -1
        for pair in range(P):
            row = layer * P + pair
            if indptr[row] == indptr[row + 1]:
                row_lp[layer, pair] = -1
                continue
            code = np.uint64(1469598103934665603)
            for i in range(indptr[row], indptr[row + 1]):
                code = (code ^ np.uint64(index[i])) * np.uint64(1099511628211)
                code = (code ^ np.uint64(bits[i])) * np.uint64(1099511628211)
                code ^= code >> np.uint64(29)
            slot = code & mask
            while table[slot] >= 0 and not same_row(indptr, index, bits, table[slot], row):
                slot = (slot + np.uint64(1)) & mask
            if table[slot] < 0:
                table[slot] = row
                row_lp[layer, pair] = distinct
                keep[row] = True
                distinct += 1
            else:
                row_lp[layer, pair] = row_lp[layer, table[slot] - layer * P]
        first_row_l[layer + 1] = distinct
    return keep


@kernel
def keep_rows(keep: Bools, indptr: Ints, index: Ints, data: Floats, new_indptr: Ints) -> None:
    """Move the kept rows to the front, in place; fill ``new_indptr``."""
    fill, rows = 0, 0
    new_indptr[0] = 0
    for row in range(keep.size):
        if not keep[row]:
            continue
        for i in range(indptr[row], indptr[row + 1]):
            index[fill], data[fill] = index[i], data[i]
            fill += 1
        rows += 1
        new_indptr[rows] = fill


@kernel
def check_rows(
    indptr: Ints, index: Ints, data: Floats, n_states: int, tolerance: float
) -> tuple[int, float]:
    """Return the first stored row that is not a sorted distribution over states, or −1."""
    for row in range(indptr.size - 1):
        total, before = 0.0, -1
        for i in range(indptr[row], indptr[row + 1]):
            if not (data[i] > 0.0 and index[i] > before and index[i] < n_states):
                return row, np.nan
            total += data[i]
            before = index[i]
        if abs(total - 1.0) > tolerance:
            return row, total
    return -1, 0.0


@inlined
def others(policy_lsa: Floats, layer: int, s: int, a: int) -> float:
    """Return Σ_{b≠a} π(b), the probability of any other action."""
    total = 0.0
    for b in range(policy_lsa.shape[2]):
        if b != a:
            total += policy_lsa[layer, s, b]
    return total


@kernel
def sum_others(policy_lsa: Floats, others_lsa: Floats) -> None:
    """Fill Σ_{b≠a} π(b)."""
    L, S, A = policy_lsa.shape
    for layer in range(L):
        for s in range(S):
            for a in range(A):
                others_lsa[layer, s, a] = others(policy_lsa, layer, s, a)


@kernel
def lifts(policy_lsa: Floats, adherence_lsa: Floats, lift_lsa: Floats) -> None:
    """Fill lift = (θ − π) / Σ_{b≠a} π(b), and 0 where the person takes ``a`` for certain.

    The denominator is the sum over the other actions, not 1 − π: for a person who is almost
    certain, 1 − π has lost its digits. At θ = 1 the lift is exactly 1.
    """
    L, S, A = lift_lsa.shape
    for layer in range(L):
        p, t = layer_of(policy_lsa.shape[0], layer), layer_of(adherence_lsa.shape[0], layer)
        for s in range(S):
            for a in range(A):
                rest, theta = others(policy_lsa, p, s, a), adherence_lsa[t, s, a]
                lift = 0.0
                if rest > 0.0:
                    lift = 1.0 if theta == 1.0 else (theta - policy_lsa[p, s, a]) / rest
                lift_lsa[layer, s, a] = min(lift, 1.0)


@kernel
def fill_advantages(own_na: Floats, values_na: Floats, advantage_na: Floats) -> None:
    """Fill values(a) − Σ_b π(b) values(b) in each row, as ``human.advantages`` describes it."""
    N, A = values_na.shape
    for n in range(N):
        alone = 0.0
        for b in range(A):
            if own_na[n, b] > 0.0:
                alone += own_na[n, b] * values_na[n, b]
        for a in range(A):
            if alone == -np.inf:
                advantage_na[n, a] = -np.inf if values_na[n, a] == -np.inf else np.inf
            elif own_na[n, a] <= 0.5:
                advantage_na[n, a] = values_na[n, a] - alone
            else:
                total = 0.0
                for b in range(A):
                    if own_na[n, b] > 0.0:
                        total += own_na[n, b] * (values_na[n, a] - values_na[n, b])
                advantage_na[n, a] = total
