"""The learnt model of the machine's world as a problem, and plans on it.

Advice is planned only where silence was tried as well: elsewhere there is nothing to compare it
with, and what follows silence is taken to be what followed on average, whatever was advised.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from counsel._arrays import Bools, Floats, Ints
from counsel.learning.replanning import silence_unexpected
from counsel.learning.state_levels import policy_by_level
from counsel.model.human import Human
from counsel.model.kernel import Kernel
from counsel.model.mdp import MDP
from counsel.model.memory import Memory
from counsel.model.policy import Policy
from counsel.model.problem import AdviceProblem
from counsel.model.random_cells import Advice
from counsel.model.setting import Shape
from counsel.planning.solve import solve


@dataclass(frozen=True, slots=True, eq=False)
class LearntPlan:
    """A policy for people, planned on the learnt model.

    Its value, advice count, cost and price are those of an episode in the learnt model, not in
    truth.
    """

    value: float
    advice_count: float
    advice_cost: float
    price: float
    policy: Policy


class ModelLearner(Protocol):
    """A learner that can return its learnt model."""

    shape: Shape

    def model(self) -> AdviceProblem:
        """Return the learnt model as a problem, with one state more that is the unknown."""


def plan_on_model(
    self: ModelLearner,
    *,
    penalty: ArrayLike | None = None,
    budget: float | None = None,
    hard: bool = False,
) -> LearntPlan:
    """Plan on the learnt model: without limit, at a penalty or within a budget, as ``solve``.

    Only advice that was tried is compared.

    Parameters
    ----------
    penalty
        The penalty per unit of cost, in units of reward, or one for each step [h]; not with a
        budget.
    budget
        The expected cost of advice per episode: its pieces if each costs 1.
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
    memory: Memory | None = getattr(self, "memory", None)
    if memory is not None and policy.levels is None:
        policy = policy_by_level(policy, memory.n_levels)
    return LearntPlan(plan.value, plan.advice_count, plan.advice_cost, plan.price, policy)


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

    def world(self, ended: Bools, least: float, *, idle: bool = False) -> tuple[Kernel, Floats]:
        """Return transitions and rewards, with one state more, the unknown, that is never left.

        What was not seen leads there, and it pays ``least`` at every step. In ``ended`` [h, s]
        nothing more can happen: there nothing changes. With ``idle`` a last state stands for that.
        """
        H, S, B = self.visits.shape
        tried, size = self.visits > 0, S + 1 + idle
        reward = np.full((H, size, B), least)
        reward[:, S + 1 :] = 0.0
        reward[:, :S][~tried & ended[:H, :, None]] = 0.0
        reward[:, :S][tried] = self.reward[tried]
        chance = self.times / self.visits.reshape(-1)[self.row]
        h, sb = self.row // (S * B), self.row % (S * B)
        added = np.arange(S * B, size * B)
        matrices = []
        for step in range(H):
            here, lost = h == step, np.flatnonzero(~tried[step].reshape(-1))
            to = np.where(ended[step, lost // B], lost // B, S)
            rows = np.concatenate((sb[here], lost, added))
            columns = np.concatenate((self.then[here], to, added // B))
            data = np.concatenate((chance[here], np.ones(lost.size + added.size)))
            matrices.append(sp.csr_matrix((data, (rows, columns)), shape=(size * B, size)))
        return Kernel.from_sparse(matrices), reward


def empirical_problem(  # noqa: PLR0913 (the parts of a problem)
    table: TransitionTable,
    ended: Bools,
    least: float,
    start: Floats,
    *,
    cost: Floats,
    idle: float = 0.0,
) -> AdviceProblem:
    """Return the machine's world as far as it was seen, as a problem.

    Its actions are the advice and, last, to be left alone, which is what its person does unless
    advised, and its person always listens. One state more stands for the unknown: all advice that
    was never tried leads there, and it pays ``least`` at every step. In ``ended`` [h, s] nothing
    more can happen. ``start`` is the chance to begin in each state, the unknown last, and ``idle``
    the chance to begin where all is over; another state more stands for that. ``cost`` is that of
    the advice, as ``given_cost`` returns it.
    """
    H, S, _ = table.visits.shape
    kernel, reward = table.world(ended, least, idle=idle > 0.0)
    allowed = np.ones(reward.shape, dtype=np.bool_)
    allowed[:, :S, :-1] = table.visits[..., :-1] > 0
    alone = np.zeros(reward.shape[1:])
    alone[:, -1] = 1.0
    law = start if idle == 0.0 else np.append(start, idle)
    mdp = MDP(kernel, reward, horizon=H, start=law, allowed=allowed)
    cost = extend_cost(cost, states=reward.shape[1] - S, actions=1)
    return AdviceProblem(mdp, Human(alone, 1.0), cost)


def extend_cost(cost: Floats, *, states: int, actions: int = 0) -> Floats:
    """Return costs of advice with that many more states and actions, which cost as the last do."""
    added = ((0, 0), (0, states), (0, actions))
    return np.pad(cost, added[3 - cost.ndim :], mode="edge") if cost.ndim else cost


def _for_people(policy: Policy, shape: Shape) -> Policy:
    """Turn a policy of the learnt model into one for people: drop the additional states.

    Where in the model to be left alone is an action and silence one more, both are silence.
    """
    n_states, n_actions = shape.n_states, shape.n_actions
    advice = np.minimum(policy.advice[..., :n_states], n_actions)
    if not policy.random.cell.size:
        planned: Advice = advice.astype(np.int16)
        return Policy.trusted(planned, n_actions=n_actions, levels=policy.levels)
    chances = policy.probabilities()[..., :n_states, :]
    table = chances[..., : n_actions + 1].copy()
    table[..., n_actions] += chances[..., n_actions + 1 :].sum(axis=-1)
    return Policy.from_probabilities(table, levels=policy.levels)
