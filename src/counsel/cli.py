"""The command line: parse and call; ``printing.py`` prints.

Nothing of weight is imported until a command runs. Errors are one line on stderr and exit code 2.
"""

import io
import os
import re
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from counsel.errors import CounselError

if TYPE_CHECKING:
    import counsel
    from counsel.experiments.spec import Spec
    from counsel.model.policy import HardPolicy, Policy
    from counsel.model.problem import AdviceProblem

app = typer.Typer(
    help="Work out what to advise a person, when to stay silent, and what advice is worth.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Source = Annotated[
    str,
    typer.Argument(
        metavar="PROBLEM", help="A problem (.npz) or a world that `counsel worlds` lists."
    ),
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


STOPPED = 130
"""The exit code after Ctrl-C, as shells have it."""


def main() -> None:
    """Run the command line; say what is wrong in one line."""
    debug = os.environ.get("COUNSEL_DEBUG") or "--debug" in sys.argv
    arguments = [a for a in sys.argv[1:] if a != "--debug"] or ["--help"]
    _be_plain()
    try:
        code = app(args=arguments, standalone_mode=False)
        sys.stdout.flush()
    except CounselError as fault:
        if debug:
            raise
        _fail(str(fault))
    except (typer.Abort, KeyboardInterrupt):
        code = STOPPED
    except SystemExit as end:
        # Typer ends so when nobody reads on, and leaves its mark on the stream.
        code = 0 if type(sys.stdout).__name__ == "PacifyFlushWrapper" else end.code
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (nobody reads on: nothing to close)
        code = 0
    except (OSError, MemoryError) as fault:
        if debug:
            raise
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (what could not be written stays so)
        _fail(f"{_reason(fault)}; nothing more was done")
    except Exception as fault:
        usage = getattr(fault, "format_message", None)
        if debug or usage is None:
            raise
        _fail(usage().replace("\n", " "))
    if code == STOPPED:
        sys.stderr.write("counsel: stopped; nothing was left half-written\n")
    sys.exit(code if isinstance(code, int) else 0)


def _be_plain() -> None:
    """Print what the terminal can show, and end in order when told to stop."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), _stop)


def _stop(*_: object) -> None:
    raise KeyboardInterrupt


def _reason(fault: Exception) -> str:
    if isinstance(fault, MemoryError):
        return f"not enough memory: {fault}" if str(fault) else "not enough memory"
    return f"cannot write: {getattr(fault, 'strerror', None) or fault}"


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
    from counsel import printing

    if output is not None and output.suffix not in (".csv", ".parquet", ".npz"):
        raise CounselError(f"-o {output} must end in .csv, .parquet or .npz")
    problem = _read(source)
    plan = counsel.solve(
        problem, penalty=penalty, budget=budget, hard=hard, allow_reverse=allow_reverse
    )
    if output is not None:
        counsel.save_policy(plan.policy, output, problem=problem)
    if as_json:
        printing.print_json(printing.plan_record(problem, plan, output))
        return
    printing.print_plan(problem, plan, reverse_left_out=not allow_reverse)
    limit = _limit(penalty, budget, hard=hard)
    if output is None:
        typer.echo(f"Next: counsel solve {shlex.quote(source)}{limit} -o policy.csv")
        return
    typer.echo(f"Wrote {output}.")
    state = _first_state(problem)
    typer.echo(f"Next: counsel explain {shlex.quote(source)}{limit} --step 0 --state {state}")


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
    from counsel import printing

    if output is not None and output.suffix != ".csv":
        raise CounselError(f"-o {output} must end in .csv")
    problem = _read(source)
    with _waiting(f"Tracing up to {max_vertices} vertices (fewer with --max-vertices)"):
        front = counsel.frontier(problem, max_vertices=max_vertices, allow_reverse=allow_reverse)
    if output is not None:
        from counsel.model.files import write_text

        write_text(output, printing.frontier_csv(front))
    if as_json:
        printing.print_json(printing.frontier_record(front))
        return
    printing.print_frontier(front)
    if output is not None:
        typer.echo(f"Wrote {output}.")
    typer.echo(f"Next: counsel solve {shlex.quote(source)} --budget 2")


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
    from counsel import printing

    problem = _read(source)
    where = _state_index(problem, state)
    plan = counsel.solve(
        problem, penalty=penalty, budget=budget, hard=hard, allow_reverse=allow_reverse
    )
    told = counsel.explain(problem, plan, step=step, state=where, pieces_left=pieces_left)
    if as_json:
        printing.print_json(printing.explanation_record(told))
        return
    typer.echo(told.sentence)
    printing.print_explanation(told)


@app.command()
def worlds(*, as_json: Json = False) -> None:
    """List the worlds that have a name."""
    import counsel.worlds
    from counsel import printing

    found = counsel.worlds.catalogue()
    if as_json:
        printing.print_json(printing.worlds_record(found))
        return
    printing.print_worlds(found)
    typer.echo("Next: counsel play-out flappy-bird/safe --policy best")


@app.command()
def play_out(  # noqa: PLR0913 (one argument for each option)
    source: Source,
    *,
    policy: Annotated[
        str, typer.Option(help="A policy (.npz), or: best (the best advice), never (silence).")
    ] = "best",
    episodes: Annotated[int, typer.Option(help="How many episodes.")] = 1000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same episodes.")] = 0,
    penalty: Penalty = None,
    budget: Budget = None,
    hard: Hard = False,
    allow_reverse: Reverse = False,
    output: Annotated[
        Path | None, typer.Option("-o", help="Write every decision: .csv or .parquet.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Play episodes with a simulated person and see what the advice brings."""
    import numpy as np

    import counsel
    from counsel import printing
    from counsel._arrays import whole
    from counsel.model.files import TABLES
    from counsel.simulate.summary import Summary

    if output is not None and (output.suffix not in TABLES or output.is_dir()):
        raise CounselError(f"-o {output} must be a file that ends in .csv or .parquet")
    whole("--episodes", episodes, least=1)
    if seed < 0:
        raise CounselError(f"--seed is {seed}; it must be 0 or more")
    problem = _read(source)
    chosen = _policy(problem, policy, penalty, budget, hard=hard, allow_reverse=allow_reverse)
    simulator = counsel.Simulator(problem)
    summary = Summary(problem)
    rng = np.random.default_rng(seed)
    with printing.progress("Playing", episodes) as advance:

        def batches() -> "Iterator[counsel.Episodes]":
            most = max(1, 200_000 // problem.horizon)
            for first in range(0, episodes, most):
                batch = simulator.play(chosen, episodes=min(most, episodes - first), rng=rng)
                summary.add(batch)
                advance(len(batch), f"mean reward {summary.reward.mean:.5g}")
                yield batch

        if output is None:
            for _ in batches():
                pass
        else:
            counsel.save_log(batches(), output, problem=problem, person=source)
    if as_json:
        told = {"problem": source, "policy": policy, "seed": seed, "penalty": penalty}
        told |= {"budget": budget, "hard": hard, "written": output and str(output)}
        printing.print_json(told | printing.play_out_record(summary, chosen))
        return
    printing.print_play_out(summary, chosen)
    if output is not None:
        typer.echo(f"Wrote {output}.")
        typer.echo(f"Next: counsel frontier {shlex.quote(source)}")
        return
    again = f"counsel play-out {shlex.quote(source)} --policy {shlex.quote(policy)}"
    again += _limit(penalty, budget, hard=hard) + (" --allow-reverse" if allow_reverse else "")
    typer.echo(f"Next: {again} --episodes {episodes} --seed {seed} -o log.csv")


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
            "1 or 50, see docs/learning.md."
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
    from counsel import printing
    from counsel.experiments.run import kept, run
    from counsel.experiments.spec import Spec

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
        settings = kept(output).settings()
    elif source is None:
        raise CounselError("give a problem (.npz) or a world that `counsel worlds` lists")
    spec = Spec(**(settings | {name: value for name, value in given.items() if value is not None}))
    problem, played = _read(spec.world), 0
    with printing.progress("Learning", spec.episodes) as advance:

        def show(record: "counsel.Record") -> None:
            nonlocal played
            advance(record.episode - played, printing.standing(record))
            played = record.episode

        def say(text: str) -> None:
            sys.stderr.write(f"counsel: {text}\n")

        result = run(spec, problem, folder=output, go_on=resume, show=show, say=say)
    if as_json:
        printing.print_json(printing.learnt_record(spec, result))
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


@app.command()
def check(
    log: Annotated[
        str,
        typer.Argument(
            metavar="LOG",
            help="A table of decisions: CSV, Parquet, JSON lines, a DuckDB or SQLite file, or "
            "postgresql://…::TABLE.",
        ),
    ],
    *,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="ROLE=COLUMN,…",
            help="Columns that are called otherwise: state=ward+bed,action=did, say.",
        ),
    ] = None,
    actions: Annotated[
        str | None, typer.Option(metavar="A,B,…", help="All actions there are.")
    ] = None,
    rewards: Annotated[
        str | None, typer.Option(metavar="LOW,HIGH", help="The range of rewards.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Look through a table of past decisions and say whether it can be learnt from."""
    from counsel import printing
    from counsel.logs.check import check_log
    from counsel.logs.read import read_log
    from counsel.logs.schema import Columns

    known = None if actions is None else tuple(name.strip() for name in actions.split(","))
    found = check_log(
        read_log(log, Columns.parse(columns)), actions=known, reward_range=_range(rewards)
    )
    if as_json:
        printing.print_json(printing.checked_record(found))
    else:
        printing.print_checked(log, found)
    if found.fatal:
        raise typer.Exit(2)


def _range(given: str | None) -> tuple[float, float] | None:
    """Return two numbers from LOW,HIGH."""
    if given is None:
        return None
    try:
        low, high = (float(part) for part in given.split(","))
    except ValueError:
        raise CounselError(f"rewards is {given!r}; give two numbers: LOW,HIGH") from None
    return low, high


@app.command()
def reproduce(  # noqa: PLR0913 (one argument for each option)
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Which experiments; all when none is given."),
    ] = None,
    *,
    scale: Annotated[
        float, typer.Option(help="What the paper's numbers of episodes are multiplied by.")
    ] = 1.0,
    seeds: Annotated[int, typer.Option(help="How often each run is repeated.")] = 5,
    workers: Annotated[
        int | None, typer.Option(help="How many processes. Default: one a core.")
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="A Dask scheduler: tcp://host:8786, say."),
    ] = None,
    output: Annotated[
        Path, typer.Option("-o", "--out", metavar="DIR", help="Where results are kept.")
    ] = Path("reproduction"),
    as_json: Json = False,
) -> None:
    """Run the paper's experiments, draw its figures and test its claims."""
    from counsel import printing
    from counsel._arrays import whole
    from counsel.experiments.experiment import Size
    from counsel.experiments.reproduce import reproduce as run_all

    if workers is not None:
        whole("workers", workers, least=1)
    try:
        with printing.board() as board:
            outcome = run_all(
                names or [],
                Size(scale, seeds),
                output,
                workers=workers,
                cluster=cluster,
                planned=board.planned,
                begun=board.begun,
                ended=board.ended,
            )
    except KeyboardInterrupt:
        sys.stderr.write("counsel: runs that are done are kept; the same command will go on\n")
        raise typer.Exit(STOPPED) from None
    if as_json:
        printing.print_json(printing.outcome_record(outcome))
        return
    printing.print_outcome(outcome)
    typer.echo(f"Next: open {shlex.quote(str(outcome.files[0]))} in a browser")


@app.command()
def figures(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What reproduce has written.")],
    *,
    as_json: Json = False,
) -> None:
    """Draw the figures, test the claims and write the report again, from saved runs."""
    from counsel import printing
    from counsel.experiments.reproduce import redraw

    outcome = redraw(folder)
    if as_json:
        printing.print_json(printing.outcome_record(outcome))
        return
    printing.print_outcome(outcome)
    typer.echo(f"Next: open {shlex.quote(str(outcome.files[0]))} in a browser")


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


def _policy(  # noqa: PLR0913 (what solve takes)
    problem: "AdviceProblem",
    given: str,
    penalty: float | None,
    budget: float | None,
    *,
    hard: bool,
    allow_reverse: bool,
) -> "Policy | HardPolicy":
    """Return the policy of that name or from that file."""
    import counsel
    from counsel.model.files import TABLES

    if given == "best":
        return counsel.solve(
            problem, penalty=penalty, budget=budget, hard=hard, allow_reverse=allow_reverse
        ).policy
    if penalty is not None or budget is not None or hard or allow_reverse:
        raise CounselError(
            "--penalty, --budget, --hard and --allow-reverse go with --policy best, "
            f"not with {given}"
        )
    if given == "never":
        return counsel.Policy.never(
            horizon=problem.horizon, n_states=problem.n_states, n_actions=problem.n_actions
        )
    if not given.endswith((".npz", *TABLES)):
        raise CounselError(f"--policy is {given!r}; give best, never, or a policy file (.npz)")
    return counsel.load_policy(given)


def _read(source: str) -> "AdviceProblem":
    """Read a file, or build the world of that name."""
    import counsel
    import counsel.worlds

    found = counsel.worlds.catalogue()
    if source in found and not source.endswith(".npz"):
        return found[source].build()
    if not source.endswith(".npz"):
        raise CounselError(f"{source} is neither a problem (.npz) nor a world ({', '.join(found)})")
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
