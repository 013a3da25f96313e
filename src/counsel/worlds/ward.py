"""Ward: a hospital ward whose alarm alerts too often, as a problem and as a log of past shifts.

A patient is stable, under watch, deteriorating or critical, and may be moved to intensive care,
which ends the episode. In each of the six rounds of a shift the nurse carries on, assesses the
patient, or calls the doctor. The reward is the health of the patient after the round, less the
effort. An alert may ask for any of the three actions. Nurses trust alerts differently: the alert to
assess comes all the time and changes little (alert fatigue), the alert to call the doctor is rare
and taken seriously, and the all-clear is believed readily. Nothing changes from round to round, so
a log of many shifts can be pooled over steps.

``ward_log`` draws a log as a hospital would keep it: nurses differ in how much they listen, and
listen a little less as the months go by; alerts follow a randomised rule whose probabilities are
recorded; some alerts are never seen.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from counsel._arrays import Floats, check_rng, whole
from counsel._tables import Table, arrow_table, column
from counsel.model.human import Human, advised_law, draw_index
from counsel.model.mdp import MDP
from counsel.model.memory import Memory
from counsel.model.problem import AdviceProblem
from counsel.simulate.decision_log import DECISION_COLUMNS

STATES = ("stable", "watch", "deteriorating", "critical", "intensive care")
ACTIONS = ("carry on", "assess", "call doctor")
LIFT = np.array([0.55, 0.3, 0.7])  # the lift of each alert
NURSES = 40
MONTHS = 6
UNSEEN = 0.06  # the share of alerts that nobody sees
FADING = 0.7  # what is left of a tiring nurse's lift after each alert
PIECES = 5  # alerts that a tiring nurse's memory tells apart
_OWN = np.array(
    [
        [0.90, 0.09, 0.01],
        [0.62, 0.35, 0.03],
        [0.35, 0.45, 0.20],
        [0.08, 0.30, 0.62],
        [1.00, 0.00, 0.00],
    ]
)
_HEALTH = np.array([1.0, 0.9, 0.5, 0.1, 0.0])  # the reward of each state at the end of a round
_EFFORT = np.array([0.0, 0.05, 0.15])
_TRANSITION = np.array(
    [
        [[0.88, 0.12, 0, 0, 0], [0.94, 0.06, 0, 0, 0], [0.95, 0.05, 0, 0, 0]],
        [[0.20, 0.52, 0.28, 0, 0], [0.55, 0.38, 0.07, 0, 0], [0.60, 0.35, 0.05, 0, 0]],
        [[0.00, 0.15, 0.50, 0.35, 0], [0.05, 0.40, 0.42, 0.13, 0], [0.20, 0.55, 0.21, 0.04, 0]],
        [
            [0.00, 0.00, 0.10, 0.55, 0.35],
            [0.00, 0.02, 0.28, 0.50, 0.20],
            [0.00, 0.15, 0.50, 0.27, 0.08],
        ],
        [[0, 0, 0, 0, 1.0], [0, 0, 0, 0, 1.0], [0, 0, 0, 0, 1.0]],
    ]
)
_START = np.array([0.7, 0.2, 0.1, 0.0, 0.0])
_ALERTS = np.array(
    [
        [0.02, 0.10, 0.01, 0.87],
        [0.04, 0.28, 0.24, 0.44],
        [0.03, 0.24, 0.43, 0.30],
        [0.02, 0.08, 0.60, 0.30],
    ]
)
"""The probabilities of alerts under the current rule [state, advice]; silence last."""


def ward(
    *, horizon: int = 6, memory: Memory | None = None, fading: ArrayLike | None = None
) -> AdviceProblem:
    """Return a shift of ``horizon`` rounds with one patient.

    ``memory`` and ``fading`` make a nurse who tires of alerts (``Human.with_memory``).
    """
    reward = _TRANSITION @ _HEALTH - _EFFORT
    reward[-1] = 0.0
    mdp = MDP(
        _TRANSITION,
        reward,
        horizon=horizon,
        start=_START,
        state_labels=STATES,
        action_labels=ACTIONS,
    )
    nurse = Human(_OWN, lift=LIFT, groups=np.arange(len(ACTIONS)))
    return AdviceProblem(mdp, nurse if memory is None else nurse.with_memory(memory, fading))


def ward_log(*, shifts: int = 15_000, rng: np.random.Generator, tiring: bool = False) -> Any:  # noqa: ANN401 (pyarrow's)
    """Return ``ward_table`` as an Arrow table, in the schema that ``counsel fit`` reads."""
    return arrow_table(ward_table(shifts=shifts, rng=rng, tiring=tiring))


def ward_table(*, shifts: int, rng: np.random.Generator, tiring: bool = False) -> Table:
    """Draw a log of past shifts, each of which is an episode, without pyarrow.

    If nurses are ``tiring``, every alert that they see moves them 30 % less for the rest of the
    shift, as in the world ``ward/tiring``; they do not listen less as the months go by.
    """
    shifts = whole("shifts", shifts, least=1)
    check_rng(rng)
    problem = ward()
    H, A = problem.horizon, len(ACTIONS)
    # Each nurse listens more or less than the average nurse.
    level = rng.beta(8.0, 2.0, size=NURSES) / 0.8
    rows: list[tuple[object, ...]] = []
    begin = np.datetime64("2026-01-05T07:00")
    for shift in range(shifts):
        nurse = int(rng.integers(NURSES))
        day = int(shift * MONTHS * 30 / shifts)
        tired = 1.0 if tiring else 1.0 - 0.15 * shift / shifts
        state = draw_index(_START, rng)
        for turn in range(H):
            advice = draw_index(_ALERTS[state], rng)
            seen = advice < A and rng.random() >= UNSEEN
            law: Floats = _OWN[state]
            if seen:
                lift = min(LIFT[advice] * level[nurse] * tired, 1.0)
                theta = lift + (1.0 - lift) * _OWN[state, advice]
                law = advised_law(_OWN[state], advice, theta)
                tired *= FADING if tiring else 1.0
            action = draw_index(law, rng)
            next_state = draw_index(_TRANSITION[state, action], rng)
            ended = next_state == len(STATES) - 1
            decision = (
                f"shift-{shift:05d}",
                turn,
                f"nurse-{nurse:02d}",
                str(begin + np.timedelta64(24 * day + 2 * turn, "h")),
                STATES[state],
                None if advice == A else ACTIONS[advice],
                float(_ALERTS[state, advice]),
                None if advice == A else seen,
                ACTIONS[action],
                round(float(_HEALTH[next_state] - _EFFORT[action]), 6),
                STATES[next_state],
                ended,
                not ended and turn == H - 1,
            )
            rows.append(decision)
            if ended:
                break
            state = next_state
    columns = zip(DECISION_COLUMNS.items(), zip(*rows, strict=True), strict=True)
    return {name: column(values, kind) for (name, kind), values in columns}
