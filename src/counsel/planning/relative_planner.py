"""Plans for work without end with values relative to one cell; discounts near 1.

With γ near 1 every value is nearly the same large number, g / (1 − γ), and what advice changes is
lost in its last digits. So the planner keeps what a start in each cell brings beyond a start in one
cell, the *home*: V = w + g / (1 − γ) with w = 0 at home and

    w = r − g + γ P w

which are the equations of gain and bias (``recurrence.py``) with the transitions discounted. The
bounds on the error of ``discounted.py`` hold for any values, so for w too, and the rounding of w is
smaller by the factor 1 − γ.
"""

import numpy as np

from counsel._arrays import Floats
from counsel.errors import CounselError
from counsel.model.problem import AdviceProblem
from counsel.planning._choice_kernels import Aim
from counsel.planning.constraints import Constraints
from counsel.planning.discounted import TOLERANCE, DiscountedPlanner
from counsel.planning.linear_equations import EPSILON
from counsel.planning.recurrence import Cycles, closed_classes
from counsel.planning.stationary_policy import StationaryPolicy

LOST_BY_SUMS = 4.0 * EPSILON
"""What rounding may take from or add to the sum of a row of discounted transitions."""

MOST_ERROR = 1e-6
"""Plans are refused if their error may be a larger share of the largest value of any plan."""


class RelativePlanner(DiscountedPlanner):
    """Plans with values relative to a home, by a discount near 1 or by the average per step."""

    def __init__(
        self,
        problem: AdviceProblem,
        constraints: Constraints,
        *,
        threads: int | None = None,
        tolerance: float = TOLERANCE,
    ) -> None:
        super().__init__(problem, constraints, threads=threads, tolerance=tolerance)
        self._second_gain = 0.0
        self._cycles: Cycles | None = None

    def parts(self, weight: float, price: float) -> Floats:
        """Return weight · reward − price · cost of the last plan in every cell, 0 at home."""
        chosen = self._policy_now()
        relative = self._cycles_now().gain_and_bias(chosen.earned(weight, price))[1]
        return self._in_every_state(relative.reshape(self._V_ms.shape))

    def _cycles_now(self) -> Cycles:
        self._policy_now()
        if self._cycles is None:
            raise AssertionError("a policy has cycles")
        return self._cycles

    def _plan(self, aim: Aim, *, with_second: bool) -> None:
        self._aim = aim
        super()._plan(aim, with_second=with_second)

    def _sized(self, aim: Aim) -> Aim:
        """Add the sizes of relative values, which no number of the problem bounds."""
        first, second = (float(np.ptp(table)) for table in (self._V_ms, self._second_ms))
        return self._aim._replace(
            size0=self._aim.size0 + first,
            most0=self._aim.most0 + first,
            size1=self._aim.size1 + second,
        )

    def _evaluate_first(
        self, aim: Aim, guess: Floats, between: tuple[float, float], tolerance: float
    ) -> None:
        chosen, near = self._policy_now(), 0.5 * (between[0] + between[1])
        earned = chosen.earned(aim.weight0, float(aim.price0_h[0]))
        cycles = self._cycles_now()
        _, relative = cycles.gain_and_bias(earned, near=near, guess=guess, tolerance=tolerance)
        self._V_ms = relative.reshape(self._V_ms.shape)

    def _evaluate_second(self, aim: Aim) -> None:
        earned, guess = self._policy_now().earned(aim.weight1, aim.price1), self._second_ms
        cycles = self._cycles_now()
        self._second_gain, relative = cycles.gain_and_bias(earned, guess=guess.reshape(-1))
        self._second_ms = relative.reshape(self._second_ms.shape)


class LongDiscountPlanner(RelativePlanner):
    """Plans work with a discount near 1; what all values have in common is added at the end."""

    def __init__(
        self,
        problem: AdviceProblem,
        constraints: Constraints,
        *,
        threads: int | None = None,
        tolerance: float = TOLERANCE,
    ) -> None:
        super().__init__(problem, constraints, threads=threads, tolerance=tolerance)
        least, most = self._gammas
        self._gammas = least - LOST_BY_SUMS, min(most + LOST_BY_SUMS, 1.0 - EPSILON)
        self.tolerance = max(tolerance, 10.0 * LOST_BY_SUMS / (1.0 - self._gammas[1]))
        self._base = 0.0
        """What is added to the relative values of the last plan."""

    @property
    def values(self) -> Floats:
        """The values of the last plan: [2, s], both rows the same; with a memory [m, 2, s]."""
        return super().values + self._base

    def evaluate(self, weight: float, price: float) -> float:
        """Return weight · reward − price · cost of the last plan, from the start."""
        chosen = self._policy_now()
        gain, relative = self._cycles_now().gain_and_bias(chosen.earned(weight, price))
        return self._at_start(relative.reshape(self._V_ms.shape)) + self._for_ever(gain)

    def _for_ever(self, gain: float) -> float:
        """Return the value of a gain at every step."""
        return gain / (1.0 - 0.5 * sum(self._gammas))

    def _both_at_start(self, *, with_second: bool) -> tuple[float, float]:
        first, second = super()._both_at_start(with_second=with_second)
        return first + self._base, second + self._for_ever(self._second_gain)

    def _policy_now(self) -> StationaryPolicy:
        if self._chosen is None:
            equations = super()._policy_now().equations
            self._cycles = Cycles(equations, np.concatenate(closed_classes(equations)))
        return super()._policy_now()

    def _plan(self, aim: Aim, *, with_second: bool) -> None:
        super()._plan(aim, with_second=with_second)
        most = self._largest_value(aim)
        if not self.error <= MOST_ERROR * max(most, np.finfo(np.float64).tiny):
            raise CounselError(
                f"{self.problem.mdp.kind_of_work} is too near 1: the error of a plan may be "
                f"{self.error:.2g}, where values are at most {most:.2g}; give a smaller discount, "
                "or the average per step"
            )

    def _largest_value(self, aim: Aim) -> float:
        return self._for_ever(aim.most0)

    def _shifted(self, TV_ms: Floats, low: float, high: float) -> Floats:
        """Return values less that of the first cell, which becomes part of what is added."""
        first = float(TV_ms.flat[0])
        self._base = first + self._for_ever(0.5 * (low + high)) - 0.5 * (low + high)
        relative: Floats = TV_ms.reshape(-1) - first
        return relative
