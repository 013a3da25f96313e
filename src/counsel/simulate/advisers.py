"""Functions that give advice, with or without the level of a person's memory."""

from collections.abc import Callable
from inspect import signature

from numpy.random import Generator

from counsel.model.memory import Memory
from counsel.model.policy import Policy

Advise = Callable[..., int]
"""Returns the advice at a step in a state, on a level of the person's memory if it takes one."""


def level_adviser(advise: Advise, memory: Memory | None) -> Callable[[int, int, int], int]:
    """Return a function of step, state and level.

    The level is passed on if the person has a memory and the function takes one. A function that
    takes no level is blind to the memory.
    """
    is_blind = memory is None
    try:
        signature(advise).bind(0, 0, 0)
    except TypeError:
        is_blind = True
    return (lambda step, state, _: advise(step, state)) if is_blind else advise


class PolicyAdviser:
    """Advises by a policy for one episode, and counts the pieces of a hard budget."""

    def __init__(self, policy: Policy, rng: Generator) -> None:
        self._policy, self._rng, self._spent = policy, rng, 0

    def __call__(self, step: int, state: int, level: int | None = None) -> int:
        """Return the advice."""
        left = self._policy.left_after(self._spent)
        advice = self._policy.draw(step, state, self._rng, left, level)
        self._spent += advice != self._policy.defer
        return advice
