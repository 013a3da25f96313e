"""Options that several commands share, and how a user would type them."""

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
Budget = Annotated[float | None, typer.Option(help="Pieces of advice per episode, on average.")]
Hard = Annotated[bool, typer.Option("--hard", help="Never exceed the budget in any episode.")]
Reverse = Annotated[
    bool, typer.Option("--allow-reverse", help="Allow advice that works by repelling.")
]
Seed = Annotated[
    int,
    typer.Option(help="Random seed; the same seed gives the same results.", callback=_check_seed),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def check_output(output: Path | None, *endings: str) -> None:
    """Raise an error if a result cannot be written, before any work is done."""
    if output is not None and (output.suffix not in endings or output.is_dir()):
        raise CounselError(f"-o {output} must be a file that ends in {' or '.join(endings)}")
    if output is not None and not output.parent.is_dir():
        raise CounselError(f"cannot write {output}: there is no folder {output.parent}")


def planning_options(
    penalty: float | None, budget: float | None, *, hard: bool, allow_reverse: bool
) -> str:
    """Return the options of a plan as a user would type them."""
    options = "" if penalty is None else f" --penalty {penalty:g}"
    if budget is not None:
        options += f" --budget {budget:g}" + (" --hard" if hard else "")
    return options + (" --allow-reverse" if allow_reverse else "")
