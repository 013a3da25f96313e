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

from counsel._arrays import (
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
from counsel.model.human import Human, advised_law
from counsel.model.machine import machine_of
from counsel.model.mdp import MDP
from counsel.model.memory import Memory
from counsel.model.policy import Policy
from counsel.model.policy_checks import check_policy, check_policy_sizes
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
from counsel.model.work_length import steps_without_end


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
            if steps not in (1, mdp.n_steps):
                if mdp.discount is not None:
                    raise steps_without_end(name, steps)
                raise CounselError(f"{name} has {steps} steps but the horizon is {mdp.horizon}")
        where = first((human.policy > 0.0) & ~layers(mdp.allowed))
        if where is not None:
            mass = np.broadcast_to(human.policy, (mdp.n_steps, *world))[where]
            raise CounselError(
                f"policy{place('hsa', where)} is {mass:.10g} for an action that is not allowed; "
                "allow the action or give it probability 0"
            )
        if mdp.discount is not None and np.ndim(self.cost) > 2 and len(self.cost) > 1:
            raise steps_without_end("cost", len(self.cost))
        object.__setattr__(self, "cost", read_cost(self.cost, (mdp.n_steps, *world)))
        if self.reward_range is not None:
            object.__setattr__(self, "reward_range", read_range(self.reward_range))
            check_means(mdp, self.reward_range)
        check_law(self.reward_law, self.reward_range)

    def __reduce__(self) -> tuple[Any, ...]:
        rewards = self.reward_range, self.reward_law
        return AdviceProblem, (self.mdp, self.human, given_cost(self.cost), *rewards)

    @property
    def horizon(self) -> int:
        """The number of steps per episode; raises ``CounselError`` for work without end."""
        return self.mdp.horizon

    @property
    def n_steps(self) -> int:
        """The length of the step axis of tables: the horizon, or 1 for work without end."""
        return self.mdp.n_steps

    @property
    def discount(self) -> float | None:
        """The discount of work without end, 1 if its average reward per step counts; or None."""
        return self.mdp.discount

    @property
    def average(self) -> bool:
        """Whether the average reward per step counts, in work without end."""
        return self.mdp.average

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
        return by_step(self.human.policy, self.n_steps)

    @property
    def adherence(self) -> Floats:
        """The adherence θ [h, s, a] of a person without a memory."""
        return by_step(self.human.adherence, self.n_steps)

    @property
    def lift(self) -> Floats:
        """The lift λ [h, s, a] of a person without a memory."""
        return by_step(self.human.lift, self.n_steps)

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
        return np.broadcast_to(table_mlsa, (M, self.n_steps, S, A))

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
        step = index_in("step", step, self.n_steps)
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
        check_policy(self, policy)

    def check_sizes(self, policy: Policy) -> None:
        """Raise unless the policy has the problem's sizes.

        A policy that does not depend on the level of memory fits a person with any memory.

        Parameters
        ----------
        policy
            The policy to check.
        """
        check_policy_sizes(self, policy)

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
        lift = by_step(self.human.level_lift.min(axis=0), self.n_steps)  # at any level of memory
        repelled: Bools = (lift < 0.0) & self.mdp.allowed
        cells = np.argwhere(repelled if lift.strides[0] else repelled[:1])
        return Repels(cells=sealed(cells), every_step=lift.strides[0] == 0)

    def machine(self) -> MDP:
        """Build the machine's MDP, whose actions are the advice 0 … A−1 and, last, silence."""
        return machine_of(self)

    def without_end(
        self, discount: float | None = None, *, average: bool = False
    ) -> "AdviceProblem":
        """Return the same problem without end; raise if it changes with the step.

        Parameters
        ----------
        discount
            From 0 up to but not including 1; or give ``average``.
        average
            Whether the average reward per step counts.
        """
        cost = given_cost(self.cost)
        if cost.ndim > 2:
            cost = unlayered(layers(cost))
        return replace(self, mdp=self.mdp.without_end(discount, average=average), cost=cost)

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

        The memory of the person is known, the lift on each of its levels is not. A learner that is
        blind to the memory gets ``without_memory().without_adherence()``.
        """
        horizon, groups = self.horizon, self.human.groups
        if self.memory is None:
            groups = by_step(groups, horizon)
        else:
            groups = np.broadcast_to(groups, (self.n_levels, *self.policy.shape))
        return Setting(
            mdp=self.mdp,
            policy=self.policy,
            groups=groups,
            shares_lift=self.human.shares_lift,
            cost=given_cost(self.cost),
            reward_range=self.reward_range or range_of_means(self.mdp),
            memory=self.memory,
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
            memory=self.memory,
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
