"""Read logs from files, databases and objects in memory, as Ibis tables.

The engine that holds the data does the counting; only the counts reach Python. An embedded DuckDB
reads files and objects. CSV is read as text and cast afterwards, so that invalid values can be
counted and shown instead of stopping the reader.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from counsel.errors import CounselError
from counsel.logs.binning import Bins, bin_column, cut_points
from counsel.logs.casting import (
    as_boolean,
    as_number,
    as_text,
    as_whole,
    as_written,
    stripped_columns,
)
from counsel.logs.column_mapping import NAMED, Columns
from counsel.logs.sources import LINES, TEXT, open_table, without_password

ENGINES = ("_duckdb", "duckdb", "ibis", "psycopg", "py4j", "pyarrow", "pyspark", "sqlite3")
"""Packages whose errors mean that a log cannot be read."""

SEPARATOR = " · "
"""Stands between the parts of a state that consists of several columns."""

SEPARATOR_IN_PART = " ‧ "
"""Replaces ``SEPARATOR`` within a part."""

TEXTS = (*NAMED, "episode", "person", "state", "next_state", "advice", "action")
"""Roles whose columns are text."""

CASTS = {
    "step": as_whole,
    "reward": as_number,
    "advice_probability": as_number,
    "seen": as_boolean,
    "terminated": as_boolean,
    "truncated": as_boolean,
}
"""How the columns of roles that are not text are cast; the source's own values are kept, too."""


@dataclass(frozen=True, slots=True)
class Log:
    """A table of decisions whose columns are named after their roles.

    ``table`` is an Ibis table: episode, person, state, next_state, advice and action are text, step
    is a whole number, reward and advice_probability are numbers, the rest is unchanged. Empty and
    invalid values are NULL; ``raw_step``, ``raw_reward`` and ``raw_advice_probability`` hold the
    values as written; ``episode_number`` holds the numbers of episodes if the source has whole
    numbers. ``roles`` are the source's columns, ``bins`` the cut points; ``memory`` keeps results
    of queries that are needed again.
    """

    table: Any
    roles: dict[str, tuple[str, ...]]
    name: str
    bins: dict[str, tuple[float, ...]] = field(default_factory=dict)
    memory: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

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
        table = open_table(source, address)
        # Keep text files in the engine: otherwise every query would parse them again.
        is_kept = name.partition("::")[0].lower().endswith((*TEXT, *LINES))
        engine = table.get_backend()
        if engine.name == "duckdb":
            engine.con.execute("SET enable_progress_bar = false")  # it draws on standard output
        strips = is_kept or engine.name != "duckdb"
        log = _assign_roles(table, columns or Columns(), bins or Bins(), name, strips=strips)
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


def _assign_roles(
    table: Any,  # noqa: ANN401
    columns: Columns,
    bins: Bins,
    name: str,
    *,
    strips: bool,
) -> Log:
    """Name columns after their roles and cast them to the roles' types.

    Unless the engine ``strips`` texts, columns without anything to strip stay as they are: DuckDB
    groups by a text five times as fast as it strips it, and every query would strip it.
    """
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
    texts = [own for role, parts in roles.items() if role in TEXTS for own in parts]
    clean = set() if strips else stripped_columns(table, [own for own in texts if own not in cuts])

    def cast_text(column: Any) -> Any:  # noqa: ANN401
        return column if column.get_name() in clean else as_text(column)

    cast: dict[str, Any] = {}
    for role, own in roles.items():
        column = table[own[0]]
        if role == "state":
            cast[role] = _state_labels(table, own, cuts, cast_text)
        elif role in TEXTS:
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
