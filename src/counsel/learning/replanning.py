"""Plans that are made again and again as the bounds of adherence change.

A plan holds ``pull``, the lift of every piece of advice that may be given and moves the person, NaN
elsewhere; its owner changes these lifts and asks for advice. ``SmallPlan`` plans cells one by one
and again only where something has changed: the cells that can occur where these are few, as on a
map crossed from left to right, or all cells of a small world. ``LargePlan`` plans all cells on the
world's shared rows. ``TwoSidedPlan`` plans for the better end of an interval of each lift. Plans
for a person with a memory are in ``level_plan.py``.
"""

from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counsel._arrays import Floats, layers, one_type, unlayered
from counsel.errors import CounselError
from counsel.learning.charges import Penalty, net_value
from counsel.learning.double_actions import double_actions
from counsel.model.human import Human
from counsel.model.mdp import MDP
from counsel.model.memory import Memory
from counsel.model.policy import Policy
from counsel.model.problem import AdviceProblem
from counsel.model.random_cells import Advice
from counsel.planning._backward_kernels import plan_back
from counsel.planning._cell_kernels import CellPlan, replan_cells, value_cells
from counsel.planning.backward import Planner
from counsel.planning.constraints import Constraints
from counsel.planning.evaluate import evaluate
from counsel.planning.prepared_problem import prepare
from counsel.planning.reachable_cells import Cells, all_cells, cell_world
from counsel.planning.solve import solve

_T = TypeVar("_T", bound=np.generic)


class AdvicePlan(Protocol):
    """A plan for lifts that change."""

    @property
    def pull(self) -> Floats:
        """The lifts, or their upper ends, as one row that can be written to."""

    @property
    def push(self) -> Floats | None:
        """The lower ends in the order of ``pull``, or None if a plan takes upper ends only.

        They are NaN where an end is of no use.
        """

    def aligned(self, table_lsa: NDArray[_T]) -> NDArray[_T]:
        """Return the numbers of a table [layer, s, a] in the order of ``pull``.

        For a person with a memory the table is [layer, s, level · A + a].
        """

    def lifts(self) -> Floats:
        """Return the lifts [s, a], [h, s, a] or [m, h, s, a]; 0 for advice that is left out."""

    def set_rewards(self, reward_lsa: Floats) -> None:
        """Replace the rewards [layer, s, a]."""

    def advise(self) -> Advice:
        """Plan; return the advice [h, s] or [m, h, s]. Cells that cannot occur stay silent."""

    @property
    def cells(self) -> CellPlan | None:
        """The arrays of the plan for compiled loops; None if the world is too large for them."""


def plan_for(mdp: MDP, own_lsa: Floats, *, penalty: ArrayLike, cost: ArrayLike = 1.0) -> AdvicePlan:
    """Return a plan for a person of whom only the policy [layer, s, a] is known.

    ``penalty`` is one number per unit of cost, or one for each step.
    """
    stationary = len(own_lsa) == 1
    person = Human(own_lsa[0], 1.0) if stationary else Human(own_lsa, np.ones(own_lsa.shape))
    problem, penalty_h = AdviceProblem(mdp, person, np.asarray(cost)), np.atleast_1d(penalty)
    planner = Planner(problem, Constraints.read(problem), threads=1, search=True)
    cells = planner.part.cells or all_cells(mdp)
    if cells is None:
        return LargePlan(planner, penalty_h)
    return SmallPlan(problem, cells, penalty_h)


def within_budget(  # noqa: PLR0913 (the world, the person and the limit)
    plan: AdvicePlan,
    mdp: MDP,
    own_lsa: Floats,
    cost: Floats,
    budget: float,
    memory: Memory | None = None,
) -> Policy:
    """Return the best policy for the lifts of a plan within an expected budget."""
    person = Human(unlayered(own_lsa), lift=plan.lifts(), memory=memory)
    problem = AdviceProblem(mdp, person, cost)
    return silence_unexpected(problem, solve(problem, budget=budget).policy)


def silence_unexpected(problem: AdviceProblem, policy: Policy) -> Policy:
    """Return the policy, silent in all cells that it does not expect to reach.

    The learnt model may be wrong about where people get, and advice there is not in the budget.
    """
    occupancy_hms = evaluate(problem, policy).level_occupancy
    never_mhs = occupancy_hms.swapaxes(0, 1) == 0.0
    return policy.silent_where(never_mhs.all(axis=0) if policy.levels is None else never_mhs)


class SmallPlan:
    """A plan of cells; after a change only the cells that it affects are planned again."""

    push = None

    def __init__(self, problem: AdviceProblem, cells: Cells, penalty_h: Floats) -> None:
        H, S, A = problem.policy.shape
        world, prepared = cell_world(problem, cells), prepare(problem)
        # No array here is read-only: copies, pickled ones too, never are, and kernels would be
        # compiled anew for them.
        aim = prepared.at_price(prepared.free, penalty_h)._replace(price0_h=np.array(penalty_h))
        moves = world.allowed_ca & (problem.lift[cells.step, cells.states] != 0.0)
        self.cells = CellPlan(
            world=world,
            aim=aim,
            pull_ca=np.where(moves, 1.0, np.nan),
            planned_ca=np.full(moves.shape, np.nan),
            stale_c=np.ones(len(moves), dtype=np.bool_),
            V_c2=np.zeros((len(moves) + 1, 2)),
            q_2a=np.empty((2, A)),
            step_c=cells.step,
            state_c=cells.states,
            advice_hs=np.full((H, S), A, dtype=np.int16),
        )

    @property
    def pull(self) -> Floats:
        return self.cells.pull_ca.reshape(-1)

    def aligned(self, table_lsa: NDArray[_T]) -> NDArray[_T]:
        step = self.cells.step_c if len(table_lsa) > 1 else 0
        chosen: NDArray[_T] = table_lsa[step, self.cells.state_c]
        return chosen.reshape(-1)

    def lifts(self) -> Floats:
        H, S = self.cells.advice_hs.shape
        lift = np.zeros((H, S, self.cells.pull_ca.shape[1]))
        lift[self.cells.step_c, self.cells.state_c] = np.nan_to_num(self.cells.pull_ca)
        return lift

    def set_rewards(self, reward_lsa: Floats) -> None:
        reward_ca = self.cells.world.reward_ca
        reward_ca[:] = self.aligned(reward_lsa).reshape(reward_ca.shape)
        self.cells.stale_c[:] = True

    def advise(self) -> Advice:
        replan_cells(self.cells)
        return np.array(self.cells.advice_hs)


class TrueOutcome:
    """The expected outcome of the advice in a plan of cells, for the truth.

    Where few cells can occur only they are evaluated, which is faster than ``evaluate``.
    """

    def __init__(self, plan: CellPlan, problem: AdviceProblem, penalty: Penalty) -> None:
        self._plan, self._problem, self._penalty = plan, problem, penalty
        self._lift_ca = np.ascontiguousarray(problem.lift[plan.step_c, plan.state_c])
        cost_ca = np.ascontiguousarray(problem.cost[plan.step_c, plan.state_c])
        self._piece_ca, self._charge_ca, self._factor = np.ones(cost_ca.shape), cost_ca, 1.0
        if isinstance(penalty, np.ndarray):
            self._charge_ca = penalty[plan.step_c, None] * cost_ca
        else:
            self._factor = penalty
        self._charges_pieces = bool((self._charge_ca == 1.0).all())

    def now(self) -> tuple[float, float]:
        """Return the expected reward less the charge for advice, and the pieces of advice."""
        plan = self._plan
        C, A = plan.pull_ca.shape
        if plan.advice_hs.size <= C:
            advice: Advice = np.array(plan.advice_hs, dtype=np.int16)
            evaluation = evaluate(self._problem, Policy.trusted(advice, n_actions=A))
            return net_value(evaluation, self._penalty), evaluation.advice_count
        value, pieces = value_cells(plan, self._lift_ca, self._piece_ca)
        charged = pieces
        if not self._charges_pieces:
            _, charged = value_cells(plan, self._lift_ca, self._charge_ca)
        return value - self._factor * charged, pieces


class LargePlan:
    """A plan of all cells on the world's shared rows."""

    push = None
    cells = None

    def __init__(self, planner: Planner, penalty_h: Floats) -> None:
        self.planner = planner
        self.price_nh = np.array(penalty_h)[None]
        # Rewards and lifts change: no two actions of a cell stay the same for sure.
        n_states = planner.problem.n_states
        same_ls = np.full((1, n_states), -1, dtype=np.int16)
        self.model = planner.prepared.whole.model._replace(same_ls=same_ls)
        pull, allowed = self.model.pull_lsa, layers(planner.problem.mdp.allowed)
        whole = np.broadcast_to(pull, np.broadcast_shapes(pull.shape, allowed.shape))
        self.pull_lsa = np.array(whole, order="C")
        self.reward_lsa = np.array(self.model.reward_lsa, order="C")
        H, S, _ = planner.problem.policy.shape
        self.V_hs = np.empty((H + 1, S))

    @property
    def pull(self) -> Floats:
        return self.pull_lsa.reshape(-1)

    def aligned(self, table_lsa: NDArray[_T]) -> NDArray[_T]:
        return np.broadcast_to(table_lsa, self.pull_lsa.shape).reshape(-1)

    def lifts(self) -> Floats:
        return unlayered(np.nan_to_num(self.pull_lsa))

    def set_rewards(self, reward_lsa: Floats) -> None:
        self.reward_lsa[:] = reward_lsa

    def advise(self) -> Advice:
        H, S, _ = self.planner.problem.policy.shape
        advice: Advice = np.empty((H, S), dtype=np.int16)
        model = self.model._replace(pull_lsa=self.pull_lsa, reward_lsa=self.reward_lsa)
        prepared, start = self.planner.prepared, self.planner.problem.mdp.start
        out = (self.V_hs, advice, np.empty((1, 2)))
        limits = (prepared.free, prepared.most_cost, *one_type((self.price_nh,)))
        plan_back(one_type(model), *limits, start, out, False)  # noqa: FBT003 (a kernel)
        return advice


class TwoSidedPlan:
    """A plan for the better end of each interval of lifts: Q^M is linear in the lift.

    ``pull`` holds upper ends and ``push`` lower ends. In the plan within, each action stands twice,
    the first time with probability 0: advice a there means a with its upper end, and A + a means a
    with its lower end, which pays where a is worse than what the person does alone and the advice
    repels. The habit belongs to the second: a lower end may be far below 0, and ``gain`` keeps its
    digits where the action advised is almost certain.
    """

    cells = None

    def __init__(
        self, mdp: MDP, own_lsa: Floats, *, penalty: ArrayLike, cost: ArrayLike = 1.0
    ) -> None:
        own, cost = np.concatenate((np.zeros(own_lsa.shape), own_lsa), axis=2), np.asarray(cost)
        twice = np.concatenate((cost, cost), axis=-1) if cost.ndim else cost
        self.within = plan_for(double_actions(mdp), own, penalty=penalty, cost=twice)
        self._n_actions = mdp.n_actions
        self.pull = np.full(self.within.pull.size // 2, np.nan)
        self.push = np.full(self.within.pull.size // 2, np.nan)

    def aligned(self, table_lsa: NDArray[_T]) -> NDArray[_T]:
        both = self.within.aligned(np.concatenate((table_lsa, table_lsa), axis=2))
        return both.reshape(-1, 2 * self._n_actions)[:, : self._n_actions].reshape(-1)

    def lifts(self) -> Floats:
        raise CounselError("a plan for two ends of each lift goes with a penalty, not a budget")

    def set_rewards(self, reward_lsa: Floats) -> None:
        self.within.set_rewards(np.concatenate((reward_lsa, reward_lsa), axis=2))

    def advise(self) -> Advice:
        A = self._n_actions
        pulls = self.within.pull.reshape(-1, 2 * A)
        pulls[:, :A], pulls[:, A:] = self.pull.reshape(-1, A), self.push.reshape(-1, A)
        advice = self.within.advise()
        return np.where(advice == 2 * A, A, advice % A).astype(np.int16)
