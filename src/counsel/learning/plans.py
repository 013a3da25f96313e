"""Plans that are made again and again for changing bounds of adherence.

A plan holds ``pull``, the lift of every piece of advice that may be given and moves the person, NaN
elsewhere; whoever owns the plan changes it and asks for advice. Where few cells can occur, as on a
map crossed from left to right, ``SmallPlan`` plans only those. Else ``LargePlan`` plans all cells
on the world's shared rows.
"""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from counsel._arrays import Floats
from counsel.model.human import Human
from counsel.model.policy import Advice
from counsel.model.problem import AdviceProblem, Setting
from counsel.planning._cell_kernels import plan_cells
from counsel.planning._kernels import plan_back
from counsel.planning.backward import Planner, penalised
from counsel.planning.cells import cell_world
from counsel.planning.reach import Cells
from counsel.planning.rules import Rules

_T = TypeVar("_T", bound=np.generic)


def plan_for(setting: Setting, own_lsa: Floats, *, penalty: float) -> "SmallPlan | LargePlan":
    """Return a plan for a person of whom only the policy [layer, s, a] is known."""
    one = len(own_lsa) == 1
    listens = Human(own_lsa[0], 1.0) if one else Human(own_lsa, np.ones(own_lsa.shape))
    problem = AdviceProblem(setting.mdp, listens)
    rules = Rules.read(problem, forbidden=None, required=None, allow_reverse=True)
    planner = Planner(problem, rules, threads=1, search=True)
    if planner.cells is None:
        return LargePlan(planner, penalty=penalty)
    return SmallPlan(problem, planner.cells, penalty=penalty)


class SmallPlan:
    """A plan of the cells that can occur."""

    def __init__(self, problem: AdviceProblem, cells: Cells, *, penalty: float) -> None:
        self.cells = cells
        self.world = cell_world(problem.mdp, problem.policy, cells)
        self.aim = penalised(problem, penalty)
        C, A = self.world.own_ca.shape
        moves = self.world.open_ca & (problem.lift[cells.step, cells.states] != 0.0)
        self.pull_ca = np.where(moves, 1.0, np.nan)
        self.V_c2, self.q_2a = np.empty((C + 1, 2)), np.empty((2, A))
        self.advice_c: Advice = np.full(C, A, dtype=np.int16)
        self.shape = problem.policy.shape

    @property
    def pull(self) -> Floats:
        """All pulls in one row."""
        return self.pull_ca.reshape(-1)

    def aligned(self, table_lsa: NDArray[_T]) -> NDArray[_T]:
        """Return the numbers of a table [layer, s, a] in the order of ``pull``."""
        step = self.cells.step if len(table_lsa) > 1 else 0
        chosen: NDArray[_T] = table_lsa[step, self.cells.states]
        return chosen.reshape(-1)

    def lifts(self) -> Floats:
        """Return the lifts [h, s, a]; 0 for advice left out and in cells that cannot occur."""
        lift = np.zeros(self.shape)
        lift[self.cells.step, self.cells.states] = np.nan_to_num(self.pull_ca)
        return lift

    def advise(self) -> Advice:
        """Plan; return the advice [h, s]. Cells that cannot occur stay silent."""
        plan_cells(self.world, self.aim, self.pull_ca, self.V_c2, self.q_2a, self.advice_c)
        H, S, A = self.shape
        advice: Advice = np.full((H, S), A, dtype=np.int16)
        advice[self.cells.step, self.cells.states] = self.advice_c
        return advice


class LargePlan:
    """A plan of all cells."""

    def __init__(self, planner: Planner, *, penalty: float) -> None:
        self.planner = planner
        self.aim = penalised(planner.problem, penalty)
        self.pull_lsa = np.array(planner.model.pull_lsa)
        self.model = planner.model._replace(pull_lsa=self.pull_lsa)
        H, S, _ = planner.problem.policy.shape
        rows = int(np.diff(self.model.first_row_l).max())
        self.E_r2, self.both_s2 = np.empty((rows, 2)), np.empty((2, S, 2))
        self.V_hs = np.empty((H + 1, S))

    @property
    def pull(self) -> Floats:
        """All pulls in one row."""
        return self.pull_lsa.reshape(-1)

    def aligned(self, table_lsa: NDArray[_T]) -> NDArray[_T]:
        """Return the numbers of a table [layer, s, a] in the order of ``pull``."""
        return np.broadcast_to(table_lsa, self.pull_lsa.shape).reshape(-1)

    def lifts(self) -> Floats:
        """Return the lifts [s, a] or [h, s, a]; 0 for advice that is left out."""
        lift = np.nan_to_num(self.pull_lsa)
        return lift if len(lift) > 1 else lift[0]

    def advise(self) -> Advice:
        """Plan; return the advice [h, s]."""
        H, S, _ = self.planner.problem.policy.shape
        advice: Advice = np.empty((H, S), dtype=np.int16)
        plan_back(self.model, self.aim, self.E_r2, self.V_hs, self.both_s2, advice)
        return advice
