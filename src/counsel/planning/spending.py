"""Spending a budget along the frontiers of many people, the steepest edges first."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from counsel.model.problem import AdviceProblem
from counsel.planning.budget import SAME_VALUE, Point, bracket, covers, ends, slope
from counsel.planning.constraints import Constraints
from counsel.planning.frontier import Frontier
from counsel.planning.planners import planner_for

SAME_SLOPE = 1e-10
"""Edges whose slopes differ by less than this share are equally steep."""


class Chain:
    """The known vertices of one frontier, from least to most advice, for ``count`` people.

    ``floor`` are the two vertices between which the first point lies if everybody gets more than
    the least advice; else it is None.
    """

    def __init__(
        self, problem: AdviceProblem, constraints: Constraints, known: Frontier | None
    ) -> None:
        self.problem, self.constraints, self.count = problem, constraints, 0
        if known is not None and known.complete:
            self.points = [vertex.point for vertex in known.vertices]
        else:
            left, right = ends(planner_for(problem, constraints, search=True))
            self.points = [left] if left is right else [left, right]
        self.floor: tuple[Point, Point] | None = None

    def raise_floor(self, cost: float) -> None:
        """Leave out all plans that cost less, or all but the most useful one."""
        points = self.points
        if covers(points[0].cost, cost):
            return
        if covers(cost, points[-1].cost):
            self.points = [points[-1]._replace(high=np.inf)]  # no cheaper vertex is planned
            return
        i = sum(point.cost <= cost for point in points)
        planner = planner_for(self.problem, self.constraints, search=True)
        left, right = bracket(planner, points[i - 1], points[i], cost)
        price = slope(left, right)
        value = left.value + price * (cost - left.cost)
        later = [point for point in points[i:] if point is not right]
        self.points = [Point(value, cost, price, price, np.inf), right, *later]
        self.floor = (left, right)

    def edge(self, left: Point, right: Point) -> tuple[Point, Point]:
        """Return the vertices between which a plan lies, from those of ``part``."""
        if self.floor is None or left is not self.points[0]:
            return left, right
        return self.floor[0], self.floor[1] if right is left else right

    def edges(self) -> list[tuple[float, float]]:
        """Return the slope and the width of each edge."""
        return [(slope(a, b), b.cost - a.cost) for a, b in pairwise(self.points)]

    def renew(self, price: float) -> bool:
        """Plan at a price unless it is known what is best there; return whether that is new."""
        points = self.points
        i = sum(slope(a, b) > price for a, b in pairwise(points))  # the best vertex that is known
        if points[i].low <= price <= points[i].high:
            return False
        others = [points[j] for j in (i - 1, i + 1) if 0 <= j < len(points)]
        if any(other.low <= price <= other.high for other in others):
            return False  # the price is the slope between two neighbours
        planner = planner_for(self.problem, self.constraints, search=True)
        [(value, cost)] = planner.penalise(price)
        best, size = points[i], abs(value) + abs(points[i].value) + price * (cost + points[i].cost)
        at = bisect_left([point.cost for point in points], cost)
        is_better = value - price * cost > best.value - price * best.cost + SAME_VALUE * size
        if not is_better or not 0 < at < len(points) or cost == points[at].cost:
            points[i] = best._replace(low=min(best.low, price), high=max(best.high, price))
            return False
        points.insert(at, Point(value, cost, price, price, price))
        return True

    def part(self, spending: "Spending") -> tuple[Point, Point, float]:
        """Return the edge on which the budget ends, and how far along it."""
        steep = [slope(a, b) for a, b in pairwise(self.points)]
        i = sum(s > spending.steeper for s in steep)
        j = sum(s >= spending.flatter for s in steep)
        left, right = self.points[i], self.points[j]
        return (left, left, 0.0) if i == j else (left, right, spending.fraction)


class Spending(NamedTuple):
    """A budget spent: edges steeper than ``steeper`` wholly, those down to ``flatter`` in part."""

    price: float
    steeper: float
    flatter: float
    fraction: float


def spend(chains: Sequence[Chain], budget: float) -> Spending:
    """Spend a budget along the known vertices, the steepest edges first."""
    edges = [(s, chain.count * width) for chain in chains for s, width in chain.edges()]
    left = budget - sum(chain.count * chain.points[0].cost for chain in chains)
    slope_n, width_n = np.array(edges).reshape(-1, 2).T
    order = np.argsort(-slope_n, kind="stable")
    slope_n, spent_n = slope_n[order], np.cumsum(width_n[order])
    if not slope_n.size or covers(left, float(spent_n[-1])):
        return Spending(0.0, -1.0, -1.0, 0.0)  # every edge is spent
    price = float(slope_n[np.searchsorted(spent_n, max(left, 0.0), side="right")])
    steeper, flatter = price * (1.0 + SAME_SLOPE), price * (1.0 - SAME_SLOPE)
    before = float(width_n[order][slope_n > steeper].sum())
    wide = float(width_n[order][(slope_n <= steeper) & (slope_n >= flatter)].sum())
    return Spending(price, steeper, flatter, min(max((left - before) / wide, 0.0), 1.0))
