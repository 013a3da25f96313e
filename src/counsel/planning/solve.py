"""``solve``: the best advice, without limit, at a penalty, or within a budget."""

import numpy as np
from numpy.typing import ArrayLike

from counsel._arrays import not_negative, sealed, whole
from counsel.errors import CounselError
from counsel.model.mixture import Mixture
from counsel.model.policy import Policy
from counsel.model.problem import AdviceProblem
from counsel.planning.advice_rules import Rules
from counsel.planning.backward import Planner
from counsel.planning.budget import (
    Point,
    advice_at,
    bracket,
    check_enough,
    ends,
    one_random_cell,
    slope,
)
from counsel.planning.evaluate import forward
from counsel.planning.hard_budget import solve_hard
from counsel.planning.plan import Plan, reverse_cells


def solve(  # noqa: PLR0913 (what may be asked of a plan)
    problem: AdviceProblem,
    *,
    penalty: float | None = None,
    budget: float | None = None,
    hard: bool = False,
    forbidden: ArrayLike | None = None,
    required: ArrayLike | None = None,
    allow_reverse: bool = True,
    threads: int | None = None,
) -> Plan:
    """Return the best plan of advice: what to say, or not, at each step in each state.

    Parameters
    ----------
    problem
        The world and the person.
    penalty
        What each piece of advice costs, in units of reward.
    budget
        Pieces of advice an episode, on average (over the start distribution too).
    hard
        Whether no episode may exceed the budget, which is then a whole number.
    forbidden
        Booleans [s], [h, s] or [h, s, a]: where nothing, or that advice, may be said.
    required
        Booleans [s] or [h, s]: where something must be said.
    allow_reverse
        Whether advice that repels may be used where it leads the person to something better.
        ``Plan.reverse`` lists where it is.
    threads
        How many threads may share a large problem; all cores when not given. The plan does not
        depend on it.

    Returns
    -------
    Plan
        Its value, its advice count, the price of a piece, and its policy.

    Raises
    ------
    CounselError
        When a mask, penalty or budget makes no sense, or what must be said exceeds the budget.

    Examples
    --------
    One piece of advice an episode, on average and then as a limit that no episode exceeds:

    >>> import counsel
    >>> from counsel.worlds import make
    >>> problem = make("night-shift")
    >>> counsel.solve(problem, budget=1)
    Plan(value 11.2669, advice count 1, price 0.2629)
    >>> counsel.solve(problem, budget=1, hard=True)
    Plan(value 11.1329, advice count 1, price 0.1909)

    Without limit almost every step is advised, for little more:

    >>> counsel.solve(problem)
    Plan(value 11.4606, advice count 11.19, price 0)
    """
    if penalty is not None and budget is not None:
        raise CounselError("give a penalty or a budget, not both: a budget sets its own price")
    if hard and budget is None:
        raise CounselError("a hard limit needs a budget: the most pieces of advice in an episode")
    if threads is not None:
        threads = whole("threads", threads, least=1)
    rules = Rules.read(problem, forbidden=forbidden, required=required, allow_reverse=allow_reverse)
    if hard:
        return solve_hard(problem, rules, budget)
    if budget is None:
        amount = read_penalty(penalty)
        return solve_penalty(Planner(problem, rules, threads=threads), amount)
    amount = not_negative("budget", budget)
    search = Planner(problem, rules, threads=threads, search=True)
    left, right = ends(search)
    check_enough(amount, left.count)
    if amount < right.count:
        left, right = bracket(search, left, right, amount)
    del search
    return solve_budget(Planner(problem, rules, threads=threads), left, right, amount)


def read_penalty(penalty: float | None) -> float:
    """Check a penalty; none is 0."""
    return 0.0 if penalty is None else not_negative("penalty", penalty)


def solve_penalty(planner: Planner, penalty: float) -> Plan:
    """Return the best plan at a penalty; the planner gives its working space away."""
    outcome = planner.penalise(penalty)
    policy = Policy.trusted(planner.advice, n_actions=planner.problem.n_actions)
    return _plan(planner, outcome, (penalty, penalty), policy, Mixture((policy,), (1.0,)))


def solve_budget(planner: Planner, left: Point, right: Point, budget: float) -> Plan:
    """Return the best plan within a budget on the edge between two neighbouring vertices.

    The price is the reward of a little more budget: at a vertex, the slope to its right.
    """
    A = planner.problem.n_actions
    if budget >= right.count:
        left = right
    low = Policy.trusted(advice_at(planner, left), n_actions=A)
    if left is right or left.count == right.count:
        price, share, policy, mixture = 0.0, 0.0, low, Mixture((low,), (1.0,))
    else:
        price = slope(left, right)
        share = max((budget - left.count) / (right.count - left.count), 0.0)
        high = Policy.trusted(advice_at(planner, right), n_actions=A)
        policy = one_random_cell(planner, low, high, budget) if share > 0.0 else low
        mixture = Mixture.of((low, high), (1.0 - share, share))
    value = (1.0 - share) * left.value + share * right.value
    count = (1.0 - share) * left.count + share * right.count
    planner.penalise(price)
    # Where the policy never comes, say what is best at its price: that is what explains it.
    reached = forward(planner.problem, planner.model, policy).occupancy > 0.0
    advice = np.where(reached, policy.advice, planner.advice)
    policy = Policy.trusted(advice, n_actions=A, random=policy.random)
    return _plan(planner, (value, count), (0.0, price), policy, mixture)


def _plan(
    planner: Planner,
    outcome: tuple[float, float],
    terms: tuple[float, float],
    policy: Policy,
    mixture: Mixture,
) -> Plan:
    values = sealed(planner.values)
    return Plan(
        value=outcome[0],
        advice_count=outcome[1],
        penalty=terms[0],
        price=terms[1],
        policy=policy,
        mixture=mixture,
        values=values,
        reverse=reverse_cells(planner.problem, planner.model, policy.advice[None], values[None])[
            :, 1:
        ],
        rules=planner.rules,
    )
