"""The contents of a log's report: what the plan adds and what each budget buys, with intervals."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from counsel._arrays import Floats, check_rng
from counsel.logs.bootstrap import Draws, ValueEstimate
from counsel.logs.cross_fit import CrossFit, PlanWorth
from counsel.logs.evaluate_log import TRUSTED_SAMPLE, refusal_of, share_new
from counsel.logs.evidence import Evidence
from counsel.logs.excursion import ExcursionEffect
from counsel.logs.fitted_model import Fit
from counsel.logs.memory_worth import MemoryWorth, memory_worth
from counsel.logs.plan import LogPlan, kept_advice, quiet_policy, share_of
from counsel.logs.sensitivity import SensitivityRange, sensitivity_ranges
from counsel.planning.evaluate import evaluate
from counsel.planning.frontier import Frontier, frontier
from counsel.planning.reference_policies import always_best_action

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
    """The numbers of a report, with 95 % intervals over resampled people or episodes."""

    plan: LogPlan
    worth: PlanWorth  # of the plan, chosen on one half of the log and judged on the other
    today: ValueEstimate  # the mean return of the log
    alone: ValueEstimate  # the return of silence in the model
    always: ValueEstimate  # of the best action at all times
    share: float | None  # the share of the value of unlimited advice; None if that is 0
    always_cost: float  # cost of advice per episode if the best action is always advised
    budgets: Floats  # the budgets at which the frontier is drawn, in units of cost
    value: Floats
    low: Floats
    high: Floats
    effects: tuple[ExcursionEffect, ...]  # of sending advice, at once and without a model
    refusal: str | None  # why the episodes of the log cannot judge the plan; None if they can
    is_fair: bool  # whether episodes with and without advice can be compared
    is_recorded: bool  # whether the log holds the probabilities of its advice
    sensitivity: tuple[SensitivityRange, ...]  # if advice depended on unrecorded facts
    memory: MemoryWorth | None = None  # what planning for a memory is worth; None without one

    @property
    def fit(self) -> Fit:
        """The model."""
        return self.plan.fit

    @property
    def is_disputed(self) -> bool:
        """Whether model and episodes contradict each other about what the plan adds to today."""
        return self.worth.beyond_today.is_disputed

    @property
    def gain(self) -> ValueEstimate | None:
        """By how much the plan brings more than today, as far as it can be told."""
        return self.worth.beyond_today.best


def choose_budget(fit: Fit) -> int:
    """Return the smallest whole budget that keeps 80 % of the value of unlimited advice."""
    front = frontier(fit.problem, max_vertices=VERTICES, allow_reverse=False, **kept_advice(fit))
    first, last = front.vertices[0], front.vertices[-1]
    for budget in range(max(1, math.ceil(first.advice_cost)), math.ceil(last.advice_cost)):
        if front.bounds(budget)[0] - first.value >= ENOUGH * (last.value - first.value):
            return budget
    return max(1, math.ceil(last.advice_cost))


def prepare_report(
    plan: LogPlan,
    evidence: Evidence,
    *,
    rng: np.random.Generator | None = None,
    show: Callable[[int], None] | None = None,
) -> ReportContents:
    """Compute the contents of a report; ``show`` is called with the number of draws so far."""
    rng = np.random.default_rng(0) if rng is None else rng
    check_rng(rng)
    fit, problem, masks = plan.fit, plan.fit.problem, kept_advice(plan.fit)
    crossed = CrossFit.of(plan, rng)
    front = frontier(problem, max_vertices=VERTICES, allow_reverse=False, **masks)
    last = front.vertices[-1]
    policies = (quiet_policy(fit), always_best_action(problem))
    top = max(last.advice_cost, plan.plan.advice_cost, fit.logged_cost, 1e-9)
    budgets = np.linspace(0.0, top, POINTS) ** 2 / top  # closer together where budgets are small
    budgets = np.maximum(budgets, front.vertices[0].advice_cost)
    judged, values, curves = [], [], []
    for i, (tally, estimates) in enumerate(fit.resample(DRAWS, rng)):
        judged.append(crossed.in_models(tally, replan=True))
        values.append([evaluate(estimates.problem, policy).value for policy in policies])
        curve = frontier(estimates.problem, max_vertices=60, allow_reverse=False, **masks)
        curves.append(_values_at(curve, budgets))
        if show is not None:
            show(i + 1)
    alone, always = (evaluate(problem, policy) for policy in policies)
    drawn, blocks = np.array(values), fit.tally.n_blocks
    low, high = np.quantile(np.array(curves), (0.025, 0.975), axis=0, method="weibull")
    worth, new = crossed.worth(evidence, judged), share_new(plan.plan.policy, fit)
    return ReportContents(
        plan=plan,
        worth=worth,
        today=evidence.today().estimate,
        alone=Draws(alone.value, drawn[:, 0], blocks).estimate,
        always=Draws(always.value, drawn[:, 1], blocks).estimate,
        share=share_of(plan.plan.value, alone.value, last.value),
        always_cost=always.advice_cost,
        budgets=budgets,
        value=_values_at(front, budgets),
        low=low,
        high=high,
        effects=evidence.effects(),
        refusal=refusal_of(new, worth.effective, evidence, TRUSTED_SAMPLE),
        is_fair=evidence.is_fair,
        is_recorded=evidence.is_recorded,
        sensitivity=sensitivity_ranges(fit, plan.plan.policy),
        memory=memory_worth(plan) if fit.is_trusted else None,
    )


def _values_at(front: Frontier, budgets: Floats) -> Floats:
    """Return the value of the best plan for each budget, or of what must be sent at least."""
    least = front.vertices[0].advice_cost
    return np.array([front.bounds(max(float(budget), least))[0] for budget in budgets])
