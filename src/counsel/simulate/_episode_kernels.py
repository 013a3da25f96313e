"""Compiled loops of the simulator.

The episodes of a block advance together step by step, so that their memory accesses overlap. Each
episode has its own row of numbers u, uniform in [0, 1): the first draws the policy, the second the
start; at each step one number draws advice and action, in a world with chance another draws the
next state, for a memory with chance another draws the next level, and where rewards are random the
last number of the step draws the reward. A number that decides twice is stretched: if u fell into
[x, y), the number (u − x) / (y − x) is uniform in [0, 1) again. Kernels trust their input.
"""

from typing import NamedTuple

import numpy as np

from counsel._arrays import Bools, Floats, Ints
from counsel._jit import as_int64, inlined, kernel
from counsel.model._kernels import cost_of, layer_of

BLOCK = 64
"""The number of episodes that advance together; their numbers fit into the fastest cache."""

IDLE = -1.0
"""Replaces the adherence of advice that changes nothing."""


class Scene(NamedTuple):
    """A world and a person to draw from. ``l`` is a layer: one if stationary, else one per step.

    ``person_lsc`` contains π(a | s) of each action, then its θ(s, a) or ``IDLE``, at each level of
    memory. ``leads_lsa`` is
    the only next state, or −1 − i if row i draws it. A row is an alias table: its entries
    ``indptr[i]`` up to ``indptr[i + 1]`` are equally likely, and entry j means ``next_state[j]``
    with probability ``keep[j]``, else ``other[j]``. The last row draws the start. ``cost_lsa`` has
    one row if it is the same in every state. ``ends`` is empty, or the least and the largest reward
    if rewards are one or the other with means ``reward_lsa`` (``model.rewards.bernoulli``).

    ``after_cm`` is the row of levels after silence, a match and a refusal on level m, with entries
    ``level_indptr[d]`` up to ``level_indptr[d + 1]`` of ``level`` and ``weight``. ``first_level``
    is the level at the start, and which number of a step draws the next level (0: none does).
    """

    person_lsc: Floats
    reward_lsa: Floats
    cost_lsa: Floats
    leads_lsa: Ints
    over_ls: Bools
    indptr: Ints
    next_state: Ints
    keep: Floats
    other: Ints
    ends: Floats
    after_cm: Ints
    level_indptr: Ints
    level: Ints
    weight: Floats
    first_level: Ints


class AdviceTable(NamedTuple):
    """Policies as planes [plane, h, s] of one table.

    Advice is an action, silence, or −1 − i for random cell i. Policy j is drawn if ``upto_j`` is
    the first to exceed u, and begins on plane ``first_j``. A policy has ``levels_p`` planes for
    each budget left: one for each level of memory, or 1 if it does not depend on the level. Under a
    hard budget ``spends_p`` is 1, and a piece that costs c leads back by the planes of c budgets.
    """

    advice_phs: Ints
    levels_p: Ints
    spends_p: Ints
    first_j: Ints
    upto_j: Floats
    indptr: Ints
    advice: Ints
    probability: Floats


@inlined
def draw_row(scene: Scene, row: int, u: float) -> int:
    """Draw a state from an alias table."""
    begin = scene.indptr[row]
    x = u * (scene.indptr[row + 1] - begin)
    j = begin + int(x)
    return as_int64(scene.next_state[j] if x - int(x) < scene.keep[j] else scene.other[j])


@inlined
def draw_policy(table: AdviceTable, u: float) -> int:
    """Draw a policy; return its first plane."""
    j = 0
    while j < table.upto_j.size - 1 and u >= table.upto_j[j]:
        j += 1
    return int(table.first_j[j])


@inlined
def draw_start(scene: Scene, u: float) -> int:
    """Draw the first state."""
    return draw_row(scene, scene.indptr.size - 2, u)


@inlined
def draw_advice(table: AdviceTable, cell: int, u: float) -> tuple[int, float]:
    """Draw the advice of a random cell; return the advice and the stretched u."""
    low, j = 0.0, table.indptr[cell]
    while j < table.indptr[cell + 1] - 1 and u >= low + table.probability[j]:
        low += table.probability[j]
        j += 1
    u = min(max((u - low) / table.probability[j], 0.0), 1.0 - 2.0**-53)
    return table.advice[j], u


@inlined
def draw_action(person_lsc: Floats, layer: int, s: int, advice: int, u: float) -> int:
    """Draw the action of a person without a memory (equation 1)."""
    A = person_lsc.shape[2] // 2
    return draw_on_level(person_lsc, layer, s, advice, A + advice, A, u)


@inlined
def draw_on_level(
    person_lsc: Floats, layer: int, s: int, advice: int, place: int, A: int, u: float
) -> int:
    """Draw the action of a person whose adherence is entry ``place`` (equation 1)."""
    excluded, theta = A, IDLE
    if advice < A:
        theta = person_lsc[layer, s, place]
    if theta != IDLE:
        if u < theta:
            return advice
        excluded, rest = advice, 0.0
        for a in range(A):
            if a != excluded:
                rest += person_lsc[layer, s, a]
        u = (u - theta) / (1.0 - theta) * rest
    total, last = 0.0, 0
    for a in range(A):
        if a != excluded and person_lsc[layer, s, a] > 0.0:
            last = a
            total += person_lsc[layer, s, a]
            if u < total:
                return a
    return last


@inlined
def draw_reward(ends: Floats, mean: float, u: float) -> float:
    """Draw the least or the largest reward, with this mean."""
    return float(ends[1] if u * (ends[1] - ends[0]) < mean - ends[0] else ends[0])


@inlined
def next_level(scene: Scene, m: int, advice: int, action: int, A: int, u_w: Floats, at: int) -> int:
    """Return the level that follows; ``at`` is the first number of the step."""
    outcome = 0
    if advice < A:
        outcome = 1 if action == advice else 2
    d = scene.after_cm[outcome, m]
    j, last = scene.level_indptr[d], scene.level_indptr[d + 1] - 1
    if j < last:
        u = u_w[at + scene.first_level[1]]
        while j < last and u >= scene.weight[j]:
            u -= scene.weight[j]
            j += 1
    return as_int64(scene.level[j])


@kernel
def count(
    scene: Scene, table: AdviceTable, u_nw: Floats, results: tuple[Ints, Floats, Ints]
) -> int:
    """Draw whole episodes; fill counts of decisions, rewards and pieces; return live decisions."""
    decisions_hsba, reward_n, pieces_n = results
    H, _, _, A = decisions_hsba.shape
    draws, live, is_random = (u_nw.shape[1] - 2) // H, 0, scene.ends.size > 0
    plane_i, state_i = np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64)
    level_i, has_memory = np.zeros(BLOCK, np.int64), scene.after_cm.shape[1] > 1
    for first in range(0, u_nw.shape[0], BLOCK):
        width = min(BLOCK, u_nw.shape[0] - first)
        for i in range(width):
            plane_i[i] = draw_policy(table, u_nw[first + i, 0])
            state_i[i] = draw_start(scene, u_nw[first + i, 1])
            level_i[i] = scene.first_level[0]
            reward_n[first + i] = 0.0
            pieces_n[first + i] = 0
        for h in range(H):
            l_person = layer_of(scene.person_lsc.shape[0], h)
            l_reward = layer_of(scene.reward_lsa.shape[0], h)
            l_leads = layer_of(scene.leads_lsa.shape[0], h)
            l_cost = layer_of(scene.cost_lsa.shape[0], h)
            l_over = layer_of(scene.over_ls.shape[0], h)
            for i in range(width):
                p, s, u = plane_i[i], state_i[i], u_nw[first + i, 2 + draws * h]
                live += not scene.over_ls[l_over, s]
                m, step_levels = level_i[i], table.levels_p[p]
                b = as_int64(table.advice_phs[p + m if step_levels > 1 else p, h, s])
                if b < 0:
                    b, u = draw_advice(table, -1 - b, u)
                a = draw_on_level(scene.person_lsc, l_person, s, b, A + m * A + b, A, u)
                if b < A:
                    pieces_n[first + i] += 1
                    if table.spends_p[p]:
                        spent = int(cost_of(scene.cost_lsa[l_cost], s, b))
                        plane_i[i] = p - spent * step_levels
                if has_memory:
                    level_i[i] = next_level(scene, m, b, a, A, u_nw[first + i], 2 + draws * h)
                decisions_hsba[h, s, b, a] += 1
                reward = scene.reward_lsa[l_reward, s, a]
                if is_random and not scene.over_ls[l_over, s]:
                    reward = draw_reward(scene.ends, reward, u_nw[first + i, 1 + draws * (h + 1)])
                reward_n[first + i] += reward
                t = scene.leads_lsa[l_leads, s, a]
                if t < 0:
                    t = draw_row(scene, -1 - t, u_nw[first + i, 3 + draws * h])
                state_i[i] = t
    return live


@kernel
def record(
    scene: Scene,
    table: AdviceTable,
    u_nw: Floats,
    first_n: Ints,
    decisions: tuple[Ints, Ints, Ints, Floats, Ints, Ints],
    terminated_n: Bools,
) -> None:
    """Draw whole episodes and write their live decisions with mean rewards, one after another.

    ``decisions`` are the states, advice, actions, rewards, next states and levels of memory. Rows
    of episode n are ``first_n[n]`` up to ``first_n[n + 1]``; ``first_n[0]`` is set by the caller.
    """
    state, advice, action, reward, next_state, level = decisions
    A, L = scene.reward_lsa.shape[2], scene.over_ls.shape[0]
    H = table.advice_phs.shape[1]
    draws = (u_nw.shape[1] - 2) // H
    plane_i = np.empty(BLOCK, np.int64)
    state_ih = np.empty((BLOCK, H + 1), np.int32)
    advice_ih, action_ih = np.empty((BLOCK, H), np.int16), np.empty((BLOCK, H), np.int16)
    level_ih, has_memory = np.zeros((BLOCK, H + 1), np.int16), scene.after_cm.shape[1] > 1
    for first in range(0, u_nw.shape[0], BLOCK):
        width = min(BLOCK, u_nw.shape[0] - first)
        for i in range(width):
            plane_i[i] = draw_policy(table, u_nw[first + i, 0])
            state_ih[i, 0] = draw_start(scene, u_nw[first + i, 1])
            level_ih[i, 0] = scene.first_level[0]
        for h in range(H):
            l_person = layer_of(scene.person_lsc.shape[0], h)
            l_leads = layer_of(scene.leads_lsa.shape[0], h)
            l_cost = layer_of(scene.cost_lsa.shape[0], h)
            for i in range(width):
                p, s, u = plane_i[i], as_int64(state_ih[i, h]), u_nw[first + i, 2 + draws * h]
                m, step_levels = as_int64(level_ih[i, h]), table.levels_p[p]
                b = as_int64(table.advice_phs[p + m if step_levels > 1 else p, h, s])
                if b < 0:
                    b, u = draw_advice(table, -1 - b, u)
                a = draw_on_level(scene.person_lsc, l_person, s, b, A + m * A + b, A, u)
                if b < A and table.spends_p[p]:
                    spent = int(cost_of(scene.cost_lsa[l_cost], s, b))
                    plane_i[i] = p - spent * step_levels
                if has_memory:
                    at = 2 + draws * h
                    level_ih[i, h + 1] = next_level(scene, m, b, a, A, u_nw[first + i], at)
                advice_ih[i, h], action_ih[i, h] = b, a
                t = scene.leads_lsa[l_leads, s, a]
                if t < 0:
                    t = draw_row(scene, -1 - t, u_nw[first + i, 3 + draws * h])
                state_ih[i, h + 1] = t
        for i in range(width):
            row = first_n[first + i]
            for h in range(H):
                s, a = state_ih[i, h], action_ih[i, h]
                if scene.over_ls[layer_of(L, h), s]:
                    break
                state[row], advice[row], action[row] = s, advice_ih[i, h], a
                reward[row] = scene.reward_lsa[layer_of(scene.reward_lsa.shape[0], h), s, a]
                next_state[row], level[row] = state_ih[i, h + 1], level_ih[i, h]
                row += 1
            first_n[first + i + 1] = row
            terminated_n[first + i] = scene.over_ls[L - 1, state_ih[i, H]]


@kernel
def fill_alias(
    indptr: Ints, next_state: Ints, probability: Floats, keep: Floats, other: Ints
) -> None:
    """Turn rows of probabilities into alias tables (Walker 1977; Vose 1991).

    Entries are scaled to an average of 1; those below 1 are filled up by those above.
    """
    scaled, small, large = np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64)
    for i in range(indptr.size - 1):
        begin, n = indptr[i], indptr[i + 1] - indptr[i]
        if n > scaled.size:
            scaled, small, large = np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64)
        total = 0.0
        for j in range(n):
            total += probability[begin + j]
        smalls = larges = 0
        for j in range(n):
            scaled[j] = probability[begin + j] / total * n
            keep[begin + j] = 1.0
            other[begin + j] = next_state[begin + j]
            if scaled[j] < 1.0:
                small[smalls] = j
                smalls += 1
            else:
                large[larges] = j
                larges += 1
        while smalls > 0 and larges > 0:
            smalls -= 1
            lack, rich = small[smalls], large[larges - 1]
            keep[begin + lack] = scaled[lack]
            other[begin + lack] = next_state[begin + rich]
            scaled[rich] -= 1.0 - scaled[lack]
            if scaled[rich] < 1.0:
                larges -= 1
                small[smalls] = rich
                smalls += 1
