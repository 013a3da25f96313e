"""Criticality on every level of a memory, against an oracle written from the formulas alone."""

import numpy as np
import pytest

import counsel
from tests.support import memory_oracle as o
from tests.support.drawn_memories import draw
from tests.support.each import each, each_seed, each_seed_up_to
from tests.support.memory_cases import pays_off_and_on, saves_required_advice
from tests.support.memory_criticality_oracle import criticality_exact, margins_at
from tests.support.problems import adapt_memory

SMALL = {"H": 2, "S": 2, "A": 2, "M": 2}


def check_exact(P):
    """Compare every cell with the oracle, where advice that never pays has a criticality of 0.

    Advice may tie with silence for a whole range of penalties. The oracle counts that as paying,
    the package does not.
    """
    problem, masks = adapt_memory(P)
    critical = counsel.criticality(problem, **masks)
    assert critical.exact
    assert critical.lower.shape == (P.M, P.H, P.S)
    np.testing.assert_array_equal(critical.lower, critical.upper)
    expected = np.nan_to_num(criticality_exact(P), nan=0.0, posinf=np.inf)
    differs = ~np.isclose(critical.lower, expected, rtol=1e-6, atol=1e-6)
    for cell in zip(*np.nonzero(differs), strict=True):
        check_tie(P, cell, critical.lower[cell], min(expected[cell], critical.lower[cell] + 100.0))


def check_tie(P, cell, low, high):
    """The best advice in a cell is as good as silence, and no better, between two penalties."""
    assert low < high
    for penalty in np.linspace(low, high, 7)[1:-1]:
        assert margins_at(P, penalty)[0][cell].max() == pytest.approx(0.0, abs=1e-10)
    if low > 1e-6:
        assert margins_at(P, low - 1e-6)[0][cell].max() > 0.0


@each_seed(range(12))
def test_every_cell_on_every_level_equals_the_oracle(seed):
    check_exact(draw(seed, **SMALL))


@each_seed_up_to(15, 150)
def test_every_cell_of_larger_problems_equals_the_oracle(seed):
    check_exact(draw(seed, H=3, S=2, A=3))


def test_a_tie_for_a_whole_range_of_penalties_is_no_gain():
    # On the last level, advice at step 0 is as good as silence at penalties from 0.281 to 0.661.
    problem, masks = adapt_memory(draw(500105, H=3, S=2, A=3))
    critical = counsel.criticality(problem, **masks).lower[4, 0, 0]
    assert critical == pytest.approx(0.2807376614400803, abs=1e-12)
    plan = counsel.solve(problem, penalty=0.4, **masks)
    assert plan.policy.advice[4, 0, 0] == problem.defer


@each(("by_level", "first"), [(True, 0.3), (False, 0.6)])
def test_advice_may_pay_stop_paying_and_pay_again(by_level, first):
    P = pays_off_and_on(by_level=by_level)
    problem, masks = adapt_memory(P)
    m = P.start_level
    critical = counsel.criticality(problem, **masks)
    assert critical.lower[m, 0, 0] == pytest.approx(1.5, abs=1e-12)
    for penalty in (0.0, first - 0.01, first + 0.01, 0.89, 0.91, 1.49, 1.51):
        plan = counsel.solve(problem, penalty=penalty, **masks)
        is_advised = plan.policy.advice[m, 0, 0] < problem.defer
        assert is_advised == (penalty < first or 0.9 < penalty < 1.5)


@each(("cost", "loss", "expected"), [(1, 0, np.inf), (3, 1, 0.0), (1, 1, np.inf)])
def test_advice_that_saves_required_advice_pays_at_every_penalty(cost, loss, expected):
    problem, masks = adapt_memory(saves_required_advice(cost, loss))
    assert counsel.criticality(problem, **masks).lower[0, 0, 0] == expected


def check_brackets(P, grid):
    """At ``lower`` a plan advises; the exact criticality is no more than a step away."""
    problem, masks = adapt_memory(P)
    exact = counsel.criticality(problem, **masks)
    rough = counsel.criticality(problem, max_kinks=0, grid=grid, **masks)
    assert exact.exact
    assert not rough.exact
    assert (rough.lower <= exact.lower + 1e-9).all()
    steps = np.unique(rough.lower[np.isfinite(rough.lower)])
    for penalty in steps:
        advice = np.moveaxis(o.plan(P, penalty)[1], 1, 0)
        is_advised = advice < P.A
        assert is_advised[(rough.lower == penalty) & (penalty > 0.0)].all()
        assert not is_advised[rough.upper <= penalty].any()


@each_seed(range(10))
def test_a_grid_brackets_the_criticality_of_every_level(seed):
    check_brackets(draw(seed, **SMALL), 16)


@each_seed(range(40))
def test_many_kinks_or_few_the_method_does_not_matter(seed):
    """With rows shared over states and levels, and one by one."""
    P = draw(seed, H=3, S=3, A=2, stationary=seed % 2 == 0)
    problem, masks = adapt_memory(P)
    critical = counsel.criticality(problem, **masks).lower
    for penalty in (0.05, 0.3, 1.0):
        advice = counsel.solve(problem, penalty=penalty, **masks).policy.advice
        assert (critical[advice < P.A] >= penalty - 1e-9).all()
    tops = np.unique(critical[np.isfinite(critical) & (critical > 1e-5)])
    for top in tops[:: max(len(tops) // 4, 1)]:
        below = counsel.solve(problem, penalty=top - 1e-6, **masks).policy.advice
        assert (below[np.abs(critical - top) < 1e-9] < P.A).all()


@each_seed(range(10))
def test_without_reverse_advice_no_level_is_repelled(seed):
    P = draw(seed, **SMALL, negative=True, required=False)
    problem, masks = adapt_memory(P)
    repelling = (problem.level_lift < 0.0).any(axis=0)
    attracting = dict(masks, forbidden=masks["forbidden"] | repelling)
    np.testing.assert_array_equal(
        counsel.criticality(problem, allow_reverse=False, **masks).lower,
        counsel.criticality(problem, **attracting).lower,
    )
