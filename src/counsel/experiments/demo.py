"""The demo of ``counsel demo``: learn to advise two players, and write one page about it.

Learning runs in this process. Meanwhile a second process computes what needs no learning: the
frontier, advice at every step, and flights without advice. Each process compiles other kernels and
finds the rest on disk, so the first run on two cores takes little more than half as long. The files
are described in docs/reference/files.md.
"""

import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import nullcontext
from dataclasses import dataclass
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
from counsel.planning.evaluate import Evaluation, evaluate
from counsel.planning.frontier import frontier
from counsel.planning.gains import gains
from counsel.planning.reference_policies import always_best_action, never_advise
from counsel.planning.solve import solve
from counsel.report.demo_page import demo_page
from counsel.report.demo_player import Phase, Player, Point, Reason
from counsel.runs.manifest import versions
from counsel.runs.run import POLICY, Result, run
from counsel.runs.spec import Spec
from counsel.simulate.episodes import Episodes
from counsel.simulate.simulator import Simulator
from counsel.worlds.catalogue import make
from counsel.worlds.grid_map import MOVES, GridMap

PAGE, MAP, FLIGHTS = "index.html", "three-phases", 200
EPISODES, PENALTY = 20_000, 0.3  # flights of learning per player, stars per piece of advice
PHASES = (
    Phase("in the field of stars", 0, 7),
    Phase("among the walls", 7, 14),
    Phase("where stars and walls mix", 14, 20),
)
"""The parts of the map; column and step are equal."""


PLAYERS = {
    "greedy": ("Policy Greedy", "flies to any star in reach and does not look for walls"),
    "safe": ("Policy Safe", "avoids the next wall and does not look for stars"),
}
"""Names of the players, and what they do without advice."""


class References(NamedTuple):
    """What can be computed without learning: the frontier, and two policies to compare with."""

    frontier: tuple[Point, ...]
    always: Point
    flights_alone: Episodes


@dataclass(frozen=True, slots=True)
class Demo:
    """What was learnt about each player, the page, the folders of the runs, and the total time."""

    players: tuple[Player, ...]
    page: Path
    folders: tuple[Path, ...]
    seconds: float


def make_demo(  # noqa: PLR0913 (six, two of which show progress)
    folder: Path,
    *,
    episodes: int = EPISODES,
    penalty: float = PENALTY,
    seed: int = 0,
    show: Callable[[Record], None] = lambda record: None,
    say: Callable[[str], None] = lambda text: None,
) -> Demo:
    """Learn for both players and write the page.

    The same ``seed`` gives the same page, except for the time it took. ``show`` is called with
    every record, ``say`` with messages about the runs. Raises ``KeyboardInterrupt`` if Ctrl-C
    stopped a learner.
    """
    begin = time.perf_counter()
    whole("episodes", episodes, least=1)
    penalty = not_negative("penalty", penalty)
    if find_spec("matplotlib") is None:
        raise CounselError(
            "the demo needs matplotlib; install it with: pip install 'counsel[draw]'"
        )
    if folder.exists() and not folder.is_dir():
        raise CounselError(f"-o {folder} is a file; give a folder")
    make_folder(folder)
    results = dict[str, Result]()
    specs = {
        key: Spec(
            world=f"flappy-bird/{key}",
            algorithm="ucb-ad",
            episodes=episodes,
            seed=seed,
            penalty=penalty,
            share="advice",
        )
        for key in PLAYERS
    }
    # With one core a second process would only wait for the first.
    with fresh_processes(1) if cores() > 1 else nullcontext() as executor:
        planned: dict[str, Future[References] | References] = {
            key: plan_references(spec.world, seed)
            if executor is None
            else executor.submit(plan_references, spec.world, seed)
            for key, spec in specs.items()
        }
        for key, spec in specs.items():
            results[key] = run(spec, make(spec.world), folder=folder / key, show=show, say=say)
            if not results[key].finished:
                raise KeyboardInterrupt
        references = {k: r.result() if isinstance(r, Future) else r for k, r in planned.items()}
    players = tuple(
        _player(key, folder / key, spec, results[key], references[key])
        for key, spec in specs.items()
    )
    seconds = time.perf_counter() - begin
    notes = _notes(folder, specs["greedy"], seconds)
    page = demo_page(players, map=MAP, phases=PHASES, penalty=penalty, notes=notes)
    write_text(folder / PAGE, page)
    return Demo(players, folder / PAGE, tuple(folder / key for key in PLAYERS), seconds)


def plan_references(world: str, seed: int) -> References:
    """Compute what needs no learning."""
    problem = make(world)
    silent = never_advise(problem)
    flights = Simulator(problem).play(silent, episodes=FLIGHTS, rng=np.random.default_rng(seed))
    vertices = tuple(Point(v.advice_count, v.value) for v in frontier(problem).vertices)
    always = evaluate(problem, always_best_action(problem))
    return References(vertices, Point(always.advice_count, always.value), flights)


def _player(key: str, folder: Path, spec: Spec, result: Result, references: References) -> Player:
    """Collect what the page shows of a player."""
    name, habit = PLAYERS[key]
    problem, policy = make(spec.world), load_policy(folder / POLICY)
    rng = np.random.default_rng(spec.seed)
    evaluation = evaluate(problem, policy)
    return Player(
        key=key,
        name=name,
        habit=habit,
        problem=problem,
        records=result.records,
        gap=result.best - result.value,
        evaluation=evaluation,
        flights=Simulator(problem).play(policy, episodes=FLIGHTS, rng=rng),
        flights_alone=references.flights_alone,
        matches=result.matches,
        frontier=references.frontier,
        always=references.always,
        reasons=_reasons(problem, evaluation, spec.penalty_or_zero),
    )


def _reasons(problem: AdviceProblem, evaluation: Evaluation, penalty: float) -> list[Reason]:
    """Return the cells in which the policy advises, the most valuable first."""
    _, gain_hsa = gains(problem, solve(problem, penalty=penalty).values)
    rows = GridMap.named(MAP).rows
    reasons = []
    for state, a in np.argwhere(evaluation.pieces > 1e-9).tolist():
        column, row = divmod(state, rows)
        habit = dict(zip(MOVES, problem.human.policy[0, state].tolist(), strict=True))
        pieces = float(evaluation.pieces[state, a])
        gain = float(gain_hsa[column, state, a])
        reasons.append(Reason(column, row, list(MOVES)[a], habit, pieces, gain))
    return sorted(reasons, key=lambda reason: -reason.pieces * reason.gain)


def _notes(folder: Path, spec: Spec, seconds: float) -> tuple[str, ...]:
    packages = versions()
    used = ", ".join(f"{name} {packages[name]}" for name in ("counsel", "numpy", "numba"))
    runs = " and ".join(str(folder / key) for key in PLAYERS)
    return (
        f"Learner: UCB-AD with KL bounds and one adherence per advice, {spec.episodes:,} flights "
        f"per player, {spec.penalty:g} stars per piece of advice, seed {spec.seed}. The players "
        "are simulated, and the game is that of Chen, Li, Sun and Wang (ICLR 2024). Values, "
        "frontiers and advice counts are exact; crashes and silent decisions are counted over "
        f"{FLIGHTS} flights.",
        f"Made in {seconds:.0f} seconds with {used}, Python {packages['python']}. {runs} hold the "
        "runs: policy.csv, record.csv, regret.png and a manifest each.",
    )
