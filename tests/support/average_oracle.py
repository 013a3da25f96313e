"""Slow, obvious answers for the average per step, on the machine of ``discounted_oracle``."""

from itertools import product

import numpy as np
from scipy.optimize import linprog

import counsel


def budget_lp(world, budget: float | None = None) -> float:
    """Return the best average per step within a budget: the LP over shares of time."""
    X, K = world.reward.shape
    flow = np.repeat(np.eye(X), K, axis=1) - world.P.reshape(X * K, X).T
    solved = linprog(
        -world.reward.reshape(-1),
        A_ub=None if budget is None else world.cost.reshape(1, -1),
        b_ub=None if budget is None else [budget],
        A_eq=np.vstack((flow, np.ones(X * K))),
        b_eq=np.append(np.zeros(X), 1.0),
        bounds=[(0.0, None if ok else 0.0) for ok in world.possible.reshape(-1)],
        method="highs",
    )
    assert solved.status == 0, solved.message
    return -float(solved.fun)


def limit_matrix(P: np.ndarray) -> np.ndarray:
    """Return the long-run shares of time [x, x'] from each cell: many steps of a lazy chain."""
    lazy = 0.5 * (np.eye(len(P)) + P)
    for _ in range(60):
        lazy = lazy @ lazy
        lazy /= lazy.sum(axis=1, keepdims=True)
    return lazy


def gains_of(world, chance_xk: np.ndarray, penalty: float = 0.0) -> np.ndarray:
    """Return the average per step of a policy from each cell."""
    P = np.einsum("xk,xkt->xt", chance_xk, world.P)
    earned = (chance_xk * (world.reward - penalty * world.cost)).sum(axis=1)
    return limit_matrix(P) @ earned


def best_bias(world, penalty: float) -> np.ndarray:
    """Return the bias of the best average per step [x] by steps of a lazy world."""
    net = np.where(world.possible, world.reward - penalty * world.cost, -np.inf)
    V = np.zeros(len(net))
    for _ in range(200_000):
        new = 0.5 * (V + (net + world.P @ V).max(axis=1))
        change = new - V
        V = new - new[0]
        if np.ptp(change) < 1e-14:
            break
    return V


def best_gain(world, penalty: float) -> float:
    """Return the best average per step, from its bias."""
    V = best_bias(world, penalty)
    net = np.where(world.possible, world.reward - penalty * world.cost, -np.inf)
    return float(((net + world.P @ V).max(axis=1) - V).mean())


def brute_force(world, penalty: float = 0.0) -> np.ndarray:
    """Return the best average per step from each cell over all policies without random cells."""
    K = world.reward.shape[1]
    best = np.full(len(world.reward), -np.inf)
    for choice in product(*(np.flatnonzero(ok) for ok in world.possible)):
        best = np.maximum(best, gains_of(world, np.eye(K)[list(choice)], penalty))
    return best


def comes_back(world) -> bool:
    """Return whether choices lead from every closed class of any policy to every other."""
    X = len(world.reward)
    anywhere = np.einsum("xk,xkt->xt", world.possible.astype(float), world.P) > 0.0
    leads = np.linalg.matrix_power((np.eye(X) + anywhere > 0.0).astype(float), X) > 0.0
    is_kept = np.zeros(X, bool)
    for choice in product(*(np.flatnonzero(ok) for ok in world.possible)):
        is_kept |= limit_matrix(world.P[np.arange(X), list(choice)]).max(axis=0) > 1e-9
    return bool(leads[np.ix_(is_kept, is_kept)].all())


def draw(seed: int, *, memory=None, leads_back: bool = True) -> counsel.AdviceProblem:
    """Draw a small world with few next states; half of its people always listen.

    Every third world is a round trip, so that its chains are periodic. In the others the last
    action leads around, unless they may be worlds that do not come back.
    """
    rng = np.random.default_rng(seed)
    S, A = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    P = np.zeros((S, A, S))
    for s in range(S):
        for a in range(A):
            n = int(rng.integers(1, 3))
            P[s, a, rng.choice(S, n, replace=False)] = rng.dirichlet(np.ones(n))
    if seed % 3 == 0:
        P[:, :, :] = 0.0
        P[np.arange(S), :, (np.arange(S) + 1) % S] = 1.0
        P[S - 1, A - 1] = np.eye(S)[rng.integers(S)]
    if leads_back:
        P[np.arange(S), A - 1] = np.roll(np.eye(S), 1, axis=1)
    habit = rng.dirichlet(np.ones(A), size=S)
    if seed % 4 == 0:
        habit = np.eye(A)[rng.integers(A, size=S)]
    lift = rng.random((S, A)) if seed % 2 else np.ones((S, A))
    if memory is not None:
        lift = rng.random((memory.n_levels, S, A))
    mdp = counsel.MDP(P, rng.random((S, A)), average=True, start=rng.dirichlet(np.ones(S)))
    cost = 1.0 if seed % 5 else rng.choice([0.5, 1.0, 2.0], size=(S, A))
    return counsel.AdviceProblem(mdp, counsel.Human(habit, lift=lift, memory=memory), cost)
