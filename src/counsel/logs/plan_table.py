"""The table of a plan: what to advise at each step and state, for people to read.

``read_policy.py`` reads such tables back.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from counsel._arrays import Bools, Floats
from counsel._tables import Column, Table, arrow_table
from counsel.logs.check import THIN
from counsel.logs.plan import LogPlan, kept_advice
from counsel.model.problem import AdviceProblem
from counsel.planning.gains import gains, level_gains


def plan_tables(plan: LogPlan) -> Iterator[Any]:
    """Yield the plan as tables for people to read, one per step.

    Parameters
    ----------
    plan
        The result of ``plan_advice``.

    Yields
    ------
    Table
        An Arrow table with one row per state and possible advice. Columns: ``context`` (if the plan
        is for one), ``pieces_left`` (under a hard budget; counted by cost), ``level`` and
        ``level_label`` (of the person's memory, if there is one), ``step`` (not in work without
        end), ``state``,
        ``advice`` (empty for silence), ``probability`` (below 1 if the plan mixes), ``cost``
        (unless every piece costs 1), ``gain``, ``lift`` and ``advantage`` (empty for silence),
        ``criticality``, ``support``: how often that advice was seen in that state, or for silence
        the number of decisions; and ``model``, the fingerprint of the model. Gain, lift, advantage
        and criticality are empty where nobody was left without advice, so that they are unknown,
        and everywhere if the log contradicts the model.

    Examples
    --------
    >>> from counsel import fit
    >>> from counsel.logs import plan_advice
    >>> from counsel.logs.example_log import alarm_log
    >>> (first,) = plan_tables(plan_advice(fit(alarm_log())))
    >>> for row in first.select(["step", "state", "advice", "support"]).to_pylist():
    ...     print(*row.values())
    0 alarm check 100
    0 quiet None 200
    """
    yield from map(arrow_table, plan_columns(plan))


def plan_columns(plan: LogPlan) -> Iterator[Table]:
    """Yield the same tables as columns, for a writer."""
    budget = plan.plan.policy.budget
    for left in (None,) if budget is None else range(budget, 0, -1):
        for level in range(plan.fit.problem.n_levels):
            yield from _tables(plan, left, level)


class PlanEntry(NamedTuple):
    """The advice of a plan in a state, and its steps; numbers are the largest over the steps.

    Gain, lift and criticality are NaN where they are unknown.
    """

    state: str
    advice: str
    steps: str
    gain: float
    lift: float
    criticality: float
    support: int
    cost: float

    @property
    def is_thin(self) -> bool:
        """Whether few observations of the advice in that state support the entry."""
        return self.support < THIN

    @property
    def is_known(self) -> bool:
        """Whether it is known what the advice gains."""
        return not math.isnan(self.gain)


def ranked_entries(plan: LogPlan) -> list[PlanEntry]:
    """Return the advice of a plan, the most critical first."""
    rows_of: dict[tuple[str, str], list[Any]] = {}
    for table in plan_tables(plan):
        for row in table.to_pylist():
            if row["advice"] is not None:
                rows_of.setdefault((row["state"], row["advice"]), []).append(row)
    entries = []
    for (state, advice), rows in rows_of.items():
        numbers = ("gain", "lift", "criticality", "support")
        largest: dict[str, Any] = {
            name: max(math.nan if row[name] is None else row[name] for row in rows)
            for name in numbers
        }
        largest["cost"] = max(row.get("cost", 1.0) for row in rows)
        steps = "all"
        if plan.endless is None:
            steps = _step_ranges(sorted({row["step"] for row in rows}))
        entries.append(PlanEntry(state, advice, steps, **largest))
    return sorted(entries, key=lambda entry: -entry.criticality if entry.is_known else math.inf)


def _step_ranges(steps: list[int]) -> str:
    """Return 0, 1, 2, 5 as "0–2, 5"."""
    parts: list[list[int]] = []
    for step in steps:
        if parts and parts[-1][-1] == step - 1:
            parts[-1].append(step)
        else:
            parts.append([step])
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 1 else str(run[0]) for run in parts)


def _tables(plan: LogPlan, left: int | None, level: int) -> Iterator[Table]:
    fit, problem, policy = plan.fit, plan.problem, plan.plan.policy
    A, memory = problem.n_actions, problem.memory
    advantage, gain = (table[level] for table in _gains(plan, left))
    lift = problem.level_lift[level]
    critical = plan.criticality.lower.reshape(problem.n_levels, *advantage.shape[:2])[level]
    has_costs, model = not problem.has_unit_cost, fit.fingerprint
    # How often each advice was seen [layer, s, b]; last, the number of decisions.
    seen, decisions = fit.estimates.given, fit.estimates.taken.sum(axis=2, keepdims=True)
    support = np.concatenate((seen, decisions), axis=2)
    known = np.flatnonzero(support.sum(axis=(0, 2)) > 0)
    required = kept_advice(fit).get("required")
    for h in range(problem.n_steps):
        rows = [
            (at, advice, probability)
            for at in known.tolist()
            for advice, probability in sorted(policy.at(h, at, left, level).items())
        ]
        s, b, chance = (np.array(column) for column in zip(*rows, strict=True))
        silent = b == A
        spoken = np.where(silent, 0, b)
        unknown = np.full(s.size, not fit.is_trusted)
        if required is not None:
            unknown |= required[h, s]
        columns: dict[str, Column] = {}
        if fit.context is not None:
            columns["context"] = Column(np.zeros(s.size, dtype=np.int64), (fit.context,))
        if left is not None:
            columns["pieces_left"] = Column(np.full(s.size, left, dtype=np.int32))
        if memory is not None:
            columns["level"] = Column(np.full(s.size, level, dtype=np.int32))
            columns["level_label"] = Column(np.full(s.size, level), memory.labels)
        layer = h if len(support) > 1 else 0
        if plan.endless is None:
            columns["step"] = Column(np.full(s.size, h, dtype=np.int32))
        columns |= {
            "state": Column(s, fit.tally.states),
            "advice": Column(b, fit.tally.actions, silent),
            "probability": Column(chance.astype(np.float64)),
        }
        if has_costs:
            columns["cost"] = Column(_round(problem.cost[h, s, spoken]), missing=silent)
        columns |= {
            "gain": Column(_round(gain[h, s, spoken]), missing=silent | unknown),
            "lift": Column(_round(lift[h, s, spoken]), missing=silent | unknown),
            "advantage": Column(_round(advantage[h, s, spoken]), missing=silent | unknown),
            "criticality": Column(_round(critical[h, s]), missing=_some(unknown)),
            "support": Column(support[layer, s, b].astype(np.int64)),
            "model": Column(np.zeros(s.size, dtype=np.int64), (model,)),
        }
        yield columns


def _gains(plan: LogPlan, left: int | None) -> tuple[Floats, Floats]:
    """Return advantages and gains [m, h, s, a]; there is one level without a memory.

    Under a hard budget they are those with what is left afterwards.
    """
    problem, planes = plan.problem, plan.plan.value_planes
    H, S, A, M = problem.n_steps, problem.n_states, problem.n_actions, problem.n_levels
    values_kmhs = planes.reshape(-1, M, *planes.shape[1:])
    if left is None:
        return _level_gains(problem, values_kmhs[0])
    advantage, gain = np.full((M, H, S, A), np.nan), np.zeros((M, H, S, A))
    for cost in np.unique(problem.cost):
        here = np.broadcast_to(problem.cost == cost, gain.shape)
        both = _level_gains(problem, values_kmhs[max(left - int(cost), 0)])
        advantage[here], gain[here] = (table[here] for table in both)
    return advantage, gain


def _level_gains(problem: AdviceProblem, values_mhs: Floats) -> tuple[Floats, Floats]:
    if problem.memory is None:
        advantage, gain = gains(problem, values_mhs[0])
        return advantage[None], gain[None]
    by_level = [level_gains(problem, values_mhs, level) for level in range(problem.n_levels)]
    advantage_n, gain_n = zip(*by_level, strict=True)
    return np.stack(advantage_n), np.stack(gain_n)


def _some(missing: Bools) -> Bools | None:
    return missing if missing.any() else None


def _round(numbers: Floats) -> Floats:
    """Round to six significant digits; what is infinite is unknown."""
    finite = np.nan_to_num(numbers, nan=0.0, posinf=0.0, neginf=0.0)
    return np.array([float(f"{number:.6g}") for number in finite], dtype=np.float64)
