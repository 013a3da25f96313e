"""An advice problem from one of Gymnasium's toy-text environments: Taxi, FrozenLake, CliffWalking.

These environments publish their transitions as a table ``P``, so Counsel can plan in them exactly.
Use ``AdviceWrapper`` for other environments.
"""

import re
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import ArrayLike, NDArray

from counsel._arrays import brief, numbers, unlayered
from counsel.errors import CounselError
from counsel.model.human import Human
from counsel.model.mdp import MDP
from counsel.model.problem import AdviceProblem
from counsel.model.toy_text import ToyText


def from_gymnasium(
    env: str | gymnasium.Env[Any, Any],
    *,
    horizon: int,
    human: Human | Callable[[MDP], Human],
    cost: ArrayLike = 1.0,
    **options: Any,  # noqa: ANN401 (those of gymnasium.make)
) -> AdviceProblem:
    """Return the advice problem of a toy-text environment and a person in it.

    Parameters
    ----------
    env
        An environment or its id; "Taxi" means the newest installed version.
    horizon
        Steps per episode.
    human
        The person, or a function of the world that returns the person. If the person covers only
        the states of the environment, they behave in the added last state as in the one before it.
    cost
        What a piece of advice costs, as in ``AdviceProblem``; also for the states of the
        environment only.
    **options
        Passed to ``gymnasium.make``, e.g. ``is_slippery=False``.

    Returns
    -------
    AdviceProblem
        Its world has one more state than the environment: the last, in which an episode is over.
        Its rewards are expected ones; its ``reward_range`` is that of the rewards in the table.

    Raises
    ------
    CounselError
        If there is no such environment, it has no table of transitions or no start distribution,
        ``human`` is neither a ``Human`` nor a function that returns one, or a cost is invalid.

    Examples
    --------
    The probability that a person who moves at random crosses the ice in time, alone and with the
    best advice:

    >>> import counsel
    >>> from counsel.worlds import Uniform, from_gymnasium
    >>> def half(mdp):
    ...     return counsel.Human(Uniform()(mdp), lift=0.5)
    >>> problem = from_gymnasium("FrozenLake", horizon=20, human=half, is_slippery=False)
    >>> problem.mdp
    MDP(17 states, 4 actions, horizon 20, stationary)
    >>> front = counsel.frontier(problem)
    >>> print(f"{front.vertices[0].value:.3f}, {front.vertices[-1].value:.3f}")
    0.012, 0.413
    """
    environment = _make(env, options) if isinstance(env, str) else env
    if isinstance(env, gymnasium.Env) and options:
        raise CounselError(f"options need an id, not an environment: {brief(options)}")
    if not isinstance(environment, gymnasium.Env):
        raise CounselError(f"env is {brief(env)}; give an environment or its id")
    plain = environment.unwrapped
    name = plain.spec.id if plain.spec is not None else type(plain).__name__
    if not hasattr(plain, "P"):
        raise CounselError(
            f"{name} has no table P of transitions; wrap it in counsel.worlds.AdviceWrapper instead"
        )
    if getattr(plain, "fickle_passenger", False):
        raise CounselError(f"the table P of {name} ignores the fickle passenger; leave it out")
    start = getattr(plain, "initial_state_distrib", None)
    if start is None:
        raise CounselError(f"{name} has no start distribution (initial_state_distrib)")
    mdp = MDP.from_toy_text(plain.P, horizon=horizon, start=np.asarray(start, dtype=np.float64))
    if isinstance(env, str):
        environment.close()
    person = human(mdp) if callable(human) else human
    if not isinstance(person, Human):
        raise CounselError(f"human is {brief(human)}; give a Human, or a function that returns one")
    if person.n_states == mdp.n_states - 1:
        person = _with_end(person)
    table = numbers("cost", cost)
    if table.ndim >= 2 and table.shape[-2] == mdp.n_states - 1:
        table = _with_last_state(table)
    return AdviceProblem(mdp, person, table, reward_range=_rewards_of(plain.P))


def _make(name: str, options: dict[str, Any]) -> gymnasium.Env[Any, Any]:
    """Make the environment, and turn any failure into a CounselError."""
    versioned = _newest_id(name)
    try:
        return gymnasium.make(versioned, **options)
    except Exception as fault:
        raise CounselError(
            f"Gymnasium cannot make {name!r}: {type(fault).__name__}: {brief(str(fault))}"
        ) from fault


def _newest_id(name: str) -> str:
    """Return the id with its newest version; if there is none, name the version installed."""
    if name in gymnasium.registry or ":" in name:  # gymnasium.make resolves "module:id"
        return name
    for stem in (_stem(name), name.partition("-v")[0]):
        versions = [spec for spec in gymnasium.registry.values() if _stem(spec.id) == stem]
        if versions:
            newest = max(versions, key=lambda spec: spec.version or 0).id
            if name == stem:
                return newest
            raise CounselError(f"Gymnasium has no environment {name!r}; {newest!r} is installed")
    raise CounselError(f"Gymnasium has no environment {name!r}")


def _rewards_of(transitions: ToyText) -> tuple[float, float]:
    """Return the least and the largest reward of a table P, and of the end, which pays 0."""
    lists = (moves for actions in transitions.values() for moves in actions.values())
    rewards = [0.0, *(float(reward) for moves in lists for _, _, reward, _ in moves)]
    return min(rewards), max(rewards)


def _stem(name: str) -> str:
    """Return an id without its version."""
    return re.sub(r"-v\d+$", "", name)


def _with_end(person: Human) -> Human:
    """Return the person with one more state, in which they behave as in the last."""
    levels = 0 if person.memory is None else 1
    scale = "lift" if person.shares_lift else "adherence"
    level_lifts = levels if person.input_fading is None else 0
    changed: dict[str, Any] = {scale: _with_last_state(person.input_values, level_lifts)}
    if person.input_groups is not None:
        changed["groups"] = _with_last_state(person.input_groups, levels)
    return Human(unlayered(_with_last_state(person.policy)), **person.inputs | changed)


def _with_last_state(table: NDArray[Any], levels: int = 0) -> NDArray[Any]:
    """Return a table [..., s, a] with its last state once more; others unchanged.

    Before these axes there may be one of ``levels``.
    """
    if table.ndim < 2 + levels:
        return table
    return np.concatenate((table, table[..., -1:, :]), axis=-2)
