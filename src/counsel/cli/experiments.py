"""Commands for the paper's experiments: reproduce, figures."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from counsel.cli import options
from counsel.cli.app import STOPPED, app, say

if TYPE_CHECKING:
    from counsel.experiments.reproduce import Outcome


@app.command()
def reproduce(  # noqa: PLR0913 (one argument for each option)
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Names of the experiments. Default: all."),
    ] = None,
    *,
    scale: Annotated[float, typer.Option(help="Factor of the paper's numbers of episodes.")] = 1.0,
    seeds: Annotated[
        int | None,
        typer.Option(help="Number of seeds. Default: as many as each experiment needs."),
    ] = None,
    first_seed: Annotated[
        int,
        typer.Option(help="First seed, e.g. 1000 for runs with other seeds."),
    ] = 0,
    workers: Annotated[
        int | None, typer.Option(help="Number of processes. Default: one per core.")
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Address of a Dask scheduler, e.g. tcp://host:8786."),
    ] = None,
    output: Annotated[
        Path, typer.Option("-o", "--out", metavar="DIR", help="Folder of the results.")
    ] = Path("reproduction"),
    as_json: options.Json = False,
) -> None:
    """Run the paper's experiments, draw its figures and test its claims."""
    from counsel._arrays import whole
    from counsel.cli.experiments_output import board
    from counsel.experiments.experiment import Size
    from counsel.experiments.reproduce import reproduce as run_all

    if workers is not None:
        whole("workers", workers, least=1)
    size = Size(scale, seeds, first_seed)
    try:
        with board() as progress:
            outcome = run_all(
                names or [], size, output, workers=workers, cluster=cluster, progress=progress
            )
    except KeyboardInterrupt:
        say("finished runs are kept; the same command resumes")
        raise typer.Exit(STOPPED) from None
    _show(outcome, as_json=as_json)


@app.command()
def figures(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder written by `counsel reproduce`.")
    ],
    *,
    as_json: options.Json = False,
) -> None:
    """Draw the figures, test the claims and write the report again from saved runs."""
    from counsel.experiments.reproduce import redraw

    _show(redraw(folder), as_json=as_json)


def _show(outcome: "Outcome", *, as_json: bool) -> None:
    from counsel.cli import experiments_output as printing
    from counsel.cli.console import print_json

    if as_json:
        print_json(printing.outcome_record(outcome))
        return
    printing.print_outcome(outcome)
    typer.echo(f"Next: open {shlex.quote(str(outcome.files[0]))} in a browser")
