"""What the commands of the service print."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import typer

from counsel.cli.console import new_table, print_table


def print_keys(keys: Sequence[dict[str, Any]]) -> None:
    """Print a table of keys."""
    if not keys:
        typer.echo("There are no keys.")
        return
    table = new_table(None, "name", "role", "created", "valid", left=4)
    for key in keys:
        created = datetime.fromtimestamp(key["created"], UTC).strftime("%Y-%m-%d %H:%M UTC")
        table.add_row(key["name"], key["role"], created, "no" if key["revoked"] else "yes")
    print_table(table)
