"""Bins: columns of numbers in a state become labels such as "spo2 88 to 92"."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from counsel._arrays import whole
from counsel.errors import CounselError
from counsel.logs.casting import as_number

MOST_BINS = 1000
"""The largest number of bins of one column."""


@dataclass(frozen=True, slots=True)
class Bins:
    """How to cut the columns of numbers that make up a state.

    Parameters
    ----------
    cuts
        For each column, the cut points in rising order, or the number of bins of equal size (2 to
        1,000). A number on a cut point belongs to the bin above it.

    Raises
    ------
    CounselError
        If cut points do not rise or are not finite, or the number of bins is out of range.

    Examples
    --------
    >>> from counsel.logs import Columns, read_log
    >>> from counsel.logs.example_log import alarm_log
    >>> table = alarm_log().append_column("spo2", [[85, 90, 92, 96] * 100])
    >>> log = read_log(table, Columns(state=("spo2",)), Bins({"spo2": (88, 92)}))
    >>> sorted(log.table.distinct(on="state").state.to_pyarrow().to_pylist())
    ['spo2 88 to 92', 'spo2 < 88', 'spo2 ≥ 92']
    """

    cuts: Mapping[str, tuple[float, ...] | int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for column, cuts in self.cuts.items():
            if isinstance(cuts, int):
                if whole(f"bins of {column}", cuts, least=2) > MOST_BINS:
                    raise CounselError(f"bins of {column} are {cuts}; the maximum is {MOST_BINS}")
                continue
            rising = all(a < b for a, b in pairwise(cuts))
            if not cuts or not all(map(math.isfinite, cuts)) or not rising:
                shown = ", ".join(f"{cut:g}" for cut in cuts) or "nowhere"
                raise CounselError(f"bins of {column} are cut at {shown}; give rising numbers")

    @classmethod
    def parse(cls, texts: Iterable[str]) -> "Bins":
        """Parse ``spo2=88,92`` (cut points) or ``age=q4`` (four bins of equal size).

        Parameters
        ----------
        texts
            One text per column, as on the command line.

        Returns
        -------
        Bins
            The bins of all columns.

        Raises
        ------
        CounselError
            If a text has another form, or a column occurs twice.
        """
        cuts = dict[str, tuple[float, ...] | int]()
        for text in texts:
            column, _, points = (piece.strip() for piece in text.partition("="))
            try:
                if not column or column in cuts:
                    raise ValueError
                if points[:1] in ("q", "Q"):
                    cuts[column] = int(points[1:])
                else:
                    cuts[column] = tuple(float(point) for point in points.split(","))
            except ValueError:
                raise CounselError(
                    f"bins has {text!r}; write COLUMN=CUT,CUT,… or COLUMN=q4 for four bins of "
                    "equal size, each column once"
                ) from None
        return cls(cuts)


def bin_labels(column: str, cuts: tuple[float, ...]) -> tuple[str, ...]:
    """Return the labels of a column's bins, the lowest first.

    Cut points have as many digits as it takes to tell them apart.
    """
    written = [f"{cut:g}" for cut in cuts]
    for digits in range(7, 18):
        if len(set(written)) == len(cuts):
            break
        written = [f"{cut:.{digits}g}" for cut in cuts]
    between = (f"{column} {a} to {b}" for a, b in pairwise(written))
    return (f"{column} < {written[0]}", *between, f"{column} ≥ {written[-1]}")


def cut_points(table: Any, column: str, bins: tuple[float, ...] | int) -> tuple[float, ...]:  # noqa: ANN401 (Ibis ships no types)
    """Return the cut points of a column; the engine computes quantiles for a number of bins."""
    if not isinstance(bins, int):
        return bins
    number = as_number(table[column])
    shares = {f"q{i}": number.quantile(i / bins) for i in range(1, bins)}
    quantiles = table.aggregate(**shares).to_pyarrow().to_pylist()[0].values()
    cuts = tuple(sorted({float(q) for q in quantiles if q is not None and math.isfinite(q)}))
    if not cuts:
        raise CounselError(f"bins cuts {column!r}, which holds no numbers")
    return cuts


def bin_column(column: Any, name: str, cuts: tuple[float, ...]) -> Any:  # noqa: ANN401
    """Return the label of each number's bin, NULL for a value that is not a number."""
    import ibis

    number, names = as_number(column), bin_labels(name, cuts)
    below = [(number < cut, label) for cut, label in zip(cuts, names, strict=False)]
    return ibis.cases((number.isnull(), None), *below, else_=names[-1])
