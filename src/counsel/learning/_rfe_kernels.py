"""Compiled loops of reward-free exploration.

A *row* is a step, a state and an advice (or silence): number (h·S + s)·B + b with B = A + 1. What
was seen to follow rows is kept sorted: row ``row[i]`` has entries ``indptr[i]`` up to
``indptr[i + 1]`` of ``next_state`` and ``times``; rows that were never seen are not there.
"""

from typing import NamedTuple

import numpy as np

from counsel._arrays import Bools, Floats, Ints
from counsel._jit import inlined, kernel
from counsel.model._kernels import layer_of
from counsel.simulate._episode_kernels import Scene, draw_action, draw_row, draw_start

UNSEEN = 1e12
"""How uncertain a pair is that was never seen: more than anything that was."""


class SortedTransitions(NamedTuple):
    """What was seen to follow each row."""

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


@kernel
def explore(
    scene: Scene,
    u_nw: Floats,
    tie_nh: Floats,
    bonus: tuple[float, float],
    allowed_lsb: Bools,
    ahead_hsb: Floats,
    visits_hsb: Ints,
    actions_hsba: Ints,
    reward_hsb: Floats,
    start_s: Ints,
    key: Ints,
) -> None:
    """Play episodes, always advising where most is uncertain, by live counts.

    The uncertainty of a row is ``bonus[0]`` · φ(n) / n with the visits so far, plus ``ahead_hsb``,
    what lies ahead of it as of the last update. Ties are broken by ``tie_nh``. ``key`` receives
    (row, next state) as row · S + t.
    """
    H, S, B = visits_hsb.shape
    draws = (u_nw.shape[1] - 2) // H
    scale, base = bonus
    value_b = np.empty(B)
    for n in range(u_nw.shape[0]):
        s = draw_start(scene, u_nw[n, 1])
        start_s[s] += 1
        for h in range(H):
            allowed_layer = layer_of(allowed_lsb.shape[0], h)
            for b in range(B):
                visits = visits_hsb[h, s, b]
                value_b[b] = UNSEEN if allowed_lsb[allowed_layer, s, b] else -2.0
                if visits > 0:
                    own = scale * phi(float(visits), base, S) / visits
                    value_b[b] = own + ahead_hsb[h, s, b]
            b = pick_top(value_b, tie_nh[n, h])
            layer = layer_of(scene.person_lsc.shape[0], h)
            a = draw_action(scene.person_lsc, layer, s, b, u_nw[n, 2 + draws * h])
            t = scene.leads_lsa[layer_of(scene.leads_lsa.shape[0], h), s, a]
            if t < 0:
                t = draw_row(scene, -1 - t, u_nw[n, 3 + draws * h])
            visits_hsb[h, s, b] += 1
            actions_hsba[h, s, b, a] += 1
            reward_hsb[h, s, b] += scene.reward_lsa[layer_of(scene.reward_lsa.shape[0], h), s, a]
            key[n * H + h] = ((h * S + s) * B + b) * S + t
            s = t


@kernel
def expect_row(rows: SortedTransitions, i: int, value_s: Floats) -> float:
    """Return Σ_t p̂(t) value(t) of a row."""
    total, value = 0, 0.0
    for j in range(rows.indptr[i], rows.indptr[i + 1]):
        total += rows.times[j]
        value += rows.times[j] * value_s[rows.next_state[j]]
    return float(value / total)


@kernel
def look_ahead(
    rows: SortedTransitions,
    visits_hsb: Ints,
    bonus: tuple[float, float],
    allowed_lsb: Bools,
    ended_hs: Bools,
    ahead_hsb: Floats,
) -> None:
    """Compute what lies ahead of each row: (1 + 1/H) Σ p̂ max W of the next step, without a cap.

    W of a row is its own uncertainty plus what lies ahead; of a pair never seen it is ``UNSEEN``.
    Where an episode has ended nothing is uncertain.
    """
    H, S, B = visits_hsb.shape
    scale, base = bonus
    most_hs = np.full((H + 1, S), UNSEEN)
    most_hs[H] = 0.0
    i = rows.row.size - 1
    for h in range(H - 1, -1, -1):
        first = h * S * B
        while i >= 0 and rows.row[i] >= first:
            s, b = divmod(rows.row[i] - first, B)
            ahead_hsb[h, s, b] = (1.0 + 1.0 / H) * expect_row(rows, i, most_hs[h + 1])
            i -= 1
        for s in range(S):
            top, whole = 0.0, True
            for b in range(B):
                n = visits_hsb[h, s, b]
                if n > 0:
                    top = max(top, scale * phi(float(n), base, S) / n + ahead_hsb[h, s, b])
                elif allowed_lsb[layer_of(allowed_lsb.shape[0], h), s, b]:
                    whole = False
                    break
            if ended_hs[h, s]:
                most_hs[h, s] = 0.0
            elif whole:
                most_hs[h, s] = top


@kernel
def clipped_uncertainty(
    rows: SortedTransitions,
    visits_hsb: Ints,
    bonus: tuple[float, float],
    allowed_lsb: Bools,
    ended_hs: Bools,
    most_hs: Floats,
) -> None:
    """Fill max_b W [h, s], W = min(H, 16 H² φ / n + (1 + 1/H) Σ p̂ max W) (eq. 4).

    Where nothing was seen p̂ is uniform, so W is H: the cap.
    """
    H, S, B = visits_hsb.shape
    scale, base = bonus
    W_hsb = np.full((H, S, B), float(H))
    most_hs[H] = 0.0
    i = rows.row.size - 1
    for h in range(H - 1, -1, -1):
        first = h * S * B
        while i >= 0 and rows.row[i] >= first:
            s, b = divmod(rows.row[i] - first, B)
            n = visits_hsb[h, s, b]
            w = scale * phi(float(n), base, S) / n
            w += (1.0 + 1.0 / H) * expect_row(rows, i, most_hs[h + 1])
            W_hsb[h, s, b] = min(float(H), w)
            i -= 1
        for s in range(S):
            top = 0.0
            for b in range(B):
                if allowed_lsb[layer_of(allowed_lsb.shape[0], h), s, b]:
                    top = max(top, W_hsb[h, s, b])
            most_hs[h, s] = 0.0 if ended_hs[h, s] else top


@kernel
def mark_ends(step_n: Ints, state_n: Ints, ended_hs: Bools) -> None:
    """Mark that nothing more can happen in a state from a step on."""
    for n in range(step_n.size):
        for h in range(step_n[n], ended_hs.shape[0]):
            ended_hs[h, state_n[n]] = True


@kernel
def plan_tried_advice(
    rows: SortedTransitions,
    visits_hsb: Ints,
    actions_hsba: Ints,
    reward_lsa: Floats,
    reward_hsb: Floats,
    ended_hs: Bools,
    least: float,
    penalty: float,
    advice_hs: Ints,
) -> None:
    """Plan on what was seen: advice that was tried is compared where silence was tried too.

    Elsewhere silence, worth what followed on average. A state that was never seen pays ``least`` at
    every step, unless nothing more can happen there.

    The reward of a row is the average of ``reward_lsa`` over the actions seen there, or where that
    is empty (rewards are not known) of what was paid, ``reward_hsb``. Ties go to silence, then
    to the lowest advice.
    """
    H, S, B = visits_hsb.shape
    V_hs = np.zeros((H + 1, S))
    Q_sb = np.empty((S, B))
    i = rows.row.size - 1
    for h in range(H - 1, -1, -1):
        first = h * S * B
        while i >= 0 and rows.row[i] >= first:
            s, b = divmod(rows.row[i] - first, B)
            earned = reward_hsb[h, s, b]
            if reward_lsa.size > 0:
                earned = 0.0
                for a in range(actions_hsba.shape[3]):
                    earned += (
                        actions_hsba[h, s, b, a]
                        * reward_lsa[layer_of(reward_lsa.shape[0], h), s, a]
                    )
            Q_sb[s, b] = earned / visits_hsb[h, s, b] + expect_row(rows, i, V_hs[h + 1])
            i -= 1
        for s in range(S):
            best, total, times = B - 1, 0.0, 0
            for b in range(B):
                if visits_hsb[h, s, b] > 0:
                    times += visits_hsb[h, s, b]
                    total += visits_hsb[h, s, b] * Q_sb[s, b]
            if times == 0:
                V_hs[h, s] = 0.0 if ended_hs[h, s] else (H - h) * least
            elif visits_hsb[h, s, B - 1] == 0:
                V_hs[h, s] = total / times
            else:
                top = Q_sb[s, B - 1]
                for b in range(B - 1):
                    if visits_hsb[h, s, b] > 0:
                        value = Q_sb[s, b] - penalty
                        if value > top + 1e-12 * (1.0 + abs(top)):
                            best, top = b, value
                V_hs[h, s] = top
            advice_hs[h, s] = best
