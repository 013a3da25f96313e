"""The numbers of the demo page: each player, the learnt advice, and its effect."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from counsel._arrays import Ints
from counsel.learning.learn import Record
from counsel.model.problem import AdviceProblem
from counsel.planning.evaluate import Evaluation
from counsel.simulate.episodes import Episodes


class Point(NamedTuple):
    """The expected pieces of advice of a policy, and its value."""

    pieces: float
    value: float


class Phase(NamedTuple):
    """A part of the map: its name, its first column and the column after its last."""

    name: str
    first: int
    end: int


class Reason(NamedTuple):
    """Why the machine advises in one cell.

    Column and row count from 0; ``habit`` is what the player does there without advice, by action;
    ``pieces`` is how often the advice is given per flight, and ``gain`` what it adds when given.
    """

    column: int
    row: int
    advice: str
    habit: dict[str, float]
    pieces: float
    gain: float


@dataclass(frozen=True, slots=True)
class Player:
    """One player, what was learnt about them, and the effect of the learnt advice."""

    key: str  # for ids
    name: str
    habit: str  # what the player does, as a predicate
    problem: AdviceProblem
    records: Sequence[Record]  # of learning
    gap: float  # the shortfall of the learnt policy against the best, in stars per flight
    evaluation: Evaluation  # of the learnt policy
    flights: Episodes  # with the learnt policy
    flights_alone: Episodes  # without advice
    matches: tuple[Ints, Ints] | None  # matched and given by advice while learning, if counted
    frontier: Sequence[Point]  # the vertices, from no advice to unlimited advice
    always: Point  # the best action at every step
    reasons: Sequence[Reason]  # of the learnt policy, the most valuable cell first

    @property
    def alone(self) -> float:
        """Stars per flight without advice."""
        return self.frontier[0].value

    @property
    def learnt(self) -> Point:
        """Pieces of advice and stars per flight of the learnt policy."""
        return Point(self.evaluation.advice_count, self.evaluation.value)

    @property
    def cost(self) -> float:
        """The regret of all flights of learning."""
        return self.records[-1].regret

    @property
    def half_cost_flight(self) -> int:
        """The flight by which half of the regret had occurred."""
        return next(r.episode for r in self.records if r.regret >= self.cost / 2)

    @property
    def benefit(self) -> float:
        """The stars per flight that unlimited advice adds."""
        return self.frontier[-1].value - self.alone

    @property
    def silent_share(self) -> float:
        """The share of decisions without advice."""
        return float((self.flights.advice == self.flights.defer).mean())

    @property
    def cells(self) -> tuple[int, int]:
        """The number of cells with advice, and of cells that flights reach."""
        advised = self.evaluation.pieces.sum(axis=1) > 1e-9
        reached = self.evaluation.occupancy.sum(axis=0)[:-1] > 1e-9
        return int(advised.sum()), int(reached.sum())

    def crash_share(self, flights: Episodes) -> float:
        """Return the share of flights that do not reach the last column."""
        return float((flights.lengths < self.problem.horizon).mean())

    def advice_by_phase(self, phases: Sequence[Phase]) -> list[tuple[str, float]]:
        """Return the share of the advice in each part of the map; empty without advice."""
        rate, total = self.evaluation.advice_rate, self.evaluation.advice_count
        if total < 1e-9:
            return []
        return [(p.name, float(rate[p.first : p.end].sum()) / total) for p in phases]

    def benefit_share(self, pieces: float) -> float:
        """Return the share of the benefit that the best use of so many pieces keeps."""
        x, y = zip(*self.frontier, strict=True)
        return (float(np.interp(pieces, x, y)) - self.alone) / max(self.benefit, 1e-12)
