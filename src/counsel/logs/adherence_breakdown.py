"""How much people listen, by whatever one likes: by person, over time, after so many alerts.

Advice was matched k times in n, would have been matched Σπ times anyway, and is expected to be
matched Σm times, m = λ + (1 − λ) π with the lift λ of each state and advice. Some keys see more of
the advice that nobody heeds than others; so that only listening is compared, each key has

    lift = λ̄ + (k − Σm) / (n − Σπ),     λ̄ = (k − Σπ) / (n − Σπ) over all keys

the common lift, more by what was matched beyond expectation, with variance Σ m (1 − m) / (n − Σπ)².
The engine counts by key, state and advice.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from counsel._arrays import Floats
from counsel.estimate.intervals import Z
from counsel.estimate.pooling import GRID, pool_estimates
from counsel.logs.column_types import as_moment
from counsel.logs.count import codes_of, pieces_before, spoken_and_heard
from counsel.logs.estimate import Estimates
from counsel.logs.read import Log, blaming_engine

TIMES = 12
"""Spans of equal length that time is cut into."""

LEAST_ROOM = 0.5
"""Decisions that might have gone otherwise; with fewer nothing can be said of what moved them."""

PIECES = 10
"""Pieces of advice already given that are told apart; more are taken together."""


@dataclass(frozen=True, slots=True, eq=False)
class Listening:
    """Advice that was seen, by key; arrays are [key].

    Attributes
    ----------
    keys
        What it is by, in order.
    given
        How often advice was seen.
    matched
        How often it was matched.
    known
        How often it was seen where it is known what people do alone.
    anyway
        How often it would have been matched there anyway.
    lift
        The lift by the key's own data, for the advice that all were given.
    error
        Its standard error.
    """

    keys: tuple[Any, ...]
    given: Floats
    matched: Floats
    known: Floats
    anyway: Floats
    lift: Floats
    error: Floats

    @property
    def anyway_share(self) -> Floats:
        """How often it would have been matched anyway; NaN where that is not known."""
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


@dataclass(frozen=True, slots=True, eq=False)
class Trend:
    """How the lift changes along something.

    Attributes
    ----------
    by
        The lift at each place.
    at
        The places as numbers [key].
    slope
        The change of lift for one unit of ``at``, by weighted least squares.
    slope_low
        The lower end of its 95 % interval.
    slope_high
        The upper end.
    ends
        What the first and the last place are called, where ``at`` is a share of the way.
    """

    by: Listening
    at: Floats
    slope: float
    slope_low: float
    slope_high: float
    ends: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class People:
    """How much each person listens, and how much people differ; arrays are [person].

    Attributes
    ----------
    by
        Their own data; ``by.keys`` are their names.
    lift
        The lift of each, after partial pooling.
    low
        The lower end of its 95 % interval.
    high
        The upper end.
    spread
        The standard deviation of lift between people.
    """

    by: Listening
    lift: Floats
    low: Floats
    high: Floats
    spread: float

    @property
    def adherence(self) -> Floats:
        """The share of advice each would match, of what they were advised."""
        theta: Floats = self.lift + (1.0 - self.lift) * self.by.anyway_share
        return np.clip(theta, 0.0, 1.0)


def people(log: Log, estimates: Estimates) -> People | None:
    """Return how much each person listens; None where fewer than two were advised."""
    if not log.has("person"):
        return None
    by = _summed(log, log.table, log.table.person, estimates)
    if by is None or len(by.keys) < 2:
        return None
    pooled = pool_estimates(by.lift, by.error)
    density = pooled.families[0]
    centre = float(density @ GRID)
    spread = float(np.sqrt(max(density @ (GRID - centre) ** 2, 0.0)))
    return People(by, pooled.mean, pooled.low, pooled.high, spread)


def by_advice(estimates: Estimates) -> Listening:
    """Return how much people listen to each advice, in all states together."""
    return _totals(estimates, _actions(estimates), axis=2)


def by_state(estimates: Estimates) -> Listening:
    """Return how much people listen in each state, to whatever was advised there."""
    return _totals(estimates, _states(estimates), axis=1)


def overall(estimates: Estimates) -> Listening:
    """Return how much people listen to all advice together."""
    return _totals(estimates, ("all advice",), axis=None)


def _totals(estimates: Estimates, names: tuple[str, ...], axis: int | None) -> Listening:
    """Sum over all axes [layer, s, b] but one; the habit's own doubt is part of the error."""
    own = estimates.habit.policy.reshape(estimates.lift.shape)
    size = estimates.habit.size.reshape(own.shape)
    lift, n = estimates.lift, np.where(estimates.usable, estimates.given, 0.0)
    m = estimates.adherence
    doubt = np.divide(own * (1.0 - own), size, out=np.zeros(own.shape), where=size > 0.0)
    away = tuple(i for i in range(3) if i != axis)

    def total(column: Floats) -> Floats:
        return np.atleast_1d(column.sum(axis=away))

    given, anyway = total(n), total(n * own)
    matched = total(np.where(estimates.usable, estimates.matched, 0.0))
    room = given - anyway
    some = room >= LEAST_ROOM
    found = np.divide(matched - anyway, room, out=np.zeros(given.shape), where=some)
    variance = total(n * m * (1.0 - m)) + total(((1.0 - lift) * n) ** 2 * doubt)
    error = np.full(given.shape, np.inf)
    error[some] = np.sqrt(variance[some]) / room[some]
    seen = total(estimates.given)
    return Listening(
        tuple(names[: given.size]), seen, total(estimates.matched), given, anyway, found, error
    )


def over_time(log: Log, estimates: Estimates) -> Trend | None:
    """Return the trend over time, from its first moment (0) to its last (1)."""
    if not log.has("timestamp"):
        return None
    with blaming_engine(log.name):
        table = log.table.mutate(moment=as_moment(log.table.timestamp))
        when = table.filter(table.moment.notnull())
        ends = when.aggregate(
            first=when.moment.min(),
            last=when.moment.max(),
            begins=when.timestamp.argmin(when.moment).cast("string"),
            ends=when.timestamp.argmax(when.moment).cast("string"),
        )
        told = ends.to_pyarrow().to_pylist()[0]
        first, last = told["first"], told["last"]
        if first is None or not first < last:
            return None
        span = (table.moment - first) / (last - first) * TIMES
        part = span.floor().clip(upper=TIMES - 1).cast("int64")
    by = _summed(log, table, part, estimates)
    if by is None or len(by.keys) < 2:
        return None
    at = (np.array(by.keys, dtype=np.float64) + 0.5) / TIMES
    return replace(_trend(by, at), ends=(str(told["begins"]), str(told["ends"])))


def over_advice(log: Log, estimates: Estimates) -> Trend | None:
    """Return the trend over the pieces of advice already given in the episode."""
    by = _summed(log, log.table, pieces_before(log.table).clip(upper=PIECES), estimates)
    if by is None or len(by.keys) < 2:
        return None
    return _trend(by, np.array(by.keys, dtype=np.float64))


def _summed(log: Log, table: Any, key: Any, estimates: Estimates) -> Listening | None:  # noqa: ANN401
    """Sum the advice that was seen by key; None where there is none."""
    import pyarrow as pa

    _, heard = spoken_and_heard(log, table)
    rows = table.select("state", "advice", "action", key=key, heard=heard)
    rows = rows.filter(rows.heard & rows.key.notnull())
    counts = rows.group_by(["key", "state", "advice"]).aggregate(
        given=rows.count(), matched=(rows.advice == rows.action).ifelse(1, 0).sum()
    )
    with blaming_engine(log.name):
        found = counts.to_pyarrow()
    own_sb, likely_sb = _likely(estimates)
    states: dict[str | None, int] = {name: i for i, name in enumerate(_states(estimates))}
    actions: dict[str | None, int] = {name: i for i, name in enumerate(_actions(estimates))}
    s, b = codes_of(found["state"], states), codes_of(found["advice"], actions)
    told = ~np.isnan(own_sb[s, b])
    keys = found["key"].combine_chunks().filter(pa.array(told)).dictionary_encode()
    if not len(keys):
        return None
    order = np.argsort(keys.dictionary.to_numpy(zero_copy_only=False), kind="stable")
    place = np.empty(order.size, dtype=np.int64)
    place[order] = np.arange(order.size)
    at = place[keys.indices.to_numpy(zero_copy_only=False)]
    n, k = (found[name].to_numpy().astype(np.float64)[told] for name in ("given", "matched"))
    own, likely = own_sb[s, b][told], likely_sb[s, b][told]

    def total(column: Floats) -> Floats:
        return np.bincount(at, column, order.size).astype(np.float64)

    given, matched, anyway = total(n), total(k), total(n * own)
    # A key whose advice would all have been taken anyway says nothing of its own.
    room = np.maximum(given - anyway, LEAST_ROOM)
    common = float((matched - anyway).sum() / room.sum())
    lift = common + (matched - total(n * likely)) / room
    error = np.sqrt(np.maximum(total(n * likely * (1.0 - likely)), 1e-12 * given)) / room
    names = keys.dictionary.take(pa.array(order)).to_pylist()
    return Listening(tuple(names), given, matched, given, anyway, lift, error)


def _likely(estimates: Estimates) -> tuple[Floats, Floats]:
    """Return how often advice is taken anyway, and in all, [s, b]; NaN where it is not known."""
    weight = np.where(estimates.usable, estimates.given, 0.0)
    total = weight.sum(axis=0)
    own_lsb = estimates.habit.policy.reshape(weight.shape)
    unknown = np.full(total.shape, np.nan)
    own, lift = (
        np.divide((values * weight).sum(axis=0), total, out=unknown.copy(), where=total > 0.0)
        for values in (own_lsb, estimates.lift)
    )
    return own, lift + (1.0 - lift) * own


def _states(estimates: Estimates) -> tuple[str, ...]:
    return estimates.problem.mdp.state_labels or ()


def _actions(estimates: Estimates) -> tuple[str, ...]:
    return estimates.problem.mdp.action_labels or ()


def _trend(by: Listening, at: Floats) -> Trend:
    weight = 1.0 / by.error**2
    centre = float((weight * at).sum() / weight.sum())
    away = at - centre
    room = float((weight * away**2).sum())
    slope = float((weight * away * by.lift).sum()) / room
    half = Z / np.sqrt(room)
    return Trend(by, at, slope, slope - half, slope + half)
