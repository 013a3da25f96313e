"""Machine repair: maintenance that never ends, in the spirit of Grand-Clément and Pauphilet.

A machine is in one of ten conditions, from new to failed, or in one of two kinds of repair. Each
day its operator carries on, or sends the machine to repair: a normal repair is cheap and slow, a
thorough one dear and quick. A worn machine earns less, and a failed one nothing. Operators repair
late, and only some of them follow a recommendation: the example shows how a plan that ignores
adherence loses value, in work that is discounted and has no last day.
"""

import numpy as np

from counsel._arrays import real, whole
from counsel.errors import CounselError
from counsel.model.human import Human
from counsel.model.mdp import MDP
from counsel.model.problem import AdviceProblem

ACTIONS = ("carry on", "normal repair", "thorough repair")
WEAR = 0.3
"""The probability that a machine in use wears by one condition in a day."""

BACK = (0.5, 0.8)
"""The probability that a normal and a thorough repair ends on a day, with a machine like new."""

COST = (2.0, 6.0)
"""What a day of each repair costs, in units of a day of a new machine's work times ten."""


def machine_repair(
    *, conditions: int = 10, discount: float = 0.95, lift: float = 0.6
) -> AdviceProblem:
    """Return a machine that wears with use, and an operator who repairs it late.

    ``conditions`` is the number of conditions from new to failed, ``lift`` how much the operator
    listens.
    """
    N = whole("conditions", conditions, least=2)
    if not 0.0 <= real("lift", lift) <= 1.0:
        raise CounselError(f"lift is {lift:g}; it must be from 0 to 1")
    S, normal, thorough = N + 2, N, N + 1
    P, reward = np.zeros((S, 3, S)), np.zeros((S, 3))
    habit = np.zeros((S, 3))
    for s in range(N):
        P[s, 0, s] += 1.0 - WEAR
        P[s, 0, min(s + 1, N - 1)] += WEAR
        P[s, 1, normal] = P[s, 2, thorough] = 1.0
        reward[s, 0] = 10.0 * (1.0 - (s / (N - 1)) ** 2)
        # The operator hardly repairs before the machine fails.
        repairs = 0.7 if s == N - 1 else 0.1 * s / (N - 1)
        habit[s] = (1.0 - repairs, 0.8 * repairs, 0.2 * repairs)
    for s, back, cost in zip((normal, thorough), BACK, COST, strict=True):
        P[s, :, 0], P[s, :, s] = back, 1.0 - back
        reward[s] = -cost
        habit[s, 0] = 1.0
    labels = ["new", *(f"worn {s}" for s in range(1, N - 1)), "failed"]
    mdp = MDP(
        P,
        reward,
        discount=discount,
        state_labels=[*labels, "in normal repair", "in thorough repair"],
        action_labels=ACTIONS,
    )
    return AdviceProblem(mdp, Human(habit, lift=lift))
