"""Whom to advise now: people with their cells, ranked by criticality.

The criticality of a cell is the largest price at which advice there still pays, so the people with
the largest criticalities are worth the pieces at hand. The price of a piece is the criticality of
whoever just misses one; the gains and the reasons are those of the plan at that price. People with
equal criticalities are drawn at random.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from counsel._arrays import whole
from counsel.errors import CounselError
from counsel.model.problem import AdviceProblem
from counsel.planning.criticality import Criticality, criticality
from counsel.planning.explain import Explanation, explain
from counsel.planning.plan import Plan
from counsel.planning.solve import solve

SAME = 1e-9
"""Criticalities that differ by less than this share of the largest are equal."""


class Cell(NamedTuple):
    """Where a person is: the step, the state and the level of their memory (0 without one)."""

    step: int
    state: int
    level: int


class Ranked(NamedTuple):
    """One person of a ranking: their row in the input, what to say (None: nothing), and why."""

    row: int
    advice: int | None
    explanation: Explanation

    @property
    def criticality(self) -> float:
        """The largest price at which advice to them still pays."""
        return self.explanation.criticality[0]


class Ranking(NamedTuple):
    """People in the order in which they should be advised, and the price of a piece."""

    people: list[Ranked]
    price: float


def rank_cells(
    problem: AdviceProblem,
    cells: Sequence[Cell],
    *,
    pieces: int,
    rng: np.random.Generator,
    allow_reverse: bool = False,
) -> Ranking:
    """Rank people by their cells, and give advice to the first ``pieces`` for whom it pays."""
    k = whole("pieces", pieces, least=1)
    if not problem.has_unit_cost:
        raise CounselError("pieces cost other than 1; a ranking counts pieces, so give each cost 1")
    critical = criticality(problem, allow_reverse=allow_reverse)
    urgency = np.array([_urgency(critical, cell, problem) for cell in cells])
    near = SAME * float(urgency.max(initial=0.0))
    rounded = np.round(urgency / near) if near > 0.0 else urgency
    order = np.lexsort((rng.random(len(cells)), -rounded))
    last = urgency[order[min(k, len(cells)) - 1]] if cells else 0.0
    price = float(urgency[urgency < last - near].max(initial=0.0))
    plan = solve(problem, penalty=price, allow_reverse=allow_reverse)
    known: dict[Cell, Explanation] = {}
    people, given = list[Ranked](), 0
    for i in order.tolist():
        cell = cells[i]
        if cell not in known:
            known[cell] = _explain(problem, plan, cell, critical)
        why = known[cell]
        is_advised = given < k and urgency[i] > near and why.advice is not None
        given += is_advised
        people.append(Ranked(i, why.advice if is_advised else None, why))
    return Ranking(people, price)


def _urgency(critical: Criticality, cell: Cell, problem: AdviceProblem) -> float:
    at = (cell.level, cell.step, cell.state) if problem.memory else (cell.step, cell.state)
    return float(critical.lower[at])


def _explain(problem: AdviceProblem, plan: Plan, cell: Cell, critical: Criticality) -> Explanation:
    level = cell.level if problem.memory else None
    return explain(
        problem, plan, step=cell.step, state=cell.state, level=level, criticality=critical
    )
