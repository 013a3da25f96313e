"""The paper's UCB-AD and learners that use more of the structure: beyond (ours).

20,000 episodes each of UCB-AD with the paper's width, planned every 1000 episodes; UCB-AD with
Kullback–Leibler bounds, planned after every episode; the same with adherence shared by advice;
Thompson sampling; RFE-AD; and structured exploration, which learns person and world separately.
"""

from dataclasses import replace

import numpy as np

from counsel.drawing.figure_style import Line, draw_lines, subplots
from counsel.experiments.claim import Claim
from counsel.experiments.experiment import Experiment, Picture, Run, Size
from counsel.experiments.paper.regret import PEOPLE
from counsel.experiments.rows import RowsByRun, series
from counsel.experiments.run_types import Discovery, learning_runs
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
    """Return the runs of each learner for both people."""
    runs: list[Run] = []
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
        for name, spec in specs.items():
            runs += learning_runs(f"beyond/{person}-{name}", spec, size)
        for name in ("rfe", "structured"):
            key, pooled = f"beyond/{person}-{name}", name == "structured"
            runs += Discovery.repeat(
                key, EPISODES, 50, size, world=world, learner=name, pooled=pooled
            )
    return tuple(runs)


def regret_of(rows: RowsByRun, key: str) -> tuple[np.ndarray, np.ndarray]:
    """Return episodes, and the regret of one learner [seed, row]."""
    if key.endswith(("rfe", "structured")):
        return series(rows, f"beyond/{key}", "regret", when=0)
    return series(rows, f"beyond/{key}", "regret")


def pictures(rows: RowsByRun) -> tuple[Picture, ...]:
    """Draw the regret of all learners."""
    figure, panels = subplots(2, height=4.0)
    for axes, person in zip(panels, PEOPLE, strict=True):
        axes.set_yscale("log")
        regrets = {label: regret_of(rows, f"{person}-{key}") for key, label in NAMES.items()}
        lines = [Line(label, x, np.maximum(y, 0.1)) for label, (x, y) in regrets.items()]
        draw_lines(axes, lines, "episodes", "regret (logarithmic)", PEOPLE[person])
    caption = (
        "Regret of the paper's UCB-AD and of learners that use more of the structure. The axis is "
        "logarithmic because they differ by factors of ten and more."
    )
    return (Picture.of("beyond", figure, caption, claims(rows)),)


def claims(rows: RowsByRun) -> tuple[Claim, ...]:
    """Test which learners have less regret."""
    return tuple(
        _claim(rows, person, better, worse, text)
        for person in PEOPLE
        for better, worse, text in (
            ("kl", "paper", "KL bounds have less regret than the paper's"),
            ("pooled", "kl", "pooled by advice, KL bounds have still less"),
            ("structured", "rfe", "structured exploration has less regret than RFE-AD"),
        )
    )


def _claim(rows: RowsByRun, person: str, better: str, worse: str, text: str) -> Claim:
    """Compare the final regret of two learners."""
    less, more = (regret_of(rows, f"{person}-{key}")[1][:, -1] for key in (better, worse))
    return Claim.median(
        f"{PEOPLE[person]}: {text}, in the median run.",
        "the first regret less the second",
        less - more,
        below=0.0,
        source="ours",
        note=f"medians {np.median(less):,.1f} against {np.median(more):,.1f}",
    )


BEYOND = Experiment(
    "beyond",
    "The paper's UCB-AD and learners that use more of the structure",
    runs,
    pictures,
    claims,
)
