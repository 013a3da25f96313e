"""A claim: a sentence, the statistic that it rests on, and the one rule that decides it.

A claim compares one number, estimated from independent runs, with a limit. The number is

* a ``Share``: in how many runs a quantity lies on one side of a bound, with the exact binomial
  interval (Clopper and Pearson);
* a ``Median`` of a quantity over runs, with the interval between two of its ordered values, which
  is exact for every continuous distribution and conservative for the others;
* an ``Exact`` number, computed without chance: it has no interval.

Both intervals cover the truth with a probability of at least 99 %, whatever the distribution of the
quantity. Intervals of means do not: regrets are skewed, and one run in ten may run away.

The rule (``decide``): a claim *holds* if the whole interval lies on its side of the limit, and
*does not hold* if the whole interval lies on the other side; in both cases each quarter of the runs
alone must have its estimate on that side too. Otherwise the claim *cannot be told*, and so it is
with too few runs: a median needs 8 runs, a share of at least 80 % needs 24.

A run without a value (NaN) may lie on either side: it widens the interval in both directions.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, NamedTuple, Self

import numpy as np

from counsel._arrays import Floats
from counsel.errors import CounselError

LEVEL = 0.99
MOST_RUNS = 0.8  # the share of runs that "in most runs" means
SEEDS = 24  # the fewest runs that can show that a share is at least 80 %


class Verdict(StrEnum):
    """The verdict on a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNKNOWN = "cannot be told"


class Estimate(NamedTuple):
    """An estimate and the ends of its 99 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Share:
    """The share of runs whose value is below ``bound``; with ``above``, of those not below it."""

    bound: float
    above: bool = False

    def estimate(self, values: Floats) -> Estimate:
        """Return the share with the interval of Clopper and Pearson."""
        from scipy.special import betaincinv

        known = values[~np.isnan(values)]
        hits = int((known >= self.bound).sum() if self.above else (known < self.bound).sum())
        n, most, tail = values.size, hits + values.size - known.size, (1.0 - LEVEL) / 2.0
        low = float(betaincinv(hits, n - hits + 1, tail)) if hits else 0.0
        high = float(betaincinv(most + 1, n - most, 1.0 - tail)) if most < n else 1.0
        return Estimate(hits / known.size if known.size else math.nan, low, high)

    def name(self, quantity: str, unit: str) -> str:
        """Return the statistic in words."""
        side = "at least" if self.above else "below"
        return f"share of {unit} in which {quantity} is {side} {digits(self.bound)}"

    def show(self, estimate: Estimate, unit: str, count: int) -> str:
        """Return the estimate in words."""
        hits = f"{estimate.value:.0%} of {count} {unit}" if estimate.value >= 0.0 else f"{count}"
        return f"{hits} [{estimate.low:.0%}, {estimate.high:.0%}]"


@dataclass(frozen=True, slots=True)
class Median:
    """The median over runs."""

    def estimate(self, values: Floats) -> Estimate:
        """Return the median with the interval between two ordered values.

        These are the j-th smallest and the j-th largest, for the largest j such that fewer than j
        of n fair coins show heads with a probability of at most half of 1 %.
        """
        from scipy.special import bdtr

        n = values.size
        ranks = np.arange(1, n // 2 + 1)
        j = int((bdtr(ranks - 1, n, 0.5) <= (1.0 - LEVEL) / 2.0).sum()) if n else 0
        known = values[~np.isnan(values)]
        if j == 0 or not known.size:
            middle = float(np.median(known)) if known.size else math.nan
            return Estimate(middle, -math.inf, math.inf)
        low = np.sort(np.nan_to_num(values, nan=-np.inf, posinf=np.inf, neginf=-np.inf))[j - 1]
        high = np.sort(np.nan_to_num(values, nan=np.inf, posinf=np.inf, neginf=-np.inf))[n - j]
        return Estimate(float(np.median(known)), float(low), float(high))

    def name(self, quantity: str, unit: str) -> str:
        """Return the statistic in words."""
        return f"median over {unit} of {quantity}"

    def show(self, estimate: Estimate, unit: str, count: int) -> str:
        """Return the estimate in words."""
        return f"median {_with_interval(estimate)}, {count} {unit}"


@dataclass(frozen=True, slots=True)
class Exact:
    """A number computed without chance."""

    def estimate(self, values: Floats) -> Estimate:
        """Return the number; it is its own interval."""
        if values.size != 1:
            raise CounselError(f"an exact claim has {values.size} values; give one number")
        value = float(values[0])
        if math.isnan(value):
            return Estimate(value, -math.inf, math.inf)
        return Estimate(value, value, value)

    def name(self, quantity: str, unit: str) -> str:
        """Return the statistic in words."""
        return f"{quantity} (computed exactly)"

    def show(self, estimate: Estimate, unit: str, count: int) -> str:
        """Return the number in words."""
        return f"{digits(estimate.value)}, exactly"


Statistic = Share | Median | Exact
STATISTICS: dict[str, type[Statistic]] = {"share": Share, "median": Median, "exact": Exact}


def decide(statistic: Statistic, values: Sequence[float], limit: float, *, above: bool) -> Verdict:
    """Return the verdict on the claim that a statistic is below a limit (``above``: not below)."""
    numbers = np.asarray(values, dtype=np.float64)
    _, low, high = statistic.estimate(numbers)
    if low >= limit:
        verdict = Verdict.HOLDS if above else Verdict.FAILS
    elif high < limit:
        verdict = Verdict.FAILS if above else Verdict.HOLDS
    else:
        return Verdict.UNKNOWN
    if isinstance(statistic, Exact):
        return verdict
    quarters = [statistic.estimate(part).value for part in np.array_split(numbers, 4)]
    is_one_sided = all(q >= limit for q in quarters) or all(q < limit for q in quarters)
    return verdict if is_one_sided else Verdict.UNKNOWN


def settle(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict that all blocks of runs share; if they differ, it cannot be told."""
    different = set(verdicts)
    return different.pop() if len(different) == 1 else Verdict.UNKNOWN


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence, and what it is decided by: a statistic of values over runs, and a limit.

    ``source`` is "paper" or "ours". ``quantity`` names the number ``values`` holds for each run, in
    order of seed; ``unit`` is the plural of what is repeated ("runs", "maps"). The claim says that
    the statistic is below ``limit``, or with ``above`` that it is not. ``note`` adds to what was
    measured, e.g. the result on the shipped map.
    """

    text: str
    source: str
    quantity: str
    statistic: Statistic
    values: tuple[float, ...]
    limit: float
    above: bool
    unit: str = "runs"
    note: str = ""

    @classmethod
    def median(  # noqa: PLR0913 (the fields)
        cls,
        text: str,
        quantity: str,
        values: Sequence[float] | Floats,
        *,
        below: float | None = None,
        above: float | None = None,
        source: str = "paper",
        unit: str = "runs",
        note: str = "",
    ) -> Self:
        """Claim that the median over runs is below, or not below, a limit."""
        limit, is_above = _one_limit(below, above)
        return cls(text, source, quantity, Median(), _rounded(values), limit, is_above, unit, note)

    @classmethod
    def share(  # noqa: PLR0913 (the fields)
        cls,
        text: str,
        quantity: str,
        values: Sequence[float] | Floats,
        *,
        below: float | None = None,
        above: float | None = None,
        least: float = MOST_RUNS,
        source: str = "paper",
        unit: str = "runs",
        note: str = "",
    ) -> Self:
        """Claim that at least a share of runs has a value below, or not below, a bound."""
        statistic = Share(*_one_limit(below, above))
        numbers = _rounded(values)
        return cls(text, source, quantity, statistic, numbers, least, True, unit, note)  # noqa: FBT003 (above)

    @classmethod
    def exact(  # noqa: PLR0913 (the fields)
        cls,
        text: str,
        quantity: str,
        value: float,
        *,
        below: float | None = None,
        above: float | None = None,
        source: str = "paper",
        note: str = "",
    ) -> Self:
        """Claim that a number computed without chance is below, or not below, a limit."""
        limit, is_above = _one_limit(below, above)
        return cls(text, source, quantity, Exact(), _rounded([value]), limit, is_above, "", note)

    @property
    def estimate(self) -> Estimate:
        """The estimate with its interval."""
        return self.statistic.estimate(np.asarray(self.values))

    @property
    def verdict(self) -> Verdict:
        """The verdict by the rule."""
        return decide(self.statistic, self.values, self.limit, above=self.above)

    @property
    def stated(self) -> str:
        """The statistic and its limit in words."""
        shown = f"{self.limit:.0%}" if isinstance(self.statistic, Share) else digits(self.limit)
        side = "at least" if self.above else "below"
        return f"{self.statistic.name(self.quantity, self.unit)}: {side} {shown}"

    @property
    def measured(self) -> str:
        """The estimate with its interval and the number of runs, and the note."""
        text = self.statistic.show(self.estimate, self.unit, len(self.values))
        return f"{text}; {self.note}" if self.note else text

    @property
    def sentence(self) -> str:
        """The claim and the verdict, for a caption."""
        verdict = {
            Verdict.HOLDS: "This holds",
            Verdict.FAILS: "This does not hold",
            Verdict.UNKNOWN: "Whether this holds cannot be told",
        }[self.verdict]
        return f"{self.text} {verdict}: {self.measured}."

    def record(self) -> dict[str, Any]:
        """Return the claim for JSON; ``from_record`` reads it."""
        kind = next(name for name, kind in STATISTICS.items() if isinstance(self.statistic, kind))
        estimate = [x if math.isfinite(x) else None for x in self.estimate]
        return {
            "claim": self.text,
            "source": self.source,
            "stated": self.stated,
            "measured": self.measured,
            "verdict": str(self.verdict),
            "estimate": estimate[0],
            "interval": estimate[1:],
            "limit": self.limit,
            "above": self.above,
            "statistic": {"kind": kind, **asdict(self.statistic)},
            "quantity": self.quantity,
            "unit": self.unit,
            "note": self.note,
            "values": [v if math.isfinite(v) else str(v) for v in self.values],
        }

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Self:
        """Return the claim of a record; its verdict is decided anew."""
        options = dict(record["statistic"])
        statistic = STATISTICS[options.pop("kind")](**options)
        values = tuple(float(value) for value in record["values"])
        return cls(
            text=record["claim"],
            source=record["source"],
            quantity=record["quantity"],
            statistic=statistic,
            values=values,
            limit=record["limit"],
            above=record["above"],
            unit=record["unit"],
            note=record["note"],
        )


def digits(x: float) -> str:
    """Return three significant digits, without powers of ten; rounding errors become 0."""
    if not math.isfinite(x):
        return "–" if math.isnan(x) else "∞" if x > 0.0 else "−∞"
    if abs(x) < 1e-9:
        return "0"
    if abs(x) < 1e-3:
        return f"{x:.4f}"
    return f"{float(f'{x:.3g}'):,.0f}" if abs(x) >= 100.0 else f"{x:.3g}"


def _with_interval(estimate: Estimate) -> str:
    return f"{digits(estimate.value)} [{digits(estimate.low)}, {digits(estimate.high)}]"


def _one_limit(below: float | None, above: float | None) -> tuple[float, bool]:
    """Return the limit that was given, and whether the claim lies above it."""
    if (below is None) == (above is None):
        raise CounselError(f"below is {below} and above is {above}; give one of them")
    return (below, False) if below is not None else (float(above or 0.0), True)


def _rounded(values: Sequence[float] | Floats) -> tuple[float, ...]:
    """Return values with seven digits, so that verdicts on saved values are the same."""
    return tuple(float(f"{float(value):.7g}") for value in values)
