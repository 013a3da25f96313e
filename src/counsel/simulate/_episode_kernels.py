"""Compiled loops of the simulator.

Episodes of a block go step by step together, so that none waits for what another fetches from
memory. Each episode has a row of numbers u of its own, uniform in [0, 1): the first draws its
policy, the second its start; at each step one draws advice and action and, in a world with chance,
another draws the next state. Where one number decides twice it is stretched: given that u fell into
[x, y), the number (u − x) / (y − x) is uniform in [0, 1) again. Kernels trust their input.
"""

from typing import NamedTuple

import numpy as np

from counsel._arrays import Bools, Floats, Ints
from counsel._jit import as_int64, inlined, kernel
from counsel.model._kernels import layer_of

BLOCK = 64
"""Episodes that go step by step together; their numbers fit into the fastest cache."""

IDLE = -1.0
"""Stands for the adherence to advice that changes nothing."""


class Scene(NamedTuple):
    """What episodes are drawn from. ``l`` is a layer: one for what never changes, or one a step.

    ``person_lsc`` holds π(a | s) for each action, then θ(s, a) for each, or ``IDLE``. ``leads_lsa``
    is the only next state, or −1 − i where row i draws it. A row is an alias table: each of its
    entries ``indptr[i]`` up to ``indptr[i + 1]`` is as likely as the others, and entry j stands for
    ``next_state[j]`` with probability ``keep[j]``, else for ``other[j]``. The last row is the
    start.
    """

    person_lsc: Floats
    reward_lsa: Floats
    leads_lsa: Ints
    over_ls: Bools
    indptr: Ints
    next_state: Ints
    keep: Floats
    other: Ints


class Speech(NamedTuple):
    """What is said: policies as planes [plane, h, s] of one table.

    Advice is an action, silence, or −1 − i where cell i is random. Policy j is drawn where u lies
    below ``upto_j`` for the first time, and begins on plane ``first_j``. Where ``spends_p`` is 1 a
    piece of advice leads to the plane before: one piece less under a hard budget.
    """

    advice_phs: Ints
    spends_p: Ints
    first_j: Ints
    upto_j: Floats
    indptr: Ints
    advice: Ints
    probability: Floats


@inlined
def draw_row(scene: Scene, row: int, u: float) -> int:
    """Draw a state from one row."""
    begin = scene.indptr[row]
    x = u * (scene.indptr[row + 1] - begin)
    j = begin + int(x)
    return as_int64(scene.next_state[j] if x - int(x) < scene.keep[j] else scene.other[j])


@inlined
def draw_policy(speech: Speech, u: float) -> int:
    """Draw a policy; return the plane on which it begins."""
    j = 0
    while j < speech.upto_j.size - 1 and u >= speech.upto_j[j]:
        j += 1
    return int(speech.first_j[j])


@inlined
def draw_start(scene: Scene, u: float) -> int:
    """Draw the first state."""
    return draw_row(scene, scene.indptr.size - 2, u)


@inlined
def draw_advice(speech: Speech, cell: int, u: float) -> tuple[int, float]:
    """Draw the advice of a random cell; return it and what is left of u."""
    low, j = 0.0, speech.indptr[cell]
    while j < speech.indptr[cell + 1] - 1 and u >= low + speech.probability[j]:
        low += speech.probability[j]
        j += 1
    u = min(max((u - low) / speech.probability[j], 0.0), 1.0 - 2.0**-53)
    return speech.advice[j], u


@inlined
def draw_action(person_lsc: Floats, layer: int, s: int, advice: int, u: float) -> int:
    """Draw what the person does (equation 1)."""
    A = person_lsc.shape[2] // 2
    but, theta = A, IDLE
    if advice < A:
        theta = person_lsc[layer, s, A + advice]
    if theta != IDLE:
        if u < theta:
            return advice
        but, rest = advice, 0.0
        for a in range(A):
            if a != but:
                rest += person_lsc[layer, s, a]
        u = (u - theta) / (1.0 - theta) * rest
    total, last = 0.0, 0
    for a in range(A):
        if a != but and person_lsc[layer, s, a] > 0.0:
            last = a
            total += person_lsc[layer, s, a]
            if u < total:
                return a
    return last


@inlined
def take_step(
    scene: Scene, h: int, s: int, b: int, u_w: Floats, draws: int
) -> tuple[int, int, float]:
    """Draw what the person does on advice b, and the next state; return both and the reward."""
    layer = layer_of(scene.person_lsc.shape[0], h)
    a = draw_action(scene.person_lsc, layer, s, b, u_w[2 + draws * h])
    t = as_int64(scene.leads_lsa[layer_of(scene.leads_lsa.shape[0], h), s, a])
    if t < 0:
        t = draw_row(scene, -1 - t, u_w[3 + draws * h])
    return a, t, scene.reward_lsa[layer_of(scene.reward_lsa.shape[0], h), s, a]


@kernel
def count(
    scene: Scene,
    speech: Speech,
    u_nw: Floats,
    decisions_hsba: Ints,
    reward_n: Floats,
    pieces_n: Ints,
) -> int:
    """Draw whole episodes and count their decisions; return how many were live."""
    H, _, _, A = decisions_hsba.shape
    draws, live = (u_nw.shape[1] - 2) // H, 0
    plane_i, state_i = np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64)
    for first in range(0, u_nw.shape[0], BLOCK):
        width = min(BLOCK, u_nw.shape[0] - first)
        for i in range(width):
            plane_i[i] = draw_policy(speech, u_nw[first + i, 0])
            state_i[i] = draw_start(scene, u_nw[first + i, 1])
            reward_n[first + i] = 0.0
            pieces_n[first + i] = 0
        for h in range(H):
            l_person = layer_of(scene.person_lsc.shape[0], h)
            l_reward = layer_of(scene.reward_lsa.shape[0], h)
            l_leads = layer_of(scene.leads_lsa.shape[0], h)
            l_over = layer_of(scene.over_ls.shape[0], h)
            for i in range(width):
                p, s, u = plane_i[i], state_i[i], u_nw[first + i, 2 + draws * h]
                live += not scene.over_ls[l_over, s]
                b = speech.advice_phs[p, h, s]
                if b < 0:
                    b, u = draw_advice(speech, -1 - b, u)
                a = draw_action(scene.person_lsc, l_person, s, b, u)
                if b < A:
                    pieces_n[first + i] += 1
                    plane_i[i] = p - speech.spends_p[p]
                decisions_hsba[h, s, b, a] += 1
                reward_n[first + i] += scene.reward_lsa[l_reward, s, a]
                t = scene.leads_lsa[l_leads, s, a]
                if t < 0:
                    t = draw_row(scene, -1 - t, u_nw[first + i, 3 + draws * h])
                state_i[i] = t
    return live


@kernel
def record(
    scene: Scene,
    speech: Speech,
    u_nw: Floats,
    first_n: Ints,
    state: Ints,
    advice: Ints,
    action: Ints,
    reward: Floats,
    next_state: Ints,
    terminated_n: Bools,
) -> None:
    """Draw whole episodes and write their live decisions, one episode after another.

    Rows of episode n are ``first_n[n]`` up to ``first_n[n + 1]``; ``first_n[0]`` is given.
    """
    A, L = scene.reward_lsa.shape[2], scene.over_ls.shape[0]
    H = speech.advice_phs.shape[1]
    draws = (u_nw.shape[1] - 2) // H
    plane_i = np.empty(BLOCK, np.int64)
    state_ih = np.empty((BLOCK, H + 1), np.int32)
    advice_ih, action_ih = np.empty((BLOCK, H), np.int16), np.empty((BLOCK, H), np.int16)
    for first in range(0, u_nw.shape[0], BLOCK):
        width = min(BLOCK, u_nw.shape[0] - first)
        for i in range(width):
            plane_i[i] = draw_policy(speech, u_nw[first + i, 0])
            state_ih[i, 0] = draw_start(scene, u_nw[first + i, 1])
        for h in range(H):
            l_person = layer_of(scene.person_lsc.shape[0], h)
            l_leads = layer_of(scene.leads_lsa.shape[0], h)
            for i in range(width):
                p, s, u = plane_i[i], state_ih[i, h], u_nw[first + i, 2 + draws * h]
                b = speech.advice_phs[p, h, s]
                if b < 0:
                    b, u = draw_advice(speech, -1 - b, u)
                a = draw_action(scene.person_lsc, l_person, s, b, u)
                if b < A:
                    plane_i[i] = p - speech.spends_p[p]
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
                next_state[row] = state_ih[i, h + 1]
                row += 1
            first_n[first + i + 1] = row
            terminated_n[first + i] = scene.over_ls[L - 1, state_ih[i, H]]


@kernel
def fill_alias(
    indptr: Ints, next_state: Ints, probability: Floats, keep: Floats, other: Ints
) -> None:
    """Turn rows of probabilities into alias tables (Walker 1977; Vose 1991).

    Scaled to an average of one, entries below one are filled up to one by entries above.
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
