"""The learnt model of the machine's world as a problem, and plans on it.

One state more stands for the unknown: all advice that was never tried leads there. Advice is
planned only where silence was tried as well: elsewhere there is nothing to compare it with, and
what follows silence is taken to be what followed on average, whatever was advised.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp

from counsel._arrays import Bools, Floats, Ints
from counsel.learning.replanning import silence_unexpected
from counsel.model.human import Human
from counsel.model.kernel import Kernel
from counsel.model.mdp import MDP
from counsel.model.policy import Policy
from counsel.model.problem import AdviceProblem, Shape
from counsel.planning.solve import solve


@dataclass(frozen=True, slots=True, eq=False)
class LearntPlan:
    """A policy for people, planned on the learnt model.

    Its value, advice count and price are those of an episode in the learnt model, not in truth.
    """

    value: float
    advice_count: float
    price: float
    policy: Policy


class ModelLearner(Protocol):
    """A learner that can return its learnt model."""

    shape: Shape

    def model(self) -> AdviceProblem:
        """Return the learnt model as a problem, with one state more that is the unknown."""
        ...


def plan_on_model(
    self: ModelLearner,
    *,
    penalty: float | None = None,
    budget: float | None = None,
    hard: bool = False,
) -> LearntPlan:
    """Plan on the learnt model: without limit, at a penalty or within a budget, as ``solve``.

    Only advice that was tried is compared.

    Parameters
    ----------
    penalty
        The cost of a piece of advice, in units of reward; not with a budget.
    budget
        The expected pieces of advice per episode.
    hard
        Whether no episode may exceed the budget.

    Returns
    -------
    LearntPlan
        The policy, and its value in the learnt model.

    Raises
    ------
    CounselError
        If the limit is invalid.
    """
    model = self.model()
    plan = solve(model, penalty=penalty, budget=budget, hard=hard)
    policy = plan.policy
    if budget is not None and not hard:
        policy = silence_unexpected(model, policy)
    policy = _for_people(policy, self.shape)
    return LearntPlan(plan.value, plan.advice_count, plan.price, policy)


class TransitionTable(NamedTuple):
    """Visits and average rewards [h, s, b], and how often each state followed each row.

    A row is numbered (h·S + s)·B + b; state ``then[i]`` followed ``row[i]`` ``times[i]`` times.
    """

    visits: Ints
    reward: Floats
    row: Ints
    then: Ints
    times: Ints | Floats

    def with_silence(self) -> "TransitionTable":
        """Return the table with silence in every cell where anything was tried.

        Where silence was not tried, all that was seen there counts as silence and as nothing else.
        """
        B = self.visits.shape[2]
        total = self.visits.sum(axis=2)
        never_silent = (total > 0) & (self.visits[..., -1] == 0)
        if not never_silent.any():
            return self
        cell = self.row // B
        row = np.where(never_silent.reshape(-1)[cell], cell * B + B - 1, self.row)
        visits, reward = self.visits.copy(), self.reward.copy()
        mean = (visits * reward).sum(axis=2)[never_silent] / total[never_silent]
        reward[never_silent, -1] = mean
        visits[never_silent] = 0
        visits[never_silent, -1] = total[never_silent]
        return TransitionTable(visits, reward, row, self.then, self.times)


def empirical_problem(
    table: TransitionTable, ended: Bools, least: float, start: Floats, *, idle: float = 0.0
) -> AdviceProblem:
    """Return the machine's world as far as it was seen, as a problem.

    Its actions are the advice and, last, to be left alone, which is what its person does unless
    advised, and its person always listens. One state more stands for the unknown: all advice that
    was never tried leads there, and it pays ``least`` at every step. In ``ended`` [h, s] nothing
    more can happen. ``start`` is the chance to begin in each state, the unknown last, and ``idle``
    the chance to begin where all is over; another state more stands for that.
    """
    H, S, B = table.visits.shape
    tried, extra = table.visits > 0, 1 + (idle > 0.0)
    paid = np.full((H, S + extra, B), least)
    paid[:, S + 1 :] = 0.0
    paid[:, :S][~tried & ended[:H, :, None]] = 0.0
    paid[:, :S][tried] = table.reward[tried]
    chance = table.times / table.visits.reshape(-1)[table.row]
    h, sb = table.row // (S * B), table.row % (S * B)
    more, over = np.arange((S + 1) * B, (S + extra) * B), np.full((extra - 1) * B, S + 1)
    matrices = []
    for step in range(H):
        here = h == step
        rows, columns, data = fill_unknown(
            sb[here], table.then[here], chance[here], tried[step], ended[step]
        )
        rows, columns = np.append(rows, more), np.append(columns, over)
        entries = (np.append(data, np.ones(more.size)), (rows, columns))
        matrices.append(sp.csr_matrix(entries, shape=((S + extra) * B, S + extra)))
    allowed = np.ones((H, S + extra, B), dtype=np.bool_)
    allowed[:, :S, :-1] = tried[..., :-1]
    alone = np.zeros((S + extra, B))
    alone[:, -1] = 1.0
    law = np.append(start, np.full(extra - 1, idle))
    mdp = MDP(Kernel.from_sparse(matrices), paid, horizon=H, start=law, allowed=allowed)
    return AdviceProblem(mdp, Human(alone, 1.0))


def fill_unknown(
    rows: Ints, columns: Ints, chance: Floats, known: Bools, ended: Bools
) -> tuple[Ints, Ints, Floats]:
    """Complete the rows (state, choice) of one step so that each leads somewhere.

    ``known`` [s, choice] says which were seen, ``ended`` [s] where nothing more can happen: there
    nothing changes. All else that was not seen leads to the state after the last, the unknown,
    which is never left.
    """
    n_states, choices = known.shape
    lost = np.flatnonzero(~known.reshape(-1))
    to = np.where(ended[lost // choices], lost // choices, n_states)
    beyond = np.arange(n_states * choices, (n_states + 1) * choices)
    return (
        np.concatenate((rows, lost, beyond)),
        np.concatenate((columns, to, np.full(choices, n_states))),
        np.concatenate((chance, np.ones(lost.size + choices))),
    )


def _for_people(policy: Policy, shape: Shape) -> Policy:
    """Turn a policy of the learnt model into one for people: drop the additional states.

    Where in the model to be left alone is an action and silence one more, both are silence.
    """
    n_states, n_actions = shape.n_states, shape.n_actions
    advice = np.minimum(policy.advice[..., :n_states], n_actions)
    if not policy.random.cell.size:
        return Policy.trusted(advice.astype(np.int16), n_actions=n_actions)
    chances = policy.probabilities()[..., :n_states, :]
    table = chances[..., : n_actions + 1].copy()
    table[..., n_actions] += chances[..., n_actions + 1 :].sum(axis=-1)
    return Policy.from_probabilities(table)
