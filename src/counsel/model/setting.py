"""What a learner may know: a setting (the world and the habit), or only the shape of a problem.

A learner never sees more. ``AdviceProblem.without_adherence`` returns the setting of environment 1
of the paper, ``AdviceProblem.shape`` that of environment 2.
"""

from dataclasses import dataclass, replace

import numpy as np

from counsel._arrays import Bools, Floats, Ints, brief, by_step, index_in, layers, unlayered, whole
from counsel.errors import CounselError
from counsel.model.advice_costs import read_cost
from counsel.model.mdp import MDP, read_allowed
from counsel.model.memory import Memory
from counsel.model.rewards import Range, read_range


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """The world and the person's own policy, without the adherence.

    Pairs with the same number in ``groups`` [h, s, a] share one adherence, or one lift if
    ``shares_lift``. ``cost`` is that of ``AdviceProblem``; ``reward_range`` is the declared one, or
    that of the rewards. Unless ``knows_rewards``, the rewards of ``mdp`` only show where the
    episode is over. ``memory`` is that of the person, None if they have none; with a memory, groups
    are [m, h, s, a] and share one lift.
    """

    mdp: MDP
    policy: Floats
    groups: Ints
    shares_lift: bool
    cost: Floats
    reward_range: Range
    knows_rewards: bool = True
    memory: Memory | None = None

    def without_rewards(self) -> "Setting":
        """Return the setting with the range of the rewards instead of the rewards.

        Declare the range on the problem, ``AdviceProblem(reward_range=…)``, if rewards are random
        or if their range must not be read off the truth.
        """
        mdp, high = self.mdp, self.reward_range[1]
        L = max(len(layers(mdp.reward)), len(layers(mdp.over)))
        hidden = np.where(mdp.over[:L, :, None], 0.0, high)
        blank = np.broadcast_to(hidden, (L, mdp.n_states, mdp.n_actions))
        world = mdp.paying(unlayered(blank))
        return replace(self, mdp=world, knows_rewards=False)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Shape:
    """The sizes of a problem, the allowed advice, and the range of its rewards.

    This is what a learner may know of a black-box world such as a Gymnasium environment.

    Parameters
    ----------
    horizon
        The number of steps per episode.
    n_states, n_actions
        The number of states and of actions.
    reward_range
        The least and the largest reward.
    allowed
        Booleans [s, a] or [h, s, a]: the allowed advice. All advice by default.
    start
        The state in which every episode begins; None if it is drawn.
    cost
        What a piece of advice costs, as in ``AdviceProblem``.
    memory
        What the person carries over from advice given, if its levels are observed; none by default.

    Raises
    ------
    CounselError
        If a size, the range, the mask, the start, a cost or the memory is invalid.

    Examples
    --------
    An explorer for a world of two states, of which nothing else is known:

    >>> from numpy.random import default_rng
    >>> import counsel
    >>> shape = counsel.Shape(horizon=5, n_states=2, n_actions=3, reward_range=(0.0, 1.0))
    >>> counsel.RFE(shape, rng=default_rng(0)).advise(0, 1) in range(4)
    True

    The shape of a known problem:

    >>> counsel.make("night-shift").shape.horizon
    12
    """

    horizon: int
    n_states: int
    n_actions: int
    reward_range: Range
    allowed: Bools = None  # type: ignore[assignment]  # a mask once built
    start: int | None = None
    cost: Floats = 1.0  # type: ignore[assignment]  # a table [h, s, a] once built
    memory: Memory | None = None

    def __post_init__(self) -> None:
        if self.memory is not None and not isinstance(self.memory, Memory):
            raise CounselError(f"memory is {brief(self.memory)}; give a counsel.Memory")
        for name in ("horizon", "n_states", "n_actions"):
            whole(name, getattr(self, name), least=1)
        object.__setattr__(self, "reward_range", read_range(self.reward_range))
        if self.start is not None:
            index_in("start", self.start, self.n_states)
        mask = read_allowed(self.allowed, (self.horizon, self.n_states, self.n_actions))
        object.__setattr__(self, "allowed", by_step(mask, self.horizon))
        shape = (self.horizon, self.n_states, self.n_actions)
        object.__setattr__(self, "cost", read_cost(self.cost, shape))
