"""Options that several commands share, and how a user would type them."""

import math
from pathlib import Path
from typing import Annotated

import typer

from counsel.errors import CounselError


def _check_seed(seed: int) -> int:
    if seed < 0:
        raise CounselError(f"--seed is {seed}; it must be 0 or more")
    return seed


Source = Annotated[
    str,
    typer.Argument(
        metavar="PROBLEM", help="Problem file (.npz), or a world listed by `counsel worlds`."
    ),
]
Penalty = Annotated[
    float | None, typer.Option(help="Cost of each piece of advice, in units of reward.")
]
Penalties = Annotated[
    str | None,
    typer.Option(
        metavar="FLOAT,…",
        help="Cost of each piece of advice, in units of reward; or one for each step, e.g. "
        "0.1,0.1,0.3.",
    ),
]
Budget = Annotated[float | None, typer.Option(help="Pieces of advice per episode, on average.")]
Discount = Annotated[
    float | None,
    typer.Option(
        help="Plan the problem as work without end, in which a reward t steps from now counts "
        "DISCOUNT to the power of t, e.g. 0.95."
    ),
]
Average = Annotated[
    bool,
    typer.Option(
        "--average",
        help="Plan the problem as work without end, of which the average per step counts; budgets "
        "are pieces per step.",
    ),
]
Hard = Annotated[bool, typer.Option("--hard", help="Never exceed the budget in any episode.")]
Cost = Annotated[
    str | None,
    typer.Option(
        metavar="ADVICE=COST,…",
        help="What a piece of each advice costs, e.g. page=3,nudge=0.5; 1 if not named. Budgets "
        "and penalties are in units of cost.",
    ),
]
Reverse = Annotated[
    bool, typer.Option("--allow-reverse", help="Allow advice that works by repelling.")
]
Seed = Annotated[
    int,
    typer.Option(help="Random seed; the same seed gives the same results.", callback=_check_seed),
]
RandomRewards = Annotated[
    bool,
    typer.Option(
        "--random-rewards",
        help="Pay the least or the largest reward of the range at random, with the same means.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def check_output(output: Path | None, *endings: str) -> None:
    """Raise an error if a result cannot be written, before any work is done."""
    if output is not None and (output.suffix not in endings or output.is_dir()):
        raise CounselError(f"-o {output} must be a file that ends in {' or '.join(endings)}")
    if output is not None and not output.parent.is_dir():
        raise CounselError(f"cannot write {output}: there is no folder {output.parent}")


def read_costs(text: str | None) -> dict[str, float] | None:
    """Parse ADVICE=COST,… and return the cost of each advice by its label."""
    if text is None:
        return None
    costs = dict[str, float]()
    for part in text.split(","):
        label, _, amount = (piece.strip() for piece in part.rpartition("="))
        try:
            cost = float(amount)
        except ValueError:
            cost = math.nan
        if not label or math.isnan(cost):
            raise CounselError(
                f"cost has {part.strip()!r}; write ADVICE=COST,…, each cost a number"
            )
        if label in costs:
            raise CounselError(
                f"cost has {label}={costs[label]:g} and {label}={cost:g}; name each advice once"
            )
        costs[label] = cost
    return costs


def read_penalties(text: str | None) -> float | list[float] | None:
    """Parse one penalty, or one for each step."""
    if text is None:
        return None
    try:
        penalties = [float(part) for part in text.split(",")]
    except ValueError:
        raise CounselError(
            f"penalty is {text!r}; give a number, or one for each step, e.g. 0.1,0.1,0.3"
        ) from None
    return penalties if len(penalties) > 1 else penalties[0]


def planning_options(
    penalty: float | list[float] | None,
    budget: float | None,
    *,
    hard: bool,
    allow_reverse: bool,
) -> str:
    """Return the options of a plan as a user would type them."""
    penalties = penalty if isinstance(penalty, list) else [penalty]
    options = "" if penalty is None else f" --penalty {','.join(f'{p:g}' for p in penalties)}"
    if budget is not None:
        options += f" --budget {budget:g}" + (" --hard" if hard else "")
    return options + (" --allow-reverse" if allow_reverse else "")


def without_end(discount: float | None, *, average: bool) -> str:
    """Return the options of work without end as a user would type them."""
    return " --average" if average else "" if discount is None else f" --discount {discount!r}"
