"""Print the results of the demo."""

from typing import Any

import typer

from counsel.cli.console import new_table, print_table
from counsel.experiments.demo import Demo
from counsel.report.number_format import short


def print_demo(demo: Demo) -> None:
    """Print what the advice is worth to each player, and the cost of learning."""
    table = new_table(
        f"Stars per flight, after {demo.players[0].records[-1].episode:,} flights with each player",
        "player",
        "alone",
        "with advice",
        "pieces of advice",
        "learning cost (stars)",
        left=1,
    )
    for player in demo.players:
        table.add_row(
            player.name,
            short(player.alone),
            short(player.evaluation.value),
            short(player.evaluation.advice_count),
            short(player.cost),
        )
    print_table(table)
    typer.echo(f"It took {demo.seconds:.0f} seconds.")


def demo_record(demo: Demo) -> dict[str, Any]:
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
