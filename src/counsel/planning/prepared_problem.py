"""What planning reads of a problem, collected once: its arrays, and the smaller problems in it.

Two smaller problems have the same best plan: the problem of the kinds of states
(``alike_states.py``), and the problem of the cells that can occur (``reachable_cells.py``). Neither
depends on the levels of a memory, which stay as they are.

In work without end the probabilities carry the discount: rows sum to γ, and one step back of the
loops is one step of discounted work. The horizon of rounding is 1 / (1 − γ), and 1 where γ is near
1 or the average per step counts: their planners add the size of relative values.
"""

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from counsel._arrays import Floats, layers, one_type, sealed
from counsel.errors import CounselError
from counsel.model.advice_costs import cost_table, given_cost
from counsel.model.differences import first_difference
from counsel.model.memory import level_rows
from counsel.model.problem import AdviceProblem
from counsel.planning._backward_kernels import Model, find_same, priced
from counsel.planning._choice_kernels import Aim
from counsel.planning._level_kernels import Levels
from counsel.planning.alike_states import kinds_of_states, model_of_kinds
from counsel.planning.constraints import Constraints
from counsel.planning.reachable_cells import Cells, reachable_problem

NEAR_ONE = 0.995
"""With a discount above this, plans keep values relative to one cell (``relative_planner.py``)."""

LOST = 1e-3
"""Accumulated rounding, relative to the largest reward of an episode, in units of TIE."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A problem to plan: all states, their kinds, or only the cells that can occur."""

    model: Model
    start: Floats
    kind_s: NDArray[np.int32] | None = None
    cells: Cells | None = None


@dataclass(frozen=True, eq=False)
class PreparedProblem:
    """The arrays of a problem under constraints; smaller problems are searched for when needed.

    ``problem`` is a copy, since the problem itself holds its constraints and these their arrays.
    ``most_cost`` is the largest cost of a piece; with ``unit_cost`` every piece costs 1.
    ``levels`` say how the level of the person's memory moves. Without end, ``horizon`` is
    1 / (1 − γ), rounded up, and values lose ``lost`` times as many digits. Where γ is near 1, and
    for an average per step, both are 1.
    """

    problem: AdviceProblem
    whole: Part
    levels: Levels
    horizon: int
    reward_size: float
    most_cost: float
    unit_cost: bool
    lost: float = 1.0

    @cached_property
    def kinds(self) -> Part:
        """One state per kind; the whole problem where most states are of a kind of their own."""
        model = self.whole.model
        kind_s = kinds_of_states(model)
        if kind_s is None:
            return self.whole
        start: Floats = np.bincount(kind_s, weights=self.whole.start).astype(np.float64)
        return Part(model_of_kinds(model, kind_s), sealed(start), kind_s=kind_s)

    @cached_property
    def reachable(self) -> Part | None:
        """The cells that can occur; None where most cells can."""
        found = reachable_problem(self.whole.model, self.whole.start, self.horizon)
        return None if found is None else Part(found[0], found[1], cells=found[2])

    @cached_property
    def free(self) -> Aim:
        """The aim to maximise reward, then to spend least: at a price of 0 per unit of cost."""
        most = self.horizon * self.reward_size
        return Aim(
            weight0=1.0,
            price0_h=sealed(np.zeros(1)),
            size0=LOST * self.lost * most,
            most0=max(1.0, LOST * self.lost) * most,
            weight1=0.0,
            price1=1.0,
            size1=self.most_cost,
        )

    @cached_property
    def frugal(self) -> Aim:
        """The aim to maximise reward only among plans that spend least, at a price of 1."""
        return Aim(
            weight0=0.0,
            price0_h=sealed(np.zeros(1)),
            size0=0.0,
            most0=0.0,
            weight1=1.0,
            price1=0.0,
            size1=LOST * self.lost * self.horizon * self.reward_size,
        )

    def at_price(self, aim: Aim, price_h: Floats) -> Aim:
        """Return an aim at a price per unit of cost: one, or one for each step."""
        (price_h,) = one_type((price_h,))
        return priced(aim, self.most_cost, price_h, self.horizon)


_PREPARED: WeakKeyDictionary[Constraints, PreparedProblem] = WeakKeyDictionary()


def prepare(problem: AdviceProblem, constraints: Constraints | None = None) -> PreparedProblem:
    """Return the arrays of a problem, by default without constraints; kept with the constraints."""
    constraints = constraints or Constraints.read(problem)
    if constraints not in _PREPARED:
        most_steps, gamma = problem.n_steps, problem.discount
        if gamma is not None and gamma <= NEAR_ONE:
            most_steps = ceil(1.0 / (1.0 - gamma))
        _PREPARED[constraints] = PreparedProblem(
            problem=copy(problem),
            whole=Part(_model(problem, constraints), problem.mdp.start),
            levels=levels_of(problem),
            horizon=most_steps,
            reward_size=problem.mdp.reward_size,
            most_cost=float(given_cost(problem.cost).max()),
            unit_cost=problem.has_unit_cost,
            lost=1.0 if gamma is None else float(most_steps),
        )
    return _PREPARED[constraints]


def check_planned(problem: AdviceProblem, constraints: Constraints) -> None:
    """Raise if the constraints of a plan are known to be those of another problem."""
    if constraints in _PREPARED:
        difference = first_difference(_PREPARED[constraints].problem, problem)
        if difference is not None:
            raise CounselError(
                f"the plan is for another problem: the two differ in {difference}; give the "
                "problem that was solved, or solve this one"
            )


def model_of(problem: AdviceProblem, constraints: Constraints | None = None) -> Model:
    """Return the arrays of all states."""
    return prepare(problem, constraints).whole.model


def levels_of(problem: AdviceProblem) -> Levels:
    """Return how the level of a person's memory moves, without a hard budget."""
    return Levels(*level_rows(problem.memory), is_hard=False)


def discounted(probability: Floats, discount: float | None) -> Floats:
    """Return probabilities times the discount, if there is one."""
    return probability if discount in (None, 1.0) else sealed(discount * probability)


def _model(problem: AdviceProblem, constraints: Constraints) -> Model:
    kernel, reward, human = problem.mdp.kernel, layers(problem.mdp.reward), problem.human
    tables = (kernel.row, reward, human.policy, constraints.permitted)
    same_ls = np.empty((max(len(table) for table in tables), problem.n_states), dtype=np.int16)
    find_same(*one_type(tables), same_ls)
    model = Model(
        row_lsa=kernel.row,
        first_row_l=kernel.first_row,
        indptr=kernel.indptr,
        next_state=kernel.next_state,
        probability=discounted(kernel.probability, problem.discount),
        reward_lsa=reward,
        policy_lsa=human.policy,
        lift_lsa=np.concatenate(human.level_lift, axis=-1),  # by level, then by action
        pull_lsa=constraints.pull,
        permitted_lsa=constraints.permitted,
        required_ls=constraints.required,
        cost_lsa=cost_table(problem.cost),
        same_ls=same_ls,
    )
    return one_type(model)
