"""A plan for one person, with the numbers that explain it."""

from dataclasses import dataclass

from counsel._arrays import Floats
from counsel.learning.population import PersonPlan, Population
from counsel.planning.criticality import criticality
from counsel.planning.gains import gains

RANKED = 20_000
"""Up to this many cells the criticality of each is computed with a plan."""


@dataclass(frozen=True, slots=True, eq=False)
class ExplainedPlan(PersonPlan):
    """A plan for one person, and what is needed to explain its advice.

    Attributes
    ----------
    advantage, gain
        [h, s, a] at the plan's price; under a hard budget with all pieces left.
    criticality
        [h, s]: the largest penalty at which advice still pays; None in worlds of many cells.
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
        return 3 * self.gain.nbytes + self.plan.values.nbytes


def explain_plan(
    population: Population, person_plan: PersonPlan, episodes: int = 0
) -> ExplainedPlan:
    """Return a plan with its advantages, gains and criticalities."""
    problem, plan = person_plan.problem, person_plan.plan
    advantage, gain = gains(problem, plan.values[-1] if plan.hard else plan.values)
    upper = None
    if problem.horizon * problem.n_states <= RANKED:
        upper = criticality(problem, forbidden=population.forbidden, allow_reverse=False).upper
    estimate, decisions = person_plan.estimate, person_plan.decisions
    return ExplainedPlan(estimate, problem, plan, decisions, advantage, gain, upper, episodes)
