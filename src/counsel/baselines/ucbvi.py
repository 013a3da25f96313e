"""UCBVI: value iteration with a bonus for what was rarely seen (Azar, Osband and Munos 2017).

Setting: the machine's time-dependent MDP as a black box, known rewards in [0, 1], T = episodes · H
steps, L = ln(5 H S B T / δ), n = n_h(s, b):

    Q_h(s, b) = min{Q_h(s, b) before, H, r + p̂ V_{h+1} + c bonus}  where n > 0, else H;  V = max_b Q

* ``Hoeffding()``, the paper's bonus_1: 7 H L √(1 / n);
* ``Freedman()``, its bonus_2 (Bernstein–Freedman):
  √(8 L Var_p̂(V_{h+1}) / n) + 14 H L / (3 n) + √((8 / n) Σ_t p̂(t) min{100² H⁵ S² B L² / N'(t), H²}),
  N'(t) the times t was seen at the next step.

Guarantee: V ≥ V*, and regret Õ(√(H³ S B T)) and Õ(√(H² S B T)) for a time-dependent world.

Deviates
--------
* Counts are those of a step, so S becomes S H in L and in the last term, which at any usual size
  stays at H² all the same: 100² is large.
* At the last step nothing follows and the last term is 0 (the paper leaves N' there undefined).
* Ties are drawn. States where an episode ended are worth 0 (see ``black_box.py``).
* ``scale`` is c: 1 in theory.
"""

import math

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from counsel._arrays import Floats, positive, sealed, whole
from counsel.baselines._optimism_kernels import (
    FREEDMAN,
    HOEFFDING,
    Bonus,
    Notes,
    plan_ucbvi,
    ucbvi_episodes,
)
from counsel.baselines.black_box import Counted
from counsel.baselines.bonuses import Freedman, Hoeffding, read_bonus
from counsel.learning._transition_kernels import with_room
from counsel.learning.inputs import require_rewards
from counsel.model.policy import Advice
from counsel.model.problem import Shape
from counsel.planning.advice_rules import Rules
from counsel.planning.backward import model_of
from counsel.simulate.simulator import Simulator

NUMBERS = 4_000_000
"""Random numbers drawn at a time."""


class UCBVI(Counted):
    """Learns the machine's MDP by optimistic value iteration.

    Takes advice and what follows for a black box: the person's actions are not looked at.

    Parameters
    ----------
    shape
        What is known: ``problem.shape``.
    rng
        Where ties are broken.
    reward
        The machine's rewards [s, b] or [h, s, b], silence last: ``problem.machine().reward``.
    episodes
        How many will be played: the bonus depends on it.
    bonus
        ``Freedman()``, which None means too, or ``Hoeffding()``.
    delta
        The probability of failure, between 0 and 1.
    scale
        What the bonus is multiplied by: 1 in theory.
    penalty
        What each piece of advice costs, in units of reward.
    known_zero
        Booleans [s] or [h, s]: states known to be worth nothing, besides those where episodes end.

    Raises
    ------
    CounselError
        When ``shape`` is no shape, ``reward`` is missing, a table has other axes or leaves the
        range of rewards, or a number or the bonus makes no sense.

    Examples
    --------
    With the bonus of the theory two thousand nights teach nothing; a thousandth of it will do:

    >>> from numpy.random import default_rng
    >>> from counsel import Simulator, learn
    >>> from counsel.worlds import make
    >>> problem = make("night-shift")
    >>> for scale in (1.0, 0.001):
    ...     learner = UCBVI(
    ...         problem.shape,
    ...         rng=default_rng(1),
    ...         reward=problem.machine().reward,
    ...         episodes=2000,
    ...         scale=scale,
    ...     )
    ...     run = learn(learner, Simulator(problem), episodes=2000, every=50, rng=default_rng(0))
    ...     *_, last = run
    ...     print(scale, round(last.value_gap, 2))
    1.0 0.94
    0.001 0.07
    """

    arrays = (*Counted.arrays, "_Q", "_V")

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
        penalty: float = 0.0,
        known_zero: ArrayLike | None = None,
    ) -> None:
        super().__init__(
            shape, rng=rng, reward=require_rewards(reward), penalty=penalty, known_zero=known_zero
        )
        self.episodes = whole("episodes", episodes, least=1)
        self.delta, self.scale = positive("delta", delta, 1.0), positive("scale", scale)
        self.bonus = read_bonus(bonus, Freedman(), Hoeffding())
        H, S, A = self._sizes
        events = math.log(5.0 * H * S * (A + 1) * H) + math.log(self.episodes)
        log = events - math.log(self.delta)
        most = 1e4 * float(H) ** 5 * S * S * (A + 1) * log**2
        kind = FREEDMAN if isinstance(self.bonus, Freedman) else HOEFFDING
        self._bonus = Bonus(kind, self.scale, log, most)
        self._Q = np.full((H, S, A + 1), float(H))
        self._V = np.full((H + 1, S), float(H))
        self._V[H] = 0.0

    def best_advice(self) -> Advice:
        """Plan on what was seen; ties are drawn.

        Returns
        -------
        ndarray
            What to advise [h, s], whole numbers; the number of actions is silence.
        """
        H, S, A = self._sizes
        advice: Advice = np.full((H, S), A, dtype=np.int16)
        ties = self.rng.random((H, S))
        plan_ucbvi(self._box(), self._bonus, ties, advice, self._Q, self._V)
        return advice

    @property
    def can_run(self) -> bool:
        """Whether ``run`` can be used here, which is always so."""
        return True

    def run(
        self, simulator: Simulator, *, best: float, episodes: int, every: int, rng: Generator
    ) -> tuple[Floats, Floats]:
        """Play and learn in one compiled loop.

        The same episodes, and the same learner afterwards, as with ``policy`` and ``update`` in
        turn.

        Parameters
        ----------
        simulator
            The world and the person; the truth in it is read to judge policies only.
        best
            What the best policy is worth, less the penalty.
        episodes
            How many to play.
        every
            After how many to update.
        rng
            Where chance comes from.

        Returns
        -------
        gaps : ndarray
            What each episode's policy fell short of ``best`` [episode].
        pieces : ndarray
            Its expected pieces of advice [episode].
        """
        problem = simulator.problem
        H, S, _ = self._sizes
        advice = np.array(self.drawn.advice)
        rules = Rules.read(problem, forbidden=None, required=None, allow_reverse=True)
        truth = model_of(problem, rules)
        notes = Notes(
            self._paid,
            self._square,
            self._starts,
            self._idle,
            self._ended,
            self._shut,
            self._low,
            self._unit,
            self.penalty / self._unit,
        )
        gaps, counts, first = [], [], 1
        blocks = max(1, min(NUMBERS // (H * S), NUMBERS // (every * simulator.draws)))
        for begin in range(0, episodes, blocks * every):
            size = min(blocks * every, episodes - begin)
            self._links = with_room(self._links, int(self._used[0]), size * H)
            value_n, pieces_n = np.empty(size), np.empty(size)
            ucbvi_episodes(
                simulator.scene,
                rng.random((size, simulator.draws)),
                self.rng.random((-(-size // every) - first, H, S)),
                self._bonus,
                self._box(),
                notes,
                truth,
                problem.mdp.start,
                every,
                advice,
                self._Q,
                self._V,
                value_n,
                pieces_n,
            )
            gaps.append(best - (value_n - self.penalty * pieces_n))
            counts.append(pieces_n)
            first = 0
        self.episode += episodes
        self._forget_plans()
        return np.concatenate(gaps), np.concatenate(counts)

    @property
    def upper(self) -> Floats:
        """V [h, s] of the last plan, in the units of the rewards; a last step more holds 0."""
        return sealed(self._values(self._V))
