"""Episodes until policies are good, as problems grow (the quantity of Theorem 1): scaling (ours).

Maps are generated. The pilot avoids walls, and their lift is drawn for every state and advice,
uniformly from 0 to 0.6. Advice has a penalty of 0.2, so that adherence matters. Learners play up to
10⁵ episodes and plan after 1, 2, 4, … of them. The count is the number of episodes whose policy is
more than ε short of the best. One size grows at a time: the steps H (columns), the states S (rows),
or 1/ε. More columns also mean more states, so along H the orders in H and in S add up.

A run whose last policy is not ε-optimal is *censored*: its count is a lower bound, and no power is
fitted through it. RFE is not run; its stopping time is computed, for rows with equal counts.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from counsel.drawing.figure_style import LINE_STYLES, label_ends, name_axes, subplots
from counsel.drawing.palette import WHITE
from counsel.experiments.claim import Claim
from counsel.experiments.experiment import Experiment, Picture, Run, Size
from counsel.experiments.rows import Rows, RowsByRun, seeds_of
from counsel.experiments.run_types import learn_columns
from counsel.learning.learn import DOUBLING
from counsel.model.human import Human
from counsel.model.problem import AdviceProblem
from counsel.runs.spec import Spec
from counsel.worlds.flappy_bird import make_flappy_bird
from counsel.worlds.grid_map import generate_map

MOST = 100_000
ROWS, COLUMNS, EPSILON, PENALTY = 3, 4, 0.05, 0.2
LENGTHS, HEIGHTS = (3, 4, 6, 9, 13), (3, 4, 6, 9, 13)
EPSILONS = (0.4, 0.2, 0.1, 0.05, 0.025)

LEARNERS = {
    "ucb-ad": ("UCB-AD", {"algorithm": "ucb-ad", "delta": 0.1}),
    "ucbvi": ("UCBVI", {"algorithm": "ucbvi"}),
    "ucbvi-0.01": ("UCBVI, a hundredth", {"algorithm": "ucbvi", "scale": 0.01}),
    "euler": ("EULER", {"algorithm": "euler"}),
    "euler-0.01": ("EULER, a hundredth", {"algorithm": "euler", "scale": 0.01}),
}

ORDERS = {"ucb-ad": (4, 2, 2), "ucbvi": (4, 1, 2), "euler": (4, 1, 2), "rfe": (6, 1, 2)}
"""Exponents of H (with S), S and 1/ε in the theorems (UCBVI and EULER: in the regret bounds)."""

LOGARITHMS = 0.25  # the excess of a fitted exponent that logarithms can explain


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """One learner on one generated map: the episodes of each block, and its policy's value gap."""

    id: str
    learner: str
    height: int
    columns: int
    episodes: int
    seed: int

    def rows(self) -> Rows:
        problem = drawn_problem(self.height, self.columns, self.seed)
        _, settings = LEARNERS[self.learner]
        spec = Spec(
            world="a map",
            episodes=self.episodes,
            every=DOUBLING,
            seed=self.seed,
            penalty=PENALTY,
            **settings,
        )  # type: ignore[arg-type]
        columns = learn_columns(spec, problem, ("episode", "value_gap"), self.episodes)
        episode, value_gap = columns["episode"], columns["value_gap"]
        block = np.diff(np.append(0, episode))
        return {"episode": episode, "block": block, "value_gap": value_gap}


def drawn_problem(height: int, columns: int, seed: int) -> AdviceProblem:
    """Return a generated map, and a pilot whose lift is drawn for every state and advice."""
    rng = np.random.default_rng([seed, height, columns])
    grid = generate_map(height, columns, rng=rng, stars=0.4, walls=0.2)
    problem = make_flappy_bird(map=grid, human="safe")
    own = problem.human.policy[0]
    lift = np.where(own < 1.0, rng.uniform(0.0, 0.6, own.shape), 0.0)
    return AdviceProblem(problem.mdp, Human(own, lift=lift))


def runs(size: Size) -> tuple[Run, ...]:
    """Return every learner on every map."""
    sizes = sorted({(ROWS, c) for c in LENGTHS} | {(r, COLUMNS) for r in HEIGHTS})
    return tuple(
        Growth(
            id=f"scaling/{learner}-{height}x{columns}#{seed}",
            learner=learner,
            height=height,
            columns=columns,
            episodes=size.episodes(MOST),
            seed=seed,
        )
        for learner in LEARNERS
        for height, columns in sizes
        for seed in size.repeats
    )


class Point(NamedTuple):
    """The counts of all seeds at one size, and which of them are censored."""

    size: float
    counts: np.ndarray
    censored: np.ndarray

    @property
    def mean(self) -> float:
        """The mean count, at least 1."""
        return max(float(self.counts.mean()), 1.0)

    def of_seed(self, i: int) -> "Point":
        """Return the point of one seed alone."""
        return Point(self.size, self.counts[i : i + 1], self.censored[i : i + 1])


Points = dict[str, list[Point]]  # the points along each axis: H, S and 1/ε


def count_late(run: Rows, epsilon: float) -> tuple[float, bool]:
    """Return the number of episodes whose policy is not ε-optimal, and whether the last is not."""
    late = run["value_gap"] > epsilon
    return float(run["block"][late].sum()), bool(late[-1])


def exponent(points: list[Point]) -> float:
    """Return the slope of log(count) over log(size) without censored points; NaN below three."""
    clear = [(point.size, point.mean) for point in points if not point.censored.any()]
    if len(clear) < 3:
        return math.nan
    x, y = np.log(np.array(clear)).T
    return float(np.polyfit(x, y, 1)[0])


def stopping_time(H: int, height: int, epsilon: float, *, delta: float = 0.1) -> float:
    """Return the episodes after which RFE's rule fires if all rows of a step have equal counts.

    W_1 = 16 H² φ(n) / n Σ_{i<H} (1 + 1/H)^i, and W_1 + 4 e √W_1 ≤ ε / 2 is solved for n; at each
    step ``height`` states with four choices share the episodes.
    """
    S, B = height * H + 1, 4
    base = 6.0 * math.log(4.0 * math.e * S * B * H / (epsilon * delta))
    sums = sum((1.0 + 1.0 / H) ** i for i in range(H))

    def goes_on(n: float) -> bool:
        W = 16.0 * H * H * (base + S * math.log(8.0 * math.e * (n + 1.0))) / n * sums
        return W + 4.0 * math.e * math.sqrt(W) > epsilon / 2.0

    low, high = 1.0, 1.0
    while goes_on(high):
        low, high = high, 2.0 * high
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if goes_on(middle) else (low, middle)
    return high * height * B


def points_of(rows: RowsByRun, learner: str) -> Points:
    """Return the counts of a learner, or the stopping times of RFE, along each axis."""

    def point(size: float, height: int, columns: int, epsilon: float) -> Point:
        if learner == "rfe":
            time = stopping_time(columns, height, epsilon)
            return Point(size, np.array([time]), np.array([False]))
        runs = seeds_of(rows, f"scaling/{learner}-{height}x{columns}")
        counts, censored = zip(*(count_late(run, epsilon) for run in runs), strict=True)
        return Point(size, np.array(counts), np.array(censored))

    return {
        "H": [point(columns, ROWS, columns, EPSILON) for columns in LENGTHS],
        "S": [point(height * COLUMNS + 1, height, COLUMNS, EPSILON) for height in HEIGHTS],
        "1/ε": [point(1.0 / epsilon, ROWS, COLUMNS, epsilon) for epsilon in EPSILONS],
    }


def exponents(rows: RowsByRun, learner: str) -> tuple[float, ...]:
    """Return the fitted exponents of H, S and 1/ε."""
    return tuple(exponent(points) for points in points_of(rows, learner).values())


def pictures(rows: RowsByRun) -> tuple[Picture, ...]:
    """Draw the counts over H, S and 1/ε, with hollow marks where censored."""
    figure, panels = subplots(3, height=3.8, width=10.5)
    points = {label: points_of(rows, name) for name, (label, _) in LEARNERS.items()}
    points["RFE, computed"] = points_of(rows, "rfe")
    for axes, axis in zip(panels, ("H", "S", "1/ε"), strict=True):
        axes.set_xscale("log")
        axes.set_yscale("log")
        ends = []
        for style, (label, along) in zip(LINE_STYLES, points.items(), strict=True):
            x = np.array([point.size for point in along[axis]])
            y = np.array([point.mean for point in along[axis]])
            held = np.array([point.censored.any() for point in along[axis]])
            axes.plot(x, y, color=style.colour, linestyle=style.dashes, linewidth=1.4)
            marks: dict[str, Any] = {"marker": style.marker, "linestyle": "", "markersize": 5.5}
            axes.plot(x[~held], y[~held], color=style.colour, **marks)
            axes.plot(x[held], y[held], color=style.colour, markerfacecolor=WHITE, **marks)
            ends.append((float(y[-1]), label, style.colour))
        name_axes(axes, f"{axis} (logarithmic)", "episodes (logarithmic)" if axis == "H" else "")
        axes.minorticks_off()
        axes.set_xticks(x, [f"{size:g}" for size in x])
        if axis == "1/ε":
            label_ends(axes, ends)
    caption = (
        f"Episodes whose policy is more than ε = {EPSILON} short of the best (on the right, ε "
        "varies), means over seeds. Marks are hollow where the last policy of some run is still "
        "not ε-optimal. Both axes are logarithmic, so powers are straight lines; a count of 0 is "
        f"drawn and fitted as 1. {orders(rows)}"
    )
    return (Picture.of("scaling", figure, caption, claims(rows)),)


def orders(rows: RowsByRun) -> str:
    """Return the fitted exponents and those of the theorems, in words."""
    words = []
    for name in (*LEARNERS, "rfe"):
        order = ORDERS.get(name.removesuffix("-0.01"))
        theory = "" if order is None else f" (theory {', '.join(map(str, order))})"
        label = LEARNERS[name][0] if name in LEARNERS else "RFE"
        words.append(f"{label} {_list(exponents(rows, name))}{theory}")
    return "Fitted exponents of H, S and 1/ε: " + "; ".join(words) + "."


def _list(fitted: tuple[float, ...]) -> str:
    return ", ".join("–" if math.isnan(e) else f"{e:.1f}" for e in fitted)


def claims(rows: RowsByRun) -> tuple[Claim, ...]:
    """Test whether UCB-AD needs fewer episodes, and grows no faster than its theorem."""
    counts, ucbvi, euler = (
        np.array([p.counts for axis in points_of(rows, name).values() for p in axis])
        for name in ("ucb-ad", "ucbvi", "euler")
    )
    return (
        Claim.share(
            "UCB-AD has fewer episodes that are not ε-optimal than UCBVI and EULER, at every size, "
            "in most runs.",
            "the largest difference over all sizes",
            (counts - np.minimum(ucbvi, euler)).max(axis=0),
            below=0.0,
        ),
        _grows(
            rows,
            "ucb-ad",
            "UCB-AD's count of such episodes grows no faster than Theorem 1 says: H² S² / ε².",
        ),
        _grows(rows, "rfe", "RFE's stopping time grows no faster than Theorem 2 says: H⁵ S / ε²."),
    )


def _grows(rows: RowsByRun, name: str, text: str) -> Claim:
    """Compare fitted exponents with a theorem's, allowing for logarithms."""
    points, order = points_of(rows, name), ORDERS[name]
    excesses = []
    for seed in range(points["H"][0].counts.size):
        own = [[p.of_seed(seed) for p in axis] for axis in points.values()]
        fitted = [exponent(axis) - o for axis, o in zip(own, order, strict=True)]
        excesses.append(math.nan if all(map(math.isnan, fitted)) else float(np.nanmax(fitted)))
    quantity = "the largest excess of an exponent of H (with S), S and 1/ε"
    note = (
        f"exponents of means {_list(exponents(rows, name))}; the theorem allows "
        f"{', '.join(map(str, order))}"
    )
    if name == "rfe":
        return Claim.exact(text, quantity, excesses[0], below=LOGARITHMS, note=note)
    return Claim.median(text, quantity, excesses, below=LOGARITHMS, note=note)


SCALING = Experiment(
    "scaling", "Episodes until policies are good, as problems grow", runs, pictures, claims
)
