"""A Gymnasium environment as a world to learn in: nobody knows its transitions.

The environment has the machine's side of a problem, as ``counsel.worlds.AdviceWrapper`` gives it:
its actions are the pieces of advice and, last, silence, and ``info["action"]`` is what the person
did. Its observations are whole numbers; ``gymnasium.wrappers.TransformObservation`` turns others
into cells.

An environment may end an episode in any cell, so the end has a state of its own, after the last
cell. The learner then never mixes up the cell of a fallen pole with that of a leaning one.
"""

import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator

from counsel._arrays import brief, check_rng, whole
from counsel.errors import CounselError
from counsel.model.memory import Memory
from counsel.model.mixture import Mixture
from counsel.model.policy import Policy
from counsel.model.problem import AdviceProblem
from counsel.model.setting import Shape
from counsel.simulate.advisers import Advise, PolicyAdviser, level_adviser
from counsel.simulate.episodes import Episodes
from counsel.simulate.move import Move

if TYPE_CHECKING:
    import gymnasium


class Environment:
    """A Gymnasium environment with a person in it, as a world to learn in.

    Parameters
    ----------
    env
        An environment whose actions are pieces of advice and, last, silence, e.g. an
        ``AdviceWrapper``. Observations and actions are ``Discrete``, and ``info["action"]`` is the
        action of the person after each step. If the person has a memory, observations are the
        dictionaries of ``AdviceWrapper``, with an observation and a level.
    horizon
        The number of steps after which an episode is cut.
    reward_range
        The least and the largest reward of a step.

    Attributes
    ----------
    shape
        What a learner may know: ``counsel.Structured(environment.shape, ...)``. It has one state
        more than ``env``, in which episodes that have ended stay.

    Raises
    ------
    CounselError
        If actions or observations are not ``Discrete``, ``env`` charges a penalty (give it to the
        learner) or is an ``AdviceEnv`` (its problem is known); while playing, if a reward, an
        observation or the action of the person is out of range.

    Examples
    --------
    A person who reacts late to a leaning pole. A learner sees only which way the pole leans and
    which way it turns, as one of four cells; the fifth state is the end:

    >>> import gymnasium
    >>> import counsel
    >>> from counsel.simulate import Environment
    >>> from numpy.random import default_rng
    >>> pole = counsel.worlds.AdviceWrapper(
    ...     gymnasium.make("CartPole-v1"), human=lambda seen: int(seen[2] > 0.05), adherence=0.8
    ... )
    >>> cells = gymnasium.wrappers.TransformObservation(
    ...     pole, lambda seen: 2 * (seen[2] > 0) + (seen[3] > 0), gymnasium.spaces.Discrete(4)
    ... )
    >>> environment = Environment(cells, horizon=60, reward_range=(0.0, 1.0))
    >>> environment.shape.n_states, environment.shape.n_actions
    (5, 2)

    Advice to push where the pole turns to, in every cell, helps:

    >>> never = counsel.Policy.never(horizon=60, n_states=5, n_actions=2)
    >>> turn = counsel.Policy([[0, 1, 0, 1, never.defer]] * 60, n_actions=2)
    >>> for policy in (never, turn):
    ...     print(environment.play(policy, episodes=40, rng=default_rng(0)).lengths.mean())
    33.05
    60.0
    """

    def __init__(
        self, env: "gymnasium.Env[Any, Any]", *, horizon: int, reward_range: tuple[float, float]
    ) -> None:
        from gymnasium import Env, spaces

        if not isinstance(env, Env):
            raise CounselError(f"env is {brief(env)}; give a Gymnasium environment")
        if isinstance(getattr(env.unwrapped, "problem", None), AdviceProblem):
            raise CounselError(
                "env is an AdviceEnv, whose problem is known; use "
                "counsel.Simulator(env.unwrapped.problem) and counsel.learn"
            )
        memory, advice, states = _memory(env), env.action_space, env.observation_space
        if memory is not None and isinstance(states, spaces.Dict):
            states = states["observation"]
        if not isinstance(advice, spaces.Discrete) or advice.n < 2:
            raise CounselError(
                f"the actions of env are {brief(advice)}; wrap it in counsel.worlds.AdviceWrapper"
            )
        if not isinstance(states, spaces.Discrete):
            raise CounselError(
                f"the observations of env are {brief(states)}; turn them into Discrete cells with "
                "gymnasium.wrappers.TransformObservation"
            )
        penalty, cost = _charges(env)
        if penalty:
            raise CounselError(
                f"env charges a penalty of {penalty}; give the penalty to the learner instead"
            )
        self.env, self._has_levels = env, memory is not None
        self._first_advice, self._first_state = int(advice.start), int(states.start)
        self.shape = Shape(
            horizon=horizon,
            n_states=int(states.n) + 1,
            n_actions=int(advice.n) - 1,
            reward_range=reward_range,
            cost=cost,
            memory=memory,
        )

    @property
    def over(self) -> int:
        """The state in which episodes that have ended stay."""
        return self.shape.n_states - 1

    def check_fits(self, policy: Policy) -> None:
        """Raise unless the policy is for this environment.

        Parameters
        ----------
        policy
            A policy.
        """
        policy.check_fits(self.shape.horizon, self.shape.n_states, self.shape.n_actions)
        memory = self.shape.memory
        levels = 1 if memory is None else memory.n_levels
        if policy.levels not in (None, levels):
            raise CounselError(
                f"the policy is for {policy.levels} levels of memory; the person has {levels}"
            )

    def decide(self, advise: Advise, *, seed: int | None = None) -> Iterator[Move]:
        """Play one episode and yield its decisions; the last leads to ``over`` if it ended.

        Parameters
        ----------
        advise
            A function of step and state that returns the advice, the number of actions for silence.
            If the person has a memory, its level is a third argument, if the function takes one.
        seed
            Passed to ``env.reset``; without a seed its generators continue.
        """
        speak = level_adviser(advise, self.shape.memory)
        state, level = self._read(self.env.reset(seed=seed)[0])
        for step in range(self.shape.horizon):
            advice = int(speak(step, state, level))
            observation, reward, terminated, truncated, info = self.env.step(
                self._first_advice + advice
            )
            next_state, next_level = (self.over, 0) if terminated else self._read(observation)
            action, paid = self._action(info), self._reward(reward, step, state)
            yield Move(step, state, advice, action, paid, next_state, level)
            if terminated or truncated:
                return
            state, level = next_state, next_level

    def play(self, policy: Policy | Mixture, *, episodes: int, rng: Generator) -> Episodes:
        """Play episodes and return every decision.

        Parameters
        ----------
        policy
            The advice, e.g. ``learner.policy``.
        episodes
            The number of episodes.
        rng
            The generator of random advice, and of the seed of the first episode; later episodes
            continue the generators of the environment.
        """
        whole("episodes", episodes, least=1)
        check_rng(rng)
        parts = policy.policies if isinstance(policy, Mixture) else (policy,)
        for part in parts:
            if not isinstance(part, Policy):
                raise CounselError(f"policy is {brief(policy)}; give a Policy or a Mixture")
            self.check_fits(part)
        weights = policy.weights if isinstance(policy, Mixture) else (1.0,)
        lengths, decisions, terminated = [0], list[Move](), list[bool]()
        seed: int | None = draw_seed(rng)
        for _ in range(episodes):
            adviser = PolicyAdviser(parts[int(rng.choice(len(parts), p=weights))], rng)
            decisions += self.decide(adviser, seed=seed)
            lengths.append(len(decisions))
            terminated.append(decisions[-1].next_state == self.over)
            seed = None
        _, state, advice, action, reward, next_state, level = zip(*decisions, strict=True)
        return Episodes(
            first=np.array(lengths, dtype=np.int64),
            state=np.array(state, dtype=np.int32),
            advice=np.array(advice, dtype=np.int16),
            action=np.array(action, dtype=np.int16),
            reward=np.array(reward, dtype=np.float64),
            next_state=np.array(next_state, dtype=np.int32),
            terminated=np.array(terminated),
            defer=self.shape.n_actions,
            level=np.array(level, dtype=np.int16) if self._has_levels else None,
        )

    def _read(self, observation: Any) -> tuple[int, int]:  # noqa: ANN401 (Gymnasium's)
        """Return the state and the level of memory of an observation; without a memory level 0."""
        if self._has_levels:
            return self._state(observation["observation"]), int(observation["level"])
        return self._state(observation), 0

    def _state(self, observation: Any) -> int:  # noqa: ANN401 (Gymnasium's)
        """Return an observation as a state, from 0."""
        try:
            state = operator.index(observation) - self._first_state
        except TypeError:
            state = -1
        if not 0 <= state < self.over:
            raise CounselError(
                f"an observation is {brief(observation)}; the observation space of env is "
                f"{self.env.observation_space}"
            )
        return state

    def _action(self, info: dict[str, Any]) -> int:
        """Return the action of the person, from 0."""
        if "action" not in info:
            raise CounselError(
                'info has no "action" after a step; wrap env in counsel.worlds.AdviceWrapper'
            )
        action = int(info["action"]) - self._first_advice
        if not 0 <= action < self.shape.n_actions:
            last = self._first_advice + self.shape.n_actions - 1
            raise CounselError(
                f'info["action"] is {info["action"]}; actions run from {self._first_advice} to '
                f"{last}"
            )
        return action

    def _reward(self, reward: Any, step: int, state: int) -> float:  # noqa: ANN401 (Gymnasium's)
        """Return a reward that lies in its range."""
        number, (low, high) = float(reward), self.shape.reward_range
        if not low <= number <= high:
            raise CounselError(
                f"the reward at step {step} in state {state} is {number:g}; reward_range is "
                f"({low:g}, {high:g}), so give a range that contains all rewards"
            )
        return number


def draw_seed(rng: Generator) -> int:
    """Return a seed for ``reset``."""
    return int(rng.integers(2**31))


def _memory(env: "gymnasium.Env[Any, Any]") -> Memory | None:
    """Return the memory of the person in an environment, if its levels are observed."""
    from gymnasium import Wrapper, spaces

    is_observed = isinstance(env.observation_space, spaces.Dict) and (
        set(env.observation_space) == {"observation", "level"}
    )
    while is_observed and isinstance(env, Wrapper):
        if isinstance(vars(env).get("memory"), Memory):
            memory: Memory = vars(env)["memory"]
            return memory
        env = env.env
    return None


def _charges(env: "gymnasium.Env[Any, Any]") -> tuple[float, Any]:
    """Return penalty and cost of the wrapper that puts a person into the environment, if any."""
    from gymnasium import Wrapper

    while isinstance(env, Wrapper):
        settings = vars(env)
        if {"human", "adherence", "penalty", "cost"} <= settings.keys():
            return settings["penalty"], settings["cost"]
        env = env.env
    return 0.0, 1.0
