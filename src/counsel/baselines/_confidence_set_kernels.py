"""Compiled intervals of single transition probabilities, and planning over all worlds within them.

Rewards lie in [0, 1] here: units are changed outside. Kernels trust their input.
"""

import numpy as np

from counsel._arrays import Floats, Ints
from counsel._jit import as_int64, inlined, kernel
from counsel.baselines._optimism_kernels import EmpiricalMDP, fixed_value
from counsel.learning._rfe_kernels import pick_top
from counsel.model._kernels import layer_of, sort_row


@inlined
def interval(p: float, n: float, log: float) -> tuple[float, float]:
    """Return p̂ ± min{√(ℓ / 2n), √(2 p̂ (1 − p̂) ℓ / n) + 7 ℓ / (3 (n − 1))} within [0, 1]."""
    if n < 1.0:
        return 0.0, 1.0
    width = np.sqrt(log / (2.0 * n))
    if n > 1.0:
        width = min(width, np.sqrt(2.0 * p * (1.0 - p) * log / n) + 7.0 * log / (3.0 * (n - 1.0)))
    return max(0.0, p - width), min(1.0, p + width)


@inlined
def narrow_interval(p: float, n: float, log: float) -> tuple[float, float]:
    """Return the interval that also has |√(q (1 − q)) − √(p̂ (1 − p̂))| ≤ √(2 ℓ / (n − 1)).

    Where that leaves two pieces, the interval spans both.
    """
    low, high = interval(p, n, log)
    if n <= 1.0:
        return low, high
    spread, width = np.sqrt(p * (1.0 - p)), np.sqrt(2.0 * log / (n - 1.0))
    most, least = spread + width, spread - width
    if most < 0.5:
        root = np.sqrt(1.0 - 4.0 * most * most)
        left, right = 0.5 * (1.0 - root), 0.5 * (1.0 + root)
        if p <= left and high < right:
            high = min(high, left)
        if p >= right and low > left:
            low = max(low, right)
    if least > 0.0:
        root = np.sqrt(max(1.0 - 4.0 * least * least, 0.0))
        low, high = max(low, 0.5 * (1.0 - root)), min(high, 0.5 * (1.0 + root))
    return min(low, p), max(high, p)


@kernel
def fill_intervals(p: Floats, n: Floats, log: float, low: Floats, high: Floats) -> None:
    """Fill the interval of every entry."""
    for i in range(p.size):
        low[i], high[i] = interval(p[i], n[i], log)


@kernel
def best_plausible(
    model: EmpiricalMDP,
    log: float,
    h: int,
    s: int,
    b: int,
    value_s: Floats,
    order: Ints,
    mark_s2: Floats,
) -> float:
    """Return max Σ_t p(t) value(t) over all p in the intervals.

    Everything starts at its lower end; what is left goes to the best states, ``order``, up to their
    upper ends. ``mark_s2`` is working space: −1 where nothing is noted, and so left.
    """
    chains = model.chains
    n = float(chains.visits_hsx[h, s, b])
    left, total, j = 1.0, 0.0, chains.head_hsx[h, s, b]
    while j >= 0:
        t = chains.links[j, 0]
        low, high = narrow_interval(chains.links[j, 1] / n, n, log)
        mark_s2[t, 0], mark_s2[t, 1] = low, high
        left -= low
        total += low * value_s[t]
        j = chains.links[j, 2]
    _, new = narrow_interval(0.0, n, log)
    for t in order:
        room = new if mark_s2[t, 0] < 0.0 else mark_s2[t, 1] - mark_s2[t, 0]
        more = min(room, left)
        total += more * value_s[t]
        left -= more
        if left <= 0.0:
            break
    j = chains.head_hsx[h, s, b]
    while j >= 0:
        mark_s2[chains.links[j, 0]] = -1.0
        j = chains.links[j, 2]
    return total


@kernel
def sort_down(value_s: Floats, states: Ints, key: Floats, place: Ints) -> Ints:
    """Return states by falling value, equals in their order; the rest is working space."""
    n = states.size
    for i in range(n):
        key[i], place[i] = -value_s[states[i]], states[i]
    sort_row(key, place, as_int64(0), n)
    return place[:n]


@kernel
def plan_extended(
    model: EmpiricalMDP,
    log: float,
    indptr: Ints,
    follows: Ints,
    tie_hs: Floats,
    advice_hs: Ints,
    V_hs: Floats,
) -> None:
    """Fill the best advice and its value in the best world within all intervals.

    States ``follows[indptr[s]]`` up to ``indptr[s + 1]`` can follow s; where ``indptr`` is empty,
    all can.
    """
    H, S, B = model.chains.visits_hsx.shape
    value_b, mark_s2 = np.empty(B), np.full((S, 2), -1.0)
    V_hs[H] = 0.0
    everything, key, place = np.arange(S), np.empty(S), np.empty(S, np.int64)
    order: Ints = place[:0]
    for h in range(H - 1, -1, -1):
        l_open, l_pay = layer_of(model.open_lsb.shape[0], h), layer_of(model.reward_lsb.shape[0], h)
        if indptr.size == 0:
            order = sort_down(V_hs[h + 1], everything, key, place)
        for s in range(S):
            worth = fixed_value(model, h, s, H)
            if worth == worth:
                V_hs[h, s], advice_hs[h, s] = worth, B - 1
                continue
            if indptr.size > 0:
                mine = follows[indptr[s] : indptr[s + 1]]
                order = sort_down(V_hs[h + 1], mine, key, place)
            for b in range(B):
                value_b[b] = -np.inf
                if model.open_lsb[l_open, s, b]:
                    onward = best_plausible(model, log, h, s, b, V_hs[h + 1], order, mark_s2)
                    value_b[b] = model.reward_lsb[l_pay, s, b] + onward
            b = pick_top(value_b, tie_hs[h, s])
            advice_hs[h, s], V_hs[h, s] = b, value_b[b]
