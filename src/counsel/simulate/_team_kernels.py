"""Compiled loops of a team: who is advised at a step, and what everybody does.

People are columns ``n`` of tables [episode, n]; those of one kind are neighbours. Each person has
numbers u, uniform in [0, 1), of their own: the first draws the start; at each step two break ties,
and the others are those of the simulator (``_episode_kernels.py``). Kernels trust their input.
"""

from typing import NamedTuple

import numpy as np

from counsel._arrays import Bools, Floats, Ints
from counsel._jit import as_int64, kernel
from counsel.model._kernels import layer_of
from counsel.simulate._episode_kernels import (
    Scene,
    draw_on_level,
    draw_reward,
    draw_row,
    draw_start,
    next_level,
)

TIES = 2
"""Numbers of a step that break ties; those of the simulator follow."""


class Crowd(NamedTuple):
    """Where everybody is [episode, n]: state, level of memory and silent steps since a piece.

    ``key_en`` says whose turn comes first, ``is_advised_en`` who is advised at this step, and
    ``action_en`` what they do. ``waits_en`` says who is still waiting for a piece: the episode is
    not over for them.
    """

    state_en: Ints
    level_en: Ints
    wait_en: Ints
    key_en: Floats
    is_advised_en: Bools
    action_en: Ints
    waits_en: Bools


class Turns(NamedTuple):
    """What is said to people of one kind [m, h, s], and the order of their turns.

    People with a larger ``order_mhs`` come first. People with 0 are advised only once they have
    waited for the longest time. Among equals, each comes first with probability ``chance_mhs``.
    """

    advice_mhs: Ints
    order_mhs: Ints
    chance_mhs: Floats


@kernel
def begin(scene: Scene, run: tuple[int, int], u_en: Floats, crowd: Crowd) -> None:
    """Draw the first states of the people of one kind, columns ``run``."""
    for e in range(u_en.shape[0]):
        for n in range(run[0], run[1]):
            crowd.state_en[e, n] = draw_start(scene, u_en[e, n])
            crowd.level_en[e, n] = scene.first_level[0]
            crowd.wait_en[e, n] = 0


@kernel
def line_up(
    scene: Scene, turns: Turns, h: int, run: tuple[int, int], u_enw: Floats, crowd: Crowd
) -> None:
    """Fill the keys of the people of one kind at a step.

    The whole part of half a key is the order; the rest draws the order of equals. People who have
    nothing to be told have the key −1.
    """
    A = scene.reward_lsa.shape[2]
    l_over = layer_of(scene.over_ls.shape[0], h)
    for e in range(u_enw.shape[0]):
        for n in range(run[0], run[1]):
            m, s = crowd.level_en[e, n], crowd.state_en[e, n]
            key = -1.0
            if turns.advice_mhs[m, h, s] < A:
                first = u_enw[e, n, 0] < turns.chance_mhs[m, h, s]
                key = 2.0 * turns.order_mhs[m, h, s] + first + u_enw[e, n, 1]
            crowd.key_en[e, n] = key
            crowd.waits_en[e, n] = not scene.over_ls[l_over, s]
            crowd.is_advised_en[e, n] = False


@kernel
def order_statistic(number_n: Floats, k: int) -> float:
    """Return the number at place ``k`` of the sorted numbers (Hoare's selection); reorders them.

    Numba takes ten seconds to compile ``np.partition``.
    """
    low, high = 0, number_n.size - 1
    while low < high:
        pivot, i, j = number_n[(low + high) >> 1], low, high
        while i <= j:
            while number_n[i] < pivot:
                i += 1
            while number_n[j] > pivot:
                j -= 1
            if i <= j:
                number_n[i], number_n[j] = number_n[j], number_n[i]
                i, j = i + 1, j - 1
        if k <= j:
            high = j
        elif k >= i:
            low = i
        else:
            break
    return float(number_n[k])


@kernel
def choose_first(key_n: Floats, most: int, least_key: float, is_advised_n: Bools) -> int:
    """Choose the ``most`` people with the largest keys of at least ``least_key``; return how many.

    People who are chosen already are passed over.
    """
    N = key_n.size
    free_n, frees = np.empty(N), 0
    for n in range(N):
        if not is_advised_n[n] and key_n[n] >= least_key:
            free_n[frees] = key_n[n]
            frees += 1
    if frees == 0 or most <= 0:
        return as_int64(0)
    threshold = least_key
    if frees > most:
        threshold = order_statistic(free_n[:frees], frees - most)
    chosen = 0
    for n in range(N):  # those above the threshold, then as many equals as there is room for
        if not is_advised_n[n] and key_n[n] >= least_key and key_n[n] > threshold:
            is_advised_n[n] = True
            chosen += 1
    for n in range(N):
        if chosen < most and not is_advised_n[n] and key_n[n] == threshold:
            is_advised_n[n] = True
            chosen += 1
    return as_int64(chosen)


@kernel
def choose_turns(h: int, horizon: int, limits: tuple[int, int], crowd: Crowd) -> None:
    """Choose who is advised at a step, at most k; ``limits`` are k and the longest wait (−1: none).

    A person who waited w steps is due n − w steps from now. If d_j people are due within j steps
    and before the end, d_j − k j of them must be advised now, for every j: later steps have no room
    for more. Groups for growing j contain each other, so the best of each are chosen in turn, and
    the rest of the k pieces go to whoever comes first.
    """
    (k, n), (E, N) = limits, crowd.key_en.shape
    key_n = np.empty(N)
    due_j = np.zeros(max(n, 0) + 1, np.int64)
    for e in range(E):
        left = k
        if n >= 0:
            last = min(n, horizon - 1 - h)
            due_j[:] = 0
            for i in range(N):
                due = n - crowd.wait_en[e, i]
                if crowd.waits_en[e, i] and due <= last:
                    due_j[due] += 1
            total = 0
            for j in range(last + 1):
                total += due_j[j]
                need = total - k * j - (k - left)
                if need > 0:
                    for i in range(N):
                        is_due = crowd.waits_en[e, i] and n - crowd.wait_en[e, i] <= j
                        key_n[i] = crowd.key_en[e, i] if is_due else -1.0
                    left -= choose_first(key_n, need, 0.0, crowd.is_advised_en[e])
        choose_first(crowd.key_en[e], left, 2.0, crowd.is_advised_en[e])


@kernel
def move(
    scene: Scene,
    turns: Turns,
    h: int,
    run: tuple[int, int],
    u_enw: Floats,
    crowd: Crowd,
    reward_e: Floats,
) -> None:
    """Draw what the people of one kind do at a step, and where it leads; add their rewards."""
    A, is_random = scene.reward_lsa.shape[2], scene.ends.size > 0
    l_person = layer_of(scene.person_lsc.shape[0], h)
    l_reward = layer_of(scene.reward_lsa.shape[0], h)
    l_leads = layer_of(scene.leads_lsa.shape[0], h)
    l_over = layer_of(scene.over_ls.shape[0], h)
    has_memory, last = scene.after_cm.shape[1] > 1, u_enw.shape[2] - 1
    for e in range(u_enw.shape[0]):
        total = 0.0
        for n in range(run[0], run[1]):
            m, s, u_w = crowd.level_en[e, n], crowd.state_en[e, n], u_enw[e, n]
            b = as_int64(turns.advice_mhs[m, h, s]) if crowd.is_advised_en[e, n] else A
            a = draw_on_level(scene.person_lsc, l_person, s, b, A + m * A + b, A, u_w[TIES])
            crowd.action_en[e, n] = a
            if has_memory:
                crowd.level_en[e, n] = next_level(scene, m, b, a, A, u_w, as_int64(TIES))
            reward = scene.reward_lsa[l_reward, s, a]
            if is_random and not scene.over_ls[l_over, s]:
                reward = draw_reward(scene.ends, reward, u_w[last])
            total += reward
            crowd.wait_en[e, n] = 0 if b < A else crowd.wait_en[e, n] + 1
            t = as_int64(scene.leads_lsa[l_leads, s, a])
            if t < 0:
                t = draw_row(scene, -1 - t, u_w[TIES + 1])
            crowd.state_en[e, n] = t
        reward_e[e] += total
