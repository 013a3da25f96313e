"""A plan for one person, with the numbers that explain it."""

from dataclasses import dataclass

from counsel._arrays import Floats
from counsel.learning.population import PersonPlan, Population
from counsel.planning.criticality import criticality
from counsel.planning.gains import gains, level_gains

RANKED = 20_000
"""Up to this many cells the criticality of each is computed with a plan."""


@dataclass(frozen=True, slots=True, eq=False)
class ExplainedPlan(PersonPlan):
    """A plan for one person, and what is needed to explain its advice.

    Attributes
    ----------
    advantage, gain
        [h, s, a] at the plan's price; under a hard budget with all pieces left, and with a memory
        on its start level.
    criticality
        [h, s], with a memory [m, h, s]: the largest penalty at which advice still pays; None in
        worlds of many cells.
    episodes
        Episodes whose pieces were known when the plan was made, where a budget is paced.
    """

    advantage: Floats
    gain: Floats
    criticality: Floats | None
    episodes: int = 0

    @property
    def size(self) -> int:
        """Bytes of memory, about."""
        ranked = 0 if self.criticality is None else self.criticality.nbytes
        return 3 * self.gain.nbytes + self.plan.values.nbytes + ranked

    def criticality_at(self, step: int, state: int, level: int | None = None) -> float | None:
        """Return the criticality of a cell on a level, by default the start; None if unknown."""
        if self.criticality is None:
            return None
        if self.problem.memory is None:
            return float(self.criticality[step, state])
        return float(self.criticality[self.problem.level_of(level), step, state])


def explain_plan(
    population: Population, person_plan: PersonPlan, episodes: int = 0
) -> ExplainedPlan:
    """Return a plan with its advantages, gains and criticalities."""
    problem, plan = person_plan.problem, person_plan.plan
    values = plan.values[-1] if plan.hard else plan.values
    if problem.memory is None:
        advantage, gain = gains(problem, values)
    else:
        advantage, gain = level_gains(problem, values, problem.memory.start)
    upper = None
    if problem.n_levels * problem.horizon * problem.n_states <= RANKED:
        upper = criticality(problem, forbidden=population.forbidden, allow_reverse=False).upper
    estimate, decisions = person_plan.estimate, person_plan.decisions
    return ExplainedPlan(estimate, problem, plan, decisions, advantage, gain, upper, episodes)
