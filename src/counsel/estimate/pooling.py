"""How much people listen, where data are thin: partial pooling on the scale of lift.

A *unit* is whatever shares one lift λ: a pair of state and advice, an advice, a declared group. It
matches with probability m = λ + (1 − λ) π in a cell where the habit is π, so k matches in n pieces
have likelihood m^k (1 − m)^(n−k), multiplied over its cells. Units of one *family* (the pairs of
one advice, say) are alike:

    λ_u ~ Normal(μ, τ²)  cut to where all m are probabilities,      μ and τ unknown and flat

so a unit with much data keeps its own estimate and one with little leans on its family. Everything
is worked out on a grid, without iteration: the likelihood of each unit over λ, the density of the
family over λ for a net of (μ, τ), the weight of each (μ, τ) given all units, and from these the
posterior of each unit. What τ turns out to be is what decides how much is borrowed.

With all habits 0 the lift is the adherence θ itself: pooling on θ is the same function.

How well π is known enters by averaging the likelihood over five quantiles of a Beta distribution.
A unit that knows its λ better than the grid can show keeps its own estimate and a normal interval.
"""

from dataclasses import dataclass

import numpy as np

from counsel._arrays import Floats, Ints, sealed
from counsel.estimate.rates import Z

GRID = sealed(np.linspace(-1.0, 1.0, 401))
"""The lifts that are told apart."""

STEP = 0.005
"""How far apart they are."""

AT_ONCE = 2000
"""Units or pairs worked on at a time."""

SPREADS = np.array([0.0, 0.01, 0.02, 0.035, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6])
"""The values of τ in the net."""

MIDDLES = np.linspace(-3.0, 3.0, 13)
"""The values of μ in the net: so many of its standard errors around its best for each τ."""

SPEAKS_FOR_ALL = 2000
"""Units of a family that are asked what μ and τ are."""

LEVELS = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Quantiles of the habit the likelihood is averaged over."""


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
    habit_variance = np.where(size > 0.0, pi * (1.0 - pi) / np.maximum(size, 1e-300), 0.0)
    pull = (n * (1.0 - pi) * (1.0 - own[unit]) / variance) ** 2 * habit_variance
    doubt = np.bincount(unit, pull, units)
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
        n, k = heard.given[pairs[chunk], None], heard.matched[pairs[chunk], None]
        pi, size = heard.habit[pairs[chunk]], heard.size[pairs[chunk]]
        exact = ~np.isfinite(size)
        rough = np.where(exact, 0.0, size)
        likes = []
        for level in LEVELS:
            drawn = betaincinv(rough * pi + 0.5, rough * (1.0 - pi) + 0.5, level)
            m = GRID + (1.0 - GRID) * np.where(exact, pi, drawn)[:, None]
            with np.errstate(divide="ignore", invalid="ignore"):
                log = np.where(k > 0.0, k * np.log(m), 0.0)
                log += np.where(n > k, (n - k) * np.log1p(-m), 0.0)
            likes.append(np.where((m < 0.0) | np.isnan(log), -np.inf, log))
            if exact.all():
                break
        np.add.at(log_ug, row[chunk], np.maximum(np.logaddexp.reduce(likes), -1e300))
    like: Floats = np.exp(log_ug - log_ug.max(axis=1, keepdims=True))
    fine = error[units] < 2.0 * STEP
    like[fine] = _normal(own[units][fine], error[units][fine])
    return like


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
    for spread, gap in zip(SPREADS, np.gradient(SPREADS), strict=True):
        precision = 1.0 / (error**2 + spread**2)
        best = float((precision * own).sum() / precision.sum())
        doubt = float(precision.sum()) ** -0.5
        middles = np.clip(best + MIDDLES * doubt, -1.0, 1.0)
        prior = np.exp(-0.5 * ((GRID - middles[:, None]) / max(spread, STEP / 2.0)) ** 2)
        prior /= prior.sum(axis=1, keepdims=True)
        evidence = np.log(np.maximum(like @ prior.T, 1e-300)).sum(axis=0)
        nets.append(prior)
        weights.append(evidence + np.log(doubt * gap))
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
