"""Print the results of learning runs."""

from dataclasses import asdict
from typing import Any

import typer

from counsel.cli.console import new_table, print_table
from counsel.cli.planning_output import print_match_rates
from counsel.cli.summaries import LearningSummary
from counsel.learning.learn import Record
from counsel.report.number_format import in_full, pieces_of_advice, short
from counsel.runs.run import Result
from counsel.runs.spec import Spec


def standing(record: Record) -> str:
    """Return the state of a learner, for the progress bar."""
    return f"regret {short(record.regret)}, gap {short(record.value_gap)}"


def print_run(summary: LearningSummary) -> None:
    """Print the value of the learnt policy and the cost of learning."""
    result, last = summary.result, summary.last
    best = (
        "the best possible advice" if summary.spec.budget is None else "the best within the budget"
    )
    standing = f"as good as {best}"
    if summary.gap:
        side = "below" if summary.gap > 0 else "above"
        standing = f"{short(abs(summary.gap))} {side} {best} ({in_full(result.best)})"
    typer.echo(
        f"After {last.episode:,} episodes the advice is worth {in_full(result.value)} per episode, "
        f"{standing}. Learning cost {short(summary.cost)} reward in total, "
        f"{short(summary.cost / last.episode)} per episode."
    )
    if summary.spec.budget is not None:
        over = summary.over_budget
        spent = f"{short(over)} above" if over else "within"
        typer.echo(
            f"It gives {pieces_of_advice(result.advice_count)} per episode, {spent} the budget."
        )
    if result.stopping_rule_fired:
        typer.echo("The stopping rule fired: exploration is complete.")
    if summary.problem.human.repels:
        typer.echo(f"{summary.problem.repels()} The best possible advice makes use of that.")
    table = new_table(
        None, "episode", "value gap (reward)", "regret (reward)", "advice per episode", "seconds"
    )
    for record in summary.milestones():
        table.add_row(
            f"{record.episode:,}",
            short(summary.value_gap(record)),
            short(summary.regret(record)),
            short(record.advice_count),
            f"{record.seconds:.2f}",
        )
    print_table(table)
    print_match_rates(summary.match_rates)


def run_record(spec: Spec, result: Result) -> dict[str, Any]:
    """Return a learning run for JSON."""
    return {
        "settings": spec.settings(),
        **result.record(),
        "records": [asdict(record) for record in result.records],
        "written": [str(path) for path in result.files],
    }
