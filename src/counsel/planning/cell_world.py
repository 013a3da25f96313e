"""A world over the cells that can occur, numbered through all steps (see ``_cell_kernels.py``)."""

import numpy as np

from counsel._arrays import Floats
from counsel.model.mdp import MDP
from counsel.planning._cell_kernels import CellWorld
from counsel.planning.reach import Cells


def cell_world(mdp: MDP, policy_hsa: Floats, cells: Cells) -> CellWorld:
    """Return the world and the person's own policy over ``cells``."""
    H, S, A = policy_hsa.shape
    C, step, state = int(cells.begin[-1]), cells.step, cells.states
    number_hs = np.full((H + 1, S), C, dtype=np.int32)
    number_hs[step, state] = np.arange(C)
    kernel = mdp.kernel
    row = kernel.row[step if kernel.n_layers > 1 else 0, state].reshape(-1)
    lengths = np.append(np.diff(kernel.indptr), 0)[row]
    first = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
    begin = np.append(kernel.indptr[:-1], 0)[row]
    entry = np.repeat(begin - first[:-1], lengths) + np.arange(first[-1])
    then = np.repeat(np.repeat(step + 1, A), lengths)
    start = np.zeros(C)
    start[: cells.begin[1]] = mdp.start[state[: cells.begin[1]]]
    return CellWorld(
        own_ca=np.ascontiguousarray(policy_hsa[step, state]),
        open_ca=np.ascontiguousarray(mdp.allowed[step, state]),
        reward_ca=np.ascontiguousarray(mdp.reward[step, state]),
        first=first,
        cell=number_hs[then, kernel.next_state[entry]],
        probability=kernel.probability[entry],
        start=start,
    )
