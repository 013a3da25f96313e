"""Regret of UCB-AD, RFE-AD and EULER (figure 2): regret-greedy, regret-safe, regret-adherence.

The settings are those of the paper's appendix B: 8·10⁵ episodes, planned every 5000 (Greedy), or
2·10⁵, planned every 1000 (Safe); UCB-AD with the width 0.4 √(2 log n / n); RFE-AD with a tenth of
its bonus; EULER with δ = 0.1, after 3·10⁵ episodes of burn-in without regret, and with unreachable
states declared. EULER is also run with a tenth of its logarithm, because with its full bonus it
learns almost nothing at the paper's scale.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from counsel.drawing.figure_style import Line, draw_lines, subplots
from counsel.experiments.claim import Claim
from counsel.experiments.experiment import Experiment, Picture, Run, Size
from counsel.experiments.rows import RowsByRun, last_of, series
from counsel.experiments.run_types import Discovery, learning_runs
from counsel.runs.spec import Spec

EPISODES = {"greedy": 800_000, "safe": 200_000}
EVERY = {"greedy": 5000, "safe": 1000}
BURN_IN = 300_000
PENALTIES = (0.0, 0.2, 0.4)
SHOWN = 0.3
PEOPLE = {"greedy": "Policy Greedy", "safe": "Policy Safe"}


def per_person(
    claim: Callable[[RowsByRun, str], Claim],
) -> Callable[[RowsByRun], tuple[Claim, ...]]:
    """Return a function that tests a claim for both people."""
    return lambda rows: tuple(claim(rows, person) for person in PEOPLE)


def ucb_ad(world: str, full: int, every: int, size: Size) -> Spec:
    """Return the settings of UCB-AD with the paper's width, episodes and updates."""
    episodes, every = size.episodes(full), size.every(every, full)
    return Spec(world=world, algorithm="ucb-ad", bound="paper", episodes=episodes, every=every)


def explorer_runs(size: Size, *people: str) -> tuple[Discovery, ...]:
    """Return the runs of RFE; it explores without rewards, so one run serves every penalty."""
    settings = {"penalties": PENALTIES, "shown": SHOWN}
    return tuple(
        run
        for person in people
        for run in Discovery.repeat(
            f"regret-{person}/rfe-ad",
            EPISODES[person],
            EVERY[person],
            size,
            world=f"flappy-bird/{person}",
            **settings,
        )
    )


def runs(person: str, size: Size) -> tuple[Run, ...]:
    """Return the runs of the three learners, and of EULER with a smaller bonus."""
    ucb = ucb_ad(f"flappy-bird/{person}", EPISODES[person], EVERY[person], size)
    burn_in = size.episodes(BURN_IN)
    euler = replace(ucb, algorithm="euler", bound=None, burn_in=burn_in, delta=0.1)
    specs = {"ucb-ad": ucb, "euler": euler, "euler-0.1": replace(euler, scale=0.1)}
    learners = [
        run
        for name, spec in specs.items()
        for run in learning_runs(f"regret-{person}/{name}", spec, size)
    ]
    return (*learners, *explorer_runs(size, person))


def without_penalty(rows: RowsByRun, person: str) -> tuple[np.ndarray, np.ndarray]:
    """Return episodes, and the regret of RFE-AD without a penalty [seed, row]."""
    return series(rows, f"regret-{person}/rfe-ad", "regret", when=0, penalty=0.0)


def pictures(person: str, rows: RowsByRun) -> tuple[Picture, ...]:
    """Draw the regret of all learners, and beside it without EULER."""
    regret = {
        "UCB-AD": series(rows, f"regret-{person}/ucb-ad", "regret"),
        "RFE-AD": without_penalty(rows, person),
        "EULER": series(rows, f"regret-{person}/euler", "regret"),
        "EULER, a tenth": series(rows, f"regret-{person}/euler-0.1", "regret"),
    }
    figure, (left, right) = subplots(2)
    lines = [Line(name, *points) for name, points in regret.items()]
    draw_lines(left, lines, "episodes", "regret", "all")
    draw_lines(right, lines[:2], "episodes", "regret", "without EULER")
    caption = (
        f"Regret of learning to advise {PEOPLE[person]}. Lines are means over seeds, bands "
        "95 % intervals."
    )
    return (Picture.of(f"regret-{person}", figure, caption, claims(person, rows)[:1]),)


def claims(person: str, rows: RowsByRun) -> tuple[Claim, ...]:
    """Test the order of the three learners, and the distance to EULER."""
    ucb = last_of(rows, f"regret-{person}/ucb-ad", "regret")
    rfe = without_penalty(rows, person)[1][:, -1]
    euler = last_of(rows, f"regret-{person}/euler", "regret")
    order = Claim.share(
        "UCB-AD has less regret than RFE-AD, and RFE-AD less than EULER.",
        "the larger of the two differences",
        np.maximum(ucb - rfe, rfe - euler),
        below=0.0,
        note=f"medians {np.median(ucb):,.0f}, {np.median(rfe):,.0f} and {np.median(euler):,.0f}",
    )
    tailored = Claim.share(
        "Both tailored algorithms are much more efficient than EULER: less than half its regret.",
        "the larger of the two regrets, over that of EULER,",
        np.maximum(ucb, rfe) / euler,
        below=0.5,
    )
    return order, tailored


LEVELS = {"high": 0.8, "low": 0.4}


def adherence_runs(size: Size) -> tuple[Run, ...]:
    """Return the runs of UCB-AD with people of high and of low adherence."""
    runs: list[Run] = []
    for person in PEOPLE:
        spec = ucb_ad(f"flappy-bird/{person}", EPISODES[person], EVERY[person], size)
        for level in LEVELS:
            name = f"regret-adherence/{person}-{level}"
            runs += learning_runs(name, spec, size, adherence=level)
    return tuple(runs)


def adherence_pictures(rows: RowsByRun) -> tuple[Picture, ...]:
    """Draw the regret of UCB-AD for both people and both levels."""
    figure, panels = subplots(2)
    for axes, person in zip(panels, PEOPLE, strict=True):
        lines = [
            Line(f"θ = {theta}", *series(rows, f"regret-adherence/{person}-{level}", "regret"))
            for level, theta in LEVELS.items()
        ]
        draw_lines(axes, lines, "episodes", "regret", PEOPLE[person])
    caption = "Regret of UCB-AD when all advice has the same adherence θ."
    return (Picture.of("regret-adherence", figure, caption, adherence_claims(rows)),)


@per_person
def adherence_claims(rows: RowsByRun, person: str) -> Claim:
    """Test whether a higher adherence means less regret."""
    high, low = (last_of(rows, f"regret-adherence/{person}-{level}", "regret") for level in LEVELS)
    text = f"{PEOPLE[person]}: regret is smaller with θ = 0.8 than with θ = 0.4."
    quantity = "the regret at θ = 0.8 less that at 0.4"
    return Claim.median(text, quantity, high - low, below=0.0)


REGRET = tuple(
    Experiment(
        f"regret-{person}",
        f"Regret of learning to advise {PEOPLE[person]}",
        partial(runs, person),
        partial(pictures, person),
        partial(claims, person),
    )
    for person in PEOPLE
)

ADHERENCE = Experiment(
    "regret-adherence",
    "Regret of UCB-AD at high and low adherence",
    adherence_runs,
    adherence_pictures,
    adherence_claims,
)
