"""States that are alike in everything are planned once, and nothing changes by it."""

import numpy as np
import pytest

import counsel
from counsel.planning import alike_states, prepared_problem
from counsel.planning.prepared_problem import prepare
from tests.support.each import each_seed


def repetitive(seed, *, steps=1):
    """Return a world of 12 to 30 states of few kinds, with many ties; and the kind of each."""
    rng = np.random.default_rng(seed)
    S, A, H, K = int(rng.integers(12, 31)), int(rng.integers(2, 4)), 5, int(rng.integers(2, 6))
    kind_s = np.concatenate((np.arange(K), rng.integers(K, size=S - K)))
    rng.shuffle(kind_s)
    L = H if steps > 1 else 1
    weight = rng.random((L, K, A, S)) * (rng.random((L, K, A, S)) < 0.4)
    weight[..., 0] += 0.1
    transition = (weight / weight.sum(axis=-1, keepdims=True))[:, kind_s]
    reward = (np.round(4 * rng.random((L, K, A))) / 4)[:, kind_s]
    habit = rng.dirichlet(np.full(A, 0.5), size=(L, K))[:, kind_s]
    lift = (np.round(2 * rng.random((L, K, A))) / 2)[:, kind_s]
    if steps == 1:
        transition, reward, habit, lift = transition[0], reward[0], habit[0], lift[0]
    mdp = counsel.MDP(transition, reward, horizon=H, start=rng.dirichlet(np.ones(S)))
    return counsel.AdviceProblem(mdp, counsel.Human(habit, lift=lift)), kind_s


def groups(kind_s):
    return {frozenset(np.flatnonzero(kind_s == kind).tolist()) for kind in np.unique(kind_s)}


def fresh(problem):
    return counsel.AdviceProblem(problem.mdp, problem.human, problem.cost)


@each_seed(range(12))
def test_the_kinds_are_found(seed):
    for steps in (1, 5):
        problem, kind_s = repetitive(seed, steps=steps)
        part = prepare(problem).kinds
        assert groups(part.kind_s) == groups(kind_s)
        assert part.start.size == len(np.unique(kind_s))


@pytest.mark.slow
@each_seed(range(12))
def test_planning_each_kind_once_changes_no_bit(seed, monkeypatch):
    for steps in (1, 5):
        problem, kind_s = repetitive(seed, steps=steps)
        rng = np.random.default_rng(seed)
        masks = ({}, {"forbidden": (rng.random(12) < 0.3)[kind_s % 12]}, {"allow_reverse": False})
        for mask in masks:
            for penalty in (0.0, 0.125):
                plan = counsel.solve(problem, penalty=penalty, **mask)
                critical = counsel.criticality(problem, **mask)
                with monkeypatch.context() as patch:
                    patch.setattr(prepared_problem, "kinds_of_states", lambda _: None)
                    whole = fresh(problem)
                    full = counsel.solve(whole, penalty=penalty, **mask)
                    full_critical = counsel.criticality(whole, **mask)
                    assert full.values.tobytes() == plan.values.tobytes()
                assert full.policy.advice.tobytes() == plan.policy.advice.tobytes()
                assert full_critical.lower.tobytes() == critical.lower.tobytes()
                np.testing.assert_allclose(
                    (plan.value, plan.advice_count), (full.value, full.advice_count), atol=1e-12
                )


@each_seed(range(6))
def test_a_difference_anywhere_keeps_states_apart(seed):
    problem, kind_s = repetitive(seed)
    kinds = len(np.unique(kind_s))
    twin = int(np.flatnonzero(np.bincount(kind_s)[kind_s] > 1)[0])
    S, A = problem.n_states, problem.n_actions
    cost = np.ones((S, A))
    cost[twin, 0] = 2.0
    dear = counsel.AdviceProblem(problem.mdp, problem.human, cost=cost)
    assert prepare(dear).kinds.start.size == kinds + 1
    reward = problem.mdp.reward[0].copy()
    reward[twin] += 1.0
    rich = counsel.AdviceProblem(problem.mdp.paying(reward), problem.human)
    assert prepare(rich).kinds.start.size == kinds + 1
    for mask in ("forbidden", "required"):
        marked = np.zeros((problem.horizon, S), dtype=bool)
        marked[2, twin] = True
        constraints = counsel.solve(problem, **{mask: marked}).constraints
        assert prepare(problem, constraints).kinds.start.size == kinds + 1


def test_states_with_the_same_hash_that_differ_are_not_merged(monkeypatch):
    problem, _ = repetitive(0)
    expected = counsel.solve(problem).values
    monkeypatch.setattr(alike_states, "hash_states", lambda *_: None)
    other = fresh(problem)
    assert prepare(other).kinds.kind_s is None
    assert counsel.solve(other).values.tobytes() == expected.tobytes()


def test_a_world_where_every_pair_has_its_own_row_is_not_searched(monkeypatch):
    rng = np.random.default_rng(0)
    mdp = counsel.MDP(rng.dirichlet(np.ones(6), size=(6, 2)), rng.random((6, 2)), horizon=3)
    problem = counsel.AdviceProblem(mdp, counsel.Human(np.full((6, 2), 0.5), 0.8))
    monkeypatch.delattr(alike_states, "hash_states")
    assert prepare(problem).kinds is prepare(problem).whole


def test_the_car_world_has_4005_kinds_of_states():
    assert prepare(counsel.make("car-driving/myopic")).kinds.start.size == 4005
