"""Tables in memory and on disk: CSV without any package, Parquet with pyarrow (extra ``parquet``).

A table maps names to columns of equal length. CSV files have a quoted header, quoted text, empty
fields where a value is missing, and numbers with as many digits as they need to be read back
exactly. Files are written atomically.
"""

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from counsel._arrays import Bools, Floats
from counsel._files import whole_file
from counsel.errors import CounselError

TABLES = (".csv", ".parquet")
"""Suffixes of table files."""


class Column(NamedTuple):
    """One column: numbers, booleans, or positions in a list of texts.

    ``labels`` are the texts that ``values`` points to; ``missing`` marks rows without a value.
    """

    values: NDArray[Any]
    labels: Sequence[str] | None = None
    missing: Bools | None = None


Table = Mapping[str, Column]


def column(values: Sequence[object], kind: type | str) -> Column:
    """Return a column from Python values, None where missing.

    ``kind`` is ``str``, or the NumPy type of numbers and booleans.
    """
    missing = np.array([value is None for value in values], dtype=np.bool_)
    absent = missing if missing.any() else None
    if kind is not str:
        filled = [0 if value is None else value for value in values]
        return Column(np.array(filled, dtype=kind), missing=absent)
    position: dict[object, int] = {}
    codes = [0 if value is None else position.setdefault(value, len(position)) for value in values]
    labels = [str(label) for label in position]
    return Column(np.array(codes, dtype=np.int64), labels, absent)


def write_tables(path: Path, tables: Iterable[Table]) -> None:
    """Write tables with the same columns one below the other as .csv or .parquet."""
    if path.suffix not in TABLES:
        raise CounselError(f"{path} must end in {' or '.join(TABLES)}")
    if path.suffix == ".parquet":
        need_pyarrow()
    rest = iter(tables)
    first = next(rest, None)
    if first is None:
        raise CounselError(f"cannot write {path}: there are no rows")
    with whole_file(path) as unfinished, unfinished.open("wb") as stream:
        write_stream(stream, path.suffix, first, rest)


def write_stream(stream: BinaryIO, suffix: str, first: Table, rest: Iterable[Table] = ()) -> None:
    """Write tables into an open file, in the format of ``suffix``."""
    for chunk in table_chunks(suffix, chain((first,), rest)):
        stream.write(chunk)


def table_chunks(suffix: str, tables: Iterable[Table]) -> Iterator[bytes]:
    """Yield a file in the format of ``suffix``, one part for each table, of which there is one."""
    rest = iter(tables)
    first = next(rest)
    if suffix == ".csv":
        yield (",".join(_quoted(name) for name in first) + "\n").encode() + _csv_rows(first)
        yield from map(_csv_rows, rest)
        return
    need_pyarrow()
    import pyarrow.parquet

    arrow, parts = arrow_table(first), _Parts()
    with pyarrow.parquet.ParquetWriter(parts, arrow.schema) as writer:
        writer.write_table(arrow)
        for table in rest:
            yield parts.take()
            writer.write_table(arrow_table(table))
    yield parts.take()


class _Parts(io.RawIOBase):
    """A file that is taken away part by part while it is written."""

    def __init__(self) -> None:
        self._written, self._parts = 0, list[bytes]()

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:  # noqa: ANN401 (any buffer)
        self._parts.append(bytes(content))
        self._written += len(content)
        return len(content)

    def tell(self) -> int:
        return self._written

    def take(self) -> bytes:
        """Return what was written since the last call."""
        part = b"".join(self._parts)
        self._parts.clear()
        return part


def arrow_table(table: Table) -> Any:  # noqa: ANN401 (pyarrow ships no types)
    """Return the table as an Arrow table."""
    need_pyarrow()
    import pyarrow as pa

    return pa.table({name: _arrow_column(pa, column) for name, column in table.items()})


def need_pyarrow() -> None:
    """Raise an error that names the extra if pyarrow is not installed."""
    try:
        import pyarrow as pa  # noqa: F401 (whether it is installed)
    except ModuleNotFoundError:
        raise CounselError(
            "Parquet needs pyarrow; install it with: pip install 'counsel[parquet]'"
        ) from None


def _arrow_column(pa: Any, column: Column) -> Any:  # noqa: ANN401 (pyarrow ships no types)
    values, labels, missing = column
    if labels is None:
        return pa.array(values, mask=missing)
    positions = pa.array(values.astype(np.int64), mask=missing)
    return pa.array(labels, type=pa.string()).take(positions)


def _csv_rows(table: Table) -> bytes:
    """Return all rows of a table as CSV."""
    rows = zip(*(_fields(column) for column in table.values()), strict=True)
    return "\n".join([*map(",".join, rows), ""]).encode()


def _fields(column: Column) -> list[str]:
    """Return the fields of a column in CSV."""
    values, labels, missing = column
    if labels is not None:
        quoted = np.array([*map(_quoted, labels), ""], dtype=object)
        codes = values if missing is None else np.where(missing, len(labels), values)
        return list(quoted[codes])
    if values.dtype.kind == "b":
        fields = list(np.array(["false", "true"], dtype=object)[values.astype(np.int64)])
    elif values.dtype.kind == "f":
        fields = _decimals(values.astype(np.float64))
    else:
        fields = list(map(str, values.tolist()))
    if missing is not None:
        for row in np.flatnonzero(missing):
            fields[row] = ""
    return fields


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _decimals(values: Floats) -> list[str]:
    """Format numbers with the fewest digits that are read back exactly."""
    texts = [text[:-2] if text[-2:] == ".0" else text for text in map(repr, values.tolist())]
    size = np.abs(values)
    extreme = np.isfinite(values) & (size != 0.0) & ((size < 1e-4) | (size >= 1e10))
    for row in np.flatnonzero(extreme):
        texts[row] = _extreme_decimal(texts[row])
    return texts


def _extreme_decimal(text: str) -> str:
    """Format a very small or very large number: 0.00001, 1.5e-7, 1e+10."""
    number = Decimal(text).normalize()
    power = number.adjusted()
    if -6 <= power < 10:
        return f"{number:f}"
    sign, digits, _ = number.as_tuple()
    first, *others = map(str, digits)
    point = "." if others else ""
    return f"{'-' if sign else ''}{first}{point}{''.join(others)}e{power:+d}"
