"""The command for a team: rank, whom to advise today."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from counsel.cli import log_options, options
from counsel.cli.app import app, read_problem
from counsel.errors import CounselError

if TYPE_CHECKING:
    from counsel._tables import Table
    from counsel.logs.fitted_model import Fit
    from counsel.model.problem import AdviceProblem
    from counsel.planning.rank import Ranking


@app.command()
def rank(  # noqa: PLR0913 (one argument for each option)
    source: options.Source,
    people: Annotated[
        Path,
        typer.Argument(
            metavar="PEOPLE",
            help="Table of people (.csv or .parquet): person, state, step (not in work without "
            "end), and level for people with a memory.",
        ),
    ],
    *,
    pieces: Annotated[int, typer.Option(help="Pieces of advice at hand, e.g. calls today.")],
    step: Annotated[
        int | None, typer.Option(help="Step of everybody, if the table has no column step.")
    ] = None,
    discount: options.Discount = None,
    average: options.Average = False,
    context: log_options.In = None,
    allow_reverse: options.Reverse = False,
    seed: options.Seed = 0,
    output: Annotated[
        Path | None,
        typer.Option("-o", metavar="FILE", help="Write the ranked list (.csv or .parquet)."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Rank people by what advice to them is worth now, and say what to tell them and why."""
    import numpy as np

    from counsel._arrays import whole
    from counsel._tables import write_tables
    from counsel.cli.console import print_json
    from counsel.cli.people_table import read_people
    from counsel.planning.rank import rank_cells

    options.check_output(output, ".csv", ".parquet")
    if output is not None and output.exists() and people.exists() and output.samefile(people):
        raise CounselError(f"-o {output} is the table of people, which would be lost; name another")
    whole("--pieces", pieces, least=1)
    fitted, masks = _read_fit(source, context), dict[str, Any]()
    if fitted is None:
        problem = read_problem(source, discount=discount, average=average)
    else:
        problem, masks = _fitted_problem(fitted, discount, average=average)
    names, cells = read_people(people, problem, step)
    ranking = rank_cells(
        problem,
        cells,
        pieces=pieces,
        rng=np.random.default_rng(seed),
        allow_reverse=allow_reverse,
        **masks,
    )
    records = _records(problem, names, ranking)
    if output is not None:
        write_tables(output, [_table(problem, records)])
    if as_json:
        print_json({"price": ranking.price, "people": records})
        return
    if fitted is not None and not fitted.is_trusted:
        from counsel.report import findings

        typer.echo(findings.contradiction(fitted))
    _print(records, ranking.price)
    if output is not None:
        typer.echo(f"Wrote {output}.")


def _read_fit(source: str, context: str | None) -> "Fit | None":
    """Load a fitted model in one context; None for a world and for a problem without counts."""
    from counsel.logs.saved_model import holds_fit, load_fit

    if not source.endswith(".npz") or not holds_fit(source):
        if context is not None:
            raise CounselError(
                f"--in is {context!r}, but {source} is no model with contexts; leave it out"
            )
        return None
    fitted = load_fit(source)
    contexts = fitted.tally.contexts
    if context is None and contexts:
        raise CounselError(f"the model has the contexts {', '.join(contexts)}; say which with --in")
    return fitted if context is None else fitted.in_context(context)


def _fitted_problem(
    fitted: "Fit", discount: float | None, *, average: bool
) -> tuple["AdviceProblem", dict[str, Any]]:
    """Return the problem of a fitted model, and the masks that keep what the log cannot tell."""
    from counsel.logs.plan import endless_problem, plan_masks

    if discount is None and not average:
        return fitted.problem, plan_masks(fitted, endless=False)
    problem = endless_problem(fitted, discount, average=average)
    return problem, plan_masks(fitted, endless=True)


def _records(
    problem: "AdviceProblem", names: list[str], ranking: "Ranking"
) -> list[dict[str, Any]]:
    """Return a record for each person, in the order of the ranking."""
    records = []
    for place, person in enumerate(ranking.people, start=1):
        why = person.explanation
        record: dict[str, Any] = {
            "rank": place,
            "person": names[person.row],
            "advice": None if person.advice is None else problem.mdp.action_name(person.advice),
        }
        if why.step is not None:
            record["step"] = why.step
        record["state"] = why.state_name
        if problem.memory is not None:
            record["level"] = why.level_name
        misses_out = person.advice is None and why.advice is not None
        is_known, sentence = not person.is_required, why.sentence
        if not is_known and why.advice is not None:
            sentence = (
                f"{why.place}, advise {problem.mdp.action_name(why.advice)}: its gain is unknown, "
                "because nobody was left without advice there, and plans keep what was done."
            )
        record |= {
            "gain": why.gain if is_known else None,
            "criticality": person.criticality if is_known else None,
            "reason": f"Others come first. {sentence}" if misses_out else sentence,
        }
        records.append(record)
    return records


def _table(problem: "AdviceProblem", records: list[dict[str, Any]]) -> "Table":
    from counsel._tables import column

    kinds: dict[str, Any] = {"rank": "int64", "step": "int64", "gain": "f8", "criticality": "f8"}
    return {
        name: column([record[name] for record in records], kinds.get(name, str))
        for name in records[0]
    }


def _print(records: list[dict[str, Any]], price: float) -> None:
    """Print the people to advise and what to say, as many as fit on a terminal."""
    from counsel.cli.console import ROWS, new_table, print_table
    from counsel.report.number_format import count_of, short

    advised = [record for record in records if record["advice"] is not None]
    columns = ["rank", "person", "advice", "state", *(["level"] if "level" in records[0] else [])]
    table = new_table(
        f"{len(advised)} of {len(records)} people are worth a piece now.",
        *columns,
        "gain",
        "criticality",
        left=len(columns),
    )
    for record in advised[:ROWS]:
        numbers = (_short(record["gain"]), _short(record["criticality"]))
        table.add_row(*(str(record[name]) for name in columns), *numbers)
    if advised:
        print_table(table)
    else:
        typer.echo(f"Nobody of {len(records)} people is worth a piece now.")
    if len(advised) > ROWS:
        typer.echo(f"… and {len(advised) - ROWS} more (-o writes all).")
    is_kept = [record for record in records if record["gain"] is None]
    if is_kept:
        typer.echo(
            f"{count_of(len(is_kept), 'person is', 'people are')} in a state where nobody was left "
            "without advice: plans keep what was done there, and its gain is unknown."
        )
    misses_out = any(record["advice"] is None for record in is_kept)
    if price > 0.0 and not misses_out:
        typer.echo(f"One more piece would bring {short(price)}.")
    if advised:
        typer.echo(f"First: {advised[0]['person']}. {advised[0]['reason']}")


def _short(number: float | None) -> str:
    """Return a number for the table; None is unknown."""
    from counsel.report.number_format import short

    return "unknown" if number is None else short(number)
