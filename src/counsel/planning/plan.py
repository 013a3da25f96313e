"""The result of ``solve``: a policy of advice, its value and its price."""

from dataclasses import dataclass

import numpy as np

from counsel._arrays import Floats, Ints, sealed
from counsel.model.human import advantages
from counsel.model.mixture import Mixture
from counsel.model.policy import Policy
from counsel.model.problem import AdviceProblem
from counsel.planning._backward_kernels import Model, action_values
from counsel.planning.constraints import Constraints


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Plan:
    """The best advice: the result of ``solve``.

    Attributes
    ----------
    value
        Expected reward per episode, without any penalty.
    advice_count
        Expected pieces of advice per episode.
    penalty
        The penalty per piece; 0 if ``solve`` was called without a penalty.
    price
        The price of a piece: the penalty; the dual price of an expected budget; or, under a hard
        budget, the value that the last piece adds at the start (∞ if the budget is 0).
    policy
        A single policy with this value and count; Markov unless the budget is hard.
    mixture
        The same as a mixture of at most two policies without random cells.
    values
        Value to the end at ``price`` [h, s], or [pieces left, h, s] under a hard budget, with a
        last step H of zeros.
    reverse
        Cells with reverse advice: rows of (step, state), or of (pieces left, step, state) under a
        hard budget.
    constraints
        The checked ``forbidden``, ``required`` and ``allow_reverse``.

    Examples
    --------
    The value after a penalty of 0.3 per piece, and the number of steps with advice in each state:

    >>> import counsel
    >>> problem = counsel.make("night-shift")
    >>> plan = counsel.solve(problem, penalty=0.3)
    >>> print(f"{plan.value:.3f} - 0.3 × {plan.advice_count:.3f} = {plan.penalised_value:.3f}")
    11.096 - 0.3 × 0.385 = 10.980
    >>> advises = plan.policy.advice != plan.policy.defer
    >>> {problem.mdp.state_name(s): int(advises[:, s].sum()) for s in range(4)}
    {'stable': 0, 'drifting': 0, 'failing': 6, 'crisis': 0}
    """

    value: float
    advice_count: float
    penalty: float
    price: float
    policy: Policy
    mixture: Mixture
    values: Floats
    reverse: Ints
    constraints: Constraints

    @property
    def penalised_value(self) -> float:
        """Expected reward minus the penalty for all advice."""
        return self.value - self.penalty * self.advice_count

    @property
    def hard(self) -> bool:
        """Whether the budget is hard."""
        return self.policy.budget is not None

    @property
    def value_planes(self) -> Floats:
        """The values as [k, h, s], one plane for each plane of the policy."""
        return self.values.reshape(-1, *self.values.shape[-2:])

    def __repr__(self) -> str:
        return (
            f"Plan(value {self.value:.6g}, advice count {self.advice_count:.4g}, "
            f"price {self.price:.4g})"
        )


_NO_CELLS = sealed(np.zeros((0, 3), dtype=np.int64))


def reverse_cells(
    problem: AdviceProblem, model: Model, advice_khs: Ints, values_khs: Floats
) -> Ints:
    """List the cells [n, (k, h, s)] that advise an action worse than silence because it repels."""
    if not problem.human.repels:
        return _NO_CELLS
    A, cells = problem.n_actions, []
    for h in range(problem.horizon):
        for k in range(len(advice_khs)):
            advice_s = advice_khs[k, h].astype(np.int64)
            states = np.nonzero(advice_s < A)[0]
            lift_s = problem.lift[h, states, advice_s[states]]
            states = states[lift_s < 0.0]
            if not states.size:
                continue
            q_na = np.empty((states.size, A))
            action_values(model, h, values_khs[max(k - 1, 0), h + 1], states, q_na)
            advantage_na = advantages(problem.policy[h, states], q_na)
            worse = advantage_na[np.arange(states.size), advice_s[states]] < 0.0
            cells += [(k, h, int(s)) for s in states[worse]]
    return sealed(np.array(cells, dtype=np.int64).reshape(-1, 3))
