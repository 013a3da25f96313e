"""A hard budget: never more than D pieces of advice in an episode.

The number k of pieces left becomes part of the state. With d_k the value of deferring with k left,

    V_k(h, s) = max( d_k,  max_b  d_{k−1} + lift(b) · (Q_{k−1}(b) − d_{k−1}) )

so the plan advises iff the gain, lift · (Q_{k−1}(b) − d_{k−1}), exceeds d_k − d_{k−1}, the price of
a piece in that cell. Required advice must be affordable on every path: a cell that requires advice
is infeasible without a piece left, and so is every choice that may lead there. A piece that costs
c leads from k to k − c; costs are then whole numbers of at least 1.
"""

import numpy as np

from counsel._arrays import sealed, whole
from counsel.errors import CounselError
from counsel.model.mixture import Mixture
from counsel.model.policy import Advice, Policy
from counsel.model.problem import AdviceProblem
from counsel.planning._hard_budget_kernels import plan_back_hard
from counsel.planning.constraints import Constraints
from counsel.planning.evaluate import evaluate
from counsel.planning.plan import Plan, PlanOutcome, PlanTable, plan_of, reverse_cells
from counsel.planning.prepared_problem import prepare

MOST_BYTES = 2**35
"""A plan that takes more memory is refused."""


def solve_hard(problem: AdviceProblem, constraints: Constraints, budget: object) -> Plan:
    """Return the best plan that never spends more than ``budget`` pieces.

    Its policy has at most as many pieces as there are steps.
    """
    if isinstance(budget, float | np.floating) and float(budget).is_integer():
        budget = int(budget)
    pieces = whole("a hard budget", budget, least=0)
    most_cost = problem.whole_costs()
    prepared = prepare(problem, constraints)
    model = prepared.whole.model
    H, S = problem.horizon, problem.n_states
    K = min(pieces, H * most_cost) + 1
    size = 8.0 * K * S * (2 * H + 5)
    if size > MOST_BYTES:
        raise CounselError(
            f"a hard budget of {pieces} takes a plan of {K} × {H} × {S} cells, "
            f"{size / 2**30:.0f} GB; give a smaller budget, or costs in larger units"
        )
    rows = int(np.diff(model.first_row_l).max())
    values_khs = np.empty((K, H + 1, S))
    both_ks2 = np.empty((2, K, S, 2))
    advice_khs: Advice = np.empty((K, H, S), dtype=np.int16)
    aim = prepared.free
    plan_back_hard(
        model, aim, np.zeros((min(most_cost, K) + 1, rows, 2)), values_khs, both_ks2, advice_khs
    )
    starts = np.nonzero(problem.mdp.start)[0]
    from_start_k2 = problem.mdp.start[starts] @ both_ks2[0, :, starts].swapaxes(0, 1)
    value, second = (float(number) for number in from_start_k2[-1])
    if value == -np.inf:
        raise CounselError(
            f"budget is {pieces} but an episode may require more than that; "
            "raise the budget or require less"
        )
    with_one_less = float(from_start_k2[-2, 0]) if K > 1 else -np.inf
    policy = Policy.trusted(advice_khs, n_actions=problem.n_actions)
    price = value - with_one_less if pieces < K else 0.0
    table = PlanTable(
        policy,
        Mixture((policy,), (1.0,)),
        sealed(values_khs),
        reverse_cells(problem, model, advice_khs, values_khs),
    )
    count = cost = 0.0 - second
    if not prepared.unit_cost:
        count = evaluate(problem, policy).advice_count
    outcome = PlanOutcome(value, count, cost)
    return plan_of(value, 0.0, price, constraints, outcome, table)
