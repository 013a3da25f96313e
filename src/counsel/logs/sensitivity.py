"""How much rests on the assumption that advice was independent of what is not recorded.

If advice went to those who needed it least, they would have matched it anyway, and its lift looks
larger than it is. Suppose that, among people in one state, the odds of doing b anyway were up to Γ
times as large, or as small, for those who were advised b as for those who were not. Then the match
rate θ stays what it is and the habit behind it is π' with odds(π') = Γ^±1 odds(π), so the lift is

    λ' = (θ − π') / (1 − π')

The worth of a policy is worked out with all lifts at either end. Γ = 1 is no such dependence.
"""

from dataclasses import dataclass

import numpy as np

from counsel.estimate.habit import chance_of_others
from counsel.logs.estimate import least_lift
from counsel.logs.fit import Fit
from counsel.model.human import Human
from counsel.model.policy import Policy
from counsel.model.problem import AdviceProblem
from counsel.planning.evaluate import evaluate
from counsel.planning.silence import value_alone

ODDS = (1.0, 1.25, 1.5, 2.0, 3.0)
"""The values of Γ that are tried."""


@dataclass(frozen=True, slots=True)
class Swayed:
    """What a policy brings beyond silence, at least and at most, for one Γ."""

    odds: float
    low: float
    high: float


def sensitivity(fit: Fit, policy: Policy) -> tuple[Swayed, ...]:
    """Return the range of what a policy brings beyond silence for each Γ."""
    return tuple(
        # Larger odds are worse for advice that moves people, better for advice that repels them.
        Swayed(odds, *sorted(_worth(fit, policy, g) for g in (odds, 1.0 / odds)))
        for odds in ODDS
    )


def _worth(fit: Fit, policy: Policy, odds: float) -> float:
    """Return what a policy brings where the advised would match with other odds anyway."""
    problem, found = fit.problem, fit.estimates
    own, lift = problem.human.policy, problem.human.lift.copy()
    S = found.lift.shape[1]
    habit = found.habit.policy.reshape(found.lift.shape)
    theta = found.adherence
    rest = chance_of_others(habit)
    # λ' with π' = Γ π / (1 − π + Γ π), multiplied out: 1 − π' would lose its digits near 1.
    apart = theta * rest + (theta - 1.0) * odds * habit
    swayed = np.divide(apart, rest, out=np.zeros(rest.shape), where=rest > 0.0)
    swayed = np.where(found.usable, swayed * found.seen, 0.0)
    lift[:, :S] = np.where(lift[:, :S] != 0.0, swayed, 0.0)
    lift = np.clip(lift, least_lift(own), 1.0)
    person = Human(own if len(own) > 1 else own[0], lift=lift if len(lift) > 1 else lift[0])
    other = AdviceProblem(problem.mdp, person)
    return evaluate(other, policy).value - value_alone(other)
