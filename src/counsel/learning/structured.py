"""Structured exploration: learn the person and the world apart, not what each advice leads to.

Setting: environment 2, as for RFE. The machine sees the person's action too, so by the adherence
law p^M_h(t | s, b) = Σ_a P_h(a | s, b) p_h(t | s, a) there are three factors, each with more data:

* moves, p̂_h(t | s, a): all times a was taken, whatever was advised;
* habit, π̂_h(a | s): the likeliest π given silence, and refusals of b, which are draws without b;
* heed, θ̂: matches among pieces of advice, over all pairs that share one adherence. Advice b counts
  only once the person was seen, of their own will, to do something else there: a person who would
  take the action anyway always matches. What came before decides, so the counts are not biased.

Planning is lift × advantage on these. Exploration follows their uncertainty:

    Φ_h(s, b) = f(n_g) / n_g + (1 − θ̂) g(m) / m_b + Σ_a P̂_h(a | s, b) f(n_a) / n_a
    W_h(s, b) = min(cap, c 16 H² Φ_h(s, b) + (1 + 1/H) Σ_t p̂^M_h(t | s, b) max_b' W_{h+1}(t, b'))

with n_g the counted pieces of advice of the group, m_b = n_0 (1 − π̂(b)) + the refusals of b, n_0
the silent steps, m all free choices, n_a the times a was taken; silence has
g(m) / n_0 + Σ_a π̂ f(n_a) / n_a. f(n) = log(…/δ) + d log(e (1 + n / d)) for d + 1 possible outcomes,
which holds for all n at once; g is the same, A + 1 times for the stopping rule.

Each part of the divergence of p̂^M from p^M, kl(θ̂, θ) + (1 − θ̂) KL(π̂_b ‖ π_b) + Σ_a P̂(a)
KL(p̂_a ‖ p_a), is below its term of Φ (for π̂ because the likelihood ratio of a maximum of an
exponential family is Σ n_C KL(π̂_C ‖ π_C), at most the sum over the A + 1 sets of choices). So
``done`` keeps the promise of Theorem 2 with scale 1, where θ ≥ π and the groups are right
(``docs/explanation/exploring.md``). Where by chance θ̂ < π̂, advice is taken to change nothing.

Rewards that are not known may be random. For them the theorem needs |r̂^M − r^M| ≤ √Φ too, with
rewards in units of their range and r̂^M = Σ_a P̂(a) r̂_a. So in the stopping rule f(n_a) is at least
log(4 S A H (n_a + 1) / δ), the reward term, and the four kinds of sets share δ. For all rows and
counts at once n_a kl(r̂_a, r_a) is at most the reward term (``optimistic_rewards.py``); hence, by
Pinsker and Jensen, and as √x + √y ≤ √(2 (x + y)),

    |r̂^M − r^M| ≤ Σ_a P̂(a) |r̂_a − r_a| + |Σ_a (P̂(a) − P(a)) r_a|
               ≤ √(Σ_a P̂(a) f(n_a) / (2 n_a)) + √(KL(P̂ ‖ P) / 2) ≤ √Φ.

How fast it explores is measured, not proved: there d counts outcomes that were seen, the cap is out
of reach, and one match and one refusal are added in θ̂.

A person with a memory listens differently on each level m, and θ̂ is that of a pair on a level; what
actions lead to and the habit do not depend on the level, and how levels move is known. So W has a
level, W_h(s, m, b), and what lies ahead is expected over next states and over the levels after
silence, a match or a refusal. The known law of levels adds nothing to the divergence, so Φ and the
promise stay as they are. Plans are exact on states and levels (``planning/level_planner.py``).
"""

import math
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from counsel._arrays import Floats, Ints, layers, sealed
from counsel.learning._rfe_kernels import UNSEEN, pick_top
from counsel.learning._structured_kernels import (
    FactorCounts,
    KnownStructure,
    UncertaintySettings,
    count_episodes,
    explore_factors,
    fill_person,
    fill_uncertainty,
    look_ahead,
    plan_factors,
    width,
)
from counsel.learning.arguments import read_groups, shared_parameters
from counsel.learning.learner import LIVE, is_overridden
from counsel.learning.learnt_model import TransitionTable, extend_cost
from counsel.learning.levels import check_level, check_room, columns_by_level, levels_of
from counsel.learning.live_play import play_live
from counsel.learning.reward_free import RewardFreeLearner
from counsel.learning.transition_counts import TransitionCounts, are_consistent
from counsel.model.advice_costs import given_cost
from counsel.model.human import Human
from counsel.model.mdp import MDP
from counsel.model.memory import level_rows
from counsel.model.policy import Policy
from counsel.model.problem import AdviceProblem
from counsel.model.random_cells import Advice
from counsel.model.setting import Shape
from counsel.simulate.episodes import Episodes
from counsel.simulate.simulator import Simulator


@shared_parameters
class Structured(RewardFreeLearner):
    """Explores the person and the world apart, and plans for any penalty or budget.

    As ``RFE``, but from what the person does it learns three things, each with more data: what
    actions lead to, what the person does alone, and how much they listen: on each level, if
    ``shape`` has a memory.

    Parameters
    ----------
    scale
        The factor of the uncertainty in the stopping rule: 1 in theory.
    penalty
        The penalty per unit of cost in ``policy``, in units of reward, or one for each step [h];
        not with a budget.

    Raises
    ------
    CounselError
        If an argument is invalid.

    Examples
    --------
    The share of matches of each advice in 500 nights spent exploring:

    >>> from numpy.random import default_rng
    >>> from counsel import Simulator, learn, make
    >>> problem = make("night-shift")
    >>> learner = Structured(problem.shape, rng=default_rng(1), groups=[0, 1, 2])
    >>> *_, last = learn(learner, Simulator(problem), episodes=500, every=50, rng=default_rng(0))
    >>> (learner.matched / learner.given).round(2).tolist(), learner.given.tolist()
    ([1.0, 0.78, 0.65], [1420, 751, 988])
    >>> print(round(last.value_gap, 2))
    0.04
    """

    def __init__(  # noqa: PLR0913 (the settings of the theorem)
        self,
        shape: Shape,
        *,
        rng: Generator,
        groups: ArrayLike | None = None,
        reward: ArrayLike | None = None,
        penalty: ArrayLike = 0.0,
        budget: float | None = None,
        delta: float = 0.1,
        epsilon: float | None = None,
        most_penalty: float = 0.0,
        scale: float = 1.0,
    ) -> None:
        self._declared_groups = groups
        super().__init__(
            shape,
            rng=rng,
            delta=delta,
            epsilon=epsilon,
            most_penalty=most_penalty,
            scale=scale,
            reward=reward,
            penalty=penalty,
            budget=budget,
        )

    def _set_up(self) -> None:
        H, S, A = self._sizes
        M = 1 if self.memory is None else self.memory.n_levels
        check_room(self.memory, H, S, S * (H * (A + 1.0) + 3.0 * A))
        # Writable: copies are, and kernels compile once.
        rows = level_rows(self.memory)
        D = rows.indptr.size - 1
        self._after, self._level_rows = rows.after_cm.copy(), np.zeros((D, M))
        self._level_rows[np.repeat(np.arange(D), np.diff(rows.indptr)), rows.level] = rows.weight
        groups = self._declared_groups
        if groups is None:
            pairs = (S, A) if self.memory is None else (M, S, A)
            groups = np.arange(M * S * A).reshape(pairs)
        table = read_groups(groups, (H, S, A), self.memory)
        if self.memory is not None:
            table = columns_by_level(table)
        ids, group_of_pair = np.unique(table, return_inverse=True)
        self._group: Ints = group_of_pair.reshape(-1, S, M * A)
        self._allowed = np.ascontiguousarray(layers(self.shape.allowed))
        third = 3.0 / self.delta
        self._exploration = UncertaintySettings(
            scale=1.0,
            transition_log=math.log(third * (S * A * H + 1)),
            habit_log=math.log(third * S * (A + 1) * H),
            adherence_log=math.log(third * ids.size),
            reward_log=0.0,
            cap=UNSEEN,
            pseudo_count=1.0,
            all_outcomes=False,
        )
        scale = 16.0 * H * H * self.scale
        self._stopping = self._exploration._replace(
            scale=scale, cap=float(H), pseudo_count=0.0, all_outcomes=True
        )
        if self.reward is None:  # a fourth of δ for rewards and for each factor
            logs = ("transition_log", "habit_log", "adherence_log")
            fourths = {name: getattr(self._stopping, name) + math.log(4.0 / 3.0) for name in logs}
            fourths["reward_log"] = math.log(4.0 / self.delta * S * A * H)
            self._stopping = self._stopping._replace(**fourths)
        self._transitions = TransitionCounts((H, S, A))
        self._actions = np.zeros((H, S, A + 1, A), dtype=np.int32)
        self._reward_sum = np.zeros((H, S, A))
        self._free = np.zeros((H, S, A), dtype=np.bool_)
        self._own = np.zeros((H, S, A))
        self._given = np.zeros(ids.size, dtype=np.int64)
        self._matched = np.zeros(ids.size, dtype=np.int64)
        self._ahead = np.zeros((H, S, A) if self.memory is None else (H, S, A, D))
        self._most = np.full((H + 1, S) if self.memory is None else (H + 1, M, S), UNSEEN)
        self._most[H] = 0.0
        self._transitions.save_in(self._saved)
        own = ("_actions", "_reward_sum", "_free", "_own", "_given", "_matched", "_ahead", "_most")
        self._saved.add(self, {name: name for name in own})

    @property
    def _counts(self) -> FactorCounts:
        tables = self._actions, self._reward_sum, self._free, self._own
        return FactorCounts(self._transitions.chains, *tables, self._given, self._matched)

    @property
    def _structure(self) -> KnownStructure:
        allowed, ended = sealed(self._allowed.view()), self._ends.ended
        return KnownStructure(allowed, self._group, ended, self._after, self._level_rows)

    @property
    def _ahead_hsad(self) -> Floats:
        """What lies ahead of each action before each row of levels."""
        return self._ahead if self.memory is not None else self._ahead[..., None]

    @property
    def _most_hms(self) -> Floats:
        """The largest uncertainty on each level of memory."""
        return self._most if self.memory is not None else self._most[:, None]

    def explore(self, simulator: Simulator, *, episodes: int, rng: Generator) -> None:
        self._check_range(simulator)
        if not simulator.is_compiled or is_overridden(self, Structured, "update", *LIVE):
            play_live(self, simulator, episodes=episodes, rng=rng)
            return
        H = self.shape.horizon
        for u_nw in simulator.batches(episodes, rng):
            self._transitions.make_room(len(u_nw) * H)
            ties = self.rng.random((len(u_nw), H))
            known = self._counts, self._structure, self._exploration
            found = self._ahead_hsad, self._most_hms, self._ends.starts
            explore_factors(simulator.scene, u_nw, ties, *known, *found)
        self._look_ahead(episodes)

    def update(self, batch: Episodes) -> None:
        self._check_batch(batch)
        level: Ints = np.zeros(batch.state.size, dtype=np.int64)
        if self.memory is not None:
            level = levels_of(batch, self.memory)
        self._transitions.make_room(batch.state.size)
        columns = (batch.state, batch.advice, batch.action, batch.reward, batch.next_state)
        count_episodes(batch.first, *columns, level, self._counts, self._structure)
        self._ends.count(batch)
        self._look_ahead(len(batch))

    def _is_consistent(self, state: dict[str, Any]) -> bool:
        return are_consistent(state, self.shape.n_states)

    def _look_ahead(self, episodes: int) -> None:
        found = self._ahead_hsad, self._most_hms
        look_ahead(self._counts, self._structure, self._exploration, *found)
        self.episode += episodes
        self._policy = None

    def advise(self, step: int, state: int, level: int | None = None) -> int:
        step, state = self._check_cell(step, state)
        m = 0 if self.memory is None else check_level(level, self.memory)
        value_b, known = np.empty(self.shape.n_actions + 1), (self._counts, self._structure)
        fill_uncertainty(*known, self._exploration, self._ahead_hsad, step, state, m, value_b)
        return int(pick_top(value_b, self.rng.random()))

    @property
    def uncertainty(self) -> float:
        most, stopping = np.empty_like(self._most_hms), self._stopping
        look_ahead(self._counts, self._structure, stopping, np.empty_like(self._ahead_hsad), most)
        start = 0 if self.memory is None else self.memory.start
        open_start = width(
            max(1.0, float(self.episode)), stopping.transition_log, self.shape.n_states - 1
        )
        return self._ends.uncertainty(most[0, start], stopping.scale * open_start)

    @property
    def habit(self) -> Floats:
        """The estimate π̂ of the person's own policy [h, s, a]; 0 where nothing was seen."""
        return self._own.copy()

    @property
    def groups(self) -> Ints:
        """Which pairs share one adherence [layer, s, a], with a memory [m, layer, s, a]."""
        if self.memory is None:
            return self._group.copy()
        L, S, _ = self._group.shape
        by_level = self._group.reshape(L, S, self.memory.n_levels, -1)
        return np.moveaxis(by_level, 2, 0).copy()

    @property
    def given(self) -> Ints:
        """The pieces of informative advice given to each group [group]."""
        return self._given.copy()

    @property
    def matched(self) -> Ints:
        """The matches among them [group]."""
        return self._matched.copy()

    @property
    def _row_visits(self) -> Ints:
        return self._transitions.visits

    def reward_bounds(self) -> tuple[Floats, Floats]:
        if self.reward is not None:
            return self.reward, self.reward
        return super().reward_bounds()

    def expected_reward(self) -> Floats:
        """Return the rewards [h, s, a] of actions: known ones, or averages; 0 if nothing is."""
        if self.reward is not None:
            return self.reward
        return self._reward_sum / np.maximum(self._transitions.visits, 1)

    def _best_policy(self) -> Policy:
        if self.memory is None:
            return super()._best_policy()
        return self.plan(penalty=self.penalty).policy

    def best_advice(self, penalty: ArrayLike) -> Advice:
        if self.memory is not None:
            return self.plan(penalty=penalty).policy.advice
        H, S, A = self._sizes
        advice: Advice = np.full((H, S), A, dtype=np.int16)
        least, prices = self.shape.reward_range[0], self._prices(penalty)
        plan_factors(self._counts, self._structure, self._known_reward, least, *prices, advice)
        return advice

    def model(self) -> AdviceProblem:
        """Return what was learnt as a problem that ``solve`` and ``frontier`` take.

        One state more stands for the unknown: all that was never seen leads there, and it pays the
        least there is. Advice that was never tried, or seems to repel, changes nothing. Where the
        person was only ever seen to match, silence leads to what was not seen, if anything.
        """
        H, S, A = self._sizes
        visits = self._transitions.visits
        table = TransitionTable(visits, self.expected_reward(), *self._transitions.entries())
        kernel, reward = table.world(self._ends.ended, self.shape.reward_range[0])
        M = 1 if self.memory is None else self.memory.n_levels
        own, lift = np.zeros((H, S + 1, A)), np.zeros((M, H, S + 1, A))
        for m in range(M):
            fill_person(self._counts, self._structure, m, own, lift[m])
        own[:, S, 0] = 1.0
        allowed = np.ones((H, S + 1, A), dtype=np.bool_)
        allowed[:, :S] = (visits > 0) | (own[:, :S] > 0.0)
        start = self._ends.law_with_unknown()
        mdp = MDP(kernel, reward, horizon=H, start=start, allowed=allowed)
        cost = extend_cost(given_cost(self.shape.cost), states=1)
        person = Human(own, lift=lift[0] if self.memory is None else lift, memory=self.memory)
        return AdviceProblem(mdp, person, cost)
