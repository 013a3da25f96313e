"""What learners share that explore first and plan afterwards (environment 2 of the paper).

Nothing is known but the sizes of the problem, which advice may be given and the range of rewards
(``problem.shape``). They play where most is uncertain, whatever the goal, and then plan for any
penalty and any budget on what was seen. Rewards count in units of their range inside, so that ε and
penalties are in the user's units and a world paid in cents stops when one paid in euros does.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.random import Generator
from numpy.typing import ArrayLike

from counsel._arrays import (
    Bools,
    Floats,
    Ints,
    by_step,
    numbers,
    real,
    sealed,
)
from counsel.errors import CounselError
from counsel.learning.adherence import read_limit
from counsel.learning.plans import spend_where_planned
from counsel.learning.watching import Watcher
from counsel.model.human import Human
from counsel.model.kernel import Kernel
from counsel.model.mdp import MDP
from counsel.model.policy import Advice, HardPolicy, Policy
from counsel.model.problem import AdviceProblem, Shape
from counsel.planning.frontier import Frontier, frontier
from counsel.planning.solve import solve
from counsel.simulate.simulator import Simulator


@dataclass(frozen=True, slots=True, eq=False)
class LearntPlan:
    """A policy planned on what was learnt, and what it promises there.

    ``value``, ``advice_count`` and ``price`` are those of the learnt model, not of the truth.
    """

    value: float
    advice_count: float
    price: float
    policy: Policy | HardPolicy


class Exploring(Watcher):
    """Explores first, and plans for any penalty or budget afterwards."""

    def __init__(  # noqa: PLR0913 (the settings of the theorem)
        self,
        shape: Shape,
        *,
        rng: Generator,
        delta: float = 0.1,
        epsilon: float | None = None,
        most_penalty: float = 0.0,
        scale: float = 1.0,
        reward: ArrayLike | None = None,
        penalty: float = 0.0,
        budget: float | None = None,
    ) -> None:
        super().__init__(shape, rng=rng, penalty=penalty, budget=budget)
        self.delta, self.scale = positive("delta", delta, 1.0), positive("scale", scale)
        self.epsilon = None if epsilon is None else positive("epsilon", epsilon)
        self.most_penalty, _ = read_limit(most_penalty, None, name="most_penalty")
        self.reward = None if reward is None else read_rewards(reward, self._sizes)

    @abstractmethod
    def explore(self, simulator: Simulator, *, episodes: int, rng: Generator) -> None:
        """Play episodes where most is uncertain, then take in what was seen."""

    @property
    @abstractmethod
    def uncertainty(self) -> float:
        """W_1 at the start, capped at H: small when every policy can be judged."""

    @abstractmethod
    def model(self) -> AdviceProblem:
        """Return what was learnt as a problem that ``solve`` and ``frontier`` take."""

    @abstractmethod
    def best_advice(self, penalty: float) -> Advice:
        """Return the best advice [h, s] for a penalty on what was seen."""

    @property
    def policy(self) -> Policy | HardPolicy:
        """The best policy for the penalty or budget on what was seen; at first, silence."""
        if self._policy is None:
            if self.budget is not None:
                self._policy = self.plan(budget=self.budget).policy
            else:
                advice = self.best_advice(self.penalty)
                self._policy = Policy.trusted(advice, n_actions=self.shape.n_actions)
        return self._policy

    @property
    def done(self) -> bool:
        """Whether the stopping rule has fired."""
        if self.epsilon is None or self.episode == 0:
            return False
        W, span = self.uncertainty, self._span
        threshold = self.epsilon / span / (2.0 * (1.0 + self.most_penalty / span))
        return W + 4.0 * math.e * math.sqrt(W) <= threshold

    def plan(
        self, *, penalty: float | None = None, budget: float | None = None, hard: bool = False
    ) -> LearntPlan:
        """Plan on what was learnt: without limit, at a penalty or within a budget, as ``solve``."""
        return plan_on(
            self.model(), self.shape.n_actions, penalty=penalty, budget=budget, hard=hard
        )

    def frontier(self) -> Frontier:
        """Return what every number of pieces of advice is worth, as far as was learnt."""
        return frontier(self.model())

    def _start(self) -> Floats:
        """Return how often each state was the first, with the unknown state last.

        Of an episode without a decision only that it began where nothing can happen is known: any
        such state is as good, and before one was seen these episodes are left out.
        """
        start = np.append(self._starts, 0).astype(np.float64)
        over = np.flatnonzero(self._ended[0])
        if over.size:
            start[over[0]] += self._idle[0]
        if self.shape.start is not None or not start.any():
            start[-1 if self.shape.start is None else self.shape.start] = 1.0
        whole: Floats = start / start.sum()
        return whole


def plan_on(
    model: AdviceProblem,
    n_actions: int,
    *,
    penalty: float | None,
    budget: float | None,
    hard: bool,
) -> LearntPlan:
    """Plan on a learnt model, as ``solve``, for people with ``n_actions`` actions."""
    found = solve(model, penalty=penalty, budget=budget, hard=hard)
    policy = found.policy
    if budget is not None and not hard:
        policy = spend_where_planned(model, policy)
    return LearntPlan(
        value=found.value,
        advice_count=found.advice_count,
        price=found.price,
        policy=_for_people(policy, n_actions),
    )


def tried_problem(  # noqa: PLR0913 (what a world consists of)
    tried: Bools,
    transitions: tuple[Ints, Ints, Floats],
    reward: Floats,
    ended: Bools,
    least: float,
    start: Floats,
) -> AdviceProblem:
    """Return the machine's world as far as it was tried [h, s, b], as a problem.

    Its actions are the advice and, last, to be left alone, which is what its person does unless
    advised, and its person always listens. One state more stands for the unknown: all advice that
    was never tried leads there, and it pays ``least``. ``transitions`` are row numbers
    (h·S + s)·B + b, next states and chances; ``ended`` [h, s] says where nothing more can happen.
    """
    H, S, B = tried.shape
    paid = np.full((H, S + 1, B), least)
    paid[:, :S][~tried & ended[:H, :, None]] = 0.0
    paid[:, :S][tried] = reward[tried]
    row, t, chance = transitions
    h, sb = row // (S * B), row % (S * B)
    matrices = []
    for step in range(H):
        here = h == step
        rows, columns, data = fill_unknown(
            sb[here], t[here], chance[here], tried[step], ended[step]
        )
        matrices.append(sp.csr_matrix((data, (rows, columns)), shape=((S + 1) * B, S + 1)))
    allowed = np.ones((H, S + 1, B), dtype=np.bool_)
    allowed[:, :S, :-1] = tried[..., :-1]
    alone = np.zeros((S + 1, B))
    alone[:, -1] = 1.0
    mdp = MDP(Kernel.from_sparse(matrices), paid, horizon=H, start=start, allowed=allowed)
    return AdviceProblem(mdp, Human(alone, 1.0))


def fill_unknown(
    rows: Ints, columns: Ints, chance: Floats, known: Bools, ended: Bools
) -> tuple[Ints, Ints, Floats]:
    """Complete the rows (state, choice) of one step so that each leads somewhere.

    ``known`` [s, choice] says which were seen, ``ended`` [s] where nothing more can happen: there
    nothing changes. One state more stands for the unknown: all else that was not seen leads there.
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


def positive(name: str, value: object, most: float = math.inf) -> float:
    """Return a number above 0 and below ``most``."""
    number = real(name, value)
    if not 0.0 < number < most:
        raise CounselError(f"{name} is {value}; it must be above 0 and below {most:g}")
    return number


def _for_people(policy: Policy | HardPolicy, n_actions: int) -> Policy | HardPolicy:
    """Turn a policy of the learnt model into one for people: drop the unknown state.

    Where in the model to be left alone is an action and silence one more, both are silence.
    """
    advice = np.minimum(policy.advice[..., :-1], n_actions)
    if isinstance(policy, HardPolicy):
        return HardPolicy(advice, n_actions=n_actions)
    if not policy.random.cell.size:
        return Policy.trusted(advice.astype(np.int16), n_actions=n_actions)
    chances = policy.probabilities()[:, :-1]
    table = chances[..., : n_actions + 1].copy()
    table[..., n_actions] += chances[..., n_actions + 1 :].sum(axis=2)
    return Policy.from_probabilities(table)


def read_rewards(given: ArrayLike, shape: tuple[int, int, int]) -> Floats:
    """Return known rewards [h, s, x] from [s, x] or [h, s, x]."""
    table = numbers("reward", given)
    if table.shape not in (shape, shape[1:]):
        raise CounselError(
            f"reward has shape {table.shape}; expected [s, a] = {shape[1:]} or [h, s, a] = {shape}"
        )
    return by_step(sealed(table.reshape(-1, *shape[1:])), shape[0])
