"""Cast columns to text, numbers, times and booleans; NULL for a value that cannot be cast.

Engines differ in what they do with such a value: most return NULL from ``try_cast``; PostgreSQL
raises an error, so there a pattern selects the values to cast.
"""

from collections.abc import Iterable
from typing import Any

NUMBER = r"^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-2]?[0-9]?[0-9])?$"
"""Text that PostgreSQL can cast to a number."""

DATE = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]+)?)?(Z|[+-][0-9:]+)?)?$"
)
"""Text that PostgreSQL can cast to a date, with or without a time."""

LARGEST_STEP = 2**53
"""Above this a float no longer represents every whole number."""

NOT_FINITE = ("inf", "+inf", "-inf", "infinity", "+infinity", "-infinity", "nan")


def as_text(column: Any) -> Any:  # noqa: ANN401 (Ibis ships no types)
    """Return a column as text, NULL where it is empty.

    Whole numbers have no decimal point: tables with missing values store whole numbers as floats.
    """
    text = column.cast("string")
    if column.type().is_string():
        return text.strip().nullif("")
    if not column.type().is_floating():
        return text
    present = (~column.isnan()).ifelse(column, None)
    return as_whole(present).cast("string").fill_null(present.cast("string"))


def stripped_columns(table: Any, names: Iterable[str]) -> set[str]:  # noqa: ANN401
    """Return which columns are text, none of it empty or with space around it."""
    import ibis

    texts = [name for name in dict.fromkeys(names) if table[name].type().is_string()]
    if not texts:
        return set()
    # Engines strip the different texts of a column faster than all of them.
    first, *others = (table.select(text=table[name], column=ibis.literal(name)) for name in texts)
    found = first.union(*others, distinct=True) if others else first.distinct()
    uneven = found.filter((found.text != found.text.strip()) | (found.text == ""))
    return set(texts) - set(uneven.column.to_pyarrow().to_pylist())


def as_whole(column: Any) -> Any:  # noqa: ANN401
    """Return a column as whole numbers, NULL where a value is not a whole number."""
    number = column if column.type().is_integer() else as_number(column)
    number = number.between(-LARGEST_STEP, LARGEST_STEP).ifelse(number, None)
    if number.type().is_integer():
        return number.cast("int64")
    return (number == number.floor()).ifelse(number, None).cast("int64")


def as_written(column: Any) -> Any:  # noqa: ANN401
    """Return the values as written, to tell empty values from invalid ones."""
    return as_text(column) if column.type().is_string() else column


def as_number(column: Any) -> Any:  # noqa: ANN401
    """Return a column as numbers, NULL where a value is not a number."""
    if not column.type().is_string():
        return column.cast("float64")
    text = column.strip()
    if column.get_backend().name != "postgres":
        return text.try_cast("float64")
    is_number = text.re_search(NUMBER) | text.lower().isin(NOT_FINITE)
    return is_number.ifelse(text, None).cast("float64")


def as_time(column: Any) -> Any:  # noqa: ANN401
    """Return a timestamp as a number, in seconds if it is a date; NULL if it is neither."""
    kind = column.type()
    if kind.is_string():
        text = column.strip()
        date = text
        if column.get_backend().name == "postgres":
            date = text.re_search(DATE).ifelse(text, None)
        number = as_number(column)
        number = number.fill_null(date.try_cast("timestamp").epoch_seconds().cast("float64"))
    elif kind.is_numeric():
        number = column.cast("float64")
    elif kind.is_date() or kind.is_timestamp():
        number = column.cast("timestamp").epoch_seconds().cast("float64")
    else:
        return (column.isnull() & column.notnull()).ifelse(0.0, None)  # NULL in every row
    return number.between(-LARGEST_STEP, LARGEST_STEP).ifelse(number, None)


def as_boolean(column: Any) -> Any:  # noqa: ANN401
    """Return a column as true or false, NULL where it is neither."""
    if column.type().is_boolean():
        return column
    text = column.cast("string").strip().lower()
    yes = text.isin(["true", "t", "yes", "y", "1", "1.0"])
    no = text.isin(["false", "f", "no", "n", "0", "0.0"])
    return (yes | no).ifelse(yes, None)


def sort_key(column: Any) -> Any:  # noqa: ANN401
    """Return the key to sort a column by: text by its bytes, whatever a server's collation."""
    import ibis

    if not column.type().is_string() or column.get_backend().name != "postgres":
        return column

    def convert_to(text: str, encoding: str) -> bytes:  # type: ignore[empty-body]
        ...

    return ibis.udf.scalar.builtin(convert_to)(column, "UTF8")
