"""What learners share that explore first and plan afterwards (environment 2 of the paper).

Nothing is known but the sizes of the problem, which advice may be given and the range of rewards
(``problem.shape``). They play where most is uncertain, whatever the goal, and then plan for any
penalty and any budget on what was seen. Rewards count in units of their range inside, so that ε and
penalties are in the user's units and a world paid in cents stops when one paid in euros does.
"""

import math
from abc import abstractmethod

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from counsel._arrays import Floats, layers, positive, sealed
from counsel.learning.inputs import read_limit, read_rewards
from counsel.learning.learnt_model import LearntPlan, plan_on
from counsel.learning.watcher import Watcher
from counsel.model.policy import Advice, Policy
from counsel.model.problem import AdviceProblem, Shape
from counsel.planning.frontier import Frontier, frontier
from counsel.simulate.simulator import Simulator


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
        """Play episodes where most is uncertain, then take in what was seen.

        Parameters
        ----------
        simulator
            The world and the person.
        episodes
            How many.
        rng
            Where chance comes from.
        """

    @property
    @abstractmethod
    def uncertainty(self) -> float:
        """W_1 at the start, capped at H; small when every policy can be judged."""

    @abstractmethod
    def model(self) -> AdviceProblem:
        """Return what was learnt as a problem that ``solve`` and ``frontier`` take.

        Returns
        -------
        AdviceProblem
            With one state more, which stands for the unknown.
        """

    @abstractmethod
    def best_advice(self, penalty: float) -> Advice:
        """Return the best advice for a penalty on what was seen.

        Parameters
        ----------
        penalty
            What each piece of advice costs.

        Returns
        -------
        ndarray
            What to advise [h, s], whole numbers; the number of actions is silence.
        """

    @property
    def _known_reward(self) -> Floats:
        """The rewards given [l, s, a], read-only; no layer where rewards are not known."""
        _, S, A = self._sizes
        return sealed(np.zeros((0, S, A)) if self.reward is None else layers(self.reward).view())

    @property
    def policy(self) -> Policy:
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
        """Whether the stopping rule has fired; never without ``epsilon``."""
        if self.epsilon is None or self.episode == 0:
            return False
        W, span = self.uncertainty, self._span
        threshold = self.epsilon / span / (2.0 * (1.0 + self.most_penalty / span))
        return W + 4.0 * math.e * math.sqrt(W) <= threshold

    def plan(
        self, *, penalty: float | None = None, budget: float | None = None, hard: bool = False
    ) -> LearntPlan:
        """Plan on what was learnt: without limit, at a penalty or within a budget, as ``solve``.

        Parameters
        ----------
        penalty
            What each piece of advice costs, in units of reward; not with a budget.
        budget
            Pieces of advice an episode, on average.
        hard
            Whether no episode may exceed the budget.

        Returns
        -------
        LearntPlan
            The policy, and what it promises on what was learnt.

        Raises
        ------
        CounselError
            When the limit makes no sense.
        """
        return plan_on(self.model(), self.shape, penalty=penalty, budget=budget, hard=hard)

    def frontier(self) -> Frontier:
        """Return what every number of pieces of advice is worth, as far as was learnt.

        Returns
        -------
        Frontier
            That of ``model()``.
        """
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
