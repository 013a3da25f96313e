"""Plans for a person with a memory: the level is part of the state.

With Q⁰, Q⁺ and Q⁻ the values of the person's action after silence, a match and a refusal, which
differ in the level that follows,

    silence     d⁰ = Σ_a π(a) Q⁰(a)
    advice b    (1 − λ) Σ_{a≠b} π(a) Q⁻(a)  +  (λ + (1 − λ) π(b)) Q⁺(b)  −  price
                  = d⁰ + lift × advantage − burden − price

where the advantage is Q⁺(b) − B(b) and the burden d⁰ − B(b). B(b) = Σ_{a≠b} π(a) Q⁻(a) + π(b) Q⁺(b)
is what the person's own choice is worth once b was said. The burden is what speaking costs later.

The levels that can follow are few: the rows of the three matrices, each stored once. Expectations
are computed once per row of levels, so the time grows with their number M, not with M².
"""

import math
import os
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from counsel._arrays import Floats
from counsel.errors import CounselError
from counsel.model.policy import Policy
from counsel.model.problem import AdviceProblem
from counsel.model.random_cells import Advice
from counsel.planning._backward_kernels import Model, expect_start
from counsel.planning._choice_kernels import Aim
from counsel.planning._hard_budget_kernels import plan_back_hard
from counsel.planning._level_kernels import (
    BLOCK,
    Levels,
    Space,
    catch_up_levels,
    plan_back_levels,
)
from counsel.planning.backward import PricedPlanner
from counsel.planning.constraints import Constraints
from counsel.planning.prepared_problem import Part, PreparedProblem, prepare


def _memory_of_machine() -> float:
    """Return the bytes of memory that this machine has; infinity where it does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return math.inf


MOST_BYTES = min(2.0**35, _memory_of_machine())
"""A plan that takes more memory is refused."""

_T = TypeVar("_T", bound=np.generic)


class LevelPlanner(PricedPlanner):
    """Plans one problem repeatedly on planes: one for each budget left and level of memory.

    With ``search`` only the cells that can occur are planned, where they are few; then there are no
    ``values`` and ``advice``. ``budget`` is a hard budget, None for none. ``prepared`` are the
    arrays to plan on, by default those of the problem.
    """

    def __init__(
        self,
        problem: AdviceProblem,
        constraints: Constraints,
        *,
        search: bool = False,
        budget: int | None = None,
        prepared: PreparedProblem | None = None,
    ) -> None:
        self.problem = problem
        self.constraints = constraints
        self.prepared = prepared or prepare(problem, constraints)
        self.part: Part = (search and self.prepared.reachable) or self.prepared.kinds
        self.levels: Levels = self.prepared.levels._replace(is_hard=budget is not None)
        self.budget = budget
        K, M = 1 if budget is None else budget + 1, problem.n_levels
        H, S = problem.horizon, self.part.start.size
        self._V_hps: Floats = np.empty((H + 1, K * M, S))
        self._second_jps: Floats = np.empty((2, K * M, S))
        self._advice_phs: Advice = np.empty((K * M, H, S), dtype=np.int16)
        self._space = space_of(self.part.model, self.levels, self.prepared.most_cost, K)

    @property
    def values(self) -> Floats:
        """The first values of the last plan: [h, s], before it the budget left and the level."""
        return self._shaped(self._V_hps.swapaxes(0, 1))

    @property
    def advice(self) -> Advice:
        """The advice of the last plan, in the shape of ``values``."""
        return self._shaped(self._advice_phs)

    def _shaped(self, table_phs: NDArray[_T]) -> NDArray[_T]:
        if self.part.cells is not None:
            raise AssertionError("only the cells that can occur were planned")
        if self.part.kind_s is not None:
            table_phs = table_phs.take(self.part.kind_s, axis=2, mode="clip")
        axes: tuple[int, ...] = () if self.budget is None else (self.budget + 1,)
        axes += () if self.problem.memory is None else (self.problem.n_levels,)
        return np.ascontiguousarray(table_phs).reshape(*axes, *table_phs.shape[1:])

    def policy(self) -> Policy:
        """Return the policy of the last plan."""
        levels = None if self.problem.memory is None else self.problem.n_levels
        advice = self.advice if self.part.kind_s is not None else self.advice.copy()
        return Policy.trusted(advice, n_actions=self.problem.n_actions, levels=levels)

    def run(
        self, aim: Aim, price_nh: Floats, *, with_second: bool = True
    ) -> list[tuple[float, float]]:
        """Plan for ``aim`` at each price, the last of which stays.

        Returns the first value at the start and, if wanted, the second, at each price.
        """
        results, tables = [], (self._V_hps, self._second_jps, self._advice_phs)
        for price_h in price_nh:
            priced = self.prepared.at_price(aim, price_h)
            plan = (self.part.model, self.levels, priced, self._space, tables)
            if self.budget is None:
                plan_back_levels(*plan, with_second)
            else:
                plan_back_hard(*plan)
            results.append(self.start_values()[-1])
        return results

    def start_values(self) -> list[tuple[float, float]]:
        """Return both values of the last plan from the start, for each budget left."""
        first, M = self.problem.level_of(None), self.problem.n_levels
        starts = np.flatnonzero(self.part.start)
        share_s, here = self.part.start[starts], (slice(first, None, M), starts)
        tables = (self._V_hps[0], self._second_jps[0])
        firsts, seconds = ((table_ps[here] @ share_s).tolist() for table_ps in tables)
        return list(zip(firsts, seconds, strict=True))

    def evaluate(self, weight: float, price: float) -> float:
        """Return weight · reward − price · cost of the last plan, from the start."""
        V_jps = np.zeros_like(self._second_jps)
        steps, terms = (self.problem.horizon, 0), (weight, price)
        catch_up_levels(
            self.part.model, self.levels, terms, steps, self._advice_phs, self._space, V_jps
        )
        plane = len(self._advice_phs) - self.problem.n_levels + self.problem.level_of(None)
        return expect_start(self.part.start, V_jps[0, plane])


def space_of(model: Model, levels: Levels, most_cost: float, budgets: int) -> Space:
    """Return working space for ``budgets`` planes per level."""
    rows, (_, S, A) = int(np.diff(model.first_row_l).max()), model.policy_lsa.shape
    B, D = model.pull_lsa.shape[2], levels.indptr.size - 1
    kept = min(int(most_cost), budgets) + 1 if levels.is_hard else 1
    side = 1 if levels.after_cm.shape[1] == 1 else -(-D // BLOCK) * BLOCK
    return Space(
        V_sd=np.zeros((S, side)),
        E_jrd=np.zeros((kept, rows, side)),
        followed_jrd=np.zeros((kept, rows, side)),
        E_jdr2=np.zeros((kept, D, rows, 2)),
        mixed_s2=np.zeros((S, 2)),
        q_2a=np.zeros((2, A)),
        value_2b=np.zeros((2, B)),
    )


def check_size(problem: AdviceProblem, budget: int = 0, planes: int = 1) -> None:
    """Raise if a plan for a hard budget, with planes for each budget left, would not fit."""
    M, H, S = problem.n_levels, problem.horizon, problem.n_states
    size = 8.0 * planes * M * S * (2 * H + 5)
    if size <= MOST_BYTES:
        return
    sizes, gigabytes = f"{H} × {S} cells", f"{size / 2**30:.0f} GB"
    if problem.memory is None:
        raise CounselError(
            f"a hard budget of {budget} takes a plan of {planes} × {sizes}, {gigabytes}; give a "
            "smaller budget, or costs in larger units"
        )
    hard = "" if planes == 1 else f"{planes} budgets × "
    raise CounselError(
        f"a memory of {M:,} levels takes a plan of {hard}{M:,} levels × {sizes}, {gigabytes}; give "
        "a memory with fewer levels"
    )


def check_evaluation_size(problem: AdviceProblem, planes: int = 1) -> None:
    """Raise if the evaluation of a policy with planes for each budget left would not fit."""
    M, H, S = problem.n_levels, problem.horizon, problem.n_states
    size = 8.0 * M * S * (H + 2 * planes)
    if problem.memory is not None and size > MOST_BYTES:
        raise CounselError(
            f"a memory of {M:,} levels takes an evaluation of {M:,} levels × {H} × {S} cells, "
            f"{size / 2**30:.0f} GB; give a memory with fewer levels"
        )
