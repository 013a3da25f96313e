"""Compiled forward pass: the occupancy of each state under a policy, and its reward.

Kernels trust their input: ``counsel.model`` has checked it.
"""

import numpy as np

from counsel._arrays import Floats, Ints
from counsel._jit import kernel
from counsel.model._kernels import cost_of, layer_of
from counsel.planning._backward_kernels import Model


@kernel
def push_cell(
    model: Model, h: int, s: int, advice: int, mass: float, mass_r: Floats, offset: int
) -> float:
    """Send ``mass`` from one cell to the rows of its actions; return the expected reward."""
    A = model.policy_lsa.shape[2]
    row_a = model.row_lsa[layer_of(model.row_lsa.shape[0], h), s]
    reward_a = model.reward_lsa[layer_of(model.reward_lsa.shape[0], h), s]
    own_a = model.policy_lsa[layer_of(model.policy_lsa.shape[0], h), s]
    lift, others = 0.0, 0.0
    if advice < A:
        lift = model.lift_lsa[layer_of(model.lift_lsa.shape[0], h), s, advice]
        for a in range(A):
            if a != advice:
                others += own_a[a]
    earned = 0.0
    for a in range(A):
        # θ = π + lift · Σ_{b≠a} π(b); λ + (1 − λ) π would lose its digits where λ is large.
        part = own_a[a] + lift * others if a == advice else (1.0 - lift) * own_a[a]
        if part > 0.0:
            mass_r[row_a[a] - offset] += mass * part
            earned += mass * part * reward_a[a]
    return earned


@kernel
def walk_forward(
    model: Model,
    advice_khs: Ints,
    random: tuple[Ints, Ints, Ints, Floats],
    x_jks: Floats,
    mass_kr: Floats,
    results: tuple[Floats, Floats, Floats, Floats, Floats],
) -> None:
    """Compute the distribution over (pieces left, state) at all steps.

    ``x_jks[0]`` contains the start, ``random`` the fields of ``RandomCells``. Adds to the
    occupancy, rewards, advice rate, costs and pieces in ``results``. Advice of cost c leads from
    plane k to plane k − c; plane 0 is never left.
    """
    occupancy_hs, reward_h, rate_h, cost_h, pieces_sa = results
    random_cell, random_indptr, random_advice, random_probability = random
    K, H, S = advice_khs.shape
    silence = model.policy_lsa.shape[2]
    cursor_k = np.zeros(K, np.int64)
    if random_cell.size > 0:
        for k in range(K):
            cursor_k[k] = np.searchsorted(random_cell, k * H * S)
    for h in range(H):
        now_ks, then_ks = x_jks[h % 2], x_jks[(h + 1) % 2]
        then_ks[:] = 0.0
        n = layer_of(model.first_row_l.size - 1, h)
        row, row_end = model.first_row_l[n], model.first_row_l[n + 1]
        cost_sa = model.cost_lsa[layer_of(model.cost_lsa.shape[0], h)]
        for k in range(K):
            cursor, first = cursor_k[k], (k * H + h) * S
            for s in range(S):
                x = now_ks[k, s]
                if x == 0.0:
                    continue
                while cursor < random_cell.size and random_cell[cursor] < first + s:
                    cursor += 1
                occupancy_hs[h, s] += x
                is_random = cursor < random_cell.size and random_cell[cursor] == first + s
                begin = random_indptr[cursor] if is_random else 0
                end = random_indptr[cursor + 1] if is_random else 1
                for i in range(begin, end):
                    share, advice = x, advice_khs[k, h, s]
                    if is_random:
                        share, advice = x * random_probability[i], random_advice[i]
                    then_k = k
                    if advice < silence:
                        cost = cost_of(cost_sa, s, advice)
                        then_k = max(k - int(cost), 0) if k > 0 else 0
                        rate_h[h] += share
                        cost_h[h] += share * cost
                        pieces_sa[s, advice] += share
                    reward_h[h] += push_cell(model, h, s, advice, share, mass_kr[then_k], row)
            cursor_k[k] = cursor
        for k in range(K):
            for i in range(row, row_end):
                mass = mass_kr[k, i - row]
                if mass > 0.0:
                    mass_kr[k, i - row] = 0.0
                    for j in range(model.indptr[i], model.indptr[i + 1]):
                        then_ks[k, model.next_state[j]] += mass * model.probability[j]
