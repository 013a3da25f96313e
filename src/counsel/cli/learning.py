"""The command for problems that are unknown: learn."""

import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from counsel.cli.app import STOPPED, Budget, Json, Penalty, app, read_problem
from counsel.errors import CounselError

if TYPE_CHECKING:
    import counsel
    from counsel.runs.spec import Spec


@app.command()
def learn(  # noqa: PLR0913 (one argument for each option)
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[PROBLEM]",
            help="A problem (.npz) or a world that `counsel worlds` lists. Not needed to --resume.",
        ),
    ] = None,
    *,
    algorithm: Annotated[
        str | None,
        typer.Option(
            help="Person unknown: ucb-ad, thompson. All unknown: rfe-ad (no limit), rfe-beta (a "
            "penalty), rfe-cmdp (a budget), structured (any). Black boxes: euler, ucbvi, "
            "ucbvi-hoeffding, q-learning, q-learning-hoeffding, rf-express, ucfh, uc-cfh (a "
            "budget). Without learning: never, best-action, all-listen, optimum. Default: ucb-ad."
        ),
    ] = None,
    bound: Annotated[
        str | None,
        typer.Option(help="How optimistic ucb-ad is: kl (the default), theory, paper."),
    ] = None,
    share: Annotated[
        str | None,
        typer.Option(
            help="Who shares one adherence: pair (each state and advice its own), advice (all "
            "states), or all. Default: what the world says, else pair; structured: pair."
        ),
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="Probability that the guarantee may fail.")
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Explore until every plan is this close to the best.")
    ] = None,
    scale: Annotated[
        float | None,
        typer.Option(help="What the bonus is multiplied by (bound paper, rfe, structured)."),
    ] = None,
    episodes: Annotated[
        int | None, typer.Option(help="How many episodes. Default: 20,000.")
    ] = None,
    every: Annotated[
        str | None,
        typer.Option(
            help="Plan anew after so many episodes, or: doubling; phase (ucfh, uc-cfh). Default: "
            "1 or 50, see docs/reference/learning.md."
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="The same seed gives the same run. Default: 0.")
    ] = None,
    penalty: Penalty = None,
    budget: Budget = None,
    unknown_rewards: Annotated[
        bool, typer.Option("--unknown-rewards", help="Learn the rewards too.")
    ] = False,
    may_repel: Annotated[
        bool,
        typer.Option("--may-repel", help="Do not assume that advice never repels (ucb-ad)."),
    ] = False,
    burn_in: Annotated[
        int | None,
        typer.Option(help="Episodes of random advice before the run (black boxes)."),
    ] = None,
    known_support: Annotated[
        bool,
        typer.Option("--known-support", help="Tell which states can follow which (ucfh, uc-cfh)."),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", metavar="DIR", help="Write picture, policy, record and manifest there."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run in -o DIR, with its settings.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Learn what to advise from simulated episodes, and see what learning costs."""
    from counsel.cli import learning_output as printing
    from counsel.cli.console import print_json, progress
    from counsel.runs.manifest import read_spec
    from counsel.runs.run import run
    from counsel.runs.spec import Spec

    given: dict[str, Any] = {
        "world": source,
        "algorithm": algorithm,
        "episodes": episodes,
        "every": _number_or_word(every),
        "seed": seed,
        "penalty": penalty,
        "budget": budget,
        "bound": bound,
        "share": share,
        "delta": delta,
        "epsilon": epsilon,
        "scale": scale,
        "unknown_rewards": unknown_rewards or None,
        "may_repel": may_repel or None,
        "burn_in": burn_in,
        "known_support": known_support or None,
    }
    settings: dict[str, Any] = {"algorithm": "ucb-ad", "episodes": 20_000, "seed": 0}
    if resume:
        if output is None:
            raise CounselError("--resume goes on with the run in a folder; give it with -o DIR")
        settings = read_spec(output).settings()
    elif source is None:
        raise CounselError("give a problem (.npz) or a world that `counsel worlds` lists")
    spec = Spec(**(settings | {name: value for name, value in given.items() if value is not None}))
    problem, played = read_problem(spec.world), 0
    with progress("Learning", spec.episodes) as advance:

        def show(record: "counsel.Record") -> None:
            nonlocal played
            advance(record.episode - played, printing.standing(record))
            played = record.episode

        def say(text: str) -> None:
            sys.stderr.write(f"counsel: {text}\n")

        result = run(spec, problem, folder=output, resume=resume, show=show, say=say)
    if as_json:
        print_json(printing.learnt_record(spec, result))
    else:
        printing.print_learnt(spec, problem, result)
    if not result.finished:
        if output is not None and not as_json:
            typer.echo(f"Next: counsel learn -o {shlex.quote(str(output))} --resume")
        raise typer.Exit(STOPPED)
    if as_json:
        return
    if output is None:
        name = re.sub(r"[^a-z0-9]+", "-", f"{Path(spec.world).stem}-{spec.algorithm}".lower())
        typer.echo(f"Next: {_again(spec)} -o {name.strip('-')}")
        return
    typer.echo("Wrote " + ", ".join(str(path) for path in result.files) + ".")
    policy = shlex.quote(str(output / "policy.npz"))
    typer.echo(f"Next: counsel play-out {shlex.quote(spec.world)} --policy {policy}")


def _number_or_word(given: str | None) -> int | str | None:
    """Return a number where one was typed."""
    try:
        return None if given is None else int(given)
    except ValueError:
        return given


def _again(spec: "Spec") -> str:
    """Return the command of a run as one would type it."""
    words = ["counsel learn", shlex.quote(spec.world)]
    for name, value in spec.settings().items():
        if name == "world" or value is None or value is False:
            continue
        flag = "--" + name.replace("_", "-")
        words.append(flag if value is True else f"{flag} {value}")
    return " ".join(words)
