"""Beyond the paper: frontier, beyond, misjudged."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from counsel.experiments.experiment import (
    Claim,
    Experiment,
    Picture,
    Rows,
    Run,
    Size,
    column_of,
    padded,
    seeds_of,
)
from counsel.experiments.paper.penalty import ENOUGH
from counsel.experiments.paper.regret import PEOPLE, explored, said
from counsel.experiments.runs import Discovery, Learning
from counsel.experiments.spec import Spec
from counsel.learning.reference import always_best_action, as_if_all_listened
from counsel.model.policy import Policy
from counsel.planning.frontier import frontier
from counsel.planning.occupancy import evaluate
from counsel.planning.solve import solve
from counsel.report.seeds import interval
from counsel.report.style import DARK_GOLD, LOOKS, Line, draw_lines, name_axes, sheet
from counsel.worlds.catalogue import make
from counsel.worlds.draw import ADVICE, INK, SILENCE

# frontier: reward against advice, and where learnt and thoughtless policies lie.


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """The frontier of a world and the points of advisers that do not learn.

    ``pieces`` and ``value`` are the frontier's corners; ``adviser_pieces`` and ``adviser_value``
    are never, as if all listened, always the best action, in this order.
    """

    id: str
    world: str

    def rows(self) -> Rows:
        """Plan."""
        problem = make(self.world)
        corners = frontier(problem).vertices
        silent = Policy.never(
            horizon=problem.horizon, n_states=problem.n_states, n_actions=problem.n_actions
        )
        worth = [
            evaluate(problem, policy)
            for policy in (silent, as_if_all_listened(problem), always_best_action(problem))
        ]
        return padded(
            {
                "pieces": np.array([corner.advice_count for corner in corners]),
                "value": np.array([corner.value for corner in corners]),
                "adviser_pieces": np.array([w.advice_count for w in worth]),
                "adviser_value": np.array([w.value for w in worth]),
            }
        )


def frontier_runs(size: Size) -> tuple[Run, ...]:
    """Return the frontiers of both people, and RFE's runs."""
    fronts = [Front(id=f"frontier/{p}#0", world=f"flappy-bird/{p}") for p in PEOPLE]
    return (*fronts, *(run for person in PEOPLE for run in explored(person, size)))


def learnt_points(rows: Mapping[str, Rows], person: str) -> tuple[np.ndarray, np.ndarray]:
    """Return pieces and values [seed, penalty] of what RFE learnt."""
    pieces, values = [], []
    for run in seeds_of(rows, f"regret-{person}/rfe-ad"):
        mine = run["when"] == 1
        count = run["advice_count"][mine]
        pieces.append(count)
        values.append(run["best"][mine] - run["value_gap"][mine] + run["penalty"][mine] * count)
    return np.stack(pieces), np.stack(values)


def front_of(rows: Mapping[str, Rows], person: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the corners of the frontier."""
    (run,) = seeds_of(rows, f"frontier/{person}")
    real = ~np.isnan(run["pieces"])
    return run["pieces"][real], run["value"][real]


def frontier_pictures(rows: Mapping[str, Rows]) -> tuple[Picture, ...]:
    """Draw the frontier, the learnt points on it, and who lies below."""
    figure, panels = sheet(2)
    for axes, person in zip(panels, PEOPLE, strict=True):
        pieces, value = front_of(rows, person)
        axes.plot(pieces, value, color=ADVICE, linewidth=1.8)
        x, y = learnt_points(rows, person)
        axes.plot(x.ravel(), y.ravel(), "D", color=DARK_GOLD, markersize=4.5, label="RFE, learnt")
        (run,) = seeds_of(rows, f"frontier/{person}")
        for i, (name, marker, colour) in enumerate(
            (("never", "o", INK), ("as if all listened", "s", SILENCE), ("always", "v", SILENCE))
        ):
            here = (run["adviser_pieces"][i], run["adviser_value"][i])
            axes.plot(*here, marker, color=colour, markersize=6, label=name)
        axes.plot([], [], color=ADVICE, label="frontier")
        name_axes(axes, "pieces of advice an episode", "reward", f"Policy {person.title()}")
        axes.set_ylim(0.0)
        axes.legend(fontsize=7.5, frameon=False, loc="lower right")
    told = " ".join(said(claim) for claim in frontier_claims(rows))
    caption = f"What every number of pieces of advice is worth at best. {told}"
    return (Picture("frontier", figure, caption),)


def frontier_claims(rows: Mapping[str, Rows]) -> tuple[Claim, ...]:
    """Test that learnt points lie on the frontier, and the thoughtless one below."""
    found = []
    for person in PEOPLE:
        pieces, value = front_of(rows, person)
        x, y = learnt_points(rows, person)
        short = (np.interp(x, pieces, value) - y).max(axis=1)
        (run,) = seeds_of(rows, f"frontier/{person}")
        all_listen = np.interp(run["adviser_pieces"][1], pieces, value) - run["adviser_value"][1]
        found.append(
            Claim(
                f"Policy {person.title()}: what RFE learnt for β = 0, 0.2, 0.4 lies within "
                f"{ENOUGH} of the frontier, and the plan as if all listened lies below it by more.",
                "ours",
                f"at most {short.max():.4f} below; as if all listened {all_listen:.2f} below",
                "farthest below the frontier",
                interval(short),
                bool((short < ENOUGH).all() and all_listen > ENOUGH),
            )
        )
    return tuple(found)


# beyond: the paper's UCB-AD against what the structure allows.

BEYOND = 20_000
NAMES = {
    "paper": "UCB-AD, paper's",
    "kl": "UCB-AD, KL",
    "pooled": "UCB-AD, KL, pooled",
    "thompson": "Thompson",
    "rfe": "RFE-AD",
    "structured": "structured",
}


def beyond_runs(size: Size) -> tuple[Run, ...]:
    """Return 20,000 episodes of each learner for both people."""
    found: list[Run] = []
    episodes = size.episodes(BEYOND)
    for person in PEOPLE:
        world = f"flappy-bird/{person}"
        kl = Spec(world=world, algorithm="ucb-ad", episodes=episodes)
        specs = {
            "paper": replace(kl, bound="paper", every=size.every(1000, BEYOND)),
            "kl": kl,
            "pooled": replace(kl, share="advice"),
            "thompson": replace(kl, algorithm="thompson", every=10),
        }
        for seed in range(size.seeds):
            for name, spec in specs.items():
                key = f"beyond/{person}-{name}#{seed}"
                found.append(Learning(id=key, spec=replace(spec, seed=seed)))
            found += [
                Discovery(
                    id=f"beyond/{person}-{name}#{seed}",
                    world=world,
                    episodes=episodes,
                    every=size.every(50, BEYOND),
                    seed=seed,
                    learner=name,
                    pooled=name == "structured",
                )
                for name in ("rfe", "structured")
            ]
    return tuple(found)


def beyond_column(rows: Mapping[str, Rows], key: str) -> tuple[np.ndarray, np.ndarray]:
    """Return episodes and regret [seed, row] of one learner."""
    run = seeds_of(rows, f"beyond/{key}")[0]
    if "when" not in run:
        return column_of(rows, f"beyond/{key}", "regret")
    mine = run["when"] == 0
    found = [run["regret"][mine] for run in seeds_of(rows, f"beyond/{key}")]
    return run["episode"][mine], np.stack(found)


def beyond_pictures(rows: Mapping[str, Rows]) -> tuple[Picture, ...]:
    """Draw the regret of all of them."""
    figure, panels = sheet(2, height=4.0)
    for axes, person in zip(panels, PEOPLE, strict=True):
        axes.set_yscale("log")
        lines = [
            Line(label, *beyond_column(rows, f"{person}-{key}")) for key, label in NAMES.items()
        ]
        draw_lines(axes, [Line(n, x, np.maximum(y, 0.1)) for n, x, y in lines], zero=False)
        name_axes(axes, "episodes", "regret (logarithmic)", f"Policy {person.title()}")
    told = " ".join(said(claim) for claim in beyond_claims(rows))
    caption = (
        "Regret of the paper's UCB-AD beside learners that use more of the structure. The axis is "
        f"logarithmic because they differ by factors of ten and more. {told}"
    )
    return (Picture("beyond", figure, caption),)


def beyond_claims(rows: Mapping[str, Rows]) -> tuple[Claim, ...]:
    """Test who does better than the paper's."""
    found = []
    for person in PEOPLE:
        end = {key: beyond_column(rows, f"{person}-{key}")[1][:, -1] for key in NAMES}
        for one, other, text in (
            ("kl", "paper", "KL bounds have less regret than the paper's"),
            ("pooled", "kl", "pooled by advice they have less again"),
            ("structured", "rfe", "structured exploration has less regret than RFE-AD"),
        ):
            found.append(
                Claim(
                    f"Policy {person.title()}: {text}, on average.",
                    "ours",
                    f"{end[one].mean():,.1f} against {end[other].mean():,.1f}",
                    "regret saved",
                    interval(end[other] - end[one]),
                    bool(end[one].mean() < end[other].mean()),
                )
            )
    return tuple(found)


# misjudged: what planning with a wrong adherence costs.

GRID = tuple(i / 10 for i in range(1, 11))


@dataclass(frozen=True, slots=True, kw_only=True)
class Misjudged:
    """Value lost when planning for θ ``assumed`` where θ is ``true``, over a grid of both.

    Advice that repels is not used: nobody would plan for it knowingly.
    """

    id: str
    world: str
    grid: tuple[float, ...] = GRID

    def rows(self) -> Rows:
        """Plan for each assumed adherence and judge with each true one."""
        problems = {theta: make(self.world, adherence=theta) for theta in self.grid}
        policies = {t: solve(p, allow_reverse=False).policy for t, p in problems.items()}
        lines = []
        for true, problem in problems.items():
            best = solve(problem, allow_reverse=False).value
            for assumed, policy in policies.items():
                lines.append((assumed, true, best - evaluate(problem, policy).value, best))
        names = ("assumed", "true", "lost", "best")
        return {n: np.array(c) for n, c in zip(names, zip(*lines, strict=True), strict=True)}


def misjudged_runs(size: Size) -> tuple[Run, ...]:
    """Return the grid of both people; there is no chance in it."""
    return tuple(Misjudged(id=f"misjudged/{p}#0", world=f"flappy-bird/{p}") for p in PEOPLE)


def lost_by(run: Rows) -> np.ndarray:
    """Return the value lost [true, assumed]."""
    n = np.unique(run["assumed"]).size
    return run["lost"].reshape(n, n)


def misjudged_pictures(rows: Mapping[str, Rows]) -> tuple[Picture, ...]:
    """Draw the value lost as a table of shades with its numbers."""
    from matplotlib.colors import LinearSegmentedColormap

    shades = LinearSegmentedColormap.from_list("loss", ["#FFFFFF", LOOKS[1].colour])
    figure, panels = sheet(2, height=4.1, width=8.4)
    runs = {person: seeds_of(rows, f"misjudged/{person}")[0] for person in PEOPLE}
    most = max(float(run["lost"].max()) for run in runs.values())
    for axes, (person, run) in zip(panels, runs.items(), strict=True):
        lost, grid = lost_by(run), np.unique(run["assumed"])
        axes.imshow(lost, cmap=shades, vmin=0.0, vmax=most, origin="lower", aspect="equal")
        axes.grid(visible=False)
        for i, j in np.ndindex(*lost.shape):
            axes.text(
                j, i, f"{abs(lost[i, j]):.1f}", ha="center", va="center", fontsize=6, color=INK
            )
        name_axes(axes, "assumed θ", "true θ", f"Policy {person.title()}")
        ticks = range(0, grid.size, 3)
        axes.set_xticks(list(ticks), [f"{grid[i]:g}" for i in ticks])
        axes.set_yticks(list(ticks), [f"{grid[i]:g}" for i in ticks])
    told = " ".join(said(claim) for claim in misjudged_claims(rows))
    caption = f"Reward lost when planning for one adherence where another is true. {told}"
    return (Picture("misjudged", figure, caption),)


def misjudged_claims(rows: Mapping[str, Rows]) -> tuple[Claim, ...]:
    """Test that knowing θ never loses, and what believing that everybody listens costs."""
    found = []
    for person in PEOPLE:
        (run,) = seeds_of(rows, f"misjudged/{person}")
        lost = lost_by(run)
        worst = float(lost[:, -1].max())
        found.append(
            Claim(
                f"Policy {person.title()}: planning for the true θ loses nothing, planning as if "
                "all listened loses somewhere.",
                "ours",
                f"up to {worst:.2f} an episode",
                "most that is lost",
                interval([worst]),
                bool(np.abs(np.diag(lost)).max() < 1e-9 and lost.min() > -1e-9 and worst > 1e-9),
            )
        )
    return tuple(found)


FRONTIER = Experiment(
    "frontier",
    "Reward against advice, and where learnt policies lie",
    frontier_runs,
    frontier_pictures,
    frontier_claims,
)
BEYOND_PAPER = Experiment(
    "beyond",
    "The paper's UCB-AD beside learners that use more of the structure",
    beyond_runs,
    beyond_pictures,
    beyond_claims,
)
MISJUDGED = Experiment(
    "misjudged",
    "What planning with a wrong adherence costs",
    misjudged_runs,
    misjudged_pictures,
    misjudged_claims,
)
