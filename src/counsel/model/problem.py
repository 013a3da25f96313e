"""The advice problem: a world and a person, and the machine's view of both.

From the machine's side a piece of advice is an action that leads to t with

    p^M_h(t | s, b) = Σ_a P_h(a | s, b) p_h(t | s, a),    r^M_h(s, b) = Σ_a P_h(a | s, b) r_h(s, a)

with the adherence law P of ``human.py``. Planning never builds p^M (see ``planning/backward.py``);
``AdviceProblem.machine`` builds it for algorithms that need a plain MDP. ``machine_rewards`` and
``support_of`` are what a black-box learner may know of it (``setting.py``).
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from counsel._arrays import (
    ROW_TOLERANCE,
    Bools,
    Floats,
    Ints,
    by_step,
    first,
    index_in,
    layers,
    place,
    sealed,
    unlayered,
)
from counsel.errors import CounselError
from counsel.model.advice_costs import given_cost, read_cost
from counsel.model.human import Human, advantages, advised_law, gain_of
from counsel.model.kernel import Kernel
from counsel.model.mdp import MDP
from counsel.model.memory import Memory
from counsel.model.policy import Policy
from counsel.model.rewards import (
    Range,
    RewardCells,
    RewardLaw,
    bernoulli,
    check_law,
    check_means,
    check_observed,
    range_of_means,
    read_range,
)
from counsel.model.setting import Setting, Shape


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class AdviceProblem:
    """A world, and a person in it who may be advised.

    Parameters
    ----------
    mdp
        The world.
    human
        The person: a habit and an adherence.
    cost
        What a piece of advice costs: a number for all advice, or numbers [a], [s, a] or [h, s, a],
        0 or more. Penalties and budgets are in units of cost.
    reward_range
        The least and the largest reward that can be paid: all that a learner knows of unknown
        rewards. By default rewards are certain, and the range is that of ``mdp.reward``.
    reward_law
        How random rewards with the means ``mdp.reward`` are drawn: ``counsel.simulate.bernoulli``,
        or a function of ``counsel.simulate.RewardCells`` and uniform numbers. Only with a
        ``reward_range``; certain rewards by default.

    Raises
    ------
    CounselError
        If the two differ in states, actions or steps, the person takes an action that is not
        allowed, a cost is invalid, or a mean reward lies outside ``reward_range``.

    Examples
    --------
    Left alone the person hardly ever takes action 1; when it is advised, six times in ten:

    >>> import counsel
    >>> mdp = counsel.MDP([[0, 1], [0, 1]], reward=[0.0, 1.0], horizon=3)
    >>> human = counsel.Human([[0.9, 0.1], [0.9, 0.1]], adherence=0.6)
    >>> problem = counsel.AdviceProblem(mdp, human)
    >>> problem.law(step=0, state=0, advice=problem.defer).tolist()
    [0.9, 0.1]
    >>> problem.law(step=0, state=0, advice=1).round(3).tolist()
    [0.4, 0.6]

    A page costs three times as much as a nudge:

    >>> problem = counsel.AdviceProblem(mdp, human, cost=[1.0, 3.0])
    >>> problem.cost[0, 0].tolist()
    [1.0, 3.0]

    Every reward is 0 or 1:

    >>> problem = counsel.AdviceProblem(
    ...     mdp, human, reward_range=(0, 1), reward_law=counsel.simulate.bernoulli
    ... )
    >>> problem.shape.reward_range
    (0.0, 1.0)
    """

    mdp: MDP
    human: Human
    cost: Floats = 1.0  # type: ignore[assignment]  # a table [h, s, a] once built
    reward_range: Range | None = None
    reward_law: RewardLaw | None = None

    def __post_init__(self) -> None:
        mdp, human = self.mdp, self.human
        if not isinstance(mdp, MDP) or not isinstance(human, Human):
            raise CounselError("an AdviceProblem takes an MDP and a Human, in this order")
        world, person = (mdp.n_states, mdp.n_actions), (human.n_states, human.n_actions)
        if world != person:
            hint = ""
            if world == (person[0] + 1, person[1]):
                hint = " (a world from a toy-text dictionary has one added state, the last)"
            raise CounselError(
                f"the person's policy has {person[0]} states and {person[1]} actions "
                f"but the world has {world[0]} and {world[1]}{hint}"
            )
        for name, steps in (
            ("policy", len(human.policy)),
            ("adherence", human.level_adherence.shape[1]),
            ("groups", human.group_layers),
        ):
            if steps not in (1, mdp.horizon):
                raise CounselError(f"{name} has {steps} steps but the horizon is {mdp.horizon}")
        where = first((human.policy > 0.0) & ~layers(mdp.allowed))
        if where is not None:
            mass = np.broadcast_to(human.policy, (mdp.horizon, *world))[where]
            raise CounselError(
                f"policy{place('hsa', where)} is {mass:.10g} for an action that is not allowed; "
                "allow the action or give it probability 0"
            )
        object.__setattr__(self, "cost", read_cost(self.cost, (mdp.horizon, *world)))
        if self.reward_range is not None:
            object.__setattr__(self, "reward_range", read_range(self.reward_range))
            check_means(mdp, self.reward_range)
        check_law(self.reward_law, self.reward_range)

    def __reduce__(self) -> tuple[Any, ...]:
        rewards = self.reward_range, self.reward_law
        return AdviceProblem, (self.mdp, self.human, given_cost(self.cost), *rewards)

    @property
    def horizon(self) -> int:
        """The number of steps per episode."""
        return self.mdp.horizon

    @property
    def n_states(self) -> int:
        """The number of states."""
        return self.mdp.n_states

    @property
    def n_actions(self) -> int:
        """The number of actions of the person."""
        return self.mdp.n_actions

    @property
    def defer(self) -> int:
        """The advice index that means silence: the index after the last action."""
        return self.mdp.defer

    @property
    def policy(self) -> Floats:
        """The person's habit π [h, s, a]."""
        return by_step(self.human.policy, self.horizon)

    @property
    def adherence(self) -> Floats:
        """The adherence θ [h, s, a] of a person without a memory."""
        return by_step(self.human.adherence, self.horizon)

    @property
    def lift(self) -> Floats:
        """The lift λ [h, s, a] of a person without a memory."""
        return by_step(self.human.lift, self.horizon)

    @property
    def level_lift(self) -> Floats:
        """The lift λ [m, h, s, a] at each level of memory; without a memory there is one level."""
        return self._by_level(self.human.level_lift)

    @property
    def level_adherence(self) -> Floats:
        """The adherence θ [m, h, s, a] at each level of memory."""
        return self._by_level(self.human.level_adherence)

    def _by_level(self, table_mlsa: Floats) -> Floats:
        M, _, S, A = table_mlsa.shape
        return np.broadcast_to(table_mlsa, (M, self.horizon, S, A))

    @property
    def memory(self) -> Memory | None:
        """The memory of the person; None if they have none."""
        return self.human.memory

    @property
    def n_levels(self) -> int:
        """The number of levels of the person's memory; 1 without a memory."""
        return self.human.n_levels

    def level_of(self, level: int | None) -> int:
        """Return a level, checked; by default the start.

        Parameters
        ----------
        level
            A level of the memory, counted from 0. Without a memory there is only 0.
        """
        if level is None:
            return 0 if self.memory is None else self.memory.start
        return index_in("level", level, self.n_levels)

    def law(self, step: int, state: int, advice: int, level: int | None = None) -> Floats:
        """Return the probability [a] of each action under advice or silence (equation 1).

        Parameters
        ----------
        step, state
            The cell, counted from 0.
        advice
            An action, or ``defer`` for silence.
        level
            The level of the person's memory, by default the start.
        """
        step = index_in("step", step, self.horizon)
        state = index_in("state", state, self.n_states)
        advice = index_in("advice", advice, self.n_actions + 1)
        own: Floats = self.policy[step, state].copy()
        if advice == self.defer:
            return own
        theta = self.level_adherence[self.level_of(level), step, state, advice]
        return advised_law(own, advice, float(theta))

    def draw_rewards(self, step: Ints, state: Ints, action: Ints, u: Floats) -> Floats:
        """Return the rewards of decisions [decision]; without a law these are ``mdp.reward``.

        For decisions before an episode is over; afterwards nothing is paid.

        Parameters
        ----------
        step, state, action
            The cell of each decision.
        u
            A number for each decision, uniform in [0, 1), that draws its reward.

        Raises
        ------
        CounselError
            If the law of rewards returns other than one number for each decision, or a reward
            outside ``reward_range``.
        """
        mean: Floats = self.mdp.reward[step, state, action]
        if self.reward_law is None or self.reward_range is None:
            return mean
        cells = RewardCells(step, state, action, mean, *self.reward_range)
        reward = np.asarray(self.reward_law(cells, u), dtype=np.float64)
        if reward.shape != mean.shape:
            raise CounselError(
                f"reward_law returned an array of shape {reward.shape} for {mean.size} decisions; "
                "return one reward for each decision"
            )
        check_observed(step, state, action, reward, self.reward_range)
        return reward

    def check_fits(self, policy: Policy) -> None:
        """Raise unless the policy has the problem's sizes and advises only allowed actions.

        Parameters
        ----------
        policy
            The policy to check.
        """
        H, S, A = self.horizon, self.n_states, self.n_actions
        self.check_sizes(policy)
        if policy.budget is not None and not self.has_unit_cost:
            self._check_affordable(policy)
        if self.mdp.allowed.all():
            return
        allowed = _with_silence(self.mdp.allowed).reshape(H * S, A + 1)
        fixed, random = policy.advice.reshape(-1), policy.random
        for cell, advice in (
            (np.arange(fixed.size) % (H * S), fixed),
            (random.cell_of_entry % (H * S), random.advice),
        ):
            where = first(~allowed[cell, advice])
            if where is not None:
                h, s = divmod(int(cell[where]), S)
                raise CounselError(
                    f"the policy advises an action that is not allowed at [h={h}, s={s}]; "
                    "allow the action or change the policy"
                )

    def check_sizes(self, policy: Policy) -> None:
        """Raise unless the policy has the problem's sizes.

        A policy that does not depend on the level of memory fits a person with any memory.

        Parameters
        ----------
        policy
            The policy to check.
        """
        policy.check_fits(self.horizon, self.n_states, self.n_actions)
        if policy.levels is None:
            return
        if self.memory is None:
            raise CounselError(
                f"the policy is for {policy.levels} levels of memory; the person has no memory"
            )
        if policy.levels != self.n_levels:
            raise CounselError(
                f"the policy is for {policy.levels} levels of memory; the person has "
                f"{self.n_levels}"
            )

    def _check_affordable(self, policy: Policy) -> None:
        """Raise if a policy with a hard budget advises what costs more than is left."""
        self.whole_costs()
        cost_hsb = np.pad(self.cost, ((0, 0), (0, 0), (0, 1)))
        random = policy.random
        for cell, advice in (
            (np.arange(policy.planes.size), policy.planes.reshape(-1)),
            (random.cell_of_entry, random.advice),
        ):
            plane, h, s = np.unravel_index(cell, policy.planes.shape)
            k, cost = plane // (policy.levels or 1), cost_hsb[h, s, advice]
            where = first(cost > k)
            if where is not None:
                n = where[0]
                raise CounselError(
                    f"the policy advises what costs {cost[n]:g} at [k={k[n]}, h={h[n]}, s={s[n]}], "
                    "more than the budget that is left; advise what it can pay for"
                )

    @property
    def has_unit_cost(self) -> bool:
        """Whether every piece of advice costs 1."""
        return bool((given_cost(self.cost) == 1.0).all())

    def whole_costs(self) -> int:
        """Return the largest cost; raise unless all costs are whole numbers of at least 1."""
        cost = given_cost(self.cost)
        where = first((cost < 1.0) | (cost != np.floor(cost)) | (cost >= 2**31))
        if where is not None:
            raise CounselError(
                f"cost{place('hsa'[3 - cost.ndim :], where)} is {cost[where]:g}; under a hard "
                "budget a cost must be a whole number of at least 1"
            )
        return int(cost.max())

    def repels(self) -> "Repels":
        """Return where θ < π, so that Proposition 2 (more adherence, more value) may fail.

        The result is false if there is no such pair, lists the pairs in ``cells``, and prints as a
        sentence.
        """
        lift = by_step(self.human.level_lift.min(axis=0), self.horizon)  # at any level of memory
        repelled: Bools = (lift < 0.0) & self.mdp.allowed
        cells = np.argwhere(repelled if lift.strides[0] else repelled[:1])
        return Repels(cells=sealed(cells), every_step=lift.strides[0] == 0)

    def machine(self) -> MDP:
        """Build the machine's MDP, whose actions are the advice 0 … A−1 and, last, silence."""
        mdp, A = self.mdp, self.n_actions
        H, S = self.horizon, self.n_states
        varies = (mdp.kernel.row, layers(mdp.reward), self.human.policy, self.human.lift)
        L = max(*(len(table) for table in varies), len(layers(mdp.allowed)))
        worlds = mdp.kernel.to_sparse()
        matrices, rewards = [], []
        for h in range(L):
            law_sba = self._law_table(h)
            world = worlds[h] if isinstance(worlds, list) else worlds
            columns = (np.arange(S)[:, None, None] * A + np.arange(A)).repeat(A + 1, axis=1)
            indptr = np.arange(S * (A + 1) + 1) * A
            law = sp.csr_matrix((law_sba.reshape(-1), columns.reshape(-1), indptr))
            matrices.append(law @ world)
            rewards.append(np.einsum("sba,sa->sb", law_sba, mdp.reward[h]))
        labels = mdp.action_labels
        if labels is not None:
            silence = "defer"
            while silence in labels:
                silence += "′"
            labels = (*labels, silence)
        return MDP(
            Kernel.from_sparse(matrices, tolerance=3.0 * ROW_TOLERANCE),
            unlayered(np.stack(rewards)),
            horizon=H,
            start=mdp.start,
            allowed=unlayered(_with_silence(layers(mdp.allowed))),
            state_labels=mdp.state_labels,
            action_labels=labels,
        )

    def _law_table(self, step: int) -> Floats:
        """Return P(a | s, b) of one step as [s, b, a]; rows of forbidden advice are 0."""
        A = self.n_actions
        own_sa, lift_sa = self.policy[step], self.lift[step]
        law = np.empty((self.n_states, A + 1, A))
        law[:, :A] = (1.0 - lift_sa)[:, :, None] * own_sa[:, None, :]
        law[:, np.arange(A), np.arange(A)] = np.where(lift_sa != 0.0, self.adherence[step], own_sa)
        law[:, A] = own_sa
        law[:, :A][~self.mdp.allowed[step]] = 0.0
        return law

    def without_memory(self) -> "AdviceProblem":
        """Return the problem of a person who always listens as they do at the start.

        It is the problem of a planner or learner that is blind to the memory.
        """
        if self.memory is None:
            return self
        lift = unlayered(self.human.level_lift[self.memory.start])
        return replace(self, human=Human(unlayered(self.human.policy), lift=lift))

    def without_adherence(self) -> "Setting":
        """Return all but the adherence: what a learner knows in environment 1 of the paper.

        Raises for a person with a memory: learners take the lift to be the same at every level. A
        learner that is blind to the memory gets ``without_memory().without_adherence()``.
        """
        if self.memory is not None:
            raise CounselError(
                f"the person has a memory ({self.memory.name}), and learners take the lift to be "
                "the same at every level; use without_memory().without_adherence()"
            )
        return Setting(
            mdp=self.mdp,
            policy=self.policy,
            groups=by_step(self.human.groups, self.horizon),
            shares_lift=self.human.shares_lift,
            cost=given_cost(self.cost),
            reward_range=self.reward_range or range_of_means(self.mdp),
        )

    def with_random_rewards(self) -> "AdviceProblem":
        """Return the problem whose rewards are the least or the largest of their range.

        Their means, and so all plans and values, stay the same (``counsel.simulate.bernoulli``). A
        problem with a ``reward_law`` is returned as it is.
        """
        if self.reward_law is not None:
            return self
        return replace(self, reward_range=self.shape.reward_range, reward_law=bernoulli)

    @property
    def shape(self) -> "Shape":
        """What a learner knows at first in environment 2 of the paper."""
        return Shape(
            horizon=self.horizon,
            n_states=self.n_states,
            n_actions=self.n_actions,
            allowed=unlayered(layers(self.mdp.allowed)),
            reward_range=self.reward_range or range_of_means(self.mdp),
            start=int(self.mdp.start.argmax()) if self.mdp.start.max() == 1.0 else None,
            cost=given_cost(self.cost),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Repels:
    """Where advice makes the advised action less likely.

    ``cells`` lists [step, state, action]; if ``every_step``, step 0 stands for all steps.
    """

    cells: Ints
    every_step: bool

    def __bool__(self) -> bool:
        return len(self.cells) > 0

    def __str__(self) -> str:
        if not len(self.cells):
            return "Advice repels nowhere: adherence is at least the person's own habit everywhere."
        _, s, a = self.cells[0]
        pairs = "pair" if len(self.cells) == 1 else "pairs"
        return (
            f"Advice repels at {len(self.cells)} {pairs} of state and action: there θ < π, so more "
            f"adherence need not mean more value; the first is state {s}, action {a}."
        )


def machine_rewards(problem: AdviceProblem) -> Floats:
    """Return r^M(s, b) = Σ_a P(a | s, b) r(s, a) as [s, b], or [h, s, b] if it changes."""
    reward, own = layers(problem.mdp.reward), problem.human.policy
    alone = (own * reward).sum(axis=2, keepdims=True)
    advised: Floats = alone + gain_of(problem.human.lift, advantages(own, reward))
    table = np.concatenate((advised, np.broadcast_to(alone, (*advised.shape[:2], 1))), axis=2)
    return unlayered(table)


def support_of(problem: AdviceProblem) -> "sp.csr_matrix":
    """Return which states t can follow a state s [s, t] at any step under any action."""
    matrices = problem.mdp.kernel.to_sparse()
    S, A = problem.n_states, problem.n_actions
    entries = sp.vstack(matrices if isinstance(matrices, list) else [matrices]).tocoo()
    possible = entries.data > 0.0
    pairs = (entries.row[possible] // A % S, entries.col[possible])
    return sp.csr_matrix((np.ones(pairs[0].size, dtype=np.bool_), pairs), shape=(S, S))


def _with_silence(allowed: Bools) -> Bools:
    """Append silence, which is always allowed, to a mask [layer, s, a]."""
    return np.pad(allowed, ((0, 0), (0, 0), (0, 1)), constant_values=True)
