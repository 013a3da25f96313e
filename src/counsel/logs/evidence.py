"""What the episodes of a log say about a policy, without playing it in a model.

Weights make the episodes of a log stand for those that a policy would have brought about
(``importance_weights.py``); with W the weight of an episode up to a step and c what it counts for
episodes that were cut before, all sums below are over episodes weighted by c W. Sums are kept by
block of people, so that every number comes with draws (``bootstrap.py``), and differences of
numbers are paired.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from counsel._arrays import Bools, Floats
from counsel.logs.bootstrap import BlockDraws, Draws
from counsel.logs.decisions import Decisions, load_decisions
from counsel.logs.excursion import ExcursionEffect, excursion_effects
from counsel.logs.fitted_model import Fit
from counsel.logs.importance_weights import (
    censoring_weights,
    effective_sample_size,
    importance_weights,
    logged_chances,
    logged_paths,
    policy_values,
)
from counsel.logs.read import Log
from counsel.model.memory import Memory
from counsel.model.policy import Policy
from counsel.model.problem import AdviceProblem


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """The episodes of a log, the probabilities of their advice, and draws of their people."""

    fit: Fit
    rows: Decisions
    paths: Floats  # the probability of the advice up to each step [episode, h]
    counts: Floats  # what each episode counts for those that were cut before [episode, h]
    is_recorded: bool  # whether the log holds the probabilities
    draws: BlockDraws

    @classmethod
    def load(cls, log: Log, fitted: Fit, rng: np.random.Generator) -> "Evidence":
        """Load the episodes of a log."""
        return cls.of(load_decisions(log, fitted.tally, fitted.problem), fitted, rng)

    @classmethod
    def of(cls, rows: Decisions, fitted: Fit, rng: np.random.Generator) -> "Evidence":
        """Weight decisions that are loaded."""
        paths, is_recorded = logged_paths(rows, fitted.problem, fitted.unit)
        draws = BlockDraws.draw(rows.cluster, rng)
        return cls(fitted, rows, paths, censoring_weights(rows), is_recorded, draws)

    @property
    def memory(self) -> Memory | None:
        """The memory of the people in the model."""
        return self.fit.problem.memory

    @property
    def is_fair(self) -> bool:
        """Whether episodes with and without advice can be compared.

        They can if the log records fair probabilities, or no test says that advice went to
        decisions that differ in what is not recorded.
        """
        return self.is_recorded or not any(test.is_about_advice for test in self.fit.rejected)

    def effects(self) -> tuple[ExcursionEffect, ...]:
        """Return what sending advice changes at once; nothing if episodes cannot be compared."""
        return excursion_effects(self.rows, self.fit.problem) if self.is_fair else ()

    def today(self) -> Draws:
        """Return the mean return of the log over the whole horizon."""
        sums = np.zeros((self.draws.n_blocks, 2, self.rows.horizon))
        paid = np.zeros_like(self.counts)
        paid[self.rows.episode, self.rows.place] = self.rows.reward
        np.add.at(sums[:, 0], self.draws.block, self.counts * paid)
        np.add.at(sums[:, 1], self.draws.block, self.counts)
        return self.draws.of(sums, lambda total: _ratio(total, 0, 1).sum(axis=-1))

    def mean_pieces(self, cost: Floats | float) -> float:
        """Return the pieces of advice per episode, each counted by its cost [h, s, b]."""
        rows, problem = self.rows, self.fit.problem
        spoken = rows.advice < problem.n_actions
        cell = (rows.place[spoken], rows.state[spoken], rows.advice[spoken])
        each = np.broadcast_to(cost, problem.cost.shape)[cell]
        weight = self.counts[rows.episode[spoken], rows.place[spoken]]
        total = np.bincount(rows.place[spoken], each * weight, rows.horizon)
        return float((total / np.maximum(self.counts.sum(axis=0), 1e-300)).sum())

    def sample_size(self, policies: Sequence[Policy], mine: Sequence[Bools]) -> float:
        """Return the effective sample size; each policy is for some of the episodes."""
        chance = (
            logged_chances(self.rows, self.fit.problem)[0] if self.fit.unit == "decision" else None
        )
        size = 0.0
        for policy, some in zip(policies, mine, strict=True):
            weight = importance_weights(policy, self.rows, self.paths, self.memory) * self.counts
            whole = effective_sample_size(weight, policy, self.fit.problem, self.rows, chance)
            size += whole * float(some.mean())
        return size

    def everyone(self) -> Bools:
        """Return a mask of all episodes."""
        return np.ones(self.rows.n_episodes, dtype=np.bool_)

    def sums(self, policy: Policy, problem: AdviceProblem, some: Bools) -> Floats:
        """Return the sums of some episodes behind the values of a policy [block, 5, h].

        They are the weighted rewards, Q and V of the policy in the problem, and the weights up to
        and before each step.
        """
        rows, draws = self.rows, self.draws
        q, v = policy_values(problem, policy, rows)
        weight = importance_weights(policy, rows, self.paths, self.memory)
        before = np.concatenate((np.ones((rows.n_episodes, 1)), weight[:, :-1]), axis=1)
        counts = self.counts * some[:, None]
        weight, before = weight * counts, before * counts
        at = (rows.episode, rows.place)
        sums = np.zeros((draws.n_blocks, 5, rows.horizon))
        where = (draws.block[rows.episode], rows.place)
        for i, column in enumerate((weight[at] * rows.reward, weight[at] * q, before[at] * v)):
            np.add.at(sums[:, i], where, column)
        np.add.at(sums[:, 3], draws.block, weight)
        np.add.at(sums[:, 4], draws.block, before)
        return sums

    def weighted(self, sums: Floats) -> Draws:
        """Return the weighted value."""
        return self.draws.of(sums, _importance_sampling)

    def doubly_robust(self, sums: Floats) -> Draws:
        """Return the doubly robust value."""
        return self.draws.of(sums, _doubly_robust)


def _importance_sampling(total: Floats) -> Floats:
    paid: Floats = _ratio(total, 0, 3).sum(axis=-1)
    return paid


def _doubly_robust(total: Floats) -> Floats:
    value: Floats = (_ratio(total, 0, 3) - _ratio(total, 1, 3) + _ratio(total, 2, 4)).sum(axis=-1)
    return value


def _ratio(total: Floats, part: int, whole: int) -> Floats:
    share: Floats = total[..., part, :] / np.maximum(total[..., whole, :], 1e-300)
    return share
