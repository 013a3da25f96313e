"""How much people listen: who differs, and how it changes with time and with advice itself.

People differ in what they do without advice, and habits drift. What counts is how much more often
people match advice than they would have done what it says *in their own silence*. With b the advice
seen, or in silence one drawn as in that state, and π what people in general do there,

    y = 1{action = b},   base = π(b),   room = 1 − π(b)

advice raises y − base by lift × room, and whoever differs in habit differs in silence too. So

* each person has their own mean of y − base in silence; what it is larger by when advised is their
  listening. A test says whether people differ in that by more than chance;
* changes along a scale z come from the regression

      y − base = α + β z + γ step + (advised − p) room (λ + μ + δ z)

  with p the chance of advice and λ the lift of the state and advice in general, so that only
  listening is compared. δ is the change of lift, and errors are clustered by person. Time is
  each person's own: since their first decision. The change with the pieces already given is what
  remains when time in the study and the step are held.
"""

from dataclasses import dataclass

import numpy as np

from counsel._arrays import Bools, Floats, Ints
from counsel.estimate.pooling import GRID, pool_estimates
from counsel.logs.adherence_breakdown import LEAST_ROOM, AdherenceBreakdown
from counsel.logs.clustered import FEWEST_CLUSTERS, Regression, least_squares
from counsel.logs.decisions import Decisions
from counsel.logs.estimate import Estimates

SPANS = 12
"""Spans into which time in the study is cut."""

STAY = 0.99
"""The time in the study that this share of decisions does not exceed counts as all of it."""

MOST_PIECES = 10
"""Pieces of advice already given that are told apart."""

LEAST_CHANCE = 0.02
"""At least so many people would have done otherwise."""

CLEAR = 0.05
"""The p-value below which a difference can be told."""


@dataclass(frozen=True, slots=True, eq=False)
class People:
    """How much each person listens, and how much people differ; arrays are [person]."""

    by: AdherenceBreakdown  # the data of each person; the keys are their names
    lift: Floats  # after partial pooling
    low: Floats
    high: Floats
    spread: float  # the standard deviation of lift between people
    p_value: float  # of people who all listen alike

    @property
    def differ(self) -> bool:
        """Whether it can be told that people differ."""
        return self.p_value < CLEAR

    @property
    def adherence(self) -> Floats:
        """The share of the advice they received that each person would match."""
        theta: Floats = self.lift + (1.0 - self.lift) * self.by.anyway_share
        return np.clip(theta, 0.0, 1.0)

    def lift_quantiles(self, *shares: float) -> list[float]:
        """Return quantiles of the lift between people, one per share of people below it."""
        return [float(lift) for lift in np.quantile(self.lift, shares)]


@dataclass(frozen=True, slots=True, eq=False)
class Trend:
    """How the lift changes along a scale."""

    by: AdherenceBreakdown  # the lift at each place of the scale
    at: Floats  # the places as numbers [key]
    slope: float  # the change of lift per unit of ``at``
    slope_low: float
    slope_high: float
    p_value: float
    is_own_clock: bool = False  # whether time runs from each person's first decision

    @property
    def is_clear(self) -> bool:
        """Whether a change can be told."""
        return self.p_value < CLEAR


@dataclass(frozen=True, slots=True, eq=False)
class Listening:
    """Decisions as what they say about listening; arrays are [row]."""

    rows: Decisions
    advised: Bools
    chance: Floats  # of advice that is seen, in this state and step
    match: Floats  # y: whether the advice was matched, or would have been, in expectation
    base: Floats  # what people in general do
    likely: Floats  # the common lift of the state and advice

    @classmethod
    def of(cls, rows: Decisions, *by_context: Estimates) -> "Listening | None":
        """Prepare the decisions where habit and advice are known; None if there are none.

        There are estimates for each context, or one for all.
        """
        whose = rows.context[rows.episode]
        parts = [
            cls._of(rows.select(whose == i) if len(by_context) > 1 else rows, estimates)
            for i, estimates in enumerate(by_context)
        ]
        known = [part for part in parts if part is not None]
        if len(known) < 2:
            return known[0] if known else None
        columns = ("advised", "chance", "match", "base", "likely")
        joined = (np.concatenate([getattr(part, name) for part in known]) for name in columns)
        return cls(Decisions.join([part.rows for part in known]), *joined)

    @classmethod
    def _of(cls, rows: Decisions, estimates: Estimates) -> "Listening | None":
        """Prepare the decisions of one context."""
        L, S, A = estimates.lift.shape
        layer = rows.place if L > 1 else np.zeros_like(rows.place)
        own = estimates.habit.policy.reshape(L, S, A)
        sent = np.where(estimates.usable, estimates.given, 0.0)
        total = sent.sum(axis=2, keepdims=True)
        mix = np.divide(sent, total, out=np.zeros_like(sent), where=total > 0.0)
        expected = (mix * own).sum(axis=2)
        average = (mix * estimates.lift).sum(axis=2)
        at, did = (layer, rows.state), (layer, rows.state, rows.action)
        said = np.where(rows.heard, rows.advice, 0)
        heard = (layer, rows.state, said)
        kept = (total[..., 0][at] > 0.0) & (~rows.heard | estimates.usable[heard])
        if not kept.any():
            return None
        chance = _chance(rows)
        return cls(
            rows=rows.select(kept),
            advised=rows.heard[kept],
            chance=chance[kept],
            match=np.where(rows.heard, rows.action == rows.advice, mix[did])[kept],
            base=np.where(rows.heard, own[heard], expected[at])[kept],
            likely=np.where(rows.heard, estimates.lift[heard], average[at])[kept],
        )

    @property
    def room(self) -> Floats:
        """How much advice could change."""
        return 1.0 - self.base

    def people(self) -> People | None:
        """Return how much each person listens; None if fewer than two can be compared."""
        rows = self.rows
        who = rows.person[rows.episode]
        if (who < 0).any():
            return self._select(who >= 0).people()
        if int(who.max(initial=-1)) < 1:
            return None
        n1, n0 = (self._count(who, flag) for flag in (self.advised, ~self.advised))
        beyond = self.match - self.base
        quiet = self._sum(who, beyond, ~self.advised) / np.maximum(n0, 1.0)
        # What remains is theirs: their own habit, and the common lift of what they were told.
        room = self._room_after(quiet[who])
        left = np.where(self.advised, beyond - quiet[who] - self.likely * room, 0.0)
        spare = self._sum(who, room, self.advised)
        known = (n0 > 1.0) & (spare >= LEAST_ROOM)
        if known.sum() < 2:
            return None
        m = np.clip(self.likely + (1.0 - self.likely) * np.clip(1.0 - room, 0.0, 1.0), 0.0, 1.0)
        at_match = np.where(self.advised, m * (1.0 - m), 0.0)
        silent = np.where(self.advised, 0.0, (beyond - quiet[who]) ** 2)
        of_silence = silent.sum() / max(float((n0 - 1.0)[known].sum()), 1.0)
        answer = np.bincount(who, (1.0 - self.likely) * self.advised, n1.size)
        variance = self._sum(who, at_match, self.advised)
        variance += answer**2 * of_silence / np.maximum(n0, 1.0)
        common = float(self._sum(who, self.likely * room, self.advised)[known].sum())
        common /= float(spare[known].sum())
        surprise = self._sum(who, left, self.advised)
        lift = common + surprise / np.maximum(spare, 1e-300)
        error = np.where(known, np.sqrt(variance) / np.maximum(spare, 1e-300), np.inf)
        by = self._breakdown(who, rows.people, lift, error, known & (n1 > 0.0))
        pooled = pool_estimates(by.lift, by.error)
        density = pooled.families[0]
        centre = float(density @ GRID)
        spread = float(np.sqrt(max(density @ (GRID - centre) ** 2, 0.0)))
        p_value = _alike(surprise[known], spare[known], variance[known])
        return People(by, pooled.mean, pooled.low, pooled.high, spread, p_value)

    def over_time(self) -> Trend | None:
        """Return the trend over time in the study: 0 is each person's start, 1 all of it."""
        since = self.rows.since
        timed = np.isfinite(since)
        if not timed.any() or not since[timed].max() > 0.0:
            return None
        some = self._select(timed)
        passed = some.rows.since / max(float(np.quantile(since[timed], STAY)), 1e-300)
        span = np.minimum(passed * SPANS, SPANS - 1.0).astype(np.int64)
        middle = (np.arange(SPANS) + 0.5) / SPANS
        is_own = int(self.rows.person.max(initial=-1)) > 0
        return some._trend(passed, span, middle, held=(), is_own_clock=is_own)

    def over_advice(self) -> Trend | None:
        """Return the trend over the pieces of advice already given in the episode."""
        pieces = np.minimum(self.rows.pieces, MOST_PIECES)
        if not pieces.any():
            return None
        held = [self.rows.place.astype(np.float64)]
        if np.isfinite(self.rows.since).all() and self.rows.since.any():
            held.append(self.rows.since)
        middle = np.arange(MOST_PIECES + 1.0)
        return self._trend(pieces.astype(np.float64), pieces, middle, held=tuple(held))

    def _trend(
        self,
        z: Floats,
        key: Ints,
        middle: Floats,
        held: tuple[Floats, ...],
        *,
        is_own_clock: bool = False,
    ) -> Trend | None:
        """Regress on a scale, and on its parts; what is held moderates the lift too."""
        rows, cluster = self.rows, self.rows.cluster[self.rows.episode]
        if np.unique(cluster).size < FEWEST_CLUSTERS:
            return None
        used = np.flatnonzero(np.bincount(key, self.advised) > 0.0)
        if used.size < 2:
            return None
        scales = [_standard(scale) for scale in (z, *held)]
        columns = [np.ones(z.size), _standard(rows.place.astype(np.float64))[0]]
        columns += [scale for scale, _ in scales]
        # Habits may drift, and with them what is left for advice to move.
        quiet, controls = ~self.advised, np.stack(columns, axis=1)
        own = np.linalg.lstsq(controls[quiet], (self.match - self.base)[quiet], rcond=None)[0]
        moves = (self.advised - self.chance) * self._room_after(controls @ own)
        if not np.abs(moves).max() > LEAST_ROOM * 1e-6:
            return None  # advice was always sent, or never: nobody can be compared
        beyond = self.match - self.base - moves * self.likely
        columns += [moves, *(moves * scale for scale, _ in scales)]
        regression = least_squares(beyond, np.stack(columns, axis=1), cluster)
        pick = np.zeros(len(columns))
        pick[len(columns) - len(scales)] = 1.0 / scales[0][1]
        slope, low, high = regression.interval(pick)
        by = self._by_part(key, used, middle, cluster)
        p_value = regression.p_value(pick)
        return Trend(by, middle[used], slope, low, high, p_value, is_own_clock)

    def _room_after(self, own: Floats) -> Floats:
        """Return how much advice could change, if silence is so much above the general habit."""
        room: Floats = np.clip(self.room - own, LEAST_CHANCE, 1.0)
        return room

    def _by_part(self, key: Ints, used: Ints, middle: Floats, cluster: Ints) -> AdherenceBreakdown:
        """Return the lift of each part of a scale, each compared with its own silence."""
        quiet = ~self.advised
        own = self._sum(key, self.match - self.base, quiet) / np.maximum(self._count(key, quiet), 1)
        moves = (self.advised - self.chance) * self._room_after(own[key])
        beyond = self.match - self.base - moves * self.likely
        is_part = key[:, None] == used[None]
        x = np.concatenate((is_part, is_part * moves[:, None]), axis=1)
        regression: Regression = least_squares(beyond, x, cluster)
        K = used.size
        errors = np.sqrt(np.maximum(np.diag(regression.covariance)[K:], 0.0))
        lift, error = np.zeros(middle.size), np.full(middle.size, np.inf)
        common = float(self.likely[self.advised].mean())
        lift[used], error[used] = common + regression.coefficient[K:], errors
        known = np.isin(np.arange(middle.size), used)
        return self._breakdown(key, tuple(middle.tolist()), lift, error, known)

    def _breakdown(
        self, key: Ints, keys: tuple[object, ...], lift: Floats, error: Floats, used: Bools
    ) -> AdherenceBreakdown:
        """Return the numbers of the used keys."""
        given = self._count(key, self.advised, len(keys))
        matched = self._sum(key, self.match, self.advised, len(keys))
        anyway = self._sum(key, self.base, self.advised, len(keys))
        names = tuple(name for name, is_used in zip(keys, used, strict=True) if is_used)
        columns = (column[used] for column in (given, matched, given, anyway, lift, error))
        return AdherenceBreakdown(names, *columns)

    def _sum(self, key: Ints, column: Floats, where: Bools, keys: int = 0) -> Floats:
        size = max(keys, int(key.max()) + 1)
        return np.bincount(key, column * where, size).astype(np.float64)

    def _count(self, key: Ints, where: Bools, keys: int = 0) -> Floats:
        return self._sum(key, np.ones(key.size), where, keys)

    def _select(self, kept: Bools) -> "Listening":
        numbers = (self.chance, self.match, self.base, self.likely)
        advised = self.advised[kept]
        return Listening(self.rows.select(kept), advised, *(column[kept] for column in numbers))


def _chance(rows: Decisions) -> Floats:
    """Return how often advice is seen in each state and step."""
    cell = np.unique(rows.state * rows.horizon + rows.place, return_inverse=True)[1]
    share: Floats = (np.bincount(cell, rows.heard) / np.bincount(cell))[cell]
    return share


def _standard(scale: Floats) -> tuple[Floats, float]:
    """Return a scale with mean 0 and standard deviation 1, and that deviation."""
    spread = float(scale.std()) or 1.0
    return (scale - scale.mean()) / spread, spread


def _alike(surprise: Floats, room: Floats, variance: Floats) -> float:
    """Return the p-value of people who all listen alike (Cochran's Q)."""
    from scipy.special import chdtrc

    weight = room**2 / np.maximum(variance, 1e-300)
    lift = surprise / room
    middle = float((weight * lift).sum() / weight.sum())
    return float(chdtrc(surprise.size - 1.0, float((weight * (lift - middle) ** 2).sum())))
