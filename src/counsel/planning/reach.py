"""Leave out what cannot occur.

Where the state says how far the episode has come, as on a map crossed from left to right, only a
few states can occur at each step: 116 of 2,820 cells on the Flappy Bird map. Whoever needs values
from the start only, as the search along the frontier does, plans those. The cells that can occur
are numbered anew at each step, which gives a smaller problem of the same form: all its layers
differ, the same loops plan it, and the numbers they produce in each cell are the same to the last
bit.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from counsel._arrays import Floats, sealed
from counsel.planning._backward_kernels import Model
from counsel.planning._reach_kernels import count_rows, reach_forward, renumber_rows

_T = TypeVar("_T", bound=np.generic)

MOST_SHARE = 0.5
"""Share of cells that can occur above which nothing is left out."""

SMALL = 100_000
"""Numbers up to which the smaller problem may take more room than the world itself."""


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The cells that can occur: of step h the states ``states[begin[h]:begin[h + 1]]``, in turn."""

    begin: NDArray[np.int64]
    states: NDArray[np.int64]

    @property
    def width(self) -> int:
        """The most states that can occur at one step."""
        return int(np.diff(self.begin).max())

    @property
    def step(self) -> NDArray[np.int64]:
        """The step of each cell."""
        return np.repeat(np.arange(self.begin.size - 1), np.diff(self.begin))

    @property
    def number(self) -> NDArray[np.int64]:
        """The number of each cell within its step."""
        return np.arange(self.begin[-1]) - self.begin[self.step]

    def take(self, table: NDArray[_T], *, free: object = 0) -> NDArray[_T]:
        """Return [h, number, …] of a table [layer, s, …]; ``free`` in places that stay free."""
        shape = (self.begin.size - 1, self.width, *table.shape[2:])
        out = np.full(shape, free, dtype=table.dtype)
        out[self.step, self.number] = table[self.step if len(table) > 1 else 0, self.states]
        return out


@dataclass(frozen=True, slots=True, eq=False)
class Reach:
    """A smaller model, its start, and the cells behind its numbers."""

    model: Model
    start: Floats
    cells: Cells


def within_reach(model: Model, start_s: Floats, horizon: int) -> Reach | None:
    """Return the problem of the cells that can occur, or None where that is most of them."""
    S, A = model.policy_lsa.shape[1:]
    begin = np.empty(horizon + 1, dtype=np.int64)
    states = np.empty(int(MOST_SHARE * horizon * S), dtype=np.int64)
    moves = (model.row_lsa, model.policy_lsa, model.speak_lsa)
    if not reach_forward(*moves, model.indptr, model.next_state, start_s, begin, states):
        return None
    states = states[: begin[-1]].copy()
    rows, entries = count_rows(*moves, model.indptr, begin, states)
    cells = Cells(begin, states)
    width = cells.width
    if entries + horizon * width * A > max(model.probability.size + S * A, SMALL):
        return None
    row_hsa = np.empty((horizon, width, A), dtype=np.int32)
    first_row = np.empty(horizon + 1, dtype=np.int64)
    indptr = np.empty(rows + 1, dtype=np.int64)
    next_state = np.empty(entries, dtype=np.int32)
    probability = np.empty(entries)
    old = (model.indptr, model.next_state, model.probability)
    new = (row_hsa, first_row, indptr, next_state)
    renumber_rows(*moves, *old, begin, states, *new, probability)

    def take(table: NDArray[_T]) -> NDArray[_T]:
        return sealed(cells.take(table))

    small = Model(
        row_lsa=sealed(row_hsa),
        first_row_l=sealed(first_row),
        indptr=sealed(indptr),
        next_state=sealed(next_state),
        probability=sealed(probability),
        shared_l=sealed(np.broadcast_to(model.shared_l, horizon).copy()),
        reward_lsa=take(model.reward_lsa),
        policy_lsa=take(model.policy_lsa),
        lift_lsa=take(model.lift_lsa),
        pull_lsa=take(model.pull_lsa),
        speak_lsa=take(model.speak_lsa),
        must_ls=take(model.must_ls),
    )
    start = np.zeros(width)
    start[: begin[1]] = start_s[states[: begin[1]]]
    return Reach(model=small, start=sealed(start), cells=cells)
