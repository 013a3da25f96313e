"""RFE-CMDP and UC-CFH within a budget (figures 3b, 3c and 6): budget-learning, budget-transfer.

1,500 episodes on the budget map with D = 1, planned every 50; UC-CFH has ε = 1 and δ = 0.5, and
knows that a state is followed by a state of the next column or by "over". Afterwards both plan for
D = 2 … 5 on the same counts. Figures show the shipped map; claims are about random budget maps.

RFE-CMDP has a tenth of its bonus, as in the paper; the paper does not print the constant of UC-CFH,
which is 1 in theory. Both also run with other factors. A learner is *tuned* if each half of the
maps has the factor with which it does best on the other half.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from counsel._arrays import Floats
from counsel.drawing.figure_style import Line, draw_lines, subplots
from counsel.experiments.claim import Claim, digits
from counsel.experiments.experiment import Experiment, Picture, Run, Size, Table
from counsel.experiments.paper.penalty import ENOUGH
from counsel.experiments.paper.regret import MAPS, medians
from counsel.experiments.rows import RowsByRun, series
from counsel.experiments.run_types import BudgetLearning
from counsel.experiments.tuning import best_on_other_half, of_each

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEARNERS = {"RFE-CMDP": "rfe-cmdp", "UC-CFH": "uc-cfh"}
OWN = {"rfe-cmdp": 0.1, "uc-cfh": 1.0}  # the factors of the paper
SCALES = {"rfe-cmdp": (1.0, 0.1, 0.01), "uc-cfh": (1.0, 0.7, 0.4, 0.1, 0.01)}
WORLD, FAMILY, EPISODES, EVERY = "flappy-bird-budget/greedy", "budget", 1500, 50
CAPTION = (
    "Value gap and unspent budget {}, on the shipped budget map. A policy below zero spends more "
    "than its budget, and may then have a higher value than the best policy within it."
)


def runs(size: Size) -> tuple[Run, ...]:
    """Return the runs of both learners on the shipped map, and with every factor on random maps."""
    runs: list[Run] = []
    for learner, scales in SCALES.items():
        settings = {"world": WORLD, "learner": learner}
        runs += BudgetLearning.repeat(
            f"budget-learning/{learner}", EPISODES, EVERY, size.few, scale=OWN[learner], **settings
        )
        for scale in scales:
            runs += BudgetLearning.repeat(
                f"budget-learning/{on_maps(learner, scale)}",
                EPISODES,
                EVERY,
                size,
                scale=scale,
                family=FAMILY,
                **settings,
            )
    return tuple(runs)


def on_maps(learner: str, scale: float | None = None) -> str:
    """Return the name of a learner with this factor, or the paper's, on random maps."""
    return f"maps-{learner}-{OWN[learner] if scale is None else scale:g}"


def while_learning(rows: RowsByRun, learner: str, column: str) -> tuple[np.ndarray, np.ndarray]:
    """Return episodes, and a column during learning [seed, update]."""
    return series(rows, f"budget-learning/{learner}", column, when=0)


def afterwards(rows: RowsByRun, learner: str, column: str) -> tuple[np.ndarray, np.ndarray]:
    """Return budgets, and a column after learning [seed, budget]."""
    return series(rows, f"budget-learning/{learner}", column, over="budget", when=1)


def learning_pictures(rows: RowsByRun) -> tuple[Picture, ...]:
    """Draw value gap and unspent budget while learning."""
    figure = _draw_gaps("episodes", partial(while_learning, rows))
    caption = CAPTION.format("while learning for D = 1")
    return (Picture.of("budget-learning", figure, caption, learning_claims(rows)),)


def transfer_pictures(rows: RowsByRun) -> tuple[Picture, ...]:
    """Draw value gap and unspent budget for every budget, after learning for one."""
    figure = _draw_gaps("budget D", partial(afterwards, rows))
    caption = CAPTION.format("of plans for other budgets, after learning for D = 1")
    return (Picture.of("budget-transfer", figure, caption, transfer_claims(rows)),)


def _draw_gaps(x: str, of: Callable[[str, str], tuple[np.ndarray, np.ndarray]]) -> "Figure":
    """Draw value gap and unspent budget of both learners; ``of`` returns a learner's column."""
    figure, panels = subplots(2)
    labels = {"value_gap": "value gap", "advice_gap": "budget less pieces of advice"}
    title = "Policy Greedy, budget map"
    for axes, (column, label) in zip(panels, labels.items(), strict=True):
        lines = [Line(name, *of(key, column)) for name, key in LEARNERS.items()]
        draw_lines(axes, lines, x, label, title, signed=True)
    return figure


def learning_claims(rows: RowsByRun) -> tuple[Claim, ...]:
    """Test which learner is closer to the best while learning, at equal terms too."""
    rfe, uc = (mean_gap(rows, on_maps(learner)) for learner in LEARNERS.values())
    shipped = [mean_gap(rows, learner) for learner in LEARNERS.values()]
    own, other = (tuned_gap(rows, learner) for learner in LEARNERS.values())
    last = np.abs(while_learning(rows, on_maps("rfe-cmdp"), "value_gap")[1][:, -1])
    quantity = "the value gap per episode of RFE-CMDP less that of UC-CFH"
    return (
        Claim.median(
            "RFE-CMDP converges at least as fast as UC-CFH: its value gap is smaller on average "
            "over the episodes.",
            quantity,
            rfe - uc,
            below=0.0,
            unit="maps",
            note=f"medians {medians(rfe, uc)}; on the shipped map {medians(*shipped)}",
        ),
        Claim.median(
            "So it does if both learners are tuned.",
            quantity,
            own - other,
            below=0.0,
            source="ours",
            unit="maps",
            note=f"medians {medians(own, other)}",
        ),
        Claim.share(
            f"RFE-CMDP ends within {ENOUGH} of the best for D = 1, on most maps.",
            "the value gap at the end",
            last,
            below=ENOUGH,
            unit="maps",
        ),
    )


def mean_gap(rows: RowsByRun, learner: str) -> Floats:
    """Return the mean over all updates of the absolute value gap [seed]."""
    mean: Floats = np.abs(while_learning(rows, learner, "value_gap")[1]).mean(axis=1)
    return mean


def tuned_gap(rows: RowsByRun, learner: str) -> Floats:
    """Return the mean value gap with the factor that is best on the other half of the maps."""
    gaps = np.stack([mean_gap(rows, on_maps(learner, scale)) for scale in SCALES[learner]])
    return of_each(gaps, best_on_other_half(gaps))


def worst(rows: RowsByRun, learner: str) -> tuple[Floats, Floats]:
    """Return the larger of value gap and pieces beyond the budget: for D = 1, worst of others."""
    budgets, gap = afterwards(rows, learner, "value_gap")
    larger = np.maximum(gap, -afterwards(rows, learner, "advice_gap")[1])
    return larger[:, budgets == 1.0].max(axis=1), larger[:, budgets > 1.0].max(axis=1)


def tuned_worst(rows: RowsByRun, learner: str) -> tuple[Floats, Floats]:
    """Return the same with the factor that has the smaller mean gap on the other half of maps."""
    scales = SCALES[learner]
    gaps = np.stack([mean_gap(rows, on_maps(learner, scale)) for scale in scales])
    first, others = zip(*(worst(rows, on_maps(learner, scale)) for scale in scales), strict=True)
    chosen = best_on_other_half(gaps)
    return of_each(np.stack(first), chosen), of_each(np.stack(others), chosen)


def transfer_claims(rows: RowsByRun) -> tuple[Claim, ...]:
    """Test whether learning for one budget serves other budgets."""
    _, rfe = worst(rows, on_maps("rfe-cmdp"))
    first, uc = worst(rows, on_maps("uc-cfh"))
    tuned_first, tuned = tuned_worst(rows, "uc-cfh")
    (_, own) = tuned_worst(rows, "rfe-cmdp")
    near = f"neither the value gap nor the pieces beyond the budget exceed {ENOUGH}"
    some = f"for some D = 2 … 5 one of the two exceeds {ENOUGH}"
    return (
        Claim.share(
            f"RFE-CMDP is near-optimal for D = 2 … 5, on most maps: {near}.",
            "the worst over D",
            rfe,
            below=ENOUGH,
            unit="maps",
        ),
        Claim.share(
            f"UC-CFH is not, on most maps: {some}.",
            "the worst over D",
            uc,
            above=ENOUGH,
            unit="maps",
        ),
        Claim.median(
            "For D = 2 … 5 RFE-CMDP is closer to the best than UC-CFH, also if both are tuned.",
            "the worst of RFE-CMDP over D less that of UC-CFH",
            np.maximum(rfe - uc, own - tuned),
            below=0.0,
            source="ours",
            unit="maps",
            note=f"medians {medians(rfe, uc)}, tuned {medians(own, tuned)}",
        ),
        Claim.share(
            f"UC-CFH, tuned, is not either, on most maps: {some}.",
            "the worst over D",
            tuned,
            above=ENOUGH,
            source="ours",
            unit="maps",
        ),
        Claim.share(
            f"UC-CFH is near-optimal for the budget it learnt for, D = 1, on most maps: {near}.",
            "the worse of the two",
            first,
            below=ENOUGH,
            unit="maps",
        ),
        Claim.share(
            f"UC-CFH, tuned, is near-optimal for D = 1, on most maps: {near}.",
            "the worse of the two",
            tuned_first,
            below=ENOUGH,
            source="ours",
            unit="maps",
        ),
    )


def tables(rows: RowsByRun) -> tuple[Table, ...]:
    """Return every learner with every factor: gaps while learning, and after it for each budget."""
    head = ("learner", "factor", "mean value gap", "worst at D = 1", "worst at D = 2 … 5")
    lines: list[tuple[str, ...]] = [head]
    for label, learner in LEARNERS.items():
        for scale in SCALES[learner]:
            name = on_maps(learner, scale)
            numbers = [mean_gap(rows, name), *worst(rows, name)]
            paper = " (paper)" if scale == OWN[learner] else ""
            shown = (digits(float(np.median(x))) for x in numbers)
            lines.append((label, f"{scale:g}{paper}", *shown))
    caption = (
        "Medians over random budget maps, with every factor on the bonus: the value gap on average "
        "over the episodes, and after the last the larger of value gap and pieces beyond the "
        "budget, for D = 1 and for the worst of D = 2 … 5."
    )
    return (Table("budget-constants", caption, tuple(lines)),)


LEARNING = Experiment(
    "budget-learning",
    "Learning within a budget of one",
    runs,
    learning_pictures,
    learning_claims,
    MAPS,
    tables,
)
TRANSFER = Experiment(
    "budget-transfer",
    "Learning for one budget, planning for others",
    runs,
    transfer_pictures,
    transfer_claims,
    MAPS,
)
