"""A hard budget: never more than D pieces of advice in an episode.

The number k of pieces left becomes part of the state. With d_k the value of deferring with k left,

    V_k(h, s) = max( d_k,  max_b  d_{k−1} + lift(b) · (Q_{k−1}(b) − d_{k−1}) )

so the plan advises iff the gain, lift · (Q_{k−1}(b) − d_{k−1}), exceeds d_k − d_{k−1}, the price of
a piece in that cell. Required advice must be affordable on every path: a cell that requires advice
is infeasible without a piece left, and so is every choice that may lead there. A piece that costs
c leads from k to k − c; costs are then whole numbers of at least 1.

The pieces left are a memory of the machine. They are planned as that of a person is, by
``LevelPlanner``, and together with it.
"""

from functools import partial

import numpy as np

from counsel._arrays import whole
from counsel.errors import CounselError
from counsel.model.mixture import Mixture
from counsel.model.problem import AdviceProblem
from counsel.planning.constraints import Constraints
from counsel.planning.evaluate import evaluate
from counsel.planning.level_planner import LevelPlanner, check_size
from counsel.planning.plan import Plan, PlanOutcome, PlanTable, plan_of
from counsel.planning.prepared_problem import prepare
from counsel.planning.reverse_advice import reverse_cells


def solve_hard(problem: AdviceProblem, constraints: Constraints, budget: object) -> Plan:
    """Return the best plan that never spends more than ``budget`` pieces.

    Its policy has at most as many pieces as there are steps.
    """
    if isinstance(budget, float | np.floating) and float(budget).is_integer():
        budget = int(budget)
    pieces = whole("a hard budget", budget, least=0)
    most_cost = 1 if prepare(problem, constraints).unit_cost else problem.whole_costs()
    most = min(pieces, problem.horizon * most_cost)
    check_size(problem, pieces, most + 1)
    planner = LevelPlanner(problem, constraints, budget=most)
    [(value, second)] = planner.run(planner.prepared.free, np.zeros((1, 1)))
    if value == -np.inf:
        raise CounselError(
            f"budget is {pieces} but an episode may require more than that; "
            "raise the budget or require less"
        )
    price = 0.0
    if pieces == most:
        price = value - (planner.start_values()[most - 1][0] if most else -np.inf)
    policy = planner.policy()
    table = PlanTable(
        policy,
        Mixture((policy,), (1.0,)),
        lambda: planner.values,
        partial(reverse_cells, problem, policy),
    )
    count = cost = 0.0 - second
    if not planner.prepared.unit_cost:
        count = evaluate(problem, policy).advice_count
    outcome = PlanOutcome(value, count, cost)
    return plan_of(value, 0.0, price, constraints, outcome, table)
