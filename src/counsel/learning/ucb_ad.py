"""UCB-AD: be optimistic about how much the person listens (algorithm 1 of the paper).

Setting: environment 1. The world (p, r, H) and the person's own policy π are known, the adherence θ
is not. After t episodes each group of pairs that share one adherence has n pieces of advice and k
matches, and a bound gives an optimistic θ̄ ≥ θ. The policy of the next episode is the best one for a
person with adherence θ̄. As more adherence never makes the optimal value smaller (Proposition 2),
the value it promises is at least the true optimum, and it falls short only where something is left
to learn.

Guarantee: with a valid bound (``Theory``, ``KL(delta=…)``) all but Õ(H² S² A / ε²) policies are
ε-optimal with probability 1 − δ (Theorem 1); pooled groups need correspondingly less. The default
``KL()`` is the practical choice and has no δ.

Deviates
--------
* Proposition 2 needs θ ≥ π. Where a bound falls below π the data reject that; the advice is then
  left out and its pairs are listed in ``rejected``. With ``may_repel`` nothing is taken for
  granted: Q^M is linear in θ, so the better end of a two-sided interval is optimistic for any θ.
* Rewards may be unknown and random (``setting.without_rewards()``; see ``rewards.py``).
* Pairs where π = 1 always match and are not counted.
* Cells the plan cannot reach stay silent: no episode gets there.
"""

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from counsel._arrays import Floats, Ints
from counsel.errors import CounselError
from counsel.estimate._bound_kernels import fill_bounds
from counsel.estimate.bounds import KL, Bound, level_at
from counsel.learning._adherence_kernels import CellPlan, Judge, set_all, ucb_episodes
from counsel.learning.adherence_learner import AdherenceLearner
from counsel.learning.replanning import BothEnds, SmallPlan
from counsel.learning.reward_estimates import Rewards
from counsel.model.mdp import MDP
from counsel.model.problem import Setting
from counsel.planning._cell_kernels import value_cells
from counsel.simulate.simulator import Simulator


class UCBAD(AdherenceLearner):
    """Learns how much a person listens, optimistically.

    The world and what the person does alone are known; only their adherence is learnt.

    Parameters
    ----------
    setting
        What is known: ``problem.without_adherence()``, or that ``.without_rewards()``.
    bound
        How optimistic to be: ``KL()``, which None means too, ``KL(delta=…)``, ``Theory(…)`` or
        ``PaperBonus()``.
    penalty
        What each piece of advice costs, in units of reward; not with a budget.
    budget
        How many pieces of advice are expected in an episode at most; not with a penalty.
    groups
        Pairs that share one adherence, if not those of the setting: whole numbers [a], [s, a] or
        [h, s, a]; ``[0, 1, 2]`` is one for each advice.
    rng
        Where live advice is drawn from within a budget, whose best policy may be random.
    may_repel
        Do not take for granted that advice never makes an action less likely (θ ≥ π): plan for the
        better end of a two-sided interval. Then advice may be given because it repels. Goes with a
        penalty, not with a budget.

    Raises
    ------
    CounselError
        When ``setting`` is no setting, the person does the same whatever is advised, or the groups
        or the limit make no sense.

    Examples
    --------
    Who shares one adherence learns from one another: by advice there are 3 numbers to learn, by
    step, state and advice 143.

    >>> import numpy as np
    >>> from counsel import Simulator, learn
    >>> from counsel.worlds import make
    >>> problem = make("night-shift")
    >>> for groups in ([0, 1, 2], None):
    ...     learner = UCBAD(problem.without_adherence(), penalty=0.05, groups=groups)
    ...     run = learn(learner, Simulator(problem), episodes=500, rng=np.random.default_rng(0))
    ...     *_, last = run
    ...     print(len(learner.given), round(last.regret, 2))
    3 0.51
    143 1.19
    """

    def __init__(  # noqa: PLR0913 (the settings)
        self,
        setting: Setting,
        *,
        bound: Bound | None = None,
        penalty: float = 0.0,
        budget: float | None = None,
        groups: ArrayLike | None = None,
        rng: Generator | None = None,
        may_repel: bool = False,
    ) -> None:
        super().__init__(
            setting, penalty=penalty, budget=budget, groups=groups, rng=rng, may_repel=may_repel
        )
        self.bound = KL() if bound is None else bound
        self._rule = self.bound.rule(groups=self.known.n_bins, horizon=self.setting.mdp.horizon)

        self.rewards = None
        if self.setting.reward_range is not None:
            self.rewards = Rewards(self.setting, self.bound)

    def believe(self) -> None:
        """Bound everything and carry it into the plan."""
        known, level = self.known, level_at(self.episode)
        set_all(self._rule, known.groups, known.belief, level, known.plan.pull)
        if isinstance(known.plan, BothEnds):
            self._believe_the_worst(known.plan, level)
        if self.rewards is not None:
            known.plan.pay(self.rewards.upper(self.episode))

    def carry(self) -> None:
        """Carry what is believed into the plan again."""
        self.believe()

    def _believe_the_worst(self, plan: BothEnds, level: float) -> None:
        """Carry the lower ends of the intervals into the plan: the largest of a group's bins."""
        groups, belief = self.known.groups, self.known.belief
        low, high = np.empty(self.known.n_bins), np.empty(self.known.n_bins)
        fill_bounds(self._rule, belief.matched, belief.given, level, low, high)
        if groups.shares_lift:
            low = (low - groups.own_of_bin) / groups.rest_of_bin
        low = np.repeat(np.maximum.reduceat(low, groups.first_bin[:-1]), np.diff(groups.first_cell))
        lift = low if groups.shares_lift else (low - groups.own_of_cell) / groups.rest_of_cell
        plan.push[groups.cell] = np.where(lift < 0.0, lift, np.nan)

    def world(self) -> MDP:
        """Return the world as far as it is known, with optimistic rewards where they are not.

        Returns
        -------
        MDP
            What is planned on.
        """
        return super().world() if self.rewards is None else self.rewards.world(self.episode)

    def count(self, step: Ints, state: Ints, advice: Ints, action: Ints, reward: Floats) -> None:
        """Count decisions: matches, and rewards where they are learnt.

        Parameters
        ----------
        step
            Steps [decision].
        state
            States [decision].
        advice
            What was advised [decision]; the number of actions for silence.
        action
            What people did [decision].
        reward
            What it paid [decision].
        """
        super().count(step, state, advice, action, reward)
        if self.rewards is not None:
            self.rewards.count(step, state, action, reward)

    def state(self) -> dict[str, Any]:
        """Return all that was learnt.

        Returns
        -------
        dict
            Arrays and numbers: what ``restore`` takes.
        """
        learnt = super().state()
        if self.rewards is not None:
            learnt |= {"times": self.rewards.times.copy(), "paid": self.rewards.paid.copy()}
        return learnt

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state that a learner with the same settings had.

        Parameters
        ----------
        state
            What ``state`` returned.

        Raises
        ------
        CounselError
            When it is of other settings.
        """
        if self.rewards is not None:
            for name in ("times", "paid"):
                if name not in state or state[name].shape != self.rewards.times.shape:
                    raise CounselError(
                        "it holds no such rewards; restore a learner with the same settings"
                    )
                getattr(self.rewards, name)[:] = state[name]
        super().restore(state)

    def run(
        self, simulator: Simulator, *, best: float, episodes: int, every: int, rng: Generator
    ) -> tuple[Floats, Floats]:
        """Play and learn in one compiled loop.

        The same episodes, and the same learner afterwards, as with ``policy`` and ``update`` in
        turn. ``learn`` uses it where ``can_run``.

        Parameters
        ----------
        simulator
            The world and the person; the truth in it is read to judge policies only.
        best
            What the best policy is worth, less the penalty.
        episodes
            How many to play.
        every
            After how many to update.
        rng
            Where chance comes from.

        Returns
        -------
        gaps : ndarray
            What each episode's policy fell short of ``best`` [episode].
        pieces : ndarray
            Its expected pieces of advice [episode].

        Raises
        ------
        CounselError
            When too many cells can occur for one compiled loop.
        """
        known, plan = self.known, self.known.plan
        if not isinstance(plan, SmallPlan):
            raise CounselError("too many cells can occur in this world for one compiled loop")
        lift = simulator.problem.lift[plan.cells.step, plan.cells.states]
        judge = Judge(np.ascontiguousarray(lift), best, self.penalty)
        advice_hs = np.array(self.policy.advice)
        cell_plan = CellPlan(
            world=plan.world,
            aim=plan.aim,
            pull_ca=plan.pull_ca,
            V_c2=plan.V_c2,
            q_2a=plan.q_2a,
            advice_c=plan.advice_c,
            step_c=plan.cells.step,
            state_c=plan.cells.states,
            advice_hs=advice_hs,
        )
        value, pieces = value_cells(
            plan.world, judge.lift_ca, plan.advice_c, np.empty_like(plan.V_c2), plan.q_2a
        )
        gap = judge.best - (value - judge.penalty * pieces)
        power = 2 ** (self.episode.bit_length() - 1) if self.episode else 0
        clock = np.array([self.episode, 0, power])
        gaps, counts = [], []
        for u_nw in simulator.batches(episodes, rng):
            gap_n, pieces_n = np.empty(len(u_nw)), np.empty(len(u_nw))
            gap_n[0], pieces_n[0] = gap, pieces
            ucb_episodes(
                simulator.scene,
                u_nw,
                self._rule,
                known.groups,
                known.belief,
                cell_plan,
                judge,
                clock,
                every,
                gap_n,
                pieces_n,
            )
            gap, pieces = gap_n[-1], pieces_n[-1]
            gaps.append(gap_n)
            counts.append(pieces_n)
        known.belief.dirty[:] = False
        self.episode, self._due = int(clock[0]), True
        return np.concatenate(gaps), np.concatenate(counts)

    @property
    def rejected(self) -> Ints:
        """Pairs [n, (layer, state, action)] whose bound lies below π, so that advice repels there.

        The layer is 0 where nothing changes with the step. These pairs are not advised.
        """
        self.believe()
        groups, belief = self.known.groups, self.known.belief
        upper_g = np.minimum.reduceat(belief.upper, groups.first_bin[:-1])
        upper_lsa = upper_g[groups.group_of_bin[groups.bin_lsa]]
        own_lsa = self.setting.policy[: len(upper_lsa)]
        least_lsa = 0.0 if groups.shares_lift else own_lsa
        return np.argwhere((groups.bin_lsa >= 0) & (upper_lsa < least_lsa))

    @property
    def can_run(self) -> bool:
        """Whether ``run`` can be used (few cells can occur, no budget, rewards are known)."""
        simple = self.budget is None and self.rewards is None
        return isinstance(self.known.plan, SmallPlan) and simple
