"""Columns as what they mean: text, numbers, moments, true or false, bins; NULL where they are none.

Engines differ in what they do with a value that cannot be cast: most give NULL when asked to try;
PostgreSQL gives up, so there what is cast is looked at first.
"""

import math
from typing import Any

from counsel.errors import CounselError
from counsel.logs.schema import bin_labels

NUMBER = r"^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-2]?[0-9]?[0-9])?$"
"""What can be cast to a number by an engine that gives up at what cannot."""

DATE = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]+)?)?(Z|[+-][0-9:]+)?)?$"
)
"""A date, perhaps with a time, for an engine that gives up at what is none."""

LARGEST_STEP = 2**53
"""Beyond it not every whole number is a number; no engine casts what is endless."""

ENDLESS = ("inf", "+inf", "-inf", "infinity", "+infinity", "-infinity", "nan")


def cuts_of(table: Any, column: str, told: tuple[float, ...] | int) -> tuple[float, ...]:  # noqa: ANN401
    """Return where a column is cut; quantiles are asked of the engine."""
    if not isinstance(told, int):
        return told
    number = as_number(table[column])
    shares = {f"q{i}": number.quantile(i / told) for i in range(1, told)}
    found = table.aggregate(**shares).to_pyarrow().to_pylist()[0].values()
    cuts = tuple(sorted({float(cut) for cut in found if cut is not None and math.isfinite(cut)}))
    if not cuts:
        raise CounselError(f"bins cuts {column!r}, which holds no numbers")
    return cuts


def binned(column: Any, name: str, cuts: tuple[float, ...]) -> Any:  # noqa: ANN401
    """Return the bin of each number, NULL where it is none."""
    import ibis

    number, names = as_number(column), bin_labels(name, cuts)
    below = [(number < cut, label) for cut, label in zip(cuts, names, strict=False)]
    return ibis.cases((number.isnull(), None), *below, else_=names[-1])


def as_text(column: Any) -> Any:  # noqa: ANN401
    """Return a column as text, NULL where it is empty.

    Whole numbers are written as such: where some are missing, tables keep whole numbers as floats.
    """
    text = column.cast("string")
    if column.type().is_string():
        return text.strip().nullif("")
    if not column.type().is_floating():
        return text
    there = (~column.isnan()).ifelse(column, None)
    small = there.between(-LARGEST_STEP, LARGEST_STEP)
    number = small.ifelse(there, None)
    whole = (number == number.floor()).ifelse(number, None).cast("int64").cast("string")
    return whole.fill_null(there.cast("string"))


def as_written(column: Any) -> Any:  # noqa: ANN401
    """Return what was written, to tell what is empty from what is no number."""
    return as_text(column) if column.type().is_string() else column


def as_number(column: Any) -> Any:  # noqa: ANN401
    """Return a column as numbers, NULL where it is none."""
    if not column.type().is_string():
        return column.cast("float64")
    text = column.strip()
    if column.get_backend().name != "postgres":
        return text.try_cast("float64")
    is_number = text.re_search(NUMBER) | text.lower().isin(ENDLESS)
    return is_number.ifelse(text, None).cast("float64")


def as_moment(column: Any) -> Any:  # noqa: ANN401
    """Return a timestamp as a number, in seconds where it is a date; NULL where it is none."""
    kind = column.type()
    if kind.is_string():
        text = column.strip()
        dated = text
        if column.get_backend().name == "postgres":
            dated = text.re_search(DATE).ifelse(text, None)
        number = as_number(column)
        number = number.fill_null(dated.try_cast("timestamp").epoch_seconds().cast("float64"))
    elif kind.is_numeric():
        number = column.cast("float64")
    elif kind.is_date() or kind.is_timestamp():
        number = column.cast("timestamp").epoch_seconds().cast("float64")
    else:
        return (column.isnull() & column.notnull()).ifelse(0.0, None)  # none in any row
    return number.between(-LARGEST_STEP, LARGEST_STEP).ifelse(number, None)


def in_order(column: Any) -> Any:  # noqa: ANN401
    """Return what a column is sorted by: texts by their bytes, whatever a server's language."""
    import ibis

    if not column.type().is_string() or column.get_backend().name != "postgres":
        return column

    def convert_to(text: str, encoding: str) -> bytes:  # type: ignore[empty-body]
        ...

    return ibis.udf.scalar.builtin(convert_to)(column, "UTF8")


def as_truth(column: Any) -> Any:  # noqa: ANN401
    """Return a column as true or false, NULL where it is neither."""
    if column.type().is_boolean():
        return column
    text = column.cast("string").strip().lower()
    yes = text.isin(["true", "t", "yes", "y", "1", "1.0"])
    no = text.isin(["false", "f", "no", "n", "0", "0.0"])
    return (yes | no).ifelse(yes, None)
