"""Print plans, frontiers, explanations, worlds and played episodes."""

from pathlib import Path
from typing import Any

import numpy as np
import typer

import counsel
from counsel._arrays import Ints
from counsel.cli.console import ROWS, finite, new_table, print_table
from counsel.estimate.intervals import Z, wilson
from counsel.model.problem import AdviceProblem
from counsel.planning.evaluate import Evaluation
from counsel.planning.explain import Explanation
from counsel.planning.frontier import Frontier
from counsel.planning.plan import Plan
from counsel.planning.reference_policies import value_alone
from counsel.report.number_format import (
    count_of,
    in_full,
    percent,
    pieces_of_advice,
    pieces_per_episode,
    short,
)
from counsel.simulate.episodes import EpisodeSummary
from counsel.worlds.catalogue import World

VERTEX = ("advice_count", "advice_cost", "value", "penalty_low", "penalty_high")
"""The numbers of a vertex in JSON, and in CSV unless every piece costs 1."""

NOTHING = 5e-7
"""Pieces of advice per episode that count as none."""


def print_plan(problem: AdviceProblem, plan: Plan, *, reverse_left_out: bool) -> None:
    """Print the value of a plan, and where and when it gives advice."""
    alone, outcome = value_alone(problem), counsel.evaluate(problem, plan.policy)
    has_costs = not problem.has_unit_cost
    per = "step" if problem.average else "episode"
    typer.echo(_headline(plan, alone, plan.advice_cost if has_costs else None, per))
    if len(plan.reverse):
        typer.echo(
            f"At {count_of(len(plan.reverse), 'combination')} of step and state the advice works "
            "by repelling: it names what the person should not do. Do not give it to people who do "
            "not know that."
        )
    elif reverse_left_out and problem.human.repels:
        typer.echo("Some advice repels this person and is left out; --allow-reverse would use it.")
    scope = "per episode"
    if problem.average:
        scope = "per step, for ever"
        typer.echo("The work has no end: all numbers are averages per step.")
    elif problem.discount is not None:
        scope = f"for ever, discounted by {problem.discount!r}"
        typer.echo(
            "The work has no end: rewards and pieces of advice t steps from now count "
            f"{problem.discount!r} to the power of t, and an episode stands for all of them."
        )
    table = new_table(None, scope, "", left=1)
    table.add_row("expected reward", in_full(plan.value))
    if np.any(plan.penalty):
        table.add_row("reward less the penalty", in_full(plan.penalised_value))
    table.add_row("expected reward without advice", in_full(alone))
    table.add_row("pieces of advice", short(plan.advice_count))
    if has_costs:
        table.add_row("expected cost of advice", short(plan.advice_cost))
    unit = "a unit of cost" if has_costs else "a piece"
    prices = (plan.price, plan.price)
    if isinstance(plan.penalty, np.ndarray):
        prices = (float(plan.penalty.min()), float(plan.penalty.max()))
    table.add_row(f"price of {unit}, in reward", _range(*prices))
    print_table(table)
    if plan.advice_count < NOTHING:
        return
    places = new_table("Where the advice goes", "state", "advice", f"pieces per {per}", left=2)
    pieces_sa = outcome.pieces
    for i in np.argsort(-pieces_sa, axis=None, kind="stable")[:10]:
        s, a = divmod(int(i), problem.n_actions)
        if pieces_sa[s, a] >= NOTHING:
            name = problem.mdp.state_labels[s] if problem.mdp.state_labels else str(s)
            places.add_row(name, problem.mdp.action_name(a), short(float(pieces_sa[s, a])))
    if places.row_count:
        print_table(places)
    if problem.discount is not None:
        return
    rates = new_table("When the advice comes", "step", "chance of advice", "expected reward")
    for h in range(min(problem.horizon, ROWS)):
        rates.add_row(str(h), percent(outcome.advice_rate[h], 1), short(float(outcome.reward[h])))
    print_table(rates)
    if problem.horizon > ROWS:
        typer.echo(f"({problem.horizon - ROWS} more steps; --json has all)")


def _headline(plan: Plan, value_alone: float, cost: float | None, per: str) -> str:
    """State the finding in one sentence; ``cost`` is None if every piece costs 1."""
    gain, alone = plan.value - value_alone, in_full(value_alone)
    if gain > 1e-12 * max(1.0, abs(value_alone)):
        most = f"never {'more than' if cost is None else 'at a cost above'} {plan.policy.budget}"
        limit = " on average" + (f", {most}," if plan.hard else "")
        pieces = pieces_per_episode(plan.advice_count, "raise", limit, cost=cost, per=per)
        return (
            f"{pieces} the expected reward from {alone} to {in_full(plan.value)} (+{short(gain)})."
        )
    if np.any(plan.penalty):
        return f"At this penalty silence is best: the person alone earns {alone} per {per}."
    if plan.price > 0.0:
        return f"This budget allows no advice: the person alone earns {alone} per {per}."
    return f"Silence is best: no advice earns more than the person alone, {alone} per {per}."


def plan_record(problem: AdviceProblem, plan: Plan, output: Path | None) -> dict[str, Any]:
    """Return a plan for JSON."""
    outcome = counsel.evaluate(problem, plan.policy)
    return {
        "value": plan.value,
        "penalised_value": plan.penalised_value,
        "advice_count": plan.advice_count,
        "advice_cost": plan.advice_cost,
        "penalty": plan.penalty if isinstance(plan.penalty, float) else plan.penalty.tolist(),
        "price": finite(plan.price),
        "value_alone": value_alone(problem),
        "hard": plan.hard,
        "discount": None if problem.average else problem.discount,
        "average": problem.average,
        "error": plan.error,
        "reverse": plan.reverse.tolist(),
        "advice_rate": outcome.advice_rate.tolist(),
        "reward": outcome.reward.tolist(),
        "written": output and str(output),
    }


def print_frontier(front: Frontier) -> None:
    """Print what one, two and three pieces are worth, and the vertices of the frontier."""
    vertices, last = front.vertices, front.vertices[-1]
    alone, per = vertices[0].value, "step" if front.problem.average else "episode"
    benefit = last.value - alone

    def share(value: float) -> float:
        return (value - alone) / benefit if benefit > 0.0 else 0.0

    if benefit <= 0.0:
        typer.echo(f"Advice never helps: the person alone earns {short(alone)} per {per}.")
    has_costs = not front.problem.has_unit_cost
    for budget in (0.1, 0.2, 0.5) if front.problem.average else (1.0, 2.0, 3.0):
        if vertices[0].advice_cost <= budget < last.advice_cost:
            low, high = map(share, front.bounds(budget))
            kept = percent(low) if high - low <= 0.005 else f"{100 * low:.0f} to {percent(high)}"
            keeps = pieces_per_episode(budget, "keep", per=per)
            if has_costs:
                keeps = f"Advice at a cost of {short(budget)} per {per} keeps"
            typer.echo(f"{keeps} {kept} of what unlimited advice is worth.")
    title = f"The frontier, {count_of(len(vertices), 'vertex', 'vertices')}"
    if not front.complete:
        title += " (incomplete: raise --max-vertices; a budget is solved exactly nevertheless)"
    counts = ("pieces of advice", "cost of advice")[: 1 + has_costs]
    table = new_table(title, *counts, "expected reward", "of unlimited", "best at penalties")
    shown = np.linspace(0, len(vertices) - 1, min(len(vertices), ROWS)).round().astype(int)
    for i in shown:
        numbers = (vertices[i].advice_count, vertices[i].advice_cost)[: 1 + has_costs]
        value = vertices[i].value
        cells = (f"{value:.6g}", percent(share(value), 1), _range(*vertices[i].penalties))
        table.add_row(*map(short, numbers), *cells)
    print_table(table)
    if len(vertices) > ROWS:
        typer.echo(f"({ROWS} of {len(vertices)} shown; --json and -o have all)")


def _range(low: float, high: float) -> str:
    return short(low) if short(low) == short(high) else f"{short(low)} to {short(high)}"


def frontier_record(front: Frontier) -> dict[str, Any]:
    """Return the vertices of a frontier for JSON."""
    vertices = [
        {name: finite(number) for name, number in zip(VERTEX, numbers, strict=True)}
        for numbers in _vertex_numbers(front)
    ]
    return {"complete": front.complete, "vertices": vertices}


def frontier_csv(front: Frontier) -> str:
    """Return the vertices as CSV."""
    dropped = VERTEX.index("advice_cost") if front.problem.has_unit_cost else len(VERTEX)
    lines = [VERTEX, *(tuple(map(repr, numbers)) for numbers in _vertex_numbers(front))]
    return "".join(",".join(row[:dropped] + row[dropped + 1 :]) + "\n" for row in lines)


def _vertex_numbers(front: Frontier) -> list[tuple[float, ...]]:
    return [
        (vertex.advice_count, vertex.advice_cost, vertex.value, *vertex.penalties)
        for vertex in front.vertices
    ]


def print_explanation(explanation: Explanation) -> None:
    """Print the numbers behind an explanation."""
    where = "in this state" if explanation.step is None else "at this step in this state"
    table = new_table(None, where, "", left=1)
    for name, probability in zip(explanation.action_names, explanation.own, strict=True):
        table.add_row(f"without advice: {name}", percent(probability, 1))
    if explanation.considered is not None:
        table.add_row("advice considered", explanation.action_names[explanation.considered])
        table.add_row("lift", short(explanation.lift))
        table.add_row("advantage", short(explanation.advantage))
        if explanation.level is None:
            table.add_row("gain = lift × advantage", short(explanation.gain))
        else:
            table.add_row("burden, in later listening", short(explanation.burden))
            table.add_row("gain = lift × advantage − burden", short(explanation.gain))
        if explanation.cost != 1.0:
            table.add_row("cost", short(explanation.cost))
    table.add_row("price of a piece", short(explanation.price))
    table.add_row("criticality", _range(*explanation.criticality))
    print_table(table)


def explanation_record(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation for JSON."""

    def name(action: int | None) -> str | None:
        return None if action is None else explanation.action_names[action]

    return {
        "sentence": explanation.sentence,
        "step": explanation.step,
        "state": explanation.state,
        "pieces_left": explanation.pieces_left,
        "level": explanation.level,
        "advice": name(explanation.advice),
        "probability": explanation.probability,
        "considered": name(explanation.considered),
        "own": dict(zip(explanation.action_names, explanation.own.tolist(), strict=True)),
        "lift": explanation.lift,
        "advantage": explanation.advantage,
        "burden": explanation.burden,
        "gain": explanation.gain,
        "price": finite(explanation.price),
        "cost": explanation.cost,
        "criticality": [finite(bound) for bound in explanation.criticality],
        "reverse": explanation.reverse,
        "must": explanation.must,
    }


def print_worlds(catalogue: dict[str, World]) -> None:
    """Print the worlds by name."""
    has_others = any(world.package != "counsel" for world in catalogue.values())
    columns = ("world", "what it is", "package")[: 2 + has_others]
    table = new_table(None, *columns, left=3)
    for name, world in catalogue.items():
        table.add_row(*(name, world.summary, world.package)[: len(columns)])
    print_table(table)


def worlds_record(catalogue: dict[str, World]) -> dict[str, Any]:
    """Return the worlds for JSON."""
    worlds = [
        {"name": name, "summary": world.summary, "package": world.package}
        for name, world in catalogue.items()
    ]
    return {"worlds": worlds}


def print_play_out(played: EpisodeSummary, exact: Evaluation) -> None:
    """Print the means of played episodes, beside their exact expectation."""
    has_costs = not played.problem.has_unit_cost
    spent = (played.pieces.mean, *((played.cost.mean,) if has_costs else ()))
    typer.echo(
        f"{count_of(played.episodes, 'episode')}: {pieces_of_advice(*spent)} and a "
        f"reward of {in_full(played.reward.mean)} per episode on average; without advice this "
        f"person earns {in_full(value_alone(played.problem))}."
    )
    table = new_table(None, "per episode", "played", "± 95 %", "exact", left=1)
    for name, mean, expected in (
        ("reward", played.reward, exact.value),
        ("pieces of advice", played.pieces, exact.advice_count),
        *((("cost of advice", played.cost, exact.advice_cost),) if has_costs else ()),
    ):
        table.add_row(name, in_full(mean.mean), short(Z * mean.error), in_full(expected))
    table.add_row("decisions", short(played.decisions / played.episodes), "", "")
    table.add_row("ended before the horizon", percent(played.ended / played.episodes, 1), "", "")
    print_table(table)
    print_match_rates(played.problem, played.matched_a, played.given_a)


def print_match_rates(problem: AdviceProblem, matched_a: Ints, given_a: Ints) -> None:
    """Print how often each advice was matched, if any was given."""
    if not given_a.any():
        return
    table = new_table("How often advice was matched", "advice", "given", "matched", "95 %", left=1)
    for a in np.flatnonzero(given_a):
        low, high = wilson(int(matched_a[a]), int(given_a[a]))
        share, ends = matched_a[a] / given_a[a], f"{100 * low:.1f} to {percent(float(high), 1)}"
        table.add_row(problem.mdp.action_name(int(a)), f"{given_a[a]:,}", percent(share, 1), ends)
    print_table(table)


def play_out_record(played: EpisodeSummary, exact: Evaluation) -> dict[str, Any]:
    """Return played episodes for JSON."""
    problem = played.problem
    return {
        "episodes": played.episodes,
        "reward": played.reward.mean,
        "reward_standard_error": finite(played.reward.error),
        "advice_count": played.pieces.mean,
        "advice_count_standard_error": finite(played.pieces.error),
        "advice_cost": played.cost.mean,
        "advice_cost_standard_error": finite(played.cost.error),
        "decisions": played.decisions,
        "ended": played.ended,
        "exact_value": exact.value,
        "exact_advice_count": exact.advice_count,
        "exact_advice_cost": exact.advice_cost,
        "value_alone": value_alone(problem),
        "advice": [
            {
                "advice": problem.mdp.action_name(a),
                "given": int(played.given_a[a]),
                "matched": int(played.matched_a[a]),
            }
            for a in range(problem.n_actions)
        ],
    }
