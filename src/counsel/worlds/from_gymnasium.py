"""An advice problem from one of Gymnasium's toy-text environments: Taxi, FrozenLake, CliffWalking.

These publish their transitions as a table ``P``, so Counsel can plan in them exactly. For other
environments there is ``AdviceWrapper``.
"""

import re
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from counsel._arrays import brief, unlayered
from counsel.errors import CounselError
from counsel.model.human import Human
from counsel.model.mdp import MDP
from counsel.model.problem import AdviceProblem


def from_gymnasium(
    env: str | gymnasium.Env[Any, Any],
    *,
    horizon: int,
    human: Human | Callable[[MDP], Human],
    **options: Any,  # noqa: ANN401 (those of gymnasium.make)
) -> AdviceProblem:
    """Return the advice problem of a toy-text environment and a person in it.

    Parameters
    ----------
    env
        An environment or its id; "Taxi" is its newest installed version.
    horizon
        Steps in an episode.
    human
        The person, or a function that returns one given the world. A person for the states of the
        environment is given the one state more, the end, in which they are as in the last.
    **options
        Passed to ``gymnasium.make``: ``is_slippery=False``, say.

    Returns
    -------
    AdviceProblem
        Its world has one state more than the environment: the last, where an episode is over.

    Raises
    ------
    CounselError
        When there is no such environment, it publishes no table of transitions or of starts, or
        ``human`` is neither a ``Human`` nor a function that returns one.

    Examples
    --------
    How likely somebody who takes any step is to cross the ice in time, alone and with the best
    advice:

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
    made = _made(env, options) if isinstance(env, str) else env
    if isinstance(env, gymnasium.Env) and options:
        raise CounselError(f"options are for an id, not for an environment: {brief(options)}")
    if not isinstance(made, gymnasium.Env):
        raise CounselError(f"env is {brief(env)}; give an environment or its id")
    plain = made.unwrapped
    name = plain.spec.id if plain.spec is not None else type(plain).__name__
    if not hasattr(plain, "P"):
        raise CounselError(
            f"{name} has no table P of transitions; wrap it in counsel.worlds.AdviceWrapper instead"
        )
    if getattr(plain, "fickle_passenger", False):
        raise CounselError(f"a fickle passenger of {name} is not in its table P; leave that out")
    start = getattr(plain, "initial_state_distrib", None)
    if start is None:
        raise CounselError(f"{name} does not say where it starts (initial_state_distrib)")
    mdp = MDP.from_toy_text(plain.P, horizon=horizon, start=np.asarray(start, dtype=np.float64))
    if isinstance(env, str):
        made.close()
    person = human(mdp) if callable(human) else human
    if not isinstance(person, Human):
        raise CounselError(f"human is {brief(human)}; give a Human, or a function that returns one")
    if person.n_states == mdp.n_states - 1:
        person = _with_end(person)
    return AdviceProblem(mdp, person)


def _made(name: str, options: dict[str, Any]) -> gymnasium.Env[Any, Any]:
    """Make the environment; say in one sentence why it cannot be made."""
    newest = _newest(name)
    try:
        return gymnasium.make(newest, **options)
    except Exception as fault:
        raise CounselError(
            f"Gymnasium cannot make {name!r}: {type(fault).__name__}: {brief(str(fault))}"
        ) from fault


def _newest(name: str) -> str:
    """Return an id with its version; say what is installed when there is none."""
    if name in gymnasium.registry or ":" in name:  # "module:id" is for gymnasium.make
        return name
    stem = _stem(name)
    versions = [spec for spec in gymnasium.registry.values() if _stem(spec.id) == stem]
    if not versions:
        stem = name.partition("-v")[0]
        versions = [spec for spec in gymnasium.registry.values() if _stem(spec.id) == stem]
    if not versions:
        raise CounselError(f"Gymnasium has no environment {name!r}")
    newest = max(versions, key=lambda spec: spec.version or 0)
    if name != stem:
        raise CounselError(f"Gymnasium has no environment {name!r}; installed is {newest.id!r}")
    return newest.id


def _stem(name: str) -> str:
    """Return an id without its version."""
    return re.sub(r"-v\d+$", "", name)


def _with_end(person: Human) -> Human:
    """Return the person with one state more, where they are as in the last."""
    policy = np.concatenate((person.policy, person.policy[:, -1:]), axis=1)
    given = person.given
    if given.ndim >= 2:
        given = np.concatenate((given, given[..., -1:, :]), axis=-2)
    groups = person.given_groups
    if groups is not None and groups.ndim >= 2:
        groups = np.concatenate((groups, groups[..., -1:, :]), axis=-2)
    told = "lift" if person.shares_lift else "adherence"
    return Human(unlayered(policy), **{told: given}, groups=groups)
