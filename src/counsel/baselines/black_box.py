"""The base of learners that treat the machine's world as a black box.

Setting: the machine's MDP of ``problem.machine()``, whose actions are the advice and, last,
silence. Nothing of the person is used: only state, advice, reward and next state are seen. With a
penalty β, advice of cost c changes the rewards r^M_h(s, b) to r^M − β c. Formulas are for rewards
in [0, 1]: inside, rewards count from low minus the largest β c to high as 0 to 1.

The terminal trap (``docs/explanation/baselines.md``): nothing is ever recorded after an episode's
end, so an optimistic learner would believe in the best there and crash on purpose. Here states
reported as the end are worth 0 (in the user's units) from that step on; ``known_zero`` declares
others. States that a burn-in did not see are taken to be unreachable, and to pay the least there
is, until they are seen after all. Ties are drawn, and ``scale`` is the factor c of the formulas.
"""

from abc import ABCMeta, abstractmethod
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from counsel._arrays import (
    Bools,
    Floats,
    check_range,
    check_rng,
    layers,
    positive,
    rectangular,
    whole,
)
from counsel._docstrings import share_parameters
from counsel.baselines._optimism_kernels import EmpiricalMDP
from counsel.baselines.advice_counts import AdviceCounts, RowCounts
from counsel.errors import CounselError
from counsel.learning.arguments import (
    DESCRIPTIONS,
    allowed_with_silence,
    read_limit,
    read_rewards,
    read_shape,
)
from counsel.learning.charges import charge_table
from counsel.learning.learner import (
    Learner,
    Resumable,
    check_episodes_left,
    documented_by,
)
from counsel.learning.live_play import EpisodeBuffer
from counsel.learning.saved_state import SavedState
from counsel.learning.starts_and_ends import StartsAndEnds
from counsel.model.policy import Policy
from counsel.model.random_cells import Advice, RandomCells
from counsel.model.rewards import check_observed
from counsel.model.setting import Shape
from counsel.simulate.episodes import Episodes
from counsel.simulate.move import Move
from counsel.simulate.simulator import Simulator

RANDOM = tuple(field.name for field in fields(RandomCells))

shared_parameters = share_parameters(
    DESCRIPTIONS
    | {
        "reward": """
            The machine's rewards [s, b] or [h, s, b], silence last: ``problem.machine().reward``;
            None if they are not known, where the signature allows it.""",
        "episodes": """
            The largest number of episodes to learn from, with a burn-in: the bonus depends on it,
            and the learner refuses more.""",
        "penalty": """
            The penalty per unit of cost, in units of reward, or one for each step [h]. A piece of
            advice costs 1 unless the problem says otherwise.""",
        "support": """
            Booleans [s, t], dense or sparse: which states can follow which. All when not given.""",
        "phases": "``Phases()`` for the paper's rule; without it all counts take effect at once.",
        "known_zero": """
            Booleans [s] or [h, s]: states known to have value 0, besides those where episodes
            end.""",
    }
)


@documented_by(Learner, Resumable)
class BlackBoxLearner(metaclass=ABCMeta):
    """Learns the machine's MDP from what follows advice.

    A plan breaks ties by chance, so it is drawn once, kept until something is learnt, and saved
    with the rest of the state.
    """

    episodes: int | None = None  # the declared number of episodes, where the bonus depends on it

    def __init__(  # noqa: PLR0913 (what the machine may know)
        self,
        shape: Shape,
        *,
        rng: Generator,
        reward: ArrayLike | None,
        delta: float,
        scale: float,
        penalty: ArrayLike = 0.0,
        budget: float | None = None,
    ) -> None:
        self.shape = read_shape(shape)
        self.delta, self.scale = positive("delta", delta, 1.0), positive("scale", scale)
        check_rng(rng)
        self.rng = rng
        self.penalty, self.budget = read_limit(penalty, budget, shape.horizon)
        H, S, A = self._sizes
        self._allowed = allowed_with_silence(shape)
        low, high = shape.reward_range
        self._charge = charge_table(shape, self.penalty)
        most = float(self._charge.max())
        self._low, self._unit = low - most, (high - low) + most or 1.0
        self._reward: Floats | None = None
        if reward is not None:
            known = layers(read_rewards(reward, (H, S, A + 1), axes="sb"))
            known = np.where(self._allowed, known, low)  # forbidden advice has no known reward
            slack = 1e-9 * max(abs(low), abs(high))
            check_range("reward", known, "hsb", low - slack, high + slack)
            paid = known - self._charge
            self._reward = np.clip((paid - self._low) / self._unit, 0.0, 1.0)
        self._known_zero = np.zeros((H + 1, S), dtype=np.bool_)
        self._unreachable = np.zeros((H + 1, S), dtype=np.bool_)
        self._drawn_policy: Policy | None = None
        self.episode = 0
        self._buffer = EpisodeBuffer(A)
        self._ends = StartsAndEnds(shape)
        self._saved = SavedState(self, self._buffer)
        self._saved.add(self, {"_zero": "_known_zero", "_shut": "_unreachable"})
        self._ends.save_in(self._saved)

    @abstractmethod
    def best_advice(self) -> Advice:
        """Return the advice [h, s] for what was learnt, silence the number of actions."""

    def _learn_by(self, counts: RowCounts, add: Callable[[Episodes, Floats], bool]) -> None:
        """Take the counts that are to be saved, and the function that adds episodes to them.

        It is called with rewards in [0, 1] and returns whether to plan again.
        """
        self._row_counts, self._add = counts, add
        counts.save_in(self._saved)

    def _declare_zero(self, known_zero: ArrayLike | None) -> None:
        """Read the states [s] or [h, s] that are declared to have value 0."""
        if known_zero is None:
            return
        H, S, _ = self._sizes
        table = rectangular("known_zero", known_zero)
        if table.dtype != np.bool_ or table.shape not in ((S,), (H, S)):
            raise CounselError(
                f"known_zero is {table.dtype} of shape {table.shape}; "
                f"expected booleans [s] = {(S,)} or [h, s] = {(H, S)}"
            )
        self._known_zero[:H] = table

    @property
    def most_episodes(self) -> int | None:
        """The number of episodes that the bonus was declared for; None if it holds for any."""
        return self.episodes

    def draw(self) -> Policy:
        """Plan, with ties drawn; return the policy to play until something is learnt."""
        return Policy.trusted(self.best_advice(), n_actions=self.shape.n_actions)

    @property
    def drawn(self) -> Policy:
        """The policy that is played."""
        if self._drawn_policy is None:
            self._drawn_policy = self.draw()
        return self._drawn_policy

    @property
    def policy(self) -> Policy:
        return self.drawn

    def advise(self, step: int, state: int) -> int:
        return self.drawn.draw(step, state, self.rng)

    def observe(self, move: Move) -> None:
        self._buffer.add(move)

    def finish(self, *, terminated: bool = False) -> None:
        self._buffer.finish(self.update, terminated=terminated)

    def update(self, batch: Episodes) -> None:
        batch.check_fits(*self._sizes)
        check_episodes_left(self, len(batch))
        self._row_counts.check(batch)
        if self._reward is None:
            cells = batch.step, batch.state, batch.action
            check_observed(*cells, batch.reward, self.shape.reward_range)
        paid = (batch.reward - self._low) / self._unit
        if self._charge.any():
            layer = batch.step if len(self._charge) > 1 else 0
            paid -= self._charge[layer, batch.state, batch.advice.astype(np.int64)] / self._unit
        self._unreachable[batch.step, batch.state] = False
        self._ends.count(batch)
        if self._add(batch, paid):
            self._forget_plans()
        self.episode += len(batch)

    def burn_in(self, simulator: Simulator, *, episodes: int, rng: Generator) -> None:
        """Play uniformly random advice, learn from it, and declare unvisited states unreachable."""
        check_episodes_left(self, whole("episodes", episodes, least=1))
        H, S, A = self._sizes
        chance = np.broadcast_to(self._allowed, (H, S, A + 1)).astype(np.float64)
        uniform = Policy.from_probabilities(chance / chance.sum(axis=2, keepdims=True))
        left = episodes
        while left > 0:
            size = min(left, max(1, 1_000_000 // H))
            self.update(simulator.play(uniform, episodes=size, rng=rng))
            left -= size
        self._unreachable[:-1] = self._row_counts.row_visits.sum(axis=2) == 0
        self._forget_plans()

    def state(self) -> dict[str, Any]:
        policy = self._drawn_policy
        if policy is None:
            return self._saved.state() | {"planned": False}
        random = {f"plan_{name}": getattr(policy.random, name) for name in RANDOM}
        return self._saved.state() | random | {"planned": True, "plan": policy.advice}

    def restore(self, state: dict[str, Any]) -> None:
        self._saved.restore(state, self._row_counts.is_consistent)
        self._forget_plans()
        if state["planned"]:
            random = RandomCells(*(state[f"plan_{name}"] for name in RANDOM))
            policy = Policy(state["plan"], n_actions=self.shape.n_actions, random=random)
            policy.check_fits(*self._sizes)
            self._drawn_policy = policy

    def _forget_plans(self) -> None:
        """Plan again when a policy is next asked for."""
        self._drawn_policy = None

    @property
    def _sizes(self) -> tuple[int, int, int]:
        return self.shape.horizon, self.shape.n_states, self.shape.n_actions

    @property
    def _rows(self) -> tuple[int, int, int]:
        """The shape of tables of rows [h, s, b], silence last."""
        return self.shape.horizon, self.shape.n_states, self.shape.n_actions + 1

    @property
    def _over(self) -> Bools:
        """Where nothing more can happen [h, s], with one step more."""
        over: Bools = self._ends.ended | self._known_zero
        return over

    @property
    def _rest(self) -> float:
        """The reward of a step where nothing more can happen, in [0, 1]."""
        return -self._low / self._unit

    def _unscale_values(self, scaled_hs: Floats) -> Floats:
        """Return values in the user's units."""
        steps_left = np.arange(len(scaled_hs) - 1, -1, -1.0)[:, None]
        return scaled_hs * self._unit + steps_left * self._low

    def _empty_advice(self) -> Advice:
        """Return a table of silence [h, s], to be filled."""
        H, S, A = self._sizes
        return np.full((H, S), A, dtype=np.int16)

    def _empirical_mdp(self, counts: AdviceCounts) -> EmpiricalMDP:
        """Return the counts as kernels take them, with rewards in [0, 1]: known, or averages."""
        reward = counts.mean_reward() if self._reward is None else self._reward
        chains, unreachable = counts.transitions.chains, self._unreachable.copy()
        return EmpiricalMDP(chains, self._allowed, reward, self._over, unreachable, self._rest)
