"""The people of a team, as ``share`` takes them: problems or frontiers, with a count each."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from counsel._arrays import Ints, brief
from counsel.errors import CounselError
from counsel.model.problem import AdviceProblem
from counsel.model.team_policy import read_counts
from counsel.planning.constraints import Constraints
from counsel.planning.frontier import Frontier

People = Sequence[AdviceProblem | Frontier]


def read_people(
    people: People, counts: ArrayLike | None
) -> tuple[list[tuple[AdviceProblem, Constraints]], Ints]:
    """Return the problem and the constraints of every entry, and how many people are like it."""
    if not isinstance(people, Sequence) or isinstance(people, str):
        raise CounselError(f"people is {brief(people)}; give a list of problems or frontiers")
    if not people:
        raise CounselError("people is empty; a team has at least one person")
    team = []
    for i, person in enumerate(people):
        if isinstance(person, Frontier):
            team.append((person.problem, person.constraints))
        elif isinstance(person, AdviceProblem):
            team.append((person, Constraints.read(person)))
        else:
            raise CounselError(f"people[{i}] is {brief(person)}; give a problem or a frontier")
    return team, read_counts(counts, len(people))


def check_same_sums(problems: Sequence[AdviceProblem]) -> None:
    """Raise if some people count averages per step and others sums."""
    other = next((i for i, p in enumerate(problems) if p.average != problems[0].average), None)
    if other is not None:
        kinds = [problems[i].mdp.kind_of_work for i in (0, other)]
        raise CounselError(
            f"people[0] has {kinds[0]} and people[{other}] has {kinds[1]}; a budget is per step or "
            "per episode, so give everybody an average or nobody"
        )


def check_same_horizon(problems: Sequence[AdviceProblem]) -> int:
    """Return the horizon that all people share."""
    endless = next((i for i, problem in enumerate(problems) if problem.discount is not None), None)
    if endless is not None:
        raise CounselError(
            f"people[{endless}] has {problems[endless].mdp.kind_of_work}; a limit per step needs "
            "a horizon, so give a budget or people with a horizon"
        )
    horizons = np.array([problem.horizon for problem in problems])
    other = int((horizons != horizons[0]).argmax())
    if other:
        raise CounselError(
            f"people[0] has {horizons[0]} steps and people[{other}] has {horizons[other]}; people "
            "who share pieces at each step need the same horizon"
        )
    return int(horizons[0])
