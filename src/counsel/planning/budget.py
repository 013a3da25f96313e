"""An expected budget: at most D pieces of advice an episode, on average.

The expected reward R and the expected pieces N of all policies form a convex set; its upper edge
is the frontier. At a penalty β the best plan maximises R − βN: a vertex of that edge. Starting from
the plan that says least and the plan that earns most, one solves at the slope between the two
vertices nearest to D: this finds a new vertex between them or proves that they are neighbours
(``bracket``). The slope is then the dual price of the budget, and the optimum draws between the two
vertices so that N = D (READING: the paper's claim that one deterministic policy suffices holds only
up to this mixing).

**One random cell.** The same reward and count are reached by a Markov policy that is random in at
most one cell. Let π¹ and π² be the two policies and follow, from some cell on, π² instead of π¹
where both can be. Every policy so mixed only reaches cells that π¹ or π² reaches, where it says
what is optimal at the common price; so all of them lie on the edge. Switching the cells one by one,
last step first, takes N from N¹ ≤ D to N² ≥ D: at some cell it passes D. There N is linear in the
probability of switching, since a cell is visited at most once in an episode.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from counsel._arrays import Bools, Floats, Ints, sealed
from counsel.errors import CounselError
from counsel.model.policy import Advice, Policy, RandomCells
from counsel.planning._backward_kernels import under_advice
from counsel.planning.backward import Planner
from counsel.planning.evaluate import forward

SAME_VALUE = 1e-12
"""A plan beats the line between two vertices only by more than this share of their size."""


@dataclass(frozen=True, slots=True)
class Point:
    """A vertex of the frontier and the penalties at which it is known to be best.

    ``at`` is the penalty that found it (∞: say as little as possible): planning there again gives
    the same policy.
    """

    value: float
    count: float
    at: float
    low: float
    high: float


def ends(planner: Planner) -> tuple[Point, Point]:
    """Return the vertex that says least and the vertex that earns most."""
    left = Point(*planner.least(), np.inf, np.inf, np.inf)
    right = Point(*planner.penalise(0.0), 0.0, 0.0, 0.0)
    if right.count <= left.count or not earns_more(right, left):
        both = replace(left, low=0.0)
        return both, both
    return left, right


def earns_more(vertex: Point, other: Point) -> bool:
    """Tell whether a vertex earns more than another by more than rounding."""
    return vertex.value > other.value + SAME_VALUE * (abs(vertex.value) + abs(other.value))


def slope(left: Point, right: Point) -> float:
    """Return the reward of one more piece between two vertices; rounding makes it no loss."""
    return max((right.value - left.value) / (right.count - left.count), 0.0)


def between(planner: Planner, left: Point, right: Point) -> Point | None:
    """Plan at the slope between two vertices: return a vertex above their line, or None."""
    price = slope(left, right)
    value, count = planner.penalise(price)
    line = left.value - price * left.count
    size = abs(left.value) + abs(right.value) + price * right.count
    if value - price * count <= line + SAME_VALUE * size or not left.count < count < right.count:
        return None
    return Point(value, count, price, price, price)


def bracket(planner: Planner, left: Point, right: Point, budget: float) -> tuple[Point, Point]:
    """Return the neighbouring vertices with left.count ≤ budget < right.count."""
    while (new := between(planner, left, right)) is not None:
        if new.count <= budget:
            left = new
        else:
            right = new
    return left, right


def check_enough(budget: float, least: float) -> None:
    """Raise when what must be said does not fit into the budget."""
    if budget < least - SAME_VALUE * max(1.0, least):
        raise CounselError(
            f"budget is {budget:g} but what must be said takes {least:.6g} pieces of advice "
            "on average; raise the budget or require less"
        )


def advice_at(planner: Planner, point: Point) -> Advice:
    """Return the advice [h, s] of a vertex."""
    if point.at == np.inf:
        planner.least()
    else:
        planner.penalise(point.at)
    return sealed(planner.advice.copy())


def one_random_cell(planner: Planner, low: Policy, high: Policy, budget: float) -> Policy:
    """Join two neighbouring policies into one that spends ``budget`` and is random in one cell."""
    problem, model, A = planner.problem, planner.model, planner.problem.n_actions
    H, S = low.advice.shape
    low_hs, high_hs = low.advice, high.advice
    with_low = forward(problem, model, low)
    reach_high: Bools = forward(problem, model, high).occupancy > 0.0
    x_hs = with_low.occupancy
    switched_hs = sealed(np.where(reach_high, high_hs, low_hs))
    spent_before = np.concatenate(([0.0], np.cumsum(with_low.advice_rate)))
    rows = int(np.diff(model.first_row_l).max())
    then_s2, now_s2, E_r2 = np.zeros((S, 2)), np.zeros((S, 2)), np.empty((rows, 2))
    kept_s2 = np.zeros((S, 2))
    for h in reversed(range(H)):
        under_advice(model, h, switched_hs[h], then_s2, E_r2, now_s2)
        if h == 0 or spent_before[h] + x_hs[h] @ now_s2[:, 1] >= budget:
            break
        then_s2, now_s2 = now_s2, then_s2
    under_advice(model, h, low_hs[h], then_s2, E_r2, kept_s2)
    extra_s = x_hs[h] * (now_s2[:, 1] - kept_s2[:, 1])
    need = budget - spent_before[h] - float(x_hs[h] @ kept_s2[:, 1])
    advice_hs = np.concatenate((low_hs[:h], switched_hs[h:]))
    return _switch_until_spent(advice_hs, low_hs[h], h, extra_s, need, A)


def _switch_until_spent(  # noqa: PLR0913 (one step of the above, to be read alone)
    advice_hs: Ints, low_s: Ints, h: int, extra_s: Floats, need: float, n_actions: int
) -> Policy:
    """Switch the states of one step until ``need`` more pieces are spent, the last in part."""
    reached = np.cumsum(extra_s)
    states = np.nonzero(reached >= need)[0]
    if not states.size:  # rounding: all of them together just miss it
        return Policy(advice_hs, n_actions=n_actions)
    s = int(states[0])
    before = float(reached[s] - extra_s[s])
    share = (need - before) / float(extra_s[s]) if extra_s[s] != 0.0 else 0.0
    share = min(max(share, 0.0), 1.0)
    advice_hs[h, s + 1 :] = low_s[s + 1 :]
    pair: Sequence[int] = (int(low_s[s]), int(advice_hs[h, s]))
    if share == 0.0 or pair[0] == pair[1]:
        advice_hs[h, s] = low_s[s]
        return Policy(advice_hs, n_actions=n_actions)
    if share == 1.0:
        return Policy(advice_hs, n_actions=n_actions)
    advice_hs[h, s] = pair[int(share >= 0.5)]
    order = np.argsort(pair)
    random = RandomCells(
        np.array([h * advice_hs.shape[1] + s]),
        np.array([0, 2]),
        np.array(pair, dtype=np.int16)[order],
        np.array([1.0 - share, share])[order],
    )
    return Policy(advice_hs, n_actions=n_actions, random=random)
