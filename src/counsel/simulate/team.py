"""A team of people who share the pieces of each step, simulated all at once.

Everybody takes the same numbers from the generator in every episode, so that the same seed gives
the same luck under another policy, and the same episodes in one batch or in many.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from counsel._arrays import Floats, Ints, brief, check_rng, one_type, sealed, whole
from counsel.errors import CounselError
from counsel.model.differences import first_difference
from counsel.model.problem import AdviceProblem
from counsel.model.rewards import bernoulli
from counsel.model.team_policy import TeamPolicy, read_counts
from counsel.simulate._team_kernels import (
    TIES,
    Crowd,
    Turns,
    begin,
    choose_turns,
    line_up,
    move,
)
from counsel.simulate.simulator import Simulator

NUMBERS = 2**23
"""The number of random numbers per batch of episodes."""


class PlanForTeam(Protocol):
    """A plan with a policy for a team and an upper bound on its value, e.g. ``TeamPlan``."""

    @property
    def policy(self) -> TeamPolicy:
        """Whom to advise, and what to say."""

    @property
    def bound(self) -> float:
        """An upper bound on the expected reward of the team."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TeamEvaluation:
    """What a policy earns for a team in simulated episodes: the result of ``Team.evaluate``.

    Attributes
    ----------
    value, interval
        Mean reward of the whole team per episode, and its 95 % interval.
    bound
        The upper bound of the plan; None for a policy without a plan.
    rewards
        The reward of the whole team in each episode [episode].
    pieces
        Mean number of people advised at each step [h].
    most_pieces
        The largest number of people advised in the same step, over all episodes.
    longest_wait
        The largest number of steps that anybody waited for a piece, over all episodes.

    Examples
    --------
    Nurses call a doctor to one of five patients at random, in every round:

    >>> import numpy as np
    >>> import counsel
    >>> ward, anything = counsel.make("ward"), np.ones((6, 5))
    >>> policy = counsel.simulate.TeamPolicy(
    ...     1, advice=[np.full((6, 5), 2)], priority=[anything]
    ... )
    >>> team = counsel.Team([ward], counts=[5])
    >>> outcome = team.evaluate(policy, episodes=100, rng=np.random.default_rng(0))
    >>> outcome.pieces.tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """

    value: float
    interval: tuple[float, float]
    bound: float | None
    rewards: Floats
    pieces: Floats
    most_pieces: int
    longest_wait: int

    @property
    def gap(self) -> float | None:
        """How far the value is below the bound, as a share of the bound."""
        if self.bound is None:
            return None
        return (self.bound - self.value) / abs(self.bound) if self.bound else 0.0

    def __repr__(self) -> str:
        gap = "" if self.gap is None else f", {self.gap:.2%} below the bound"
        low, high = self.interval
        return f"TeamEvaluation(value {self.value:.6g}, 95 % {low:.6g} to {high:.6g}{gap})"


@dataclass(frozen=True, slots=True, eq=False, init=False, repr=False)
class Team:
    """Simulate people who share a number of pieces per step.

    Parameters
    ----------
    people
        A problem for each kind of person, all with the same horizon.
    counts
        How many people are like each entry of ``people``, by default one.

    Attributes
    ----------
    simulators
        The simulator of each kind of person.

    Raises
    ------
    CounselError
        If the team is empty, an entry is not a problem, horizons differ, or a count is not a whole
        number of at least 1.

    Examples
    --------
    A hundred mothers and ten calls per week:

    >>> import numpy as np
    >>> import counsel
    >>> mothers = [counsel.make("call-centre"), counsel.make("call-centre/working")]
    >>> plan = counsel.share(mothers, per_step=10, counts=[60, 40])
    >>> team = counsel.Team(mothers, counts=[60, 40])
    >>> team
    Team(100 people of 2 kinds)
    >>> outcome = team.evaluate(plan, episodes=200, rng=np.random.default_rng(0))
    >>> outcome.most_pieces, outcome.gap < 0.02
    (10, True)
    """

    people: tuple[AdviceProblem, ...]
    counts: Ints
    simulators: tuple[Simulator, ...]

    def __init__(self, people: Sequence[AdviceProblem], counts: ArrayLike | None = None) -> None:
        if not isinstance(people, Sequence) or isinstance(people, str) or not people:
            raise CounselError(f"people is {brief(people)}; give a list of at least one problem")
        for i, person in enumerate(people):
            if not isinstance(person, AdviceProblem):
                raise CounselError(f"people[{i}] is {brief(person)}; give a problem")
            if person.horizon != people[0].horizon:
                raise CounselError(
                    f"people[0] has {people[0].horizon} steps and people[{i}] has "
                    f"{person.horizon}; people of a team have the same horizon"
                )
        known: dict[int, Simulator] = {}
        simulators = [known.setdefault(id(p), Simulator(p)) for p in people]
        object.__setattr__(self, "people", tuple(people))
        object.__setattr__(self, "counts", sealed(read_counts(counts, len(people))))
        object.__setattr__(self, "simulators", tuple(simulators))

    def __reduce__(self) -> tuple[Any, ...]:
        return Team, (self.people, self.counts)

    def __repr__(self) -> str:
        kinds = f"{len(self.people)} kind{'' if len(self.people) == 1 else 's'}"
        return f"Team({len(self)} people of {kinds})"

    def __len__(self) -> int:
        return int(self.counts.sum())

    def evaluate(
        self, plan: TeamPolicy | PlanForTeam, *, episodes: int, rng: np.random.Generator
    ) -> TeamEvaluation:
        """Simulate a policy and return what it earns.

        Parameters
        ----------
        plan
            The result of ``share`` with ``per_step`` for this team, or a ``TeamPolicy``.
        episodes
            The number of episodes, at least 2.
        rng
            The random generator.

        Returns
        -------
        TeamEvaluation
            The value, and how far it is below the bound of the plan.

        Raises
        ------
        CounselError
            If the plan is for another team, ``episodes`` is below 2 or ``rng`` is not a generator.
        """
        policy, bound = _read_plan(plan)
        self._check_same_team(getattr(plan, "members", None))
        n = whole("episodes", episodes, least=2)
        check_rng(rng)
        policy.check_fits(self.people, self.counts)
        turns = self._turns(policy)
        rewards, H = np.zeros(n), self.people[0].horizon
        pieces_h, most, wait, done = np.zeros(H), 0, 0, 0
        for start_en, u_ehnw in self._batches(n, rng):
            part = rewards[done : done + len(start_en)]
            advised_h, batch_most, batch_wait = self._play(policy, turns, start_en, u_ehnw, part)
            pieces_h += advised_h
            most, wait = max(most, batch_most), max(wait, batch_wait)
            done += len(start_en)
        return TeamEvaluation(
            value=float(rewards.mean()),
            interval=_interval(rewards),
            bound=bound,
            rewards=sealed(rewards),
            pieces=sealed(pieces_h / n),
            most_pieces=most,
            longest_wait=wait,
        )

    def _check_same_team(self, members: Sequence[Any] | None) -> None:
        """Raise if a plan with members is for other people, whose bound would be another."""
        if members is None:
            return
        if len(members) != len(self.people):
            raise CounselError(
                f"the plan is for {len(members)} kinds of people; the team has {len(self.people)}"
            )
        for i, (member, person, count) in enumerate(
            zip(members, self.people, self.counts.tolist(), strict=True)
        ):
            if member.count != count:
                raise CounselError(
                    f"the plan is for another team: counts[{i}] is {member.count} in the plan and "
                    f"{count} in the team; share anew, or evaluate plan.policy without its bound"
                )
            difference = first_difference(member.problem, person)
            if difference is not None:
                raise CounselError(
                    f"the plan is for another team: people[{i}] of the plan and of the team differ "
                    f"in {difference}; share anew, or evaluate plan.policy without its bound"
                )

    @property
    def _width(self) -> int:
        """The number of random numbers of a person at a step."""
        H = self.people[0].horizon
        return TIES + max((simulator.draws - 2) // H for simulator in self.simulators)

    def _batches(self, episodes: int, rng: np.random.Generator) -> Iterator[tuple[Floats, Floats]]:
        """Yield the numbers that draw the starts [e, n] and the steps [e, h, n, w] of episodes."""
        H, N, W = self.people[0].horizon, len(self), self._width
        size = N * (1 + H * W)
        most = max(1, min(episodes, NUMBERS // size))
        u_ex = np.empty((most, size))
        for first in range(0, episodes, most):
            part_ex = u_ex[: min(most, episodes - first)]
            rng.random(out=part_ex)
            yield part_ex[:, :N], part_ex[:, N:].reshape(-1, H, N, W)

    def _runs(self) -> list[tuple[int, int]]:
        """Return the columns of each kind of person."""
        ends = np.cumsum(self.counts).tolist()
        return list(zip([0, *ends[:-1]], ends, strict=True))

    def _turns(self, policy: TeamPolicy) -> list[Turns]:
        """Return the tables of each kind with priorities as orders: 1, 2, … at each step."""
        planes = []
        for person, *tables in zip(
            self.people, policy.advice, policy.priority, policy.chance, strict=True
        ):
            shape = (person.n_levels, person.horizon, person.n_states)
            planes.append([np.broadcast_to(table, shape) for table in tables])
        order_n = [np.zeros(advice.shape, dtype=np.int64) for advice, _, _ in planes]
        for h in range(self.people[0].horizon):
            step_n = [priority[:, h].reshape(-1) for _, priority, _ in planes]
            values = np.unique(np.maximum(np.concatenate(step_n), 0.0))
            begin_at = 0 if values[0] == 0.0 else 1
            for order, step in zip(order_n, step_n, strict=True):
                at = np.searchsorted(values, np.maximum(step, 0.0)) + begin_at
                order[:, h] = at.reshape(order[:, h].shape)
        return [
            one_type(Turns(advice, order, chance))
            for (advice, _, chance), order in zip(planes, order_n, strict=True)
        ]

    def _play(
        self,
        policy: TeamPolicy,
        turns: Sequence[Turns],
        start_en: Floats,
        u_ehnw: Floats,
        reward_e: Floats,
    ) -> tuple[Floats, int, int]:
        """Play episodes; add up rewards, and return pieces per step, their most, and waits."""
        H, (E, N) = self.people[0].horizon, start_en.shape
        crowd = Crowd(
            state_en=np.zeros((E, N), dtype=np.int64),
            level_en=np.zeros((E, N), dtype=np.int64),
            wait_en=np.zeros((E, N), dtype=np.int64),
            key_en=np.zeros((E, N)),
            is_advised_en=np.zeros((E, N), dtype=np.bool_),
            action_en=np.zeros((E, N), dtype=np.int64),
            waits_en=np.zeros((E, N), dtype=np.bool_),
        )
        limits = (policy.per_step, -1 if policy.longest_wait is None else policy.longest_wait)
        kinds = list(zip(self.simulators, turns, self._runs(), strict=True))
        pieces_h, most, wait = np.zeros(H), 0, 0
        for simulator, _, run in kinds:
            begin(simulator.scene, run, start_en, crowd)
        for h in range(H):
            u_enw = u_ehnw[:, h]
            for simulator, table, run in kinds:
                line_up(simulator.scene, table, h, run, u_enw, crowd)
            choose_turns(h, H, limits, crowd)
            wait = max(wait, _longest(crowd))
            for simulator, table, run in kinds:
                self._move(simulator, table, h, run, u_enw, crowd, reward_e)
            advised_e = crowd.is_advised_en.sum(axis=1)
            pieces_h[h] = advised_e.sum()
            most = max(most, int(advised_e.max()))
        return pieces_h, most, wait

    @staticmethod
    def _move(  # noqa: PLR0913 (the arguments of the kernel)
        simulator: Simulator,
        turns: Turns,
        h: int,
        run: tuple[int, int],
        u_enw: Floats,
        crowd: Crowd,
        reward_e: Floats,
    ) -> None:
        """Move the people of one kind; rewards of a law in Python are drawn here."""
        problem, columns = simulator.problem, slice(*run)
        if problem.reward_law in (None, bernoulli):
            move(simulator.scene, turns, h, run, u_enw, crowd, reward_e)
            return
        state_en = crowd.state_en[:, columns].copy()
        move(simulator.scene, turns, h, run, u_enw, crowd, np.zeros(len(reward_e)))
        lives_en = crowd.waits_en[:, columns]
        cells = np.full(int(lives_en.sum()), h), state_en[lives_en]
        action_x = crowd.action_en[:, columns][lives_en]
        drawn_en = np.zeros(lives_en.shape)
        drawn_en[lives_en] = problem.draw_rewards(*cells, action_x, u_enw[:, columns, -1][lives_en])
        reward_e += drawn_en.sum(axis=1)


def _longest(crowd: Crowd) -> int:
    """Return the longest wait of somebody who is not advised at this step, this step included."""
    silent = crowd.waits_en & ~crowd.is_advised_en
    return int((crowd.wait_en + 1)[silent].max(initial=0))


def _interval(rewards: Floats) -> tuple[float, float]:
    """Return the 95 % interval of the mean reward of an episode."""
    from scipy.special import stdtrit

    n, mean = rewards.size, float(rewards.mean())
    half = float(stdtrit(n - 1.0, 0.975) * rewards.std(ddof=1) / np.sqrt(n))
    return mean - half, mean + half


def _read_plan(plan: object) -> tuple[TeamPolicy, float | None]:
    if isinstance(plan, TeamPolicy):
        return plan, None
    policy, bound = getattr(plan, "policy", None), getattr(plan, "bound", None)
    if isinstance(policy, TeamPolicy) and isinstance(bound, float):
        return policy, bound
    raise CounselError(
        f"plan is {brief(plan)}; give a TeamPolicy, or the result of share with per_step"
    )
