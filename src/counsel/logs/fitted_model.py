"""A fitted model: the counts of a log, the estimates from them, and the problem to plan on.

A model on disk is a problem file that also holds the counts: ``solve``, ``frontier`` and
``explain`` read it like any problem; ``load_fit`` restores the whole fit.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from counsel._files import write_npz
from counsel.errors import CounselError
from counsel.logs.adherence_breakdown import ByContext, by_context
from counsel.logs.assumptions import AssumptionTest
from counsel.logs.bootstrap import TallySampler
from counsel.logs.check import Finding, LogCheck
from counsel.logs.count import TALLY_COUNTS, TALLY_KEYS, Tally
from counsel.logs.estimate import Estimates, Sharing, estimate
from counsel.logs.fading import FadingEstimate, fading_with_errors
from counsel.logs.law_test import LawTest
from counsel.logs.listening import People, Trend
from counsel.logs.memory_tests import MemoryTests
from counsel.logs.self_check import (
    SelfCheck,
    can_confront,
    confront,
    logged_return,
    logged_sum,
)
from counsel.model.advice_costs import given_cost
from counsel.model.files import PROBLEM, problem_parts
from counsel.model.problem import AdviceProblem

TALLY = "tally_"
"""The prefix of the counts' names in a file."""


@dataclass(frozen=True, eq=False, repr=False)
class Fit:
    """A problem fitted to a log; ``fit`` and ``load_fit`` return it.

    Attributes
    ----------
    name
        The name of the log.
    tally
        The counts: ``tally.states`` and ``tally.actions`` are the labels, in order.
    estimates
        The estimates with intervals; arrays [layer, s, a], one layer unless fitted by step.
    sharing
        Which pairs of state and advice share a lift.
    columns, bins
        The log's columns of each role, and the cut points of binned columns.
    check
        The result of ``check_log``.
    notes
        What the data cannot tell, and the consequence: a tuple of findings.
    law
        The test of the adherence law; None if the data cannot test it.
    people
        How much each person listens; None if unknown, and in a model that was loaded from a file.
    over_time, over_advice
        The trends of the lift with time in the study, and with the pieces of advice already given
        in the episode; None likewise.
    assumptions
        Tests of what the model takes for granted; those that the data cannot do are left out.
    unit
        What advice was assigned to: each decision, or all decisions of an episode or a person.
    context
        The context whose lifts these are; None for all contexts together, or without contexts.
    memories
        The kinds of memory that were compared with ``memory="auto"``; None otherwise.
    pooled
        If endings, or everything, are fitted by step because the log contradicts the model that
        pools steps: the comparison of that model with the log. None otherwise.

    Examples
    --------
    The lift after pooling with its 95 % interval, and what the data cannot tell:

    >>> from counsel import fit
    >>> from counsel.logs.example_log import alarm_log
    >>> model = fit(alarm_log())
    >>> lift, low, high = model.estimates.lift, model.estimates.lift_low, model.estimates.lift_high
    >>> print(f"lift {lift[0, 0, 0]:.2f}, between {low[0, 0, 0]:.2f} and {high[0, 0, 0]:.2f}")
    lift 0.66, between 0.53 and 0.77
    >>> print(model.notes[0].what.partition(":")[0], model.notes[0].examples)
    actions that were never advised ('wait',)
    """

    name: str
    tally: Tally
    estimates: Estimates
    sharing: Sharing
    columns: Mapping[str, tuple[str, ...]]
    bins: Mapping[str, tuple[float, ...]]
    check: LogCheck
    notes: tuple[Finding, ...]
    law: LawTest | None
    people: People | None = None
    over_time: Trend | None = None
    over_advice: Trend | None = None
    pooled: SelfCheck | None = None
    assumptions: tuple[AssumptionTest, ...] = ()
    unit: str = "decision"
    context: str | None = None
    memories: MemoryTests | None = None

    @cached_property
    def fading(self) -> FadingEstimate | None:
        """How much people listen at each level of the memory; None without one."""
        if self.tally.memory is None:
            return None
        return fading_with_errors(self.tally, self.estimates.habit)

    @cached_property
    def self_check(self) -> SelfCheck | None:
        """The model confronted with its log.

        None for a file of the first version, and for a model of more than twenty million cells.
        If the model is that of people late in the study, the log is compared with people of all
        times.
        """
        if not can_confront(self.tally):
            return None
        if self.tally.memory is None or self.tally.memory.memory is not None:
            return confront(self.tally, self.problem)
        tally = self.tally.without_levels()
        return confront(tally, self.estimate(tally).problem)

    @property
    def weighting_refusal(self) -> str | None:
        """Why episodes of the log cannot be weighted to judge a plan; None if they can."""
        kind = self.tally.memory
        if kind is None or kind.across == "episode":
            return None
        if kind.kind == "tenure":
            return (
                f"the model is of people late in the study ({kind.labels[-1]}), and the episodes "
                "of the log are of all times"
            )
        return (
            f"the memory ({kind.name}) goes on from one episode of a person to the next, so "
            "episodes cannot be weighted one by one"
        )

    @property
    def is_trusted(self) -> bool:
        """Whether the log contradicts neither the model's return and ends nor what it assumes."""
        repeats = self.self_check is None or self.self_check.is_trusted
        return repeats and not self.rejected

    @property
    def rejected(self) -> tuple[AssumptionTest, ...]:
        """The assumptions of the model that the log contradicts."""
        return tuple(test for test in self.assumptions if test.is_rejected)

    @property
    def problem(self) -> AdviceProblem:
        """The estimated world and person."""
        return self.estimates.problem

    @property
    def logged_value(self) -> float:
        """The mean reward per episode in the log, over the whole horizon.

        A missing reward counts as the mean of its step; episodes that were cut off count up to
        where they were cut.
        """
        return logged_return(self.of_context(self.tally))

    @property
    def logged_pieces(self) -> float:
        """Pieces of advice sent per episode of the log over the whole horizon, on average."""
        tally = self.of_context(self.tally)
        return logged_sum(tally, (tally.advice < len(tally.actions)).astype(np.float64))

    @property
    def logged_cost(self) -> float:
        """Cost of the advice sent per episode over the whole horizon, on average."""
        tally, problem = self.of_context(self.tally), self.problem
        spoken = tally.advice < len(tally.actions)
        cell = (tally.step[spoken], tally.state[spoken], tally.advice[spoken])
        each = np.zeros(tally.times.size)
        each[spoken] = problem.cost[cell]
        return logged_sum(tally, each)

    @property
    def costs(self) -> dict[str, float]:
        """What a piece of each advice costs, by its label, without advice that costs 1."""
        pairs = zip(self.tally.actions, self.problem.cost[0, 0].tolist(), strict=True)
        return {label: cost for label, cost in pairs if cost != 1.0}

    @property
    def fingerprint(self) -> str:
        """Twelve digits that two fits share only if their counts and settings are the same.

        A plan's table holds the fingerprint of the model it was planned on.
        """
        tally = self.tally
        # Engines add up rewards in any order, so their last digits do not count.
        rewards = [f"{getattr(tally, name).sum():.6g}" for name in ("paid", "paid_squares")]
        words = [self._settings(), rewards, self.costs]
        digest = hashlib.sha256(json.dumps(words, sort_keys=True).encode())
        for name in (*TALLY_KEYS, *tally.more_keys, "times", "priced"):
            digest.update(np.ascontiguousarray(getattr(tally, name)).tobytes())
        return digest.hexdigest()[:12]

    def _settings(self) -> dict[str, Any]:
        """Return how the log was read and what was pooled, for JSON."""
        tally, sharing = self.tally, self.sharing
        return {
            "states": tally.states,
            "actions": tally.actions,
            "by_step": tally.by_step,
            "endings_by_step": tally.endings_by_step,
            "least": tally.least,
            "other": tally.other,
            "sharing": {
                "share": sharing.share,
                "scale": sharing.scale,
                "groups": None if sharing.groups is None else dict(sharing.groups),
            },
            "columns": {role: list(own) for role, own in self.columns.items()},
            "bins": {column: list(cuts) for column, cuts in self.bins.items()},
            "unit": self.unit,
            "contexts": tally.contexts,
            **({} if tally.memory is None else {"memory": asdict(tally.memory)}),
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the model as a problem file with its counts, without the names of people.

        Parameters
        ----------
        path
            The file, ending in .npz. ``load_fit`` and ``load`` read it.

        Raises
        ------
        CounselError
            If the file cannot be written.
        """
        header, arrays = problem_parts(self.problem)
        header["fit"] = {
            "name": self.name,
            **self._settings(),
            "checked": asdict(self.check),
            "notes": [asdict(note) for note in self.notes],
            "law": None if self.law is None else asdict(self.law),
            "assumptions": [asdict(test) for test in self.assumptions],
            **({} if self.memories is None else {"memories": asdict(self.memories)}),
        }
        arrays |= {TALLY + name: getattr(self.tally, name) for name in array_names()}
        arrays |= {TALLY + name: column for name, column in self.tally.more_keys.items()}
        write_npz(Path(path), PROBLEM, header, arrays)

    def resample(self, draws: int, rng: np.random.Generator) -> Iterator[tuple[Tally, Estimates]]:
        """Yield counts of people drawn with replacement, and the estimates from them.

        Everything is estimated anew on each draw, the priors of the lifts too. Episodes are drawn
        where the log names no people, or one.

        Parameters
        ----------
        draws
            The number of draws.
        rng
            The random generator.

        Yields
        ------
        tally : Tally
            The counts.
        estimates : Estimates
            The estimates.
        """
        for tally in self.resample_counts(draws, rng):
            yield tally, self.estimate(tally)

    def resample_counts(self, draws: int, rng: np.random.Generator) -> Iterator[Tally]:
        """Yield counts of people drawn with replacement; episodes where the log names no people.

        Parameters
        ----------
        draws
            The number of draws.
        rng
            The random generator.

        Yields
        ------
        Tally
            The counts; their blocks are the two halves of the log.
        """
        sampler = TallySampler.of(self.tally)
        for _ in range(draws):
            yield sampler.draw(rng)

    def estimate(self, tally: Tally, *, shrink: bool = True) -> Estimates:
        """Return the estimates from other counts of the same log, with the settings of the fit.

        Parameters
        ----------
        tally
            Counts of drawn people, or of one half of them.
        shrink
            Whether lifts are pooled; otherwise each is that of its own data.

        Returns
        -------
        Estimates
            The estimates.
        """
        cost, design = given_cost(self.problem.cost), self.estimates.design
        settings: dict[str, Any] = {"shrink": shrink, "context": self._context_index}
        again = estimate(tally, self.sharing, cost, design, **settings)
        return again.with_range(self.problem.reward_range)

    @property
    def _context_index(self) -> int | None:
        return None if self.context is None else self.tally.contexts.index(self.context)

    def in_context(self, label: str) -> "Fit":
        """Return the fit with the lifts of one context; habit, moves and rewards are shared.

        Parameters
        ----------
        label
            The context: a value of the log's context column.

        Returns
        -------
        Fit
            The fit of this context.

        Raises
        ------
        CounselError
            If the model has no such context.
        """
        contexts = self.tally.contexts
        if label not in contexts:
            told = f"it has {', '.join(contexts)}" if contexts else "fit it with --context COLUMN"
            raise CounselError(f"the model has no context {label!r}; {told}")
        cost = given_cost(self.problem.cost)
        index = contexts.index(label)
        estimates = estimate(self.tally, self.sharing, cost, context=index)
        estimates = estimates.with_range(self.problem.reward_range)
        fit = replace(self, estimates=estimates, context=label)
        fit.__dict__["self_check"] = self.self_check  # the model's, with the advice of all contexts
        return fit

    @property
    def by_context(self) -> ByContext | None:
        """How much people listen in each context; None without contexts."""
        contexts = self.tally.contexts
        if not contexts or self.context is not None:
            return None
        fits = {label: self.in_context(label) for label in contexts}
        return by_context(
            {label: (fit.listened(fit.tally), fit.estimates) for label, fit in fits.items()}
        )

    def listened(self, tally: Tally) -> Tally:
        """Return counts without the advice of other contexts than the fit's.

        Parameters
        ----------
        tally
            The counts of the log.

        Returns
        -------
        Tally
            The counts.
        """
        spoken = tally.heard < len(tally.actions)
        kept = ~spoken | (tally.context == self._context_index)
        return replace(tally, **{name: getattr(tally, name) * kept for name in TALLY_COUNTS})

    def of_context(self, tally: Tally) -> Tally:
        """Return counts of the episodes in the fit's context; all counts without one.

        Parameters
        ----------
        tally
            The counts of the log, or drawn from it.

        Returns
        -------
        Tally
            The counts.
        """
        if self.context is None:
            return tally
        here = tally.context == self._context_index
        return replace(tally, **{name: getattr(tally, name) * here for name in TALLY_COUNTS})

    def __repr__(self) -> str:
        return f"Fit({self.name}: {self.check.rows} decisions, {self.problem.mdp!r})"


def array_names() -> list[str]:
    """Return the fields of a tally that are arrays."""
    return [*TALLY_KEYS, *TALLY_COUNTS]
