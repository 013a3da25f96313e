"""Print the progress and the results of experiments."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from counsel.cli.console import new_table, print_table
from counsel.experiments.experiment import Run
from counsel.experiments.reproduce import Outcome, cost, headline, record_of
from counsel.experiments.reproduce import Progress as RunProgress
from counsel.experiments.store import RunResult


class Board(RunProgress):
    """Shows a bar for all runs, weighted by their length, and a line for each active run."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._all: TaskID | None = None
        self._active: dict[str, TaskID] = {}
        self._done, self._of = 0, 0

    def plan(self, left: Sequence[Run], runs: Sequence[Run]) -> None:
        self._done, self._of = len(runs) - len(left), len(runs)
        if self._progress is not None:
            total = sum(cost(run) for run in left)
            self._all = self._progress.add_task("All runs", total=total, count=self._count)

    def start(self, run: Run) -> None:
        if self._progress is not None and run.id not in self._active:  # not when retried
            self._active[run.id] = self._progress.add_task(f"  {run.id}", total=None, count="")

    def end(self, run: Run, result: RunResult) -> None:
        self._done += 1
        if self._progress is not None and self._all is not None:
            self._progress.remove_task(self._active.pop(run.id))
            self._progress.update(self._all, advance=cost(run), count=self._count)

    @property
    def _count(self) -> str:
        return f"{self._done} of {self._of}"


@contextmanager
def board() -> Iterator[Board]:
    """Show the runs on a terminal; nothing without one."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield Board(None)
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[count]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, speed_estimate_period=3600.0
    ) as progress:
        yield Board(progress)


def print_outcome(outcome: Outcome) -> None:
    """Print every claim and the verdict on it."""
    title, _ = headline([finding.claim for finding in outcome.findings])
    typer.echo(f"{title}.")
    table = new_table(None, "experiment", "claim", "measured [99 % interval]", "verdict", left=4)
    for finding in outcome.findings:
        claim = finding.claim
        table.add_row(
            finding.experiment,
            claim.text if claim.source == "paper" else f"{claim.text} (ours)",
            claim.measured,
            str(claim.verdict),
        )
    print_table(table)
    typer.echo(
        f"{outcome.done} runs done, {outcome.skipped} done before, in "
        f"{outcome.seconds:,.0f} seconds."
    )
    for name, (done, total) in outcome.unfinished.items():
        typer.echo(
            f"{name} is left out: {done} of {total} runs are done; run counsel reproduce "
            f"{name} to finish it."
        )
    typer.echo("Wrote " + ", ".join(str(path) for path in outcome.files) + ".")


def outcome_record(outcome: Outcome) -> dict[str, Any]:
    """Return claims and files for JSON."""
    return {
        "claims": [record_of(finding) for finding in outcome.findings],
        "unfinished": outcome.unfinished,
        "done": outcome.done,
        "skipped": outcome.skipped,
        "seconds": outcome.seconds,
        "written": [str(path) for path in outcome.files],
    }
