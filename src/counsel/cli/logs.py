"""Commands for tables of past decisions: check, fit, plan, evaluate, power, report, demo-log."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from counsel.cli import options
from counsel.cli.app import app, waiting
from counsel.errors import CounselError

if TYPE_CHECKING:
    from counsel.logs.read import Log

Source = Annotated[
    str,
    typer.Argument(
        metavar="LOG",
        help="Table of decisions: CSV, Parquet, JSON lines, a DuckDB or SQLite file, or "
        "postgresql://…::TABLE.",
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="ROLE=COLUMN,…",
        help="Map roles to your column names, e.g. state=ward+bed,action=did.",
    ),
]
Bins = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=CUTS",
        help="Cut a column of numbers into bins, e.g. spo2=88,92, or age=q4 for four bins of equal "
        "size. Repeat for more columns.",
    ),
]
Actions = Annotated[
    str | None,
    typer.Option(metavar="A,B,…", help="All possible actions; any other action is a fault."),
]
Rewards = Annotated[
    str | None,
    typer.Option(
        metavar="LOW,HIGH", help="Range of possible rewards; any other reward is a fault."
    ),
]
ByStep = Annotated[
    bool, typer.Option("--by-step", help="Estimate every step separately instead of pooling steps.")
]
Share = Annotated[
    str,
    typer.Option(
        help="Which pairs of state and advice share a lift: pair (each has its own; pairs with few "
        "data are pooled with the same advice in other states), advice, or all."
    ),
]
Scale = Annotated[
    str, typer.Option(help="Scale on which similar pairs are pooled: lift or adherence.")
]
Groups = Annotated[
    str | None,
    typer.Option(
        metavar="GROUP=A+B,…", help="Groups of advice that share a lift, e.g. urgent=page+call."
    ),
]
Model = Annotated[
    Path | None,
    typer.Option(
        metavar="MODEL",
        help="Use this model, written by `counsel fit`, with its columns, bins and costs.",
    ),
]
Cautious = Annotated[
    bool,
    typer.Option("--cautious", help="Give only advice whose gain chance does not explain."),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of what is alike, if not people: a ward, a clinic. Errors are by its values.",
    ),
]
Context = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of what changes how much people listen, and nothing else: lifts and plans "
        "are by its values.",
    ),
]
In = Annotated[
    str | None,
    typer.Option("--in", metavar="CONTEXT", help="The context, if the model has contexts."),
]
Unit = Annotated[
    str,
    typer.Option(
        help="What advice was assigned to: decision, or episode or person if some of these were "
        "left without any advice on purpose."
    ),
]


@app.command()
def check(  # noqa: PLR0913 (one argument for each option)
    log: Source,
    *,
    columns: Columns = None,
    bins: Bins = None,
    actions: Actions = None,
    rewards: Rewards = None,
    as_json: options.Json = False,
) -> None:
    """Check whether a table of past decisions can be fitted."""
    from counsel.cli import logs_output as printing
    from counsel.cli.console import print_json
    from counsel.logs.check import check_log

    result = check_log(
        _read(log, columns, bins), actions=_names(actions), reward_range=_range(rewards)
    )
    if as_json:
        print_json(printing.check_record(result))
    else:
        printing.print_check(log, result)
    if result.fatal:
        raise typer.Exit(2)
    if not as_json:
        typed = _options(columns, bins, actions=actions, rewards=rewards)
        typer.echo(f"Next: counsel fit {shlex.quote(log)}{typed} -o model.npz")


@app.command()
def fit(  # noqa: PLR0913 (one argument for each option)
    log: Source,
    *,
    output: Annotated[
        Path | None, typer.Option("-o", metavar="MODEL", help="Write the model (.npz).")
    ] = None,
    columns: Columns = None,
    bins: Bins = None,
    actions: Actions = None,
    rewards: Rewards = None,
    by_step: ByStep = False,
    share: Share = "pair",
    scale: Scale = "lift",
    groups: Groups = None,
    cost: options.Cost = None,
    cluster: Cluster = None,
    context: Context = None,
    unit: Unit = "decision",
    as_json: options.Json = False,
) -> None:
    """Estimate how much people listen, what they do without advice, and which actions pay."""
    from counsel.cli import logs_output as printing
    from counsel.cli.console import print_json
    from counsel.logs.fit import fit as fit_log

    options.check_output(output, ".npz")
    with waiting(f"Fitting {log}"):
        model = fit_log(
            _read(log, columns, bins, cluster, context),
            actions=_names(actions),
            reward_range=_range(rewards),
            by_step=by_step,
            share=share,
            scale=scale,
            groups=_groups(groups),
            cost=options.read_costs(cost),
            unit=unit,
        )
    if output is not None:
        model.save(output)
    if as_json:
        print_json(printing.fit_record(model) | {"written": output and str(output)})
        return
    printing.print_fit(model)
    if output is not None:
        typer.echo(f"Wrote {output}.")
        limit = _possible_budget(model)
        typer.echo(f"Next: counsel plan {shlex.quote(str(output))}{limit} -o policy.csv")
        return
    typed = _options(columns, bins, actions=actions, rewards=rewards)
    typed += " --by-step" if by_step else ""
    typed += _typed(
        share=_unless("pair", share),
        scale=_unless("lift", scale),
        groups=groups,
        cost=cost,
        cluster=cluster,
        context=context,
        unit=_unless("decision", unit),
    )
    typer.echo(f"Next: counsel fit {shlex.quote(log)}{typed} -o model.npz")


@app.command()
def plan(  # noqa: PLR0913 (one argument for each option)
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model written by `counsel fit`.")],
    *,
    penalty: options.Penalty = None,
    budget: options.Budget = None,
    hard: options.Hard = False,
    cautious: Cautious = False,
    allow_reverse: options.Reverse = False,
    context: In = None,
    output: Annotated[
        Path | None, typer.Option("-o", metavar="POLICY", help="Write the plan (.csv or .parquet).")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Plan advice on a fitted model, within a budget or at a penalty."""
    from counsel._tables import write_tables
    from counsel.cli import logs_output as printing
    from counsel.cli.console import counting, print_json
    from counsel.logs.plan import DRAWS, plan_advice
    from counsel.logs.plan_table import plan_columns
    from counsel.logs.saved_model import load_fit

    options.check_output(output, ".csv", ".parquet")
    if model.suffix != ".npz":
        command = f"counsel fit {shlex.quote(str(model))} -o model.npz"
        raise CounselError(f"{model} is not a model (.npz); fit a table with: {command}")
    fitted = load_fit(model)
    every = fitted.tally.contexts if context is None else (context,)
    fits = [fitted.in_context(label) for label in every] or [fitted]
    limit: dict[str, Any] = {"penalty": penalty, "budget": budget, "hard": hard}
    rules: dict[str, Any] = {"cautious": cautious, "allow_reverse": allow_reverse}
    with counting("Drawing episodes", len(fits) * DRAWS if cautious else 0) as show:
        results = [plan_advice(one, **limit, **rules, show=show) for one in fits]
    if output is not None:
        write_tables(output, (table for result in results for table in plan_columns(result)))
    if as_json:
        records = [printing.plan_record(result) for result in results]
        record = (
            records[0]
            if len(records) == 1
            else {"contexts": dict(zip(every, records, strict=True))}
        )
        print_json(record | {"written": output and str(output)})
        return
    for result in results:
        printing.print_plan(result)
    source = shlex.quote(str(model))
    if output is None:
        typed = options.planning_options(penalty, budget, hard=hard, allow_reverse=allow_reverse)
        typed += " --cautious" if cautious else ""
        typed += _typed(**{"in": context})
        typer.echo(f"Next: counsel plan {source}{typed} -o policy.csv")
        return
    typer.echo(f"Wrote {output}.")
    log, policy = shlex.quote(fitted.name), shlex.quote(str(output))
    typed = _typed(**{"in": every[0]}) if every else ""
    typer.echo(f"Next: counsel evaluate {log} {policy} --model {source}{typed}")


@app.command()
def evaluate(  # noqa: PLR0913 (one argument for each option)
    log: Source,
    policy: Annotated[
        Path,
        typer.Argument(metavar="POLICY", help="Plan written by `counsel plan` (.csv or .parquet)."),
    ],
    other: Annotated[
        Path | None,
        typer.Argument(metavar="[OTHER]", help="Second plan to compare the first with."),
    ] = None,
    *,
    columns: Columns = None,
    bins: Bins = None,
    model: Model = None,
    cost: options.Cost = None,
    cluster: Cluster = None,
    unit: Unit = "decision",
    context: In = None,
    model_only: Annotated[
        bool,
        typer.Option("--model-only", help="Accept the model's answer if the log cannot answer."),
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Estimate what a policy would have been worth, from a log of other advice."""
    from counsel.cli import logs_output as printing
    from counsel.cli.console import counting, print_json
    from counsel.logs.evaluate_log import MODELS, evaluate_policy
    from counsel.logs.saved_model import load_fit, read_like

    design = {"cluster": cluster, "unit": _unless("decision", unit)}
    _refuse_beside_model(model, columns=columns, bins=bins, cost=cost, **design)
    fitted = None if model is None else load_fit(model)
    source = _read(log, columns, bins, cluster) if fitted is None else read_like(log, fitted)
    fitted, source = _in_context(fitted, source, context)
    settings: dict[str, Any] = {"fitted": fitted, "cost": options.read_costs(cost), "unit": unit}
    with counting("Drawing episodes", MODELS) as show:
        evaluation = evaluate_policy(source, policy, other=other, **settings, show=show)
    if as_json:
        print_json(printing.evaluation_record(evaluation))
    else:
        printing.print_evaluation(evaluation)
    if evaluation.refusal is not None and not model_only:
        raise CounselError(
            f"{log} cannot say what {policy} would have been worth: {evaluation.refusal}; "
            "--model-only accepts the model's answer"
        )
    if as_json:
        return
    if fitted is None or fitted.name == log:  # a report is about the log of its model
        named = None if model is None else str(model)
        typed = _options(columns, bins, cost=cost, model=named, **design, **{"in": context})
        typer.echo(f"Next: counsel report {shlex.quote(log)}{typed} -o report.html")


@app.command()
def power(  # noqa: PLR0913 (one argument for each option)
    log: Source,
    *,
    output: Annotated[
        Path | None,
        typer.Option("-o", metavar="SCHEDULE", help="Write the schedule of a trial (.json)."),
    ] = None,
    lift: Annotated[
        float | None, typer.Option(help="Lift to be told from 0: how many people does it take?")
    ] = None,
    difference: Annotated[
        float | None,
        typer.Option(help="Reward per episode to be told from 0: how many people does it take?"),
    ] = None,
    budget: Annotated[
        float | None, typer.Option(help="Pieces of advice per episode of the trial, on average.")
    ] = None,
    least: Annotated[
        float, typer.Option(help="Least probability of advice, and of silence, in the trial.")
    ] = 0.1,
    model: Model = None,
    columns: Columns = None,
    bins: Bins = None,
    cluster: Cluster = None,
    as_json: options.Json = False,
) -> None:
    """Say what a log of this size can tell, and how to collect a better one."""
    import json

    import numpy as np

    from counsel._files import write_text
    from counsel.cli import logs_output as printing
    from counsel.cli.console import print_json
    from counsel.logs.evidence import Evidence
    from counsel.logs.fit import fit as fit_log
    from counsel.logs.power import find_power, make_schedule
    from counsel.logs.saved_model import fit_like, load_fit, read_like

    options.check_output(output, ".json")
    for name, value in (("lift", lift), ("difference", difference)):
        if value is not None and not value > 0.0:
            raise CounselError(f"{name} is {value:g}; it must be above 0")
    _refuse_beside_model(model, columns=columns, bins=bins, cluster=cluster)
    with waiting(f"Fitting {log}"):
        if model is None:
            source = _read(log, columns, bins, cluster)
            fitted = fit_log(source)
        else:
            saved = load_fit(model)
            source = read_like(log, saved)
            fitted = fit_like(source, saved, model)
    schedule = make_schedule(fitted, budget=budget, least=least)
    with waiting("Drawing people"):
        evidence = Evidence.load(source, fitted, np.random.default_rng(0))
        found = find_power(fitted, evidence)
    if output is not None:
        write_text(output, json.dumps(schedule.settings(), ensure_ascii=False, indent=1) + "\n")
    if as_json:
        record = printing.power_record(found, schedule, lift, difference)
        print_json(record | {"written": output and str(output)})
        return
    printing.print_power(found, schedule, lift, difference)
    if output is not None:
        typer.echo(f"Wrote {output}.")
        typer.echo("These are settings of an adviser: pass them on when you create it.")
        typer.echo("Next: counsel serve")
        return
    named = None if model is None else str(model)
    typed = _options(columns, bins, cluster=cluster, model=named)
    typed += "" if budget is None else f" --budget {budget:g}"
    typer.echo(f"Next: counsel power {shlex.quote(log)}{typed} -o schedule.json")


@app.command()
def report(  # noqa: PLR0913 (one argument for each option)
    log: Source,
    *,
    output: Annotated[Path, typer.Option("-o", metavar="PAGE", help="Write the page (.html).")],
    penalty: options.Penalty = None,
    budget: options.Budget = None,
    hard: options.Hard = False,
    cautious: Cautious = False,
    model: Model = None,
    columns: Columns = None,
    bins: Bins = None,
    by_step: ByStep = False,
    share: Share = "pair",
    scale: Scale = "lift",
    groups: Groups = None,
    cost: options.Cost = None,
    cluster: Cluster = None,
    unit: Unit = "decision",
    context: In = None,
) -> None:
    """Write a page for decision makers: who listens, where advice pays, what a budget buys."""
    import numpy as np

    from counsel._files import write_text
    from counsel.cli.console import counting
    from counsel.logs.evidence import Evidence
    from counsel.logs.fit import fit as fit_log
    from counsel.logs.plan import plan_advice
    from counsel.logs.report_contents import DRAWS, choose_budget, prepare_report
    from counsel.logs.saved_model import fit_like, load_fit, read_like
    from counsel.report.log_page import log_page

    options.check_output(output, ".html")
    pooled = {"by-step": by_step or None, "share": _unless("pair", share), "groups": groups}
    given = {"columns": columns, "bins": bins, "cost": cost, "scale": _unless("lift", scale)}
    given |= {"cluster": cluster, "unit": _unless("decision", unit)}
    _refuse_beside_model(model, **given, **pooled)
    with waiting(f"Fitting {log}"):
        if model is None:
            source = _read(log, columns, bins, cluster)
            sharing: dict[str, Any] = {"share": share, "scale": scale, "groups": _groups(groups)}
            costs = options.read_costs(cost)
            fitted = fit_log(source, by_step=by_step, **sharing, cost=costs, unit=unit)
        else:
            saved = load_fit(model)
            source = read_like(log, saved)
            fitted = fit_like(source, saved, model)
        fitted, source = _in_context(fitted, source, context)
    with waiting("Planning"):
        rng = np.random.default_rng(0)
        if penalty is None and budget is None:
            budget = float(choose_budget(fitted))
        limit: dict[str, Any] = {"penalty": penalty, "budget": budget, "hard": hard}
        plan = plan_advice(fitted, **limit, cautious=cautious, rng=rng)
    with waiting(f"Weighting the episodes of {log}"):
        evidence = Evidence.load(source, fitted, np.random.default_rng(0))
    with counting("Drawing episodes", DRAWS) as show:
        contents = prepare_report(plan, evidence, rng=rng, show=show)
    write_text(output, log_page(contents))
    typer.echo(f"Wrote {output}.")
    typer.echo(f"Next: open {shlex.quote(str(output))} in a browser")


@app.command()
def demo_log(
    *,
    output: Annotated[
        Path, typer.Option("-o", metavar="LOG", help="Write the log (.csv or .parquet).")
    ],
    shifts: Annotated[int, typer.Option(help="Number of shifts; each is an episode.")] = 15_000,
    seed: options.Seed = 0,
) -> None:
    """Write an example log: shifts on a hospital ward with too many alarms."""
    import numpy as np

    from counsel._tables import write_tables
    from counsel.worlds.ward import ward_table

    options.check_output(output, ".csv", ".parquet")
    table = ward_table(shifts=shifts, rng=np.random.default_rng(seed))
    write_tables(output, [table])
    typer.echo(f"Wrote {output}: {table['step'].values.size:,} decisions in {shifts:,} shifts.")
    typer.echo(f"Next: counsel fit {shlex.quote(str(output))} -o model.npz")


def _read(
    log: str,
    columns: str | None,
    bins: list[str] | None,
    cluster: str | None = None,
    context: str | None = None,
) -> "Log":
    """Open a log with its columns and bins."""
    from counsel.logs.binning import Bins
    from counsel.logs.column_mapping import Columns
    from counsel.logs.read import read_log

    roles = Columns.parse(columns).also("cluster", cluster).also("context", context)
    return read_log(log, roles, Bins.parse(bins or []))


def _in_context(
    fitted: Any,  # noqa: ANN401 (a fit, or None)
    source: "Log",
    context: str | None,
) -> tuple[Any, "Log"]:
    """Return a model and its log in one context; unchanged without contexts."""
    from counsel.logs.saved_model import only_context

    contexts = () if fitted is None else fitted.tally.contexts
    if context is None and contexts:
        raise CounselError(f"the model has the contexts {', '.join(contexts)}; say which with --in")
    if context is None or fitted is None:
        if context is not None:
            raise CounselError("--in needs a model with contexts (--model)")
        return fitted, source
    return fitted.in_context(context), only_context(source, context)


def _refuse_beside_model(model: Path | None, **others: object) -> None:
    """Raise an error if a model is given beside options that it already holds."""
    given = [name for name, value in others.items() if value]
    if model is not None and given:
        raise CounselError(f"--model already sets --{given[0]}; leave out --{given[0]}")


def _possible_budget(fitted: Any) -> str:  # noqa: ANN401 (a fit)
    """Return the option of a budget that a plan can keep."""
    import math

    from counsel.logs.plan import kept_advice, quiet_policy
    from counsel.planning.evaluate import evaluate as play

    if not kept_advice(fitted):
        return " --budget 2"
    return f" --budget {max(2, math.ceil(play(fitted.problem, quiet_policy(fitted)).advice_cost))}"


def _unless(default: str, value: str) -> str | None:
    """Return a value that is not the default, else None."""
    return None if value == default else value


def _options(columns: str | None, bins: list[str] | None, **others: str | None) -> str:
    """Return the options that say how to read a log, as a user would type them."""
    return _typed(columns=columns) + "".join(_typed(bins=b) for b in bins or []) + _typed(**others)


def _typed(**values: str | None) -> str:
    """Return options as a user would type them, without those that are None."""
    return "".join(
        f" --{name} {shlex.quote(value)}" for name, value in values.items() if value is not None
    )


def _names(text: str | None) -> tuple[str, ...] | None:
    """Parse A,B,…."""
    if text is None:
        return None
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise CounselError(f"actions is {text!r}; give their names: A,B,…")
    return names


def _groups(text: str | None) -> dict[str, str] | None:
    """Parse GROUP=A+B,… and return the group of each advice."""
    if text is None:
        return None
    group_of = dict[str, str]()
    for part in text.split(","):
        group, _, members = (piece.strip() for piece in part.partition("="))
        names = [name.strip() for name in members.split("+") if name.strip()]
        if not group or not names or any(name in group_of for name in names):
            raise CounselError(
                f"groups has {part.strip()!r}; write GROUP=A+B,…, each advice in one group"
            )
        group_of |= dict.fromkeys(names, group)
    return group_of


def _range(text: str | None) -> tuple[float, float] | None:
    """Parse LOW,HIGH."""
    if text is None:
        return None
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise CounselError(f"rewards is {text!r}; give two numbers: LOW,HIGH") from None
    return low, high
