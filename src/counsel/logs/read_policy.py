"""Read policies from tables that people can read and edit (``plan_table.py`` writes them).

Columns: ``step``, ``state``, ``advice`` (empty for silence), and optionally ``probability``,
``pieces_left`` (each counted by its cost) and ``level`` (of the person's memory); ``state_label``
and ``advice_label``, if present, replace ``state`` and ``advice``. A state or step that the table
does not name is silent. A column ``model`` holds the fingerprint of the model that the policy was
planned on; it must be the fit's.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np

from counsel._files import check_exists
from counsel._tables import TABLES
from counsel.errors import CounselError
from counsel.logs.fitted_model import Fit
from counsel.model.files import load_policy
from counsel.model.policy import Policy


def read_policy(path: Path, fit: Fit) -> Policy:
    """Read a policy (.csv, .parquet, .npz) for the states and actions of a fit."""
    if path.suffix not in TABLES:
        return load_policy(path)
    columns = _in_context(path, _read_columns(path), fit)
    _check_model(path, columns, fit)
    problem, tally = fit.problem, fit.tally
    H, A = problem.horizon, problem.n_actions
    states = {name: i for i, name in enumerate(tally.states)}
    actions: dict[str | None, int] = {name: i for i, name in enumerate(tally.actions)}
    actions |= {None: A, "": A}
    left = columns.get("pieces_left")
    planes = 1
    if left is not None:
        planes += max((_whole(path, "pieces_left", k, i) for i, k in enumerate(left)), default=0)
        if planes > H * max(math.ceil(problem.cost.max()), 1) + 1:
            raise CounselError(f"{path} has {planes - 1} pieces left; an episode has {H} steps")
    level = columns.get("level")
    if level is not None and problem.memory is None:
        raise CounselError(
            f"{path} has a column 'level', and the model has no memory; give the model of the plan "
            "(--model)"
        )
    M = 1 if level is None else problem.n_levels
    chance = np.zeros((planes, M, H, problem.n_states, A + 1))
    for i, (step, state, advice) in enumerate(
        zip(columns["step"], columns["state"], columns["advice"], strict=True)
    ):
        h = _whole(path, "step", step, i)
        if h >= H:
            raise CounselError(f"{path}, row {i + 1}: step is {h}; the log has {H} steps")
        if state not in states:
            raise CounselError(
                f"{path}, row {i + 1}: the log has no state {state!r}; it has "
                f"{_first_few(tally.states)}"
            )
        if advice not in actions:
            raise CounselError(
                f"{path}, row {i + 1}: the log has no action {advice!r}; it has "
                f"{_first_few(tally.actions)}, or leave it empty for silence"
            )
        k = 0 if left is None else _whole(path, "pieces_left", left[i], i)
        m = 0 if level is None else _whole(path, "level", level[i], i)
        if m >= M:
            raise CounselError(
                f"{path}, row {i + 1}: level is {m}; the memory has the levels 0 to {M - 1}"
            )
        chance[k, m, h, states[state], actions[advice]] += _chance(path, columns, i)
    total = chance.sum(axis=-1)
    chance[..., A] += np.where(total == 0.0, 1.0, 0.0)
    off = np.argwhere(np.abs(chance.sum(axis=-1) - 1.0) > 1e-9)
    if len(off):
        k, m, h, s = off[0]
        plane = "" if left is None else f", pieces_left {k}"
        plane += "" if level is None else f", level {m}"
        raise CounselError(
            f"{path}: probabilities of step {h}, state {tally.states[s]!r}{plane} sum to "
            f"{chance.sum(axis=-1)[k, m, h, s]:g}; they must sum to 1"
        )
    if left is not None and ((chance > 0.0) & (chance < 1.0)).any():
        raise CounselError(f"{path} has both pieces_left and probabilities below 1; use only one")
    table = chance if level is not None else chance[:, 0]
    levels = None if level is None else M
    return Policy.from_probabilities(table[0] if left is None else table, levels=levels)


def _in_context(path: Path, columns: dict[str, list[Any]], fit: Fit) -> dict[str, list[Any]]:
    """Return the rows of the fit's context."""
    if "context" not in columns:
        return columns
    known = sorted({str(name) for name in columns["context"]})
    shown = _first_few(tuple(known))
    if fit.context is None:
        raise CounselError(f"{path} is for the contexts {shown}; say which with --in")
    if fit.context not in known:
        raise CounselError(
            f"{path} is for the contexts {shown}, not for {fit.context!r}; make a plan for it with "
            f"`counsel plan --in {fit.context}`"
        )
    kept = [name == fit.context for name in columns["context"]]
    return {
        name: [value for value, keep in zip(column, kept, strict=True) if keep]
        for name, column in columns.items()
    }


def _check_model(path: Path, columns: dict[str, list[Any]], fit: Fit) -> None:
    """Raise an error if the policy was planned on another model."""
    others = {name for name in columns.get("model", []) if name is not None} - {fit.fingerprint}
    if others:
        raise CounselError(
            f"{path} was planned on the model {min(map(str, others))}, and this is the model "
            f"{fit.fingerprint}; give the model of the plan (--model), or remove the column 'model'"
        )


def _read_columns(path: Path) -> dict[str, list[Any]]:
    """Return the columns of a table as lists."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    check_exists(path)
    try:
        if path.suffix == ".parquet":
            table = pyarrow.parquet.read_table(path)
        else:
            labels = ("state", "advice", "state_label", "advice_label", "model", "context")
            as_text = pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(labels, pa.string()),
                strings_can_be_null=True,
                null_values=[""],
            )
            table = pyarrow.csv.read_csv(path, convert_options=as_text)
    except (pa.ArrowException, OSError) as fault:
        reason = " ".join(str(fault).split())
        raise CounselError(f"{path} cannot be read: {reason[:200]}") from None
    repeated = {name for name in table.column_names if table.column_names.count(name) > 1}
    if repeated:
        raise CounselError(f"{path} has two columns called {min(repeated)!r}; rename one")
    columns = {name: table[name].to_pylist() for name in table.column_names}
    for name in ("state", "advice"):
        label = f"{name}_label" if f"{name}_label" in columns else name
        if label in columns or not table.num_rows:
            columns[name] = [_stripped(value) for value in columns.get(label, [])]
    for name in ("state", "advice", "step"):
        if name not in columns and name == "step":
            raise CounselError(
                f"{path} has no column 'step', as a plan for work without end, which a log of "
                "episodes cannot check; give a plan that `counsel plan` made with a horizon"
            )
        if name not in columns:
            raise CounselError(
                f"{path} has no column {name!r}; a policy has step, state and advice "
                "(`counsel plan` writes one)"
            )
    return columns


def _first_few(names: tuple[str, ...]) -> str:
    return ", ".join(names[:8]) + (", …" if len(names) > 8 else "")


def _stripped(value: object) -> object:
    return value.strip() or None if isinstance(value, str) else value


def _whole(path: Path, name: str, value: object, row: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise CounselError(f"{path}, row {row + 1}: {name} is {value!r}; give a whole number")
    return value


def _chance(path: Path, columns: dict[str, list[Any]], row: int) -> float:
    if "probability" not in columns:
        return 1.0
    value = columns["probability"][row]
    if not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
        raise CounselError(f"{path}, row {row + 1}: probability is {value!r}; give 0 to 1")
    return float(value)
