"""Importance weights and values of policies, against all episodes one by one."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import counsel
from counsel.logs.decisions import Decisions
from counsel.logs.importance_weights import (
    logged_chances,
    policy_chances,
    policy_values,
    second_moment,
)
from counsel.worlds import make
from tests.support.drawn_logs import drawn, fit_of, places, tally_of
from tests.support.later import Later
from tests.support.target_policies import best_within_one, half_uniform, hard, in_fit_order, rows_of

pd = Later("pandas")


# By hand.


def tiny(rng, *, ends=True):
    """Three states, the last of them the end, two actions, three steps."""
    S, A = 3, 2
    moves, paid = rng.dirichlet(np.ones(S), (S, A)), rng.random((S, A))
    if ends:
        moves[-1], paid[-1] = np.eye(S)[-1], 0.0
    mdp = counsel.MDP(moves, paid, horizon=3, start=np.array([0.6, 0.4, 0.0]))
    return counsel.AdviceProblem(mdp, counsel.Human(rng.dirichlet(np.ones(A), S), rng.random(A)))


def acts(problem, h, s, b):
    """How likely each action is after advice b."""
    own = problem.policy[h, s]
    if b == problem.n_actions:
        return own
    lift = problem.lift[h, s, b]
    return lift * (np.arange(problem.n_actions) == b) + (1.0 - lift) * own


def leads(problem, h, s, b):
    """How likely each next state is after advice b, and what it pays."""
    dense = problem.mdp.kernel.to_dense()
    p = dense.reshape(-1, *dense.shape[-3:])[0]
    return acts(problem, h, s, b) @ p[s], acts(problem, h, s, b) @ problem.mdp.reward[h, s]


def some_policies(rng, problem):
    H, S, A = problem.horizon, problem.n_states, problem.n_actions
    hard_advice = rng.integers(A + 1, size=(3, H, S))
    hard_advice[0] = A
    return (
        counsel.Policy.from_probabilities(rng.dirichlet(np.ones(A + 1), (H, S))),
        counsel.Policy(rng.integers(A + 1, size=(H, S)), n_actions=A),
        counsel.Policy(hard_advice, n_actions=A),
    )


def says(policy, h, s, left):
    """How likely each advice is, silence last."""
    plane = 0 if policy.budget is None else left
    return policy.probabilities().reshape(*policy.planes.shape, -1)[plane, h, s]


def every_cell(problem, times, mu, earlier=0):
    """Each advice said as often in each cell as given, with its chance on record."""
    H, S, B = problem.horizon, problem.n_states, problem.n_actions + 1
    h, s, b = (np.repeat(x.ravel(), times) for x in np.indices((H, S, B)))
    n = h.size
    return Decisions(
        episode=np.arange(n), place=h, state=s, advice=b, action=np.zeros(n, dtype=int),
        earlier=np.full(n, earlier), pieces=np.full(n, earlier), reward=np.zeros(n),
        heard=b < B - 1, since=np.full(n, np.nan), recorded=mu[h, s, b], people=(),
        person=np.full(n, -1), context=np.zeros(n, dtype=int), cluster=np.arange(n),
        block=np.arange(n) % 256, complete=np.ones(n, dtype=bool), horizon=H,
    )  # fmt: skip


def over_all_episodes(problem, policy, mu):
    """E W and E W² by going through everything that can happen."""
    H, S, A = problem.horizon, problem.n_states, problem.n_actions
    budget = policy.budget or 0
    first = second = 0.0
    for path in itertools.product(range(S), *[range(A + 1), range(S)] * H):
        chance, weight, left, s = problem.mdp.start[path[0]], 1.0, budget, path[0]
        for h in range(H):
            b, then = path[1 + 2 * h : 3 + 2 * h]
            if s == S - 1:  # over: nothing is said, nothing is weighted
                chance *= float(b == A and then == s)
                continue
            chance *= mu[h, s, b] * leads(problem, h, s, b)[0][then]
            weight *= says(policy, h, s, left)[b] / mu[h, s, b]
            left, s = max(left - (b < A), 0), then
        first, second = first + chance * weight, second + chance * weight**2
    return first, second


@pytest.mark.slow
def test_the_foreseen_second_moment_is_that_over_all_episodes():
    rng = np.random.default_rng(1)
    for _ in range(2):
        problem = tiny(rng)
        mu = 0.9 * rng.dirichlet(np.ones(3), (3, 3)) + 0.1 / 3
        rows = every_cell(problem, 400, mu)
        for policy in some_policies(rng, problem):
            mean, square = over_all_episodes(problem, policy, mu)
            assert mean == pytest.approx(1.0)
            found = second_moment(policy, problem, rows, rows.recorded)
            assert found == pytest.approx(square, rel=1e-9)


def test_values_are_those_of_the_recursion_by_hand_and_of_evaluate():
    rng = np.random.default_rng(2)
    for _ in range(3):
        problem = tiny(rng, ends=False)
        H, S, A = problem.horizon, problem.n_states, problem.n_actions
        for policy in some_policies(rng, problem):
            counts = policy.budget is not None
            K = policy.budget + 1 if counts else 1
            V = np.zeros((K, H + 1, S))
            Q = np.zeros((K, H, S, A + 1))
            for h in reversed(range(H)):
                for k, s, b in itertools.product(range(K), range(S), range(A + 1)):
                    if counts and k == 0 and b < A:
                        continue
                    ahead, paid = leads(problem, h, s, b)
                    Q[k, h, s, b] = paid + ahead @ V[k - (b < A) if counts else k, h + 1]
                for k, s in itertools.product(range(K), range(S)):
                    V[k, h, s] = says(policy, h, s, k) @ Q[k, h, s]
            for earlier in range(K):
                rows = every_cell(problem, 1, np.full((H, S, A + 1), 1.0), earlier)
                q, v = policy_values(problem, policy, rows)
                k = K - 1 - earlier
                np.testing.assert_allclose(q, Q[k, rows.place, rows.state, rows.advice], atol=1e-12)
                np.testing.assert_allclose(v, V[k, rows.place, rows.state], atol=1e-12)
            value = counsel.evaluate(problem, policy).value
            assert problem.mdp.start @ V[K - 1, 0] == pytest.approx(value)


@pytest.mark.parametrize("target", [half_uniform, best_within_one, hard])
def test_weights_average_to_one(target):
    problem = make("ward", horizon=3)
    batch = drawn(problem, 20_000, 4)
    fit = fit_of(tally_of(problem, batch))
    rows = rows_of(problem, batch, 0.25)
    ratio = policy_chances(in_fit_order(problem, fit, target(problem)), rows) / 0.25
    weight = np.ones((rows.n_episodes, 3))
    weight[rows.episode, rows.place] = ratio
    weight = np.cumprod(weight, axis=1)
    error = weight.std(axis=0) / np.sqrt(rows.n_episodes)
    assert (np.abs(weight.mean(axis=0) - 1.0) < 4 * error).all()
    assert (weight[:, -1] > 1.5).any()
    # And the foreseen second moment is what the weights show.
    chance = np.full(rows.place.size, 0.25)
    here = in_fit_order(problem, fit, target(problem))
    foreseen = second_moment(here, fit.problem, rows, chance)
    square = weight[:, -1] ** 2
    assert abs(square.mean() - foreseen) < 5 * square.std() / np.sqrt(square.size)


def test_probabilities_that_are_estimated_are_those_on_record():
    problem = make("ward", horizon=3)
    mu = np.random.default_rng(0).dirichlet(np.full(4, 3.0), (3, 5))
    batch = drawn(problem, 40_000, 6, counsel.Policy.from_probabilities(mu))
    rows = rows_of(problem, batch)
    fit = fit_of(tally_of(problem, batch))
    chance, recorded = logged_chances(rows, fit.problem)
    assert not recorded
    s, a = places(problem, fit)
    true = mu[:, s][:, :, np.append(a, 3)][rows.place, rows.state, rows.advice]
    cell = rows.place * 4 + rows.state
    error = np.sqrt(true * (1.0 - true) / np.bincount(cell)[cell])
    assert (np.abs(chance - true) < 4.5 * error).all()
    # By hand, in one cell.
    here = (rows.place == 1) & (rows.state == 2)
    said = here & (rows.advice == 0)
    assert np.unique(chance[said]).tolist() == [said.sum() / here.sum()]
    # Where all are on record they are taken as they are, and else none is.
    some = np.where(np.arange(true.size) == 7, np.nan, true)
    full = replace(rows, recorded=true)
    told, known = logged_chances(full, fit.problem)
    assert known
    np.testing.assert_array_equal(told, true)
    lack = replace(rows, recorded=some)
    assert np.array_equal(logged_chances(lack, fit.problem)[0], chance)
