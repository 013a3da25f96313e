"""A slow, plain oracle for plans, evaluations and budgets with a memory.

Written from the formulas of the model alone (``memory_model.py``), without sight of the package.

Order of axes:

- values V and the advice of ``plan``: [h, m, s]
- lifts, policies: [m, h, s, …]
- advice of ``hard_budget``: [k, m, h, s], where k is the cost that may still be spent
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_matrix

from tests.support.memory_model import (
    action_probabilities,
    choice_value,
    choices,
    level_row,
    lift_at,
    mean_next,
    pick,
    price_of,
)


def plan_full(P, penalty=0.0):
    """Return values V, advice, costs W and the values Q of all choices of the best plan.

    V[h, m, s] is the expected reward minus penalty · cost from here on, W[h, m, s] the expected
    cost from here on; both have a last step H of zeros. Q[h, m, s, c] is the value of a choice that
    the plan follows, −∞ where the choice is not possible.
    """
    H, S, A, M = P.H, P.S, P.A, P.M
    V = np.zeros((H + 1, M, S))
    W = np.zeros((H + 1, M, S))
    Q = np.full((H, M, S, A + 1), -np.inf)
    advice = np.full((H, M, S), A)
    for h in reversed(range(H)):
        for m in range(M):
            for s in range(S):
                options = {}
                for c in choices(P, h, s):
                    w = price_of(P, h, s, c)
                    v = choice_value(P, h, m, s, c, V[h + 1]) - penalty * w
                    options[c] = (v, w + choice_value(P, h, m, s, c, W[h + 1], reward=False))
                    Q[h, m, s, c] = v
                c = pick(P, options)
                advice[h, m, s] = c
                V[h, m, s], W[h, m, s] = options[c]
    return V, advice, W, Q


def plan(P, penalty=0.0):
    """Return the values V[h, m, s] and the advice [h, m, s] of the best plan on (s, m)."""
    V, advice, _, _ = plan_full(P, penalty)
    return V, advice


def start_mean(P, table):
    """Return the mean of a table [m, s] at the start."""
    return float(P.start @ table[P.start_level])


def terms(P, V):
    """Return lift, advantage, burden and gain [h, m, s, b] under the values V[h, m, s].

    With B = Σ_{a≠b} π(a) Q⁻(a) + π(b) Q⁺(b), the advantage is Q⁺(b) − B and the burden d⁰ − B. The
    gain is lift × advantage − burden: the value of advice b before its price, minus d⁰. All are NaN
    where b is not allowed; forbidden advice has numbers, too.
    """
    H, S, A, M = P.H, P.S, P.A, P.M
    lift, advantage, burden = (np.full((H, M, S, A), np.nan) for _ in range(3))
    for h in range(H):
        for m in range(M):
            for s in range(S):
                pi = P.habit[h, s]
                q0, qp, qm = (
                    [P.r[h, s, a] + mean_next(K[m], P.p[h, s, a], V[h + 1]) for a in range(A)]
                    for K in (P.K0, P.Kplus, P.Kminus)
                )
                d0 = sum(pi[a] * q0[a] for a in range(A))
                for b in range(A):
                    if P.allowed[h, s, b]:
                        B = sum(pi[a] * qm[a] for a in range(A) if a != b) + pi[b] * qp[b]
                        lift[h, m, s, b] = lift_at(P, m, h, s, b)
                        advantage[h, m, s, b] = qp[b] - B
                        burden[h, m, s, b] = d0 - B
    return lift, advantage, burden, lift * advantage - burden


def as_policy(P, advice):
    """Return advice [h, m, s] as probabilities [m, h, s, A + 1]."""
    policy = np.zeros((P.M, P.H, P.S, P.A + 1))
    for h in range(P.H):
        for m in range(P.M):
            for s in range(P.S):
                policy[m, h, s, advice[h, m, s]] = 1.0
    return policy


def evaluate(P, policy):
    """Return the expected reward, pieces and cost of a policy [m, h, s, A + 1].

    Follows the distribution over (m, s) forwards. The masks are not looked at.
    """
    H, S, A, M = P.H, P.S, P.A, P.M
    here = np.zeros((M, S))
    here[P.start_level] = P.start
    value = count = cost = 0.0
    for h in range(H):
        then = np.zeros((M, S))
        for m in range(M):
            for s in range(S):
                for c in range(A + 1):
                    weight = here[m, s] * policy[m, h, s, c]
                    if weight == 0:
                        continue
                    if c < A:
                        count += weight
                        cost += weight * P.cost[h, s, c]
                    prob = action_probabilities(P, m, h, s, c)
                    for a in range(A):
                        value += weight * prob[a] * P.r[h, s, a]
                        then += weight * prob[a] * np.outer(level_row(P, m, c, a), P.p[h, s, a])
        here = then
    return float(value), float(count), float(cost)


class Hard(NamedTuple):
    """A plan within a hard budget: −∞ and −1 where it is infeasible."""

    value: float
    advice: np.ndarray  # [k, m, h, s]
    V: np.ndarray  # [k, m, h, s], with a last step H of zeros


def hard_budget(P, D):
    """Return the best plan that never spends more than D in any episode.

    D and the costs of possible advice are whole numbers, the costs at least 1. The policy knows
    what is left. A cell that requires advice is infeasible (−∞) if too little is left for any of
    it, and so is a choice that leads to such a cell with positive probability. Ties are broken as
    in ``plan``.
    """
    H, S, A, M = P.H, P.S, P.A, P.M
    for h in range(H):
        for s in range(S):
            for b in choices(P, h, s):
                if b < A and (P.cost[h, s, b] < 1 or P.cost[h, s, b] != round(P.cost[h, s, b])):
                    raise ValueError("a hard budget needs whole costs of at least 1")
    V = np.zeros((D + 1, M, H + 1, S))
    W = np.zeros((D + 1, M, H + 1, S))
    advice = np.full((D + 1, M, H, S), -1)
    for h in reversed(range(H)):
        for k in range(D + 1):
            for m in range(M):
                for s in range(S):
                    options = {}
                    for c in choices(P, h, s):
                        w = int(price_of(P, h, s, c))
                        if w > k:
                            continue
                        v = choice_value(P, h, m, s, c, V[k - w, :, h + 1])
                        if v > -np.inf:
                            rest = choice_value(P, h, m, s, c, W[k - w, :, h + 1], reward=False)
                            options[c] = (v, w + rest)
                    if options:
                        c = pick(P, options)
                        advice[k, m, h, s] = c
                        V[k, m, h, s], W[k, m, h, s] = options[c]
                    else:
                        V[k, m, h, s] = -np.inf
                        W[k, m, h, s] = 0.0  # never used: such a choice is never an option
    value = 0.0
    for s in range(S):
        if P.start[s] > 0:
            value += P.start[s] * V[D, P.start_level, 0, s]
    return Hard(float(value), advice, V)


def evaluate_hard(P, D, advice):
    """Return the expected reward, pieces and cost of advice [k, m, h, s], and its largest cost.

    Follows the distribution over (k, m, s) forwards, from D units left.
    """
    H, S, A, M = P.H, P.S, P.A, P.M
    here = np.zeros((D + 1, M, S))
    here[D, P.start_level] = P.start
    value = count = cost = 0.0
    for h in range(H):
        then = np.zeros((D + 1, M, S))
        for k in range(D + 1):
            for m in range(M):
                for s in range(S):
                    weight = here[k, m, s]
                    if weight == 0:
                        continue
                    c = advice[k, m, h, s]
                    assert c >= 0, "an infeasible cell is reached"
                    w = int(price_of(P, h, s, c))
                    assert w <= k
                    count += weight * (c < A)
                    cost += weight * w
                    prob = action_probabilities(P, m, h, s, c)
                    for a in range(A):
                        value += weight * prob[a] * P.r[h, s, a]
                        then[k - w] += (
                            weight * prob[a] * np.outer(level_row(P, m, c, a), P.p[h, s, a])
                        )
        here = then
    left = min(k for k in range(D + 1) if here[k].sum() > 0)
    return float(value), float(count), float(cost), D - left


class Budget(NamedTuple):
    """A plan within an expected budget: value −∞, numbers NaN and no policy if infeasible."""

    value: float
    price: float  # the dual price of the budget, at a kink one of many
    cost: float
    policy: np.ndarray | None  # [m, h, s, A + 1]


def occupancies(P):
    """Return the LP of occupancies: its choices, gains, costs, equations and their right side.

    It has a variable x[h, m, s, c] ≥ 0 for each possible choice:

        Σ_c x[0, m, s, c] = start[s] · 1{m is the start level}
        Σ_c x[h+1, n, t, c] = Σ_{m,s,c,a} x[h, m, s, c] P(a) p(t) K(n)
    """
    H, S, A, M = P.H, P.S, P.A, P.M
    names = [
        (h, m, s, c) for h in range(H) for m in range(M) for s in range(S) for c in choices(P, h, s)
    ]

    def row(h, m, s):
        return (h * M + m) * S + s

    entries = []
    gain, cost = np.zeros(len(names)), np.zeros(len(names))
    for i, (h, m, s, c) in enumerate(names):
        entries.append((row(h, m, s), i, 1.0))
        cost[i] = price_of(P, h, s, c)
        prob = action_probabilities(P, m, h, s, c)
        then = np.zeros((M, S))
        for a in range(A):
            gain[i] += prob[a] * P.r[h, s, a]
            then += prob[a] * np.outer(level_row(P, m, c, a), P.p[h, s, a])
        if h + 1 < H:
            entries += [(row(h + 1, n, t), i, -then[n, t]) for n, t in np.argwhere(then != 0)]
    rows, cols, data = zip(*entries, strict=True)
    equal = coo_matrix((data, (rows, cols)), shape=(H * M * S, len(names))).tocsr()
    right = np.zeros(H * M * S)
    for s in range(S):
        right[row(0, P.start_level, s)] = P.start[s]
    return names, gain, cost, equal, right


def budget_lp(P, D):
    """Return the best policy whose expected cost is at most D, by the LP of occupancies.

    In cells that the solution never visits, the policy is the first possible choice of silence, 0,
    1, …
    """
    H, S, A, M = P.H, P.S, P.A, P.M
    names, gain, cost, equal, right = occupancies(P)
    out = linprog(
        -gain,
        A_ub=cost[None, :],
        b_ub=[D],
        A_eq=equal,
        b_eq=right,
        bounds=(0, None),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if out.status == 2:
        return Budget(-np.inf, np.nan, np.nan, None)
    if out.status != 0:
        raise RuntimeError(out.message)
    x = np.maximum(out.x, 0)
    policy = np.zeros((M, H, S, A + 1))
    for i, (h, m, s, c) in enumerate(names):
        policy[m, h, s, c] = x[i]
    for m in range(M):
        for h in range(H):
            for s in range(S):
                mass = policy[m, h, s].sum()
                if mass > 1e-13:
                    policy[m, h, s] /= mass
                else:
                    policy[m, h, s] = 0.0
                    possible = choices(P, h, s)
                    policy[m, h, s, A if A in possible else possible[0]] = 1.0
    price = -float(out.ineqlin.marginals[0]) + 0.0
    return Budget(float(gain @ x), price, float(cost @ x), policy)


def frontier_points(P, budgets):
    """Return the values, prices and costs of ``budget_lp`` at each budget."""
    plans = [budget_lp(P, D) for D in budgets]
    return tuple(np.array([getattr(x, name) for x in plans]) for name in ("value", "price", "cost"))


class Simulated(NamedTuple):
    """Means over episodes, each with its standard error."""

    value: float
    value_error: float
    pieces: float
    pieces_error: float
    cost: float
    cost_error: float


def simulate(P, policy, episodes, rng):
    """Return the means over simulated episodes of a policy [m, h, s, A + 1]."""

    def roll(weights):
        return min(
            int(np.searchsorted(np.cumsum(weights), rng.random() * np.sum(weights), side="right")),
            len(weights) - 1,
        )

    rows = []
    for _ in range(episodes):
        s, m = roll(P.start), P.start_level
        value = count = cost = 0.0
        for h in range(P.H):
            c = roll(policy[m, h, s])
            a = roll(action_probabilities(P, m, h, s, c))
            if c < P.A:
                count += 1
                cost += P.cost[h, s, c]
            value += P.r[h, s, a]
            n = roll(level_row(P, m, c, a))
            s = roll(P.p[h, s, a])
            m = n
        rows.append((value, count, cost))
    rows = np.array(rows)
    mean, error = rows.mean(0), rows.std(0, ddof=1) / np.sqrt(episodes)
    return Simulated(mean[0], error[0], mean[1], error[1], mean[2], error[2])
