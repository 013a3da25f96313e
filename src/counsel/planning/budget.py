"""An expected budget: at most D pieces of advice per episode, on average.

The expected reward R and the expected pieces N of all policies form a convex set; its upper edge is
the frontier. At a penalty β the best plan maximises R − βN, so it is a vertex of that edge. From
the plan with the least advice and the plan with the most reward, ``bracket`` plans at the slope
between the two vertices nearest to D: the result is a new vertex between them, or the two are
neighbours. The slope is then the dual price of the budget, and the optimum mixes the two vertices
so that N = D (READING: the paper's claim that one deterministic policy suffices holds only up to
this mixing).

**One random cell.** A Markov policy that is random in at most one cell has the same reward and
count. Let π¹ and π² be the two policies, and use π² instead of π¹ in some of the cells that both
may visit. Such a policy only visits cells that π¹ or π² visits, and its advice there is optimal at
the common price, so it lies on the edge. Switching the cells one by one, last step first, takes N
from N¹ ≤ D to N² ≥ D, so N passes D at some cell. There N is linear in the probability of
switching, because an episode visits a cell at most once.
"""

from typing import NamedTuple

import numpy as np

from counsel._arrays import Floats, sealed
from counsel.errors import CounselError
from counsel.model.policy import Advice, Policy, RandomCells
from counsel.planning._backward_kernels import catch_up, most_rows
from counsel.planning.backward import Planner
from counsel.planning.evaluate import forward

PIECES = (0.0, -1.0)
"""Weights of reward and cost that make an evaluation count the cost of advice."""

SAME_VALUE = 1e-12
"""A plan lies above the line between two vertices only by more than this share of their size."""


SAME_COST = 1e-12
"""Costs that differ by less than this share are the same.

A cost sums numbers that are not negative, so each operation along a path adds at most 2⁻⁵³ of it to
its error: the share covers 9,000 operations in a row, e.g. 100 steps with 90 next states each.
"""


class Point(NamedTuple):
    """A vertex of the frontier and the penalties ``low`` to ``high`` at which it is known optimal.

    Planning at the penalty ``at`` gives its policy (∞: advise as little as possible).
    """

    value: float
    cost: float
    at: float
    low: float
    high: float


def ends(planner: Planner) -> tuple[Point, Point]:
    """Return the vertex with the least advice and the vertex with the most reward."""
    left = Point(*planner.advise_least(), np.inf, np.inf, np.inf)
    right = Point(*planner.penalise(0.0)[0], 0.0, 0.0, 0.0)
    if right.cost <= left.cost or not earns_more(right, left):
        both = left._replace(low=0.0)
        return both, both
    return left, right


def earns_more(vertex: Point, other: Point) -> bool:
    """Return whether a vertex earns more than another by more than rounding."""
    return vertex.value > other.value + SAME_VALUE * (abs(vertex.value) + abs(other.value))


def slope(left: Point, right: Point) -> float:
    """Return the reward of one more piece between two vertices, never below 0."""
    return max((right.value - left.value) / (right.cost - left.cost), 0.0)


def between(left: Point, right: Point, price: float, plan: tuple[float, float]) -> Point | None:
    """Return the plan at the slope between two vertices if it is a new vertex above their line."""
    value, cost = plan
    line = left.value - price * left.cost
    size = abs(left.value) + abs(right.value) + price * right.cost
    if value - price * cost <= line + SAME_VALUE * size or not left.cost < cost < right.cost:
        return None
    return Point(value, cost, price, price, price)


def bracket(planner: Planner, left: Point, right: Point, budget: float) -> tuple[Point, Point]:
    """Return the neighbouring vertices with left.cost ≤ budget < right.cost, to rounding."""
    while True:
        price = slope(left, right)
        new = between(left, right, price, planner.penalise(price)[0])
        if new is None:
            return left, right
        if covers(budget, new.cost):
            left = new
        else:
            right = new


def covers(budget: float, cost: float) -> bool:
    """Return whether a budget is at least a cost, to rounding."""
    return budget >= cost - SAME_COST * cost


def check_enough(budget: float, least: float) -> None:
    """Raise if the required advice exceeds the budget."""
    if budget < least - SAME_VALUE * max(1.0, least):
        raise CounselError(
            f"budget is {budget:g} but the required advice takes {least:.6g} pieces on average; "
            "raise the budget or require less"
        )


def advice_at(planner: Planner, point: Point) -> Advice:
    """Return the advice [h, s] of a vertex."""
    if point.at == np.inf:
        planner.advise_least()
    else:
        planner.penalise(point.at)
    return sealed(planner.advice.copy())


def one_random_cell(planner: Planner, low: Policy, high: Policy, budget: float) -> Policy:
    """Combine two neighbouring policies into one that spends ``budget``, with one random cell."""
    problem, model = planner.problem, planner.prepared.whole.model
    (H, S), low_hs = low.advice.shape, low.advice
    low_outcome, high_outcome = (forward(problem, model, policy) for policy in (low, high))
    x_hs = low_outcome.occupancy
    switched_hs = sealed(np.where(high_outcome.occupancy > 0.0, high.advice, low_hs))
    spent_before = np.concatenate(([0.0], np.cumsum(low_outcome.cost)))
    E_r, spend_js, keep_js = np.empty(most_rows(model)), np.zeros((2, S)), np.zeros((2, S))
    for h in reversed(range(H)):
        catch_up(model, PIECES, (h + 1, h), switched_hs, E_r, spend_js)
        if h == 0 or spent_before[h] + x_hs[h] @ spend_js[h % 2] >= budget:
            break
    keep_js[(h + 1) % 2] = spend_js[(h + 1) % 2]
    catch_up(model, PIECES, (h + 1, h), low_hs, E_r, keep_js)
    spend_s, keep_s = spend_js[h % 2], keep_js[h % 2]
    extra_s = x_hs[h] * (spend_s - keep_s)
    need = budget - spent_before[h] - float(x_hs[h] @ keep_s)
    advice_hs = np.concatenate((low_hs[:h], switched_hs[h:]))
    random = _switch_until_spent(advice_hs, low_hs, h, extra_s, need)
    return Policy(advice_hs, n_actions=problem.n_actions, random=random)


def _switch_until_spent(
    advice_hs: Advice, low_hs: Advice, h: int, extra_s: Floats, need: float
) -> RandomCells | None:
    """Switch the states of one step until ``need`` more pieces are spent, the last in part.

    Changes ``advice_hs`` back to ``low_hs`` in the states that are not switched.
    """
    extra_up_to = np.cumsum(extra_s)
    states = np.nonzero(extra_up_to >= need)[0]
    if not states.size:  # all states together fall short only by rounding
        return None
    s = int(states[0])
    before = float(extra_up_to[s] - extra_s[s])
    share = (need - before) / float(extra_s[s]) if extra_s[s] != 0.0 else 0.0
    share = min(max(share, 0.0), 1.0)
    advice_hs[h, s + 1 :] = low_hs[h, s + 1 :]
    pair = (int(low_hs[h, s]), int(advice_hs[h, s]))
    advice_hs[h, s] = pair[int(share >= 0.5)]
    if share in (0.0, 1.0) or pair[0] == pair[1]:
        return None
    order = np.argsort(pair)
    return RandomCells(
        np.array([h * advice_hs.shape[1] + s]),
        np.array([0, 2]),
        np.array(pair, dtype=np.int16)[order],
        np.array([1.0 - share, share])[order],
    )
