"""Car Driving: drive ten rows along a road of three lanes (appendix B).

A cell of the road is empty, or holds a stone or a car. The machine sees three rows: the driver's
own and the next two. An action moves the driver one row ahead: one lane to the left, straight on,
or one lane to the right. A new row then comes into sight, each cell drawn at random (empty 0.4,
stone 0.3, car 0.3). An empty cell pays 1, a stone 0.5. Driving into a car or off the road ends the
episode in the last state, "over". An episode starts in the middle lane with three random rows; if
the first cell holds a car, the episode is lost: it pays nothing and every action leads to "over".

The myopic driver sees only the next row, avoids cars and the edge, ignores stones, and chooses
uniformly among the remaining actions, or among all three if none remains.

Deviates: the paper counts 3⁹ states, one per content of nine cells. Without the lane this is not
an MDP; with the lane and the end there are 3 · 27³ + 1 = 59,050.
"""

from itertools import product

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from counsel._arrays import Bools, Floats, Ints, check_distributions, numbers
from counsel.errors import CounselError
from counsel.model.human import Human
from counsel.model.mdp import MDP
from counsel.model.problem import AdviceProblem
from counsel.worlds.people import Person, adherence_named, person_named, policy_of

EMPTY, STONE, CAR = 0, 1, 2
SIGNS = ".o#"  # the sign of each kind of cell, by its number
LANES = ("left", "middle", "right")
TURNS = {"Left": -1, "Straight": 0, "Right": 1}
CHANCES = (0.4, 0.3, 0.3)
PAY = (1.0, 0.5, 0.0)
OVER = 3 * 27**3

ADHERENCE: dict[str, ArrayLike] = {"mixed": (0.7, 0.9, 0.7), "high": 0.8, "low": 0.4}
"""Adherence settings by name; the paper's is "mixed": 0.9 for Straight, 0.7 for changing lanes."""


def make_car_driving(
    *,
    human: str | Person | ArrayLike = "myopic",
    adherence: str | ArrayLike = "mixed",
    groups: ArrayLike | None = None,
    horizon: int = 10,
    chances: ArrayLike = CHANCES,
) -> AdviceProblem:
    """Return three lanes of traffic and a driver who looks one row ahead.

    Parameters
    ----------
    human
        "myopic", a policy table [s, a] or [h, s, a], or a person such as ``Uniform()``.
    adherence
        "mixed", "high", "low", or numbers as ``Human`` takes them.
    groups
        Which pairs share an adherence, as in ``Human``; ``[0, 1, 2]`` is one per advice.
    horizon
        Steps per episode.
    chances
        The probabilities that a cell is empty, a stone, or a car.

    Returns
    -------
    AdviceProblem
        A state is a lane and three rows, the driver's first, with labels such as
        "middle/.../.o#/##." (``.`` empty, ``o`` a stone, ``#`` a car); the last state is "over".
        Actions are Left, Straight and Right.

    Raises
    ------
    CounselError
        If there is no such person or adherence, or the chances are not a distribution.

    Examples
    --------
    A car is straight ahead, and the row behind it is free only on the right. The driver sees only
    the first of these two rows and takes either side; the machine sees both.

    >>> import counsel
    >>> from counsel.worlds import make_car_driving
    >>> problem = make_car_driving()
    >>> state = problem.mdp.state_labels.index("middle/.../.#./##.")
    >>> problem.policy[0, state].tolist()
    [0.5, 0.0, 0.5]
    >>> (advice,) = counsel.solve(problem, penalty=0.5).policy.at(0, state)
    >>> problem.mdp.action_name(advice)
    'Right'
    """
    share = numbers("chances", chances)
    if share.shape != (3,):
        raise CounselError(
            f"chances has shape {share.shape}; give three numbers: empty, stone, car"
        )
    check_distributions("chances", share, "s")
    lane, here, _, _ = _parts()
    reward = np.append(np.array(PAY)[_kinds()[here, lane]], 0.0)
    row_chance = share[_kinds()].prod(axis=1)
    start = np.zeros((3, 27, 27, 27))
    start[1] = row_chance[:, None, None] * row_chance[:, None] * row_chance
    mdp = MDP(
        _transitions(row_chance),
        reward,
        horizon=horizon,
        start=np.append(start.reshape(-1), 0.0),
        state_labels=_labels(),
        action_labels=tuple(TURNS),
    )
    policy = policy_of(person_named(human, {"myopic": lambda _: myopic()}), mdp)
    return AdviceProblem(mdp, Human(policy, adherence_named(adherence, ADHERENCE), groups=groups))


def state_of(lane: int, rows: ArrayLike) -> int:
    """Return the state of a lane and three rows [row, lane] of kinds, the driver's own first."""
    codes = np.asarray(rows) @ [9, 3, 1]
    return int(((lane * 27 + codes[0]) * 27 + codes[1]) * 27 + codes[2])


def road_of(state: int) -> tuple[int, Ints]:
    """Return the lane and the three rows [row, lane] of kinds of a state that is not over."""
    lane, *codes = np.unravel_index(state, (3, 27, 27, 27))
    return int(lane), _kinds()[list(codes)]


def myopic() -> Floats:
    """Return the myopic driver [s, a]: any action that hits neither a car nor the edge."""
    free = ~_blocked()
    free |= ~free.any(axis=1, keepdims=True)
    weight = np.append(free, np.ones((1, 3)), axis=0)
    policy: Floats = weight / weight.sum(axis=1, keepdims=True)
    return policy


def _parts() -> tuple[Ints, Ints, Ints, Ints]:
    """Return the lane and the codes of the three rows, for every state that is not over."""
    return np.unravel_index(np.arange(OVER), (3, 27, 27, 27))  # type: ignore[return-value]


def _kinds() -> Ints:
    """Return the kinds of the three cells of each row [code, lane]."""
    return np.stack(np.unravel_index(np.arange(27), (3, 3, 3)), axis=1)


def _targets() -> Ints:
    """Return the lane each action leads to [s, a]; −1 and 3 are off the road."""
    lane = _parts()[0]
    return np.asarray(lane[:, None] + np.array(list(TURNS.values())))


def _blocked() -> Bools:
    """Return which actions lead into a car or off the road [s, a]."""
    target, ahead = _targets(), _parts()[2]
    off = (target < 0) | (target > 2)
    blocked: Bools = off | (_kinds()[ahead[:, None], target.clip(0, 2)] == CAR)
    return blocked


def _transitions(row_chance: Floats) -> "sp.csr_matrix":
    """Return the transition matrix [s·3 + a, t]: to 27 possible new rows, or to the end."""
    lane, here, ahead, beyond = _parts()
    lost = _kinds()[here, lane] == CAR
    ends = np.append(_blocked() | lost[:, None], np.ones((1, 3), dtype=np.bool_), axis=0)
    fresh = (_targets() * 27 + ahead[:, None]) * 27 + beyond[:, None]
    begin = np.append(fresh * 27, np.zeros((1, 3), dtype=np.int64), axis=0)
    lengths = np.where(ends, 1, 27).reshape(-1)
    indptr = np.concatenate(([0], np.cumsum(lengths)))
    which = np.arange(indptr[-1]) - np.repeat(indptr[:-1], lengths)
    over = np.repeat(ends.reshape(-1), lengths)
    indices = np.where(over, OVER, np.repeat(begin.reshape(-1), lengths) + which)
    data = np.where(over, 1.0, row_chance[which])
    return sp.csr_matrix((data, indices, indptr), shape=(lengths.size, OVER + 1))


def _labels() -> list[str]:
    """Return labels such as ``middle/.o#/.../##o``: the lane, then the rows, the driver's first."""
    rows = ["".join(SIGNS[kind] for kind in row) for row in _kinds()]
    return [*("/".join(parts) for parts in product(LANES, rows, rows, rows)), "over"]
