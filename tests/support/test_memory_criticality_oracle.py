"""The oracle of criticality with a memory: brute force, exact lines, and cases done by hand."""

import numpy as np
import pytest

from tests.support.drawn_memories import draw
from tests.support.each import each, each_seed
from tests.support.memory_cases import pays_off_and_on, saves_required_advice
from tests.support.memory_criticality_oracle import criticality, criticality_exact, margins_at
from tests.support.memory_model import check


def check_brute_force(P, points):
    """The two agree, but that a grid may miss a narrow set of penalties."""
    brute, exact = criticality(P, points=points), criticality_exact(P)
    is_missed = np.isnan(brute) | (brute < exact)
    agrees = np.isclose(brute, exact, rtol=1e-6, atol=1e-6, equal_nan=True)
    assert (agrees | is_missed).all()
    assert agrees.mean() > 0.8


@each_seed(range(1))
def test_brute_force_and_exact_lines_agree(seed):
    check_brute_force(draw(seed, H=2, S=2, A=2, M=2), 20)


@pytest.mark.slow
@each_seed(range(100, 112))
def test_brute_force_and_exact_lines_agree_on_larger_problems(seed):
    check_brute_force(draw(seed, H=3, S=2, A=2, M=2), 150)


@each(("by_level", "first"), [(True, 0.3), (False, 0.6)])
def test_advice_may_pay_stop_paying_and_pay_again(by_level, first):
    P = pays_off_and_on(by_level=by_level)
    check(P)
    m = P.start_level
    for critical in (criticality(P, points=100), criticality_exact(P)):
        assert critical[m, 0, 0] == pytest.approx(1.5, abs=1e-6)
    for penalty in (0, first - 0.01, first + 0.01, 0.89, 0.91, 1.49, 1.51):
        pays = margins_at(P, penalty)[0][m, 0, 0].max() >= 0
        assert pays == (penalty <= first or 0.9 <= penalty <= 1.5)


@each(("cost", "loss", "expected"), [(1, 0, np.inf), (3, 1, np.nan), (1, 1, np.inf)])
def test_advice_that_saves_required_advice_pays_at_every_penalty(cost, loss, expected):
    P = saves_required_advice(cost, loss)
    check(P)
    for critical in (criticality(P, points=20), criticality_exact(P)):
        np.testing.assert_equal(critical[0, 0, 0], expected)
