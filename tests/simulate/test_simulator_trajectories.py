"""The simulator against every trajectory, counted out."""

import numpy as np
import pytest

from counsel import Mixture, Simulator
from tests.support import oracles
from tests.support.each import each_seed
from tests.support.frequencies import check_binomial, check_chi_square
from tests.support.over import slow_over
from tests.support.problems import adapt
from tests.support.simulated import drawn_hard, everything, never


def trajectories(dense, parts):
    """Yield every trajectory with its probability: a start, then (advice, action, next state).

    ``parts`` are (weight, choose) where ``choose(pieces, h, s)`` lists (advice, probability).
    """
    over_hs = slow_over(dense.P_hsat, dense.r_hsa, dense.allowed_hsa)
    H, _, A = dense.r_hsa.shape

    def go_on(choose, path, chance, h, s, pieces):
        if h == H or over_hs[h, s]:
            yield path, chance
            return
        for b, heard in choose(pieces, h, s):
            law_a = oracles.law(dense.pi_hsa[h, s], dense.theta_hsa[h, s], b)
            for a, t in np.argwhere(law_a[:, None] * dense.P_hsat[h, s] > 0.0):
                step = heard * law_a[a] * dense.P_hsat[h, s, a, t]
                row = (b, int(a), int(t))
                yield from go_on(choose, (*path, row), chance * step, h + 1, t, pieces + (b < A))

    for weight, choose in parts:
        for s in np.flatnonzero(dense.start_s):
            yield from go_on(choose, (int(s),), weight * dense.start_s[s], 0, s, 0)


def chooser(policy):
    """What a policy says after so many pieces, as (advice, probability)."""
    return lambda pieces, h, s: list(policy.at(h, s, policy.left_after(pieces)).items())


def keys_of(episodes, starts, shape):
    """One whole number for each episode's trajectory; ``key_of`` does the same for one path."""
    H, S, A = shape
    key = starts.astype(np.int64)
    for h in range(H):
        live = episodes.lengths > h
        row = episodes.first[:-1][live] + h
        b, a, t = (
            getattr(episodes, name)[row].astype(np.int64)
            for name in ("advice", "action", "next_state")
        )
        key *= (A + 1) * A * S + 1
        key[live] += 1 + (b * A + a) * S + t
    return key


def key_of(path, shape):
    H, S, A = shape
    key, *rows = path
    for h in range(H):
        key *= (A + 1) * A * S + 1
        if h < len(rows):
            b, a, t = rows[h]
            key += 1 + (b * A + a) * S + t
    return key


def tiny_problem(seed, *, ending):
    """Three states, two actions, three steps; ``ending`` makes state 2 an end from step 1 on."""
    rng = np.random.default_rng([seed, 12])
    dense = oracles.random_problem(rng, 3, 2, 3, masks=seed % 2 == 1, repel=seed % 3 == 0)
    if not ending:
        return dense
    P, r = dense.P_hsat.copy(), dense.r_hsa.copy()
    P[1:, 2] = dense.allowed_hsa[1:, 2, :, None] * np.eye(3)[2]
    r[1:, 2] = 0.0
    return dense._replace(P_hsat=P, r_hsa=r)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["random", "hard", "mixture"])
@pytest.mark.parametrize("ending", [False, True])
@each_seed(range(4))
def test_whole_trajectories_are_as_likely_as_they_should_be(seed, ending, kind):
    dense = tiny_problem(seed, ending=ending)
    problem, n = adapt(dense), 200_000
    hard, random = drawn_hard(problem, 2, seed), everything(problem, seed)
    policy = {
        "random": random,
        "hard": hard,
        "mixture": Mixture(
            (hard, random, never(problem), everything(problem, seed + 1_000)), (0.3, 0.4, 0.1, 0.2)
        ),
    }[kind]
    parts = (
        zip(policy.weights, map(chooser, policy.policies), strict=True)
        if kind == "mixture"
        else [(1.0, chooser(policy))]
    )
    shape = (problem.horizon, problem.n_states, problem.n_actions)
    due, early = {}, 0.0
    for path, chance in trajectories(dense, parts):
        key = key_of(path, shape)
        due[key] = due.get(key, 0.0) + chance
        early += chance * (len(path) <= problem.horizon)
    assert sum(due.values()) == pytest.approx(1.0, abs=1e-12)
    episodes = Simulator(problem).play(policy, episodes=n, rng=np.random.default_rng(seed))
    assert (episodes.lengths > 0).all()  # so that the first row tells the start
    if kind == "random":  # what may say anything anywhere can always come to an end
        assert ending == (early > 0.0)
    assert ending or early == 0.0
    check_binomial((episodes.lengths < 3).sum(), n, early)
    starts = episodes.state[episodes.first[:-1]]
    keys, times = np.unique(keys_of(episodes, starts, shape), return_counts=True)
    seen = dict(zip(keys.tolist(), times.tolist(), strict=True))
    assert set(seen) <= set(due), "a trajectory that cannot happen did"
    count_k = np.array([seen.get(key, 0) for key in due])
    check_chi_square(count_k, np.array(list(due.values())))
    check_binomial(count_k, n, np.array(list(due.values())))
