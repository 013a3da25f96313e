"""One difficult log as a table, and the same table in files and databases."""

import csv
import sqlite3
from contextlib import closing
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from counsel.logs.column_mapping import OPTIONAL

STATES = (
    "calm",
    "Calm",
    "Störung 🚑",
    'said "go", left',
    "it's 100 % {fine}",
    "back\\slash",
    "zebra",
    "Ärger",
    "two\nlines",
)
ACTIONS = ("wait", "act, now", '"don\'t"', "Ärzte rufen", "back\\slash")
KINDS = {
    "episode": pa.string(),
    "step": pa.int64(),
    "state": pa.string(),
    "advice": pa.string(),
    "action": pa.string(),
    "reward": pa.float64(),
    "person": pa.string(),
    "next_state": pa.string(),
    "advice_probability": pa.float64(),
    "seen": pa.bool_(),
    "terminated": pa.bool_(),
    "truncated": pa.bool_(),
    "timestamp": pa.timestamp("us"),
}
SQL = {
    pa.string(): "text",
    pa.int64(): "bigint",
    pa.float64(): "double precision",
    pa.bool_(): "boolean",
    pa.timestamp("us"): "timestamp",
}


def decisions():
    """Sixty ragged episodes with gaps, late beginnings, empty values and difficult names."""
    rng = np.random.default_rng(7)
    rows, noon = [], datetime(2024, 2, 29, 12)
    for number in range(60):
        first = 3 if number % 7 == 0 else 0
        length = int(rng.integers(1, 9))
        for step in range(first, first + length):
            if number % 5 == 2 and step == first + 2:
                continue
            last, ends = step == first + length - 1, number % 3
            advice = None if rng.random() < 0.3 else str(rng.choice(ACTIONS[:4]))
            follows = advice is not None and rng.random() < 0.6
            rows.append(
                {
                    "episode": f"{'épisode' if number % 2 else 'Episode'} {number}",
                    "step": step,
                    "state": str(rng.choice(STATES[: 6 if number < 50 else 9])),
                    "advice": advice,
                    "action": advice if follows else str(rng.choice(ACTIONS)),
                    "reward": None if rng.random() < 0.1 else int(rng.integers(-8, 9)) / 4,
                    "person": None if number % 11 == 0 else f"nurse {number % 4}",
                    "next_state": str(rng.choice(STATES)) if rng.random() < 0.5 else None,
                    "advice_probability": int(rng.integers(1, 5)) / 4,
                    "seen": [True, False, None][int(rng.integers(3))],
                    "terminated": last and ends == 0,
                    "truncated": (last and ends == 1) if number % 4 else None,
                    "timestamp": noon + timedelta(minutes=10 * step),
                }
            )
    return [rows[place] for place in rng.permutation(len(rows))]


def arrow_of(rows, optional=OPTIONAL):
    """The rows as an Arrow table with the required columns and some others."""
    kept = [(name, kind) for name, kind in KINDS.items() if name in optional or name in rows[0]]
    kept = [(name, kind) for name, kind in kept if name not in OPTIONAL or name in optional]
    return pa.table({name: pa.array([r[name] for r in rows], kind) for name, kind in kept})


def as_text(value):
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def text_of(arrow):
    """The same table with every column as text."""
    return pa.table(
        {
            name: pa.array([as_text(value) for value in arrow[name].to_pylist()], pa.string())
            for name in arrow.column_names
        }
    )


def as_csv(arrow, path):
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(arrow.column_names)
        writer.writerows(zip(*text_of(arrow).to_pydict().values(), strict=True))
    return path


def as_parquet(arrow, path):
    pq.write_table(arrow, path)
    return path


def in_postgres(server, arrow, name, *, schema="public", collation="C"):
    """Store a table in the server and return where it is."""
    columns = ", ".join(
        f'"{field.name}" {SQL[field.type]}'
        + (f' collate "{collation}"' if field.type == pa.string() else "")
        for field in arrow.schema
    )
    with server.connect() as link, link.cursor() as cursor:
        cursor.execute(f'create schema if not exists "{schema}"')
        cursor.execute(f'drop table if exists "{schema}"."{name}"')
        cursor.execute(f'create table "{schema}"."{name}" ({columns})')
        with cursor.copy(f'copy "{schema}"."{name}" from stdin') as copy:
            for row in zip(*arrow.to_pydict().values(), strict=True):
                copy.write_row(row)
    return f"{server.url()}::{name}"


def in_sqlite(arrow, path):
    kinds = {pa.string(): "text", pa.int64(): "integer", pa.float64(): "real"}
    columns = ", ".join(f'"{f.name}" {kinds.get(f.type, "text")}' for f in arrow.schema)
    rows = [tuple(row.values()) for row in arrow.to_pylist()]
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(f"create table decisions ({columns})")
        database.executemany(
            f"insert into decisions values ({', '.join('?' * arrow.num_columns)})",
            [[as_text(v) if isinstance(v, bool | datetime) else v for v in row] for row in rows],
        )
    return f"{path}::decisions"
