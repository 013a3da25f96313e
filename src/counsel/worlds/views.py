"""Show an episode while it is played, as text; ``counsel.drawing.rendering`` draws the games.

In text, ▲ marks a cell where the person took the advice, △ one where they did something else, ● one
where the machine was silent, and > the bird. Colours only repeat what the signs say.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from counsel.model.problem import AdviceProblem

GREEN, RED, PLAIN = "\033[32m", "\033[31m", "\033[0m"


class Decision(NamedTuple):
    """One decision of an episode: state, advice, action and next state."""

    state: int
    advice: int
    action: int
    next_state: int

    @property
    def matched(self) -> bool:
        """Whether the person did what was advised."""
        return self.advice == self.action


class View(Protocol):
    """Shows the decisions so far and the state they led to."""

    def text(self, decisions: Sequence[Decision], state: int, caption: str) -> str:
        """Return the view as text."""
        ...


@runtime_checkable
class PictureView(View, Protocol):
    """A view that can also be drawn."""

    def frame(self, decisions: Sequence[Decision], state: int, caption: str) -> NDArray[np.uint8]:
        """Return the view as pixels [height, width, 3]."""
        ...


@dataclass(frozen=True, slots=True)
class TextView:
    """Shows any problem: the caption and the name of the state."""

    problem: AdviceProblem

    def text(self, decisions: Sequence[Decision], state: int, caption: str) -> str:
        return f"{caption}\n{self.problem.mdp.state_name(state)}\n"


def sign_of(decision: Decision, *, defer: int) -> str:
    """Return ▲ for a match, △ for advice that was not taken, ● for silence."""
    if decision.advice == defer:
        return "●"
    return "▲" if decision.matched else "△"


def coloured_sign(decision: Decision, *, defer: int) -> str:
    """Return the sign in green for advice and in red for silence, for a terminal."""
    colour = RED if decision.advice == defer else GREEN
    return f"{colour}{sign_of(decision, defer=defer)}{PLAIN}"
