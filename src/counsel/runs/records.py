"""The records of a run on disk: ``record.csv``, one row per record.

Runs of early versions 0.1 have ``record.parquet`` instead, which is read and then replaced.
"""

import csv
import math
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np

from counsel._files import blaming
from counsel._tables import Column, need_pyarrow, write_tables
from counsel.errors import CounselError
from counsel.learning.learn import Record

RECORD, OLD_RECORD = "record.csv", "record.parquet"
COLUMNS = [field.name for field in fields(Record)]


def write_records(folder: Path, records: Sequence[Record]) -> None:
    """Write the records of a run to its folder."""
    columns = {name: Column(np.array([getattr(r, name) for r in records])) for name in COLUMNS}
    write_tables(folder / RECORD, [columns])
    (folder / OLD_RECORD).unlink(missing_ok=True)


def read_records(folder: Path) -> list[Record]:
    """Return the records of the run in a folder."""
    path = folder / (OLD_RECORD if (folder / OLD_RECORD).exists() else RECORD)
    with blaming(path):
        try:
            records = _read_parquet(path) if path.suffix == ".parquet" else _read_csv(path)
        except (OSError, ValueError, TypeError, KeyError, csv.Error):
            raise CounselError("it cannot be read; start a new run in another folder") from None
        if not all(math.isfinite(r.regret) and math.isfinite(r.value_gap) for r in records):
            raise CounselError("it contains NaN or infinite values")
        return records


def _read_parquet(path: Path) -> list[Record]:
    need_pyarrow()
    import pyarrow.parquet as pq

    return [Record(**row) for row in pq.read_table(path, columns=COLUMNS).to_pylist()]


def _read_csv(path: Path) -> list[Record]:
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, strict=True)
        if reader.fieldnames != COLUMNS:
            raise ValueError(reader.fieldnames)
        return [
            Record(
                episode=int(row.pop("episode")),
                **{name: float(number) for name, number in row.items()},
            )
            for row in reader
        ]
