"""The command that demonstrates the whole package: demo."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from counsel.cli import options
from counsel.cli.app import app, say

if TYPE_CHECKING:
    import counsel
    from counsel.experiments.demo import Demo


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
    from counsel.cli.console import print_json, progress
    from counsel.cli.learning_output import standing
    from counsel.experiments.demo import make_demo

    played = 0
    with progress("Learning (the first time compiles)", 2 * max(episodes, 1)) as advance:

        def show(record: "counsel.learning.Record") -> None:
            nonlocal played
            advance(record.episode - (played if record.episode > played else 0), standing(record))
            played = record.episode

        result = make_demo(
            output, episodes=episodes, penalty=penalty, seed=seed, show=show, say=say
        )
    if as_json:
        print_json(_record(result))
        return
    _print(result)
    folders = " and ".join(str(folder) for folder in result.folders)
    typer.echo(f"Wrote {result.page}, and the runs behind it in {folders}.")
    address = shlex.quote(result.page.resolve().as_uri())
    typer.echo(f"Next: open {result.page} in a browser, e.g. python3 -m webbrowser {address}")


def _print(demo: "Demo") -> None:
    """Print what the advice is worth to each player, and the cost of learning."""
    from counsel.cli.console import new_table, print_table
    from counsel.report.number_format import short

    table = new_table(
        f"Stars per flight, after {demo.players[0].records[-1].episode:,} flights with each player",
        *("player", "alone", "with advice", "pieces of advice", "learning cost (stars)"),
        left=1,
    )
    for player in demo.players:
        learnt = player.evaluation
        numbers = (player.alone, learnt.value, learnt.advice_count, player.cost)
        table.add_row(player.name, *map(short, numbers))
    print_table(table)
    typer.echo(f"It took {demo.seconds:.0f} seconds.")


def _record(demo: "Demo") -> dict[str, Any]:
    """Return the results for JSON."""
    return {
        "page": str(demo.page),
        "seconds": demo.seconds,
        "players": {
            player.key: {
                "alone": player.alone,
                "value": player.evaluation.value,
                "advice_count": player.evaluation.advice_count,
                "value_gap": player.gap,
                "regret": player.cost,
                "folder": str(folder),
            }
            for player, folder in zip(demo.players, demo.folders, strict=True)
        },
    }
