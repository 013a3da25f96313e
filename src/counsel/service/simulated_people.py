"""Simulated people, so that a demonstration of the service has something to show.

A dozen nurses work on the ward with an alarm that may speak once per shift on average and learns
who listens; one shift in five is kept silent. Three people play the playground's game.
"""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from counsel.learning.population import Limit
from counsel.model.human import Human, draw_index
from counsel.model.problem import AdviceProblem
from counsel.service.core.decide import index_of_advice
from counsel.service.core.desk import Desk
from counsel.service.core.outcomes import Outcome
from counsel.service.core.settings import AdviserSettings
from counsel.service.playground.game import GameSettings, Playground
from counsel.service.playground.rules import PEOPLE
from counsel.worlds.ward import ward

NURSES = 12
SHIFTS, GAMES = 30, 4
"""Shifts of each nurse, and games of each player, at the start."""

PAUSE = 2.0
"""Seconds between two shifts after the start."""


class Demo:
    """Simulated people of a tenant at work."""

    def __init__(self, desk: Desk, tenant: int, rng: np.random.Generator) -> None:
        self.desk, self.tenant, self._rng = desk, tenant, rng
        self._rngs = rng.spawn(NURSES + len(PEOPLE))
        world = ward()
        people = [Human(world.policy[0], lift=lift) for lift in np.linspace(0.1, 0.9, NURSES)]
        self._nurses = [AdviceProblem(world.mdp, person) for person in people]
        self._transitions = world.mdp.kernel.to_sparse()
        settings = AdviserSettings(source="ward", budget=1.0, holdout=0.2)
        self._alarm = desk.create(tenant, "Ward alarm", settings, f"demo-ward-alarm-{tenant}")
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="demo", daemon=True)

    def fill(self) -> None:
        """Simulate the first shifts and games, everybody at the same time."""

        def work(nurse: int) -> None:
            for _ in range(SHIFTS):
                if not self._stopping.is_set():
                    self.shift(nurse)

        def play(person: str) -> None:
            for _ in range(GAMES):
                self.game(person)

        with ThreadPoolExecutor(NURSES + len(PEOPLE)) as pool:
            jobs = [pool.submit(work, nurse) for nurse in range(NURSES)]
            jobs += [pool.submit(play, person) for person in PEOPLE]
            for job in jobs:
                job.result()

    def start(self) -> None:
        """Simulate the first shifts and games, and then one shift at a time, in the background."""
        self._thread.start()

    def close(self) -> None:
        """Stop."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def shift(self, nurse: int) -> None:
        """Simulate a shift of a nurse."""
        problem, rng = self._nurses[nurse], self._rngs[nurse]
        mdp = problem.mdp
        episode = self.desk.start(self.tenant, self._alarm, f"nurse {nurse + 1}").id
        state = draw_index(mdp.start, rng)
        for step in range(problem.horizon):
            decision = self.desk.advise(self.tenant, episode, step, state)
            heard = index_of_advice(decision.shown_advice, problem)
            action = draw_index(problem.law(step, state, heard), rng)
            reward = float(mdp.reward[step, state, action])
            chances = self._transitions[state * problem.n_actions + action].toarray()[0]
            state = draw_index(chances, rng)
            self.desk.report(self.tenant, [Outcome(decision.id, action, reward, state)])
            if mdp.over[step, state]:
                break
        self.desk.end(self.tenant, episode, terminated=True)

    def game(self, person: str) -> None:
        """Simulate a game."""
        settings = GameSettings("three-phases", Limit(budget=2.0, hard=True), "", person)
        playground = Playground(self.desk, self._rngs[NURSES + list(PEOPLE).index(person)])
        game = playground.start(self.tenant, settings)
        while not game["over"] and not self._stopping.is_set():
            game = playground.move(self.tenant, game["id"], game["step"], None)

    def _run(self) -> None:
        self.fill()
        while not self._stopping.wait(PAUSE):
            self.shift(int(self._rng.integers(NURSES)))
