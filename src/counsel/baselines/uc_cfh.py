"""UC-CFH: the best plan within a budget, in the best plausible world (Kalagarla et al. 2021).

Setting, ℓ and phases: ``confidence_sets.py``, with k = 4: two bounds, each on both sides, as the
programme needs plain intervals. Each p(t | s, b) seen n times lies within

    p̂ ± min{√(ℓ / 2n), √(2 p̂ (1 − p̂) ℓ / n) + 7 ℓ / (3 (n − 1))}

(the first alone for n = 1, nothing for n = 0). The plan is the optimum of the extended linear
programme of ``extended_lp.py``: the most reward that any world within the intervals offers to a
policy that expects to spend at most the budget there. Afterwards ``plan(budget=…)`` plans for other
budgets on p̂, without optimism.

Deviates
--------
* The paper minimises costs; here rewards are maximised, and the cost is that of the advice.
* Counts are those of a step, with δ₁ for that. The paper's m has a factor C more than UCFH's.
* Every update counts, unless ``Phases`` are asked for. All rows that are ripe count at once.
* Only rows that can occur enter the programme. Where the plan does not expect to come it is silent.
* Where the first state is drawn, its law is what was seen; before anything was, all are as likely.
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from counsel._arrays import Bools, Floats, by_step, positive
from counsel.baselines._confidence_set_kernels import fill_intervals
from counsel.baselines.black_box import BlackBoxLearner, shared_parameters
from counsel.baselines.confidence_sets import ConfidenceSets, Guarantee, Phases
from counsel.baselines.extended_lp import NOTHING, ExtendedSolution, Flows, solve_extended
from counsel.errors import CounselError
from counsel.learning.arguments import require_rewards
from counsel.learning.learnt_model import (
    LearntPlan,
    TransitionTable,
    empirical_problem,
    plan_on_model,
)
from counsel.model.advice_costs import given_cost
from counsel.model.policy import Policy
from counsel.model.problem import AdviceProblem
from counsel.model.random_cells import Advice
from counsel.model.setting import Shape

BOUNDS = 4  # how many bounds the intervals are made of (k): two, each on both sides
MOST_FLOWS = 400_000  # larger programmes are refused: they would run for minutes each


@dataclass(frozen=True, slots=True, eq=False)
class OptimisticPlan(LearntPlan):
    """The optimistic plan of UC-CFH, and the world in which the policy is worth ``value``.

    Actions of the world are the advice and, last, to be left alone; its person always listens.
    """

    world: AdviceProblem


@shared_parameters
class UCCFH(BlackBoxLearner):
    """Plans within a budget for the best plausible world of the machine, by a linear programme.

    Parameters
    ----------
    rng
        The generator of live advice where the policy is random.
    budget
        The expected cost of advice per episode: its pieces if each costs 1.
    epsilon
        The accuracy of an episode, in units of reward.
    scale
        The factor of ℓ: 1 in theory.
    support
        Booleans [s, t], dense or sparse: which states can follow which. All when not given, which
        makes programmes of H S² B unknowns.

    Raises
    ------
    CounselError
        If an argument is invalid, or the programme would have more than 400,000 unknowns.

    Examples
    --------
    Two pieces of advice per night, in the best plausible world and in p̂. The truth is 11.42.

    >>> from numpy.random import default_rng
    >>> from counsel import Simulator, make
    >>> problem = make("night-shift")
    >>> learner = UCCFH(
    ...     problem.shape, rng=default_rng(1), reward=problem.machine().reward, budget=2
    ... )
    >>> learner.burn_in(Simulator(problem), episodes=500, rng=default_rng(0))
    >>> for plan in (learner.optimistic(), learner.plan(budget=2)):
    ...     print(round(plan.value, 2), round(plan.advice_count, 2))
    11.95 2.0
    11.53 2.0
    """

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
        require_rewards(reward)
        super().__init__(shape, rng=rng, reward=reward, delta=delta, scale=scale, budget=budget)
        self._declare_zero(known_zero)
        self.epsilon = positive("epsilon", epsilon)
        guarantee = Guarantee(self.epsilon / self._unit, self.delta, self.scale)
        self.sets = ConfidenceSets(
            shape, guarantee, bounds=BOUNDS, support=support, phases=phases, m_times_successors=True
        )
        self._learn_by(self.sets, self.sets.add)
        self.phases, self.support = phases, self.sets.support
        flows = int(self._cells().sum()) * (shape.n_actions + 1) * self.sets.most_successors
        if flows > MOST_FLOWS:
            hint = "use a smaller world"
            if self.sets.support is None:
                hint = "say in support which states can follow which, or " + hint
            raise CounselError(
                f"the linear programme would have about {flows:,} unknowns, more than "
                f"{MOST_FLOWS:,}; {hint}"
            )

    def draw(self) -> Policy:
        """Solve the programme; return its policy, silent where it does not expect to get."""
        flows = self._flows()
        return self._policy_of(flows, self._solve(flows))

    def best_advice(self) -> Advice:
        """Return the most likely advice [h, s] of the policy that is played."""
        return self.drawn.advice.copy()

    def optimistic(self) -> OptimisticPlan:
        """Return the optimistic plan, and the world in which it would come true."""
        flows = self._flows()
        solution = self._solve(flows)
        H, S, A = self._sizes
        x = np.where(solution.x > NOTHING, solution.x, 0.0)
        of = np.repeat(np.arange(flows.step.size), np.diff(flows.indptr))
        used = (x[of] > 0.0) & (solution.z > 0.0)
        row = (flows.step * S + flows.state) * (A + 1) + flows.advice
        # Whole "visits" suffice to mark what was tried; "times" are then probabilities.
        visits = np.zeros((H, S, A + 1), dtype=np.int64)
        visits.reshape(-1)[row[x > 0.0]] = 1
        total = np.bincount(of[used], solution.z[used], minlength=row.size)
        probability = solution.z[used] / total[of[used]]
        reward, then = self._known_reward(), flows.follows[used]
        table = TransitionTable(visits, reward, row[of[used]], then, probability)
        law, idle = self._ends.law()
        over = float(law[self._over[0]].sum()) + idle
        value = solution.value + H * self._rest * over
        return OptimisticPlan(
            value=value * self._unit + H * self._low,
            advice_count=float(x[flows.advice != A].sum()),
            advice_cost=float((flows.cost * x).sum()),
            price=solution.price * self._unit,
            policy=self._policy_of(flows, solution),
            world=self._problem(table),
        )

    def model(self) -> AdviceProblem:
        """Return p̂ as a problem that ``solve`` and ``frontier`` take; see ``empirical_problem``."""
        transitions = self.sets.counts.transitions
        row, then, times = transitions.entries()
        table = TransitionTable(transitions.visits, self._known_reward(), row, then, times)
        return self._problem(table.with_silence())

    def _problem(self, table: TransitionTable) -> AdviceProblem:
        law, idle = self._ends.law()
        least = self.shape.reward_range[0]
        start, cost = np.append(law, 0.0), given_cost(self.shape.cost)
        return empirical_problem(table, self._over, least, start, cost=cost, idle=idle)

    plan = plan_on_model

    def _known_reward(self) -> Floats:
        """Return the machine's rewards [h, s, b] in the user's units."""
        return self._scaled_reward * self._unit + self._low

    @property
    def _scaled_reward(self) -> Floats:
        """The machine's rewards [h, s, b] in [0, 1]."""
        known = np.zeros((1, 1, 1)) if self._reward is None else self._reward
        return by_step(known, self.shape.horizon)

    def _solve(self, flows: Flows) -> ExtendedSolution:
        S, A = self.shape.n_states, self.shape.n_actions
        law, _ = self._ends.law()
        return solve_extended(flows, law, n_states=S, defer=A, budget=self.budget)

    def _cells(self) -> Bools:
        """Return which cells [h, s] can occur and are not over."""
        H, S, _ = self._sizes
        gone = self._over | self._unreachable
        here = (self._ends.law()[0] > 0.0) & ~gone[0]
        cells = np.zeros((H, S), dtype=np.bool_)
        for h in range(H):
            cells[h] = here
            onward = np.full(S, here.any())
            if self.sets.support is not None:
                onward = np.asarray(here.astype(np.int64) @ self.sets.support).reshape(-1) > 0
            here = onward & ~gone[h + 1]
        return cells

    def _flows(self) -> Flows:
        """Lay out rows, flows, intervals and rewards."""
        H, S, A = self._sizes
        B = A + 1
        may = by_step(self._allowed, H) & self._cells()[..., None]
        step, state, advice = np.nonzero(may)
        starts, follows = self.sets.successors()
        if self.sets.support is None:
            starts, follows = np.arange(S + 1) * S, np.tile(np.arange(S), S)
        size = np.diff(starts)[state]
        indptr = np.append(0, np.cumsum(size))
        within = np.arange(indptr[-1]) - np.repeat(indptr[:-1], size)
        to = follows[np.repeat(starts[state], size) + within]
        row = (step * S + state) * B + advice
        transitions = self.sets.counts.transitions
        counted_row, t, times = transitions.entries()
        key = counted_row * S + t
        order = np.argsort(key)
        wanted = np.repeat(row, size) * S + to
        at = np.searchsorted(key[order], wanted)
        counted = np.append(key[order], -1)[at] == wanted
        n = np.repeat(transitions.visits.reshape(-1)[row], size).astype(np.float64)
        p = np.where(counted, np.append(times[order], 0)[at], 0) / np.maximum(n, 1.0)
        low, high = np.empty(p.size), np.empty(p.size)
        fill_intervals(p, n, self.sets.log, low, high)
        after = np.repeat(step, size) + 1
        ends = np.where(self._unreachable[after, to] | (after == H), 0.0, np.nan)
        ends = np.where(self._over[after, to], (H - after) * self._rest, ends)
        reward = self._scaled_reward[step, state, advice]
        cost = np.where(advice < A, self.shape.cost[step, state, np.minimum(advice, A - 1)], 0.0)
        return Flows(step, state, advice, reward, cost, indptr, to, low, high, ends)

    def _policy_of(self, flows: Flows, solution: ExtendedSolution) -> Policy:
        """Return π = x / Σ x; silence where no flow comes."""
        H, S, A = self._sizes
        table = np.zeros((H, S, A + 1))
        x = np.where(solution.x > NOTHING, solution.x, 0.0)
        table[flows.step, flows.state, flows.advice] = x
        table[table.sum(axis=2) == 0.0, A] = 1.0
        return Policy.from_probabilities(table / table.sum(axis=2, keepdims=True))
