"""Trends of listening: how the lift changes over time, and as advice accumulates in an episode."""

from dataclasses import dataclass

import numpy as np

from counsel._arrays import Floats
from counsel.estimate.intervals import Z
from counsel.logs.adherence_breakdown import AdherenceBreakdown, break_down
from counsel.logs.casting import as_time
from counsel.logs.count import SeenAdvice, Tally, count_seen_advice
from counsel.logs.estimate import Estimates
from counsel.logs.read import Log, report_engine_errors

SPANS = 12
"""Spans of equal length into which time is cut."""


@dataclass(frozen=True, slots=True, eq=False)
class Trend:
    """How the lift changes along a scale."""

    by: AdherenceBreakdown  # the lift at each place of the scale
    at: Floats  # the places as numbers [key]
    slope: float  # the change of lift per unit of ``at``, by weighted least squares
    slope_low: float
    slope_high: float
    ends: tuple[str, str] | None = None  # labels of both ends, if ``at`` runs from 0 to 1

    @property
    def is_clear(self) -> bool:
        """Whether the interval of the slope excludes 0."""
        return not self.slope_low <= 0.0 <= self.slope_high


def trend_over_time(log: Log, tally: Tally, estimates: Estimates) -> Trend | None:
    """Return the trend over time, from the first timestamp (0) to the last (1)."""
    if not log.has("timestamp"):
        return None
    with report_engine_errors(log.name):
        table = log.table.mutate(seconds=as_time(log.table.timestamp))
        timed = table.filter(table.seconds.notnull())
        aggregate = timed.aggregate(
            first=timed.seconds.min(),
            last=timed.seconds.max(),
            first_label=timed.timestamp.argmin(timed.seconds).cast("string"),
            last_label=timed.timestamp.argmax(timed.seconds).cast("string"),
        )
        ends = aggregate.to_pyarrow().to_pylist()[0]
        first, last = ends["first"], ends["last"]
        if first is None or not first < last:
            return None
        place = (table.seconds - first) / (last - first) * SPANS
        span = place.floor().clip(upper=SPANS - 1).cast("int64")
    by = break_down(count_seen_advice(log, table, span, tally), estimates)
    if by is None or len(by.keys) < 2:
        return None
    at = (np.array(by.keys, dtype=np.float64) + 0.5) / SPANS
    return _fit_line(by, at, (str(ends["first_label"]), str(ends["last_label"])))


def trend_over_advice(seen: SeenAdvice, estimates: Estimates) -> Trend | None:
    """Return the trend over the pieces of advice already given in the episode."""
    by = break_down(seen, estimates)
    if by is None or len(by.keys) < 2:
        return None
    return _fit_line(by, np.array(by.keys, dtype=np.float64))


def _fit_line(by: AdherenceBreakdown, at: Floats, ends: tuple[str, str] | None = None) -> Trend:
    weight = 1.0 / by.error**2
    centre = float((weight * at).sum() / weight.sum())
    away = at - centre
    information = float((weight * away**2).sum())
    slope = float((weight * away * by.lift).sum()) / information
    half = Z / np.sqrt(information)
    return Trend(by, at, slope, slope - half, slope + half, ends)
