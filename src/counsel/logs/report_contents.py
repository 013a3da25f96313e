"""Everything a report says of a log: how much people listen, where advice pays, what a budget buys.

A budget that is not given is the smallest whole number of pieces that keeps four fifths of what
unlimited advice is worth.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from counsel._arrays import Floats, check_rng
from counsel.logs.evaluate_log import Worth, ends_of
from counsel.logs.fit import Fit
from counsel.logs.plan import Planned, plan
from counsel.logs.sensitivity import Swayed, sensitivity
from counsel.planning.best_action import always_best_action
from counsel.planning.evaluate import evaluate
from counsel.planning.frontier import Frontier, frontier
from counsel.planning.silence import never_advise

ENOUGH = 0.8
"""The share of the benefit that the budget is chosen for."""

DRAWS = 100
"""Draws of the episodes behind the intervals."""

VERTICES = 200
"""Corners of the frontier that are traced."""

POINTS = 41
"""Budgets at which the frontier is drawn."""


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """What a report shows.

    Attributes
    ----------
    fit, planned
        The model, and the plan within the chosen limit.
    limit
        The limit in words.
    alone, chosen, unlimited, always
        Reward of an episode in the model: silence, the plan, the best advice without limit, and
        always the best action; with intervals.
    worth
        What the plan brings beyond silence.
    share
        The share of what unlimited advice brings, or NaN where that is nothing.
    logged
        Mean reward of the episodes of the log.
    always_pieces
        Pieces of advice an episode where always the best action is advised.
    budgets, value, low, high
        The frontier at some budgets, with intervals.
    sensitivity
        What the plan brings if advice depended on what is not recorded.
    """

    fit: Fit
    planned: Planned
    limit: str
    alone: Worth
    chosen: Worth
    unlimited: Worth
    always: Worth
    worth: Worth
    share: float
    logged: Worth
    always_pieces: float
    budgets: Floats
    value: Floats
    low: Floats
    high: Floats
    sensitivity: tuple[Swayed, ...]


def study(  # noqa: PLR0913 (the limit, and how sure to be)
    fit: Fit,
    *,
    penalty: float | None = None,
    budget: float | None = None,
    hard: bool = False,
    cautious: bool = False,
    rng: np.random.Generator | None = None,
    show: Callable[[int], None] | None = None,
) -> Study:
    """Work out all that a report says.

    Parameters
    ----------
    fit
        What ``counsel.fit`` returned.
    penalty, budget, hard, cautious
        The limit of the plan, as in ``counsel.logs.plan``.
    rng
        Where draws come from; always the same when not given.
    show
        Called with the number of draws done, of 100.
    """
    rng = np.random.default_rng(0) if rng is None else rng
    check_rng(rng)
    problem = fit.problem
    front = frontier(problem, max_vertices=VERTICES, allow_reverse=False)
    first, last = front.vertices[0], front.vertices[-1]
    if penalty is None and budget is None:
        budget = float(_enough(front))
    planned = plan(fit, penalty=penalty, budget=budget, hard=hard, cautious=cautious, rng=rng)
    never = never_advise(problem)
    always, policy = always_best_action(problem), planned.plan.policy
    top = max(last.advice_count, planned.plan.advice_count, fit.logged_pieces, 1e-9)
    budgets = np.linspace(0.0, top, POINTS) ** 2 / top  # finer where there is little
    traced = _values(front, budgets)
    asked = (never, policy, always)
    drawn, curves, returns = [], [], []
    for i, (tally, found) in enumerate(fit.resampled(DRAWS, rng)):
        other = found.problem
        drawn.append([evaluate(other, one).value for one in asked])
        curves.append(_values(frontier(other, max_vertices=60, allow_reverse=False), budgets))
        returns.append(tally.mean_return)
        if show is not None:
            show(i + 1)
    values, bands = np.array(drawn), np.array(curves)
    blocks = fit.tally.n_blocks

    def worth_of(value: float, draws: Floats) -> Worth:
        return Worth(float(value), *ends_of(draws, blocks))

    alone, chosen, every = (evaluate(problem, one) for one in asked)
    benefit = last.value - first.value
    some = benefit > 1e-9 * (1.0 + abs(last.value))
    low, high = np.quantile(bands, (0.025, 0.975), axis=0, method="weibull")
    return Study(
        fit=fit,
        planned=planned,
        limit=_limit(penalty, budget, hard=hard),
        alone=worth_of(alone.value, values[:, 0]),
        chosen=worth_of(chosen.value, values[:, 1]),
        unlimited=worth_of(last.value, bands[:, -1]),
        always=worth_of(every.value, values[:, 2]),
        worth=worth_of(chosen.value - alone.value, values[:, 1] - values[:, 0]),
        share=(chosen.value - alone.value) / benefit if some else math.nan,
        logged=worth_of(fit.logged_value, np.array(returns)),
        always_pieces=every.advice_count,
        budgets=budgets,
        value=traced,
        low=low,
        high=high,
        sensitivity=sensitivity(fit, policy),
    )


def _enough(front: Frontier) -> int:
    """Return the smallest whole budget that keeps four fifths of the benefit, at least one."""
    first, last = front.vertices[0], front.vertices[-1]
    for pieces in range(1, math.ceil(last.advice_count)):
        if front.bounds(pieces)[0] - first.value >= ENOUGH * (last.value - first.value):
            return pieces
    return max(1, math.ceil(last.advice_count))


def _values(front: Frontier, budgets: Floats) -> Floats:
    return np.array([front.bounds(budget)[0] for budget in budgets])


def _limit(penalty: float | None, budget: float | None, *, hard: bool) -> str:
    if budget is None:
        return f"a penalty of {penalty:g} for each piece" if penalty else "no limit"
    pieces = f"{budget:g} piece{'' if budget == 1 else 's'} of advice an episode"
    return f"at most {pieces}" if hard else f"{pieces} on average"
