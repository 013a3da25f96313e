"""Plan advice on a fitted model.

*Cautious* plans advise only where the data leave little doubt that advice helps: episodes are drawn
with replacement (``bootstrap.py``), the model is fitted and planned at the same price on each draw,
and a piece of advice is given only if its gain is above 0 in at least 95 % of the draws. A draw
without that advice in that state counts against it: a single lucky case would otherwise win in
every draw that contains it, and a third of the draws do not.

Reverse advice, which works by repelling, is given only on request: a table of past decisions does
not justify it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from counsel._arrays import Bools, check_rng
from counsel.logs.fit import Fit
from counsel.planning.criticality import Criticality, criticality
from counsel.planning.gains import gains
from counsel.planning.plan import Plan
from counsel.planning.reference_policies import value_alone
from counsel.planning.solve import solve

DRAWS = 200
"""Draws of the episodes behind a cautious plan."""

DOUBT = 0.05
"""The share of draws in which advice may fail to help."""


@dataclass(frozen=True, slots=True, eq=False)
class LogPlan:
    """A plan on a fitted model.

    ``plan.policy`` is the advice, by the numbers of states and actions in ``fit.tally``;
    ``criticality`` is the largest penalty at which advice still pays [h, s]; ``doubtful`` is the
    advice [h, s, a] that caution forbids, None for a plan that is not cautious.
    """

    fit: Fit
    plan: Plan
    criticality: Criticality
    doubtful: Bools | None = None
    budget: float | None = None

    @property
    def has_costs(self) -> bool:
        """Whether some advice costs more or less than 1."""
        return not self.fit.problem.has_unit_cost

    @property
    def advice_cost(self) -> float | None:
        """The cost of advice per episode; None if every piece costs 1."""
        return self.plan.advice_cost if self.has_costs else None

    @property
    def logged_cost(self) -> float | None:
        """The cost of advice per episode of the log; None if every piece costs 1."""
        return self.fit.logged_cost if self.has_costs else None

    @property
    def value_alone(self) -> float:
        """The reward per episode without advice, in the model."""
        return value_alone(self.fit.problem)

    @property
    def share_of_unlimited(self) -> float | None:
        """The share of the value of unlimited advice that the plan keeps; None if that is 0."""
        return share_of(self.plan.value, self.value_alone, self._unlimited().value)

    @property
    def kept_cells(self) -> tuple[int, int]:
        """The number of steps and states where caution leaves some advice, and of all."""
        cells = self.fit.problem.horizon * len(self.fit.tally.states)
        if self.doubtful is None:
            return cells, cells
        return int((~self.doubtful & self.fit.problem.mdp.allowed).any(axis=2).sum()), cells

    @property
    def silence_reason(self) -> str:
        """Why the plan gives no advice, if it gives none."""
        if not self.fit.estimates.usable.any():
            return "the data do not show that any advice moves people"
        if self.doubtful is not None and self.doubtful.all():
            return "no advice helps in 95 % of resampled logs"
        if self._unlimited().advice_count > 0.0:
            return "within this limit silence is best"
        return "silence is best everywhere"

    def _unlimited(self) -> Plan:
        return solve(self.fit.problem, allow_reverse=False)


def share_of(value: float, alone: float, best: float) -> float | None:
    """Return the share of the gain from ``alone`` to ``best`` that ``value`` keeps; None if 0."""
    if best - alone <= 1e-9 * (1.0 + abs(best)):
        return None
    return (value - alone) / (best - alone)


def plan_advice(  # noqa: PLR0913 (the options of solve, and caution)
    fit: Fit,
    *,
    penalty: float | None = None,
    budget: float | None = None,
    hard: bool = False,
    cautious: bool = False,
    allow_reverse: bool = False,
    rng: np.random.Generator | None = None,
    show: Callable[[int], None] | None = None,
) -> LogPlan:
    """Plan advice on a fitted model.

    Parameters
    ----------
    fit
        The model, from ``counsel.fit``.
    penalty
        The penalty for each piece of advice, in units of reward; not with a budget. A piece that
        costs c is charged c times.
    budget
        Pieces of advice per episode, on average. A piece that costs c counts c times.
    hard
        Whether no episode may exceed the budget, which is then a whole number.
    cautious
        Whether to give only advice that helps in 95 % of resampled logs; takes 200 fits.
    allow_reverse
        Whether to give advice that works by repelling, as in ``solve``.
    rng
        The random generator of a cautious plan; by default the results are always the same.
    show
        Called with the number of draws that are done, of 200.

    Returns
    -------
    LogPlan
        The plan, with the criticality of each step and state.

    Raises
    ------
    CounselError
        If the penalty or the budget is invalid, or ``rng`` is not a generator.

    Examples
    --------
    Advice pays at an alarm; in a quiet hour it makes no difference:

    >>> from counsel import fit
    >>> from counsel.logs.example_log import alarm_log
    >>> model = fit(alarm_log())
    >>> plan = plan_advice(model, budget=0.25)
    >>> round(plan.plan.price, 2), plan.plan.advice_count
    (0.49, 0.25)
    >>> dict(zip(model.tally.states, plan.criticality.lower[0].round(2).tolist()))
    {'alarm': 0.49, 'quiet': 0.0}
    """
    limit: dict[str, Any] = {"penalty": penalty, "budget": budget, "hard": hard}
    limit["allow_reverse"] = allow_reverse
    best = solve(fit.problem, **limit)
    doubtful = None
    if cautious:
        rng = np.random.default_rng(0) if rng is None else rng
        check_rng(rng)
        price = 0.0 if best.hard else best.price
        doubtful = _doubtful_advice(fit, price, rng, show, allow_reverse=allow_reverse)
        best = solve(fit.problem, **limit, forbidden=doubtful)
    critical = criticality(fit.problem, allow_reverse=allow_reverse, forbidden=doubtful)
    return LogPlan(fit, best, critical, doubtful, budget)


def _doubtful_advice(
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
    for i, (_, resampled) in enumerate(fit.resample(DRAWS, rng)):
        values = solve(resampled.problem, penalty=price, allow_reverse=allow_reverse).values
        helps = gains(resampled.problem, values)[1] > 0.0
        # A pair without an observation in the draw does not count as helping.
        helps[:, :S] &= resampled.given > 0.5
        fails += ~helps
        if show is not None:
            show(i + 1)
    doubtful: Bools = fails > DOUBT * DRAWS
    return doubtful
