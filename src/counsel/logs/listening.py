"""How much people listen, by whatever one likes: by person, over time, after so many alerts.

Advice was matched k times in n, would have been matched Σπ times anyway, and is expected to be
matched Σm times, m = λ + (1 − λ) π with the lift λ of each state and advice. Some keys see more of
the advice that nobody heeds than others; so that only listening is compared, each key has

    lift = λ̄ + (k − Σm) / (n − Σπ),     λ̄ = (k − Σπ) / (n − Σπ) over all keys

the common lift, more by what was matched beyond expectation, with variance Σ m (1 − m) / (n − Σπ)².
The engine sums n, k, Σπ, Σm and Σm² over the rows of each key; habit and lift come along as a small
table.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from counsel._arrays import Floats
from counsel.estimate.pooling import GRID, pool_estimates
from counsel.estimate.rates import Z
from counsel.logs.counts import follow
from counsel.logs.estimates import Estimates
from counsel.logs.read import Log, blaming_engine

TIMES = 12
"""Spans of equal length that time is cut into."""

PIECES = 10
"""Pieces of advice already given that are told apart; more are taken together."""


@dataclass(frozen=True, slots=True, eq=False)
class Listening:
    """Advice that was seen, by key.

    Attributes
    ----------
    keys
        What it is by, in order.
    given, matched, anyway
        How often advice was seen, how often it was matched, how often it would have been anyway.
    lift, error
        The lift by the key's own data, for the advice that all were given, and its standard error.
    """

    keys: tuple[Any, ...]
    given: Floats
    matched: Floats
    anyway: Floats
    lift: Floats
    error: Floats

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
        The places as numbers.
    slope, slope_low, slope_high
        The change of lift for one unit of ``at``, by weighted least squares, with its interval.
    """

    by: Listening
    at: Floats
    slope: float
    slope_low: float
    slope_high: float


@dataclass(frozen=True, slots=True, eq=False)
class People:
    """How much each person listens, and how much people differ.

    Attributes
    ----------
    by
        Their own data.
    lift, low, high
        After partial pooling.
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
        given = np.maximum(self.by.given, 1.0)
        theta: Floats = np.clip(self.lift + (1.0 - self.lift) * self.by.anyway / given, 0.0, 1.0)
        return theta


def people(log: Log, estimates: Estimates) -> People | None:
    """Return how much each person listens; None where fewer than two were advised."""
    if not log.has("person"):
        return None
    with blaming_engine(log.name):
        rows = _with_habit(log.table, log, estimates)
        by = _summed(rows.filter(rows.person.notnull()), "person")
    if by is None or len(by.keys) < 2:
        return None
    pooled = pool_estimates(by.lift, by.error)
    density = pooled.families[0]
    centre = float(density @ GRID)
    spread = float(np.sqrt(max(density @ (GRID - centre) ** 2, 0.0)))
    return People(by, pooled.mean, pooled.low, pooled.high, spread)


def over_time(log: Log, estimates: Estimates) -> Trend | None:
    """Return the trend over time, from its first moment (0) to its last (1)."""
    if not log.has("timestamp"):
        return None
    with blaming_engine(log.name):
        table = log.table.mutate(moment=moment(log.table.timestamp))
        ends = table.aggregate(first=table.moment.min(), last=table.moment.max())
        told = ends.to_pyarrow().to_pylist()[0]
        first, last = told["first"], told["last"]
        if first is None or not first < last:
            return None
        span = (table.moment - first) / (last - first) * TIMES
        table = table.mutate(part=span.floor().clip(upper=TIMES - 1).cast("int64"))
        rows = _with_habit(table, log, estimates)
        by = _summed(rows.filter(rows.part.notnull()), "part")
    if by is None or len(by.keys) < 2:
        return None
    at = (np.array(by.keys, dtype=np.float64) + 0.5) / TIMES
    return _trend(by, at)


def over_advice(log: Log, estimates: Estimates, *, horizon: int) -> Trend | None:
    """Return the trend over the pieces of advice already given in the episode."""
    with blaming_engine(log.name):
        table = follow(log, horizon=horizon)
        table = table.mutate(before=table.earlier.clip(upper=PIECES))
        by = _summed(_with_habit(table, log, estimates), "before")
    if by is None or len(by.keys) < 2:
        return None
    return _trend(by, np.array(by.keys, dtype=np.float64))


def moment(column: Any) -> Any:  # noqa: ANN401 (Ibis ships no types)
    """Return a timestamp as a number, NULL where it is none."""
    kind = column.type()
    if kind.is_numeric():
        return column.cast("float64")
    if kind.is_string():
        number = column.try_cast("float64")
        return number.fill_null(column.try_cast("timestamp").epoch_seconds().cast("float64"))
    if kind.is_date():
        column = column.cast("timestamp")
    return column.epoch_seconds().cast("float64")


def _with_habit(table: Any, log: Log, estimates: Estimates) -> Any:  # noqa: ANN401
    """Return the rows with advice that was seen, and how often it is taken anyway."""
    import ibis

    heard = table.advice.notnull()
    if log.has("seen"):
        heard &= table.seen.fill_null(True)  # noqa: FBT003
    mdp, weight = estimates.problem.mdp, np.where(estimates.usable, estimates.given, 0.0)
    total = weight.sum(axis=0)
    s, a = np.nonzero(total > 0.0)
    own_lsa = estimates.habit.policy.reshape(weight.shape)
    own, lift = (
        (values * weight).sum(axis=0)[s, a] / total[s, a] for values in (own_lsa, estimates.lift)
    )
    states, actions = mdp.state_labels or (), mdp.action_labels or ()
    table_sa = pa.table(
        {
            "in_state": pa.array([states[i] for i in s], type=pa.string()),
            "advised": pa.array([actions[i] for i in a], type=pa.string()),
            "own": pa.array(own, type=pa.float64()),
            "likely": pa.array(lift + (1.0 - lift) * own, type=pa.float64()),
        }
    )
    rows = table.filter(heard)
    habits = ibis.memtable(table_sa)
    return rows.inner_join(habits, [rows.state == habits.in_state, rows.advice == habits.advised])


def _summed(rows: Any, key: str) -> Listening | None:  # noqa: ANN401
    """Sum by key; None where there is nothing."""
    found = (
        rows.group_by(key)
        .aggregate(
            given=rows.count(),
            matched=(rows.advice == rows.action).cast("int64").sum(),
            own=rows.own.sum(),
            likely=rows.likely.sum(),
            likely2=(rows.likely * rows.likely).sum(),
        )
        .order_by(key)
        .to_pyarrow()
    )
    if not len(found):
        return None
    names = ("given", "matched", "own", "likely", "likely2")
    given, matched, own, likely, likely2 = (
        found[name].to_numpy().astype(np.float64) for name in names
    )
    room = np.maximum(given - own, 1e-12)
    common = float((matched - own).sum() / room.sum())
    lift = common + (matched - likely) / room
    error = np.sqrt(np.maximum(likely - likely2, 1e-12 * given)) / room
    return Listening(tuple(found[key].to_pylist()), given, matched, own, lift, error)


def _trend(by: Listening, at: Floats) -> Trend:
    weight = 1.0 / by.error**2
    centre = float((weight * at).sum() / weight.sum())
    away = at - centre
    room = float((weight * away**2).sum())
    slope = float((weight * away * by.lift).sum()) / room
    half = Z / np.sqrt(room)
    return Trend(by, at, slope, slope - half, slope + half)
