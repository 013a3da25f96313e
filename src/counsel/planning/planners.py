"""The planner of a problem: with a horizon, with the levels of a memory, or without end."""

from counsel.model.problem import AdviceProblem
from counsel.planning.average import AveragePlanner
from counsel.planning.backward import Planner
from counsel.planning.constraints import Constraints
from counsel.planning.discounted import DiscountedPlanner
from counsel.planning.level_planner import LevelPlanner, check_size
from counsel.planning.prepared_problem import NEAR_ONE
from counsel.planning.relative_planner import LongDiscountPlanner

AnyPlanner = Planner | LevelPlanner | DiscountedPlanner
"""Planners with relative values are a ``DiscountedPlanner``, too."""


def planner_for(
    problem: AdviceProblem,
    constraints: Constraints,
    *,
    threads: int | None = None,
    search: bool = False,
) -> AnyPlanner:
    """Return a planner without a hard budget."""
    if problem.average:
        return AveragePlanner(problem, constraints, threads=threads)
    if problem.discount is not None and problem.discount > NEAR_ONE:
        return LongDiscountPlanner(problem, constraints, threads=threads)
    if problem.discount is not None:
        return DiscountedPlanner(problem, constraints, threads=threads)
    return horizon_planner(problem, constraints, threads=threads, search=search)


def horizon_planner(
    problem: AdviceProblem,
    constraints: Constraints,
    *,
    threads: int | None = None,
    search: bool = False,
) -> Planner | LevelPlanner:
    """Return a planner without a hard budget for a problem that has a horizon."""
    if problem.memory is None:
        return Planner(problem, constraints, threads=threads, search=search)
    check_size(problem)
    return LevelPlanner(problem, constraints, search=search)
