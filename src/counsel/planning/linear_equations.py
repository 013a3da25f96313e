"""Linear equations x = b + G x, where G has rows with sums of at most γ < 1.

They are what a policy earns for ever (G its discounted transitions) and how often it is where (the
transpose of G). Few equations are solved by elimination. Many are solved by the stabilised
bi-conjugate gradient method (van der Vorst 1992), which takes tens of products where sweeps
x ← b + G x take log(tolerance) / log(γ). Where that method breaks down, as with cycles of seasons
and long ladders of states, sparse elimination solves them up to ``ELIMINATED_SPARSE``, and sweeps
finish the work above.
"""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from counsel._arrays import Bools, Floats, Ints
from counsel._jit import run_jobs, split
from counsel.errors import CounselError
from counsel.planning._stationary_kernels import multiply_rows, reach

if TYPE_CHECKING:
    from collections.abc import Callable

ELIMINATED = 200
"""At most this many equations are solved by elimination."""

ELIMINATED_SPARSE = 10_000
"""At most this many equations are eliminated where the gradient method breaks down."""

EPSILON = float(np.finfo(np.float64).eps)

FLOOR = 4.0
"""Residuals below this many units of rounding of the largest number cannot be made smaller."""

RESTARTS, PRODUCTS = 4, 400
"""How often the gradient method starts again, and its products per start."""

MOST_SWEEPS = 1_000_000


@dataclass(frozen=True, eq=False)
class Equations:
    """The matrix G, given by rows: entries ``begin[i]`` up to ``begin[i + 1]`` belong to row i."""

    begin: Ints
    column: Ints
    weight: Floats
    threads: int = 1

    @property
    def size(self) -> int:
        """The number of equations."""
        return self.begin.size - 1

    @property
    def matrix(self) -> "sp.csr_matrix":
        """The matrix G for scipy."""
        return sp.csr_matrix((self.weight, self.column, self.begin), shape=(self.size, self.size))

    @cached_property
    def transposed(self) -> "Equations":
        """The equations of the transpose of G."""
        matrix = self.matrix.T.tocsr()
        begin, column = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
        return Equations(begin, column, matrix.data, self.threads)

    @cached_property
    def _eliminated(self) -> "Callable[[Floats], Any]":
        from scipy.linalg import lu_factor, lu_solve
        from scipy.sparse.linalg import splu

        if self.size <= ELIMINATED:
            return partial(lu_solve, lu_factor(np.eye(self.size) - self.matrix.toarray()))
        try:
            factors = splu((sp.identity(self.size, format="csr") - self.matrix).tocsc())
        except RuntimeError:  # singular to rounding
            return lambda b: np.full(b.size, np.nan)
        return lambda b: factors.solve(b)

    @cached_property
    def largest_sum(self) -> float:
        """The largest sum of a row of G."""
        return _size(self.multiply(np.ones(self.size)))

    def reached(self, start: Floats) -> Bools:
        """Return which equations a path from a positive ``start`` along rows of G leads to."""
        is_reached = start > 0.0
        reach(self.begin, self.column, self.weight, is_reached)
        return is_reached

    def multiply(self, x: Floats) -> Floats:
        """Return G x."""
        out, rows = np.empty(self.size), (self.begin, self.column, self.weight)
        runs = split(0, self.size, self.threads)
        run_jobs(self.threads, [partial(multiply_rows, *rows, run, x, out) for run in runs])
        return out

    def residual(self, b: Floats, x: Floats) -> Floats:
        """Return b + G x − x."""
        return self.multiply(x) + b - x

    def solve(self, b: Floats, *, guess: Floats | None = None, tolerance: float = 0.0) -> Floats:
        """Return x with a residual of at most ``tolerance`` in every equation, or rounding."""
        if self.size <= ELIMINATED or "_eliminated" in vars(self):
            return self._eliminate(b)
        x = np.zeros(self.size) if guess is None else guess.copy()
        for _ in range(RESTARTS):
            x, is_close = self._descend(b, x, tolerance)
            if is_close:
                return x
        if self.size <= ELIMINATED_SPARSE:
            return self._eliminate(b)
        return self._sweep(b, x, tolerance)

    def _eliminate(self, b: Floats) -> Floats:
        x: Floats = self._eliminated(b)
        x += self._eliminated(self.residual(b, x))
        return x

    def _descend(self, b: Floats, x: Floats, tolerance: float) -> tuple[Floats, bool]:
        """Return a better x and whether its residual is small enough."""
        r = self.residual(b, x)
        best, least = x, _size(r)
        x, shadow, p, v = x.copy(), r.copy(), np.zeros(x.size), np.zeros(x.size)
        rho, alpha, omega = 1.0, 1.0, 1.0
        enough = max(tolerance, _floor(b, x))
        for _ in range(PRODUCTS // 2):
            if least <= enough:
                enough = max(tolerance, _floor(b, best))
                true = _size(self.residual(b, best))  # the updated residual may have drifted
                return best, true <= 2.0 * enough
            rho, before = float(shadow @ r), rho
            if rho == 0.0 or omega == 0.0:
                break
            p = r + (rho / before * alpha / omega) * (p - omega * v)
            v = p - self.multiply(p)
            alpha = rho / (float(shadow @ v) or np.nan)
            s = r - alpha * v
            t = s - self.multiply(s)
            omega = float(t @ s) / (float(t @ t) or 1.0)
            x = x + (alpha * p + omega * s)
            r = s - omega * t
            size = _size(r)
            if not size < np.inf:
                break
            if size < least:
                best, least = x, size
        return best, False

    def _sweep(self, b: Floats, x: Floats, tolerance: float) -> Floats:
        """Return x after sweeps x ← b + G x, until the residual is small or shrinks no more."""
        size, before = np.inf, np.inf
        for _ in range(MOST_SWEEPS):
            if size <= max(tolerance, _floor(b, x)):
                return x
            r = self.residual(b, x)
            size, before = _size(r), size
            if size <= 64.0 * _floor(b, x) and size >= before:
                return x
            x = x + r
        raise CounselError(
            f"the values of {self.size:,} states have not converged after {MOST_SWEEPS:,} sweeps; "
            "give a discount further from 1"
        )


def _size(vector: Floats) -> float:
    return float(np.abs(vector).max(initial=0.0))


def _floor(b: Floats, x: Floats) -> float:
    """Return the size of rounding in a residual."""
    return FLOOR * EPSILON * (_size(b) + _size(x))
