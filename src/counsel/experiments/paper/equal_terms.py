"""UCB-AD, RFE-AD and EULER with the same right to tune their constants: equal-terms (ours).

The paper runs RFE-AD with a tenth of its bonus and UCB-AD with a width that its theorem does not
allow, but EULER with the constant of its theorem, and does not count EULER's burn-in. Here all
three run with 1, 1/10, 1/100 and 1/1000 of a bonus: of the paper's width for UCB-AD, of that of its
theorem for RFE-AD and EULER. They learn on random maps of three phases, for 2·10⁵ episodes, planned
every 1000. EULER still has 3·10⁵ episodes of burn-in, and knows which states cannot be reached.

A *tuned* learner has, on each half of the maps, the factor with which it does best on the other
half. Three readings of the regret are shown: as in the other experiments, every block charged with
the policy it begins with; with the burn-in counted; and every block charged with the policy planned
after it, which favours learners that explore first.
"""

from dataclasses import replace

import numpy as np

from counsel._arrays import Floats
from counsel.drawing.figure_style import LINE_STYLES, label_ends, name_axes, subplots
from counsel.experiments.claim import Claim, digits
from counsel.experiments.experiment import Experiment, Picture, Run, Size, Table
from counsel.experiments.paper.regret import (
    BURN_IN,
    FAMILY,
    PEOPLE,
    final_regret,
    medians,
    ucb_ad,
)
from counsel.experiments.rows import RowsByRun, last_of
from counsel.experiments.run_types import Discovery, learning_runs
from counsel.experiments.tuning import best_on_other_half, of_each

EPISODES, EVERY = 200_000, 1000
FACTORS = (1.0, 0.1, 0.01, 0.001)
LEARNERS = {"ucb-ad": "UCB-AD", "rfe-ad": "RFE-AD", "euler": "EULER"}
OWN = {"ucb-ad": 1.0, "rfe-ad": 0.1, "euler": 1.0}  # the factors of the paper
WIDTH = 0.4  # the paper's width of UCB-AD
READINGS = {
    "before": "regret",
    "counted": "regret with burn-in",
    "after": "regret, charged after the block",
}
SEEDS = 12  # medians need fewer seeds than shares of runs


def runs(size: Size) -> tuple[Run, ...]:
    """Return the runs of all learners with all factors, for both people."""
    runs: list[Run] = []
    for person in PEOPLE:
        world = f"flappy-bird/{person}"
        ucb = ucb_ad(world, EPISODES, EVERY, size)
        burn_in = size.episodes(BURN_IN)
        euler = replace(ucb, algorithm="euler", bound=None, burn_in=burn_in, delta=0.1)
        for factor in FACTORS:
            for learner, spec in (
                ("ucb-ad", replace(ucb, scale=WIDTH * factor)),
                ("euler", replace(euler, scale=factor)),
            ):
                runs += learning_runs(_name(person, learner, factor), spec, size, family=FAMILY)
            runs += Discovery.repeat(
                _name(person, "rfe-ad", factor),
                EPISODES,
                EVERY,
                size,
                world=world,
                family=FAMILY,
                scale=factor,
            )
    return tuple(runs)


def _name(person: str, learner: str, factor: float) -> str:
    return f"equal-terms/{person}-{learner}-{factor:g}"


def regrets(rows: RowsByRun, person: str, learner: str, reading: str) -> Floats:
    """Return the final regret by one reading [factor, map]."""
    return np.stack([_regret(rows, _name(person, learner, f), reading) for f in FACTORS])


def _regret(rows: RowsByRun, name: str, reading: str) -> Floats:
    regret = final_regret(rows, name, after=reading == "after")
    if reading == "counted" and "euler" in name:
        regret = regret + last_of(rows, name, "burn_in_regret")
    return regret


def tuned(rows: RowsByRun, person: str, learner: str, reading: str) -> Floats:
    """Return the regret of a tuned learner [map]."""
    regret = regrets(rows, person, learner, reading)
    return of_each(regret, best_on_other_half(regret))


def claims(rows: RowsByRun) -> tuple[Claim, ...]:
    """Test the order of the learners when all are tuned."""
    return tuple(
        _less(rows, person, *comparison)
        for person in PEOPLE
        for comparison in (
            ("ucb-ad", "rfe-ad", "before"),
            ("ucb-ad", "rfe-ad", "after"),
            ("ucb-ad", "euler", "before"),
            ("ucb-ad", "euler", "counted"),
            ("rfe-ad", "euler", "before"),
            ("rfe-ad", "euler", "counted"),
        )
    )


def _less(rows: RowsByRun, person: str, better: str, worse: str, reading: str) -> Claim:
    """Compare the regrets of two tuned learners by one reading."""
    less, more = (tuned(rows, person, learner, reading) for learner in (better, worse))
    words = {
        "before": ", its burn-in not counted" if worse == "euler" else "",
        "counted": ", its burn-in counted",
        "after": ", if blocks are charged with the policy planned after them",
    }[reading]
    return Claim.median(
        f"{PEOPLE[person]}, all tuned: {LEARNERS[better]} has less regret than "
        f"{LEARNERS[worse]}{words}.",
        f"the regret of {LEARNERS[better]} less that of {LEARNERS[worse]}",
        less - more,
        below=0.0,
        source="ours",
        unit="maps",
        note=f"medians {medians(less, more)}",
    )


def pictures(rows: RowsByRun) -> tuple[Picture, ...]:
    """Draw the median regret over the factor."""
    figure, panels = subplots(2)
    for axes, person in zip(panels, PEOPLE, strict=True):
        axes.set_xscale("log")
        axes.set_yscale("log")
        lines = [
            (LEARNERS[learner], regrets(rows, person, learner, "before")) for learner in LEARNERS
        ]
        lines.append(("EULER with burn-in", regrets(rows, person, "euler", "counted")))
        ends = []
        for style, (label, regret) in zip(LINE_STYLES, lines, strict=False):
            middle = np.maximum(np.median(regret, axis=1), 1.0)
            look = {"color": style.colour, "linestyle": style.dashes, "marker": style.marker}
            axes.plot(FACTORS, middle, **look)  # type: ignore[arg-type]
            ends.append((float(middle[0]), label, style.colour))
        name_axes(axes, "factor on the bonus", "median regret (logarithmic)", PEOPLE[person])
        axes.set_xticks(FACTORS, [f"{factor:g}" for factor in FACTORS])
        label_ends(axes, ends)
    caption = (
        "Median regret over random maps of three learners with four factors on their bonus. Both "
        "axes are logarithmic because regrets differ by orders of magnitude."
    )
    return (Picture.of("equal-terms", figure, caption, ()),)


def tables(rows: RowsByRun) -> tuple[Table, ...]:
    """Return who has which regret with whose constant, by all readings."""
    head = ("person", "learner", "factor", *READINGS.values())
    lines: list[tuple[str, ...]] = [head]
    for person in PEOPLE:
        for learner, label in LEARNERS.items():
            numbers = [regrets(rows, person, learner, reading) for reading in READINGS]
            for i, factor in enumerate(FACTORS):
                paper = " (paper)" if factor == OWN[learner] else ""
                shown = [digits(float(np.median(regret[i]))) for regret in numbers]
                lines.append((PEOPLE[person], label, f"{factor:g}{paper}", *shown))
            shown = [
                digits(float(np.median(tuned(rows, person, learner, reading))))
                for reading in READINGS
            ]
            lines.append((PEOPLE[person], label, "tuned", *shown))
    caption = (
        "Median regret over random maps. The first column of regrets charges every block with the "
        "policy it begins with, the second adds EULER's burn-in, the third charges every block "
        "with the policy planned after it. Tuned: the factor that is best on the other half of the "
        "maps."
    )
    return (Table("equal-terms", caption, tuple(lines)),)


EQUAL_TERMS = Experiment(
    "equal-terms",
    "Three learners with the same right to tune",
    runs,
    pictures,
    claims,
    SEEDS,
    tables,
)
