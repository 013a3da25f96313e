"""The answer of ``solve``: a policy of advice and what it is worth."""

from dataclasses import dataclass

import numpy as np

from counsel._arrays import Floats, Ints, sealed
from counsel.model.human import advantages
from counsel.model.mixture import Mixture
from counsel.model.policy import Policy
from counsel.model.problem import AdviceProblem
from counsel.planning._backward_kernels import Model, action_values
from counsel.planning.advice_rules import Rules


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Plan:
    """The best advice: the answer of ``solve``.

    Attributes
    ----------
    value
        Expected reward of an episode, without any penalty.
    advice_count
        Expected pieces of advice in an episode.
    penalty
        What was to be paid for each piece; 0 unless a penalty was asked for.
    price
        What one piece costs: the penalty; the value of a little more of an expected budget (its
        dual price); or, under a hard budget, what the last piece adds from the start (∞ when
        there is none).
    policy
        One policy that attains all this; Markov unless the budget is hard.
    mixture
        The same as a draw between at most two policies that are not random.
    values
        Value to the end at ``price`` [h, s], or [pieces left, h, s] under a hard budget; the steps
        run to H, where it is 0.
    reverse
        Cells where the advice is meant to repel: rows of (step, state), or of (pieces left, step,
        state) under a hard budget.
    rules
        What ``solve`` made of ``forbidden``, ``required`` and ``allow_reverse``.

    Examples
    --------
    What is left when each piece of advice costs 0.3, and at how many steps of each state the
    plan speaks:

    >>> import counsel
    >>> from counsel.worlds import make
    >>> problem = make("night-shift")
    >>> plan = counsel.solve(problem, penalty=0.3)
    >>> print(f"{plan.value:.3f} - 0.3 × {plan.advice_count:.3f} = {plan.penalised_value:.3f}")
    11.096 - 0.3 × 0.385 = 10.980
    >>> said = plan.policy.advice != plan.policy.defer
    >>> {problem.mdp.state_name(s): int(said[:, s].sum()) for s in range(4)}
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
    rules: Rules

    @property
    def penalised_value(self) -> float:
        """Expected reward less what is paid for advice."""
        return self.value - self.penalty * self.advice_count

    @property
    def hard(self) -> bool:
        """Whether the plan counts the pieces it has left."""
        return self.policy.budget is not None

    @property
    def value_planes(self) -> Floats:
        """The values as [k, h, s]: one plane for each plane of the policy."""
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
    """List the cells [n, (k, h, s)] where advice repels from an action worse than silence."""
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
