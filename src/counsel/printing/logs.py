"""What is printed of logs and of what was fitted to them."""

from dataclasses import asdict
from typing import Any

import typer

from counsel.estimate.rates import wilson
from counsel.logs.check import Checked
from counsel.printing.tables import new_table, print_table


def print_checked(name: str, found: "Checked") -> None:
    """Print what a log holds and what is wrong with it."""
    faults = [finding for finding in found.findings if finding.fatal]
    verdict = "It can be learnt from"
    if faults:
        verdict = f"It cannot be learnt from until {len(faults)} kinds of faults are mended"
        if len(faults) == 1:
            verdict = "It cannot be learnt from until one kind of fault is mended"
    people = "" if found.people is None else f" by {found.people:,} people"
    typer.echo(
        f"{name} holds {found.rows:,} decisions{people} in {found.episodes:,} episodes of up to "
        f"{found.longest:,} steps, over {found.states:,} states. {verdict}."
    )
    if found.advised:
        low, high = wilson(found.matched, found.advised)
        share = found.matched / found.advised
        typer.echo(
            f"Advice was seen {found.advised:,} times and matched in {share:.1%} of them "
            f"(95 %: {low:.1%} to {high:.1%})."
        )
    if not found.findings:
        return
    table = new_table(None, "", "found", "for example", "how many", left=3)
    for finding in found.findings:
        kind = "fault" if finding.fatal else "warning"
        how_many = f"{finding.count:,}" if finding.count else "–"
        table.add_row(kind, finding.what, "\n".join(finding.examples), how_many)
    print_table(table)


def checked_record(found: "Checked") -> dict[str, Any]:
    """Return what was found, for JSON."""
    return asdict(found) | {"fatal": found.fatal}
