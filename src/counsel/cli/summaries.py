"""The numbers that solve, frontier, play-out and learn print, computed from their results."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

import counsel
from counsel._arrays import Ints
from counsel.estimate.intervals import Z, wilson
from counsel.learning.learn import Record
from counsel.model.policy import Policy
from counsel.model.problem import AdviceProblem
from counsel.planning.evaluate import Evaluation
from counsel.planning.frontier import Frontier, Vertex
from counsel.planning.plan import Plan
from counsel.planning.reference_policies import value_alone
from counsel.runs.run import Result
from counsel.runs.spec import Spec
from counsel.simulate.episodes import EpisodeSummary

NOTHING = 5e-7
"""Pieces of advice per episode that count as none."""


@dataclass(frozen=True, slots=True)
class PlanSummary:
    """A plan, its evaluation, and the reward per episode without advice."""

    problem: AdviceProblem
    plan: Plan
    outcome: Evaluation
    alone: float

    @classmethod
    def of(cls, problem: AdviceProblem, plan: Plan) -> "PlanSummary":
        """Evaluate a plan."""
        outcome = counsel.evaluate(problem, plan.policy)
        return cls(problem, plan, outcome, value_alone(problem))

    @property
    def gain(self) -> float | None:
        """The reward per episode that the plan adds; None if that is rounding."""
        gain = self.plan.value - self.alone
        return gain if gain > 1e-12 * max(1.0, abs(self.alone)) else None

    @property
    def is_silent(self) -> bool:
        """Whether the plan gives no advice."""
        return self.plan.advice_count < NOTHING

    def busiest(self, most: int) -> Iterator[tuple[int, int, float]]:
        """Yield the states and advice with the most pieces of advice per episode."""
        pieces_sa = self.outcome.pieces
        for i in np.argsort(-pieces_sa, axis=None, kind="stable")[:most]:
            s, a = divmod(int(i), self.problem.n_actions)
            if pieces_sa[s, a] >= NOTHING:
                yield s, a, float(pieces_sa[s, a])


@dataclass(frozen=True, slots=True)
class FrontierSummary:
    """A frontier and the shares of the value of unlimited advice along it."""

    front: Frontier

    @property
    def alone(self) -> float:
        """The reward per episode without advice."""
        return self.front.vertices[0].value

    @property
    def benefit(self) -> float:
        """The reward per episode that unlimited advice adds."""
        return self.front.vertices[-1].value - self.alone

    def share(self, value: float) -> float:
        """Return the share of the value of unlimited advice at a reward per episode."""
        return (value - self.alone) / self.benefit if self.benefit > 0.0 else 0.0

    def shares_of_budgets(self) -> Iterator[tuple[float, float, float]]:
        """Yield 1, 2 and 3 pieces per episode, with bounds of their share."""
        first, last = self.front.vertices[0], self.front.vertices[-1]
        for pieces in (1.0, 2.0, 3.0):
            if first.advice_count <= pieces < last.advice_count:
                low, high = map(self.share, self.front.bounds(pieces))
                yield pieces, low, high

    def vertices(self, most: int) -> Sequence[Vertex]:
        """Return at most so many vertices, evenly spread, with both ends."""
        rows = self.front.vertices
        if len(rows) <= most:
            return rows
        return [rows[round(i * (len(rows) - 1) / (most - 1))] for i in range(most)]


@dataclass(frozen=True, slots=True)
class MatchRate:
    """How often an advice was given and matched."""

    name: str
    given: int
    matched: int

    @property
    def share(self) -> tuple[float, float, float]:
        """The share matched, with the ends of its 95 % interval."""
        low, high = wilson(self.matched, self.given)
        return self.matched / self.given, float(low), float(high)


def match_rates(problem: AdviceProblem, given_a: Ints, matched_a: Ints) -> list[MatchRate]:
    """Return the match rate of each advice that was given."""
    return [
        MatchRate(problem.mdp.action_name(int(a)), int(given_a[a]), int(matched_a[a]))
        for a in np.flatnonzero(given_a)
    ]


@dataclass(frozen=True, slots=True)
class PlayOutSummary:
    """Played episodes, beside their exact expectation."""

    played: EpisodeSummary
    exact: Evaluation
    alone: float

    @classmethod
    def of(cls, played: EpisodeSummary, policy: Policy) -> "PlayOutSummary":
        """Evaluate a policy up to the end of each episode, as played episodes do."""
        problem = played.problem
        exact = counsel.evaluate(problem, policy.silent_where(problem.mdp.over))
        return cls(played, exact, value_alone(problem))

    def means(self) -> Iterator[tuple[str, float, float, float]]:
        """Yield the mean reward and pieces per episode: name, mean, half interval, exact."""
        for name, mean, exact in (
            ("reward", self.played.reward, self.exact.value),
            ("pieces of advice", self.played.pieces, self.exact.advice_count),
        ):
            yield name, mean.mean, Z * mean.error, exact


@dataclass(frozen=True, slots=True)
class LearningSummary:
    """The result of a learning run."""

    spec: Spec
    problem: AdviceProblem
    result: Result

    @property
    def rounding(self) -> float:
        """Differences of value below this are rounding."""
        return 1e-9 * (1.0 + abs(self.result.best))

    @property
    def last(self) -> Record:
        """The record of the last episode."""
        return self.result.records[-1]

    @property
    def cost(self) -> float:
        """The regret of all episodes."""
        return self.regret(self.last)

    @property
    def gap(self) -> float:
        """The shortfall of the learnt policy against the best, per episode; 0 if rounding."""
        gap = self.result.best - self.result.value
        return gap if abs(gap) > self.rounding else 0.0

    @property
    def over_budget(self) -> float:
        """Pieces of advice per episode above the budget; 0 without a budget or if rounding."""
        if self.spec.budget is None:
            return 0.0
        over = self.result.advice_count - self.spec.budget
        return over if over > self.rounding else 0.0

    @property
    def match_rates(self) -> list[MatchRate]:
        """The match rate of each advice that was given, if it says something about adherence."""
        if self.result.matches is None:
            return []
        matched_a, given_a = self.result.matches
        return match_rates(self.problem, given_a, matched_a)

    def value_gap(self, record: Record) -> float:
        """Return the value gap of a record; 0 if rounding."""
        return record.value_gap if abs(record.value_gap) > self.rounding else 0.0

    def regret(self, record: Record) -> float:
        """Return the regret of a record; 0 if rounding."""
        return record.regret if record.regret > self.rounding * record.episode else 0.0

    def milestones(self) -> list[Record]:
        """Return records at about 1, 2, 5, 10, 20, 50, … episodes, and the last."""
        records, chosen = self.result.records, list[Record]()
        for number in (m * 10**e for e in range(10) for m in (1, 2, 5)):
            near = next((record for record in records if record.episode >= number), records[-1])
            if not chosen or near.episode > chosen[-1].episode:
                chosen.append(near)
        return chosen
