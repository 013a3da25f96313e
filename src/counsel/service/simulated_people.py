"""Simulated people, so that a service that is tried out has something to show.

A dozen nurses work on the ward under an alarm that may speak once a shift, and learns who listens;
one shift in five is kept silent. Three people fly the playground's map.
"""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from counsel.model.human import Human, draw_index
from counsel.model.problem import AdviceProblem
from counsel.service.core.adviser import Limit
from counsel.service.core.desk import Desk
from counsel.service.core.live_adviser import Settings
from counsel.service.core.outcomes import Outcome
from counsel.service.playground.game import Playground
from counsel.service.playground.maps import PEOPLE
from counsel.worlds.ward import ward

NURSES = 12
SHIFTS = 30
"""Shifts that each nurse works right at the beginning."""

GAMES = 4
"""Games that each player plays right at the beginning."""

PAUSE = 2.0
"""Seconds between two shifts from then on."""


class Demo:
    """Simulated people at work.

    Parameters
    ----------
    desk
        Where they are advised.
    tenant
        Whose they are.
    rng
        What they draw from.
    """

    def __init__(self, desk: Desk, tenant: int, rng: np.random.Generator) -> None:
        self.desk, self.tenant, self._rng = desk, tenant, rng
        self._luck = rng.spawn(NURSES + len(PEOPLE))
        world = ward()
        lifts = np.linspace(0.1, 0.9, NURSES)
        self._nurses = [
            AdviceProblem(world.mdp, Human(world.policy[0], lift=lift)) for lift in lifts
        ]
        self._moves = world.mdp.kernel.to_sparse()
        settings = Settings("ward", budget=1.0, holdout=0.2)
        self._alarm = desk.create(tenant, "Ward alarm", settings, f"demo-ward-alarm-{tenant}")
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._go_on, name="demo", daemon=True)

    def fill(self) -> None:
        """Let some time pass at once; everybody works side by side."""

        def work(nurse: int) -> None:
            for _ in range(SHIFTS):
                if not self._stopping.is_set():
                    self.shift(nurse)

        def play(person: str) -> None:
            for _ in range(GAMES):
                self.game(person)

        with ThreadPoolExecutor(NURSES + len(PEOPLE)) as pool:
            waiting = [pool.submit(work, nurse) for nurse in range(NURSES)]
            waiting += [pool.submit(play, person) for person in PEOPLE]
            for one in waiting:
                one.result()

    def start(self) -> None:
        """Let some time pass at once, and then slowly."""
        self._thread.start()

    def close(self) -> None:
        """Stop."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def shift(self, nurse: int) -> None:
        """Let a nurse work a shift."""
        problem, rng = self._nurses[nurse], self._luck[nurse]
        mdp = problem.mdp
        episode = self.desk.start(self.tenant, self._alarm, f"nurse {nurse + 1}").id
        state = draw_index(mdp.start, rng)
        for step in range(problem.horizon):
            said = self.desk.advise(self.tenant, episode, step, state)
            heard = problem.defer if said.advice is None or not said.shown else said.advice
            action = draw_index(problem.law(step, state, heard), rng)
            row = self._moves[state * problem.n_actions + action].toarray()[0]
            then = draw_index(row, rng)
            reward = float(mdp.reward[step, state, action])
            self.desk.report(self.tenant, [Outcome(said.id, action, reward, then)])
            state = then
            if mdp.over[step, state]:
                break
        self.desk.end(self.tenant, episode, terminated=True)

    def game(self, person: str) -> None:
        """Let somebody simulated play a game."""
        limit = Limit(budget=2.0, hard=True)
        playground = Playground(self.desk, self._luck[NURSES + list(PEOPLE).index(person)])
        game = playground.start(self.tenant, "three-phases", "aware", limit, "", person)
        while not game["over"] and not self._stopping.is_set():
            game = playground.move(self.tenant, game["id"], game["step"], None)

    def _go_on(self) -> None:
        self.fill()
        while not self._stopping.wait(PAUSE):
            self.shift(int(self._rng.integers(NURSES)))
