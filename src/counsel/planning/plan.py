"""The result of ``solve``: a policy of advice, its value and its price."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from counsel._arrays import Floats, Ints, index_in, sealed
from counsel.errors import CounselError
from counsel.model.mixture import Mixture
from counsel.model.policy import Policy
from counsel.planning.constraints import Constraints

_T = TypeVar("_T")


class PlanOutcome(NamedTuple):
    """What a plan brings per episode: expected reward, pieces of advice and their cost."""

    value: float
    advice_count: float
    advice_cost: float


@dataclass(frozen=True, eq=False)
class PlanTable:
    """A plan in every cell; values and cells with reverse advice are computed on first use."""

    policy: Policy
    mixture: Mixture
    values_later: Callable[[], Floats]
    reverse_later: Callable[[Floats], Ints]

    @cached_property
    def values(self) -> Floats:
        """Value to the end, as ``Plan.values``."""
        return sealed(self.values_later())

    @cached_property
    def reverse(self) -> Ints:
        """Cells with reverse advice, as ``Plan.reverse``."""
        return self.reverse_later(self.values)

    def __reduce__(self) -> tuple[Any, ...]:
        return _known_table, (self.policy, self.mixture, self.values, self.reverse)


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """The best advice: the result of ``solve``.

    Numbers and tables that take another pass over the states are computed when they are first
    asked for: the advice count, and the plan in cells that cannot be reached from the start.

    Attributes
    ----------
    net_value
        The maximum that the plan attains: expected reward minus the penalty for all advice.
    penalty
        The penalty per unit of cost, or one for each step [h]; 0 if ``solve`` was called without a
        penalty.
    price
        The price of a unit of cost, of a piece if every piece costs 1: the penalty (of the first
        step); the dual price of an expected budget; or, under a hard budget, the value that the
        last unit adds at the start (∞ if the budget is 0).
    constraints
        The checked ``forbidden``, ``required`` and ``allow_reverse``.
    error
        For work without end: a bound on the error of the value, and on what the policy loses
        against the best. With a horizon 0: plans are exact to rounding.
    outcome_later, table_later
        Compute the value and the advice count, and the plan in every cell.

    Examples
    --------
    The value after a penalty of 0.3 per piece, and the number of steps with advice in each state:

    >>> import counsel
    >>> problem = counsel.make("night-shift")
    >>> plan = counsel.solve(problem, penalty=0.3)
    >>> print(f"{plan.value:.3f} - 0.3 × {plan.advice_count:.3f} = {plan.penalised_value:.3f}")
    11.096 - 0.3 × 0.385 = 10.980
    >>> advises = plan.policy.advice != plan.policy.defer
    >>> {problem.mdp.state_name(s): int(advises[:, s].sum()) for s in range(4)}
    {'stable': 0, 'drifting': 0, 'failing': 6, 'crisis': 0}
    """

    net_value: float
    penalty: float | Floats
    price: float
    constraints: Constraints
    outcome_later: Callable[[], "PlanOutcome"] = field(repr=False)
    table_later: Callable[[], "PlanTable"] = field(repr=False)
    error: float = 0.0

    @cached_property
    def _outcome(self) -> "PlanOutcome":
        return self.outcome_later()

    @cached_property
    def _table(self) -> "PlanTable":
        return self.table_later()

    @property
    def value(self) -> float:
        """Expected reward per episode, without any penalty; discounted in work without end."""
        return self._outcome.value if np.any(self.penalty) else self.net_value

    @property
    def advice_count(self) -> float:
        """Expected pieces of advice per episode; discounted in work without end."""
        return self._outcome.advice_count

    @property
    def advice_cost(self) -> float:
        """Expected cost of advice per episode: the advice count if every piece costs 1."""
        return self._outcome.advice_cost

    @property
    def penalised_value(self) -> float:
        """Expected reward minus the penalty for all advice: ``net_value``, to rounding."""
        if isinstance(self.penalty, float):
            return self.value - self.penalty * self.advice_cost
        return self.net_value

    @property
    def policy(self) -> Policy:
        """A single policy with this value and count; Markov unless the budget is hard."""
        return self._table.policy

    @property
    def mixture(self) -> Mixture:
        """A mixture of at most two policies without random cells, of the same value and cost."""
        return self._table.mixture

    @property
    def values(self) -> Floats:
        """Value to the end at ``price`` [h, s], with a last step H of zeros.

        Under a hard budget [pieces left, h, s]; the levels of a memory come before h. In work
        without end there are two rows [2, s], both the value for ever.
        """
        return self._table.values

    @property
    def reverse(self) -> Ints:
        """Cells with reverse advice: rows of (step, state).

        Under a hard budget, rows of (pieces left, step, state); the level of a memory comes before
        the step.
        """
        return self._table.reverse

    def __reduce__(self) -> tuple[Any, ...]:
        numbers = (self.net_value, self.penalty, self.price)
        return plan_of, (*numbers, self.constraints, self._outcome, self._table, self.error)

    @property
    def hard(self) -> bool:
        """Whether the budget is hard."""
        return self.policy.budget is not None

    @property
    def value_planes(self) -> Floats:
        """The values as [plane, h, s], one plane for each plane of the policy."""
        return self.values.reshape(-1, *self.values.shape[-2:])

    def price_at(self, step: int) -> float:
        """Return the price of a unit of cost at a step, without a hard budget.

        Parameters
        ----------
        step
            The step, counted from 0.
        """
        if isinstance(self.penalty, float):
            return self.price
        return float(self.penalty[index_in("step", step, len(self.penalty))])

    def with_policy(self, policy: Policy, outcome: PlanOutcome) -> "Plan":
        """Return the plan with another policy in its place.

        Parameters
        ----------
        policy
            A policy for the same problem.
        outcome
            What that policy brings per episode.
        """
        table = replace(self._table, policy=policy, mixture=Mixture((policy,), (1.0,)))
        if not isinstance(self.penalty, float):
            raise CounselError("a plan with a penalty for each step keeps its policy")
        net = outcome.value - self.penalty * outcome.advice_cost
        return plan_of(net, self.penalty, self.price, self.constraints, outcome, table, self.error)

    def __repr__(self) -> str:
        return (
            f"Plan(value {self.value:.6g}, advice count {self.advice_count:.4g}, "
            f"price {self.price:.4g})"
        )


def plan_of(  # noqa: PLR0913 (the fields of a plan)
    net_value: float,
    penalty: float | Floats,
    price: float,
    constraints: Constraints,
    outcome: PlanOutcome,
    table: PlanTable,
    error: float = 0.0,
) -> Plan:
    """Return a plan of which everything is known."""
    later = (partial(_known, outcome), partial(_known, table))
    return Plan(net_value, penalty, price, constraints, *later, error)


def _known(result: _T) -> _T:
    return result


def _known_table(policy: Policy, mixture: Mixture, values: Floats, reverse: Ints) -> PlanTable:
    return PlanTable(policy, mixture, partial(_known, values), lambda _: reverse)
