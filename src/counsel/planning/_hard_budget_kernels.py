"""Compiled loops of planning under a hard budget, which run backwards from the last step.

The budget left, k, is part of the state: advice of cost c leads from plane k to plane k − c. Two
values are carried together, in the last axis of every array named ``…2``: the value to maximise and
the value that breaks ties (``Aim``). Kernels trust their input: ``counsel.model`` has checked it.
"""

import numpy as np

from counsel._arrays import Floats, Ints
from counsel._jit import inlined, kernel
from counsel.model._kernels import cost_of, layer_of
from counsel.planning._backward_kernels import Model, step_tables
from counsel.planning._choice_kernels import TIE, Aim, advised, pick


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
def action_pairs(
    tables: tuple[Ints, Floats, Floats],
    s: int,
    offset: int,
    E_r2: Floats,
    weights: tuple[float, float],
    q_2a: Floats,
) -> tuple[float, float]:
    """Fill both values of each action from the rows' expectations; return those of the habit."""
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
def choose_hard(
    model: Model, aim: Aim, h: int, k: int, E_jr2: Floats, out_s2: Floats, out_advice_s: Ints
) -> None:
    """Choose the best advice in every state with a budget of ``k`` left.

    The expectations with k left are in ``E_jr2[k % J]``. A cell that requires advice is infeasible
    (−∞) if the budget left does not suffice.
    """
    A, J = model.policy_lsa.shape[2], E_jr2.shape[0]
    row_sa, reward_sa, policy_sa, lift_sa, permitted_sa, required_s = step_tables(model, h)
    cost_sa = model.cost_lsa[layer_of(model.cost_lsa.shape[0], h)]
    offset = model.first_row_l[layer_of(model.first_row_l.size - 1, h)]
    tables, weights = (row_sa, reward_sa, policy_sa), (aim.weight0, aim.weight1)
    q_2a, value_2a = np.zeros((2, A)), np.empty((2, A))
    for s in range(out_advice_s.size):
        quiet0, quiet1, alone0, alone1 = 0.0, 0.0, 0.0, 0.0
        size0, size1, last_cost = aim.size0, aim.size1, -1
        for b in range(-1, A):  # first silence, which costs nothing
            cost = 0 if b < 0 else int(cost_of(cost_sa, s, b))
            if b >= 0:
                value_2a[0, b] = -np.inf
                if cost > k or not (permitted_sa[s, b] or policy_sa[s, b] > 0.0):
                    continue
            if cost != last_cost:
                after_r2 = E_jr2[(k - cost) % J]
                alone0, alone1 = action_pairs(tables, s, offset, after_r2, weights, q_2a)
                last_cost = cost
            if b < 0:
                quiet0, quiet1 = -np.inf if required_s[s] else alone0, alone1
                continue
            if q_2a[0, b] > -np.inf:
                size0 += abs(q_2a[0, b])
                size1 += abs(q_2a[1, b])
            if permitted_sa[s, b]:
                lift = lift_sa[s, b]
                value_2a[0, b] = advised(policy_sa, s, b, lift, q_2a, 0, alone0)
                value_2a[1, b] = advised(policy_sa, s, b, lift, q_2a, 1, alone1)
                value_2a[1, b] -= aim.price1 * cost
        best = pick(value_2a, (quiet0, quiet1), (TIE * size0, TIE * size1))
        out_s2[s, 0] = quiet0 if best == A else value_2a[0, best]
        out_s2[s, 1] = quiet1 if best == A else value_2a[1, best]
        out_advice_s[s] = best


@kernel
def plan_back_hard(
    model: Model, aim: Aim, E_jr2: Floats, V_khs: Floats, both_ks2: Floats, advice_khs: Ints
) -> None:
    """Plan all steps for every budget k left.

    ``E_jr2`` is working space for the expectations of as many planes as the largest cost, plus one.
    """
    K, H, S = advice_khs.shape
    for k in range(K):
        for s in range(S):
            V_khs[k, H, s] = 0.0
            both_ks2[H % 2, k, s, 0] = both_ks2[H % 2, k, s, 1] = 0.0
    for h in range(H - 1, -1, -1):
        for k in range(K):
            expect_pairs(model, h, both_ks2[(h + 1) % 2, k], E_jr2[k % E_jr2.shape[0]])
            out_s2 = both_ks2[h % 2, k]
            choose_hard(model, aim, h, k, E_jr2, out_s2, advice_khs[k, h])
            for s in range(S):
                V_khs[k, h, s] = out_s2[s, 0]
