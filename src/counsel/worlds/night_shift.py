"""Night shift: a nurse alone on a ward at night, and a monitor that may give advice.

An episode is twelve hours. The patient is stable, drifting, failing, or in crisis; the nurse waits,
checks, or treats. Checking stops a drift, treatment helps a failing patient, and both take time
away from other patients. The nurse acts well at first and waits more and more as the night goes on.
The more work a piece of advice asks for, the less often it is taken. The world is small enough to
print and shows the whole problem: where to advise, where silence is better, and what two alerts per
night are worth.
"""

import numpy as np

from counsel.model.human import Human
from counsel.model.mdp import MDP
from counsel.model.problem import AdviceProblem

STATES = ("stable", "drifting", "failing", "crisis")
ACTIONS = ("wait", "check", "treat")
HOURS = 12


def night_shift(*, random_rewards: bool = False) -> AdviceProblem:
    """Return a tired nurse, a patient who may slip, and an alarm that is not always taken.

    With ``random_rewards`` every hour pays −0.2 or 1, with the same means.
    """
    transition = np.array(
        [
            # from stable
            [[0.85, 0.15, 0.00, 0.00], [0.92, 0.08, 0.00, 0.00], [0.92, 0.08, 0.00, 0.00]],
            # from drifting
            [[0.20, 0.45, 0.35, 0.00], [0.65, 0.30, 0.05, 0.00], [0.75, 0.22, 0.03, 0.00]],
            # from failing
            [[0.00, 0.15, 0.45, 0.40], [0.05, 0.30, 0.40, 0.25], [0.35, 0.45, 0.15, 0.05]],
            # from crisis
            [[0.00, 0.00, 0.05, 0.95], [0.00, 0.00, 0.15, 0.85], [0.00, 0.10, 0.50, 0.40]],
        ]
    )
    health = np.array([1.0, 0.9, 0.5, 0.0])
    effort = np.array([0.0, 0.06, 0.20])
    alert = np.array(
        [[0.80, 0.20, 0.00], [0.30, 0.60, 0.10], [0.10, 0.30, 0.60], [0.00, 0.10, 0.90]]
    )
    drowsy = np.array(
        [[1.00, 0.00, 0.00], [0.90, 0.10, 0.00], [0.65, 0.30, 0.05], [0.15, 0.25, 0.60]]
    )
    tired = np.linspace(0.0, 1.0, HOURS)[:, None, None]
    mdp = MDP(
        transition,
        health[:, None] - effort,
        horizon=HOURS,
        start=0,
        state_labels=STATES,
        action_labels=ACTIONS,
    )
    adherence = np.maximum([1.0, 0.8, 0.65], (1.0 - tired) * alert + tired * drowsy)
    problem = AdviceProblem(mdp, Human((1.0 - tired) * alert + tired * drowsy, adherence))
    return problem.with_random_rewards() if random_rewards else problem
