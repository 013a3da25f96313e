"""The command for unknown problems: learn."""

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from counsel.cli import options
from counsel.cli.app import STOPPED, app, read_problem, say
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
            help="Problem file (.npz), or a world listed by `counsel worlds`. Omit with --resume.",
        ),
    ] = None,
    *,
    algorithm: Annotated[
        str | None,
        typer.Option(
            help="Unknown person: ucb-ad, thompson. Unknown person and world: rfe-ad (no limit), "
            "rfe-beta (penalty), rfe-cmdp (budget), structured (any). Black-box baselines: euler, "
            "ucbvi, ucbvi-hoeffding, q-learning, q-learning-hoeffding, rf-express, ucfh, uc-cfh "
            "(budget). Without learning: never, best-action, all-listen, optimum. Default: ucb-ad."
        ),
    ] = None,
    bound: Annotated[
        str | None,
        typer.Option(help="Confidence bound of ucb-ad: kl, theory or paper. Default: kl."),
    ] = None,
    share: Annotated[
        str | None,
        typer.Option(
            help="Which pairs of state and advice share an adherence: pair (none), advice (one "
            "advice in all states), or all. Default: set by the world, else pair; structured: pair."
        ),
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="Largest probability that the guarantee fails.")
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Stop exploring when every plan is this close to the best.")
    ] = None,
    scale: Annotated[
        float | None,
        typer.Option(help="Factor of the exploration bonus (bound paper, rfe, structured)."),
    ] = None,
    episodes: Annotated[
        int | None, typer.Option(help="Number of episodes. Default: 20,000.")
    ] = None,
    every: Annotated[
        str | None,
        typer.Option(
            help="Number of episodes between plans, or doubling, or phase (ucfh, uc-cfh). Default: "
            "1 or 50, see docs/reference/learning.md."
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Random seed; the same seed gives the same run. Default: 0.")
    ] = None,
    penalty: options.Penalty = None,
    budget: options.Budget = None,
    unknown_rewards: Annotated[
        bool, typer.Option("--unknown-rewards", help="Learn the rewards too.")
    ] = False,
    random_rewards: options.RandomRewards = False,
    may_repel: Annotated[
        bool, typer.Option("--may-repel", help="Allow for advice that repels (ucb-ad).")
    ] = False,
    burn_in: Annotated[
        int | None,
        typer.Option(help="Episodes of random advice before the run (black-box baselines)."),
    ] = None,
    known_support: Annotated[
        bool,
        typer.Option(
            "--known-support", help="Reveal which states can follow which (ucfh, uc-cfh)."
        ),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            metavar="DIR",
            help="Write the figure, policy, record and manifest to this folder.",
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume the run in -o DIR with its settings.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Learn what to advise from simulated episodes, and measure the cost of learning."""
    from counsel.cli import learning_output as printing
    from counsel.cli.console import print_json, progress
    from counsel.runs.manifest import read_spec
    from counsel.runs.run import run
    from counsel.runs.spec import Spec

    changes: dict[str, Any] = {
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
        "random_rewards": random_rewards or None,
        "may_repel": may_repel or None,
        "burn_in": burn_in,
        "known_support": known_support or None,
    }
    settings: dict[str, Any] = {"algorithm": "ucb-ad", "episodes": 20_000, "seed": 0}
    if resume:
        if output is None:
            raise CounselError("--resume needs the folder of the run; give it with -o DIR")
        settings = read_spec(output).settings()
    elif source is None:
        raise CounselError(
            "no problem is given; name a file (.npz) or a world listed by `counsel worlds`"
        )
    spec = Spec(
        **(settings | {name: value for name, value in changes.items() if value is not None})
    )
    problem, played = read_problem(spec.world), 0
    with progress("Learning", spec.episodes) as advance:

        def show(record: "counsel.learning.Record") -> None:
            nonlocal played
            advance(record.episode - played, printing.standing(record))
            played = record.episode

        result = run(spec, problem, folder=output, resume=resume, show=show, say=say)
    if as_json:
        print_json(printing.run_record(spec, result))
    else:
        printing.print_run(spec, problem, result)
    if not result.finished:
        if output is not None and not as_json:
            typer.echo(f"Next: counsel learn -o {shlex.quote(str(output))} --resume")
        raise typer.Exit(STOPPED)
    if as_json:
        return
    if output is None:
        name = re.sub(r"[^a-z0-9]+", "-", f"{Path(spec.world).stem}-{spec.algorithm}".lower())
        typer.echo(f"Next: {_command(spec)} -o {name.strip('-')}")
        return
    typer.echo("Wrote " + ", ".join(str(path) for path in result.files) + ".")
    policy = shlex.quote(str(output / "policy.npz"))
    paid = " --random-rewards" if spec.random_rewards else ""
    typer.echo(f"Next: counsel play-out {shlex.quote(spec.world)} --policy {policy}{paid}")


def _number_or_word(text: str | None) -> int | str | None:
    """Parse a number; return any other text unchanged."""
    try:
        return None if text is None else int(text)
    except ValueError:
        return text


def _command(spec: "Spec") -> str:
    """Return the command of a run as a user would type it."""
    words = ["counsel learn", shlex.quote(spec.world)]
    for name, value in spec.settings().items():
        if name == "world" or value is None or value is False:
            continue
        flag = "--" + name.replace("_", "-")
        words.append(flag if value is True else f"{flag} {value}")
    return " ".join(words)
