"""Results on disk: one Parquet file per run, with its manifest inside, written atomically.

The manifest, in the metadata of the file, holds the id and the settings of the run, the versions of
packages, the time it took, and a hash of all numbers. A file that cannot be read, or with another
hash or other settings, does not count: its run is repeated.

``DIR/runs/<experiment>/<learner>#<seed>.parquet``
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from counsel._files import make_folder, whole_file
from counsel._tables import need_pyarrow
from counsel.experiments.experiment import Run, settings_of
from counsel.experiments.rows import Rows

FORMAT = "counsel-rows-2"
KEY = b"counsel"


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a run: its rows, the seconds it took, and the versions of packages."""

    rows: Rows
    seconds: float
    versions: dict[str, str]


class Store:
    """A folder of results, created when the first result is written."""

    def __init__(self, folder: Path) -> None:
        need_pyarrow()
        self.folder = folder

    def path(self, run: Run) -> Path:
        return self.folder / "runs" / f"{run.id}.parquet"

    def write(self, run: Run, result: RunResult) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        manifest = {
            "format": FORMAT,
            "id": run.id,
            "settings": settings_of(run),
            "versions": result.versions,
            "seconds": result.seconds,
            "rows": fingerprint(result.rows),
        }
        table = pa.table({name: pa.array(column) for name, column in result.rows.items()})
        table = table.replace_schema_metadata({KEY: json.dumps(manifest).encode()})
        path = self.path(run)
        make_folder(path.parent)
        with whole_file(path) as unfinished:
            pq.write_table(table, unfinished)

    def read(self, run: Run) -> RunResult | None:
        """Return the result of a run; None if it is missing, damaged, or has other settings."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            table = pq.read_table(self.path(run))
            manifest = json.loads((table.schema.metadata or {})[KEY])
            rows = {name: table[name].to_numpy() for name in table.column_names}
            result = RunResult(rows, float(manifest["seconds"]), dict(manifest["versions"]))
            settings = json.loads(json.dumps(settings_of(run)))
            same = manifest["format"] == FORMAT and manifest["settings"] == settings
            return result if same and manifest["rows"] == fingerprint(rows) else None
        except (OSError, ValueError, KeyError, TypeError, RecursionError, pa.ArrowException):
            return None

    def missing(self, runs: Iterable[Run]) -> list[Run]:
        """Return the runs without a stored result."""
        return [run for run in runs if self.read(run) is None]


def fingerprint(rows: Rows) -> str:
    """Return a hash of all columns."""
    digest = hashlib.sha256()
    for name in sorted(rows):
        column = np.ascontiguousarray(rows[name])
        digest.update(f"{name}{column.dtype.str}{column.shape}".encode())
        digest.update(column.tobytes())
    return digest.hexdigest()
