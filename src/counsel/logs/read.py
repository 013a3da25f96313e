"""Logs from wherever they are: files, databases, or objects in memory, all as Ibis tables.

The engine that holds the data does the counting; only what was counted reaches Python. Files and
objects are read by an embedded DuckDB. CSV is read as text and cast afterwards, so that a value
that is none can be counted and shown instead of stopping everything.

============================================  ============================================
``log.csv``, ``log.csv.gz``, ``log.tsv``      text with a header
``log.parquet``, ``logs/*.parquet``           Parquet, one file or many
``log.jsonl``, ``log.ndjson``                 one JSON object a line
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
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from counsel._arrays import brief
from counsel._files import check_exists
from counsel.errors import CounselError
from counsel.logs.column_types import (
    LARGEST_STEP,
    as_number,
    as_text,
    as_truth,
    as_written,
    binned,
    cuts_of,
)
from counsel.logs.schema import Bins, Columns

TEXT = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
LINES = (".jsonl", ".ndjson")
PARQUET = (".parquet",)
DUCKDB = (".duckdb",)
SQLITE = (".sqlite", ".sqlite3", ".db")
ENGINES = ("_duckdb", "duckdb", "ibis", "psycopg", "py4j", "pyarrow", "pyspark", "sqlite3")
"""Who is blamed for what is raised while a log is read."""

POSTGRES = ("postgresql://", "postgres://")
PATIENCE = 10
"""Seconds to wait for a server."""

JOINT = " · "
"""What stands between the parts of a state that is several columns."""

LIKE_JOINT = " ‧ "
"""What a part has where it had ``JOINT`` itself."""

LONGEST_HEADER = 1_000_000
"""A first line longer than this is no header."""


@dataclass(frozen=True, slots=True)
class Log:
    """A table of decisions with its columns under the names of their roles.

    Attributes
    ----------
    table
        The Ibis table: episode, person, state, next_state, advice and action as text, step as a
        whole number, reward and advice_probability as numbers, the rest as it is; NULL where a
        value was empty or could not be read, which ``raw_step``, ``raw_reward`` and
        ``raw_advice_probability`` tell apart.
    roles
        Which columns of the source are which.
    name
        What the source is called.
    bins
        Where columns of numbers were cut.
    """

    table: Any
    roles: dict[str, tuple[str, ...]]
    name: str
    bins: dict[str, tuple[float, ...]] = field(default_factory=dict)

    def has(self, role: str) -> bool:
        """Tell whether the log has such a column.

        Parameters
        ----------
        role
            One of the roles of a log: ``"person"``, say.

        Returns
        -------
        bool
            Whether it has.
        """
        return role in self.roles


def read_log(source: object, columns: Columns | None = None, bins: Bins | None = None) -> Log:
    """Return a log as a table with known columns; nothing is checked yet.

    Parameters
    ----------
    source
        A path or pattern (CSV, TSV, JSON lines, Parquet), a database and table (DuckDB, SQLite or
        PostgreSQL: ``log.duckdb::decisions``), or an Ibis, pandas, polars or Arrow table.
    columns
        Which columns are which, where they are called otherwise.
    bins
        Which columns of numbers that make up the state are cut, and where.

    Returns
    -------
    Log
        What ``check_log`` and ``fit`` take. What is large stays where it is: ``log.table`` is an
        Ibis table.

    Raises
    ------
    CounselError
        When the source is not there or cannot be read, or a column is missing.

    Examples
    --------
    A file in which the advice and the action are called otherwise:

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
    place, name = name, without_password(name)
    with blaming_engine(name):
        table = _opened(source, place)
        log = _named(table, columns or Columns(), bins or Bins(), name)
        if name.partition("::")[0].lower().endswith((*TEXT, *LINES)):
            # Text is read once and kept in the engine; every question would read it anew.
            engine = log.table.get_backend()
            return replace(log, table=engine.create_table("kept", log.table, temp=True))
        return log


def as_log(source: object, columns: Columns | str | None, bins: Bins | None) -> Log:
    """Return a log that was read before as it is, and anything else once it is read."""
    if isinstance(columns, str):
        columns = Columns.parse(columns)
    return source if isinstance(source, Log) else read_log(source, columns, bins)


@contextmanager
def blaming_engine(name: str) -> Iterator[None]:
    """Say in one sentence what an engine says in many."""
    try:
        yield
    except (CounselError, MemoryError):
        raise
    except Exception as fault:
        if _stopped(fault):
            raise KeyboardInterrupt from None
        if type(fault).__module__.split(".")[0] not in ENGINES:
            raise
        reason = " ".join(re.split(r"LINE \d+:|Possible fixes:", str(fault))[0].split())
        raise CounselError(f"{name} cannot be read: {reason[:300]}") from None


def _stopped(fault: BaseException | None) -> bool:
    """Whether an engine complains because it was told to stop."""
    while fault is not None:
        if isinstance(fault, KeyboardInterrupt):
            return True
        fault = fault.__cause__ or fault.__context__
    return False


def without_password(name: str) -> str:
    """Return what a database is called in messages."""
    if not name.startswith(POSTGRES):
        return name
    hidden = re.sub(r"(?<=//)([^:/@]*):.*@", r"\1:…@", name)
    return re.sub(r"(?i)([?&](?:ssl)?pass(?:word|file)?=)[^&]*?(?=&|::|$)", r"\1…", hidden)


def _opened(source: object, name: str) -> Any:  # noqa: ANN401 (Ibis ships no types)
    """Return the Ibis table of a source, columns as they are."""
    try:
        import ibis
    except ModuleNotFoundError:
        raise CounselError(
            "logs need Ibis and DuckDB; install them with: pip install 'counsel[logs]'"
        ) from None
    if isinstance(source, ibis.Table):
        return source
    if source is None:
        raise CounselError("no log was given; give a path or a table")
    if not isinstance(source, str | Path):
        try:
            return ibis.memtable(source)
        except (TypeError, NotImplementedError, ValueError):
            raise CounselError(
                f"a log is {brief(source)}; give a path, or an Ibis, pandas, polars or Arrow table"
            ) from None
    if name.startswith(POSTGRES):
        return _from_server(ibis, name)
    place, _, wanted = name.partition("::")
    return _from_file(ibis, place, wanted)


def _from_server(ibis: Any, name: str) -> Any:  # noqa: ANN401
    """Return a table of a PostgreSQL server; an address such as [::1] has colons of its own."""
    place, named, wanted = name.rpartition("::")
    if not named or set("@/]") & set(wanted):
        place, wanted = name, ""
    try:
        urlsplit(place).port  # noqa: B018 (raises where it is none)
    except ValueError:
        raise CounselError(
            f"{without_password(place)} is no address of a server; write user:password@host:port/"
            "database, signs such as @ : / # in a password as %40 %3A %2F %23"
        ) from None
    patience = {} if "connect_timeout=" in place else {"connect_timeout": PATIENCE}
    engine = ibis.connect(place, **patience)
    try:
        return _table_of(engine, wanted, without_password(place))
    except BaseException:
        engine.disconnect()
        raise


def _from_file(ibis: Any, place: str, wanted: str) -> Any:  # noqa: ANN401
    kind, path = place.lower(), Path(place)
    if not _is_pattern(place):
        check_exists(place)
        if path.is_dir():
            raise CounselError(
                f"{place} is a folder; give a file, or a pattern such as {place}/*.csv"
            )
        if path.stat().st_size == 0:
            raise CounselError(f"{place} is empty")
    engine = ibis.duckdb.connect()
    if kind.endswith(TEXT):
        return engine.read_csv(_literal(place), **_text_options(_files_of(place), kind))
    if kind.endswith(PARQUET):
        return engine.read_parquet(_literal(place), union_by_name=True)
    if kind.endswith(LINES):
        # Kinds are found from all lines: a value that is none makes its column text, and is shown.
        table = engine.read_json(_literal(place), format="newline_delimited", sample_size=-1)
        mixed = [name for name, kind in table.schema().items() if kind.is_json()]
        return table.mutate(
            **{name: table[name].cast("string").re_replace('^"(.*)"$', r"\1") for name in mixed}
        )
    if kind.endswith(DUCKDB):
        return _table_of(ibis.duckdb.connect(place, read_only=True), wanted, place)
    if kind.endswith(SQLITE):
        return _from_sqlite(engine, place, wanted)
    known = ", ".join((*TEXT, *PARQUET, *LINES, *DUCKDB, *SQLITE))
    raise CounselError(f"{place} is of no kind that can be read; it must end in one of {known}")


def _is_pattern(place: str) -> bool:
    """Whether a path stands for several; a file may have any of these signs in its name."""
    return any(sign in place for sign in "*?[") and not Path(place).exists()


def _literal(place: str) -> str:
    """Return a path that an engine takes for what it says."""
    if _is_pattern(place) or not any(sign in place for sign in "*?["):
        return place
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in place)


def _files_of(place: str) -> list[Path]:
    """Return the file itself, or all that a pattern matches."""
    base = Path(place)
    if not _is_pattern(place):
        return [base]
    anchor = Path(base.anchor) if base.is_absolute() else Path()
    found = sorted(anchor.glob(str(base.relative_to(base.anchor) if base.is_absolute() else base)))
    if not found:
        raise CounselError(f"no file matches {place}")
    return found


def _text_options(paths: list[Path], kind: str) -> dict[str, Any]:
    """Return how text files are to be read: their header, every column as text, nothing guessed."""
    between = "\t" if ".tsv" in kind else ","
    header = _header(paths[0], between)
    for path in paths[1:]:
        if _header(path, between) != header:
            raise CounselError(
                f"{path} has other columns than {paths[0]}, or in another order; files that are "
                "read together must agree"
            )
    return {
        "columns": dict.fromkeys(header, "VARCHAR"),
        "header": True,
        "auto_detect": False,
        "delim": between,
        "quote": '"',
        "escape": '"',
        "null_padding": False,
        "strict_mode": True,
    }


def _header(path: Path, between: str) -> list[str]:
    """Return the names of the columns of a text file; those without one are numbered."""
    opened = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with opened(path, "rt", encoding="utf-8-sig", newline="") as stream:
            line = stream.readline(LONGEST_HEADER)
    except UnicodeDecodeError:
        raise CounselError(f"{path} is not in UTF-8; save it as UTF-8") from None
    except (OSError, EOFError) as fault:
        raise CounselError(f"{path} cannot be read: {fault}") from None
    if len(line) >= LONGEST_HEADER:
        raise CounselError(f"{path} has a first line of a million characters; it has no header")
    header = next(csv.reader([line], delimiter=between), [])
    if not header or not any(header):
        raise CounselError(f"{path} has no header: its first line must name the columns")
    named = [name or f"column {i + 1}" for i, name in enumerate(header)]
    twice = {name for name in named if named.count(name) > 1}
    if twice:
        raise CounselError(f"{path} has two columns called {min(twice)!r}; rename one")
    return named


def _from_sqlite(engine: Any, place: str, wanted: str) -> Any:  # noqa: ANN401
    """Bring a table of a SQLite file over as text: SQLite keeps any kind of value in any column."""
    import pyarrow as pa

    address = f"file:{quote(str(Path(place).resolve()))}?mode=ro"
    opened = sqlite3.connect(address, uri=True, check_same_thread=False)  # DuckDB reads in its own
    with closing(opened) as database:
        database.text_factory = lambda raw: raw.decode("utf-8")
        found = database.execute(
            "select name from sqlite_master where type in ('table', 'view') order by name"
        ).fetchall()
        wanted = _wanted([name for (name,) in found], wanted, place)
        quoted = '"' + wanted.replace('"', '""') + '"'
        rows = database.execute(f"select * from {quoted}")
        schema = pa.schema([(told[0], pa.string()) for told in rows.description])

        def batches() -> Iterator[pa.RecordBatch]:
            while some := rows.fetchmany(50_000):
                texts = [
                    pa.array([None if x is None else str(x) for x in column], pa.string())
                    for column in zip(*some, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(texts, schema=schema)

        engine.con.register("batches", pa.RecordBatchReader.from_batches(schema, batches()))
        engine.con.execute("create temp table log as select * from batches")
        return engine.table("log")


def _table_of(engine: Any, wanted: str, place: str) -> Any:  # noqa: ANN401
    """Return a table of a database: the one named, or the only one."""
    return engine.table(_wanted(engine.list_tables(), wanted, place))


def _wanted(there: list[str], wanted: str, place: str) -> str:
    """Return which of a database's tables is meant."""
    if not wanted:
        if len(there) != 1:
            raise CounselError(
                f"{place} has {len(there)} tables ({', '.join(sorted(there)[:8])}); say which with "
                f"{place}::TABLE"
            )
        wanted = there[0]
    if wanted not in there:
        raise CounselError(
            f"{place} has no table {wanted!r}; it has {', '.join(sorted(there)[:8]) or 'none'}"
        )
    return wanted


def _named(table: Any, columns: Columns, bins: Bins, name: str) -> Log:  # noqa: ANN401
    """Give columns the names of their roles and their kinds."""
    import ibis

    roles = columns.roles(tuple(table.columns), where=name)
    for column in bins.cuts:
        if column not in roles["state"]:
            raise CounselError(
                f"bins cuts {column!r}, which is no part of the state ({', '.join(roles['state'])})"
            )
    if bins.cuts or len(roles["state"]) > 1:
        # A column of its own cannot say in the same words what came next; the next row does.
        if "next_state" in columns.names:
            raise CounselError("next_state goes with a state of one column, as it is; leave it out")
        roles.pop("next_state", None)
    cuts = {column: cuts_of(table, column, told) for column, told in bins.cuts.items()}
    made: dict[str, Any] = {}
    for role, own in roles.items():
        first = table[own[0]]
        if role == "state":
            parts = [
                binned(table[column], column, cuts[column])
                if column in cuts
                else as_text(table[column])
                for column in own
            ]
            joined = parts[0] if len(parts) == 1 else parts[0].replace(JOINT, LIKE_JOINT)
            for part in parts[1:]:
                joined = joined + ibis.literal(JOINT) + part.replace(JOINT, LIKE_JOINT)
            made[role] = joined
        elif role in ("episode", "person", "next_state", "advice", "action"):
            made[role] = as_text(first)
        elif role == "step":
            number = as_number(first)
            number = number.between(-LARGEST_STEP, LARGEST_STEP).ifelse(number, None)
            whole = (number == number.floor()).ifelse(number, None)
            made[role], made["raw_step"] = whole.cast("int64"), as_written(first)
        elif role in ("reward", "advice_probability"):
            made[role], made[f"raw_{role}"] = as_number(first), as_written(first)
        elif role in ("seen", "terminated", "truncated"):
            made[role], made[f"raw_{role}"] = as_truth(first), as_written(first)
        else:
            made[role] = first
    return Log(table.select(**made), roles, name, cuts)
