"""What it is worth to plan for a memory, in the model that has it."""

from dataclasses import dataclass

from counsel.logs.plan import LogPlan, best_plan
from counsel.planning.evaluate import evaluate


@dataclass(frozen=True, slots=True)
class MemoryWorth:
    """The value per episode of a plan that knows of a memory, and of one that is blind to it.

    Both are those in the model with the memory. The blind plan is the best within the same limit on
    the model without a memory, whose lifts are averages over all levels of the log.
    """

    value: float
    pieces: float
    blind_value: float
    blind_pieces: float
    gain: float  # what it is worth to know of the memory, after the penalty if there is one


def memory_worth(plan: LogPlan) -> MemoryWorth | None:
    """Return what it is worth to plan for a memory; None if the model has none."""
    fit = plan.fit
    if fit.problem.memory is None:
        return None
    plain = fit.estimate(fit.tally.without_levels()).problem
    best, blind = plan.plan, evaluate(fit.problem, best_plan(plan, plain).policy)
    spent = best.advice_cost - blind.advice_cost
    penalty = best.penalty if isinstance(best.penalty, float) else 0.0
    gain = best.value - blind.value - penalty * spent
    return MemoryWorth(best.value, best.advice_count, blind.value, blind.advice_count, gain)
