"""The kinds of runs that several experiments use.

Each run learns or plans, and returns columns. Value gaps are exact: the shortfall of a policy
against the best policy, for the same penalty or within the same budget.
"""

import math
from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import Generator

from counsel._arrays import Floats
from counsel.baselines.uc_cfh import UCCFH
from counsel.experiments.experiment import Size
from counsel.experiments.map_families import problem_of
from counsel.experiments.rows import Rows, pad_columns, to_columns
from counsel.learning.charges import net_value
from counsel.learning.learn import learn
from counsel.learning.learner import Learner
from counsel.learning.reward_free import RewardFreeLearner
from counsel.learning.rfe import RFE
from counsel.learning.structured import Structured
from counsel.model.machine import machine_rewards
from counsel.model.policy import Policy
from counsel.model.problem import AdviceProblem
from counsel.planning.evaluate import evaluate
from counsel.planning.solve import solve
from counsel.runs.spec import Spec
from counsel.simulate.episodes import Episodes
from counsel.simulate.simulator import Simulator
from counsel.worlds.flappy_bird import next_column
from counsel.worlds.grid_map import MOVES

FLIGHT = ("state", "advice", "action", "next_state")  # the columns of a flight


@dataclass(frozen=True, slots=True, kw_only=True)
class Learning:
    """A learner evaluated at every update: episode, value_gap, regret, advice_count.

    The same in every row are ``first_gap`` and ``end_gap``, the value gaps before the first and
    after the last episode; ``regret_after``, the final regret if every block is charged with the
    policy planned after it; ``burn_in_regret``, what the episodes before the run lost; and
    ``reverse``, how much the best advice that never repels loses per episode.

    ``family`` replaces the map of the world by the map of this seed, ``adherence`` the adherence;
    there are about ``records`` rows.
    """

    id: str
    spec: Spec
    family: str = ""
    adherence: str | None = None
    records: int = 200

    def rows(self) -> Rows:
        spec, burn_in = self.spec, self.spec.burn_in or 0
        overrides = {} if self.adherence is None else {"adherence": self.adherence}
        problem = problem_of(spec.world, self.family, spec.seed, **overrides)
        best = solve(problem, penalty=spec.penalty).penalised_value

        def gap(policy: Policy) -> float:
            return best - net_value(evaluate(problem, policy), spec.penalty_or_zero)

        learner, rng = spec.build(problem)
        first = gap(learner.policy)
        names = ("episode", "value_gap", "regret", "advice_count")
        columns = play_columns(learner, spec, problem, rng, names, self.records)
        end = gap(learner.policy)
        no_reverse = solve(problem, penalty=spec.penalty, allow_reverse=False).penalised_value
        same = {
            "first_gap": first,
            "end_gap": end,
            "regret_after": _charged_after(columns, spec, first, end),
            "burn_in_regret": burn_in * gap(uniform_advice(problem)) if burn_in else 0.0,
            "reverse": best - no_reverse,
        }
        size = columns["regret"].size
        return columns | {name: np.full(size, value) for name, value in same.items()}


def _charged_after(columns: Rows, spec: Spec, first: float, end: float) -> float:
    """Return the final regret if every block is charged with the policy planned after it.

    ``first`` and ``end`` are the value gaps before the first and after the last block. All blocks
    but the last have the same size; NaN for blocks that grow.
    """
    if isinstance(spec.schedule, str):
        return math.nan
    every = min(spec.schedule, spec.episodes)
    last = (spec.episodes - 1) % every + 1
    gaps = np.maximum([first, columns["value_gap"][-1], end], 0.0)
    return float(columns["regret"][-1] + gaps @ [-every, every - last, last])


def uniform_advice(problem: AdviceProblem) -> Policy:
    """Return the policy that draws its advice, or silence, uniformly."""
    H, S, A = problem.mdp.reward.shape
    return Policy.from_probabilities(np.full((H, S, A + 1), 1.0 / (A + 1)))


def learn_columns(
    spec: Spec, problem: AdviceProblem, names: tuple[str, ...], records: int
) -> dict[str, Floats]:
    """Run a learner, and return these columns of about so many records."""
    learner, rng = spec.build(problem)
    return play_columns(learner, spec, problem, rng, names, records)


def play_columns(  # noqa: PLR0913 (a learner, its settings, and what to record)
    learner: Learner,
    spec: Spec,
    problem: AdviceProblem,
    rng: Generator,
    names: tuple[str, ...],
    records: int,
) -> dict[str, Floats]:
    """Run a learner that is built, and return these columns of about so many records."""
    blocks = learn(
        learner,
        Simulator(problem),
        episodes=spec.episodes,
        every=spec.schedule,
        records=records,
        rng=rng,
    )
    rows = list(blocks)
    return {name: np.array([getattr(row, name) for row in rows]) for name in names}


def learning_runs(
    name: str, spec: Spec, size: Size, *, family: str = "", adherence: str | None = None
) -> list[Learning]:
    """Return the runs of a learner with every seed; with a family, each on the map of its seed."""
    return [
        Learning(
            id=f"{name}#{seed}",
            spec=replace(spec, seed=seed),
            family=family,
            adherence=adherence,
        )
        for seed in size.repeats
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exploration:
    """A learner of person and world, planned every so many episodes.

    ``family`` replaces the map of the world by the map of this seed.
    """

    id: str
    world: str
    episodes: int
    every: int
    seed: int
    family: str = ""

    def problem(self) -> AdviceProblem:
        return problem_of(self.world, self.family, self.seed)

    @classmethod
    def repeat(
        cls,
        name: str,
        full: int,
        every: int,
        size: Size,
        **settings: Any,  # noqa: ANN401 (those of the kind)
    ) -> tuple[Self, ...]:
        """Return the runs with every seed; ``full`` and ``every`` are those of the paper."""
        episodes, every = size.episodes(full), size.every(every, full)
        return tuple(
            cls(id=f"{name}#{seed}", episodes=episodes, every=every, seed=seed, **settings)
            for seed in size.repeats
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery(Exploration):
    """Reward-free exploration, evaluated for several penalties.

    Rows with ``when`` 0 hold the evaluation before each update, after ``explored`` episodes, and
    are charged with the block up to ``episode``: penalty, value_gap, advice_count, regret so far,
    and the best value. Rows with ``when`` 1 hold the evaluation after the last update, for the
    penalties ``asked`` too. The other columns have lengths of their own: ``advice_rate``, the
    expected pieces of advice at each step at the penalty ``shown`` (NaN for none), and the most
    common flight.

    ``learner`` is "rfe" or "structured", ``scale`` a factor on the bonus, and ``pooled`` whether
    adherence is shared by advice (structured only).
    """

    learner: str = "rfe"
    scale: float = 0.1
    pooled: bool = False
    penalties: tuple[float, ...] = (0.0,)
    asked: tuple[float, ...] = ()
    shown: float = float("nan")

    def rows(self) -> Rows:
        problem = self.problem()
        learner_rng, episode_rng, flight_rng = np.random.default_rng(self.seed).spawn(3)
        learner, simulator = self.build(problem, learner_rng), Simulator(problem)
        best = {b: solve(problem, penalty=b).penalised_value for b in self.penalties}
        regret, lines = dict.fromkeys(self.penalties, 0.0), list[tuple[float, ...]]()

        def policy_at(penalty: float) -> Policy:
            return Policy.trusted(learner.best_advice(penalty), n_actions=problem.n_actions)

        def value_gap(penalty: float, best: float) -> tuple[float, float]:
            evaluation = evaluate(problem, policy_at(penalty))
            return best - net_value(evaluation, penalty), evaluation.advice_count

        for begin in range(0, self.episodes, self.every):
            size = min(self.every, self.episodes - begin)
            for penalty in self.penalties:
                gap, pieces = value_gap(penalty, best[penalty])
                regret[penalty] += size * max(gap, 0.0)
                numbers = (gap, pieces, regret[penalty], best[penalty])
                lines.append((0, begin + size, begin, penalty, *numbers))
            learner.explore(simulator, episodes=size, rng=episode_rng)
        for penalty in (*self.penalties, *self.asked):
            value = solve(problem, penalty=penalty).penalised_value
            gap, pieces = value_gap(penalty, value)
            numbers = (gap, pieces, np.nan, value)
            lines.append((1, self.episodes, self.episodes, penalty, *numbers))
        names = ("when", "episode", "explored", "penalty", "value_gap", "advice_count", "regret")
        columns = to_columns((*names, "best"), lines)
        if np.isnan(self.shown):
            return columns
        policy = policy_at(self.shown)
        flights = simulator.play(policy, episodes=500, rng=flight_rng)
        return pad_columns(
            columns
            | {"advice_rate": np.asarray(evaluate(problem, policy).advice_rate)}
            | most_common_flight(flights, "flight_")
        )

    def build(self, problem: AdviceProblem, rng: Generator) -> RewardFreeLearner:
        if self.learner == "structured":
            groups = np.arange(problem.n_actions) if self.pooled else None
            return Structured(problem.shape, rng=rng, groups=groups, reward=problem.mdp.reward)
        return RFE(problem.shape, rng=rng, scale=self.scale, reward=problem.mdp.reward)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetLearning(Exploration):
    """Learning within one budget, then planning for other budgets on the same counts.

    Rows with ``when`` 0 hold the evaluation at the start and after each update, rows with ``when``
    1 that after the last update, for every budget: episode, budget, value_gap, advice_gap (the
    budget less the expected cost of advice).

    ``learner`` is "rfe-cmdp" or "uc-cfh", ``scale`` the factor on its bonus.
    """

    kind: ClassVar[str] = "Budgeted"

    learner: str
    scale: float
    budget: float = 1.0
    others: tuple[float, ...] = (2.0, 3.0, 4.0, 5.0)

    def rows(self) -> Rows:
        problem = self.problem()
        own, play = np.random.default_rng(self.seed).spawn(2)
        learner, simulator = self.build(problem, own), Simulator(problem)
        best = {d: solve(problem, budget=d).value for d in (self.budget, *self.others)}
        lines = list[tuple[float, ...]]()

        def evaluate_at(when: int, episode: int, policy: Policy, budget: float) -> None:
            evaluation = evaluate(problem, policy)
            gaps = best[budget] - evaluation.value, budget - evaluation.advice_cost
            lines.append((when, episode, budget, *gaps))

        for begin in range(0, self.episodes, self.every):
            size, policy = min(self.every, self.episodes - begin), learner.policy
            evaluate_at(0, begin, policy, self.budget)
            if isinstance(learner, RFE):
                learner.explore(simulator, episodes=size, rng=play)
            else:
                learner.update(simulator.play(policy, episodes=size, rng=play))
        evaluate_at(0, self.episodes, learner.policy, self.budget)
        for budget in (self.budget, *self.others):
            evaluate_at(1, self.episodes, learner.plan(budget=budget).policy, budget)
        return to_columns(("when", "episode", "budget", "value_gap", "advice_gap"), lines)

    def build(self, problem: AdviceProblem, rng: Generator) -> RFE | UCCFH:
        if self.learner == "uc-cfh":
            return UCCFH(
                problem.shape,
                rng=rng,
                reward=machine_rewards(problem),
                budget=self.budget,
                epsilon=1.0,
                delta=0.5,
                scale=self.scale,
                support=next_column(problem),
            )
        reward = problem.mdp.reward
        return RFE(problem.shape, rng=rng, scale=self.scale, reward=reward, budget=self.budget)


def most_common_flight(flights: Episodes, prefix: str = "") -> dict[str, np.ndarray]:
    """Return the most frequent flight as columns; of several, the one that came first."""
    first, end = most_common(flights)
    columns = {name: getattr(flights, name)[first:end] for name in FLIGHT}
    return {f"{prefix}{name}": column.astype(np.int64) for name, column in columns.items()}


def most_common(episodes: Episodes) -> tuple[int, int]:
    """Return the first row and the end of the most frequent episode, or of the first of several."""
    decisions = np.stack((episodes.state, episodes.advice, episodes.action))
    bounds = list(pairwise(episodes.first.tolist()))
    played = [decisions[:, first:end].tobytes() for first, end in bounds]
    return bounds[played.index(Counter(played).most_common(1)[0][0])]


def flight_of(run: Rows, prefix: str = "") -> Episodes:
    """Return the flight in the columns of a run."""
    n = int((run[f"{prefix}state"] >= 0).sum())
    state, advice, action, next_state = (run[f"{prefix}{name}"][:n] for name in FLIGHT)
    return Episodes(
        first=np.array([0, n]),
        state=state.astype(np.int32),
        advice=advice.astype(np.int16),
        action=action.astype(np.int16),
        reward=np.zeros(n),
        next_state=next_state.astype(np.int32),
        terminated=np.array([True]),
        defer=len(MOVES),
    )
