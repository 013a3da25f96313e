"""Run one learner and write a folder: records, policy, picture, and a manifest of all.

A run that is stopped leaves its records and its learner; ``run(..., resume=True)`` then continues
as if it had never stopped. A long run is saved every minute, so a crash costs at most a minute.
The files of the folder are described in docs/reference/files.md.
"""

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
from counsel._files import make_folder
from counsel.drawing.canvas import save
from counsel.drawing.regret import draw_learning
from counsel.errors import CounselError
from counsel.learning.adherence_learner import AdherenceLearner
from counsel.learning.charges import net_value
from counsel.learning.files import resume as restore
from counsel.learning.files import suspend
from counsel.learning.learn import Record, learn
from counsel.learning.learner import Learner, Resumable
from counsel.learning.structured import Structured
from counsel.model.files import save_policy
from counsel.model.problem import AdviceProblem
from counsel.planning.evaluate import evaluate
from counsel.planning.solve import solve
from counsel.runs.manifest import (
    MANIFEST,
    problem_fingerprint,
    read_manifest,
    read_spec,
    write_manifest,
)
from counsel.runs.records import RECORD, read_records, write_records
from counsel.runs.spec import Spec
from counsel.simulate.simulator import Simulator

RECORDS, LONGEST_BLOCK = 1000, 20_000
"""About how many records a run has, and the largest number of episodes between two records."""

SAVE_EVERY = 60.0  # seconds between two saves of a long run
LEARNER, PICTURE, POLICY, POLICY_TABLE = "learner.npz", "regret.png", "policy.npz", "policy.csv"
FILES = (PICTURE, POLICY_TABLE, POLICY, RECORD, LEARNER)  # every file of a run but its manifest


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a run.

    ``best`` and ``value`` are those of the best and of the learnt policy, within the budget or less
    the penalty times the cost of advice. ``matches`` holds how often each advice was matched and
    given; it is None if the learner does not count each advice by itself. A run that is not
    ``finished`` was stopped.
    """

    records: tuple[Record, ...]
    best: float
    best_advice_count: float
    best_advice_cost: float
    value: float
    advice_count: float
    advice_cost: float
    matches: tuple[Ints, Ints] | None
    finished: bool
    stopping_rule_fired: bool
    files: tuple[Path, ...] = ()

    def record(self) -> dict[str, Any]:
        """Return all but records and files, for JSON."""
        names = [f.name for f in fields(self) if f.name not in ("records", "files", "matches")]
        matches = None
        if self.matches is not None:
            matches = {"matched": self.matches[0].tolist(), "given": self.matches[1].tolist()}
        last = asdict(self.records[-1])
        return {name: getattr(self, name) for name in names} | {"heard": matches, "last": last}


def run(  # noqa: PLR0913 (six, two of which show progress)
    spec: Spec,
    problem: AdviceProblem,
    *,
    folder: Path | None = None,
    resume: bool = False,
    show: Callable[[Record], None] = lambda record: None,
    say: Callable[[str], None] = lambda text: None,
) -> Result:
    """Run a learner on the problem that ``spec.world`` names, and write the results to a folder.

    ``resume`` continues the run in the folder; its settings must be the same, but for more
    episodes. ``show`` is called with every record, ``say`` with messages about the run.
    """
    if spec.random_rewards:
        problem = problem.with_random_rewards()
    learner, rng = spec.build(problem)
    records: list[Record] = []
    if resume:
        if folder is None:
            raise CounselError("there is no folder to resume from; give one with -o")
        rng, records = _restore(folder, spec, problem, learner)
    last = records[-1] if records else None
    left = spec.episodes - (0 if last is None else last.episode)
    if left < 0:
        raise CounselError(
            f"{folder} already holds {spec.episodes - left} episodes, more than {spec.episodes}"
        )
    if folder is not None:
        _prepare(folder, spec, problem, resume=resume)
    fired, stopped, saved = _has_fired(learner), False, time.monotonic()
    with _catch_signals(say) as is_stopping:
        if left > 0 and not fired:
            for record in learn(
                learner,
                Simulator(problem),
                episodes=left,
                every=spec.schedule,
                records=max(RECORDS, spec.episodes // LONGEST_BLOCK),
                rng=rng,
                after=last,
            ):
                records.append(record)
                show(record)
                fired = _has_fired(learner)
                stopped = is_stopping() and record.episode < spec.episodes
                if fired or stopped:
                    break
                if folder is not None and time.monotonic() - saved > SAVE_EVERY:
                    _save_progress(folder, learner, rng, records)
                    saved = time.monotonic()
        if folder is not None:
            _save_progress(folder, learner, rng, records)
        plan = solve(problem, penalty=spec.penalty, budget=spec.budget)
        evaluation = evaluate(problem, learner.policy)
        result = Result(
            records=tuple(records),
            best=plan.penalised_value,
            best_advice_count=plan.advice_count,
            best_advice_cost=plan.advice_cost,
            value=net_value(evaluation, spec.penalty_or_zero),
            advice_count=evaluation.advice_count,
            advice_cost=evaluation.advice_cost,
            matches=matches_by_advice(learner),
            finished=not stopped,
            stopping_rule_fired=fired,
        )
        if folder is not None:
            for name in (POLICY, POLICY_TABLE):
                save_policy(learner.policy, folder / name, problem=problem)
            if find_spec("matplotlib") is None:
                say(f"{PICTURE} is left out: it needs matplotlib (pip install 'counsel[draw]')")
            else:
                save(draw_learning(records, title=spec.title), folder / PICTURE)
            write_manifest(folder, spec, problem, result.record())
            paths = [folder / name for name in (*FILES, MANIFEST)]
            result = replace(result, files=tuple(path for path in paths if path.exists()))
    return result


def _prepare(folder: Path, spec: Spec, problem: AdviceProblem, *, resume: bool) -> None:
    """Create the folder, and refuse to overwrite another run in it."""
    make_folder(folder)
    if not resume and (folder / MANIFEST).exists():
        _check_same(folder, spec, "choose another folder, or --resume it")
    elif not resume:
        for path in (folder / name for name in FILES):
            if path.exists():
                raise CounselError(f"{path} already exists; choose another folder")
    write_manifest(folder, spec, problem, {"finished": False})


def _check_same(folder: Path, spec: Spec, remedy: str, *, or_extended: bool = False) -> None:
    """Raise an error if the run in the folder has other settings, apart from the episodes."""
    before = read_manifest(folder)["settings"]
    for name, value in spec.settings().items():
        if value != before[name] and not (or_extended and name == "episodes"):
            raise CounselError(
                f"{folder} holds a run with {name} {before[name]}, not {value}; {remedy}"
            )


def _restore(
    folder: Path, spec: Spec, problem: AdviceProblem, learner: Learner
) -> tuple[Generator, list[Record]]:
    """Restore the learner of the run in the folder; return its generator and its records."""
    read_spec(folder)  # raises an error if the settings are out of range
    _check_same(folder, spec, "resume it with the same settings", or_extended=not spec.fixed_length)
    if read_manifest(folder)["problem"] != problem_fingerprint(problem):
        raise CounselError(f"{folder} holds a run of another {spec.world}: it has changed since")
    if not (folder / LEARNER).exists():
        raise CounselError(f"{folder} contains no run to resume: it was stopped too early")
    if not isinstance(learner, Resumable):
        raise CounselError("cannot resume: the learner has no state() and restore()")
    rng, last = restore(learner, folder / LEARNER)
    return rng, [r for r in read_records(folder) if r.episode < last.episode] + [last]


def _save_progress(folder: Path, learner: Learner, rng: Generator, records: list[Record]) -> None:
    """Write the records, then the learner, which determines where a run resumes."""
    write_records(folder, records)
    if isinstance(learner, Resumable):
        suspend(learner, folder / LEARNER, rng=rng, record=records[-1])


def matches_by_advice(learner: Learner) -> tuple[Ints, Ints] | None:
    """Return how often each advice was matched and given; None if advice shares counts."""
    if isinstance(learner, AdherenceLearner):
        bins_lsx, A = learner.matches.groups.bin_lsa, learner.setting.policy.shape[2]
        group_lsa = bins_lsx.reshape(*bins_lsx.shape[:2], -1, A)
        matched, given = learner.matched, learner.given
    elif isinstance(learner, Structured):
        group_lsa, matched, given = learner.groups, learner.matched, learner.given
    else:
        return None
    A = group_lsa.shape[-1]
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
def _catch_signals(say: Callable[[str], None]) -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether a signal asked to stop; a second signal interrupts."""
    received: list[int] = []

    def note(number: int, frame: object) -> None:
        received.append(number)
        if len(received) > 1:
            raise KeyboardInterrupt
        say("stopping at the next record; a second Ctrl-C stops at once and loses unsaved episodes")

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    names = [getattr(signal, n) for n in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, n)]
    before = {name: signal.signal(name, note) for name in names}
    try:
        yield lambda: bool(received)
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
