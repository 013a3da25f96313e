"""A budget of pieces per step, kept by one policy that is random in one cell.

As in ``discounted_budget.py``, switching the cells in which two policies of one price differ, one
by one, passes the budget at some cell, where the policy is random. The pieces per step are there a
fraction of two linear functions of the probability q of switching,

    N(q) = (N(0) + b q) / (1 + d q)

because visits follow from equations of which one row changes with q. N at 0, 1/2 and 1 gives b and
d.

Where some policy on the way has several closed classes, e.g. one of people who are left alone and
one of people who are always advised, the best is to draw one of the two policies at the start. A
single policy comes as near as wanted: it follows either policy for very long and seldom changes to
the other, which costs little because it is seldom. Its cells are all random.
"""

from collections.abc import Callable

import numpy as np

from counsel._arrays import Floats, Ints
from counsel.errors import CounselError
from counsel.model.policy import Policy
from counsel.model.random_cells import Advice, RandomCells
from counsel.planning.average import AveragePlanner
from counsel.planning.evaluate import Evaluation, forward

HALVINGS = 60
"""The most steps of the search for a probability."""

SPENT = 1e-12
"""The search ends within this share of the budget."""

LOST = 1e-10
"""What a policy with one random cell may lose by rounding, as a share of the largest reward."""

SELDOM = 1e-6
"""The probability per step of changing from one policy to the other, if that must be seldom."""


def one_random_state_per_step(
    planner: AveragePlanner, low: Policy, high: Policy, budget: float, value: float
) -> Policy:
    """Combine two policies that are best at one price into one that spends ``budget`` per step.

    ``value`` is what a draw between the two at the start earns per step.
    """
    low_x, high_x = low.advice.reshape(-1), high.advice.reshape(-1)
    cells = np.flatnonzero(low_x != high_x)
    try:
        policy = _in_one_cell(planner, low, high_x, cells, budget)
        if _is_as_good(planner, policy, budget, value):
            return policy
    except CounselError:  # a policy on the way has several closed classes
        pass
    in_low, in_high = (
        _outcome(planner, policy).level_occupancy.reshape(-1)[cells] > 0.0 for policy in (low, high)
    )

    def seldom(q: float) -> Policy:
        switch_n = np.full(cells.size, q)
        switch_n[in_low & ~in_high] = SELDOM * q
        switch_n[in_high & ~in_low] = 1.0 - SELDOM * (1.0 - q)
        return _mixed(low, low_x, high_x, cells, switch_n)

    return _search(planner, seldom, budget)


def _in_one_cell(
    planner: AveragePlanner, low: Policy, high_x: Advice, cells: Ints, budget: float
) -> Policy:
    """Switch the cells one by one until the budget is spent, the last with a probability."""
    low_x = low.advice.reshape(-1)

    def switched(count: int) -> Advice:
        advice_x: Advice = low_x.copy()
        advice_x[cells[:count]] = high_x[cells[:count]]
        return advice_x

    few, many = 0, cells.size  # the cost is at most the budget at ``few``, at least at ``many``
    while many - few > 1:
        middle = (few + many) // 2
        policy = _mixed(low, switched(middle), high_x, cells[:0], np.zeros(0))
        if _outcome(planner, policy).advice_cost <= budget:
            few = middle
        else:
            many = middle
    base, cell = switched(few), cells[few : few + 1]
    return _search(planner, lambda q: _mixed(low, base, high_x, cell, np.array([q])), budget)


def _mixed(like: Policy, base_x: Advice, high_x: Advice, cells: Ints, switch_n: Floats) -> Policy:
    """Return advice that is ``high_x`` in cells [n] with probabilities [n], else ``base_x``."""
    advice_x, random = base_x.copy(), None
    switched = cells[switch_n >= 0.5]
    advice_x[switched] = high_x[switched]
    is_random = (switch_n > 0.0) & (switch_n < 1.0)
    cells, switch_n = cells[is_random], switch_n[is_random]
    if cells.size:
        pair_nj = np.stack((base_x[cells], high_x[cells]), axis=1)
        order_nj = np.argsort(pair_nj, axis=1)
        chance_nj = np.stack((1.0 - switch_n, switch_n), axis=1)
        chance_nj = np.take_along_axis(chance_nj, order_nj, axis=1)
        said = np.take_along_axis(pair_nj, order_nj, axis=1).reshape(-1).astype(np.int16)
        indptr = 2 * np.arange(cells.size + 1)
        random = RandomCells(cells.astype(np.int64), indptr, said, chance_nj.reshape(-1))
    advice = advice_x.reshape(like.advice.shape)
    return Policy(advice, n_actions=like.n_actions, levels=like.levels, random=random)


def _search(planner: AveragePlanner, policy_at: Callable[[float], Policy], budget: float) -> Policy:
    """Return the policy at the probability with which it spends the budget, and not more."""

    def spent(q: float) -> float:
        return _outcome(planner, policy_at(q)).advice_cost

    none, half, full = spent(0.0), spent(0.5), spent(1.0)
    left, right, q = 0.0, 1.0, 0.5
    if half != full:
        d = (none + full - 2.0 * half) / (half - full)
        b = full * (1.0 + d) - none
        q = (budget - none) / (b - budget * d) if b != budget * d else 0.5
    low, high, best, least = none - budget, full - budget, 0.0, none - budget
    for _ in range(HALVINGS):  # false position, halving the value of an end that stays (Illinois)
        if not left <= q <= right:
            q = 0.5 * (left + right)
        more = spent(q) - budget
        if least < more <= SPENT * max(budget, SPENT):
            best, least = q, more
        if abs(more) <= SPENT * max(budget, SPENT):
            break
        if (more < 0.0) == (low < 0.0):
            left, low, high = q, more, 0.5 * high
        else:
            right, high, low = q, more, 0.5 * low
        q = right - high * (right - left) / (high - low)
    return policy_at(best)


def _is_as_good(planner: AveragePlanner, policy: Policy, budget: float, value: float) -> bool:
    outcome, size = _outcome(planner, policy), planner.prepared.reward_size
    is_spent = abs(outcome.advice_cost - budget) <= LOST * max(budget, 1.0)
    return is_spent and outcome.value >= value - LOST * size


def _outcome(planner: AveragePlanner, policy: Policy) -> Evaluation:
    return forward(planner.problem, planner.prepared.whole.model, policy)
