"""What planning reads of a problem is collected once, and only what is asked for is planned."""

import gc
import pickle
import weakref

import numpy as np

import counsel
from counsel.planning import level_planner, planners
from counsel.planning.prepared_problem import prepare


def test_a_problem_is_prepared_once_and_forgotten_with_it():
    problem = counsel.make("night-shift")
    first = prepare(problem)
    counsel.solve(problem)
    assert prepare(problem) is first
    whole, gone = weakref.ref(first), weakref.ref(problem)
    del problem, first
    gc.collect()
    assert gone() is None
    assert whole() is None


def test_masks_are_prepared_apart():
    problem = counsel.make("night-shift")
    forbidden = np.zeros(4, dtype=bool)
    forbidden[2] = True
    plan = counsel.solve(problem, forbidden=forbidden)
    assert prepare(problem, plan.constraints) is not prepare(problem)
    assert (plan.policy.advice[:, 2] == problem.defer).all()
    assert (counsel.solve(problem).policy.advice[:, 2] != problem.defer).any()


def test_cells_beyond_the_last_of_a_step_have_no_row():
    """Read as cells with one row, they were looked up before the first row of the kernel."""
    part = prepare(counsel.make("flappy-bird/safe")).reachable
    missing = (part.model.row_lsa < 0).all(axis=2)
    assert missing.any()
    assert (part.model.same_ls[missing] == -1).all()


def test_cells_that_cannot_be_reached_are_planned_when_asked_for(monkeypatch):
    problem, planned = counsel.make("flappy-bird/safe"), []

    class Watched(planners.Planner):
        def run(self, *arguments, **named):
            planned.append(self.part.cells is None)
            return super().run(*arguments, **named)

    monkeypatch.setattr(planners, "Planner", Watched)
    plan = counsel.solve(problem, penalty=0.3)
    value, count = plan.value, plan.advice_count
    assert planned == [False]
    outcome = counsel.evaluate(problem, plan.policy)
    assert planned == [False, True]
    np.testing.assert_allclose((value, count), (outcome.value, outcome.advice_count), atol=1e-12)
    assert plan.values[0] @ problem.mdp.start == plan.net_value


def test_a_policy_is_asked_for_without_its_values(monkeypatch):
    # Laying out the values of all states on all levels took four times as long as planning them.
    problem, read = counsel.make("flappy-bird/tiring"), []
    values = level_planner.LevelPlanner.values.fget
    watched = property(lambda planner: read.append(1) or values(planner))
    monkeypatch.setattr(level_planner.LevelPlanner, "values", watched)
    for limit in ({}, {"penalty": 0.3}, {"budget": 2.5}, {"budget": 2, "hard": True}):
        plan = counsel.solve(problem, **limit)
        assert plan.policy.advice.shape[-2:] == (problem.horizon, problem.n_states)
        assert read == []
        assert plan.values is plan.values
        assert read.pop() == 1


def test_plans_are_pickled_whole():
    problem = counsel.make("flappy-bird/safe")
    for limit in ({}, {"penalty": 0.3}, {"budget": 2.5}, {"budget": 2, "hard": True}):
        plan = counsel.solve(problem, **limit)
        copy = pickle.loads(pickle.dumps(plan))
        assert (copy.value, copy.advice_count, copy.price) == (
            plan.value,
            plan.advice_count,
            plan.price,
        )
        assert copy.values.tobytes() == plan.values.tobytes()
        assert copy.policy.advice.tobytes() == plan.policy.advice.tobytes()
