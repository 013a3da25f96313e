"""UCBVI: value iteration with a bonus for what was rarely seen (Azar, Osband and Munos 2017).

Setting: ``black_box.py``, known rewards in [0, 1], T = episodes · H steps, L = ln(5 H S B T / δ),
n = n_h(s, b):

    Q_h(s, b) = min{Q_h(s, b) before, H, r + p̂ V_{h+1} + c bonus}  where n > 0, else H;  V = max_b Q

* ``Hoeffding()``, the paper's bonus_1: 7 H L √(1 / n);
* ``Freedman()``, its bonus_2 (Bernstein–Freedman):
  √(8 L Var_p̂(V_{h+1}) / n) + 14 H L / (3 n) + √((8 / n) Σ_t p̂(t) min{100² H⁵ S² B L² / N'(t), H²}),
  N'(t) the times t was seen at the next step.

Guarantee: V ≥ V*.

Deviates
--------
* Counts are those of a step, so S becomes S H in L and in the last term, which at any usual size
  stays at H² all the same: 100² is large.
* At the last step nothing follows and the last term is 0 (the paper leaves N' there undefined).
"""

import math

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from counsel._arrays import Floats, sealed, whole
from counsel.baselines._optimism_kernels import (
    FREEDMAN,
    HOEFFDING,
    Bonus,
    EpisodeTotals,
    plan_ucbvi,
    ucbvi_episodes,
)
from counsel.baselines.advice_counts import AdviceCounts
from counsel.baselines.black_box import BlackBoxLearner, shared_parameters
from counsel.baselines.bonuses import Freedman, Hoeffding, read_bonus
from counsel.learning.arguments import require_rewards
from counsel.learning.learner import (
    LIVE,
    Runner,
    check_episodes_left,
    documented_by,
    is_overridden,
)
from counsel.model.policy import Policy
from counsel.model.random_cells import Advice
from counsel.model.setting import Shape
from counsel.planning.prepared_problem import model_of
from counsel.simulate.simulator import Simulator

NUMBERS = 4_000_000  # random numbers drawn at a time


@documented_by(Runner)
@shared_parameters
class UCBVI(BlackBoxLearner):
    """Learns the machine's MDP by optimistic value iteration; the person's actions are ignored.

    Parameters
    ----------
    bonus
        ``Freedman()`` (the default) or ``Hoeffding()``.

    Raises
    ------
    CounselError
        If ``reward`` is missing, or the bonus or another argument is invalid.

    Examples
    --------
    With the bonus of the theory two thousand nights teach nothing; a thousandth of it will do:

    >>> from numpy.random import default_rng
    >>> from counsel import Simulator, learn, make
    >>> problem = make("night-shift")
    >>> known, simulator = dict(reward=problem.machine().reward), Simulator(problem)
    >>> for scale in (1.0, 0.001):
    ...     learner = UCBVI(problem.shape, rng=default_rng(1), episodes=2000, scale=scale, **known)
    ...     *_, last = learn(learner, simulator, episodes=2000, every=50, rng=default_rng(0))
    ...     print(scale, round(last.value_gap, 2))
    1.0 0.94
    0.001 0.07
    """

    def __init__(  # noqa: PLR0913 (the settings of the theorem)
        self,
        shape: Shape,
        *,
        rng: Generator,
        reward: ArrayLike,
        episodes: int,
        bonus: Hoeffding | Freedman | None = None,
        delta: float = 0.1,
        scale: float = 1.0,
        penalty: ArrayLike = 0.0,
        known_zero: ArrayLike | None = None,
    ) -> None:
        require_rewards(reward)
        self.bonus = read_bonus(bonus, Freedman(), Hoeffding())
        self.episodes = whole("episodes", episodes, least=1)
        super().__init__(shape, rng=rng, reward=reward, delta=delta, scale=scale, penalty=penalty)
        self._declare_zero(known_zero)
        H, S, A = self._sizes
        events = math.log(5.0 * H * S * (A + 1) * H) + math.log(self.episodes)
        log = events - math.log(self.delta)
        most = 1e4 * float(H) ** 5 * S * S * (A + 1) * log**2
        kind = FREEDMAN if isinstance(self.bonus, Freedman) else HOEFFDING
        self._bonus = Bonus(kind, self.scale, log, most)
        self._Q = np.full((H, S, A + 1), float(H))
        self._V = np.full((H + 1, S), float(H))
        self._V[H] = 0.0
        self._counts = AdviceCounts(self._rows)
        self._learn_by(self._counts, self._counts.add)
        self._saved.add(self, {"_Q": "_Q", "_V": "_V"})

    def best_advice(self) -> Advice:
        advice, ties = self._empty_advice(), self.rng.random(self._rows[:2])
        plan_ucbvi(self._empirical_mdp(self._counts), self._bonus, ties, advice, self._Q, self._V)
        return advice

    @property
    def can_run(self) -> bool:
        """Whether ``run`` can be used: unless a method that it stands for is overridden."""
        return not is_overridden(
            self, UCBVI, "best_advice", "draw", "drawn", "policy", "update", *LIVE
        )

    def run(
        self, simulator: Simulator, *, best: float, episodes: int, every: int, rng: Generator
    ) -> tuple[Floats, Floats]:
        check_episodes_left(self, episodes)
        problem = simulator.problem
        H, S, _ = self._sizes
        advice = np.array(self.drawn.advice)
        truth, penalty_h = model_of(problem), np.array(self.penalty, ndmin=1)
        totals = EpisodeTotals(
            self._counts.paid,
            self._counts.square,
            self._ends.starts,
            self._ends.idle,
            self._ends.ended,
            self._unreachable,
            self._low,
            self._unit,
            np.ascontiguousarray(self._charge / self._unit),
        )
        gaps, counts, is_due = [], [], False
        blocks = max(1, min(NUMBERS // (H * S), NUMBERS // (every * simulator.draws)))
        for begin in range(0, episodes, blocks * every):
            size = min(blocks * every, episodes - begin)
            self._counts.transitions.make_room(size * H)
            value_n, pieces_n = np.empty(size), np.empty(size)
            u_nw = rng.random((size, simulator.draws))
            before, most = self.rng.bit_generator.state, -(-size // every) - (not is_due)
            ties = self.rng.random((most, H, S))
            model = self._empirical_mdp(self._counts)
            known = u_nw, ties, self._bonus, model, totals, truth, problem.mdp.start, penalty_h
            plan = advice, self._Q, self._V
            played = every, *plan, value_n, pieces_n, is_due
            plans, is_due = ucbvi_episodes(simulator.scene, *known, *played)
            if plans < most:  # ties that no plan needed are drawn again later
                self.rng.bit_generator.state = before
                self.rng.random((plans, H, S))
            gaps.append(best - value_n)
            counts.append(pieces_n)
        self.episode += episodes
        self._drawn_policy = None if is_due else Policy(advice, n_actions=self.shape.n_actions)
        return np.concatenate(gaps), np.concatenate(counts)

    @property
    def upper(self) -> Floats:
        """V [h, s] of the last plan, in the units of the rewards; a last step more holds 0."""
        return sealed(self._unscale_values(self._V))
