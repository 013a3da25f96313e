"""Reward against advice: frontier (ours).

The best value for every number of pieces of advice; near this frontier lie the policies that RFE
learnt for three penalties, and below it advisers that ignore how much people listen. The figure
shows the shipped map, claims are about random maps.
"""

from dataclasses import dataclass

import numpy as np

from counsel.baselines.reference_advisers import as_if_all_listened
from counsel.drawing.figure_style import name_axes, show_zero, subplots
from counsel.drawing.palette import ADVICE, DARK_GOLD, HARM, INK
from counsel.experiments.claim import Claim
from counsel.experiments.experiment import Experiment, Picture, Run, Size
from counsel.experiments.map_families import problem_of
from counsel.experiments.paper.penalty import ENOUGH
from counsel.experiments.paper.regret import FAMILY, MAPS, PEOPLE, explorer_runs
from counsel.experiments.rows import Rows, RowsByRun, pad_columns, seeds_of
from counsel.planning.evaluate import evaluate
from counsel.planning.frontier import frontier
from counsel.planning.reference_policies import always_best_action, never_advise


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """The frontier of a world, and advisers that do not learn.

    ``pieces`` and ``value`` are the vertices of the frontier; ``adviser_pieces`` and
    ``adviser_value`` are those of never, as if all listened, and always the best action, in this
    order.
    """

    id: str
    world: str
    family: str = ""
    seed: int = 0

    def rows(self) -> Rows:
        problem = problem_of(self.world, self.family, self.seed)
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
    fronts = []
    for person in PEOPLE:
        world = f"flappy-bird/{person}"
        fronts.append(Front(id=f"frontier/{person}#0", world=world))
        fronts += [
            Front(id=f"frontier/maps-{person}#{seed}", world=world, family=FAMILY, seed=seed)
            for seed in size.repeats
        ]
    return (*fronts, *explorer_runs(size, *PEOPLE))


def learnt_points(run: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Return pieces and values of the policies that a run of RFE learnt [penalty]."""
    end = run["when"] == 1
    count = run["advice_count"][end]
    return count, run["best"][end] - run["value_gap"][end] + run["penalty"][end] * count


def below(front: Rows, pieces: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return how far points lie below the frontier."""
    is_vertex = ~np.isnan(front["pieces"])
    short: np.ndarray = (
        np.interp(pieces, front["pieces"][is_vertex], front["value"][is_vertex]) - values
    )
    return short


def pictures(rows: RowsByRun) -> tuple[Picture, ...]:
    """Draw the frontier, the learnt policies on it, and the advisers below it."""
    figure, panels = subplots(2)
    for axes, person in zip(panels, PEOPLE, strict=True):
        (run,) = seeds_of(rows, f"frontier/{person}")
        axes.plot(run["pieces"], run["value"], color=ADVICE, linewidth=1.8)
        learnt = [learnt_points(rfe) for rfe in seeds_of(rows, f"regret-{person}/rfe-ad")]
        x, y = np.concatenate(learnt, axis=1)
        axes.plot(x, y, "D", color=DARK_GOLD, markersize=4.5, label="RFE, learnt")
        for i, (name, marker, colour) in enumerate(
            (("never", "o", INK), ("as if all listened", "s", HARM), ("always", "v", HARM))
        ):
            point = (run["adviser_pieces"][i], run["adviser_value"][i])
            axes.plot(*point, marker, color=colour, markersize=6, label=name)
        axes.plot([], [], color=ADVICE, label="frontier")
        show_zero(axes, 0.0, float(axes.dataLim.y1))
        name_axes(axes, "pieces of advice per episode", "reward", PEOPLE[person])
        axes.legend(fontsize=7.5, frameon=False, loc="lower right")
    caption = "The best value for every number of pieces of advice, on the shipped map."
    return (Picture.of("frontier", figure, caption, claims(rows)),)


def claims(rows: RowsByRun) -> tuple[Claim, ...]:
    """Test that learnt policies lie near the frontier, and the plan as if all listened below it."""
    return tuple(claim for person in PEOPLE for claim in _claims(rows, person))


def _claims(rows: RowsByRun, person: str) -> tuple[Claim, Claim]:
    fronts = seeds_of(rows, f"frontier/maps-{person}")
    learnt = [learnt_points(run) for run in seeds_of(rows, f"regret-{person}/maps-rfe-ad")]
    short = [below(front, *points).max() for front, points in zip(fronts, learnt, strict=True)]
    return (
        Claim.share(
            f"{PEOPLE[person]}: the policies that RFE learnt for β = 0, 0.2, 0.4 lie within "
            f"{ENOUGH} of the frontier, on most maps.",
            "the largest distance below the frontier",
            short,
            below=ENOUGH,
            source="ours",
            unit="maps",
        ),
        Claim.median(
            f"{PEOPLE[person]}: the plan as if all listened lies at least {ENOUGH} below it.",
            "the distance of that plan below the frontier",
            [_naive(front) for front in fronts],
            above=ENOUGH,
            source="ours",
            unit="maps",
            note=f"on the shipped map {_naive(seeds_of(rows, f'frontier/{person}')[0]):.2f}",
        ),
    )


def _naive(front: Rows) -> float:
    """Return how far the plan as if all listened lies below the frontier."""
    return float(below(front, front["adviser_pieces"][1], front["adviser_value"][1]))


FRONTIER = Experiment(
    "frontier", "Reward against advice, and where learnt policies lie", runs, pictures, claims, MAPS
)
