"""Compiled forward pass: the occupancy of each state under a policy, and its reward.

Planes are those of ``_level_kernels.py``: the budget left, and the level of the person's memory. So
are the columns of advice, of which there may be more than actions.

Kernels trust their input: ``counsel.model`` has checked it.
"""

import numpy as np

from counsel._arrays import Floats, Ints
from counsel._jit import kernel
from counsel.model._kernels import cost_of, first_at_least, layer_of
from counsel.planning._backward_kernels import Model
from counsel.planning._level_kernels import Levels


@kernel
def push_cell(
    model: Model,
    h: int,
    s: int,
    advice: tuple[int, int],
    mass: float,
    mass_2r: tuple[Floats, Floats],
    offset: int,
) -> float:
    """Send ``mass`` from one cell to the rows of its actions; return the expected reward.

    ``advice`` is the advised action and its place in the table of lifts. The first row of masses
    receives the action that matches the advice, the second all others.
    """
    (b, place), (matched_r, other_r) = advice, mass_2r
    A = model.policy_lsa.shape[2]
    row_a = model.row_lsa[layer_of(model.row_lsa.shape[0], h), s]
    reward_a = model.reward_lsa[layer_of(model.reward_lsa.shape[0], h), s]
    own_a = model.policy_lsa[layer_of(model.policy_lsa.shape[0], h), s]
    lift, others = 0.0, 0.0
    if b < A:
        lift = model.lift_lsa[layer_of(model.lift_lsa.shape[0], h), s, place]
        for a in range(A):
            if a != b:
                others += own_a[a]
    earned = 0.0
    for a in range(A):
        # θ = π + lift · Σ_{b≠a} π(b); λ + (1 − λ) π would lose its digits where λ is large.
        part = own_a[a] + lift * others if a == b else (1.0 - lift) * own_a[a]
        if part > 0.0:
            if a == b:
                matched_r[row_a[a] - offset] += mass * part
            else:
                other_r[row_a[a] - offset] += mass * part
            earned += mass * part * reward_a[a]
    return earned


@kernel
def walk_forward(
    model: Model,
    levels: Levels,
    plane_p: Ints,
    advice_phs: Ints,
    random: tuple[Ints, Ints, Ints, Floats],
    x_jps: Floats,
    mass_er: Floats,
    results: tuple[Floats, Floats, Floats, Floats, Floats],
) -> None:
    """Compute the distribution over (budget left, level, state) at all steps.

    ``x_jps[0]`` contains the start; on plane p the advice is that of plane ``plane_p[p]`` of the
    policy, and ``random`` are the fields of its ``RandomCells``. Adds to the occupancy of levels
    and states, rewards, advice rate, costs and pieces in ``results``. ``mass_er`` is working space
    of zeros for each budget left and row of levels.
    """
    occupancy_hms, reward_h, rate_h, cost_h, pieces_sa = results
    random_cell, random_indptr, random_advice, random_probability = random
    H, S = advice_phs.shape[1:]
    P, M, D = x_jps.shape[1], levels.after_cm.shape[1], levels.indptr.size - 1
    A, silence = model.policy_lsa.shape[2], model.pull_lsa.shape[2]
    cursor_p = np.zeros(P, np.int64)
    if random_cell.size > 0:
        for p in range(P):
            cursor_p[p] = first_at_least(random_cell, plane_p[p] * H * S)
    for h in range(H):
        now_ps, then_ps = x_jps[h % 2], x_jps[(h + 1) % 2]
        then_ps[:] = 0.0
        n = layer_of(model.first_row_l.size - 1, h)
        row, row_end = model.first_row_l[n], model.first_row_l[n + 1]
        cost_sa = model.cost_lsa[layer_of(model.cost_lsa.shape[0], h)]
        for p in range(P):
            k, m = p // M, p % M
            cursor, first = cursor_p[p], (plane_p[p] * H + h) * S
            for s in range(S):
                x = now_ps[p, s]
                if x == 0.0:
                    continue
                while cursor < random_cell.size and random_cell[cursor] < first + s:
                    cursor += 1
                occupancy_hms[h, m, s] += x
                is_random = cursor < random_cell.size and random_cell[cursor] == first + s
                begin = random_indptr[cursor] if is_random else 0
                end = random_indptr[cursor + 1] if is_random else 1
                for i in range(begin, end):
                    share, advice = x, advice_phs[plane_p[p], h, s]
                    if is_random:
                        share, advice = x * random_probability[i], random_advice[i]
                    matched = other = k * D + levels.after_cm[0, m]
                    action = A
                    if advice < silence:
                        action = advice if advice < A else advice - A
                        cost = cost_of(cost_sa, s, action)
                        then_k = max(k - int(cost), 0) if levels.is_hard else k
                        matched = then_k * D + levels.after_cm[1, m]
                        other = then_k * D + levels.after_cm[2, m]
                        rate_h[h] += share
                        cost_h[h] += share * cost
                        pieces_sa[s, advice] += share
                    said = (action, m * silence + advice)
                    masses = (mass_er[matched], mass_er[other])
                    reward_h[h] += push_cell(model, h, s, said, share, masses, row)
            cursor_p[p] = cursor
        for e in range(mass_er.shape[0]):
            k, d = e // D, e % D
            for i in range(row, row_end):
                mass = mass_er[e, i - row]
                if mass > 0.0:
                    mass_er[e, i - row] = 0.0
                    for n in range(levels.indptr[d], levels.indptr[d + 1]):
                        then_s, part = then_ps[k * M + levels.level[n]], mass * levels.weight[n]
                        for j in range(model.indptr[i], model.indptr[i + 1]):
                            then_s[model.next_state[j]] += part * model.probability[j]
