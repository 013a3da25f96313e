"""Confidence sequences: intervals that hold at every look, however often somebody looks.

A 95 % interval for one look holds the truth in 95 of 100 looks. Somebody who looks after every
outcome sees it fail sooner or later. A confidence sequence (L_n, U_n) holds the truth at *all* n at
once:

    P(for every n ≥ 1: L_n ≤ μ_n ≤ U_n) ≥ 1 − α.

*Why.* Let M_n(μ) ≥ 0 have M_0 = 1 and E[M_n(μ) | past] ≤ M_{n−1}(μ) if μ is the truth. Ville's
inequality says P(M_n(μ) ≥ 1/α for some n) ≤ α. The sequence is the set of μ with M_n(μ) < 1/α. A
mixture Σ_j f_j M_n^j with weights that sum to 1 is such a process, too, and so is a product of
processes of which only one moves at a time. Each process below is a function of counts and sums, so
an interval needs neither the order of the outcomes nor the looks before it.

*Shares and bounded means* (``share_sequence``). For X_i in [0, 1] with E[X_i | past] = p_i, by
convexity E[exp(x X_i) | past] ≤ 1 + p_i (eˣ − 1). The logarithm is concave, so with S_n = Σ X_i and
p̄_n = Σ p_i / n

    M_n = Σ_j f_j exp(x_j S_n − n log(1 + p̄_n (e^{x_j} − 1)))

stays below a mixture of supermartingales for fixed x_j. The mean p̄_n of the conditional chances is
covered though the p_i differ and depend on the past: people, states and plans may change. The x_j
are 2 · 40 numbers of either sign at equal ratios, which makes the interval about 1.8 times as wide
as Wilson's at any n, instead of wider and wider. log M_n is convex in p̄_n: Newton's steps from
outside the set stay outside, so the ends err to the safe side.

*A share that never changes* (``constant_share_sequence``; Robbins, 1970). If all p_i are p, the
likelihood of k among n mixed over Beta(1/2, 1/2), divided by the likelihood at p, is a martingale:

    M_n(p) = B(k + 1/2, n − k + 1/2) / B(1/2, 1/2) / (p^k (1 − p)^{n−k}).

*Bounded means with small variance* (``bounded_mean_sequence``; Howard, Ramdas, McAuliffe and
Sekhon, 2021, Theorem 4). For X_i in [0, 1] and guesses m_i of X_i from the past, with
V_n = Σ (X_i − m_i)² and ψ(x) = −log(1 − x) − x, exp(± x Σ (X_i − p_i) − ψ(x) V_n) is a
supermartingale for 0 ≤ x < 1, and is mixed as above. With the mean of the X before as the guess
(1/2 at first), V_n ≤ 1/4 + Q + min(Q, 1/2 + … + 1/n) in any order, Q = Σ (X_i − X̄_n)²: Welford's
recursion adds (1 − 1/i) (X_i − m_i)² to Q.

*Means without bounds* (``mean_sequence``, ``difference_sequence``). With t = (mean − μ) / error on
ν degrees of freedom and N(0, τ²) mixed over the standardised mean,

    M = (1 + g)^{−1/2} ((1 + t²/ν) / (1 + t²/(ν (1 + g))))^{(ν+1)/2},      g = τ² n,

is exact for normal X_i (Lai, 1976; Wang and Ramdas, 2025), and for large n Robbins' normal mixture,
the asymptotic confidence sequence of Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2024). A
difference of two means has n = n₁ n₀ / (n₁ + n₀) and Welch's error and degrees of freedom; the
variance of either kind is at least the pooled one, because the variance of a few skewed rewards is
small exactly when their mean is far off.

*Lift* (``lift_sequence``). λ = (θ − π) / (1 − π) of an advice, over the pieces that were seen:

    λ̄ = Σ_i (θ_i − π(s_i)) / Σ_i (1 − π(s_i)) = (θ̄ − π̄) / (1 − π̄),

the share of people moved among those who would have acted otherwise, averaged over the states in
which the advice was seen, as often as it was seen there. θ̄ is the mean chance of a match, with
``share_sequence`` at α/2. π̄ = Σ_s w_s π(s), with w_s the share of the pieces seen in s, is bounded
from silence in the same states, with ``weighted_share_sequence`` at α/2. If the habit is known, θ̄
has all of α. States are never merged: the states with advice and those with silence differ, and so
do their habits.

The habits of all states at once: with M_s the Beta mixture of state s, both Π_s M_s and the mean of
the M_s are martingales, and so is their mean. Every π outside

    Σ_s log M_s(π_s) < log(2/α)        and        log M_s(π_s) < log(2S/α) for each s

is excluded. The largest and the smallest Σ w_s π_s in this convex set has π_s from a quadratic
equation for a common multiplier, cut to the second condition.

*Worth* (``weighted_difference_sequence``, ``difference_sequence``). Each episode is kept silent
with a known chance η, whatever happened before. With A_i = 1 if silent, R_i in [a, b] the reward of
the episode, and c = (a + b) / 2,

    φ_i = (R_i − c) ((1 − A_i) / (1 − η) − A_i / η)

is bounded, with mean E[R_i | advised] − E[R_i | silent] given the past: ``bounded_mean_sequence``
covers the mean of these differences though people and plans change. Without bounds the difference
of the two means has its own sequence, from ``LEAST`` episodes of each kind on.

*Assumed.* Shares: nothing but that θ_i and p_i mean chances given the past. Lift: the habit in a
state is the same in silence and under advice, and does not change; advice that was not seen counts
as silence. Worth with bounds: η is known. Worth without bounds: episodes of one kind are drawn
independently from one distribution with a finite variance, and are many.

Deviates: the asymptotic sequence of Waudby-Smith et al. uses normal quantities; Student's are used,
which are wider while episodes are few. Their width has a parameter for the look at which it is
best; ``EFFECT`` sets it once, as a parameter chosen after looking would void the promise.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from counsel._arrays import Floats

ALPHA = 0.05
"""The chance that a sequence ever misses the truth."""

TILTS: Floats = np.geomspace(0.002, 8.0, 40)
"""The |x_j| of ``share_sequence``: the largest serve few outcomes, the smallest a million."""

RATES: Floats = np.geomspace(0.0005, 0.9, 40)
"""The x_j of ``bounded_mean_sequence``, which must be below 1."""

EFFECT = 0.2
"""τ: the standardised means that the sequences without bounds are sharpest for."""

LEAST = 30
"""Episodes of each kind below which the sequences without bounds say nothing."""

NEWTON_STEPS, HALVINGS = 4, 32
CLOSE = 1e-15  # how near chances come to 0 and 1

Ends = tuple[Floats, Floats]
"""The lower and the upper ends of intervals."""


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """A count of numbers, their sum and their sum of squares; each may be an array over time."""

    count: ArrayLike
    total: ArrayLike
    squares: ArrayLike

    def arrays(self) -> tuple[Floats, Floats, Floats]:
        """Return the three as arrays of floats."""
        parts = (self.count, self.total, self.squares)
        count, total, squares = (np.asarray(part, dtype=np.float64) for part in parts)
        return count, total, squares


@dataclass(frozen=True, slots=True, eq=False)
class AdviceCounts:
    """Counts [..., s] of one advice in every state there is.

    ``given`` pieces were seen and ``matched`` of them were matched; of ``silent`` decisions
    ``unprompted`` ended in the action that the advice names.
    """

    given: ArrayLike
    matched: ArrayLike
    silent: ArrayLike
    unprompted: ArrayLike


def share_sequence(hits: ArrayLike, of: ArrayLike, alpha: float = ALPHA) -> Ends:
    """Return the ends for the mean chance of a hit, after ``hits`` among ``of``; [0, 1] among none.

    Chances may differ from outcome to outcome and depend on the past. ``hits`` may also be the sum
    of numbers in [0, 1]; the ends are then for their mean expectation.
    """
    k, n = np.broadcast_arrays(np.asarray(hits, np.float64), np.asarray(of, np.float64))
    high = 1.0 - _lower_share(n - k, n, alpha)
    return _lower_share(k, n, alpha), high


def _lower_share(hits: Floats, of: Floats, alpha: float) -> Floats:
    """Return the smallest mean chance that the mixture does not exclude, or slightly less.

    Parts of the mixture with the other sign are left out, as they have no weight here.
    """
    k, n = hits[..., None], np.maximum(of, 1.0)[..., None]
    slope, weight, level = np.expm1(TILTS), -np.log(2.0 * TILTS.size), np.log(1.0 / alpha)
    # The mixture is at least each of its parts, and a part has its root in closed form.
    low = np.maximum((np.expm1((TILTS * k - level + weight) / n) / slope).max(axis=-1), 0.0)
    for _ in range(NEWTON_STEPS):
        inner = 1.0 + low[..., None] * slope
        logs = weight + TILTS * k - n * np.log(inner)
        top = logs.max(axis=-1, keepdims=True)
        powers = np.exp(logs - top)
        total = powers.sum(axis=-1)
        excess = top[..., 0] + np.log(total) - level
        fall = (powers * n * slope / inner).sum(axis=-1) / total
        low = low + np.maximum(excess, 0.0) / fall
    return np.where(of > 0.0, np.minimum(low, hits / np.maximum(of, 1.0)), 0.0)


def constant_share_sequence(hits: ArrayLike, of: ArrayLike, alpha: float = ALPHA) -> Ends:
    """Return the ends for a chance that never changes, after ``hits`` among ``of``."""
    k, n = np.broadcast_arrays(np.asarray(hits, np.float64), np.asarray(of, np.float64))
    room = np.log(1.0 / alpha) + _regret(k, n)
    return 1.0 - _upper_constant(n - k, n, room), _upper_constant(k, n, room)


def _regret(hits: Floats, of: Floats) -> Floats:
    """Return r ≥ 0 with log M(p) = n kl(k/n, p) − r: what the Beta mixture loses to the best p."""
    from scipy.special import betaln

    mixed = betaln(hits + 0.5, of - hits + 0.5) - betaln(0.5, 0.5)
    return np.asarray(_best_log_likelihood(hits, of) - mixed)


def _best_log_likelihood(hits: Floats, of: Floats) -> Floats:
    from scipy.special import xlogy

    return np.asarray(xlogy(hits, hits) + xlogy(of - hits, of - hits) - xlogy(of, of))


def _upper_constant(hits: Floats, of: Floats, room: Floats) -> Floats:
    """Return the largest p with n kl(k/n, p) ≤ room, or slightly more; 1 among none."""
    from scipy.special import xlogy

    misses, n = of - hits, np.maximum(of, 1.0)
    has_misses, best = misses > 0.0, hits / n
    m = np.where(has_misses, misses, 1.0)
    # n kl is at least its part with the misses, and at least 2 n (p − k/n)²: p is outside.
    far = np.exp(np.minimum((xlogy(hits, best) - room) / m, 0.0)) * (1.0 - best)
    p = np.minimum(1.0 - far, best + np.sqrt(room / (2.0 * n)))
    p = np.clip(p, CLOSE, 1.0 - CLOSE)
    limit = _best_log_likelihood(hits, of) - room
    for _ in range(2 * NEWTON_STEPS):
        excess = limit - hits * np.log(p) - misses * np.log1p(-p)
        slope = np.maximum(misses / (1.0 - p) - hits / p, CLOSE)
        p = np.clip(p - np.maximum(excess, 0.0) / slope, np.maximum(best, CLOSE), p)
    return np.where(has_misses, p, 1.0)


def weighted_share_sequence(
    weights: ArrayLike, hits: ArrayLike, of: ArrayLike, alpha: float = ALPHA
) -> Ends:
    """Return the ends for Σ_s w_s π_s, each π_s a chance that never changes.

    All arrays are [..., s] with every s there is; ``weights`` sum to 1 over s, and may depend on
    everything observed so far.
    """
    w, k, n = np.broadcast_arrays(*(np.asarray(x, np.float64) for x in (weights, hits, of)))
    regret = _regret(k, n)
    both = np.log(2.0 / alpha) + regret.sum(axis=-1)
    each = np.log(2.0 * w.shape[-1] / alpha) + regret
    used = (w > 0.0).reshape(-1, w.shape[-1]).any(axis=0)
    w, k, n, each = w[..., used], k[..., used], n[..., used], each[..., used]
    low = 1.0 - _upper_weighted(w, n - k, n, (both, each))
    return low, _upper_weighted(w, k, n, (both, each))


def _upper_weighted(w: Floats, hits: Floats, of: Floats, room: tuple[Floats, Floats]) -> Floats:
    """Return the largest Σ w_s π_s that neither condition excludes, or slightly more."""
    both, each = room
    best, most = hits / np.maximum(of, 1.0), _upper_constant(hits, of, each)

    def chances(log_scale: Floats) -> Floats:
        # Stationary where scale · w = (n − k) / (1 − p) − k / p.
        t = np.exp(log_scale)[..., None] * w
        gap = of - t
        root = np.sqrt(gap**2 + 4.0 * t * hits)
        small = 2.0 * hits / np.maximum(gap + root, CLOSE)
        large = (root - gap) / np.maximum(2.0 * t, CLOSE)
        return np.clip(np.where(gap < 0.0, large, small), best, most)

    misses, limit = of - hits, both - _best_log_likelihood(hits, of).sum(axis=-1)
    inside, outside = np.full(w.shape[:-1], -15.0), np.full(w.shape[:-1], 60.0)
    for _ in range(HALVINGS):
        middle = (inside + outside) / 2.0
        p = np.clip(chances(middle), CLOSE, 1.0 - CLOSE)
        is_inside = -(hits * np.log(p) + misses * np.log1p(-p)).sum(axis=-1) <= limit
        inside, outside = np.where(is_inside, middle, inside), np.where(is_inside, outside, middle)
    return np.asarray(np.minimum((w * chances(outside)).sum(axis=-1), 1.0))


def lift_sequence(
    counts: AdviceCounts, habit: ArrayLike | None = None, alpha: float = ALPHA
) -> Ends:
    """Return the ends for the lift of an advice over the states in which it was seen.

    A known ``habit`` [..., s], the chance of the advised action in silence, takes the place of the
    counts of silence. The lower end is −∞ where the habit may be 1, e.g. without silence.
    """
    given, matched = (np.asarray(x, dtype=np.float64) for x in (counts.given, counts.matched))
    pieces = given.sum(axis=-1)
    weights = given / np.maximum(pieces, 1.0)[..., None]
    part = alpha / 2.0 if habit is None else alpha
    low, high = share_sequence(matched.sum(axis=-1), pieces, part)
    if habit is None:
        least, most = weighted_share_sequence(weights, counts.unprompted, counts.silent, part)
    else:
        least = most = (weights * habit).sum(axis=-1)
    return _lift(low, most, pieces, -np.inf), _lift(high, least, pieces, 1.0)


def _lift(adherence: Floats, habit: Floats, count: Floats, without: float) -> Floats:
    is_known = (habit < 1.0) & (count > 0.0)
    lift = (adherence - habit) / np.where(is_known, 1.0 - habit, 1.0)
    return np.where(is_known, lift, without)


def bounded_mean_sequence(sums: Sums, low: float, high: float, alpha: float = ALPHA) -> Ends:
    """Return the ends for the mean expectation of numbers in [low, high]."""
    from scipy.special import digamma

    n, total, squares = sums.arrays()
    size, width = np.maximum(n, 1.0), high - low
    mean = total / size
    spread = np.maximum(squares - n * mean**2, 0.0) / width**2
    harmonic = digamma(size + 1.0) - digamma(2.0)  # 1/2 + … + 1/n
    variance = 0.25 + spread + np.minimum(spread, harmonic)
    half = width * _bernstein(variance, alpha) / size
    half = np.where(n > 0.0, half, np.inf)
    return np.maximum(mean - half, low), np.minimum(mean + half, high)


def _bernstein(variance: Floats, alpha: float) -> Floats:
    """Return the largest |Σ (X_i − p_i)| that the mixture does not exclude, or slightly more."""
    x, level = RATES, np.log(1.0 / alpha)
    logs = -np.log(2.0 * x.size) + (np.log1p(-x) + x) * variance[..., None]
    far = ((level - logs) / x).min(axis=-1)
    for _ in range(NEWTON_STEPS):
        parts = np.logaddexp(logs + x * far[..., None], logs - x * far[..., None])
        top = parts.max(axis=-1, keepdims=True)
        powers = np.exp(parts - top)
        total = powers.sum(axis=-1)
        slopes = (powers * x * np.tanh(x * far[..., None])).sum(axis=-1) / total
        far = far - np.maximum(top[..., 0] + np.log(total) - level, 0.0) / slopes
    return np.asarray(far)


def mean_sequence(sums: Sums, alpha: float = ALPHA) -> Ends:
    """Return the ends for the mean of independent numbers without bounds; asymptotic."""
    n, total, squares = sums.arrays()
    mean, variance = _mean_and_variance(n, total, squares)
    half = _student(n, n - 1.0, variance / np.maximum(n, 1.0), alpha)
    half = np.where(n >= LEAST, half, np.inf)
    return mean - half, mean + half


def difference_sequence(first: Sums, second: Sums, alpha: float = ALPHA) -> Ends:
    """Return the ends for the mean of ``first`` less that of ``second``; asymptotic.

    They are infinite until there are ``LEAST`` numbers of each kind.
    """
    (n1, *rest1), (n0, *rest0) = first.arrays(), second.arrays()
    (mean1, own1), (mean0, own0) = _mean_and_variance(n1, *rest1), _mean_and_variance(n0, *rest0)
    free1, free0 = np.maximum(n1 - 1.0, 1.0), np.maximum(n0 - 1.0, 1.0)
    pooled = (free1 * own1 + free0 * own0) / (free1 + free0)
    part1 = np.maximum(own1, pooled) / np.maximum(n1, 1.0)
    part0 = np.maximum(own0, pooled) / np.maximum(n0, 1.0)
    error, parts = part1 + part0, part1**2 / free1 + part0**2 / free0
    freedom = np.where(parts > 0.0, error**2 / np.where(parts > 0.0, parts, 1.0), 1.0)
    half = _student(n1 * n0 / np.maximum(n1 + n0, 1.0), freedom, error, alpha)
    half = np.where(np.minimum(n1, n0) >= LEAST, half, np.inf)
    return mean1 - mean0 - half, mean1 - mean0 + half


def _mean_and_variance(n: Floats, total: Floats, squares: Floats) -> tuple[Floats, Floats]:
    mean = total / np.maximum(n, 1.0)
    return mean, np.maximum(squares - n * mean**2, 0.0) / np.maximum(n - 1.0, 1.0)


def _student(size: Floats, freedom: Floats, error: Floats, alpha: float) -> Floats:
    """Return the largest distance from a mean, of squared standard error ``error``."""
    g, nu = EFFECT**2 * size, np.maximum(freedom, 1.0)
    power = np.exp((2.0 * np.log(1.0 / alpha) + np.log1p(g)) / (nu + 1.0))
    room = 1.0 - power / (1.0 + g)
    square = np.where(room > 0.0, (power - 1.0) / np.where(room > 0.0, room, 1.0), np.inf)
    return np.asarray(np.sqrt(nu * square * np.maximum(error, np.finfo(np.float64).tiny)))


def weighted_difference_sequence(
    advised: Sums, silent: Sums, share: float, bounds: tuple[float, float], alpha: float = ALPHA
) -> Ends:
    """Return the ends for what advice adds to a reward within ``bounds``.

    ``share`` is the chance with which each episode was kept silent.
    """
    low, high = bounds
    centre, factors = (low + high) / 2.0, (1.0 / (1.0 - share), -1.0 / share)
    total = squares = count = np.zeros(())
    for sums, factor in zip((advised, silent), factors, strict=True):
        n, y, y2 = sums.arrays()
        count = count + n
        total = total + factor * (y - n * centre)
        squares = squares + factor**2 * (y2 - 2.0 * centre * y + n * centre**2)
    most = (high - low) / 2.0 / min(share, 1.0 - share)
    ends = bounded_mean_sequence(Sums(count, total, squares), -most, most, alpha)
    return np.maximum(ends[0], low - high), np.minimum(ends[1], high - low)
