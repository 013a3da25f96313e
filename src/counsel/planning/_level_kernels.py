"""Compiled loops of planning with levels, which run backwards from the last step.

A plane is a pair (k, m): the budget left, k, and the level of the person's memory, m. Advice of
cost c leads from k to k − c under a hard budget; silence, a match and a refusal lead from m to the
levels of ``Levels``. Without a memory there is one level, without a hard budget one k.

A model may have more columns of advice than actions: column b means action b mod A, with a lift of
its own. Learners plan so for the better end of an interval of each lift. Without a hard budget the
number of columns is silence.

Without a hard budget the loops carry the first value of an ``Aim`` alone, as those of
``_backward_kernels.py`` do. Plans under a hard budget are in ``_hard_budget_kernels.py``.
Kernels trust their input: ``counsel.model`` has checked it.
"""

from typing import NamedTuple

import numpy as np

from counsel._arrays import Bools, Floats, Ints
from counsel._jit import as_int64, inlined, kernel
from counsel.model._kernels import cost_of, layer_of
from counsel.planning._backward_kernels import Model, expect, rows_of, step_tables
from counsel.planning._choice_kernels import TIE, Aim, Pair, advised, pick
from counsel.planning._gain_kernels import gain


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
    """Working space: expectations for each budget left, row of levels and row, and of actions.

    Of the first value, of the second or another that is followed, and of both values as pairs.
    """

    E_jdr: Floats
    followed_jdr: Floats
    E_jdr2: Floats
    mixed_s: Floats
    mixed_s2: Floats
    q_2a: Floats
    value_2b: Floats


Tables = tuple[Ints, Floats, Floats]
"""Rows, rewards and habit [s, a] of a step."""


@inlined
def after_levels(levels: Levels, d: int, first: int, V_ps: Floats, mixed_s: Floats) -> Floats:
    """Return the values of each state expected over row ``d`` of levels.

    Level 0 is plane ``first``; the values may be pairs.
    """
    begin, end = levels.indptr[d], levels.indptr[d + 1]
    if end - begin == 1:
        V_s: Floats = V_ps[first + levels.level[begin]]
        return V_s
    mixed_s[:] = 0.0
    for j in range(begin, end):
        mixed_s += levels.weight[j] * V_ps[first + levels.level[j]]
    return mixed_s


@kernel
def expect_levels(
    model: Model, levels: Levels, h: int, k: int, V_ps: Floats, mixed_s: Floats, E_jdr: Floats
) -> None:
    """Fill the expectations of a step with a budget of ``k`` left, for every row of levels."""
    J, M = E_jdr.shape[0], levels.after_cm.shape[1]
    rows = rows_of(model, h)
    for d in range(levels.indptr.size - 1):
        V_s = after_levels(levels, d, k * M, V_ps, mixed_s)
        expect(model, h, rows, V_s, E_jdr[k % J, d])


@inlined
def fill_actions(
    tables: Tables, s: int, offset: int, weight: float, E_r: Floats, q_a: Floats
) -> float:
    """Fill the value of each action from the rows' expectations; return that of the habit."""
    row_sa, reward_sa, policy_sa = tables
    alone = 0.0
    for a in range(q_a.size):
        i = row_sa[s, a]
        if i >= 0:
            q_a[a] = weight * reward_sa[s, a] + E_r[i - offset]
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
    value, refused, q_2a[c, b] = 0.0, q_2a[c, b], matched
    said = own + policy_sa[s, b] * (matched - refused)
    if said > -np.inf and matched > -np.inf:
        value = said + gain(policy_sa, s, b, lift, q_2a, c, said)
    else:
        said = 0.0
        for a in range(q_2a.shape[1]):
            if policy_sa[s, a] > 0.0:
                said += policy_sa[s, a] * q_2a[c, a]
        value = advised(policy_sa, s, b, lift, q_2a, c, said)
    q_2a[c, b] = refused
    return value


@inlined
def choose_levels(
    model: Model,
    levels: Levels,
    aim: Aim,
    h: int,
    m: int,
    space: Space,
    out: tuple[Floats, Ints, Bools],
) -> int:
    """Choose the best advice on one level by the first value; return how many cells are tied.

    There is no hard budget. ``out`` are the values, the advice, and whether the cell is left to
    ``settle_levels``: its best choices tie, or advice is required. Advice is compared by its gain
    over silence.
    """
    A, (out_V_s, out_advice_s, out_tied_s) = model.policy_lsa.shape[2], out
    row_sa, reward_sa, policy_sa, lift_sb, _, required_s = step_tables(model, h)
    may_sb = model.pull_lsa[layer_of(model.pull_lsa.shape[0], h)]
    cost_sa = model.cost_lsa[layer_of(model.cost_lsa.shape[0], h)]
    offset = model.first_row_l[layer_of(model.first_row_l.size - 1, h)]
    match_d, refusal_d, B = levels.after_cm[1, m], levels.after_cm[2, m], may_sb.shape[1]
    quiet_r = space.E_jdr[0, levels.after_cm[0, m]]
    match_r, refusal_r = space.E_jdr[0, match_d], space.E_jdr[0, refusal_d]
    q_2a, weight, price, split = space.q_2a, aim.weight0, price_at(aim, h), match_d != refusal_d
    near, ties = TIE * (A + 1) * aim.most0, 0
    for s in range(out_V_s.size):
        quiet, own = 0.0, 0.0
        for a in range(A):
            i = row_sa[s, a]
            if i < 0:
                continue
            earned, chance = weight * reward_sa[s, a], policy_sa[s, a]
            quiet += chance * (quiet_r[i - offset] + earned)
            q = refusal_r[i - offset] + earned
            q_2a[0, a] = q
            own += chance * q
        best, top, next_best = B, 0.0, -np.inf
        for b in range(B):
            a = b if b < A else b - A
            refused, own_b = q_2a[0, a], own
            if split and row_sa[s, a] >= 0:
                q_2a[0, a] = match_r[row_sa[s, a] - offset] + weight * reward_sa[s, a]
                own_b += policy_sa[s, a] * (q_2a[0, a] - refused)
            lift = lift_sb[s, m * B + b] * may_sb[s, b]
            net = own_b - quiet + gain(policy_sa, s, a, lift, q_2a, 0, own_b)
            net -= price * cost_of(cost_sa, s, a)
            q_2a[0, a] = refused
            better = net > top
            loser = top if better else net
            next_best = loser if loser > next_best else next_best
            best = b if better else best
            top = net if better else top
        tied = required_s[s] or next_best >= top - near
        ties += tied
        out_tied_s[s] = tied
        out_V_s[s] = quiet + top
        out_advice_s[s] = best
    return ties


@kernel
def settle_levels(
    model: Model,
    levels: Levels,
    aim: Aim,
    h: int,
    m: int,
    space: Space,
    out: tuple[Floats, Ints, Bools],
) -> None:
    """Choose in the tied cells of one level by both values, whose expectations are in ``space``."""
    A, (out_V_s, out_advice_s, tied_s) = model.policy_lsa.shape[2], out
    row_sa, reward_sa, policy_sa, lift_sb, permitted_sa, required_s = step_tables(model, h)
    cost_sa = model.cost_lsa[layer_of(model.cost_lsa.shape[0], h)]
    offset = model.first_row_l[layer_of(model.first_row_l.size - 1, h)]
    match_d, refusal_d = levels.after_cm[1, m], levels.after_cm[2, m]
    q_2a, value_2b, B = space.q_2a, space.value_2b, space.value_2b.shape[1]
    quiet_2, own_2, size_2 = np.zeros(2), np.zeros(2), np.zeros(2)
    weight_2 = np.array([aim.weight0, aim.weight1])
    price_2 = np.array([price_at(aim, h), aim.price1])
    for s in range(tied_s.size):
        if not tied_s[s]:
            continue
        size_2[0], size_2[1] = aim.size0, aim.size1
        for c in range(2):
            E_dr = space.E_jdr[0] if c == 0 else space.followed_jdr[0]
            quiet_2[c], own_2[c], quiet_r = 0.0, 0.0, E_dr[levels.after_cm[0, m]]
            for a in range(A):
                i = row_sa[s, a] - offset
                if row_sa[s, a] < 0:
                    continue
                earned, chance = weight_2[c] * reward_sa[s, a], policy_sa[s, a]
                q_2a[c, a] = E_dr[refusal_d, i] + earned
                quiet_2[c] += chance * (quiet_r[i] + earned)
                own_2[c] += chance * q_2a[c, a]
                if chance > 0.0 or permitted_sa[s, a]:
                    size_2[c] += abs(q_2a[c, a])
            for b in range(B):
                a, lift = b if b < A else b - A, lift_sb[s, m * B + b]
                value_2b[c, b] = -np.inf
                if permitted_sa[s, a] and not np.isnan(lift):
                    earned = weight_2[c] * reward_sa[s, a]
                    matched = E_dr[match_d, row_sa[s, a] - offset] + earned
                    value = spoken_value(policy_sa, s, a, lift, q_2a, c, own_2[c], matched)
                    value_2b[c, b] = value - price_2[c] * cost_of(cost_sa, s, a)
        if required_s[s]:
            quiet_2[0] = -np.inf
        tolerance = (TIE * size_2[0], TIE * size_2[1])
        best = pick(value_2b, (quiet_2[0], quiet_2[1]), tolerance)
        out_V_s[s] = quiet_2[0] if best == B else value_2b[0, best]
        out_advice_s[s] = best


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
    (k, m), (weight, price), J = plane, terms, space.followed_jdr.shape[0]
    A, B, q_a = model.policy_lsa.shape[2], space.value_2b.shape[1], space.q_2a[0]
    row_sa, reward_sa, policy_sa, lift_sb, _, _ = step_tables(model, h)
    cost_sa = model.cost_lsa[layer_of(model.cost_lsa.shape[0], h)]
    offset = model.first_row_l[layer_of(model.first_row_l.size - 1, h)]
    tables, after_cm = (row_sa, reward_sa, policy_sa), levels.after_cm
    quiet_d, match_d, refusal_d = after_cm[0, m], after_cm[1, m], after_cm[2, m]
    quiet_r = space.followed_jdr[k % J, quiet_d]
    for s in range(advice_s.size):
        b = as_int64(advice_s[s])
        if b == B:
            out_s[s] = fill_actions(tables, s, offset, weight, quiet_r, q_a)
            continue
        a, lift = b if b < A else b - A, lift_sb[s, m * B + b]
        cost = cost_of(cost_sa, s, a)
        then_k = max(k - int(cost), 0) if levels.is_hard else k
        E_dr = space.followed_jdr[then_k % J]
        own = fill_actions(tables, s, offset, weight, E_dr[refusal_d], q_a)
        matched = weight * reward_sa[s, a] + E_dr[match_d, row_sa[s, a] - offset]
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
            expect_levels(model, levels, h, k, then_ps, space.mixed_s, space.followed_jdr)
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
    V_hms[H] = 0.0
    second_jms[:] = 0.0
    for h in range(H - 1, -1, -1):
        expect_levels(model, levels, h, as_int64(0), V_hms[h + 1], space.mixed_s, space.E_jdr)
        ties = 0
        for m in range(M):
            out = (V_hms[h, m], advice_mhs[m, h], tied_ms[m])
            ties += choose_levels(model, levels, aim, h, m, space, out)
        if ties > 0:
            steps = (second_from, h + 1)
            catch_up_levels(model, levels, terms, steps, advice_mhs, space, second_jms)
            then_ms, now_ms, second_from = second_jms[(h + 1) % 2], second_jms[h % 2], h
            expect_levels(model, levels, h, as_int64(0), then_ms, space.mixed_s, space.followed_jdr)
            for m in range(M):
                out, plane = (V_hms[h, m], advice_mhs[m, h], tied_ms[m]), (as_int64(0), m)
                settle_levels(model, levels, aim, h, m, space, out)
                follow_levels(model, levels, terms, h, plane, space, advice_mhs[m, h], now_ms[m])
    if with_second:
        steps = (second_from, as_int64(0))
        catch_up_levels(model, levels, terms, steps, advice_mhs, space, second_jms)
