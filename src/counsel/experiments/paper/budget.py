"""RFE-CMDP and UC-CFH within a budget (figures 3b, 3c and 6): budget-learning, budget-transfer.

1,500 episodes on the budget map with D = 1, planned every 50; UC-CFH has ε = 1 and δ = 0.5, and
knows that a state is followed by a state of the next column or by "over". Afterwards both plan for
D = 2 … 5 on the same counts.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from counsel.drawing.figure_style import Line, draw_lines, subplots
from counsel.drawing.palette import INK
from counsel.experiments.claim import Claim
from counsel.experiments.experiment import Experiment, Picture, Run, Size
from counsel.experiments.paper.penalty import ENOUGH
from counsel.experiments.rows import RowsByRun, series
from counsel.experiments.run_types import BudgetLearning

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEARNERS = {"RFE-CMDP": "rfe-cmdp", "UC-CFH": "uc-cfh"}
WORLD, EPISODES, EVERY = "flappy-bird-budget/greedy", 1500, 50
CAPTION = (
    "Value gap and unspent budget {}, on the budget map. A policy below zero spends more than its "
    "budget, and may then have a higher value than the best policy within it."
)


def runs(size: Size) -> tuple[Run, ...]:
    """Return the runs of both learners."""
    return tuple(
        run
        for learner in LEARNERS.values()
        for run in BudgetLearning.repeat(
            f"budget-learning/{learner}", EPISODES, EVERY, size, world=WORLD, learner=learner
        )
    )


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
    for axes, (column, label) in zip(panels, labels.items(), strict=True):
        draw_lines(axes, [Line(name, *of(key, column)) for name, key in LEARNERS.items()], x, label)
        axes.axhline(0.0, color=INK, linewidth=0.8)
    return figure


def learning_claims(rows: RowsByRun) -> tuple[Claim, ...]:
    """Test which learner is closer to the best while learning."""
    rfe_gap, uc_gap = (
        np.abs(while_learning(rows, key, "value_gap")[1]) for key in LEARNERS.values()
    )
    rfe, uc, last = rfe_gap.mean(axis=1), uc_gap.mean(axis=1), rfe_gap[:, -1]
    return (
        Claim.median(
            "RFE-CMDP converges at least as fast as UC-CFH: its value gap is smaller on average "
            "over the episodes.",
            "the value gap per episode of RFE-CMDP less that of UC-CFH",
            rfe - uc,
            below=0.0,
        ),
        Claim.share(
            f"RFE-CMDP ends within {ENOUGH} of the best for D = 1.",
            "the value gap at the end",
            last,
            below=ENOUGH,
        ),
    )


def transfer_claims(rows: RowsByRun) -> tuple[Claim, ...]:
    """Test whether learning for one budget serves other budgets."""
    budgets, _ = afterwards(rows, "rfe-cmdp", "value_gap")
    other = budgets > 1.0
    rfe_worst, uc_worst = (
        np.maximum(afterwards(rows, key, "value_gap")[1], -afterwards(rows, key, "advice_gap")[1])
        for key in LEARNERS.values()
    )
    rfe, uc = rfe_worst[:, other].max(axis=1), uc_worst[:, other].max(axis=1)
    first = uc_worst[:, ~other].max(axis=1)
    near = f"neither the value gap nor the pieces beyond the budget exceed {ENOUGH}"
    return (
        Claim.share(
            f"RFE-CMDP is near-optimal for D = 2 … 5: {near}.",
            "the worst over D",
            rfe,
            below=ENOUGH,
        ),
        Claim.share(
            f"UC-CFH is not: for some D = 2 … 5 one of the two exceeds {ENOUGH}.",
            "the worst over D",
            uc,
            above=ENOUGH,
        ),
        Claim.share(
            f"UC-CFH is near-optimal for the budget it learnt for, D = 1: {near}.",
            "the worse of the two",
            first,
            below=ENOUGH,
        ),
    )


LEARNING = Experiment(
    "budget-learning", "Learning within a budget of one", runs, learning_pictures, learning_claims
)
TRANSFER = Experiment(
    "budget-transfer",
    "Learning for one budget, planning for others",
    runs,
    transfer_pictures,
    transfer_claims,
)
