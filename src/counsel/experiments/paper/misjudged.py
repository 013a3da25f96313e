"""The cost of planning with a wrong adherence: misjudged (ours).

For a grid of assumed and true θ, the same for all advice: the best policy for the assumed θ,
evaluated with the true θ.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from counsel.drawing.figure_style import name_axes, subplots
from counsel.drawing.palette import HARM, INK, WHITE
from counsel.experiments.claim import Claim
from counsel.experiments.experiment import Experiment, Picture, Run, Size
from counsel.experiments.paper.regret import PEOPLE, per_person
from counsel.experiments.rows import Rows, RowsByRun, seeds_of, to_columns
from counsel.planning.evaluate import evaluate
from counsel.planning.solve import solve
from counsel.worlds.catalogue import make

GRID = tuple(i / 10 for i in range(1, 11))


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongAdherence:
    """The value lost by planning for θ ``assumed`` when θ is ``true``, over a grid of both.

    Plans do not use advice that repels.
    """

    kind: ClassVar[str] = "Misjudged"

    id: str
    world: str
    grid: tuple[float, ...] = GRID

    def rows(self) -> Rows:
        problems = {theta: make(self.world, adherence=theta) for theta in self.grid}
        policies = {t: solve(p, allow_reverse=False).policy for t, p in problems.items()}
        lines = []
        for true, problem in problems.items():
            best = solve(problem, allow_reverse=False).value
            for assumed, policy in policies.items():
                lines.append((assumed, true, best - evaluate(problem, policy).value, best))
        return to_columns(("assumed", "true", "lost", "best"), lines)


def runs(size: Size) -> tuple[Run, ...]:
    """Return the grids of both people; they need no seeds."""
    return tuple(WrongAdherence(id=f"misjudged/{p}#0", world=f"flappy-bird/{p}") for p in PEOPLE)


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
    caption = "Reward lost by planning for an assumed adherence when another is true."
    return (Picture.of("misjudged", figure, caption, claims(rows)),)


@per_person
def claims(rows: RowsByRun, person: str) -> Claim:
    """Test that planning for the true θ loses nothing, and planning as if all listened does."""
    (run,) = seeds_of(rows, f"misjudged/{person}")
    lost = lost_by(run)
    worst = float(lost[:, -1].max())
    return Claim.exact(
        f"{PEOPLE[person]}: planning as if all listened loses reward for some θ.",
        "the largest loss",
        worst,
        above=1e-9,
        source="ours",
    )


MISJUDGED = Experiment(
    "misjudged", "The cost of planning with a wrong adherence", runs, pictures, claims
)
