"""Where a plan uses reverse advice: advice that repels towards a better action."""

import numpy as np

from counsel._arrays import Ints, sealed
from counsel.model.advantage import advantages
from counsel.model.policy import Policy
from counsel.model.problem import AdviceProblem
from counsel.planning._backward_kernels import list_repelled
from counsel.planning.gains import spoken_values


def reverse_cells(problem: AdviceProblem, policy: Policy, values: np.ndarray) -> Ints:
    """List the cells that advise an action worse than the person's own choice because it repels.

    ``values`` have the axes of the policy, and one more step. Rows are (pieces left, level, step,
    state), without the axes that the policy does not have.
    """
    axes = policy.advice.ndim
    if not problem.human.repels:
        return sealed(np.zeros((0, axes), dtype=np.int64))
    planes, M = policy.planes, problem.n_levels if policy.levels else 1
    values_kmhs = values.reshape(-1, M, *values.shape[-2:])
    cells, repelled = [], np.empty(problem.n_states, dtype=np.int64)
    for h in range(problem.n_steps):
        for plane in range(len(planes)):
            k, m = divmod(plane, M)
            lift_sa = problem.level_lift[m, h]
            states = repelled[: list_repelled(planes[plane, h], lift_sa, repelled)].copy()
            if not states.size:
                continue
            advice_n = planes[plane, h, states]
            after_n = np.zeros(states.size, dtype=np.int64)
            if policy.budget is not None:
                spent = problem.cost[h, states, advice_n].astype(np.int64)
                after_n = np.maximum(k - spent, 0)
            advantage_n = np.empty(states.size)
            for left in np.unique(after_n):
                here = np.nonzero(after_n == left)[0]
                said = states[here], advice_n[here]
                q_na = spoken_values(problem, h, values_kmhs[left, :, h + 1], m, *said)
                advantage_na = advantages(problem.policy[h, states[here]], q_na)
                advantage_n[here] = advantage_na[np.arange(here.size), advice_n[here]]
            cells += [(k, m, h, int(s)) for s in states[advantage_n < 0.0]]
    found = np.array(cells, dtype=np.int64).reshape(-1, 4)
    has_axis = (policy.budget is not None, policy.levels is not None, True, True)
    return sealed(found[:, np.flatnonzero(has_axis)])
