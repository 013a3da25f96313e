"""Problems and policies for tests of the simulator."""

from functools import cache

import numpy as np
import pytest

import counsel
from counsel import MDP, AdviceProblem, Human, Mixture, Policy
from counsel.worlds import make
from tests.support import oracles
from tests.support.frequencies import check_binomial, check_means
from tests.support.strategies import random_policy

CAR = pytest.param("car-driving/myopic", marks=pytest.mark.slow)
WORLDS = [
    "flappy-bird/greedy",
    "flappy-bird/safe",
    "flappy-bird-budget/greedy",
    CAR,
    "night-shift",
]
PATCHWORKS = range(32)
COLUMNS = ("state", "advice", "action", "reward", "next_state")


@cache
def patchwork(seed):
    """Draw a problem whose parts change with the step or never do, one bit of the seed for each.

    Across seeds: people who are certain, who are repelled, who are certain yet have θ < 1, who are
    given by their lift; rows without chance; masks.
    """
    rng = np.random.default_rng([seed, 7])
    S, A, H = (int(n) for n in rng.integers((2, 2, 2), (6, 5, 6)))
    dense = oracles.random_problem(
        rng, S, A, H, deterministic_people=seed % 3 == 0, repel=seed % 5 < 2
    )
    P, r, pi, theta, mask = (
        table[0] if seed >> bit & 1 else table for bit, table in enumerate(dense[:5])
    )
    mask = mask & (rng.random(mask.shape) < 0.7)
    mask |= (pi > 0.0).any(axis=0) if mask.ndim < pi.ndim else pi > 0.0
    human = Human(pi, lift=rng.random(theta.shape)) if seed % 7 == 6 else Human(pi, theta)
    mdp = MDP(P, r, horizon=H, start=dense.start_s, allowed=mask)
    return AdviceProblem(mdp, human)


@cache
def world(name):
    """Return a named world, or a drawn problem by its number."""
    return make(name) if isinstance(name, str) else patchwork(name)


@cache
def ends(seed):
    """Draw a problem with ends: a state that always is one and one that becomes one.

    The last state is over at every step and some start there; the one before is over from step 2
    on (at step 1 it stays but pays); so is state 0 at the last step, unless it moves there.
    """
    rng = np.random.default_rng([seed, 8])
    S, A, H = 5, 3, 5
    dense = oracles.random_problem(rng, S, A, H, masks=seed % 2 == 1)
    P, r = dense.P_hsat.copy(), dense.r_hsa.copy()
    for s, since in ((S - 1, 0), (S - 2, 1), (0, H - 1)):
        P[since:, s] = dense.allowed_hsa[since:, s, :, None] * np.eye(S)[s]
        r[since:, s] = 0.0
    r[1, S - 2] = 1.0 * dense.allowed_hsa[1, S - 2]
    start = 0.8 * dense.start_s + 0.2 * np.eye(S)[S - 1]
    return dense._replace(P_hsat=P, r_hsa=r, start_s=start)


def everything(problem, seed=0):
    """A policy that gives every allowed advice, and silence, at least now and then."""
    rng = np.random.default_rng([seed, 9])
    weight_hsb = oracles.permitted(problem.mdp.allowed) * 1.0
    weight_hsb *= 0.2 + rng.random(weight_hsb.shape)
    return Policy.from_probabilities(weight_hsb / weight_hsb.sum(axis=-1, keepdims=True))


def drawn_hard(problem, budget, seed=0):
    """A policy of chance under a hard budget."""
    rng = np.random.default_rng([seed, 10])
    silent = np.full((problem.horizon, problem.n_states), problem.defer)
    tables = [random_policy(rng, problem.mdp.allowed).argmax(axis=-1) for _ in range(budget)]
    return Policy(np.stack([silent, *tables]), n_actions=problem.n_actions)


def never(problem):
    return Policy.never(
        horizon=problem.horizon, n_states=problem.n_states, n_actions=problem.n_actions
    )


@cache
def policies(name):
    """One of each kind: a plan, random advice where it is heard, a hard budget, a mixture."""
    problem = world(name)
    plan = counsel.solve(problem).policy
    table_hsb = plan.probabilities()
    often = counsel.evaluate(problem, plan).occupancy > 1e-3
    rng = np.random.default_rng(11)
    weight_xb = oracles.permitted(problem.mdp.allowed)[often] * (
        0.2 + rng.random((int(often.sum()), problem.defer + 1))
    )
    table_hsb[often] = weight_xb / weight_xb.sum(axis=-1, keepdims=True)
    chatty = Policy.from_probabilities(table_hsb)
    hard = counsel.solve(problem, budget=2, hard=True).policy
    mixture = Mixture((chatty, hard, plan), (0.25, 0.45, 0.3))
    return {"plan": plan, "random": chatty, "hard": hard, "mixture": mixture}


def law_table(problem):
    """P(action | step, state, advice) as [h, s, b, a] (equation 1)."""
    H, S, A = problem.horizon, problem.n_states, problem.n_actions
    law = [problem.law(h, s, b) for h, s, b in np.ndindex(H, S, A + 1)]
    return np.array(law).reshape(H, S, A + 1, A)


def check_evaluation(problem, policy, counts):
    """Hold counts against what the policy is worth."""
    n, due = len(counts), counsel.evaluate(problem, policy)
    spoken_hsa = counts.decisions[:, :, :-1].sum(axis=-1)
    check_means(counts.rewards.mean(), counts.rewards.std() / n**0.5, due.value)
    # Where all said the same, the next one may still say one piece more or less.
    said = np.hypot(counts.pieces.std() / n**0.5, 1.0 / n)
    check_means(counts.pieces.mean(), said, due.advice_count)
    check_binomial(counts.visits, n, due.occupancy)
    check_binomial(spoken_hsa.sum(axis=(1, 2)), n, due.advice_rate)
    acted_hsa = counts.decisions.sum(axis=2)
    first_h = np.einsum("hsa,hsa->h", acted_hsa, problem.mdp.reward) / n
    second_h = np.einsum("hsa,hsa->h", acted_hsa, problem.mdp.reward**2) / n
    error_h = np.sqrt(np.maximum(second_h - first_h**2, 0.0) / n)
    check_means(first_h, error_h, due.reward)
    # Pieces of (s, a) are a sum over steps; its deviation is at most the sum of theirs. With 100
    # due the bell curve holds; pairs with fewer are in the advice rate of each step above.
    assert not spoken_hsa[:, due.pieces == 0.0].any(), "what is never said was"
    often = n * due.pieces >= 100.0
    if often.any():
        rate_hx = spoken_hsa[:, often] / n
        error_x = np.sqrt(rate_hx * (1.0 - rate_hx)).sum(axis=0) / n**0.5
        check_means(rate_hx.sum(axis=0), error_x, due.pieces[often])


def of_each_kind(problem, seed=0):
    """Policies that are not mixtures."""
    return (
        never(problem),
        everything(problem, seed),
        counsel.solve(problem).policy,
        drawn_hard(problem, 2, seed),
    )
