"""The orders of Theorems 1 and 2, with H, S and ε varied one at a time: scaling (ours).

Theorem 1 bounds the number of episodes whose policy is not ε-optimal by H² S² A / ε². The paper
compares this order with H³ S² A / ε² (UCFH of Dann and Brunskill) and H⁴ S A / ε² (UCB Q-learning
of Jin and others). The counts are taken in drawn worlds of the kind in which lower bounds are
proved (``scaling_worlds.py``), so that every count rests on hundreds of episodes. All learners plan
on the same schedule: whenever the episodes have grown by a tenth. UCB-AD runs with the bound of
Theorem 1 and with Kullback–Leibler bounds; the others with their own constants and with a tenth.

A run ends when all policies of its second half are ε-optimal, or after 1.6·10⁵ episodes. Its count
is *censored* if a policy of the last quarter is not ε-optimal.

Theorem 2 bounds the episodes after which exploration stops (``stopping.py``): for RFE-AD by
H³ S (6 log(·) + S) A / ε², for RFE-β by H² times as many. The informal theorem has S for S (·).
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from counsel.drawing.figure_style import LINE_STYLES, LineStyle, label_ends, name_axes, subplots
from counsel.drawing.palette import WHITE
from counsel.experiments.claim import Claim, Median, digits
from counsel.experiments.experiment import Experiment, Picture, Table
from counsel.experiments.exponents import Counts, exponents, log_ratio, slopes, usable_sizes
from counsel.experiments.paper.scaling_runs import (
    AXES,
    GATES,
    LEARNERS,
    MIXING,
    SEEDS,
    Grid,
    counts_of,
    runs,
    worlds_of,
)
from counsel.experiments.paper.stopping import FACTOR, RULES, equal_counts_time, theorem_bound
from counsel.experiments.rows import RowsByRun

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LONG = (16, 32, 64, 128)  # horizons at which stopping times are computed but not run
POWERS = {2: "²", 3: "³", 4: "⁴", 5: "⁵"}


def claims(rows: RowsByRun) -> tuple[Claim, ...]:
    """Test the orders of the theorems, and the comparison with the paper's competitors."""
    return (
        *(_order_of_theorem_1(rows, axis) for axis in AXES),
        *(_fewer(rows, "ucb-ad", other, "paper") for other in ("ucfh", "q-learning")),
        *(
            _fewer(rows, own, other, "ours")
            for own in ("ucb-ad", "ucb-ad-kl")
            for other in ("ucfh-0.1", "q-learning-0.1")
        ),
        *(_slower(rows, "ucb-ad", other) for other in ("ucfh", "q-learning-0.1")),
        *(_order_of_stopping(rows, rule) for rule in RULES),
        _penalties_cost(rows),
        _informal_order(rows),
        _formal_bound(),
        _computed_is_run(rows),
    )


def _order_of_theorem_1(rows: RowsByRun, axis: str) -> Claim:
    square = {"H": "H²", "S": "S²", "1/ε": "1/ε²"}[axis]
    kl = Median().estimate(exponents(counts_of(rows, "ucb-ad-kl", axis)))
    return Claim.median(
        f"Theorem 1: the episodes of UCB-AD that are not ε-optimal grow no faster than {square}.",
        f"the fitted exponent of {axis}",
        exponents(counts_of(rows, "ucb-ad", axis)),
        below=2.0,
        note=f"with KL bounds, which the theorem does not cover, {_shown(kl)}",
    )


def _fewer(rows: RowsByRun, better: str, worse: str, source: str) -> Claim:
    """Compare two counts over all sizes."""
    less, more = [_all_counts(rows, name) for name in (better, worse)]
    ratio = np.exp(log_ratio(less, more))
    return Claim.median(
        f"{LEARNERS[better].label} has fewer episodes that are not ε-optimal than "
        f"{LEARNERS[worse].label}.",
        "the ratio of the counts (geometric mean over all sizes)",
        ratio,
        below=1.0,
        source=source,
        note="an upper bound where runs end before the larger count is final",
    )


def _all_counts(rows: RowsByRun, learner: str) -> list[Counts]:
    """Return the counts at every size once."""
    along = {
        world: counts
        for axis in AXES
        for world, counts in zip(GATES[axis], counts_of(rows, learner, axis), strict=True)
    }
    return list(along.values())


def _slower(rows: RowsByRun, better: str, worse: str) -> Claim:
    """Compare the exponents of H of two learners, at the sizes at which both can be fitted."""
    less, more = (counts_of(rows, name, "H") for name in (better, worse))
    sizes = usable_sizes(less, more)
    fits = [exponents(along, sizes) for along in (less, more)]
    shown = " and ".join(digits(Median().estimate(fit).value) for fit in fits)
    order = f"H{POWERS[LEARNERS[worse].powers[0]]}"
    return Claim.median(
        f"{LEARNERS[better].label} grows more slowly with H than {LEARNERS[worse].label} (H² and "
        f"{order} in the theorems).",
        "the difference of the fitted exponents of H",
        fits[0] - fits[1],
        below=0.0,
        note=f"the exponents are {shown} for H = {_list(sizes)}",
    )


def _order_of_stopping(rows: RowsByRun, name: str) -> Claim:
    """Compare the growth of computed times with that of the formal bound."""
    rule, S = RULES[name], MIXING["H"][0].S
    times = [equal_counts_time(rule, H, S, 1.0) for H in LONG]
    bounds = [theorem_bound(rule, H, S, 1.0, time) for H, time in zip(LONG, times, strict=True)]
    computed, formal = (float(slopes(LONG, np.array(column))) for column in (times, bounds))
    fit = Median().estimate(exponents(counts_of(rows, name, "H")))
    return Claim.exact(
        f"{rule.label}'s stopping time grows no faster than H{POWERS[rule.power]} with the "
        "logarithms of the formal Theorem 2.",
        f"the exponent of H from {LONG[0]} to {LONG[-1]}, less that of the bound,",
        computed - formal,
        below=0.0,
        note=f"exponents {computed:.2f} and {formal:.2f}; in runs with small H {_shown(fit)}",
    )


def _penalties_cost(rows: RowsByRun) -> Claim:
    along = [counts_of(rows, name, "H") for name in RULES]
    sizes = usable_sizes(*along)
    plain, penalised = (exponents(counts, sizes) for counts in along)
    return Claim.median(
        "To serve all penalties, RFE-β explores longer than RFE-AD by a factor of at least H².",
        "the difference of the fitted exponents of H",
        penalised - plain,
        above=2.0,
        note=f"H = {_list(sizes)}",
    )


def _informal_order(rows: RowsByRun) -> Claim:
    large = [2.0**k for k in range(10, 13)]
    times = [equal_counts_time(RULES["rfe-beta"], 4, int(S), 1.0) for S in large]
    order = float(slopes(large, np.array(times)))
    return Claim.median(
        "Theorem 2, informal: RFE-β's stopping time grows no faster than S.",
        "the fitted exponent of S",
        exponents(counts_of(rows, "rfe-beta", "S")),
        below=1.0,
        note=f"computed with the full bonus for S from 1,024 to 4,096, it is {order:.2f}",
    )


def _formal_bound() -> Claim:
    ratios = []
    for rule in RULES.values():
        for world in worlds_of(MIXING):
            time = equal_counts_time(rule, *world)
            ratios.append(math.log10(time / theorem_bound(rule, *world, time)))
    return Claim.exact(
        "Theorem 2, formal: exploration with the full bonus stops within the theorem's bound, with "
        "6 log(·) + S and the constant of its lemma.",
        "the largest decimal logarithm of the time (at equal counts) over the bound",
        max(ratios),
        below=0.0,
    )


def _computed_is_run(rows: RowsByRun) -> Claim:
    """Compare computed stopping times with those of runs."""
    ratios = [
        counts.episodes / equal_counts_time(RULES[name], *world, factor=FACTOR)
        for name in RULES
        for axis in AXES
        for world, counts in zip(MIXING[axis], counts_of(rows, name, axis), strict=True)
    ]
    off = np.abs(np.log(np.stack(ratios)))
    known = np.isfinite(off)
    worst = np.where(known.any(axis=0), np.where(known, off, 0.0).max(axis=0), np.nan)
    return Claim.median(
        "Stopping times computed at equal counts are those of runs, within 10 %.",
        "the largest relative difference over all sizes",
        np.expm1(worst),
        below=0.1,
        source="ours",
    )


def _list(sizes: Sequence[float]) -> str:
    return ", ".join(f"{size:g}" for size in sizes)


def _shown(estimate: tuple[float, float, float]) -> str:
    value, low, high = (digits(number) for number in estimate)
    return f"{value} [{low}, {high}]"


def tables(rows: RowsByRun) -> tuple[Table, ...]:
    """Return the exponents of every learner, with their intervals."""
    lines = [("learner", *(f"exponent of {axis}" for axis in AXES), "powers of the theorem")]
    for name, learner in LEARNERS.items():
        lines.append(_line(rows, name, learner.label, learner.powers))
    for name, rule in RULES.items():
        powers = (rule.power, 2, 2)
        lines.append(_line(rows, name, f"{rule.label}, runs with {FACTOR:g} of the bonus", powers))
        exact = [
            slopes(
                [world.along(axis) for world in MIXING[axis]],
                np.array([equal_counts_time(rule, *world) for world in MIXING[axis]]),
            )
            for axis in AXES
        ]
        label = f"{rule.label}, computed with the full bonus"
        lines.append((label, *(f"{float(x):.2f}" for x in exact), _powers(powers)))
    caption = (
        "Fitted exponents: medians over seeds with 99 % intervals, and the sizes they rest on. "
        "Sizes at which more than a tenth of the runs are censored are left out; a dash stands for "
        "fewer than three sizes. The theorems bound counts from above, up to logarithms. In "
        "Theorem 2, S stands for S (6 log(·) + S), which is S² for many states."
    )
    return (Table("scaling", caption, tuple(lines)),)


def _line(rows: RowsByRun, name: str, label: str, powers: tuple[int, ...]) -> tuple[str, ...]:
    cells = []
    for axis in AXES:
        along = counts_of(rows, name, axis)
        estimate, sizes = Median().estimate(exponents(along)), len(usable_sizes(along))
        cells.append("–" if math.isnan(estimate.value) else f"{_shown(estimate)}, {sizes} sizes")
    return (label, *cells, _powers(powers))


def _powers(powers: tuple[int, ...]) -> str:
    return ", ".join(map(str, powers))


def pictures(rows: RowsByRun) -> tuple[Picture, ...]:
    """Draw counts and stopping times over H, S and 1/ε."""
    is_stopping = ("RFE", "To serve", "Theorem 2", "Stopping")
    tests = claims(rows)
    stopping = [claim for claim in tests if claim.text.startswith(is_stopping)]
    counting = [claim for claim in tests if claim not in stopping]
    return (
        Picture.of("scaling", *_draw_counts(rows), counting),
        Picture.of("scaling-stopping", *_draw_times(rows), stopping),
    )


def _draw_counts(rows: RowsByRun) -> "tuple[Figure, str]":
    """Draw the counts of the learners, with hollow marks where censored."""
    figure, panels = subplots(3, height=4.2, width=10.5)
    for axes, axis in zip(panels, AXES, strict=True):
        ends = []
        for style, (name, entry) in zip(LINE_STYLES, LEARNERS.items(), strict=True):
            along = counts_of(rows, name, axis)
            ends.append((_mark(axes, along, style, line=True), entry.label, style.colour))
        _finish(axes, axis, GATES, "episodes that are not ε-optimal")
        if axis == AXES[-1]:
            label_ends(axes, ends)
    return figure, (
        "Episodes whose policy is more than ε short of the best, in drawn worlds: medians over "
        "seeds with 99 % intervals. One of H, S and ε varies at a time; the others are 8, 9 and "
        "0.63. Marks are hollow where more than a tenth of the runs end before their count is "
        "final. Both axes are logarithmic, so powers are straight lines; 0 is drawn as 1."
    )


def _draw_times(rows: RowsByRun) -> "tuple[Figure, str]":
    """Draw the stopping times of runs, and those that are computed."""
    figure, panels = subplots(3, height=4.2, width=10.5)
    for axes, axis in zip(panels, AXES, strict=True):
        ends = []
        for style, (name, rule) in zip(LINE_STYLES, RULES.items(), strict=False):
            known = [c for c in counts_of(rows, name, axis) if not c.censored.any()]
            _mark(axes, known, style, line=False)
            for factor, width in ((FACTOR, 1.4), (1.0, 0.7)):
                times = [equal_counts_time(rule, *world, factor=factor) for world in MIXING[axis]]
                sizes = [world.along(axis) for world in MIXING[axis]]
                axes.plot(sizes, times, color=style.colour, linewidth=width, linestyle=style.dashes)
                label = rule.label if factor < 1.0 else f"{rule.label}, full bonus"
                ends.append((times[-1], label, style.colour))
        _finish(axes, axis, MIXING, "episodes until exploration stops")
        if axis == AXES[-1]:
            label_ends(axes, ends)
    return figure, (
        f"Episodes after which exploration stops. Marks are runs with {FACTOR:g} of the bonus "
        "(medians over seeds), lines are computed at equal counts: thick with the same factor, "
        "thin with the full bonus. One of H, S and ε varies at a time; the others are 4, 4 and 1. "
        "Both axes are logarithmic."
    )


def _mark(axes: "Axes", along: Sequence[Counts], style: LineStyle, *, line: bool) -> float:
    """Draw medians over seeds with their intervals; return the last of them."""
    middle = 1.0
    for counts in along:
        middle, low, high = (max(x, 1.0) for x in Median().estimate(counts.episodes))
        face = style.colour if counts.is_usable else WHITE
        marks: dict[str, Any] = {"marker": style.marker, "markersize": 5.5, "color": style.colour}
        axes.plot(counts.size, middle, markerfacecolor=face, zorder=3, **marks)
        if math.isfinite(high):
            axes.plot([counts.size] * 2, [low, high], color=style.colour, linewidth=1.0)
    if line:
        x = [counts.size for counts in along]
        y = [max(float(np.median(counts.episodes)), 1.0) for counts in along]
        axes.plot(x, y, color=style.colour, linestyle=style.dashes, linewidth=1.4)
    return middle


def _finish(axes: "Axes", axis: str, grid: Grid, label: str) -> None:
    """Name the axes, with the sizes as ticks."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    first = axis == AXES[0]
    y = f"{label} (logarithmic)" if first else ""
    name_axes(axes, f"{axis} (logarithmic)", y, f"Drawn people, by {axis}")
    axes.minorticks_off()
    sizes = [world.along(axis) for world in grid[axis]]
    axes.set_xticks(sizes, [f"{size:.3g}" for size in sizes])


SCALING = Experiment(
    "scaling",
    "The orders of the theorems, one size at a time",
    runs,
    pictures,
    claims,
    SEEDS,
    tables=tables,
)
