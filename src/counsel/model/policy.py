"""Policies of advice: what to say at each step in each state.

Advice is a small integer: an action, or ``defer`` (the index after the last action) for silence.

* ``Policy`` is Markov: one piece of advice per step and state, and, in the few cells where it is
  random, a distribution over advice.
* ``HardPolicy`` also looks at the pieces of advice left, and never spends more than it has.
* ``Mixture`` draws one of several policies before the episode and keeps it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counsel._arrays import (
    ROW_TOLERANCE,
    Bools,
    Floats,
    brief,
    check_distributions,
    first,
    index_in,
    numbers,
    place,
    rectangular,
    sealed,
    whole,
)
from counsel.errors import CounselError
from counsel.model.kernel import MOST_ACTIONS

Advice = NDArray[np.int16]
"""Advice is stored in two bytes: room for ``MOST_ACTIONS`` and silence."""


@dataclass(frozen=True, slots=True, eq=False)
class RandomCells:
    """The cells of a policy that are random, in order of ``cell`` = step · S + state.

    Entries ``indptr[i]`` up to ``indptr[i + 1]`` of ``advice`` and ``probability`` belong to cell
    ``cell[i]``.
    """

    cell: NDArray[np.int64]
    indptr: NDArray[np.int64]
    advice: Advice
    probability: Floats

    def __post_init__(self) -> None:
        self._own("cell", np.int64, "iu")
        self._own("indptr", np.int64, "iu")
        self._own("advice", np.int16, "iu")
        self._own("probability", np.float64, "f")

    def _own(self, name: str, dtype: type[np.generic], kinds: str) -> None:
        """Keep a read-only copy of one array."""
        array = np.asarray(getattr(self, name))
        if array.ndim != 1 or not (array.dtype.kind in kinds or array.size == 0):
            raise CounselError(f"{name} of the random cells is {brief(array)}; give plain numbers")
        own: NDArray[Any] = array.astype(dtype)
        if not np.array_equal(own, array, equal_nan=True):
            raise CounselError(f"{name} of the random cells is {brief(array)}, which is too large")
        object.__setattr__(self, name, sealed(own))

    @property
    def cell_of_entry(self) -> NDArray[np.int64]:
        """The cell that each entry of ``advice`` and ``probability`` belongs to."""
        return np.repeat(self.cell, np.diff(self.indptr))

    def __reduce__(self) -> tuple[Any, ...]:
        return RandomCells, (self.cell, self.indptr, self.advice, self.probability)


NO_RANDOM_CELLS = RandomCells(
    np.zeros(0, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int16), np.zeros(0)
)


@dataclass(frozen=True, slots=True, eq=False, init=False, repr=False)
class Policy:
    """Advice for each cell: each step and state.

    Parameters
    ----------
    advice
        Whole numbers [h, s]: an action, or ``n_actions`` for silence. The likeliest in a random
        cell.
    n_actions
        How many actions the person has.
    random
        The cells that are random; none when not given. ``from_probabilities`` is the easier way.

    Raises
    ------
    CounselError
        When the advice is not [h, s], out of range, or the random cells do not fit it.

    Examples
    --------
    Two steps and two states; with two actions, 2 is silence:

    >>> import counsel
    >>> policy = counsel.Policy([[0, 2], [2, 1]], n_actions=2)
    >>> policy
    Policy(2 steps, 2 states, advises in 50% of cells, 0 random)
    >>> policy.at(0, 1) == {policy.defer: 1.0}
    True

    Advice that is given now and then is a random cell:

    >>> counsel.Policy.from_probabilities([[[0.25, 0.0, 0.75]]]).at(0, 0)
    {0: 0.25, 2: 0.75}
    """

    n_actions: int
    advice: Advice
    random: RandomCells

    def __init__(
        self, advice: ArrayLike, *, n_actions: int, random: RandomCells | None = None
    ) -> None:
        actions = _read_actions(n_actions)
        table = _read_advice(advice, actions, "hs")
        if random is not None:
            _check_random(random, table.shape, actions)
        fields: dict[str, Any] = {
            "n_actions": actions,
            "advice": table,
            "random": NO_RANDOM_CELLS if random is None else random,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @classmethod
    def trusted(
        cls, advice: Advice, *, n_actions: int, random: RandomCells = NO_RANDOM_CELLS
    ) -> "Policy":
        """Wrap advice a planner has just made: nobody else holds it and nothing is checked.

        Parameters
        ----------
        advice
            Two-byte integers [h, s]; made read-only, not copied.
        n_actions, random
            As in the constructor.

        Returns
        -------
        Policy
            Around the very array.
        """
        policy = object.__new__(cls)
        for name, value in (
            ("n_actions", n_actions),
            ("advice", sealed(advice)),
            ("random", random),
        ):
            object.__setattr__(policy, name, value)
        return policy

    @classmethod
    def never(cls, *, horizon: int, n_states: int, n_actions: int) -> "Policy":
        """Return the policy that never says anything.

        Parameters
        ----------
        horizon, n_states, n_actions
            Sizes of the problem.

        Returns
        -------
        Policy
            Silent in every cell.
        """
        return cls(np.full((horizon, n_states), n_actions), n_actions=n_actions)

    @classmethod
    def from_probabilities(cls, probability: ArrayLike) -> "Policy":
        """Build from a distribution over advice in each cell.

        Parameters
        ----------
        probability
            [h, s, advice]: each row a distribution over the actions and, last, silence.

        Returns
        -------
        Policy
            A cell with more than one possible advice is a random cell.

        Raises
        ------
        CounselError
            When the shape is wrong or a row is not a distribution.
        """
        table = numbers("probability", probability)
        if table.ndim != 3 or table.shape[2] < 2 or 0 in table.shape:
            raise CounselError(
                f"probability has shape {table.shape}; expected [h, s, advice] with silence last"
            )
        check_distributions("probability", table, "hsa")
        flat = table.reshape(-1, table.shape[2])
        cells = np.nonzero((flat > 0.0).sum(axis=1) > 1)[0]
        row, advice = np.nonzero(flat[cells])
        random = RandomCells(
            cells,
            np.concatenate(([0], np.cumsum(np.bincount(row, minlength=cells.size)))),
            advice.astype(np.int16),
            flat[cells][row, advice],
        )
        return cls(table.argmax(axis=2), n_actions=table.shape[2] - 1, random=random)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.advice, self.n_actions, self.random)

    @property
    def defer(self) -> int:
        """The index that means silence."""
        return self.n_actions

    def check_fits(self, horizon: int, n_states: int, n_actions: int) -> None:
        """Raise unless the policy was made for a problem of this size.

        Parameters
        ----------
        horizon, n_states, n_actions
            Sizes of the problem.

        Raises
        ------
        CounselError
            When one of them differs.
        """
        _check_sizes(self, (horizon, n_states, n_actions))

    def silent_where(self, mask_hs: Bools) -> "Policy":
        """Return the same policy, silent where a mask says so.

        Parameters
        ----------
        mask_hs
            Booleans [h, s].

        Returns
        -------
        Policy
            What it advises elsewhere is unchanged.
        """
        advice = np.where(mask_hs, self.defer, self.advice).astype(np.int16)
        cell, lengths = self.random.cell, np.diff(self.random.indptr)
        stays = ~np.asarray(mask_hs).reshape(-1)[cell]
        kept = np.repeat(stays, lengths)
        random = RandomCells(
            cell[stays],
            np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths[stays]))),
            self.random.advice[kept],
            self.random.probability[kept],
        )
        return Policy.trusted(advice, n_actions=self.n_actions, random=random)

    def probabilities(self) -> Floats:
        """Return the distribution over advice in each cell.

        Returns
        -------
        ndarray
            [h, s, advice], silence last.
        """
        H, S = self.advice.shape
        table = np.zeros((H * S, self.n_actions + 1))
        table[np.arange(H * S), self.advice.reshape(-1)] = 1.0
        table[self.random.cell] = 0.0
        table[self.random.cell_of_entry, self.random.advice] = self.random.probability
        return table.reshape(H, S, -1)

    def at(self, step: int, state: int) -> dict[int, float]:
        """Return the advice of one cell and its probability.

        Parameters
        ----------
        step, state
            Of the cell, counted from 0.

        Returns
        -------
        dict
            Advice to probability; one entry unless the cell is random.

        Raises
        ------
        CounselError
            When an index is out of range.
        """
        step = index_in("step", step, self.advice.shape[0])
        state = index_in("state", state, self.advice.shape[1])
        cell = step * self.advice.shape[1] + state
        i = int(np.searchsorted(self.random.cell, cell))
        if i == self.random.cell.size or self.random.cell[i] != cell:
            return {int(self.advice[step, state]): 1.0}
        part = slice(self.random.indptr[i], self.random.indptr[i + 1])
        pairs = zip(self.random.advice[part], self.random.probability[part], strict=True)
        return {int(advice): float(probability) for advice, probability in pairs}

    def draw(self, step: int, state: int, rng: np.random.Generator | None) -> int:
        """Return the advice of one cell, drawn where it is random.

        Parameters
        ----------
        step, state
            Of the cell, counted from 0.
        rng
            Where chance comes from; may be None where the cell is not random.

        Returns
        -------
        int
            An action, or ``defer`` for silence.

        Raises
        ------
        CounselError
            When an index is out of range, or the cell is random and there is no ``rng``.
        """
        chances = self.at(step, state)
        if len(chances) == 1:
            return next(iter(chances))
        if rng is None:
            raise CounselError(f"advice{place('hs', (step, state))} is random; give rng to draw it")
        return int(rng.choice(list(chances), p=list(chances.values())))

    def __repr__(self) -> str:
        H, S = self.advice.shape
        said = float((self.advice != self.defer).mean())
        odd = self.random.cell.size
        return f"Policy({H} steps, {S} states, advises in {said:.0%} of cells, {odd} random)"


@dataclass(frozen=True, slots=True, eq=False, init=False, repr=False)
class HardPolicy:
    """Advice that also looks at the pieces left, and never spends more than it has.

    Parameters
    ----------
    advice
        Whole numbers [pieces left, h, s]: an action, or ``n_actions`` for silence. The first axis
        runs from 0 pieces left, where all is silence, to the budget.
    n_actions
        How many actions the person has.

    Raises
    ------
    CounselError
        When the advice is not [pieces left, h, s], out of range, or speaks with no piece left.

    Examples
    --------
    One piece of advice a night: with a failing patient it is kept in the first hour and spent in
    the sixth, and once it is spent there is only silence.

    >>> import counsel
    >>> from counsel.worlds import make
    >>> policy = counsel.solve(make("night-shift"), budget=1, hard=True).policy
    >>> policy
    HardPolicy(12 steps, 4 states, at most 1 pieces)
    >>> [policy.at(step, 2, pieces_left=1) for step in (0, 5)], policy.defer
    ([3, 2], 3)
    >>> policy.at(5, 2, pieces_left=0)
    3
    """

    n_actions: int
    advice: Advice

    def __init__(self, advice: ArrayLike, *, n_actions: int) -> None:
        actions = _read_actions(n_actions)
        table = _read_advice(advice, actions, "khs")
        where = first(table[:1] != actions)
        if where is not None:
            raise CounselError(
                f"advice{place('khs', where)} speaks with no piece left; give {actions} there"
            )
        object.__setattr__(self, "n_actions", actions)
        object.__setattr__(self, "advice", table)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.advice, self.n_actions, None)

    @property
    def defer(self) -> int:
        """The index that means silence."""
        return self.n_actions

    def check_fits(self, horizon: int, n_states: int, n_actions: int) -> None:
        """Raise unless the policy was made for a problem of this size.

        Parameters
        ----------
        horizon, n_states, n_actions
            Sizes of the problem.

        Raises
        ------
        CounselError
            When one of them differs.
        """
        _check_sizes(self, (horizon, n_states, n_actions))

    def silent_where(self, mask_hs: Bools) -> "HardPolicy":
        """Return the same policy, silent where a mask says so.

        Parameters
        ----------
        mask_hs
            Booleans [h, s].

        Returns
        -------
        HardPolicy
            What it advises elsewhere is unchanged.
        """
        return HardPolicy(np.where(mask_hs, self.defer, self.advice), n_actions=self.n_actions)

    @property
    def budget(self) -> int:
        """Pieces of advice an episode starts with."""
        return int(self.advice.shape[0]) - 1

    def at(self, step: int, state: int, pieces_left: int) -> int:
        """Return the advice of one cell.

        Parameters
        ----------
        step, state
            Of the cell, counted from 0.
        pieces_left
            From 0 to ``budget``.

        Returns
        -------
        int
            An action, or ``defer`` for silence.

        Raises
        ------
        CounselError
            When an index is out of range.
        """
        pieces_left = index_in("pieces_left", pieces_left, self.budget + 1)
        step = index_in("step", step, self.advice.shape[1])
        state = index_in("state", state, self.advice.shape[2])
        return int(self.advice[pieces_left, step, state])

    def __repr__(self) -> str:
        _, H, S = self.advice.shape
        return f"HardPolicy({H} steps, {S} states, at most {self.budget} pieces)"


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """Policies, one of which is drawn with its weight for a whole episode.

    Parameters
    ----------
    policies
        ``Policy`` or ``HardPolicy``, all for one problem.
    weights
        Probability of each; they sum to 1.

    Raises
    ------
    CounselError
        When there is not one weight for each policy, the weights are no distribution, or the
        policies are for problems of different sizes.

    Examples
    --------
    The best advice in half of all episodes, silence in the other half:

    >>> import counsel
    >>> from counsel.worlds import make
    >>> problem = make("flappy-bird-budget/greedy")
    >>> best = counsel.solve(problem).policy
    >>> never = counsel.Policy.never(horizon=8, n_states=57, n_actions=3)
    >>> for policy in (best, never, counsel.Mixture((best, never), (0.5, 0.5))):
    ...     print(counsel.evaluate(problem, policy))
    Evaluation(value 2.6, 2 pieces of advice)
    Evaluation(value 1, 0 pieces of advice)
    Evaluation(value 1.8, 1 pieces of advice)
    """

    policies: tuple[Policy | HardPolicy, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.policies) != len(self.weights) or not self.policies:
            raise CounselError(
                f"a mixture needs one weight per policy, not {len(self.weights)} weights "
                f"for {len(self.policies)} policies"
            )
        for i, policy in enumerate(self.policies):
            if not isinstance(policy, Policy | HardPolicy):
                raise CounselError(
                    f"policies[{i}] is {brief(policy)}; a mixture is of Policy and HardPolicy"
                )
        for i, weight in enumerate(self.weights):
            if not isinstance(weight, int | float) or not 0.0 <= weight <= 1.0:
                raise CounselError(
                    f"weights[{i}] is {brief(weight)}; a weight must be a number from 0 to 1"
                )
        if abs(fsum(self.weights) - 1.0) > ROW_TOLERANCE:
            raise CounselError(f"weights sum to {fsum(self.weights):.10g}; they must sum to 1")
        shapes = {(policy.advice.shape[-2:], policy.n_actions) for policy in self.policies}
        if len(shapes) > 1:
            raise CounselError(f"a mixture needs policies for one problem, not for {len(shapes)}")

    @classmethod
    def of(cls, policies: Sequence[Policy | HardPolicy], weights: Sequence[float]) -> "Mixture":
        """Build from sequences, leaving out what has no weight.

        Parameters
        ----------
        policies, weights
            As in the constructor, in any sequence.

        Returns
        -------
        Mixture
            Of the policies whose weight is above 0.

        Raises
        ------
        CounselError
            As the constructor does.
        """
        checked = cls(tuple(policies), tuple(np.asarray(weights).tolist()))
        kept = [(p, w) for p, w in zip(checked.policies, checked.weights, strict=True) if w > 0.0]
        return cls(tuple(p for p, _ in kept), tuple(float(w) for _, w in kept))


def _rebuild(advice: Advice, n_actions: int, random: RandomCells | None) -> Policy | HardPolicy:
    """Build a pickled policy again."""
    if random is None:
        return HardPolicy(advice, n_actions=n_actions)
    return Policy(advice, n_actions=n_actions, random=random)


def _check_random(random: RandomCells, shape: tuple[int, ...], n_actions: int) -> None:
    """Raise unless random cells are in order, in range, and hold distributions."""
    cell, indptr, advice = random.cell, random.indptr, random.advice
    sound = (
        indptr.size == cell.size + 1
        and indptr[0] == 0
        and bool((np.diff(indptr) > 0).all() and (np.diff(cell) > 0).all())
        and advice.size == random.probability.size == indptr[-1]
        and bool(((cell >= 0) & (cell < shape[0] * shape[1])).all())
        and bool(((advice >= 0) & (advice <= n_actions)).all())
    )
    if not sound:
        raise CounselError(
            "the random cells of the policy do not fit together; list cells in order, each with "
            f"entries indptr[i] up to indptr[i + 1] and advice from 0 to {n_actions}"
        )
    for i in range(cell.size):
        part = slice(indptr[i], indptr[i + 1])
        chances = random.probability[part]
        where = place("hs", divmod(int(cell[i]), shape[1]))
        if len(set(advice[part].tolist())) < len(chances):
            raise CounselError(
                f"the random cell {where} names one advice twice; add up its probabilities"
            )
        if not (chances >= 0.0).all():
            raise CounselError(
                f"the random cell {where} has probability {chances[~(chances >= 0.0)][0]:.10g}; "
                "a probability must be 0 or more"
            )
        if not abs(chances.sum() - 1.0) <= ROW_TOLERANCE:
            raise CounselError(
                f"the random cell {where} has probabilities that sum to {chances.sum():.10g}; "
                "they must sum to 1"
            )


def _check_sizes(policy: Policy | HardPolicy, here: tuple[int, int, int]) -> None:
    there = (*policy.advice.shape[-2:], policy.n_actions)
    if here != there:
        raise CounselError(
            f"the policy is for {there[0]} steps, {there[1]} states and {there[2]} actions; "
            f"the problem has {here[0]}, {here[1]} and {here[2]}"
        )


def _read_actions(given: int) -> int:
    actions = whole("n_actions", given, least=1)
    if actions > MOST_ACTIONS:
        raise CounselError(
            f"n_actions is {actions}; advice is stored for at most {MOST_ACTIONS:,} actions"
        )
    return actions


def _read_advice(given: ArrayLike, n_actions: int, axes: str) -> Advice:
    """Return a table of advice as two-byte integers."""
    table = rectangular("advice", given)
    if table.ndim != len(axes) or 0 in table.shape or table.dtype.kind not in "iu":
        wanted = "[" + ", ".join(axes) + "]"
        raise CounselError(
            f"advice is {table.dtype} of shape {table.shape}; expected whole numbers {wanted}"
        )
    where = first((table < 0) | (table > n_actions))
    if where is not None:
        raise CounselError(
            f"advice{place(axes, where)} is {table[where]}; "
            f"advice runs from 0 to {n_actions - 1}, and {n_actions} is silence"
        )
    return sealed(table.astype(np.int16, copy=False))
