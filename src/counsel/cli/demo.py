"""The command that demonstrates the whole package: demo."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from counsel.cli import options
from counsel.cli.app import app

if TYPE_CHECKING:
    import counsel


@app.command()
def demo(
    *,
    output: Annotated[
        Path, typer.Option("-o", metavar="DIR", help="Write the page and both runs to this folder.")
    ] = Path("demo"),
    episodes: Annotated[
        int, typer.Option(help="Number of flights with each player while learning.")
    ] = 20_000,
    penalty: Annotated[float, typer.Option(help="Cost of each piece of advice, in stars.")] = 0.3,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Learn to advise two players of a game, and write a page about it."""
    from counsel.cli import demo_output as printing
    from counsel.cli.console import print_json, progress
    from counsel.cli.learning_output import standing
    from counsel.experiments.demo import make_demo

    played = 0
    with progress("Learning (the first time compiles)", 2 * max(episodes, 1)) as advance:

        def show(record: "counsel.learning.Record") -> None:
            nonlocal played
            advance(record.episode - (played if record.episode > played else 0), standing(record))
            played = record.episode

        def say(text: str) -> None:
            sys.stderr.write(f"counsel: {text}\n")

        result = make_demo(
            output, episodes=episodes, penalty=penalty, seed=seed, show=show, say=say
        )
    if as_json:
        print_json(printing.demo_record(result))
        return
    printing.print_demo(result)
    folders = " and ".join(str(folder) for folder in result.folders)
    typer.echo(f"Wrote {result.page}, and the runs behind it in {folders}.")
    address = shlex.quote(result.page.resolve().as_uri())
    typer.echo(f"Next: open {result.page} in a browser, e.g. python3 -m webbrowser {address}")
