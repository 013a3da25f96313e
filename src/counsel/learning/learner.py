"""The protocol of learners: what ``learn``, the service and ``check_learner`` call.

For one person, live: ``advise``, ``observe``, ``finish``. In bulk: ``policy`` is what the learner
would advise now, and ``update`` takes whole episodes. A learner is built from what it may know
(``problem.without_adherence()``, ``problem.shape``) and sees nothing else but what happens.
"""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar, runtime_checkable

from numpy.random import Generator

from counsel._arrays import Floats
from counsel.errors import CounselError
from counsel.learning.charges import Penalty
from counsel.model.memory import Memory
from counsel.model.policy import Policy
from counsel.simulate.episodes import Episodes
from counsel.simulate.move import Move
from counsel.simulate.simulator import Simulator

_T = TypeVar("_T", bound=type)

LIVE = ("advise", "observe", "finish")  # the methods that run a learner live


class Learner(Protocol):
    """Gives advice and learns from how the person responds: what ``learn`` runs.

    A learner that keeps within a budget has an attribute ``budget``, the expected cost of advice in
    an episode. A learner whose guarantee holds for a number of episodes only has an attribute
    ``most_episodes``, that number, and ``episode``, how many it has learnt from: ``learn`` refuses
    to go beyond. A learner that knows the memory of the person is a ``LevelLearner``; any other
    learner is blind to the memory, and may be run all the same.

    Examples
    --------
    >>> import counsel
    >>> from counsel.learning import Learner
    >>> learner: Learner = counsel.UCBAD(counsel.make("night-shift").without_adherence())
    >>> learner.advise(0, 1), learner.policy.defer
    (1, 3)
    """

    @property
    def penalty(self) -> Penalty:
        """The penalty per unit of cost: one number, or one for each step [h]."""

    @property
    def policy(self) -> Policy:
        """The policy the learner would advise by now."""

    def update(self, batch: Episodes) -> None:
        """Learn from whole episodes.

        Parameters
        ----------
        batch
            Episodes, as ``Simulator.play`` returns them.
        """

    def advise(self, step: int, state: int) -> int:
        """Return the advice for one person at one step; the number of actions is silence.

        Parameters
        ----------
        step
            The step in the episode, from 0.
        state
            The state the person is in.
        """

    def observe(self, move: Move) -> None:
        """Store one decision; the learner learns from it when the episode ends.

        Parameters
        ----------
        move
            The decision.
        """

    def finish(self, *, terminated: bool = False) -> None:
        """End the live episode and learn from it; without a decision nothing changes.

        Parameters
        ----------
        terminated
            Whether nothing more can happen in the state the episode led to.
        """


class LevelLearner(Learner, Protocol):
    """A learner that knows the memory of the person.

    Its policy has a plane for each level of the memory. It reads the level of every decision from
    ``Episodes.level``, or live from ``Move.level``.

    Examples
    --------
    The advice to a nurse who was not alerted yet in this shift:

    >>> import counsel
    >>> from counsel.learning import LevelLearner
    >>> problem = counsel.make("ward/tiring")
    >>> learner: LevelLearner = counsel.UCBAD(problem.without_adherence(), penalty=0.1)
    >>> learner.memory, learner.policy.levels
    (Memory(pieces=5, 6 levels), 6)
    >>> learner.advise(step=0, state=1, level=0)
    1
    """

    @property
    def memory(self) -> Memory | None:
        """The memory of the person; None if the learner takes them to have none."""

    def advise(self, step: int, state: int, level: int | None = None) -> int:
        """Return the advice for one person at one step; the number of actions is silence.

        Parameters
        ----------
        step
            The step in the episode, from 0.
        state
            The state the person is in.
        level
            The level of the person's memory; without a memory it does not matter.
        """


@runtime_checkable
class Explorer(Protocol):
    """A learner that plays other advice than its policy."""

    def explore(self, simulator: Simulator, *, episodes: int, rng: Generator) -> None:
        """Play episodes where most is uncertain, and learn from them.

        Parameters
        ----------
        simulator
            The world and the person.
        episodes
            The number of episodes.
        rng
            The generator of the episodes.
        """


@runtime_checkable
class Runner(Protocol):
    """A learner with a compiled loop of its own."""

    @property
    def can_run(self) -> bool:
        """Whether ``run`` does here what ``policy`` and ``update`` do in turn."""

    def run(
        self, simulator: Simulator, *, best: float, episodes: int, every: int, rng: Generator
    ) -> tuple[Floats, Floats]:
        """Play and learn in one compiled loop, which ``learn`` uses if ``can_run``.

        The episodes, and the learner afterwards, are the same as with ``policy`` and ``update`` in
        turn.

        Parameters
        ----------
        simulator
            The world and the person; the truth in it is read to compute value gaps only.
        best
            The value of the best policy, less the charge for its advice.
        episodes
            The number of episodes to play.
        every
            The number of episodes between updates.
        rng
            The generator of the episodes.

        Returns
        -------
        gaps : ndarray
            The value gap of each episode's policy to ``best`` [episode].
        pieces : ndarray
            The expected pieces of advice of that policy [episode].
        """


@runtime_checkable
class Resumable(Protocol):
    """A learner whose state can be saved and restored."""

    def state(self) -> dict[str, Any]:
        """Return everything that was learnt, and the state of the generator.

        Returns
        -------
        dict
            Arrays, numbers and what JSON can hold.
        """

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a state of a learner with the same settings.

        Parameters
        ----------
        state
            A state that ``state`` returned.
        """


def documented_by(*protocols: type) -> Callable[[_T], _T]:
    """Return a class decorator: methods without a docstring have that of a protocol."""

    def document(learner: _T) -> _T:
        for protocol in protocols:
            for name, described in vars(protocol).items():
                method = vars(learner).get(name)
                if not name.startswith("_") and method is not None and not method.__doc__:
                    method.__doc__ = described.__doc__
        return learner

    return document


def check_episodes_left(learner: object, more: int) -> None:
    """Raise if a learner is to learn from more episodes than its guarantee was declared for."""
    most, so_far = getattr(learner, "most_episodes", None), getattr(learner, "episode", 0)
    if most is not None and so_far + more > most:
        raise CounselError(
            f"episodes is {most} but {type(learner).__name__} has learnt from {so_far} and is to "
            f"learn from {more} more; its bounds hold for the declared number only, so declare "
            f"episodes={so_far + more} or more"
        )


def is_overridden(learner: object, owner: type, *names: str) -> bool:
    """Return whether a subclass or the object replaces one of these methods of ``owner``.

    A compiled loop runs the rules of ``owner`` only, so it must not stand in for other methods.
    """
    return any(
        name in vars(learner) or getattr(type(learner), name) is not getattr(owner, name)
        for name in names
    )
