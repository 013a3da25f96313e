"""What a stationary policy brings in work without end, as linear equations.

With P the transitions between cells (a state, on a level of the person's memory) under the policy,

    value    V = r + γ P V            visits    x = start + γ Pᵀ x

so the value from the start is Σ x r, and the expected discounted cost of advice is Σ x c.
"""

from dataclasses import dataclass

import numpy as np

from counsel._arrays import Floats, Ints, one_type
from counsel.model.policy import Policy
from counsel.model.random_cells import NO_RANDOM_CELLS, RandomCells
from counsel.planning._backward_kernels import Model
from counsel.planning._level_kernels import Levels
from counsel.planning._stationary_kernels import count_entries, write_equations
from counsel.planning.linear_equations import Equations


@dataclass(frozen=True, eq=False)
class StationaryPolicy:
    """The equations of a policy, and the reward, cost and pieces of advice of each cell [m · s]."""

    equations: Equations
    reward: Floats
    cost: Floats
    pieces: Floats

    def earned(self, weight: float, price: float) -> Floats:
        """Return weight · reward − price · cost of each cell."""
        return weight * self.reward - price * self.cost

    def values(
        self,
        weight: float,
        price: float,
        *,
        guess: Floats | None = None,
        tolerance: float = 0.0,
    ) -> Floats:
        """Return weight · reward − price · cost from each cell on, for ever."""
        return self.equations.solve(self.earned(weight, price), guess=guess, tolerance=tolerance)


def stationary(  # noqa: PLR0913 (a model, and the parts of a policy)
    model: Model,
    levels: Levels,
    advice_ps: Ints,
    *,
    plane_m: Ints | None = None,
    random: RandomCells = NO_RANDOM_CELLS,
    threads: int = 1,
) -> StationaryPolicy:
    """Return the equations of advice [plane, s]; ``plane_m`` is the plane of each level."""
    M, S = levels.after_cm.shape[1], model.policy_lsa.shape[1]
    plane_m = np.arange(M) if plane_m is None else plane_m
    said = one_type((plane_m, advice_ps))
    cells = one_type((random.cell, random.indptr, random.advice, random.probability))
    begin_x = np.empty(M * S + 1, dtype=np.int64)
    count_entries(model, levels, begin_x)
    column, weight = np.empty(begin_x[-1], dtype=np.int32), np.empty(begin_x[-1])
    entries = (column, weight, np.empty(M * S, dtype=np.int64))
    terms = (np.zeros(M * S), np.zeros(M * S), np.zeros(M * S))
    write_equations(model, levels, *said, cells, begin_x, entries, terms)
    size = begin_x[-1]  # next cells that several actions lead to are entered once
    equations = Equations(begin_x, column[:size], weight[:size], threads)
    return StationaryPolicy(equations, *terms)


def stationary_policy(model: Model, levels: Levels, policy: Policy) -> StationaryPolicy:
    """Return the equations of a policy of one step."""
    M = levels.after_cm.shape[1]
    plane_m = np.arange(M) if policy.levels else np.zeros(M, dtype=np.int64)
    return stationary(model, levels, policy.planes[:, 0], plane_m=plane_m, random=policy.random)
