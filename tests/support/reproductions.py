"""What the tests of `counsel reproduce` share."""

import json

import pyarrow.parquet as pq

from counsel.experiments.experiment import Size
from counsel.experiments.store import fingerprint

TINY = Size(0.002, 2)
QUICK = ["regret-safe", "budget-learning", "misjudged"]


def hashes(folder):
    """The rows of every run in a folder."""
    found = {}
    for path in sorted((folder / "runs").rglob("*.parquet")):
        table = pq.read_table(path)
        told = json.loads(table.schema.metadata[b"counsel"])
        rows = {name: table[name].to_numpy() for name in table.column_names}
        assert told["rows"] == fingerprint(rows)
        found[told["id"]] = told["rows"]
    return found
