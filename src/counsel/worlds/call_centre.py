"""Call centre: a health programme, many mothers, and a phone line that reaches few of them.

Every week a mother gets a recorded message and listens to it or skips it. Who listens becomes more
engaged, who skips drifts away, and who is lost rarely returns. A call from a health worker is
advice to listen. The problem is that of one mother; a programme has hundreds, of several kinds, and
its calls per week belong to all of them (``counsel.share``). The world is for limits per step: it
is so small that a thousand mothers are simulated in a moment, and whom to call is not obvious. A
call to the engaged is wasted, a call to the lost hardly helps, and those between need it in time.

The setting is that of maternal health programmes that rank mothers as restless bandits (Mate et
al., 2022); all numbers are invented.
"""

import numpy as np
from numpy.typing import ArrayLike

from counsel.errors import CounselError
from counsel.model.human import Human
from counsel.model.mdp import MDP
from counsel.model.memory import Memory
from counsel.model.problem import AdviceProblem

STATES = ("engaged", "wavering", "drifting", "lost")
ACTIONS = ("skip", "listen")
WEEKS = 26
_LISTENS = {
    "at home": np.array([0.90, 0.60, 0.25, 0.05]),
    "working": np.array([0.80, 0.40, 0.15, 0.03]),
}
"""How often a mother listens without a call [state]."""
_LIFT = {
    "at home": np.array([0.70, 0.65, 0.50, 0.20]),
    "working": np.array([0.50, 0.45, 0.35, 0.15]),
}
"""How often a call makes a mother listen who would have skipped the message [state]."""
_TRANSITION = np.array(
    [
        [[0.55, 0.40, 0.05, 0.00], [0.92, 0.08, 0.00, 0.00]],
        [[0.10, 0.50, 0.40, 0.00], [0.45, 0.50, 0.05, 0.00]],
        [[0.00, 0.10, 0.65, 0.25], [0.10, 0.45, 0.42, 0.03]],
        [[0.00, 0.00, 0.02, 0.98], [0.00, 0.10, 0.35, 0.55]],
    ]
)
_START = np.array([0.40, 0.35, 0.20, 0.05])


def call_centre(
    *,
    mother: str = "at home",
    horizon: int = WEEKS,
    memory: Memory | None = None,
    fading: ArrayLike | None = None,
) -> AdviceProblem:
    """Return one mother of a health programme, who may be called to listen to its messages.

    ``mother`` is "at home" or "working". ``memory`` and ``fading`` make a mother who tires of calls
    (``Human.with_memory``).
    """
    if mother not in _LISTENS:
        raise CounselError(f"mother is {mother!r}; choose one of {', '.join(_LISTENS)}")
    listens = _LISTENS[mother]
    mdp = MDP(
        _TRANSITION,
        np.array([[0.0, 1.0]] * len(STATES)),  # a message that is heard
        horizon=horizon,
        start=_START,
        state_labels=STATES,
        action_labels=ACTIONS,
    )
    lift = np.stack([np.zeros(len(STATES)), _LIFT[mother]], axis=1)
    person = Human(np.stack([1.0 - listens, listens], axis=1), lift=lift)
    return AdviceProblem(mdp, person if memory is None else person.with_memory(memory, fading))
