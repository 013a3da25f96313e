"""Partial pooling of lifts: units with little data borrow from similar units.

A *unit* is a set of pairs that share one lift λ: a pair of state and advice, an advice, or a
declared group. It matches with probability m = λ + (1 − λ) π in a cell where the habit is π, so k
matches in n pieces have likelihood m^k (1 − m)^(n−k), multiplied over its cells. Units of one
*family* (e.g. the pairs of one advice) are similar:

    λ_u ~ Normal(μ, τ²)  cut to [−1, 1],      μ flat on [−1, 1], τ flat on [0, 0.6]

so a unit with little data is pulled towards its family; the estimate of τ decides how much.
Everything is computed on a grid, without iteration: the likelihood of each unit over λ, the density
of the family over λ for a net of (μ, τ), the weight of each (μ, τ) given all units, and from these
the posterior of each unit. With all habits 0 the lift is the adherence θ itself.

The uncertainty of π enters by averaging the likelihood over a Beta distribution of π, at five
points with the weights of Gauss and Hermite. As 1 − m = (1 − λ) (1 − π), the same average can be
taken over m, with the density of π at each; the points are put on whichever of the two is known
better, so that the remaining function on the grid is smooth.
A unit whose λ is known more precisely than the grid keeps its own estimate and a normal interval.

Where people tire, a factor f multiplies the lift of an entry: λ becomes f λ in all of the above.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from counsel._arrays import Floats, Ints, sealed
from counsel.estimate._lift_kernels import bisect_lifts
from counsel.estimate.intervals import Z

GRID = sealed(np.linspace(-1.0, 1.0, 401))  # the lifts of the grid
STEP = 0.005  # the distance between neighbours on the grid
AT_ONCE = 2000  # units or pairs processed at a time

SPREADS = np.array([0.0, 0.01, 0.02, 0.035, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6])
"""The values of τ in the net."""

GAPS = np.convolve(np.diff(SPREADS), (0.5, 0.5))
"""The length of the part of [0, 0.6] that each value of τ represents."""

MIDDLES = 13  # the number of values of μ in the net for each τ

WIDE = 3.0
"""How many standard errors the values of μ extend to either side of the best, within [−1, 1]."""

SAMPLE = 2000  # the most units of a family that decide on μ and τ

LEVELS = (0.0021385, 0.0876091, 0.5, 0.9123909, 0.9978615)
"""Quantiles over which the likelihood is averaged: the Gauss–Hermite points."""

SHARES = (0.0112574, 0.2220759, 0.5333333, 0.2220759, 0.0112574)  # their weights


@dataclass(frozen=True, slots=True, eq=False)
class AdviceCounts:
    """Counts of advice that was seen, one entry per pair of cell and unit; ``family`` is per unit.

    ``habit`` is the probability of the advised action without advice, ``size`` the effective number
    of decisions behind it, ``fading`` a factor above 0 that multiplies the lift, by default 1.
    """

    unit: Ints
    family: Ints
    given: Floats
    matched: Floats
    habit: Floats
    size: Floats
    fading: Floats | None = None

    @property
    def factors(self) -> Floats:
        """The factor that multiplies the lift of each entry."""
        return np.ones(self.given.size) if self.fading is None else self.fading


@dataclass(frozen=True, slots=True, eq=False)
class PooledLifts:
    """The lift of each unit: by its own data, and after pooling with a 95 % interval.

    ``own`` is NaN and ``own_error`` infinite without data. ``families`` [family, grid] is the
    density of the lift of a new unit of the family.
    """

    own: Floats
    own_error: Floats
    mean: Floats
    low: Floats
    high: Floats
    families: Floats


def pool(counts: AdviceCounts) -> PooledLifts:
    """Pool the units of each family."""
    own, error = likeliest(counts)
    n_families = int(counts.family.max(initial=-1)) + 1
    density = np.empty((n_families, GRID.size))
    moments = np.empty((3, counts.family.size))
    likelihoods = _Likelihoods(counts, own, error)
    for f in range(n_families):
        mine = np.flatnonzero(counts.family == f)
        known = np.isfinite(error[mine])
        sample, of = _sample(mine[known]), likelihoods.of
        if mine.size <= SAMPLE:  # all at once, once
            like = likelihoods.of(mine)
            net, weight = _net(like[known], own[sample], error[sample])

            def of(units: Ints, like: Floats = like, mine: Ints = mine) -> Floats:
                return like[np.searchsorted(mine, units)]

        else:
            net, weight = _net(of(sample), own[sample], error[sample])
        density[f] = weight @ net
        _fill_moments(moments, mine, of, net, weight)
    mean, low, high = moments
    fine = error < 2.0 * STEP
    mean[fine] = own[fine]
    low[fine] = np.maximum(own[fine] - Z * error[fine], -1.0)
    high[fine] = np.minimum(own[fine] + Z * error[fine], 1.0)
    return PooledLifts(own, error, mean, low, high, density)


def pool_not(counts: AdviceCounts) -> PooledLifts:
    """Return the lift of each unit by its own data; a unit without any has that of its family."""
    own, error = likeliest(counts)
    of_family = replace(
        counts,
        unit=counts.family[counts.unit],
        family=np.zeros(int(counts.family.max(initial=-1)) + 1, dtype=np.int64),
    )
    common = np.nan_to_num(likeliest(of_family)[0])
    lift = np.where(np.isfinite(error), own, common[counts.family])
    return PooledLifts(own, error, lift, lift, lift, np.empty((0, GRID.size)))


def pool_estimates(own: Floats, error: Floats) -> PooledLifts:
    """Pool units of one family, given an estimate of each and its standard error.

    The likelihood of each is then normal; standard errors may be infinite.
    """

    def likelihoods(units: Ints) -> Floats:
        return _normal(own[units], error[units])

    sample = _sample(np.flatnonzero(np.isfinite(error)))
    net, weight = _net(likelihoods(sample), own[sample], error[sample])
    moments = np.empty((3, own.size))
    _fill_moments(moments, np.arange(own.size), likelihoods, net, weight)
    mean, low, high = moments
    return PooledLifts(own, error, mean, low, high, (weight @ net)[None])


def _sample(units: Ints) -> Ints:
    """Return every n-th unit, so that at most SAMPLE remain."""
    return units[:: max(1, -(-units.size // SAMPLE))]


def _fill_moments(
    moments: Floats, units: Ints, likelihoods: Callable[[Ints], Floats], net: Floats, weight: Floats
) -> None:
    """Write the posterior mean and interval of units of one family."""
    for part in np.array_split(units, max(1, units.size // AT_ONCE)):
        like = likelihoods(part)
        marginal = np.maximum(like @ net.T, 1e-300)
        moments[:, part] = _moments(like * ((weight / marginal) @ net))


def _normal(own: Floats, error: Floats) -> Floats:
    """Return normal likelihoods over the grid, no narrower than its resolution."""
    away = (GRID - np.where(np.isfinite(error), own, 0.0)[:, None]) / np.maximum(error, STEP)[
        :, None
    ]
    # Far beyond the grid only the difference to its nearest end matters.
    log = -0.5 * away**2
    like: Floats = np.exp(log - log.max(axis=1, keepdims=True))
    return like


def likeliest(counts: AdviceCounts) -> tuple[Floats, Floats]:
    """Return each unit's likeliest lift and its standard error, by its own data alone.

    The log likelihood is concave in λ, so bisection on the sign of its slope finds the maximum. The
    standard error has a second part: π is itself estimated.
    """
    units = counts.family.size
    n, k, pi = counts.given, counts.matched, counts.habit
    some = (n > 0.0) & (pi < 1.0)
    unit = counts.unit[some]
    n, k, pi, size = n[some], k[some], pi[some], counts.size[some]
    fading = counts.factors[some]
    floor = np.full(units, -1.0)
    np.maximum.at(floor, unit, -pi / (1.0 - pi) / fading)
    own = np.empty(units)
    bisect_lifts(unit, n, k, pi, fading, floor, own)
    moved = fading * own[unit]
    m = np.clip(moved + (1.0 - moved) * pi, 1e-12, 1.0 - 1e-12)
    # A share of 0 or 1 has no variance of its own: one match and one refusal are added.
    even = (k + 1.0) / (n + 2.0)
    variance = np.maximum(m * (1.0 - m), even * (1.0 - even))
    info = np.bincount(unit, n * fading**2 * (1.0 - pi) ** 2 / variance, units)
    rough = np.where(np.isfinite(size), size, 0.0)
    spread = (rough * pi + 0.5) * (rough * (1.0 - pi) + 0.5) / ((rough + 1.0) ** 2 * (rough + 2.0))
    habit_variance = np.where(np.isfinite(size), spread, 0.0)
    from_habit = (n * fading * (1.0 - pi) * (1.0 - moved) / variance) ** 2 * habit_variance
    doubt = np.bincount(unit, from_habit, units)
    known = info > 0.0
    safe = np.where(known, info, 1.0)
    error = np.where(known, np.sqrt(1.0 / safe + doubt / safe**2), np.inf)
    return np.where(known, own, np.nan), error


class _Likelihoods:
    """The likelihood of units at each lift of the grid."""

    def __init__(self, counts: AdviceCounts, own: Floats, error: Floats) -> None:
        self.counts, self.own, self.error = counts, own, error
        self.factors = counts.factors
        self.by_unit = np.argsort(counts.unit, kind="stable")
        units = np.arange(counts.family.size + 1)
        self.first = np.searchsorted(counts.unit[self.by_unit], units)

    def of(self, units: Ints) -> Floats:
        """Return the likelihood of some units [unit, grid], scaled to a maximum of 1."""
        from scipy.special import betaincinv

        counts, first = self.counts, self.first
        lengths = np.diff(first)[units]
        skipped = first[:-1][units] - (np.cumsum(lengths) - lengths)
        pairs = self.by_unit[np.repeat(skipped, lengths) + np.arange(lengths.sum())]
        row = np.repeat(np.arange(units.size), lengths)
        log_ug = np.zeros((units.size, GRID.size))
        for chunk in np.array_split(np.arange(pairs.size), max(1, pairs.size // AT_ONCE)):
            n, k = counts.given[pairs[chunk]], counts.matched[pairs[chunk]]
            pi, size = counts.habit[pairs[chunk]], counts.size[pairs[chunk]]
            lifts = self.factors[pairs[chunk]][:, None] * GRID
            exact = ~np.isfinite(size)
            rough = np.where(exact, 0.0, size)
            alpha, beta = rough * pi + 0.5, rough * (1.0 - pi) + 0.5
            # Squared coefficients of variation of 1 − m and of 1 − π.
            over_m = (k + 1.0) / ((n - k + 1.0) * (n + 3.0)) < alpha / (beta * (rough + 2.0))
            over_m &= ~exact
            likes = []
            for level, share in zip(LEVELS, SHARES, strict=True):
                others = betaincinv(
                    np.where(over_m, n - k + 1.0, beta), np.where(over_m, k + 1.0, alpha), level
                )
                others = np.where(exact, 1.0 - pi, others)
                log = np.empty((chunk.size, GRID.size))
                log[over_m] = _log_habit(lifts[over_m], others[over_m], alpha[over_m], beta[over_m])
                log[~over_m] = _log_matches(lifts[~over_m], others[~over_m], n[~over_m], k[~over_m])
                likes.append(log + np.log(share))
                if exact.all():
                    break
            np.add.at(log_ug, row[chunk], np.maximum(np.logaddexp.reduce(likes), -1e300))
        like: Floats = np.exp(log_ug - log_ug.max(axis=1, keepdims=True))
        fine = self.error[units] < 2.0 * STEP
        like[fine] = _normal(self.own[units][fine], self.error[units][fine])
        return like


def _log_matches(lifts: Floats, others: Floats, n: Floats, k: Floats) -> Floats:
    """Return the log likelihood of k matches in n at each lift; ``others`` is 1 − π."""
    miss = (1.0 - lifts) * others[:, None]
    n, k = n[:, None], k[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.where(k > 0.0, k * np.log1p(-miss), 0.0)
        log += np.where(n > k, (n - k) * np.log(miss), 0.0)
    return np.where((miss > 1.0) | np.isnan(log), -np.inf, log)


def _log_habit(lifts: Floats, miss: Floats, alpha: Floats, beta: Floats) -> Floats:
    """Return the log density of the habit that each lift needs for ``miss`` = 1 − m."""
    with np.errstate(divide="ignore", invalid="ignore"):
        others = miss[:, None] / (1.0 - lifts)
        pi = np.maximum(1.0 - others, STEP / 4.0)  # where π^(−1/2) has its mean over [0, STEP]
        log = (alpha[:, None] - 1.0) * np.log(pi) + (beta[:, None] - 1.0) * np.log(others)
        log -= np.log(1.0 - lifts)
    return np.where((others < 1.0) & (lifts < 1.0), log, -np.inf)


def _net(like: Floats, own: Floats, error: Floats) -> tuple[Floats, Floats]:
    """Return densities over the grid for a net of (μ, τ), and the weight of each."""
    if not own.size:
        flat = np.where(GRID >= 0.0, 1.0, 0.0)
        return flat[None] / flat.sum(), np.ones(1)
    nets, weights = [], []
    for spread, gap in zip(SPREADS, GAPS, strict=True):
        precision = 1.0 / (error**2 + spread**2)
        best = min(max(float((precision * own).sum() / precision.sum()), -1.0), 1.0)
        doubt = float(precision.sum()) ** -0.5
        first, last = max(best - WIDE * doubt, -1.0), min(best + WIDE * doubt, 1.0)
        middles = np.linspace(first, last, MIDDLES)
        prior = np.exp(-0.5 * ((GRID - middles[:, None]) / max(spread, STEP / 2.0)) ** 2)
        prior /= prior.sum(axis=1, keepdims=True)
        evidence = np.log(np.maximum(like @ prior.T, 1e-300)).sum(axis=0)
        nets.append(prior)
        weights.append(evidence + np.log((last - first) * gap))
    net, weight = np.concatenate(nets), np.concatenate(weights)
    weight = np.exp(weight - weight.max())
    kept = weight > 1e-6
    return net[kept], weight[kept] / weight[kept].sum()


def _moments(posterior: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the mean and the ends of the middle 95 % of each row."""
    posterior /= np.maximum(posterior.sum(axis=1, keepdims=True), 1e-300)
    upto = posterior.cumsum(axis=1)
    low, high = (_quantile(upto, posterior, share) for share in (0.025, 0.975))
    return posterior @ GRID, low, high


def _quantile(upto: Floats, mass: Floats, share: float) -> Floats:
    """Return the lift below which ``share`` of the mass lies, between points of the grid."""
    at = np.minimum((upto < share).sum(axis=1), GRID.size - 1)
    rows = np.arange(len(upto))
    here = np.maximum(mass[rows, at], 1e-300)
    part = np.clip((share - (upto[rows, at] - mass[rows, at])) / here, 0.0, 1.0)
    lift: Floats = np.clip(GRID[at] + (part - 0.5) * STEP, -1.0, 1.0)
    return lift
