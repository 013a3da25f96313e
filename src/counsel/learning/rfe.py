"""RFE: explore without a goal, then plan for every penalty and budget (algorithms 2 and 3).

Setting: environment 2. Nothing is known but ``problem.shape``. The machine sees state, advice,
action, reward and next state. With n the times advice b was given at step h in state s, and
B = A + 1 (with silence),

    W_h(s, b) = min(H, c 16 H² φ(n) / n + (1 + 1/H) Σ_t p̂_h(t | s, b) max_b' W_{h+1}(t, b'))
    φ(n) = 6 log(4 e S B H / (ε δ)) + S log(8 e (n + 1))

measures what is uncertain from there on. Exploration may stop when W_1 + 4 e √W_1 at the start is
at most ε / (2 (1 + β)), β the largest penalty that will be asked for; then with probability 1 − δ
(and c = 1) the plan is ε-optimal for every penalty up to β (Theorem 2). Rewards may be unknown and
random: a part of 4 e √W_1 + W_1 is for them, which needs |r̂^M − r^M| ≤ √(φ(n) / n), in units of
their declared range. That holds for all rows and n at once: 2 n (r̂ − r)² ≤ n kl(r̂, r), which with
probability 1 − δ / 4 never exceeds log(4 H S B (n + 1) / δ) ≤ 2 φ(n) (``optimistic_rewards.py``).

Deviates
--------
The reasons are in ``docs/explanation/exploring.md``.

* Silence is explored too: B counts it.
* Exploration follows the uncapped W, with φ(n) / n from the live counts, and a pair never seen
  counts as more than anything seen; p̂ and what lies ahead are refreshed at updates, and ties are
  broken at random. The capped W is for the stopping rule and for ``uncertainty``.
* The threshold of the stopping rule; ε is 1 in φ without one, else in units of the reward range.
* Where the first state is drawn, its law is one row more of W, seen in every episode.
* Planning compares only advice that was tried, and only where silence was tried too; elsewhere it
  is silent, and what follows is taken to be what followed on average.
* If the person has a memory, a state is a pair of state and level (``state_levels.py``), so S
  counts pairs: RFE learns what each advice leads to, the next level included.
* An episode's end is a state where nothing is uncertain any more, once it was reported as such.
* Rewards that are known enter as Σ_a P̂(a | advice) r(s, a); else their averages do. The paper's
  bound on rewards holds up to a large number of episodes, this one for any number.
"""

import math
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from counsel._arrays import Floats, Ints
from counsel.learning._rfe_kernels import (
    UNSEEN,
    RowCounts,
    SortedTransitions,
    clipped_uncertainty,
    count_known,
    explore,
    lay_out_rows,
    look_ahead,
    merge_keys,
    phi,
    plan_tried_advice,
)
from counsel.learning.arguments import allowed_with_silence, shared_parameters
from counsel.learning.learner import LIVE, is_overridden
from counsel.learning.learnt_model import TransitionTable, empirical_problem
from counsel.learning.levels import check_room
from counsel.learning.live_play import play_live
from counsel.learning.reward_free import RewardFreeLearner
from counsel.learning.state_levels import (
    pair_episodes,
    pair_of,
    pair_rows,
    pair_shape,
    policy_by_level,
)
from counsel.model.advice_costs import given_cost
from counsel.model.policy import Policy
from counsel.model.problem import AdviceProblem
from counsel.model.random_cells import Advice
from counsel.model.setting import Shape
from counsel.simulate.episodes import Episodes
from counsel.simulate.simulator import Simulator


@shared_parameters
class RFE(RewardFreeLearner):
    """Explores first, and plans for any penalty or budget afterwards.

    Nothing is known but sizes. While exploring it advises what is most uncertain; ``policy`` is
    what it would advise to do well, and ``plan`` and ``frontier`` answer for any limit.

    Parameters
    ----------
    scale
        The factor of the bonus: 1 in theory, 0.1 in the paper's experiments.
    penalty
        The penalty per unit of cost in ``policy``, in units of reward, or one for each step [h];
        not with a budget.

    Raises
    ------
    CounselError
        If ``shape`` is not a Shape, ``reward`` has other axes, or a number is invalid.

    Examples
    --------
    Explored once, planned for any budget: what each plan is worth in truth after 500 episodes.

    >>> from numpy.random import default_rng
    >>> from counsel import Simulator, evaluate, learn, make
    >>> problem = make("flappy-bird-budget/greedy")
    >>> learner = RFE(problem.shape, rng=default_rng(1))
    >>> *_, last = learn(learner, Simulator(problem), episodes=500, every=50, rng=default_rng(0))
    >>> for budget in (0, 1, 2):
    ...     plan = learner.plan(budget=budget)
    ...     print(budget, round(evaluate(problem, plan.policy).value, 1))
    0 1.0
    1 1.8
    2 2.6
    """

    def _shape_to_learn(self, shape: Shape) -> Shape:
        H, S, A = shape.horizon, shape.n_states, shape.n_actions
        check_room(shape.memory, H, S, S * H * (A + 1.0) * (3.0 + 0.5 * A))
        return pair_shape(shape)

    def _read_rewards(self, reward: ArrayLike, shape: Shape) -> Floats:
        table = super()._read_rewards(reward, shape)
        return table if self.memory is None else pair_rows(table, self.memory.n_levels)

    def _set_up(self) -> None:
        H, S, A = self._sizes
        B = A + 1
        unit = 1.0 if self.epsilon is None else min(1.0, self.epsilon / self._span)
        self._bonus = bonus_constants((H, S, B), epsilon=unit, delta=self.delta, scale=self.scale)
        self._allowed = allowed_with_silence(self.shape)
        self._visits = np.zeros((H, S, B), dtype=np.int64)
        self._actions = np.zeros((H, S, B, A), dtype=np.int32)
        self._reward_sum = np.zeros((H, S, B))
        self._ahead = np.zeros((H, S, B))
        self._key: Ints = np.zeros(0, np.int64)
        self._times: Ints = np.zeros(0, np.int64)
        own = ("_visits", "_actions", "_reward_sum", "_ahead")
        self._saved.add(self, {name: name for name in own})
        self._saved.add(self, {"_key": "_key", "_times": "_times"}, growing=True)
        self._lay_out()

    @property
    def _counts(self) -> RowCounts:
        tables = self._visits, self._actions, self._reward_sum, self._ahead
        return RowCounts(*tables, self._allowed, self._ends.ended, *self._bonus)

    def explore(self, simulator: Simulator, *, episodes: int, rng: Generator) -> None:
        self._check_range(simulator)
        if not simulator.is_compiled or is_overridden(self, RFE, "update", *LIVE):
            play_live(self, simulator, episodes=episodes, rng=rng)
            return
        H, counts = self.shape.horizon, self._counts
        for u_nw in simulator.batches(episodes, rng):
            key = np.empty(len(u_nw) * H, dtype=np.int64)
            ties = self.rng.random((len(u_nw), H))
            used = explore(simulator.scene, u_nw, ties, counts, self._ends.starts, key)
            self._count_transitions(key[:used])
        self._look_ahead(episodes)

    def update(self, batch: Episodes) -> None:
        if self.memory is not None:
            H, pairs, A = self._sizes
            batch.check_fits(H, pairs // self.memory.n_levels, A)
            batch = pair_episodes(batch, self.memory)
        self._check_batch(batch)
        step, state, advice = batch.step, batch.state, batch.advice.astype(np.int64)
        np.add.at(self._visits, (step, state, advice), 1)
        np.add.at(self._actions, (step, state, advice, batch.action.astype(np.int64)), 1)
        np.add.at(self._reward_sum, (step, state, advice), batch.reward)
        self._ends.count(batch)
        if self.memory is not None:  # where all is over, it is so on every level
            ended = self._ends.ended.reshape(len(self._ends.ended), -1, self.memory.n_levels)
            ended |= ended.any(axis=2, keepdims=True)
        _, S, B = self._visits.shape
        self._count_transitions(((step * S + state) * B + advice) * S + batch.next_state)
        self._look_ahead(len(batch))

    def advise(self, step: int, state: int, level: int | None = None) -> int:
        if self.memory is not None:
            state = pair_of(state, level, self.shape.n_states, self.memory)
        step, state = self._check_cell(step, state)
        n = self._visits[step, state]
        allowed = self._allowed[step if len(self._allowed) > 1 else 0, state]
        S = self.shape.n_states
        scale, base = self._bonus
        spread = base + S * (np.log(8.0 * (n + 1.0)) + 1.0)  # φ(n)
        tried = scale * spread / np.maximum(n, 1) + self._ahead[step, state]
        value = np.where(n > 0, tried, np.where(allowed, UNSEEN, -1.0))
        return int(self.rng.choice(np.flatnonzero(value == value.max())))

    def _best_policy(self) -> Policy:
        policy = super()._best_policy()
        return policy if self.memory is None else policy_by_level(policy, self.memory.n_levels)

    def _look_ahead(self, episodes: int) -> None:
        if self._rows.next_state.size < self._key.size:
            self._lay_out()
        look_ahead(self._rows, self._counts)
        self.episode += episodes
        self._policy = None

    def _is_consistent(self, state: dict[str, Any]) -> bool:
        key, times = state["_key"], state["_times"]
        H, S, B = self._visits.shape
        return bool(
            key.ndim == times.ndim == 1
            and key.size == times.size
            and (np.diff(key) > 0).all()
            and ((key >= 0) & (key < H * S * B * S)).all()
            and (times > 0).all()
        )

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._lay_out()

    def _count_transitions(self, key: Ints) -> None:
        """Count transitions, numbered row · S + next state, and keep them sorted."""
        key.sort()
        new = count_known(self._key, self._times, key)
        if new > 0:
            self._key, self._times = merge_keys(self._key, self._times, key[:new])

    def _lay_out(self) -> None:
        """Lay the sorted transitions out by row, as kernels take them."""
        _, S, A = self._sizes
        self._rows = SortedTransitions(*lay_out_rows(self._key, S, A + 1), self._times)

    @property
    def uncertainty(self) -> float:
        if self.episode == 0:
            return float(self.shape.horizon)
        most = np.empty((self.shape.horizon + 1, self.shape.n_states))
        clipped_uncertainty(self._rows, self._counts, most)
        n, (scale, base) = max(1, self.episode), self._bonus
        return self._ends.uncertainty(most[0], scale * phi(float(n), base, self.shape.n_states) / n)

    @property
    def _row_visits(self) -> Ints:
        return self._visits

    def expected_reward(self) -> Floats:
        """Return the mean observed rewards r̂^M [h, s, b], silence last; 0 where there are none."""
        n = np.maximum(self._visits, 1)
        if self.reward is None:
            return self._reward_sum / n
        share = self._actions / n[..., None]
        return np.asarray(np.einsum("hsba,hsa->hsb", share, self.reward))

    def best_advice(self, penalty: ArrayLike) -> Advice:
        H, S, A = self._sizes
        advice: Advice = np.full((H, S), A, dtype=np.int16)
        least, prices = self.shape.reward_range[0], self._prices(penalty)
        plan_tried_advice(self._rows, self._counts, self._known_reward, least, *prices, advice)
        return advice

    def model(self) -> AdviceProblem:
        """Return what was learnt as a problem that ``solve`` and ``frontier`` take.

        Its actions are the advice and, last, to be left alone; its person always listens. Untried
        advice leads to one state more, the unknown, which pays the least there is.
        """
        S = self.shape.n_states
        row, then = self._key // S, self._key % S
        table = TransitionTable(self._visits, self.expected_reward(), row, then, self._times)
        least, start = self.shape.reward_range[0], self._ends.law_with_unknown()
        world = table.with_silence(), self._ends.ended, least, start
        return empirical_problem(*world, cost=given_cost(self.shape.cost))


def bonus_constants(
    rows: tuple[int, int, int], *, epsilon: float, delta: float, scale: float
) -> tuple[float, float]:
    """Return c 16 H² and 6 log(4 e S B H / (ε δ)); ``rows`` are H, S and B."""
    H, S, B = rows
    base = 6.0 * (math.log(4.0 * S * B * H) + 1.0 - math.log(epsilon) - math.log(delta))
    return 16.0 * H * H * scale, base
