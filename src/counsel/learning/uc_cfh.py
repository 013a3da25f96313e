"""UC-CFH: the best plan within a budget, in the best plausible world (Kalagarla et al. 2021).

Setting, ℓ and phases: ``boxes.py``, with k = 4: two bounds, each on both sides, as the programme
needs plain intervals. Each p(t | s, b) seen n times lies within

    p̂ ± min{√(ℓ / 2n), √(2 p̂ (1 − p̂) ℓ / n) + 7 ℓ / (3 (n − 1))}

(the first alone for n = 1, nothing for n = 0). The plan is the optimum of the extended linear
programme of ``extended_lp.py``: the most reward that any world within the intervals offers to a
policy that expects to spend at most the budget there. Guarantee: with probability 1 − δ all but
Õ(C² S B H³ / ε² ln(1/δ)) episodes (time-dependent) are within ε of the best and of the budget.

Afterwards ``plan(budget=…)`` plans for other budgets on p̂, without optimism: the plug-in programme.

Deviates
--------
* The paper minimises costs; here rewards are maximised and a piece of advice costs 1.
* Counts are those of a step, with δ₁ for that. The paper's m has a factor C more than UCFH's.
* Every update counts, unless ``Phases`` are asked for: its own rule would not learn anything in the
  paper's experiments (see ``boxes.py``). All rows that are ripe count at once.
* Only rows that can occur enter the programme. Where the plan does not expect to come it is silent.
* Where the first state is drawn, its law is what was seen; before anything was, all are as likely.
* States where an episode ended are worth 0 and cost nothing (see ``black_box.py``). ``scale`` is c.
"""

from typing import ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from counsel._arrays import Bools, Floats, by_step
from counsel.errors import CounselError
from counsel.learning._chain_kernels import all_links
from counsel.learning._interval_kernels import fill_intervals
from counsel.learning.boxes import Boxed, Phases
from counsel.learning.exploring import LearntPlan, plan_on, tried_problem
from counsel.learning.extended_lp import NOTHING, Extended, Groups, solve_extended
from counsel.model.policy import Advice, Policy
from counsel.model.problem import AdviceProblem, Shape

MOST_FLOWS = 3_000_000
"""Larger programmes are refused: they would run for hours."""


class Optimistic(NamedTuple):
    """What was promised: value, pieces of advice, the price of one, policy and world.

    ``world`` is a problem whose actions are the advice and, last, to be left alone, and whose
    person always listens. The policy, evaluated there, is worth ``value``.
    """

    value: float
    advice_count: float
    price: float
    policy: Policy
    world: AdviceProblem


class UCCFH(Boxed):
    """Plans within a budget by the extended linear programme.

    Parameters
    ----------
    shape
        What is known: ``problem.shape``.
    rng
        Where chance comes from when a random cell advises one person.
    reward
        The machine's rewards [s, b] or [h, s, b], silence last.
    budget
        The expected pieces of advice in an episode.
    epsilon, delta
        The guarantee asked for: how near the best, and the probability of failure.
    scale
        What ℓ is multiplied by.
    support
        Booleans [s, t]: which states can follow which. All when not given, which makes programmes
        of H S² B unknowns.
    phases
        ``Phases()`` for the paper's rule; without it everything counts at every update.
    known_zero
        States known to be worth nothing [s] or [h, s], besides those where episodes end.
    """

    bounds: ClassVar[int] = 4

    def __init__(  # noqa: PLR0913 (the settings of the theorem)
        self,
        shape: Shape,
        *,
        rng: Generator,
        reward: ArrayLike,
        budget: float,
        epsilon: float = 1.0,
        delta: float = 0.1,
        scale: float = 1.0,
        support: ArrayLike | None = None,
        phases: Phases | None = None,
        known_zero: ArrayLike | None = None,
    ) -> None:
        super().__init__(
            shape,
            rng=rng,
            reward=reward,
            epsilon=epsilon,
            delta=delta,
            scale=scale,
            budget=budget,
            support=support,
            phases=phases,
            known_zero=known_zero,
        )
        flows = int(self._cells().sum()) * (shape.n_actions + 1) * self.most_successors
        if flows > MOST_FLOWS:
            raise CounselError(
                f"the linear programme would have about {flows:,} unknowns; say in support which "
                "states can follow which, or use a smaller world"
            )

    @property
    def m(self) -> float:
        """m, after so many visits nothing more would be learnt."""
        return super().m * self.most_successors

    def draw(self) -> Policy:
        """Solve the programme; return its policy."""
        groups = self._groups()
        return self._policy_of(groups, self._solve(groups))

    def best_advice(self) -> Advice:
        """Return the likeliest advice [h, s]."""
        return self.drawn.advice.copy()

    def optimistic(self) -> Optimistic:
        """Return what the programme promises now, and the world in which that would come true."""
        groups = self._groups()
        found = self._solve(groups)
        H, S, A = self._sizes
        of = np.repeat(np.arange(groups.step.size), np.diff(groups.indptr))
        flows = (found.x[of] > NOTHING) & (found.z > 0.0)
        row = (groups.step * S + groups.state) * (A + 1) + groups.advice
        total = np.bincount(of, np.where(flows, found.z, 0.0), minlength=groups.step.size)
        chance = found.z[flows] / total[of[flows]]
        tried = np.zeros((H, S, A + 1), dtype=np.bool_)
        tried.reshape(-1)[row[total > 0.0]] = True
        world = tried_problem(
            tried,
            (row[of[flows]], groups.follows[flows], chance),
            self._known_reward(),
            self._ended | self._zero,
            self.shape.reward_range[0],
            np.append(self._law_of_start(), 0.0),
        )
        value = found.value * self._unit + H * self._low
        price = found.price * self._unit
        return Optimistic(value, found.advice_count, price, self._policy_of(groups, found), world)

    def model(self) -> AdviceProblem:
        """Return p̂ as a problem that ``solve`` and ``frontier`` take."""
        row, t, times = all_links(self._head, self._links)
        chance = times / self._visits.reshape(-1)[row]
        return tried_problem(
            self._visits > 0,
            (row, t, chance),
            self._known_reward(),
            self._ended | self._zero,
            self.shape.reward_range[0],
            np.append(self._law_of_start(), 0.0),
        )

    def plan(
        self, *, penalty: float | None = None, budget: float | None = None, hard: bool = False
    ) -> LearntPlan:
        """Plan on p̂ for another limit, as ``solve``; only advice that was tried is compared."""
        return plan_on(
            self.model(), self.shape.n_actions, penalty=penalty, budget=budget, hard=hard
        )

    def _known_reward(self) -> Floats:
        """Return the machine's rewards [h, s, b] in the user's units."""
        if self._reward is None:
            raise CounselError("UC-CFH needs the machine's rewards")
        known: Floats = self._reward * self._unit + self._low
        return by_step(known, self.shape.horizon)

    def _solve(self, groups: Groups) -> Extended:
        S, A = self.shape.n_states, self.shape.n_actions
        return solve_extended(
            groups, self._law_of_start(), n_states=S, silence=A, budget=self.budget
        )

    def _law_of_start(self) -> Floats:
        law = self._starts.astype(np.float64)
        if self.shape.start is not None:
            law = np.zeros(law.size)
            law[self.shape.start] = 1.0
        if not law.any():
            law[:] = 1.0
        whole: Floats = law / law.sum()
        return whole

    def _cells(self) -> Bools:
        """Return which cells [h, s] can occur and are not over."""
        H, S, _ = self._sizes
        zero = self._ended | self._zero
        here = (self._law_of_start() > 0.0) & ~zero[0]
        cells = np.zeros((H, S), dtype=np.bool_)
        for h in range(H):
            cells[h] = here
            onward = (
                np.ones(S, np.bool_) if self.support is None else self.support[here].any(axis=0)
            )
            here = onward & ~zero[h + 1] if here.any() else here
        return cells

    def _groups(self) -> Groups:
        """Lay out rows, flows, intervals and rewards."""
        H, S, A = self._sizes
        B = A + 1
        zero = self._ended | self._zero
        may = by_step(self._open, H) & self._cells()[..., None]
        step, state, advice = np.nonzero(may)
        starts, follows = self._follows()
        if self.support is None:
            starts, follows = np.arange(S + 1) * S, np.tile(np.arange(S), S)
        size = np.diff(starts)[state]
        indptr = np.append(0, np.cumsum(size))
        within = np.arange(indptr[-1]) - np.repeat(indptr[:-1], size)
        to = follows[np.repeat(starts[state], size) + within]
        row = (step * S + state) * B + advice
        seen, t, times = all_links(self._head, self._links)
        key = seen * S + t
        order = np.argsort(key)
        wanted = np.repeat(row, size) * S + to
        found = np.searchsorted(key[order], wanted)
        there = np.append(key[order], -1)[found] == wanted
        n = np.repeat(self._visits.reshape(-1)[row], size).astype(np.float64)
        p = np.where(there, np.append(times[order], 0)[found], 0) / np.maximum(n, 1.0)
        low, high = np.empty(p.size), np.empty(p.size)
        fill_intervals(p, n, self.log, low, high)
        after = np.repeat(step, size) + 1
        over = zero[after, to] | (after == H)
        ends = np.where(over, (H - after) * self._rest, np.nan)
        if self._reward is None:
            raise CounselError("UC-CFH needs the machine's rewards")
        reward = by_step(self._reward, H)[step, state, advice]
        return Groups(step, state, advice, reward, indptr, to, low, high, ends)

    def _policy_of(self, groups: Groups, found: Extended) -> Policy:
        """Return π = x / Σ x; silence where no flow comes."""
        H, S, A = self._sizes
        table = np.zeros((H, S, A + 1))
        table[groups.step, groups.state, groups.advice] = found.x
        total = table.sum(axis=2)
        table[total <= NOTHING] = 0.0
        table[total <= NOTHING, A] = 1.0
        table /= table.sum(axis=2, keepdims=True)
        table[table < NOTHING] = 0.0
        return Policy.from_probabilities(table / table.sum(axis=2, keepdims=True))
