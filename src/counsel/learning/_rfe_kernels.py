"""Compiled loops of reward-free exploration.

A *row* is a step, a state and an advice (or silence): number (h·S + s)·B + b with B = A + 1. What
was seen to follow rows is kept sorted: row ``row[i]`` has entries ``indptr[i]`` up to
``indptr[i + 1]`` of ``next_state`` and ``times``; rows that were never seen are not there. A *cell*
is a step and a state: number h·S + s. Most cells are never seen, so loops visit those that were.
"""

from typing import NamedTuple

import numpy as np

from counsel._arrays import Bools, Floats, Ints
from counsel._jit import as_int64, inlined, kernel
from counsel.model._kernels import cost_of, first_at_least, layer_of
from counsel.simulate._episode_kernels import Scene, draw_action, draw_reward, draw_row, draw_start

UNSEEN = 1e12
"""How uncertain a pair is that was never seen: more than anything that was."""


class SortedTransitions(NamedTuple):
    """What was seen to follow each row, and the cells that were seen, in order."""

    cell: Ints
    row: Ints
    indptr: Ints
    next_state: Ints
    times: Ints


@inlined
def phi(n: float, base: float, S: int) -> float:
    """φ(n) = base + S log(8 e (n + 1)); the base of RFE is 6 log(4 e S B H / (ε δ))."""
    return float(base + S * (np.log(8.0 * (n + 1.0)) + 1.0))


@kernel
def pick_top(value_b: Floats, u: float) -> int:
    """Return the place of the largest value, drawn evenly by u where there are several."""
    top, tied = -np.inf, 0
    for b in range(value_b.size):
        if value_b[b] > top:
            top, tied = value_b[b], 1
        elif value_b[b] == top:
            tied += 1
    pick = int(u * tied)
    for b in range(value_b.size):
        if value_b[b] == top:
            if pick == 0:
                return b
            pick -= 1
    return 0


class RowCounts(NamedTuple):
    """What was counted of each row, what lies ahead of it, and what is known of it.

    The uncertainty of a row that was visited n times is ``scale`` · φ(n) / n, with ``base`` in φ,
    plus ``ahead_hsb``. Where ``ended_hs`` is true nothing is uncertain any more.
    """

    visits_hsb: Ints
    actions_hsba: Ints
    reward_hsb: Floats
    ahead_hsb: Floats
    allowed_lsb: Bools
    ended_hs: Bools
    scale: float
    base: float


@inlined
def row_uncertainty(n: int, scale: float, base: float, S: int) -> float:
    """Return c 16 H² φ(n) / n of a row that was seen n times."""
    return float(scale * phi(float(n), base, S) / n)


@kernel
def explore(
    scene: Scene, u_nw: Floats, tie_nh: Floats, counts: RowCounts, start_s: Ints, key: Ints
) -> int:
    """Play episodes, always advising where most is uncertain, by live counts.

    What lies ahead is as of the last update. Ties are broken by ``tie_nh``. An episode ends where
    it is over, which ``counts.ended_hs`` receives. ``key`` receives (row, next state) as row · S +
    t; return their number.
    """
    H, S, B = counts.visits_hsb.shape
    draws = (u_nw.shape[1] - 2) // H
    value_b = np.empty(B)
    used = 0
    for n in range(u_nw.shape[0]):
        s = draw_start(scene, u_nw[n, 1])
        start_s[s] += 1
        h = as_int64(0)
        while h < H and not scene.over_ls[layer_of(scene.over_ls.shape[0], h), s]:
            allowed_layer = layer_of(counts.allowed_lsb.shape[0], h)
            for b in range(B):
                value_b[b] = UNSEEN if counts.allowed_lsb[allowed_layer, s, b] else -2.0
                times = counts.visits_hsb[h, s, b]
                if times > 0:
                    value_b[b] = row_uncertainty(times, counts.scale, counts.base, S)
                    value_b[b] += counts.ahead_hsb[h, s, b]
            b = pick_top(value_b, tie_nh[n, h])
            layer = layer_of(scene.person_lsc.shape[0], h)
            a = draw_action(scene.person_lsc, layer, s, b, u_nw[n, 2 + draws * h])
            t = as_int64(scene.leads_lsa[layer_of(scene.leads_lsa.shape[0], h), s, a])
            if t < 0:
                t = draw_row(scene, -1 - t, u_nw[n, 3 + draws * h])
            counts.visits_hsb[h, s, b] += 1
            counts.actions_hsba[h, s, b, a] += 1
            paid = scene.reward_lsa[layer_of(scene.reward_lsa.shape[0], h), s, a]
            if scene.ends.size:
                paid = draw_reward(scene.ends, paid, u_nw[n, 1 + draws * (h + 1)])
            counts.reward_hsb[h, s, b] += paid
            key[used] = ((h * S + s) * B + b) * S + t
            used += 1
            h, s = h + 1, t
        if scene.over_ls[layer_of(scene.over_ls.shape[0], min(h, H - 1)), s]:
            for later in range(h, H + 1):
                counts.ended_hs[later, s] = True
    return used


@kernel
def count_known(key: Ints, times: Ints, batch: Ints) -> int:
    """Count the transitions of a batch that are among the sorted keys.

    All the others are moved to the front of the batch; return their number.
    """
    unknown = 0
    for i in range(batch.size):
        j = first_at_least(key, batch[i])
        if j < key.size and key[j] == batch[i]:
            times[j] += 1
        else:
            batch[unknown] = batch[i]
            unknown += 1
    return unknown


@kernel
def merge_keys(key: Ints, times: Ints, new: Ints) -> tuple[Ints, Ints]:
    """Return sorted keys and how often each came, with new keys, sorted too, that may repeat."""
    merged, counts = (
        np.empty(key.size + new.size, np.int64),
        np.empty(key.size + new.size, np.int64),
    )
    i, j, n = 0, 0, 0
    while i < key.size or j < new.size:
        if j == new.size or (i < key.size and key[i] < new[j]):
            merged[n], counts[n] = key[i], times[i]
            i += 1
        else:
            merged[n], counts[n] = new[j], 0
            while j < new.size and new[j] == merged[n]:
                counts[n] += 1
                j += 1
        n += 1
    return merged[:n].copy(), counts[:n].copy()


@kernel
def lay_out_rows(key: Ints, S: int, B: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Return cells, rows, first entry of each row and next states of sorted keys row · S + t."""
    cell, row = np.empty(key.size, np.int64), np.empty(key.size, np.int64)
    indptr, next_state = np.empty(key.size + 1, np.int64), np.empty(key.size, np.int32)
    m, n = 0, 0
    for j in range(key.size):
        next_state[j] = key[j] % S
        if n == 0 or row[n - 1] != key[j] // S:
            row[n], indptr[n] = key[j] // S, j
            if m == 0 or cell[m - 1] != row[n] // B:
                cell[m] = row[n] // B
                m += 1
            n += 1
    indptr[n] = key.size
    return cell[:m].copy(), row[:n].copy(), indptr[: n + 1].copy(), next_state


@kernel
def expect_step(
    rows: SortedTransitions, i: int, h: int, value_s: Floats, factor: float, out_sb: Floats
) -> int:
    """Fill ``factor`` Σ_t p̂(t) value(t) of each row of a step that was seen.

    Row i is the last row of the step; return that of the step before.
    """
    S, B = out_sb.shape
    first = h * S * B
    while i >= 0 and rows.row[i] >= first:
        s, b = divmod(rows.row[i] - first, B)
        total, value = 0, 0.0
        for j in range(rows.indptr[i], rows.indptr[i + 1]):
            total += rows.times[j]
            value += rows.times[j] * value_s[rows.next_state[j]]
        out_sb[s, b] = factor * (value / total)
        i -= 1
    return i


@kernel
def look_ahead(rows: SortedTransitions, counts: RowCounts) -> None:
    """Compute what lies ahead of each row: (1 + 1/H) Σ p̂ max W of the next step, without a cap.

    W of a row is its own uncertainty plus what lies ahead; of a pair never seen it is ``UNSEEN``.
    """
    H, S, B = counts.visits_hsb.shape
    most_hs = np.zeros((H + 1, S))
    i, j = rows.row.size - 1, rows.cell.size - 1
    for h in range(H - 1, -1, -1):
        layer = layer_of(counts.allowed_lsb.shape[0], h)
        i = expect_step(rows, i, h, most_hs[h + 1], 1.0 + 1.0 / H, counts.ahead_hsb[h])
        for s in range(S):
            if not counts.ended_hs[h, s]:
                most_hs[h, s] = UNSEEN
        while j >= 0 and rows.cell[j] >= h * S:
            s, j = rows.cell[j] - h * S, j - 1
            top, whole = 0.0, True
            for b in range(B):
                times = counts.visits_hsb[h, s, b]
                if times > 0:
                    own = row_uncertainty(times, counts.scale, counts.base, S)
                    top = max(top, own + counts.ahead_hsb[h, s, b])
                elif counts.allowed_lsb[layer, s, b]:
                    whole = False
                    break
            if whole and not counts.ended_hs[h, s]:
                most_hs[h, s] = top


@kernel
def clipped_uncertainty(rows: SortedTransitions, counts: RowCounts, most_hs: Floats) -> None:
    """Fill max_b W [h, s], W = min(H, 16 H² φ / n + (1 + 1/H) Σ p̂ max W) (eq. 4).

    Where nothing was seen p̂ is uniform, so W is H: the cap.
    """
    H, S, B = counts.visits_hsb.shape
    ahead_sb = np.empty((S, B))
    most_hs[H] = 0.0
    i = rows.row.size - 1
    for h in range(H - 1, -1, -1):
        layer = layer_of(counts.allowed_lsb.shape[0], h)
        i = expect_step(rows, i, h, most_hs[h + 1], 1.0 + 1.0 / H, ahead_sb)
        for s in range(S):
            top = 0.0
            for b in range(B):
                if counts.allowed_lsb[layer, s, b]:
                    W, times = float(H), counts.visits_hsb[h, s, b]
                    if times > 0:
                        own = row_uncertainty(times, counts.scale, counts.base, S)
                        W = min(W, own + ahead_sb[s, b])
                    top = max(top, W)
            most_hs[h, s] = 0.0 if counts.ended_hs[h, s] else top


@kernel
def mark_ends(step_n: Ints, state_n: Ints, ended_hs: Bools) -> None:
    """Mark that nothing more can happen in a state from a step on."""
    for n in range(step_n.size):
        for h in range(step_n[n], ended_hs.shape[0]):
            ended_hs[h, state_n[n]] = True


@kernel
def plan_tried_advice(
    rows: SortedTransitions,
    counts: RowCounts,
    reward_lsa: Floats,
    least: float,
    penalty_h: Floats,
    cost_lsa: Floats,
    advice_hs: Ints,
) -> None:
    """Plan on what was seen: advice that was tried is compared where silence was tried too.

    Elsewhere silence, worth what followed on average. A state that was never seen pays ``least`` at
    every step, unless nothing more can happen there.

    The reward of a row is the average of ``reward_lsa`` over the actions seen there, or where that
    is empty (rewards are not known) of what was paid. Ties go to silence, then to the lowest
    advice.
    """
    visits_hsb, A = counts.visits_hsb, counts.actions_hsba.shape[3]
    H, S, B = visits_hsb.shape
    V_hs, Q_sb = np.zeros((H + 1, S)), np.empty((S, B))
    i, j = rows.row.size - 1, rows.cell.size - 1
    for h in range(H - 1, -1, -1):
        layer = layer_of(reward_lsa.shape[0], h)
        penalty = penalty_h[layer_of(penalty_h.size, h)]
        cost_sa = cost_lsa[layer_of(cost_lsa.shape[0], h)]
        i = expect_step(rows, i, h, V_hs[h + 1], 1.0, Q_sb)
        for s in range(S):
            advice_hs[h, s] = B - 1
            V_hs[h, s] = 0.0 if counts.ended_hs[h, s] else (H - h) * least
        while j >= 0 and rows.cell[j] >= h * S:
            s, j = rows.cell[j] - h * S, j - 1
            total, times = 0.0, 0
            for b in range(B):
                times += visits_hsb[h, s, b]
                if visits_hsb[h, s, b] > 0:
                    earned = counts.reward_hsb[h, s, b]
                    if reward_lsa.size > 0:
                        earned = 0.0
                        for a in range(A):
                            earned += counts.actions_hsba[h, s, b, a] * reward_lsa[layer, s, a]
                    Q_sb[s, b] = earned / visits_hsb[h, s, b] + Q_sb[s, b]
                    total += visits_hsb[h, s, b] * Q_sb[s, b]
            if visits_hsb[h, s, B - 1] == 0:
                V_hs[h, s] = total / times
                continue
            top = Q_sb[s, B - 1]
            for b in range(B - 1):
                if visits_hsb[h, s, b] > 0:
                    value = Q_sb[s, b] - penalty * cost_of(cost_sa, s, b)
                    if value > top + 1e-12 * (1.0 + abs(top)):
                        advice_hs[h, s], top = b, value
            V_hs[h, s] = top
