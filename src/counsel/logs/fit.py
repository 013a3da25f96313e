"""From a table of decisions to a problem that can be solved, with all that is known of its limits.

    fit = counsel.fit("log.parquet")
    counsel.solve(fit.problem, budget=2)

The model on disk is a problem file with the counts beside it: ``solve``, ``frontier`` and
``explain`` read it as any problem; ``load_fit`` brings everything back.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from counsel._files import blaming, read_npz, write_npz
from counsel.errors import CounselError
from counsel.logs.adherence_breakdown import People, Trend, over_advice, over_time, people
from counsel.logs.check import Checked, Finding, check_log
from counsel.logs.count import Tally, count_log
from counsel.logs.estimate import Estimates, Sharing, estimate
from counsel.logs.law_test import LawTest, examine_law
from counsel.logs.limitations import notes_of
from counsel.logs.read import as_log
from counsel.logs.schema import Bins, Columns
from counsel.model.files import PROBLEM, load, problem_parts
from counsel.model.problem import AdviceProblem

TALLY = "tally_"
"""What the names of the counts begin with in a file."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Fit:
    """A problem fitted to a log; ``fit`` and ``load_fit`` return it.

    Attributes
    ----------
    name
        What the log is called.
    tally
        Its counts: ``tally.states`` and ``tally.actions`` are the labels, in order.
    estimates
        What they say, with intervals; arrays [layer, s, a], one layer unless fitted by step.
    sharing
        Who shares one adherence.
    columns
        The columns of each role, as the log was read.
    bins
        Where columns of numbers were cut.
    checked
        What ``check_log`` found.
    notes
        What the data cannot tell, and what follows from it: a tuple of findings.
    law
        Whether refusals fit the adherence law; None where that cannot be tested.
    people
        How much each person listens; None where that cannot be told, and in a model that was read
        from a file.
    over_time
        How the lift changes over time; None likewise.
    over_advice
        How the lift changes with the pieces of advice already given in the episode; None likewise.

    Examples
    --------
    How much people listen, after pooling, with the 95 % interval; and what the data cannot tell:

    >>> import pyarrow as pa
    >>> from counsel import fit
    >>> table = pa.table(
    ...     {
    ...         "episode": range(400),
    ...         "step": [0] * 400,
    ...         "state": ["alarm"] * 400,
    ...         "advice": (4 * [None] + 4 * ["check"]) * 50,
    ...         "action": ["check", "wait", "wait", "wait", "check", "check", "check", "wait"] * 50,
    ...         "reward": [1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0] * 50,
    ...     }
    ... )
    >>> found = fit(table)
    >>> lift, low, high = found.estimates.lift, found.estimates.lift_low, found.estimates.lift_high
    >>> print(f"lift {lift[0, 0, 0]:.2f}, between {low[0, 0, 0]:.2f} and {high[0, 0, 0]:.2f}")
    lift 0.66, between 0.57 and 0.74
    >>> print(found.notes[0].what.partition(":")[0], found.notes[0].examples)
    actions that were never advised ('wait',)
    """

    name: str
    tally: Tally
    estimates: Estimates
    sharing: Sharing
    columns: Mapping[str, tuple[str, ...]]
    bins: Mapping[str, tuple[float, ...]]
    checked: Checked
    notes: tuple[Finding, ...]
    law: LawTest | None
    people: People | None = None
    over_time: Trend | None = None
    over_advice: Trend | None = None

    @property
    def problem(self) -> AdviceProblem:
        """The world and the person as estimated."""
        return self.estimates.problem

    @property
    def logged_value(self) -> float:
        """The mean reward of an episode in the log; of what was paid where some is missing."""
        return self.tally.mean_return

    @property
    def logged_pieces(self) -> float:
        """Pieces of advice sent in an episode of the log, on average."""
        tally = self.tally
        said = tally.advice < len(tally.actions)
        return float(tally.times[said].sum() / tally.episodes)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model: a problem file with its counts. Names of people stay out.

        Parameters
        ----------
        path
            Where to; it must end in .npz. ``load_fit`` and ``load`` read it.

        Raises
        ------
        CounselError
            When the file cannot be written.
        """
        header, arrays = problem_parts(self.problem)
        tally = self.tally
        header["fit"] = {
            "name": self.name,
            "states": tally.states,
            "actions": tally.actions,
            "by_step": tally.by_step,
            "least": tally.least,
            "other": tally.other,
            "sharing": {
                "share": self.sharing.share,
                "scale": self.sharing.scale,
                "groups": None if self.sharing.groups is None else dict(self.sharing.groups),
            },
            "columns": {role: list(own) for role, own in self.columns.items()},
            "bins": {column: list(cuts) for column, cuts in self.bins.items()},
            "checked": asdict(self.checked),
            "notes": [asdict(note) for note in self.notes],
            "law": None if self.law is None else asdict(self.law),
        }
        arrays |= {TALLY + name: getattr(tally, name) for name in _array_names()}
        write_npz(Path(path), PROBLEM, header, arrays)

    def resampled(self, draws: int, rng: np.random.Generator) -> Iterator[tuple[Tally, Estimates]]:
        """Yield counts of episodes drawn with replacement, and what they say.

        What is known of a family of lifts stays what the whole log says.

        Parameters
        ----------
        draws
            How many times.
        rng
            Where the draws come from.

        Yields
        ------
        tally : Tally
            The counts.
        estimates : Estimates
            What they say.
        """
        for _ in range(draws):
            tally = self.tally.drawn(rng)
            yield tally, estimate(tally, self.sharing, self.estimates.families)

    def __repr__(self) -> str:
        return f"Fit({self.name}: {self.checked.rows} decisions, {self.problem.mdp!r})"


def fit(  # noqa: PLR0913 (how the log is read, and how it is pooled)
    source: object,
    *,
    columns: Columns | str | None = None,
    bins: Bins | None = None,
    actions: tuple[str, ...] | None = None,
    reward_range: tuple[float, float] | None = None,
    by_step: bool = False,
    share: str = "pair",
    scale: str = "lift",
    groups: Mapping[str, str] | None = None,
) -> Fit:
    """Fit a problem to a table of decisions.

    Parameters
    ----------
    source
        A path or pattern, a database and table, or an Ibis, pandas, polars or Arrow table; or a
        ``Log`` that was read before, with its columns and bins.
    columns
        Which columns are which, where they are called otherwise: "state=ward+bed,action=did".
    bins
        Where columns of numbers are cut.
    actions
        All actions there are, where that is known; others are a fault.
    reward_range
        The least and the largest reward there can be, where that is known; others are a fault.
    by_step
        Whether everything may differ from step to step; else it is pooled over steps.
    share
        Who shares one adherence: "pair" (each state and advice has its own, alike for one advice),
        "advice" (one for each advice) or "all".
    scale
        What those who are alike have in common: "lift" or "adherence".
    groups
        Instead of ``share``: the group of each advice by its label.

    Returns
    -------
    Fit
        ``fit.problem`` is what ``solve`` takes; ``fit.notes`` say what the data cannot tell.

    Raises
    ------
    CounselError
        When the log cannot be read, or has faults that ``counsel check`` calls fatal, or ``share``,
        ``scale`` or ``groups`` makes no sense.

    Examples
    --------
    Half of all alarms are sent on, and half of the quiet hours are disturbed. The same number of
    pieces, all of them at alarms, is worth more:

    >>> import counsel
    >>> import pyarrow as pa
    >>> table = pa.table(
    ...     {
    ...         "episode": range(400),
    ...         "step": [0] * 400,
    ...         "state": ["alarm"] * 200 + ["quiet"] * 200,
    ...         "advice": (4 * [None] + 4 * ["check"]) * 50,
    ...         "action": ["check", "wait", "wait", "wait", "check", "check", "check", "wait"] * 50,
    ...         "reward": [1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0] * 25 + [0.5] * 200,
    ...     }
    ... )
    >>> found = counsel.fit(table)
    >>> found.logged_pieces, round(found.logged_value, 2)
    (0.5, 0.5)
    >>> plan = counsel.solve(found.problem, budget=0.5)
    >>> round(plan.advice_count, 2), round(plan.value, 2)
    (0.5, 0.62)
    """
    sharing = Sharing(share, scale, groups)
    log = as_log(source, columns, bins)
    checked = check_log(log, actions=actions, reward_range=reward_range)
    for fault in checked.findings:
        if fault.fatal:
            shown = f" (first: {fault.examples[0]})" if fault.examples else ""
            raise CounselError(
                f"{log.name} cannot be fitted: {fault.what}: {fault.count}{shown}; "
                "`counsel check` lists all faults"
            )
    tally = count_log(log, by_step=by_step)
    found = estimate(tally, sharing)
    advised = bool(found.given.any())
    return Fit(
        name=log.name,
        tally=tally,
        estimates=found,
        sharing=sharing,
        columns=log.roles,
        bins=log.bins,
        checked=checked,
        notes=tuple(notes_of(log, checked, tally, found, sharing)),
        law=examine_law(tally, np.random.default_rng(0)),
        people=people(log, found) if advised else None,
        over_time=over_time(log, found) if advised else None,
        over_advice=over_advice(log, found) if advised else None,
    )


def load_fit(path: str | os.PathLike[str]) -> Fit:
    """Read a model that was fitted; its estimates are made again from its counts.

    Parameters
    ----------
    path
        What ``Fit.save`` or ``counsel fit`` wrote.

    Returns
    -------
    Fit
        All but what is known of people and of trends.

    Raises
    ------
    CounselError
        When the file is not there or damaged, or holds a problem without counts.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pyarrow as pa
    >>> from counsel import fit
    >>> table = pa.table(
    ...     {
    ...         "episode": range(40),
    ...         "step": [0] * 40,
    ...         "state": ["alarm"] * 40,
    ...         "advice": [None, None, "check", "check"] * 10,
    ...         "action": ["check", "wait", "check", "check"] * 5 + ["check", "wait"] * 10,
    ...         "reward": [1.0, 0.0] * 20,
    ...     }
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fit(table).save(Path(folder) / "model.npz")
    ...     found = load_fit(Path(folder) / "model.npz")
    >>> found.checked.rows, found.tally.states, found.tally.actions
    (40, ('alarm',), ('check', 'wait'))
    """
    header, arrays = read_npz(Path(path), PROBLEM)
    told = header.get("fit")
    if not isinstance(told, dict):
        raise CounselError(f"{path} is a problem without counts; fit one with `counsel fit LOG`")
    with blaming(path):
        counts: dict[str, Any] = {name: arrays[TALLY + name] for name in _array_names()}
        sizes = {column.shape for column in counts.values()}
        if len(sizes) != 1:
            raise CounselError("its counts do not fit together; the file is damaged")
        tally = Tally(
            states=tuple(told["states"]),
            actions=tuple(told["actions"]),
            horizon=int(header["horizon"]),
            by_step=bool(told["by_step"]),
            least=float(told["least"]),
            other=None if told["other"] is None else float(told["other"]),
            **counts,
        )
        for name, column in counts.items():
            if column.dtype.kind == "f" and not (np.isfinite(column) & (column >= 0.0)).all():
                raise CounselError(f"its {name} are no counts; the file is damaged")
        sharing = Sharing(**told["sharing"])
        found = estimate(tally, sharing)
        _check_same(load(path), found.problem)
        checked = dict(told["checked"])
        checked["actions"] = tuple(checked["actions"])
        checked["findings"] = tuple(_finding(one) for one in checked["findings"])
        return Fit(
            name=told["name"],
            tally=tally,
            estimates=found,
            sharing=sharing,
            columns={role: tuple(own) for role, own in told["columns"].items()},
            bins={column: tuple(cuts) for column, cuts in told["bins"].items()},
            checked=Checked(**checked),
            notes=tuple(_finding(one) for one in told["notes"]),
            law=None if told["law"] is None else LawTest(**told["law"]),
        )


def _check_same(stored: AdviceProblem, again: AdviceProblem) -> None:
    """Raise unless the problem in a file is the one that its counts give."""
    for what, here, there in (
        ("policy", stored.human.policy, again.human.policy),
        ("lift", stored.human.lift, again.human.lift),
        ("rewards", stored.mdp.reward, again.mdp.reward),
    ):
        if here.shape != there.shape or not np.allclose(here, there, rtol=1e-6, atol=1e-9):
            raise CounselError(f"its counts do not give its {what}; the file is damaged")


def _array_names() -> list[str]:
    """Return which fields of a tally are arrays."""
    plain = ("states", "actions", "horizon", "by_step", "least", "other", "contradictions")
    return [field.name for field in fields(Tally) if field.name not in plain]


def _finding(told: dict[str, Any]) -> Finding:
    return Finding(**{**told, "examples": tuple(told["examples"])})
