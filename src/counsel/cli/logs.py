"""Commands for tables of past decisions: check, fit, plan, evaluate, power, report, demo-log."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from counsel.cli import log_options, options
from counsel.cli.app import app, waiting
from counsel.errors import CounselError


@app.command()
def check(  # noqa: PLR0913 (one argument for each option)
    log: log_options.Source,
    *,
    columns: log_options.Columns = None,
    bins: log_options.Bins = None,
    actions: log_options.Actions = None,
    rewards: log_options.Rewards = None,
    as_json: options.Json = False,
) -> None:
    """Check whether a table of past decisions can be fitted."""
    from counsel.cli import logs_output as printing
    from counsel.cli.console import print_json
    from counsel.logs.check import check_log

    result = check_log(
        log_options.read(log, columns, bins),
        actions=log_options.read_names(actions),
        reward_range=log_options.read_range(rewards),
    )
    if as_json:
        print_json(printing.check_record(result))
    else:
        printing.print_check(log, result)
    if result.fatal:
        raise typer.Exit(2)
    if not as_json:
        typed = log_options.typed_reading(columns, bins, actions=actions, rewards=rewards)
        typer.echo(f"Next: counsel fit {shlex.quote(log)}{typed} -o model.npz")


@app.command()
def fit(  # noqa: PLR0913 (one argument for each option)
    log: log_options.Source,
    *,
    output: Annotated[
        Path | None, typer.Option("-o", metavar="MODEL", help="Write the model (.npz).")
    ] = None,
    columns: log_options.Columns = None,
    bins: log_options.Bins = None,
    actions: log_options.Actions = None,
    rewards: log_options.Rewards = None,
    by_step: log_options.ByStep = False,
    share: log_options.Share = "pair",
    scale: log_options.Scale = "lift",
    groups: log_options.Groups = None,
    cost: options.Cost = None,
    cluster: log_options.Cluster = None,
    context: log_options.Context = None,
    unit: log_options.Unit = "decision",
    memory: log_options.Memory = "none",
    across: log_options.Across = "episode",
    as_json: options.Json = False,
) -> None:
    """Estimate how much people listen, what they do without advice, and which actions pay."""
    from counsel.cli import logs_output as printing
    from counsel.cli.console import print_json
    from counsel.logs.fit import fit as fit_log

    options.check_output(output, ".npz")
    with waiting(f"Fitting {log}"):
        model = fit_log(
            log_options.read(log, columns, bins, cluster, context),
            actions=log_options.read_names(actions),
            reward_range=log_options.read_range(rewards),
            by_step=by_step,
            share=share,
            scale=scale,
            groups=log_options.read_groups(groups),
            cost=options.read_costs(cost),
            unit=unit,
            memory=memory,
            across=across,
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
    typed = log_options.typed_reading(columns, bins, actions=actions, rewards=rewards)
    typed += " --by-step" if by_step else ""
    typed += log_options.typed(
        share=log_options.unless("pair", share),
        scale=log_options.unless("lift", scale),
        groups=groups,
        cost=cost,
        cluster=cluster,
        context=context,
        unit=log_options.unless("decision", unit),
        memory=log_options.unless("none", memory),
        across=log_options.unless("episode", across),
    )
    typer.echo(f"Next: counsel fit {shlex.quote(log)}{typed} -o model.npz")


@app.command()
def plan(  # noqa: PLR0913 (one argument for each option)
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model written by `counsel fit`.")],
    *,
    penalty: options.Penalty = None,
    budget: options.Budget = None,
    hard: options.Hard = False,
    discount: options.Discount = None,
    average: options.Average = False,
    cautious: log_options.Cautious = False,
    allow_reverse: options.Reverse = False,
    context: log_options.In = None,
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
    rules |= {"discount": discount, "average": average}
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
        typed += options.without_end(discount, average=average)
        typed += " --cautious" if cautious else ""
        typed += log_options.typed(**{"in": context})
        typer.echo(f"Next: counsel plan {source}{typed} -o policy.csv")
        return
    typer.echo(f"Wrote {output}.")
    if discount is not None or average:
        return
    log, policy = shlex.quote(fitted.name), shlex.quote(str(output))
    typed = log_options.typed(**{"in": every[0]}) if every else ""
    typer.echo(f"Next: counsel evaluate {log} {policy} --model {source}{typed}")


@app.command()
def evaluate(  # noqa: PLR0913 (one argument for each option)
    log: log_options.Source,
    policy: Annotated[
        Path,
        typer.Argument(metavar="POLICY", help="Plan written by `counsel plan` (.csv or .parquet)."),
    ],
    other: Annotated[
        Path | None,
        typer.Argument(metavar="[OTHER]", help="Second plan to compare the first with."),
    ] = None,
    *,
    columns: log_options.Columns = None,
    bins: log_options.Bins = None,
    model: log_options.Model = None,
    cost: options.Cost = None,
    cluster: log_options.Cluster = None,
    unit: log_options.Unit = "decision",
    context: log_options.In = None,
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

    design = {"cluster": cluster, "unit": log_options.unless("decision", unit)}
    log_options.refuse_beside_model(model, columns=columns, bins=bins, cost=cost, **design)
    fitted = None if model is None else load_fit(model)
    source = (
        log_options.read(log, columns, bins, cluster) if fitted is None else read_like(log, fitted)
    )
    fitted, source = log_options.in_context(fitted, source, context)
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
        typed = log_options.typed_reading(
            columns, bins, cost=cost, model=named, **design, **{"in": context}
        )
        typer.echo(f"Next: counsel report {shlex.quote(log)}{typed} -o report.html")


@app.command()
def power(  # noqa: PLR0913 (one argument for each option)
    log: log_options.Source,
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
    model: log_options.Model = None,
    columns: log_options.Columns = None,
    bins: log_options.Bins = None,
    cluster: log_options.Cluster = None,
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
    log_options.refuse_beside_model(model, columns=columns, bins=bins, cluster=cluster)
    with waiting(f"Fitting {log}"):
        if model is None:
            source = log_options.read(log, columns, bins, cluster)
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
    typed = log_options.typed_reading(columns, bins, cluster=cluster, model=named)
    typed += "" if budget is None else f" --budget {budget:g}"
    typer.echo(f"Next: counsel power {shlex.quote(log)}{typed} -o schedule.json")


@app.command()
def report(  # noqa: PLR0913 (one argument for each option)
    log: log_options.Source,
    *,
    output: Annotated[Path, typer.Option("-o", metavar="PAGE", help="Write the page (.html).")],
    penalty: options.Penalty = None,
    budget: options.Budget = None,
    hard: options.Hard = False,
    cautious: log_options.Cautious = False,
    model: log_options.Model = None,
    columns: log_options.Columns = None,
    bins: log_options.Bins = None,
    by_step: log_options.ByStep = False,
    share: log_options.Share = "pair",
    scale: log_options.Scale = "lift",
    groups: log_options.Groups = None,
    cost: options.Cost = None,
    cluster: log_options.Cluster = None,
    unit: log_options.Unit = "decision",
    memory: log_options.Memory = "none",
    across: log_options.Across = "episode",
    context: log_options.In = None,
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
    pooled = {
        "by-step": by_step or None,
        "share": log_options.unless("pair", share),
        "groups": groups,
    }
    given = {
        "columns": columns,
        "bins": bins,
        "cost": cost,
        "scale": log_options.unless("lift", scale),
    }
    given |= {"cluster": cluster, "unit": log_options.unless("decision", unit)}
    given |= {
        "memory": log_options.unless("none", memory),
        "across": log_options.unless("episode", across),
    }
    log_options.refuse_beside_model(model, **given, **pooled)
    with waiting(f"Fitting {log}"):
        if model is None:
            source = log_options.read(log, columns, bins, cluster)
            sharing: dict[str, Any] = {
                "share": share,
                "scale": scale,
                "groups": log_options.read_groups(groups),
            }
            costs = options.read_costs(cost)
            sharing |= {"memory": memory, "across": across}
            fitted = fit_log(source, by_step=by_step, **sharing, cost=costs, unit=unit)
        else:
            saved = load_fit(model)
            source = read_like(log, saved)
            fitted = fit_like(source, saved, model)
        fitted, source = log_options.in_context(fitted, source, context)
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
    tiring: Annotated[
        bool, typer.Option("--tiring", help="Nurses tire: every further alert moves them less.")
    ] = False,
    seed: options.Seed = 0,
) -> None:
    """Write an example log: shifts on a hospital ward with too many alarms."""
    import numpy as np

    from counsel._tables import write_tables
    from counsel.worlds.ward import ward_table

    options.check_output(output, ".csv", ".parquet")
    table = ward_table(shifts=shifts, rng=np.random.default_rng(seed), tiring=tiring)
    write_tables(output, [table])
    typer.echo(f"Wrote {output}: {table['step'].values.size:,} decisions in {shifts:,} shifts.")
    memory = " --memory auto" if tiring else ""
    typer.echo(f"Next: counsel fit {shlex.quote(str(output))}{memory} -o model.npz")


def _possible_budget(fitted: Any) -> str:  # noqa: ANN401 (a fit)
    """Return the option of a budget that a plan can keep."""
    import math

    from counsel.logs.plan import kept_advice, quiet_policy
    from counsel.planning.evaluate import evaluate as play

    if not kept_advice(fitted):
        return " --budget 2"
    return f" --budget {max(2, math.ceil(play(fitted.problem, quiet_policy(fitted)).advice_cost))}"
