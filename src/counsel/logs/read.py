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
import math
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from counsel._arrays import brief
from counsel.errors import CounselError
from counsel.logs.schema import JOINT, Bins, Columns, bin_labels

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

NUMBER = r"^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-2]?[0-9]?[0-9])?$"
"""What can be cast to a number by an engine that gives up at what cannot."""

DATE = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]+)?)?(Z|[+-][0-9:]+)?)?$"
)
"""A date, perhaps with a time, for an engine that gives up at what is none."""

LARGEST_STEP = 2**53
"""Beyond it not every whole number is a number; no engine casts what is endless."""

ENDLESS = ("inf", "+inf", "-inf", "infinity", "+infinity", "-infinity", "nan")
LIKE_JOINT = " ‧ "
"""What stands for that sign inside a part."""

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
        """Whether the log has such a column."""
        return role in self.roles


def read_log(source: object, columns: Columns | None = None, bins: Bins | None = None) -> Log:
    """Return a log as a table with known columns.

    Parameters
    ----------
    source
        A path or pattern, a database and table, or an Ibis, pandas, polars or Arrow table.
    columns
        Which columns are which, where they are called otherwise.
    bins
        Which columns of numbers that make up the state are cut, and where.
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


@contextmanager
def blaming_engine(name: str) -> Iterator[None]:
    """Say in one sentence what an engine says in many."""
    try:
        yield
    except CounselError:
        raise
    except MemoryError:
        raise
    except Exception as fault:
        kind = type(fault).__module__.split(".")[0]
        if kind not in ENGINES and not _stopped(fault):
            raise
        if _stopped(fault):
            raise KeyboardInterrupt from None
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
        if not path.exists():
            raise CounselError(f"{place} is not there")
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
        raise CounselError(f"{path} has two columns called {min(twice)!r}")
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
    cuts = {column: _cuts(table, column, told) for column, told in bins.cuts.items()}
    made: dict[str, Any] = {}
    for role, own in roles.items():
        first = table[own[0]]
        if role == "state":
            parts = [
                _binned(table[column], column, cuts[column])
                if column in cuts
                else _text(table[column])
                for column in own
            ]
            joined = parts[0] if len(parts) == 1 else parts[0].replace(JOINT, LIKE_JOINT)
            for part in parts[1:]:
                joined = joined + ibis.literal(JOINT) + part.replace(JOINT, LIKE_JOINT)
            made[role] = joined
        elif role in ("episode", "person", "next_state", "advice", "action"):
            made[role] = _text(first)
        elif role == "step":
            number = as_number(first)
            number = number.between(-LARGEST_STEP, LARGEST_STEP).ifelse(number, None)
            whole = (number == number.floor()).ifelse(number, None)
            made[role], made["raw_step"] = whole.cast("int64"), _raw(first)
        elif role in ("reward", "advice_probability"):
            made[role], made[f"raw_{role}"] = as_number(first), _raw(first)
        elif role in ("seen", "terminated", "truncated"):
            made[role], made[f"raw_{role}"] = _truth(first), _raw(first)
        else:
            made[role] = first
    return Log(table.select(**made), roles, name, cuts)


def _cuts(table: Any, column: str, told: tuple[float, ...] | int) -> tuple[float, ...]:  # noqa: ANN401
    """Return where a column is cut; quantiles are asked of the engine."""
    if not isinstance(told, int):
        return told
    number = as_number(table[column])
    shares = {f"q{i}": number.quantile(i / told) for i in range(1, told)}
    found = table.aggregate(**shares).to_pyarrow().to_pylist()[0].values()
    cuts = tuple(sorted({float(cut) for cut in found if cut is not None and math.isfinite(cut)}))
    if not cuts:
        raise CounselError(f"bins cuts {column!r}, which holds no numbers")
    return cuts


def _binned(column: Any, name: str, cuts: tuple[float, ...]) -> Any:  # noqa: ANN401
    """Return the bin of each number, NULL where it is none."""
    import ibis

    number, names = as_number(column), bin_labels(name, cuts)
    below = [(number < cut, label) for cut, label in zip(cuts, names, strict=False)]
    return ibis.cases((number.isnull(), None), *below, else_=names[-1])


def _text(column: Any) -> Any:  # noqa: ANN401
    """Return a column as text, NULL where it is empty.

    Whole numbers are written as such: where some are missing, tables keep whole numbers as floats.
    """
    text = column.cast("string")
    if column.type().is_string():
        return text.strip().nullif("")
    if not column.type().is_floating():
        return text
    there = (~column.isnan()).ifelse(column, None)
    small = there.between(-LARGEST_STEP, LARGEST_STEP)
    number = small.ifelse(there, None)
    whole = (number == number.floor()).ifelse(number, None).cast("int64").cast("string")
    return whole.fill_null(there.cast("string"))


def _raw(column: Any) -> Any:  # noqa: ANN401
    """Return what was written, to tell what is empty from what is no number."""
    return _text(column) if column.type().is_string() else column


def as_number(column: Any) -> Any:  # noqa: ANN401
    """Return a column as numbers, NULL where it is none."""
    if not column.type().is_string():
        return column.cast("float64")
    text = column.strip()
    if column.get_backend().name != "postgres":
        return text.try_cast("float64")
    fit = text.re_search(NUMBER) | text.lower().isin(ENDLESS)
    return fit.ifelse(text, None).cast("float64")


def as_moment(column: Any) -> Any:  # noqa: ANN401
    """Return a timestamp as a number, in seconds where it is a date; NULL where it is none."""
    kind = column.type()
    if kind.is_string():
        text = column.strip()
        dated = text
        if column.get_backend().name == "postgres":
            dated = text.re_search(DATE).ifelse(text, None)
        number = as_number(column)
        number = number.fill_null(dated.try_cast("timestamp").epoch_seconds().cast("float64"))
    elif kind.is_numeric():
        number = column.cast("float64")
    elif kind.is_date() or kind.is_timestamp():
        number = column.cast("timestamp").epoch_seconds().cast("float64")
    else:
        return (column.isnull() & column.notnull()).ifelse(0.0, None)  # none in any row
    return number.between(-LARGEST_STEP, LARGEST_STEP).ifelse(number, None)


def in_order(column: Any) -> Any:  # noqa: ANN401
    """Return what a column is sorted by: texts by their bytes, whatever a server's language."""
    import ibis

    if not column.type().is_string() or column.get_backend().name != "postgres":
        return column

    def convert_to(text: str, encoding: str) -> bytes:  # type: ignore[empty-body]
        ...

    return ibis.udf.scalar.builtin(convert_to)(column, "UTF8")


def _truth(column: Any) -> Any:  # noqa: ANN401
    """Return a column as true or false, NULL where it is neither."""
    if column.type().is_boolean():
        return column
    text = column.cast("string").strip().lower()
    yes = text.isin(["true", "t", "yes", "y", "1", "1.0"])
    no = text.isin(["false", "f", "no", "n", "0", "0.0"])
    return (yes | no).ifelse(yes, None)
