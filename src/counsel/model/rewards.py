"""Rewards that are random: their declared range, how they are drawn, and a check of observed ones.

``MDP.reward`` holds mean rewards r_h(s, a). Planning and evaluation need nothing else. A law of
rewards is a function of cells and of numbers u, uniform in [0, 1), one for each decision: it
returns the reward of each decision. As a decision takes one number, episodes are the same for any
split into batches. Nothing is paid where an episode is over (``MDP.over``).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from counsel._arrays import Floats, Ints, brief, layers, place, real
from counsel.errors import CounselError
from counsel.model.mdp import MDP

Range = tuple[float, float]

SLACK = 1e-9
"""How far a reward may leave its range by rounding, relative to the larger end."""


class RewardCells(NamedTuple):
    """The decisions whose rewards are drawn: arrays [decision], and the range of rewards.

    Parameters
    ----------
    step, state, action
        The cell of each decision.
    mean
        Its mean reward, ``MDP.reward[step, state, action]``.
    low, high
        The declared range of rewards.

    Examples
    --------
    Rewards that are spread evenly, by up to 0.1 around their means:

    >>> import numpy as np
    >>> import counsel
    >>> def spread(cells, u):
    ...     return cells.mean + 0.1 * (2.0 * u - 1.0)
    >>> mdp = counsel.MDP([[0, 0]], reward=[[0.4, 0.6]], horizon=2)
    >>> human = counsel.Human([[0.5, 0.5]], adherence=0.8)
    >>> problem = counsel.AdviceProblem(mdp, human, reward_range=(0, 1), reward_law=spread)
    >>> policy, rng = counsel.solve(problem).policy, np.random.default_rng(0)
    >>> episodes = counsel.Simulator(problem).play(policy, episodes=2, rng=rng)
    >>> episodes.action.tolist(), episodes.reward.round(2).tolist()
    ([1, 0, 1, 0], [0.5, 0.48, 0.69, 0.3])
    """

    step: Ints
    state: Ints
    action: Ints
    mean: Floats
    low: float
    high: float


RewardLaw = Callable[[RewardCells, Floats], Floats]


def bernoulli(cells: RewardCells, u: Floats) -> Floats:
    """Return the largest or the least reward of the range, so that the mean is that of the cell.

    The law for ``AdviceProblem(reward_law=…)`` whose rewards vary most.

    Parameters
    ----------
    cells
        The decisions.
    u
        A uniform number in [0, 1) for each decision.

    Returns
    -------
    ndarray
        ``high`` with probability (mean − low) / (high − low), else ``low``.

    Examples
    --------
    >>> import numpy as np
    >>> import counsel
    >>> mdp = counsel.MDP([[0, 0]], reward=[[0.2, 0.6]], horizon=1000)
    >>> human = counsel.Human([[1.0, 0.0]], adherence=0.0)
    >>> problem = counsel.AdviceProblem(
    ...     mdp, human, reward_range=(0, 1), reward_law=counsel.simulate.bernoulli
    ... )
    >>> silent, rng = counsel.solve(problem).policy, np.random.default_rng(0)
    >>> reward = counsel.Simulator(problem).play(silent, episodes=1, rng=rng).reward
    >>> print(np.unique(reward), round(reward.mean(), 1))
    [0. 1.] 0.2
    """
    chosen = u * (cells.high - cells.low) < cells.mean - cells.low
    return np.where(chosen, cells.high, cells.low)


def read_range(ends: object) -> Range:
    """Return a checked range of rewards."""
    if not isinstance(ends, tuple | list | np.ndarray) or len(ends) != 2:
        raise CounselError(f"reward_range is {brief(ends)}; give the least and the largest reward")
    low, high = (real("reward_range", end) for end in ends)
    if not -np.inf < low <= high < np.inf:
        raise CounselError(f"reward_range is ({low:g}, {high:g}); give the least reward first")
    return low, high


def range_of_means(mdp: MDP) -> Range:
    """Return the least and the largest mean reward of an action that is allowed."""
    reward, allowed = mdp.reward, mdp.allowed
    return (
        float(np.min(reward, where=allowed, initial=np.inf)),
        float(np.max(reward, where=allowed, initial=-np.inf)),
    )


def check_means(mdp: MDP, ends: Range) -> None:
    """Raise unless the mean reward of every action that is allowed lies in the range."""
    low, high = ends
    reward = layers(mdp.reward)
    outside = ((reward < low) | (reward > high)) & layers(mdp.allowed)
    if outside.any():
        where = tuple(np.argwhere(outside)[0])
        mean = np.broadcast_to(reward, outside.shape)[where]
        raise CounselError(
            f"reward{place('hsa', where)} is {mean:.10g}, outside reward_range ({low:g}, {high:g});"
            " declare a range that contains every reward, also 0 where an episode is over"
        )


def check_law(law: RewardLaw | None, ends: Range | None) -> None:
    """Raise unless the law of rewards is a function, with a declared range."""
    if law is None:
        return
    if not callable(law):
        raise CounselError(
            f"reward_law is {brief(law)}; give counsel.simulate.bernoulli, or a function of "
            "RewardCells and uniform numbers"
        )
    if ends is None:
        raise CounselError("reward_law needs a range of rewards; give reward_range=(low, high)")


def check_observed(step: Ints, state: Ints, action: Ints, reward: Floats, ends: Range) -> None:
    """Raise if an observed reward [decision] lies outside the declared range or is NaN."""
    low, high = ends
    slack = SLACK * max(abs(low), abs(high))
    outside = ~((reward >= low - slack) & (reward <= high + slack))
    if outside.any():
        i = int(outside.argmax())
        cell = place("hsa", (step[i], state[i], action[i]))
        raise CounselError(
            f"the reward at {cell} is {reward[i]:.10g}, outside reward_range ({low:g}, {high:g}); "
            "declare a range that contains every reward"
        )
