"""Compiled loops of planning under a hard budget, with or without a memory.

Planes are those of ``_level_kernels.py``. Choices tie wherever there is more budget left than can
be used, so both values of an ``Aim`` are carried, as pairs in the last axis of arrays named ``…2``.
Kernels trust their input: ``counsel.model`` has checked it.
"""

import numpy as np

from counsel._arrays import Floats, Ints
from counsel._jit import inlined, kernel
from counsel.model._kernels import cost_of, layer_of
from counsel.planning._backward_kernels import Model, step_tables
from counsel.planning._choice_kernels import TIE, Aim, Pair, advised, pick
from counsel.planning._level_kernels import (
    Levels,
    Space,
    Tables,
    price_at,
    spoken_value,
)


@kernel
def expect_pairs(model: Model, h: int, V_s2: Floats, E_r2: Floats) -> None:
    """Fill the expectations of both values for all rows of a step."""
    n = layer_of(model.first_row_l.size - 1, h)
    offset = model.first_row_l[n]
    indptr, next_state, probability = model.indptr, model.next_state, model.probability
    for i in range(offset, model.first_row_l[n + 1]):
        j = indptr[i]
        t, p = np.uint32(next_state[j]), probability[j]
        e0, e1 = p * V_s2[t, 0], p * V_s2[t, 1]
        for j in range(indptr[i] + 1, indptr[i + 1]):
            t, p = np.uint32(next_state[j]), probability[j]
            e0 += p * V_s2[t, 0]
            e1 += p * V_s2[t, 1]
        E_r2[i - offset, 0], E_r2[i - offset, 1] = e0, e1


@inlined
def after_levels(levels: Levels, d: int, first: int, V_ps2: Floats, mixed_s2: Floats) -> Floats:
    """Return both values of each state expected over row ``d`` of levels; level 0 is ``first``."""
    begin, end = levels.indptr[d], levels.indptr[d + 1]
    if end - begin == 1:
        V_s2: Floats = V_ps2[first + levels.level[begin]]
        return V_s2
    mixed_s2[:] = 0.0
    for j in range(begin, end):
        mixed_s2 += levels.weight[j] * V_ps2[first + levels.level[j]]
    return mixed_s2


@kernel
def expect_level_pairs(
    model: Model, levels: Levels, h: int, k: int, V_ps2: Floats, space: Space
) -> None:
    """Fill the expectations of both values, as ``expect_levels`` does."""
    J, M = space.E_jdr2.shape[0], levels.after_cm.shape[1]
    for d in range(levels.indptr.size - 1):
        V_s2 = after_levels(levels, d, k * M, V_ps2, space.mixed_s2)
        expect_pairs(model, h, V_s2, space.E_jdr2[k % J, d])


@inlined
def fill_action_pairs(
    tables: Tables, s: int, offset: int, weights: Pair, E_r2: Floats, q_2a: Floats
) -> tuple[float, float]:
    """Fill both values of each action; return those of the habit."""
    row_sa, reward_sa, policy_sa = tables
    alone0, alone1 = 0.0, 0.0
    for a in range(q_2a.shape[1]):
        i = row_sa[s, a]
        if i < 0:
            continue
        q_2a[0, a] = weights[0] * reward_sa[s, a] + E_r2[i - offset, 0]
        q_2a[1, a] = weights[1] * reward_sa[s, a] + E_r2[i - offset, 1]
        if policy_sa[s, a] > 0.0:
            alone0 += policy_sa[s, a] * q_2a[0, a]
            alone1 += policy_sa[s, a] * q_2a[1, a]
    return alone0, alone1


@kernel
def choose_level_pairs(
    model: Model,
    levels: Levels,
    aim: Aim,
    h: int,
    plane: tuple[int, int],
    space: Space,
    out: tuple[Floats, Floats, Ints],
) -> None:
    """Choose the best advice on one plane by both values.

    ``out`` are the first values, both values and the advice.
    """
    (k, m), A, J = plane, model.policy_lsa.shape[2], space.E_jdr2.shape[0]
    row_sa, reward_sa, policy_sa, lift_sb, permitted_sa, required_s = step_tables(model, h)
    cost_sa = model.cost_lsa[layer_of(model.cost_lsa.shape[0], h)]
    offset = model.first_row_l[layer_of(model.first_row_l.size - 1, h)]
    tables, weights = (row_sa, reward_sa, policy_sa), (aim.weight0, aim.weight1)
    after_cm = levels.after_cm
    quiet_d, match_d, refusal_d = after_cm[0, m], after_cm[1, m], after_cm[2, m]
    quiet_r2, price = space.E_jdr2[k % J, quiet_d], price_at(aim, h)
    q_2a, value_2b = space.q_2a, space.value_2b
    out_V_s, out_s2, out_advice_s = out
    for s in range(out_V_s.size):
        quiet0, quiet1 = fill_action_pairs(tables, s, offset, weights, quiet_r2, q_2a)
        if required_s[s]:
            quiet0 = -np.inf
        size0, size1, last_k, alone0, alone1 = aim.size0, aim.size1, -1, 0.0, 0.0
        for b in range(A):
            value_2b[0, b] = -np.inf
            cost = cost_of(cost_sa, s, b)
            then_k = k - int(cost) if levels.is_hard else k
            if then_k < 0 or not (permitted_sa[s, b] or policy_sa[s, b] > 0.0):
                continue
            if then_k != last_k:
                last_k, E_dr2 = then_k, space.E_jdr2[then_k % J]
                after_r2 = E_dr2[refusal_d]
                alone0, alone1 = fill_action_pairs(tables, s, offset, weights, after_r2, q_2a)
            if q_2a[0, b] > -np.inf:
                size0 += abs(q_2a[0, b])
                size1 += abs(q_2a[1, b])
            if permitted_sa[s, b]:
                lift = lift_sb[s, m * A + b]
                if match_d == refusal_d:
                    value_2b[0, b] = advised(policy_sa, s, b, lift, q_2a, 0, alone0)
                    value_2b[1, b] = advised(policy_sa, s, b, lift, q_2a, 1, alone1)
                else:
                    matched_2 = E_dr2[match_d, row_sa[s, b] - offset]
                    matched0 = weights[0] * reward_sa[s, b] + matched_2[0]
                    matched1 = weights[1] * reward_sa[s, b] + matched_2[1]
                    said = (policy_sa, s, b, lift, q_2a)
                    value_2b[0, b] = spoken_value(*said, 0, alone0, matched0)
                    value_2b[1, b] = spoken_value(*said, 1, alone1, matched1)
                value_2b[0, b] -= price * cost
                value_2b[1, b] -= aim.price1 * cost
        best = pick(value_2b, (quiet0, quiet1), (TIE * size0, TIE * size1))
        out_s2[s, 0] = quiet0 if best == A else value_2b[0, best]
        out_s2[s, 1] = quiet1 if best == A else value_2b[1, best]
        out_V_s[s], out_advice_s[s] = out_s2[s, 0], best


@kernel
def plan_back_hard(
    model: Model,
    levels: Levels,
    aim: Aim,
    space: Space,
    tables: tuple[Floats, Floats, Ints],
) -> None:
    """Plan all steps for every budget left and level, as ``plan_back_levels`` does.

    Choices tie wherever there is more budget left than can be used, so both values are carried.
    """
    (V_hps, second_jps, advice_phs), (P, H, S) = tables, tables[2].shape
    M, both_jps2 = levels.after_cm.shape[1], np.zeros((2, P, S, 2))
    V_hps[H] = 0.0
    for h in range(H - 1, -1, -1):
        for k in range(P // M):
            expect_level_pairs(model, levels, h, k, both_jps2[(h + 1) % 2], space)
            for m in range(M):
                p = k * M + m
                pairs = (V_hps[h, p], both_jps2[h % 2, p], advice_phs[p, h])
                choose_level_pairs(model, levels, aim, h, (k, m), space, pairs)
    second_jps[0] = both_jps2[0, :, :, 1]
