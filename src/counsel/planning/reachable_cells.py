"""The cells that can occur, and the smaller problem of these cells alone.

Where the state says how far the episode has come, as on a map crossed from left to right, only a
few states can occur at each step: 116 of 2,820 cells on the Flappy Bird map. Callers that need only
values from the start, such as the search along the frontier, plan only these. The cells that can
occur are renumbered at each step, which gives a smaller problem of the same form with one layer per
step. The same loops plan it, and their results in each cell are the same to the last bit.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from counsel._arrays import Floats, one_type, sealed
from counsel.model.kernel import NO_ROW, row_entries
from counsel.model.mdp import MDP
from counsel.model.problem import AdviceProblem
from counsel.planning._backward_kernels import Model
from counsel.planning._cell_kernels import CellWorld
from counsel.planning._reachable_kernels import list_cells, renumber_rows

_T = TypeVar("_T", bound=np.generic)

MOST_SHARE = 0.5
"""Above this share of reachable cells all cells are planned."""

SMALL = 100_000
"""The smaller problem may take more memory than the world up to this many numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The cells that can occur: at step h the states ``states[begin[h]:begin[h + 1]]``, sorted."""

    begin: NDArray[np.int64]
    states: NDArray[np.int64]

    @property
    def width(self) -> int:
        """The largest number of states that can occur at one step."""
        return int(np.diff(self.begin).max())

    @property
    def step(self) -> NDArray[np.int64]:
        """The step of each cell."""
        return np.repeat(np.arange(self.begin.size - 1), np.diff(self.begin))

    @property
    def number(self) -> NDArray[np.int64]:
        """The number of each cell within its step."""
        return np.arange(self.begin[-1]) - self.begin[self.step]

    def take(self, table: NDArray[_T], *, fill: int = 0) -> NDArray[_T]:
        """Return [h, number, …] of a table [layer, s, …]; ``fill`` where a step has fewer cells."""
        shape = (self.begin.size - 1, self.width, *table.shape[2:])
        out = np.full(shape, fill, dtype=table.dtype)
        out[self.step, self.number] = table[self.step if len(table) > 1 else 0, self.states]
        return out


def reachable_problem(
    model: Model, start_s: Floats, horizon: int
) -> tuple[Model, Floats, Cells] | None:
    """Return the model, start and cells of the reachable problem; None if most cells can occur."""
    S, A = model.policy_lsa.shape[1:]
    begin = np.empty(horizon + 1, dtype=np.int64)
    states = np.empty(int(MOST_SHARE * horizon * S), dtype=np.int64)
    taken = (model.policy_lsa > 0.0) | model.permitted_lsa
    row_lsa = np.where(taken, model.row_lsa, np.int32(NO_ROW))
    rows, entries = list_cells(model, row_lsa, start_s, begin, states)
    if rows < 0:
        return None
    cells = Cells(begin, states[: begin[-1]].copy())
    width = cells.width
    if entries + horizon * width * A > max(model.probability.size + S * A, SMALL):
        return None
    by_state = model.cost_lsa.shape[1] > 1
    small = Model(
        row_lsa=np.empty((horizon, width, A), dtype=np.int32),
        first_row_l=np.empty(horizon + 1, dtype=np.int64),
        indptr=np.empty(rows + 1, dtype=np.int64),
        next_state=np.empty(entries, dtype=np.int32),
        probability=np.empty(entries),
        reward_lsa=cells.take(model.reward_lsa),
        policy_lsa=cells.take(model.policy_lsa),
        lift_lsa=cells.take(model.lift_lsa),
        pull_lsa=cells.take(model.pull_lsa),
        permitted_lsa=cells.take(model.permitted_lsa),
        required_ls=cells.take(model.required_ls),
        cost_lsa=cells.take(model.cost_lsa) if by_state else model.cost_lsa.copy(),
        same_ls=cells.take(model.same_ls, fill=-1),
    )
    renumber_rows(model, row_lsa, begin, cells.states, small)
    start = np.zeros(width)
    start[: begin[1]] = start_s[cells.states[: begin[1]]]
    return one_type(small), sealed(start), cells


def all_cells(mdp: MDP) -> Cells | None:
    """Return all cells of a world; None if their successors would take too much memory."""
    H, (L, S, A) = mdp.horizon, mdp.kernel.row.shape
    entries = np.append(np.diff(mdp.kernel.indptr), 0)[mdp.kernel.row].sum() * (H // L)
    if entries + H * S * A > SMALL:
        return None
    return Cells(np.arange(H + 1) * S, np.tile(np.arange(S), H))


def cell_world(problem: AdviceProblem, cells: Cells) -> CellWorld:
    """Return the world and the person's own policy over ``cells``, numbered through all steps."""
    mdp, policy_hsa = problem.mdp, problem.policy
    H, S, A = policy_hsa.shape
    C, step, state = int(cells.begin[-1]), cells.step, cells.states
    number_hs = np.full((H + 1, S), C, dtype=np.int32)
    number_hs[step, state] = np.arange(C)
    kernel = mdp.kernel
    row = kernel.row[step if kernel.n_layers > 1 else 0, state].reshape(-1)
    first, entry = row_entries(kernel.indptr, row)
    origin = np.repeat(np.repeat(np.arange(C), A), np.diff(first))
    successor = number_hs[step[origin] + 1, kernel.next_state[entry]]
    moves = np.unique(successor.astype(np.int64) * C + origin)
    start = np.zeros(C)
    start[: cells.begin[1]] = mdp.start[state[: cells.begin[1]]]
    return CellWorld(
        own_ca=np.ascontiguousarray(policy_hsa[step, state]),
        allowed_ca=np.ascontiguousarray(mdp.allowed[step, state]),
        reward_ca=np.ascontiguousarray(mdp.reward[step, state]),
        cost_ca=np.ascontiguousarray(problem.cost[step, state]),
        first=first,
        cell=successor,
        probability=kernel.probability[entry],
        first_before=np.searchsorted(moves, np.arange(C + 1) * C),
        before=moves % C,
        start=start,
    )
