"""The planner of hard budgets as it was before there were memories, in plain Python.

The planner of levels must give the same plans to the last bit. Sums run over the same numbers in
the same order: the arrays are those that the package prepares.
"""

from math import inf

import numpy as np

from counsel.planning.constraints import Constraints
from counsel.planning.prepared_problem import prepare

TIE = 1e-12
NO_MASS = 1e-12
ALMOST_CERTAIN = 0.9


def at_layer(table, h):
    """Return a table of one step as nested lists of plain numbers."""
    return table[h if len(table) > 1 else 0].tolist()


def rows_at(model, h):
    """Return the entries (next state, probability) of each row of a step, and its first row."""
    n = h if model.first_row_l.size > 2 else 0
    first, end = model.first_row_l[n : n + 2].tolist()
    next_state, probability = model.next_state.tolist(), model.probability.tolist()
    bounds = model.indptr.tolist()
    rows = [
        list(zip(next_state[i:j], probability[i:j], strict=True))
        for i, j in zip(bounds[first:end], bounds[first + 1 : end + 1], strict=True)
    ]
    return rows, first


def expect_pairs(rows, V_s2):
    """Return the expectations of both values for all rows."""
    E_r2 = []
    for (t, p), *rest in rows:
        e0, e1 = p * V_s2[t][0], p * V_s2[t][1]
        for t, p in rest:
            e0 += p * V_s2[t][0]
            e1 += p * V_s2[t][1]
        E_r2.append((e0, e1))
    return E_r2


def action_pairs(row_a, reward_a, own_a, offset, E_r2, weights):
    """Return both values of each action, and those of the habit."""
    q_2a, alone = [[0.0] * len(row_a), [0.0] * len(row_a)], [0.0, 0.0]
    for a, i in enumerate(row_a):
        if i < 0:
            continue
        for c in (0, 1):
            q_2a[c][a] = weights[c] * reward_a[a] + E_r2[i - offset][c]
        if own_a[a] > 0.0:
            for c in (0, 1):
                alone[c] += own_a[a] * q_2a[c][a]
    return q_2a, alone


def advised(own_a, a, lift, q_a, alone):
    """Return the value of advising ``a``, also if some action is infeasible (−∞)."""
    if alone > -inf and q_a[a] > -inf:
        if own_a[a] < ALMOST_CERTAIN:
            return alone + lift * (q_a[a] - alone)
        advantage = 0.0
        for b, own in enumerate(own_a):
            if own > 0.0 and b != a:
                advantage += own * (q_a[a] - q_a[b])
        return alone + lift * advantage
    total, theta = 0.0, own_a[a]
    for b, own in enumerate(own_a):
        if b != a and own > 0.0:
            theta += lift * own
            if lift < 1.0:
                total += (1.0 - lift) * own * q_a[b]
    if theta > NO_MASS * own_a[a]:
        total += theta * q_a[a]
    return total


def pick(value_2a, quiet, tolerance):
    """Return the best choice by both values of each advice and of silence (−∞: not possible)."""
    A = len(value_2a[0])
    top = max(quiet[0], *value_2a[0])
    if top == -inf:
        return A
    tied = top - tolerance[0]
    best, best1 = A, quiet[1] if quiet[0] >= tied else -inf
    for a in range(A):
        if value_2a[0][a] >= tied and value_2a[1][a] > best1 + tolerance[1]:
            best, best1 = a, value_2a[1][a]
    return best


def choose_hard(model, aim, h, k, E_kr2, offset):
    """Return both values and the best advice of every state with a budget of ``k`` left."""
    row_sa, reward_sa, own_sa, lift_sa, permitted_sa, required_s = (
        at_layer(table, h)
        for table in (
            model.row_lsa,
            model.reward_lsa,
            model.policy_lsa,
            model.lift_lsa,
            model.permitted_lsa,
            model.required_ls,
        )
    )
    cost_sa = at_layer(model.cost_lsa, h)
    weights, out = (aim.weight0, aim.weight1), []
    for s, own_a in enumerate(own_sa):
        A, cost_a = len(own_a), cost_sa[s if len(cost_sa) > 1 else 0]
        cost_a = cost_a if len(cost_a) > 1 else cost_a * A
        world = (row_sa[s], reward_sa[s], own_a, offset)
        value_2a, sizes, last_cost = [[-inf] * A, [0.0] * A], [aim.size0, aim.size1], 0
        q_2a, alone = action_pairs(*world, E_kr2[k], weights)
        quiet = (-inf if required_s[s] else alone[0], alone[1])
        for b in range(A):
            cost = int(cost_a[b])
            if cost > k or not (permitted_sa[s][b] or own_a[b] > 0.0):
                continue
            if cost != last_cost:
                q_2a, alone = action_pairs(*world, E_kr2[k - cost], weights)
                last_cost = cost
            if q_2a[0][b] > -inf:
                sizes[0] += abs(q_2a[0][b])
                sizes[1] += abs(q_2a[1][b])
            if permitted_sa[s][b]:
                for c in (0, 1):
                    value_2a[c][b] = advised(own_a, b, lift_sa[s][b], q_2a[c], alone[c])
                value_2a[1][b] -= aim.price1 * cost
        best = pick(value_2a, quiet, (TIE * sizes[0], TIE * sizes[1]))
        values = quiet if best == A else (value_2a[0][best], value_2a[1][best])
        out.append((values, best))
    return out


def plan_hard(problem, budget, **masks):
    """Return the values [k, h, s] and the advice [k, h, s] of the best plan within a budget."""
    prepared = prepare(problem, Constraints.read(problem, **masks))
    model, H, S = prepared.whole.model, problem.horizon, problem.n_states
    K = min(budget, H * problem.whole_costs()) + 1
    V_khs, advice_khs = np.zeros((K, H + 1, S)), np.zeros((K, H, S), dtype=np.int16)
    both_ks2 = [[(0.0, 0.0)] * S for _ in range(K)]
    for h in reversed(range(H)):
        rows, offset = rows_at(model, h)
        E_kr2 = [expect_pairs(rows, both_s2) for both_s2 in both_ks2]
        for k in range(K):
            chosen = choose_hard(model, prepared.free, h, k, E_kr2, offset)
            both_ks2[k] = [values for values, _ in chosen]
            V_khs[k, h] = [values[0] for values, _ in chosen]
            advice_khs[k, h] = [advice for _, advice in chosen]
    return V_khs, advice_khs
