"""What ``counsel demo`` does: learn to advise two players, and write one page about it.

Learning runs in this process. What is known without learning (the frontier, the reference points,
the flights without advice) is planned in a second process meanwhile: each compiles other kernels
and finds the rest on disk, so that the first run on two cores takes little more than half as long.

====================  =============================================================
``index.html``        the page
``greedy``, ``safe``  one folder for each player, as ``counsel learn -o`` writes it
====================  =============================================================
"""

import platform
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np

from counsel._arrays import not_negative, whole
from counsel._files import make_folder, write_text
from counsel._jit import cores
from counsel.errors import CounselError
from counsel.experiments.workers import fresh_processes
from counsel.learning.learn import Record
from counsel.model.files import load_policy
from counsel.model.problem import AdviceProblem
from counsel.planning.best_action import always_best_action
from counsel.planning.evaluate import Evaluation, evaluate
from counsel.planning.frontier import frontier
from counsel.planning.gains import gains
from counsel.planning.silence import never_advise
from counsel.planning.solve import solve
from counsel.report.demo_page import Phase, Player, Point, Reason, demo_page
from counsel.runs.run import POLICY, Result, run
from counsel.runs.spec import Spec
from counsel.simulate.episodes import Episodes
from counsel.simulate.simulator import Simulator
from counsel.worlds.catalogue import make
from counsel.worlds.grid_map import MOVES, GridMap

PAGE, MAP, FLIGHTS = "index.html", "three-phases", 200
EPISODES, PENALTY = 20_000, 0.3
"""How long to learn, and what a piece of advice costs in stars."""

PHASES = (
    Phase("in the field of stars", 0, 7),
    Phase("among the walls", 7, 14),
    Phase("where stars and walls mix", 14, 20),
)
"""The parts of the map; column and step are the same."""


class Guest(NamedTuple):
    """A player by name: the world, and what the player does alone."""

    world: str
    name: str
    habit: str


GUESTS = {
    "greedy": Guest(
        "flappy-bird/greedy",
        "Policy Greedy",
        "flies to any star in reach and does not look for walls",
    ),
    "safe": Guest(
        "flappy-bird/safe", "Policy Safe", "avoids the next wall and does not look for stars"
    ),
}


class Known(NamedTuple):
    """What can be computed without learning."""

    frontier: tuple[Point, ...]
    always: Point
    flights_alone: Episodes


@dataclass(frozen=True, slots=True)
class Demo:
    """What a demo found and wrote.

    Attributes
    ----------
    players
        What was learnt about each player, by short name.
    page
        The page.
    folders
        The runs of ``counsel learn`` behind it.
    seconds
        How long everything took.
    """

    players: tuple[Player, ...]
    page: Path
    folders: tuple[Path, ...]
    seconds: float


def make_demo(  # noqa: PLR0913 (every setting of the demo)
    folder: Path,
    *,
    episodes: int = EPISODES,
    penalty: float = PENALTY,
    seed: int = 0,
    show: Callable[[Record], None] = lambda record: None,
    say: Callable[[str], None] = lambda text: None,
) -> Demo:
    """Learn for both players and write the page.

    Parameters
    ----------
    folder
        Where to write.
    episodes
        Flights with each player while learning.
    penalty
        What a piece of advice costs, in stars.
    seed
        The same seed gives the same page, but for the time it took.
    show, say
        Told every record, and what happens on the way.

    Raises
    ------
    CounselError
        If a setting is out of range, matplotlib is not installed, or the folder holds a run with
        other settings or cannot be written.
    KeyboardInterrupt
        If Ctrl-C stopped a learner.
    """
    begin = time.perf_counter()
    whole("episodes", episodes, least=1)
    charge = not_negative("penalty", penalty)
    if find_spec("matplotlib") is None:
        raise CounselError(
            "the demo needs matplotlib; install it with: pip install 'counsel[draw]'"
        )
    if folder.exists() and not folder.is_dir():
        raise CounselError(f"-o {folder} is a file; give a folder")
    make_folder(folder)
    results = dict[str, Result]()
    # With one core a second process would only wait for the first.
    with fresh_processes(1) if cores() > 1 else nullcontext() as aside:
        known: dict[str, Future[Known] | Known] = {
            key: plan_ahead(guest.world, seed)
            if aside is None
            else aside.submit(plan_ahead, guest.world, seed)
            for key, guest in GUESTS.items()
        }
        for key, guest in GUESTS.items():
            spec = Spec(
                world=guest.world,
                algorithm="ucb-ad",
                episodes=episodes,
                seed=seed,
                penalty=charge,
                share="advice",
            )
            results[key] = run(spec, make(guest.world), folder=folder / key, show=show, say=say)
            if not results[key].finished:
                raise KeyboardInterrupt
        ready = {k: f.result() if isinstance(f, Future) else f for k, f in known.items()}
    players = tuple(
        _player(key, folder / key, results[key], ready[key], charge, seed) for key in GUESTS
    )
    seconds = time.perf_counter() - begin
    page = demo_page(
        players,
        map=MAP,
        phases=PHASES,
        penalty=charge,
        notes=_notes(folder, episodes, charge, seed, seconds),
    )
    write_text(folder / PAGE, page)
    return Demo(players, folder / PAGE, tuple(folder / key for key in GUESTS), seconds)


def plan_ahead(world: str, seed: int) -> Known:
    """Compute what needs no learning."""
    problem = make(world)
    silent = never_advise(problem)
    flights = Simulator(problem).play(silent, episodes=FLIGHTS, rng=np.random.default_rng(seed))
    corners = tuple(Point(v.advice_count, v.value) for v in frontier(problem).vertices)
    return Known(corners, _point(evaluate(problem, always_best_action(problem))), flights)


def _player(  # noqa: PLR0913 (everything the page shows of a player)
    key: str, folder: Path, result: Result, known: Known, penalty: float, seed: int
) -> Player:
    """Put together what is known about a player."""
    guest = GUESTS[key]
    problem, policy = make(guest.world), load_policy(folder / POLICY)
    rng = np.random.default_rng(seed)
    evaluation = evaluate(problem, policy)
    return Player(
        key=key,
        name=guest.name,
        habit=guest.habit,
        problem=problem,
        records=result.records,
        gap=result.best - result.value,
        evaluation=evaluation,
        flights=Simulator(problem).play(policy, episodes=FLIGHTS, rng=rng),
        flights_alone=known.flights_alone,
        heard=result.matches,
        frontier=known.frontier,
        always=known.always,
        reasons=_reasons(problem, evaluation, penalty),
    )


def _reasons(problem: AdviceProblem, evaluation: Evaluation, penalty: float) -> list[Reason]:
    """Return where the policy speaks, what adds most to a flight first."""
    _, gain_hsa = gains(problem, solve(problem, penalty=penalty).values)
    rows = GridMap.named(MAP).rows
    reasons = []
    for state, a in np.argwhere(evaluation.pieces > 1e-9).tolist():
        column, row = divmod(state, rows)
        habit = dict(zip(MOVES, problem.human.policy[0, state].tolist(), strict=True))
        pieces = float(evaluation.pieces[state, a])
        gain = float(gain_hsa[column, state, a])
        reasons.append(Reason(column, row, list(MOVES)[a], habit, pieces, gain))
    return sorted(reasons, key=lambda why: -why.pieces * why.gain)


def _notes(
    folder: Path, episodes: int, penalty: float, seed: int, seconds: float
) -> tuple[str, ...]:
    versions = ", ".join(f"{n} {metadata.version(n)}" for n in ("counsel", "numpy", "numba"))
    runs = " and ".join(str(folder / key) for key in GUESTS)
    return (
        f"Learner: UCB-AD with KL bounds and one adherence per advice, {episodes:,} flights per "
        f"player, {penalty:g} stars per piece of advice, seed {seed}. The players are simulated "
        "and the game is that of Chen, Li, Sun and Wang (ICLR 2024). Values, frontiers and advice "
        f"counts are exact; crashes and silent decisions are counted over {FLIGHTS} flights.",
        f"Made in {seconds:.0f} seconds with {versions}, Python {platform.python_version()}. "
        f"{runs} hold each run: policy.csv, record.csv, regret.png and a manifest.",
    )


def _point(evaluation: Evaluation) -> Point:
    return Point(evaluation.advice_count, evaluation.value)
