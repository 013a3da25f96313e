"""Results on disk: one Parquet file a run, with its manifest inside, whole or not at all.

The manifest, in the file's own metadata, says which run it is (id, settings, seed), with which
versions, how long it took, and a hash of all numbers. A file that cannot be read, whose hash is
another, or that holds other settings does not count: its run is done again.

``DIR/runs/<experiment>/<learner>#<seed>.parquet``
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from counsel._files import make_folder, whole_file
from counsel._tables import need_pyarrow
from counsel.experiments.experiment import Rows, Run, settings_of

FORMAT = "counsel-rows-2"
KEY = b"counsel"


@dataclass(frozen=True, slots=True)
class Done:
    """A finished run: its rows, how long it took, and the versions of what it ran with."""

    rows: Rows
    seconds: float
    versions: dict[str, str]


class Store:
    """A folder of results.

    Parameters
    ----------
    folder
        Where; made when something is written.

    Raises
    ------
    CounselError
        If pyarrow is not installed (extra ``parquet``).
    """

    def __init__(self, folder: Path) -> None:
        need_pyarrow()
        self.folder = folder

    def path(self, run: Run) -> Path:
        """Return the file of a run."""
        return self.folder / "runs" / f"{run.id}.parquet"

    def write(self, run: Run, done: Done) -> None:
        """Keep what a run returned."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        told = {
            "format": FORMAT,
            "id": run.id,
            "settings": settings_of(run),
            "versions": done.versions,
            "seconds": done.seconds,
            "rows": fingerprint(done.rows),
        }
        table = pa.table({name: pa.array(column) for name, column in done.rows.items()})
        table = table.replace_schema_metadata({KEY: json.dumps(told).encode()})
        path = self.path(run)
        make_folder(path.parent)
        with whole_file(path) as unfinished:
            pq.write_table(table, unfinished)

    def read(self, run: Run) -> Done | None:
        """Return what a run returned, or None where it is not there, damaged, or another's."""
        import pyarrow as pa

        try:
            told, rows = _read(self.path(run))
            done = Done(rows, float(told["seconds"]), dict(told["versions"]))
            same = told["settings"] == json.loads(json.dumps(settings_of(run)))
            return done if same and told["rows"] == fingerprint(rows) else None
        except (*_BAD, pa.ArrowException):
            return None

    def missing(self, runs: Iterable[Run]) -> list[Run]:
        """Return the runs that are still to be done."""
        return [run for run in runs if self.read(run) is None]


_BAD = (OSError, ValueError, KeyError, TypeError, RecursionError)


def _read(path: Path) -> tuple[dict[str, Any], Rows]:
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    told = json.loads((table.schema.metadata or {})[KEY])
    if told["format"] != FORMAT:
        raise ValueError(told["format"])
    return told, {name: table[name].to_numpy() for name in table.column_names}


def fingerprint(rows: Rows) -> str:
    """Return a hash of all columns."""
    found = hashlib.sha256()
    for name in sorted(rows):
        column = np.ascontiguousarray(rows[name])
        found.update(f"{name}{column.dtype.str}{column.shape}".encode())
        found.update(column.tobytes())
    return found.hexdigest()
