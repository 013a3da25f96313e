"""Compiled loops of planning with levels, which run backwards from the last step.

A plane is a pair (k, m): the budget left, k, and the level of the person's memory, m. Advice of
cost c leads from k to k − c under a hard budget; silence, a match and a refusal lead from m to the
levels of ``Levels``. Without a memory there is one level, without a hard budget one k.

A model may have more columns of advice than actions: column b means action b mod A, with a lift of
its own. Learners plan so for the better end of an interval of each lift. Without a hard budget the
number of columns is silence.

Without a hard budget the loops carry the first value of an ``Aim`` alone, as those of
``_backward_kernels.py`` do. The values of a state on all levels lie side by side in memory, so one
look at a next state serves every level. Plans under a hard budget are in
``_hard_budget_kernels.py``. Kernels trust their input: ``counsel.model`` has checked it.
"""

from typing import NamedTuple

import numpy as np

from counsel._arrays import Bools, Floats, Ints
from counsel._jit import as_int64, inlined, kernel, prefetch
from counsel.model._kernels import cost_of, layer_of
from counsel.planning._backward_kernels import (
    FAR,
    VALUES_AHEAD,
    Model,
    expect,
    rows_of,
    step_tables,
)
from counsel.planning._choice_kernels import TIE, Aim, Pair, advised, pick
from counsel.planning._gain_kernels import gain_of_match


class Levels(NamedTuple):
    """How the level of a person's memory moves.

    ``after_cm`` is a row of levels after silence, a match and a refusal on level m. The entries of
    row d are ``indptr[d]`` up to ``indptr[d + 1]`` of ``level`` and ``weight``; equal rows are
    stored once. ``is_hard`` says whether advice spends a budget. The lift of advice b on level m is
    entry m · B + b of the last axis of ``Model.lift_lsa``, with B columns of advice; NaN means that
    it is left out.
    """

    after_cm: Ints
    indptr: Ints
    level: Ints
    weight: Floats
    is_hard: bool


class Space(NamedTuple):
    """Working space. ``d`` is a row of levels; the last axis of ``V_sd`` and ``E_jrd`` is padded.

    Values of next states, expectations for each budget left and row (of the first value, and of
    the second or another that is followed), the same of both values as pairs, and values of
    actions and of advice.
    """

    V_sd: Floats
    E_jrd: Floats
    followed_jrd: Floats
    E_jdr2: Floats
    mixed_s2: Floats
    q_2a: Floats
    value_2b: Floats


BLOCK = 4
"""Rows of levels whose expectations are summed at once."""


Tables = tuple[Ints, Floats, Floats]
"""Rows, rewards and habit [s, a] of a step."""


@inlined
def lay_side_by_side(levels: Levels, first: int, V_ps: Floats, V_sd: Floats) -> None:
    """Fill the values of each state expected over every row of levels; level 0 is ``first``."""
    for d in range(levels.indptr.size - 1):
        begin, end = levels.indptr[d], levels.indptr[d + 1]
        share, plane = levels.weight[begin], first + levels.level[begin]
        for s in range(V_sd.shape[0]):
            V_sd[s, d] = share * V_ps[plane, s]
        for j in range(begin + 1, end):
            share, plane = levels.weight[j], first + levels.level[j]
            for s in range(V_sd.shape[0]):
                V_sd[s, d] += share * V_ps[plane, s]


@kernel
def expect_levels(
    model: Model, levels: Levels, h: int, k: int, V_ps: Floats, V_sd: Floats, E_jrd: Floats
) -> None:
    """Fill the expectations of a step with a budget of ``k`` left, for every row of levels."""
    J, M, (S, W) = E_jrd.shape[0], levels.after_cm.shape[1], V_sd.shape
    begin, end = rows_of(model, h)
    indptr, next_state, probability = model.indptr, model.next_state, model.probability
    E_rd = E_jrd[k % J]
    if W == 1:
        expect(model, h, (begin, end), V_ps[k], E_rd.reshape(-1))
        return
    lay_side_by_side(levels, k * M, V_ps, V_sd)
    flat, last, is_far = V_sd.reshape(-1), next_state.size - 1, S * W >= FAR
    for i in range(begin, end):
        for d in range(0, W, BLOCK):
            e0, e1, e2, e3 = 0.0, 0.0, 0.0, 0.0
            for j in range(indptr[i], indptr[i + 1]):
                if is_far:
                    prefetch(flat, np.uint32(next_state[min(j + VALUES_AHEAD, last)]) * W + d)
                t, share = np.uint32(next_state[j]), probability[j]
                e0 += share * V_sd[t, d]
                e1 += share * V_sd[t, d + 1]
                e2 += share * V_sd[t, d + 2]
                e3 += share * V_sd[t, d + 3]
            E_rd[i - begin, d], E_rd[i - begin, d + 1] = e0, e1
            E_rd[i - begin, d + 2], E_rd[i - begin, d + 3] = e2, e3


@inlined
def fill_actions(
    tables: Tables, s: int, offset: int, weight: float, E_rd: Floats, d: int, q_a: Floats
) -> float:
    """Fill the value of each action before row ``d`` of levels; return that of the habit."""
    row_sa, reward_sa, policy_sa = tables
    alone = 0.0
    for a in range(q_a.size):
        i = row_sa[s, a]
        if i >= 0:
            q_a[a] = weight * reward_sa[s, a] + E_rd[i - offset, d]
            if policy_sa[s, a] > 0.0:
                alone += policy_sa[s, a] * q_a[a]
    return alone


@inlined
def spoken_value(
    policy_sa: Floats,
    s: int,
    b: int,
    lift: float,
    q_2a: Floats,
    c: int,
    own: float,
    matched: float,
) -> float:
    """Return value ``c`` of advising ``b``, before its price; a match is worth ``matched``.

    ``q_2a`` are the values of the actions after a refusal, and ``own`` is their mean over the
    habit. Once b was said, the person's own choice is worth Σ_{a≠b} π(a) Q⁻(a) + π(b) Q⁺(b).
    """
    refused = q_2a[c, b]
    said = own + policy_sa[s, b] * (matched - refused)
    if said > -np.inf and matched > -np.inf:
        likely: float = said + gain_of_match(policy_sa, s, b, lift, matched, q_2a, c, said)
        return likely
    said, q_2a[c, b] = 0.0, matched
    for a in range(q_2a.shape[1]):
        if policy_sa[s, a] > 0.0:
            said += policy_sa[s, a] * q_2a[c, a]
    value: float = advised(policy_sa, s, b, lift, q_2a, c, said)
    q_2a[c, b] = refused
    return value


class Rest(NamedTuple):
    """From where on nothing is said at all: cells of the next step and of this one, to be filled.

    ``after_dr`` says, for each row of levels and of the kernel, whether nothing is said in all
    cells that can follow. Empty arrays are not used.
    """

    then_ms: Bools
    now_ms: Bools
    after_dr: Bools


@kernel
def find_silent_rows(model: Model, levels: Levels, h: int, rest: Rest) -> None:
    """Fill ``rest.after_dr`` for the rows of a step."""
    (begin, end), S = rows_of(model, h), rest.then_ms.shape[1]
    speaks_s = np.empty(S, np.bool_)
    for d in range(rest.after_dr.shape[0]):
        speaks_s[:] = False
        for n in range(levels.indptr[d], levels.indptr[d + 1]):
            silent_s = rest.then_ms[levels.level[n]]
            for s in range(S):
                speaks_s[s] |= not silent_s[s]
        for i in range(begin, end):
            is_silent = True
            for j in range(model.indptr[i], model.indptr[i + 1]):
                if speaks_s[model.next_state[j]]:
                    is_silent = False
                    break
            rest.after_dr[d, i - begin] = is_silent


@inlined
def choose_levels(
    model: Model,
    levels: Levels,
    aim: Aim,
    h: int,
    space: Space,
    rest: Rest,
    out: tuple[Floats, Ints, Bools],
) -> int:
    """Choose the best advice on every level by the first value; return how many cells are tied.

    There is no hard budget. ``out`` are the values [m, s], the advice [m, h, s], and whether the
    cell is left to ``settle_levels``: its best choices tie, or advice is required. Advice is
    compared by its gain over silence. Where nothing is said from this step on (``rest``), silence
    says least, and no tie is left.
    """
    A, (out_V_ms, out_advice_mhs, out_tied_ms) = model.policy_lsa.shape[2], out
    row_sa, reward_sa, policy_sa, lift_sb, _, required_s = step_tables(model, h)
    may_sb = model.pull_lsa[layer_of(model.pull_lsa.shape[0], h)]
    cost_sa = model.cost_lsa[layer_of(model.cost_lsa.shape[0], h)]
    offset = model.first_row_l[layer_of(model.first_row_l.size - 1, h)]
    same_s = model.same_ls[layer_of(model.same_ls.shape[0], h)]
    E_rd, q_2a, after_cm, (M, S) = space.E_jrd[0], space.q_2a, levels.after_cm, out_V_ms.shape
    weight, price, B = aim.weight0, price_at(aim, h), may_sb.shape[1]
    near, ties, small = TIE * (A + 1) * aim.most0, 0, TIE * aim.size0
    now_ms, after_dr, least = rest.now_ms, rest.after_dr, price * cost_sa.min()
    can_rest = now_ms.size > 0 and aim.weight1 == 0.0
    if can_rest:
        find_silent_rows(model, levels, h, rest)
    for m in range(M):
        quiet_d, match_d, refusal_d = after_cm[0, m], after_cm[1, m], after_cm[2, m]
        split, moves = match_d != refusal_d, quiet_d != match_d or quiet_d != refusal_d
        for s in range(S):
            same, is_silent = same_s[s], False
            if same >= 0 and not required_s[s]:
                # Advice changes nothing but the level: it is worth no more than the better one.
                i, quiet, own = row_sa[s, same] - offset, 0.0, weight * reward_sa[s, same]
                more = max(E_rd[i, match_d], E_rd[i, refusal_d]) - E_rd[i, quiet_d] - least
                is_silent = can_rest and more <= small and after_dr[quiet_d, i]
                if more < -near or is_silent:
                    for a in range(A):
                        quiet += policy_sa[s, a] * (E_rd[i, quiet_d] + own)
                    out_V_ms[m, s], out_advice_mhs[m, h, s], out_tied_ms[m, s] = quiet, B, False
                    if can_rest:
                        now_ms[m, s] = is_silent
                    continue
            quiet, own, is_cell = 0.0, 0.0, False
            for a in range(A):
                i = row_sa[s, a]
                if i < 0:
                    continue
                is_cell, earned, chance = True, weight * reward_sa[s, a], policy_sa[s, a]
                quiet += chance * (E_rd[i - offset, quiet_d] + earned)
                q = E_rd[i - offset, refusal_d] + earned
                q_2a[0, a] = q
                own += chance * q
            best, top, next_best = B, 0.0, -np.inf
            for b in range(B):
                a = b if b < A else b - A
                lift, own_b, matched = lift_sb[s, m * B + b] * may_sb[s, b], own, q_2a[0, a]
                if split:
                    if row_sa[s, a] >= 0:
                        matched = E_rd[row_sa[s, a] - offset, match_d] + weight * reward_sa[s, a]
                    own_b += policy_sa[s, a] * (matched - q_2a[0, a])
                net = gain_of_match(policy_sa, s, a, lift, matched, q_2a, 0, own_b)
                net += own_b - quiet - price * cost_of(cost_sa, s, a)
                if lift == 0.0 and not moves:
                    net = -np.inf  # exactly what silence does
                better = net > top
                loser = top if better else net
                next_best = loser if loser > next_best else next_best
                best = b if better else best
                top = net if better else top
            tied = required_s[s] or (is_cell and next_best >= top - near)
            if tied and can_rest and top <= small and not required_s[s]:
                is_silent = True
                for a in range(A):
                    if row_sa[s, a] >= 0 and policy_sa[s, a] > 0.0:
                        is_silent &= after_dr[quiet_d, row_sa[s, a] - offset]
                if is_silent:
                    best, top, tied = B, 0.0, False
            if can_rest:
                now_ms[m, s] = is_silent
            ties += tied
            out_tied_ms[m, s] = tied
            out_V_ms[m, s] = quiet + top
            out_advice_mhs[m, h, s] = best
    return ties


@kernel
def settle_levels(
    model: Model,
    levels: Levels,
    aim: Aim,
    h: int,
    space: Space,
    out: tuple[Floats, Ints, Bools],
) -> None:
    """Choose in the tied cells by both values, whose expectations are in ``space``."""
    A, (out_V_ms, out_advice_mhs, tied_ms) = model.policy_lsa.shape[2], out
    row_sa, reward_sa, policy_sa, lift_sb, permitted_sa, required_s = step_tables(model, h)
    cost_sa = model.cost_lsa[layer_of(model.cost_lsa.shape[0], h)]
    offset = model.first_row_l[layer_of(model.first_row_l.size - 1, h)]
    after_cm, (M, S) = levels.after_cm, tied_ms.shape
    q_2a, value_2b, B = space.q_2a, space.value_2b, space.value_2b.shape[1]
    quiet_2, own_2, size_2 = np.zeros(2), np.zeros(2), np.zeros(2)
    weight_2 = np.array([aim.weight0, aim.weight1])
    price_2 = np.array([price_at(aim, h), aim.price1])
    for m, s in np.ndindex(M, S):
        if not tied_ms[m, s]:
            continue
        quiet_d, match_d, refusal_d = after_cm[0, m], after_cm[1, m], after_cm[2, m]
        size_2[0], size_2[1] = aim.size0, aim.size1
        for c in range(2):
            E_rd = space.E_jrd[0] if c == 0 else space.followed_jrd[0]
            quiet_2[c], own_2[c] = 0.0, 0.0
            for a in range(A):
                i = row_sa[s, a] - offset
                if row_sa[s, a] < 0:
                    continue
                earned, chance = weight_2[c] * reward_sa[s, a], policy_sa[s, a]
                q_2a[c, a] = E_rd[i, refusal_d] + earned
                quiet_2[c] += chance * (E_rd[i, quiet_d] + earned)
                own_2[c] += chance * q_2a[c, a]
                if chance > 0.0 or permitted_sa[s, a]:
                    size_2[c] += abs(q_2a[c, a])
            for b in range(B):
                a, lift = b if b < A else b - A, lift_sb[s, m * B + b]
                value_2b[c, b] = -np.inf
                if permitted_sa[s, a] and not np.isnan(lift):
                    earned = weight_2[c] * reward_sa[s, a]
                    matched = E_rd[row_sa[s, a] - offset, match_d] + earned
                    value = spoken_value(policy_sa, s, a, lift, q_2a, c, own_2[c], matched)
                    value_2b[c, b] = value - price_2[c] * cost_of(cost_sa, s, a)
        if required_s[s]:
            quiet_2[0] = -np.inf
        tolerance = (TIE * size_2[0], TIE * size_2[1])
        best = pick(value_2b, (quiet_2[0], quiet_2[1]), tolerance)
        out_V_ms[m, s] = quiet_2[0] if best == B else value_2b[0, best]
        out_advice_mhs[m, h, s] = best


@inlined
def price_at(aim: Aim, h: int) -> float:
    """Return the price per unit of cost at a step."""
    return float(aim.price0_h[layer_of(aim.price0_h.size, h)])


@kernel
def follow_levels(
    model: Model,
    levels: Levels,
    terms: Pair,
    h: int,
    plane: tuple[int, int],
    space: Space,
    advice_s: Ints,
    out_s: Floats,
) -> None:
    """Evaluate fixed advice on one plane one step back: weight · reward − price · cost."""
    (k, m), (weight, price), J = plane, terms, space.followed_jrd.shape[0]
    A, B, q_a = model.policy_lsa.shape[2], space.value_2b.shape[1], space.q_2a[0]
    row_sa, reward_sa, policy_sa, lift_sb, _, _ = step_tables(model, h)
    cost_sa = model.cost_lsa[layer_of(model.cost_lsa.shape[0], h)]
    offset = model.first_row_l[layer_of(model.first_row_l.size - 1, h)]
    tables, after_cm = (row_sa, reward_sa, policy_sa), levels.after_cm
    quiet_d, match_d, refusal_d = after_cm[0, m], after_cm[1, m], after_cm[2, m]
    quiet_rd = space.followed_jrd[k % J]
    for s in range(advice_s.size):
        b = as_int64(advice_s[s])
        if b == B:
            out_s[s] = fill_actions(tables, s, offset, weight, quiet_rd, quiet_d, q_a)
            continue
        a, lift = b if b < A else b - A, lift_sb[s, m * B + b]
        cost = cost_of(cost_sa, s, a)
        then_k = max(k - int(cost), 0) if levels.is_hard else k
        E_rd = space.followed_jrd[then_k % J]
        own = fill_actions(tables, s, offset, weight, E_rd, refusal_d, q_a)
        matched = weight * reward_sa[s, a] + E_rd[row_sa[s, a] - offset, match_d]
        value = spoken_value(policy_sa, s, a, lift, space.q_2a, 0, own, matched)
        out_s[s] = value - price * cost


@kernel
def catch_up_levels(
    model: Model,
    levels: Levels,
    terms: Pair,
    steps: tuple[int, int],
    advice_phs: Ints,
    space: Space,
    V_jps: Floats,
) -> None:
    """Evaluate fixed advice from one step back to another; step h is in ``V_jps[h % 2]``."""
    P, M = V_jps.shape[1], levels.after_cm.shape[1]
    for h in range(steps[0] - 1, steps[1] - 1, -1):
        now_ps, then_ps = V_jps[h % 2], V_jps[(h + 1) % 2]
        for k in range(P // M):
            expect_levels(model, levels, h, k, then_ps, space.V_sd, space.followed_jrd)
            for m in range(M):
                p = k * M + m
                said_s, plane = advice_phs[p, h], (k, m)
                follow_levels(model, levels, terms, h, plane, space, said_s, now_ps[p])


@kernel
def plan_back_levels(
    model: Model,
    levels: Levels,
    aim: Aim,
    space: Space,
    tables: tuple[Floats, Floats, Ints],
    with_second: bool,
) -> None:
    """Plan all steps on every level.

    ``tables`` are the first values, the second values and the advice. Row 0 of the second values
    are those at the first step, if wanted.
    """
    V_hms, second_jms, advice_mhs = tables
    M, H, S = advice_mhs.shape
    terms, tied_ms, second_from = (aim.weight1, aim.price1), np.empty((M, S), np.bool_), H
    silent_jms = np.ones((2, M, S), np.bool_)
    after_dr = np.empty((levels.indptr.size - 1, space.E_jrd.shape[1]), np.bool_)
    V_hms[H] = 0.0
    second_jms[:] = 0.0
    for h in range(H - 1, -1, -1):
        expect_levels(model, levels, h, as_int64(0), V_hms[h + 1], space.V_sd, space.E_jrd)
        rest = Rest(silent_jms[(h + 1) % 2], silent_jms[h % 2], after_dr)
        every = (V_hms[h], advice_mhs, tied_ms)
        if choose_levels(model, levels, aim, h, space, rest, every) > 0:
            steps = (second_from, h + 1)
            catch_up_levels(model, levels, terms, steps, advice_mhs, space, second_jms)
            then_ms, now_ms, second_from = second_jms[(h + 1) % 2], second_jms[h % 2], h
            expect_levels(model, levels, h, as_int64(0), then_ms, space.V_sd, space.followed_jrd)
            settle_levels(model, levels, aim, h, space, every)
            for m in range(M):
                said_s, plane = advice_mhs[m, h], (as_int64(0), m)
                follow_levels(model, levels, terms, h, plane, space, said_s, now_ms[m])
    if with_second:
        steps = (second_from, as_int64(0))
        catch_up_levels(model, levels, terms, steps, advice_mhs, space, second_jms)
