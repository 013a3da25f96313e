"""``solve``: the best advice without a limit, at a penalty, or within a budget."""

from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from counsel._arrays import (
    Floats,
    brief,
    first,
    not_negative,
    numbers,
    place,
    rectangular,
    sealed,
    whole,
)
from counsel.errors import CounselError
from counsel.model.mixture import Mixture
from counsel.model.policy import Policy
from counsel.model.problem import AdviceProblem
from counsel.planning.budget import (
    Point,
    blend,
    bracket,
    check_enough,
    covers,
    ends,
)
from counsel.planning.constraints import Constraints, documented
from counsel.planning.evaluate import evaluate, forward
from counsel.planning.hard_budget import solve_hard
from counsel.planning.plan import Plan, PlanOutcome, PlanTable, plan_of
from counsel.planning.planners import AnyPlanner, planner_for
from counsel.planning.reverse_advice import reverse_cells

LOST_DIGITS = 1e3
"""If the charge for advice exceeds the value by this factor, the value is computed by itself."""


@documented
def solve(  # noqa: PLR0913 (penalty or budget, the masks, and threads)
    problem: AdviceProblem,
    *,
    penalty: ArrayLike | None = None,
    budget: float | None = None,
    hard: bool = False,
    forbidden: ArrayLike | None = None,
    required: ArrayLike | None = None,
    allow_reverse: bool = True,
    threads: int | None = None,
) -> Plan:
    """Return the best plan: advice or silence at each step in each state.

    Parameters
    ----------
    penalty
        The penalty for each piece of advice, in units of reward; or one for each step [h]. A piece
        that costs c is charged c times the penalty.
    budget
        Pieces of advice per episode, on average (over the start distribution too). A piece that
        costs c counts c times. In work without end, expected discounted pieces: one t steps from
        now counts γ^t; or, where the average per step counts, pieces per step.
    hard
        Whether no episode may exceed the budget; budget and costs are then whole numbers.
    threads
        The number of threads for a large problem, by default all cores. The plan does not depend
        on it.

    Returns
    -------
    Plan
        The value, the advice count, the price of a piece, the policy, and where it uses reverse
        advice.

    Raises
    ------
    CounselError
        If a mask, penalty or budget is invalid, or the required advice exceeds the budget.

    Examples
    --------
    One piece of advice per episode, on average and then as a limit that no episode exceeds:

    >>> import counsel
    >>> problem = counsel.make("night-shift")
    >>> counsel.solve(problem, budget=1)
    Plan(value 11.2669, advice count 1, price 0.2629)
    >>> counsel.solve(problem, budget=1, hard=True)
    Plan(value 11.1329, advice count 1, price 0.1909)

    Without a limit almost every step is advised, for little more value:

    >>> counsel.solve(problem)
    Plan(value 11.4606, advice count 11.19, price 0)
    """
    for name, value in (("hard", hard), ("allow_reverse", allow_reverse)):
        if not isinstance(value, bool | np.bool_):
            raise CounselError(f"{name} is {brief(value)}; give True or False")
    if penalty is not None and budget is not None:
        raise CounselError("give a penalty or a budget, not both: a budget sets its own price")
    if hard and budget is None:
        raise CounselError("a hard limit needs a budget: the largest number of pieces per episode")
    if threads is not None:
        threads = whole("threads", threads, least=1)
    constraints = Constraints.read(
        problem, forbidden=forbidden, required=required, allow_reverse=allow_reverse
    )
    if hard and problem.discount is not None:
        raise CounselError(
            f"a hard budget needs a horizon, but the world has no end "
            f"({problem.mdp.kind_of_work}); give the budget without hard, for advice on average"
        )
    if hard:
        return solve_hard(problem, constraints, budget)
    if budget is None:
        penalty = 0.0 if penalty is None else penalty
        return solve_penalty(problem, constraints, penalty, threads=threads)
    amount = not_negative("budget", budget)
    search = planner_for(problem, constraints, threads=threads, search=True)
    left, right = ends(search)
    check_enough(amount, left.cost)
    if not covers(amount, right.cost):
        left, right = bracket(search, left, right, amount)
    del search
    return solve_budget(planner_for(problem, constraints, threads=threads), left, right, amount)


def solve_penalty(
    problem: AdviceProblem,
    constraints: Constraints,
    penalty: ArrayLike,
    *,
    threads: int | None = None,
) -> Plan:
    """Return the best plan at a penalty; where few cells can occur, only these are planned."""
    if problem.discount is not None and np.ndim(penalty) > 0:
        raise CounselError(
            f"penalty has shape {np.shape(penalty)}, but the world has no horizon; give one number"
        )
    penalty_h = read_penalty(penalty, problem.n_steps)
    planner = planner_for(problem, constraints, threads=threads, search=True)
    aim, price_nh = planner.prepared.free, np.array([penalty_h])  # writable: kernels compile once
    [(net, _)] = planner.run(aim, price_nh, with_second=False)

    def outcome() -> PlanOutcome:
        cost = 0.0 - planner.evaluate(0.0, 1.0)
        value = net + float(penalty_h[0]) * cost
        if penalty_h.size > 1 or abs(value) * LOST_DIGITS < float(penalty_h[0]) * cost:
            value = planner.evaluate(1.0, 0.0)
        count = cost
        if not planner.prepared.unit_cost:
            count = evaluate(problem, plan.policy).advice_count
        return PlanOutcome(value, count, cost)

    def table() -> PlanTable:
        every = planner
        if planner.part.cells is not None:
            every = planner_for(problem, constraints, threads=threads)
            every.run(aim, price_nh, with_second=False)
        policy = every.policy()
        return _table(every, policy, Mixture((policy,), (1.0,)))

    one = float(penalty_h[0])
    charged = one if penalty_h.size == 1 else penalty_h
    plan = Plan(net, charged, one, constraints, outcome, table, planner.error)
    return plan


def read_penalty(penalty: ArrayLike, horizon: int) -> Floats:
    """Return one penalty, or one per step; raise unless they are finite and not negative."""
    table = rectangular("penalty", penalty)
    if table.ndim == 0:
        return np.array([not_negative("penalty", penalty)])
    if table.dtype == np.bool_:
        raise CounselError("penalty must be numbers, not bool")
    penalty_h = numbers("penalty", table)
    if penalty_h.shape != (horizon,):
        raise CounselError(
            f"penalty has shape {penalty_h.shape}; give a number, or one for each of the {horizon} "
            "steps"
        )
    where = first(~((penalty_h >= 0.0) & (penalty_h < np.inf)))
    if where is not None:
        raise CounselError(
            f"penalty{place('h', where)} is {penalty_h[where]:g}; it must be a finite number of at "
            "least 0"
        )
    return sealed(penalty_h)


def solve_budget(planner: AnyPlanner, left: Point, right: Point, budget: float) -> Plan:
    """Return the best plan within a budget between two neighbouring vertices.

    The price is the reward per additional piece: at a vertex, the slope to its right. A budget that
    equals the cost of a vertex to rounding is that of the vertex.
    """
    if covers(budget, right.cost):
        left = right
    price, share, policy, mixture, error = blend(planner, left, right, budget)
    value = (1.0 - share) * left.value + share * right.value
    cost = (1.0 - share) * left.cost + share * right.cost
    planner.penalise(price)
    error += planner.error
    if planner.problem.average:  # other advice outside of a closed class might make another
        outcome = forward(planner.problem, planner.prepared.whole.model, policy)
        error += max(value - outcome.value, 0.0)
    else:
        policy = _best_elsewhere(planner, policy)
    count = cost
    if not planner.prepared.unit_cost:
        count = evaluate(planner.problem, policy).advice_count
    table, brings = _table(planner, policy, mixture), PlanOutcome(value, count, cost)
    return plan_of(value, 0.0, price, planner.constraints, brings, table, error)


def _best_elsewhere(planner: AnyPlanner, policy: Policy) -> Policy:
    """Advise what is best at the planner's last price in cells that the policy never visits."""
    outcome = forward(planner.problem, planner.prepared.whole.model, policy)
    is_visited_phs = outcome.level_occupancy.swapaxes(0, 1) > 0.0
    advice = np.where(is_visited_phs.reshape(policy.advice.shape), policy.advice, planner.advice)
    return Policy.trusted(
        advice, n_actions=policy.n_actions, random=policy.random, levels=policy.levels
    )


def _table(planner: AnyPlanner, policy: Policy, mixture: Mixture) -> PlanTable:
    """Return a policy with the values of the planner's last plan."""
    return PlanTable(
        policy, mixture, lambda: planner.values, partial(reverse_cells, planner.problem, policy)
    )
