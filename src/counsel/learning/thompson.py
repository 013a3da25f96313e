"""Thompson sampling of adherence: advise as if a draw from the posterior were true.

Setting: environment 1, as for UCB-AD. Each group of pairs that share one adherence has a Beta
posterior, Beta(a + k, b + n − k) after k matches in n pieces of advice; at each update one θ is
drawn for each group and the best policy for it is used until the next. No bound is proved here.

Where a group shares one *lift* λ, a match in a pair of habit π has probability π + λ (1 − π), and
there is no conjugate prior: λ is drawn from a uniform prior's posterior on a grid of [0, 1], evenly
within the cell of the grid. Advice that repels by the draw is left out, as in UCB-AD.

A person with a memory has one lift for each group of pairs and levels, drawn in this way; the
policy is the exact plan for the drawn person with that memory.
"""

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from counsel._arrays import Floats, check_rng, real
from counsel.errors import CounselError
from counsel.learning.adherence_learner import AdherenceLearner
from counsel.learning.arguments import shared_parameters
from counsel.model.setting import Setting

GRID = 400  # cells of the grid on which a shared lift is drawn


@shared_parameters
class Thompson(AdherenceLearner):
    """Learns the adherence of a person by acting on draws from its posterior.

    Parameters
    ----------
    setting
        What the learner may know: ``problem.without_adherence()``. Rewards must be known.
    rng
        The generator of the draws.
    prior
        The two parameters of the Beta prior, both above 0; (1, 1) is uniform.

    Raises
    ------
    CounselError
        If the setting has no rewards, the person ignores all advice, or an argument is invalid.

    Examples
    --------
    The share of matches of each advice after 500 nights; the truth is 1, 0.8 and 0.65 or more:

    >>> from numpy.random import default_rng
    >>> from counsel import Simulator, learn, make
    >>> problem = make("night-shift")
    >>> learner = Thompson(
    ...     problem.without_adherence(), rng=default_rng(1), penalty=0.05, groups=[0, 1, 2]
    ... )
    >>> *_, last = learn(learner, Simulator(problem), episodes=500, rng=default_rng(0))
    >>> (learner.matched / learner.given).round(2).tolist(), learner.given.tolist()
    ([1.0, 0.81, 0.62], [10, 827, 134])
    """

    def __init__(  # noqa: PLR0913 (the settings)
        self,
        setting: Setting,
        *,
        rng: Generator,
        prior: tuple[float, float] = (1.0, 1.0),
        penalty: ArrayLike = 0.0,
        budget: float | None = None,
        groups: ArrayLike | None = None,
    ) -> None:
        if isinstance(setting, Setting) and not setting.knows_rewards:
            raise CounselError("Thompson sampling needs rewards that are known; UCBAD learns them")
        super().__init__(setting, penalty=penalty, budget=budget, groups=groups, rng=rng)
        check_rng(rng)
        self.rng: Generator = rng
        first, second = (real("prior", number) for number in prior)
        if not (0.0 < first < np.inf and 0.0 < second < np.inf):
            raise CounselError(f"prior is {prior}; both numbers must be above 0 and finite")
        self.prior = (first, second)

    def believe(self) -> None:
        belief = self.matches.belief
        if self.setting.shares_lift:
            belief.upper[:] = self._draw_lifts()
        else:
            k, n = belief.matched, belief.given
            belief.upper[:] = self.rng.beta(self.prior[0] + k, self.prior[1] + n - k)
        self.matches.set_plan()

    def _draw_lifts(self) -> Floats:
        """Draw a lift for each group; return it for each bin."""
        groups, belief = self.matches.groups, self.matches.belief
        u = self.rng.random((groups.first_bin.size - 1, 2))
        cell = np.maximum(np.ceil(u[:, 0] * GRID) - 1.0, 0.0)  # of groups that nothing is known of
        advised = np.add.reduceat(belief.given, groups.first_bin[:-1]) > 0
        if advised.any():
            bins = np.flatnonzero(advised[groups.group_of_bin])
            own, rest = groups.own_of_bin[bins, None], groups.rest_of_bin[bins, None]
            k, n = belief.matched[bins, None], belief.given[bins, None]
            middle = (np.arange(GRID) + 0.5) / GRID
            match, refuse = np.log(own + middle * rest), np.log((1.0 - middle) * rest)
            first = np.flatnonzero(np.diff(groups.group_of_bin[bins], prepend=-1))
            score = np.add.reduceat(k * match + (n - k) * refuse, first, axis=0)
            upto = np.cumsum(np.exp(score - score.max(axis=1, keepdims=True)), axis=1)
            cell[advised] = (upto < u[advised, :1] * upto[:, -1:]).sum(axis=1)
        drawn: Floats = (cell + u[:, 1]) / GRID
        return drawn[groups.group_of_bin]
