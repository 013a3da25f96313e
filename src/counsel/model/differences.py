"""What differs between two problems: the first thing, by name."""

import numpy as np
from numpy.typing import NDArray

from counsel.model.advice_costs import given_cost
from counsel.model.memory import level_rows
from counsel.model.problem import AdviceProblem

SIZES = {
    "average": "average",
    "discount": "discount",
    "steps": "n_steps",
    "states": "n_states",
    "actions": "n_actions",
    "levels of memory": "n_levels",
}
"""Words for what is compared first, and the attributes that hold it."""


def first_difference(problem: AdviceProblem, other: AdviceProblem) -> str | None:
    """Return the name of the first thing in which two problems differ; None if they are the same.

    Labels and the law of rewards do not count: plans are the same without them.
    """
    if problem is other:
        return None
    for word, name in SIZES.items():
        mine, theirs = getattr(problem, name), getattr(other, name)
        if mine != theirs:
            return f"{word} ({mine} and {theirs})"
    tables = zip(_tables(problem), _tables(other), strict=True)
    for (name, mine_of), (_, theirs_of) in tables:
        if not all(map(_same, mine_of, theirs_of)):
            return name
    return None


def _same(mine: NDArray[np.generic], theirs: NDArray[np.generic]) -> bool:
    return mine is theirs or np.array_equal(mine, theirs)


def _tables(problem: AdviceProblem) -> list[tuple[str, tuple[NDArray[np.generic], ...]]]:
    """Return the tables of a problem with their names, in the order in which they are compared."""
    mdp, human, kernel = problem.mdp, problem.human, problem.mdp.kernel
    rows = (kernel.row, kernel.first_row, kernel.indptr, kernel.next_state, kernel.probability)
    return [
        ("start", (mdp.start,)),
        ("rewards", (mdp.reward,)),
        ("allowed actions", (mdp.allowed,)),
        ("transitions", rows),
        ("habit", (human.policy,)),
        ("lift", tuple(human.level_lift)),
        ("memory", (*level_rows(problem.memory), np.array(problem.level_of(None)))),
        ("cost", (given_cost(problem.cost),)),
    ]
