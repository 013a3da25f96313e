"""Car Driving (figure 5): car-regret and car-penalty.

4·10⁵ episodes planned every 8000, UCB-AD and RFE as on Flappy Bird. The runs of RFE are judged for
β = 0.1 … 1 afterwards. The paper believes that UCB-AD does so well here because the optimistic
policy happens to be the best one: that is tested too.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from counsel.baselines.reference_advisers import as_if_all_listened
from counsel.drawing.figure_style import Line, draw_lines, name_axes, sheet
from counsel.estimate.intervals import interval
from counsel.experiments.experiment import (
    Claim,
    Experiment,
    Picture,
    Rows,
    Run,
    Size,
    last_of,
    seeds_of,
    series,
)
from counsel.experiments.run_types import Discovery, Learning
from counsel.planning.evaluate import evaluate
from counsel.planning.solve import solve
from counsel.runs.spec import Spec
from counsel.worlds.catalogue import make

WORLD, EPISODES, EVERY = "car-driving/myopic", 400_000, 8000
ASKED = tuple(i / 10 for i in range(1, 11))


@dataclass(frozen=True, slots=True, kw_only=True)
class AllListen:
    """What the plan as if all listened is worth, in truth: one row with value, best and pieces."""

    id: str
    world: str

    def rows(self) -> Rows:
        """Plan and judge."""
        problem = make(self.world)
        worth = evaluate(problem, as_if_all_listened(problem))
        best = solve(problem)
        return {
            "value": np.array([worth.value]),
            "best": np.array([best.value]),
            "advice_count": np.array([worth.advice_count]),
        }


def explored(size: Size) -> tuple[Run, ...]:
    """Return the runs of RFE."""
    return tuple(
        Discovery(
            id=f"car-regret/rfe-ad#{seed}",
            world=WORLD,
            episodes=size.episodes(EPISODES),
            every=size.every(EVERY, EPISODES),
            seed=seed,
            asked=ASKED,
        )
        for seed in range(size.seeds)
    )


def runs(size: Size) -> tuple[Run, ...]:
    """Return the runs of UCB-AD and RFE-AD, and the plan as if all listened."""
    learnt = [
        Learning(
            id=f"car-regret/ucb-ad#{seed}",
            spec=Spec(
                world=WORLD,
                algorithm="ucb-ad",
                bound="paper",
                episodes=size.episodes(EPISODES),
                every=size.every(EVERY, EPISODES),
                seed=seed,
            ),
        )
        for seed in range(size.seeds)
    ]
    return (*learnt, *explored(size), AllListen(id="car-regret/all-listen#0", world=WORLD))


def without_penalty(rows: Mapping[str, Rows], column: str) -> tuple[np.ndarray, np.ndarray]:
    """Return episodes and a column of RFE-AD for each seed: the rows without a penalty."""
    return series(rows, "car-regret/rfe-ad", column, when=0, penalty=0.0)


def pictures(rows: Mapping[str, Rows]) -> tuple[Picture, ...]:
    """Draw value gap and regret of both learners."""
    figure, panels = sheet(2)
    for axes, column in zip(panels, ("value_gap", "regret"), strict=True):
        own = series(rows, "car-regret/ucb-ad", column)
        lines = [Line("UCB-AD", *own), Line("RFE-AD", *without_penalty(rows, column))]
        draw_lines(axes, lines)
        name_axes(axes, "episodes", column.replace("_", " "))
    told = " ".join(claim.sentence for claim in claims(rows))
    caption = f"Value gap and regret of learning to advise a driver. {told}"
    return (Picture("car-regret", figure, caption),)


def claims(rows: Mapping[str, Rows]) -> tuple[Claim, ...]:
    """Test who learns faster, how soon, and whether listening to all advice explains it."""
    ucb = last_of(rows, "car-regret/ucb-ad", "regret")
    rfe = without_penalty(rows, "regret")[1][:, -1]
    episodes, gap = series(rows, "car-regret/ucb-ad", "value_gap")
    early = gap[:, min(1, gap.shape[1] - 1)]
    (told,) = seeds_of(rows, "car-regret/all-listen")
    best, short = float(told["best"][0]), float(told["best"][0] - told["value"][0])
    return (
        Claim(
            "UCB-AD has less regret than RFE-AD, for every seed.",
            "paper",
            f"{ucb.mean():,.1f} against {rfe.mean():,.0f} on average",
            "regret of RFE-AD less that of UCB-AD",
            interval(rfe - ucb),
            bool((ucb < rfe).all()),
        ),
        Claim(
            "UCB-AD is near-optimal at a very early stage: within 1 % of the best after its first "
            "update.",
            "paper",
            f"{early.mean():.4f} short of {best:.3f} after {episodes[0]:,.0f} episodes",
            "value gap after the first update",
            interval(early),
            bool((early < 0.01 * best).all()),
        ),
        Claim(
            "That is because the plan as if everybody listened is the best one here.",
            "paper",
            f"it is {short:.4f} short of {best:.3f}",
            "value gap of that plan",
            interval([short]),
            bool(short < 1e-9),
        ),
    )


def by_penalty(rows: Mapping[str, Rows]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return penalties, the best penalised values, and those learnt [seed, penalty]."""
    found = seeds_of(rows, "car-regret/rfe-ad")
    mine = (found[0]["when"] == 1) & (found[0]["penalty"] > 0.0)
    best = found[0]["best"][mine]
    gap = np.stack([run["value_gap"][mine] for run in found])
    return found[0]["penalty"][mine], best, best - gap


def penalty_pictures(rows: Mapping[str, Rows]) -> tuple[Picture, ...]:
    """Draw what was learnt beside the best, for every penalty."""
    penalty, best, learnt = by_penalty(rows)
    figure, (left, right) = sheet(2)
    draw_lines(left, [Line("learnt", penalty, learnt), Line("best", penalty, best[None])])
    draw_lines(right, [Line("RFE-β", penalty, best - learnt)])
    name_axes(left, "penalty β", "value less penalty")
    name_axes(right, "penalty β", "value gap")
    told = " ".join(claim.sentence for claim in penalty_claims(rows))
    caption = f"RFE's policies for ten penalties, from the runs of car-regret. {told}"
    return (Picture("car-penalty", figure, caption),)


def penalty_claims(rows: Mapping[str, Rows]) -> tuple[Claim, ...]:
    """Test that values track the best for every penalty."""
    _, best, learnt = by_penalty(rows)
    short = ((best - learnt) / best).max(axis=1)
    return (
        Claim(
            "Values of the learnt policies track the best for β = 0.1 … 1: within 5 %, every seed.",
            "paper",
            f"at most {short.max():.1%} short",
            "largest share of the best that is missing",
            interval(short),
            bool((short < 0.05).all()),
        ),
    )


REGRET = Experiment("car-regret", "Learning to advise a driver", runs, pictures, claims)
PENALTY = Experiment(
    "car-penalty",
    "Advising a driver at ten penalties",
    explored,
    penalty_pictures,
    penalty_claims,
)
