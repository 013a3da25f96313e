"""Plans for work without end by their average reward per step: policy iteration on gain and bias.

The best gain g and its bias h solve h + g = T h, with T the same step of improvement as in
``discounted.py``; the transitions are not discounted. For any values V

    min (T V − V)  ≤  gain of the chosen advice  ≤  best gain  ≤  max (T V − V)

so the difference of the two ends bounds what the advice loses. Evaluation solves the equations of
gain and bias (``recurrence.py``), which needs no aperiodic chain.

**Several closed classes.** The world comes back to where it was, but chosen advice may have several
closed classes, each with its own gain. Then the class with the best gain is kept, and outside of it
advice is changed where it never leads there (Haviv and Puterman 1991). The next improvement may
change it back; so if the last advice was changed, or iteration has not ended after a few rounds,
``one_closed_class.py`` improves what was kept.

**Ties** are settled as with a discount: least advice per step wins, then silence, then the lowest
index.
"""

import numpy as np

from counsel._arrays import Floats, Ints
from counsel.errors import CounselError
from counsel.model.problem import AdviceProblem
from counsel.model.random_cells import Advice
from counsel.planning._choice_kernels import TIE, Aim
from counsel.planning.constraints import Constraints
from counsel.planning.discounted import TOLERANCE
from counsel.planning.linear_equations import EPSILON, Equations
from counsel.planning.one_closed_class import Term, improve_in_one_class
from counsel.planning.recurrence import (
    Choices,
    Cycles,
    always_reaches_silence,
    check_comes_back,
    choices_of,
    closed_classes,
    likeliest,
)
from counsel.planning.relative_planner import MOST_ERROR, RelativePlanner
from counsel.planning.stationary_policy import StationaryPolicy, stationary

SAME_GAIN = 1e-10
"""Closed classes whose gains differ by less than this share of the largest reward tie."""


FEW_ROUNDS = 30
"""The most rounds of improving every choice, if the chosen advice may have several classes."""


class AveragePlanner(RelativePlanner):
    """Plans work by its average per step; the values are biases, 0 at the start on average."""

    def __init__(
        self,
        problem: AdviceProblem,
        constraints: Constraints,
        *,
        threads: int | None = None,
        tolerance: float = TOLERANCE,
    ) -> None:
        super().__init__(problem, constraints, threads=threads, tolerance=tolerance)
        self.is_changed = False
        """Whether the last plan had several closed classes, and advice was changed to one."""
        self._gain = 0.0
        self._kept_ms: Advice = self._advice_ms
        self._choices = None if self._always_has_one_class() else self._choices_that_come_back()

    def _always_has_one_class(self) -> bool:
        """Return whether it is easy to see that every policy has one closed class."""
        model, levels = self.part.model, self.levels
        if not always_reaches_silence(model, levels):
            return False
        silent = stationary(model, levels, self._advice_ms, threads=self.threads)
        return len(closed_classes(silent.equations)) == 1

    def _choices_that_come_back(self) -> Choices:
        choices = choices_of(self.part.model, self.levels)
        check_comes_back(self.problem, choices.sets_to_stay_in(), self.part.kind_s)
        return choices

    @property
    def advice(self) -> Advice:
        """The advice of the last plan: [1, s], with a memory [m, 1, s]."""
        advice_mhs = self._in_every_state(self._kept_ms)[:, None]
        return advice_mhs if self.problem.memory else advice_mhs[0]

    def evaluate(self, weight: float, price: float) -> float:
        """Return weight · reward − price · cost of the last plan, per step."""
        chosen = self._policy_now()
        return self._cycles_now().gain_and_bias(chosen.earned(weight, price))[0]

    def _both_at_start(self, *, with_second: bool) -> tuple[float, float]:
        return self._gain, self._second_gain if with_second else np.nan

    def _policy_now(self) -> StationaryPolicy:
        """Return the equations of the advice of the last plan, which has one closed class."""
        if self._chosen is not None:
            return self._chosen
        model, levels, self._kept_ms = self.part.model, self.levels, self._advice_ms
        self._chosen = stationary(model, levels, self._kept_ms, threads=self.threads)
        classes = closed_classes(self._chosen.equations)
        cells, self.is_changed = classes[0], len(classes) > 1
        if self.is_changed and self._choices is not None:
            cells = classes[self._best_class(self._chosen, classes)]
            advice_x = self._kept_ms.reshape(-1)
            changed_x = self._choices.lead_to(cells, advice_x, self._chosen.equations)
            self._kept_ms = changed_x.astype(np.int16).reshape(self._kept_ms.shape)
            self._chosen = stationary(model, levels, self._kept_ms, threads=self.threads)
        self._cycles = Cycles(self._chosen.equations, cells)
        return self._chosen

    def _best_class(self, chosen: StationaryPolicy, classes: list[Ints]) -> int:
        """Return the class with the best first gain, then with the best second gain."""
        every = chosen.equations
        homes = [likeliest(every, cells) for cells in classes]
        weight = np.where(np.isin(every.column, homes), 0.0, every.weight)
        within = Equations(every.begin, every.column, weight, every.threads)
        length = within.solve(np.ones(within.size))[homes]
        aim = self._aim
        first = within.solve(chosen.earned(aim.weight0, float(aim.price0_h[0])))[homes] / length
        second = within.solve(chosen.earned(aim.weight1, aim.price1))[homes] / length
        good = first >= first.max() - SAME_GAIN * max(aim.most0, 1e-300)
        return int(np.where(good, second, -np.inf).argmax())

    def _plan(self, aim: Aim, *, with_second: bool) -> None:
        self._aim = aim
        super()._plan(aim, with_second=with_second)
        if self._choices is not None:
            self._policy_now()
            if self.is_changed or not self._is_converged:
                self._improve_in_one_class(aim, self._choices)
            else:
                earned = self._policy_now().earned(aim.weight0, float(aim.price0_h[0]))
                guess = self._V_ms.reshape(-1)
                self._gain = self._cycles_now().gain_and_bias(earned, guess=guess)[0]
        self._check_converged(aim)
        if with_second:
            chosen = self._policy_now()
            earned = chosen.earned(aim.weight1, aim.price1)
            self._second_gain = self._cycles_now().gain_and_bias(earned)[0]

    def _improve_in_one_class(self, aim: Aim, choices: Choices) -> None:
        """Replace the last plan by what improving its kept advice leads to."""
        tie, price = TIE * (self.problem.n_actions + 1), float(aim.price0_h[0])
        first = aim.weight0 * choices.reward - price * choices.cost
        second = aim.weight1 * choices.reward - aim.price1 * choices.cost
        terms = Term(first, aim.size0 + aim.most0, tie), Term(second, aim.size1, tie)
        kept = improve_in_one_class(choices, terms, self._kept_ms.reshape(-1))
        shape = self._V_ms.shape
        self._advice_ms = kept.advice_x.astype(np.int16).reshape(shape)
        self._chosen, self._is_converged, self._gain = None, True, kept.gain
        self._V_ms, self._second_ms = (bias.reshape(shape) for bias in kept.biases)
        self.error = self._bound(aim, 0.0, kept.lead, 1)
        self._V_ms = self._shifted(self._V_ms, 0.0, 0.0).reshape(shape)

    def _check_converged(self, aim: Aim) -> None:
        """Raise if iteration has ended before the error is small."""
        allowed = (MOST_ERROR if self._is_converged else self.tolerance) * aim.most0
        if not self.error <= allowed:
            raise CounselError(
                "the plan by the average per step has not converged: its error may be "
                f"{self.error:.2g}, and {allowed:.2g} is allowed; give a discount instead"
            )

    def _most_rounds(self) -> int:
        return super()._most_rounds() if self._choices is None else FEW_ROUNDS

    def _goal(self, allowed: float) -> float:
        return 0.5 * allowed

    def _shifted(self, TV_ms: Floats, low: float, high: float) -> Floats:
        """Return the biases with 0 at the start on average."""
        bias: Floats = TV_ms.reshape(-1) - self._at_start(TV_ms)
        return bias

    def _finish(self, low: float, high: float) -> None:
        self._gain = 0.5 * (low + high)

    def _bound(self, aim: Aim, low: float, high: float, ties: int) -> float:
        """Return a bound on the loss of the chosen advice and on the error of its gain."""
        size = max(float(np.abs(self._V_ms).max()), self.prepared.reward_size * aim.weight0)
        rounding = 8.0 * (self.problem.n_actions + 2) * EPSILON * size
        settled = TIE * (self.problem.n_actions + 1) * aim.most0 if ties else 0.0
        return max(high - low, 0.0) + 2.0 * rounding + settled
