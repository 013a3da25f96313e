"""The paper's UCB-AD beside learners that use more of the structure: beyond (ours).

20,000 episodes of: UCB-AD with the paper's width, planned every 1000; with bounds by
Kullback–Leibler divergence, planned after every episode; the same with adherence shared by advice;
Thompson sampling; RFE-AD; and structured exploration, which learns person and world apart.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from counsel.drawing.figure_style import Line, draw_lines, name_axes, sheet
from counsel.estimate.intervals import interval
from counsel.experiments.experiment import (
    Claim,
    Experiment,
    Picture,
    Rows,
    Run,
    Size,
    series,
)
from counsel.experiments.paper.regret import PEOPLE
from counsel.experiments.run_types import Discovery, Learning
from counsel.runs.spec import Spec

EPISODES = 20_000
NAMES = {
    "paper": "UCB-AD, paper's",
    "kl": "UCB-AD, KL",
    "pooled": "UCB-AD, KL, pooled",
    "thompson": "Thompson",
    "rfe": "RFE-AD",
    "structured": "structured",
}


def runs(size: Size) -> tuple[Run, ...]:
    """Return 20,000 episodes of each learner for both people."""
    found: list[Run] = []
    episodes = size.episodes(EPISODES)
    for person in PEOPLE:
        world = f"flappy-bird/{person}"
        kl = Spec(world=world, algorithm="ucb-ad", episodes=episodes)
        specs = {
            "paper": replace(kl, bound="paper", every=size.every(1000, EPISODES)),
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
                    every=size.every(50, EPISODES),
                    seed=seed,
                    learner=name,
                    pooled=name == "structured",
                )
                for name in ("rfe", "structured")
            ]
    return tuple(found)


def regret_of(rows: Mapping[str, Rows], key: str) -> tuple[np.ndarray, np.ndarray]:
    """Return episodes and regret [seed, row] of one learner."""
    if key.endswith(("rfe", "structured")):
        return series(rows, f"beyond/{key}", "regret", when=0)
    return series(rows, f"beyond/{key}", "regret")


def pictures(rows: Mapping[str, Rows]) -> tuple[Picture, ...]:
    """Draw the regret of all of them."""
    figure, panels = sheet(2, height=4.0)
    for axes, person in zip(panels, PEOPLE, strict=True):
        axes.set_yscale("log")
        lines = [Line(label, *regret_of(rows, f"{person}-{key}")) for key, label in NAMES.items()]
        draw_lines(axes, [Line(n, x, np.maximum(y, 0.1)) for n, x, y in lines], zero=False)
        name_axes(axes, "episodes", "regret (logarithmic)", f"Policy {person.title()}")
    told = " ".join(claim.sentence for claim in claims(rows))
    caption = (
        "Regret of the paper's UCB-AD beside learners that use more of the structure. The axis is "
        f"logarithmic because they differ by factors of ten and more. {told}"
    )
    return (Picture("beyond", figure, caption),)


def claims(rows: Mapping[str, Rows]) -> tuple[Claim, ...]:
    """Test who does better than the paper's."""
    found = []
    for person in PEOPLE:
        end = {key: regret_of(rows, f"{person}-{key}")[1][:, -1] for key in NAMES}
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


BEYOND = Experiment(
    "beyond",
    "The paper's UCB-AD beside learners that use more of the structure",
    runs,
    pictures,
    claims,
)
