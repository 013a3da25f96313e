"""The random cells of a policy: where it draws its advice."""

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counsel._arrays import ROW_TOLERANCE, Floats, brief, place, sealed
from counsel.errors import CounselError

Advice = NDArray[np.int16]
"""Two bytes hold ``MOST_ACTIONS`` actions and silence."""


@dataclass(frozen=True, slots=True, eq=False)
class RandomCells:
    """The random cells of a policy, in order of ``cell`` = (plane · H + step) · S + state.

    Entries ``indptr[i]`` up to ``indptr[i + 1]`` of ``advice`` and ``probability`` belong to cell
    ``cell[i]``.
    """

    cell: NDArray[np.int64]
    indptr: NDArray[np.int64]
    advice: Advice
    probability: Floats

    def __post_init__(self) -> None:
        types = {"cell": "int64", "indptr": "int64", "advice": "int16", "probability": "float64"}
        for name, dtype in types.items():
            array = np.asarray(getattr(self, name))
            kinds = "f" if name == "probability" else "iu"
            if array.ndim != 1 or not (array.dtype.kind in kinds or array.size == 0):
                raise CounselError(f"{name} of the random cells is {brief(array)}; give numbers")
            copy = array.astype(dtype)
            if not np.array_equal(copy, array, equal_nan=True):
                raise CounselError(f"{name} of the random cells is {brief(array)}, out of range")
            object.__setattr__(self, name, sealed(copy))

    @property
    def cell_of_entry(self) -> NDArray[np.int64]:
        """The cell of each entry of ``advice`` and ``probability``."""
        return np.repeat(self.cell, np.diff(self.indptr))

    def __reduce__(self) -> tuple[Any, ...]:
        return RandomCells, (self.cell, self.indptr, self.advice, self.probability)


NO_RANDOM_CELLS = RandomCells(
    np.zeros(0, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int16), np.zeros(0)
)


def check_random_cells(
    random: RandomCells, shape: tuple[int, ...], n_actions: int, axes: str
) -> None:
    """Raise unless the random cells are in order, in range, and distributions."""
    cell, indptr, advice = random.cell, random.indptr, random.advice
    consistent = (
        indptr.size == cell.size + 1
        and indptr[0] == 0
        and bool((np.diff(indptr) > 0).all() and (np.diff(cell) > 0).all())
        and advice.size == random.probability.size == indptr[-1]
        and bool(((cell >= 0) & (cell < prod(shape))).all())
        and bool(((advice >= 0) & (advice <= n_actions)).all())
    )
    if not consistent:
        raise CounselError(
            "the random cells of the policy do not fit together; list cells in order, each with "
            f"entries indptr[i] up to indptr[i + 1] and advice from 0 to {n_actions}"
        )
    if cell.size == 0:
        return
    owner = np.repeat(np.arange(cell.size), np.diff(indptr))  # the cell of each entry
    entry, times = np.unique(owner * (n_actions + 1) + advice, return_counts=True)
    total = np.add.reduceat(random.probability, indptr[:-1])
    is_bad = ~(np.abs(total - 1.0) <= ROW_TOLERANCE)
    is_bad[owner[~(random.probability >= 0.0)]] = True
    is_bad[entry[times > 1] // (n_actions + 1)] = True
    if is_bad.any():
        i = int(is_bad.argmax())
        part = slice(indptr[i], indptr[i + 1])
        negative = random.probability[part][~(random.probability[part] >= 0.0)]
        if len(set(advice[part].tolist())) < advice[part].size:
            fault = "lists an advice twice; add up its probabilities"
        elif negative.size:
            fault = f"has probability {negative[0]:.10g}; a probability must be 0 or more"
        else:
            fault = f"has probabilities that sum to {total[i]:.10g}; they must sum to 1"
        where = place(axes, np.unravel_index(cell[i], shape))
        raise CounselError(f"the random cell {where} {fault}")
