"""UCB Q-learning: optimism without a model (Jin, Allen-Zhu, Bubeck and Jordan 2018).

Setting: ``black_box.py``, rewards in [0, 1], T = episodes · H steps, ι = ln(2 S B T / δ). Nothing
is planned: each move (h, s, b, r, t), the n-th of its row, changes

    Q_h(s, b) ← (1 − α) Q_h(s, b) + α (r + V_{h+1}(t) + bonus),   α = (H + 1) / (H + n)
    V_h(s) = min{H, max_b Q_h(s, b)},   Q = V = H at first

* ``Hoeffding()``: bonus = c √(H³ ι / n);
* ``Bernstein()``: with W the variance of V_{h+1} over what followed,
  β_n = min{2c (√(H (W + H) ι / n) + √(H⁷ S B) ι / n), 2c √(H³ ι / n)}  and
  bonus = (β_n − (1 − α) β_{n−1}) / (2 α), so that the bonuses that still count add up to β_n / 2.

Deviates
--------
* The paper leaves c open. The weights α_n^i of the past have Σ (α_n^i)² ≤ 2 H / n, so Azuma's bound
  for values in [0, H] is √(H³ ι / n) with the 2 in ι: c = 1 is enough for ``Hoeffding()``. The
  second branch of ``Bernstein()`` needs twice that, as only half of β counts; its first branch has
  the same constant without a proof of ours, and comes in late: at n of order H⁴ S B ι.
* Rewards that are not known enter as they were paid: r + V* lies in [0, H] all the same.
* Moves are taken in one by one, in order; the policy may be held for a block of episodes.
"""

import math
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from counsel._arrays import Floats, sealed, whole
from counsel.baselines._q_learning_kernels import (
    BERNSTEIN,
    HOEFFDING,
    QBonus,
    QTable,
    learn_moves,
    pick_advice,
)
from counsel.baselines.black_box import BlackBoxLearner, shared_parameters
from counsel.baselines.bonuses import Bernstein, Hoeffding, read_bonus
from counsel.learning.saved_state import SavedState
from counsel.model.random_cells import Advice
from counsel.model.setting import Shape
from counsel.simulate.episodes import Episodes


class QValues:
    """Visits of each row [h, s, b], its Q, V [h, s], and sums of V, V² and β of what followed."""

    def __init__(self, rows: tuple[int, int, int]) -> None:
        H, S, _ = rows
        self.row_visits = np.zeros(rows, dtype=np.int64)
        self.Q = np.full(rows, float(H))
        self.V = np.full((H + 1, S), float(H))
        self.V[H] = 0.0
        self.sum, self.square, self.width = np.zeros(rows), np.zeros(rows), np.zeros(rows)

    @property
    def table(self) -> QTable:
        """All arrays as kernels take them."""
        return QTable(self.row_visits, self.Q, self.V, self.sum, self.square, self.width)

    def save_in(self, saved: SavedState) -> None:
        saved.add(self, {"_visits": "row_visits"})
        saved.add(self, {f"_{name}": name for name in ("Q", "V", "sum", "square", "width")})

    def is_consistent(self, state: dict[str, Any]) -> bool:
        return True  # no array grows

    def check(self, batch: Episodes) -> None:
        pass


@shared_parameters
class QLearning(BlackBoxLearner):
    """Learns what each advice is worth, without learning what it leads to.

    The cheapest learner for each move, and the slowest. The person's actions are ignored.

    Parameters
    ----------
    bonus
        ``Bernstein()`` (the default) or ``Hoeffding()``.
    scale
        The factor of the bonus.

    Raises
    ------
    CounselError
        If the bonus, a reward or another argument is invalid.

    Examples
    --------
    Ten times as many nights bring the value gap from 0.63 to 0.09:

    >>> from numpy.random import default_rng
    >>> from counsel import Simulator, learn, make
    >>> problem = make("night-shift")
    >>> known, simulator = dict(reward=problem.machine().reward), Simulator(problem)
    >>> for n in (2_000, 20_000):
    ...     learner = QLearning(problem.shape, rng=default_rng(1), episodes=n, scale=0.001, **known)
    ...     *_, last = learn(learner, simulator, episodes=n, every=50, rng=default_rng(0))
    ...     print(round(last.value_gap, 2), round(learner.upper[0, 0], 1))
    0.63 12.0
    0.09 11.4
    """

    def __init__(  # noqa: PLR0913 (the settings of the theorem)
        self,
        shape: Shape,
        *,
        rng: Generator,
        reward: ArrayLike | None,
        episodes: int,
        bonus: Hoeffding | Bernstein | None = None,
        delta: float = 0.1,
        scale: float = 1.0,
        penalty: ArrayLike = 0.0,
        known_zero: ArrayLike | None = None,
    ) -> None:
        self.bonus = read_bonus(bonus, Bernstein(), Hoeffding())
        super().__init__(shape, rng=rng, reward=reward, delta=delta, scale=scale, penalty=penalty)
        self._declare_zero(known_zero)
        self.episodes = whole("episodes", episodes, least=1)
        H, S, A = self._sizes
        events = math.log(2.0 * S * (A + 1) * H) + math.log(self.episodes)
        log = events - math.log(self.delta)
        if isinstance(self.bonus, Hoeffding):
            self._constants = QBonus(HOEFFDING, self.scale, self.scale, log)
        else:
            self._constants = QBonus(BERNSTEIN, 2.0 * self.scale, 2.0 * self.scale, log)
        self._values = QValues(self._rows)
        self._learn_by(self._values, self._learn)

    def _learn(self, batch: Episodes, paid: Floats) -> bool:
        reward = paid
        if self._reward is not None:
            step = batch.step if len(self._reward) > 1 else 0
            reward = self._reward[step, batch.state, batch.advice.astype(np.int64)]
        moves = batch.first, batch.state, batch.advice, reward, batch.next_state
        known = self._allowed, self._over, self._unreachable, self._rest
        learn_moves(*moves, *known, self._constants, self._values.table)
        return batch.state.size > 0

    def best_advice(self) -> Advice:
        advice, silent = self._empty_advice(), self._over | self._unreachable
        pick_advice(self._values.Q, self._allowed, silent, self.rng.random(advice.shape), advice)
        return advice

    @property
    def upper(self) -> Floats:
        """V [h, s] as it stands, in the units of the rewards; a last step more holds 0."""
        left = np.arange(self.shape.horizon, -1, -1.0)[:, None]
        V = np.where(self._unreachable, 0.0, self._values.V)
        return sealed(self._unscale_values(np.where(self._over, left * self._rest, V)))
