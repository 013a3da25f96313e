"""Gains of all cells on one level of a memory: those of each cell on its own."""

import numpy as np
import pytest

from counsel import solve
from counsel.planning.gains import gains, gains_at, level_gains
from tests.support.each import each
from tests.support.tiring_people import MEMORIES, tiring_problem


@each("name", MEMORIES)
def test_they_are_the_gains_of_each_cell(name):
    problem = tiring_problem(*MEMORIES[name])
    plan = solve(problem, penalty=0.05)
    for level in range(problem.n_levels):
        advantage, gain = level_gains(problem, plan.values, level)
        for step, state in np.ndindex(problem.horizon, problem.n_states):
            cell = gains_at(problem, plan, step, state, None, level)
            assert advantage[step, state] == pytest.approx(cell.advantage, abs=1e-12)
            assert gain[step, state] == pytest.approx(cell.gain, abs=1e-12)


def test_levels_that_are_alike_have_the_gains_of_none():
    memory, _ = MEMORIES["pieces"]
    problem, plain = tiring_problem(memory, np.ones(4)), tiring_problem(None, None)
    advantage, gain = level_gains(problem, solve(problem, penalty=0.1).values, 2)
    other = gains(plain, solve(plain, penalty=0.1).values)
    assert advantage == pytest.approx(other[0], abs=1e-12)
    assert gain == pytest.approx(other[1], abs=1e-12)
