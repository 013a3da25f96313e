"""The command line: parse, call, print.

Nothing of weight is imported until a command runs. Errors are one line on stderr and exit code 2.
"""

import json
import math
import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeGuard

import typer

from counsel.errors import CounselError

if TYPE_CHECKING:
    from rich.table import Table

    from counsel._arrays import Floats
    from counsel.model.policy import HardPolicy, Policy
    from counsel.model.problem import AdviceProblem
    from counsel.planning.explain import Explanation
    from counsel.planning.frontier import Frontier
    from counsel.planning.plan import Plan

app = typer.Typer(
    help="Work out what to advise a person, when to stay silent, and what advice is worth.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Source = Annotated[
    str, typer.Argument(metavar="PROBLEM", help="A problem (.npz) or a built-in world's name.")
]
Penalty = Annotated[
    float | None, typer.Option(help="What each piece of advice costs, in units of reward.")
]
Budget = Annotated[float | None, typer.Option(help="Pieces of advice an episode, on average.")]
Hard = Annotated[bool, typer.Option("--hard", help="No episode may exceed the budget.")]
Reverse = Annotated[
    bool, typer.Option("--allow-reverse", help="Also use advice that works by repelling.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for scripts.")]
ROWS = 40
"""Rows of a long table that are printed; --json and -o have them all."""


def main() -> None:
    """Run the command line; say what is wrong in one line."""
    debug = os.environ.get("COUNSEL_DEBUG") or "--debug" in sys.argv
    arguments = [a for a in sys.argv[1:] if a != "--debug"] or ["--help"]
    try:
        code = app(args=arguments, standalone_mode=False)
    except CounselError as fault:
        if debug:
            raise
        _fail(str(fault))
    except typer.Abort:
        _fail("stopped")
    except BrokenPipeError:
        sys.stderr.close()
        code = 0
    except Exception as fault:
        usage = getattr(fault, "format_message", None)
        if debug or usage is None:
            raise
        _fail(usage().replace("\n", " "))
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str) -> None:
    sys.stderr.write(f"counsel: {message}\n")
    sys.exit(2)


def _version(*, wanted: bool) -> None:
    if wanted:
        from counsel import __version__

        typer.echo(f"counsel {__version__}")
        raise typer.Exit


@app.callback()
def options(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=lambda wanted: _version(wanted=wanted))
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Work out what to advise a person, when to stay silent, and what advice is worth."""


@app.command()
def solve(  # noqa: PLR0913 (one argument for each option)
    source: Source,
    *,
    penalty: Penalty = None,
    budget: Budget = None,
    hard: Hard = False,
    allow_reverse: Reverse = False,
    output: Annotated[
        Path | None, typer.Option("-o", help="Write the policy: .csv, .parquet or .npz.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Find the best advice: without limit, at a penalty, or within a budget."""
    import counsel

    if output is not None and output.suffix not in (".csv", ".parquet", ".npz"):
        raise CounselError(f"-o {output} must end in .csv, .parquet or .npz")
    problem = _read(source)
    plan = counsel.solve(
        problem, penalty=penalty, budget=budget, hard=hard, allow_reverse=allow_reverse
    )
    if output is not None:
        counsel.save_policy(plan.policy, output, problem=problem)
    if as_json:
        _print_json(_plan_record(problem, plan, output))
        return
    _print_plan(problem, plan)
    limit = _limit(penalty, budget, hard=hard)
    if output is None:
        typer.echo(f"Next: counsel solve {source}{limit} -o policy.csv")
        return
    typer.echo(f"Wrote {output}.")
    state = _first_state(problem)
    typer.echo(f"Next: counsel explain {source}{limit} --step 0 --state {state}")


@app.command()
def frontier(
    source: Source,
    *,
    max_vertices: Annotated[
        int, typer.Option(help="Stop after so many vertices and bound the rest.")
    ] = 1000,
    allow_reverse: Reverse = False,
    output: Annotated[Path | None, typer.Option("-o", help="Write the vertices: .csv.")] = None,
    as_json: Json = False,
) -> None:
    """Trace what every number of pieces of advice is worth."""
    import counsel

    if output is not None and output.suffix != ".csv":
        raise CounselError(f"-o {output} must end in .csv")
    problem = _read(source)
    with _waiting(f"Tracing up to {max_vertices} vertices (fewer with --max-vertices)"):
        front = counsel.frontier(problem, max_vertices=max_vertices, allow_reverse=allow_reverse)
    if output is not None:
        from counsel.model.files import write_text

        write_text(output, _frontier_csv(front))
    if as_json:
        _print_json(_frontier_record(front))
        return
    _print_frontier(front)
    if output is not None:
        typer.echo(f"Wrote {output}.")
    typer.echo(f"Next: counsel solve {source} --budget 2")


@app.command()
def explain(  # noqa: PLR0913 (one argument for each option)
    source: Source,
    *,
    step: Annotated[int, typer.Option(help="Step, counted from 0.")],
    state: Annotated[str, typer.Option(help="State: its number or its label.")],
    penalty: Penalty = None,
    budget: Budget = None,
    hard: Hard = False,
    allow_reverse: Reverse = False,
    pieces_left: Annotated[
        int | None, typer.Option(help="Pieces left under a hard budget; all when not given.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say why the machine speaks, or is silent, at one step in one state."""
    import counsel

    problem = _read(source)
    where = _state_index(problem, state)
    plan = counsel.solve(
        problem, penalty=penalty, budget=budget, hard=hard, allow_reverse=allow_reverse
    )
    told = counsel.explain(problem, plan, step=step, state=where, pieces_left=pieces_left)
    if as_json:
        _print_json(_explanation_record(told))
        return
    typer.echo(told.sentence)
    _print_explanation(told)


def _read(source: str) -> "AdviceProblem":
    """Read a file, or build the world of that name."""
    import counsel
    import counsel.worlds

    worlds = ", ".join(counsel.worlds.CATALOGUE)
    if source in counsel.worlds.CATALOGUE and not Path(source).exists():
        return counsel.worlds.make(source)
    if not source.endswith(".npz"):
        raise CounselError(f"{source} is neither a problem (.npz) nor a built-in world ({worlds})")
    return counsel.load(source)


def _state_index(problem: "AdviceProblem", given: str) -> int:
    names = problem.mdp.state_labels or ()
    if given in names:
        return names.index(given)
    try:
        return int(given)
    except ValueError:
        some = f" ({', '.join(names[:8])}{', …' if len(names) > 8 else ''})" if names else ""
        raise CounselError(
            f"state is {given!r}; give a number from 0 to {problem.n_states - 1} or a label{some}"
        ) from None


def _first_state(problem: "AdviceProblem") -> str:
    """Return the likeliest first state as one would type it."""
    state = int(problem.mdp.start.argmax())
    return shlex.quote(problem.mdp.state_labels[state]) if problem.mdp.state_labels else str(state)


def _limit(penalty: float | None, budget: float | None, *, hard: bool) -> str:
    if penalty is not None:
        return f" --penalty {penalty:g}"
    if budget is not None:
        return f" --budget {budget:g}" + (" --hard" if hard else "")
    return ""


def _short(number: float) -> str:
    """Three significant digits."""
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    text = f"{number:.3g}"
    return f"{number:.0f}" if "e" in text and 1e3 <= abs(number) < 1e6 else text


def _value(number: float) -> str:
    """Five significant digits: enough to see what advice changes."""
    return f"{number:.5g}"


def _number(number: float) -> float | None:
    """JSON has no infinity."""
    return number if math.isfinite(number) else None


def _print_json(record: dict[str, Any]) -> None:
    typer.echo(json.dumps(record, indent=2, ensure_ascii=False))


def _print_table(table: "Table") -> None:
    from rich.console import Console

    console = Console()
    if not console.is_terminal:
        console = Console(width=120)
    console.print(table)


def _table(title: str | None, *columns: str, left: int = 0) -> "Table":
    """Return a plain table; the first ``left`` columns are text, the others numbers."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="", box=box.SIMPLE_HEAD)
    for i, name in enumerate(columns):
        table.add_column(name, justify="left" if i < left else "right")
    return table


@contextmanager
def _waiting(what: str) -> Iterator[None]:
    """Show on a terminal that something is under way."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(what):
        yield


def _alone(problem: "AdviceProblem") -> float:
    import counsel

    never = counsel.Policy.never(
        horizon=problem.horizon, n_states=problem.n_states, n_actions=problem.n_actions
    )
    return counsel.evaluate(problem, never).value


def _pieces(count: float) -> str:
    return f"{_short(count)} piece{'' if abs(count - 1.0) < 5e-4 else 's'} of advice"


def _print_plan(problem: "AdviceProblem", plan: "Plan") -> None:
    import counsel

    alone, outcome = _alone(problem), counsel.evaluate(problem, plan.policy)
    typer.echo(_headline(plan, alone))
    if len(plan.reverse):
        typer.echo(
            f"At {len(plan.reverse)} steps and states the advice works by repelling: it names what "
            "the person should not do. Do not give it to people who do not know that."
        )
    elif problem.human.repels:
        typer.echo(
            "Some advice repels this person; it is left out unless --allow-reverse is given."
        )
    table = _table(None, "per episode", "", left=1)
    table.add_row("expected reward", _value(plan.value))
    if plan.penalty:
        table.add_row("reward less the penalty", _value(plan.penalised_value))
    table.add_row("expected reward of the person alone", _value(alone))
    table.add_row("pieces of advice", _short(plan.advice_count))
    table.add_row("price of a piece, in reward", _short(plan.price))
    _print_table(table)
    if plan.advice_count < 5e-7:
        return
    _print_pieces(problem, outcome.pieces)
    rates = _table("When it speaks", "step", "chance of advice", "expected reward")
    for h in range(min(problem.horizon, ROWS)):
        rates.add_row(str(h), f"{outcome.advice_rate[h]:.1%}", _short(float(outcome.reward[h])))
    _print_table(rates)
    if problem.horizon > ROWS:
        typer.echo(f"({problem.horizon - ROWS} more steps: --json has them all)")


def _headline(plan: "Plan", alone: float) -> str:
    """Say the finding in one sentence."""
    gain = plan.value - alone
    if gain > 1e-12 * max(1.0, abs(alone)):
        count = plan.advice_count
        verb = "raises" if abs(count - 1.0) < 5e-4 else "raise"
        never = f", never more than {plan.policy.budget}," if _is_hard(plan.policy) else ""
        return (
            f"{_pieces(count).capitalize()} an episode on average{never} {verb} the expected "
            f"reward from {_value(alone)} to {_value(plan.value)} (+{_short(gain)})."
        )
    if plan.penalty:
        return f"At this penalty silence is best: the person alone earns {_value(alone)}."
    if plan.price > 0.0:
        return f"This budget leaves nothing to say: the person alone earns {_value(alone)}."
    return f"Silence is best: no advice earns more than the person alone, {_value(alone)}."


def _is_hard(policy: "Policy | HardPolicy") -> "TypeGuard[HardPolicy]":
    return hasattr(policy, "budget")


def _print_pieces(problem: "AdviceProblem", pieces_sa: "Floats") -> None:
    """Print where most pieces of advice go."""
    import numpy as np

    order = np.argsort(-pieces_sa, axis=None, kind="stable")[:10]
    cells = [(int(i) // problem.n_actions, int(i) % problem.n_actions) for i in order]
    cells = [cell for cell in cells if pieces_sa[cell] >= 5e-7]
    if not cells:
        return
    table = _table("Where it speaks most", "state", "advice", "pieces per episode", left=2)
    for s, a in cells:
        name = problem.mdp.state_labels[s] if problem.mdp.state_labels else str(s)
        table.add_row(name, problem.mdp.action_name(a), _short(float(pieces_sa[s, a])))
    _print_table(table)


def _plan_record(problem: "AdviceProblem", plan: "Plan", output: Path | None) -> dict[str, Any]:
    import counsel

    outcome = counsel.evaluate(problem, plan.policy)
    return {
        "value": plan.value,
        "penalised_value": plan.penalised_value,
        "advice_count": plan.advice_count,
        "penalty": plan.penalty,
        "price": _number(plan.price),
        "value_alone": _alone(problem),
        "hard": plan.hard,
        "reverse": plan.reverse.tolist(),
        "advice_rate": outcome.advice_rate.tolist(),
        "reward": outcome.reward.tolist(),
        "written": None if output is None else str(output),
    }


def _print_frontier(front: "Frontier") -> None:
    first, last = front.vertices[0], front.vertices[-1]
    benefit = last.value - first.value
    if benefit <= 0.0:
        typer.echo(f"Advice never helps: the person alone earns {_short(first.value)} an episode.")
    else:
        for wanted in (1.0, 2.0, 3.0):
            if first.advice_count <= wanted < last.advice_count:
                low, high = (value - first.value for value in front.bounds(wanted))
                share = f"{low / benefit:.0%}"
                if high / benefit - low / benefit > 0.005:
                    share = f"{low / benefit:.0%} to {high / benefit:.0%}"
                typer.echo(
                    f"{_pieces(wanted).capitalize()} an episode: {share} of what unlimited advice "
                    "is worth."
                )
    title = f"The frontier, {len(front.vertices)} corners"
    if not front.complete:
        title += " (not complete: raise --max-vertices; a budget is solved exactly all the same)"
    table = _table(
        title, "pieces of advice", "expected reward", "of unlimited", "best at penalties"
    )
    for vertex in _thinned(front.vertices):
        low, high = vertex.penalties
        of_all = (vertex.value - first.value) / benefit if benefit > 0.0 else 0.0
        table.add_row(
            _short(vertex.advice_count),
            f"{vertex.value:.6g}",
            f"{of_all:.1%}",
            _short(low) if _short(low) == _short(high) else f"{_short(low)} to {_short(high)}",
        )
    _print_table(table)
    if len(front.vertices) > ROWS:
        typer.echo(f"({ROWS} of {len(front.vertices)} shown: --json and -o have them all)")


def _thinned(vertices: tuple[Any, ...]) -> list[Any]:
    """Return at most ROWS vertices, evenly spread, both ends among them."""
    if len(vertices) <= ROWS:
        return list(vertices)
    return [vertices[round(i * (len(vertices) - 1) / (ROWS - 1))] for i in range(ROWS)]


def _frontier_record(front: "Frontier") -> dict[str, Any]:
    return {
        "complete": front.complete,
        "vertices": [
            {
                "advice_count": vertex.advice_count,
                "value": vertex.value,
                "penalty_low": _number(vertex.penalties[0]),
                "penalty_high": _number(vertex.penalties[1]),
            }
            for vertex in front.vertices
        ],
    }


def _frontier_csv(front: "Frontier") -> str:
    lines = ["advice_count,value,penalty_low,penalty_high"]
    for vertex in front.vertices:
        low, high = vertex.penalties
        lines.append(f"{vertex.advice_count!r},{vertex.value!r},{low!r},{high!r}")
    return "\n".join(lines) + "\n"


def _print_explanation(told: "Explanation") -> None:
    low, high = told.criticality
    table = _table(None, "in this cell", "", left=1)
    for name, probability in zip(told.action_names, told.own, strict=True):
        table.add_row(f"alone: {name}", f"{probability:.1%}")
    if told.considered is not None:
        table.add_row("advice considered", told.action_names[told.considered])
        table.add_row("lift", _short(told.lift))
        table.add_row("advantage", _short(told.advantage))
        table.add_row("gain = lift × advantage", _short(told.gain))
    table.add_row("price of a piece", _short(told.price))
    table.add_row("criticality", _short(low) if low == high else f"{_short(low)} to {_short(high)}")
    _print_table(table)


def _explanation_record(told: "Explanation") -> dict[str, Any]:
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
        "price": _number(told.price),
        "criticality": [_number(bound) for bound in told.criticality],
        "reverse": told.reverse,
        "must": told.must,
    }
