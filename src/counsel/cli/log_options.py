"""Options of the commands for logs: how a log is read, and how its options are typed again."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from counsel.errors import CounselError

if TYPE_CHECKING:
    from counsel.logs.read import Log

Source = Annotated[
    str,
    typer.Argument(
        metavar="LOG",
        help="Table of decisions: CSV, Parquet, JSON lines, a DuckDB or SQLite file, or "
        "postgresql://…::TABLE.",
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="ROLE=COLUMN,…",
        help="Map roles to your column names, e.g. state=ward+bed,action=did.",
    ),
]
Bins = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=CUTS",
        help="Cut a column of numbers into bins, e.g. spo2=88,92, or age=q4 for four bins of equal "
        "size. Repeat for more columns.",
    ),
]
Actions = Annotated[
    str | None,
    typer.Option(metavar="A,B,…", help="All possible actions; any other action is a fault."),
]
Rewards = Annotated[
    str | None,
    typer.Option(
        metavar="LOW,HIGH", help="Range of possible rewards; any other reward is a fault."
    ),
]
ByStep = Annotated[
    bool, typer.Option("--by-step", help="Estimate every step separately instead of pooling steps.")
]
Share = Annotated[
    str,
    typer.Option(
        help="Which pairs of state and advice share a lift: pair (each has its own; pairs with few "
        "data are pooled with the same advice in other states), advice, or all."
    ),
]
Scale = Annotated[
    str, typer.Option(help="Scale on which similar pairs are pooled: lift or adherence.")
]
Groups = Annotated[
    str | None,
    typer.Option(
        metavar="GROUP=A+B,…", help="Groups of advice that share a lift, e.g. urgent=page+call."
    ),
]
Model = Annotated[
    Path | None,
    typer.Option(
        metavar="MODEL",
        help="Use this model, written by `counsel fit`, with its columns, bins and costs.",
    ),
]
Cautious = Annotated[
    bool,
    typer.Option("--cautious", help="Give only advice whose gain chance does not explain."),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of what is alike, if not people: a ward, a clinic. Errors are by its values.",
    ),
]
Context = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of what changes how much people listen, and nothing else: lifts and plans "
        "are by its values.",
    ),
]
In = Annotated[
    str | None,
    typer.Option("--in", metavar="CONTEXT", help="The context, if the model has contexts."),
]
Unit = Annotated[
    str,
    typer.Option(
        help="What advice was assigned to: decision, or episode or person if some of these were "
        "left without any advice on purpose."
    ),
]


Memory = Annotated[
    str,
    typer.Option(
        metavar="KIND",
        help="What changes how much people listen: none; pieces=N, since=N, dose=DECAY or "
        "refusals=N, a memory of advice; tenure, time in the study; or auto, what the log shows.",
    ),
]
Across = Annotated[
    str,
    typer.Option(
        help="What a memory is carried over: the decisions of an episode, or all episodes of a "
        "person in order of time."
    ),
]


def read(
    log: str,
    columns: str | None,
    bins: list[str] | None,
    cluster: str | None = None,
    context: str | None = None,
) -> "Log":
    """Open a log with its columns and bins."""
    from counsel.logs.binning import Bins
    from counsel.logs.column_mapping import Columns
    from counsel.logs.read import read_log

    roles = Columns.parse(columns).also("cluster", cluster).also("context", context)
    return read_log(log, roles, Bins.parse(bins or []))


def in_context(
    fitted: Any,  # noqa: ANN401 (a fit, or None)
    source: "Log",
    context: str | None,
) -> tuple[Any, "Log"]:
    """Return a model and its log in one context; unchanged without contexts."""
    from counsel.logs.saved_model import only_context

    contexts = () if fitted is None else fitted.tally.contexts
    if context is None and contexts:
        raise CounselError(f"the model has the contexts {', '.join(contexts)}; say which with --in")
    if context is None or fitted is None:
        if context is not None:
            raise CounselError("--in needs a model with contexts (--model)")
        return fitted, source
    return fitted.in_context(context), only_context(source, context)


def refuse_beside_model(model: Path | None, **others: object) -> None:
    """Raise an error if a model is given beside options that it already holds."""
    given = [name for name, value in others.items() if value]
    if model is not None and given:
        raise CounselError(f"--model already sets --{given[0]}; leave out --{given[0]}")


def unless(default: str, value: str) -> str | None:
    """Return a value that is not the default, else None."""
    return None if value == default else value


def typed_reading(columns: str | None, bins: list[str] | None, **others: str | None) -> str:
    """Return the options that say how to read a log, as a user would type them."""
    return typed(columns=columns) + "".join(typed(bins=b) for b in bins or []) + typed(**others)


def typed(**values: str | None) -> str:
    """Return options as a user would type them, without those that are None."""
    return "".join(
        f" --{name} {shlex.quote(value)}" for name, value in values.items() if value is not None
    )


def read_names(text: str | None) -> tuple[str, ...] | None:
    """Parse A,B,…."""
    if text is None:
        return None
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise CounselError(f"actions is {text!r}; give their names: A,B,…")
    return names


def read_groups(text: str | None) -> dict[str, str] | None:
    """Parse GROUP=A+B,… and return the group of each advice."""
    if text is None:
        return None
    group_of = dict[str, str]()
    for part in text.split(","):
        group, _, members = (piece.strip() for piece in part.partition("="))
        names = [name.strip() for name in members.split("+") if name.strip()]
        if not group or not names or any(name in group_of for name in names):
            raise CounselError(
                f"groups has {part.strip()!r}; write GROUP=A+B,…, each advice in one group"
            )
        group_of |= dict.fromkeys(names, group)
    return group_of


def read_range(text: str | None) -> tuple[float, float] | None:
    """Parse LOW,HIGH."""
    if text is None:
        return None
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise CounselError(f"rewards is {text!r}; give two numbers: LOW,HIGH") from None
    return low, high
