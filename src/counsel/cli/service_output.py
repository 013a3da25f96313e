"""What is printed of the service."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import typer

from counsel.cli.console import new_table, print_table


def print_keys(found: Sequence[dict[str, Any]]) -> None:
    """Print keys without what opens anything."""
    if not found:
        typer.echo("There are no keys.")
        return
    table = new_table(None, "name", "role", "made", "works", left=4)
    for one in found:
        made = datetime.fromtimestamp(one["created"], UTC).strftime("%Y-%m-%d %H:%M UTC")
        table.add_row(one["name"], one["role"], made, "no" if one["revoked"] else "yes")
    print_table(table)
