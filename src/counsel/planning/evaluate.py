"""The exact value of a policy of advice, by a forward pass over the states.

With x_h(s) the probability of being in s at step h and P the adherence law,

    value = Σ_h Σ_s x_h(s) Σ_a P_h(a | s, advice) r_h(s, a),    advice count = Σ_h P(advised at h)
    x_{h+1}(t) = Σ_s x_h(s) Σ_a P_h(a | s, advice) p_h(t | s, a)

Under a hard budget the budget left is part of the state, and so is the level of a memory.
"""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from counsel._arrays import Floats, sealed
from counsel.errors import CounselError
from counsel.model.mixture import Mixture
from counsel.model.policy import Policy
from counsel.model.problem import AdviceProblem
from counsel.planning._backward_kernels import Model
from counsel.planning._forward_kernels import walk_forward
from counsel.planning.prepared_problem import levels_of, model_of


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Evaluation:
    """The value and the advice count of a policy: the result of ``evaluate``.

    Attributes
    ----------
    value, reward
        Expected reward per episode, without any penalty, and of each step [h].
    advice_count, advice_rate
        Expected pieces of advice per episode, and the probability of advice at each step [h].
    advice_cost, cost
        Expected cost of advice per episode, and of each step [h]; if every piece costs 1, the same
        as the two above.
    level_occupancy
        Probability of each level of the person's memory and state at each step [h, m, s]; without a
        memory there is one level.
    pieces
        Expected pieces of each advice in each state [s, a], summed over the steps.

    Examples
    --------
    The state of the patient at the last step, and the expected pieces of each advice in each state,
    without a penalty:

    >>> import counsel
    >>> problem = counsel.make("night-shift")
    >>> outcome = counsel.evaluate(problem, counsel.solve(problem).policy)
    >>> dict(zip(problem.mdp.state_labels, outcome.occupancy[-1].round(3).tolist()))
    {'stable': 0.767, 'drifting': 0.19, 'failing': 0.032, 'crisis': 0.011}
    >>> outcome.pieces.round(2).tolist()
    [[8.88, 0.0, 0.0], [0.19, 1.83, 0.0], [0.03, 0.0, 0.24], [0.01, 0.0, 0.01]]
    """

    value: float
    advice_count: float
    advice_cost: float
    reward: Floats
    advice_rate: Floats
    cost: Floats
    level_occupancy: Floats
    pieces: Floats

    @property
    def occupancy(self) -> Floats:
        """Probability of each state at each step [h, s]."""
        if self.level_occupancy.shape[1] == 1:
            return self.level_occupancy[:, 0]
        return sealed(self.level_occupancy.sum(axis=1))

    def __repr__(self) -> str:
        return f"Evaluation(value {self.value:.6g}, {self.advice_count:.4g} pieces of advice)"


def evaluate(problem: AdviceProblem, policy: Policy | Mixture) -> Evaluation:
    """Return the exact value and advice count of a policy.

    Parameters
    ----------
    problem
        The world and the person.
    policy
        A ``Policy`` or a ``Mixture``, e.g. ``plan.policy``.

    Returns
    -------
    Evaluation
        Value and advice count, in total and per step [h], and the occupancy of states [h, s].

    Raises
    ------
    CounselError
        If the policy is not for this problem, or advises an action that is not allowed.

    Examples
    --------
    Always advising the best action earns no more than the best plan, with far more advice:

    >>> import counsel
    >>> problem = counsel.make("flappy-bird-budget/greedy")
    >>> counsel.evaluate(problem, counsel.baselines.always_best_action(problem))
    Evaluation(value 2.6, 7.337 pieces of advice)
    >>> counsel.evaluate(problem, counsel.solve(problem).policy)
    Evaluation(value 2.6, 2 pieces of advice)
    """
    if not isinstance(policy, Policy | Mixture):
        raise CounselError(f"expected a Policy or a Mixture, not {type(policy).__name__}")
    return forward(problem, model_of(problem), policy)


def forward(problem: AdviceProblem, model: Model, policy: Policy | Mixture) -> Evaluation:
    """Evaluate a policy on the arrays of ``model_of``."""
    if isinstance(policy, Mixture):
        parts = [forward(problem, model, part) for part in policy.policies]
        return _average(parts, policy.weights)
    problem.check_fits(policy)
    advice_phs, random, levels = policy.planes, policy.random, levels_of(problem)
    M, (H, S) = problem.n_levels, advice_phs.shape[1:]
    K = 1 if policy.budget is None else policy.budget + 1
    levels = levels._replace(is_hard=K > 1)
    plane_p = np.arange(K * M) if policy.levels else np.arange(K).repeat(M)
    x_jps = np.zeros((2, K * M, S))
    x_jps[0, (K - 1) * M + problem.level_of(None)] = problem.mdp.start
    occupancy_hms, (reward_h, rate_h, cost_h) = np.zeros((H, M, S)), np.zeros((3, H))
    pieces_sa = np.zeros((S, problem.n_actions))
    mass_er = np.zeros((K * (levels.indptr.size - 1), int(np.diff(model.first_row_l).max())))
    random_cells = (random.cell, random.indptr, random.advice, random.probability)
    results = (occupancy_hms, reward_h, rate_h, cost_h, pieces_sa)
    walk_forward(model, levels, plane_p, advice_phs, random_cells, x_jps, mass_er, results)
    return Evaluation(
        value=float(reward_h.sum()),
        advice_count=float(rate_h.sum()),
        advice_cost=float(cost_h.sum()),
        reward=sealed(reward_h),
        advice_rate=sealed(rate_h),
        cost=sealed(cost_h),
        level_occupancy=sealed(occupancy_hms),
        pieces=sealed(pieces_sa),
    )


def _average(parts: list[Evaluation], weights: tuple[float, ...]) -> Evaluation:
    def mean(name: str) -> Any:  # noqa: ANN401 (a number or an array)
        total = sum(w * getattr(part, name) for part, w in zip(parts, weights, strict=True))
        return sealed(total) if isinstance(total, np.ndarray) else float(total)

    return Evaluation(**{field.name: mean(field.name) for field in fields(Evaluation)})
