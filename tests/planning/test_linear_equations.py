"""Equations x = b + G x: elimination, the gradient method and sweeps give the same numbers."""

import numpy as np
import pytest
import scipy.sparse as sp

from counsel.errors import CounselError
from counsel.planning import linear_equations
from counsel.planning.linear_equations import Equations
from tests.support.each import each_seed


def equations(matrix):
    matrix = sp.csr_matrix(matrix)
    begin, column = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
    return Equations(begin, column, matrix.data)


def drawn(seed, size=300, gamma=0.99):
    rng = np.random.default_rng(seed)
    near = (np.arange(size)[:, None] + rng.integers(-3, 4, (size, 4))) % size
    weight = rng.dirichlet(np.ones(4), size)
    rows = np.repeat(np.arange(size), 4)
    return gamma * sp.coo_matrix((weight.ravel(), (rows, near.ravel()))).tocsr()


@each_seed(range(5))
def test_many_equations_are_solved_to_rounding(seed):
    matrix, b = drawn(seed), np.random.default_rng(seed).standard_normal(300)
    for G in (matrix, matrix.T):
        x = equations(G).solve(b)
        exact = np.linalg.solve(np.eye(300) - G.toarray(), b)
        np.testing.assert_allclose(x, exact, atol=1e-11 * np.abs(exact).max())


def test_sweeps_finish_where_the_gradient_method_breaks_down(monkeypatch):
    monkeypatch.setattr(linear_equations, "RESTARTS", 0)
    monkeypatch.setattr(linear_equations, "ELIMINATED_SPARSE", 0)
    matrix, b = drawn(1, gamma=0.9), np.arange(300.0)
    exact = np.linalg.solve(np.eye(300) - matrix.toarray(), b)
    x = equations(matrix).solve(b)
    np.testing.assert_allclose(x, exact, rtol=1e-12)


def test_a_ring_on_which_the_gradient_method_breaks_down_is_eliminated():
    """Its sweeps took minutes, and those of longer rings and ladders did not end."""
    size = 283
    step, half = (np.roll(np.eye(size), by, axis=1) for by in (1, size // 2))
    cycle = 0.65 * step + 0.35 * half
    cycle[:, 0] = 0.0  # an end of every cycle
    system = equations(cycle)
    for b in (np.ones(size), np.arange(float(size))):
        exact = np.linalg.solve(np.eye(size) - cycle, b)
        np.testing.assert_allclose(system.solve(b), exact, rtol=1e-10)
    assert np.isnan(equations(sp.identity(size)).solve(b)).all(), "a singular system has no answer"


def test_sweeps_that_do_not_end_are_refused(monkeypatch):
    for name, value in (("RESTARTS", 0), ("ELIMINATED_SPARSE", 0), ("MOST_SWEEPS", 9)):
        monkeypatch.setattr(linear_equations, name, value)
    with pytest.raises(CounselError, match="300 states have not converged after 9 sweeps; give a"):
        equations(drawn(1)).solve(np.ones(300))


@pytest.mark.parametrize("tolerance", [1e-3, 1e-7])
def test_the_residual_is_at_most_the_tolerance(tolerance):
    system, b = equations(drawn(2)), np.arange(300.0)
    x = system.solve(b, tolerance=tolerance)
    assert np.abs(system.residual(b, x)).max() <= 2.0 * tolerance


def test_a_path_leads_to_what_is_reached():
    chain = equations(sp.diags([np.ones(299)], [1]).tocsr())
    start = np.zeros(300)
    start[200] = 1.0
    assert np.flatnonzero(chain.reached(start)).tolist() == list(range(200, 300))
