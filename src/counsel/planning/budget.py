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
from counsel.model.mixture import Mixture
from counsel.model.policy import Policy
from counsel.model.random_cells import Advice, RandomCells
from counsel.planning._level_kernels import catch_up_levels
from counsel.planning.average import AveragePlanner
from counsel.planning.average_budget import one_random_state_per_step
from counsel.planning.backward import Planner
from counsel.planning.discounted import DiscountedPlanner
from counsel.planning.discounted_budget import one_random_state
from counsel.planning.evaluate import forward
from counsel.planning.level_planner import LevelPlanner, space_of
from counsel.planning.planners import AnyPlanner

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


def ends(planner: AnyPlanner) -> tuple[Point, Point]:
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


def bracket(planner: AnyPlanner, left: Point, right: Point, budget: float) -> tuple[Point, Point]:
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


class Blend(NamedTuple):
    """The best plan within a budget, between two vertices.

    ``share`` is that of the right vertex, and ``price`` the reward per additional piece. ``error``
    is the mean of the errors of the plans at the two vertices.
    """

    price: float
    share: float
    policy: Policy
    mixture: Mixture
    error: float


def blend(planner: AnyPlanner, left: Point, right: Point, budget: float) -> Blend:
    """Return the best plan within a budget between two neighbouring vertices.

    A budget that equals the cost of a vertex to rounding is that of the vertex.
    """
    if covers(budget, right.cost):
        left = right
    low = policy_at(planner, left)
    error = planner.error
    if left is right or left.cost == right.cost:
        return Blend(0.0, 0.0, low, Mixture((low,), (1.0,)), error)
    is_vertex = covers(left.cost, budget)
    share = 0.0 if is_vertex else (budget - left.cost) / (right.cost - left.cost)
    high = policy_at(planner, right)
    error = (1.0 - share) * error + share * planner.error
    policy = low
    if share > 0.0 and isinstance(planner, AveragePlanner):
        value = (1.0 - share) * left.value + share * right.value
        policy = one_random_state_per_step(planner, low, high, budget, value)
    elif share > 0.0 and isinstance(planner, DiscountedPlanner):
        policy = one_random_state(planner, low, high, budget)
    elif share > 0.0 and not isinstance(planner, DiscountedPlanner):
        policy = one_random_cell(planner, low, high, budget)
    mixture = Mixture.of((low, high), (1.0 - share, share))
    return Blend(slope(left, right), share, policy, mixture, error)


def policy_at(planner: AnyPlanner, point: Point) -> Policy:
    """Return the policy of a vertex."""
    if point.at == np.inf:
        planner.advise_least()
    else:
        planner.penalise(point.at)
    return planner.policy()


def one_random_cell(
    planner: Planner | LevelPlanner, low: Policy, high: Policy, budget: float
) -> Policy:
    """Combine two neighbouring policies into one that spends ``budget``, with one random cell."""
    problem, model, levels = planner.problem, planner.prepared.whole.model, planner.prepared.levels
    low_phs, (P, H, S) = low.planes, low.planes.shape
    low_outcome, high_outcome = (forward(problem, model, policy) for policy in (low, high))
    x_hps = low_outcome.level_occupancy
    is_visited_phs = high_outcome.level_occupancy.swapaxes(0, 1) > 0.0
    switched_phs = sealed(np.where(is_visited_phs, high.planes, low_phs))
    spent_before = np.concatenate(([0.0], np.cumsum(low_outcome.cost)))
    space, spend_jps, keep_jps = space_of(model, levels, 1.0, 1), *np.zeros((2, 2, P, S))
    for h in reversed(range(H)):
        catch_up_levels(model, levels, PIECES, (h + 1, h), switched_phs, space, spend_jps)
        if h == 0 or spent_before[h] + (x_hps[h] * spend_jps[h % 2]).sum() >= budget:
            break
    keep_jps[(h + 1) % 2] = spend_jps[(h + 1) % 2]
    catch_up_levels(model, levels, PIECES, (h + 1, h), low_phs, space, keep_jps)
    spend_x, keep_x, x_x = (
        table.reshape(-1) for table in (spend_jps[h % 2], keep_jps[h % 2], x_hps[h])
    )
    need = budget - spent_before[h] - float(x_x @ keep_x)
    advice_phs = np.concatenate((low_phs[:, :h], switched_phs[:, h:]), axis=1)
    advice_x, low_x = advice_phs[:, h].reshape(-1), low_phs[:, h].reshape(-1)
    switch = _switch_until_spent(advice_x, low_x, x_x * (spend_x - keep_x), need)
    advice_phs[:, h] = advice_x.reshape(P, S)
    random = None
    if switch is not None:
        (plane, s), (pair, share) = divmod(switch[0], S), switch[1:]
        order = np.argsort(pair)
        random = RandomCells(
            np.array([(plane * H + h) * S + s]),
            np.array([0, 2]),
            np.array(pair, dtype=np.int16)[order],
            np.array([1.0 - share, share])[order],
        )
    advice = advice_phs.reshape(low.advice.shape)
    return Policy(advice, n_actions=problem.n_actions, random=random, levels=low.levels)


def _switch_until_spent(
    advice_x: Advice, low_x: Advice, extra_x: Floats, need: float
) -> tuple[int, tuple[int, int], float] | None:
    """Switch the cells of one step until ``need`` more pieces are spent, the last in part.

    Changes ``advice_x`` back to ``low_x`` in the cells that are not switched. Returns the cell that
    is switched in part, its two pieces of advice, and the probability of the second.
    """
    extra_up_to = np.cumsum(extra_x)
    cells = np.nonzero(extra_up_to >= need)[0]
    if not cells.size:  # all cells together fall short only by rounding
        return None
    x = int(cells[0])
    before = float(extra_up_to[x] - extra_x[x])
    share = (need - before) / float(extra_x[x]) if extra_x[x] != 0.0 else 0.0
    share = min(max(share, 0.0), 1.0)
    advice_x[x + 1 :] = low_x[x + 1 :]
    pair = (int(low_x[x]), int(advice_x[x]))
    advice_x[x] = pair[int(share >= 0.5)]
    if share in (0.0, 1.0) or pair[0] == pair[1]:
        return None
    return x, pair, share
