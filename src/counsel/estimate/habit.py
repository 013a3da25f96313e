"""What people do without advice (the habit π), estimated from silence and refusals.

In silence the person draws an action from π. A refusal of advice b is a draw from π conditioned on
not b (the adherence law). With N_a the free choices of a of either kind, n the silent decisions and
m_b the refusals of b, the likelihood is

    Π_a π_a^{N_a}  Π_b (1 − π_b)^{−m_b}

the likelihood of Luce's choice model with the sets "all" and "all but b". Hunter's (2004) iteration
climbs it,

    π_a ← N_a / (n + Σ_{b≠a} m_b / (1 − π_b))        scaled to sum to one,

but slowly where refusals are many and say little: after some rounds Newton's step on the logits, in
which the likelihood is concave, is taken instead where it climbs higher.

π is *known* where there was silence, where three different pieces of advice were refused, or where
two were and an action that is neither was chosen: then the sets overlap in what was chosen and
together contain every action. Otherwise the data do not compare every action with the others.

The information of the likelihood gives each π_a a variance, and so an effective number of silent
decisions; intervals are Wilson's on that number.
"""

from dataclasses import dataclass

import numpy as np

from counsel._arrays import Bools, Floats
from counsel.estimate._hunter_kernels import hunter_rounds
from counsel.estimate.intervals import wilson

ROUNDS = 300  # the most iterations
HUNTER_ROUNDS = 100  # iterations before Newton's steps, which cost more, are tried
CLOSE = 1e-12  # π has converged when no entry changes by more

MANY = 64
"""Above this many actions inverting the information costs too much: only Hunter's steps are taken,
and the effective number of decisions is the number of free choices that could have been a."""

AT_ONCE = 2_000_000  # the most entries of information matrices in memory at a time
LEAST = 1e-8  # the least π of a freely chosen action, where the likelihood is highest at 0


@dataclass(frozen=True, slots=True, eq=False)
class Habit:
    """The likeliest π [cell, a] of each cell, with 95 % intervals.

    Where the data do not identify π (``known`` [cell]), it is the shares of all decisions there.
    ``size`` [cell, a] is the effective number of silent decisions behind π_a.
    """

    policy: Floats
    known: Bools
    size: Floats
    low: Floats
    high: Floats


def estimate_habit(silent: Floats, refusing: Floats, refused: Floats, taken: Floats) -> Habit:
    """Estimate the habit of each cell.

    Counts [cell, a] say how often a was taken in silence, taken against advice (``refusing``),
    refused as advice, and taken at all; the last stands in for π where it is unknown.
    """
    policy, known = likeliest_habit(silent, refusing, refused, taken)
    size = _effective_sizes(policy, silent.sum(axis=-1), refused)
    size[~known] = 0.0
    low, high = wilson(size * policy, size)
    return Habit(policy=policy, known=known, size=size, low=low, high=high)


def likeliest_habit(
    silent: Floats, refusing: Floats, refused: Floats, taken: Floats
) -> tuple[Floats, Bools]:
    """Return the likeliest π of each cell and whether it is known, as in ``estimate_habit``."""
    n = silent.sum(axis=-1)
    free = silent + refusing
    A = silent.shape[-1]
    kinds = (refused > 0.0).sum(axis=-1)
    neither = (free * (refused == 0.0)).sum(axis=-1) > 0.0
    known = (n > 0.0) | (kinds > 2) | ((kinds == 2) & neither)
    policy = np.where(known[:, None], free, taken)
    total = policy.sum(axis=-1, keepdims=True)
    policy = np.divide(policy, total, out=np.full(policy.shape, 1.0 / A), where=total > 0.0)
    moving = known & (refused.sum(axis=-1) > 0.0)
    policy[moving] = _climb(policy[moving], free[moving], n[moving], refused[moving])
    return policy, known


def _climb(policy: Floats, free: Floats, n: Floats, refused: Floats) -> Floats:
    """Iterate until convergence; cells that have converged are left out."""
    policy = policy.copy()
    last = ROUNDS if policy.shape[1] > MANY else HUNTER_ROUNDS
    live = np.flatnonzero(hunter_rounds(policy, free, n, refused, last, CLOSE))
    for _ in range(last, ROUNDS):
        if not live.size:
            break
        now, mine = policy[live], (free[live], n[live], refused[live])
        new = now.copy()
        hunter_rounds(new, *mine, 1, CLOSE)
        newton = _newton_step(now, *mine)
        height, other = (_log_likelihood(each, mine[0], mine[2]) for each in (new, newton))
        new = np.where((other >= height - 1e-12 * np.abs(height))[:, None], newton, new)
        policy[live] = new
        live = live[np.abs(new - now).max(axis=-1) > CLOSE]
    policy = np.where(free > 0.0, np.maximum(policy, LEAST), 0.0)
    policy /= policy.sum(axis=-1, keepdims=True)
    return policy


def _newton_step(now: Floats, free: Floats, n: Floats, refused: Floats) -> Floats:
    """Return Newton's step on the logits."""
    expected, info = _information(now, n, refused)
    step = np.einsum("cij,cj->ci", _inverse(info, now), free - expected)
    step = np.clip(step, -5.0, 5.0)
    new: Floats = now * np.exp(step)
    new /= new.sum(axis=-1, keepdims=True)
    return new


def _log_likelihood(policy: Floats, free: Floats, refused: Floats) -> Floats:
    """Return the log likelihood."""
    log = np.log(np.maximum(policy, 1e-300))
    rest = np.log(np.maximum(chance_of_others(policy), 1e-300))
    height: Floats = (free * log - refused * rest).sum(axis=-1)
    return height


def _effective_sizes(policy: Floats, n: Floats, refused: Floats) -> Floats:
    """Return π_a (1 − π_a) / var(π_a), the variance by the inverse information.

    With logits x_a of π the information is Σ_C m_C (diag(q) − q qᵀ), q = π restricted to C; the
    logits are known up to a constant, which ``_inverse`` leaves out.
    """
    A = policy.shape[1]
    size = np.repeat(n[:, None], A, axis=1)
    moving = np.flatnonzero(refused.sum(axis=-1) > 0.0)
    for part in np.array_split(moving, max(1, moving.size * A * A // AT_ONCE)):
        pi = policy[part]
        # At 0 and 1 the variance vanishes: there, all the free choices that could have been a.
        chances = n[part, None] + refused[part].sum(axis=-1, keepdims=True) - refused[part]
        if A > MANY:
            size[part] = chances
            continue
        _, info = _information(pi, n[part], refused[part])
        slope = _covariance(pi)  # ∂π / ∂x
        variance = np.einsum("cij,cjk,cik->ci", slope, _inverse(info, pi), slope)
        shares = pi * (1.0 - pi)
        known = (variance > 0.0) & (shares > 0.0)
        effective = np.divide(shares, variance, out=np.zeros_like(shares), where=known)
        size[part] = np.where(known, effective, chances)
    return size


def chance_of_others(policy: Floats) -> Floats:
    """Return 1 − π without the rounding, where π is close to 1: Σ_{b≠a} π(b) [..., a]."""
    others: Floats = policy @ (1.0 - np.eye(policy.shape[-1]))
    return others


def least_lift(own: Floats) -> Floats:
    """Return −π / (1 − π), the lift at which nobody matches; 0 where everybody does so anyway."""
    rest = chance_of_others(own)
    least: Floats = np.divide(-own, rest, out=np.zeros(own.shape), where=rest > 0.0)
    return least


def _information(pi: Floats, n: Floats, refused: Floats) -> tuple[Floats, Floats]:
    """Return the expected number of free choices of each action, and the information."""
    A = pi.shape[1]
    expected, info = n[:, None] * pi, n[:, None, None] * _covariance(pi)
    for b in range(A):
        m = refused[:, b]
        without = np.where(np.arange(A) == b, 0.0, pi)
        total = without.sum(axis=-1, keepdims=True)
        q = np.divide(without, total, out=np.zeros_like(without), where=total > 0.0)
        expected += m[:, None] * q
        info += m[:, None, None] * _covariance(q)
    return expected, info


def _inverse(info: Floats, pi: Floats) -> Floats:
    """Return the inverse of the information, except along "all logits equal".

    The information is 0 in that direction. Rounding would make it a tiny number with a huge
    inverse, so the direction is filled first.
    """
    live = np.where(pi > 0.0, 1.0, 0.0)
    fill = np.trace(info, axis1=1, axis2=2) / np.maximum(live.sum(axis=1), 1.0) ** 2
    filled = info + fill[:, None, None] * live[:, :, None] * live[:, None, :]
    inverse: Floats = np.linalg.pinv(filled, hermitian=True)
    return inverse


def _covariance(q: Floats) -> Floats:
    """Return diag(q) − q qᵀ for each row."""
    outer = -q[:, :, None] * q[:, None, :]
    index = np.arange(q.shape[1])
    outer[:, index, index] += q
    return outer
