"""One limit per step for many people: at most k of a team are advised in the same step.

If the limit holds only on average, everybody can be planned for alone, at a price β_h per piece at
step h. With V_i(β) the best value of one person of kind i after these prices, and n_i people like
them, every β ≥ 0 gives an upper bound on what the team can earn:

    D(β) = Σ_i n_i V_i(β) + k Σ_h β_h

``share`` minimises it (Lagrange relaxation; Hawkins 2003, Brown and Smith 2020). The minimum is the
value of the linear programme in which the limit holds on average. ``crowd.py`` mostly finds it in a
few passes over all steps. Where it does not, ``step_prices.py`` searches on. D is convex and
piecewise linear: each plan is one of its pieces. A small linear programme (HiGHS) minimises the
largest of the pieces known so far, plans at its prices give new pieces, and so on. The next prices
are searched for in a box around the best so far (Marsten, Hogan and Blankenship 1975).

The policy keeps the limit on every path. At each step it advises the people with the largest gains
under the values at the prices, at most k, and nobody whose gain is not above 0. A gain below the
price still counts: a piece that is not used at its step is lost. For people with a memory the gain
contains the burden, what speaking costs later. Where several cells have the gain that equals the
price, the programme prefers some of them: in a cell in which it advises a share x of the people,
each comes before the others with probability x. The value of the policy is not known exactly:
``Team.evaluate`` simulates it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from counsel._arrays import Floats, Ints, first, place, sealed, whole
from counsel.errors import CounselError
from counsel.model.problem import AdviceProblem
from counsel.model.random_cells import Advice
from counsel.model.team_policy import TeamPolicy, check_wait
from counsel.planning.constraints import Constraints
from counsel.planning.crowd import SAME_GAIN, Crowd
from counsel.planning.people import People, check_same_horizon, read_people
from counsel.planning.step_prices import GAP, distinct_kinds, in_groups, minimise_bound, mix_plans


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TeamMember:
    """What is said to one kind of person in a team, and how urgent it is.

    Attributes
    ----------
    problem, constraints
        The person, and the checked masks.
    count
        How many people are exactly alike; the numbers are those of one of them.
    advice
        The best advice in each cell [h, s], with a memory [m, h, s]; silence where no advice is
        permitted.
    gain
        What this advice adds to the value of silence, at the prices of later steps, in the shape of
        ``advice``; −∞ where no advice is permitted.
    rank
        The order in which cells of the same step are served, over all kinds of people: 1 is first,
        equal ranks are served in random order, 0 is not served because nothing is gained.
    chance
        The share of people in each cell who are advised if the limit holds on average.
    value, advice_count
        Expected reward and pieces of advice per episode if the limit holds on average.

    Examples
    --------
    Whom to call first in the first week, of mothers of two kinds:

    >>> import counsel
    >>> mothers = [counsel.make("call-centre"), counsel.make("call-centre/working")]
    >>> plan = counsel.share(mothers, per_step=10, counts=[60, 40])
    >>> for member in plan.members:
    ...     print(dict(zip(member.problem.mdp.state_labels, member.rank[0].tolist())))
    {'engaged': 8, 'wavering': 4, 'drifting': 1, 'lost': 5}
    {'engaged': 7, 'wavering': 3, 'drifting': 2, 'lost': 6}
    """

    problem: AdviceProblem
    constraints: Constraints
    count: int
    advice: Advice
    gain: Floats
    rank: Ints
    chance: Floats
    value: float
    advice_count: float

    def __repr__(self) -> str:
        many = "" if self.count == 1 else f"{self.count} people, each "
        return f"TeamMember({many}about {self.advice_count:.4g} pieces)"


@dataclass(frozen=True, eq=False, repr=False)
class TeamPlan:
    """How a team shares its pieces at each step: the result of ``share`` with ``per_step``.

    Attributes
    ----------
    per_step
        The largest number of people who are advised in the same step.
    prices
        What one more piece would bring at each step [h].
    bound
        An upper bound: no policy that keeps the limit earns more on average.
    gap
        How far the bound may exceed the best value with the limit on average, as a share of the
        bound.
    members
        A ``TeamMember`` for each entry of ``people``, in order.
    longest_wait
        The largest number of steps that anybody waits for a piece; None without such a limit. The
        prices and the bound do not take it into account.

    Examples
    --------
    >>> import counsel
    >>> plan = counsel.share([counsel.make("ward")], per_step=1, counts=[10])
    >>> plan
    TeamPlan(10 people, 1 per step, value ≤ 55.1791)
    >>> plan.prices.round(1).tolist()
    [0.1, 0.1, 0.1, 0.1, 0.0, 0.0]
    """

    per_step: int
    prices: Floats
    bound: float
    gap: float
    members: tuple[TeamMember, ...]
    longest_wait: int | None = None

    def __repr__(self) -> str:
        people = sum(member.count for member in self.members)
        return f"TeamPlan({people} people, {self.per_step} per step, value ≤ {self.bound:.6g})"

    @cached_property
    def policy(self) -> TeamPolicy:
        """Whom to advise at each step and what to say, for ``Team.evaluate``."""
        return TeamPolicy(
            self.per_step,
            advice=[member.advice for member in self.members],
            priority=[np.where(m.rank > 0, 1.0 / np.maximum(m.rank, 1), 0.0) for m in self.members],
            chance=[member.chance for member in self.members],
            longest_wait=self.longest_wait,
        )


def share_per_step(
    people: People,
    per_step: int,
    counts: ArrayLike | None = None,
    longest_wait: int | None = None,
) -> TeamPlan:
    """Return how a team best shares ``per_step`` pieces at each step."""
    team, count_n = read_people(people, counts)
    horizon, size = check_same_horizon([problem for problem, _ in team]), int(count_n.sum())
    k = _read_limit(per_step, size)
    _check_costs_and_masks(team)
    if longest_wait is not None:
        check_wait(whole("longest_wait", longest_wait, least=0), k, size, horizon)
    kinds, kind_of = distinct_kinds(team, count_n)
    crowd = Crowd(kinds, k)
    prices, served = crowd.take_turns()
    value, mixes = served.value, served.mixes
    if prices.bound - value > GAP * abs(prices.bound):
        groups = in_groups(len(kinds))
        search = minimise_bound(kinds, groups, k, prices.price_h)
        prices = crowd.look_back(price_h=search.prices)._replace(bound=search.bound)
        value, mixes = search.value, mix_plans(kinds, groups, search.columns)
    rank_hx = _ranks(prices.gains.gain)
    members = []
    for (problem, constraints), i, count in zip(team, kind_of, count_n.tolist(), strict=True):
        members.append(
            TeamMember(
                problem,
                constraints,
                count,
                advice=sealed(crowd.table(prices.gains.advice, i)),
                gain=sealed(crowd.table(prices.gains.gain, i)),
                rank=sealed(crowd.table(rank_hx, i)),
                chance=mixes[i].chance,
                value=mixes[i].value,
                advice_count=mixes[i].advice_count,
            )
        )
    gap = max(prices.bound - value, 0.0) / max(abs(prices.bound), 1e-300)
    plan = TeamPlan(k, sealed(prices.price_h), prices.bound, gap, tuple(members), longest_wait)
    plan.policy.check_fits([problem for problem, _ in team], count_n)
    return plan


def _read_limit(per_step: object, size: int) -> int:
    k = whole("per_step", per_step, least=1)
    if k > size:
        raise CounselError(f"per_step is {k}; it may be at most {size}, the size of the team")
    return k


def _check_costs_and_masks(team: Sequence[tuple[AdviceProblem, Constraints]]) -> None:
    """Raise if advice is required, or a piece costs other than 1."""
    for i, (problem, constraints) in enumerate(team):
        where = first(constraints.required)
        if where is not None:
            raise CounselError(
                f"people[{i}] requires advice at {place('hs', where)}, which a limit per step "
                "cannot keep on every path; give them a plan of their own, or share a budget"
            )
        if not problem.has_unit_cost:
            raise CounselError(
                f"people[{i}] has advice that costs other than 1; a limit per step counts pieces, "
                "so share a budget or give every piece the cost 1"
            )


def _ranks(gain_hx: Floats) -> Ints:
    """Return the rank of each cell among those of the same step: 1 is the largest gain.

    Gains that differ only by rounding have the same rank. Gains that are not above 0 have rank 0.
    """
    least = SAME_GAIN * max(float(gain_hx.max(initial=0.0)), 0.0)
    order_hx = np.argsort(-gain_hx, axis=1, kind="stable")
    ordered_hx = np.maximum(np.take_along_axis(gain_hx, order_hx, axis=1), 0.0)
    drops_hx = np.diff(ordered_hx, axis=1, prepend=np.inf) < -least
    rank_hx = np.empty(gain_hx.shape, dtype=np.int64)
    np.put_along_axis(rank_hx, order_hx, np.cumsum(drops_hx, axis=1), axis=1)
    rank_hx[gain_hx <= least] = 0
    return rank_hx
