"""How much people listen, where data are thin: partial pooling on the scale of lift.

A *unit* is whatever shares one lift λ: a pair of state and advice, an advice, a declared group. It
matches with probability m = λ + (1 − λ) π in a cell where the habit is π, so k matches in n pieces
have likelihood m^k (1 − m)^(n−k), multiplied over its cells. Units of one *family* (the pairs of
one advice, say) are alike:

    λ_u ~ Normal(μ, τ²)  cut to [−1, 1],      μ flat on [−1, 1], τ flat on [0, 0.6]

so a unit with much data keeps its own estimate and one with little leans on its family. Everything
is worked out on a grid, without iteration: the likelihood of each unit over λ, the density of the
family over λ for a net of (μ, τ), the weight of each (μ, τ) given all units, and from these the
posterior of each unit. What τ turns out to be is what decides how much is borrowed.

With all habits 0 the lift is the adherence θ itself: pooling on θ is the same function.

How well π is known enters by averaging the likelihood over a Beta distribution of π, at five points
with the weights of Gauss and Hermite. As 1 − m = (1 − λ) (1 − π), the same average can be taken
over m, with the density of π at each; the points are put on whichever of the two is known better,
so that what is left to the grid is smooth.
A unit that knows its λ better than the grid can show keeps its own estimate and a normal interval.
"""

from dataclasses import dataclass

import numpy as np

from counsel._arrays import Floats, Ints, sealed
from counsel.estimate.intervals import Z

GRID = sealed(np.linspace(-1.0, 1.0, 401))
"""The lifts that are told apart."""

STEP = 0.005
"""How far apart they are."""

AT_ONCE = 2000
"""Units or pairs worked on at a time."""

SPREADS = np.array([0.0, 0.01, 0.02, 0.035, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6])
"""The values of τ in the net."""

GAPS = np.convolve(np.diff(SPREADS), (0.5, 0.5))
"""How much of [0, 0.6] each of them stands for."""

MIDDLES = 13
"""How many values of μ there are in the net for each τ."""

WIDE = 3.0
"""How many of its standard errors they go to either side of the best, within [−1, 1]."""

SPEAKS_FOR_ALL = 2000
"""Units of a family that are asked what μ and τ are."""

LEVELS = (0.0021385, 0.0876091, 0.5, 0.9123909, 0.9978615)
"""Quantiles the likelihood is averaged over: the points of Gauss and Hermite."""

SHARES = (0.0112574, 0.2220759, 0.5333333, 0.2220759, 0.0112574)
"""Their weights."""


@dataclass(frozen=True, slots=True, eq=False)
class Heard:
    """Pieces of advice that were seen, by cell and unit: one entry for each pair.

    Attributes
    ----------
    unit
        [pair]: which unit shares this pair's lift.
    family
        [unit]: which units are alike.
    given, matched
        [pair]: pieces, and those that were matched.
    habit, size
        [pair]: how often the advised action is taken anyway, and by how many decisions that is
        known.
    """

    unit: Ints
    family: Ints
    given: Floats
    matched: Floats
    habit: Floats
    size: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Pooled:
    """The lift of each unit, and what is left of doubt.

    Attributes
    ----------
    own, own_error
        [unit]: the likeliest lift by its own data and its standard error; NaN and ∞ without any.
    mean, low, high
        [unit]: after pooling, with 95 % intervals.
    families
        [family, grid]: the density of a lift of which nothing is known but its family.
    """

    own: Floats
    own_error: Floats
    mean: Floats
    low: Floats
    high: Floats
    families: Floats


def pool(heard: Heard, families: Floats | None = None) -> Pooled:
    """Pool the units of each family.

    Parameters
    ----------
    heard
        What was seen.
    families
        [family, grid]: densities known before; they are estimated when not given.
    """
    own, error = likeliest(heard)
    count = int(heard.family.max(initial=-1)) + 1
    density = np.empty((count, GRID.size)) if families is None else families
    out = np.empty((3, heard.family.size))
    by_unit = np.argsort(heard.unit, kind="stable")
    first = np.searchsorted(heard.unit[by_unit], np.arange(heard.family.size + 1))
    for f in range(count):
        mine = np.flatnonzero(heard.family == f)
        if families is None:
            known = mine[np.isfinite(error[mine])]
            asked = known[:: max(1, -(-known.size // SPEAKS_FOR_ALL))]
            like = _likelihoods(heard, asked, by_unit, first, own, error)
            net, weight = _net(like, own[asked], error[asked])
            density[f] = weight @ net
        else:
            net, weight = density[f][None], np.ones(1)
        for part in np.array_split(mine, max(1, mine.size // AT_ONCE)):
            like = _likelihoods(heard, part, by_unit, first, own, error)
            marginal = np.maximum(like @ net.T, 1e-300)
            out[:, part] = _moments(like * ((weight / marginal) @ net))
    mean, low, high = out
    fine = error < 2.0 * STEP
    mean[fine] = own[fine]
    low[fine] = np.maximum(own[fine] - Z * error[fine], -1.0)
    high[fine] = np.minimum(own[fine] + Z * error[fine], 1.0)
    return Pooled(own, error, mean, low, high, density)


def pool_estimates(own: Floats, error: Floats) -> Pooled:
    """Pool units of one family of which an estimate and its standard error are known.

    The likelihood of each is then normal; standard errors may be infinite.
    """
    known = np.flatnonzero(np.isfinite(error))
    asked = known[:: max(1, -(-known.size // SPEAKS_FOR_ALL))]
    net, weight = _net(_normal(own[asked], error[asked]), own[asked], error[asked])
    out = np.empty((3, own.size))
    for part in np.array_split(np.arange(own.size), max(1, own.size // AT_ONCE)):
        like = _normal(own[part], error[part])
        marginal = np.maximum(like @ net.T, 1e-300)
        out[:, part] = _moments(like * ((weight / marginal) @ net))
    return Pooled(own, error, out[0], out[1], out[2], (weight @ net)[None])


def _normal(own: Floats, error: Floats) -> Floats:
    """Return normal likelihoods over the grid, no narrower than it can show."""
    away = (GRID - np.where(np.isfinite(error), own, 0.0)[:, None]) / np.maximum(error, STEP)[
        :, None
    ]
    # Far beyond the grid only the difference to its nearest end matters.
    log = -0.5 * away**2
    like: Floats = np.exp(log - log.max(axis=1, keepdims=True))
    return like


def likeliest(heard: Heard) -> tuple[Floats, Floats]:
    """Return each unit's likeliest lift and its standard error, by its own data alone.

    The log likelihood is concave in λ, so halving the interval on the sign of its slope finds the
    top. The standard error has a second part: π is itself estimated.
    """
    units = heard.family.size
    n, k, pi = heard.given, heard.matched, heard.habit
    some = (n > 0.0) & (pi < 1.0)
    unit = heard.unit[some]
    n, k, pi, size = n[some], k[some], pi[some], heard.size[some]
    floor = np.full(units, -1.0)
    np.maximum.at(floor, unit, -pi / (1.0 - pi))
    low, high = floor, np.ones(units)
    for _ in range(60):
        middle = (low + high) / 2.0
        m = np.clip(middle[unit] + (1.0 - middle[unit]) * pi, 1e-12, 1.0 - 1e-12)
        slope = np.bincount(unit, (k / m - (n - k) / (1.0 - m)) * (1.0 - pi), units)
        low, high = np.where(slope > 0.0, middle, low), np.where(slope > 0.0, high, middle)
    own = (low + high) / 2.0
    m = np.clip(own[unit] + (1.0 - own[unit]) * pi, 1e-12, 1.0 - 1e-12)
    # A share of 0 or 1 has no variance of its own: one match and one refusal are added.
    even = (k + 1.0) / (n + 2.0)
    variance = np.maximum(m * (1.0 - m), even * (1.0 - even))
    info = np.bincount(unit, n * (1.0 - pi) ** 2 / variance, units)
    rough = np.where(np.isfinite(size), size, 0.0)
    spread = (rough * pi + 0.5) * (rough * (1.0 - pi) + 0.5) / ((rough + 1.0) ** 2 * (rough + 2.0))
    habit_variance = np.where(np.isfinite(size), spread, 0.0)
    from_habit = (n * (1.0 - pi) * (1.0 - own[unit]) / variance) ** 2 * habit_variance
    doubt = np.bincount(unit, from_habit, units)
    known = info > 0.0
    safe = np.where(known, info, 1.0)
    error = np.where(known, np.sqrt(1.0 / safe + doubt / safe**2), np.inf)
    return np.where(known, own, np.nan), error


def _likelihoods(  # noqa: PLR0913 (what was sorted before comes along)
    heard: Heard, units: Ints, by_unit: Ints, first: Ints, own: Floats, error: Floats
) -> Floats:
    """Return the likelihood of some units at each lift of the grid, the largest of each 1."""
    from scipy.special import betaincinv

    lengths = np.diff(first)[units]
    pairs = by_unit[np.repeat(first[:-1][units], lengths) + _ranks(lengths)]
    row = np.repeat(np.arange(units.size), lengths)
    log_ug = np.zeros((units.size, GRID.size))
    for chunk in np.array_split(np.arange(pairs.size), max(1, pairs.size // AT_ONCE)):
        n, k = heard.given[pairs[chunk]], heard.matched[pairs[chunk]]
        pi, size = heard.habit[pairs[chunk]], heard.size[pairs[chunk]]
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
            log[over_m] = _log_habit(others[over_m], alpha[over_m], beta[over_m])
            log[~over_m] = _log_matches(others[~over_m], n[~over_m], k[~over_m])
            likes.append(log + np.log(share))
            if exact.all():
                break
        np.add.at(log_ug, row[chunk], np.maximum(np.logaddexp.reduce(likes), -1e300))
    like: Floats = np.exp(log_ug - log_ug.max(axis=1, keepdims=True))
    fine = error[units] < 2.0 * STEP
    like[fine] = _normal(own[units][fine], error[units][fine])
    return like


def _log_matches(others: Floats, n: Floats, k: Floats) -> Floats:
    """Return the log likelihood of k matches in n at each lift; ``others`` is 1 − π."""
    miss = (1.0 - GRID) * others[:, None]
    n, k = n[:, None], k[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.where(k > 0.0, k * np.log1p(-miss), 0.0)
        log += np.where(n > k, (n - k) * np.log(miss), 0.0)
    return np.where((miss > 1.0) | np.isnan(log), -np.inf, log)


def _log_habit(miss: Floats, alpha: Floats, beta: Floats) -> Floats:
    """Return the log density of the habit that each lift needs for ``miss`` = 1 − m."""
    with np.errstate(divide="ignore", invalid="ignore"):
        others = miss[:, None] / (1.0 - GRID)
        pi = np.maximum(1.0 - others, STEP / 4.0)  # where π^(−1/2) has its mean over [0, STEP]
        log = (alpha[:, None] - 1.0) * np.log(pi) + (beta[:, None] - 1.0) * np.log(others)
        log -= np.log(1.0 - GRID)
    return np.where(others < 1.0, log, -np.inf)


def _ranks(lengths: Ints) -> Ints:
    """Return 0, 1, … for each run."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1] if ends.size else 0) - np.repeat(ends - lengths, lengths)


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
    found: Floats = np.clip(GRID[at] + (part - 0.5) * STEP, -1.0, 1.0)
    return found
