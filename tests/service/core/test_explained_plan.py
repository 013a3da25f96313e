"""The numbers that explain a plan are those of the library."""

import numpy as np
import pytest

import counsel
from counsel.learning.population import Limit, Population
from counsel.service.core.explained_plan import explain_plan
from counsel.worlds import make

WARD = make("ward")


@pytest.mark.parametrize("limit", [Limit(penalty=0.1), Limit(budget=1.0), Limit(2.0)])
def test_the_criticality_of_a_cell_is_the_penalty_it_bears(limit):
    population = Population(WARD.without_adherence(), knows_habit=True)
    plan = explain_plan(population, population.plan(1, limit))
    expected = counsel.criticality(plan.problem, allow_reverse=False).upper
    np.testing.assert_allclose(plan.criticality, expected)


def test_gains_are_lift_times_advantage():
    population = Population(WARD.without_adherence(), knows_habit=True)
    plan = explain_plan(population, population.plan(1, Limit(penalty=0.1)))
    for state in (1, 2, 3):
        why = counsel.explain(plan.problem, plan.plan, step=2, state=state)
        assert plan.advantage[2, state, why.considered] == pytest.approx(why.advantage)
        assert plan.gain[2, state, why.considered] == pytest.approx(why.gain)
