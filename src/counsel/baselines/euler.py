"""EULER: optimism that is wide only where values vary (Zanette and Brunskill 2019).

Setting: ``black_box.py``, rewards in [0, 1], T = episodes · H steps. With δ' = δ / 7,
L = c ln(4 S B T / δ'), J = H L / 3, B_v = √(2 L), B_p = H √(2 L), n = n_h(s, b):

    φ(p̂, V) = √(2 Var_p̂(V) L / n) + H L / (3 (n − 1))
    bonus(V) = φ(p̂, V) + ((4 J + B_p) / √n + B_v ‖V̄_{h+1} − V̲_{h+1}‖_{2, p̂}) / √n
    Q̄_h(s, b) = min{H − h, r + p̂ V̄_{h+1} + bonus(V̄_{h+1})},   V̄ = Q̄ of the best advice b*
    V̲_h(s) = max{0, r + p̂ V̲_{h+1} − bonus(V̲_{h+1})}  at b*

(h from 0; Q̄ = H − h and V̲ = 0 where n = 0). Guarantee: V̲ ≤ V* ≤ V̄.

Deviates
--------
* Counts are those of a step (the paper's box is stationary); the union over (s, b, h, k) is the
  same S B T events, so L stays.
* Misprints of the box: ln(4SAT)/δ' is read as ln(4SAT/δ'), the cap H − t as H − t + 1 (else the
  last reward is lost), and r̂ inside the loop over actions is that of the action.
* Rewards are known; if not, they have the paper's bonus √(2 V̂ar L / n) + 7 L / (3 (n − 1)).
"""

import math

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from counsel._arrays import Floats, sealed, whole
from counsel.baselines._optimism_kernels import plan_euler
from counsel.baselines.advice_counts import AdviceCounts
from counsel.baselines.black_box import BlackBoxLearner, shared_parameters
from counsel.model.random_cells import Advice
from counsel.model.setting import Shape


@shared_parameters
class EULER(BlackBoxLearner):
    """Learns the machine's MDP with bounds on both sides.

    The person's actions are ignored. The bounds are ``upper`` and ``lower``.

    Parameters
    ----------
    scale
        The factor of L: 1 in theory.

    Raises
    ------
    CounselError
        If a reward is outside its range, or another argument is invalid.

    Examples
    --------
    What the best advice is worth lies between the bounds, with a ``scale`` made for practice too:

    >>> from numpy.random import default_rng
    >>> from counsel import Simulator, learn, make, solve
    >>> problem = make("night-shift")
    >>> known = dict(reward=problem.machine().reward, episodes=2000)
    >>> learner = EULER(problem.shape, rng=default_rng(1), scale=0.001, **known)
    >>> *_, last = learn(learner, Simulator(problem), episodes=2000, every=50, rng=default_rng(0))
    >>> best = solve(problem).value
    >>> [round(float(value), 1) for value in (learner.lower[0, 0], best, learner.upper[0, 0])]
    [11.2, 11.5, 11.6]
    """

    def __init__(  # noqa: PLR0913 (the settings of the theorem)
        self,
        shape: Shape,
        *,
        rng: Generator,
        episodes: int,
        reward: ArrayLike | None,
        delta: float = 0.1,
        scale: float = 1.0,
        penalty: ArrayLike = 0.0,
        known_zero: ArrayLike | None = None,
    ) -> None:
        self.episodes = whole("episodes", episodes, least=1)
        super().__init__(shape, rng=rng, reward=reward, delta=delta, scale=scale, penalty=penalty)
        self._declare_zero(known_zero)
        H, S, A = self._sizes
        events = math.log(4.0 * S * (A + 1) * H) + math.log(self.episodes)
        self._log = self.scale * (events + math.log(7.0) - math.log(self.delta))
        self._upper = np.repeat(np.arange(H, -1, -1.0)[:, None], S, axis=1)
        self._lower = np.zeros((H + 1, S))
        self._counts = AdviceCounts(self._rows)
        self._learn_by(self._counts, self._counts.add)
        self._saved.add(self, {"_upper": "_upper", "_lower": "_lower"})

    def best_advice(self) -> Advice:
        advice, ties = self._empty_advice(), self.rng.random(self._rows[:2])
        model, bonus = self._empirical_mdp(self._counts), self._reward_bonus()
        plan_euler(model, bonus, self._log, ties, advice, self._upper, self._lower)
        return advice

    def _reward_bonus(self) -> Floats:
        """Return the bonus of rewards [layer, s, b]: none where they are known."""
        if self._reward is not None:
            return np.zeros((1, *self._rows[1:]))
        n = np.maximum(self._counts.row_visits, 1)
        spread = np.maximum(self._counts.square / n - (self._counts.paid / n) ** 2, 0.0)
        rest = 7.0 * self._log / (3.0 * np.maximum(n - 1, 1))
        bonus: Floats = np.sqrt(2.0 * spread * self._log / n) + rest
        return bonus

    @property
    def upper(self) -> Floats:
        """V̄ [h, s] of the last plan, in the units of the rewards; a last step more holds 0."""
        return sealed(self._unscale_values(self._upper))

    @property
    def lower(self) -> Floats:
        """V̲ [h, s] of the last plan, in the units of the rewards; a last step more holds 0."""
        return sealed(self._unscale_values(self._lower))
