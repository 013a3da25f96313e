"""What people do when left alone, from silence and from refusals.

In silence the person draws an action from π. A refusal of advice b is a draw from π conditioned on
not b (the adherence law). With N_a the free choices of a of either kind, n the silent decisions and
m_b the refusals of b, the likelihood is

    Π_a π_a^{N_a}  Π_b (1 − π_b)^{−m_b}

that of Luce's choice model with the sets "all" and "all but b". Hunter's (2004) iteration climbs it

    π_a ← N_a / (n + Σ_{b≠a} m_b / (1 − π_b))        and is scaled to sum to one,

but slowly where refusals are many and say little: Newton's step on the logits, in which the
likelihood is concave, is later taken instead where it climbs higher.

π is *told* where there was silence, where three different pieces of advice were refused, or where
two were and an action that is neither was chosen: then the sets overlap in what was chosen and
together hold every action. With refusals of one advice only, nothing says how often that advice
would have been taken anyway; with refusals of two that all went to the other one, nothing compares
the two.

The information of the likelihood gives each π_a a variance, and so the number of silent decisions
that would have told as much; intervals are Wilson's on that number.
"""

from dataclasses import dataclass

import numpy as np

from counsel._arrays import Bools, Floats
from counsel.estimate.intervals import wilson

ROUNDS = 300
"""Iterations after which the rest is left."""

HUNTER_ROUNDS = 100
"""Iterations before Newton's steps are tried, which cost more."""

CLOSE = 1e-12
"""π is taken to have arrived when no entry changes by more."""

MANY = 64
"""Actions from which on inverting the information costs too much: steps stay cheap, and the number
of decisions that would have told as much is that of all free choices that could have been a."""

AT_ONCE = 2_000_000
"""Numbers of information matrices that are held at a time."""

LEAST = 1e-8
"""The least π of what was freely chosen, where the likelihood climbs all the way to 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Habit:
    """The likeliest π of each cell, and how well it is known.

    Attributes
    ----------
    policy
        [cell, a]; all decisions there taken together where π is not told.
    told
        [cell]: whether the data say what π is.
    size
        [cell, a]: the number of silent decisions that would have told π_a as well.
    low, high
        [cell, a]: 95 % intervals.
    """

    policy: Floats
    told: Bools
    size: Floats
    low: Floats
    high: Floats


def habit_of(silent: Floats, refusing: Floats, refused: Floats, taken: Floats) -> Habit:
    """Return the likeliest habits.

    Parameters
    ----------
    silent
        [cell, a]: how often a was taken in silence.
    refusing
        [cell, a]: how often a was taken against advice.
    refused
        [cell, b]: how often advice b was refused.
    taken
        [cell, a]: how often a was taken at all; the habit is that where nothing else is told.
    """
    policy, told = likeliest_habit(silent, refusing, refused, taken)
    size = _sizes(policy, silent.sum(axis=-1), refused)
    size[~told] = 0.0
    low, high = wilson(size * policy, size)
    return Habit(policy=policy, told=told, size=size, low=low, high=high)


def likeliest_habit(
    silent: Floats, refusing: Floats, refused: Floats, taken: Floats
) -> tuple[Floats, Bools]:
    """Return the likeliest π of each cell and whether it is told; parameters as ``habit_of``."""
    n = silent.sum(axis=-1)
    free = silent + refusing
    A = silent.shape[-1]
    kinds = (refused > 0.0).sum(axis=-1)
    neither = (free * (refused == 0.0)).sum(axis=-1) > 0.0
    told = (n > 0.0) | (kinds > 2) | ((kinds == 2) & neither)
    policy = np.where(told[:, None], free, taken)
    total = policy.sum(axis=-1, keepdims=True)
    policy = np.divide(policy, total, out=np.full(policy.shape, 1.0 / A), where=total > 0.0)
    moving = told & (refused.sum(axis=-1) > 0.0)
    policy[moving] = _climb(policy[moving], free[moving], n[moving], refused[moving])
    return policy, told


def _climb(policy: Floats, free: Floats, n: Floats, refused: Floats) -> Floats:
    """Iterate until nothing moves; cells that have arrived are left out."""
    policy = policy.copy()
    live = np.arange(len(policy))
    for i in range(ROUNDS):
        now = policy[live]
        counts = free[live], n[live], refused[live]
        new = _hunter_step(now, *counts)
        if i >= HUNTER_ROUNDS and now.shape[1] <= MANY:
            newton = _newton_step(now, *counts)
            height, other = (
                _log_likelihood(each, free[live], refused[live]) for each in (new, newton)
            )
            new = np.where((other >= height - 1e-12 * np.abs(height))[:, None], newton, new)
        policy[live] = new
        live = live[np.abs(new - now).max(axis=-1) > CLOSE]
        if not live.size:
            break
    policy = np.where(free > 0.0, np.maximum(policy, LEAST), 0.0)
    policy /= policy.sum(axis=-1, keepdims=True)
    return policy


def _hunter_step(now: Floats, free: Floats, n: Floats, refused: Floats) -> Floats:
    """Return Hunter's step."""
    others = np.maximum(chance_of_others(now), 1e-300)
    per_set = np.where(refused > 0.0, refused / others, 0.0)
    within = n[:, None] + per_set.sum(axis=-1, keepdims=True) - per_set
    new = np.where(free > 0.0, free / np.maximum(within, 1e-300), 0.0)
    new /= new.sum(axis=-1, keepdims=True)
    return new


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


def _sizes(policy: Floats, n: Floats, refused: Floats) -> Floats:
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
        found = np.divide(shares, variance, out=np.zeros_like(shares), where=known)
        size[part] = np.where(known, found, chances)
    return size


def chance_of_others(policy: Floats) -> Floats:
    """Return 1 − π without the rounding, where π is close to 1: Σ_{b≠a} π(b) [..., a]."""
    others: Floats = policy @ (1.0 - np.eye(policy.shape[-1]))
    return others


def _information(pi: Floats, n: Floats, refused: Floats) -> tuple[Floats, Floats]:
    """Return how often each action is expected to be chosen freely, and the information."""
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
    """Return the inverse of the information, but for what it says nothing about.

    It is 0 along "all logits alike". Rounding would make that a tiny number and its inverse a large
    one, so this direction is first filled.
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
