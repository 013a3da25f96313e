"""Regret of UCB-AD, RFE-AD and EULER (figure 2): regret-greedy, regret-safe, regret-adherence.

Settings of the paper's appendix B: 8·10⁵ episodes planned every 5000 (Greedy), 2·10⁵ every 1000
(Safe); UCB-AD with the width 0.4 √(2 log n / n); RFE-AD with a tenth of its bonus; EULER with
δ = 0.1, after 3·10⁵ episodes of burn-in that are not charged, with unreachable states declared.
EULER is also run with a tenth of its logarithm: at the paper's scale its bonus lets it learn next
to nothing.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

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
    last_of,
    series,
)
from counsel.experiments.run_types import Discovery, Learning
from counsel.runs.spec import Spec

EPISODES = {"greedy": 800_000, "safe": 200_000}
EVERY = {"greedy": 5000, "safe": 1000}
BURN_IN = 300_000
PENALTIES = (0.0, 0.2, 0.4)
SHOWN = 0.3
PEOPLE = ("greedy", "safe")


def explored(person: str, size: Size) -> tuple[Discovery, ...]:
    """Return the runs of RFE: they have no goal, so one serves every penalty."""
    full = EPISODES[person]
    return tuple(
        Discovery(
            id=f"regret-{person}/rfe-ad#{seed}",
            world=f"flappy-bird/{person}",
            episodes=size.episodes(full),
            every=size.every(EVERY[person], full),
            seed=seed,
            penalties=PENALTIES,
            shown=SHOWN,
        )
        for seed in range(size.seeds)
    )


def runs(person: str, size: Size) -> tuple[Run, ...]:
    """Return the runs of all three learners, and of EULER with a smaller bonus."""
    full = EPISODES[person]
    base = Spec(
        world=f"flappy-bird/{person}",
        algorithm="ucb-ad",
        episodes=size.episodes(full),
        every=size.every(EVERY[person], full),
    )
    told = base.settings()
    burn_in = size.episodes(BURN_IN)
    specs: dict[str, dict[str, Any]] = {
        "ucb-ad": {"bound": "paper"},
        "euler": {"algorithm": "euler", "burn_in": burn_in, "delta": 0.1},
        "euler-0.1": {"algorithm": "euler", "burn_in": burn_in, "delta": 0.1, "scale": 0.1},
    }
    learnt = [
        Learning(id=f"regret-{person}/{name}#{seed}", spec=Spec(**(told | more | {"seed": seed})))
        for name, more in specs.items()
        for seed in range(size.seeds)
    ]
    return (*learnt, *explored(person, size))


def without_penalty(rows: Mapping[str, Rows], person: str) -> tuple[np.ndarray, np.ndarray]:
    """Return episodes and regret of RFE-AD for each seed: the rows without a penalty."""
    return series(rows, f"regret-{person}/rfe-ad", "regret", when=0, penalty=0.0)


def pictures(person: str, rows: Mapping[str, Rows]) -> tuple[Picture, ...]:
    """Draw the regret; on the left all, on the right without EULER."""
    own = {
        "UCB-AD": series(rows, f"regret-{person}/ucb-ad", "regret"),
        "RFE-AD": without_penalty(rows, person),
        "EULER": series(rows, f"regret-{person}/euler", "regret"),
        "EULER, a tenth": series(rows, f"regret-{person}/euler-0.1", "regret"),
    }
    figure, (left, right) = sheet(2)
    lines = [Line(name, *points) for name, points in own.items()]
    draw_lines(left, lines)
    draw_lines(right, lines[:2])
    name_axes(left, "episodes", "regret", "all")
    name_axes(right, "episodes", "regret", "without EULER")
    first = claims(person, rows)[0]
    caption = (
        f"Regret of learning to advise Policy {person.title()}. Lines are means over seeds, bands "
        f"95 % intervals. {first.sentence}"
    )
    return (Picture(f"regret-{person}", figure, caption),)


def claims(person: str, rows: Mapping[str, Rows]) -> tuple[Claim, ...]:
    """Test the order of the three learners, and how far apart they are."""
    ucb = last_of(rows, f"regret-{person}/ucb-ad", "regret")
    rfe = without_penalty(rows, person)[1][:, -1]
    euler = last_of(rows, f"regret-{person}/euler", "regret")
    means = f"{ucb.mean():,.0f}, {rfe.mean():,.0f} and {euler.mean():,.0f} on average"
    order = Claim(
        "UCB-AD has less regret than RFE-AD, and RFE-AD less than EULER, for every seed.",
        "paper",
        means,
        "regret of RFE-AD less that of UCB-AD",
        interval(rfe - ucb),
        bool(((ucb < rfe) & (rfe < euler)).all()),
    )
    tailored = Claim(
        "Both tailored algorithms are much more efficient than EULER: less than half its regret.",
        "paper",
        f"at most {np.max(np.maximum(ucb, rfe) / euler):.3f} of EULER's regret",
        "larger of both regrets over that of EULER",
        interval(np.maximum(ucb, rfe) / euler),
        bool((np.maximum(ucb, rfe) < 0.5 * euler).all()),
    )
    return order, tailored


LEVELS = {"high": 0.8, "low": 0.4}


def adherence_runs(size: Size) -> tuple[Run, ...]:
    """Return UCB-AD's runs with people who listen more, and less."""
    found = []
    for person in PEOPLE:
        full = EPISODES[person]
        for level in LEVELS:
            for seed in range(size.seeds):
                spec = Spec(
                    world=f"flappy-bird/{person}",
                    algorithm="ucb-ad",
                    bound="paper",
                    episodes=size.episodes(full),
                    every=size.every(EVERY[person], full),
                    seed=seed,
                )
                name = f"regret-adherence/{person}-{level}#{seed}"
                found.append(Learning(id=name, spec=spec, adherence=level))
    return tuple(found)


def adherence_pictures(rows: Mapping[str, Rows]) -> tuple[Picture, ...]:
    """Draw the regret of UCB-AD for both people and both levels."""
    figure, panels = sheet(2)
    for axes, person in zip(panels, PEOPLE, strict=True):
        lines = [
            Line(f"θ = {theta}", *series(rows, f"regret-adherence/{person}-{level}", "regret"))
            for level, theta in LEVELS.items()
        ]
        draw_lines(axes, lines)
        name_axes(axes, "episodes", "regret", f"Policy {person.title()}")
    ends = " ".join(claim.sentence for claim in adherence_claims(rows))
    caption = f"Regret of UCB-AD where everybody listens with one probability θ. {ends}"
    return (Picture("regret-adherence", figure, caption),)


def adherence_claims(rows: Mapping[str, Rows]) -> tuple[Claim, ...]:
    """Test whether people who listen more are learnt at less regret."""
    found = []
    for person in PEOPLE:
        high, low = (
            last_of(rows, f"regret-adherence/{person}-{level}", "regret") for level in LEVELS
        )
        found.append(
            Claim(
                f"Policy {person.title()}: regret is smaller with θ = 0.8 than with θ = 0.4.",
                "paper",
                f"{high.mean():,.0f} against {low.mean():,.0f} on average",
                "regret at θ = 0.4 less that at 0.8",
                interval(low - high),
                bool((high < low).all()),
            )
        )
    return tuple(found)


REGRET = tuple(
    Experiment(
        f"regret-{person}",
        f"Regret of learning to advise Policy {person.title()}",
        partial(runs, person),
        partial(pictures, person),
        partial(claims, person),
    )
    for person in PEOPLE
)

ADHERENCE = Experiment(
    "regret-adherence",
    "Regret of UCB-AD for people who listen more, and less",
    adherence_runs,
    adherence_pictures,
    adherence_claims,
)
