"""Slow, obvious counts and estimates of a log, from the definitions, for tests only.

A log is a pandas frame, one row a decision. Counting is a loop over rows. The habit is found by a
general optimiser, its information by finite differences. Pooling is a sum over a dense box of
(μ, τ, λ) with flat weights:

    μ flat on [−1, 1],   τ flat on [0, 0.6],   λ_u | μ, τ ~ Normal(μ, τ²) cut to [−1, 1].
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from tests.support.later import Later

pd, stats = Later("pandas"), Later("scipy.stats")

ENDED, CUT, SILENCE = "(ended)", "(cut)", None


class Totals(NamedTuple):
    """Sums over the decisions of a log, each by the labels it is named after."""

    horizon: int
    states: set
    actions: set
    taken: Counter  # (step, state, action)
    given: Counter  # (step, state, advice), of what was seen
    matched: Counter  # (step, state, advice)
    refusing: Counter  # (step, state, advice, action)
    silent: Counter  # (step, state, action), silence or not seen
    sent: Counter  # (step, state, advice or None)
    moves: Counter  # (step, state, action, state or ENDED or CUT)
    starts: Counter  # state
    idle: Counter  # of the moves, ends that say nothing about ending
    priced: Counter  # (step, state, action)
    paid: dict  # (step, state, action)
    squares: dict  # (step, state, action)


def totals(frame: pd.DataFrame, *, by_step: bool) -> Totals:
    """Count a log row by row."""
    names = ("taken", "given", "matched", "refusing", "silent", "sent", "moves", "starts", "priced")
    names += ("idle",)
    out = {name: Counter() for name in names}
    paid, squares = defaultdict(float), defaultdict(float)
    states, actions = set(), set()
    episodes = [rows.sort_values("step").to_dict("records") for _, rows in frame.groupby("episode")]
    horizon = max(rows[-1]["step"] - rows[0]["step"] + 1 for rows in episodes)
    # Of the last decisions only the end may be known: then it says nothing about ending.
    last_is_open = any(
        rows[-1]["step"] - rows[0]["step"] == horizon - 1
        and what_followed(rows[-1], None, rows[0]["step"], horizon) == CUT
        for rows in episodes
    )
    for rows in episodes:
        first = rows[0]["step"]
        out["starts"][rows[0]["state"]] += 1
        for i, row in enumerate(rows):
            later = rows[i + 1] if i + 1 < len(rows) else None
            state, action, advice = row["state"], row["action"], _value(row, "advice")
            step = row["step"] - first if by_step else 0
            states.add(state)
            actions |= {action, advice} - {None}
            followed = what_followed(row, later, first, horizon)
            if followed not in (ENDED, CUT):
                states.add(followed)
            out["sent"][step, state, advice] += 1
            out["taken"][step, state, action] += 1
            is_last = row["step"] - first == horizon - 1
            out["moves"][step, state, action, followed] += 1
            if is_last and last_is_open and followed == ENDED:
                out["idle"][step, state, action, followed] += 1
            if advice is None or _value(row, "seen") is False:
                out["silent"][step, state, action] += 1
            else:
                out["given"][step, state, advice] += 1
                if action == advice:
                    out["matched"][step, state, advice] += 1
                else:
                    out["refusing"][step, state, advice, action] += 1
            reward = _value(row, "reward")
            if reward is not None:
                out["priced"][step, state, action] += 1
                paid[step, state, action] += reward
                squares[step, state, action] += reward**2
    return Totals(
        horizon=int(horizon), states=states, actions=actions, paid=paid, squares=squares, **out
    )


def what_followed(row: dict, later: dict | None, first: int, horizon: int) -> str:
    """Return the state after a decision, or that it ended, or that nobody knows."""
    if _value(row, "terminated"):
        return ENDED
    if _value(row, "next_state") is not None:
        return row["next_state"]
    if later is not None:
        return later["state"] if later["step"] == row["step"] + 1 else CUT
    if _value(row, "truncated"):
        return CUT
    if "terminated" in row:  # It would have said so.
        return CUT
    if "truncated" in row:  # It would have said so.
        return ENDED
    return ENDED if row["step"] - first + 1 < horizon else CUT


def _value(row: dict, name: str) -> object:
    """Return what a row holds, None where it holds nothing or there is no such column."""
    value = row.get(name)
    if value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value)):
        return None
    return value


def habit_loss(pi: np.ndarray, silent: np.ndarray, refusals: np.ndarray) -> float:
    """Return −log likelihood of free choices; ``refusals`` is [b, a]: a taken against b."""
    loss, chances = 0.0, pi.tolist()  # plain numbers: it is called a million times
    for a, times in enumerate(silent.tolist()):
        loss -= times * math.log(chances[a]) if times else 0.0
    for b, row in enumerate(refusals.tolist()):
        others = sum(chances[:b] + chances[b + 1 :])
        for a, times in enumerate(row):
            loss -= times * math.log(chances[a] / others) if times else 0.0
    return loss


def habit(silent: np.ndarray, refusals: np.ndarray) -> np.ndarray:
    """Return the likeliest π by a general optimiser over logits; never chosen actions have 0."""
    live = silent + refusals.sum(axis=0) > 0

    def spread(x: np.ndarray) -> np.ndarray:
        pi = np.zeros(live.size)
        pi[live] = np.exp(x - x.max())
        return pi / pi.sum()

    def loss(x: np.ndarray) -> float:
        return habit_loss(spread(x), silent, refusals)

    x = np.zeros(live.sum())
    for _ in range(2):
        found = minimize(loss, x, method="BFGS", options={"gtol": 1e-8})
        x = found.x - found.x.mean()
    return spread(x)


def habit_is_unique(silent: np.ndarray, refusals: np.ndarray) -> bool:
    """Whether no two values of any π_a far apart allow the same highest likelihood."""
    actions = range(silent.size)
    heights = [
        [_height_with(silent, refusals, a, value) for value in (0.1, 0.4, 0.7, 0.95)]
        for a in actions
    ]
    top = max(max(row) for row in heights)
    return all(sum(height > top - 1e-3 for height in row) < 2 for row in heights)


def _height_with(silent: np.ndarray, refusals: np.ndarray, a: int, value: float) -> float:
    """Return the highest log likelihood where π_a has a value."""
    rest = np.arange(silent.size) != a

    def loss(x: np.ndarray) -> float:
        pi = np.full(silent.size, value)
        pi[rest] = (1.0 - value) * np.exp(x) / np.exp(x).sum()
        return habit_loss(pi, silent, refusals)

    bounds = [(-12.0, 12.0)] * int(rest.sum())
    start = np.zeros(rest.sum())
    found = minimize(loss, start, jac=slopes_of(loss), method="L-BFGS-B", bounds=bounds)
    return -float(found.fun)


def slopes_of(loss: Callable[[np.ndarray], float]) -> Callable[[np.ndarray], np.ndarray]:
    """Return the gradient by differences; SciPy's own takes longer than such a small function."""

    def slopes(x: np.ndarray) -> np.ndarray:
        here = loss(x)
        return np.array([(loss(x + step) - here) / 1e-8 for step in 1e-8 * np.eye(x.size)])

    return slopes


def habit_sizes(pi: np.ndarray, silent: np.ndarray, refusals: np.ndarray) -> np.ndarray:
    """Return π (1 − π) / variance; the variance by a numerical Hessian in all but the last π."""

    def loss(free: np.ndarray) -> float:
        return habit_loss(np.append(free, 1.0 - free.sum()), silent, refusals)

    x, d = pi[:-1], len(pi) - 1
    e = np.eye(d) * 1e-5
    hessian = np.empty((d, d))
    for i in range(d):
        for j in range(d):
            up, down = loss(x + e[i] + e[j]), loss(x - e[i] - e[j])
            across, back = loss(x + e[i] - e[j]), loss(x - e[i] + e[j])
            hessian[i, j] = (up + down - across - back) / (4 * 1e-10)
    inverse = np.linalg.inv(hessian)
    variance = np.append(np.diag(inverse), inverse.sum())
    return pi * (1.0 - pi) / variance


LIFTS = -1.0 + (2.0 * np.arange(1001) + 1.0) / 1001
"""The lifts at which likelihoods are taken: the middles of equal parts of [−1, 1]."""


class Believed(NamedTuple):
    """Posterior mean and ends of the middle 95 % of each unit."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


def pooled(
    given: np.ndarray,
    matched: np.ndarray,
    habits: np.ndarray,
    sizes: np.ndarray | None = None,
) -> Believed:
    """Return the posterior of each unit by summing over a box; one cell a unit.

    A habit known by ``sizes`` decisions is Beta(size π + ½, size (1 − π) + ½). Normals are cut to
    [−1, 1]; the likelihood alone rules out where the share matched is no probability.
    """
    sizes = np.full(len(given), np.inf) if sizes is None else sizes
    cells = zip(given, matched, habits, sizes, strict=True)
    like = np.array([_likelihood(LIFTS, *cell) for cell in cells])
    return _summed(like)


def pooled_estimates(own: np.ndarray, error: np.ndarray) -> Believed:
    """Return the posterior of units with normal likelihoods; an infinite error says nothing."""
    with np.errstate(invalid="ignore"):
        away = np.nan_to_num((LIFTS - own[:, None]) / error[:, None])
    return _summed(np.exp(-0.5 * away**2))


def _summed(like: np.ndarray) -> Believed:
    """Sum over middles and spreads of the family, both flat."""
    units, middles, spreads = len(like), 201, 61
    tau = 0.6 * (np.arange(spreads) + 0.5) / spreads
    mu = -1.0 + 2.0 * (np.arange(middles) + 0.5) / middles
    total, posterior = 0.0, np.zeros(like.shape)
    logs = np.empty((spreads, middles))
    for keep in (False, True):
        for i, t in enumerate(tau):
            normal = _scaled(-0.5 * ((LIFTS - mu[:, None]) / t) ** 2)
            evidence = like @ normal.T  # [u, μ]
            if not keep:
                with np.errstate(divide="ignore"):
                    logs[i] = np.log(evidence).sum(axis=0)
                continue
            weight = np.exp(logs[i] - logs.max())
            total += weight.sum()
            for u in range(units):
                share = np.divide(weight, evidence[u], out=np.zeros(middles), where=weight > 0)
                posterior[u] += (share @ normal) * like[u]
    posterior /= total
    upto = posterior.cumsum(axis=1)
    edges = LIFTS + 1.0 / LIFTS.size
    low, high = (
        np.array([np.interp(share, row, edges) for row in upto]) for share in (0.025, 0.975)
    )
    return Believed(posterior @ LIFTS, low, high)


def _scaled(log: np.ndarray) -> np.ndarray:
    """Return rows that sum to one from their logarithms."""
    rows = np.exp(log - log.max(axis=1, keepdims=True))
    return rows / rows.sum(axis=1, keepdims=True)


def _likelihood(grid: np.ndarray, n: float, k: float, pi: float, size: float) -> np.ndarray:
    """Return the likelihood of k matches in n at each lift; 0 where the share is no probability."""
    if np.isfinite(size):
        levels = (np.arange(400) + 0.5) / 400
        draws = stats.beta.ppf(levels, size * pi + 0.5, size * (1.0 - pi) + 0.5)
    else:
        draws = np.array([pi])
    peak = stats.binom.pmf(k, n, k / n)
    like = np.zeros(grid.size)
    for own in draws:
        m = grid + (1.0 - grid) * own
        like += np.where(m < 0.0, 0.0, stats.binom.pmf(k, n, np.clip(m, 0.0, 1.0))) / peak
    return like / like.max()
