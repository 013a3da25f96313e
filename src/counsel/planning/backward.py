"""Backward induction on the person's own kernel: lift × advantage.

With Q_h(s, a) = r_h(s, a) + Σ_t p_h(t | s, a) V_{h+1}(t) and the value of deferring
d_h(s) = Σ_a π_h(a | s) Q_h(s, a), the adherence law gives for every piece of advice b

    Q^M_h(s, b) − d_h(s) = lift_h(s, b) · (Q_h(s, b) − d_h(s))          gain = lift × advantage

so the best advice costs O(A) per state once the rows' expectations are known, and the machine's
kernel p^M is never built. With a penalty β per piece the plan advises iff the gain exceeds β.

Among plans of equal value the plan with the fewest *expected* pieces of advice to the end wins,
then silence, then the lowest index. So the expected pieces N are carried as well:

    V_h(s) = max_b  Q^M_h(s, b) − β 1{b ≠ defer}
    N_h(s) = 1{b ≠ defer} + Σ_t p^M_h(t | s, b) N_{h+1}(t)      for the chosen b

Silence now can cost two pieces later, so N breaks ties before silence does.

The two values are carried as a pair (see ``Aim``): for a penalty β they are R − βN and −N. The same
loop with −N first and R second yields the best plan among those with the least advice, the left end
of the frontier.
"""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import pairwise

import numpy as np

from counsel._arrays import Floats, layers, one_type
from counsel._jit import cores, thread_pool
from counsel.model.policy import Advice
from counsel.model.problem import AdviceProblem
from counsel.planning._backward_kernels import Aim, Model, choose, expect, plan_back
from counsel.planning.constraints import Constraints
from counsel.planning.reachable_cells import Cells, reachable_problem

WORTH_THREADS = 1_000_000
"""A step that reads fewer numbers is not worth the cost of threads."""

RUNS = 8
"""Runs of work per thread in a step: a slow core then delays the step only a little."""

LOST = 1e-3
"""Accumulated rounding, relative to the largest reward of an episode, in units of TIE."""


def penalised(problem: AdviceProblem, penalty: float) -> Aim:
    """Return the aim to maximise reward minus ``penalty`` per piece, then to advise least."""
    most = problem.horizon * problem.mdp.reward_size
    return Aim(
        weight0=1.0,
        cost0=penalty,
        size0=penalty + LOST * most,
        most0=most + (problem.horizon + 1) * penalty,
        weight1=0.0,
        cost1=1.0,
        size1=1.0,
    )


def least_advice(problem: AdviceProblem) -> Aim:
    """Return the aim to advise as little as possible, then to maximise reward."""
    return Aim(
        weight0=0.0,
        cost0=1.0,
        size0=1.0,
        most0=problem.horizon + 1.0,
        weight1=1.0,
        cost1=0.0,
        size1=LOST * problem.horizon * problem.mdp.reward_size,
    )


def model_of(problem: AdviceProblem, constraints: Constraints | None = None) -> Model:
    """Collect the arrays that compiled loops read; by default there are no constraints."""
    constraints = constraints or Constraints.read(problem)
    kernel = problem.mdp.kernel
    model = Model(
        row_lsa=kernel.row,
        first_row_l=kernel.first_row,
        indptr=kernel.indptr,
        next_state=kernel.next_state,
        probability=kernel.probability,
        shared_l=kernel.shared,
        reward_lsa=layers(problem.mdp.reward),
        policy_lsa=problem.human.policy,
        lift_lsa=problem.human.lift,
        pull_lsa=constraints.pull,
        permitted_lsa=constraints.permitted,
        required_ls=constraints.required,
    )
    return one_type(model)


class Planner:
    """Plans one problem repeatedly in the same working space.

    ``values`` (with a row of zeros after the last step) and ``advice`` [h, s] are those of the last
    plan. With ``search`` they cover only the reachable cells and are for internal use.
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
        self.model = model_of(problem, constraints)
        self._start = problem.mdp.start
        H = problem.horizon
        reachable = reachable_problem(self.model, self._start, H) if search else None
        self.cells: Cells | None = None
        if reachable is not None:
            self.model, self._start, self.cells = reachable
        S = self._start.size
        work = self.model.probability.size // len(self.model.row_lsa) + S * problem.n_actions
        self.threads = 1 if work < WORTH_THREADS else threads or cores()
        rows = np.diff(self.model.first_row_l)[self.model.shared_l].max(initial=0)
        self._expected_r2 = np.empty((int(rows), 2))
        self._both_s2 = np.empty((2, S, 2))
        self.values: Floats = np.empty((H + 1, S))
        self.advice: Advice = np.empty((H, S), dtype=np.int16)

    def run(self, aim: Aim) -> tuple[float, float]:
        """Plan for ``aim``; return its two values at the start."""
        if self.threads == 1:
            plan_back(self.model, aim, self._expected_r2, self.values, self._both_s2, self.advice)
        else:
            self._run_in_threads(aim)
        first, second = self._start @ self._both_s2[0]
        return float(first), float(second)

    def penalise(self, penalty: float) -> tuple[float, float]:
        """Plan at a penalty; return the expected reward and the expected pieces of advice."""
        net, minus_count = self.run(penalised(self.problem, penalty))
        return net - penalty * minus_count, 0.0 - minus_count

    def advise_least(self) -> tuple[float, float]:
        """Plan to advise as little as possible; return the reward and the pieces of advice."""
        minus_count, value = self.run(least_advice(self.problem))
        return value, 0.0 - minus_count

    def _run_in_threads(self, aim: Aim) -> None:
        """Plan step by step; threads share the rows of a step, then its states."""
        model, E_r2 = self.model, self._expected_r2
        H, S = self.advice.shape
        runs = RUNS * self.threads
        self._both_s2[:] = 0.0
        self.values[-1] = 0.0
        for h in reversed(range(H)):
            then_s2, now_s2 = self._both_s2[(h + 1) % 2], self._both_s2[h % 2]
            n = h if len(model.shared_l) > 1 else 0
            if model.shared_l[n]:
                rows = _split(int(model.first_row_l[n]), int(model.first_row_l[n + 1]), runs)
                self._run_jobs(partial(expect, model, h, *run, then_s2, E_r2) for run in rows)
            out = (now_s2, self.values[h], self.advice[h])
            states = _split(0, S, runs)
            self._run_jobs(
                partial(choose, model, aim, h, run, then_s2, E_r2, out) for run in states
            )

    def _run_jobs(self, jobs: Iterable[Callable[[], None]]) -> None:
        """Run the jobs on the shared threads and wait for all of them."""
        for future in [thread_pool(self.threads).submit(job) for job in jobs]:
            future.result()


def _split(begin: int, end: int, parts: int) -> Iterable[tuple[int, int]]:
    """Split a range into ``parts`` runs of nearly equal length."""
    return pairwise(begin + (end - begin) * i // parts for i in range(parts + 1))
