"""One budget for many people: a team shares an expected budget.

The best value v_i(d) of person i within d expected pieces is concave (``frontier.py``), so the team
maximises Σ v_i(d_i) under Σ d_i ≤ B by spending where a piece brings most: there is one price for
all, and everybody is advised by their best plan at that price.

Frontiers are not computed as a whole. From the two ends of each, ``share`` spends B along the known
vertices, steepest edge first, and plans for everybody at the price of the last piece that was
spent. Where that gives a new vertex it is added, and B is spent again. If nothing is new, the known
vertices contain the optimum of every person at the price, so the price is that of the budget
(Dantzig and Wolfe's decomposition of the one linear programme for all). A plan that is optimal at
two prices is optimal between them, so later rounds plan for few people.

Several edges may have the slope of the price. All people on them get the same fraction of their
edge: people who are alike are treated alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from counsel._arrays import Floats, not_negative, real
from counsel.errors import CounselError
from counsel.model.problem import AdviceProblem
from counsel.planning.budget import (
    SAME_COST,
    Point,
    check_enough,
    covers,
)
from counsel.planning.constraints import Constraints
from counsel.planning.frontier import Frontier, frontier_within
from counsel.planning.people import People, check_same_sums, read_people
from counsel.planning.per_step import TeamPlan, share_per_step
from counsel.planning.plan import Plan
from counsel.planning.planners import planner_for
from counsel.planning.solve import solve_budget, solve_penalty
from counsel.planning.spending import SAME_SLOPE, Chain, spend


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Member:
    """What one person of a team gets: the plan for their part of the budget.

    Attributes
    ----------
    problem, constraints
        The person, and the checked masks.
    count
        How many people are exactly alike; the numbers are those of one of them.
    value
        Expected reward per episode.
    advice_cost
        Expected cost of advice per episode: the part of the budget that is spent on them.
    price
        What one more piece would bring; the same for the whole team.
    edge
        The vertices of their frontier between which the plan lies.

    Examples
    --------
    >>> import counsel
    >>> shared = counsel.share([counsel.make("night-shift"), counsel.make("ward")], budget=3)
    >>> for member in shared.members:
    ...     print(f"{member.advice_cost:.2f} pieces bring {member.value:.2f}")
    1.98 pieces bring 11.42
    1.02 pieces bring 5.57
    """

    problem: AdviceProblem
    constraints: Constraints
    count: int
    value: float
    advice_cost: float
    price: float
    edge: tuple[Point, Point]

    def __repr__(self) -> str:
        many = "" if self.count == 1 else f"{self.count} people, each "
        return f"Member({many}value {self.value:.6g}, {self.advice_cost:.4g} pieces)"

    @property
    def plan(self) -> Plan:
        """The plan, made anew on each access so that a large team takes little memory."""
        left, right = self.edge
        if left is right and left.at < np.inf:
            plan = solve_penalty(self.problem, self.constraints, self.price)
            if abs(plan.advice_cost - left.cost) <= SAME_COST * left.cost:
                return plan
            return solve_penalty(self.problem, self.constraints, left.at)  # a tie at the price
        planner = planner_for(self.problem, self.constraints)
        return solve_budget(planner, left, right, self.advice_cost)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TeamFrontier:
    """The best value of a team at every budget: the vertices of a concave curve.

    Attributes
    ----------
    budget, value
        Expected cost of advice of the whole team, and the value that it brings [vertex].
    price
        What one more piece brings after each vertex [vertex]; 0 after the last.

    Examples
    --------
    >>> import counsel
    >>> team = counsel.share([counsel.make("night-shift")] * 2, budget=3).frontier
    >>> team
    TeamFrontier(35 vertices, 0 to 22.38 pieces, value 21.8838 to 22.9212)
    >>> round(team.at(3), 3)
    22.738
    """

    budget: Floats
    value: Floats
    price: Floats

    def __repr__(self) -> str:
        return (
            f"TeamFrontier({len(self.budget)} vertices, {self.budget[0]:.4g} to "
            f"{self.budget[-1]:.4g} pieces, value {self.value[0]:.6g} to {self.value[-1]:.6g})"
        )

    def at(self, budget: float) -> float:
        """Return the best value of the team within a budget.

        Parameters
        ----------
        budget
            Pieces of advice of the whole team, on average.
        """
        amount = not_negative("budget", budget)
        check_enough(amount, float(self.budget[0]))
        return float(np.interp(amount, self.budget, self.value))


@dataclass(frozen=True, eq=False, repr=False)
class SharedPlan:
    """How a team shares an expected budget: the result of ``share``.

    Attributes
    ----------
    budget
        Pieces of advice of the whole team, on average.
    price
        What one more piece would bring, whoever it goes to.
    members
        A ``Member`` for each entry of ``people``, in order.

    Examples
    --------
    A ward and a night shift, whose pieces bring the same at the margin:

    >>> import counsel
    >>> shared = counsel.share([counsel.make("ward"), counsel.make("night-shift")], budget=3)
    >>> shared
    SharedPlan(2 people, value 16.9936, 3 pieces, price 0.0637)
    >>> for member in shared.members:
    ...     print(member.plan)
    Plan(value 5.56976, advice count 1.02, price 0.0637)
    Plan(value 11.4238, advice count 1.98, price 0.0637)
    """

    budget: float
    price: float
    members: tuple[Member, ...]

    def __repr__(self) -> str:
        people = sum(member.count for member in self.members)
        return (
            f"SharedPlan({people} people, value {self.value:.6g}, {self.advice_cost:.4g} pieces, "
            f"price {self.price:.4g})"
        )

    @property
    def value(self) -> float:
        """Expected reward of the whole team."""
        return sum(member.count * member.value for member in self.members)

    @property
    def advice_cost(self) -> float:
        """Expected cost of all advice."""
        return sum(member.count * member.advice_cost for member in self.members)

    @cached_property
    def frontier(self) -> TeamFrontier:
        """The best value of the team at every budget, from the whole frontiers of its members.

        It does not take ``at_least`` into account.
        """
        fronts = dict[tuple[int, int], Frontier]()
        start_cost = start_value = 0.0
        slopes, widths = list[Floats](), list[Floats]()
        for member in self.members:
            key = (id(member.problem), id(member.constraints))
            if key not in fronts:
                fronts[key] = frontier_within(member.problem, member.constraints)
            points = [vertex.point for vertex in fronts[key].vertices]
            start_cost += member.count * points[0].cost
            start_value += member.count * points[0].value
            cost, value = np.array([(point.cost, point.value) for point in points]).T
            widths.append(member.count * np.diff(cost))
            slopes.append(np.diff(value) / np.diff(cost))
        slope_n, width_n = np.concatenate(slopes), np.concatenate(widths)
        order = np.argsort(-slope_n, kind="stable")
        slope_n, width_n = slope_n[order], width_n[order]
        begins = np.flatnonzero(np.diff(slope_n, prepend=np.inf) < -SAME_SLOPE * np.abs(slope_n))
        width_n = np.add.reduceat(width_n, begins) if begins.size else width_n
        price_n = slope_n[begins]
        return TeamFrontier(
            start_cost + np.append(0.0, np.cumsum(width_n)),
            start_value + np.append(0.0, np.cumsum(width_n * price_n)),
            np.append(price_n, 0.0),
        )


@overload
def share(
    people: People,
    *,
    budget: float,
    counts: ArrayLike | None = None,
    at_least: float | None = None,
) -> SharedPlan: ...


@overload
def share(
    people: People,
    *,
    per_step: int,
    counts: ArrayLike | None = None,
    longest_wait: int | None = None,
) -> TeamPlan: ...


def share(  # noqa: PLR0913 (people, two limits with a floor each, and counts)
    people: People,
    *,
    budget: float | None = None,
    per_step: int | None = None,
    counts: ArrayLike | None = None,
    at_least: float | None = None,
    longest_wait: int | None = None,
) -> SharedPlan | TeamPlan:
    """Return how a team best shares an expected budget, or a number of pieces per step.

    Parameters
    ----------
    people
        Problems, or frontiers where advice is forbidden or required. With a budget they may differ
        in everything; with a limit per step they must have the same horizon.
    budget
        Pieces of advice of the whole team per episode, on average; per step for people who are
        planned for by the average per step. A piece that costs c counts c times.
    per_step
        The largest number of people who are advised in the same step, on every path.
    counts
        How many people are like each entry of ``people``, by default one.
    at_least
        With a budget: everybody gets at least this share, from 0 to 1, of an equal part of the
        budget, or as much as they can use. By default nobody is guaranteed anything.
    longest_wait
        With a limit per step: the largest number of steps that anybody waits for a piece. By
        default anybody may wait for ever.

    Returns
    -------
    SharedPlan or TeamPlan
        For a budget, the common price, what each person gets and earns, their plans, and the
        frontier of the team. For a limit per step, the price of each step, an upper bound on the
        value, and a policy that ranks people; ``Team`` simulates it.

    Raises
    ------
    CounselError
        If the team is empty, an entry is not a problem, a count is not a whole number of at least
        1, the required advice of all people together exceeds the budget, the limit per step is not
        a whole number from 1 to the size of the team, or a floor cannot be kept.

    Examples
    --------
    Two hundred patients on two kinds of wards, and twenty calls:

    >>> import counsel
    >>> wards = [counsel.make("ward"), counsel.make("ward/tiring")]
    >>> shared = counsel.share(wards, budget=20, counts=[150, 50])
    >>> shared
    SharedPlan(200 people, value 1083.28, 20 pieces, price 0.4227)

    One phone: at most ten calls in every round.

    >>> plan = counsel.share(wards, per_step=10, counts=[150, 50])
    >>> plan
    TeamPlan(200 people, 10 per step, value ≤ 1092.01)
    """
    if (budget is None) == (per_step is None):
        raise CounselError("give a budget or per_step, and not both: they limit different things")
    if per_step is not None:
        if at_least is not None:
            raise CounselError("at_least goes with a budget; with per_step give longest_wait")
        return share_per_step(people, per_step, counts, longest_wait)
    if longest_wait is not None:
        raise CounselError("longest_wait goes with per_step; with a budget give at_least")
    team, count_n = read_people(people, counts)
    check_same_sums([problem for problem, _ in team])
    amount, chains = not_negative("budget", budget), dict[int, Chain]()
    for (problem, constraints), given, count in zip(team, people, count_n.tolist(), strict=True):
        if id(given) not in chains:
            known = given if isinstance(given, Frontier) else None
            chains[id(given)] = Chain(problem, constraints, known)
        chains[id(given)].count += count
    check_enough(amount, sum(c.count * c.points[0].cost for c in chains.values()))
    if at_least is not None:
        _raise_floors(list(chains.values()), amount, at_least)
    spending = spend(list(chains.values()), amount)
    while sum(chain.renew(spending.price) for chain in chains.values()):
        spending = spend(list(chains.values()), amount)
    members = []
    for (problem, constraints), given, count in zip(team, people, count_n.tolist(), strict=True):
        left, right, fraction = chains[id(given)].part(spending)
        value = left.value + fraction * (right.value - left.value)
        cost = left.cost + fraction * (right.cost - left.cost)
        edge = chains[id(given)].edge(left, right)
        members.append(Member(problem, constraints, count, value, cost, spending.price, edge))
    return SharedPlan(amount, spending.price, tuple(members))


def _raise_floors(chains: Sequence["Chain"], budget: float, at_least: object) -> None:
    """Give everybody at least a share of an equal part of the budget, or what they can use."""
    share_of_part = real("at_least", at_least)
    if not 0.0 <= share_of_part <= 1.0:
        raise CounselError(f"at_least is {share_of_part:g}; it must lie between 0 and 1")
    floor = share_of_part * budget / sum(chain.count for chain in chains)
    for chain in chains:
        chain.raise_floor(floor)
    least = sum(chain.count * chain.points[0].cost for chain in chains)
    if not covers(budget, least):
        raise CounselError(
            f"at_least is {share_of_part:g} but with the required advice of others that takes "
            f"{least:.6g} pieces; raise the budget or lower at_least"
        )
