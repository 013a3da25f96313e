"""What planning with a wrong adherence costs: misjudged (ours).

For a grid of assumed and of true θ, one number for everybody: the best policy for the assumed one,
judged with the true one.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from counsel.drawing.figure_style import LOOKS, name_axes, sheet
from counsel.drawing.palette import INK
from counsel.estimate.intervals import interval
from counsel.experiments.experiment import Claim, Experiment, Picture, Rows, Run, Size, seeds_of
from counsel.experiments.paper.regret import PEOPLE
from counsel.planning.evaluate import evaluate
from counsel.planning.solve import solve
from counsel.worlds.catalogue import make

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


def runs(size: Size) -> tuple[Run, ...]:
    """Return the grid of both people; there is no chance in it."""
    return tuple(Misjudged(id=f"misjudged/{p}#0", world=f"flappy-bird/{p}") for p in PEOPLE)


def lost_by(run: Rows) -> np.ndarray:
    """Return the value lost [true, assumed]."""
    n = np.unique(run["assumed"]).size
    return run["lost"].reshape(n, n)


def pictures(rows: Mapping[str, Rows]) -> tuple[Picture, ...]:
    """Draw the value lost as a table of shades with its numbers."""
    from matplotlib.colors import LinearSegmentedColormap

    shades = LinearSegmentedColormap.from_list("loss", ["#FFFFFF", LOOKS[1].colour])
    figure, panels = sheet(2, height=4.1, width=8.4)
    found = {person: seeds_of(rows, f"misjudged/{person}")[0] for person in PEOPLE}
    most = max(float(run["lost"].max()) for run in found.values())
    for axes, (person, run) in zip(panels, found.items(), strict=True):
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
    told = " ".join(claim.sentence for claim in claims(rows))
    caption = f"Reward lost when planning for one adherence where another is true. {told}"
    return (Picture("misjudged", figure, caption),)


def claims(rows: Mapping[str, Rows]) -> tuple[Claim, ...]:
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


MISJUDGED = Experiment(
    "misjudged",
    "What planning with a wrong adherence costs",
    runs,
    pictures,
    claims,
)
