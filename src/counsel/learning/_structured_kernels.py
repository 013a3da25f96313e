"""Compiled loops of structured exploration.

A *row* is a step, a state and an action of the person. What follows it is counted at once
(``_transition_kernels.py``), and after each episode the uncertainty of the states it passed is
computed anew. Kernels trust their input.

A person with a memory has a level m, which is observed and moves by known laws. Only how much they
listen depends on it, so only that is counted by level. What lies ahead of an action does depend on
the levels that follow: ``ahead_hsad`` has one number for each row d of levels, ``most_hms`` one for
each level. Without a memory there is one level and one row.
"""

from typing import NamedTuple

import numpy as np

from counsel._arrays import Bools, Floats, Ints
from counsel._jit import as_int64, inlined, kernel
from counsel.estimate._habit_kernels import settle_habit
from counsel.learning._rfe_kernels import pick_top
from counsel.learning._transition_kernels import (
    Chains,
    count_successors,
    count_transition,
    expect_chain,
)
from counsel.model._kernels import cost_of, layer_of
from counsel.planning._gain_kernels import gain
from counsel.simulate._episode_kernels import Scene, draw_action, draw_reward, draw_row, draw_start


class FactorCounts(NamedTuple):
    """What was seen.

    ``chains`` how often each action was taken and what followed, ``actions_hsba`` how often it
    followed each advice (silence last), ``reward_hsa`` what it paid in all. ``free_hsa`` is true
    once the person was seen, of their own will, to do something else than a: only then does a
    match with the advice a say something, and only what comes after is counted in ``given_g`` and
    ``matched_g``. ``own_hsa`` is π̂.
    """

    chains: Chains
    actions_hsba: Ints
    reward_hsa: Floats
    free_hsa: Bools
    own_hsa: Floats
    given_g: Ints
    matched_g: Ints


class UncertaintySettings(NamedTuple):
    """How uncertain counts leave the three factors, and rewards.

    ``transition_log``, ``habit_log``, ``adherence_log`` and ``reward_log`` are the logarithms of
    their confidence sets (the last is 0 where rewards are known), ``scale`` multiplies all, ``cap``
    is the uncertainty of what was never tried. ``pseudo_count`` is added to matches and to
    refusals. A set has as many dimensions as there are other states, or actions, if
    ``all_outcomes``, else as many as were seen.
    """

    scale: float
    transition_log: float
    habit_log: float
    adherence_log: float
    reward_log: float
    cap: float
    pseudo_count: float
    all_outcomes: bool


class KnownStructure(NamedTuple):
    """The advice that may be given, the groups of adherence, and where nothing more can happen.

    The group of advice b on level m is entry m · A + b of the last axis of ``group_lsx``. After
    silence, a match and a refusal on level m the law of the next level is row ``after_cm`` of
    ``levels_dm``.
    """

    allowed_lsa: Bools
    group_lsx: Ints
    ended_hs: Bools
    after_cm: Ints
    levels_dm: Floats


@inlined
def width(n: float, log: float, free: int) -> float:
    """Return (log + d log(e (1 + n / d))) / n: what n draws of one of d + 1 things leave open."""
    if free <= 0:
        return float(log / n)
    return float((log + free * (1.0 + np.log(1.0 + n / free))) / n)


@inlined
def is_visited(counts: FactorCounts, h: int, s: int) -> bool:
    """Return whether a decision was made in a state at a step."""
    for a in range(counts.chains.visits_hsx.shape[2]):
        if counts.chains.visits_hsx[h, s, a] > 0:
            return True
    return False


@inlined
def group_of(structure: KnownStructure, h: int, s: int, x: int) -> int:
    """Return the group of advice on a level, x = m · A + b."""
    return int(structure.group_lsx[layer_of(structure.group_lsx.shape[0], h), s, x])


@kernel
def count_decision(
    counts: FactorCounts,
    structure: KnownStructure,
    h: int,
    s: int,
    m: int,
    b: int,
    a: int,
    reward: float,
) -> None:
    """Count one decision on level m."""
    A = counts.chains.visits_hsx.shape[2]
    if b < A and counts.free_hsa[h, s, b]:
        g = group_of(structure, h, s, m * A + b)
        counts.given_g[g] += 1
        counts.matched_g[g] += a == b
    counts.actions_hsba[h, s, b, a] += 1
    counts.reward_hsa[h, s, a] += reward
    if a != b:
        for other in range(A):
            if other != a:
                counts.free_hsa[h, s, other] = True
    settle_habit(counts.actions_hsba[h, s], counts.own_hsa[h, s])


@kernel
def fill_uncertainty(
    counts: FactorCounts,
    structure: KnownStructure,
    settings: UncertaintySettings,
    ahead_hsad: Floats,
    h: int,
    s: int,
    m: int,
    value_b: Floats,
) -> None:
    """Fill how uncertain each advice is on a level: its own law, what actions do, what lies ahead.

    Advice that may not be given is not rated (−1), nor advice that cannot yet be told from silence:
    silence says more.
    """
    _, S, A = counts.chains.visits_hsx.shape
    after_cm = structure.after_cm
    quiet, match, refusal = after_cm[0, m], after_cm[1, m], after_cm[2, m]
    # Of each action: its own, and with what lies ahead after silence and after a refusal.
    work_3a = np.empty((3, A))
    own_a, uncertainty_a, refused_a = work_3a[0], work_3a[1], work_3a[2]
    silent, alone, kinds, choices = 0.0, 0.0, 0, 0.0
    for a in range(A):
        silent += counts.actions_hsba[h, s, A, a]
        for b in range(A + 1):
            if b != a:
                choices += counts.actions_hsba[h, s, b, a]
        n = float(counts.chains.visits_hsx[h, s, a])
        uncertainty_a[a] = refused_a[a] = settings.cap
        if n > 0.0:
            free = S - 1 if settings.all_outcomes else count_successors(counts.chains, h, s, a) - 1
            own = width(n, settings.transition_log, free)
            if settings.reward_log > 0.0:
                own = max(own, width(n, settings.reward_log, 1))
            own_a[a] = settings.scale * own
            uncertainty_a[a] = own_a[a] + ahead_hsad[h, s, a, quiet]
            refused_a[a] = own_a[a] + ahead_hsad[h, s, a, refusal]
        if counts.own_hsa[h, s, a] > 0.0:
            kinds += 1
            alone += counts.own_hsa[h, s, a] * uncertainty_a[a]
    # n times how far π̂ may be off, from n draws: all confidence sets of choices together.
    habit = settings.scale * width(1.0, settings.habit_log, 0)
    if choices > 0.0:
        free = A - 1 if settings.all_outcomes else kinds - 1
        habit = settings.scale * choices * width(choices, settings.habit_log, free)
        if settings.all_outcomes:
            habit *= A + 1
    value_b[A] = settings.cap
    if silent > 0.0:
        value_b[A] = min(settings.cap, alone + habit / silent)
    allowed_layer = layer_of(structure.allowed_lsa.shape[0], h)
    for b in range(A):
        value_b[b] = -1.0
        if not structure.allowed_lsa[allowed_layer, s, b] or (
            silent > 0.0 and not counts.free_hsa[h, s, b]
        ):
            continue
        g = group_of(structure, h, s, m * A + b)
        given = float(counts.given_g[g])
        draws, rest, others = 0.0, 0.0, 0.0
        for a in range(A):
            if a != b:
                draws += counts.actions_hsba[h, s, b, a]
                rest += counts.own_hsa[h, s, a]
                if counts.own_hsa[h, s, a] > 0.0:
                    others += counts.own_hsa[h, s, a] * refused_a[a]
        draws += silent * rest
        if given == 0.0 or draws <= 0.0 or rest <= 0.0:
            value_b[b] = settings.cap
            continue
        theta = (counts.matched_g[g] + settings.pseudo_count) / (
            given + 2.0 * settings.pseudo_count
        )
        matched = settings.cap
        if counts.chains.visits_hsx[h, s, b] > 0:
            matched = own_a[b] + ahead_hsad[h, s, b, match]
        value = theta * matched + (1.0 - theta) * (others / rest + habit / draws)
        value_b[b] = min(
            settings.cap, value + settings.scale * width(given, settings.adherence_log, 1)
        )


@kernel
def back_up(
    counts: FactorCounts,
    structure: KnownStructure,
    settings: UncertaintySettings,
    h: int,
    s: int,
    ahead_hsad: Floats,
    most_hms: Floats,
    value_b: Floats,
) -> None:
    """Compute what lies ahead of one state's rows, and the most uncertain advice on each level."""
    H, _, A = counts.chains.visits_hsx.shape
    for a in range(A):
        if counts.chains.visits_hsx[h, s, a] > 0:
            for d in range(structure.levels_dm.shape[0]):
                ahead = 0.0
                for m in range(structure.levels_dm.shape[1]):
                    share = structure.levels_dm[d, m]
                    if share > 0.0:
                        then_s = most_hms[h + 1, m]
                        ahead += share * expect_chain(counts.chains, h, s, a, then_s)
                ahead_hsad[h, s, a, d] = (1.0 + 1.0 / H) * ahead
    for m in range(most_hms.shape[1]):
        fill_uncertainty(counts, structure, settings, ahead_hsad, h, s, as_int64(m), value_b)
        most = value_b[A]
        for b in range(A):
            most = max(most, value_b[b])
        most_hms[h, m, s] = most


@kernel
def look_ahead(
    counts: FactorCounts,
    structure: KnownStructure,
    settings: UncertaintySettings,
    ahead_hsad: Floats,
    most_hms: Floats,
) -> None:
    """Compute what lies ahead of every row: (1 + 1/H) Σ p̂ max W of the next step."""
    H, S, A = counts.chains.visits_hsx.shape
    value_b = np.empty(A + 1)
    most_hms[H] = 0.0
    for h in range(H - 1, -1, -1):
        for s in range(S):
            if structure.ended_hs[h, s]:
                most_hms[h, :, s] = 0.0
            elif not is_visited(counts, h, s):
                most_hms[h, :, s] = settings.cap
            else:
                back_up(counts, structure, settings, h, s, ahead_hsad, most_hms, value_b)


@kernel
def explore_factors(
    scene: Scene,
    u_nw: Floats,
    tie_nh: Floats,
    counts: FactorCounts,
    structure: KnownStructure,
    settings: UncertaintySettings,
    ahead_hsad: Floats,
    most_hms: Floats,
    start_s: Ints,
) -> None:
    """Play episodes, always advising where most is uncertain; after each, look back over it.

    The person has no memory.
    """
    H, _, A = counts.chains.visits_hsx.shape
    draws, m = (u_nw.shape[1] - 2) // H, as_int64(0)
    value_b, state_h = np.empty(A + 1), np.empty(H, np.int64)
    for n in range(u_nw.shape[0]):
        s = draw_start(scene, u_nw[n, 1])
        start_s[s] += 1
        last = as_int64(0)
        while last < H and not scene.over_ls[layer_of(scene.over_ls.shape[0], last), s]:
            h = last
            fill_uncertainty(counts, structure, settings, ahead_hsad, h, s, m, value_b)
            b = pick_top(value_b, tie_nh[n, h])
            layer = layer_of(scene.person_lsc.shape[0], h)
            a = draw_action(scene.person_lsc, layer, s, b, u_nw[n, 2 + draws * h])
            t = as_int64(scene.leads_lsa[layer_of(scene.leads_lsa.shape[0], h), s, a])
            if t < 0:
                t = draw_row(scene, -1 - t, u_nw[n, 3 + draws * h])
            paid = scene.reward_lsa[layer_of(scene.reward_lsa.shape[0], h), s, a]
            if scene.ends.size:
                paid = draw_reward(scene.ends, paid, u_nw[n, 1 + draws * (h + 1)])
            count_decision(counts, structure, h, s, m, b, a, paid)
            count_transition(counts.chains, h, s, a, t)
            state_h[h] = s
            last, s = last + 1, t
        if last < H:
            for h in range(last, H + 1):
                structure.ended_hs[h, s] = True
                most_hms[h, :, s] = 0.0
        for h in range(last - 1, -1, -1):
            back_up(counts, structure, settings, h, state_h[h], ahead_hsad, most_hms, value_b)


@kernel
def plan_factors(
    counts: FactorCounts,
    structure: KnownStructure,
    reward_lsa: Floats,
    least: float,
    penalty_h: Floats,
    cost_lsa: Floats,
    advice_hs: Ints,
) -> None:
    """Plan by lift × advantage on what was seen; silence wherever nothing says otherwise.

    Only advice whose action was seen there, and whose group was seen to listen, is compared. The
    reward is ``reward_lsa``, or where that is empty (rewards are not known) the average paid. What
    was never seen pays ``least`` at every step, unless nothing more can happen there. The person
    has no memory.
    """
    H, S, A = counts.chains.visits_hsx.shape
    V_hs, lift_a = np.zeros((H + 1, S)), np.empty(A)
    Q_1a, own_1a = np.empty((1, A)), np.empty((1, A))
    Q_a, own_a = Q_1a[0], own_1a[0]
    for h in range(H - 1, -1, -1):
        penalty = penalty_h[layer_of(penalty_h.size, h)]
        cost_sa = cost_lsa[layer_of(cost_lsa.shape[0], h)]
        for s in range(S):
            if not is_visited(counts, h, s):
                V_hs[h, s] = 0.0 if structure.ended_hs[h, s] else (H - h) * least
                continue
            fill_person_at(counts, structure, h, s, as_int64(0), own_a, lift_a)
            alone = 0.0
            for a in range(A):
                n = counts.chains.visits_hsx[h, s, a]
                Q_a[a] = (H - h) * least
                if n > 0:
                    earned = counts.reward_hsa[h, s, a] / n
                    if reward_lsa.size > 0:
                        earned = reward_lsa[layer_of(reward_lsa.shape[0], h), s, a]
                    Q_a[a] = earned + expect_chain(counts.chains, h, s, a, V_hs[h + 1])
                alone += own_a[a] * Q_a[a]
            best, top = A, 0.0
            for b in range(A):
                charge = penalty * cost_of(cost_sa, s, b)
                net = gain(own_1a, 0, b, lift_a[b], Q_1a, 0, alone) - charge
                if lift_a[b] > 0.0 and net > top + 1e-12 * (1.0 + abs(alone)):
                    best, top = b, net
            V_hs[h, s] = alone + top
            advice_hs[h, s] = best


@kernel
def fill_person_at(
    counts: FactorCounts,
    structure: KnownStructure,
    h: int,
    s: int,
    m: int,
    own_a: Floats,
    lift_a: Floats,
) -> None:
    """Fill π̂ and the lifts in a state that was seen; 0 where advice repels or was never seen.

    Where the person was only ever seen to match, that is what advice does there, and what they do
    alone is not known: any action that was not seen, or if all were, any of them.
    """
    A, bare, hidden = own_a.size, True, 0
    allowed_layer = layer_of(structure.allowed_lsa.shape[0], h)
    for a in range(A):
        bare = bare and not counts.free_hsa[h, s, a]
        hidden += (
            structure.allowed_lsa[allowed_layer, s, a] and counts.chains.visits_hsx[h, s, a] == 0
        )
    for a in range(A):
        own, seen = counts.own_hsa[h, s, a], counts.chains.visits_hsx[h, s, a] > 0
        may = seen and structure.allowed_lsa[allowed_layer, s, a]
        g = group_of(structure, h, s, m * A + a)
        own_a[a], lift_a[a] = own, 0.0
        if bare and A > 1:
            if hidden > 0:
                own_a[a] = (
                    1.0 / hidden if structure.allowed_lsa[allowed_layer, s, a] and not seen else 0.0
                )
            lift_a[a] = 1.0 if may else 0.0
        elif may and counts.given_g[g] > 0 and own < 1.0:
            theta = counts.matched_g[g] / counts.given_g[g]
            lift_a[a] = max(0.0, (theta - own) / (1.0 - own))


@kernel
def fill_person(
    counts: FactorCounts, structure: KnownStructure, m: int, own_hsa: Floats, lift_hsa: Floats
) -> None:
    """Fill what the person does alone and the lift of all advice on a level; 0 if not seen."""
    H, S, A = counts.chains.visits_hsx.shape
    for h in range(H):
        for s in range(S):
            if is_visited(counts, h, s):
                fill_person_at(counts, structure, h, s, m, own_hsa[h, s], lift_hsa[h, s])
            else:
                for a in range(A):
                    own_hsa[h, s, a], lift_hsa[h, s, a] = 1.0 if a == 0 else 0.0, 0.0


@kernel
def count_episodes(
    first: Ints,
    state: Ints,
    advice: Ints,
    action: Ints,
    reward: Floats,
    next_state: Ints,
    level: Ints,
    counts: FactorCounts,
    structure: KnownStructure,
) -> None:
    """Count whole episodes, in order."""
    for n in range(first.size - 1):
        for i in range(first[n], first[n + 1]):
            h = i - first[n]
            s, b, a = as_int64(state[i]), as_int64(advice[i]), as_int64(action[i])
            count_decision(counts, structure, h, s, as_int64(level[i]), b, a, reward[i])
            count_transition(counts.chains, h, s, a, as_int64(next_state[i]))
