"""Fit a problem to a table of decisions, and list what the data cannot tell.

fit = counsel.fit("log.parquet")
counsel.solve(fit.problem, budget=2)
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from counsel._arrays import Floats
from counsel.errors import CounselError
from counsel.logs.assumptions import check_assumptions
from counsel.logs.binning import Bins
from counsel.logs.check import LogCheck, check_log, check_range
from counsel.logs.column_mapping import Columns
from counsel.logs.count import Tally, count_log
from counsel.logs.decisions import Decisions, load_decisions
from counsel.logs.estimate import Estimates, Sharing, estimate
from counsel.logs.fitted_model import Fit
from counsel.logs.importance_weights import UNITS
from counsel.logs.law_test import check_adherence_law
from counsel.logs.level_mix import level_mix, without_mix
from counsel.logs.levels import can_order, prepare_kind
from counsel.logs.limitations import find_limitations
from counsel.logs.listening import Listening
from counsel.logs.memory_kind import MemoryKind
from counsel.logs.memory_tests import compare_memories
from counsel.logs.read import Log, as_log
from counsel.logs.self_check import (
    SelfCheck,
    can_confront,
    confront,
)
from counsel.model.advice_costs import advice_costs

MOST_TESTED = 150_000
"""The most decisions on which assumptions are tested and people are compared."""

ENOUGH_BY_STEP = 20
"""Decisions per step, state and action from which on a fit by step is tried."""


def fit(  # noqa: PLR0913 (reading and pooling have options of their own)
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
    cost: Mapping[str, float] | None = None,
    unit: str = "decision",
    memory: str = "none",
    across: str = "episode",
) -> Fit:
    """Fit a problem to a table of decisions.

    Parameters
    ----------
    source
        A path or pattern, a database and table, or an Ibis, pandas, polars or Arrow table; or the
        result of ``read_log``, with its columns and bins.
    columns
        The mapping from roles to columns with other names: "state=ward+bed,action=did".
    bins
        How to cut columns of numbers in the state.
    actions
        All possible actions, if known; any other action is a fault.
    reward_range
        The smallest and the largest possible reward, if known; any other reward is a fault. The
        problem keeps the range, with 0 if episodes end early.
    by_step
        Whether all estimates may differ from step to step; otherwise steps are pooled.
    share
        Which pairs share a lift: "pair" (each state and advice has its own, similar for one
        advice), "advice" (one per advice) or "all".
    scale
        The scale on which similar pairs are pooled: "lift" or "adherence".
    groups
        Instead of ``share``: the group of each advice by its label.
    cost
        What a piece of each advice costs, by its label; 1 if not named. Budgets and penalties of
        plans are in units of cost.
    unit
        What advice was assigned to: each "decision"; or "episode" or "person", if some episodes or
        people were left without any advice on purpose.
    memory
        What changes how much people listen: "none"; a memory of advice, "pieces=N", "since=N",
        "dose=DECAY" or "refusals=N"; "tenure", the person's time in the study; or "auto", whichever
        of these the log shows, if any.
    across
        What a memory is carried over: the decisions of an "episode", or all episodes of a
        "person" in order of time.

    Returns
    -------
    Fit
        ``fit.problem`` is the problem to ``solve``; ``fit.notes`` list what the data cannot tell.

    Raises
    ------
    CounselError
        If the log cannot be read or has faults (see ``counsel check``), or ``share``, ``scale``,
        ``groups``, ``cost``, ``unit``, ``memory`` or ``across`` is invalid.

    Examples
    --------
    Half of all alarms and half of all quiet hours have advice. The same number of pieces, all of
    them at alarms, is worth more:

    >>> import counsel
    >>> from counsel.logs.example_log import alarm_log
    >>> model = counsel.fit(alarm_log())
    >>> model.logged_pieces, round(model.logged_value, 2)
    (0.5, 0.5)
    >>> plan = counsel.solve(model.problem, budget=0.5)
    >>> round(plan.advice_count, 2), round(plan.value, 2)
    (0.5, 0.62)
    """
    sharing = Sharing(share, scale, groups)
    if unit not in UNITS:
        raise CounselError(f"unit is {unit!r}; it must be one of {', '.join(UNITS)}")
    kind = read_memory(memory, across)
    log = as_log(source, columns, bins)
    refuse_memory(log, kind, across, sharing)
    check = check_log(log, actions=actions, reward_range=reward_range)
    refuse_faults(log, check)
    if isinstance(kind, MemoryKind):
        kind = prepare_kind(log, kind)
    tally = count_log(log, by_step=by_step)
    if len(tally.contexts) == 1:
        raise CounselError(
            f"context has one value, {tally.contexts[0]!r}, in {log.name}; give a column with "
            "several, or leave it out"
        )
    cost_a = advice_costs(cost or {}, tally.actions)
    tally, estimates, pooled = _fit_by_step_where_needed(tally, sharing, cost_a)
    rows = load_decisions(log, tally, estimates.problem, MOST_TESTED)
    refuse_unit(log, rows, unit, len(tally.actions))
    tests = check_assumptions(tally, estimates.problem, rows, unit)
    if any(test.is_rejected for test in tests if test.name == "step") and can_fit_by_step(tally):
        before = pooled or confront(tally, estimates.problem)
        other = replace(tally, by_step=True)
        again = estimate(other, sharing, cost=cost_a)
        if confront(other, again.problem).is_trusted:
            tally, estimates, pooled = other, again, before
            tests = check_assumptions(tally, estimates.problem, rows, unit)
    listening = Listening.of(rows, *_estimates_by_context(tally, sharing, cost_a, estimates))
    people = None if listening is None else listening.people()
    memories = None
    if kind == "auto":
        memories = compare_memories(log, tally, estimates, across, MOST_TESTED)
        kind = memories.choice
    if isinstance(kind, MemoryKind):
        by_level = count_log(log, by_step=by_step, memory=kind)
        tally = replace(by_level, by_step=tally.by_step, endings_by_step=tally.endings_by_step)
        estimates = estimate(tally, sharing, cost=cost_a)
        if people is not None and people.differ and kind.memory is not None:
            found = load_decisions(log, tally, estimates.problem, MOST_TESTED, (kind,))
            mixed = replace(kind, mix=level_mix(found, estimates, kind))
            tally = replace(tally, memory=mixed)
            estimates = estimate(tally, sharing, cost=cost_a)
            memories = None if memories is None else without_mix(memories, tally)
    return Fit(
        name=log.name,
        tally=tally,
        estimates=estimates.with_range(check_range(reward_range)),
        sharing=sharing,
        columns=log.roles,
        bins=log.bins,
        check=check,
        notes=tuple(find_limitations(log, check, tally, estimates, sharing, rows, unit)),
        law=check_adherence_law(tally, np.random.default_rng(0)),
        people=people,
        over_time=None if listening is None else listening.over_time(),
        over_advice=None if listening is None else listening.over_advice(),
        pooled=pooled,
        assumptions=tests,
        unit=unit,
        memories=memories,
    )


def read_memory(memory: object, across: str) -> MemoryKind | str | None:
    """Return the kind of a memory, "auto", or None for no memory."""
    if memory in ("none", "auto"):
        MemoryKind.parse("tenure", across)  # checks ``across``
        if memory == "none" and across == "person":
            raise CounselError(
                "across is 'person', but no memory is fitted; give a memory, e.g. auto, or leave "
                "out across"
            )
        return None if memory == "none" else "auto"
    return MemoryKind.parse(memory, across)


def refuse_memory(log: Log, memory: MemoryKind | str | None, across: str, sharing: Sharing) -> None:
    """Raise an error if a memory cannot be fitted together with other settings."""
    if memory is None:
        return
    if log.has("context"):
        raise CounselError("a memory cannot be fitted by context; leave out the context")
    if sharing.scale != "lift":
        raise CounselError(f"a memory needs the scale 'lift', not {sharing.scale!r}")
    if memory == "auto" and across == "person":
        reason = can_order(log)
        if reason is not None:
            raise CounselError(f"memory auto across person cannot be tested: {reason}")


def _estimates_by_context(
    tally: Tally, sharing: Sharing, cost: Floats, pooled: Estimates
) -> list[Estimates]:
    """Return the estimates of each context; of all decisions together without contexts."""
    if not tally.contexts:
        return [pooled]
    return [estimate(tally, sharing, cost, context=i) for i in range(len(tally.contexts))]


def can_fit_by_step(tally: Tally) -> bool:
    """Whether steps are pooled, and each could have estimates of its own."""
    cells = tally.horizon * len(tally.states) * len(tally.actions)
    enough = float(tally.times.sum()) >= ENOUGH_BY_STEP * cells
    return not tally.by_step and tally.n_steps == tally.horizon and can_confront(tally) and enough


def _fit_by_step_where_needed(
    tally: Tally, sharing: Sharing, cost: Floats
) -> tuple[Tally, Estimates, SelfCheck | None]:
    """Estimate with steps pooled; where the log contradicts that, endings or all by step.

    Return also the comparison of the pooled model with the log if another one is used.
    """
    estimates = estimate(tally, sharing, cost=cost)
    if not can_confront(tally):
        return tally, estimates, None
    check = confront(tally, estimates.problem)
    if check.is_trusted or tally.by_step or tally.n_steps < tally.horizon:
        return tally, estimates, None
    for other in (replace(tally, endings_by_step=True), replace(tally, by_step=True)):
        again = estimate(other, sharing, cost=cost)
        if confront(other, again.problem).is_trusted:
            return other, again, check
    return tally, estimates, None


def refuse_unit(log: Log, rows: Decisions, unit: str, silence: int) -> None:
    """Raise an error if no unit of the assignment is wholly without advice."""
    if unit == "decision":
        return
    if unit == "person" and not log.has("person"):
        raise CounselError(
            f"unit is 'person', but {log.name} has no column person; map it with "
            "--columns person=…, or give --unit episode"
        )
    arm = rows.person if unit == "person" else np.arange(rows.n_episodes)
    unknown = int((arm < 0).sum())
    if unknown:
        raise CounselError(
            f"unit is 'person', but {log.name} has {unknown:,} episodes without a person; give "
            "--unit episode"
        )
    spoken = np.bincount(arm[rows.episode], rows.advice != silence)
    if (spoken > 0.0).all():
        kind = "person" if unit == "person" else "episode"
        raise CounselError(
            f"unit is {unit!r}, but {log.name} has no {kind} wholly without advice; leave out "
            f"--unit {unit}"
        )


def refuse_faults(log: Log, check: LogCheck) -> None:
    """Raise an error that names the first fault of a log, if there is one."""
    for fault in check.faults:
        example = f" (first: {fault.examples[0]})" if fault.examples else ""
        raise CounselError(
            f"{log.name} cannot be fitted: {fault.what}: {fault.count}{example}; "
            "`counsel check` lists all faults"
        )
