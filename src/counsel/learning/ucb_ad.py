"""UCB-AD: be optimistic about how much the person listens (algorithm 1 of the paper).

Setting: environment 1. The world (p, r, H) and the person's own policy π are known, the adherence θ
is not. A bound on the matches of each group gives an optimistic θ̄ ≥ θ, and the policy of the next
episode is the best one for a person with adherence θ̄. As more adherence never makes the optimal
value smaller (Proposition 2), it falls short only where something is left to learn. Guarantee: with
``Theory(delta=δ, …)`` all but Õ(H² S² A / ε²) policies are ε-optimal with probability 1 − δ
(Theorem 1). So are they with ``KL(delta=δ / 2)``, for any number of episodes: the proof is in
``docs/explanation/adherence-learning.md``.

A person with a memory (``model/memory.py``)
--------------------------------------------
The lift λ(h, s, b, m) depends on the level m, which is observed; the memory is known. Speaking now
may cost lift later, so more lift need not mean more value: Proposition 2 fails, and the upper end
of an interval alone is not optimistic. The better of its two ends is, for any memory.

*Claim.* Let every true lift lie in its interval [lo, hi]. Plan backwards with V̄_{H+1} = 0, on each
level for silence and, for each advice, with its lift at lo and at hi; V̄ is the largest of these
values. Then V̄_h(s, m) ≥ V*_h(s, m) for all h, s and m, so the plan is worth at least the optimum.

*Proof* by induction from the last step. Let V̄_{h+1} ≥ V*_{h+1} on every level. Then Q̄⁰, Q̄⁺ and
Q̄⁻, the values of the actions after silence, a match and a refusal, are at least Q⁰, Q⁺ and Q⁻:
they are expectations over next states and levels by the same known laws. Silence is worth
Σ_a π(a) Q⁰(a), and advice b

    f(λ; Q) = (1 − λ) Σ_{a≠b} π(a) Q⁻(a) + (λ + (1 − λ) π(b)) Q⁺(b) − price.

At the true λ the factors of Q⁻ and Q⁺ are probabilities, so f(λ; Q̄) ≥ f(λ; Q). And f(·; Q̄) is
linear: f = d̄⁰ + λ · advantage − burden − price, where advantage and burden do not depend on λ. So
its largest value on [lo, hi] is at an end: max(f(lo; Q̄), f(hi; Q̄)) ≥ f(λ; Q̄) ≥ f(λ; Q). Every
choice is worth at least its true value, hence so is the best choice.  ∎

The burden may have any sign, and the matrices of the memory may be any. Unless ``may_repel``, lifts
are taken to be at least 0, so lo is at least 0. With one level the burden is 0 and lo ≥ 0 never
beats both hi and silence: the plan is that of a person without a memory. Within an expected budget
both ends are optimistic, too (``level_budget.py``).

Deviates
--------
* Proposition 2 needs θ ≥ π. Where a bound falls below π the data reject that; the advice is then
  left out and its pairs are listed in ``rejected``. With ``may_repel`` nothing is taken for
  granted: Q^M is linear in θ, so the better end of a two-sided interval is optimistic for any θ.
* Rewards may be unknown and random (``setting.without_rewards()``; see ``optimistic_rewards.py``).
* Pairs where π = 1 always match and are not counted.
* Cells the plan cannot reach stay silent: no episode gets there.
"""

from typing import Any, cast

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from counsel._arrays import Floats, Ints
from counsel._jit import is_compiled
from counsel.errors import CounselError
from counsel.estimate._bound_kernels import Rule
from counsel.estimate.bounds import KL, Bound, GroupBounds, level_at
from counsel.learning._adherence_kernels import CUSTOM, ucb_episodes, ucb_episodes_with
from counsel.learning.adherence_learner import AdherenceLearner
from counsel.learning.arguments import read_setting, shared_parameters
from counsel.learning.learner import (
    LIVE,
    Runner,
    check_episodes_left,
    documented_by,
    is_overridden,
)
from counsel.learning.level_budget import within_level_budget
from counsel.learning.level_plan import LevelPlan
from counsel.learning.optimistic_rewards import OptimisticRewards
from counsel.learning.replanning import TrueOutcome
from counsel.model.mdp import MDP
from counsel.model.policy import Policy
from counsel.model.setting import Setting
from counsel.simulate.simulator import Simulator


@documented_by(Runner)
@shared_parameters
class UCBAD(AdherenceLearner):
    """Learns the adherence of a person, optimistically.

    The world and the person's own policy are known; only the adherence is learnt. For a person with
    a memory the lift is learnt on each of its levels.

    Parameters
    ----------
    setting
        What the learner may know: ``problem.without_adherence()``, or that ``.without_rewards()``.
    bound
        How optimistic to be: ``KL()`` (the default), ``KL(delta=…)``, ``Theory(…)``,
        ``PaperBonus()`` or a bound of your own.
    rng
        The generator of live advice within a budget, where the best policy may be random.
    may_repel
        Whether advice may make an action less likely (θ < π): plan for the better end of a
        two-sided interval, and advise where that repels. Not with a budget.

    Raises
    ------
    CounselError
        If an argument is invalid, or the person does the same whatever is advised.

    Examples
    --------
    Who shares one adherence learns from one another: by advice there are 3 numbers to learn, by
    step, state and advice 143.

    >>> from numpy.random import default_rng
    >>> from counsel import Simulator, learn, make
    >>> problem = make("night-shift")
    >>> for groups in ([0, 1, 2], None):
    ...     learner = UCBAD(problem.without_adherence(), penalty=0.05, groups=groups)
    ...     *_, last = learn(learner, Simulator(problem), episodes=500, rng=default_rng(0))
    ...     print(len(learner.given), round(last.regret, 2))
    3 0.51
    143 1.19

    A pilot who tires, and one lift for each advice on each of four levels of their memory:

    >>> problem = make("flappy-bird/tiring")
    >>> groups = [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]
    >>> learner = UCBAD(problem.without_adherence(), penalty=0.1, groups=groups)
    >>> *_, last = learn(learner, Simulator(problem), episodes=200, rng=default_rng(0))
    >>> learner.policy.levels, last.value_gap < 0.1
    (4, True)
    """

    def __init__(  # noqa: PLR0913 (the settings)
        self,
        setting: Setting,
        *,
        bound: Bound | None = None,
        groups: ArrayLike | None = None,
        penalty: ArrayLike = 0.0,
        budget: float | None = None,
        may_repel: bool = False,
        rng: Generator | None = None,
    ) -> None:
        memory = read_setting(setting).memory
        if budget is not None and may_repel:
            raise CounselError("may_repel goes with a penalty, not with a budget")
        super().__init__(
            setting,
            penalty=penalty,
            budget=budget,
            groups=groups,
            rng=rng,
            two_sided=may_repel or memory is not None,
        )
        self.may_repel = may_repel
        self.bound = KL() if bound is None else bound
        self._bounds = GroupBounds(
            self.bound, groups=self.matches.n_bins, horizon=self.setting.mdp.horizon
        )
        self.rewards = None
        if not self.setting.knows_rewards:
            self.rewards = OptimisticRewards(self.setting, self.bound)

    @property
    def most_episodes(self) -> int | None:
        """The number of episodes that the bound was declared for; None if it holds for any."""
        most: int | None = getattr(self.bound, "episodes", None)
        return most

    def believe(self) -> None:
        groups, belief = self.matches.groups, self.matches.belief
        plan, level = self.matches.plan, level_at(self.episode)
        upper = self._bounds.upper(belief.matched, belief.given, level)
        self.matches.set_bounds(upper)
        if self.memory is not None:
            low = self.matches.lower_lifts(self._bounds.lower(belief.matched, belief.given, level))
            self._set_ends(low, self.matches.upper_lifts())
        elif plan.push is not None:
            lift = self.matches.lower_lifts(self._bounds.lower(belief.matched, belief.given, level))
            plan.push[groups.cell] = np.where(lift < 0.0, lift, np.nan)
        if self.rewards is not None:
            plan.set_rewards(self.rewards.upper(self.episode))

    def _set_ends(self, low: Floats, high: Floats) -> None:
        """Copy both ends of the interval of each lift into the plan of a person with a memory."""
        groups, plan = self.matches.groups, self.matches.plan
        least = -groups.own_of_cell / groups.rest_of_cell if self.may_repel else 0.0
        rejected = high < 0.0 if not self.may_repel else np.zeros(high.shape, dtype=np.bool_)
        plan.pull[groups.cell] = np.where(rejected, np.nan, high)
        cast("Floats", plan.push)[groups.cell] = np.where(rejected, np.nan, np.maximum(low, least))

    def carry(self) -> None:
        self.believe()

    def world(self) -> MDP:
        return super().world() if self.rewards is None else self.rewards.world(self.episode)

    def _plan(self) -> Policy:
        """Return the best policy for the lifts in the plan."""
        plan, memory, cost = self.matches.plan, self.memory, self.setting.cost
        if self.budget is None or memory is None or not isinstance(plan, LevelPlan):
            return super()._plan()
        world, own, ends = self.world(), self.matches.own_lsa, plan.ends()
        _, policy = within_level_budget(world, own, memory, ends, cost=cost, budget=self.budget)
        return policy

    def count(  # noqa: PLR0913 (the columns of decisions)
        self,
        step: Ints,
        state: Ints,
        advice: Ints,
        action: Ints,
        reward: Floats,
        level: Ints | None = None,
    ) -> None:
        super().count(step, state, advice, action, reward, level)
        if self.rewards is not None:
            self.rewards.count(step, state, action, reward)

    def state(self) -> dict[str, Any]:
        learnt = super().state()
        if self.rewards is not None:
            learnt |= {"times": self.rewards.times.copy(), "paid": self.rewards.paid.copy()}
        return learnt

    def restore(self, state: dict[str, Any]) -> None:
        if self.rewards is not None:
            for name in ("times", "paid"):
                if name not in state or state[name].shape != self.rewards.times.shape:
                    raise CounselError(
                        "the state has no such rewards; restore a learner with the same settings"
                    )
                getattr(self.rewards, name)[:] = state[name]
        super().restore(state)

    @property
    def can_run(self) -> bool:
        """Whether ``run`` can be used.

        The cells fit into memory, there is no budget, rewards are known, the bound is built in or a
        Numba function, and no method that the loop stands for is overridden.
        """
        return self._loop() is not None

    def _loop(self) -> Any:  # noqa: ANN401 (a compiled function)
        """Return the compiled loop; None if it cannot be used."""
        replaced = ("believe", "carry", "count", "world", "policy", "update", *LIVE)
        is_small = self.matches.plan.cells is not None
        is_plain = self.budget is None and self.rewards is None
        if not (is_small and is_plain) or is_overridden(self, UCBAD, *replaced):
            return None
        rule = self._bounds.rule
        if isinstance(rule, Rule):
            return ucb_episodes
        return ucb_episodes_with(cast("Any", rule)) if is_compiled(rule) else None

    def run(
        self, simulator: Simulator, *, best: float, episodes: int, every: int, rng: Generator
    ) -> tuple[Floats, Floats]:
        loop, plan = self._loop(), self.matches.plan.cells
        if loop is None or plan is None or not simulator.is_compiled:
            raise CounselError("this learner has no compiled loop here; use learn")
        check_episodes_left(self, episodes)
        self.policy  # noqa: B018 (makes the plan of the first episode)
        power = 2 ** (self.episode.bit_length() - 1) if self.episode else 0
        clock = np.array([self.episode, 0, power])
        rule = self._bounds.rule if isinstance(self._bounds.rule, Rule) else CUSTOM
        learner = (rule, self.matches.groups, self.matches.belief, plan, clock, every)
        gaps, counts, played = np.empty(episodes), np.empty(episodes), 0
        outcome = TrueOutcome(plan, simulator.problem, self.penalty)
        value, pieces = outcome.now()
        for u_nw in simulator.batches(episodes, rng):
            end = 0
            while end < len(u_nw):
                first, end = end, loop(simulator.scene, u_nw, *learner, end)
                block = slice(played + first, played + end)
                gaps[block], counts[block] = best - value, pieces
                if end < len(u_nw):
                    value, pieces = outcome.now()
            played += end
        self.matches.belief.dirty[:] = False
        self.episode, self._due = int(clock[0]), True
        return gaps, counts

    @property
    def rejected(self) -> Ints:
        """Pairs [n, (layer, state, action)] whose bound lies below π, so that advice repels there.

        The layer is 0 where nothing changes with the step. For a person with a memory the level
        comes first: [n, (level, layer, state, action)]. These pairs are not advised.
        """
        self.believe()
        groups, belief = self.matches.groups, self.matches.belief
        upper_g = np.minimum.reduceat(belief.upper, groups.first_bin[:-1])
        upper_lsa = upper_g[groups.group_of_bin[groups.bin_lsa]]
        own_lsa = self.setting.policy[: len(upper_lsa)]
        least_lsa = 0.0 if groups.shares_lift else own_lsa
        cells = np.argwhere((groups.bin_lsa >= 0) & (upper_lsa < least_lsa))
        if self.memory is None:
            return cells
        level, action = np.divmod(cells[:, 2:], self.setting.policy.shape[2])
        return np.hstack((level, cells[:, :2], action))
