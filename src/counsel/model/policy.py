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
    Floats,
    check_distributions,
    first,
    numbers,
    place,
    rectangular,
    sealed,
    whole,
)
from counsel.errors import CounselError

Advice = NDArray[np.int16]
"""Advice is stored in two bytes: at most 32,766 actions."""


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


NO_RANDOM_CELLS = RandomCells(
    sealed(np.zeros(0, np.int64)),
    sealed(np.zeros(1, np.int64)),
    sealed(np.zeros(0, np.int16)),
    sealed(np.zeros(0)),
)


@dataclass(frozen=True, slots=True, eq=False, init=False, repr=False)
class Policy:
    """Advice [h, s] for ``n_actions`` actions, random in the cells of ``random`` only.

    In a random cell ``advice`` is the likeliest.
    """

    n_actions: int
    advice: Advice
    random: RandomCells

    def __init__(
        self, advice: ArrayLike, *, n_actions: int, random: RandomCells | None = None
    ) -> None:
        table = _read_advice(advice, n_actions, "hs")
        if random is not None:
            _check_random(random, table.size, n_actions)
        fields: dict[str, Any] = {
            "n_actions": n_actions,
            "advice": table,
            "random": NO_RANDOM_CELLS if random is None else random,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @classmethod
    def trusted(cls, advice: Advice, *, n_actions: int) -> "Policy":
        """Wrap advice a planner has just made: nobody else holds it and nothing is checked."""
        policy = object.__new__(cls)
        for name, value in (
            ("n_actions", n_actions),
            ("advice", sealed(advice)),
            ("random", NO_RANDOM_CELLS),
        ):
            object.__setattr__(policy, name, value)
        return policy

    @classmethod
    def never(cls, *, horizon: int, n_states: int, n_actions: int) -> "Policy":
        """Return the policy that never says anything."""
        return cls(np.full((horizon, n_states), n_actions), n_actions=n_actions)

    @classmethod
    def from_probabilities(cls, probability: ArrayLike) -> "Policy":
        """Build from distributions [h, s, advice] over the actions and, last, silence."""
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
            sealed(cells.astype(np.int64)),
            sealed(np.concatenate(([0], np.cumsum(np.bincount(row, minlength=cells.size))))),
            sealed(advice.astype(np.int16)),
            sealed(flat[cells][row, advice]),
        )
        return cls(table.argmax(axis=2), n_actions=table.shape[2] - 1, random=random)

    @property
    def defer(self) -> int:
        """The index that means silence."""
        return self.n_actions

    def probabilities(self) -> Floats:
        """Return the distribution over advice as [h, s, advice], silence last."""
        H, S = self.advice.shape
        table = np.zeros((H * S, self.n_actions + 1))
        table[np.arange(H * S), self.advice.reshape(-1)] = 1.0
        table[self.random.cell] = 0.0
        rows = np.repeat(self.random.cell, np.diff(self.random.indptr))
        table[rows, self.random.advice] = self.random.probability
        return table.reshape(H, S, -1)

    def at(self, step: int, state: int) -> dict[int, float]:
        """Return the advice of one cell and its probability; one entry unless it is random."""
        cell = step * self.advice.shape[1] + state
        i = int(np.searchsorted(self.random.cell, cell))
        if i == self.random.cell.size or self.random.cell[i] != cell:
            return {int(self.advice[step, state]): 1.0}
        part = slice(self.random.indptr[i], self.random.indptr[i + 1])
        pairs = zip(self.random.advice[part], self.random.probability[part], strict=True)
        return {int(advice): float(probability) for advice, probability in pairs}

    def __repr__(self) -> str:
        H, S = self.advice.shape
        said = float((self.advice != self.defer).mean())
        odd = self.random.cell.size
        return f"Policy({H} steps, {S} states, advises in {said:.0%} of cells, {odd} random)"


@dataclass(frozen=True, slots=True, eq=False, init=False, repr=False)
class HardPolicy:
    """Advice [pieces left, h, s]; with none left it is silent."""

    n_actions: int
    advice: Advice

    def __init__(self, advice: ArrayLike, *, n_actions: int) -> None:
        table = _read_advice(advice, n_actions, "khs")
        where = first(table[:1] != n_actions)
        if where is not None:
            raise CounselError(f"advice{place('khs', where)} speaks with no piece left")
        object.__setattr__(self, "n_actions", n_actions)
        object.__setattr__(self, "advice", table)

    @property
    def defer(self) -> int:
        """The index that means silence."""
        return self.n_actions

    @property
    def budget(self) -> int:
        """Pieces of advice an episode starts with."""
        return int(self.advice.shape[0]) - 1

    def at(self, step: int, state: int, pieces_left: int) -> int:
        """Return the advice of one cell."""
        return int(self.advice[pieces_left, step, state])

    def __repr__(self) -> str:
        _, H, S = self.advice.shape
        return f"HardPolicy({H} steps, {S} states, at most {self.budget} pieces)"


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """Policies, one of which is drawn with its weight for a whole episode."""

    policies: tuple[Policy | HardPolicy, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.policies) != len(self.weights) or not self.policies:
            raise CounselError(
                f"a mixture needs one weight per policy, not {len(self.weights)} weights "
                f"for {len(self.policies)} policies"
            )
        if min(self.weights) < 0.0 or not abs(fsum(self.weights) - 1.0) <= ROW_TOLERANCE:
            raise CounselError(f"weights {self.weights} are not a distribution over the policies")

    @classmethod
    def of(cls, policies: Sequence[Policy | HardPolicy], weights: Sequence[float]) -> "Mixture":
        """Build from sequences, leaving out what has no weight."""
        kept = [(p, float(w)) for p, w in zip(policies, weights, strict=True) if w > 0.0]
        return cls(tuple(p for p, _ in kept), tuple(w for _, w in kept))


def _check_random(random: RandomCells, cells: int, n_actions: int) -> None:
    """Raise unless random cells are in order, in range, and hold distributions."""
    cell, indptr = random.cell, random.indptr
    sound = (
        cell.ndim == indptr.ndim == random.advice.ndim == random.probability.ndim == 1
        and indptr.size == cell.size + 1
        and indptr[0] == 0
        and bool((np.diff(indptr) > 0).all() and (np.diff(cell) > 0).all())
        and random.advice.size == random.probability.size == indptr[-1]
        and bool(((cell >= 0) & (cell < cells)).all())
        and bool(((random.advice >= 0) & (random.advice <= n_actions)).all())
    )
    if not sound:
        raise CounselError("the random cells of the policy do not fit together")
    if cell.size:
        totals = np.add.reduceat(random.probability, indptr[:-1])
        off = first(~((np.abs(totals - 1.0) <= ROW_TOLERANCE) & (random.probability.min() >= 0.0)))
        if off is not None:
            raise CounselError(
                f"random cell {cell[off[0]]} has probabilities that sum to {totals[off[0]]:.10g}"
            )


def _read_advice(given: ArrayLike, n_actions: int, axes: str) -> Advice:
    """Return a table of advice as two-byte integers."""
    whole("n_actions", n_actions, least=1)
    if n_actions > 32_766:
        raise CounselError(f"n_actions is {n_actions}; advice is stored for at most 32,766 actions")
    if isinstance(given, np.ndarray) and given.dtype == np.int16 and not given.flags.writeable:
        table = given
    else:
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
