"""One run into one folder: records, policy, picture, and a manifest that says what they are.

A run that is stopped leaves what it has and a learner to go on with; ``resume`` then goes on as if
nothing had happened. What is long is written now and then, so that a crash costs a minute at most.

====================  =============================================================
``record.parquet``    one row a record: episode, value_gap, regret, advice_count, seconds
``regret.png``        the regret and the value gap
``policy.csv``        the learnt policy, for people; ``policy.npz`` for programs
``learner.npz``       the learner, to go on with
``manifest.json``     settings, seed, versions, and the result
====================  =============================================================
"""

import json
import platform
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.random import Generator

from counsel._arrays import Ints
from counsel.errors import CounselError
from counsel.experiments.spec import Spec
from counsel.learning.adherence import AdherenceLearner
from counsel.learning.exploring import Exploring
from counsel.learning.files import Resumable, resume, suspend
from counsel.learning.learn import Learner, Record, learn
from counsel.learning.structured import Structured
from counsel.model.files import save_policy, write_tables, write_text
from counsel.model.problem import AdviceProblem
from counsel.planning.occupancy import evaluate
from counsel.planning.solve import solve
from counsel.report.learning import draw_learning
from counsel.simulate.simulator import Simulator
from counsel.worlds.draw import save

RECORDS = 1000
"""About how many records a run has."""

SAVE_EVERY = 60.0
"""Seconds between two savings of a long run."""

MANIFEST, RECORD, LEARNER = "manifest.json", "record.parquet", "learner.npz"
PICTURE, POLICY, POLICY_TABLE = "regret.png", "policy.npz", "policy.csv"
PACKAGES = ("numpy", "scipy", "numba", "pyarrow")


@dataclass(frozen=True, slots=True)
class Result:
    """How a run went.

    Attributes
    ----------
    records
        How the learner was doing, from the beginning.
    best, best_count
        The value of the best policy (within the budget or less the penalty) and its expected pieces
        of advice.
    value, advice_count
        The same of the policy that was learnt.
    heard
        For each advice how often it was matched and given, where that tells something about
        adherence; None where advice of several kinds is counted together, or none is.
    finished
        Whether all episodes were played or the stopping rule has fired; else it was stopped.
    fired
        Whether the stopping rule has fired.
    seconds
        Wall time, with what came before.
    files
        What was written.
    """

    records: list[Record]
    best: float
    best_count: float
    value: float
    advice_count: float
    heard: tuple[Ints, Ints] | None
    finished: bool
    fired: bool
    seconds: float
    files: list[Path]


def run(
    spec: Spec,
    problem: AdviceProblem,
    *,
    folder: Path | None = None,
    go_on: bool = False,
    show: Callable[[Record], None] = lambda record: None,
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
    show
        Told every record.
    """
    learner, rng = spec.build(problem)
    records: list[Record] = []
    if folder is not None:
        _prepare(folder, spec, go_on=go_on)
        if go_on:
            rng, records = _taken_up(folder, learner)
    elif go_on:
        raise CounselError("there is no folder to go on from")
    last = records[-1] if records else None
    left = spec.episodes - (0 if last is None else last.episode)
    fired, stopped, saved = _has_fired(learner), False, time.monotonic()
    with _asked_to_stop() as asked:
        if left > 0 and not fired:
            for record in learn(
                learner,
                Simulator(problem),
                episodes=left,
                every=spec.schedule,
                records=RECORDS,
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
        result = _result(spec, problem, learner, records, finished=not stopped, fired=fired)
        if folder is not None:
            _put_aside(folder, learner, rng, records)
            _write(folder, spec, problem, learner, result)
    return result


def _prepare(folder: Path, spec: Spec, *, go_on: bool) -> None:
    """Make the folder; refuse to mix two runs in it."""
    if go_on and not (folder / MANIFEST).exists():
        raise CounselError(f"{folder} holds no run to go on with")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise CounselError(f"cannot make the folder {folder}: {fault.strerror}") from None
    if not (folder / MANIFEST).exists():
        write_text(folder / MANIFEST, _manifest(spec, {"finished": False}))
        return
    try:
        kept = json.loads((folder / MANIFEST).read_text())["settings"]
    except (OSError, ValueError, KeyError, TypeError):
        raise CounselError(
            f"{folder / MANIFEST} is no manifest of a run; choose another folder"
        ) from None
    for field in fields(spec):
        if field.name == "episodes":
            continue
        here, there = getattr(spec, field.name), kept.get(field.name)
        if here != there:
            raise CounselError(
                f"{folder} holds a run with {field.name} {there}, not {here}; choose another folder"
            )


def _taken_up(folder: Path, learner: Learner) -> tuple[Generator, list[Record]]:
    """Put the learner back where it was."""
    if not (folder / LEARNER).exists():
        raise CounselError(f"{folder} holds no run to go on with: it was stopped too early")
    if not isinstance(learner, Resumable):
        raise CounselError("this learner cannot be gone on with")
    rng, last = resume(learner, folder / LEARNER)
    try:
        rows = pq.read_table(folder / RECORD).to_pylist()
    except (OSError, pa.ArrowException):
        raise CounselError(f"{folder / RECORD} cannot be read; start anew") from None
    records = [Record(**row) for row in rows]
    return rng, [r for r in records if r.episode < last.episode] + [last]


def _put_aside(folder: Path, learner: Learner, rng: Generator, records: list[Record]) -> None:
    """Write the records and the learner; the learner last, as it says where to go on from."""
    if not records:
        return
    names = [field.name for field in fields(Record)]
    columns = {name: [getattr(record, name) for record in records] for name in names}
    write_tables(folder / RECORD, [pa.table(columns)])
    if isinstance(learner, Resumable):
        suspend(learner, folder / LEARNER, rng=rng, record=records[-1])


def _result(  # noqa: PLR0913 (all there is to judge)
    spec: Spec,
    problem: AdviceProblem,
    learner: Learner,
    records: list[Record],
    *,
    finished: bool,
    fired: bool,
) -> Result:
    """Judge what was learnt."""
    plan = solve(problem, penalty=spec.penalty, budget=spec.budget)
    worth = evaluate(problem, learner.policy)
    return Result(
        records=records,
        best=plan.penalised_value,
        best_count=plan.advice_count,
        value=worth.value - (spec.penalty or 0.0) * worth.advice_count,
        advice_count=worth.advice_count,
        heard=heard(learner),
        finished=finished,
        fired=fired,
        seconds=records[-1].seconds if records else 0.0,
        files=[],
    )


def _write(
    folder: Path, spec: Spec, problem: AdviceProblem, learner: Learner, result: Result
) -> None:
    """Write policy, picture and, last, the manifest."""
    save_policy(learner.policy, folder / POLICY, problem=problem)
    save_policy(learner.policy, folder / POLICY_TABLE, problem=problem)
    save(draw_learning(result.records, title=spec.title), folder / PICTURE)
    told = asdict(result)
    del told["records"], told["files"]
    if result.heard is not None:
        told["heard"] = {"matched": result.heard[0].tolist(), "given": result.heard[1].tolist()}
    told["last"] = asdict(result.records[-1])
    write_text(folder / MANIFEST, _manifest(spec, told))
    names = (PICTURE, POLICY_TABLE, POLICY, RECORD, LEARNER, MANIFEST)
    result.files.extend(folder / name for name in names if (folder / name).exists())


def _manifest(spec: Spec, result: dict[str, Any]) -> str:
    versions = {name: metadata.version(name) for name in ("counsel", *PACKAGES)}
    told = {
        "kind": "counsel-run",
        "format": 1,
        "settings": spec.settings(),
        "versions": versions | {"python": platform.python_version()},
        "result": result,
    }
    return json.dumps(told, indent=2, ensure_ascii=False) + "\n"


def heard(learner: Learner) -> tuple[Ints, Ints] | None:
    """Return how often each advice was matched and given; None where kinds are mixed."""
    if isinstance(learner, AdherenceLearner):
        group_lsa, matched, given = learner.known.groups.bin_lsa, learner.matched, learner.given
    elif isinstance(learner, Structured):
        group_lsa, (matched, given) = learner.groups, learner.heed
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
    return isinstance(learner, Exploring) and learner.done


@contextmanager
def _asked_to_stop() -> Iterator[Callable[[], bool]]:
    """Note Ctrl-C instead of breaking off in the middle; the second time it breaks off."""
    told: list[int] = []

    def note(number: int, frame: object) -> None:
        told.append(number)
        if len(told) > 1:
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = {name: signal.signal(name, note) for name in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(told)
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
