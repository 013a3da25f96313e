"""Gymnasium's FrozenLake and Taxi, planned for and then played in the real environment."""

import gymnasium
import numpy as np
import pytest

import counsel

pytestmark = pytest.mark.slow

EPISODES = 2000


def noisy(best_sa, slip):
    """Return a person who mostly takes the good actions and else any."""
    good_sa = best_sa / best_sa.sum(axis=1, keepdims=True)
    return (1.0 - slip) * good_sa + slip / best_sa.shape[1]


def plain_values(P, horizon):
    """Return V [h, s] of full control straight from the toy-text dictionary."""
    S = len(P)
    V_hs = np.zeros((horizon + 1, S))
    for h in reversed(range(horizon)):
        for s in range(S):
            V_hs[h, s] = max(
                sum(p * (r + (0.0 if done else V_hs[h + 1, t])) for p, t, r, done in P[s][a])
                for a in P[s]
            )
    return V_hs


def best_actions(P, horizon):
    """Return which actions are optimal with all steps to go [s, a]."""
    V_s = plain_values(P, horizon)[0]
    q_sa = np.array(
        [
            [sum(p * (r + (0.0 if done else V_s[t])) for p, t, r, done in P[s][a]) for a in P[s]]
            for s in P
        ]
    )
    return q_sa >= q_sa.max(axis=1, keepdims=True) - 1e-9


def make(name):
    """Return the environment and its problem."""
    if name == "FrozenLake-v1":
        env, horizon = gymnasium.make(name, map_name="4x4", is_slippery=True), 60
        P = env.unwrapped.P
        own_sa = np.full((len(P) + 1, 4), 0.25)
    else:
        env, horizon = gymnasium.make(name), 25
        P = env.unwrapped.P
        own_sa = np.full((len(P) + 1, 6), 1 / 6)
        own_sa[:-1] = noisy(best_actions(P, horizon), 0.6)
    mdp = counsel.MDP.from_toy_text(P, horizon=horizon, start=env.unwrapped.initial_state_distrib)
    return env, counsel.AdviceProblem(mdp, counsel.Human(own_sa, np.maximum(0.7, own_sa)))


NAMES = ["FrozenLake-v1", next(name for name in gymnasium.registry if name.startswith("Taxi-v"))]


@pytest.fixture(scope="module", params=NAMES)
def world(request):
    env, problem = make(request.param)
    yield env, problem
    env.close()


def play(env, problem, advise, *, seed):
    """Play one episode in the real environment; the person acts by equation (1)."""
    rng = np.random.default_rng(seed)
    state, _ = env.reset(seed=seed)
    total, pieces = 0.0, 0
    for h in range(problem.horizon):
        own_a = problem.policy[h, state]
        advice = advise(h, state, pieces)
        if advice < problem.n_actions:
            pieces += 1
            theta = problem.adherence[h, state, advice]
            others_a = np.where(np.arange(len(own_a)) == advice, 0.0, own_a)
            own_a = (1.0 - theta) * others_a / others_a.sum()
            own_a[advice] = theta
        action = int(rng.choice(len(own_a), p=own_a))
        state, reward, terminated, _, _ = env.step(action)
        total += float(reward)
        if terminated:
            break
    return total, pieces


def simulate(env, problem, advise):
    """Return (reward, pieces) of many episodes as an array [episode, 2]."""
    unlimited = env.unwrapped  # the registered time limit would cut episodes of its own
    return np.array([play(unlimited, problem, advise, seed=seed) for seed in range(EPISODES)])


def check_means(plays_n2, value, count):
    mean_2, error_2 = plays_n2.mean(axis=0), plays_n2.std(axis=0, ddof=1) / np.sqrt(EPISODES)
    assert abs(mean_2[0] - value) <= 4 * error_2[0] + 1e-12
    assert abs(mean_2[1] - count) <= 4 * error_2[1] + 1e-12


def test_playing_the_plan_earns_its_value_and_spends_its_count(world):
    env, problem = world
    plan = counsel.solve(problem, penalty=0.02)
    assert plan.advice_count > 0.5
    assert plan.value > counsel.solve(problem, budget=0).value
    plays = simulate(env, problem, lambda h, s, pieces: plan.policy.advice[h, s])
    # An episode that is over takes no more advice: the added state is never advised.
    assert (plan.policy.advice[:, -1] == problem.defer).all()
    check_means(plays, plan.value, plan.advice_count)


def test_playing_a_hard_budget_earns_its_value_and_never_exceeds_it(world):
    env, problem = world
    plan = counsel.solve(problem, budget=3, hard=True)
    plays = simulate(env, problem, lambda h, s, pieces: plan.policy.draw(h, s, None, 3 - pieces))
    check_means(plays, plan.value, plan.advice_count)
    assert plays[:, 1].max() == 3


def test_playing_the_one_random_cell_spends_the_expected_budget(world):
    env, problem = world
    plan = counsel.solve(problem, budget=1.5)
    assert plan.policy.random.cell.size == 1
    rng = np.random.default_rng(5)

    def advise(h, s, pieces):
        options = plan.policy.at(h, s)
        return rng.choice(list(options), p=list(options.values()))

    check_means(simulate(env, problem, advise), plan.value, 1.5)


def test_a_person_who_always_listens_reaches_plain_value_iteration(world):
    env, problem = world
    obeys = counsel.AdviceProblem(problem.mdp, counsel.Human(problem.human.policy, 1.0))
    V_hs = plain_values(env.unwrapped.P, problem.horizon)
    plan = counsel.solve(obeys)
    np.testing.assert_allclose(plan.values[:, :-1], V_hs, rtol=0, atol=1e-10)
    assert plan.value == pytest.approx(env.unwrapped.initial_state_distrib @ V_hs[0], abs=1e-10)


def test_taxi_pays_its_twenty_once():
    env, problem = make(NAMES[1])
    obeys = counsel.AdviceProblem(problem.mdp, counsel.Human(problem.human.policy, 1.0))
    # One drop-off away from the end: 20 and nothing after it, for all steps that follow.
    (state, action) = next(
        (s, a) for s, moves in env.unwrapped.P.items() for a in moves if moves[a][0][2] == 20
    )
    plan = counsel.solve(obeys)
    assert plan.values[0, state] == 20.0
    assert problem.mdp.kernel.successors(0, state, action)[0].tolist() == [problem.n_states - 1]
    env.close()
