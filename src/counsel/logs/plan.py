"""What to advise, planned on a fitted model, as a table that people can read.

*Cautious* plans advise only where the data leave little doubt that it helps: episodes are drawn
with replacement (by their blocks, see ``counts.py``), each time the model is fitted again and
planned at the same price, and a piece of advice is given only where its gain is above 0 in at least
95 % of the draws. A draw without that advice in that state counts against it: one happy case is in
all draws that have it, and in a third it is missing.

Reverse advice, which works by repelling, is given only when asked for: it is not something that a
table of what happened can vouch for.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from counsel._arrays import Bools, Floats, check_rng
from counsel._tables import Column, Table, arrow_table
from counsel.logs.fit import Fit
from counsel.planning.criticality import Criticality, criticality
from counsel.planning.gains import gains
from counsel.planning.plan import Plan
from counsel.planning.solve import solve

DRAWS = 200
"""Draws of the episodes behind a cautious plan."""

DOUBT = 0.05
"""The share of draws in which advice may fail to help."""


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """A plan on a fitted model.

    Attributes
    ----------
    fit
        The model.
    plan
        The plan: ``plan.policy`` is what to advise, by the numbers of states and actions in
        ``fit.tally``.
    criticality
        The largest penalty at which advice still pays, for each step and state [h, s].
    doubtful
        Booleans [h, s, a]: what caution forbids; None for a plan that is not cautious.
    """

    fit: Fit
    plan: Plan
    criticality: Criticality
    doubtful: Bools | None = None


def plan(  # noqa: PLR0913 (what solve takes, and how sure to be)
    fit: Fit,
    *,
    penalty: float | None = None,
    budget: float | None = None,
    hard: bool = False,
    cautious: bool = False,
    allow_reverse: bool = False,
    rng: np.random.Generator | None = None,
    show: Callable[[int], None] | None = None,
) -> Planned:
    """Plan on a fitted model.

    Parameters
    ----------
    fit
        What ``counsel.fit`` returned.
    penalty
        What each piece of advice costs, in units of reward; not with a budget.
    budget
        Pieces of advice an episode, on average.
    hard
        Whether no episode may exceed the budget, which is then a whole number.
    cautious
        Whether to advise only what helps in 95 % of resampled logs; takes 200 fits.
    allow_reverse
        As in ``solve``; reverse advice is not given unless asked for.
    rng
        Where the draws of a cautious plan come from; always the same when not given.
    show
        Called with the number of draws done, of 200.

    Returns
    -------
    Planned
        The plan, with the criticality of each step and state.

    Raises
    ------
    CounselError
        When the penalty or the budget makes no sense, or ``rng`` is no generator.

    Examples
    --------
    Advice pays at an alarm; in a quiet hour nothing depends on it:

    >>> import pyarrow as pa
    >>> from counsel.logs import fit
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
    >>> found = fit(table)
    >>> planned = plan(found, budget=0.25)
    >>> round(planned.plan.price, 2), planned.plan.advice_count
    (0.49, 0.25)
    >>> dict(zip(found.tally.states, planned.criticality.lower[0].round(2).tolist()))
    {'alarm': 0.49, 'quiet': 0.0}
    """
    best = solve(
        fit.problem, penalty=penalty, budget=budget, hard=hard, allow_reverse=allow_reverse
    )
    doubtful = None
    if cautious:
        rng = np.random.default_rng(0) if rng is None else rng
        check_rng(rng)
        price = 0.0 if best.hard else best.price
        doubtful = _doubtful(fit, price, rng, show, allow_reverse=allow_reverse)
        best = solve(
            fit.problem,
            penalty=penalty,
            budget=budget,
            hard=hard,
            allow_reverse=allow_reverse,
            forbidden=doubtful,
        )
    critical = criticality(fit.problem, allow_reverse=allow_reverse, forbidden=doubtful)
    return Planned(fit, best, critical, doubtful)


def _doubtful(
    fit: Fit,
    price: float,
    rng: np.random.Generator,
    show: Callable[[int], None] | None,
    *,
    allow_reverse: bool,
) -> Bools:
    """Return the advice [h, s, a] that fails to help in more than one draw in twenty."""
    problem = fit.problem
    fails = np.zeros((problem.horizon, problem.n_states, problem.n_actions), dtype=np.int32)
    S = len(fit.tally.states)
    for i, (_, drawn) in enumerate(fit.resampled(DRAWS, rng)):
        values = solve(drawn.problem, penalty=price, allow_reverse=allow_reverse).values
        helps = gains(drawn.problem, values)[1] > 0.0
        # A pair that is in none of the episodes drawn has nothing to say for itself.
        helps[:, :S] &= drawn.given > 0.5
        fails += ~helps
        if show is not None:
            show(i + 1)
    doubtful: Bools = fails > DOUBT * DRAWS
    return doubtful


def plan_tables(planned: Planned) -> Iterator[Any]:
    """Yield the plan as tables for people, one for each step.

    Parameters
    ----------
    planned
        What ``plan`` returned.

    Yields
    ------
    Table
        An Arrow table with one row for each state and what may be said there. Columns:
        ``pieces_left`` (under a hard budget), ``step``, ``state``, ``advice`` (empty for silence),
        ``probability`` (below 1 where chance decides), ``gain``, ``lift`` and ``advantage`` (empty
        for silence), ``criticality``, and ``support``: how often that advice was seen in that
        state, or for silence how many decisions there were.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from counsel.logs import fit, plan
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
    >>> (first,) = plan_tables(plan(fit(table)))
    >>> for row in first.select(["step", "state", "advice", "support"]).to_pylist():
    ...     print(*row.values())
    0 alarm check 100
    0 quiet None 200
    """
    yield from map(arrow_table, plan_columns(planned))


def plan_columns(planned: Planned) -> Iterator[Table]:
    """Yield the same tables as columns, to be written."""
    budget = planned.plan.policy.budget
    for left in (None,) if budget is None else range(budget, 0, -1):
        yield from _tables(planned, left)


class Entry(NamedTuple):
    """What a plan advises in a state, at which steps; numbers are the largest over them."""

    state: str
    advice: str
    steps: str
    gain: float
    lift: float
    criticality: float
    support: int


def ranked_entries(planned: Planned) -> list[Entry]:
    """Return where a plan speaks, the most critical first."""
    told: dict[tuple[str, str], list[Any]] = {}
    for table in plan_tables(planned):
        for row in table.to_pylist():
            if row["advice"] is not None:
                told.setdefault((row["state"], row["advice"]), []).append(row)
    entries = []
    for (state, advice), cells in told.items():
        most = {n: max(cell[n] for cell in cells) for n in Entry._fields[3:]}
        steps = _runs(sorted({cell["step"] for cell in cells}))
        entries.append(Entry(state, advice, steps, **most))
    return sorted(entries, key=lambda entry: -entry.criticality)


def _runs(steps: list[int]) -> str:
    """Show 0, 1, 2, 5 as "0–2, 5"."""
    parts: list[list[int]] = []
    for step in steps:
        if parts and parts[-1][-1] == step - 1:
            parts[-1].append(step)
        else:
            parts.append([step])
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 1 else str(run[0]) for run in parts)


def _tables(planned: Planned, left: int | None) -> Iterator[Table]:
    fit, problem, policy = planned.fit, planned.fit.problem, planned.plan.policy
    A = problem.n_actions
    after = max(policy.plane_of(left) - 1, 0)
    advantage, gain = gains(problem, planned.plan.value_planes[after])
    support = _support(fit)
    known = np.flatnonzero(support.sum(axis=(0, 2)) > 0)
    for h in range(problem.horizon):
        rows: list[tuple[int, int, float]] = []
        for at in known.tolist():
            rows += [(at, said, p) for said, p in sorted(policy.at(h, at, left).items())]
        s, b = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
        silent = b == A
        spoken = np.where(silent, 0, b)
        columns: dict[str, Column] = {}
        if left is not None:
            columns["pieces_left"] = Column(np.full(s.size, left, dtype=np.int32))
        layer = h if len(support) > 1 else 0
        columns |= {
            "step": Column(np.full(s.size, h, dtype=np.int32)),
            "state": Column(s, fit.tally.states),
            "advice": Column(b, fit.tally.actions, silent),
            "probability": Column(np.array([row[2] for row in rows], dtype=np.float64)),
            "gain": Column(_round(gain[h, s, spoken]), missing=silent),
            "lift": Column(_round(problem.lift[h, s, spoken]), missing=silent),
            "advantage": Column(_round(advantage[h, s, spoken]), missing=silent),
            "criticality": Column(_round(planned.criticality.lower[h, s])),
            "support": Column(support[layer, s, b].astype(np.int64)),
        }
        yield columns


def _support(fit: Fit) -> Floats:
    """Return how often each advice was seen [layer, s, b], and last all decisions there."""
    found = fit.estimates
    return np.concatenate((found.given, found.taken.sum(axis=2, keepdims=True)), axis=2)


def _round(numbers: Floats) -> Floats:
    """Return six significant digits: a table for people."""
    return np.array([float(f"{number:.6g}") for number in numbers], dtype=np.float64)
