"""The three sizes that speed is measured on."""

import numpy as np
import scipy.sparse as sp

import counsel


def flappy_sized() -> counsel.AdviceProblem:
    """Return a 7 × 20 map of walls and stars with a careful bird: S = 141, A = 3, H = 20.

    The bird moves one column a step, up one row, up two, or down one. Walls and edges end the game
    in the last state. Left alone it zigzags, and dodges a wall when it sees one.
    """
    rows, columns, over = 7, 20, 140
    rng = np.random.default_rng(3)
    cell = rng.choice(3, size=(rows, columns), p=[0.6, 0.22, 0.18])
    cell[:, 0] = 0
    next_state = np.full((over + 1, 3), over)
    for row, column in np.ndindex(rows, columns - 1):
        for action, move in enumerate((-1, -2, 1)):
            there = row + move
            if 0 <= there < rows and cell[there, column + 1] != 2:
                next_state[row * columns + column, action] = there * columns + column + 1
    policy = np.zeros((over + 1, 3))
    policy[over] = 1 / 3
    for s in range(over):
        habit = 0 if s % columns % 2 == 0 else 2
        safe = np.flatnonzero(next_state[s] != over)
        policy[s, [habit] if habit in safe or not safe.size else safe] = 1.0
    policy /= policy.sum(axis=1, keepdims=True)
    reward = np.append(cell.reshape(-1) == 1, 0).astype(float)
    mdp = counsel.MDP(next_state, reward, horizon=columns, start=3 * columns)
    return counsel.AdviceProblem(mdp, counsel.Human(policy, [0.9, 0.7, 0.9]))


def car_sized() -> counsel.AdviceProblem:
    """Return three lanes and three visible rows: S = 59,050, A = 3, 27 successors, H = 10.

    A state is the lane and three rows of three cells (empty, stone, car); the driver moves left,
    stays, or moves right into the next row, and a new row appears. A car or the edge ends it.
    """
    share = np.array([0.4, 0.3, 0.3])
    kind = np.array(np.unravel_index(np.arange(27), (3, 3, 3))).T
    chance = share[kind].prod(axis=1)
    lane, here, ahead, beyond = np.indices((3, 27, 27, 27)).reshape(4, -1)
    S, over = lane.size + 1, lane.size
    target = lane[:, None] + np.array([-1, 0, 1])
    inside = (target >= 0) & (target < 3)
    blocked = ~inside | (kind[ahead[:, None], target.clip(0, 2)] == 2)
    first_next = ((target.clip(0, 2) * 27 + ahead[:, None]) * 27 + beyond[:, None]) * 27
    lengths = np.where(blocked, 1, 27).reshape(-1)
    indptr = np.concatenate(([0], np.cumsum(np.append(lengths, [1, 1, 1]))))
    begin = np.repeat(np.where(blocked, over, first_next).reshape(-1), lengths)
    offset = np.arange(indptr[-4]) - np.repeat(indptr[:-4], lengths)
    indices = np.append(begin + offset, [over] * 3)
    data = np.append(
        np.where(np.repeat(blocked.reshape(-1), lengths), 1.0, chance[offset]), [1] * 3
    )
    open_lanes = np.where(blocked.all(axis=1, keepdims=True), True, ~blocked).astype(float)
    policy = np.append(open_lanes / open_lanes.sum(axis=1, keepdims=True), [[1 / 3] * 3], axis=0)
    reward = np.append(np.array([1.0, 0.5, 0.0])[kind[here, lane]], 0.0)
    start = np.where(lane == 1, chance[here] * chance[ahead] * chance[beyond], 0.0)
    matrix = sp.csr_matrix((data, indices, indptr), shape=(S * 3, S))
    mdp = counsel.MDP(matrix, reward, horizon=10, start=np.append(start, 0.0))
    return counsel.AdviceProblem(mdp, counsel.Human(policy, 0.8))


def random_sparse(states: int = 1_000_000) -> counsel.AdviceProblem:
    """Return a random world: A = 4, 8 successors, H = 20, a person who may do anything."""
    rng = np.random.default_rng(0)
    actions, successors = 4, 8
    rows = states * actions
    weight = rng.random((rows, successors))
    weight /= weight.sum(axis=1, keepdims=True)
    index = rng.integers(states, size=rows * successors, dtype=np.int32)
    indptr = np.arange(0, rows * successors + 1, successors)
    matrix = sp.csr_matrix((weight.reshape(-1), index, indptr), shape=(rows, states))
    mdp = counsel.MDP(matrix, rng.random((states, actions)), horizon=20)
    person = counsel.Human(rng.dirichlet(np.ones(actions), states), 0.8)
    return counsel.AdviceProblem(mdp, person)
