"""The base of learners that explore first and plan afterwards (environment 2 of the paper).

Only the sizes of the problem, which advice may be given and the range of rewards are known
(``problem.shape``). These learners play where most is uncertain, whatever the goal, and then plan
for any penalty and any budget. Inside, rewards are in units of their range, so a world paid in
cents stops when one paid in euros does.
"""

import math
from abc import ABCMeta, abstractmethod
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from counsel._arrays import (
    Floats,
    Ints,
    check_rng,
    index_in,
    layers,
    not_negative,
    one_type,
    positive,
    sealed,
)
from counsel.errors import CounselError
from counsel.estimate.bounds import KL, GroupBounds
from counsel.learning.arguments import read_limit, read_rewards, read_shape
from counsel.learning.charges import most_cost
from counsel.learning.learner import Explorer, Learner, Resumable, documented_by
from counsel.learning.learnt_model import plan_on_model
from counsel.learning.live_play import EpisodeBuffer
from counsel.learning.saved_state import SavedState
from counsel.learning.starts_and_ends import StartsAndEnds
from counsel.model.advice_costs import cost_table
from counsel.model.policy import Policy
from counsel.model.problem import AdviceProblem
from counsel.model.random_cells import Advice
from counsel.model.rewards import check_observed
from counsel.model.setting import Shape
from counsel.planning.frontier import Frontier, frontier
from counsel.planning.solve import read_penalty
from counsel.simulate.episodes import Episodes
from counsel.simulate.move import Move
from counsel.simulate.simulator import Simulator


@documented_by(Learner, Explorer, Resumable)
class RewardFreeLearner(metaclass=ABCMeta):
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
        penalty: ArrayLike = 0.0,
        budget: float | None = None,
    ) -> None:
        self.memory = read_shape(shape).memory
        self.shape = self._shape_to_learn(shape)
        check_rng(rng)
        self.rng = rng
        self.penalty, self.budget = read_limit(penalty, budget, shape.horizon)
        self.delta, self.scale = positive("delta", delta, 1.0), positive("scale", scale)
        self.epsilon = None if epsilon is None else positive("epsilon", epsilon)
        self.most_penalty = _read_most(most_penalty)
        self.reward = None if reward is None else self._read_rewards(reward, shape)
        self.episode = 0
        self._policy: Policy | None = None
        self._last_prices: tuple[ArrayLike, tuple[Floats, Floats]] | None = None
        self._buffer = EpisodeBuffer(shape.n_actions, has_levels=self.memory is not None)
        self._ends = StartsAndEnds(self.shape)
        self._saved = SavedState(self, self._buffer)
        self._ends.save_in(self._saved)
        self._set_up()

    def _shape_to_learn(self, shape: Shape) -> Shape:
        """Return the shape of the problem that is learnt."""
        return shape

    def _read_rewards(self, reward: ArrayLike, shape: Shape) -> Floats:
        """Return known rewards [h, s, a] of the problem that is learnt."""
        return read_rewards(reward, (shape.horizon, shape.n_states, shape.n_actions))

    @abstractmethod
    def _set_up(self) -> None:
        """Create the counts; called at the end of the constructor."""

    @abstractmethod
    def explore(self, simulator: Simulator, *, episodes: int, rng: Generator) -> None:
        pass

    @abstractmethod
    def update(self, batch: Episodes) -> None:
        pass

    @abstractmethod
    def advise(self, step: int, state: int, level: int | None = None) -> int:
        """Return the most uncertain advice: what to try next.

        Parameters
        ----------
        step, state
            The cell, counted from 0.
        level
            The level of the person's memory, if ``shape`` has one.
        """

    @abstractmethod
    def model(self) -> AdviceProblem:
        """Return the learnt model as a problem, with one state more that is the unknown."""

    @property
    @abstractmethod
    def uncertainty(self) -> float:
        """W_1 at the start, capped at H; small when every policy can be evaluated."""

    @abstractmethod
    def best_advice(self, penalty: ArrayLike) -> Advice:
        """Return the best advice [h, s] for a penalty, silence the number of actions."""

    @abstractmethod
    def expected_reward(self) -> Floats:
        """Return the estimated mean reward [h, s, x] of each row."""

    @property
    @abstractmethod
    def _row_visits(self) -> Ints:
        """How often each row [h, s, x] was visited, x an action or an advice."""

    def reward_bounds(self) -> tuple[Floats, Floats]:
        """Return the lower and the upper ends of confidence intervals of the mean rewards.

        Rows are those of ``expected_reward``. With probability 1 − ``delta`` / 4 all intervals
        contain the true means at all times, if no reward leaves the declared range.
        """
        n, low = self._row_visits, self.shape.reward_range[0]
        share = np.clip((self.expected_reward() - low) / self._span, 0.0, 1.0)
        bounds = GroupBounds(KL(delta=self.delta / 4.0), groups=n.size, horizon=len(n))
        upper = bounds.upper(share * n, n, 0.0)
        lower = 1.0 - bounds.upper((1.0 - share) * n, n, 0.0)
        return low + self._span * lower, low + self._span * upper

    def _prices(self, penalty: ArrayLike) -> tuple[Floats, Floats]:
        """Return the penalty, one or one per step, and the cost of advice as kernels take them."""
        if self._last_prices is None or self._last_prices[0] is not penalty:
            prices = read_penalty(penalty, self.shape.horizon), cost_table(self.shape.cost)
            self._last_prices = penalty, one_type(prices)
        return self._last_prices[1]

    def __getstate__(self) -> dict[str, Any]:  # pickled arrays would no longer be read-only
        return vars(self) | {"_last_prices": None}

    @abstractmethod
    def _is_consistent(self, state: dict[str, Any]) -> bool:
        """Return whether compiled loops can trust the growing arrays of a saved state."""

    def observe(self, move: Move) -> None:
        self._buffer.add(move)

    def finish(self, *, terminated: bool = False) -> None:
        self._buffer.finish(self.update, terminated=terminated)

    def state(self) -> dict[str, Any]:
        return self._saved.state()

    def restore(self, state: dict[str, Any]) -> None:
        self._saved.restore(state, self._is_consistent)
        self._policy = None

    @property
    def policy(self) -> Policy:
        """The best policy for the penalty or budget in the learnt model; at first, silence."""
        if self._policy is None:
            if self.budget is not None:
                self._policy = self.plan(budget=self.budget).policy
            else:
                self._policy = self._best_policy()
        return self._policy

    def _best_policy(self) -> Policy:
        """Return the best policy for the penalty in the learnt model."""
        advice = self.best_advice(self.penalty)
        return Policy.trusted(advice, n_actions=self.shape.n_actions)

    @property
    def done(self) -> bool:
        """Whether the stopping rule has fired; never without ``epsilon``.

        Then, with probability 1 − ``delta`` and ``scale`` 1, every plan is ``epsilon``-optimal,
        also if rewards are unknown and random, as long as none leaves the declared range.
        """
        if self.epsilon is None or self.episode == 0:
            return False
        W, span = self.uncertainty, self._span
        most_charge = self.most_penalty * most_cost(self.shape)
        threshold = self.epsilon / span / (2.0 * (1.0 + most_charge / span))
        return error_bound(W) <= threshold

    plan = plan_on_model

    def frontier(self) -> Frontier:
        """Return the value of every number of pieces of advice in the learnt model."""
        return frontier(self.model())

    @property
    def _sizes(self) -> tuple[int, int, int]:
        return self.shape.horizon, self.shape.n_states, self.shape.n_actions

    @property
    def _span(self) -> float:
        """The range of rewards, in which they are counted."""
        low, high = self.shape.reward_range
        return max(high - low, 1e-300)

    def _check_cell(self, step: int, state: int) -> tuple[int, int]:
        """Return a step and a state that compiled loops may trust; raise if out of range."""
        H, S, _ = self._sizes
        return index_in("step", step, H), index_in("state", state, S)

    def _check_batch(self, batch: Episodes) -> None:
        """Raise unless the learner can learn from these episodes."""
        batch.check_fits(*self._sizes)
        if self.reward is None:
            cells = batch.step, batch.state, batch.action
            check_observed(*cells, batch.reward, self.shape.reward_range)

    def _check_range(self, simulator: Simulator) -> None:
        """Raise if a compiled loop may draw unknown rewards outside their range."""
        (low, high), ends = self.shape.reward_range, simulator.reward_range
        if self.reward is None and not low <= ends[0] <= ends[1] <= high:
            raise CounselError(
                f"the simulator pays from {ends[0]:g} to {ends[1]:g}, outside reward_range "
                f"({low:g}, {high:g}); declare a range that contains every reward"
            )

    @property
    def _known_reward(self) -> Floats:
        """The known rewards [l, s, a], read-only; no layer if rewards are not known."""
        _, S, A = self._sizes
        return sealed(np.zeros((0, S, A)) if self.reward is None else layers(self.reward).view())


def error_bound(W: float) -> float:
    """Return W + 4 e √W, which bounds the error of every policy's value."""
    return W + 4.0 * math.e * math.sqrt(W)


def _read_most(most_penalty: float) -> float:
    """Return the largest penalty; the theorem needs one number for all steps."""
    if np.ndim(most_penalty):
        raise CounselError(
            "most_penalty has one number for each step; give the largest of them, as the stopping "
            "rule holds for every penalty up to one number"
        )
    return not_negative("most_penalty", most_penalty)
