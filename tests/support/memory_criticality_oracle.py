"""A slow, plain oracle for criticality with a memory: [m, h, s].

Written from the formulas of the model alone (``memory_model.py``), without sight of the package.
"""

import numpy as np

from tests.support.memory_model import choice_value, choices, near, price_of
from tests.support.memory_oracle import plan_full


def cheapest_lines(P):
    """Return reward R and cost W [h, m, s] of the plan for an infinite penalty.

    It has the least expected cost and among such plans the largest reward. At a penalty β,
    V ≥ R − βW, with equality from some β on.
    """
    H, S, M = P.H, P.S, P.M
    R, W = np.zeros((H + 1, M, S)), np.zeros((H + 1, M, S))
    for h in reversed(range(H)):
        for m in range(M):
            for s in range(S):
                lines = []
                for c in choices(P, h, s):
                    w = price_of(P, h, s, c) + choice_value(P, h, m, s, c, W[h + 1], reward=False)
                    lines.append((w, choice_value(P, h, m, s, c, R[h + 1])))
                costs = [w for w, _ in lines]
                kept = [(v, w) for w, v in lines if near(w, min(costs), costs)]
                R[h, m, s], W[h, m, s] = max(kept)
    return R, W


def settled_penalty(P):
    """Return a power of two β at which V = R − βW of ``cheapest_lines`` in every cell.

    Then this holds for every larger β as well, because V is convex in β.
    """
    R, W = cheapest_lines(P)
    beta = 1.0
    while True:
        V = plan_full(P, beta)[0]
        if np.all(R - beta * W + 1e-11 * max(1.0, np.abs(V).max()) >= V):
            return beta
        beta *= 2
        if beta > 2.0**40:
            raise RuntimeError("the plan does not settle")


def margins_at(P, beta):
    """Return how much better advice b is than silence [m, h, s, b], and the rounding of this.

    At a penalty β, its price included, if the plan for β follows. −∞ where b is not possible, ∞
    where silence is not.
    """
    Q = plan_full(P, beta)[3]
    Q = np.transpose(Q, (1, 0, 2, 3))
    silence = Q[..., -1:]
    margin = np.full(Q[..., :-1].shape, -np.inf)
    slack = np.full(margin.shape, 1e-11)
    for i in np.ndindex(margin.shape):
        said, silent = Q[i], silence[(*i[:-1], 0)]
        if said > -np.inf:
            margin[i] = np.inf if silent == -np.inf else said - silent
            if silent > -np.inf:
                slack[i] = 1e-11 * max(1.0, abs(said), abs(silent))
    return margin, slack


def criticality(P, points=400, doublings=12):
    """Return the largest penalty at which advice is as good as silence [m, h, s], by brute force.

    The plan for that penalty follows. Tries ``points`` equal steps from 0 to ``settled_penalty``,
    then doublings, and bisects from the last penalty at which advice is as good to the next one.

    NaN where advice is worse than silence at every penalty tried, or not possible; 0 where it is as
    good without a penalty only. ∞ where it is as good at the largest penalty tried: where silence
    is impossible, and where advice saves at least its own cost later, which takes required cells or
    free advice.

    The grid may miss a set of penalties narrower than its steps; ``criticality_exact`` may not.
    """
    top = settled_penalty(P)
    grid = list(np.linspace(0.0, top, points + 1)) + [top * 2.0**i for i in range(1, doublings + 1)]
    seen = {}

    def pays(beta):
        if beta not in seen:
            margin, slack = margins_at(P, beta)
            seen[beta] = np.any(margin >= -slack, axis=-1)
        return seen[beta]

    out = np.full((P.M, P.H, P.S), np.nan)
    for i in np.ndindex(out.shape):
        good = [j for j, beta in enumerate(grid) if pays(beta)[i]]
        if not good:
            continue
        if good[-1] == len(grid) - 1:
            out[i] = np.inf
            continue
        low, high = grid[good[-1]], grid[good[-1] + 1]
        while high - low > 1e-9 * max(1.0, high):
            middle = (low + high) / 2
            if pays(middle)[i]:
                low = middle
            else:
                high = middle
        out[i] = low
    return out


def breakpoints(P):
    """Return penalties from 0 to ``settled_penalty`` between which every V[h, m, s] is linear.

    V is convex and piecewise linear in β. The plan breaks ties towards the least cost, so
    (V + βW, W) is the line to the right of β. If the line at ``lo`` meets V at ``hi`` in every
    cell, V is linear in between; else the interval is cut where the two lines cross.
    """
    known = {}

    def lines(beta):
        if beta not in known:
            V, _, W, _ = plan_full(P, beta)
            known[beta] = (V, W)
        return known[beta]

    top = settled_penalty(P)
    todo = [(0.0, top)]
    while todo:
        lo, hi = todo.pop()
        (Vlo, Wlo), (Vhi, Whi) = lines(lo), lines(hi)
        gap = Vhi - (Vlo - (hi - lo) * Wlo)  # >= 0 by convexity
        where = np.unravel_index(np.argmax(gap), gap.shape)
        if gap[where] <= 1e-11 * max(1.0, np.abs(Vhi).max()):
            continue
        Rlo, Rhi = Vlo[where] + lo * Wlo[where], Vhi[where] + hi * Whi[where]
        cut = (Rlo - Rhi) / (Wlo[where] - Whi[where])
        if not lo + 1e-12 * max(1, hi) < cut < hi - 1e-12 * max(1, hi):
            if hi - lo < 1e-9 * max(1, hi):
                continue
            cut = (lo + hi) / 2  # rounding; still correct
        todo += [(lo, cut), (cut, hi)]
    return sorted(known)


def criticality_exact(P):
    """Return the same as ``criticality``, exact to rounding.

    Between neighbouring ``breakpoints``, and beyond the last, the margin of each piece of advice
    over silence is linear in the penalty.
    """
    betas = breakpoints(P)
    last = betas[-1]
    betas.append(2 * last)  # beyond `last` the margin is the line through last and 2 last
    margins, slacks = zip(*[margins_at(P, beta) for beta in betas], strict=False)
    out = np.full((P.M, P.H, P.S), np.nan)
    for i in np.ndindex(out.shape):
        best = -np.inf
        for b in range(P.A):
            g = [margin[(*i, b)] for margin in margins]
            e = [slack[(*i, b)] for slack in slacks]
            if g[0] == -np.inf:
                continue
            if g[0] == np.inf:
                best = np.inf
                continue
            slope = (g[-1] - g[-2]) / last
            if g[-1] >= -e[-1]:
                best = np.inf if slope >= -1e-10 else max(best, 2 * last + max(0.0, g[-1]) / -slope)
                continue
            for j in reversed(range(len(betas) - 1)):
                if g[j] >= -e[j]:  # and g[j+1] < 0: the last crossing is in between
                    step = max(0.0, g[j]) / (g[j] - g[j + 1]) if g[j] > 0 else 0.0
                    best = max(best, betas[j] + step * (betas[j + 1] - betas[j]))
                    break
                if j == 0:
                    break
            if slope > 1e-10:
                best = np.inf  # worse now, but the saving grows without end
        if best > -np.inf:
            out[i] = best
    return out
