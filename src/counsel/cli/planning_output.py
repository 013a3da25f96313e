"""What is printed of plans, frontiers, explanations, worlds and played episodes."""

from pathlib import Path
from typing import Any

import numpy as np
import typer

import counsel
from counsel._arrays import Floats, Ints
from counsel.cli.console import ROWS, finite, in_full, new_table, pieces_of, print_table, short
from counsel.estimate.intervals import Z, wilson
from counsel.model.policy import Policy
from counsel.model.problem import AdviceProblem
from counsel.planning.evaluate import Evaluation
from counsel.planning.explain import Explanation
from counsel.planning.frontier import Frontier
from counsel.planning.plan import Plan
from counsel.planning.silence import value_alone
from counsel.simulate.summary import Summary
from counsel.worlds.catalogue import World


def print_plan(problem: AdviceProblem, plan: Plan, *, reverse_left_out: bool) -> None:
    """Print what a plan brings, and where and when it speaks."""
    alone, outcome = value_alone(problem), counsel.evaluate(problem, plan.policy)
    typer.echo(_headline(plan, alone))
    if len(plan.reverse):
        typer.echo(
            f"At {len(plan.reverse)} steps and states the advice works by repelling: it names what "
            "the person should not do. Do not give it to people who do not know that."
        )
    elif reverse_left_out and problem.human.repels:
        typer.echo(
            "Some advice repels this person; it is left out unless --allow-reverse is given."
        )
    table = new_table(None, "per episode", "", left=1)
    table.add_row("expected reward", in_full(plan.value))
    if plan.penalty:
        table.add_row("reward less the penalty", in_full(plan.penalised_value))
    table.add_row("expected reward of the person alone", in_full(alone))
    table.add_row("pieces of advice", short(plan.advice_count))
    table.add_row("price of a piece, in reward", short(plan.price))
    print_table(table)
    if plan.advice_count < 5e-7:
        return
    _print_pieces(problem, outcome.pieces)
    rates = new_table("When it speaks", "step", "chance of advice", "expected reward")
    for h in range(min(problem.horizon, ROWS)):
        rates.add_row(str(h), f"{outcome.advice_rate[h]:.1%}", short(float(outcome.reward[h])))
    print_table(rates)
    if problem.horizon > ROWS:
        typer.echo(f"({problem.horizon - ROWS} more steps: --json has them all)")


def _headline(plan: Plan, alone: float) -> str:
    """Say the finding in one sentence."""
    gain = plan.value - alone
    if gain > 1e-12 * max(1.0, abs(alone)):
        count = plan.advice_count
        verb = "raises" if abs(count - 1.0) < 5e-4 else "raise"
        never = ""
        if plan.hard:
            never = f", never more than {plan.policy.budget},"
        return (
            f"{pieces_of(count).capitalize()} an episode on average{never} {verb} the expected "
            f"reward from {in_full(alone)} to {in_full(plan.value)} (+{short(gain)})."
        )
    if plan.penalty:
        return f"At this penalty silence is best: the person alone earns {in_full(alone)}."
    if plan.price > 0.0:
        return f"This budget leaves nothing to say: the person alone earns {in_full(alone)}."
    return f"Silence is best: no advice earns more than the person alone, {in_full(alone)}."


def _print_pieces(problem: AdviceProblem, pieces_sa: Floats) -> None:
    """Print where most pieces of advice go."""
    order = np.argsort(-pieces_sa, axis=None, kind="stable")[:10]
    cells = [(int(i) // problem.n_actions, int(i) % problem.n_actions) for i in order]
    cells = [cell for cell in cells if pieces_sa[cell] >= 5e-7]
    if not cells:
        return
    table = new_table("Where it speaks most", "state", "advice", "pieces per episode", left=2)
    for s, a in cells:
        name = problem.mdp.state_labels[s] if problem.mdp.state_labels else str(s)
        table.add_row(name, problem.mdp.action_name(a), short(float(pieces_sa[s, a])))
    print_table(table)


def plan_record(problem: AdviceProblem, plan: Plan, output: Path | None) -> dict[str, Any]:
    """Return what a plan brings, for scripts."""
    outcome = counsel.evaluate(problem, plan.policy)
    return {
        "value": plan.value,
        "penalised_value": plan.penalised_value,
        "advice_count": plan.advice_count,
        "penalty": plan.penalty,
        "price": finite(plan.price),
        "value_alone": value_alone(problem),
        "hard": plan.hard,
        "reverse": plan.reverse.tolist(),
        "advice_rate": outcome.advice_rate.tolist(),
        "reward": outcome.reward.tolist(),
        "written": None if output is None else str(output),
    }


def print_frontier(front: Frontier) -> None:
    """Print what one, two and three pieces are worth, and the corners of the frontier."""
    first, last = front.vertices[0], front.vertices[-1]
    benefit = last.value - first.value
    if benefit <= 0.0:
        typer.echo(f"Advice never helps: the person alone earns {short(first.value)} an episode.")
    else:
        for wanted in (1.0, 2.0, 3.0):
            if first.advice_count <= wanted < last.advice_count:
                low, high = (value - first.value for value in front.bounds(wanted))
                share = f"{low / benefit:.0%}"
                if high / benefit - low / benefit > 0.005:
                    share = f"{low / benefit:.0%} to {high / benefit:.0%}"
                spent = pieces_of(wanted).capitalize()
                typer.echo(f"{spent} an episode: {share} of what unlimited advice is worth.")
    title = f"The frontier, {len(front.vertices)} corners"
    if not front.complete:
        title += " (not complete: raise --max-vertices; a budget is solved exactly all the same)"
    table = new_table(
        title, "pieces of advice", "expected reward", "of unlimited", "best at penalties"
    )
    for vertex in _thinned(front.vertices):
        low, high = vertex.penalties
        of_all = (vertex.value - first.value) / benefit if benefit > 0.0 else 0.0
        table.add_row(
            short(vertex.advice_count),
            f"{vertex.value:.6g}",
            f"{of_all:.1%}",
            short(low) if short(low) == short(high) else f"{short(low)} to {short(high)}",
        )
    print_table(table)
    if len(front.vertices) > ROWS:
        typer.echo(f"({ROWS} of {len(front.vertices)} shown: --json and -o have them all)")


def _thinned(vertices: tuple[Any, ...]) -> list[Any]:
    """Return at most ROWS vertices, evenly spread, both ends among them."""
    if len(vertices) <= ROWS:
        return list(vertices)
    return [vertices[round(i * (len(vertices) - 1) / (ROWS - 1))] for i in range(ROWS)]


def frontier_record(front: Frontier) -> dict[str, Any]:
    """Return the vertices, for scripts."""
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


def print_explanation(told: Explanation) -> None:
    """Print the numbers behind an explanation."""
    low, high = told.criticality
    table = new_table(None, "in this cell", "", left=1)
    for name, probability in zip(told.action_names, told.own, strict=True):
        table.add_row(f"alone: {name}", f"{probability:.1%}")
    if told.considered is not None:
        table.add_row("advice considered", told.action_names[told.considered])
        table.add_row("lift", short(told.lift))
        table.add_row("advantage", short(told.advantage))
        table.add_row("gain = lift × advantage", short(told.gain))
    table.add_row("price of a piece", short(told.price))
    table.add_row("criticality", short(low) if low == high else f"{short(low)} to {short(high)}")
    print_table(table)


def explanation_record(told: Explanation) -> dict[str, Any]:
    """Return an explanation, for scripts."""
    named = None if told.considered is None else told.action_names[told.considered]
    return {
        "sentence": told.sentence,
        "step": told.step,
        "state": told.state,
        "pieces_left": told.pieces_left,
        "advice": None if told.advice is None else told.action_names[told.advice],
        "probability": told.probability,
        "considered": named,
        "own": dict(zip(told.action_names, told.own.tolist(), strict=True)),
        "lift": told.lift,
        "advantage": told.advantage,
        "gain": told.gain,
        "price": finite(told.price),
        "criticality": [finite(bound) for bound in told.criticality],
        "reverse": told.reverse,
        "must": told.must,
    }


def print_worlds(found: dict[str, World]) -> None:
    """Print the worlds by name."""
    foreign = any(world.package != "counsel" for world in found.values())
    columns = ("world", "what it is", "package") if foreign else ("world", "what it is")
    table = new_table(None, *columns, left=3)
    for name, world in found.items():
        cells = (name, world.summary, world.package)
        table.add_row(*cells[: len(columns)])
    print_table(table)


def worlds_record(found: dict[str, World]) -> dict[str, Any]:
    """Return the worlds, for scripts."""
    return {
        "worlds": [
            {"name": name, "summary": world.summary, "package": world.package}
            for name, world in found.items()
        ]
    }


def print_play_out(played: Summary, policy: Policy) -> None:
    """Print what the episodes brought, beside what was to be expected."""
    problem, exact = played.problem, _while_live(played.problem, policy)
    reward, pieces = played.reward, played.pieces
    many = "1 episode" if played.episodes == 1 else f"{played.episodes:,} episodes"
    typer.echo(
        f"{many}: {pieces_of(pieces.mean)} and a reward of {in_full(reward.mean)} each; "
        f"alone this person earns {in_full(value_alone(problem))}."
    )
    table = new_table(None, "per episode", "played", "± 95 %", "exact", left=1)
    for name, mean, sure in (
        ("reward", reward, exact.value),
        ("pieces of advice", pieces, exact.advice_count),
    ):
        table.add_row(name, in_full(mean.mean), short(Z * mean.error), in_full(sure))
    table.add_row("decisions", short(played.decisions / played.episodes), "", "")
    table.add_row("ended by itself", f"{played.ended / played.episodes:.1%}", "", "")
    print_table(table)
    print_matches(problem, played.given_a, played.matched_a)


def print_matches(problem: AdviceProblem, given_a: Ints, matched_a: Ints) -> None:
    """Print how often each advice was matched, where any was given."""
    if not given_a.any():
        return
    rates = new_table("How often advice was taken", "advice", "given", "matched", "95 %", left=1)
    for a in np.flatnonzero(given_a):
        given, matched = int(given_a[a]), int(matched_a[a])
        low, high = wilson(matched, given)
        rates.add_row(
            problem.mdp.action_name(int(a)),
            f"{given:,}",
            f"{matched / given:.1%}",
            f"{low:.1%} to {high:.1%}",
        )
    print_table(rates)


def _while_live(problem: AdviceProblem, policy: Policy) -> Evaluation:
    """Evaluate what is said before an episode is over: records have nothing after that."""
    return counsel.evaluate(problem, policy.silent_where(problem.mdp.over))


def play_out_record(played: Summary, policy: Policy) -> dict[str, Any]:
    """Return what the episodes brought, for scripts."""
    problem, exact = played.problem, _while_live(played.problem, policy)
    return {
        "episodes": played.episodes,
        "reward": played.reward.mean,
        "reward_standard_error": finite(played.reward.error),
        "advice_count": played.pieces.mean,
        "advice_count_standard_error": finite(played.pieces.error),
        "decisions": played.decisions,
        "ended": played.ended,
        "exact_value": exact.value,
        "exact_advice_count": exact.advice_count,
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
