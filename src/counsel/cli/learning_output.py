"""What is printed of learning."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import typer

from counsel.cli.console import in_full, new_table, pieces_of, print_table, short
from counsel.cli.planning_output import print_matches
from counsel.learning.learn import Record
from counsel.model.problem import AdviceProblem
from counsel.runs.run import Result
from counsel.runs.spec import Spec


def standing(record: Record) -> str:
    """Return how a learner is doing, for the bar."""
    return f"regret {short(record.regret)}, gap {short(record.value_gap)}"


def print_learnt(spec: Spec, problem: AdviceProblem, result: Result) -> None:
    """Print what learning brought and cost."""
    last = result.records[-1]
    gap, rounding = result.best - result.value, 1e-9 * (1.0 + abs(result.best))
    best = "there is" if spec.budget is None else "within the budget"
    reached = f"as good as the best {best}"
    if abs(gap) > rounding:
        side = "short of" if gap > 0 else "above"
        reached = f"{short(abs(gap))} {side} the best {best} ({in_full(result.best)})"
    cost = last.regret if last.regret > rounding * last.episode else 0.0
    typer.echo(
        f"After {last.episode:,} episodes the advice is worth {in_full(result.value)} an episode, "
        f"{reached}. Learning cost {short(cost)} in all, {short(cost / last.episode)} an episode."
    )
    if spec.budget is not None:
        over = result.advice_count - spec.budget
        spent = f"{short(over)} above" if over > rounding else "within"
        typer.echo(f"It gives {pieces_of(result.advice_count)} an episode, {spent} the budget.")
    if result.stopping_rule_fired:
        typer.echo("The stopping rule fired: enough was explored.")
    if problem.human.repels:
        typer.echo(f"{problem.repels()} The best there is makes use of that.")
    table = new_table(
        None, "episode", "value gap (reward)", "regret (reward)", "advice an episode", "seconds"
    )
    for record in _milestones(result.records):
        table.add_row(
            f"{record.episode:,}",
            short(record.value_gap if abs(record.value_gap) > rounding else 0.0),
            short(record.regret if record.regret > rounding * record.episode else 0.0),
            short(record.advice_count),
            f"{record.seconds:.2f}",
        )
    print_table(table)
    if result.matches is not None:
        matched_a, given_a = result.matches
        print_matches(problem, given_a, matched_a)


def _milestones(records: Sequence[Record]) -> list[Record]:
    """Return records at about 1, 2, 5, 10, 20, 50, … episodes, and the last."""
    wanted = [m * 10**e for e in range(10) for m in (1, 2, 5)]
    chosen: list[Record] = []
    for number in wanted:
        near = next((record for record in records if record.episode >= number), records[-1])
        if not chosen or near.episode > chosen[-1].episode:
            chosen.append(near)
    return chosen


def learnt_record(spec: Spec, result: Result) -> dict[str, Any]:
    """Return what learning brought and cost, for scripts."""
    return {
        "settings": spec.settings(),
        **result.record(),
        "records": [asdict(record) for record in result.records],
        "written": [str(path) for path in result.files],
    }
