"""Weights and values of policies that depend on the level of a memory."""

import numpy as np
import pytest

import counsel
from counsel.logs.decisions import load_decisions
from counsel.logs.importance_weights import (
    importance_weights,
    logged_paths,
    policy_chances,
    policy_values,
    second_moment,
)
from counsel.logs.level_beliefs import follow_levels
from counsel.logs.read import read_log
from counsel.model.memory import Memory
from counsel.planning.evaluate import evaluate
from tests.support.memory_logs import tiring_ward, ward_rows
from tests.support.slow_levels import levels


@pytest.fixture(scope="module")
def table():
    return ward_rows(tiring_ward(0.6), 400, seed=7)


@pytest.fixture(scope="module")
def model(table):
    return counsel.fit(table, memory="pieces=3")


@pytest.fixture(scope="module")
def rows(table, model):
    return load_decisions(read_log(table), model.tally, model.problem)


def drawn_policy(problem, seed, *, hard=False):
    """A random policy by level, or a plan within a hard budget."""
    if hard:
        return counsel.solve(problem, budget=2, hard=True).policy
    rng = np.random.default_rng(seed)
    shape = (problem.n_levels, problem.horizon, problem.n_states, problem.n_actions + 1)
    chance = rng.dirichlet(np.ones(shape[-1]), shape[:-1])
    chance[..., :-1] *= problem.mdp.allowed
    chance /= chance.sum(axis=-1, keepdims=True)
    return counsel.Policy.from_probabilities(chance, levels=problem.n_levels)


def with_memory(problem, memory, fading):
    human = counsel.Human(problem.human.policy[0], lift=0.5, memory=memory, fading=fading)
    return counsel.AdviceProblem(problem.mdp, human)


@pytest.mark.parametrize("kind", ["pieces", "since", "refusals"])
def test_chances_are_those_at_the_level_of_the_episode_so_far(kind, table, model, rows):
    memory = getattr(Memory, kind)(2)
    problem = with_memory(model.problem, memory, [1.0, 0.5, 0.2])
    policy = drawn_policy(problem, seed=1)
    level_of = levels(table.to_pylist(), kind, 2, "episode")
    names = sorted({name for name, _ in level_of}, key=str)
    expected = [
        policy.at(h, s, level=level_of[names[episode], h]).get(b, 0.0)
        for episode, h, s, b in zip(rows.episode, rows.place, rows.state, rows.advice, strict=True)
    ]
    np.testing.assert_allclose(policy_chances(policy, rows, memory), expected, atol=1e-12)


def test_a_level_that_is_drawn_is_averaged_over_what_the_episode_leaves_possible(model, rows):
    """The product of the chances is that of all paths of levels together."""
    memory = Memory.dose(0.5, 3)
    problem = with_memory(model.problem, memory, [1.0, 0.5, 0.2])
    policy = drawn_policy(problem, seed=2)
    chance = follow_levels(policy, rows, memory).chance
    table = policy.probabilities()
    for episode in range(15):
        mine = np.flatnonzero(rows.episode == episode)
        paths = {memory.start: 1.0}  # the probability of the advice so far with each level
        for i in mine:
            s, b = rows.state[i], rows.advice[i]
            outcome = 0 if not rows.heard[i] else 1 if rows.action[i] == b else 2
            later = dict.fromkeys(range(3), 0.0)
            for m, weight in paths.items():
                for then in range(3):
                    moved = memory.after[outcome, m, then]
                    later[then] += weight * table[m, rows.place[i], s, b] * moved
            paths = later
        assert np.prod(chance[mine]) == pytest.approx(sum(paths.values()), rel=1e-9)


@pytest.mark.parametrize("hard", [False, True])
def test_values_at_the_first_step_are_what_evaluate_says(model, rows, hard):
    policy = drawn_policy(model.problem, seed=3, hard=hard)
    _, v = policy_values(model.problem, policy, rows)
    first = rows.place == 0
    v_of = dict(zip(rows.state[first], v[first], strict=True))
    start = model.problem.mdp.start
    value = sum(start[s] * v_of[s] for s in np.flatnonzero(start))
    assert value == pytest.approx(evaluate(model.problem, policy).value, rel=1e-9)


def test_values_are_consistent_from_step_to_step(model, rows):
    """Q averages over what the policy says to V, level by level."""
    policy = drawn_policy(model.problem, seed=4)
    q, v = policy_values(model.problem, policy, rows)
    chance = policy_chances(policy, rows, model.problem.memory)
    cells = {}
    levels_of = follow_levels(policy, rows, model.problem.memory).before.argmax(axis=1)
    keys = zip(rows.place, rows.state, levels_of, rows.advice, strict=True)
    for (h, s, m, b), x, value, share in zip(keys, q, v, chance, strict=True):
        cells.setdefault((h, s, m, value), {})[b] = (x, share)
    whole = [
        (value, sum(x * share for x, share in parts.values()))
        for (*_, value), parts in cells.items()
        if sum(share for _, share in parts.values()) > 1.0 - 1e-9
    ]
    assert len(whole) > 5
    np.testing.assert_allclose(*np.array(whole).T, rtol=1e-9)


def test_a_memory_without_fading_changes_nothing(model, rows):
    human = counsel.Human(model.problem.human.policy[0], lift=0.5)
    plain = counsel.AdviceProblem(model.problem.mdp, human)
    memory = Memory.pieces(2)
    same = counsel.AdviceProblem(plain.mdp, human.with_memory(memory))
    policy = counsel.solve(plain, budget=1.5).policy
    paths, _ = logged_paths(rows, plain)
    np.testing.assert_array_equal(
        importance_weights(policy, rows, paths), importance_weights(policy, rows, paths, memory)
    )
    for one, other in zip(
        policy_values(plain, policy, rows), policy_values(same, policy, rows), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-9)
    chance = np.full(rows.place.size, 0.25)
    assert second_moment(policy, plain, rows, chance) == pytest.approx(
        second_moment(policy, same, rows, chance), rel=1e-9
    )


@pytest.mark.slow
def test_weighted_and_doubly_robust_values_of_a_plan_with_levels_hold_the_truth():
    """A log in which every advice is as likely, of a short horizon, so that many go as planned."""
    from counsel.logs import evaluate_policy, plan_advice
    from counsel.worlds.ward import ward

    fading = [1.0, 0.3, 0.1]
    world = ward(horizon=3, memory=Memory.pieces(2), fading=fading)
    log = read_log(ward_rows(world, 6000, seed=1))
    fit = counsel.fit(log, memory="pieces=2")
    plan = plan_advice(fit, penalty=0.03)
    found = evaluate_policy(log, plan.plan.policy, fitted=fit)
    assert found.refusal is None
    states = [world.mdp.state_labels.index(name) for name in fit.tally.states]
    actions = [world.mdp.action_labels.index(name) for name in fit.tally.actions]
    advice = np.full((3, 3, world.n_states), world.n_actions)
    order = np.append(actions, world.n_actions)
    advice[:, :, states] = order[plan.plan.policy.advice[:, :, : len(states)]]
    truth = evaluate(world, counsel.Policy(advice, n_actions=world.n_actions, levels=3)).value
    for estimate in (found.policy.model, found.policy.weighted, found.policy.doubly_robust):
        assert estimate.low < truth < estimate.high


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"memory": "tenure"}, "the model is of people late in the study"),
        ({"memory": "pieces=2", "across": "person"}, "goes on from one episode of a person to"),
    ],
)
def test_episodes_are_not_weighted_where_the_model_is_of_another_time(options, reason, table):
    from counsel.logs import evaluate_policy

    log = read_log(table)
    fit = counsel.fit(log, **options)
    found = evaluate_policy(log, counsel.solve(fit.problem, budget=1).policy, fitted=fit)
    assert reason in found.refusal
    assert found.policy.weighted is None
    assert found.policy.doubly_robust is None
    assert found.policy.model is not None
