"""An expected budget in work without end, kept by one policy that is random in one cell.

The best policy within a budget D of expected discounted advice mixes two stationary policies that
are both best at one price (``budget.py``), one of which is drawn at the start. One stationary
policy that is random in a single cell has the same value and cost, so nobody has to remember which
policy was drawn. Let π¹ and π² be the two policies, with costs N¹ < D < N². Every policy that takes
the advice of π¹ in some of the cells that both visit, and that of π² in the others, is best at the
price as well. Switching the cells one by one leads from N¹ to N², so the cost passes D at some
cell x. There the cost grows continuously with the probability q of switching,

    N(q) = N(0) + q · v · Δ / (1 − q · u)

with v the discounted visits to x and Δ what switching once costs more, both at q = 0. The constant
u follows from N(1), and q from N(q) = D.
"""

import numpy as np

from counsel._arrays import Floats
from counsel.model.policy import Policy
from counsel.model.random_cells import Advice, RandomCells
from counsel.planning.discounted import DiscountedPlanner
from counsel.planning.evaluate import forward
from counsel.planning.stationary_policy import stationary


def one_random_state(
    planner: DiscountedPlanner, low: Policy, high: Policy, budget: float
) -> Policy:
    """Combine two policies that are best at one price into one that spends ``budget``."""
    problem, model = planner.problem, planner.prepared.whole.model
    visits = [forward(problem, model, policy).level_occupancy.reshape(-1) for policy in (low, high)]
    is_low, is_high = (visits_x > 0.0 for visits_x in visits)
    low_x, high_x = low.advice.reshape(-1), high.advice.reshape(-1)
    low_x, high_x = np.where(is_low, low_x, high_x), np.where(is_high, high_x, low_x)
    cells = np.flatnonzero(low_x != high_x)

    def switched(count: int) -> Advice:
        """Return the advice with the first ``count`` cells switched."""
        advice_x = low_x.copy()
        advice_x[cells[:count]] = high_x[cells[:count]]
        return advice_x.astype(np.int16)

    def policy_of(advice_x: Advice, random: RandomCells | None = None) -> Policy:
        table = advice_x.reshape(low.advice.shape)
        return Policy(table, n_actions=low.n_actions, levels=low.levels, random=random)

    def cost_of(advice_x: Advice) -> float:
        return forward(problem, model, policy_of(advice_x)).advice_cost

    few, many = 0, cells.size  # the cost is at most the budget at ``few``, at least at ``many``
    while many - few > 1:
        middle = (few + many) // 2
        if cost_of(switched(middle)) <= budget:
            few = middle
        else:
            many = middle
    advice_x = switched(few)
    if few == many:
        return policy_of(advice_x)
    x = int(cells[few])
    share = _share(planner, advice_x, x, int(high_x[x]), budget)
    pair = np.array([advice_x[x], high_x[x]], dtype=np.int16)
    advice_x[x] = pair[int(share >= 0.5)]
    if share in (0.0, 1.0):
        return policy_of(advice_x)
    order = np.argsort(pair)
    shares = np.array([1.0 - share, share])[order]
    return policy_of(advice_x, RandomCells(np.array([x]), np.array([0, 2]), pair[order], shares))


def _share(
    planner: DiscountedPlanner, advice_x: Advice, cell: int, other: int, budget: float
) -> float:
    """Return the probability of other advice in one cell at which the cost is the budget."""
    problem, prepared = planner.problem, planner.prepared
    model, levels, shape = prepared.whole.model, prepared.levels, (-1, problem.n_states)
    start_x = np.zeros(advice_x.size)
    first = problem.level_of(None) * problem.n_states
    start_x[first : first + problem.n_states] = problem.mdp.start
    changed_x = advice_x.copy()
    changed_x[cell] = other
    before, after = (stationary(model, levels, a.reshape(shape)) for a in (advice_x, changed_x))
    cost_x: Floats = before.equations.solve(before.cost)
    none, full = float(start_x @ cost_x), float(start_x @ after.equations.solve(after.cost))
    visits = before.equations.transposed.solve(start_x)[cell]
    extra = visits * (after.equations.multiply(cost_x) + after.cost - cost_x)[cell]
    if full == none or extra == 0.0:
        return 0.0
    u, need = 1.0 - extra / (full - none), budget - none
    return float(min(max(need / (extra + u * need), 0.0), 1.0))
