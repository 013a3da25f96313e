"""Numbers, tables and bars as the command line shows them."""

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

ROWS = 40
"""Rows of a long table that are printed; --json and -o have them all."""


def short(number: float) -> str:
    """Three significant digits."""
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    text = f"{number:.3g}"
    return f"{number:,.0f}" if "e" in text and 1e3 <= abs(number) < 1e12 else text


def in_full(number: float) -> str:
    """Five significant digits: enough to see what advice changes."""
    text = f"{number:.5g}"
    return f"{number:,.0f}" if "e" in text and 1e5 <= abs(number) < 1e12 else text


def counted(number: float, one: str, many: str | None = None) -> str:
    """Return a number of things: 1 step, 2 steps."""
    return f"{number:,.0f} {one if number == 1 else many or one + 's'}"


def finite(number: float) -> float | None:
    """JSON has no infinity."""
    return number if math.isfinite(number) else None


def print_json(record: dict[str, Any]) -> None:
    """Print a record for scripts."""
    typer.echo(json.dumps(record, indent=2, ensure_ascii=False))


class Plain(Console):
    """A console that prints labels as they are and leaves a broken pipe to the caller."""

    def __init__(self, width: int | None = None) -> None:
        super().__init__(width=width, markup=False, emoji=False, highlight=False)

    def on_broken_pipe(self) -> None:
        """Let the program end as any other does."""
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
    """Show a bar with rate, time left and what matters on a terminal; nothing when piped."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda done, figure: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]} a second"),
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
    """Show the same bar for something that tells how many are done so far."""
    with progress(what, total) as advance:
        last = 0

        def show(done: int) -> None:
            nonlocal last
            advance(done - last, "")
            last = done

        yield show


def pieces_of(count: float) -> str:
    """Return a number of pieces of advice in words."""
    return f"{short(count)} piece{'' if short(count) == '1' else 's'} of advice"
