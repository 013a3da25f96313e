"""Reward against advice: frontier (ours).

The best value for every number of pieces of advice; on this frontier lie the policies that RFE
learnt for three penalties, and below it advisers that ignore how much people listen.
"""

from dataclasses import dataclass

import numpy as np

from counsel.baselines.reference_advisers import as_if_all_listened
from counsel.drawing.figure_style import name_axes, subplots
from counsel.drawing.palette import ADVICE, DARK_GOLD, HARM, INK
from counsel.experiments.claim import Claim
from counsel.experiments.experiment import Experiment, Picture, Run, Size
from counsel.experiments.paper.penalty import ENOUGH
from counsel.experiments.paper.regret import PEOPLE, explorer_runs, per_person
from counsel.experiments.rows import Rows, RowsByRun, pad_columns, seeds_of
from counsel.planning.evaluate import evaluate
from counsel.planning.frontier import frontier
from counsel.planning.reference_policies import always_best_action, never_advise
from counsel.worlds.catalogue import make


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """The frontier of a world, and advisers that do not learn.

    ``pieces`` and ``value`` are the vertices of the frontier; ``adviser_pieces`` and
    ``adviser_value`` are those of never, as if all listened, and always the best action, in this
    order.
    """

    id: str
    world: str

    def rows(self) -> Rows:
        problem = make(self.world)
        vertices = frontier(problem).vertices
        advisers = (never_advise, as_if_all_listened, always_best_action)
        evaluations = [evaluate(problem, adviser(problem)) for adviser in advisers]
        return pad_columns(
            {
                "pieces": np.array([vertex.advice_count for vertex in vertices]),
                "value": np.array([vertex.value for vertex in vertices]),
                "adviser_pieces": np.array([e.advice_count for e in evaluations]),
                "adviser_value": np.array([e.value for e in evaluations]),
            }
        )


def runs(size: Size) -> tuple[Run, ...]:
    """Return the frontiers of both people, and the runs of RFE."""
    fronts = [Front(id=f"frontier/{p}#0", world=f"flappy-bird/{p}") for p in PEOPLE]
    return (*fronts, *explorer_runs(size, *PEOPLE))


def learnt_points(rows: RowsByRun, person: str) -> tuple[np.ndarray, np.ndarray]:
    """Return pieces and values of the policies that RFE learnt [seed, penalty]."""
    pieces, values = [], []
    for run in seeds_of(rows, f"regret-{person}/rfe-ad"):
        end = run["when"] == 1
        count = run["advice_count"][end]
        pieces.append(count)
        values.append(run["best"][end] - run["value_gap"][end] + run["penalty"][end] * count)
    return np.stack(pieces), np.stack(values)


def front_of(rows: RowsByRun, person: str) -> tuple[Rows, np.ndarray, np.ndarray]:
    """Return the run, and pieces and values of the vertices of the frontier."""
    (run,) = seeds_of(rows, f"frontier/{person}")
    is_vertex = ~np.isnan(run["pieces"])
    return run, run["pieces"][is_vertex], run["value"][is_vertex]


def pictures(rows: RowsByRun) -> tuple[Picture, ...]:
    """Draw the frontier, the learnt policies on it, and the advisers below it."""
    figure, panels = subplots(2)
    for axes, person in zip(panels, PEOPLE, strict=True):
        run, pieces, value = front_of(rows, person)
        axes.plot(pieces, value, color=ADVICE, linewidth=1.8)
        x, y = learnt_points(rows, person)
        axes.plot(x.ravel(), y.ravel(), "D", color=DARK_GOLD, markersize=4.5, label="RFE, learnt")
        for i, (name, marker, colour) in enumerate(
            (("never", "o", INK), ("as if all listened", "s", HARM), ("always", "v", HARM))
        ):
            point = (run["adviser_pieces"][i], run["adviser_value"][i])
            axes.plot(*point, marker, color=colour, markersize=6, label=name)
        axes.plot([], [], color=ADVICE, label="frontier")
        name_axes(axes, "pieces of advice per episode", "reward", PEOPLE[person])
        axes.set_ylim(0.0)
        axes.legend(fontsize=7.5, frameon=False, loc="lower right")
    caption = "The best value for every number of pieces of advice."
    return (Picture.of("frontier", figure, caption, claims(rows)),)


@per_person
def claims(rows: RowsByRun, person: str) -> Claim:
    """Test that learnt policies lie on the frontier, and the plan as if all listened below."""
    run, pieces, value = front_of(rows, person)
    x, y = learnt_points(rows, person)
    short = (np.interp(x, pieces, value) - y).max(axis=1)
    naive = np.interp(run["adviser_pieces"][1], pieces, value) - run["adviser_value"][1]
    return Claim.share(
        f"{PEOPLE[person]}: the policies that RFE learnt for β = 0, 0.2, 0.4 lie within {ENOUGH} "
        "of the frontier.",
        "the farthest distance below the frontier",
        short,
        below=ENOUGH,
        source="ours",
        note=f"the plan as if all listened lies {naive:.2f} below",
    )


FRONTIER = Experiment(
    "frontier", "Reward against advice, and where learnt policies lie", runs, pictures, claims
)
