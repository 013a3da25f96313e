"""Plans for work without end: policy iteration on the person's own kernel.

With the discount γ the best value is the fixed point of one step of the backward induction of
``backward.py``, V = T V, and one stationary policy attains it from every state. Policy iteration
alternates two steps: *improve* chooses the best advice in every cell one step before the values V,
by the same loops that plan a step with a horizon; *evaluate* solves the linear equations of that
advice (``linear_equations.py``), only as exactly as the improvement needs.

**The error.** If l ≤ T V − V ≤ u in every cell, then

    T V + γ/(1−γ) l  ≤  value of the chosen advice  ≤  best value  ≤  T V + γ/(1−γ) u

so γ/(1−γ) · (u − l) bounds what the advice loses. Iteration stops when this and the loss by
rounding are below the tolerance.

Few equations are solved by elimination, so plans of small problems are exact to rounding.

**Ties.** Among plans of equal value the plan with the least expected discounted advice wins, then
silence, then the lowest index, as with a horizon. Where choices tie, the first values are computed
to rounding, and the second values of the chosen advice settle the ties until nothing changes.

With a memory the cells are (level, state), and the loops are those of ``_level_kernels.py``.
"""

from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from counsel._arrays import Bools, Floats
from counsel._jit import cores, run_jobs, split
from counsel.model.policy import Policy
from counsel.model.problem import AdviceProblem
from counsel.model.random_cells import Advice
from counsel.planning._backward_kernels import choose, expect, most_rows, rows_of, settle
from counsel.planning._choice_kernels import TIE, Aim
from counsel.planning._stationary_kernels import differences, improve, improve_levels, is_slow
from counsel.planning.backward import RUNS, WORTH_THREADS, PricedPlanner
from counsel.planning.constraints import Constraints
from counsel.planning.level_planner import space_of
from counsel.planning.linear_equations import ELIMINATED, EPSILON
from counsel.planning.prepared_problem import prepare
from counsel.planning.stationary_policy import StationaryPolicy, stationary

TOLERANCE = 1e-9
"""The largest error of a plan, as a share of the largest value that any plan could have."""

CLOSER = 0.05
"""Advice is evaluated to this share of what the last improvement changed, and each time at least
twice as exactly: a large change of values must not lead to larger errors of values, for ever."""

MOST_ROUNDS, MOST_STEPS = 500, 1000
"""The most evaluations in a plan, and steps from values to values between two evaluations."""


_T = TypeVar("_T", bound=np.generic)


class DiscountedPlanner(PricedPlanner):
    """Plans work without end repeatedly; each plan starts from the values of the last."""

    def __init__(
        self,
        problem: AdviceProblem,
        constraints: Constraints,
        *,
        threads: int | None = None,
        tolerance: float = TOLERANCE,
    ) -> None:
        self.problem, self.constraints, self.tolerance = problem, constraints, tolerance
        self.prepared = prepare(problem, constraints)
        self.part, self.levels = self.prepared.kinds, self.prepared.levels
        self.error = 0.0
        model, M, S = self.part.model, problem.n_levels, self.part.start.size
        work = model.probability.size + S * problem.n_actions
        self.threads = threads or cores()
        if work < WORTH_THREADS or problem.memory is not None:
            self.threads = 1
        sums = np.add.reduceat(model.probability, model.indptr[:-1])
        self._gammas = float(sums.min()), float(sums.max())
        self._V_ms: Floats = np.zeros((M, S))
        self._second_ms: Floats = np.zeros((M, S))
        self._advice_ms: Advice = np.full((M, S), problem.defer, dtype=np.int16)
        self._chosen: StationaryPolicy | None = None
        self._is_converged = False
        self._E_r: Floats = np.empty(most_rows(model))
        self._space = space_of(model, self.levels, self.prepared.most_cost, 1)

    @property
    def values(self) -> Floats:
        """The values of the last plan: [2, s], both rows the same; with a memory [m, 2, s]."""
        rows_mhs = np.repeat(self._in_every_state(self._V_ms)[:, None], 2, axis=1)
        return rows_mhs if self.problem.memory else rows_mhs[0]

    @property
    def advice(self) -> Advice:
        """The advice of the last plan: [1, s], with a memory [m, 1, s]."""
        advice_mhs = self._in_every_state(self._advice_ms)[:, None]
        return advice_mhs if self.problem.memory else advice_mhs[0]

    def _in_every_state(self, table_mk: NDArray[_T]) -> NDArray[_T]:
        kind_s = self.part.kind_s
        return table_mk.copy() if kind_s is None else table_mk.take(kind_s, axis=1, mode="clip")

    def policy(self) -> Policy:
        """Return the policy of the last plan, which has one step."""
        levels = None if self.problem.memory is None else self.problem.n_levels
        return Policy.trusted(self.advice, n_actions=self.problem.n_actions, levels=levels)

    def run(
        self, aim: Aim, price_nh: Floats, *, with_second: bool = True
    ) -> list[tuple[float, float]]:
        """Plan for ``aim`` at each price, and keep the last plan.

        Returns the first value at the start and, if wanted, the second, at each price.
        """
        results = []
        for price_h in price_nh:
            self._plan(self.prepared.at_price(aim, price_h), with_second=with_second)
            results.append(self._both_at_start(with_second=with_second))
        return results

    def _both_at_start(self, *, with_second: bool) -> tuple[float, float]:
        """Return the first and, if wanted, the second value of the last plan from the start."""
        second = self._at_start(self._second_ms) if with_second else np.nan
        return self._at_start(self._V_ms), second

    def evaluate(self, weight: float, price: float) -> float:
        """Return weight · reward − price · cost of the last plan, from the start."""
        values = self._policy_now().values(weight, price)
        return self._at_start(values.reshape(self._V_ms.shape))

    def parts(self, weight: float, price: float) -> Floats:
        """Return weight · reward − price · cost of the last plan from every cell on [m, s]."""
        values = self._policy_now().values(weight, price)
        return self._in_every_state(values.reshape(self._V_ms.shape))

    def _at_start(self, V_ms: Floats) -> float:
        starts = np.flatnonzero(self.part.start)
        return float(self.part.start[starts] @ V_ms[self.problem.level_of(None), starts])

    def _policy_now(self) -> StationaryPolicy:
        """Return the equations of the advice of the last plan."""
        if self._chosen is None:
            self._chosen = stationary(
                self.part.model, self.levels, self._advice_ms, threads=self.threads
            )
        return self._chosen

    def _plan(self, aim: Aim, *, with_second: bool) -> None:
        """Improve and evaluate until the error is small, and ties are settled."""
        shape = self._V_ms.shape
        allowed = self.tolerance * max(self._largest_value(aim), np.finfo(np.float64).tiny)
        goal = self._goal(allowed)
        TV_ms, is_tied = np.empty(shape), np.empty(shape, dtype=np.bool_)
        advice_ms = self._advice_ms.copy()
        is_exact, finish = False, np.inf
        self._is_converged = False
        for _ in range(self._most_rounds()):
            steps = 1 if is_exact else MOST_STEPS
            aim = self._sized(aim)
            ties, low, high = self._improve(aim, (TV_ms, advice_ms, is_tied), (goal, steps))
            is_same = self._chosen is not None and np.array_equal(advice_ms, self._advice_ms)
            if not is_same:
                self._advice_ms, self._chosen = advice_ms.copy(), None
            error = self._bound(aim, low, high, ties)
            to_rounding = with_second or ties > 0 or TV_ms.size <= ELIMINATED
            if (is_exact and is_same) or (error <= allowed and not to_rounding):
                self._is_converged = True
                break
            is_exact = to_rounding and (error <= allowed or is_same)
            finish = 0.0 if is_exact else max(min(CLOSER * (high - low), 0.5 * finish), 0.2 * goal)
            self._evaluate_first(aim, self._shifted(TV_ms, low, high), (low, high), finish)
            if is_exact:
                self._evaluate_second(aim)
        self.error = error
        self._V_ms = self._shifted(TV_ms, low, high).reshape(shape)
        self._finish(low, high)

    def _largest_value(self, aim: Aim) -> float:
        """Return a number that no value of any plan exceeds."""
        return aim.most0

    def _most_rounds(self) -> int:
        """Return the largest number of evaluations."""
        return MOST_ROUNDS

    def _goal(self, allowed: float) -> float:
        """Return how far the changes of values in one step may differ for an allowed error."""
        return 0.5 * allowed * (1.0 - self._gammas[1]) / max(self._gammas[1], 0.5)

    def _sized(self, aim: Aim) -> Aim:
        """Return the aim with the sizes of the values so far."""
        return aim

    def _evaluate_first(
        self, aim: Aim, guess: Floats, between: tuple[float, float], tolerance: float
    ) -> None:
        """Replace the first values by those of the chosen advice.

        ``between`` are bounds on the change of a value in the last improvement.
        """
        price, chosen = float(aim.price0_h[0]), self._policy_now()
        values = chosen.values(aim.weight0, price, guess=guess, tolerance=tolerance)
        self._V_ms = values.reshape(self._V_ms.shape)

    def _evaluate_second(self, aim: Aim) -> None:
        """Replace the second values by those of the chosen advice."""
        guess = self._second_ms.reshape(-1)
        second = self._policy_now().values(aim.weight1, aim.price1, guess=guess)
        self._second_ms = second.reshape(self._second_ms.shape)

    def _finish(self, low: float, high: float) -> None:
        """Keep what the last improvement showed."""

    def _shifted(self, TV_ms: Floats, low: float, high: float) -> Floats:
        """Return values in the middle of the bounds on the best value."""
        gamma = self._gammas[1]
        middle: Floats = TV_ms.reshape(-1) + gamma / (1.0 - gamma) * 0.5 * (low + high)
        return middle

    def _bound(self, aim: Aim, low: float, high: float, ties: int) -> float:
        """Return a bound on the loss of the chosen advice and on the error of its value."""
        least, most = self._gammas
        size = max(float(np.abs(self._V_ms).max()), self.prepared.reward_size * aim.weight0)
        rounding = 8.0 * (self.problem.n_actions + 2) * EPSILON * size
        low, high = low - rounding, high + rounding
        if ties:  # settled choices may be worse by what counts as a tie
            high += TIE * (self.problem.n_actions + 1) * aim.most0
        up = most / (1.0 - most) if high > 0.0 else least / (1.0 - least)
        down = most / (1.0 - most) if low < 0.0 else least / (1.0 - least)
        return max(up * high - down * low, 0.0) + rounding

    def _improve(
        self, aim: Aim, out: tuple[Floats, Advice, Bools], limits: tuple[float, int]
    ) -> tuple[int, float, float]:
        """Choose the best advice in every cell, as the kernel ``improve`` does."""
        model, V_ms, second_ms = self.part.model, self._V_ms, self._second_ms
        if self.problem.memory is not None:
            tables = (self._space, (V_ms, second_ms), out)
            return improve_levels(model, self.levels, aim, *tables, limits)
        next_2s, out_s = (V_ms[0], second_ms[0]), (out[0][0], out[1][0], out[2][0])
        if self.threads == 1:
            return improve(model, aim, next_2s, self._E_r, out_s, limits)
        span_before = np.inf
        for n in range(limits[1]):
            if n:
                V_ms[0] = out_s[0]
            ties, low, high = self._improve_in_threads(aim, next_2s, out_s)
            if high - low <= limits[0] or is_slow(n, high - low, span_before, limits[0]):
                break
            span_before = high - low
        return ties, low, high

    def _improve_in_threads(
        self, aim: Aim, next_2s: tuple[Floats, Floats], out: tuple[Floats, Advice, Bools]
    ) -> tuple[int, float, float]:
        """Choose once in every state; threads share the rows and the states."""
        model, threads, S = self.part.model, self.threads, out[0].size
        runs = split(*rows_of(model, 0), RUNS * threads)
        run_jobs(threads, [partial(expect, model, 0, run, next_2s[0], self._E_r) for run in runs])
        shape = (2, self.problem.n_actions)
        parts = [(run, np.zeros(shape)) for run in split(0, S, RUNS * threads)]
        jobs = [partial(choose, model, aim, 0, *part, self._E_r, out) for part in parts]
        ties = sum(run_jobs(threads, jobs))
        if ties:
            run_jobs(threads, [partial(settle, model, aim, 0, *p, next_2s, out) for p in parts])
        return ties, *differences(next_2s[0], out[0])
