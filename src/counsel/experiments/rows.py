"""The rows of runs, and how pictures and claims read them: by learner, over seeds."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counsel._arrays import Floats
from counsel.errors import CounselError

Rows = Mapping[str, NDArray[Any]]
"""The columns of one run, by name. A value that does not apply to a row is NaN or −1."""

RowsByRun = Mapping[str, Rows]  # the rows of many runs, by the id of the run


def seeds_of(rows: RowsByRun, name: str) -> list[Rows]:
    """Return the rows of all seeds of a learner, e.g. ``regret-safe/ucb-ad``, in order of seed."""
    prefix = f"{name}#"
    keys = sorted((int(key.removeprefix(prefix)), key) for key in rows if key.startswith(prefix))
    if not keys:
        raise CounselError(f"there are no rows of {name}; run it first")
    return [rows[key] for _, key in keys]


def series(
    rows: RowsByRun, name: str, column: str, *, over: str = "episode", **chosen: float
) -> tuple[Floats, Floats]:
    """Return the column ``over`` [row], and another column of one learner [seed, row].

    ``chosen`` keeps the rows in which columns have these values: ``when=0``, ``penalty=0.2``.
    """
    runs = seeds_of(rows, name)
    where = np.ones(runs[0][column].size, dtype=np.bool_)
    for key, value in chosen.items():
        where &= runs[0][key] == value
    return runs[0][over][where].astype(np.float64), np.stack([run[column][where] for run in runs])


def last_of(rows: RowsByRun, name: str, column: str) -> Floats:
    """Return the last value of a column for each seed."""
    return np.array([run[column][-1] for run in seeds_of(rows, name)])


def pad_columns(columns: Rows) -> Rows:
    """Return the columns with equal lengths, filled with NaN or −1."""
    most = max(column.size for column in columns.values())
    padded: dict[str, NDArray[Any]] = {}
    for name, column in columns.items():
        nothing = np.nan if column.dtype.kind == "f" else -1
        padded[name] = np.append(column, np.full(most - column.size, nothing, column.dtype))
    return padded


def to_columns(names: tuple[str, ...], lines: Sequence[tuple[float, ...]]) -> dict[str, Floats]:
    """Return lines of numbers as columns by name."""
    return dict(zip(names, np.array(lines, float).T.copy(), strict=True))
