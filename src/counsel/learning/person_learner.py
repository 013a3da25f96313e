"""The learner of one person of a population."""

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator

from counsel._arrays import Ints, check_rng
from counsel.errors import CounselError
from counsel.estimate.person import PersonEstimate
from counsel.learning.arguments import read_limit
from counsel.learning.learner import LevelLearner, Resumable, documented_by
from counsel.learning.levels import levels_of
from counsel.learning.live_play import EpisodeBuffer
from counsel.learning.saved_state import SavedState
from counsel.model.memory import Memory
from counsel.model.policy import Policy
from counsel.simulate.episodes import Episodes
from counsel.simulate.move import Move

if TYPE_CHECKING:
    from counsel.learning.population import Limit, PersonPlan, Population

NO_LEVEL = -1
"""The level of people without a memory, where levels are numbers."""

_ESTIMATE = tuple(field.name for field in fields(PersonEstimate))


@documented_by(LevelLearner, Resumable)
class PersonLearner:
    """Advises one person of a population; ``Population.learner`` makes it."""

    def __init__(
        self, population: "Population", person: int, limit: "Limit", rng: Generator | None
    ) -> None:
        if rng is not None:
            check_rng(rng)
        elif population.algorithm == "thompson":
            raise CounselError("Thompson sampling draws lifts; give rng")
        self.population, self.person, self.rng = population, person, rng
        H = population.setting.mdp.horizon
        self.penalty, self.budget = read_limit(limit.penalty or 0.0, limit.budget, H)
        self.episode = 0
        self._limit = limit
        self._plan: PersonPlan | None = None
        has_levels = population.memory is not None
        self._buffer = EpisodeBuffer(population.setting.policy.shape[2], has_levels=has_levels)
        self._saved = SavedState(self, self._buffer)

    @property
    def memory(self) -> Memory | None:
        return self.population.memory

    @property
    def policy(self) -> Policy:
        if self._plan is None or self.population.has_moved(self._plan.decisions, self.person):
            self._plan = self.population.plan(self.person, self._limit, self.rng)
        return self._plan.plan.policy

    def update(self, batch: Episodes) -> None:
        H, S, A = self.population.setting.policy.shape
        batch.check_fits(H, S, A)
        level = np.full(batch.state.size, NO_LEVEL)
        if self.memory is not None:
            level = levels_of(batch, self.memory)
        cells = np.stack((batch.state, batch.advice, batch.action, level)).astype(np.int64)
        kinds, times = np.unique(cells, axis=1, return_counts=True)
        for cell, count in zip(kinds.T.tolist(), times.tolist(), strict=True):
            s, advice, action, m = cell
            heard, on_level = None if advice == A else advice, None if m == NO_LEVEL else m
            self.population.counts.add(self.person, (s, heard, action), count, on_level)
        self.episode += len(batch)

    def advise(self, step: int, state: int, level: int | None = None) -> int:
        policy = self.policy
        left = policy.left_after(self._spent())
        return policy.draw(step, state, self.rng, pieces_left=left, level=level)

    def _spent(self) -> int:
        """Return the cost of the advice in the live episode, in whole units."""
        H, S, A = self.population.setting.policy.shape
        step, state, advice = self._buffer.table()[:, :3].astype(np.int64).T
        said = advice < A
        cost = np.broadcast_to(self.population.setting.cost, (H, S, A))
        return int(cost[step[said], state[said], advice[said]].sum())

    def observe(self, move: Move) -> None:
        self._buffer.add(move)

    def finish(self, *, terminated: bool = False) -> None:
        self._buffer.finish(self.update, terminated=terminated)

    def state(self) -> dict[str, Any]:
        A = self.population.setting.policy.shape[2]
        cells = [
            (person, state, A if advice is None else advice, action, times)
            for person, counts in self.population.counts.people.items()
            for (state, advice, action), times in counts.cells.items()
        ]
        plan: dict[str, Any] = {"planned": self._plan is not None}
        if self._plan is not None:
            plan |= {f"plan_{name}": getattr(self._plan.estimate, name) for name in _ESTIMATE}
            plan["plan_decisions"] = np.array(self._plan.decisions)
        saved = {"counts": np.array(cells, dtype=np.int64).reshape(-1, 5)}
        if self.memory is not None:
            rows = [
                (person, *cell, times)
                for person, counts in self.population.counts.people.items()
                for cell, times in counts.levels.items()
            ]
            saved["level_counts"] = np.array(rows, dtype=np.int64).reshape(-1, 6)
        return self._saved.state() | plan | saved

    def restore(self, state: dict[str, Any]) -> None:
        _, S, A = self.population.setting.policy.shape
        counts = state["counts"]
        highest, lowest = counts.max(axis=0, initial=0), counts.min(axis=0, initial=0)
        if (lowest < 0).any() or highest[1] >= S or highest[2] > A or highest[3] >= A:
            raise CounselError(
                f"the counts reach state {highest[1]} and action {highest[3]}; this problem has "
                f"{S} states and {A} actions: restore a learner with the same settings"
            )
        levels = self._level_counts(state)
        self.population.counts.clear()
        for person, cell_state, advice, action, times in counts.tolist():
            heard = None if advice == A else advice
            self.population.counts.add(person, (cell_state, heard, action), times)
        for person, s, advice, action, level, times in levels.tolist():
            self.population.counts.add_level(person, (s, advice, action, level), times)
        self._saved.restore(state)
        self._plan = None
        if state["planned"]:
            estimate = PersonEstimate(*(state[f"plan_{name}"] for name in _ESTIMATE))
            own, everybody = state["plan_decisions"].tolist()
            self._plan = self.population.plan_for(estimate, self._limit, (own, everybody))

    def _level_counts(self, state: dict[str, Any]) -> Ints:
        """Return the counts by level of a saved state; raise unless they fit the memory."""
        table: Ints = state.get("level_counts", np.empty((0, 6), dtype=np.int64))
        n_levels = 0 if self.memory is None else self.memory.n_levels
        highest = int(table[:, 4].max(initial=-1))
        if highest >= n_levels or (n_levels and "level_counts" not in state):
            has = "no levels" if "level_counts" not in state else f"level {highest}"
            raise CounselError(
                f"the counts have {has}; the memory of this population has {n_levels} levels: "
                "restore a learner with the same settings"
            )
        return table
