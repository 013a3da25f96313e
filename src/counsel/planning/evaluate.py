"""The exact value of a policy of advice, by a forward pass over the states.

With x_h(s) the probability of being in s at step h and P the adherence law,

    value = Σ_h Σ_s x_h(s) Σ_a P_h(a | s, advice) r_h(s, a),    advice count = Σ_h P(advised at h)
    x_{h+1}(t) = Σ_s x_h(s) Σ_a P_h(a | s, advice) p_h(t | s, a)

Under a hard budget the budget left is part of the state, and so is the level of a memory.

In work without end the probabilities of each state are summed over all steps, a step t from now
with weight γ^t: these discounted visits solve linear equations (``stationary_policy.py``). Where
the average per step counts they are the shares of time in each state (``recurrence.py``).
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
from counsel.planning.level_planner import check_evaluation_size
from counsel.planning.prepared_problem import levels_of, model_of
from counsel.planning.recurrence import Cycles, only_class, part_of
from counsel.planning.stationary_policy import StationaryPolicy, stationary_policy

ROUNDING = 1e-14
"""The share of the largest value that sums of visits may lose to rounding."""


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
    error
        For work without end: a bound on the error of the value. With a horizon 0: exact to
        rounding.

    In work without end all numbers are expected discounted sums over all steps, the step axes have
    length 1, and the occupancy contains discounted visits, 1 / (1 − γ) in total. Where the average
    per step counts, all numbers are averages per step, and the occupancy contains shares of time.

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
    error: float = 0.0

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
        If the policy is not for this problem, advises an action that is not allowed, or the
        person's memory has so many levels that the evaluation would not fit in memory.

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
    if problem.discount is not None:
        return _for_ever(problem, model, policy)
    advice_phs, random, levels = policy.planes, policy.random, levels_of(problem)
    M, (H, S) = problem.n_levels, advice_phs.shape[1:]
    K = 1 if policy.budget is None else policy.budget + 1
    check_evaluation_size(problem, K)
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


def _for_ever(problem: AdviceProblem, model: Model, policy: Policy) -> Evaluation:
    """Evaluate a stationary policy of work without end."""
    levels, S, A = levels_of(problem), problem.n_states, problem.n_actions
    if policy.budget is not None:
        raise CounselError(
            f"the policy has a hard budget of {policy.budget}, but the problem has no end; give a "
            "policy without a hard budget"
        )
    chosen = stationary_policy(model, levels, policy)
    start_x = np.zeros(problem.n_levels * S)
    first = problem.level_of(None) * S
    start_x[first : first + S] = problem.mdp.start
    visits_x, error = _visits(problem, chosen, start_x)
    chance_psb = policy.probabilities()[..., 0, :, :A].reshape(-1, S, A)
    visits_ms = visits_x.reshape(-1, S)
    pieces_sa = (visits_ms[:, :, None] * chance_psb).sum(axis=0)
    sums = [np.array([visits_x @ each]) for each in (chosen.reward, chosen.pieces, chosen.cost)]
    reward, rate, cost = (sealed(total) for total in sums)
    return Evaluation(
        value=float(reward[0]),
        advice_count=float(rate[0]),
        advice_cost=float(cost[0]),
        reward=reward,
        advice_rate=rate,
        cost=cost,
        level_occupancy=sealed(visits_ms[None]),
        pieces=sealed(pieces_sa),
        error=error,
    )


def _visits(
    problem: AdviceProblem, chosen: StationaryPolicy, start_x: Floats
) -> tuple[Floats, float]:
    """Return discounted visits, or shares of time, and a bound on the error of the value."""
    equations, size = chosen.equations, problem.mdp.reward_size
    if not problem.average:
        visits_x = equations.transposed.solve(start_x)
        left = np.abs(equations.transposed.residual(start_x, visits_x)).sum()
        visits_x = np.where((visits_x > 0.0) & equations.reached(start_x), visits_x, 0.0)
        return visits_x, size / (1.0 - equations.largest_sum) * (float(left) + ROUNDING)
    cells = only_class(problem, chosen, start_x)
    within = part_of(chosen, cells)
    cycles = Cycles(within.equations, np.arange(cells.size))
    visits_x = np.zeros(start_x.size)
    visits_x[cells] = cycles.visits()
    value = float(visits_x @ chosen.reward)
    _, bias = cycles.gain_and_bias(within.reward)
    change = within.equations.residual(within.reward, bias)  # the gain lies between its ends
    apart = max(float(change.max()) - value, value - float(change.min()), 0.0)
    return visits_x, apart + ROUNDING * (size + float(np.abs(bias).max()))


def _average(parts: list[Evaluation], weights: tuple[float, ...]) -> Evaluation:
    def mean(name: str) -> Any:  # noqa: ANN401 (a number or an array)
        total = sum(w * getattr(part, name) for part, w in zip(parts, weights, strict=True))
        return sealed(total) if isinstance(total, np.ndarray) else float(total)

    return Evaluation(**{field.name: mean(field.name) for field in fields(Evaluation)})
