"""What the command line prints: findings in a sentence, tables for people, records for scripts."""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
import typer
from rich import box
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

import counsel
from counsel._arrays import Floats
from counsel.model.policy import HardPolicy, Policy
from counsel.model.problem import AdviceProblem
from counsel.planning.explain import Explanation
from counsel.planning.frontier import Frontier
from counsel.planning.occupancy import Evaluation
from counsel.planning.plan import Plan
from counsel.simulate.summary import Summary, wilson
from counsel.worlds.catalogue import World

if TYPE_CHECKING:
    from counsel.experiments.experiment import Run
    from counsel.experiments.reproduce import Outcome
    from counsel.experiments.run import Result
    from counsel.experiments.spec import Spec
    from counsel.experiments.store import Done
    from counsel.learning.learn import Record
    from counsel.logs.check import Checked

ROWS = 40
"""Rows of a long table that are printed; --json and -o have them all."""


def _short(number: float) -> str:
    """Three significant digits."""
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    text = f"{number:.3g}"
    return f"{number:,.0f}" if "e" in text and 1e3 <= abs(number) < 1e12 else text


def _value(number: float) -> str:
    """Five significant digits: enough to see what advice changes."""
    text = f"{number:.5g}"
    return f"{number:,.0f}" if "e" in text and 1e5 <= abs(number) < 1e12 else text


def _number(number: float) -> float | None:
    """JSON has no infinity."""
    return number if math.isfinite(number) else None


def print_json(record: dict[str, Any]) -> None:
    """Print a record for scripts."""
    typer.echo(json.dumps(record, indent=2, ensure_ascii=False))


class _Plain(Console):
    """A console that prints labels as they are and leaves a broken pipe to the caller."""

    def __init__(self, width: int | None = None) -> None:
        super().__init__(width=width, markup=False, emoji=False, highlight=False)

    def on_broken_pipe(self) -> None:
        """Let the program end as any other does."""
        raise BrokenPipeError


def _print_table(table: Table) -> None:
    console = _Plain()
    if not console.is_terminal:
        console = _Plain(width=120)
    console.print(table)


def _table(title: str | None, *columns: str, left: int = 0) -> Table:
    """Return a plain table; the first ``left`` columns are text, the others numbers."""
    table = Table(title=title, title_justify="left", title_style="", box=box.SIMPLE_HEAD)
    for i, name in enumerate(columns):
        table.add_column(name, justify="left" if i < left else "right")
    return table


def _alone(problem: AdviceProblem) -> float:
    never = counsel.Policy.never(
        horizon=problem.horizon, n_states=problem.n_states, n_actions=problem.n_actions
    )
    return counsel.evaluate(problem, never).value


def _pieces(count: float) -> str:
    return f"{_short(count)} piece{'' if _short(count) == '1' else 's'} of advice"


def print_plan(problem: AdviceProblem, plan: Plan, *, reverse_left_out: bool) -> None:
    """Print what a plan brings, and where and when it speaks."""
    alone, outcome = _alone(problem), counsel.evaluate(problem, plan.policy)
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


def _headline(plan: Plan, alone: float) -> str:
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


def _is_hard(policy: Policy | HardPolicy) -> TypeGuard[HardPolicy]:
    return hasattr(policy, "budget")


def _print_pieces(problem: AdviceProblem, pieces_sa: Floats) -> None:
    """Print where most pieces of advice go."""
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


def plan_record(problem: AdviceProblem, plan: Plan, output: Path | None) -> dict[str, Any]:
    """Return what a plan brings, for scripts."""
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


def print_frontier(front: Frontier) -> None:
    """Print what one, two and three pieces are worth, and the corners of the frontier."""
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


def frontier_record(front: Frontier) -> dict[str, Any]:
    """Return the vertices, for scripts."""
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
        "price": _number(told.price),
        "criticality": [_number(bound) for bound in told.criticality],
        "reverse": told.reverse,
        "must": told.must,
    }


def print_worlds(found: dict[str, World]) -> None:
    """Print the worlds by name."""
    foreign = any(world.package != "counsel" for world in found.values())
    columns = ("world", "what it is", "package") if foreign else ("world", "what it is")
    table = _table(None, *columns, left=3)
    for name, world in found.items():
        cells = (name, world.summary, world.package)
        table.add_row(*cells[: len(columns)])
    _print_table(table)


def worlds_record(found: dict[str, World]) -> dict[str, Any]:
    """Return the worlds, for scripts."""
    return {
        "worlds": [
            {"name": name, "summary": world.summary, "package": world.package}
            for name, world in found.items()
        ]
    }


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
            rate = "–" if speed is None else _short(speed)
            bar.update(task, figure=figure, rate=rate)

        yield advance


def print_play_out(played: Summary, policy: Policy | HardPolicy) -> None:
    """Print what the episodes brought, beside what was to be expected."""
    problem, exact = played.problem, _while_live(played.problem, policy)
    reward, pieces = played.reward, played.pieces
    many = "1 episode" if played.episodes == 1 else f"{played.episodes:,} episodes"
    typer.echo(
        f"{many}: {_pieces(pieces.mean)} and a reward of {_value(reward.mean)} each; "
        f"alone this person earns {_value(_alone(problem))}."
    )
    table = _table(None, "per episode", "played", "± 95 %", "exact", left=1)
    for name, mean, sure in (
        ("reward", reward, exact.value),
        ("pieces of advice", pieces, exact.advice_count),
    ):
        table.add_row(name, _value(mean.mean), _short(1.96 * mean.error), _value(sure))
    table.add_row("decisions", _short(played.decisions / played.episodes), "", "")
    table.add_row("ended by itself", f"{played.ended / played.episodes:.1%}", "", "")
    _print_table(table)
    if not played.given_a.any():
        return
    rates = _table("How often advice was taken", "advice", "given", "matched", "95 %", left=1)
    for a in np.nonzero(played.given_a)[0]:
        given, matched = int(played.given_a[a]), int(played.matched_a[a])
        low, high = wilson(matched, given)
        rates.add_row(
            problem.mdp.action_name(int(a)),
            f"{given:,}",
            f"{matched / given:.1%}",
            f"{low:.1%} to {high:.1%}",
        )
    _print_table(rates)


def _while_live(problem: AdviceProblem, policy: Policy | HardPolicy) -> Evaluation:
    """Evaluate what is said before an episode is over: records have nothing after that."""
    return counsel.evaluate(problem, policy.silent_where(problem.mdp.over))


def play_out_record(played: Summary, policy: Policy | HardPolicy) -> dict[str, Any]:
    """Return what the episodes brought, for scripts."""
    problem, exact = played.problem, _while_live(played.problem, policy)
    return {
        "episodes": played.episodes,
        "reward": played.reward.mean,
        "reward_standard_error": _number(played.reward.error),
        "advice_count": played.pieces.mean,
        "advice_count_standard_error": _number(played.pieces.error),
        "decisions": played.decisions,
        "ended": played.ended,
        "exact_value": exact.value,
        "exact_advice_count": exact.advice_count,
        "value_alone": _alone(problem),
        "advice": [
            {
                "advice": problem.mdp.action_name(a),
                "given": int(played.given_a[a]),
                "matched": int(played.matched_a[a]),
            }
            for a in range(problem.n_actions)
        ],
    }


def standing(record: "Record") -> str:
    """Return how a learner is doing, for the bar."""
    return f"regret {_short(record.regret)}, gap {_short(record.value_gap)}"


def print_learnt(spec: "Spec", problem: AdviceProblem, result: "Result") -> None:
    """Print what learning brought and cost."""
    last = result.records[-1]
    gap, rounding = result.best - result.value, 1e-9 * (1.0 + abs(result.best))
    best = "there is" if spec.budget is None else "within the budget"
    short = f"as good as the best {best}"
    if abs(gap) > rounding:
        side = "short of" if gap > 0 else "above"
        short = f"{_short(abs(gap))} {side} the best {best} ({_value(result.best)})"
    cost = last.regret if last.regret > rounding * last.episode else 0.0
    typer.echo(
        f"After {last.episode:,} episodes the advice is worth {_value(result.value)} an episode, "
        f"{short}. Learning cost {_short(cost)} in all, {_short(cost / last.episode)} an episode."
    )
    if spec.budget is not None:
        over = result.advice_count - spec.budget
        spent = f"{_short(over)} above" if over > rounding else "within"
        typer.echo(f"It gives {_pieces(result.advice_count)} an episode, {spent} the budget.")
    if result.stopping_rule_fired:
        typer.echo("The stopping rule fired: enough was explored.")
    if problem.human.repels:
        typer.echo(f"{problem.repels()} The best there is makes use of that.")
    table = _table(
        None, "episode", "value gap (reward)", "regret (reward)", "advice an episode", "seconds"
    )
    for record in _milestones(result.records):
        table.add_row(
            f"{record.episode:,}",
            _short(record.value_gap if abs(record.value_gap) > rounding else 0.0),
            _short(record.regret if record.regret > rounding * record.episode else 0.0),
            _short(record.advice_count),
            f"{record.seconds:.2f}",
        )
    _print_table(table)
    if result.heard is None or not result.heard[1].any():
        return
    rates = _table("How often advice was taken", "advice", "given", "matched", "95 %", left=1)
    for a, (matched, given) in enumerate(zip(*result.heard, strict=True)):
        if given:
            low, high = wilson(int(matched), int(given))
            rates.add_row(
                problem.mdp.action_name(a),
                f"{given:,}",
                f"{matched / given:.1%}",
                f"{low:.1%} to {high:.1%}",
            )
    _print_table(rates)


def _milestones(records: "Sequence[Record]") -> "list[Record]":
    """Return records at about 1, 2, 5, 10, 20, 50, … episodes, and the last."""
    wanted = [m * 10**e for e in range(10) for m in (1, 2, 5)]
    chosen: list[Record] = []
    for number in wanted:
        near = next((record for record in records if record.episode >= number), records[-1])
        if not chosen or near.episode > chosen[-1].episode:
            chosen.append(near)
    return chosen


def learnt_record(spec: "Spec", result: "Result") -> dict[str, Any]:
    """Return what learning brought and cost, for scripts."""
    return {
        "settings": spec.settings(),
        **result.told(),
        "records": [asdict(record) for record in result.records],
        "written": [str(path) for path in result.files],
    }


class Board:
    """What is under way: a bar for all runs, weighed by their length, a line for each active."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._all: TaskID | None = None
        self._active: dict[str, TaskID] = {}
        self._done, self._of = 0, 0

    def planned(self, left: "Sequence[Run]", all_of: "Sequence[Run]") -> None:
        """Show how many runs there are, and how many are done already."""
        from counsel.experiments.reproduce import cost

        self._done, self._of = len(all_of) - len(left), len(all_of)
        if self._progress is not None:
            total = sum(cost(run) for run in left)
            self._all = self._progress.add_task("All runs", total=total, count=self._count)

    def begun(self, run: "Run") -> None:
        """Show a run that was handed out; one that is handed out again stays."""
        if self._progress is not None and run.id not in self._active:
            self._active[run.id] = self._progress.add_task(f"  {run.id}", total=None, count="")

    def ended(self, run: "Run", done: "Done") -> None:
        """Take a run off and count it."""
        from counsel.experiments.reproduce import cost

        self._done += 1
        if self._progress is not None and self._all is not None:
            self._progress.remove_task(self._active.pop(run.id))
            self._progress.update(self._all, advance=cost(run), count=self._count)

    @property
    def _count(self) -> str:
        return f"{self._done} of {self._of}"


@contextmanager
def board() -> Iterator[Board]:
    """Show runs side by side on a terminal; nothing when piped."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield Board(None)
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[count]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, speed_estimate_period=3600.0
    ) as progress:
        yield Board(progress)


def print_outcome(outcome: "Outcome") -> None:
    """Print every claim and whether it holds."""
    from counsel.experiments.reproduce import headline, number

    title, _ = headline(outcome.verdicts)
    typer.echo(f"{title}.")
    table = _table(None, "experiment", "claim", "measured", "mean [95 %]", "verdict", left=5)
    for verdict in outcome.verdicts:
        claim = verdict.claim
        told = "holds" if claim.holds else "does not hold"
        table.add_row(
            verdict.experiment,
            claim.text if claim.source == "paper" else f"{claim.text} (ours)",
            claim.measured,
            f"{number(claim)} ({claim.quantity})",
            told,
        )
    _print_table(table)
    typer.echo(
        f"{outcome.done} runs done, {outcome.skipped} there already, in "
        f"{outcome.seconds:,.0f} seconds."
    )
    for name, (there, all_of) in outcome.unfinished.items():
        typer.echo(
            f"{name} is left out: {there} of {all_of} runs are done; counsel reproduce {name} "
            "finishes it."
        )
    typer.echo("Wrote " + ", ".join(str(path) for path in outcome.files) + ".")


def outcome_record(outcome: "Outcome") -> dict[str, Any]:
    """Return claims and files for JSON."""
    from counsel.experiments.reproduce import record_of

    return {
        "claims": [record_of(verdict) for verdict in outcome.verdicts],
        "unfinished": outcome.unfinished,
        "done": outcome.done,
        "skipped": outcome.skipped,
        "seconds": outcome.seconds,
        "written": [str(path) for path in outcome.files],
    }


def print_checked(name: str, found: "Checked") -> None:
    """Print what a log holds and what is wrong with it."""
    faults = [finding for finding in found.findings if finding.fatal]
    verdict = "It can be learnt from"
    if faults:
        verdict = f"It cannot be learnt from until {len(faults)} kinds of faults are mended"
        if len(faults) == 1:
            verdict = "It cannot be learnt from until one kind of fault is mended"
    people = "" if found.people is None else f" by {found.people:,} people"
    typer.echo(
        f"{name} holds {found.rows:,} decisions{people} in {found.episodes:,} episodes of up to "
        f"{found.longest:,} steps, over {found.states:,} states. {verdict}."
    )
    if found.advised:
        low, high = wilson(found.matched, found.advised)
        share = found.matched / found.advised
        typer.echo(
            f"Advice was seen {found.advised:,} times and matched in {share:.1%} of them "
            f"(95 %: {low:.1%} to {high:.1%})."
        )
    if not found.findings:
        return
    table = _table(None, "", "found", "for example", "how many", left=3)
    for finding in found.findings:
        kind = "fault" if finding.fatal else "warning"
        how_many = f"{finding.count:,}" if finding.count else "–"
        table.add_row(kind, finding.what, "\n".join(finding.examples), how_many)
    _print_table(table)


def checked_record(found: "Checked") -> dict[str, Any]:
    """Return what was found, for JSON."""
    return asdict(found) | {"fatal": found.fatal}
