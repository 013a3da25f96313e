"""Advice in anybody's Gymnasium environment: the machine's MDP of CartPole, say.

``AdviceWrapper`` puts a simulated person between the machine and an environment with a discrete
action space. The wrapped environment's actions are pieces of advice and, one after the last, to
defer. Any learner for discrete actions can be trained on it.
"""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import ArrayLike

from counsel._arrays import Floats, brief, check_distributions, check_range, not_negative, numbers
from counsel.errors import CounselError
from counsel.model.human import advised_law, draw_index, drop_never

Habit = Callable[[Any], "ArrayLike | int"]
"""What the person does alone, given an observation: an action, or a distribution over actions."""

Adherence = Callable[[Any, int], float]
"""How likely the person is to take an advice, given the observation and the advice."""


PERSON = 1
"""Tells the person's seed from the world's."""

SINGLE = 1e-5
"""How far from one a person's probabilities may sum: many are computed in single precision."""


class AdviceWrapper(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """A person in ``env`` who may be advised.

    Parameters
    ----------
    env
        Any environment with a ``Discrete`` action space.
    human
        A function of the observation that returns what the person would do alone: one action, or
        a probability for each.
    adherence
        A number in [0, 1], one for each action, or a function of observation and advice: how likely
        the person's action is to match the advice.
    penalty
        What each piece of advice costs, in units of reward.

    Raises
    ------
    CounselError
        When the environment's actions are not ``Discrete``, ``human`` is no function, or adherence
        or penalty are out of range; on ``step``, when ``human`` or ``adherence`` return something
        that makes no sense.

    Notes
    -----
    The action space keeps the numbers of ``env`` and adds one, to defer. ``info`` gains ``advice``,
    ``action``, ``matched``, ``deferred`` and ``action_mask``, after ``step`` and after ``reset``
    (where nothing has been said or done: ``advice`` is to defer, ``action`` one below the first).
    The person has a generator of their own, seeded by ``reset(seed=…)``, so the world's chance is
    the same whoever is in it.

    Examples
    --------
    Somebody who reacts late to the angle of a pole, advised to push right and then left alone:

    >>> import gymnasium
    >>> from counsel.worlds import AdviceWrapper
    >>> def leans(observation):
    ...     return int(observation[2] > 0.05)
    >>> env = AdviceWrapper(gymnasium.make("CartPole-v1"), leans, adherence=0.8)
    >>> env.action_space
    Discrete(3)
    >>> _ = env.reset(seed=0)
    >>> for advice in (1, env.defer):
    ...     *_, info = env.step(advice)
    ...     print(info["advice"], info["action"], info["matched"], info["deferred"])
    1 1 True False
    2 0 False True
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        human: Habit,
        adherence: ArrayLike | Adherence,
        *,
        penalty: float = 0.0,
    ) -> None:
        # Not copied: a person may be a large model, or hold what cannot be copied.
        RecordConstructorArgs.__init__(
            self, _disable_deepcopy=True, human=human, adherence=adherence, penalty=penalty
        )
        super().__init__(env)
        space = env.action_space
        if not isinstance(space, spaces.Discrete):
            raise CounselError(
                f"the environment's actions are {brief(space)}; advice needs a Discrete space"
            )
        if not callable(human):
            raise CounselError(f"human is {brief(human)}; give a function of the observation")
        self.first, self.n_actions = int(space.start), int(space.n)
        self.action_space = spaces.Discrete(self.n_actions + 1, start=self.first)
        self.human, self.penalty = human, not_negative("penalty", penalty)
        self.adherence: Floats | Adherence = (
            adherence if callable(adherence) else _read_adherence(adherence, self.n_actions)
        )
        self._rng = np.random.default_rng()
        self._observation: Any = None
        self._started = False

    @property
    def defer(self) -> int:
        """The machine's choice to say nothing."""
        return self.first + self.n_actions

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode.

        Parameters
        ----------
        seed
            Begins the chance of world and person anew; it goes on when not given.
        options
            Passed to ``env``.

        Returns
        -------
        observation : object
            The first observation of ``env``.
        info : dict
            That of ``env``, and what was said and done: nothing yet.
        """
        self._observation, info = self.env.reset(seed=seed, options=options)
        self._started = True
        if seed is not None:
            # Not from the seed alone: that is where the world's own chance begins.
            self._rng = np.random.default_rng([seed, PERSON])
        return self._observation, self._told(info, self.defer, self.first - 1, deferred=False)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:  # noqa: ANN401 (Gymnasium's)
        """Advise ``action``, or defer, and let the person act.

        Parameters
        ----------
        action
            The advice, by the number of an action of ``env``, or ``defer``.

        Returns
        -------
        observation : object
            As of ``env``.
        reward : float
            That of ``env``, less the penalty where something was advised.
        terminated, truncated : bool
            As of ``env``.
        info : dict
            That of ``env``, and ``advice``, ``action``, ``matched``, ``deferred``, ``action_mask``.

        Raises
        ------
        CounselError
            When the advice is out of range, or ``reset`` was never called.
        """
        if not self.action_space.contains(action):
            raise CounselError(
                f"advice is {brief(action)}; it runs from {self.first} to {self.defer}, "
                "which is to defer"
            )
        if not self._started:
            raise CounselError("call reset before the first step")
        advice = int(action)
        did = self.first + draw_index(self._law(advice), self._rng)
        self._observation, reward, terminated, truncated, info = self.env.step(did)
        paid = float(reward) - (self.penalty if advice != self.defer else 0.0)
        told = self._told(info, advice, did, deferred=advice == self.defer)
        return self._observation, paid, terminated, truncated, told

    def _law(self, advice: int) -> Floats:
        """Return how likely each action is, given the advice (equation 1)."""
        own = self._own()
        if advice == self.defer:
            return own
        if callable(self.adherence):
            theta = numbers(
                "adherence(observation, advice)", self.adherence(self._observation, advice)
            )
            if theta.ndim:
                raise CounselError(
                    f"adherence(observation, advice) has shape {theta.shape}; return one number"
                )
            check_range("adherence(observation, advice)", theta, "", 0.0, 1.0)
        else:
            theta = self.adherence[advice - self.first]
        return advised_law(own, advice - self.first, float(theta))

    def _own(self) -> Floats:
        """Return what the person would do alone, checked."""
        given = numbers("human(observation)", self.human(self._observation))
        if given.ndim == 0:
            index = float(given) - self.first
            if index not in range(self.n_actions):
                raise CounselError(
                    f"human(observation) is {float(given):g}; actions run from {self.first} to "
                    f"{self.defer - 1}"
                )
            sure: Floats = np.eye(self.n_actions)[int(index)]
            return sure
        if given.shape != (self.n_actions,):
            raise CounselError(
                f"human(observation) has shape {given.shape}; return one action or "
                f"{self.n_actions} probabilities"
            )
        total = given.sum()
        if abs(total - 1.0) <= SINGLE:
            given /= total
        check_distributions("human(observation)", given, "a")
        return drop_never(given)

    def _told(
        self, info: dict[str, Any], advice: int, action: int, *, deferred: bool
    ) -> dict[str, Any]:
        mask = np.asarray(info.get("action_mask", np.ones(self.n_actions)), dtype=np.int8)
        return {
            **info,
            "advice": advice,
            "action": action,
            "matched": advice == action,
            "deferred": deferred,
            "action_mask": np.append(mask, np.int8(1)),
        }


def _read_adherence(given: ArrayLike, n_actions: int) -> Floats:
    theta = numbers("adherence", given)
    if theta.shape not in ((), (n_actions,)):
        raise CounselError(
            f"adherence has shape {theta.shape}; give a number, one for each of {n_actions} "
            "actions, or a function of observation and advice"
        )
    check_range("adherence", theta, "a"[: theta.ndim], 0.0, 1.0)
    return np.broadcast_to(theta, (n_actions,))
