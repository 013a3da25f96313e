"""The person: what they do on their own, and how much they listen.

Left alone, the person takes action a with probability π_h(a | s). Advised b, they take b with
probability θ_h(s, b), their *adherence*, and otherwise choose among the other actions as they would
have (equation 1 of the paper):

    P(a | s, advice b) = θ(s, b)                                    for a = b
                       = (1 − θ(s, b)) π(a | s) / Σ_{c≠b} π(c | s)   for a ≠ b

The same law in terms of the *lift* λ = (θ − π) / (1 − π) is P(a) = λ 1{a = b} + (1 − λ) π(a): where
λ ≥ 0 it is the probability that they act because it was advised; λ < 0 means the advice repels.

Deviates: where the person is certain to take b the paper's fraction is 0/0; there advice changes
nothing and the lift is 0. *Certain* has one meaning everywhere in Counsel: every other action has
probability 0. A probability below ``NEVER`` is stored as 0, because its reciprocal, and so the
lift, is too large to compute with.

*Groups* declare which pairs share one adherence (or one lift, if the person is defined by lift), so
that a learner may pool them. They are never inferred from the numbers: passing θ as a single number
does not mean that a learner knows it to be constant. By default each (s, a) is its own group at all
steps, or each (h, s, a) if the adherence has a step axis.

A person with a *memory* (``memory.py``) has a lift for each of its levels: tables then have a
leading level axis. Without a memory there is one level. ``lift`` and ``adherence``, which know no
levels, are refused for a person with a memory, so that no code takes them for constant by mistake.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counsel._arrays import (
    Floats,
    Ints,
    brief,
    check_distributions,
    check_finite,
    check_range,
    first,
    numbers,
    place,
    rectangular,
    sealed,
    unlayered,
)
from counsel.errors import CounselError
from counsel.model._kernels import lifts, sum_others
from counsel.model.level_factors import level_factors
from counsel.model.memory import Memory

_T = TypeVar("_T", bound=np.generic)

NEVER = 1e-300
"""A habit below this probability is stored as 0. A lift is then at least −1e300, so that lift ×
advantage is finite, and numbers too small to keep all their digits cost it less than 1e-23."""


@dataclass(frozen=True, slots=True, eq=False, init=False, repr=False)
class Human:
    """A person with a policy of their own and an adherence.

    Parameters
    ----------
    policy
        The habit [s, a] or [h, s, a]: every row is a distribution over actions. Probabilities below
        1e-300 become 0.
    adherence
        Probability of a match when advised: a number, [a], [s, a] or [h, s, a] in [0, 1].
    lift
        Instead of ``adherence``, in the same shapes; at most 1, and not so low that the adherence
        λ + (1 − λ) π falls below 0. With a memory and without ``fading``: a number, or [m], [m, a],
        [m, s, a] or [m, h, s, a], with the level first.
    groups
        Whole numbers in the same shapes; pairs with the same number share one adherence (or lift).
        By default each (s, a) is its own group, or each (h, s, a) if the adherence has steps. With
        a memory they have a leading level axis, and by default each level has its own groups.
    memory
        What the person carries over from advice given; none by default.
    fading
        With a memory: a factor for each level [m] that multiplies the lift, 0 or more.

    Attributes
    ----------
    policy
        [layer, s, a]: one layer if stationary, else one per step.
    level_adherence, level_lift
        [m, layer, s, a]: one level without a memory.
    shares_lift
        Whether a group has one lift rather than one adherence.
    repels
        Whether any lift is negative.
    memory
        The memory; None if the person has none.
    input_values, input_groups, input_fading
        The adherence (or lift), the groups and the fading as passed to the constructor.

    Raises
    ------
    CounselError
        If a shape or a number is wrong, both or neither of adherence and lift are passed, the pairs
        of a group differ, or a fading makes a lift that no person can have.

    Examples
    --------
    Advice moves this person towards action 0 half the time, and puts them off action 1:

    >>> import counsel
    >>> human = counsel.Human([[0.5, 0.5]], adherence=[0.75, 0.4])
    >>> human.lift.round(3).tolist()
    [[[0.5, -0.2]]]
    >>> human.repels
    True

    The second piece of advice moves this person only 70 % as well as the first, and later ones half
    as well:

    >>> memory = counsel.Memory.pieces(2)
    >>> tiring = counsel.Human([[0.5, 0.5]], lift=0.8, memory=memory, fading=[1, 0.7, 0.5])
    >>> tiring.level_lift[:, 0, 0, 0].round(3).tolist()
    [0.8, 0.56, 0.4]
    """

    policy: Floats
    level_adherence: Floats
    level_lift: Floats
    shares_lift: bool
    repels: bool
    memory: Memory | None
    input_values: Floats
    input_groups: Ints | None
    input_fading: Floats | None

    def __init__(  # noqa: PLR0913 (the habit, how much they listen, and what they remember)
        self,
        policy: ArrayLike,
        adherence: ArrayLike | None = None,
        *,
        lift: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        memory: Memory | None = None,
        fading: ArrayLike | None = None,
    ) -> None:
        policy_lsa = _read_policy(policy)
        factors = read_fading(memory, fading)
        if adherence is not None and lift is None:
            if memory is not None:
                raise CounselError("a person with a memory is given by lift; give lift=…")
            values = numbers("adherence", adherence)
            shared = _spread("adherence", values, policy_lsa.shape)[None]
            check_range("adherence", shared[0], "hsa", 0.0, 1.0)
            theta_mlsa, lift_mlsa = shared, _lift_of(policy_lsa, shared[0])[None]
        elif lift is not None and adherence is None:
            values = numbers("lift", lift)
            shared = _level_lifts(values, policy_lsa.shape, memory, factors)
            theta_mlsa = _adherence_of(policy_lsa, shared, memory, factors)
            taken = policy_lsa > 0.0
            certain = (
                taken.sum(axis=-1, keepdims=True) - taken == 0
            )  # all others have probability 0
            lift_mlsa = np.where(certain, 0.0, shared)
        else:
            raise CounselError("give either adherence or lift: a person has one of the two")
        fields: dict[str, Any] = {
            "policy": policy_lsa,
            "level_adherence": sealed(theta_mlsa),
            "level_lift": sealed(lift_mlsa),
            "shares_lift": lift is not None,
            "repels": bool((lift_mlsa < 0.0).any()),
            "memory": memory,
            "input_values": values,
            "input_groups": None if groups is None else _read_groups(groups, shared, memory),
            "input_fading": factors,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        build = partial(Human, **self.inputs)
        return build, (unlayered(self.policy),)

    @property
    def inputs(self) -> dict[str, Any]:
        """The keyword arguments that build this person again from its policy."""
        scale = "lift" if self.shares_lift else "adherence"
        inputs: dict[str, Any] = {scale: self.input_values, "groups": self.input_groups}
        if self.memory is not None:
            inputs |= {"memory": self.memory, "fading": self.input_fading}
        return inputs

    @property
    def lift(self) -> Floats:
        """The lift [layer, s, a] of a person without a memory."""
        return self._without_levels("lift", self.level_lift)

    @property
    def adherence(self) -> Floats:
        """The adherence [layer, s, a] of a person without a memory."""
        return self._without_levels("adherence", self.level_adherence)

    def _without_levels(self, name: str, table_mlsa: Floats) -> Floats:
        if self.memory is not None:
            raise CounselError(
                f"the person has a memory ({self.memory.name}), so there is no single {name}; use "
                f"level_{name}, or a person without a memory"
            )
        table_lsa: Floats = table_mlsa[0]
        return table_lsa

    @property
    def fading(self) -> Floats | None:
        """The factor [m] that multiplies one lift on each level; None if there is none.

        It is the one passed to the constructor, or else the lifts of the levels in proportion to
        those of the start (``level_factors.py``). There is none without a memory, and where levels
        differ in more than a factor.
        """
        if self.memory is None or self.input_fading is not None:
            return self.input_fading
        factors = level_factors(self.level_lift, self.level_adherence, self.memory.start)
        return None if factors is None else sealed(factors)

    def with_memory(self, memory: Memory, fading: ArrayLike | None = None) -> "Human":
        """Return the same person with a memory.

        Parameters
        ----------
        memory
            What the person carries over from advice given.
        fading
            A factor for each level [m] that multiplies the lift; 1 by default.
        """
        _check_memory(memory)
        factors = np.ones(memory.n_levels) if fading is None else fading
        lift = unlayered(self.lift)
        return Human(unlayered(self.policy), lift=lift, memory=memory, fading=factors)

    @property
    def n_levels(self) -> int:
        """The number of levels of the memory; 1 without a memory."""
        return int(self.level_lift.shape[0])

    @property
    def groups(self) -> Ints:
        """Whole numbers [layer, s, a], with a memory [m, layer, s, a].

        Pairs with the same number share one adherence (or lift).
        """
        shape: tuple[int, ...] = (self.group_layers, self.n_states, self.n_actions)
        if self.memory is not None:
            shape = (self.n_levels, *shape)
        if self.input_groups is None:
            return sealed(np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape))
        if self.memory is not None:
            return _spread_levels("groups", self.input_groups, shape[1:], self.n_levels)
        return np.broadcast_to(self.input_groups, shape)

    @property
    def group_layers(self) -> int:
        """1 if all steps share their groups, else the number of steps."""
        table = self.input_values if self.input_groups is None else self.input_groups
        has_levels = self.memory is not None and (
            self.input_groups is not None or self.input_fading is None
        )
        return int(table.shape[-3]) if table.ndim == 3 + has_levels else 1

    @property
    def n_states(self) -> int:
        """The number of states."""
        return int(self.policy.shape[1])

    @property
    def n_actions(self) -> int:
        """The number of actions."""
        return int(self.policy.shape[2])

    def __repr__(self) -> str:
        low, high = self.level_adherence.min(), self.level_adherence.max()
        adherence = f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"
        memory = "" if self.memory is None else f", memory {self.memory.name}"
        sizes = f"{self.n_states} states, {self.n_actions} actions"
        return f"Human({sizes}, adherence {adherence}{memory})"


def advised_law(own: Floats, advice: int, adherence: float) -> Floats:
    """Return the distribution [a] of the action of an advised person (equation 1)."""
    others = np.where(np.arange(own.size) == advice, 0.0, own)
    rest = others.sum()
    if rest == 0.0:
        return own
    law: Floats = others / rest * (1.0 - adherence)
    law[advice] = adherence
    return law


def drop_never(habit: Floats) -> Floats:
    """Set each probability below ``NEVER`` to 0, in place; return the habit."""
    habit[habit < NEVER] = 0.0
    return habit


def draw_index(probability: Floats, rng: np.random.Generator) -> int:
    """Draw an index with these probabilities, never an index of probability 0."""
    left, drawn = rng.random() * float(probability.sum()), 0
    for i, share in enumerate(probability.tolist()):
        if share > 0.0:
            drawn = i
            left -= share
            if left < 0.0:
                break
    return drawn


def _read_policy(habit: ArrayLike) -> Floats:
    policy = numbers("policy", habit)
    if policy.ndim not in (2, 3) or 0 in policy.shape:
        raise CounselError(f"policy has shape {policy.shape}; expected [s, a] or [h, s, a]")
    check_distributions("policy", policy, "hsa"[-policy.ndim :])
    return sealed(drop_never(policy).reshape(-1, *policy.shape[-2:]))


def _spread(name: str, array: NDArray[_T], shape: tuple[int, ...]) -> NDArray[_T]:
    """Return a view [layer, s, a] of a number, [a], [s, a] or [h, s, a]."""
    S, A = shape[1:]
    if not _fits(array.shape, shape):
        raise CounselError(
            f"{name} has shape {array.shape}; expected a number, [a] = {(A,)}, "
            f"[s, a] = {(S, A)} or [h, s, a]"
        )
    return np.broadcast_to(sealed(array), (array.shape[0] if array.ndim == 3 else 1, S, A))


def _fits(given: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether a table can be spread to [layer, s, a]."""
    L, *last = shape
    if len(given) > 3 or 0 in given or given[-2:] != tuple(last[2 - min(len(given), 2) :]):
        return False
    return len(given) < 3 or L == 1 or given[0] == L


def _lift_of(policy_lsa: Floats, theta_lsa: Floats) -> Floats:
    """Return λ = (θ − π) / (1 − π), and 0 where the person is certain to take the action."""
    lift_lsa = np.empty((max(len(policy_lsa), len(theta_lsa)), *policy_lsa.shape[1:]))
    lifts(policy_lsa, theta_lsa, lift_lsa)
    return lift_lsa


def _adherence_of(
    policy_lsa: Floats, lift_mlsa: Floats, memory: Memory | None, fading: Floats | None
) -> Floats:
    """Return θ = π + λ Σ_{b≠a} π(b) for each level; raise where θ is not a probability."""
    axes, levels = ("hsa", lift_mlsa[0]) if memory is None else ("mhsa", lift_mlsa)
    check_finite("lift", levels, axes)
    others_lsa = np.empty_like(policy_lsa)
    sum_others(policy_lsa, others_lsa)
    # λ + (1 − λ) π would lose its digits where the person is almost certain and λ far below 0.
    theta: Floats = policy_lsa + levels * others_lsa
    levels = np.broadcast_to(levels, theta.shape)
    rounding = 1e-12
    where = first((levels > 1.0) | (theta < -rounding))
    if where is not None:
        name = f"lift{place(axes, where)}"
        if fading is not None:
            name = f"fading[m={where[0]}] is {fading[where[0]]:.10g}, so the {name}"
        raise CounselError(
            f"{name} is {levels[where]:.10g}, which means an adherence of "
            f"{theta[where]:.10g}; adherence must lie in [0, 1] and lift must be at most 1"
        )
    return np.clip(theta, 0.0, 1.0).reshape(-1, *theta.shape[-3:])


def _level_lifts(
    values: Floats, shape: tuple[int, ...], memory: Memory | None, fading: Floats | None
) -> Floats:
    """Return the lift [m, layer, s, a] of each level."""
    if memory is None:
        return _spread("lift", values, shape)[None]
    if fading is None:
        return _spread_levels("lift", values, shape, memory.n_levels)
    return fading[:, None, None, None] * _spread("lift", values, shape)


def _spread_levels(
    name: str, array: NDArray[_T], shape: tuple[int, ...], n_levels: int
) -> NDArray[_T]:
    """Return a view [m, layer, s, a] of a number, [m], [m, a], [m, s, a] or [m, h, s, a]."""
    if array.ndim == 0:
        return np.broadcast_to(_spread(name, array, shape), (n_levels, 1, *shape[1:]))
    if array.shape[0] != n_levels or not _fits(array.shape[1:], shape):
        M, (S, A) = n_levels, shape[1:]
        raise CounselError(
            f"{name} has shape {array.shape}; with a memory of {M} levels, give a number, "
            f"[m] = {(M,)}, [m, a] = {(M, A)}, [m, s, a] = {(M, S, A)} or [m, h, s, a], or one "
            "lift and fading [m]"
        )
    levels = [_spread(name, np.asarray(array[m]).copy(), shape) for m in range(n_levels)]
    return sealed(np.stack(levels))


def _check_memory(memory: object) -> None:
    if not isinstance(memory, Memory):
        raise CounselError(f"memory is {brief(memory)}; give a counsel.Memory")


def read_fading(memory: Memory | None, fading: ArrayLike | None) -> Floats | None:
    """Return the checked factors of the levels."""
    if memory is not None:
        _check_memory(memory)
    if fading is None:
        return None
    if memory is None:
        raise CounselError("fading is a factor for each level of a memory; give a memory, too")
    factors = numbers("fading", fading)
    if factors.shape != (memory.n_levels,):
        raise CounselError(
            f"fading has shape {factors.shape}; give one factor for each of the "
            f"{memory.n_levels} levels"
        )
    check_range("fading", factors, "m", 0.0, np.inf)
    check_finite("fading", factors, "m")
    return sealed(factors)


def _read_groups(group_numbers: ArrayLike, shared_mlsa: Floats, memory: Memory | None) -> Ints:
    """Return the groups; raise where two pairs of a group differ in their adherence or lift."""
    table = rectangular("groups", group_numbers)
    if table.dtype.kind not in "iu" or (table.size and not 0 <= table.min() <= table.max() < 2**62):
        raise CounselError("groups must be whole numbers of at least 0 and below 2^62")
    groups = sealed(table.astype(np.int64))
    axes, shared = ("hsa", shared_mlsa[0]) if memory is None else ("mhsa", shared_mlsa)
    if memory is None:
        spread = _spread("groups", groups, shared.shape)
    else:
        spread = _spread_levels("groups", groups, shared.shape[1:], memory.n_levels)
    group_all, shared_all = np.broadcast_arrays(spread, shared)
    ids, inverse = np.unique(group_all, return_inverse=True)
    first_value = np.empty(ids.size)
    first_value[inverse.reshape(-1)[::-1]] = shared_all.reshape(-1)[::-1]
    expected = first_value[inverse.reshape(shared_all.shape)]
    where = first(shared_all != expected)
    if where is not None:
        raise CounselError(
            f"the value at {place(axes, where)} is {shared_all[where]:.10g} but group "
            f"{group_all[where]} has {expected[where]:.10g}; "
            "all pairs of a group must share one adherence or one lift"
        )
    return groups
