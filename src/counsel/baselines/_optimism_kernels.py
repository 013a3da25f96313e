"""Compiled planning of learners that take the machine's world for a black model.

A row is a step, a state and an advice (silence last), B in all. Rewards lie in [0, 1] here: units
are changed outside. Kernels trust their input.
"""

from typing import NamedTuple

import numpy as np

from counsel._arrays import Bools, Floats, Ints
from counsel._jit import as_int64, inlined, kernel
from counsel.learning._rfe_kernels import pick_top
from counsel.learning._transition_kernels import Chains, count_transition
from counsel.model._kernels import layer_of
from counsel.planning._backward_kernels import Model
from counsel.planning._forward_kernels import walk_forward
from counsel.planning._level_kernels import Levels
from counsel.simulate._episode_kernels import Scene, draw_action, draw_reward, draw_row, draw_start

HOEFFDING, FREEDMAN = range(2)


class EmpiricalMDP(NamedTuple):
    """Counts of the machine's world, the advice that may be given, rewards, and where it ends.

    Where ``over_hs`` is true nothing more can happen: a step pays ``rest``. Where
    ``unreachable_hs`` is true nobody comes, as far as was declared: a step pays 0, the least.
    """

    chains: Chains
    open_lsb: Bools
    reward_lsb: Floats
    over_hs: Bools
    unreachable_hs: Bools
    rest: float


@inlined
def fixed_value(model: EmpiricalMDP, h: int, s: int, H: int) -> float:
    """Return what a cell is worth where there is nothing to plan; NaN elsewhere."""
    if model.over_hs[h, s]:
        return (H - h) * model.rest
    return 0.0 if model.unreachable_hs[h, s] else np.nan


@kernel
def count_advised(
    first: Ints, state: Ints, advice: Ints, reward: Floats, next_state: Ints, chains: Chains,
    paid_hsb: Floats, square_hsb: Floats,
) -> None:  # fmt: skip
    """Count whole episodes: what followed each advice, and what was paid."""
    for n in range(first.size - 1):
        for i in range(first[n], first[n + 1]):
            h = i - first[n]
            s, b = as_int64(state[i]), as_int64(advice[i])
            count_transition(chains, h, s, b, as_int64(next_state[i]))
            paid_hsb[h, s, b] += reward[i]
            square_hsb[h, s, b] += reward[i] * reward[i]


@kernel
def moments(chains: Chains, h: int, s: int, b: int, value_s: Floats) -> tuple[float, float]:
    """Return the mean and the variance of a value under p̂ of a row that was seen."""
    j, mean, square = chains.head_hsx[h, s, b], 0.0, 0.0
    n = chains.visits_hsx[h, s, b]
    while j >= 0:
        weight = chains.links[j, 1] / n
        v = value_s[chains.links[j, 0]]
        mean += weight * v
        square += weight * v * v
        j = chains.links[j, 2]
    return mean, max(square - mean * mean, 0.0)


@kernel
def distance(chains: Chains, h: int, s: int, b: int, first_s: Floats, other_s: Floats) -> float:
    """Return √(Σ_t p̂(t) (first(t) − other(t))²) of a row that was seen."""
    j, square = chains.head_hsx[h, s, b], 0.0
    while j >= 0:
        t = chains.links[j, 0]
        square += chains.links[j, 1] * (first_s[t] - other_s[t]) ** 2
        j = chains.links[j, 2]
    return float(np.sqrt(square / chains.visits_hsx[h, s, b]))


@inlined
def euler_bonus(n: float, variance: float, gap: float, L: float, H: int) -> float:
    """Return φ + ((4 J + B_p) / √n + B_v gap) / √n (EULER's bonus of the transitions)."""
    spread = np.sqrt(2.0 * variance * L / n) + H * L / (3.0 * max(n - 1.0, 1.0))
    B_v = np.sqrt(2.0 * L)
    return float(spread + (4.0 * H * L / 3.0 + H * B_v) / n + B_v * gap / np.sqrt(n))


@kernel
def plan_euler(
    model: EmpiricalMDP,
    bonus_lsb: Floats,
    L: float,
    tie_hs: Floats,
    advice_hs: Ints,
    upper_hs: Floats,
    lower_hs: Floats,
) -> None:
    """Fill EULER's advice and its upper and lower values; ``bonus_lsb`` is the rewards' bonus."""
    H, S, B = model.chains.visits_hsx.shape
    value_b = np.empty(B)
    upper_hs[H], lower_hs[H] = 0.0, 0.0
    for h in range(H - 1, -1, -1):
        cap = float(H - h)
        l_open, l_pay = layer_of(model.open_lsb.shape[0], h), layer_of(model.reward_lsb.shape[0], h)
        l_bonus = layer_of(bonus_lsb.shape[0], h)
        for s in range(S):
            worth = fixed_value(model, h, s, H)
            if worth == worth:
                upper_hs[h, s] = lower_hs[h, s] = worth
                advice_hs[h, s] = B - 1
                continue
            for b in range(B):
                value_b[b] = -np.inf
                if not model.open_lsb[l_open, s, b]:
                    continue
                value_b[b] = cap
                n = float(model.chains.visits_hsx[h, s, b])
                if n > 0.0:
                    mean, variance = moments(model.chains, h, s, b, upper_hs[h + 1])
                    gap = distance(model.chains, h, s, b, upper_hs[h + 1], lower_hs[h + 1])
                    bonus = euler_bonus(n, variance, gap, L, H) + bonus_lsb[l_bonus, s, b]
                    value_b[b] = min(cap, model.reward_lsb[l_pay, s, b] + mean + bonus)
            b = pick_top(value_b, tie_hs[h, s])
            advice_hs[h, s], upper_hs[h, s], lower_hs[h, s] = b, value_b[b], 0.0
            n = float(model.chains.visits_hsx[h, s, b])
            if n > 0.0:
                mean, variance = moments(model.chains, h, s, b, lower_hs[h + 1])
                gap = distance(model.chains, h, s, b, upper_hs[h + 1], lower_hs[h + 1])
                bonus = euler_bonus(n, variance, gap, L, H) + bonus_lsb[l_bonus, s, b]
                lower_hs[h, s] = max(0.0, model.reward_lsb[l_pay, s, b] + mean - bonus)


@inlined
def freedman_bonus(n: float, variance: float, onward: float, L: float, H: int) -> float:
    """Return √(8 L Var / n) + 14 H L / (3 n) + √(8 onward / n) (bonus_2 of UCBVI)."""
    wide = np.sqrt(8.0 * L * variance / n) + 14.0 * H * L / (3.0 * n)
    return float(wide + np.sqrt(8.0 * onward / n))


@inlined
def hoeffding_bonus(n: float, L: float, H: int) -> float:
    """Return 7 H L √(1 / n) (bonus_1 of UCBVI)."""
    return float(7.0 * H * L / np.sqrt(n))


@kernel
def expect_onward(chains: Chains, h: int, s: int, b: int, most: float) -> float:
    """Return Σ_t p̂(t) min(most / N'(t), H²), N' the times t was seen at the next step."""
    H, _, B = chains.visits_hsx.shape
    j, total = chains.head_hsx[h, s, b], 0.0
    while j >= 0:
        times = 0
        for x in range(B):
            times += chains.visits_hsx[h + 1, chains.links[j, 0], x]
        total += chains.links[j, 1] * (min(most / times, H * H) if times > 0 else H * H)
        j = chains.links[j, 2]
    return float(total / chains.visits_hsx[h, s, b])


class Bonus(NamedTuple):
    """Which bonus of UCBVI, what it is multiplied by, L, and ``most``.

    ``most`` / N' caps what is not known of what follows a state that was seen N' times.
    """

    kind: int
    scale: float
    log: float
    most: float


@kernel
def plan_ucbvi(
    model: EmpiricalMDP, bonus: Bonus, tie_hs: Floats, advice_hs: Ints, Q_hsb: Floats, V_hs: Floats
) -> None:
    """Lower UCBVI's Q and fill its advice and values.

    At the last step nothing follows: what is not known of that is 0.
    """
    H, S, B = Q_hsb.shape
    value_b = np.empty(B)
    V_hs[H] = 0.0
    for h in range(H - 1, -1, -1):
        l_open, l_pay = layer_of(model.open_lsb.shape[0], h), layer_of(model.reward_lsb.shape[0], h)
        for s in range(S):
            worth = fixed_value(model, h, s, H)
            if worth == worth:
                V_hs[h, s], advice_hs[h, s] = worth, B - 1
                continue
            for b in range(B):
                value_b[b] = -np.inf
                if not model.open_lsb[l_open, s, b]:
                    continue
                n = float(model.chains.visits_hsx[h, s, b])
                if n > 0.0:
                    mean, variance = moments(model.chains, h, s, b, V_hs[h + 1])
                    if bonus.kind == FREEDMAN:
                        onward = 0.0
                        if h < H - 1:
                            onward = expect_onward(model.chains, h, s, b, bonus.most)
                        extra = freedman_bonus(n, variance, onward, bonus.log, H)
                    else:
                        extra = hoeffding_bonus(n, bonus.log, H)
                    fresh = model.reward_lsb[l_pay, s, b] + mean + bonus.scale * extra
                    Q_hsb[h, s, b] = min(Q_hsb[h, s, b], fresh)
                value_b[b] = Q_hsb[h, s, b]
            b = pick_top(value_b, tie_hs[h, s])
            advice_hs[h, s], V_hs[h, s] = b, value_b[b]


class EpisodeTotals(NamedTuple):
    """What is noted besides chains: rewards, their squares, first states, and where it ended.

    ``low`` and ``unit`` are what rewards are counted from and in; ``charge_lsb`` is what advice is
    charged in that unit.
    """

    paid_hsb: Floats
    square_hsb: Floats
    starts_s: Ints
    idle: Ints
    ended_hs: Bools
    unreachable_hs: Bools
    low: float
    unit: float
    charge_lsb: Floats


@kernel
def play_and_count(
    scene: Scene, u_w: Floats, advice_hs: Ints, model: EmpiricalMDP, totals: EpisodeTotals
) -> bool:
    """Play one episode and note it, as ``count_advised`` does of one that was recorded.

    Return whether there was a decision.
    """
    H = model.chains.visits_hsx.shape[0]
    draws = (u_w.size - 2) // H
    s = draw_start(scene, u_w[1])
    if scene.over_ls[0, s]:
        totals.idle[0] += 1
        return False
    totals.starts_s[s] += 1
    for h in range(H):
        b = as_int64(advice_hs[h, s])
        layer = layer_of(scene.person_lsc.shape[0], h)
        a = draw_action(scene.person_lsc, layer, s, b, u_w[2 + draws * h])
        t = as_int64(scene.leads_lsa[layer_of(scene.leads_lsa.shape[0], h), s, a])
        if t < 0:
            t = draw_row(scene, -1 - t, u_w[3 + draws * h])
        paid = scene.reward_lsa[layer_of(scene.reward_lsa.shape[0], h), s, a]
        if scene.ends.size:
            paid = draw_reward(scene.ends, paid, u_w[1 + draws * (h + 1)])
        charge = totals.charge_lsb[layer_of(totals.charge_lsb.shape[0], h), s, b]
        paid = (paid - totals.low) / totals.unit - charge
        count_transition(model.chains, h, s, b, t)
        totals.unreachable_hs[h, s] = model.unreachable_hs[h, s] = False
        totals.paid_hsb[h, s, b] += paid
        totals.square_hsb[h, s, b] += paid * paid
        s, last = t, scene.over_ls.shape[0] - 1
        if scene.over_ls[min(h + 1, last), t]:
            for later in range(h + 1, H + 1):
                totals.ended_hs[later, t] = model.over_hs[later, t] = True
            break
    return True


@kernel
def evaluate_advice(
    truth: Model, start_s: Floats, advice_hs: Ints, penalty_h: Floats
) -> tuple[float, float]:
    """Return what advice is worth in truth less its charge, and its expected pieces.

    ``penalty_h`` has one penalty per unit of cost, or one per step.
    """
    H, S = advice_hs.shape
    none, nothing = np.zeros(0, np.int64), np.zeros(0)
    x_jks = np.zeros((2, 1, S))
    x_jks[0, 0] = start_s
    rows = 0
    for i in range(truth.first_row_l.size - 1):
        rows = max(rows, truth.first_row_l[i + 1] - truth.first_row_l[i])
    reward_h, rate_h, cost_h = np.zeros(H), np.zeros(H), np.zeros(H)
    advice_khs, random = advice_hs.reshape(1, H, S), (none, none, none, nothing)
    pieces_sa, level = np.zeros((S, truth.policy_lsa.shape[2])), np.zeros(1, np.int64)
    one_level = Levels(np.zeros((3, 1), np.int64), np.arange(2), level, np.ones(1), False)
    results = (np.zeros((H, 1, S)), reward_h, rate_h, cost_h, pieces_sa)
    walk_forward(truth, one_level, level, advice_khs, random, x_jks, np.zeros((1, rows)), results)
    reward, pieces, cost, charge = 0.0, 0.0, 0.0, 0.0
    for h in range(H):
        reward, pieces, cost = reward + reward_h[h], pieces + rate_h[h], cost + cost_h[h]
        if penalty_h.size > 1:
            charge += penalty_h[h] * cost_h[h]
    if penalty_h.size == 1:
        charge = penalty_h[0] * cost
    return reward - charge, pieces


@kernel
def ucbvi_episodes(
    scene: Scene,
    u_nw: Floats,
    tie_khs: Floats,
    bonus: Bonus,
    model: EmpiricalMDP,
    totals: EpisodeTotals,
    truth: Model,
    start_s: Floats,
    penalty_h: Floats,
    every: int,
    advice_hs: Ints,
    Q_hsb: Floats,
    V_hs: Floats,
    value_n: Floats,
    pieces_n: Floats,
    is_due: bool,
) -> tuple[int, bool]:
    """Play episodes, and plan before each block of ``every`` if something was learnt.

    Each plan draws its ties from the next of ``tie_khs``. ``is_due`` is whether something was
    learnt since the plan ``advice_hs``. ``value_n`` and ``pieces_n`` receive what the policy of
    each episode is worth, less its charge, and says. Return the number of plans, and ``is_due``.
    """
    value, pieces, plans = 0.0, 0.0, 0
    for n in range(u_nw.shape[0]):
        if n % every == 0:
            if is_due:
                plan_ucbvi(model, bonus, tie_khs[plans], advice_hs, Q_hsb, V_hs)
                plans, is_due = plans + 1, False
            value, pieces = evaluate_advice(truth, start_s, advice_hs, penalty_h)
        value_n[n], pieces_n[n] = value, pieces
        is_due |= play_and_count(scene, u_nw[n], advice_hs, model, totals)
    return plans, is_due
