"""The contents of a log's report: what the plan adds and what each budget buys, with intervals."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from counsel._arrays import Floats, check_rng
from counsel.logs.bootstrap import ValueEstimate, estimate_from_draws
from counsel.logs.fit import Fit
from counsel.logs.plan import LogPlan, share_of
from counsel.logs.self_check import logged_return
from counsel.logs.sensitivity import SensitivityRange, sensitivity_ranges
from counsel.planning.evaluate import evaluate
from counsel.planning.frontier import Frontier, frontier
from counsel.planning.reference_policies import always_best_action, never_advise

ENOUGH = 0.8
"""The share of the value of unlimited advice that the default budget keeps."""

DRAWS = 100
"""Draws of the episodes behind the intervals."""

VERTICES = 200
"""The most vertices of the frontier."""

POINTS = 41
"""Budgets at which the frontier is drawn."""


@dataclass(frozen=True, slots=True, eq=False)
class ReportContents:
    """The numbers of a report, with 95 % intervals over resampled people or episodes.

    The first four estimates are the reward per episode in the model.
    """

    plan: LogPlan
    alone: ValueEstimate  # of silence
    chosen: ValueEstimate  # of the plan
    unlimited: ValueEstimate  # of the best advice without a limit
    always: ValueEstimate  # of the best action at all times
    added: ValueEstimate  # the reward per episode that the plan adds to silence
    share: float | None  # the share of the value of unlimited advice; None if that is 0
    logged: ValueEstimate  # the mean reward per episode of the log
    always_cost: float  # cost of advice per episode if the best action is always advised
    budgets: Floats  # the budgets at which the frontier is drawn, in units of cost
    value: Floats
    low: Floats
    high: Floats
    sensitivity: tuple[SensitivityRange, ...]  # if advice depended on unrecorded facts

    @property
    def fit(self) -> Fit:
        """The model."""
        return self.plan.fit


def choose_budget(fit: Fit) -> int:
    """Return the smallest whole budget that keeps 80 % of the value of unlimited advice."""
    front = frontier(fit.problem, max_vertices=VERTICES, allow_reverse=False)
    first, last = front.vertices[0], front.vertices[-1]
    for budget in range(1, math.ceil(last.advice_cost)):
        if front.bounds(budget)[0] - first.value >= ENOUGH * (last.value - first.value):
            return budget
    return max(1, math.ceil(last.advice_cost))


def prepare_report(
    plan: LogPlan,
    *,
    rng: np.random.Generator | None = None,
    show: Callable[[int], None] | None = None,
) -> ReportContents:
    """Compute the contents of a report; ``show`` is called with the number of draws so far."""
    rng = np.random.default_rng(0) if rng is None else rng
    check_rng(rng)
    fit, problem = plan.fit, plan.fit.problem
    front = frontier(problem, max_vertices=VERTICES, allow_reverse=False)
    last = front.vertices[-1]
    policies = (never_advise(problem), plan.plan.policy, always_best_action(problem))
    top = max(last.advice_cost, plan.plan.advice_cost, fit.logged_cost, 1e-9)
    budgets = np.linspace(0.0, top, POINTS) ** 2 / top  # closer together where budgets are small
    drawn_values, drawn_curves, drawn_returns = [], [], []
    for i, (tally, estimates) in enumerate(fit.resample(DRAWS, rng)):
        resampled = estimates.problem
        drawn_values.append([evaluate(resampled, policy).value for policy in policies])
        curve = frontier(resampled, max_vertices=60, allow_reverse=False)
        drawn_curves.append(_values_at(curve, budgets))
        drawn_returns.append(logged_return(tally))
        if show is not None:
            show(i + 1)
    values, curves = np.array(drawn_values), np.array(drawn_curves)

    def estimate(value: float, draws: Floats) -> ValueEstimate:
        return estimate_from_draws(value, draws, fit.tally.n_blocks)

    alone, chosen, always = (evaluate(problem, policy) for policy in policies)
    low, high = np.quantile(curves, (0.025, 0.975), axis=0, method="weibull")
    return ReportContents(
        plan=plan,
        alone=estimate(alone.value, values[:, 0]),
        chosen=estimate(chosen.value, values[:, 1]),
        unlimited=estimate(last.value, curves[:, -1]),
        always=estimate(always.value, values[:, 2]),
        added=estimate(chosen.value - alone.value, values[:, 1] - values[:, 0]),
        share=share_of(chosen.value, alone.value, last.value),
        logged=estimate(fit.logged_value, np.array(drawn_returns)),
        always_cost=always.advice_cost,
        budgets=budgets,
        value=_values_at(front, budgets),
        low=low,
        high=high,
        sensitivity=sensitivity_ranges(fit, plan.plan.policy),
    )


def _values_at(front: Frontier, budgets: Floats) -> Floats:
    return np.array([front.bounds(budget)[0] for budget in budgets])
