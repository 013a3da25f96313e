"""Tables, progress bars and JSON on the terminal."""

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from counsel.report.number_format import short

ROWS = 40
"""The most rows of a table on the terminal; --json and -o have all."""


def finite(number: float) -> float | None:
    """Return a number, or None for infinity and NaN, which JSON lacks."""
    return number if math.isfinite(number) else None


def print_json(record: dict[str, Any]) -> None:
    """Print a record as JSON."""
    typer.echo(json.dumps(record, indent=2, ensure_ascii=False))


class Plain(Console):
    """A console that prints labels unchanged and leaves a broken pipe to the caller."""

    def __init__(self, width: int | None = None) -> None:
        super().__init__(width=width, markup=False, emoji=False, highlight=False)

    def on_broken_pipe(self) -> None:
        """Raise an error, so that the program ends in the usual way."""
        raise BrokenPipeError


def print_table(table: Table) -> None:
    """Print a table, as wide as the terminal or 120 characters."""
    console = Plain()
    if not console.is_terminal:
        console = Plain(width=120)
    console.print(table)


def new_table(title: str | None, *columns: str, left: int = 0) -> Table:
    """Return a plain table; the first ``left`` columns are text, the others numbers."""
    table = Table(title=title, title_justify="left", title_style="", box=box.SIMPLE_HEAD)
    for i, name in enumerate(columns):
        table.add_column(name, justify="left" if i < left else "right")
    return table


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[int, str], None]]:
    """Show a progress bar with the rate, the time left and a figure; nothing without a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda done, figure: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]} per second"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[figure]}"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=total, figure="", rate="–")

        def advance(done: int, figure: str) -> None:
            bar.advance(task, done)
            speed = bar.tasks[0].speed
            rate = "–" if speed is None else short(speed)
            bar.update(task, figure=figure, rate=rate)

        yield advance


@contextmanager
def counting(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show the same bar for a task that reports its total progress."""
    with progress(what, total) as advance:
        last = 0

        def show(done: int) -> None:
            nonlocal last
            advance(done - last, "")
            last = done

        yield show
