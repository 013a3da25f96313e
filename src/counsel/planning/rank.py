"""Whom to advise now: people with their cells, ranked by criticality.

The criticality of a cell is the largest price at which advice there still pays, so the people with
the largest criticalities are worth the pieces at hand. The price of a piece is the criticality of
the first person who gets none; the gains and the reasons are those of the plan at that price.
People with equal criticalities are put in random order. If some of them get a piece and others do
not, the plan is made just below their criticality, where advice still pays.

A criticality is not a threshold: at a low price it may be better to say nothing now and more later.
People for whom the plan at the price is silent wait. The pieces go to the others, and the price is
that of the others.

People in cells where advice is required come first, and each of them takes a piece: nothing is
known about what they would do without it, so their gain and their criticality are unknown.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from counsel._arrays import Floats, by_step, whole
from counsel.errors import CounselError
from counsel.model.problem import AdviceProblem
from counsel.planning.constraints import Constraints
from counsel.planning.criticality import Criticality, criticality
from counsel.planning.explain import Explanation, explain
from counsel.planning.plan import Plan
from counsel.planning.solve import solve

SAME = 1e-9
"""Criticalities that differ by less than this share of the largest are equal."""

JUST_BELOW = 1e-6
"""The plan for people who tie at the price is made at a penalty lower by this share."""


class Cell(NamedTuple):
    """Where a person is: the step, the state and the level of their memory (0 without one)."""

    step: int
    state: int
    level: int


class Ranked(NamedTuple):
    """One person of a ranking: their row in the input, what to say (None: nothing), and why.

    ``is_required`` says that advice is required in their cell, so that its gain is unknown.
    """

    row: int
    advice: int | None
    explanation: Explanation
    is_required: bool

    @property
    def criticality(self) -> float:
        """The largest price at which advice to them still pays."""
        return self.explanation.criticality[0]


class Ranking(NamedTuple):
    """People in the order in which they should be advised, and the price of a piece."""

    people: list[Ranked]
    price: float


def rank_cells(  # noqa: PLR0913 (people, pieces and the masks of solve)
    problem: AdviceProblem,
    cells: Sequence[Cell],
    *,
    pieces: int,
    rng: np.random.Generator,
    forbidden: ArrayLike | None = None,
    required: ArrayLike | None = None,
    allow_reverse: bool = False,
) -> Ranking:
    """Rank people by their cells, and give advice to the first ``pieces`` for whom it pays."""
    k = whole("pieces", pieces, least=1)
    if not problem.has_unit_cost:
        raise CounselError("pieces cost other than 1; a ranking counts pieces, so give each cost 1")
    masks: dict[str, Any] = {
        "forbidden": forbidden,
        "required": required,
        "allow_reverse": allow_reverse,
    }
    critical = criticality(problem, **masks)
    required_hs = by_step(Constraints.read(problem, **masks).required, problem.n_steps)
    is_required = np.array([required_hs[cell.step, cell.state] for cell in cells], dtype=np.bool_)
    urgency = np.array([_urgency(critical, cell, problem) for cell in cells])
    urgency[is_required] = 0.0
    near = SAME * float(urgency.max(initial=0.0))
    rounded = np.round(urgency / near) if near > 0.0 else urgency
    luck, waits = rng.random(len(cells)), np.zeros(len(cells), dtype=np.bool_)
    rest = max(k - int(is_required.sum()), 0)
    while True:
        order = np.lexsort((luck, -rounded, waits, ~is_required))
        asking = order[int(is_required.sum()) : len(order) - int(waits.sum())]
        price, penalty = _price(urgency[asking], rest, near)
        plan = solve(problem, penalty=penalty, **masks)
        first = [i for i in asking[:rest].tolist() if urgency[i] > near]
        silent = [i for i in first if not _is_advised(plan, cells[i], problem)]
        if not silent:
            break
        waits[silent] = True
    known: dict[Cell, Explanation] = {}
    people, given = list[Ranked](), 0
    for i in order.tolist():
        cell = cells[i]
        if cell not in known:
            known[cell] = _explain(problem, plan, cell, critical)
        why = known[cell]
        pays = is_required[i] or urgency[i] > near
        is_advised = given < k and pays and why.advice is not None
        given += is_advised
        advice = why.advice if is_advised else None
        people.append(Ranked(i, advice, why, bool(is_required[i])))
    return Ranking(people, price)


def _price(urgency_n: Floats, rest: int, near: float) -> tuple[float, float]:
    """Return the price of a piece, and the penalty of the plan, for people in their order.

    The penalty is just below the price if somebody who gets a piece ties with somebody who gets
    none.
    """
    price = float(urgency_n[rest]) if rest < urgency_n.size and urgency_n[rest] > near else 0.0
    if 0 < rest < urgency_n.size and urgency_n[rest - 1] <= price + near:
        return price, max(price - max(JUST_BELOW * price, 2.0 * near), 0.0)
    return price, price


def _is_advised(plan: Plan, cell: Cell, problem: AdviceProblem) -> bool:
    level = cell.level if problem.memory else None
    return plan.policy.at(cell.step, cell.state, level=level).keys() != {problem.defer}


def _urgency(critical: Criticality, cell: Cell, problem: AdviceProblem) -> float:
    at = (cell.level, cell.step, cell.state) if problem.memory else (cell.step, cell.state)
    return float(critical.lower[at])


def _explain(problem: AdviceProblem, plan: Plan, cell: Cell, critical: Criticality) -> Explanation:
    step = cell.step if problem.discount is None else None
    level = cell.level if problem.memory else None
    return explain(problem, plan, step=step, state=cell.state, level=level, criticality=critical)
