"""RF-Express: explore the machine's world for every reward at once (Ménard et al. 2021).

Setting: ``black_box.py``, rewards in [0, 1], n = n_h(s, b):

    φ(n) = ln(3 S B H / δ) + S ln(8 e (n + 1))
    W_h(s, b) = min{H, c 15 H² φ(n) / n + (1 + 1/H) Σ_t p̂_h(t | s, b) max_b' W_{h+1}(t, b')}

with W = H where n = 0. Each episode follows the advice of the largest W. Exploring may stop when
W + 3 e √W ≤ ε / 2 at the start; then, with c = 1 and probability 1 − δ, the best policy on p̂ (even
over all states where nothing was seen) is ε-optimal, whatever the rewards. ``RFE`` is the same idea
made to work: here all W are H until rows were seen some hundred thousand times, so ties decide.

Deviates
--------
* Silence is explored as any advice is. The policy may be held for a block of episodes.
* ε is counted in units of the rewards (largest charge for advice included).
* Where the first state is drawn, its law is one row more of W, seen in every episode.
"""

import math

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from counsel._arrays import Floats, positive
from counsel.baselines._rf_express_kernels import plan_express, plan_plug_in
from counsel.baselines.advice_counts import AdviceCounts
from counsel.baselines.black_box import BlackBoxLearner, shared_parameters
from counsel.learning._rfe_kernels import phi
from counsel.learning.learner import LIVE, Explorer, documented_by, is_overridden
from counsel.learning.live_play import play_live
from counsel.model.policy import Policy
from counsel.model.random_cells import Advice
from counsel.model.setting import Shape
from counsel.simulate.simulator import Simulator


@documented_by(Explorer)
@shared_parameters
class RFExpress(BlackBoxLearner):
    """Explores the machine's world for every reward at once, and plans afterwards.

    Parameters
    ----------
    reward
        The machine's rewards [s, b] or [h, s, b], silence last, for which ``policy`` is planned:
        ``problem.machine().reward``; None where they are not known.

    Raises
    ------
    CounselError
        If an argument is invalid; rewards must be within ``shape.reward_range``.

    Examples
    --------
    After 2,000 nights its plan is within 0.05 of the best; the uncertainty is still at its cap:

    >>> from numpy.random import default_rng
    >>> from counsel import Simulator, learn, make
    >>> problem = make("night-shift")
    >>> learner = RFExpress(
    ...     problem.shape, rng=default_rng(1), reward=problem.machine().reward, epsilon=0.1
    ... )
    >>> *_, last = learn(learner, Simulator(problem), episodes=2000, every=50, rng=default_rng(0))
    >>> round(last.value_gap, 2), learner.uncertainty, learner.done
    (0.05, 12.0, False)
    """

    def __init__(  # noqa: PLR0913 (the settings of the theorem)
        self,
        shape: Shape,
        *,
        rng: Generator,
        reward: ArrayLike | None,
        delta: float = 0.1,
        epsilon: float | None = None,
        scale: float = 1.0,
        penalty: ArrayLike = 0.0,
        known_zero: ArrayLike | None = None,
    ) -> None:
        self.epsilon = None if epsilon is None else positive("epsilon", epsilon)
        super().__init__(shape, rng=rng, reward=reward, delta=delta, scale=scale, penalty=penalty)
        self._declare_zero(known_zero)
        H, S, A = self._sizes
        self._base = math.log(3.0 * S * (A + 1) * H) - math.log(self.delta)
        self._counts = AdviceCounts(self._rows)
        self._learn_by(self._counts, self._counts.add)
        self._plug_in_policy: Policy | None = None

    def _forget_plans(self) -> None:
        super()._forget_plans()
        self._plug_in_policy = None

    def explore(self, simulator: Simulator, *, episodes: int, rng: Generator) -> None:
        if is_overridden(self, RFExpress, *LIVE):
            play_live(self, simulator, episodes=episodes, rng=rng)
            return
        self.update(simulator.play(self.drawn, episodes=episodes, rng=rng))

    def best_advice(self) -> Advice:
        """Return the most uncertain advice [h, s]: what to try next."""
        advice = self._empty_advice()
        self._fill_advice(self.rng.random(advice.shape), advice)
        return advice

    @property
    def policy(self) -> Policy:
        if self._plug_in_policy is None:
            H, S, A = self._sizes
            advice = self._empty_advice()
            plan_plug_in(self._empirical_mdp(self._counts), advice, np.empty((H + 1, S)))
            self._plug_in_policy = Policy.trusted(advice, n_actions=A)
        return self._plug_in_policy

    @property
    def uncertainty(self) -> float:
        """W_1 at the start; small when every policy can be evaluated, whatever the rewards."""
        H, S, _ = self._sizes
        if self.episode == 0:
            return float(H)
        W = self._fill_advice(np.zeros((H, S)), self._empty_advice())
        n = float(self.episode)
        return self._ends.uncertainty(W[0], self.scale * 15.0 * H * H * phi(n, self._base, S) / n)

    @property
    def done(self) -> bool:
        """Whether the stopping rule has fired; never without ``epsilon``."""
        if self.epsilon is None or self.episode == 0:
            return False
        W = self.uncertainty
        return W + 3.0 * math.e * math.sqrt(W) <= self.epsilon / self._unit / 2.0

    def _fill_advice(self, ties: Floats, advice: Advice) -> Floats:
        """Fill the most uncertain advice; return W [h, s] of it."""
        H, S, _ = self._sizes
        W: Floats = np.empty((H + 1, S))
        model = self._empirical_mdp(self._counts)
        plan_express(model, self.scale, self._base, ties, advice, W)
        return W
