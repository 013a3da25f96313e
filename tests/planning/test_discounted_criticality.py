"""Criticality in work without end: advice pays up to it, and never above it."""

import numpy as np
import pytest

import counsel
from counsel.planning.gains import level_gains
from tests.support import discounted_oracle as oracle
from tests.support.each import each_seed

MEMORY = counsel.Memory.pieces(2)


def gains(world, penalty):
    """Return what the best advice in each cell earns beyond silence at a penalty."""
    V = oracle.best_values(world, penalty)
    net = world.reward - penalty * world.cost + world.discount * world.P @ V
    net = np.where(world.possible, net, -np.inf)
    return net[:, :-1].max(axis=1) - net[:, -1]


@each_seed(range(16))
def test_advice_pays_just_below_the_criticality_and_never_above(seed):
    problem = oracle.draw(seed, discount=0.9, memory=MEMORY if seed % 3 == 0 else None)
    world, cells = oracle.machine(problem), counsel.criticality(problem)
    assert cells.exact
    critical = cells.lower.reshape(-1)
    for penalty in np.unique(critical[np.isfinite(critical)]):
        at = np.flatnonzero(critical == penalty)
        if penalty > 1e-9:
            assert (gains(world, penalty * (1 - 1e-6))[at] > 0.0).all()
        for above in (penalty * (1 + 1e-6) + 1e-9, 1.5 * penalty + 0.1, 4.0 * penalty + 1.0):
            assert (gains(world, above)[at] <= 1e-9).all()


def test_a_grid_brackets_the_exact_criticality():
    problem = oracle.draw(4, discount=0.9)
    exact, rough = counsel.criticality(problem), counsel.criticality(problem, max_kinks=0)
    assert exact.exact
    assert not rough.exact
    assert (rough.lower <= exact.lower + 1e-12).all()
    assert (exact.lower <= rough.upper + 1e-12).all()


def test_required_advice_has_no_finite_criticality():
    problem = oracle.draw(4, discount=0.9)
    required = np.zeros(problem.n_states, bool)
    required[0] = True
    assert counsel.criticality(problem, required=required).lower[0, 0] == np.inf


def test_an_explanation_names_no_step_and_its_gain_decides():
    problem = oracle.draw(4, discount=0.9)
    plan, cells = counsel.solve(problem, penalty=0.05), counsel.criticality(problem)
    for state in range(problem.n_states):
        why = counsel.explain(problem, plan, state=state)
        assert why.step is None
        assert str(why).startswith(f"In state {state}, ")
        assert (why.advice is not None) == (why.gain > why.price)
        assert why.criticality == (cells.lower[0, state], cells.upper[0, state])


def test_an_explanation_with_a_memory_has_a_burden():
    problem = oracle.draw(6, discount=0.9, memory=MEMORY)
    plan = counsel.solve(problem, penalty=0.02)
    for level in range(problem.n_levels):
        why = counsel.explain(problem, plan, state=0, level=level)
        assert why.gain == pytest.approx(why.lift * why.advantage - why.burden)
        assert (why.advice is not None) == (why.gain > why.price)


def test_with_a_horizon_an_explanation_needs_a_step():
    problem = counsel.make("night-shift")
    with pytest.raises(counsel.CounselError, match="step is missing; give a step from 0 to 11"):
        counsel.explain(problem, counsel.solve(problem), state=0)


def test_gains_on_levels_are_numbers_where_an_action_is_not_allowed():
    problem = oracle.draw(9, discount=0.9, memory=MEMORY)
    assert not problem.mdp.allowed.all()
    advantage, gain = level_gains(problem, np.zeros((3, 2, problem.n_states)), 0)
    assert np.isfinite(gain).all()
    assert (np.isnan(advantage) == ~problem.mdp.allowed).all()


@pytest.mark.slow
def test_a_walk_leaves_a_penalty_at_which_rounding_hides_what_comes_next():
    """Advice that changes nothing but the level of a memory: steps of 1e-300 took for ever."""
    P = [[[0.0001, 0.9975, 0.0024]], [[0.0235, 0.9467, 0.0298]], [[0.6067, 0.3771, 0.0162]]]
    mdp = counsel.MDP(P, [-0.03, 0.39, -0.39], discount=0.999999)
    lift = np.array([[0.2, 0.6, 0.4], [0.2, -0.1, -0.1], [0.0, 1.0, 0.3]])[:, :, None]
    human = counsel.Human(np.ones((3, 1)), lift=lift, memory=counsel.Memory.refusals(2))
    cells = counsel.criticality(counsel.AdviceProblem(mdp, human))
    assert cells.exact
    assert (cells.lower <= 1e-6).all()
