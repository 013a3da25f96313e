"""How an episode looks while it goes on, in words; ``counsel.drawing.rendering`` draws the games.

In text a cell where advice was given shows ▲ (△ where it was not taken), one where the machine was
silent ●, and the bird >. Colours repeat what the signs say.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from counsel.model.problem import AdviceProblem

GREEN, RED, PLAIN = "\033[32m", "\033[31m", "\033[0m"


class Leg(NamedTuple):
    """One decision: where, what was advised, what was done, and where it led."""

    state: int
    advice: int
    action: int
    next_state: int


class View(Protocol):
    """Shows the decisions so far and the state they led to."""

    def text(self, moves: Sequence[Leg], state: int, caption: str) -> str:
        """Return it as text."""
        ...


@runtime_checkable
class Picture(View, Protocol):
    """A view that can also be drawn."""

    def frame(self, moves: Sequence[Leg], state: int, caption: str) -> NDArray[np.uint8]:
        """Return it as pixels [height, width, 3]."""
        ...


@dataclass(frozen=True, slots=True)
class Words:
    """Any problem, in words."""

    problem: AdviceProblem

    def text(self, moves: Sequence[Leg], state: int, caption: str) -> str:
        """Return the caption and the state."""
        return f"{caption}\n{self.problem.mdp.state_name(state)}\n"


def sign_of(move: Leg, *, defer: int) -> str:
    """Return ▲ for advice, △ for advice that was not taken, ● for silence, coloured."""
    if move.advice == defer:
        return f"{RED}●{PLAIN}"
    return f"{GREEN}{'▲' if move.advice == move.action else '△'}{PLAIN}"
