"""Read a table of people with their state now, for ``counsel rank``."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from counsel._arrays import brief, index_in
from counsel._files import check_exists
from counsel._tables import TABLES, need_pyarrow
from counsel.errors import CounselError
from counsel.model.problem import AdviceProblem
from counsel.planning.rank import Cell

COLUMNS = ("person", "state", "step", "level")

MOST_DIGITS = 40
"""Longer numbers are no numbers of a step or a state, and Python refuses very long ones."""


def read_people(
    path: Path, problem: AdviceProblem, step: int | None
) -> tuple[list[str], list[Cell]]:
    """Return the names of people and their cells; ``step`` is that of everybody if given."""
    check_exists(path)
    if path.suffix not in TABLES:
        raise CounselError(f"{path} must end in {' or '.join(TABLES)}")
    names, rows = _read_parquet(path) if path.suffix == ".parquet" else _read_csv(path)
    _check_columns(path, names, problem, step)
    people, cells, row_of = list[str](), list[Cell](), dict[str, int]()
    for number, row in enumerate(rows, start=1):
        where = f"{path}, row {number}"
        values = dict(zip(names, row, strict=True))
        person = str(values["person"])
        for name in names:
            if values[name] in (None, ""):
                raise CounselError(f"{where}: {name} is empty; give a value")
        if person in row_of:
            raise CounselError(
                f"{where}: the person {person!r} is also in row {row_of[person]}; list each once"
            )
        row_of[person] = number
        try:
            cells.append(_cell(values, problem, step))
        except CounselError as fault:
            raise CounselError(f"{where}: {fault}") from None
        people.append(person)
    if not people:
        raise CounselError(f"{path} has no rows; list at least one person")
    return people, cells


def _check_columns(
    path: Path, names: Sequence[str], problem: AdviceProblem, step: int | None
) -> None:
    """Raise unless the table has exactly the columns that are needed."""
    is_endless = problem.discount is not None
    if is_endless and step is not None:
        raise CounselError(
            f"--step is {step}, but the work has no end, so every step is alike; leave it out"
        )
    if step is not None:
        index_in("--step", step, problem.horizon)
    needed = {"person", "state", *(["step"] if step is None and not is_endless else [])}
    needed |= {"level"} if problem.memory else set()
    for name in names:
        if names.count(name) > 1:
            raise CounselError(f"{path} has two columns called {name!r}; rename one")
        if name in needed:
            continue
        if name == "step" and is_endless:
            raise CounselError(
                f"{path} has a column 'step', but the work has no end, so every step is alike; "
                "leave it out"
            )
        if name == "step":
            raise CounselError(f"{path} has a column 'step' and --step is {step}; use only one")
        if name == "level":
            raise CounselError(f"{path} has a column 'level', but the person has no memory")
        known = ", ".join(column for column in COLUMNS if column in needed)
        raise CounselError(f"{path} has an unknown column {name!r}; its columns are {known}")
    for name in COLUMNS:
        if name in needed and name not in names:
            hint = {
                "step": "; add it, or give --step for everybody",
                "level": "; the person has a memory, so give the level that each is on",
            }.get(name, "")
            raise CounselError(f"{path} has no column {name!r}{hint}")


def _cell(values: dict[str, Any], problem: AdviceProblem, step: int | None) -> Cell:
    h = step or 0
    if step is None and problem.discount is None:
        h = index_in("step", _whole("step", values["step"]), problem.horizon)
    labels, text = problem.mdp.state_labels or (), str(values["state"])
    if text in labels:
        s = labels.index(text)
    elif text.isdecimal():
        s = index_in("state", _whole("state", text), problem.n_states)
    else:
        some = ", ".join(labels[:8]) + (", …" if len(labels) > 8 else "")
        raise CounselError(f"state is {text!r}; give one of {some}" if labels else _not_whole(text))
    m = problem.memory.number_of(str(values["level"])) if problem.memory else 0
    return Cell(h, s, m)


def _not_whole(text: str) -> str:
    return f"state is {text!r}; give a whole number"


def _whole(name: str, value: object) -> int:
    text = str(value).strip()
    if not text.removeprefix("-").isdecimal() or len(text) > MOST_DIGITS:
        raise CounselError(f"{name} is {brief(text)}; give a whole number")
    return int(text)


def _read_csv(path: Path) -> tuple[list[str], list[list[Any]]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            rows = [row for row in csv.reader(stream, strict=True) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as fault:
        raise CounselError(f"{path} cannot be read: {fault}") from None
    if not rows:
        raise CounselError(f"{path} is empty")
    names, *entries = ([field.strip() for field in row] for row in rows)
    for number, row in enumerate(entries, start=1):
        if len(row) != len(names):
            raise CounselError(
                f"{path}, row {number}: there are {len(row)} values for {len(names)} columns"
            )
    return names, entries


def _read_parquet(path: Path) -> tuple[list[str], list[list[Any]]]:
    need_pyarrow()
    import pyarrow as pa
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(path)
    except (pa.ArrowException, OSError) as fault:
        reason = " ".join(str(fault).split())
        raise CounselError(f"{path} cannot be read: {reason[:200]}") from None
    columns = [column.to_pylist() for column in table.columns]
    return list(table.column_names), [list(row) for row in zip(*columns, strict=True)]
