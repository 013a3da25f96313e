"""The cost of planning with a wrong adherence: misjudged (ours).

For a grid of assumed and true θ, the same for all advice: the best policy for the assumed θ,
evaluated with the true θ. The figure shows the shipped map, claims are about random maps; losses
are computed exactly for each.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from counsel.drawing.figure_style import name_axes, subplots
from counsel.drawing.palette import HARM, INK, WHITE
from counsel.experiments.claim import Claim, digits
from counsel.experiments.experiment import Experiment, Picture, Run, Size
from counsel.experiments.map_families import problem_of
from counsel.experiments.paper.penalty import ENOUGH
from counsel.experiments.paper.regret import FAMILY, PEOPLE
from counsel.experiments.rows import Rows, RowsByRun, seeds_of, to_columns
from counsel.planning.evaluate import evaluate
from counsel.planning.solve import solve

GRID = tuple(i / 10 for i in range(1, 11))
MAPS = 150  # nothing is learnt, so maps are cheap


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongAdherence:
    """The value lost by planning for θ ``assumed`` when θ is ``true``, over a grid of both.

    Plans do not use advice that repels.
    """

    kind: ClassVar[str] = "Misjudged"

    id: str
    world: str
    family: str = ""
    seed: int = 0
    grid: tuple[float, ...] = GRID

    def rows(self) -> Rows:
        problems = {
            theta: problem_of(self.world, self.family, self.seed, adherence=theta)
            for theta in self.grid
        }
        policies = {t: solve(p, allow_reverse=False).policy for t, p in problems.items()}
        lines = []
        for true, problem in problems.items():
            best = solve(problem, allow_reverse=False).value
            for assumed, policy in policies.items():
                lines.append((assumed, true, best - evaluate(problem, policy).value, best))
        return to_columns(("assumed", "true", "lost", "best"), lines)


def runs(size: Size) -> tuple[Run, ...]:
    """Return the grids of both people, on the shipped map and on random maps."""
    runs = []
    for person in PEOPLE:
        world = f"flappy-bird/{person}"
        runs.append(WrongAdherence(id=f"misjudged/{person}#0", world=world))
        runs += [
            WrongAdherence(
                id=f"misjudged/maps-{person}#{seed}", world=world, family=FAMILY, seed=seed
            )
            for seed in size.repeats
        ]
    return tuple(runs)


def lost_by(run: Rows) -> np.ndarray:
    """Return the value lost [true, assumed]."""
    n = np.unique(run["assumed"]).size
    return run["lost"].reshape(n, n)


def pictures(rows: RowsByRun) -> tuple[Picture, ...]:
    """Draw the value lost as a heat map with numbers."""
    from matplotlib.colors import LinearSegmentedColormap

    shades = LinearSegmentedColormap.from_list("loss", [WHITE, HARM])
    figure, panels = subplots(2, height=4.1, width=8.4)
    grids = {person: seeds_of(rows, f"misjudged/{person}")[0] for person in PEOPLE}
    most = max(float(run["lost"].max()) for run in grids.values())
    for axes, (person, run) in zip(panels, grids.items(), strict=True):
        lost, grid = lost_by(run), np.unique(run["assumed"])
        axes.imshow(lost, cmap=shades, vmin=0.0, vmax=most, origin="lower", aspect="equal")
        axes.grid(visible=False)
        for i, j in np.ndindex(*lost.shape):
            axes.text(
                j, i, f"{abs(lost[i, j]):.1f}", ha="center", va="center", fontsize=6, color=INK
            )
        name_axes(axes, "assumed θ", "true θ", PEOPLE[person])
        ticks = range(0, grid.size, 3)
        axes.set_xticks(list(ticks), [f"{grid[i]:g}" for i in ticks])
        axes.set_yticks(list(ticks), [f"{grid[i]:g}" for i in ticks])
    caption = (
        "Reward lost by planning for an assumed adherence when another is true, on the shipped map."
    )
    return (Picture.of("misjudged", figure, caption, claims(rows)),)


def claims(rows: RowsByRun) -> tuple[Claim, ...]:
    """Test what a wrong adherence costs, and in which direction it costs more."""
    return tuple(claim for person in PEOPLE for claim in _claims(rows, person))


def _claims(rows: RowsByRun, person: str) -> tuple[Claim, Claim]:
    tables = [lost_by(run) for run in seeds_of(rows, f"misjudged/maps-{person}")]
    naive = [float(lost[:, -1].max()) for lost in tables]
    shipped = lost_by(seeds_of(rows, f"misjudged/{person}")[0])
    excess = [over_less_under(lost) for lost in tables]
    return (
        Claim.share(
            f"{PEOPLE[person]}: planning as if all listened loses at least {ENOUGH} per episode "
            "for some θ, on most maps.",
            "the largest loss over θ",
            naive,
            above=ENOUGH,
            source="ours",
            unit="maps",
            note=f"median {digits(float(np.median(naive)))}, on the shipped map "
            f"{shipped[:, -1].max():.2f}",
        ),
        Claim.share(
            f"{PEOPLE[person]}: underestimating θ costs more at worst than overestimating it, on "
            "most maps.",
            "the largest loss with too high a θ less that with too low a θ",
            excess,
            below=0.0,
            source="ours",
            unit="maps",
            note=f"on the shipped map {over_less_under(shipped):.2f}",
        ),
    )


def over_less_under(lost: np.ndarray) -> float:
    """Return the largest loss with an assumed θ above the truth less that with one below it."""
    return float(np.triu(lost, 1).max() - np.tril(lost, -1).max())


MISJUDGED = Experiment(
    "misjudged", "The cost of planning with a wrong adherence", runs, pictures, claims, MAPS
)
