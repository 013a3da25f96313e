"""The command line application and its error handling.

No large module is imported until a command runs. Errors are one line on stderr and exit code 2.
"""

import io
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from counsel.errors import CounselError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from counsel.model.problem import AdviceProblem


app = typer.Typer(
    help="Work out what to advise a person, when to stay silent, and what advice is worth.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

STOPPED = 130
"""The exit code after Ctrl-C, as in shells."""


def main() -> None:
    """Run the command line; print an error as one line."""
    debug = os.environ.get("COUNSEL_DEBUG") or "--debug" in sys.argv
    arguments = [a for a in sys.argv[1:] if a != "--debug"] or ["--help"]
    _prepare_streams()
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
        # Typer ends in this way after a broken pipe, and wraps the stream.
        code = 0 if type(sys.stdout).__name__ == "PacifyFlushWrapper" else end.code
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (the reader is gone)
        code = 0
    except (OSError, MemoryError) as fault:
        if debug:
            raise
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (the output cannot be written)
        _fail(f"{_reason(fault)}; nothing more was done")
    except Exception as fault:
        usage = getattr(fault, "format_message", None)
        if debug or usage is None:
            raise
        _fail(usage().replace("\n", " "))
    if code == STOPPED:
        say("stopped; nothing was left half-written")
    sys.exit(code if isinstance(code, int) else 0)


def _prepare_streams() -> None:
    """Replace characters that the terminal cannot show, and handle signals to stop."""
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
    say(message)
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


def read_problem(
    source: str,
    costs: "Mapping[str, float] | None" = None,
    discount: float | None = None,
    *,
    average: bool = False,
) -> "AdviceProblem":
    """Load a problem file, or build the world of this name.

    ``costs`` replace its costs; a ``discount`` or ``average`` makes it work without end.
    """
    from counsel.model.advice_costs import with_costs

    problem = _read_problem(source)
    if discount is not None or average:
        problem = problem.without_end(discount, average=average)
    return problem if costs is None else with_costs(problem, costs)


def _read_problem(source: str) -> "AdviceProblem":
    import counsel
    import counsel.worlds

    worlds = counsel.worlds.list_worlds()
    if source in worlds and not source.endswith(".npz"):
        return worlds[source].build()
    if not source.endswith(".npz"):
        names = ", ".join(worlds)
        raise CounselError(f"{source} is neither a problem (.npz) nor a world ({names})")
    return counsel.load(source)


def say(text: str) -> None:
    """Print a message beside the progress bar."""
    sys.stderr.write(f"counsel: {text}\n")


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show on a terminal that a task is running."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(what):
        yield
