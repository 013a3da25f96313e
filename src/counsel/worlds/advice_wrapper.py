"""Advice in any Gymnasium environment with discrete actions, e.g. CartPole.

``AdviceWrapper`` puts a simulated person between the machine and the environment. The actions of
the wrapped environment are pieces of advice and, one after the last, to defer. Any learner for
discrete actions can be trained in the wrapped environment.
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
from counsel.model.advice_costs import read_cost
from counsel.model.human import advised_law, draw_index, drop_never, read_fading
from counsel.model.memory import Memory

Habit = Callable[[Any], "ArrayLike | int"]
"""Returns what the person does alone at an observation: an action, or a probability of each."""

Adherence = Callable[[Any, int], float]
"""Returns the probability that the person takes an advice at an observation."""

PERSON_STREAM = 1  # added to the seed of the world, to give the person a random stream of their own
SUM_TOLERANCE = 1e-5  # a person's probabilities may come in single precision


class AdviceWrapper(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """An environment in which a simulated person acts and the machine advises.

    Parameters
    ----------
    env
        Any environment with a ``Discrete`` action space.
    human
        A function of the observation that returns what the person would do alone: one action, or
        the probability of each action.
    adherence
        The probability that the person's action matches the advice: a number in [0, 1], one number
        per action, or a function of observation and advice.
    penalty
        The penalty per unit of cost, in units of reward.
    cost
        What a piece of advice costs: a number of at least 0, or one per action.
    memory
        What the person carries over from advice given; none by default. Observations are then
        dictionaries of the ``observation`` and the ``level`` of the memory.
    fading
        With a memory: a factor for each level that multiplies the lift of ``adherence``.

    Raises
    ------
    CounselError
        If the actions of the environment are not ``Discrete``, ``human`` is not a function, or
        adherence, penalty or cost is out of range; from ``step``, if ``human`` or ``adherence``
        returns an invalid value, the advice is out of range, or ``reset`` was never called.

    Notes
    -----
    The action space keeps the numbers of ``env`` and adds one more, to defer. The reward is that of
    ``env``, less the penalty times the cost of the advice. ``info`` gains ``advice``, ``action``,
    ``matched``, ``deferred``, ``cost`` (of the advice, 0 for silence) and ``action_mask``, after
    ``step`` and after ``reset`` (where ``advice`` is to defer and ``action`` is one below the first
    action). The person has a generator
    of their own, so the random stream of the world does not depend on the person.

    Examples
    --------
    A person who reacts late to the angle of a pole, first advised to push right, then not advised:

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

    def __init__(  # noqa: PLR0913 (a world, and a person with their charges and memory)
        self,
        env: gymnasium.Env[Any, Any],
        human: Habit,
        adherence: ArrayLike | Adherence,
        *,
        penalty: float = 0.0,
        cost: ArrayLike = 1.0,
        memory: Memory | None = None,
        fading: ArrayLike | None = None,
    ) -> None:
        # Not copied: a person may be a large model, or hold objects that cannot be copied.
        RecordConstructorArgs.__init__(
            self,
            _disable_deepcopy=True,
            human=human,
            adherence=adherence,
            penalty=penalty,
            cost=cost,
            memory=memory,
            fading=fading,
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
        self.cost = _read_cost(cost, self.n_actions)
        self.adherence: Floats | Adherence = (
            adherence if callable(adherence) else _read_adherence(adherence, self.n_actions)
        )
        self.memory, self._level = memory, 0
        self.fading = read_fading(memory, fading)
        if memory is not None:
            levels = spaces.Discrete(memory.n_levels)
            seen = {"observation": env.observation_space, "level": levels}
            self.observation_space = spaces.Dict(seen)
        self._rng = np.random.default_rng()
        self._observation: Any = None
        self._started = False

    @property
    def defer(self) -> int:
        """The number of the machine's choice to defer."""
        return self.first + self.n_actions

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode; return the first observation and ``info``.

        Parameters
        ----------
        seed
            Seeds the generators of world and person; without a seed they continue.
        options
            Passed to ``env``.
        """
        self._observation, info = self.env.reset(seed=seed, options=options)
        self._started = True
        if seed is not None:
            self._rng = np.random.default_rng([seed, PERSON_STREAM])
        self._level = 0 if self.memory is None else self.memory.start
        return self._seen(), self._info(info, self.defer, self.first - 1, deferred=False)

    def _seen(self) -> Any:  # noqa: ANN401 (Gymnasium's)
        """Return what the machine observes: with a memory also its level."""
        if self.memory is None:
            return self._observation
        return {"observation": self._observation, "level": np.int64(self._level)}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:  # noqa: ANN401 (Gymnasium's)
        """Advise ``action``, or defer, and let the person act; return what Gymnasium expects.

        Parameters
        ----------
        action
            The advice, by the number of an action of ``env``, or ``defer``.
        """
        if not self.action_space.contains(action):
            raise CounselError(
                f"advice is {brief(action)}; give {self.first} to {self.defer}, the last of "
                "which defers"
            )
        if not self._started:
            raise CounselError("call reset before the first step")
        advice = int(action)
        did = self.first + draw_index(self._law(advice), self._rng)
        if self.memory is not None:
            chances = self.memory.next_levels(self._level, advice, did, defer=self.defer)
            self._level = draw_index(chances, self._rng)
        self._observation, reward, terminated, truncated, info = self.env.step(did)
        info = self._info(info, advice, did, deferred=advice == self.defer)
        net = float(reward) - self.penalty * info["cost"]
        return self._seen(), net, terminated, truncated, info

    def _law(self, advice: int) -> Floats:
        """Return the probability of each action given the advice (equation 1)."""
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
        if self.fading is not None:
            habit = own[advice - self.first]
            theta = np.asarray(habit + self.fading[self._level] * (theta - habit))  # faded lift
            check_range("the adherence with fading", theta, "", 0.0, 1.0)
        return advised_law(own, advice - self.first, float(theta))

    def _own(self) -> Floats:
        """Return the probability of each action without advice, checked."""
        habit = numbers("human(observation)", self.human(self._observation))
        if habit.ndim == 0:
            index = float(habit) - self.first
            if index not in range(self.n_actions):
                raise CounselError(
                    f"human(observation) is {float(habit):g}; actions run from {self.first} to "
                    f"{self.defer - 1}"
                )
            certain: Floats = np.eye(self.n_actions)[int(index)]
            return certain
        if habit.shape != (self.n_actions,):
            raise CounselError(
                f"human(observation) has shape {habit.shape}; return one action or "
                f"{self.n_actions} probabilities"
            )
        total = habit.sum()
        if abs(total - 1.0) <= SUM_TOLERANCE:
            habit /= total
        check_distributions("human(observation)", habit, "a")
        return drop_never(habit)

    def _info(
        self, info: dict[str, Any], advice: int, action: int, *, deferred: bool
    ) -> dict[str, Any]:
        mask = np.asarray(info.get("action_mask", np.ones(self.n_actions)), dtype=np.int8)
        level = {} if self.memory is None else {"level": self._level}
        return {
            **info,
            **level,
            "advice": advice,
            "action": action,
            "matched": advice == action,
            "deferred": deferred,
            "cost": 0.0 if advice == self.defer else float(self.cost[advice - self.first]),
            "action_mask": np.append(mask, np.int8(1)),
        }


def _read_adherence(adherence: ArrayLike, n_actions: int) -> Floats:
    theta = numbers("adherence", adherence)
    if theta.shape not in ((), (n_actions,)):
        raise CounselError(
            f"adherence has shape {theta.shape}; give a number, one number for each of "
            f"{n_actions} actions, or a function of observation and advice"
        )
    check_range("adherence", theta, "a"[: theta.ndim], 0.0, 1.0)
    return np.broadcast_to(theta, (n_actions,))


def _read_cost(cost: ArrayLike, n_actions: int) -> Floats:
    table = numbers("cost", cost)
    if table.shape not in ((), (n_actions,)):
        raise CounselError(
            f"cost has shape {table.shape}; give a number, or one number for each of "
            f"{n_actions} actions"
        )
    by_action: Floats = read_cost(table, (1, 1, n_actions))[0, 0]
    return by_action
