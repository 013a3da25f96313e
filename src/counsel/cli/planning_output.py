"""Print plans, frontiers, explanations, worlds and played episodes."""

from pathlib import Path
from typing import Any

import typer

from counsel.cli.console import ROWS, finite, new_table, print_table
from counsel.cli.summaries import (
    FrontierSummary,
    MatchRate,
    PlanSummary,
    PlayOutSummary,
    match_rates,
)
from counsel.planning.explain import Explanation
from counsel.planning.frontier import Frontier
from counsel.report.number_format import (
    count_of,
    in_full,
    percent,
    pieces_of_advice,
    short,
    verb_for,
)
from counsel.worlds.catalogue import World


def print_plan(summary: PlanSummary, *, reverse_left_out: bool) -> None:
    """Print the value of a plan, and where and when it gives advice."""
    problem, plan, outcome = summary.problem, summary.plan, summary.outcome
    typer.echo(_headline(summary))
    if len(plan.reverse):
        typer.echo(
            f"At {count_of(len(plan.reverse), 'combination')} of step and state the advice works "
            "by repelling: it names what the person should not do. Do not give it to people who do "
            "not know that."
        )
    elif reverse_left_out and problem.human.repels:
        typer.echo("Some advice repels this person and is left out; --allow-reverse would use it.")
    table = new_table(None, "per episode", "", left=1)
    table.add_row("expected reward", in_full(plan.value))
    if plan.penalty:
        table.add_row("reward less the penalty", in_full(plan.penalised_value))
    table.add_row("expected reward without advice", in_full(summary.alone))
    table.add_row("pieces of advice", short(plan.advice_count))
    table.add_row("price of a piece, in reward", short(plan.price))
    print_table(table)
    if summary.is_silent:
        return
    places = new_table("Where the advice goes", "state", "advice", "pieces per episode", left=2)
    for s, a, pieces in summary.busiest(10):
        name = problem.mdp.state_labels[s] if problem.mdp.state_labels else str(s)
        places.add_row(name, problem.mdp.action_name(a), short(pieces))
    if places.row_count:
        print_table(places)
    rates = new_table("When the advice comes", "step", "chance of advice", "expected reward")
    for h in range(min(problem.horizon, ROWS)):
        rates.add_row(str(h), percent(outcome.advice_rate[h], 1), short(float(outcome.reward[h])))
    print_table(rates)
    if problem.horizon > ROWS:
        typer.echo(f"({problem.horizon - ROWS} more steps; --json has all)")


def _headline(summary: PlanSummary) -> str:
    """State the finding in one sentence."""
    plan, alone = summary.plan, in_full(summary.alone)
    if summary.gain is not None:
        most = ""
        if plan.hard:
            most = f", never more than {plan.policy.budget},"
        count = plan.advice_count
        return (
            f"{pieces_of_advice(count)} per episode on average{most} {verb_for(count, 'raise')} "
            f"the expected reward from {alone} to {in_full(plan.value)} (+{short(summary.gain)})."
        )
    if plan.penalty:
        return f"At this penalty silence is best: the person alone earns {alone} per episode."
    if plan.price > 0.0:
        return f"This budget allows no advice: the person alone earns {alone} per episode."
    return f"Silence is best: no advice earns more than the person alone, {alone} per episode."


def plan_record(summary: PlanSummary, output: Path | None) -> dict[str, Any]:
    """Return a plan for JSON."""
    plan, outcome = summary.plan, summary.outcome
    return {
        "value": plan.value,
        "penalised_value": plan.penalised_value,
        "advice_count": plan.advice_count,
        "penalty": plan.penalty,
        "price": finite(plan.price),
        "value_alone": summary.alone,
        "hard": plan.hard,
        "reverse": plan.reverse.tolist(),
        "advice_rate": outcome.advice_rate.tolist(),
        "reward": outcome.reward.tolist(),
        "written": None if output is None else str(output),
    }


def print_frontier(front: Frontier) -> None:
    """Print what one, two and three pieces are worth, and the vertices of the frontier."""
    summary = FrontierSummary(front)
    if summary.benefit <= 0.0:
        alone = short(summary.alone)
        typer.echo(f"Advice never helps: the person alone earns {alone} per episode.")
    for pieces, low, high in summary.shares_of_budgets():
        share = percent(low) if high - low <= 0.005 else f"{100 * low:.0f} to {percent(high)}"
        typer.echo(
            f"{pieces_of_advice(pieces)} per episode {verb_for(pieces, 'keep')} {share} of what "
            "unlimited advice is worth."
        )
    title = f"The frontier, {count_of(len(front.vertices), 'vertex', 'vertices')}"
    if not front.complete:
        title += " (incomplete: raise --max-vertices; a budget is solved exactly nevertheless)"
    table = new_table(
        title, "pieces of advice", "expected reward", "of unlimited", "best at penalties"
    )
    for vertex in summary.vertices(ROWS):
        table.add_row(
            short(vertex.advice_count),
            f"{vertex.value:.6g}",
            percent(summary.share(vertex.value), 1),
            _range(*vertex.penalties),
        )
    print_table(table)
    if len(front.vertices) > ROWS:
        typer.echo(f"({ROWS} of {len(front.vertices)} shown; --json and -o have all)")


def _range(low: float, high: float) -> str:
    return short(low) if short(low) == short(high) else f"{short(low)} to {short(high)}"


def frontier_record(front: Frontier) -> dict[str, Any]:
    """Return the vertices of a frontier for JSON."""
    return {
        "complete": front.complete,
        "vertices": [
            {
                "advice_count": vertex.advice_count,
                "value": vertex.value,
                "penalty_low": finite(vertex.penalties[0]),
                "penalty_high": finite(vertex.penalties[1]),
            }
            for vertex in front.vertices
        ],
    }


def frontier_csv(front: Frontier) -> str:
    """Return the vertices as CSV."""
    lines = ["advice_count,value,penalty_low,penalty_high"]
    for vertex in front.vertices:
        low, high = vertex.penalties
        lines.append(f"{vertex.advice_count!r},{vertex.value!r},{low!r},{high!r}")
    return "\n".join(lines) + "\n"


def print_explanation(explanation: Explanation) -> None:
    """Print the numbers behind an explanation."""
    low, high = explanation.criticality
    table = new_table(None, "at this step in this state", "", left=1)
    for name, probability in zip(explanation.action_names, explanation.own, strict=True):
        table.add_row(f"without advice: {name}", percent(probability, 1))
    if explanation.considered is not None:
        table.add_row("advice considered", explanation.action_names[explanation.considered])
        table.add_row("lift", short(explanation.lift))
        table.add_row("advantage", short(explanation.advantage))
        table.add_row("gain = lift × advantage", short(explanation.gain))
    table.add_row("price of a piece", short(explanation.price))
    table.add_row("criticality", short(low) if low == high else f"{short(low)} to {short(high)}")
    print_table(table)


def explanation_record(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation for JSON."""
    considered = (
        None if explanation.considered is None else explanation.action_names[explanation.considered]
    )
    return {
        "sentence": explanation.sentence,
        "step": explanation.step,
        "state": explanation.state,
        "pieces_left": explanation.pieces_left,
        "advice": None
        if explanation.advice is None
        else explanation.action_names[explanation.advice],
        "probability": explanation.probability,
        "considered": considered,
        "own": dict(zip(explanation.action_names, explanation.own.tolist(), strict=True)),
        "lift": explanation.lift,
        "advantage": explanation.advantage,
        "gain": explanation.gain,
        "price": finite(explanation.price),
        "criticality": [finite(bound) for bound in explanation.criticality],
        "reverse": explanation.reverse,
        "must": explanation.must,
    }


def print_worlds(catalogue: dict[str, World]) -> None:
    """Print the worlds by name."""
    has_others = any(world.package != "counsel" for world in catalogue.values())
    columns = ("world", "what it is", "package") if has_others else ("world", "what it is")
    table = new_table(None, *columns, left=3)
    for name, world in catalogue.items():
        cells = (name, world.summary, world.package)
        table.add_row(*cells[: len(columns)])
    print_table(table)


def worlds_record(catalogue: dict[str, World]) -> dict[str, Any]:
    """Return the worlds for JSON."""
    return {
        "worlds": [
            {"name": name, "summary": world.summary, "package": world.package}
            for name, world in catalogue.items()
        ]
    }


def print_play_out(summary: PlayOutSummary) -> None:
    """Print the means of played episodes, beside their exact expectation."""
    played = summary.played
    typer.echo(
        f"{count_of(played.episodes, 'episode')}: {pieces_of_advice(played.pieces.mean)} and a "
        f"reward of {in_full(played.reward.mean)} per episode on average; without advice this "
        f"person earns {in_full(summary.alone)}."
    )
    table = new_table(None, "per episode", "played", "± 95 %", "exact", left=1)
    for name, mean, half, exact in summary.means():
        table.add_row(name, in_full(mean), short(half), in_full(exact))
    table.add_row("decisions", short(played.decisions / played.episodes), "", "")
    table.add_row("ended before the horizon", percent(played.ended / played.episodes, 1), "", "")
    print_table(table)
    print_match_rates(match_rates(played.problem, played.given_a, played.matched_a))


def print_match_rates(rates: list[MatchRate]) -> None:
    """Print how often each advice was matched, if any was given."""
    if not rates:
        return
    table = new_table("How often advice was matched", "advice", "given", "matched", "95 %", left=1)
    for rate in rates:
        share, low, high = rate.share
        ends = f"{100 * low:.1f} to {percent(high, 1)}"
        table.add_row(rate.name, f"{rate.given:,}", percent(share, 1), ends)
    print_table(table)


def play_out_record(summary: PlayOutSummary) -> dict[str, Any]:
    """Return played episodes for JSON."""
    played, problem = summary.played, summary.played.problem
    return {
        "episodes": played.episodes,
        "reward": played.reward.mean,
        "reward_standard_error": finite(played.reward.error),
        "advice_count": played.pieces.mean,
        "advice_count_standard_error": finite(played.pieces.error),
        "decisions": played.decisions,
        "ended": played.ended,
        "exact_value": summary.exact.value,
        "exact_advice_count": summary.exact.advice_count,
        "value_alone": summary.alone,
        "advice": [
            {
                "advice": problem.mdp.action_name(a),
                "given": int(played.given_a[a]),
                "matched": int(played.matched_a[a]),
            }
            for a in range(problem.n_actions)
        ],
    }
