"""How long until policies are good: scaling, the quantity of Theorem 1.

On generated maps, with a pilot who avoids walls and whose lift is drawn anew for every state and
advice (evenly from 0 to 0.6), at a penalty of 0.2 so that it matters whether they listen, learners
play up to 10⁵ episodes and plan after 1, 2, 4, … of them. Counted are the episodes whose policy is
more than ε short of the best. One size grows at a time: the steps H (columns), the states S (rows),
and 1/ε. On a map more columns are more states, so along H the orders in H and in S add up.

A run whose last policy is still not ε-optimal is *censored*: its count is what it got to, and no
line is fitted through it. RFE is not run: its stopping rule is worked out, for rows that have all
been seen equally often.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from counsel.drawing.figure_style import LOOKS, label_ends, name_axes, sheet
from counsel.estimate.intervals import interval
from counsel.experiments.experiment import (
    Claim,
    Experiment,
    Picture,
    Rows,
    Run,
    Size,
    seeds_of,
)
from counsel.learning.learn import DOUBLING, learn
from counsel.model.human import Human
from counsel.model.problem import AdviceProblem
from counsel.runs.spec import Spec
from counsel.simulate.simulator import Simulator
from counsel.worlds.flappy_bird import flappy_bird
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
"""Exponents of H (with S), S and 1/ε in the theorems (of UCBVI and EULER, their regret bounds)."""

LOGARITHMS = 0.25
"""How much steeper a fitted power may be on account of logarithms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """One learner on one generated map: the episodes of each block and its policy's value gap."""

    id: str
    learner: str
    height: int
    columns: int
    episodes: int
    seed: int

    def rows(self) -> Rows:
        """Learn with a doubling schedule."""
        problem = drawn_problem(self.height, self.columns, self.seed)
        _, settings = LEARNERS[self.learner]
        spec = Spec(
            world="a map", episodes=self.episodes, seed=self.seed, penalty=PENALTY, **settings
        )  # type: ignore[arg-type]
        learner, rng = spec.build(problem)
        records = list(
            learn(
                learner,
                Simulator(problem),
                episodes=self.episodes,
                every=DOUBLING,
                records=self.episodes,
                rng=rng,
            )
        )
        episode = np.array([record.episode for record in records])
        return {
            "episode": episode,
            "block": np.diff(np.append(0, episode)),
            "value_gap": np.array([record.value_gap for record in records]),
        }


def drawn_problem(height: int, columns: int, seed: int) -> AdviceProblem:
    """Return a generated map and a pilot whose lift is drawn for every state and advice."""
    rng = np.random.default_rng([seed, height, columns])
    grid = generate_map(height, columns, rng=rng, stars=0.4, walls=0.2)
    problem = flappy_bird(map=grid, human="safe")
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
        for seed in range(size.seeds)
    )


def late(run: Rows, epsilon: float) -> tuple[float, bool]:
    """Return the episodes whose policy is not ε-optimal, and whether the last still is not."""
    bad = run["value_gap"] > epsilon
    return float(run["block"][bad].sum()), bool(bad[-1])


def points(
    rows: Mapping[str, Rows], learner: str
) -> dict[str, list[tuple[float, np.ndarray, np.ndarray]]]:
    """Return for H, S and 1/ε: its size, the counts of all seeds, and which are censored."""
    found: dict[str, list[tuple[float, np.ndarray, np.ndarray]]] = {"H": [], "S": [], "1/ε": []}

    def add(axis: str, where: float, height: int, columns: int, epsilon: float) -> None:
        told = [
            late(run, epsilon) for run in seeds_of(rows, f"scaling/{learner}-{height}x{columns}")
        ]
        counts, censored = zip(*told, strict=True)
        found[axis].append((where, np.array(counts), np.array(censored)))

    for columns in LENGTHS:
        add("H", columns, ROWS, columns, EPSILON)
    for height in HEIGHTS:
        add("S", height * COLUMNS + 1, height, COLUMNS, EPSILON)
    for epsilon in EPSILONS:
        add("1/ε", 1.0 / epsilon, ROWS, COLUMNS, epsilon)
    return found


def exponent(series: list[tuple[float, np.ndarray, np.ndarray]]) -> float:
    """Return the slope of log(count) over log(size), where no seed is censored; NaN below three.

    A count of none is taken for one.
    """
    clear = [(x, max(counts.mean(), 1.0)) for x, counts, cut in series if not cut.any()]
    if len(clear) < 3:
        return math.nan
    x, y = np.log(np.array(clear)).T
    return float(np.polyfit(x, y, 1)[0])


def stopping_time(H: int, height: int, epsilon: float, *, delta: float = 0.1) -> float:
    """Return the episodes after which RFE's rule fires if rows of a step are seen equally often.

    W_1 = 16 H² φ(n) / n Σ_{i<H} (1 + 1/H)^i, and W_1 + 4 e √W_1 ≤ ε / 2 is solved for n; at each
    step some ``height`` states with four choices share the episodes.
    """
    S, B = height * H + 1, 4
    base = 6.0 * math.log(4.0 * math.e * S * B * H / (epsilon * delta))
    sums = sum((1.0 + 1.0 / H) ** i for i in range(H))

    def short(n: float) -> bool:
        W = 16.0 * H * H * (base + S * math.log(8.0 * math.e * (n + 1.0))) / n * sums
        return W + 4.0 * math.e * math.sqrt(W) > epsilon / 2.0

    low, high = 1.0, 1.0
    while short(high):
        low, high = high, 2.0 * high
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if short(middle) else (low, middle)
    return high * height * B


def computed() -> dict[str, list[tuple[float, np.ndarray, np.ndarray]]]:
    """Return RFE's stopping times in the form of ``points``."""

    def one(
        where: float, H: int, height: int, epsilon: float
    ) -> tuple[float, np.ndarray, np.ndarray]:
        return where, np.array([stopping_time(H, height, epsilon)]), np.array([False])

    return {
        "H": [one(c, c, ROWS, EPSILON) for c in LENGTHS],
        "S": [one(r * COLUMNS + 1, COLUMNS, r, EPSILON) for r in HEIGHTS],
        "1/ε": [one(1.0 / e, COLUMNS, ROWS, e) for e in EPSILONS],
    }


def exponents(rows: Mapping[str, Rows]) -> dict[str, tuple[float, ...]]:
    """Return the fitted exponents of H, S and 1/ε of each learner, and of RFE's computed times."""
    fitted = {name: tuple(exponent(s) for s in points(rows, name).values()) for name in LEARNERS}
    return fitted | {"rfe": tuple(exponent(s) for s in computed().values())}


def pictures(rows: Mapping[str, Rows]) -> tuple[Picture, ...]:
    """Draw the counts over H, S and 1/ε, censored ones hollow."""
    figure, panels = sheet(3, height=3.8, width=10.5)
    series = {LEARNERS[name][0]: points(rows, name) for name in LEARNERS}
    series["RFE, computed"] = computed()
    for axes, axis in zip(panels, ("H", "S", "1/ε"), strict=True):
        axes.set_xscale("log")
        axes.set_yscale("log")
        ends = []
        for look, (label, found) in zip(LOOKS, series.items(), strict=True):
            x = np.array([where for where, _, _ in found[axis]])
            y = np.array([max(counts.mean(), 1.0) for _, counts, _ in found[axis]])
            held = np.array([censored.any() for _, _, censored in found[axis]])
            axes.plot(x, y, color=look.colour, linestyle=look.dashes, linewidth=1.4)
            style: dict[str, Any] = {"marker": look.marker, "linestyle": "", "markersize": 5.5}
            axes.plot(x[~held], y[~held], color=look.colour, **style)
            axes.plot(x[held], y[held], color=look.colour, markerfacecolor="white", **style)
            ends.append((float(y[-1]), label, look.colour))
        name_axes(axes, f"{axis} (logarithmic)", "episodes (logarithmic)" if axis == "H" else "")
        axes.minorticks_off()
        axes.set_xticks(x, [f"{where:g}" for where in x])
        if axis == "1/ε":
            label_ends(axes, ends)
    caption = (
        f"Episodes whose policy is more than ε = {EPSILON} short of the best (on the right, ε "
        "itself changes), means over seeds; hollow where the last policy of some run is not there "
        "yet. Both axes are logarithmic: powers are straight lines. None is drawn and fitted as "
        f"one. {orders(rows)} " + " ".join(claim.sentence for claim in claims(rows))
    )
    return (Picture("scaling", figure, caption),)


def orders(rows: Mapping[str, Rows]) -> str:
    """Say fitted exponents next to the theorems' orders."""
    told = []
    for name, fitted in exponents(rows).items():
        shown = ", ".join("–" if math.isnan(e) else f"{e:.1f}" for e in fitted)
        order = ORDERS.get(name.removesuffix("-0.01"))
        theory = "" if order is None else f" (theory {', '.join(map(str, order))})"
        told.append(f"{LEARNERS[name][0] if name in LEARNERS else 'RFE'} {shown}{theory}")
    return "Fitted exponents of H, S and 1/ε: " + "; ".join(told) + "."


def claims(rows: Mapping[str, Rows]) -> tuple[Claim, ...]:
    """Test whether UCB-AD needs fewer episodes, and grows no faster than its theorem."""
    mine = points(rows, "ucb-ad")
    counts = np.array([c.mean() for axis in mine.values() for _, c, _ in axis])
    others = {
        name: np.array([c.mean() for axis in points(rows, name).values() for _, c, _ in axis])
        for name in ("ucbvi", "euler")
    }
    least = np.minimum(others["ucbvi"], others["euler"])
    return (
        Claim(
            "UCB-AD has fewer episodes that are not ε-optimal than UCBVI and EULER, at every size.",
            "paper",
            f"at most {np.max(counts / np.maximum(least, 1.0)):.3f} of theirs",
            "largest ratio",
            interval([float(np.max(counts / np.maximum(least, 1.0)))]),
            bool((counts < least).all()),
        ),
        _grows(
            rows,
            "ucb-ad",
            "UCB-AD's count of such episodes grows no faster than Theorem 1 says: H² S² / ε².",
        ),
        _grows(
            rows,
            "rfe",
            "RFE's stopping time grows no faster than Theorem 2 says: H⁵ S / ε².",
        ),
    )


def _grows(rows: Mapping[str, Rows], name: str, text: str) -> Claim:
    """Compare fitted exponents with a theorem's, allowing for logarithms."""
    fitted, order = exponents(rows)[name], ORDERS[name]
    known = [(e, o) for e, o in zip(fitted, order, strict=True) if not math.isnan(e)]
    shown = ", ".join("–" if math.isnan(e) else f"{e:.1f}" for e in fitted)
    beyond = max((e - o for e, o in known), default=math.nan)
    return Claim(
        text,
        "paper",
        f"fitted {shown} for H (with S), S and 1/ε where {', '.join(map(str, order))} are allowed",
        "largest excess of an exponent",
        interval([beyond]),
        bool(known) and beyond <= LOGARITHMS,
    )


SCALING = Experiment(
    "scaling", "How long until policies are good, as problems grow", runs, pictures, claims
)
