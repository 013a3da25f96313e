"""Commands for tables of past decisions."""

from typing import Annotated

import typer

from counsel.cli.app import Json, app
from counsel.errors import CounselError


@app.command()
def check(
    log: Annotated[
        str,
        typer.Argument(
            metavar="LOG",
            help="A table of decisions: CSV, Parquet, JSON lines, a DuckDB or SQLite file, or "
            "postgresql://…::TABLE.",
        ),
    ],
    *,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="ROLE=COLUMN,…",
            help="Columns that are called otherwise: state=ward+bed,action=did, say.",
        ),
    ] = None,
    actions: Annotated[
        str | None, typer.Option(metavar="A,B,…", help="All actions there are.")
    ] = None,
    rewards: Annotated[
        str | None, typer.Option(metavar="LOW,HIGH", help="The range of rewards.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Look through a table of past decisions and say whether it can be learnt from."""
    from counsel.logs.check import check_log
    from counsel.logs.read import read_log
    from counsel.logs.schema import Columns
    from counsel.printing import logs as printing
    from counsel.printing.tables import print_json

    known = None if actions is None else tuple(name.strip() for name in actions.split(","))
    found = check_log(
        read_log(log, Columns.parse(columns)), actions=known, reward_range=_range(rewards)
    )
    if as_json:
        print_json(printing.checked_record(found))
    else:
        printing.print_checked(log, found)
    if found.fatal:
        raise typer.Exit(2)


def _range(given: str | None) -> tuple[float, float] | None:
    """Return two numbers from LOW,HIGH."""
    if given is None:
        return None
    try:
        low, high = (float(part) for part in given.split(","))
    except ValueError:
        raise CounselError(f"rewards is {given!r}; give two numbers: LOW,HIGH") from None
    return low, high
