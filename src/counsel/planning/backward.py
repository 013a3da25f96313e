"""Backward induction on the person's own kernel: lift × advantage.

With Q_h(s, a) = r_h(s, a) + Σ_t p_h(t | s, a) V_{h+1}(t) and the value of deferring
d_h(s) = Σ_a π_h(a | s) Q_h(s, a), the adherence law gives for every piece of advice b

    Q^M_h(s, b) − d_h(s) = lift_h(s, b) · (Q_h(s, b) − d_h(s))          gain = lift × advantage

so the best advice costs O(A) per state once the rows' expectations are known, and the machine's
kernel p^M is never built. With a penalty β for each piece one advises iff the gain exceeds β.

Among plans of equal value the one with the fewest *expected* pieces of advice to the end is taken,
then silence, then the lowest index. The expected pieces N are therefore carried along:

    V_h(s) = max_b  Q^M_h(s, b) − β 1{b ≠ defer}
    N_h(s) = 1{b ≠ defer} + Σ_t p^M_h(t | s, b) N_{h+1}(t)      for the b that was taken

Silence now can cost two pieces later, so it is N and not silence that decides first.

The two values are carried as a pair (see ``Aim``): for a penalty β they are R − βN and −N. The same
loop with −N first and R second finds the best plan among those that say least, the left end of the
frontier.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from counsel._arrays import Floats, layers, one_type
from counsel._jit import cores, thread_pool
from counsel.model.policy import Advice
from counsel.model.problem import AdviceProblem
from counsel.planning._backward_kernels import Aim, Model, choose, expect, plan_back
from counsel.planning.advice_rules import Rules
from counsel.planning.reach import within_reach

WORTH_THREADS = 1_000_000
"""Numbers to read in a step below which handing work to threads costs more than it saves."""

RUNS = 8
"""Runs of work for each thread in a step: a core that is slowed down holds up little."""

LOST = 1e-3
"""Rounding lost on the way, against the largest reward an episode could pay, in units of TIE."""


def penalised(problem: AdviceProblem, penalty: float) -> Aim:
    """Earn the most after paying ``penalty`` for each piece; among equals say the least."""
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
    """Say as little as possible; among those plans earn the most."""
    return Aim(
        weight0=0.0,
        cost0=1.0,
        size0=1.0,
        most0=problem.horizon + 1.0,
        weight1=1.0,
        cost1=0.0,
        size1=LOST * problem.horizon * problem.mdp.reward_size,
    )


def model_of(problem: AdviceProblem, rules: Rules) -> Model:
    """Gather the arrays that compiled loops read."""
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
        pull_lsa=rules.pull,
        speak_lsa=rules.speak,
        must_ls=rules.must,
    )
    return one_type(model)


class Planner:
    """Plans one problem again and again in the same working space.

    Attributes
    ----------
    values, advice
        [h, s] of the last plan, with a row of zeros after the last step; overwritten by the next.
        With ``search`` they are the planner's own affair: it leaves out what cannot occur.
    """

    def __init__(
        self,
        problem: AdviceProblem,
        rules: Rules,
        *,
        threads: int | None = None,
        search: bool = False,
    ) -> None:
        self.problem = problem
        self.rules = rules
        self.model = model_of(problem, rules)
        self._start = problem.mdp.start
        H = problem.horizon
        reach = within_reach(self.model, self._start, H) if search else None
        self.cells = None if reach is None else reach.cells
        if reach is not None:
            self.model, self._start = reach.model, reach.start
        S = self._start.size
        work = self.model.probability.size // len(self.model.row_lsa) + S * problem.n_actions
        self.threads = 1 if work < WORTH_THREADS else threads or cores()
        rows = np.diff(self.model.first_row_l)[self.model.shared_l].max(initial=0)
        self._expected_r2 = np.empty((int(rows), 2))
        self._both_s2 = np.empty((2, S, 2))
        self.values: Floats = np.empty((H + 1, S))
        self.advice: Advice = np.empty((H, S), dtype=np.int16)

    def run(self, aim: Aim) -> tuple[float, float]:
        """Plan for ``aim``; return its two values from the start."""
        if self.threads == 1:
            plan_back(self.model, aim, self._expected_r2, self.values, self._both_s2, self.advice)
        else:
            self._run_in_threads(aim)
        first, second = self._start @ self._both_s2[0]
        return float(first), float(second)

    def penalise(self, penalty: float) -> tuple[float, float]:
        """Plan for a penalty; return the expected reward and the expected pieces of advice."""
        net, minus_count = self.run(penalised(self.problem, penalty))
        return net - penalty * minus_count, 0.0 - minus_count

    def least(self) -> tuple[float, float]:
        """Plan to say as little as possible; return the reward and the pieces of advice."""
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
                rows = _cut(int(model.first_row_l[n]), int(model.first_row_l[n + 1]), runs)
                _together(
                    self.threads, [partial(expect, model, h, *run, then_s2, E_r2) for run in rows]
                )
            out = (now_s2, self.values[h], self.advice[h])
            states = _cut(0, S, runs)
            _together(
                self.threads,
                [partial(choose, model, aim, h, run, then_s2, E_r2, *out) for run in states],
            )


def _cut(begin: int, end: int, parts: int) -> list[tuple[int, int]]:
    """Cut a range into ``parts`` runs of nearly equal length."""
    ends = [begin + (end - begin) * i // parts for i in range(parts + 1)]
    return list(pairwise(ends))


def _together(threads: int, jobs: Sequence[Callable[[], None]]) -> None:
    """Run the jobs on the shared threads and wait for all of them."""
    for done in [thread_pool(threads).submit(job) for job in jobs]:
        done.result()
