"""The kinds of runs that the experiments are made of.

Each learns, or plans, and returns columns. Gaps are exact: what a policy falls short of the best
there is, for the penalty or within the budget it is judged by.
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from counsel._arrays import Floats
from counsel.baselines.uc_cfh import UCCFH
from counsel.experiments.experiment import Rows, padded
from counsel.learning.learn import learn
from counsel.learning.reward_free import RewardFreeLearner
from counsel.learning.rfe import RFE
from counsel.learning.structured import Structured
from counsel.model.policy import HardPolicy, Policy
from counsel.model.problem import AdviceProblem, machine_rewards
from counsel.planning.evaluate import evaluate
from counsel.planning.solve import solve
from counsel.runs.spec import Spec
from counsel.simulate.episodes import Episodes
from counsel.simulate.simulator import Simulator
from counsel.worlds.catalogue import make
from counsel.worlds.flappy_bird import next_column
from counsel.worlds.grid_map import MOVES


@dataclass(frozen=True, slots=True, kw_only=True)
class Learning:
    """A learner judged at every update: episode, value_gap, regret, advice_count.

    Attributes
    ----------
    id
        Which run.
    spec
        The settings, as for ``counsel learn``.
    adherence
        The person's adherence where it is not the world's own.
    records
        About how many rows.
    """

    id: str
    spec: Spec
    adherence: str | None = None
    records: int = 200

    def rows(self) -> Rows:
        """Learn, and return the records."""
        problem = world_of(self.spec.world, self.adherence)
        learner, rng = self.spec.build(problem)
        records = list(
            learn(
                learner,
                Simulator(problem),
                episodes=self.spec.episodes,
                every=self.spec.schedule,
                records=self.records,
                rng=rng,
            )
        )
        names = ("episode", "value_gap", "regret", "advice_count")
        return {name: np.array([getattr(record, name) for record in records]) for name in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """Exploration without a goal, judged for several penalties.

    Rows with ``when`` 0 are judged before each update, on ``explored`` episodes, and charged with
    the block up to ``episode``: penalty, value_gap, advice_count, regret so far, and the best there
    is. Rows with ``when`` 1 are judged after the last, for the penalties ``asked`` too. Other
    columns have a length of their own: ``advice_rate``, the expected pieces of advice at each step
    at the penalty ``shown``, and the commonest flight there.

    Attributes
    ----------
    id, world, episodes, every, seed
        Which run, where, how long, and after how many episodes it plans anew.
    learner
        "rfe" or "structured".
    scale
        What the bonus is multiplied by.
    pooled
        Whether adherence is shared by advice (structured only).
    penalties, asked
        For which it is judged all along, and at the end.
    shown
        The penalty of flights; NaN for none.
    """

    id: str
    world: str
    episodes: int
    every: int
    seed: int
    learner: str = "rfe"
    scale: float = 0.1
    pooled: bool = False
    penalties: tuple[float, ...] = (0.0,)
    asked: tuple[float, ...] = ()
    shown: float = float("nan")

    def rows(self) -> Rows:
        """Explore, and judge what would be advised."""
        problem = make(self.world)
        own, play, flights = np.random.default_rng(self.seed).spawn(3)
        learner, simulator = self.build(problem, own), Simulator(problem)
        best = {b: solve(problem, penalty=b).penalised_value for b in self.penalties}
        regret, lines = dict.fromkeys(self.penalties, 0.0), list[tuple[float, ...]]()
        left = self.episodes
        while left > 0:
            size = min(self.every, left)
            for penalty in self.penalties:
                gap, pieces = judged(problem, learner, penalty, best[penalty])
                regret[penalty] += size * max(gap, 0.0)
                done = self.episodes - left + size
                told = (gap, pieces, regret[penalty], best[penalty])
                lines.append((0, done, done - size, penalty, *told))
            learner.explore(simulator, episodes=size, rng=play)
            left -= size
        for penalty in (*self.penalties, *self.asked):
            value = solve(problem, penalty=penalty).penalised_value
            gap, pieces = judged(problem, learner, penalty, value)
            told = (gap, pieces, np.nan, value)
            lines.append((1, self.episodes, self.episodes, penalty, *told))
        where, what = ("when", "episode", "explored", "penalty"), ("value_gap", "advice_count")
        table = _columns((*where, *what, "regret", "best"), lines)
        if np.isnan(self.shown):
            return table
        return padded(table | dict(self._flight(problem, learner, simulator, flights)))

    def build(self, problem: AdviceProblem, rng: Generator) -> RewardFreeLearner:
        """Return the explorer."""
        if self.learner == "structured":
            groups = np.arange(problem.n_actions) if self.pooled else None
            return Structured(problem.shape, rng=rng, groups=groups, reward=problem.mdp.reward)
        return RFE(problem.shape, rng=rng, scale=self.scale, reward=problem.mdp.reward)

    def _flight(
        self,
        problem: AdviceProblem,
        learner: RewardFreeLearner,
        simulator: Simulator,
        rng: Generator,
    ) -> Rows:
        """Return the advice at each step and the commonest of many flights, at ``shown``."""
        policy = policy_of(learner, self.shown, problem.n_actions)
        rate = evaluate(problem, policy).advice_rate
        played = simulator.play(policy, episodes=500, rng=rng)
        first, last = commonest(played)
        return {
            "advice_rate": np.asarray(rate),
            "flight_state": played.state[first:last].astype(np.int64),
            "flight_advice": played.advice[first:last].astype(np.int64),
            "flight_action": played.action[first:last].astype(np.int64),
            "flight_next_state": played.next_state[first:last].astype(np.int64),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgeted:
    """Learning within one budget, then planning for others on what was seen.

    Rows with ``when`` 0 are judged at first and after each update, rows with ``when`` 1 after the
    last, for the budget learnt and for the others: episode, budget, value_gap, advice_gap (the
    budget less the expected pieces of advice).

    Attributes
    ----------
    id, world, episodes, every, seed
        Which run, where, how long, and after how many episodes it plans anew.
    learner
        "rfe-cmdp" or "uc-cfh".
    budget, others
        The budget that is learnt, and those that are planned for afterwards.
    """

    id: str
    world: str
    episodes: int
    every: int
    seed: int
    learner: str
    budget: float = 1.0
    others: tuple[float, ...] = (2.0, 3.0, 4.0, 5.0)

    def rows(self) -> Rows:
        """Learn, and judge."""
        problem = make(self.world)
        own, play = np.random.default_rng(self.seed).spawn(2)
        learner, simulator = self.build(problem, own), Simulator(problem)
        best = {d: solve(problem, budget=d).value for d in (self.budget, *self.others)}
        lines, left = list[tuple[float, ...]](), self.episodes
        while left > 0:
            size = min(self.every, left)
            policy = learner.policy
            lines.append((0, self.episodes - left, *self._judged(problem, policy, best)))
            if isinstance(learner, RFE):
                learner.explore(simulator, episodes=size, rng=play)
            else:
                learner.update(simulator.play(policy, episodes=size, rng=play))
            left -= size
        lines.append((0, self.episodes, *self._judged(problem, learner.policy, best)))
        for budget in (self.budget, *self.others):
            policy = learner.plan(budget=budget).policy
            lines.append((1, self.episodes, *self._judged(problem, policy, best, budget)))
        names = ("when", "episode", "budget", "value_gap", "advice_gap")
        return _columns(names, lines)

    def build(self, problem: AdviceProblem, rng: Generator) -> RFE | UCCFH:
        """Return the learner."""
        if self.learner == "uc-cfh":
            return UCCFH(
                problem.shape,
                rng=rng,
                reward=machine_rewards(problem),
                budget=self.budget,
                epsilon=1.0,
                delta=0.5,
                support=next_column(problem),
            )
        reward = problem.mdp.reward
        return RFE(problem.shape, rng=rng, scale=0.1, reward=reward, budget=self.budget)

    def _judged(
        self,
        problem: AdviceProblem,
        policy: Policy | HardPolicy,
        best: dict[float, float],
        budget: float | None = None,
    ) -> tuple[float, float, float]:
        limit = self.budget if budget is None else budget
        worth = evaluate(problem, policy)
        return limit, best[limit] - worth.value, limit - worth.advice_count


def _columns(names: tuple[str, ...], lines: list[tuple[float, ...]]) -> dict[str, Floats]:
    columns = zip(*lines, strict=True)
    return {name: np.array(column, float) for name, column in zip(names, columns, strict=True)}


def world_of(name: str, adherence: str | None) -> AdviceProblem:
    """Return a world, with another adherence where one is given."""
    return make(name) if adherence is None else make(name, adherence=adherence)


def policy_of(learner: RewardFreeLearner, penalty: float, n_actions: int) -> Policy:
    """Return what would be advised at a penalty."""
    return Policy.trusted(learner.best_advice(penalty), n_actions=n_actions)


def judged(
    problem: AdviceProblem, learner: RewardFreeLearner, penalty: float, best: float
) -> tuple[float, float]:
    """Return what the policy for a penalty falls short of the best, and its pieces of advice."""
    worth = evaluate(problem, policy_of(learner, penalty, problem.n_actions))
    return best - (worth.value - penalty * worth.advice_count), worth.advice_count


def commonest(played: Episodes) -> tuple[int, int]:
    """Return the rows of an episode that came about most often, the first of those."""
    seen: dict[bytes, list[int]] = {}
    for n in range(len(played)):
        part = slice(played.first[n], played.first[n + 1])
        moves = np.stack((played.state[part], played.advice[part], played.action[part]))
        seen.setdefault(moves.tobytes(), []).append(n)
    n = max(seen.values(), key=len)[0]
    return int(played.first[n]), int(played.first[n + 1])


def flight_of(run: Rows, prefix: str = "") -> Episodes:
    """Return the flight in a run's columns state, advice, action and next_state."""
    n = int((run[f"{prefix}state"] >= 0).sum())
    return Episodes(
        first=np.array([0, n]),
        state=run[f"{prefix}state"][:n].astype(np.int32),
        advice=run[f"{prefix}advice"][:n].astype(np.int16),
        action=run[f"{prefix}action"][:n].astype(np.int16),
        reward=np.zeros(n),
        next_state=run[f"{prefix}next_state"][:n].astype(np.int32),
        terminated=np.array([True]),
        defer=len(MOVES),
    )
