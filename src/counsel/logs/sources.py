"""Open the source of a log as an Ibis table: a file, a database or an object in memory.

============================================  ============================================
``log.csv``, ``log.csv.gz``, ``log.tsv``      text with a header
``log.parquet``, ``logs/*.parquet``           Parquet, one file or many
``log.jsonl``, ``log.ndjson``                 one JSON object per line
``log.duckdb``, ``log.duckdb::decisions``     a DuckDB file, and which table
``log.sqlite``, ``log.db::decisions``         a SQLite file, and which table
``postgresql://…/name::decisions``            a table of a PostgreSQL server
============================================  ============================================
"""

import csv
import gzip
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from counsel._arrays import brief
from counsel._files import check_exists
from counsel.errors import CounselError

TEXT = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
LINES = (".jsonl", ".ndjson")
PARQUET = (".parquet",)
DUCKDB = (".duckdb",)
SQLITE = (".sqlite", ".sqlite3", ".db")
POSTGRES = ("postgresql://", "postgres://")
CONNECT_TIMEOUT = 10
"""Seconds to wait for a server."""

LONGEST_HEADER = 1_000_000
"""A first line longer than this is not a header."""


def without_password(name: str) -> str:
    """Return the name of a database without its password, for messages."""
    if not name.startswith(POSTGRES):
        return name
    hidden = re.sub(r"(?<=//)([^:/@]*):.*@", r"\1:…@", name)
    return re.sub(r"(?i)([?&](?:ssl)?pass(?:word|file)?=)[^&]*?(?=&|::|$)", r"\1…", hidden)


def open_table(source: object, name: str) -> Any:  # noqa: ANN401 (Ibis ships no types)
    """Return the Ibis table of a source with its own columns."""
    try:
        import ibis
    except ModuleNotFoundError:
        raise CounselError(
            "logs need Ibis and DuckDB; install them with: pip install 'counsel[logs]'"
        ) from None
    if isinstance(source, ibis.Table):
        return source
    if source is None:
        raise CounselError("the log is None; give a path or a table")
    if not isinstance(source, str | Path):
        return _from_memory(ibis, source)
    if name.startswith(POSTGRES):
        return _from_server(ibis, name)
    path, _, table = name.partition("::")
    return _from_file(ibis, path, table)


def _from_memory(ibis: Any, source: object) -> Any:  # noqa: ANN401
    """Return a table in memory, with an engine of its own: a shared one would never forget it."""
    try:
        given = ibis.memtable(source).op()
    except (TypeError, NotImplementedError, ValueError):
        raise CounselError(
            f"the log is {brief(source)}; give a path or an Ibis, pandas, polars or Arrow table"
        ) from None
    engine = ibis.duckdb.connect()
    engine.con.register(given.name, given.data.to_pyarrow(given.schema))
    return engine.table(given.name)


def _from_server(ibis: Any, name: str) -> Any:  # noqa: ANN401
    """Return a table of a PostgreSQL server; an address such as [::1] has colons of its own."""
    address, separator, table = name.rpartition("::")
    if not separator or set("@/]") & set(table):
        address, table = name, ""
    try:
        urlsplit(address).port  # noqa: B018 (raises if the port is invalid)
    except ValueError:
        raise CounselError(
            f"{without_password(address)} is not the address of a server; write user:password@host:"
            "port/database, with @ : / # in a password as %40 %3A %2F %23"
        ) from None
    timeout = {} if "connect_timeout=" in address else {"connect_timeout": CONNECT_TIMEOUT}
    engine = ibis.connect(address, **timeout)
    try:
        return _choose_table(engine, table, without_password(address))
    except BaseException:
        engine.disconnect()
        raise


def _from_file(ibis: Any, path: str, table: str) -> Any:  # noqa: ANN401
    name = path.lower()
    if not _is_pattern(path):
        check_exists(path)
        if Path(path).is_dir():
            raise CounselError(f"{path} is a folder; give a file, or a pattern like {path}/*.csv")
        if Path(path).stat().st_size == 0:
            raise CounselError(f"{path} is empty")
    engine = ibis.duckdb.connect()
    if name.endswith(TEXT):
        return engine.read_csv(_literal(path), **_text_options(_matching_files(path), name))
    if name.endswith(PARQUET):
        return engine.read_parquet(_literal(path), union_by_name=True)
    if name.endswith(LINES):
        # All lines decide on a column's type: one invalid value makes it text, and is then shown.
        lines = engine.read_json(_literal(path), format="newline_delimited", sample_size=-1)
        mixed = [column for column, kind in lines.schema().items() if kind.is_json()]
        texts = {name: lines[name].cast("string").re_replace('^"(.*)"$', r"\1") for name in mixed}
        return lines.mutate(**texts)
    if name.endswith(DUCKDB):
        return _choose_table(ibis.duckdb.connect(path, read_only=True), table, path)
    if name.endswith(SQLITE):
        return _from_sqlite(engine, path, table)
    known = ", ".join((*TEXT, *PARQUET, *LINES, *DUCKDB, *SQLITE))
    raise CounselError(f"{path} has an unknown format; its name must end in one of {known}")


def _is_pattern(path: str) -> bool:
    """Return whether a path is a pattern; the name of an existing file may contain such signs."""
    return any(sign in path for sign in "*?[") and not Path(path).exists()


def _literal(path: str) -> str:
    """Return a path in which an engine sees no pattern unless it is one."""
    if _is_pattern(path) or not any(sign in path for sign in "*?["):
        return path
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in path)


def _matching_files(place: str) -> list[Path]:
    """Return the file itself, or all files that match a pattern."""
    path = Path(place)
    if not _is_pattern(place):
        return [path]
    anchor = Path(path.anchor) if path.is_absolute() else Path()
    files = sorted(anchor.glob(str(path.relative_to(path.anchor) if path.is_absolute() else path)))
    if not files:
        raise CounselError(f"no file matches {place}")
    return files


def _text_options(paths: list[Path], name: str) -> dict[str, Any]:
    """Return DuckDB's options for text files: read every column as text and guess nothing."""
    delimiter = "\t" if ".tsv" in name else ","
    header = _header(paths[0], delimiter)
    for path in paths[1:]:
        if _header(path, delimiter) != header:
            raise CounselError(
                f"{path} and {paths[0]} differ in their columns or the order of these; files that "
                "are read together must agree"
            )
    return {
        "columns": dict.fromkeys(header, "VARCHAR"),
        "header": True,
        "auto_detect": False,
        "delim": delimiter,
        "quote": '"',
        "escape": '"',
        "null_padding": False,
        "strict_mode": True,
    }


def _header(path: Path, delimiter: str) -> list[str]:
    """Return the column names of a text file; columns without a name are numbered."""
    opener = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as stream:
            line = stream.readline(LONGEST_HEADER)
    except UnicodeDecodeError:
        raise CounselError(f"{path} is not in UTF-8; save it as UTF-8") from None
    except (OSError, EOFError) as fault:
        raise CounselError(f"{path} cannot be read: {fault}") from None
    if len(line) >= LONGEST_HEADER:
        raise CounselError(f"{path} has a first line of a million characters; it has no header")
    header = next(csv.reader([line], delimiter=delimiter), [])
    if not header or not any(header):
        raise CounselError(f"{path} has no header: its first line must name the columns")
    names = [name or f"column {i + 1}" for i, name in enumerate(header)]
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise CounselError(f"{path} has two columns called {min(repeated)!r}; rename one")
    return names


def _from_sqlite(engine: Any, path: str, table: str) -> Any:  # noqa: ANN401
    """Copy a table of a SQLite file as text: SQLite stores any type in any column."""
    import pyarrow as pa

    address = f"file:{quote(str(Path(path).resolve()))}?mode=ro"
    connection = sqlite3.connect(address, uri=True, check_same_thread=False)  # DuckDB reads
    with closing(connection) as database:
        database.text_factory = lambda raw: raw.decode("utf-8")
        names = database.execute(
            "select name from sqlite_master where type in ('table', 'view') order by name"
        ).fetchall()
        table = _choose_name([name for (name,) in names], table, path)
        quoted = '"' + table.replace('"', '""') + '"'
        rows = database.execute(f"select * from {quoted}")
        schema = pa.schema([(column[0], pa.string()) for column in rows.description])

        def batches() -> Iterator[pa.RecordBatch]:
            while batch := rows.fetchmany(50_000):
                texts = [
                    pa.array([None if x is None else str(x) for x in column], pa.string())
                    for column in zip(*batch, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(texts, schema=schema)

        engine.con.register("batches", pa.RecordBatchReader.from_batches(schema, batches()))
        engine.con.execute("create temp table log as select * from batches")
        return engine.table("log")


def _choose_table(engine: Any, table: str, where: str) -> Any:  # noqa: ANN401
    """Return a table of a database: the table of this name, or the only one."""
    return engine.table(_choose_name(engine.list_tables(), table, where))


def _choose_name(names: list[str], table: str, where: str) -> str:
    """Return the name of the requested table among a database's tables."""
    if not table and len(names) == 1:
        return names[0]
    first = ", ".join(sorted(names)[:8])
    if not table:
        raise CounselError(
            f"{where} has {len(names)} tables ({first}); choose one with {where}::TABLE"
        )
    if table not in names:
        raise CounselError(f"{where} has no table {table!r}; it has {first or 'none'}")
    return table
