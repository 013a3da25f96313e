"""Slow, obvious answers for work without end, on the dense machine MDP with the levels unfolded.

Cell x = m · S + s is state s on level m of the person's memory. Choices are the actions and, last,
silence. Nothing here uses lift × advantage.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

import counsel
from tests.support import oracles


class Machine(NamedTuple):
    """P [x, k, x'], rewards and costs [x, k], possible choices [x, k], start [x], discount."""

    P: np.ndarray
    reward: np.ndarray
    cost: np.ndarray
    possible: np.ndarray
    start: np.ndarray
    discount: float


def machine(problem, *, forbidden=None, required=None) -> Machine:
    S, A, M = problem.n_states, problem.n_actions, problem.n_levels
    world = np.zeros((S, A, S))
    for s in range(S):
        for a in range(A):
            if problem.mdp.allowed[0, s, a]:
                states, chances = problem.mdp.kernel.successors(0, s, a)
                world[s, a, states] = chances
    P, reward = np.zeros((M, S, A + 1, M, S)), np.zeros((M, S, A + 1))
    for m in range(M):
        for s in range(S):
            for k in range(A + 1):
                if k < A and not problem.mdp.allowed[0, s, k]:
                    continue
                for a, chance in enumerate(problem.law(0, s, k, level=m)):
                    if chance == 0.0:
                        continue
                    levels = np.ones(1)
                    if problem.memory is not None:
                        levels = problem.memory.next_levels(m, k, a, defer=A)
                    P[m, s, k] += chance * np.outer(levels, world[s, a])
                    reward[m, s, k] += chance * problem.mdp.reward[0, s, a]
    possible = np.pad(problem.mdp.allowed[0], ((0, 0), (0, 1)), constant_values=True)
    if forbidden is not None:
        mask = forbidden if np.ndim(forbidden) == 2 else forbidden[:, None]
        possible = possible & ~np.pad(np.broadcast_to(mask, (S, A)), ((0, 0), (0, 1)))
    if required is not None:
        possible[required, A] = False
    cost = np.pad(np.broadcast_to(problem.cost[0], (S, A)), ((0, 0), (0, 1)))
    start = np.zeros((M, S))
    start[problem.level_of(None)] = problem.mdp.start
    X = M * S
    return Machine(
        P.reshape(X, A + 1, X),
        reward.reshape(X, A + 1),
        np.tile(cost, (M, 1)),
        np.tile(possible, (M, 1)),
        start.reshape(X),
        problem.discount,
    )


def best_values(world: Machine, penalty: float) -> np.ndarray:
    """Return the best value [x] by value iteration and then exact policy iteration."""
    net = np.where(world.possible, world.reward - penalty * world.cost, -np.inf)
    V = np.zeros(len(net))
    for _ in range(200):
        choice = (net + world.discount * world.P @ V).argmax(axis=1)
        V = values_of(world, np.eye(net.shape[1])[choice], penalty)
    return V


def values_of(world: Machine, chance_xk: np.ndarray, penalty: float = 0.0) -> np.ndarray:
    """Return what a policy earns from each cell, by linear equations."""
    X = len(world.reward)
    P = np.einsum("xk,xkt->xt", chance_xk, world.P)
    r = (chance_xk * (world.reward - penalty * world.cost)).sum(axis=1)
    return np.linalg.solve(np.eye(X) - world.discount * P, r)


def outcome(world: Machine, chance_xk: np.ndarray) -> tuple[float, float]:
    """Return the value and the cost of a policy from the start."""
    value = float(world.start @ values_of(world, chance_xk))
    free = world._replace(reward=world.cost)
    return value, float(world.start @ values_of(free, chance_xk))


def budget_lp(world: Machine, budget: float) -> float:
    """Return the best value within an expected discounted budget: the occupancy LP."""
    X, K = world.reward.shape
    flow = np.repeat(np.eye(X), K, axis=1) - world.discount * world.P.reshape(X * K, X).T
    bounds = [(0.0, None if ok else 0.0) for ok in world.possible.reshape(-1)]
    solved = linprog(
        -world.reward.reshape(-1),
        A_ub=world.cost.reshape(1, -1),
        b_ub=[budget],
        A_eq=flow,
        b_eq=world.start,
        bounds=bounds,
        method="highs",
    )
    assert solved.status == 0, solved.message
    return -float(solved.fun)


def chances(problem, policy) -> np.ndarray:
    """Return the probabilities [x, k] of the choices of a policy."""
    table = policy.probabilities()
    table = table[:, 0] if policy.levels else np.repeat(table, problem.n_levels, axis=0)
    return table.reshape(-1, problem.n_actions + 1)


def draw(seed: int, *, discount: float | None = None, memory=None) -> counsel.AdviceProblem:
    """Draw a small problem without end; seeds cycle through masks, costs and reactance."""
    rng = np.random.default_rng(seed)
    S, A = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    dense = oracles.random_problem(
        rng, S, A, 1, deterministic_people=seed % 3 == 0, masks=seed % 2 == 1, repel=seed % 5 == 0
    )
    gamma = float(rng.choice([0.0, 0.5, 0.9, 0.99])) if discount is None else discount
    mdp = counsel.MDP(
        dense.P_hsat[0],
        dense.r_hsa[0] - 0.5,
        discount=gamma,
        start=dense.start_s,
        allowed=dense.allowed_hsa[0],
    )
    if memory is None:
        human = counsel.Human(dense.pi_hsa[0], dense.theta_hsa[0])
    else:
        lift = rng.random((memory.n_levels, S, A))
        human = counsel.Human(dense.pi_hsa[0], lift=lift, memory=memory)
    cost = 1.0 if seed % 4 else rng.choice([0.5, 1.0, 2.0], size=(S, A))
    return counsel.AdviceProblem(mdp, human, cost)
