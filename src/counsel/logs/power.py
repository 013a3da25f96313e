"""What a log of this size can tell, and how to collect a better one.

With a standard error e, an effect is told from 0 at the 5 % level in 80 % of logs if it is at least

    (t₀.₉₇₅ + t₀.₈) e            with Student's quantiles for as many people as the log has

Errors fall with the square root of the number of people, each with as many episodes as now.

The *schedule* of a micro-randomised trial says, for each state, with which probability to send the
advice that the plan would send there if it had no limit. The lift is known best per decision if

    p / (1 − p) = √(m (1 − m)) / ((1 − λ) √(π (1 − π)))

with π the share who do it anyway, λ the lift and m = λ + (1 − λ) π the share who match: the error
of either arm counts as much as it varies. Probabilities stay within bounds, so that every decision
remains informative; with a limit on pieces, all odds are lowered by one factor.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from counsel._arrays import Floats, Ints
from counsel.errors import CounselError
from counsel.logs.adherence_breakdown import by_advice, overall
from counsel.logs.bootstrap import few_blocks_factor
from counsel.logs.cross_fit import CrossFit
from counsel.logs.evidence import Evidence
from counsel.logs.fitted_model import Fit
from counsel.logs.plan import plan_advice
from counsel.model.policy import Policy
from counsel.planning.evaluate import evaluate
from counsel.planning.gains import gains, level_gains

POWER = 0.8
"""The share of logs in which an effect is told."""

DRAWS = 60
"""Draws behind the error of a difference in the model."""

LEAST = 0.1
"""The least probability of advice, and of silence, unless told otherwise."""


@dataclass(frozen=True, slots=True)
class SmallestEffect:
    """The smallest effect that a log can tell from 0, and the error behind it."""

    what: str
    found: float  # the effect in this log
    error: float
    smallest: float

    def factor(self, wanted: float) -> float:
        """Return how many times as many people can tell an effect of this size."""
        return (self.smallest / wanted) ** 2


@dataclass(frozen=True, slots=True)
class Power:
    """What a log can tell: lifts, and what a plan brings beyond today."""

    people: int | None  # None if the log names nobody
    episodes: int
    clusters: int
    lift: SmallestEffect | None  # of all advice together
    by_advice: tuple[SmallestEffect, ...]
    difference: SmallestEffect | None  # of the plan and today, in the model; None if unknown
    trial: SmallestEffect  # of two halves of as many people, one with another rule


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """The advice and the probability of each state [s]; ``advice`` is −1 where none is tried."""

    states: tuple[str, ...]
    actions: tuple[str, ...]
    advice: Ints
    probability: Floats
    pieces: float  # per episode, in the model

    def settings(self) -> dict[str, object]:
        """Return the settings of an adviser that runs the trial."""
        chances = {
            self.states[s]: {self.actions[self.advice[s]]: round(float(self.probability[s]), 4)}
            for s in np.flatnonzero(self.advice >= 0)
        }
        return {"explore": 1.0, "schedule": chances}


def find_power(fit: Fit, evidence: Evidence, rng: np.random.Generator | None = None) -> Power:
    """Return what a log can tell."""
    rng = np.random.default_rng(0) if rng is None else rng
    clusters = int(np.unique(evidence.rows.cluster).size)
    wide = few_blocks_factor(max(fit.tally.n_blocks, 2))  # is in the errors of lifts already
    lifts = overall(fit.tally, fit.estimates)
    each = by_advice(fit.tally, fit.estimates)

    def effect(what: str, found: float, error: float) -> SmallestEffect:
        return SmallestEffect(what, found, error, _multiple(clusters) * error)

    known = [i for i in each.most_given if each.has_lift[i]]
    today = evidence.today()
    apart = 2.0 * float(np.std(today.draws, ddof=1)) * math.sqrt(clusters / max(clusters - 1, 1))
    return Power(
        people=fit.check.people,
        episodes=fit.check.episodes,
        clusters=clusters,
        lift=effect("all advice", float(lifts.lift[0]), float(lifts.error[0]) / wide)
        if lifts.has_lift[0]
        else None,
        by_advice=tuple(
            effect(str(each.keys[i]), float(each.lift[i]), float(each.error[i]) / wide)
            for i in known
        ),
        difference=_difference(fit, rng, effect),
        trial=effect("two halves", 0.0, apart),
    )


def _difference(
    fit: Fit, rng: np.random.Generator, effect: Callable[[str, float, float], SmallestEffect]
) -> SmallestEffect | None:
    """Return what can be told of the best plan and today; None if nothing can be planned."""
    plan = plan_advice(fit)
    if not fit.is_trusted or plan.keeps_all:
        return None
    crossed = CrossFit.of(plan, rng)
    drawn = [crossed.in_models(tally, replan=True) for tally in fit.resample_counts(DRAWS, rng)]
    chosen, _, logged = crossed.in_models(fit.tally)
    error = float(np.std([draw[0] - draw[2] for draw in drawn], ddof=1))
    return effect("plan − today", chosen - logged, error)


def _multiple(clusters: int) -> float:
    """Return how many standard errors an effect must have."""
    from scipy.special import stdtrit

    freedom = max(clusters - 1.0, 1.0)
    return float(stdtrit(freedom, 0.975) + stdtrit(freedom, POWER))


def make_schedule(fit: Fit, *, budget: float | None = None, least: float = LEAST) -> Schedule:
    """Return the schedule of a micro-randomised trial.

    Parameters
    ----------
    fit
        The model of what is known so far.
    budget
        Pieces of advice per episode, on average; by default without a limit.
    least
        The least probability of advice, and of silence.

    Returns
    -------
    Schedule
        The advice to try in each state, and its probability.

    Raises
    ------
    CounselError
        If ``least`` is not a probability up to a half, or the budget is below what the least
        probabilities cost.
    """
    if not 0.0 < least <= 0.5:
        raise CounselError(f"least is {least:g}; it must be above 0 and at most 0.5")
    estimates, problem = fit.estimates, fit.problem
    S = len(fit.tally.states)
    plan = plan_advice(fit).plan
    if problem.memory is None:
        gain_hsa = gains(problem, plan.values)[1]
    else:
        levels = range(problem.n_levels)
        gain_hsa = np.max([level_gains(problem, plan.values, m)[1] for m in levels], axis=0)
    gain = gain_hsa[:, :S].max(axis=0)
    possible = problem.mdp.allowed[:, :S].any(axis=0) & (estimates.taken.sum(axis=0) > 0.0)
    seen = estimates.given.sum(axis=0)
    # What is worth most; where nothing is known yet, what was sent most.
    worth = np.where(possible, gain + 1e-9 * seen / max(float(seen.max()), 1.0), -np.inf)
    advice = np.where(possible.sum(axis=1) > 1, worth.argmax(axis=1), -1)
    at = (np.arange(S), np.maximum(advice, 0))
    own = estimates.habit.policy.reshape(estimates.lift.shape).mean(axis=0)[at]
    lift = np.clip(estimates.lift.mean(axis=0)[at], 0.0, 0.95)
    match = lift + (1.0 - lift) * own
    spread = np.sqrt(np.maximum(match * (1.0 - match), 1e-4))
    odds = spread / np.maximum((1.0 - lift) * np.sqrt(np.maximum(own * (1.0 - own), 1e-4)), 1e-4)

    def pieces(factor: float) -> tuple[Floats, float]:
        chance = np.where(advice >= 0, np.clip(_share(factor * odds), least, 1.0 - least), 0.0)
        return chance, evaluate(problem, _policy(fit, advice, chance)).advice_cost

    chance, cost = pieces(1.0)
    if budget is not None and cost > budget:
        low, high = 0.0, 1.0
        if pieces(0.0)[1] > budget:
            raise CounselError(
                f"budget is {budget:g}; with a probability of {least:g} in every state "
                f"{pieces(0.0)[1]:.3g} pieces are sent per episode: raise the budget or lower least"
            )
        for _ in range(50):
            middle = (low + high) / 2.0
            low, high = (middle, high) if pieces(middle)[1] <= budget else (low, middle)
        chance, cost = pieces(low)
    return Schedule(fit.tally.states, fit.tally.actions, advice, chance, cost)


def _share(odds: Floats) -> Floats:
    share: Floats = odds / (1.0 + odds)
    return share


def _policy(fit: Fit, advice: Ints, chance: Floats) -> Policy:
    """Return the schedule as a policy."""
    problem, S = fit.problem, advice.size
    table = np.zeros((problem.horizon, problem.n_states, problem.n_actions + 1))
    tried = np.flatnonzero(advice >= 0)
    table[:, tried, advice[tried]] = chance[tried]
    table[:, :S, -1] = 1.0 - table[:, :S, :-1].sum(axis=2)
    table[:, S:, -1] = 1.0
    return Policy.from_probabilities(table)
