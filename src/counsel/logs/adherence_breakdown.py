"""How much people listen, by person, by advice, by state or by any other key.

Advice was matched k times in n, would have been matched Σπ times anyway, and is expected to be
matched Σm times, m = λ + (1 − λ) π with the lift λ of each state and advice. Some keys receive more
of the advice that nobody heeds; so that only listening is compared, each key has

    lift = λ̄ + (k − Σm) / (n − Σπ),     λ̄ = (k − Σπ) / (n − Σπ) over all keys

the common lift plus the matches beyond expectation, with variance Σ m (1 − m) / (n − Σπ)².
The counts are by key, state and advice.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from counsel._arrays import Bools, Floats, Ints
from counsel.estimate.intervals import Z, wilson
from counsel.estimate.pooling import GRID, pool_estimates
from counsel.logs.count import SeenAdvice, Tally, count_seen_advice
from counsel.logs.estimate import Estimates
from counsel.logs.read import Log

LEAST_ROOM = 0.5
"""With fewer expected decisions against the advice than this, a lift cannot be estimated."""


@dataclass(frozen=True, slots=True, eq=False)
class AdherenceBreakdown:
    """Advice that was seen, by key; arrays are [key]."""

    keys: tuple[Any, ...]  # people, advice, states, …, in order
    given: Floats  # how often advice was seen
    matched: Floats
    known: Floats  # how often advice was seen in states where the habit is known
    anyway: Floats  # how often it would have been matched there anyway
    lift: Floats  # by the key's own data, adjusted for which advice the key received
    error: Floats  # the standard error of the lift; infinite if the lift is unknown

    @property
    def match_rate(self) -> tuple[Floats, Floats, Floats]:
        """The share of advice that was matched, with the ends of its 95 % interval."""
        return self.matched / np.maximum(self.given, 1.0), *wilson(self.matched, self.given)

    @property
    def anyway_share(self) -> Floats:
        """The share that would have been matched anyway; NaN if it is unknown."""
        share: Floats = np.full(self.known.shape, np.nan)
        np.divide(self.anyway, self.known, out=share, where=self.known > 0.0)
        return share

    @property
    def low(self) -> Floats:
        """The lower end of the lift's 95 % interval."""
        return self.lift - Z * self.error

    @property
    def high(self) -> Floats:
        """The upper end."""
        return self.lift + Z * self.error

    @property
    def has_lift(self) -> Bools:
        """Whether the lift of each key is known."""
        return np.isfinite(self.error)

    @property
    def most_given(self) -> Ints:
        """The keys with advice, by number: those with the most advice first."""
        order = np.argsort(-self.given, kind="stable")
        return order[self.given[order] > 0.0]

    @property
    def strongest(self) -> int | None:
        """The number of the key with the largest lift; None if no lift is known."""
        lifts = np.where(self.has_lift, self.lift, -np.inf)
        return int(lifts.argmax()) if self.has_lift.any() else None


@dataclass(frozen=True, slots=True, eq=False)
class People:
    """How much each person listens, and how much people differ; arrays are [person]."""

    by: AdherenceBreakdown  # the data of each person; the keys are their names
    lift: Floats  # after partial pooling
    low: Floats
    high: Floats
    spread: float  # the standard deviation of lift between people

    @property
    def adherence(self) -> Floats:
        """The share of the advice they received that each person would match."""
        theta: Floats = self.lift + (1.0 - self.lift) * self.by.anyway_share
        return np.clip(theta, 0.0, 1.0)

    def lift_quantiles(self, *shares: float) -> list[float]:
        """Return quantiles of the lift between people, one per share of people below it."""
        return [float(lift) for lift in np.quantile(self.lift, shares)]


def compare_people(log: Log, tally: Tally, estimates: Estimates) -> People | None:
    """Return how much each person listens; None if fewer than two people were advised."""
    if not log.has("person"):
        return None
    by = break_down(count_seen_advice(log, log.table, log.table.person, tally), estimates)
    if by is None or len(by.keys) < 2:
        return None
    pooled = pool_estimates(by.lift, by.error)
    density = pooled.families[0]
    centre = float(density @ GRID)
    spread = float(np.sqrt(max(density @ (GRID - centre) ** 2, 0.0)))
    return People(by, pooled.mean, pooled.low, pooled.high, spread)


def by_advice(estimates: Estimates) -> AdherenceBreakdown:
    """Return how much people listen to each advice, over all states."""
    return _sum_over(estimates, estimates.problem.mdp.action_labels or (), axis=2)


def by_state(estimates: Estimates) -> AdherenceBreakdown:
    """Return how much people listen in each state, over all advice."""
    return _sum_over(estimates, estimates.problem.mdp.state_labels or (), axis=1)


def overall(estimates: Estimates) -> AdherenceBreakdown:
    """Return how much people listen to all advice together."""
    return _sum_over(estimates, ("all advice",), axis=None)


def _sum_over(estimates: Estimates, names: tuple[str, ...], axis: int | None) -> AdherenceBreakdown:
    """Sum over all axes [layer, s, b] but one; the error includes the uncertainty of the habit."""
    own = estimates.habit.policy.reshape(estimates.lift.shape)
    size = estimates.habit.size.reshape(own.shape)
    lift, n = estimates.lift, np.where(estimates.usable, estimates.given, 0.0)
    m = estimates.adherence
    uncertainty = np.divide(own * (1.0 - own), size, out=np.zeros(own.shape), where=size > 0.0)
    away = tuple(i for i in range(3) if i != axis)

    def total(column: Floats) -> Floats:
        return np.atleast_1d(column.sum(axis=away))

    given, anyway = total(n), total(n * own)
    matched = total(np.where(estimates.usable, estimates.matched, 0.0))
    room = given - anyway
    some = room >= LEAST_ROOM
    own_lift = np.divide(matched - anyway, room, out=np.zeros(given.shape), where=some)
    variance = total(n * m * (1.0 - m)) + total(((1.0 - lift) * n) ** 2 * uncertainty)
    error = np.full(given.shape, np.inf)
    error[some] = np.sqrt(variance[some]) / room[some]
    seen = (total(estimates.given), total(estimates.matched))
    return AdherenceBreakdown(names[: given.size], *seen, given, anyway, own_lift, error)


def break_down(seen: SeenAdvice, estimates: Estimates) -> AdherenceBreakdown | None:
    """Break the advice that was seen down by key; None if the habit is known for none of it."""
    own_sb, likely_sb = _match_chances(estimates)
    own, likely = own_sb[seen.state, seen.advice], likely_sb[seen.state, seen.advice]
    is_known = ~np.isnan(own)
    if not is_known.any():
        return None
    used, at = np.unique(seen.key[is_known], return_inverse=True)
    own, likely = own[is_known], likely[is_known]
    n, k = seen.given[is_known], seen.matched[is_known]

    def total(column: Floats) -> Floats:
        return np.bincount(at, column, used.size).astype(np.float64)

    given, matched, anyway = total(n), total(k), total(n * own)
    # A key whose advice would all have been taken anyway has no information of its own.
    room = np.maximum(given - anyway, LEAST_ROOM)
    common = float((matched - anyway).sum() / room.sum())
    lift = common + (matched - total(n * likely)) / room
    error = np.sqrt(np.maximum(total(n * likely * (1.0 - likely)), 1e-12 * given)) / room
    keys = tuple(seen.keys[key] for key in used.tolist())
    return AdherenceBreakdown(keys, given, matched, given, anyway, lift, error)


def _match_chances(estimates: Estimates) -> tuple[Floats, Floats]:
    """Return the chance of a match without and with advice [s, b]; NaN if it is unknown."""
    weight = np.where(estimates.usable, estimates.given, 0.0)
    total = weight.sum(axis=0)
    own_lsb = estimates.habit.policy.reshape(weight.shape)
    unknown = np.full(total.shape, np.nan)
    own, lift = (
        np.divide((values * weight).sum(axis=0), total, out=unknown.copy(), where=total > 0.0)
        for values in (own_lsb, estimates.lift)
    )
    return own, lift + (1.0 - lift) * own
