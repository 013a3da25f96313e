"""One run into one folder: records, policy, picture, and a manifest that says what they are.

A run that is stopped leaves what it has and a learner to go on with; ``resume`` then goes on as if
nothing had happened. What is long is written now and then, so that a crash costs a minute at most.

====================  =============================================================
``record.csv``        one row per record: episode, value_gap, regret, advice_count, seconds
``regret.png``        the regret and the value gap
``policy.csv``        the learnt policy, for people; ``policy.npz`` for programs
``learner.npz``       the learner, to go on with
``manifest.json``     settings, seed, versions, and the result
====================  =============================================================
"""

import csv
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from counsel._arrays import Ints
from counsel._files import blaming, make_folder
from counsel._tables import Column, need_pyarrow, write_tables
from counsel.drawing.canvas import save
from counsel.drawing.regret import draw_learning
from counsel.errors import CounselError
from counsel.learning.adherence_learner import AdherenceLearner
from counsel.learning.files import Resumable, resume, suspend
from counsel.learning.learn import Record, learn
from counsel.learning.learner import Learner
from counsel.learning.structured import Structured
from counsel.model.files import save_policy
from counsel.model.problem import AdviceProblem
from counsel.planning.evaluate import evaluate
from counsel.planning.solve import solve
from counsel.runs.manifest import (
    MANIFEST,
    problem_fingerprint,
    read_manifest,
    spec_in,
    write_manifest,
)
from counsel.runs.spec import Spec
from counsel.simulate.simulator import Simulator

RECORDS, MOST = 1000, 20_000
"""About how many records a run has, and the most episodes from one to the next."""

SAVE_EVERY = 60.0
"""Seconds between two savings of a long run."""

RECORD, LEARNER = "record.csv", "learner.npz"
OLD_RECORD = "record.parquet"
"""Where the first runs of 0.1 have their records; once resumed they have ``record.csv``."""

PICTURE, POLICY, POLICY_TABLE = "regret.png", "policy.npz", "policy.csv"
WRITTEN = (PICTURE, POLICY_TABLE, POLICY, RECORD)


@dataclass(frozen=True, slots=True)
class Result:
    """How a run went.

    Attributes
    ----------
    records
        How the learner was doing, from the beginning.
    best, best_advice_count
        The value of the best policy (within the budget or less the penalty) and its expected pieces
        of advice.
    value, advice_count
        The same of the policy that was learnt.
    heard
        For each advice how often it was matched and given, where that tells something about
        adherence; None where advice of several kinds is counted together, or none is.
    finished
        Whether all episodes were played or the stopping rule has fired; else it was stopped.
    stopping_rule_fired
        Whether the stopping rule has fired.
    files
        What was written.
    """

    records: tuple[Record, ...]
    best: float
    best_advice_count: float
    value: float
    advice_count: float
    heard: tuple[Ints, Ints] | None
    finished: bool
    stopping_rule_fired: bool
    files: tuple[Path, ...] = ()

    def told(self) -> dict[str, Any]:
        """Return all but records and files, for JSON."""
        heard = None
        if self.heard is not None:
            heard = {"matched": self.heard[0].tolist(), "given": self.heard[1].tolist()}
        names = [f.name for f in fields(self) if f.name not in ("records", "files", "heard")]
        last = asdict(self.records[-1])
        return {name: getattr(self, name) for name in names} | {"heard": heard, "last": last}


def run(  # noqa: PLR0913 (what, where, whether to go on, and who is told)
    spec: Spec,
    problem: AdviceProblem,
    *,
    folder: Path | None = None,
    go_on: bool = False,
    show: Callable[[Record], None] = lambda record: None,
    say: Callable[[str], None] = lambda text: None,
) -> Result:
    """Run a learner and write what came of it.

    Parameters
    ----------
    spec
        The settings.
    problem
        The world and the person that ``spec.world`` names.
    folder
        Where to write; nothing is written without.
    go_on
        Go on with the run in the folder, which must have the same settings but for the episodes.
    show, say
        Told every record, and what happens on the way.
    """
    learner, rng = spec.build(problem)
    records: list[Record] = []
    if go_on and folder is None:
        raise CounselError("there is no folder to go on from; give one with -o")
    if folder is not None and go_on:
        rng, records = _taken_up(folder, spec, problem, learner)
    last = records[-1] if records else None
    left = spec.episodes - (0 if last is None else last.episode)
    if left < 0:
        raise CounselError(
            f"{folder} holds {spec.episodes - left} episodes already, more than {spec.episodes}"
        )
    if folder is not None:
        _prepare(folder, spec, problem, go_on=go_on)
    fired, stopped, saved = _has_fired(learner), False, time.monotonic()
    with _asked_to_stop(say) as asked:
        if left > 0 and not fired:
            for record in learn(
                learner,
                Simulator(problem),
                episodes=left,
                every=spec.schedule,
                records=max(RECORDS, spec.episodes // MOST),
                rng=rng,
                after=last,
            ):
                records.append(record)
                show(record)
                fired = _has_fired(learner)
                stopped = asked() and record.episode < spec.episodes
                if fired or stopped:
                    break
                if folder is not None and time.monotonic() - saved > SAVE_EVERY:
                    _put_aside(folder, learner, rng, records)
                    saved = time.monotonic()
        if folder is not None:
            _put_aside(folder, learner, rng, records)
        plan = solve(problem, penalty=spec.penalty, budget=spec.budget)
        worth = evaluate(problem, learner.policy)
        result = Result(
            records=tuple(records),
            best=plan.penalised_value,
            best_advice_count=plan.advice_count,
            value=worth.value - spec.penalty_or_zero * worth.advice_count,
            advice_count=worth.advice_count,
            heard=heard(learner),
            finished=not stopped,
            stopping_rule_fired=fired,
        )
        if folder is not None:
            result = _written(folder, spec, problem, learner, result, say)
    return result


def _prepare(folder: Path, spec: Spec, problem: AdviceProblem, *, go_on: bool) -> None:
    """Make the folder, and refuse to write over another run in it."""
    make_folder(folder)
    if not go_on and (folder / MANIFEST).exists():
        there = read_manifest(folder)["settings"]
        for field in fields(spec):
            if getattr(spec, field.name) != there[field.name]:
                raise CounselError(
                    f"{folder} holds a run with {field.name} {there[field.name]}, not "
                    f"{getattr(spec, field.name)}; choose another folder, or --resume it"
                )
    elif not go_on:
        found = [name for name in (*WRITTEN, LEARNER) if (folder / name).exists()]
        if found:
            raise CounselError(f"{folder / found[0]} is there already; choose another folder")
    write_manifest(folder, spec, problem, {"finished": False})


def _taken_up(
    folder: Path, spec: Spec, problem: AdviceProblem, learner: Learner
) -> tuple[Generator, list[Record]]:
    """Put the learner back where it was, if this is the run in the folder."""
    there = spec_in(folder)
    for field in fields(spec):
        here, before = getattr(spec, field.name), getattr(there, field.name)
        longer = field.name == "episodes" and not spec.planned
        if here != before and not longer:
            raise CounselError(
                f"{folder} holds a run with {field.name} {before}, not {here}; "
                "it goes on only with the same"
            )
    if read_manifest(folder)["problem"] != problem_fingerprint(problem):
        raise CounselError(f"{folder} holds a run of another {spec.world}: it has changed since")
    if not (folder / LEARNER).exists():
        raise CounselError(f"{folder} holds no run to go on with: it was stopped too early")
    if not isinstance(learner, Resumable):
        raise CounselError("a learner without state and restore cannot be gone on with")
    rng, last = resume(learner, folder / LEARNER)
    path = folder / (OLD_RECORD if (folder / OLD_RECORD).exists() else RECORD)
    with blaming(path):
        try:
            records = _read_records(path)
        except (OSError, ValueError, TypeError, KeyError, csv.Error):
            raise CounselError("it cannot be read; start anew in another folder") from None
        if not all(math.isfinite(r.regret) and math.isfinite(r.value_gap) for r in records):
            raise CounselError("it holds numbers that are none")
        return rng, [r for r in records if r.episode < last.episode] + [last]


def _read_records(path: Path) -> list[Record]:
    """Read what ``_put_aside`` wrote."""
    names = [field.name for field in fields(Record)]
    if path.suffix == ".parquet":
        need_pyarrow()
        import pyarrow.parquet as pq

        return [Record(**row) for row in pq.read_table(path, columns=names).to_pylist()]
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, strict=True)
        if reader.fieldnames != names:
            raise ValueError(reader.fieldnames)
        return [
            Record(
                episode=int(row["episode"]),
                value_gap=float(row["value_gap"]),
                regret=float(row["regret"]),
                advice_count=float(row["advice_count"]),
                seconds=float(row["seconds"]),
            )
            for row in reader
        ]


def _put_aside(folder: Path, learner: Learner, rng: Generator, records: list[Record]) -> None:
    """Write the records and the learner; the learner last, as it says where to go on from."""
    names = [field.name for field in fields(Record)]
    columns = {name: Column(np.array([getattr(r, name) for r in records])) for name in names}
    write_tables(folder / RECORD, [columns])
    (folder / OLD_RECORD).unlink(missing_ok=True)
    if isinstance(learner, Resumable):
        suspend(learner, folder / LEARNER, rng=rng, record=records[-1])


def _written(  # noqa: PLR0913 (all there is)
    folder: Path,
    spec: Spec,
    problem: AdviceProblem,
    learner: Learner,
    result: Result,
    say: Callable[[str], None],
) -> Result:
    """Write policy, picture and, last, the manifest; return the result with the files."""
    save_policy(learner.policy, folder / POLICY, problem=problem)
    save_policy(learner.policy, folder / POLICY_TABLE, problem=problem)
    if find_spec("matplotlib") is None:
        say(f"{PICTURE} is left out: pictures need matplotlib (pip install 'counsel[draw]')")
    else:
        save(draw_learning(result.records, title=spec.title), folder / PICTURE)
    write_manifest(folder, spec, problem, result.told())
    names = (*WRITTEN, LEARNER, MANIFEST)
    return replace(result, files=tuple(folder / n for n in names if (folder / n).exists()))


def heard(learner: Learner) -> tuple[Ints, Ints] | None:
    """Return how often each advice was matched and given; None where kinds are mixed."""
    if isinstance(learner, AdherenceLearner):
        group_lsa, matched, given = learner.matches.groups.bin_lsa, learner.matched, learner.given
    elif isinstance(learner, Structured):
        group_lsa, matched, given = learner.groups, learner.matched, learner.given
    else:
        return None
    A = group_lsa.shape[2]
    of_advice = [np.unique(group_lsa[..., a][group_lsa[..., a] >= 0]) for a in range(A)]
    if np.unique(np.concatenate(of_advice), return_counts=True)[1].max(initial=1) > 1:
        return None
    return (
        np.array([matched[groups].sum() for groups in of_advice]),
        np.array([given[groups].sum() for groups in of_advice]),
    )


def _has_fired(learner: Learner) -> bool:
    return bool(getattr(learner, "done", False))


@contextmanager
def _asked_to_stop(say: Callable[[str], None]) -> Iterator[Callable[[], bool]]:
    """Note Ctrl-C instead of breaking off in the middle; the second time it breaks off."""
    told: list[int] = []

    def note(number: int, frame: object) -> None:
        told.append(number)
        if len(told) > 1:
            raise KeyboardInterrupt
        say("stopping at the next record; once more stops at once and loses what is not saved")

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    names = [getattr(signal, n) for n in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, n)]
    before = {name: signal.signal(name, note) for name in names}
    try:
        yield lambda: bool(told)
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
