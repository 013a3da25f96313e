"""Sensitivity to the assumption that advice was independent of unrecorded facts.

If advice went to people who needed it least, they would have matched it anyway, and its lift looks
larger than it is. Suppose that, among people in one state, the odds of doing b anyway were up to Γ
times as large, or as small, for people who were advised b as for people who were not. Then the
match rate θ stays the same and the habit behind it is π' with odds(π') = Γ^±1 odds(π), so the lift
is

    λ' = (θ − π') / (1 − π')

The value that a policy adds is computed with all lifts at either end. Γ = 1 is independence.
"""

from dataclasses import dataclass

import numpy as np

from counsel.estimate.habit import chance_of_others, least_lift
from counsel.logs.estimate_world import person_with_memory
from counsel.logs.fitted_model import Fit
from counsel.model.advice_costs import given_cost
from counsel.model.human import Human
from counsel.model.policy import Policy
from counsel.model.problem import AdviceProblem
from counsel.planning.evaluate import evaluate
from counsel.planning.reference_policies import value_alone

ODDS = (1.0, 1.25, 1.5, 2.0, 3.0)
"""The values of Γ."""


@dataclass(frozen=True, slots=True)
class SensitivityRange:
    """The least and the most value that a policy adds to silence, for one Γ."""

    odds: float
    low: float
    high: float


def sensitivity_ranges(fit: Fit, policy: Policy) -> tuple[SensitivityRange, ...]:
    """Return the range of the value that a policy adds to silence, for each Γ."""
    return tuple(
        # Larger odds are worse for advice that moves people, better for advice that repels them.
        SensitivityRange(odds, *sorted(_added_value(fit, policy, g) for g in (odds, 1.0 / odds)))
        for odds in ODDS
    )


def _added_value(fit: Fit, policy: Policy, odds: float) -> float:
    """Return the value that a policy adds if the advised match with other odds anyway."""
    problem, estimates = fit.problem, fit.estimates
    own = problem.human.policy
    rested = 0 if estimates.fading is None or problem.memory is None else estimates.fading.argmax()
    lift = problem.human.level_lift[rested].copy()
    S = estimates.lift.shape[1]
    habit = estimates.habit.policy.reshape(estimates.lift.shape)
    theta = estimates.adherence
    rest = chance_of_others(habit)
    # λ' with π' = Γ π / (1 − π + Γ π), multiplied out: computing 1 − π' loses digits near 1.
    apart = theta * rest + (theta - 1.0) * odds * habit
    other_lift = np.divide(apart, rest, out=np.zeros(rest.shape), where=rest > 0.0)
    other_lift = np.where(estimates.usable, other_lift * estimates.seen, 0.0)
    lift[:, :S] = np.where(lift[:, :S] != 0.0, other_lift, 0.0)
    lift = np.clip(lift, least_lift(own), 1.0)
    person = Human(own if len(own) > 1 else own[0], lift=lift if len(lift) > 1 else lift[0])
    if problem.memory is not None and estimates.fading is not None:
        person = person_with_memory(person, problem.memory, estimates.fading)
    other = AdviceProblem(problem.mdp, person, given_cost(problem.cost))
    return evaluate(other, policy).value - value_alone(other)
