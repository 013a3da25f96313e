"""UCFH: the best plan in the best plausible world (Dann and Brunskill 2015).

Setting, ℓ and phases: ``confidence_sets.py``, with k = 6: three bounds, each on both sides. Each
p(t | s, b) seen n times lies within

    |p − p̂| ≤ √(ℓ / 2n),   |p − p̂| ≤ √(2 p̂ (1 − p̂) ℓ / n) + 7 ℓ / (3 (n − 1)),
    |√(p (1 − p)) − √(p̂ (1 − p̂))| ≤ √(2 ℓ / (n − 1))

(the first alone for n = 1, nothing for n = 0). Extended value iteration plans

    Q_h(s, b) = r + max{p V_{h+1} : p within all intervals}

by starting from the lower ends and giving what is left to the best states, up to their upper ends.

Deviates
--------
* Counts are those of a step, with the δ₁ of the authors' code for that.
* Where the third bound leaves two pieces, the interval spans both (as in the authors' code).
* Every update counts, unless ``Phases`` are asked for; all rows that are ripe after an update count
  at once (the paper takes one and plans).
"""

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from counsel._arrays import Floats, positive, sealed
from counsel.baselines._confidence_set_kernels import plan_extended
from counsel.baselines.black_box import BlackBoxLearner, shared_parameters
from counsel.baselines.confidence_sets import ConfidenceSets, Guarantee, Phases
from counsel.learning.arguments import require_rewards
from counsel.model.random_cells import Advice
from counsel.model.setting import Shape

BOUNDS = 6  # how many bounds the intervals are made of (k): three, each on both sides


@shared_parameters
class UCFH(BlackBoxLearner):
    """Plans for the best plausible world of the machine, whatever the person's actions.

    Parameters
    ----------
    epsilon
        The accuracy of an episode, in units of reward.
    scale
        The factor of ℓ: 1 in theory.

    Raises
    ------
    CounselError
        If an argument is invalid, or a state has no successor in ``support``.

    Examples
    --------
    Its upper bound after 500 nights, with the intervals of the theory and with narrower ones:

    >>> from numpy.random import default_rng
    >>> from counsel import Simulator, learn, make, solve
    >>> problem = make("night-shift")
    >>> known, simulator = dict(reward=problem.machine().reward), Simulator(problem)
    >>> for scale in (1.0, 0.01):
    ...     learner = UCFH(problem.shape, rng=default_rng(1), scale=scale, **known)
    ...     *_, last = learn(learner, simulator, episodes=500, every=50, rng=default_rng(0))
    ...     print(scale, round(last.value_gap, 2), round(learner.upper[0, 0], 2))
    1.0 0.38 11.99
    0.01 0.12 11.63
    >>> print(round(solve(problem).value, 2))
    11.46
    """

    def __init__(  # noqa: PLR0913 (the settings of the theorem)
        self,
        shape: Shape,
        *,
        rng: Generator,
        reward: ArrayLike,
        epsilon: float = 1.0,
        delta: float = 0.1,
        scale: float = 1.0,
        penalty: ArrayLike = 0.0,
        support: ArrayLike | None = None,
        phases: Phases | None = None,
        known_zero: ArrayLike | None = None,
    ) -> None:
        self.epsilon = positive("epsilon", epsilon)
        require_rewards(reward)
        super().__init__(shape, rng=rng, reward=reward, delta=delta, scale=scale, penalty=penalty)
        self._declare_zero(known_zero)
        guarantee = Guarantee(self.epsilon / self._unit, self.delta, self.scale)
        self.sets = ConfidenceSets(shape, guarantee, bounds=BOUNDS, support=support, phases=phases)
        self._learn_by(self.sets, self.sets.add)
        self.phases, self.support = phases, self.sets.support
        steps_left = np.arange(shape.horizon, -1, -1.0)
        self._upper = np.repeat(steps_left[:, None], shape.n_states, axis=1)
        self._saved.add(self, {"_upper": "_upper"})

    def best_advice(self) -> Advice:
        advice, ties = self._empty_advice(), self.rng.random(self._rows[:2])
        sets, model = self.sets, self._empirical_mdp(self.sets.counts)
        plan_extended(model, sets.log, *sets.successors(), ties, advice, self._upper)
        return advice

    @property
    def upper(self) -> Floats:
        """V [h, s] of the last plan, in the units of the rewards; a last step more holds 0."""
        return sealed(self._unscale_values(self._upper))
