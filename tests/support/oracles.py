"""Slow, obvious reference implementations of advice planning, for tests only.

Setting: step h < H, state s < S, human action a < A, advice b < A or defer = A.
Every table is full and dense: ``P_hsat``, ``r_hsa``, ``pi_hsa`` (the person's own
policy), ``theta_hsa`` (adherence), ``allowed_hsa`` (masked actions have π = 0 and are
never advised), ``start_s``. The person's action given advice b follows equation (1):

    law(a | b) = θ(b) if a = b, else (1 − θ(b)) π(a) / Σ_{c ≠ b} π(c),

and law(· | defer) = π. Deviates: where Σ_{c ≠ b} π(c) = 0 the person takes b for
certain and law(· | b) = π. Everything below works on the machine's MDP

    Pᴹ(t | s, b) = Σₐ law(a | b) P(t | s, a),   rᴹ(s, b) = Σₐ law(a | b) r(s, a),

never on lift × advantage, so that it is independent of the identity it tests.
``forbidden_hs`` leaves only defer; ``required_hs`` removes defer. A state that offers
nothing is worth −∞, and −∞ with probability 0 counts as 0.

The dense arrays are the interface here, so signatures are long on purpose.
"""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

TIE = 1e-12  # penalised values closer than this (relative, at least 1) are equal


class Problem(NamedTuple):
    """The dense arrays in calling order, so that ``plan(*problem)`` works."""

    P_hsat: Floats
    r_hsa: Floats
    pi_hsa: Floats
    theta_hsa: Floats
    allowed_hsa: Bools
    start_s: Floats


class Plan(NamedTuple):
    """Penalised V [H+1, S] and Q [H, S, A+1], advice [H, S], pieces to the end N."""

    V_hs: Floats
    Q_hsb: Floats
    advice_hs: Ints
    N_hs: Floats
    value: float
    pieces: float


class Outcome(NamedTuple):
    """What a policy earns (unpenalised) and how much it says, in total and per step."""

    value: float
    pieces: float
    reward_h: Floats
    advice_h: Floats
    occupancy_hs: Floats


class Solution(NamedTuple):
    """LP optimum, price of one more expected piece (≥ 0), occupancy [H, S, A+1]."""

    value: float
    price: float
    x_hsb: Floats


def law(pi_a: Floats, theta_a: Floats, advice: int) -> Floats:
    """Return the distribution of the person's action given ``advice``, equation (1)."""
    if advice == len(pi_a):
        return pi_a.copy()
    others_a = pi_a.copy()
    others_a[advice] = 0.0
    if others_a.sum() == 0.0:
        return pi_a.copy()
    law_a: Floats = (1.0 - theta_a[advice]) * others_a / others_a.sum()
    law_a[advice] = theta_a[advice]
    return law_a


def machine(
    P_hsat: Floats, r_hsa: Floats, pi_hsa: Floats, theta_hsa: Floats
) -> tuple[Floats, Floats]:
    """Return Pᴹ [H, S, A+1, S] and rᴹ [H, S, A+1], mixing P and r by the law.

    Rows of masked advice may sum to less than one; no policy may use them.
    """
    H, S, A = r_hsa.shape
    P_hsbt, r_hsb = np.zeros((H, S, A + 1, S)), np.zeros((H, S, A + 1))
    for h, s, b in np.ndindex(H, S, A + 1):
        law_a = law(pi_hsa[h, s], theta_hsa[h, s], b)
        P_hsbt[h, s, b] = law_a @ P_hsat[h, s]
        r_hsb[h, s, b] = law_a @ r_hsa[h, s]
    return P_hsbt, r_hsb


def permitted(
    allowed_hsa: Bools,
    forbidden_hs: Bools | None = None,
    required_hs: Bools | None = None,
) -> Bools:
    """Return which b [H, S, A+1] may be chosen: masks, no advice, no defer."""
    H, S, A = allowed_hsa.shape
    may_hsb = np.concatenate([allowed_hsa, np.ones((H, S, 1), dtype=bool)], axis=-1)
    if forbidden_hs is not None:
        may_hsb[forbidden_hs, :A] = False
    if required_hs is not None:
        may_hsb[required_hs, A] = False
    return may_hsb


def expect(P_xt: Floats, v_t: Floats) -> Floats:
    """Return Σₜ P(t) v(t) with 0 · (−∞) = 0."""
    lost_t = np.isneginf(v_t)
    mean_x = P_xt @ np.where(lost_t, 0.0, v_t)
    return np.where((P_xt[..., lost_t] > 0.0).any(axis=-1), -np.inf, mean_x)


def sweep(
    P_hsbt: Floats, r_hsb: Floats, may_hsb: Bools, penalty: float
) -> tuple[Floats, Floats, Ints, Floats]:
    """Return V, Q, advice and N by backward induction on the machine's MDP.

    Qₕ(s, b) = rᴹ − β 1[b ≠ defer] + Σₜ Pᴹ(t) Vₕ₊₁(t), −∞ where not permitted. Among
    equal Q: fewest expected pieces to the end, then defer, then the lowest index.
    Where nothing is feasible V = −∞, advice = defer and N = 0.
    """
    H, S, B = r_hsb.shape
    defer = B - 1
    spoken_b = (np.arange(B) != defer).astype(float)
    V_hs, N_hs = np.zeros((H + 1, S)), np.zeros((H + 1, S))
    Q_hsb, advice_hs = np.zeros((H, S, B)), np.full((H, S), defer)
    for h in reversed(range(H)):
        Q_sb = r_hsb[h] - penalty * spoken_b + expect(P_hsbt[h], V_hs[h + 1])
        Q_hsb[h] = np.where(may_hsb[h], Q_sb, -np.inf)
        V_hs[h] = Q_hsb[h].max(axis=-1)
        pieces_sb = spoken_b + P_hsbt[h] @ N_hs[h + 1]
        for s in np.flatnonzero(V_hs[h] > -np.inf):
            best = V_hs[h, s]
            tied = np.flatnonzero(Q_hsb[h, s] >= best - TIE * max(1.0, abs(best)))
            fewest = pieces_sb[s, tied].min()
            tied = tied[pieces_sb[s, tied] <= fewest + TIE * max(1.0, fewest)]
            advice_hs[h, s] = defer if defer in tied else tied[0]
            N_hs[h, s] = pieces_sb[s, advice_hs[h, s]]
    return V_hs, Q_hsb, advice_hs, N_hs


def plan(
    P_hsat: Floats,
    r_hsa: Floats,
    pi_hsa: Floats,
    theta_hsa: Floats,
    allowed_hsa: Bools,
    start_s: Floats,
    penalty: float = 0.0,
    forbidden_hs: Bools | None = None,
    required_hs: Bools | None = None,
) -> Plan:
    """Return the plan of ``sweep`` for one penalty, and its worth from the start."""
    P_hsbt, r_hsb = machine(P_hsat, r_hsa, pi_hsa, theta_hsa)
    may_hsb = permitted(allowed_hsa, forbidden_hs, required_hs)
    V_hs, Q_hsb, advice_hs, N_hs = sweep(P_hsbt, r_hsb, may_hsb, penalty)
    value, pieces = float(expect(start_s, V_hs[0])), float(start_s @ N_hs[0])
    return Plan(V_hs, Q_hsb, advice_hs, N_hs, value, pieces)


def stochastic(advice_hs: Ints, n_actions: int) -> Floats:
    """Return the deterministic policy as probabilities [H, S, A+1]."""
    return np.eye(n_actions + 1)[advice_hs]


def evaluate(
    P_hsat: Floats,
    r_hsa: Floats,
    pi_hsa: Floats,
    theta_hsa: Floats,
    start_s: Floats,
    policy_hsb: Floats,
) -> Outcome:
    """Carry Pr(s, b, a, t) = d(s) policy(b | s) law(a | b) P(t | s, a) forwards."""
    H, S, A = r_hsa.shape
    reward_h, advice_h, d_hs = np.zeros(H), np.zeros(H), np.zeros((H + 1, S))
    d_hs[0] = start_s
    for h, s, b in np.ndindex(H, S, A + 1):
        joint = d_hs[h, s] * policy_hsb[h, s, b]
        joint_a = joint * law(pi_hsa[h, s], theta_hsa[h, s], b)
        reward_h[h] += joint_a @ r_hsa[h, s]
        advice_h[h] += joint * (b < A)
        d_hs[h + 1] += joint_a @ P_hsat[h, s]
    return Outcome(reward_h.sum(), advice_h.sum(), reward_h, advice_h, d_hs[:H])


def evaluate_hard(
    P_hsat: Floats,
    r_hsa: Floats,
    pi_hsa: Floats,
    theta_hsa: Floats,
    start_s: Floats,
    advice_khs: Ints,
) -> tuple[Outcome, int]:
    """Carry Pr(k, s) forwards, k pieces left; also the most pieces on a possible path.

    Starts at k = D = len(advice_khs) − 1. Advising with none left, where that can
    happen, is an error. Possibility is tracked apart from probability.
    """
    H, S, A = r_hsa.shape
    D = len(advice_khs) - 1
    reward_h, advice_h = np.zeros(H), np.zeros(H)
    d_hks = np.zeros((H + 1, D + 1, S))
    can_hks = np.zeros((H + 1, D + 1, S), dtype=bool)
    d_hks[0, D], can_hks[0, D] = start_s, start_s > 0.0
    for h, k, s in np.ndindex(H, D + 1, S):
        if not can_hks[h, k, s]:
            continue
        b = int(advice_khs[k, h, s])
        left = k - (b < A)
        if left < 0:
            raise ValueError(f"advice {b} at step {h}, state {s} with no pieces left")
        law_a = law(pi_hsa[h, s], theta_hsa[h, s], b)
        reward_h[h] += d_hks[h, k, s] * (law_a @ r_hsa[h, s])
        advice_h[h] += d_hks[h, k, s] * (b < A)
        d_hks[h + 1, left] += d_hks[h, k, s] * (law_a @ P_hsat[h, s])
        can_hks[h + 1, left] |= (P_hsat[h, s][law_a > 0.0] > 0.0).any(axis=0)
    most = D - int(np.argwhere(can_hks[H].any(axis=-1)).min())
    occupancy_hs = d_hks[:H].sum(axis=1)
    outcome = Outcome(reward_h.sum(), advice_h.sum(), reward_h, advice_h, occupancy_hs)
    return outcome, most


def brute_force(
    P_hsat: Floats,
    r_hsa: Floats,
    pi_hsa: Floats,
    theta_hsa: Floats,
    allowed_hsa: Bools,
    start_s: Floats,
    forbidden_hs: Bools | None = None,
    required_hs: Bools | None = None,
) -> tuple[Floats, Floats]:
    """Return (count, value) of every deterministic Markov policy, in no useful order.

    The policies are the mixed-radix numbers whose digits are the permitted choices of
    the H·S cells; each one's state distribution is carried forwards.
    """
    P_hsbt, r_hsb = machine(P_hsat, r_hsa, pi_hsa, theta_hsa)
    may_hsb = permitted(allowed_hsa, forbidden_hs, required_hs)
    H, S, B = r_hsb.shape
    sizes_hs = may_hsb.sum(axis=-1)
    total = int(np.prod(sizes_hs, dtype=object))
    if total > 300_000:
        raise ValueError(f"{total} policies are too many to enumerate")
    rest_n, rows = np.arange(total), np.arange(S)
    d_ns = np.tile(start_s, (total, 1))
    count_n, value_n = np.zeros(total), np.zeros(total)
    for h in range(H):
        b_ns = np.zeros((total, S), dtype=np.int64)
        for s in range(S):
            rest_n, digit_n = np.divmod(rest_n, sizes_hs[h, s])
            b_ns[:, s] = np.flatnonzero(may_hsb[h, s])[digit_n]
        count_n += (d_ns * (b_ns < B - 1)).sum(axis=1)
        value_n += (d_ns * r_hsb[h, rows, b_ns]).sum(axis=1)
        d_ns = np.einsum("ns,nst->nt", d_ns, P_hsbt[h, rows, b_ns])
    return count_n, value_n


def best_penalised(count_n: Floats, value_n: Floats, penalty: float) -> float:
    """Return V*_β = maxₙ valueₙ − β countₙ."""
    return float((value_n - penalty * count_n).max())


def hull(count_n: Floats, value_n: Floats) -> tuple[Floats, Floats]:
    """Return the vertices (count, value) of the rising upper concave hull.

    From the best value at the smallest count to the smallest count at the best value;
    between them slopes fall strictly and stay positive. Counts equal to 1e-10 are one.
    """
    order_n = np.argsort(count_n)
    gaps = np.flatnonzero(np.diff(count_n[order_n]) > 1e-10) + 1
    xs: list[float] = []
    ys: list[float] = []
    for same in np.split(order_n, gaps):
        top = same[value_n[same].argmax()]
        x, y = float(count_n[top]), float(value_n[top])
        if ys and y <= ys[-1] + 1e-10:
            continue
        while len(xs) > 1 and (y - ys[-1]) * (xs[-1] - xs[-2]) >= (
            (ys[-1] - ys[-2]) * (x - xs[-1]) - 1e-11
        ):
            xs.pop()
            ys.pop()
        xs.append(x)
        ys.append(y)
    return np.array(xs), np.array(ys)


def best_budget(hull_x: Floats, hull_y: Floats, budget: float) -> float:
    """Return the best value with at most ``budget`` expected pieces, mixing allowed."""
    if budget < hull_x[0] - 1e-9:
        return -np.inf
    return float(np.interp(budget, hull_x, hull_y))


def hard_budget(
    P_hsat: Floats,
    r_hsa: Floats,
    pi_hsa: Floats,
    theta_hsa: Floats,
    allowed_hsa: Bools,
    budget: int,
    forbidden_hs: Bools | None = None,
    required_hs: Bools | None = None,
    cost_hsa: Floats | None = None,
) -> Floats:
    """Return V [D+1, H+1, S], the best value with at most k pieces on every path.

    V(k, h, s) = max_b rᴹ(s, b) + Σₜ Pᴹ(t) V(k − c(b), h + 1, t), with c = 1[b ≠ defer] if
    no costs are given, and advice only if k ≥ c. A required cell with too small a k is −∞.
    """
    P_hsbt, r_hsb = machine(P_hsat, r_hsa, pi_hsa, theta_hsa)
    may_hsb = permitted(allowed_hsa, forbidden_hs, required_hs)
    H, S, B = r_hsb.shape

    @cache
    def value(k: int, h: int, s: int) -> float:
        if h == H:
            return 0.0
        best = -np.inf
        for b in np.flatnonzero(may_hsb[h, s]):
            price = 1 if cost_hsa is None or b == B - 1 else int(cost_hsa[h, s, b])
            left = k - price * int(b < B - 1)
            if left >= 0:
                p_t = P_hsbt[h, s, b]
                later = sum(float(p_t[t]) * value(left, h + 1, t) for t in range(S) if p_t[t])
                best = max(best, float(r_hsb[h, s, b]) + later)
        return best

    V_khs = np.zeros((budget + 1, H + 1, S))
    for k, h, s in np.ndindex(*V_khs.shape):
        V_khs[k, h, s] = value(k, h, s)
    return V_khs


def occupancy_lp(
    P_hsat: Floats,
    r_hsa: Floats,
    pi_hsa: Floats,
    theta_hsa: Floats,
    allowed_hsa: Bools,
    start_s: Floats,
    budget: float = np.inf,
    forbidden_hs: Bools | None = None,
    required_hs: Bools | None = None,
    *,
    penalty: float | Floats = 0.0,
    cost_hsa: Floats | None = None,
) -> Solution:
    """Maximise Σ x (rᴹ − β c) over occupancies x [H, S, A+1] by HiGHS.

    Without costs c = 1[b ≠ defer].
    Σ_b xₕ₊₁(t, b) = Σ_{s, b} xₕ(s, b) Pᴹₕ(t | s, b), x₀ sums to the start, x = 0 where
    not permitted, and Σ x c ≤ D, whose dual is the price: at a vertex of the
    frontier any number between its two slopes. Infeasible: value −∞, price ∞.
    """
    P_hsbt, r_hsb = machine(P_hsat, r_hsa, pi_hsa, theta_hsa)
    may_hsb = permitted(allowed_hsa, forbidden_hs, required_hs)
    H, S, B = r_hsb.shape
    spoken_hsb = np.broadcast_to((np.arange(B) < B - 1).astype(float), (H, S, B))
    if cost_hsa is not None:
        spoken_hsb = np.concatenate((cost_hsa, np.zeros((H, S, 1))), axis=2)
    flow = np.zeros((H, S, H, S, B))
    for h, t in np.ndindex(H, S):
        flow[h, t, h, t] = 1.0
        if h > 0:
            flow[h, t, h - 1] = -P_hsbt[h - 1, :, :, t]
    inflow_hs = np.zeros((H, S))
    inflow_hs[0] = start_s
    capped = np.isfinite(budget)
    answer = linprog(
        (np.reshape(penalty, (-1, 1, 1)) * spoken_hsb - r_hsb).ravel(),
        A_ub=spoken_hsb.reshape(1, -1) if capped else None,
        b_ub=[budget] if capped else None,
        A_eq=flow.reshape(H * S, -1),
        b_eq=inflow_hs.ravel(),
        bounds=[(0.0, None if may else 0.0) for may in may_hsb.ravel()],
        method="highs",
    )
    if answer.status == 2:
        return Solution(-np.inf, np.inf, np.full((H, S, B), np.nan))
    if answer.status != 0:
        raise RuntimeError(answer.message)
    price = -float(answer.ineqlin.marginals[0]) if capped else 0.0
    return Solution(-float(answer.fun), price, answer.x.reshape(H, S, B))


def criticality(
    P_hsat: Floats,
    r_hsa: Floats,
    pi_hsa: Floats,
    theta_hsa: Floats,
    allowed_hsa: Bools,
) -> Floats:
    """Return sup{β ≥ 0 : max_b Q_β(s, b) > Q_β(s, defer)} per cell [H, S], 0 if none.

    Each V_β(h, s) is convex in β, so it is linear on an interval iff its midpoint is
    the mean of its ends: halve until that holds for all cells (or width < 1e-9). There
    the gain of each b is linear in β, and its last positive point is read off exactly.
    No advice gains more than H · span(r), which bounds the search.
    """
    P_hsbt, r_hsb = machine(P_hsat, r_hsa, pi_hsa, theta_hsa)
    H, S, A = r_hsa.shape
    may_hsb = permitted(allowed_hsa)
    crit_hsa = np.zeros((H, S, A))

    @cache
    def gain(beta: float) -> tuple[Floats, Floats]:
        V_hs, Q_hsb, _, _ = sweep(P_hsbt, r_hsb, may_hsb, beta)
        gain_hsa = Q_hsb[..., :A] - Q_hsb[..., A:]
        return V_hs, np.where(allowed_hsa, gain_hsa, -1.0)

    def pieces(lo: float, hi: float) -> Iterator[tuple[float, float, Floats, Floats]]:
        mid = (lo + hi) / 2
        (V_lo, g_lo), (V_mid, _), (V_hi, g_hi) = gain(lo), gain(mid), gain(hi)
        bend = np.abs(V_mid - (V_lo + V_hi) / 2).max()
        if bend <= 1e-13 * max(1.0, np.abs(V_mid).max()) or hi - lo < 1e-9:
            yield lo, hi, g_lo, g_hi
        else:
            yield from pieces(lo, mid)
            yield from pieces(mid, hi)

    for lo, hi, g_lo, g_hi in pieces(0.0, H * float(np.ptp(r_hsa)) + 1.0):
        falls_hsa = (g_lo > 1e-11) & (g_hi <= 1e-11)
        drop_hsa = np.where(falls_hsa, g_lo - g_hi, 1.0)
        root_hsa = np.minimum(hi, lo + (hi - lo) * g_lo / drop_hsa)
        last_hsa = np.where(g_hi > 1e-11, hi, np.where(falls_hsa, root_hsa, 0.0))
        crit_hsa = np.maximum(crit_hsa, last_hsa)
    crit_hs: Floats = crit_hsa.max(axis=-1)
    return crit_hs


def random_problem(
    rng: np.random.Generator,
    S: int,
    A: int,
    H: int,
    *,
    deterministic_people: bool = False,
    masks: bool = False,
    repel: bool = False,
) -> Problem:
    """Draw a small problem with zeros, certain people and, half the time, many ties.

    Half the draws put rewards on quarters and lifts on {0, ½, 1}. Without ``repel``
    θ = λ + (1 − λ) π ≥ π; with it θ is uniform, so advice may repel. With ``masks``
    masked actions have an all-zero row of P, r = 0, π = 0 and a θ that must not matter.
    """
    coarse = rng.random() < 0.5
    allowed_hsa = np.ones((H, S, A), dtype=bool)
    if masks:
        allowed_hsa = rng.random((H, S, A)) < 0.7
        allowed_hsa |= np.arange(A) == rng.integers(A, size=(H, S, 1))

    weight_hsat = rng.random((H, S, A, S)) * (rng.random((H, S, A, S)) < 0.6)
    np.put_along_axis(weight_hsat, rng.integers(S, size=(H, S, A, 1)), 1.0, axis=-1)
    P_hsat = weight_hsat / weight_hsat.sum(axis=-1, keepdims=True)
    r_hsa = rng.random((H, S, A))
    r_hsa = np.round(4 * r_hsa) / 4 if coarse else r_hsa

    habit_hsa = np.where(allowed_hsa, rng.random((H, S, A)), 0.0)
    certain_hs1 = rng.random((H, S, 1)) < (1.0 if deterministic_people else 0.3)
    only_hsa = np.arange(A) == habit_hsa.argmax(axis=-1, keepdims=True)
    habit_hsa *= only_hsa | ~(certain_hs1 | (rng.random((H, S, A)) < 0.2))
    pi_hsa = habit_hsa / habit_hsa.sum(axis=-1, keepdims=True)
    lift_hsa = rng.random((H, S, A))
    lift_hsa = np.round(2 * lift_hsa) / 2 if coarse else lift_hsa
    theta_hsa = lift_hsa if repel else lift_hsa + (1.0 - lift_hsa) * pi_hsa

    weight_s = rng.random(S) * (rng.random(S) < 0.7)
    weight_s[rng.integers(S)] = 1.0
    return Problem(
        P_hsat * allowed_hsa[..., None],
        r_hsa * allowed_hsa,
        pi_hsa,
        np.clip(theta_hsa, 0.0, 1.0),
        allowed_hsa,
        weight_s / weight_s.sum(),
    )
