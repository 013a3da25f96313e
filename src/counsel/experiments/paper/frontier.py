"""Reward against advice: frontier (ours).

What every number of pieces of advice is worth at best; on it the policies RFE learnt for three
penalties, below it those who do not reckon with how much people listen.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from counsel.baselines.reference_advisers import as_if_all_listened
from counsel.drawing.figure_style import DARK_GOLD, name_axes, sheet
from counsel.drawing.palette import ADVICE, HARM, INK
from counsel.estimate.intervals import interval
from counsel.experiments.experiment import (
    Claim,
    Experiment,
    Picture,
    Rows,
    Run,
    Size,
    padded,
    seeds_of,
)
from counsel.experiments.paper.penalty import ENOUGH
from counsel.experiments.paper.regret import PEOPLE, explored
from counsel.planning.best_action import always_best_action
from counsel.planning.evaluate import evaluate
from counsel.planning.frontier import frontier
from counsel.planning.silence import never_advise
from counsel.worlds.catalogue import make


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
        worth = [
            evaluate(problem, policy)
            for policy in (
                never_advise(problem),
                as_if_all_listened(problem),
                always_best_action(problem),
            )
        ]
        return padded(
            {
                "pieces": np.array([corner.advice_count for corner in corners]),
                "value": np.array([corner.value for corner in corners]),
                "adviser_pieces": np.array([w.advice_count for w in worth]),
                "adviser_value": np.array([w.value for w in worth]),
            }
        )


def runs(size: Size) -> tuple[Run, ...]:
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


def pictures(rows: Mapping[str, Rows]) -> tuple[Picture, ...]:
    """Draw the frontier, the learnt points on it, and who lies below."""
    figure, panels = sheet(2)
    for axes, person in zip(panels, PEOPLE, strict=True):
        pieces, value = front_of(rows, person)
        axes.plot(pieces, value, color=ADVICE, linewidth=1.8)
        x, y = learnt_points(rows, person)
        axes.plot(x.ravel(), y.ravel(), "D", color=DARK_GOLD, markersize=4.5, label="RFE, learnt")
        (run,) = seeds_of(rows, f"frontier/{person}")
        for i, (name, marker, colour) in enumerate(
            (("never", "o", INK), ("as if all listened", "s", HARM), ("always", "v", HARM))
        ):
            here = (run["adviser_pieces"][i], run["adviser_value"][i])
            axes.plot(*here, marker, color=colour, markersize=6, label=name)
        axes.plot([], [], color=ADVICE, label="frontier")
        name_axes(axes, "pieces of advice an episode", "reward", f"Policy {person.title()}")
        axes.set_ylim(0.0)
        axes.legend(fontsize=7.5, frameon=False, loc="lower right")
    told = " ".join(claim.sentence for claim in claims(rows))
    caption = f"What every number of pieces of advice is worth at best. {told}"
    return (Picture("frontier", figure, caption),)


def claims(rows: Mapping[str, Rows]) -> tuple[Claim, ...]:
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
                bool((short < ENOUGH).all() and all_listen > ENOUGH and (x[:, 0] > 0.0).all()),
            )
        )
    return tuple(found)


FRONTIER = Experiment(
    "frontier",
    "Reward against advice, and where learnt policies lie",
    runs,
    pictures,
    claims,
)
