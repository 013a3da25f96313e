"""People for any world: what they would do alone, as a table of probabilities.

A person is anything that is called with an ``MDP`` and returns a policy [s, a] or [h, s, a], or
such a table itself. Worlds have people of their own besides, by name: ``human="greedy"``, and
``Noisy("greedy", 0.1)``, in Flappy Bird.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from counsel._arrays import Floats, brief, layers, numbers, positive, real, unlayered
from counsel.errors import CounselError
from counsel.model.human import Human
from counsel.model.mdp import MDP

Person = Callable[[MDP], Floats]


@dataclass(frozen=True, slots=True)
class Uniform:
    """Someone who takes any allowed action, each as likely as the others.

    Call it with a world, or give it as ``human`` to ``flappy_bird`` or ``car_driving``.

    Examples
    --------
    >>> import counsel
    >>> from counsel.worlds import Uniform
    >>> allowed = [[True, True], [True, False]]
    >>> mdp = counsel.MDP([[0, 1], [0, 1]], reward=[0.0, 1.0], horizon=3, allowed=allowed)
    >>> Uniform()(mdp).tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """

    def __call__(self, mdp: MDP) -> Floats:
        """Return what they do alone.

        Parameters
        ----------
        mdp
            The world they are in.

        Returns
        -------
        ndarray
            Probabilities [s, a], or [h, s, a] where what is allowed changes with the step.
        """
        allowed = layers(mdp.allowed)
        policy: Floats = allowed / allowed.sum(axis=-1, keepdims=True)
        return unlayered(policy)


@dataclass(frozen=True, slots=True, eq=False)
class Noisy:
    """Someone who does as another would, but with probability ``epsilon`` anything allowed.

    Parameters
    ----------
    person
        The other: a person such as ``Boltzmann(1.0)``, a policy [s, a] or [h, s, a], or the name of
        one in the world that it is given to, as in ``flappy_bird(human=Noisy("greedy", 0.1))``.
    epsilon
        In [0, 1].

    Raises
    ------
    CounselError
        When ``epsilon`` is out of range; when it is called, if ``person`` is no such thing.

    Examples
    --------
    >>> import counsel
    >>> from counsel.worlds import Noisy
    >>> mdp = counsel.MDP([[0, 1], [0, 1]], reward=[0.0, 1.0], horizon=3)
    >>> Noisy([[1.0, 0.0], [0.5, 0.5]], 0.1)(mdp).round(3).tolist()
    [[0.95, 0.05], [0.5, 0.5]]
    """

    person: Person | ArrayLike
    epsilon: float

    def __post_init__(self) -> None:
        epsilon = real("epsilon", self.epsilon)
        if not 0.0 <= epsilon <= 1.0:
            raise CounselError(f"epsilon is {self.epsilon}; it must lie in [0, 1]")
        object.__setattr__(self, "epsilon", epsilon)

    def __call__(self, mdp: MDP) -> Floats:
        """Return (1 − ε) π + ε uniform.

        Parameters
        ----------
        mdp
            The world they are in.

        Returns
        -------
        ndarray
            Probabilities [s, a], or [h, s, a] where either part changes with the step.
        """
        mixed: Floats = (1.0 - self.epsilon) * policy_of(self.person, mdp)
        return mixed + self.epsilon * Uniform()(mdp)


@dataclass(frozen=True, slots=True)
class Boltzmann:
    """Someone soft-optimal: better actions are likelier, sharply so at a low temperature τ.

    With Q_h(s, a) = r_h(s, a) + Σ p_h(t | s, a) V_{h+1}(t) over the allowed actions,

        V_h(s) = τ log Σ_a exp(Q_h(s, a) / τ),    π_h(a | s) = exp((Q_h(s, a) − V_h(s)) / τ).

    This maximises the expected reward plus τ times the entropy of all actions to come. As τ → 0 the
    person is optimal; as τ → ∞ all ways through the rest of the episode become alike, so actions do
    too where every state allows as many.

    Parameters
    ----------
    temperature
        τ, above 0, in units of reward.

    Raises
    ------
    CounselError
        When the temperature is not above 0 and finite.

    Examples
    --------
    What three people do first on a small map, where the best action is the last:

    >>> from counsel.worlds import Boltzmann, make
    >>> mdp = make("flappy-bird-budget/greedy").mdp
    >>> for temperature in (0.1, 1.0, 100.0):
    ...     print(Boltzmann(temperature)(mdp)[0, mdp.start.argmax()].round(2).tolist())
    [0.0, 0.0, 1.0]
    [0.55, 0.2, 0.25]
    [0.34, 0.33, 0.33]
    """

    temperature: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "temperature", positive("temperature", self.temperature))

    def __call__(self, mdp: MDP) -> Floats:
        """Return what they do alone.

        Parameters
        ----------
        mdp
            The world they are in.

        Returns
        -------
        ndarray
            Probabilities [h, s, a].
        """
        H, S, A = mdp.reward.shape
        worlds = mdp.kernel.to_sparse()
        unit = max(self.temperature, 1.0)  # what is added to V then stays in range
        temperature = self.temperature / unit
        policy_hsa, V_s = np.empty((H, S, A)), np.zeros(S)
        for h in reversed(range(H)):
            world = worlds[h] if isinstance(worlds, list) else worlds
            Q_sa = mdp.reward[h] / unit + (world @ V_s).reshape(S, A)
            Q_sa = np.where(mdp.allowed[h], Q_sa, -np.inf)
            best_s = Q_sa.max(axis=1)
            with np.errstate(over="ignore"):  # far below the best is never
                weight_sa = np.exp((Q_sa - best_s[:, None]) / temperature)
            total_s = weight_sa.sum(axis=1)
            V_s = best_s + temperature * np.log(total_s)
            policy_hsa[h] = weight_sa / total_s[:, None]
        return policy_hsa


def policy_of(human: object, mdp: MDP) -> Floats:
    """Return the policy of a person or of a table."""
    given = human(mdp) if callable(human) else human
    if given is None or isinstance(given, str | Human):
        raise CounselError(
            f"human is {brief(human)}; give what the person does alone: a policy table, or a "
            "person such as counsel.worlds.Uniform() (adherence= says how much they listen)"
        )
    table = numbers("human", given)  # type: ignore[arg-type]
    H, S, A = mdp.reward.shape
    if table.shape not in ((S, A), (H, S, A)):
        raise CounselError(
            f"human has shape {table.shape}; expected a policy [s, a] = {(S, A)} "
            f"or [h, s, a] = {(H, S, A)}"
        )
    return table


def person_named(human: object, people: Mapping[str, Person]) -> object:
    """Return the person of that name, also inside ``Noisy``; all else stays as it is."""
    if isinstance(human, Noisy) and isinstance(human.person, str):
        return Noisy(_find(human.person, people), human.epsilon)
    return _find(human, people) if isinstance(human, str) else human


def _find(name: str, people: Mapping[str, Person]) -> Person:
    if name not in people:
        raise CounselError(
            f"human is {name!r}; give {', '.join(people)}, a table of probabilities, or a person "
            "such as counsel.worlds.Uniform()"
        )
    return people[name]


def adherence_named(adherence: str | ArrayLike, settings: Mapping[str, ArrayLike]) -> ArrayLike:
    """Return the adherence of that name; numbers stay as they are."""
    if not isinstance(adherence, str):
        return adherence
    if adherence not in settings:
        raise CounselError(
            f"adherence is {brief(adherence)}; give {', '.join(settings)}, a number from 0 to 1, "
            "or one for each action"
        )
    return settings[adherence]
