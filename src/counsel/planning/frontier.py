"""The advice–reward frontier: every penalty and every budget at once.

V*_β(start) is convex, piecewise linear and non-increasing in the penalty β. Its pieces are the
vertices of the concave frontier of (expected pieces of advice, expected reward), its kinks the
slopes of the frontier's edges. Planning at the slope between two known vertices yields a new vertex
between them or proves the edge, so K vertices cost 2K − 1 plans.

With more vertices than ``max_vertices`` the frontier stays incomplete. The known vertices still
bound it: it lies above the lines between them and below the lines of the penalties at which they
are optimal. The widest gap is narrowed first.
"""

import heapq
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from counsel._arrays import not_negative, whole
from counsel.model.policy import Policy
from counsel.model.problem import AdviceProblem
from counsel.planning.budget import (
    Point,
    between,
    bracket,
    check_enough,
    covers,
    earns_more,
    ends,
    policy_at,
    slope,
)
from counsel.planning.constraints import Constraints, documented
from counsel.planning.evaluate import evaluate
from counsel.planning.plan import Plan
from counsel.planning.planners import planner_for
from counsel.planning.prepared_problem import prepare
from counsel.planning.solve import solve_budget, solve_penalty


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Frontier:
    """Every penalty and every budget at once: the result of ``frontier``.

    Attributes
    ----------
    problem, constraints
        The problem, and the checked ``forbidden``, ``required`` and ``allow_reverse``.
    vertices
        A ``Vertex`` for each plan, from least to most advice.
    complete
        Whether all vertices are known.

    Examples
    --------
    The best plan within one piece of advice lies on the edge between two vertices:

    >>> import counsel
    >>> front = counsel.frontier(counsel.make("flappy-bird-budget/greedy"))
    >>> front
    Frontier(3 vertices, 0 to 2 pieces, value 1 to 2.6)
    >>> front.at_budget(1)
    Plan(value 1.80526, advice count 1, price 0.8053)
    >>> [round(bound, 3) for bound in front.bounds(1)]
    [1.805, 1.805]
    """

    problem: AdviceProblem
    constraints: Constraints
    vertices: tuple["Vertex", ...]
    complete: bool

    def __repr__(self) -> str:
        first, last = self.vertices[0], self.vertices[-1]
        state = "" if self.complete else ", not complete"
        return (
            f"Frontier({len(self.vertices)} vertices, {first.advice_cost:.4g} to "
            f"{last.advice_cost:.4g} pieces, value {first.value:.6g} to {last.value:.6g}{state})"
        )

    def at_penalty(self, penalty: float) -> Plan:
        """Return the best plan at a penalty, as ``solve`` does.

        Parameters
        ----------
        penalty
            The cost of each piece of advice, 0 or more.
        """
        return solve_penalty(self.problem, self.constraints, penalty)

    def at_budget(self, budget: float) -> Plan:
        """Return the best plan within an expected budget, exact even if not complete.

        Parameters
        ----------
        budget
            Pieces of advice per episode, on average.
        """
        amount, points = self._read_budget(budget)
        i = max(sum(covers(amount, point.cost) for point in points) - 1, 0)
        left, right = points[i], points[min(i + 1, len(points) - 1)]
        if left is not right and not _proven(left, right):
            search = planner_for(self.problem, self.constraints, search=True)
            left, right = bracket(search, left, right, amount)
        return solve_budget(planner_for(self.problem, self.constraints), left, right, amount)

    def bounds(self, budget: float) -> tuple[float, float]:
        """Return a lower and an upper bound on the value of the best plan within a budget.

        Parameters
        ----------
        budget
            As in ``at_budget``.
        """
        amount, points = self._read_budget(budget)
        counts, values = zip(*((point.cost, point.value) for point in points), strict=True)
        lower = float(np.interp(amount, counts, values))
        upper = points[-1].value
        for point in points:
            for penalty in (point.low, point.high):
                if penalty < np.inf:
                    upper = min(upper, point.value + penalty * (amount - point.cost))
        return lower, max(lower, upper)

    def _read_budget(self, budget: float) -> tuple[float, list[Point]]:
        """Return the checked budget and the points of all vertices."""
        amount, points = not_negative("budget", budget), [vertex.point for vertex in self.vertices]
        check_enough(amount, points[0].cost)
        return amount, points


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Vertex:
    """A vertex of the frontier: a plan that no mixture of other plans equals.

    Attributes
    ----------
    problem, constraints
        As in ``Frontier``.
    point
        The numbers behind ``advice_count``, ``value`` and ``penalties``.

    Examples
    --------
    Above a penalty of 0.805 silence is best:

    >>> import counsel
    >>> for vertex in counsel.frontier(counsel.make("flappy-bird-budget/greedy")).vertices:
    ...     low, high = vertex.penalties
    ...     print(f"{vertex.advice_count:.1f} pieces, {vertex.value:.2f}: {low:.3f} to {high:.3f}")
    0.0 pieces, 1.00: 0.805 to inf
    1.9 pieces, 2.53: 0.700 to 0.805
    2.0 pieces, 2.60: 0.000 to 0.700
    """

    problem: AdviceProblem
    constraints: Constraints
    point: Point

    def __repr__(self) -> str:
        return (
            f"Vertex({self.advice_count:.4g} pieces of advice, value {self.value:.6g}, "
            f"best at penalties {self.point.low:.4g} to {self.point.high:.4g})"
        )

    @property
    def advice_cost(self) -> float:
        """Expected cost of advice per episode."""
        return self.point.cost

    @property
    def advice_count(self) -> float:
        """Expected pieces of advice per episode: the cost if every piece costs 1."""
        if prepare(self.problem, self.constraints).unit_cost:
            return self.point.cost
        return evaluate(self.problem, self.policy).advice_count

    @property
    def value(self) -> float:
        """Expected reward per episode."""
        return self.point.value

    @property
    def penalties(self) -> tuple[float, float]:
        """The lowest and the highest penalty at which the vertex is known to be optimal."""
        return self.point.low, self.point.high

    @property
    def policy(self) -> Policy:
        """The policy, planned anew on each access so that a long frontier takes no memory."""
        return policy_at(planner_for(self.problem, self.constraints), self.point)


@documented
def frontier(
    problem: AdviceProblem,
    *,
    max_vertices: int = 1000,
    forbidden: ArrayLike | None = None,
    required: ArrayLike | None = None,
    allow_reverse: bool = True,
) -> Frontier:
    """Return the best value at every expected number of pieces of advice.

    Parameters
    ----------
    max_vertices
        The largest number of vertices; ``bounds`` covers the part that is not computed.

    Returns
    -------
    Frontier
        Its ``vertices`` have ``advice_count``, ``value``, ``penalties`` and ``policy``;
        ``at_budget`` and ``at_penalty`` return the plan for any budget or penalty.

    Raises
    ------
    CounselError
        If a mask is invalid, or ``max_vertices`` is below 2.

    Examples
    --------
    The share of the whole gain from advice that two pieces per night keep:

    >>> import counsel
    >>> front = counsel.frontier(counsel.make("night-shift"))
    >>> alone, best = front.vertices[0].value, front.vertices[-1].value
    >>> share = (front.at_budget(2).value - alone) / (best - alone)
    >>> print(f"{len(front.vertices)} vertices; two pieces keep {share:.1%}")
    35 vertices; two pieces keep 93.0%
    """
    most = whole("max_vertices", max_vertices, least=2)
    constraints = Constraints.read(
        problem, forbidden=forbidden, required=required, allow_reverse=allow_reverse
    )
    return frontier_within(problem, constraints, most)


def frontier_within(problem: AdviceProblem, constraints: Constraints, most: int = 1000) -> Frontier:
    """Return the frontier under checked constraints, with at most so many vertices."""
    planner = planner_for(problem, constraints, search=True)
    left, right = ends(planner)
    points = {left.cost: left, right.cost: right}
    waiting = [] if left is right else [(-_gap(left, right), left.cost, right.cost)]
    while waiting:
        # All edges at once while there is room for a vertex on each; then the widest gap first.
        many = len(waiting) if len(points) + len(waiting) <= most else 1
        edges = [heapq.heappop(waiting)[1:] for _ in range(many)]
        pairs = [(points[here], points[there]) for here, there in edges]
        prices = [slope(left, right) for left, right in pairs]
        plans = planner.penalise(*prices)
        for (here, there), price, plan in zip(edges, prices, plans, strict=True):
            left, right = points[here], points[there]
            new = between(left, right, price, plan)
            if new is None:
                # Rounding may put the slope outside the known penalties of both.
                proven = min(max(price, right.high), left.low)
                points[here] = left._replace(low=proven)
                points[there] = right._replace(high=proven)
                continue
            if len(points) == most:
                waiting.clear()
                break
            points[new.cost] = new
            for a, b in ((left, new), (new, right)):
                heapq.heappush(waiting, (-_gap(a, b), a.cost, b.cost))
    ordered = [points[count] for count in sorted(points)]
    while len(ordered) > 1 and not earns_more(ordered[-1], ordered[-2]):
        last = ordered.pop()  # at penalty 0 rounding hid that less advice earns as much
        ordered[-1] = ordered[-1]._replace(low=last.low)
    return Frontier(
        problem=problem,
        constraints=constraints,
        vertices=tuple(Vertex(problem, constraints, point) for point in ordered),
        complete=all(_proven(a, b) for a, b in pairwise(ordered)),
    )


def _proven(left: Point, right: Point) -> bool:
    """Return whether two vertices are known to be neighbours: both are optimal at one penalty."""
    return left.low <= right.high


def _gap(left: Point, right: Point) -> float:
    """Return how far the frontier may still lie above the line between two vertices."""
    width, rise = right.cost - left.cost, right.value - left.value
    steep, flat = left.low, right.high
    if steep == np.inf:
        return rise - flat * width
    at = (rise - flat * width) / (steep - flat) if steep > flat else 0.0
    return steep * at - rise / width * at
