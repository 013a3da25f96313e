"""The simulator: batches of episodes of a person who is advised.

Every episode takes the same number of draws from the generator, so

* the same seed gives the same episodes in one batch or in many, recorded or counted;
* the same seed gives each episode the same luck under another policy, which makes comparisons of
  policies sharp (common random numbers).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from counsel._arrays import Floats, Ints, check_rng, layers, one_type, sealed, whole
from counsel.errors import CounselError
from counsel.model.advice_costs import cost_table
from counsel.model.memory import level_rows
from counsel.model.mixture import Mixture
from counsel.model.policy import Policy
from counsel.model.problem import AdviceProblem
from counsel.model.rewards import bernoulli, range_of_means
from counsel.simulate._episode_kernels import (
    BLOCK,
    IDLE,
    AdviceTable,
    Scene,
    count,
    fill_alias,
    record,
)
from counsel.simulate.episodes import DECISION, Counts, Episodes

NUMBERS = 2**15
"""The number of random numbers per batch: few enough to stay in the cache."""


@dataclass(frozen=True, slots=True, eq=False, init=False, repr=False)
class Simulator:
    """Draw episodes of a problem.

    Parameters
    ----------
    problem
        The world and the person. If it has a ``reward_law``, rewards are drawn from that law, by
        one more random number per step; else they are ``mdp.reward``.

    Attributes
    ----------
    scene
        The arrays that the compiled loops read.
    draws
        The number of random numbers per episode.
    reward_range
        The least and the largest reward that may be paid.

    Examples
    --------
    The mean of a thousand nights is close to the exact value, and the same seed gives the same
    nights in one batch or in two:

    >>> import numpy as np
    >>> import counsel
    >>> problem = counsel.make("night-shift")
    >>> policy = counsel.solve(problem, budget=2).policy
    >>> simulator, rng = counsel.Simulator(problem), np.random.default_rng(0)
    >>> nights = simulator.count(policy, episodes=400, rng=rng)
    >>> nights += simulator.count(policy, episodes=600, rng=rng)
    >>> exact = counsel.evaluate(problem, policy)
    >>> print(f"{nights.rewards.mean():.2f}, exactly {exact.value:.2f}")
    11.40, exactly 11.42
    >>> again = simulator.play(policy, episodes=1000, rng=np.random.default_rng(0))
    >>> bool((again.pieces == nights.pieces).all())
    True
    """

    problem: AdviceProblem
    scene: Scene
    draws: int
    reward_range: tuple[float, float]

    def __init__(self, problem: AdviceProblem) -> None:
        if not isinstance(problem, AdviceProblem):
            raise CounselError(f"expected an AdviceProblem, not {type(problem).__name__}")
        scene = _scene_of(problem)
        per_step = 1 + _has_chance(problem) + int(scene.first_level[1] > 0)
        per_step += problem.reward_law is not None
        object.__setattr__(self, "problem", problem)
        object.__setattr__(self, "scene", scene)
        object.__setattr__(self, "draws", 2 + per_step * problem.horizon)
        paid = problem.reward_range or range_of_means(problem.mdp)
        object.__setattr__(self, "reward_range", paid)

    def __reduce__(self) -> tuple[Any, ...]:
        return Simulator, (self.problem,)

    def __repr__(self) -> str:
        return f"Simulator({self.problem.mdp!r})"

    def play(
        self, policy: Policy | Mixture, *, episodes: int, rng: np.random.Generator
    ) -> Episodes:
        """Draw episodes and return every decision.

        Parameters
        ----------
        policy
            The advice, e.g. ``plan.policy``.
        episodes
            The number of episodes.
        rng
            The random generator. Another call with the same generator continues the same sequence
            of episodes.
        """
        table = _advice_table(self.problem, policy)
        parts = [self._record(table, u_nw) for u_nw in self.batches(episodes, rng)]
        lengths, *columns = (np.concatenate(column) for column in zip(*parts, strict=True))
        first = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
        named: dict[str, Any] = dict(zip((*DECISION, "level", "terminated"), columns, strict=True))
        if self.problem.memory is None:
            named["level"] = None
        return Episodes(first=first, defer=self.problem.defer, **named)

    def count(self, policy: Policy | Mixture, *, episodes: int, rng: np.random.Generator) -> Counts:
        """Draw the same episodes as ``play`` and return only counts of their decisions.

        Parameters
        ----------
        policy, episodes, rng
            As in ``play``.
        """
        table = _advice_table(self.problem, policy)
        H, S, A = self.problem.horizon, self.problem.n_states, self.problem.n_actions
        try:
            decisions = np.zeros((H, S, A + 1, A), dtype=np.int64)
        except MemoryError:
            size = 8.0 * H * S * (A + 1) * A / 2**30
            raise CounselError(
                f"counts of {H} steps, {S} states and {A} actions take {size:.0f} GB; use play"
            ) from None
        rewards, pieces, live = [], [], 0
        for u_nw in self.batches(episodes, rng):
            rewards.append(np.empty(len(u_nw)))
            pieces.append(np.empty(len(u_nw), dtype=np.int32))
            live += count(self.scene, table, u_nw, (decisions, rewards[-1], pieces[-1]))
            if not self._pays_in_loops:
                lengths, *columns = self._record(table, u_nw)
                episode = np.repeat(np.arange(len(u_nw)), lengths)
                rewards[-1][:] = np.bincount(episode, columns[DECISION.index("reward")], len(u_nw))
        return Counts(
            decisions=sealed(decisions),
            rewards=sealed(np.concatenate(rewards)),
            pieces=sealed(np.concatenate(pieces)),
            live=live,
        )

    @property
    def is_compiled(self) -> bool:
        """Whether compiled loops of learners may draw the episodes.

        Rewards are certain, or least or largest, and the person has no memory.
        """
        return self.problem.memory is None and self._pays_in_loops

    @property
    def _pays_in_loops(self) -> bool:
        """Whether compiled loops draw the rewards: these are certain, or least or largest."""
        return self.problem.reward_law is None or self.problem.reward_law is bernoulli

    def batches(self, episodes: int, rng: np.random.Generator) -> Iterator[Floats]:
        """Yield batches of random numbers [episode, draw] in [0, 1); each overwrites the last.

        Parameters
        ----------
        episodes, rng
            As in ``play``.
        """
        left = whole("episodes", episodes, least=1)
        check_rng(rng)
        most = max(BLOCK, NUMBERS // self.draws)
        u_nw = np.empty((min(left, most), self.draws))
        while left > 0:
            part = u_nw[: min(left, most)]
            rng.random(out=part)
            yield part
            left -= len(part)

    def _record(self, table: AdviceTable, u_nw: Floats) -> tuple[Any, ...]:
        """Return the length of each episode, the columns of the decisions, and which ended."""
        n, most = len(u_nw), len(u_nw) * self.problem.horizon
        first, terminated = np.zeros(n + 1, dtype=np.int64), np.empty(n, dtype=np.bool_)
        types = (np.int32, np.int16, np.int16, np.float64, np.int32, np.int16)
        decisions: Any = tuple(np.empty(most, dtype=dtype) for dtype in types)
        record(self.scene, table, u_nw, first, decisions, terminated)
        columns = [column[: first[-1]].copy() for column in decisions]
        lengths = np.diff(first)
        if self.problem.reward_law is not None:
            step = np.arange(first[-1]) - np.repeat(first[:-1], lengths)
            state, _, action, *_ = columns
            u = u_nw[np.repeat(np.arange(n), lengths), self.reward_draw(step)]
            rewards = self.problem.draw_rewards(step, state, action.astype(np.int64), u)
            columns[DECISION.index("reward")] = rewards
        return lengths, *columns, terminated

    def reward_draw(self, step: int | Ints) -> Any:  # noqa: ANN401 (of the type of step)
        """Return which number of an episode draws the reward of a step: the last of the step.

        Parameters
        ----------
        step
            The step, from 0.
        """
        return 1 + (self.draws - 2) // self.problem.horizon * (step + 1)


def _scene_of(problem: AdviceProblem) -> Scene:
    """Collect the arrays that episodes are drawn from."""
    mdp, human, kernel = problem.mdp, problem.human, problem.mdp.kernel
    starts = np.nonzero(mdp.start)[0].astype(np.int32)
    indptr = np.append(kernel.indptr, kernel.indptr[-1] + starts.size)
    next_state = np.append(kernel.next_state, starts)
    keep, other = np.empty(next_state.size), np.empty(next_state.size, dtype=np.int32)
    probability = np.append(kernel.probability, mdp.start[starts])
    fill_alias(indptr, next_state, probability, keep, other)
    certain = np.append(np.diff(kernel.indptr) == 1, False)[kernel.row]
    only = np.append(kernel.next_state, 0)[np.append(kernel.indptr[:-1], -1)][kernel.row]
    leads_lsa = np.where(certain, only, -1 - kernel.row).astype(np.int32)
    leads_lsa[kernel.row < 0] = 0
    theta_mlsa = np.where(human.level_lift != 0.0, human.level_adherence, IDLE)
    policy_lsa = np.broadcast_to(human.policy, theta_mlsa.shape[1:])
    levels = level_rows(problem.memory)
    draws_levels = bool((np.diff(levels.indptr) > 1).any())
    at = 1 + _has_chance(problem) if draws_levels else 0
    scene = Scene(
        person_lsc=np.concatenate((policy_lsa, *theta_mlsa), axis=2),
        reward_lsa=layers(mdp.reward),
        cost_lsa=cost_table(problem.cost),
        leads_lsa=leads_lsa,
        over_ls=layers(mdp.over),
        indptr=indptr,
        next_state=next_state,
        keep=keep,
        other=other,
        ends=np.array(problem.reward_range if problem.reward_law is bernoulli else ()),
        after_cm=levels.after_cm,
        level_indptr=levels.indptr,
        level=levels.level,
        weight=levels.weight,
        first_level=np.array([problem.level_of(None), at]),
    )
    return one_type(scene)


def _has_chance(problem: AdviceProblem) -> bool:
    """Return whether an action may lead to more than one state."""
    kernel = problem.mdp.kernel
    lengths = np.append(np.diff(kernel.indptr), 1)
    return bool((lengths[kernel.row] > 1).any())


def _advice_table(problem: AdviceProblem, policy: Policy | Mixture) -> AdviceTable:
    """Combine policies into planes of one table."""
    if not isinstance(policy, Policy | Mixture):
        raise CounselError(f"expected a Policy or a Mixture, not {type(policy).__name__}")
    parts = policy.policies if isinstance(policy, Mixture) else (policy,)
    weights = policy.weights if isinstance(policy, Mixture) else (1.0,)
    randoms = [part.random for part in parts]
    lengths = np.concatenate([np.diff(random.indptr) for random in randoms])
    planes, levels, spends, first, cells = [], list[int](), list[int](), list[int](), 0
    for part in parts:
        problem.check_fits(part)
        table = part.planes.astype(np.int32)
        table.reshape(-1)[part.random.cell] = -1 - cells - np.arange(part.random.cell.size)
        cells += part.random.cell.size
        planes.append(table)
        M = part.levels or 1
        levels += [M] * len(table)
        spends += [0] * M + [1] * (len(table) - M)
        first.append(len(spends) - M)
    return AdviceTable(
        advice_phs=np.concatenate(planes),
        levels_p=np.array(levels),
        spends_p=np.array(spends),
        first_j=np.array(first),
        upto_j=np.cumsum(weights),
        indptr=np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths))),
        advice=np.concatenate([random.advice for random in randoms]),
        probability=np.concatenate([random.probability for random in randoms]),
    )
