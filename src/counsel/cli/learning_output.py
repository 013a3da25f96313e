"""Print the results of learning runs."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import typer

from counsel.cli.console import new_table, print_table
from counsel.cli.planning_output import print_match_rates
from counsel.learning.learn import Record
from counsel.model.problem import AdviceProblem
from counsel.report.number_format import in_full, pieces_of_advice, short
from counsel.runs.run import Result
from counsel.runs.spec import Spec


def standing(record: Record) -> str:
    """Return the state of a learner, for the progress bar."""
    return f"regret {short(record.regret)}, gap {short(record.value_gap)}"


def print_run(spec: Spec, problem: AdviceProblem, result: Result) -> None:
    """Print the value of the learnt policy and the cost of learning."""
    last, rounding = result.records[-1], 1e-9 * (1.0 + abs(result.best))
    gap, cost = result.best - result.value, _regret(last, rounding)
    best = "the best possible advice" if spec.budget is None else "the best within the budget"
    quality = f"as good as {best}"
    if abs(gap) > rounding:
        side = "below" if gap > 0 else "above"
        quality = f"{short(abs(gap))} {side} {best} ({in_full(result.best)})"
    typer.echo(
        f"After {last.episode:,} episodes the advice is worth {in_full(result.value)} per episode, "
        f"{quality}. Learning cost {short(cost)} reward in total, "
        f"{short(cost / last.episode)} per episode."
    )
    if spec.budget is not None:
        over = result.advice_cost - spec.budget
        spent = f"{short(over)} above" if over > rounding else "within"
        pieces = pieces_of_advice(result.advice_count)
        if abs(result.advice_cost - result.advice_count) > rounding:
            pieces += f" at a cost of {short(result.advice_cost)}"
        typer.echo(f"It gives {pieces} per episode, {spent} the budget.")
    if result.stopping_rule_fired:
        typer.echo("The stopping rule fired: exploration is complete.")
    if problem.human.repels:
        typer.echo(f"{problem.repels()} The best possible advice makes use of that.")
    table = new_table(
        None, "episode", "value gap (reward)", "regret (reward)", "advice per episode", "seconds"
    )
    for record in _milestones(result.records):
        table.add_row(
            f"{record.episode:,}",
            short(record.value_gap if abs(record.value_gap) > rounding else 0.0),
            short(_regret(record, rounding)),
            short(record.advice_count),
            f"{record.seconds:.2f}",
        )
    print_table(table)
    if result.matches is not None:
        print_match_rates(problem, *result.matches)


def _regret(record: Record, rounding: float) -> float:
    return record.regret if record.regret > rounding * record.episode else 0.0


def _milestones(records: Sequence[Record]) -> list[Record]:
    """Return records at about 1, 2, 5, 10, 20, 50, … episodes, and the last."""
    chosen = list[Record]()
    for number in (m * 10**e for e in range(10) for m in (1, 2, 5)):
        near = next((record for record in records if record.episode >= number), records[-1])
        if not chosen or near.episode > chosen[-1].episode:
            chosen.append(near)
    return chosen


def run_record(spec: Spec, result: Result) -> dict[str, Any]:
    """Return a learning run for JSON."""
    return {
        "settings": spec.settings(),
        **result.record(),
        "records": [asdict(record) for record in result.records],
        "written": [str(path) for path in result.files],
    }
