"""A small sound log, and logs with one fault each."""

import sqlite3
from contextlib import closing

HEADER = "episode,step,state,advice,action,reward"


FINE = ["a,0,calm,,wait,1", "a,1,rough,act,act,0.5", "b,0,calm,act,wait,1", "b,1,calm,wait,wait,0"]


def written(path, *rows, header=HEADER):
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


FAULTS = {
    "no action": (["a,2,calm,,,1"], "action is empty", True),
    "no state": (["a,2,,,wait,1"], "state is empty", True),
    "no episode": ([",2,calm,,wait,1"], "episode is empty", True),
    "no step": (["a,,calm,,wait,1"], "step is empty", True),
    "no reward": (["a,2,calm,,wait,"], "reward is empty", False),
    "a word for a reward": (["a,2,calm,,wait,good"], "reward is not a number", True),
    "a word for a step": (["a,two,calm,,wait,1"], "step is not a whole number", True),
    "half a step": (["a,2.5,calm,,wait,1"], "step is not a whole number", True),
    "an endless reward": (["a,2,calm,,wait,inf"], "reward is not a finite number", True),
    "a reward that is none": (["a,2,calm,,wait,nan"], "reward is not a finite number", True),
    "a step below 0": (["a,-1,calm,,wait,1"], "step is below 0", True),
    "a step twice": (["a,1,calm,,wait,1"], "same step of the same episode", True),
    "a gap": (["a,5,calm,,wait,1"], "episodes lack steps", False),
    "a late beginning": (["c,3,calm,,wait,1"], "do not begin at step 0", False),
}


def malformed(folder):
    """Twenty things that are no log."""
    big = folder / "line.csv"
    big.write_bytes(b"x" * 100_000_000)
    latin = folder / "latin.csv"
    latin.write_bytes(f"{HEADER}\na,0,st\xf6rung,,wait,1\n".encode("latin-1"))
    (folder / "dir.csv").mkdir()
    (folder / "empty.csv").write_bytes(b"")
    (folder / "blank.csv").write_text("\n\n")
    (folder / "binary.csv").write_bytes(bytes(range(256)) * 10)
    (folder / "log.xlsx").write_bytes(b"PK")
    (folder / "bad.parquet").write_bytes(b"PAR1 not really")
    (folder / "bad.jsonl").write_text('{"episode": 1\n')
    (folder / "bad.csv.gz").write_bytes(b"not gzip")
    (folder / "bad.duckdb").write_bytes(b"nothing of the kind" * 100)
    (folder / "bad.sqlite").write_bytes(b"nothing of the kind" * 100)
    with closing(sqlite3.connect(folder / "two.sqlite")) as database, database:
        database.execute("create table a (x)")
        database.execute("create table b (x)")
    return {
        str(written(folder / "header.csv")): "has a header and no rows",
        str(folder / "empty.csv"): "is empty",
        str(folder / "blank.csv"): "has no header",
        str(folder / "missing.csv"): "does not exist",
        str(folder / "dir.csv"): "is a folder",
        str(folder / "no-*.csv"): "no file matches",
        str(folder / "log.xlsx"): "has an unknown format",
        str(big): "a first line of a million characters",
        str(latin): "is not in UTF-8",
        str(folder / "binary.csv"): "is not in UTF-8",
        str(written(folder / "ragged.csv", "a,0,calm", "b,0,calm,,wait,1,more,and more")): "cannot",
        str(
            written(folder / "twice.csv", header="episode,episode")
        ): "two columns called 'episode'",
        str(written(folder / "few.csv", "a,0", header="episode,step")): "no column 'state'",
        str(written(folder / "quote.csv", 'a,0,"calm,,wait,1')): "cannot be read",
        str(folder / "bad.parquet"): "cannot be read",
        str(folder / "bad.jsonl"): "cannot be read",
        str(folder / "bad.csv.gz"): "cannot be read",
        str(folder / "bad.duckdb"): "cannot be read",
        str(folder / "bad.sqlite"): "cannot be read",
        f"{folder / 'two.sqlite'}": "has 2 tables (a, b); choose one",
        f"{folder / 'two.sqlite'}::c": "has no table 'c'",
        "postgresql://nobody@127.0.0.1:1/none::log": "cannot be read",
    }
