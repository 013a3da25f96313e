"""Tests of what a fitted model takes for granted, on the log it was fitted to.

The model says that advice works only through the action, and that states hold all that matters.
Each can fail, and then the model promises what will not come. With V the value of the log's own
rule in the model and Q(s, a) = r(s, a) + E V(next state):

* *advice acts only through the action*: the reward and the value of the next state, given state and
  action, are the same after advice and in silence (nagging breaks this, and so do people whom
  advice finds when something unrecorded is wrong);
* *actions are as good as random*: the direct effect of sending advice on what follows is what the
  actions explain, lift × advantage; so r + V(next) − Q(s, a) is the same after advice and in
  silence (people who both act and earn, because they are motivated, break this);
* *states hold all that matters*: rewards and next states, given state and action, do not depend on
  the state before or on the step;
* *advice depends on the state alone*: given state and step, whether there is advice does not depend
  on the state, action and reward before.

An assumption is rejected if its test says so at 1 in 250, and what it leaves unexplained is not
negligible: with a million decisions everything differs from everything.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from counsel._arrays import Bools, Floats, Ints
from counsel.logs.clustered import ScoreTest, score_test
from counsel.logs.count import Tally
from counsel.logs.decisions import Decisions
from counsel.logs.importance_weights import values_of_rule
from counsel.logs.self_check import can_confront, logged_rule
from counsel.model.problem import AdviceProblem

LEVEL = 0.004
"""The p-value below which an assumption is rejected."""

LEAST_EFFECT = 0.02
"""Advice must change what follows by this share of its standard deviation to matter."""

LEAST_MEMORY = 0.05
"""The past must explain this share of the standard deviation to matter."""

ENOUGH = 20
"""Decisions per cell from which on steps are told apart."""

MOST_BEFORE = 8
"""Of the states before, so many are told apart: the most frequent."""

ROUNDING = 1e-9
"""Smaller shares of a value are errors of rounding."""

ASSUMPTIONS = {
    "reward": "advice changes the reward only through the action",
    "next state": "advice changes what follows only through the action",
    "direct effect": "the effect of advice is that of the actions it leads to",
    "memory": "states hold all that matters for what follows",
    "step": "what follows does not depend on the step",
    "assignment": "whether advice is sent depends only on the state and the step",
}
"""What each test asks."""


OUTCOMES = {"memory": 2, "step": 2}
"""How many outcomes a test is about."""


@dataclass(frozen=True, slots=True)
class AssumptionTest:
    """The test of one assumption of the model."""

    name: str
    p_value: float
    strength: float  # the share of the standard deviation that should be 0
    decisions: int

    @property
    def is_about_advice(self) -> bool:
        """Whether the test compares decisions with and without advice."""
        return self.name in ("reward", "next state", "direct effect", "assignment")

    @property
    def is_rejected(self) -> bool:
        """Whether the log contradicts the assumption, and by more than is negligible."""
        is_effect = self.name in ("reward", "next state", "direct effect")
        least = LEAST_EFFECT if is_effect else LEAST_MEMORY
        return self.p_value < LEVEL and self.strength > least


def check_assumptions(
    tally: Tally, problem: AdviceProblem, rows: Decisions, unit: str = "decision"
) -> tuple[AssumptionTest, ...]:
    """Test what a model assumes; tests that the data cannot do are left out.

    ``unit`` is what advice was assigned to; if not to decisions, the assignment of decisions is
    tested only where there was some advice.
    """
    if not rows.place.size or not can_confront(tally):
        return ()
    found = dict[str, tuple[ScoreTest, int]]()
    for name, test, decisions in _tests(_Facts.of(tally, problem, rows), unit):
        # Of several outcomes the most surprising counts, and its p-value for as many.
        if test is not None and (name not in found or test.p_value < found[name][0].p_value):
            found[name] = (test, decisions)
    return tuple(
        AssumptionTest(name, min(test.p_value * OUTCOMES.get(name, 1), 1.0), test.strength, n)
        for name, (test, n) in found.items()
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Facts:
    """Decisions with what went before and what followed; arrays are [row]."""

    rows: Decisions
    cluster: Ints
    paid: Floats  # the reward beyond r(s, a)
    after: Floats  # the value of the next state beyond its expectation; NaN if unknown
    before: Ints  # the row of the decision before; −1 for the first
    spoken: Bools
    A: int

    @classmethod
    def of(cls, tally: Tally, problem: AdviceProblem, rows: Decisions) -> "_Facts":
        v_hs, q_hsa = values_of_rule(problem, logged_rule(tally, problem))
        n, at = rows.place.size, (rows.place, rows.state, rows.action)
        is_next = np.zeros(n, dtype=np.bool_)
        is_next[:-1] = rows.episode[1:] == rows.episode[:-1]
        worth = np.where(is_next, v_hs[rows.place + 1, np.roll(rows.state, -1)], 0.0)
        reward = problem.mdp.reward[at]
        known = is_next | (rows.complete[rows.episode] & (rows.place < rows.horizon - 1))
        surprise = worth - (q_hsa[at] - reward)
        surprise[np.abs(surprise) < ROUNDING * (1.0 + np.abs(worth))] = 0.0
        after = np.where(known, surprise, np.nan)
        before = np.where(rows.place > 0, np.arange(n) - 1, -1)
        spoken = rows.advice < len(tally.actions)
        cluster = rows.cluster[rows.episode]
        return cls(rows, cluster, rows.reward - reward, after, before, spoken, len(tally.actions))


def _tests(facts: _Facts, unit: str) -> Iterator[tuple[str, ScoreTest | None, int]]:
    rows, A = facts.rows, facts.A
    pair = rows.state * A + rows.action
    heard = rows.heard
    same = heard & (rows.advice == rows.action)
    kinds = np.stack((same, heard & ~same), axis=1).astype(np.float64)
    known = np.isfinite(facts.after)

    def test(y: Floats, x: Floats, cell: Ints, some: Bools) -> tuple[ScoreTest | None, int]:
        return score_test(y[some], x[some], cell[some], facts.cluster[some]), int(some.sum())

    everything, last = np.ones(known.shape, dtype=np.bool_), rows.place == rows.horizon - 1
    by_step, states = _with_step(pair, rows), _with_step(rows.state, rows)
    yield "reward", *test(facts.paid, kinds, by_step, everything)
    yield "next state", *test(facts.after, kinds, by_step, known)
    left = facts.paid + np.where(last, 0.0, facts.after)
    yield "direct effect", *test(left, heard[:, None].astype(np.float64), states, known | last)
    later = facts.before >= 0
    past, when = _one_hot(rows.state[facts.before]), rows.place[:, None].astype(np.float64)
    for y, some in ((facts.paid, everything), (facts.after, known)):
        yield "memory", *test(y, past, by_step, some & later)
        yield "step", *test(y, when, pair, some)
    said = facts.spoken.astype(np.float64)
    if np.isfinite(rows.recorded).all():
        said = said - np.where(facts.spoken, rows.recorded, 1.0 - rows.recorded)
    did, earned = _one_hot(rows.action[facts.before]), facts.paid[facts.before]
    arm = rows.cluster if unit == "person" else np.arange(rows.n_episodes)
    spoke = np.bincount(arm[rows.episode], facts.spoken) > 0.0
    in_arm = spoke[arm[rows.episode]] if unit != "decision" else everything
    contexts = _with_step(states * (int(rows.context.max()) + 1) + rows.context[rows.episode], rows)
    yield "assignment", *test(said, np.column_stack((past, did, earned)), contexts, later & in_arm)


def _with_step(cell: Ints, rows: Decisions) -> Ints:
    """Return cells by step, if there are enough decisions for that; without gaps in the numbers."""
    wide = cell * rows.horizon + rows.place
    number = np.unique(wide, return_inverse=True)[1]
    enough = cell.size >= ENOUGH * (int(number.max(initial=0)) + 1)
    return number if enough else np.unique(cell, return_inverse=True)[1]


def _one_hot(label: Ints) -> Floats:
    """Return a column for each of the most frequent labels but the first."""
    at = np.unique(label, return_inverse=True)[1]
    often = np.argsort(-np.bincount(at), kind="stable")[1:MOST_BEFORE]
    columns: Floats = (at[:, None] == often[None]).astype(np.float64)
    return columns
