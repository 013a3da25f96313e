"""The level of a memory at each decision of a log, computed by the engine that holds the log.

A level depends on the decisions before it: those of its episode, or with ``across`` person all
earlier ones of the person. Advice that was not seen counts as silence. With i the number of a
decision in its sequence, and all sums over the decisions before:

    pieces     the pieces seen, at most N
    since      i − 1 − the number of the last decision with a piece, at most N
    refusals   the pieces refused since the last match, at most N
    dose       Σ_j decay^(i − 1 − j) over the pieces j, rounded to the nearest level
    tenure     the number of the episode among those of the person, in bands

A running sum of decay^(−j) overflows in a long sequence. So sequences are cut into runs, twice, the
second time half a run later: each decision uses the run in which more decisions lie before it, at
least half a run, and what lies further back counts less than 10⁻⁵⁰.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from counsel.errors import CounselError
from counsel.logs.casting import as_time, as_whole, sort_key
from counsel.logs.memory_kind import BANDS, MemoryKind
from counsel.logs.read import Log, report_engine_errors

FORGOTTEN = 50.0
"""What is older than half a run counts less than ten to the power of minus this."""

TIE = 1e-9
"""A dose that is this close to the middle between two levels is put on the upper one."""


def prepare_kind(log: Log, kind: MemoryKind) -> MemoryKind:
    """Return a kind that a log can be fitted with: bands of time in the study are cut.

    Raises
    ------
    CounselError
        If levels go across episodes and the log does not say whose they are, or in which order; or
        for time in the study, if everybody has one episode.
    """
    with report_engine_errors(log.name):
        if kind.across == "person":
            _check_order(log, kind)
        return replace(kind, cuts=_cut_bands(log)) if kind.kind == "tenure" else kind


def add_level(log: Log, table: Any, kind: MemoryKind, name: str = "level") -> Any:  # noqa: ANN401
    """Add the level of each decision to a table of ``link_decisions``."""
    table = _with_sequence(log, table, kind)
    if kind.kind == "tenure":
        level = sum((table.number_of_episode >= cut).ifelse(1, 0) for cut in kind.cuts)
        table = table.mutate(**{name: (level + table.number_of_episode * 0).cast("int64")})
    else:
        table = _LEVELS[kind.kind](table, kind, name)
    return table.drop(*(column for column in _HELPERS if column in table.columns))


def can_order(log: Log) -> str | None:
    """Return why the order of a person's episodes is unknown, in words; None if it is known."""
    with report_engine_errors(log.name):
        return _unknown_order(log)


def can_cut_bands(log: Log) -> str | None:
    """Return why time in the study has no bands, in words; None if it has."""
    with report_engine_errors(log.name):
        reason = _unknown_order(log)
        return reason or (None if _cut_bands(log) else "everybody has one episode")


def _unknown_order(log: Log) -> str | None:
    if not log.has("person"):
        return f"{log.name} has no column person; map it with --columns person=…"
    begins = log.table.select(begins=_begins(log, log.table)).begins
    missing = int(begins.isnull().ifelse(1, None).count().to_pyarrow().as_py())
    if not missing:
        return _all_at_once(log)
    if log.has("timestamp"):
        return (
            f"{log.name} has {missing:,} decisions in episodes without a timestamp, so the order "
            "of a person's episodes is unknown"
        )
    return (
        f"{log.name} has no timestamp, and its episodes are not numbers, so the order of a "
        "person's episodes is unknown; map a column with --columns timestamp=…"
    )


def _all_at_once(log: Log) -> str | None:
    """Say so if nobody has two episodes that begin at different times, but somebody has two."""
    columns = {"person": log.table.person, "key": log.table[log.episode_key]}
    rows = log.table.select(**columns, begins=_begins(log, log.table))
    named = rows.filter(rows.person.notnull())
    by_person = named.group_by("person").aggregate(
        times=named.begins.nunique(), episodes=named.key.nunique()
    )
    several = by_person.filter(by_person.episodes > 1)
    if several.aggregate(most=several.times.max()).to_pyarrow().to_pylist()[0]["most"] != 1:
        return None
    return (
        f"all episodes of a person in {log.name} begin at the same time, so their order is unknown"
    )


def _begins(log: Log, table: Any) -> Any:  # noqa: ANN401 (Ibis ships no types)
    """Return what orders episodes: when they begin, or their numbers; NULL if it is unknown."""
    import ibis

    if log.has("timestamp"):
        return as_time(table.timestamp).min().over(ibis.window(group_by=log.episode_key))
    return as_whole(table[log.episode_key])


def _check_order(log: Log, kind: MemoryKind) -> None:
    reason = can_cut_bands(log) if kind.kind == "tenure" else _unknown_order(log)
    if reason is not None:
        what = "memory tenure" if kind.kind == "tenure" else f"memory {kind.name} across person"
        raise CounselError(f"{what} cannot be fitted: {reason}")


_HELPERS = (
    *("sequence", "begins", "number_of_episode", "number", "last_piece", "matches_before"),
    *("run_0", "run_1", "in_0", "in_1", "sum_0", "sum_1"),
)
"""Columns that lead to a level."""


def _with_sequence(log: Log, table: Any, kind: MemoryKind) -> Any:  # noqa: ANN401
    """Add the sequence of each decision, and its number in it from 0."""
    import ibis

    key = log.episode_key
    if kind.across == "episode":
        table = table.mutate(sequence=table[key])
        order = [table.step]
    else:
        own = table[key].cast("string")
        who = "p" + table.person.cast("string")
        table = table.mutate(sequence=who.fill_null("e" + own))
        table = table.mutate(begins=_begins(log, table))
        order = [table.begins, sort_key(table[key]), table.step]
    window = ibis.window(group_by="sequence", order_by=order)
    table = table.mutate(number=ibis.row_number().over(window))
    if kind.kind == "tenure":
        by_episode = ibis.window(group_by="sequence", order_by=order[:-1])
        table = table.mutate(number_of_episode=ibis.dense_rank().over(by_episode))
    return table


def _before(*groups: str) -> Any:  # noqa: ANN401 (Ibis ships no types)
    """Return the window of the earlier decisions of a sequence."""
    import ibis

    return ibis.window(group_by=["sequence", *groups], order_by="number", preceding=(None, 1))


def _at_most(level: Any, kind: MemoryKind) -> Any:  # noqa: ANN401
    n = int(kind.size)
    return (level < n).ifelse(level, n).cast("int64")


def _pieces(table: Any, kind: MemoryKind, name: str) -> Any:  # noqa: ANN401
    given = table.heard.ifelse(1, 0).sum().over(_before()).fill_null(0)
    return table.mutate(**{name: _at_most(given, kind)})


def _since(table: Any, kind: MemoryKind, name: str) -> Any:  # noqa: ANN401
    table = table.mutate(last_piece=table.heard.ifelse(table.number, None).max().over(_before()))
    silent = (table.number - table.last_piece - 1).fill_null(int(kind.size))
    return table.mutate(**{name: _at_most(silent, kind)})


def _refusals(table: Any, kind: MemoryKind, name: str) -> Any:  # noqa: ANN401
    matched = table.heard & (table.action == table.advice)
    table = table.mutate(matches_before=matched.ifelse(1, 0).sum().over(_before()).fill_null(0))
    refused = table.heard & (table.action != table.advice)
    in_row = refused.ifelse(1, 0).sum().over(_before("matches_before")).fill_null(0)
    return table.mutate(**{name: _at_most(in_row, kind)})


def _dose(table: Any, kind: MemoryKind, name: str) -> Any:  # noqa: ANN401
    fade = math.log(kind.size)
    half = max(1, math.ceil(FORGOTTEN * math.log(10.0) / -fade))
    number = table.number.cast("int64")
    run = {f"run_{i}": (number + i * half) // (2 * half) for i in (0, 1)}
    place = {f"in_{i}": (number + i * half) % (2 * half) for i in (0, 1)}
    table = table.mutate(**run, **place)
    sums = {
        f"sum_{i}": table.heard.ifelse((table[f"in_{i}"].cast("float64") * -fade).exp(), 0.0)
        .sum()
        .over(_before(f"run_{i}"))
        .fill_null(0.0)
        for i in (0, 1)
    }
    table = table.mutate(**sums)
    dose = [
        table[f"sum_{i}"] * ((table[f"in_{i}"].cast("float64") - 1.0) * fade).exp() for i in (0, 1)
    ]
    longest = (table.in_0 >= table.in_1).ifelse(dose[0], dose[1])
    level = (longest / kind.spacing + 0.5 + TIE).floor().cast("int64")
    last = kind.n_levels - 1
    return table.mutate(**{name: (level < last).ifelse(level, last).cast("int64")})


_LEVELS = {"pieces": _pieces, "since": _since, "refusals": _refusals, "dose": _dose}


def _cut_bands(log: Log) -> tuple[int, ...]:
    """Return the first episodes of the second and later bands of time in the study."""
    tenure = MemoryKind("tenure", across="person")
    table = _with_sequence(log, log.table, tenure)
    counts = (
        table.group_by("number_of_episode")
        .aggregate(times=table.count())
        .order_by("number_of_episode")
        .to_pyarrow()
    )
    number, times = (counts[name].to_numpy() for name in counts.column_names)
    before = (np.cumsum(times) - times) / max(int(times.sum()), 1)
    first = np.searchsorted(before, np.arange(1, BANDS) / BANDS)
    return tuple(sorted({int(number[i]) for i in first[first < number.size]}))
