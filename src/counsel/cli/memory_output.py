"""Print which memory a log shows, and how lift fades with it."""

from dataclasses import asdict
from typing import Any

import typer

from counsel.cli.console import finite, new_table, print_table
from counsel.logs.fading import FadingEstimate
from counsel.logs.fitted_model import Fit
from counsel.logs.memory_tests import MemoryTest
from counsel.logs.memory_worth import memory_worth
from counsel.logs.plan import LogPlan
from counsel.report import findings


def print_memory(fit: Fit) -> None:
    """Print the kinds of memory that were compared, and the lift at each level of the model's."""
    for sentence in findings.memory_findings(fit):
        typer.echo(sentence)
    if fit.memories is not None and fit.memories.tests:
        names = ("lift changes with", "by", "test", "verdict", "log likelihood")
        table = new_table("Kinds of memory compared", *names, left=4)
        for test in fit.memories.tests:
            table.add_row(*findings.memory_cells(test, fit.memories))
        print_table(table)
    fading = fit.fading
    if fading is not None:
        table = new_table("What is left of the lift [95 %]", "", "pieces", "lift left", left=1)
        for level in range(fading.factor.size):
            table.add_row(*findings.fading_cells(fading, level))
        print_table(table)


def memory_record(fit: Fit) -> dict[str, Any]:
    """Return the memory of a fit for JSON; empty if none was asked for."""
    record: dict[str, Any] = {}
    if fit.memories is not None:
        record["memories"] = {
            "choice": None if fit.memories.choice is None else fit.memories.choice.name,
            "across": fit.memories.across,
            "compared": [_test_record(test) for test in fit.memories.tests],
            "skipped": dict(fit.memories.skipped),
        }
    if fit.fading is not None:
        record["memory"] = _fading_record(fit.fading)
    return record


def _test_record(test: MemoryTest) -> dict[str, Any]:
    record = asdict(test) | {"kind": test.kind.name, "is_clear": test.is_clear}
    return {name: finite(x) if isinstance(x, float) else x for name, x in record.items()}


def _fading_record(fading: FadingEstimate) -> dict[str, Any]:
    ends = zip(fading.factor, fading.low, fading.high, strict=True)
    return {
        "kind": fading.kind.name,
        "across": fading.kind.across,
        "levels": fading.kind.labels,
        "pieces": fading.pieces.tolist(),
        "fading": [[finite(float(x)) for x in each] for each in ends],
    }


def worth_record(plan: LogPlan) -> dict[str, Any]:
    """Return what it is worth to plan for a memory, for JSON; empty without one."""
    worth = memory_worth(plan) if plan.fit.is_trusted else None
    return {} if worth is None else {"memory_worth": asdict(worth)}
