"""The command that shows it all at once: demo."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from counsel.cli.app import Json, app
from counsel.errors import CounselError

if TYPE_CHECKING:
    import counsel


@app.command()
def demo(
    *,
    output: Annotated[
        Path, typer.Option("-o", metavar="DIR", help="Write the page and both runs there.")
    ] = Path("demo"),
    episodes: Annotated[
        int, typer.Option(help="Flights with each player while learning.")
    ] = 20_000,
    penalty: Annotated[
        float, typer.Option(help="What each piece of advice costs, in stars.")
    ] = 0.3,
    seed: Annotated[int, typer.Option(help="The same seed gives the same results.")] = 0,
    as_json: Json = False,
) -> None:
    """Learn to advise two players of a game, and write a page that shows it."""
    from counsel.cli import demo_output as printing
    from counsel.cli.console import print_json, progress
    from counsel.cli.learning_output import standing
    from counsel.experiments.demo import make_demo

    if seed < 0:
        raise CounselError(f"--seed is {seed}; it must be 0 or more")
    played = 0
    with progress("Learning (the first time compiles)", 2 * max(episodes, 1)) as advance:

        def show(record: "counsel.Record") -> None:
            nonlocal played
            advance(record.episode - (played if record.episode > played else 0), standing(record))
            played = record.episode

        def say(text: str) -> None:
            sys.stderr.write(f"counsel: {text}\n")

        made = make_demo(output, episodes=episodes, penalty=penalty, seed=seed, show=show, say=say)
    if as_json:
        print_json(printing.demo_record(made))
        return
    printing.print_demo(made)
    folders = " and ".join(str(folder) for folder in made.folders)
    typer.echo(f"Wrote {made.page}, and the runs behind it in {folders}.")
    address = shlex.quote(made.page.resolve().as_uri())
    typer.echo(f"Next: open {made.page} in a browser, e.g. python3 -m webbrowser {address}")
