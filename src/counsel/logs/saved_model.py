"""Models on disk: load a fit, and read or fit a log as a saved model did."""

import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from counsel._files import blaming, read_npz
from counsel.errors import CounselError
from counsel.logs.assumptions import AssumptionTest
from counsel.logs.binning import Bins
from counsel.logs.check import Finding, LogCheck
from counsel.logs.column_mapping import REQUIRED, Columns
from counsel.logs.count import Tally
from counsel.logs.estimate import Sharing, estimate
from counsel.logs.fit import fit
from counsel.logs.fitted_model import TALLY, Fit, array_names
from counsel.logs.law_test import LawTest
from counsel.logs.memory_kind import MemoryKind
from counsel.logs.memory_tests import MemoryTest, MemoryTests
from counsel.logs.read import Log, read_log
from counsel.model.advice_costs import given_cost
from counsel.model.files import PROBLEM, load
from counsel.model.problem import AdviceProblem


def load_fit(path: str | os.PathLike[str]) -> Fit:
    """Load a fitted model; its estimates are computed from its counts.

    Parameters
    ----------
    path
        A file written by ``Fit.save`` or ``counsel fit``.

    Returns
    -------
    Fit
        The fit without people and trends, which a file does not hold.

    Raises
    ------
    CounselError
        If the file does not exist or is damaged, or holds a problem without counts.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from counsel import fit
    >>> from counsel.logs.example_log import alarm_log
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fit(alarm_log()).save(Path(folder) / "model.npz")
    ...     model = load_fit(Path(folder) / "model.npz")
    >>> model.check.rows, model.tally.states, model.tally.actions
    (400, ('alarm', 'quiet'), ('check', 'wait'))
    """
    header, arrays = read_npz(Path(path), PROBLEM)
    stored = header.get("fit")
    if not isinstance(stored, dict):
        raise CounselError(f"{path} is a problem without counts; fit one with `counsel fit LOG`")
    with blaming(path):
        counts: dict[str, Any] = {name: arrays[TALLY + name] for name in array_names()}
        sizes = {column.shape for column in counts.values()}
        if len(sizes) != 1:
            raise CounselError("its counts do not fit together; the file is damaged")
        contexts = tuple(stored.get("contexts", ()))
        memory = _memory_kind(stored["memory"]) if "memory" in stored else None
        levels = None
        if memory is not None:
            levels = arrays[TALLY + "level"]
            known = (levels >= 0) & (levels < memory.n_levels)
            has_mix = len(memory.mix) in (0, memory.n_levels)
            if levels.shape not in sizes or not known.all() or not has_mix:
                raise CounselError("its levels do not fit its memory; the file is damaged")
        tally = Tally(
            contexts=contexts,
            context=arrays[TALLY + "context"] if contexts else None,
            memory=memory,
            level=levels,
            states=tuple(stored["states"]),
            actions=tuple(stored["actions"]),
            horizon=int(header["horizon"]),
            by_step=bool(stored["by_step"]),
            endings_by_step=bool(stored.get("endings_by_step", False)),
            has_steps="endings_by_step" in stored or bool(stored["by_step"]),
            least=float(stored["least"]),
            other=None if stored["other"] is None else float(stored["other"]),
            **counts,
        )
        for name, column in counts.items():
            if column.dtype.kind == "f" and not (np.isfinite(column) & (column >= 0.0)).all():
                raise CounselError(f"its {name} are not counts; the file is damaged")
        sharing = Sharing(**stored["sharing"])
        problem = load(path)
        # Older files pooled lifts as if all decisions were independent.
        is_new = "assumptions" in stored
        design = None if is_new else np.ones(len(tally.actions))
        cost = given_cost(problem.cost)
        estimates = estimate(tally, sharing, cost, design, seen_by_state=is_new)
        _check_same(problem, estimates.problem)
        estimates = estimates.with_range(problem.reward_range)
        check = dict(stored["checked"])
        check["actions"] = tuple(check["actions"])
        check["findings"] = tuple(_finding(record) for record in check["findings"])
        return Fit(
            name=stored["name"],
            tally=tally,
            estimates=estimates,
            sharing=sharing,
            columns={role: tuple(own) for role, own in stored["columns"].items()},
            bins={column: tuple(cuts) for column, cuts in stored["bins"].items()},
            check=LogCheck(**check),
            notes=tuple(_finding(record) for record in stored["notes"]),
            law=None if stored["law"] is None else LawTest(**stored["law"]),
            unit=stored.get("unit", "decision"),
            assumptions=tuple(AssumptionTest(**test) for test in stored.get("assumptions", ())),
            memories=_memory_tests(stored["memories"]) if "memories" in stored else None,
        )


def holds_fit(path: str | os.PathLike[str]) -> bool:
    """Return whether a problem file is a fitted model, with counts."""
    header, _ = read_npz(Path(path), PROBLEM)
    return isinstance(header.get("fit"), dict)


def _memory_kind(record: dict[str, Any]) -> MemoryKind:
    return MemoryKind(
        **{**record, "cuts": tuple(record["cuts"]), "mix": tuple(record.get("mix", ()))}
    )


def _memory_test(record: dict[str, Any]) -> MemoryTest:
    kind, fading = _memory_kind(record["kind"]), tuple(record["fading"])
    return MemoryTest(**{**record, "kind": kind, "fading": fading})


def _memory_tests(record: dict[str, Any]) -> MemoryTests:
    choice = record["choice"]
    return MemoryTests(
        tests=tuple(_memory_test(test) for test in record["tests"]),
        choice=None if choice is None else _memory_kind(choice),
        across=record["across"],
        skipped=tuple((name, reason) for name, reason in record["skipped"]),
    )


def _check_same(stored: AdviceProblem, again: AdviceProblem) -> None:
    """Raise an error unless the problem in a file follows from its counts."""
    for what, here, there in (
        ("policy", stored.human.policy, again.human.policy),
        ("lift", stored.human.level_lift, again.human.level_lift),
        ("rewards", stored.mdp.reward, again.mdp.reward),
    ):
        if here.shape != there.shape or not np.allclose(here, there, rtol=1e-6, atol=1e-9):
            raise CounselError(f"its counts and its {what} disagree; the file is damaged")


def read_like(source: str, saved: Fit) -> Log:
    """Open a log with the columns and bins of a model.

    An optional column that the model's log had under the name of its role may be missing.
    """
    names = {
        role: own[0]
        for role, own in saved.columns.items()
        if role != "state" and (role in REQUIRED or role != own[0])
    }
    hint = "the model needs it; rename the column, or fit a model to this log"
    columns = Columns(names, saved.columns["state"], hint)
    return read_log(source, columns, Bins(dict(saved.bins)))


def only_context(log: Log, label: str) -> Log:
    """Return the episodes of a log in one context."""
    if not log.has("context"):
        raise CounselError(f"{log.name} is read without a context; the model must have one")
    return replace(log, table=log.table.filter(log.table.context == label))


def fit_like(log: Log, saved: Fit, path: str | os.PathLike[str]) -> Fit:
    """Fit the log of a saved model again, with its settings: with people and trends.

    Raises
    ------
    CounselError
        If the log is not the one that the model in ``path`` was fitted to.
    """
    for role, columns in saved.columns.items():
        if not log.has(role):
            raise CounselError(
                f"{log.name} is not the log that {path} was fitted to: it has no column "
                f"{columns[0]!r}; fit it: counsel fit {log.name} -o model.npz"
            )
    asked = _memory_of(saved)
    again = fit(
        log,
        reward_range=saved.problem.reward_range,
        by_step=saved.tally.by_step,
        **asdict(saved.sharing),
        cost=saved.costs,
        unit=saved.unit,
        memory=asked[0],
        across=asked[1],
    )
    if again.fingerprint != saved.fingerprint:
        raise CounselError(
            f"{log.name} is not the log that {path} was fitted to ({again.fingerprint} and "
            f"{saved.fingerprint}); fit it: counsel fit {log.name} -o model.npz"
        )
    return again


def _memory_of(saved: Fit) -> tuple[str, str]:
    """Return the memory of a model, as it is asked for, and what it is carried over."""
    kind = saved.tally.memory
    if saved.memories is not None:
        return "auto", saved.memories.across
    return ("none", "episode") if kind is None else (kind.name, kind.across)


def _finding(record: dict[str, Any]) -> Finding:
    return Finding(**{**record, "examples": tuple(record["examples"])})
