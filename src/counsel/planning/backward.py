"""Backward induction on the person's own kernel: lift × advantage.

With Q_h(s, a) = r_h(s, a) + Σ_t p_h(t | s, a) V_{h+1}(t) and the value of deferring
d_h(s) = Σ_a π_h(a | s) Q_h(s, a), the adherence law gives for every piece of advice b

    Q^M_h(s, b) − d_h(s) = lift_h(s, b) · (Q_h(s, b) − d_h(s))          gain = lift × advantage

so the best advice costs O(A) per state once the rows' expectations are known, and the machine's
kernel p^M is never built. With a penalty β per piece the plan advises iff the gain exceeds β.

Among plans of equal value the plan with the fewest *expected* pieces of advice to the end wins,
then silence, then the lowest index:

    V_h(s) = max_b  Q^M_h(s, b) − β 1{b ≠ defer}
    N_h(s) = 1{b ≠ defer} + Σ_t p^M_h(t | s, b) N_{h+1}(t)      for the chosen b

Silence now can cost two pieces later, so N breaks ties before silence does. Only ties need N, so
the backward pass carries V alone; where choices tie, N is computed from the last step up to there.

For a penalty β the first value is R − βN and the second −N (see ``Aim``). The same loop with −N
first and R second yields the best plan among those with the least advice, the left end of the
frontier.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from counsel._arrays import Floats, one_type
from counsel._jit import cores, run_jobs, split
from counsel.model.policy import Policy
from counsel.model.problem import AdviceProblem
from counsel.model.random_cells import Advice
from counsel.planning._backward_kernels import (
    catch_up,
    choose,
    expect,
    expect_start,
    follow,
    most_rows,
    plan_back,
    rows_of,
    settle,
)
from counsel.planning._choice_kernels import Aim
from counsel.planning.constraints import Constraints
from counsel.planning.prepared_problem import PreparedProblem, prepare

WORTH_THREADS = 1_000_000
"""A step that reads fewer numbers is not worth the cost of threads."""

_R = TypeVar("_R")
_T = TypeVar("_T", bound=np.generic)

RUNS = 8
"""Runs of work per thread in a step: a slow core then delays the step only a little."""


class PricedPlanner(ABC):
    """What planners with and without levels share: plans at penalties, and with least advice."""

    prepared: PreparedProblem
    error: float = 0.0
    """A bound on the error of the last plan; with a horizon plans are exact to rounding."""

    @abstractmethod
    def run(
        self, aim: Aim, price_nh: Floats, *, with_second: bool = True
    ) -> list[tuple[float, float]]:
        """Plan for ``aim`` at each price; return the first and the second value at the start."""

    def penalise(self, *penalties: float) -> list[tuple[float, float]]:
        """Plan at each penalty; return the expected reward and the expected cost of advice."""
        nets = self.run(self.prepared.free, np.array(penalties)[:, None])
        pairs = zip(penalties, nets, strict=True)
        return [(net - penalty * minus, 0.0 - minus) for penalty, (net, minus) in pairs]

    def advise_least(self) -> tuple[float, float]:
        """Plan to advise as little as possible; return the reward and the cost of advice."""
        [(minus_cost, value)] = self.run(self.prepared.frugal, np.ones((1, 1)))
        return value, 0.0 - minus_cost


class Planner(PricedPlanner):
    """Plans one problem repeatedly in the same working space.

    With ``search`` only the cells that can occur are planned, where they are few; then there are
    no ``values`` and ``advice``.
    """

    def __init__(
        self,
        problem: AdviceProblem,
        constraints: Constraints,
        *,
        threads: int | None = None,
        search: bool = False,
    ) -> None:
        self.problem = problem
        self.constraints = constraints
        self.prepared = prepare(problem, constraints)
        self.part = (search and self.prepared.reachable) or self.prepared.kinds
        model, S, H = self.part.model, self.part.start.size, problem.horizon
        work = model.probability.size // len(model.row_lsa) + S * problem.n_actions
        self.threads = 1 if work < WORTH_THREADS else threads or cores()
        self._V_hs: Floats = np.empty((H + 1, S))
        self._advice_hs: Advice = np.empty((H, S), dtype=np.int16)
        self._E_r: Floats = np.empty(most_rows(model) if self.threads > 1 else 0)

    @property
    def values(self) -> Floats:
        """The first values [h, s] of the last plan, with a row of zeros after the last step."""
        return self.in_every_state(self._V_hs)

    @property
    def advice(self) -> Advice:
        """The advice [h, s] of the last plan."""
        return self.in_every_state(self._advice_hs)

    def policy(self) -> Policy:
        """Return the policy of the last plan."""
        advice = self.advice if self.part.kind_s is not None else self.advice.copy()
        return Policy.trusted(advice, n_actions=self.problem.n_actions)

    def in_every_state(self, table_hk: NDArray[_T]) -> NDArray[_T]:
        """Return a table [h, s] from one for each kind of state."""
        if self.part.cells is not None:
            raise AssertionError("only the cells that can occur were planned")
        kind_s = self.part.kind_s
        return table_hk if kind_s is None else table_hk.take(kind_s, axis=1, mode="clip")

    def run(
        self, aim: Aim, price_nh: Floats, *, with_second: bool = True
    ) -> list[tuple[float, float]]:
        """Plan for ``aim`` at each price, the last of which stays.

        Returns the first value at the start and, if wanted, the second, at each price.
        """
        part, start_n2 = self.part, np.full((len(price_nh), 2), np.nan)
        (price_nh,) = one_type((price_nh,))
        if self.threads == 1:
            out = (self._V_hs, self._advice_hs, start_n2)
            cost = self.prepared.most_cost
            plan_back(part.model, aim, cost, price_nh, part.start, out, with_second)
        else:
            for n, price_h in enumerate(price_nh):
                at_price = self.prepared.at_price(aim, price_h)
                second_s = self._run_in_threads(at_price, with_second=with_second)
                start_n2[n, 0] = expect_start(part.start, self._V_hs[0])
                if second_s is not None:
                    start_n2[n, 1] = expect_start(part.start, second_s)
        return [(first, second) for first, second in start_n2.tolist()]

    def evaluate(self, weight: float, price: float) -> float:
        """Return weight · reward − price · cost of the last plan, from the start."""
        H, S = self._advice_hs.shape
        V_js = np.zeros((2, S))
        if self.threads == 1:
            E_r = np.empty(most_rows(self.part.model))
            terms, steps = (weight, price), (H, 0)
            catch_up(self.part.model, terms, steps, self._advice_hs, E_r, V_js)
        else:
            self._catch_up((weight, price), (H, 0), V_js)
        return expect_start(self.part.start, V_js[0])

    def _run_in_threads(self, aim: Aim, *, with_second: bool) -> Floats | None:
        """Plan step by step, as ``plan_back`` does; threads share the rows and states of a step.

        Returns the second values at the first step, if wanted.
        """
        model, V_hs, advice_hs = self.part.model, self._V_hs, self._advice_hs
        H, S = advice_hs.shape
        tied_s, second_js, second_from = np.empty(S, dtype=np.bool_), np.zeros((2, 0)), H
        terms = (aim.weight1, aim.price1)
        V_hs[H] = 0.0
        for h in reversed(range(H)):
            E_r, out = self._expect(h, V_hs[h + 1]), (V_hs[h], advice_hs[h], tied_s)
            if any(self._for_states(partial(choose, model, aim, h), E_r, out)):
                second_js = second_js if second_js.size else np.zeros((2, S))
                self._catch_up(terms, (second_from, h + 1), second_js)
                second_from = h + 1
                next_2s = (V_hs[h + 1], second_js[(h + 1) % 2])
                self._for_states(partial(settle, model, aim, h), next_2s, out)
        if not with_second:
            return None
        second_js = second_js if second_js.size else np.zeros((2, S))
        self._catch_up(terms, (second_from, 0), second_js)
        second_s: Floats = second_js[0]
        return second_s

    def _catch_up(self, terms: tuple[float, float], steps: tuple[int, int], V_js: Floats) -> None:
        """Evaluate the last plan from one step back to another, as ``catch_up`` does."""
        advice_hs = self._advice_hs
        for h in reversed(range(steps[1], steps[0])):
            then_s, now_s = V_js[(h + 1) % 2], V_js[h % 2]
            E_r = self._expect(h, then_s)
            follow_run = partial(follow, self.part.model, terms, h)
            self._for_states(follow_run, advice_hs[h], E_r, now_s)

    def _expect(self, h: int, V_s: Floats) -> Floats:
        """Fill and return the expectations of the rows of a step."""
        model, E_r = self.part.model, self._E_r
        runs = split(*rows_of(model, h), RUNS * self.threads)
        run_jobs(self.threads, [partial(expect, model, h, run, V_s, E_r) for run in runs])
        return E_r

    def _for_states(self, job: Callable[..., _R], *arguments: object) -> list[_R]:
        """Call a job with runs of states, several for each thread, each with its working space."""
        runs = split(0, self.part.start.size, RUNS * self.threads)
        shape = (2, self.problem.n_actions)
        jobs = [partial(job, run, np.zeros(shape), *arguments) for run in runs]
        return run_jobs(self.threads, jobs)
