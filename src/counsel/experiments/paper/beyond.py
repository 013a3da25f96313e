"""Learners that use more of the structure, on equal terms: beyond (ours).

10,000 episodes on random maps of three phases (claims) and on the shipped map (figures). Learners
are compared only with others that know as much and plan as often:

* The world and the person's habit are known, adherence is not: UCB-AD with the paper's bonus and
  with Kullback–Leibler bounds, and Thompson sampling. Plans are made after every 1, 50 and 1000
  episodes (Thompson sampling: 50 and 1000, because every plan draws all adherences).
* Nothing is known but sizes and rewards: RFE-AD and structured exploration, which learns person and
  world separately. Plans are made after every 50 and 1000 episodes.

*Pooled* learners also know that adherence depends on the advice alone, and are labelled so.

Regrets are skewed: with the paper's bonus and a new plan after every episode, a few early refusals
may silence an advice for good. The table therefore has medians, means and the worst run. There are
two readings of a regret: every block is charged with the policy before it, or with the policy that
is planned after it.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from counsel._arrays import Floats
from counsel.drawing.canvas import new_figure
from counsel.drawing.figure_style import LINE_STYLES, LineStyle, label_ends, name_axes, style_axes
from counsel.drawing.palette import WHITE
from counsel.experiments.claim import Claim, digits
from counsel.experiments.experiment import FEW, Experiment, Picture, Run, Size, Table
from counsel.experiments.paper.regret import FAMILY, PEOPLE, final_regret, without_penalty
from counsel.experiments.rows import RowsByRun, seeds_of, series
from counsel.experiments.run_types import Discovery, learning_runs
from counsel.runs.spec import Spec

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EPISODES = 10_000
SCHEDULES = (1, 50, 1000)
SEEDS = 20  # medians need fewer seeds than shares of runs
SHOWN = 12  # seeds on the shipped map, where the mean is compared with the median
PLACES = {"maps-": "random maps", "": "shipped map"}


class Entry(NamedTuple):
    """A learner: its label, its settings, how often it plans, and whether claims rest on it."""

    label: str
    settings: dict[str, str | bool]
    schedules: tuple[int, ...] = SCHEDULES
    decides: bool = True


OF_ADHERENCE = {
    "paper": Entry("paper's bonus", {"algorithm": "ucb-ad", "bound": "paper"}),
    "paper-pooled": Entry(
        "paper's bonus, pooled", {"algorithm": "ucb-ad", "bound": "paper", "share": "advice"}
    ),
    "kl": Entry("KL", {"algorithm": "ucb-ad"}),
    "kl-pooled": Entry("KL, pooled", {"algorithm": "ucb-ad", "share": "advice"}),
    "thompson": Entry("Thompson", {"algorithm": "thompson"}, (50, 1000), decides=False),
    "thompson-pooled": Entry(
        "Thompson, pooled", {"algorithm": "thompson", "share": "advice"}, (50, 1000), decides=False
    ),
}
EXPLORERS = {
    "rfe": Entry("RFE-AD", {"learner": "rfe"}, (50, 1000)),
    "structured": Entry("structured", {"learner": "structured"}, (50, 1000)),
    "structured-pooled": Entry(
        "structured, pooled", {"learner": "structured", "pooled": True}, (50, 1000)
    ),
}


def runs(size: Size) -> tuple[Run, ...]:
    """Return every learner with every schedule, for both people, on both kinds of map."""
    return tuple(
        run
        for person in PEOPLE
        for place in PLACES
        for run in (*_adherence_runs(person, place, size), *_explorer_runs(person, place, size))
    )


def _adherence_runs(person: str, place: str, size: Size) -> list[Run]:
    runs: list[Run] = []
    episodes = size.episodes(EPISODES)
    for name, entry in OF_ADHERENCE.items():
        if place and not entry.decides:
            continue
        spec = Spec(world=f"flappy-bird/{person}", episodes=episodes, **entry.settings)  # type: ignore[arg-type]
        for every in entry.schedules:
            planned = replace(spec, every=size.every(every, EPISODES))
            seeds = size if place else size.at_most(SHOWN if entry.decides else FEW)
            family = FAMILY if place else ""
            runs += learning_runs(_key(place, person, name, every), planned, seeds, family=family)
    return runs


def _explorer_runs(person: str, place: str, size: Size) -> list[Run]:
    runs: list[Run] = []
    for name, entry in EXPLORERS.items():
        for every in entry.schedules:
            runs += Discovery.repeat(
                _key(place, person, name, every),
                EPISODES,
                every,
                size if place else size.few,
                world=f"flappy-bird/{person}",
                family=FAMILY if place else "",
                **entry.settings,
            )
    return runs


def _key(place: str, person: str, name: str, every: int) -> str:
    return f"beyond/{place}{person}-{name}-{every}"


def claims(rows: RowsByRun) -> tuple[Claim, ...]:
    """Test which learners have less regret on random maps, on the same schedule."""
    tests: list[Claim] = []
    for person in PEOPLE:
        for every in SCHEDULES:
            text = f"planned {_words(every)}, KL bounds have less regret than the paper's bonus"
            tests.append(_less(rows, person, ("kl", "paper"), every, text))
        text = "planned every 50 episodes, KL bounds have less regret pooled by advice than not"
        tests.append(_less(rows, person, ("kl-pooled", "kl"), 50, text))
        for after, reading in ((False, "before"), (True, "planned after")):
            text = (
                "planned every 50 episodes, structured exploration has less regret than RFE-AD, "
                f"neither pooled, charged with the policy {reading} each block"
            )
            tests.append(_less(rows, person, ("structured", "rfe"), 50, text, after=after))
    return tuple(tests)


def _words(every: int) -> str:
    return "after every episode" if every == 1 else f"every {every:,} episodes"


def _less(  # noqa: PLR0913 (what is compared)
    rows: RowsByRun,
    person: str,
    learners: tuple[str, str],
    every: int,
    text: str,
    *,
    after: bool = False,
) -> Claim:
    """Compare the final regrets of two learners, map by map."""
    pairs = {
        place: [
            final_regret(rows, _key(place, person, name, every), after=after) for name in learners
        ]
        for place in PLACES
    }
    less, more = pairs["maps-"]
    labels = [(OF_ADHERENCE | EXPLORERS)[name].label for name in learners]
    return Claim.median(
        f"{PEOPLE[person]}: {text}.",
        f"the regret of {labels[0]} less that of {labels[1]}",
        less - more,
        below=0.0,
        source="ours",
        unit="maps",
        note=f"{_both(less, more)}; on the shipped map {_both(*pairs[''])}",
    )


def _both(less: Floats, more: Floats) -> str:
    """Return medians and means in words."""
    medians, means = (
        f"{digits(float(of(less)))} against {digits(float(of(more)))}"
        for of in (np.median, np.mean)
    )
    return f"medians {medians}, means {means}"


def tables(rows: RowsByRun) -> tuple[Table, ...]:
    """Return the regrets of all learners on all schedules."""
    head = ("person", "learner", "plans every", "maps", "runs", "median", "mean", "worst")
    lines: list[tuple[str, ...]] = [(*head, "median, charged after")]
    for person in PEOPLE:
        for name, entry in (OF_ADHERENCE | EXPLORERS).items():
            label = f"UCB-AD, {entry.label}" if name.startswith(("paper", "kl")) else entry.label
            for every in entry.schedules:
                for place, maps in PLACES.items():
                    key = _key(place, person, name, every)
                    if place and not entry.decides:
                        continue
                    regret, after = final_regret(rows, key), final_regret(rows, key, after=True)
                    numbers = (np.median(regret), np.mean(regret), regret.max(), np.median(after))
                    shown = [digits(float(number)) for number in numbers]
                    first = (PEOPLE[person], label, f"{every:,}", maps, str(regret.size))
                    lines.append((*first, *shown))
    caption = (
        f"Regret after {EPISODES:,} episodes. The last column charges every block with the policy "
        "planned after it, the others with the policy it begins with. Learners of adherence "
        "(UCB-AD, Thompson) know the world and the habit, the others only sizes and rewards; "
        "pooled learners also know that adherence depends on the advice alone."
    )
    return (Table("beyond", caption, tuple(lines)),)


def pictures(rows: RowsByRun) -> tuple[Picture, ...]:
    """Draw the regrets on the shipped map: a panel for each person and schedule."""
    tests = claims(rows)
    explorers = [claim for claim in tests if "structured" in claim.text]
    others = [claim for claim in tests if claim not in explorers]
    lines = (
        "Lines are medians over seeds, bands range from the lower to the upper quartile, hollow "
        "marks at the end are means. The axis is logarithmic because regrets differ by factors of "
        "ten and more."
    )
    known = (
        "Regret of learners that know the world and the habit, on the shipped map, planned after "
        f"every 1, 50 and 1,000 episodes. Pooled learners share adherence by advice. {lines}"
    )
    unknown = (
        "Regret of learners that know only sizes and rewards, on the shipped map, planned every 50 "
        f"and 1,000 episodes; blocks are charged with the policy before them. {lines}"
    )
    return (
        Picture.of("beyond", _draw(rows, OF_ADHERENCE, SCHEDULES), known, others),
        Picture.of("beyond-explorers", _draw(rows, EXPLORERS, (50, 1000)), unknown, explorers),
    )


def _draw(rows: RowsByRun, learners: dict[str, Entry], schedules: tuple[int, ...]) -> "Figure":
    """Draw one row of panels for each person, one column for each schedule."""
    figure = new_figure(3.9 * len(schedules), 6.8, layout="constrained")
    grid = figure.subplots(len(PEOPLE), len(schedules), squeeze=False, sharey=True)
    labels: list[tuple[Axes, list[tuple[float, str, str]]]] = []
    for panels, person in zip(grid, PEOPLE, strict=True):
        for axes, every in zip(panels, schedules, strict=True):
            style_axes(axes).set_yscale("log")
            ends = []
            for style, (name, entry) in zip(LINE_STYLES, learners.items(), strict=False):
                if every in entry.schedules:
                    key = _key("", person, name, every)
                    ends.append((_draw_line(axes, rows, key, style), entry.label, style.colour))
            labels.append((axes, ends))
            first = every == schedules[0]
            title = f"{PEOPLE[person]}, a plan {_words(every)}"
            name_axes(axes, "episodes", "regret (logarithmic)" if first else "", title)
            axes.minorticks_off()
    _, top = grid[0, 0].get_ylim()
    grid[0, 0].set_ylim(top=2.0 * top)  # room for labels below the titles
    for axes, ends in labels:  # all panels have the same scale only now
        label_ends(axes, ends)
    return figure


def _draw_line(axes: "Axes", rows: RowsByRun, key: str, style: LineStyle) -> float:
    """Draw the median regret, its quartiles, and the mean at the end; return the last median."""
    is_explorer = "when" in seeds_of(rows, key)[0]
    x, y_kx = without_penalty(rows, key) if is_explorer else series(rows, key, "regret")
    low, middle, high = np.maximum(np.quantile(y_kx, (0.25, 0.5, 0.75), axis=0), 0.1)
    axes.plot(x, middle, color=style.colour, linestyle=style.dashes, linewidth=1.5)
    axes.fill_between(x, low, high, color=style.colour, alpha=0.16, linewidth=0)
    mean = max(float(y_kx[:, -1].mean()), 0.1)
    marks = {"marker": style.marker, "markersize": 5.5, "color": style.colour, "clip_on": False}
    axes.plot(x[-1], mean, markerfacecolor=WHITE, zorder=3, **marks)  # type: ignore[arg-type]
    return float(middle[-1])


BEYOND = Experiment(
    "beyond",
    "Learners that use more of the structure, on the same schedules",
    runs,
    pictures,
    claims,
    SEEDS,
    tables=tables,
)
