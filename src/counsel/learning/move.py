"""One decision, as a learner sees it live."""

from typing import NamedTuple


class Move(NamedTuple):
    """What was advised, what the person did, and what came of it."""

    step: int
    state: int
    advice: int
    action: int
    reward: float
    next_state: int
