"""Read logs from files, databases and objects in memory, as Ibis tables.

The engine that holds the data does the counting; only the counts reach Python. An embedded DuckDB
reads files and objects. CSV is read as text and cast afterwards, so that invalid values can be
counted and shown instead of stopping the reader.

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
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from counsel._arrays import brief
from counsel._files import check_exists
from counsel.errors import CounselError
from counsel.logs.binning import Bins, bin_column, cut_points
from counsel.logs.casting import (
    as_boolean,
    as_number,
    as_text,
    as_whole,
    as_written,
    is_stripped,
)
from counsel.logs.column_mapping import NAMED, Columns

TEXT = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
LINES = (".jsonl", ".ndjson")
PARQUET = (".parquet",)
DUCKDB = (".duckdb",)
SQLITE = (".sqlite", ".sqlite3", ".db")
ENGINES = ("_duckdb", "duckdb", "ibis", "psycopg", "py4j", "pyarrow", "pyspark", "sqlite3")
"""Packages whose errors mean that a log cannot be read."""

POSTGRES = ("postgresql://", "postgres://")
CONNECT_TIMEOUT = 10
"""Seconds to wait for a server."""

SEPARATOR = " · "
"""Stands between the parts of a state that consists of several columns."""

SEPARATOR_IN_PART = " ‧ "
"""Replaces ``SEPARATOR`` within a part."""

CASTS = {
    "step": as_whole,
    "reward": as_number,
    "advice_probability": as_number,
    "seen": as_boolean,
    "terminated": as_boolean,
    "truncated": as_boolean,
}
"""How the columns of roles that are not text are cast; the source's own values are kept, too."""

LONGEST_HEADER = 1_000_000
"""A first line longer than this is not a header."""


@dataclass(frozen=True, slots=True)
class Log:
    """A table of decisions whose columns are named after their roles.

    ``table`` is an Ibis table: episode, person, state, next_state, advice and action are text, step
    is a whole number, reward and advice_probability are numbers, the rest is unchanged. Empty and
    invalid values are NULL; ``raw_step``, ``raw_reward`` and ``raw_advice_probability`` hold the
    values as written; ``episode_number`` holds the numbers of episodes if the source has whole
    numbers. ``roles`` are the source's columns, ``bins`` the cut points.
    """

    table: Any
    roles: dict[str, tuple[str, ...]]
    name: str
    bins: dict[str, tuple[float, ...]] = field(default_factory=dict)

    def has(self, role: str) -> bool:
        """Return whether the log has a column of this role, e.g. ``"person"``."""
        return role in self.roles

    @property
    def episode_key(self) -> str:
        """The column to group episodes by: their numbers if they have some, else their names."""
        return "episode_number" if "episode_number" in self.table.columns else "episode"


def read_log(source: object, columns: Columns | None = None, bins: Bins | None = None) -> Log:
    """Read a log as a table with known columns, without checking its rows.

    Parameters
    ----------
    source
        A path or pattern (CSV, TSV, JSON lines, Parquet), a database and table (DuckDB, SQLite or
        PostgreSQL: ``log.duckdb::decisions``), or an Ibis, pandas, polars or Arrow table.
    columns
        The mapping from roles to columns, for columns with other names.
    bins
        How to cut columns of numbers in the state.

    Returns
    -------
    Log
        The argument of ``check_log`` and ``fit``. Large data stay in their engine: ``log.table`` is
        an Ibis table.

    Raises
    ------
    CounselError
        If the source does not exist or cannot be read, or a column is missing.

    Examples
    --------
    A file whose columns of advice and action have other names:

    >>> import tempfile
    >>> from pathlib import Path
    >>> text = "episode,step,state,alert,did,reward" + chr(10) + "1,0,alarm,check,wait,0"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "log.csv"
    ...     _ = path.write_text(text)
    ...     log = read_log(path, Columns.parse("advice=alert,action=did"))
    >>> log.roles["advice"], log.has("person")
    (('alert',), False)
    >>> log.table.select("advice", "action", "reward").to_pyarrow().to_pylist()
    [{'advice': 'check', 'action': 'wait', 'reward': 0.0}]
    """
    name = source if isinstance(source, str) else str(source) if isinstance(source, Path) else "log"
    address, name = name, without_password(name)
    with report_engine_errors(name):
        table = _open(source, address)
        # Keep text files in the engine: otherwise every query would parse them again.
        is_kept = name.partition("::")[0].lower().endswith((*TEXT, *LINES))
        engine = table.get_backend()
        if engine.name == "duckdb":
            engine.con.execute("SET enable_progress_bar = false")  # it draws on standard output
        cast_text = as_text if is_kept or engine.name != "duckdb" else _as_text_in_duckdb
        log = _assign_roles(table, columns or Columns(), bins or Bins(), name, cast_text)
        if is_kept:
            return replace(log, table=engine.create_table("kept", log.table, temp=True))
        return log


def as_log(source: object, columns: Columns | str | None, bins: Bins | None) -> Log:
    """Return a log as it is; read any other source."""
    if isinstance(columns, str):
        columns = Columns.parse(columns)
    return source if isinstance(source, Log) else read_log(source, columns, bins)


@contextmanager
def report_engine_errors(name: str) -> Iterator[None]:
    """Turn errors of an engine into one sentence about the log."""
    try:
        yield
    except (CounselError, MemoryError):
        raise
    except Exception as fault:
        if _is_interrupt(fault):
            raise KeyboardInterrupt from None
        if type(fault).__module__.split(".")[0] not in ENGINES:
            raise
        reason = " ".join(re.split(r"LINE \d+:|Possible fixes:", str(fault))[0].split())
        raise CounselError(f"{name} cannot be read: {reason[:300]}") from None


def _is_interrupt(fault: BaseException | None) -> bool:
    """Return whether an engine's error comes from a keyboard interrupt."""
    while fault is not None:
        if isinstance(fault, KeyboardInterrupt):
            return True
        fault = fault.__cause__ or fault.__context__
    return False


def without_password(name: str) -> str:
    """Return the name of a database without its password, for messages."""
    if not name.startswith(POSTGRES):
        return name
    hidden = re.sub(r"(?<=//)([^:/@]*):.*@", r"\1:…@", name)
    return re.sub(r"(?i)([?&](?:ssl)?pass(?:word|file)?=)[^&]*?(?=&|::|$)", r"\1…", hidden)


def _open(source: object, name: str) -> Any:  # noqa: ANN401 (Ibis ships no types)
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
        try:
            return ibis.memtable(source)
        except (TypeError, NotImplementedError, ValueError):
            raise CounselError(
                f"the log is {brief(source)}; give a path or an Ibis, pandas, polars or Arrow table"
            ) from None
    if name.startswith(POSTGRES):
        return _from_server(ibis, name)
    path, _, table = name.partition("::")
    return _from_file(ibis, path, table)


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


def _as_text_in_duckdb(column: Any) -> Any:  # noqa: ANN401
    """Return a column as text, unchanged if there is nothing to strip.

    DuckDB groups by a text five times as fast as it strips it, and every query would strip it.
    """
    return column if column.type().is_string() and is_stripped(column) else as_text(column)


def _assign_roles(
    table: Any,  # noqa: ANN401
    columns: Columns,
    bins: Bins,
    name: str,
    cast_text: Callable[[Any], Any],
) -> Log:
    """Name columns after their roles and cast them to the roles' types."""
    roles = columns.roles(tuple(table.columns), where=name)
    for column in bins.cuts:
        if column not in roles["state"]:
            raise CounselError(
                f"bins cuts {column!r}, which is no part of the state ({', '.join(roles['state'])})"
            )
    if bins.cuts or len(roles["state"]) > 1:
        # A single column cannot hold the label of the next state; the next row has it.
        if "next_state" in columns.names:
            raise CounselError(
                "next_state needs a state of one column without bins; leave next_state out"
            )
        roles.pop("next_state", None)
    cuts = {column: cut_points(table, column, wanted) for column, wanted in bins.cuts.items()}
    cast: dict[str, Any] = {}
    for role, own in roles.items():
        column = table[own[0]]
        if role == "state":
            cast[role] = _state_labels(table, own, cuts, cast_text)
        elif role in (*NAMED, "episode", "person", "next_state", "advice", "action"):
            cast[role] = cast_text(column)
            if role == "episode" and column.type().is_integer():
                cast["episode_number"] = column  # engines group numbers faster than their texts
        elif role == "timestamp":
            cast[role] = column
        else:
            cast[f"raw_{role}"] = as_written(column)
            cast[role] = CASTS[role](column)
    return Log(table.select(**cast), roles, name, cuts)


def _state_labels(
    table: Any,  # noqa: ANN401
    columns: tuple[str, ...],
    cuts: Mapping[str, Any],
    cast_text: Callable[[Any], Any],
) -> Any:  # noqa: ANN401
    """Return the label of each row's state: the text or bin of each column, joined."""
    import ibis

    parts = [
        bin_column(table[name], name, cuts[name]) if name in cuts else cast_text(table[name])
        for name in columns
    ]
    if len(parts) == 1:
        return parts[0]
    label, *others = (part.replace(SEPARATOR, SEPARATOR_IN_PART) for part in parts)
    for part in others:
        label = label + ibis.literal(SEPARATOR) + part
    return label
