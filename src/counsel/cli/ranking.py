"""The command for a team: rank, whom to advise today."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from counsel.cli import options
from counsel.cli.app import app, read_problem

if TYPE_CHECKING:
    from counsel._tables import Table
    from counsel.model.problem import AdviceProblem
    from counsel.planning.rank import Ranking


@app.command()
def rank(  # noqa: PLR0913 (one argument for each option)
    source: options.Source,
    people: Annotated[
        Path,
        typer.Argument(
            metavar="PEOPLE",
            help="Table of people (.csv or .parquet): person, state, step, and level for people "
            "with a memory.",
        ),
    ],
    *,
    pieces: Annotated[int, typer.Option(help="Pieces of advice at hand, e.g. calls today.")],
    step: Annotated[
        int | None, typer.Option(help="Step of everybody, if the table has no column step.")
    ] = None,
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
    whole("--pieces", pieces, least=1)
    problem = read_problem(source)
    names, cells = read_people(people, problem, step)
    ranking = rank_cells(
        problem,
        cells,
        pieces=pieces,
        rng=np.random.default_rng(seed),
        allow_reverse=allow_reverse,
    )
    records = _records(problem, names, ranking)
    if output is not None:
        write_tables(output, [_table(problem, records)])
    if as_json:
        print_json({"price": ranking.price, "people": records})
        return
    _print(records, ranking.price)
    if output is not None:
        typer.echo(f"Wrote {output}.")


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
            "step": why.step,
            "state": why.state_name,
        }
        if problem.memory is not None:
            record["level"] = why.level_name
        misses_out = person.advice is None and why.advice is not None
        record |= {
            "gain": why.gain,
            "criticality": person.criticality,
            "reason": f"Others come first. {why.sentence}" if misses_out else why.sentence,
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
    from counsel.report.number_format import short

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
        numbers = (short(record["gain"]), short(record["criticality"]))
        table.add_row(*(str(record[name]) for name in columns), *numbers)
    if advised:
        print_table(table)
    else:
        typer.echo(f"Nobody of {len(records)} people is worth a piece now.")
    if len(advised) > ROWS:
        typer.echo(f"… and {len(advised) - ROWS} more (-o writes all).")
    if price > 0.0:
        typer.echo(f"One more piece would bring {short(price)}.")
    if advised:
        typer.echo(f"First: {advised[0]['person']}. {advised[0]['reason']}")
