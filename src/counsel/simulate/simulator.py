"""The simulator: whole batches of episodes of a person who is advised.

Every episode uses the same number of draws from the generator, whatever happens in it. So

* the same seed gives the same episodes in one batch or in many, recorded or counted;
* under another policy the same seed gives each episode the same luck, which makes comparisons of
  policies sharp (common random numbers).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from counsel._arrays import Floats, check_rng, layers, one_type, sealed, whole
from counsel.errors import CounselError
from counsel.model.mixture import Mixture
from counsel.model.policy import Policy
from counsel.model.problem import AdviceProblem
from counsel.simulate._episode_kernels import BLOCK, IDLE, Scene, Speech, count, fill_alias, record
from counsel.simulate.episodes import Counts, Episodes

NUMBERS = 2**15
"""How many random numbers are drawn at a time: few enough to stay in the cache."""


@dataclass(frozen=True, slots=True, eq=False, init=False, repr=False)
class Simulator:
    """Draws episodes of a problem.

    Parameters
    ----------
    problem
        The world and the person.

    Attributes
    ----------
    scene
        The problem as the compiled loops take it.
    draws
        How many random numbers an episode takes, whatever happens in it.

    Raises
    ------
    CounselError
        When it is no ``AdviceProblem``.

    Examples
    --------
    A thousand nights come close to what ``evaluate`` works out, and the same seed gives the same
    nights in one batch or in two:

    >>> import numpy as np
    >>> import counsel
    >>> from counsel.worlds import make
    >>> problem = make("night-shift")
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

    def __init__(self, problem: AdviceProblem) -> None:
        if not isinstance(problem, AdviceProblem):
            raise CounselError(f"expected an AdviceProblem, not {type(problem).__name__}")
        scene = _scene_of(problem)
        per_step = 2 if bool((scene.leads_lsa < 0).any()) else 1
        object.__setattr__(self, "problem", problem)
        object.__setattr__(self, "scene", scene)
        object.__setattr__(self, "draws", 2 + per_step * problem.horizon)

    def __reduce__(self) -> tuple[Any, ...]:
        return Simulator, (self.problem,)

    def __repr__(self) -> str:
        return f"Simulator({self.problem.mdp!r})"

    def play(
        self, policy: Policy | Mixture, *, episodes: int, rng: np.random.Generator
    ) -> Episodes:
        """Draw episodes and keep every decision.

        Parameters
        ----------
        policy
            What is advised: ``plan.policy``, say.
        episodes
            How many.
        rng
            Where chance comes from. Going on with the same generator goes on with the same
            sequence of episodes.

        Returns
        -------
        Episodes
            Every decision, one episode after another.

        Raises
        ------
        CounselError
            When the policy is not for this problem, or ``episodes`` is below 1.
        """
        speech = _speech_of(self.problem, policy)
        parts = [self._record(speech, u_nw) for u_nw in self.batches(episodes, rng)]
        lengths, state, advice, action, reward, next_state, terminated = (
            np.concatenate(column) for column in zip(*parts, strict=True)
        )
        return Episodes(
            first=np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths))),
            state=state,
            advice=advice,
            action=action,
            reward=reward,
            next_state=next_state,
            terminated=terminated,
            defer=self.problem.defer,
        )

    def count(self, policy: Policy | Mixture, *, episodes: int, rng: np.random.Generator) -> Counts:
        """Draw the same episodes as ``play`` and keep only how often each decision was taken.

        Parameters
        ----------
        policy
            What is advised: ``plan.policy``, say.
        episodes
            How many.
        rng
            Where chance comes from.

        Returns
        -------
        Counts
            How often each decision was taken, and what each episode brought.

        Raises
        ------
        CounselError
            As ``play`` does, and when the counts do not fit in memory.
        """
        speech, H = _speech_of(self.problem, policy), self.problem.horizon
        S, A = self.problem.n_states, self.problem.n_actions
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
            live += count(self.scene, speech, u_nw, decisions, rewards[-1], pieces[-1])
        return Counts(
            decisions=sealed(decisions),
            rewards=sealed(np.concatenate(rewards)),
            pieces=sealed(np.concatenate(pieces)),
            live=live,
        )

    def batches(self, episodes: int, rng: np.random.Generator) -> Iterator[Floats]:
        """Yield the random numbers of some episodes at a time.

        Parameters
        ----------
        episodes
            How many in all.
        rng
            Where chance comes from.

        Yields
        ------
        ndarray
            Numbers in [0, 1): [episode, draw]. The next batch overwrites them.
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

    def _record(self, speech: Speech, u_nw: Floats) -> tuple[Any, ...]:
        """Return the length of each episode, the columns of the decisions, and which ended."""
        n, most = len(u_nw), len(u_nw) * self.problem.horizon
        first = np.zeros(n + 1, dtype=np.int64)
        state, next_state = np.empty(most, dtype=np.int32), np.empty(most, dtype=np.int32)
        advice, action = np.empty(most, dtype=np.int16), np.empty(most, dtype=np.int16)
        reward, terminated = np.empty(most), np.empty(n, dtype=np.bool_)
        record(
            self.scene,
            speech,
            u_nw,
            first,
            state,
            advice,
            action,
            reward,
            next_state,
            terminated,
        )
        columns = (state, advice, action, reward, next_state)
        return np.diff(first), *(column[: first[-1]].copy() for column in columns), terminated


def _scene_of(problem: AdviceProblem) -> Scene:
    """Gather what episodes are drawn from."""
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
    theta_lsa = np.where(human.lift != 0.0, human.adherence, IDLE)
    policy_lsa = np.broadcast_to(human.policy, theta_lsa.shape)
    scene = Scene(
        person_lsc=np.concatenate((policy_lsa, theta_lsa), axis=2),
        reward_lsa=layers(mdp.reward),
        leads_lsa=leads_lsa,
        over_ls=layers(mdp.over),
        indptr=indptr,
        next_state=next_state,
        keep=keep,
        other=other,
    )
    return one_type(scene)


def _speech_of(problem: AdviceProblem, policy: Policy | Mixture) -> Speech:
    """Lay policies out as planes of one table."""
    if not isinstance(policy, Policy | Mixture):
        raise CounselError(f"expected a Policy or a Mixture, not {type(policy).__name__}")
    parts = policy.policies if isinstance(policy, Mixture) else (policy,)
    weights = policy.weights if isinstance(policy, Mixture) else (1.0,)
    planes, spends, first = [], list[int](), list[int]()
    lengths, advice, probability = [np.zeros(0, np.int64)], [np.zeros(0, np.int16)], [np.zeros(0)]
    cells = 0
    for part in parts:
        problem.check_fits(part)
        table = part.planes.astype(np.int32)
        if part.random.cell.size:
            table.reshape(-1)[part.random.cell] = -1 - cells - np.arange(part.random.cell.size)
            cells += part.random.cell.size
            lengths.append(np.diff(part.random.indptr))
            advice.append(part.random.advice)
            probability.append(part.random.probability)
        planes.append(table)
        spends += [0] + [1] * (len(table) - 1)
        first.append(len(spends) - 1)
    return Speech(
        advice_phs=np.concatenate(planes),
        spends_p=np.array(spends),
        first_j=np.array(first),
        upto_j=np.cumsum(weights),
        indptr=np.concatenate((np.zeros(1, np.int64), np.cumsum(np.concatenate(lengths)))),
        advice=np.concatenate(advice),
        probability=np.concatenate(probability),
    )
