"""Commands for tables of past decisions: check, fit, plan, evaluate, report, demo-log."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from counsel.cli.app import Budget, Hard, Json, Penalty, Reverse, app, planning_options, waiting
from counsel.errors import CounselError

if TYPE_CHECKING:
    from counsel.logs.read import Log

Source = Annotated[
    str,
    typer.Argument(
        metavar="LOG",
        help="A table of decisions: CSV, Parquet, JSON lines, a DuckDB or SQLite file, or "
        "postgresql://…::TABLE.",
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="ROLE=COLUMN,…",
        help="Columns that are called otherwise: state=ward+bed,action=did, say.",
    ),
]
Bins = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=CUTS",
        help="Cut a column of numbers: spo2=88,92, or age=q4 for four bins of equal size. May be "
        "given several times.",
    ),
]
Actions = Annotated[str | None, typer.Option(metavar="A,B,…", help="All actions there are.")]
Rewards = Annotated[str | None, typer.Option(metavar="LOW,HIGH", help="The range of rewards.")]
ByStep = Annotated[bool, typer.Option("--by-step", help="Let everything differ from step to step.")]
Share = Annotated[
    str,
    typer.Option(
        help="Who shares one adherence: pair (each state and advice its own, thin ones lean on the "
        "same advice elsewhere), advice, or all."
    ),
]
Scale = Annotated[
    str, typer.Option(help="What those who are alike have in common: lift or adherence.")
]
Groups = Annotated[
    str | None,
    typer.Option(
        metavar="GROUP=A+B,…", help="Advice that shares one adherence: urgent=page+call, say."
    ),
]
Cautious = Annotated[
    bool,
    typer.Option("--cautious", help="Advise only what helps in 95 % of resampled logs."),
]


@app.command()
def check(  # noqa: PLR0913 (one argument for each option)
    log: Source,
    *,
    columns: Columns = None,
    bins: Bins = None,
    actions: Actions = None,
    rewards: Rewards = None,
    as_json: Json = False,
) -> None:
    """Look through a table of past decisions and say whether it can be learnt from."""
    from counsel.cli import logs_output as printing
    from counsel.cli.console import print_json
    from counsel.logs.check import check_log

    found = check_log(
        _read(log, columns, bins), actions=_names(actions), reward_range=_range(rewards)
    )
    if as_json:
        print_json(printing.checked_record(found))
    else:
        printing.print_checked(log, found)
    if found.fatal:
        raise typer.Exit(2)
    if not as_json:
        again = (
            shlex.quote(log) + _reading(columns, bins) + _typed(actions=actions, rewards=rewards)
        )
        typer.echo(f"Next: counsel fit {again} -o model.npz")


@app.command()
def fit(  # noqa: PLR0913 (one argument for each option)
    log: Source,
    *,
    output: Annotated[
        Path | None, typer.Option("-o", metavar="MODEL", help="Write the model: .npz.")
    ] = None,
    columns: Columns = None,
    bins: Bins = None,
    actions: Actions = None,
    rewards: Rewards = None,
    by_step: ByStep = False,
    share: Share = "pair",
    scale: Scale = "lift",
    groups: Groups = None,
    as_json: Json = False,
) -> None:
    """Estimate from a table of decisions what people do alone, how much they listen, what pays."""
    from counsel.cli import logs_output as printing
    from counsel.cli.console import print_json
    from counsel.logs.fit import fit as fit_log

    _check_output(output, ".npz")
    sharing: dict[str, Any] = {"share": share, "scale": scale, "groups": _groups(groups)}
    with waiting(f"Fitting {log}"):
        found = fit_log(
            _read(log, columns, bins),
            actions=_names(actions),
            reward_range=_range(rewards),
            by_step=by_step,
            **sharing,
        )
    if output is not None:
        found.save(output)
    if as_json:
        print_json(printing.fit_record(found) | {"written": output and str(output)})
        return
    printing.print_fit(found)
    if output is None:
        again = (
            shlex.quote(log) + _reading(columns, bins) + _typed(actions=actions, rewards=rewards)
        )
        again += " --by-step" if by_step else ""
        again += _typed(
            share=None if share == "pair" else share,
            scale=None if scale == "lift" else scale,
            groups=groups,
        )
        typer.echo(f"Next: counsel fit {again} -o model.npz")
        return
    typer.echo(f"Wrote {output}.")
    typer.echo(f"Next: counsel plan {shlex.quote(str(output))} --budget 2 -o policy.csv")


@app.command()
def plan(  # noqa: PLR0913 (one argument for each option)
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="What `counsel fit` wrote.")],
    *,
    penalty: Penalty = None,
    budget: Budget = None,
    hard: Hard = False,
    cautious: Cautious = False,
    allow_reverse: Reverse = False,
    output: Annotated[
        Path | None, typer.Option("-o", metavar="POLICY", help="Write the plan: .csv or .parquet.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Plan what to advise where, within a budget or at a penalty, on a fitted model."""
    from counsel._tables import write_tables
    from counsel.cli import logs_output as printing
    from counsel.cli.console import counting, print_json
    from counsel.logs.fit import load_fit
    from counsel.logs.plan import DRAWS, plan_columns
    from counsel.logs.plan import plan as plan_on

    _check_output(output, ".csv", ".parquet")
    if model.suffix != ".npz":
        made = f"counsel fit {shlex.quote(str(model))} -o model.npz"
        raise CounselError(f"{model} is no model (.npz); make one of a table with: {made}")
    found = load_fit(model)
    with counting("Drawing episodes", DRAWS if cautious else 0) as show:
        planned = plan_on(
            found,
            penalty=penalty,
            budget=budget,
            hard=hard,
            cautious=cautious,
            allow_reverse=allow_reverse,
            show=show,
        )
    if output is not None:
        write_tables(output, plan_columns(planned))
    if as_json:
        print_json(printing.planned_record(planned) | {"written": output and str(output)})
        return
    printing.print_planned(planned)
    if output is None:
        options = planning_options(penalty, budget, hard=hard, allow_reverse=allow_reverse)
        options += " --cautious" if cautious else ""
        typer.echo(f"Next: counsel plan {shlex.quote(str(model))}{options} -o policy.csv")
        return
    typer.echo(f"Wrote {output}.")
    plain = all(own == (role,) for role, own in found.columns.items()) and not found.bins
    like = "" if plain else f" --like {shlex.quote(str(model))}"
    typer.echo(f"Next: counsel evaluate {shlex.quote(found.name)} {shlex.quote(str(output))}{like}")


@app.command()
def evaluate(  # noqa: PLR0913 (one argument for each option)
    log: Source,
    policy: Annotated[
        Path, typer.Argument(metavar="POLICY", help="What `counsel plan` wrote: .csv or .parquet.")
    ],
    *,
    columns: Columns = None,
    bins: Bins = None,
    like: Annotated[
        Path | None,
        typer.Option(metavar="MODEL", help="Read the log as this model's was: columns and bins."),
    ] = None,
    model_only: Annotated[
        bool,
        typer.Option(
            "--model-only", help="Be content with the model's answer where the log cannot answer."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Estimate what a policy would have been worth, from a log of what was done instead."""
    from counsel.cli import logs_output as printing
    from counsel.cli.console import counting, print_json
    from counsel.logs.evaluate_log import MODELS
    from counsel.logs.evaluate_log import evaluate as judge

    opened = _read(log, columns, bins, like)
    with counting("Drawing episodes", MODELS) as show:
        found = judge(opened, policy, show=show)
    if found.refusal is not None and not model_only:
        raise CounselError(
            f"{log} cannot say what {policy} would have been worth: {found.refusal}; "
            "--model-only gives the model's answer"
        )
    if as_json:
        print_json(printing.evaluated_record(found))
        return
    printing.print_evaluated(found)
    if like is None:
        read = _reading(columns, bins)
        typer.echo(f"Next: counsel report {shlex.quote(log)}{read} -o report.html")


@app.command()
def report(  # noqa: PLR0913 (one argument for each option)
    log: Source,
    *,
    output: Annotated[Path, typer.Option("-o", help="Where to: .html.")],
    penalty: Penalty = None,
    budget: Budget = None,
    hard: Hard = False,
    cautious: Cautious = False,
    columns: Columns = None,
    bins: Bins = None,
    by_step: ByStep = False,
    share: Share = "pair",
    scale: Scale = "lift",
    groups: Groups = None,
) -> None:
    """Write a page for whoever decides: who listens, where advice pays, what a budget buys."""
    import numpy as np

    from counsel._files import write_text
    from counsel.cli.console import counting
    from counsel.logs.evaluate_log import weigh
    from counsel.logs.fit import fit as fit_log
    from counsel.logs.report_contents import DRAWS, study
    from counsel.report.log_page import log_page

    _check_output(output, ".html")
    sharing: dict[str, Any] = {"share": share, "scale": scale, "groups": _groups(groups)}
    with waiting(f"Fitting {log}"):
        opened = _read(log, columns, bins)
        found = fit_log(opened, by_step=by_step, **sharing)
    with counting("Drawing episodes", DRAWS) as show:
        told = study(found, penalty=penalty, budget=budget, hard=hard, cautious=cautious, show=show)
    with waiting(f"Weighing the episodes of {log}"):
        weighed = weigh(opened, told.planned.plan.policy, found, np.random.default_rng(0))
    write_text(output, log_page(told, weighed))
    typer.echo(f"Wrote {output}.")
    typer.echo(f"Next: open {shlex.quote(str(output))} in a browser")


@app.command()
def demo_log(
    *,
    output: Annotated[Path, typer.Option("-o", help="Where to: .csv or .parquet.")],
    shifts: Annotated[int, typer.Option(help="How many shifts: each is an episode.")] = 15_000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same log.")] = 0,
) -> None:
    """Write an example log: shifts on a hospital ward whose alarm speaks too often."""
    import numpy as np

    from counsel._tables import write_tables
    from counsel.worlds.ward import ward_table

    _check_output(output, ".csv", ".parquet")
    if seed < 0:
        raise CounselError(f"--seed is {seed}; it must be 0 or more")
    table = ward_table(shifts=shifts, rng=np.random.default_rng(seed))
    write_tables(output, [table])
    typer.echo(f"Wrote {output}: {table['step'].values.size:,} decisions in {shifts:,} shifts.")
    typer.echo(f"Next: counsel fit {shlex.quote(str(output))} -o model.npz")


def _read(log: str, columns: str | None, bins: list[str] | None, like: Path | None = None) -> "Log":
    """Open a log with its columns and bins."""
    from counsel.logs.fit import load_fit
    from counsel.logs.read import read_log
    from counsel.logs.schema import Bins, Columns

    if like is None:
        return read_log(log, Columns.parse(columns), Bins.parse(bins or []))
    if columns is not None or bins:
        raise CounselError("--like says how to read the log; leave out --columns and --bins")
    model = load_fit(like)
    names = {role: own[0] for role, own in model.columns.items() if role != "state"}
    return read_log(log, Columns(names, model.columns["state"]), Bins(dict(model.bins)))


def _reading(columns: str | None, bins: list[str] | None) -> str:
    """Return how a log was read as one would type it."""
    return _typed(columns=columns) + "".join(_typed(bins=told) for told in bins or [])


def _typed(**options: str | None) -> str:
    """Return options as one would type them; None is not typed."""
    return "".join(
        f" --{name} {shlex.quote(value)}" for name, value in options.items() if value is not None
    )


def _check_output(output: Path | None, *endings: str) -> None:
    """Raise where a result could not be written, before any work is done."""
    if output is not None and (output.suffix not in endings or output.is_dir()):
        raise CounselError(f"-o {output} must be a file that ends in {' or '.join(endings)}")
    if output is not None and not output.parent.is_dir():
        raise CounselError(f"cannot write {output}: there is no folder {output.parent}")


def _names(given: str | None) -> tuple[str, ...] | None:
    if given is None:
        return None
    names = tuple(name.strip() for name in given.split(","))
    if not all(names):
        raise CounselError(f"actions is {given!r}; give their names: A,B,…")
    return names


def _groups(given: str | None) -> dict[str, str] | None:
    """Return the group of each advice from GROUP=A+B,…."""
    if given is None:
        return None
    found = dict[str, str]()
    for part in given.split(","):
        group, _, members = (piece.strip() for piece in part.partition("="))
        names = [name.strip() for name in members.split("+") if name.strip()]
        if not group or not names or any(name in found for name in names):
            raise CounselError(
                f"groups has {part.strip()!r}; write GROUP=A+B,…, each advice in one group"
            )
        found |= dict.fromkeys(names, group)
    return found


def _range(given: str | None) -> tuple[float, float] | None:
    """Return two numbers from LOW,HIGH."""
    if given is None:
        return None
    try:
        low, high = (float(part) for part in given.split(","))
    except ValueError:
        raise CounselError(f"rewards is {given!r}; give two numbers: LOW,HIGH") from None
    return low, high
