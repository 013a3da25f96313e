"""People for any world: what they do without advice, as a table of probabilities.

A person is a policy table [s, a] or [h, s, a], or any function of an ``MDP`` that returns such a
table. Worlds also have people of their own, by name: ``human="greedy"`` or
``human=Noisy("greedy", 0.1)`` in Flappy Bird.
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
    """A person who takes every allowed action with the same probability.

    Call it with a world, or pass it as ``human`` to ``make_flappy_bird`` or ``make_car_driving``.

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
        """Return the policy [s, a], or [h, s, a] if the allowed actions change with the step."""
        allowed = layers(mdp.allowed)
        policy: Floats = allowed / allowed.sum(axis=-1, keepdims=True)
        return unlayered(policy)


@dataclass(frozen=True, slots=True, eq=False)
class Noisy:
    """A person who acts like another, but with probability ``epsilon`` uniformly at random.

    Parameters
    ----------
    person
        The other person: e.g. ``Boltzmann(1.0)``, a policy [s, a] or [h, s, a], or the name of a
        person of the world, as in ``make_flappy_bird(human=Noisy("greedy", 0.1))``.
    epsilon
        In [0, 1].

    Raises
    ------
    CounselError
        If ``epsilon`` is out of range; when called, if ``person`` is not a person.

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
        """Return (1 − ε) π + ε uniform: [s, a], or [h, s, a] if either changes with the step."""
        mixed: Floats = (1.0 - self.epsilon) * policy_of(self.person, mdp)
        return mixed + self.epsilon * Uniform()(mdp)


@dataclass(frozen=True, slots=True)
class Boltzmann:
    """A soft-optimal person: the better an action, the likelier; more sharply at a low temperature.

    With Q_h(s, a) = r_h(s, a) + Σ p_h(t | s, a) V_{h+1}(t) over the allowed actions,

        V_h(s) = τ log Σ_a exp(Q_h(s, a) / τ),    π_h(a | s) = exp((Q_h(s, a) − V_h(s)) / τ).

    This maximises the expected reward plus τ times the entropy of all future actions. As τ → 0 the
    person becomes optimal; as τ → ∞ all continuations of the episode become equally likely, and so
    do the actions if every state allows the same number of them.

    Parameters
    ----------
    temperature
        τ, above 0, in units of reward.

    Raises
    ------
    CounselError
        If the temperature is not above 0 and finite.

    Examples
    --------
    First moves of three people on a small map, where the best action is the last:

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
        """Return the policy [h, s, a]."""
        H, S, A = mdp.reward.shape
        worlds = mdp.kernel.to_sparse()
        unit = max(self.temperature, 1.0)  # keeps V in range at high temperatures
        temperature = self.temperature / unit
        policy_hsa, V_s = np.empty((H, S, A)), np.zeros(S)
        for h in reversed(range(H)):
            world = worlds[h] if isinstance(worlds, list) else worlds
            Q_sa = mdp.reward[h] / unit + (world @ V_s).reshape(S, A)
            Q_sa = np.where(mdp.allowed[h], Q_sa, -np.inf)
            best_s = Q_sa.max(axis=1)
            with np.errstate(over="ignore"):  # actions far below the best get probability 0
                weight_sa = np.exp((Q_sa - best_s[:, None]) / temperature)
            total_s = weight_sa.sum(axis=1)
            V_s = best_s + temperature * np.log(total_s)
            policy_hsa[h] = weight_sa / total_s[:, None]
        return policy_hsa


def policy_of(human: object, mdp: MDP) -> Floats:
    """Return the policy table of a person: the table itself, or what the person returns."""
    policy = human(mdp) if callable(human) else human
    if policy is None or isinstance(policy, str | Human):
        raise CounselError(
            f"human is {brief(human)}; give what the person does alone: a policy table, or a "
            "person such as counsel.worlds.Uniform() (adherence= says how much they listen)"
        )
    table = numbers("human", policy)  # type: ignore[arg-type]
    H, S, A = mdp.reward.shape
    if table.shape not in ((S, A), (H, S, A)):
        raise CounselError(
            f"human has shape {table.shape}; expected a policy [s, a] = {(S, A)} "
            f"or [h, s, a] = {(H, S, A)}"
        )
    return table


def person_named(human: object, people: Mapping[str, Person]) -> object:
    """Replace a name, also inside ``Noisy``, by the person of that name."""
    if isinstance(human, Noisy) and isinstance(human.person, str):
        return Noisy(person_named(human.person, people), human.epsilon)  # type: ignore[arg-type]
    if isinstance(human, str) and human not in people:
        raise CounselError(
            f"human is {human!r}; give {', '.join(people)}, a table of probabilities, or a person "
            "such as counsel.worlds.Uniform()"
        )
    return people[human] if isinstance(human, str) else human


def adherence_named(adherence: str | ArrayLike, settings: Mapping[str, ArrayLike]) -> ArrayLike:
    """Replace the name of an adherence setting by its numbers."""
    if not isinstance(adherence, str):
        return adherence
    if adherence not in settings:
        raise CounselError(
            f"adherence is {brief(adherence)}; give {', '.join(settings)}, a number from 0 to 1, "
            "or one number per action"
        )
    return settings[adherence]
