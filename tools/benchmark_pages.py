"""Write ``docs/benchmarks.md`` and the table of README from the results of ``make bench``.

``python tools/benchmark_pages.py [FOLDER]``: FOLDER holds one folder per machine with one JSON file
per area; its default is ``benchmarks/results``. Page and table show all machines side by side. The
table is written between two marks in README.md.
"""

import json
import math
import re
import sys
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
BEGIN, END = "<!-- benchmarks -->", "<!-- end of benchmarks -->"

Row = dict[str, Any]
Area = dict[str, Any]


class Machine(NamedTuple):
    """A machine and its results: name, areas in the order of the page, and a remark.

    The remark is the file ``remark.md`` in the machine's folder, if there is one: what a reader
    must know about the runs, e.g. that other programs ran on the machine.
    """

    name: str
    areas: dict[str, Area]
    remark: str = ""


class Chapter(NamedTuple):
    """The chapter of an area: title, headline and text.

    ``headline`` is filled from the row whose names begin with ``lead``, or of several, the row of
    the strongest peer: ``ours`` is Counsel's figure, ``speed`` compares it with the peer's,
    ``share`` is Counsel's figure in percent of the peer's. ``remark`` is a second paragraph.
    """

    title: str
    lead: tuple[str, str]
    headline: str
    text: str
    remark: str = ""


CHAPTERS = {
    "planning": Chapter(
        "Planning",
        ("Car Driving: one plan in every cell, one thread", "QuantEcon"),
        "one plan of Car Driving in every cell takes {ours}, {speed}",
        "A plan by Counsel is the best policy and its value, with ties broken by the fewest "
        "pieces of advice; the peers solve the machine's plain MDP. `counsel.solve` plans the "
        "cells that can be reached from the start, and the remaining cells when `plan.policy` or "
        "`plan.values` is first used. Both are shown: *one plan from the start* is "
        "`counsel.solve(problem)`, *one plan in every cell* is `counsel.solve(problem).policy`. "
        "The peers always plan every cell. (`solve` of the results of 2026-11-16 planned every "
        "cell.) Flappy Bird has 141 states and 20 steps, Car Driving 59,050 states and 10 steps, "
        "and the last worlds 100,000 to 3,000,000 random states and 20 steps. Values are checked "
        "against the peers' before the timing starts; each figure is the best of several bursts.",
        "**The targets of the random worlds depend on the cache.** Planning reads the values of "
        "next states in random order. These values take 8 MB for a million states: in an L3 cache "
        "of 32 MB they fit, in a smaller or shared cache they may not, and then plans, peers and "
        "the floor of the machine are all slower, but not by the same factor.",
    ),
    "simulation": Chapter(
        "Simulation",
        ("Flappy Bird: counts only", "NumPy"),
        "{ours} of Flappy Bird on one thread, {speed}",
        "Live decisions per second under the best advice, 100,000 episodes at a time. NumPy "
        "simulates the same number of episodes in batches of ten thousand, step by step; the "
        "loop steps Counsel's own Gymnasium environment in Python. Counting in Car Driving "
        "accesses a table of 57 MB at random.",
    ),
    "learning": Chapter(
        "Learning",
        ("Flappy Bird: UCB-AD, planned after every episode", "plain NumPy"),
        "UCB-AD learns from {ours} and makes a new plan after each, {speed}",
        "Quality: the regret of UCB-AD with Counsel's bounds compared with the paper's bonus, "
        "and how soon structured exploration plans well for every penalty, compared with RFE. "
        "Speed: compared with the same learners written in NumPy and Python, whose policies are "
        "not evaluated during the run; Counsel's times include the exact evaluation of every "
        "policy unless a row says otherwise.",
    ),
    "baselines": Chapter(
        "Baselines",
        ("flappy-bird/greedy: regret", ""),
        "the structured learner has {share} of the regret of its strongest peer, {peer}",
        "The regret of Counsel's structured learner compared with algorithms that treat person "
        "and world together as a black box, each at the better of two scales of its bonus (1, "
        "the theoretical value, and 0.01). All learners know only the sizes and the rewards; "
        "one seed. The implementations of the baselines are Counsel's; their speed is measured "
        "against plain NumPy and Python below.",
    ),
    "logs": Chapter(
        "Logs",
        ("20 million decisions, Parquet: fit", "DuckDB"),
        "a fit of 20 million decisions takes {ours}; {peer} takes {theirs} for the counts alone",
        "`counsel fit` in a separate process, from its start to the written model, on logs of "
        "the ward. The peers compute only the counts that a fit needs; they check nothing and "
        "compute no estimates or intervals, so a ratio below 1 shows the cost of the rest of a "
        "fit. Peak memory is in brackets.",
    ),
    "service": Chapter(
        "Service",
        ("One process on SQLite: pieces", "plain FastAPI"),
        "{ours} on SQLite, each on disk before its answer, {speed}",
        "Fifty callers on the same machine ask for advice on Flappy Bird and report the "
        "outcome; both requests together are one round trip. The peer is a plain FastAPI service "
        "that commits each of the same two rows separately. Afterwards the benchmark checks that "
        "every acknowledged outcome is in the database.",
    ),
}

INTRODUCTION = (
    "One command, `make bench`, measures all figures on this page on the machine it runs on, and "
    "writes the page. Each figure and its peer are measured in the same run. The number in bold is "
    "the ratio: above 1, Counsel does better (is faster, or has less regret); below 1, the peer "
    "does better. The ratio compares the best time of Counsel with the best time of the peer; "
    "where both were timed by turns, the lowest, highest and median ratio of single turns show how "
    "much the machine wobbled. Where a target was set beforehand, the table shows the target of "
    "that day and whether it holds."
)

RENAMED = {
    f"{world}: one plan, {old}": f"{world}: one plan in every cell, {new}"
    for world in ("Flappy Bird", "Car Driving", "A million states")
    for old, new in (("one thread", "one thread"), ("2 cores", "all cores"))
}
"""Measurements that had another name in older results: their names now."""

SHOWN = (
    ("planning", "Flappy Bird: one plan from the start, one thread", "QuantEcon"),
    ("planning", "Flappy Bird: one plan from the start, one thread", "Storm"),
    ("planning", "Flappy Bird: one plan in every cell, one thread", "QuantEcon"),
    ("planning", "Flappy Bird: one plan in every cell, one thread", "Storm"),
    ("planning", "Flappy Bird: all budgets", "HiGHS"),
    ("planning", "Car Driving: one plan in every cell, one thread", "QuantEcon"),
    ("planning", "A million states: one plan in every cell, one thread", "scipy"),
    ("simulation", "Flappy Bird: counts only", "NumPy"),
    ("learning", "Flappy Bird: UCB-AD, planned after every episode", "plain NumPy"),
    ("baselines", "flappy-bird/greedy: regret", ""),
    ("logs", "20 million decisions, Parquet", "DuckDB"),
    ("service", "One process on SQLite: pieces", "plain FastAPI"),
)
"""The rows of README: the area, and the beginnings of the names of measurement and peer."""

SPEEDS = ("ms", "s")
"""Units of time, in which less is faster; units that end in ``/s`` are speeds too."""


def page(folder: Path) -> str:
    """Return the page as Markdown."""
    machines = read(folder)
    lines = ["# Benchmarks", "", folded(INTRODUCTION), ""]
    for machine in machines:
        lines += [folded(f"- {portrait(machine)}", "  "), ""]
    for name in CHAPTERS:
        lines += chapter(name, measured(machines, name))
    return "\n".join(lines).rstrip() + "\n"


def portrait(machine: Machine) -> str:
    """Return all about a machine: hardware, results in total, date, duration and versions."""
    areas = machine.areas.values()
    rows = [row for area in areas for row in area["rows"]]
    spent = sum(area["seconds"] for area in areas) / 60
    missing = [CHAPTERS[name].title.lower() for name in CHAPTERS if name not in machine.areas]
    absent = f" Not measured: {', '.join(missing)}." if missing else ""
    return (
        f"**{machine.name}.** {tally(rows)} Measured on {dates(machine.areas)} in {spent:.0f} "
        f"minutes.{absent} Machine: {hardware(next(iter(areas)))}. Versions: "
        f"{versions(machine.areas)}. {machine.remark}".rstrip()
    )


def chapter(name: str, machines: list[Machine]) -> list[str]:
    """Return the lines of one area; the headline is about the newest results."""
    content, newest = CHAPTERS[name], machines[-1]
    lead = find(name, newest.areas[name]["rows"], *content.lead)
    headline = content.headline.format(
        ours=measure(lead["ours"], lead["unit"]),
        speed=speed(lead),
        share=share(lead),
        peer=lead["peer"].partition(",")[0],
        theirs=measure(lead["theirs"], lead["unit"]),
    )
    lines = [f"## {content.title}: {headline} ({newest.name})", "", folded(content.text), ""]
    if content.remark:
        lines += [folded(content.remark), ""]
    for machine in machines:
        lines += [summary(machine, name), ""]
    lines += side_by_side(name, machines)
    minutes = max(newest.areas[name]["seconds"] / 60, 0.1)
    command = f"`python -m benchmarks.{name}` ({minutes:.1f} minutes)"
    lines += ["", f"To run only this area: {command}.", ""]
    return lines


def summary(machine: Machine, name: str) -> str:
    """Return what was found in an area on one machine, with every target that is missed."""
    area, first = machine.areas[name], next(iter(machine.areas.values()))
    text = f"{machine.name}, {area['date']}: {tally(area['rows'])}"
    if area.get("load_before") is not None:
        text += f" Load average before the run: {figure(area['load_before'])}."
    if area["machine"] != first["machine"]:
        text += f" Measured with another setup: {hardware(area)}."
    short = [row for row in area["rows"] if row["holds"] is False]
    if short:
        text += " Figures that miss their target:\n\n"
        text += "\n".join(f"- {shortfall(row)}" for row in short)
    return text


def side_by_side(name: str, machines: list[Machine]) -> list[str]:
    """Return the table of an area: one line per measurement and peer, one column per machine."""
    columns = [{key(row): row for row in m.areas[name]["rows"]} for m in machines]
    heads = [f"{machine.name} ({machine.areas[name]['date']})" for machine in machines]
    lines = [cells(("measured", *heads)), "|---" * (1 + len(heads)) + "|"]
    order = dict.fromkeys(found for column in reversed(columns) for found in column)
    for found in order:
        rows = [column.get(found) for column in columns]
        present = [row for row in rows if row is not None]
        notes = {row["note"] for row in present}
        apart = len(notes) > 1
        first = [present[-1]["what"], beside(present[-1]), *(() if apart else notes)]
        shown = [
            "not measured" if row is None else result(row, note=len(notes) > 1) for row in rows
        ]
        lines.append(cells(("<br>".join(filter(None, first)), *shown)))
    return lines


def key(row: Row) -> tuple[str, str | None]:
    """Return what a row has in common with the same measurement on another machine."""
    return row["what"], row["peer"]


def beside(row: Row) -> str:
    """Return the peer, or why there is none."""
    return f"no peer: {row['alone']}" if row["peer"] is None else f"against {row['peer']}"


def result(row: Row, *, note: bool) -> str:
    """Return the cell of a row: ratio, figures, spread, target and note."""
    if row["peer"] is None:
        lines = [f"**{ours(row)}**"]
    else:
        lines = [f"**{ratio(row)}**", f"{ours(row)} against {theirs(row)}"]
    if row.get("spread"):
        low, median, high = (figure(value) for value in row["spread"])
        lines.append(f"turns {low} to {high}, median {median}")
    if row["asked"] is not None:
        lines.append(f"{row['asked']}: {'holds' if row['holds'] else '**falls short**'}")
    return "<br>".join([*lines, row["note"]] if note and row["note"] else lines)


def ours(row: Row) -> str:
    """Return Counsel's figure, with its memory unless memory is the figure."""
    text = measure(row["ours"], row["unit"])
    if row["memory"] is not None and row["peer"] is not None:
        text += f" ({row['memory']:.2f} GB)"
    return text


def theirs(row: Row) -> str:
    """Return the peer's figure, with its memory."""
    text = measure(row["theirs"], row["unit"])
    if row["peer_memory"] is not None:
        text += f" ({row['peer_memory']:.2f} GB)"
    return text


def ratio(row: Row) -> str:
    """Return how many times better Counsel is, marked if it is worse."""
    if row["ratio"] is None:
        return "∞"
    if row["ratio"] >= 1.0:
        return figure(row["ratio"])
    return f"{figure(row['ratio'])} ({'slower' if is_speed(row) else 'worse'})"


def speed(row: Row) -> str:
    """Return how much faster or slower Counsel is, in words."""
    if row["ratio"] is None:
        return f"with an infinite ratio to {row['peer']}"
    if row["ratio"] >= 1.0:
        return f"{figure(row['ratio'])} times as fast as {row['peer']}"
    return f"slower than {row['peer']} (ratio {figure(row['ratio'])})"


def share(row: Row) -> str:
    """Return Counsel's figure in percent of the peer's."""
    return f"{figure(100 * row['ours'] / row['theirs'])} %" if row["theirs"] else "more than all"


def shortfall(row: Row) -> str:
    """Return a measurement that misses its target, in words."""
    beside = "" if row["peer"] is None else f", ratio {ratio(row)} to {row['peer']}"
    return f"{row['what']}: {measure(row['ours'], row['unit'])}{beside}; target {row['asked']}."


def tally(rows: list[Row]) -> str:
    """Return how often Counsel is ahead, in speed and in learning, and how many targets hold."""
    parts = []
    for timed, word in ((True, "is faster"), (False, "learns better")):
        beside = [row for row in rows if row["peer"] is not None and is_speed(row) == timed]
        ahead = sum(row["ratio"] is None or row["ratio"] >= 1.0 for row in beside)
        if beside:
            parts.append(f"{word} in {ahead} of {len(beside)} comparisons")
    asked = [row["holds"] for row in rows if row["holds"] is not None]
    text = f"Counsel {' and '.join(parts)}."
    if asked:
        held, short = sum(asked), len(asked) - sum(asked)
        text += f" Of the targets set beforehand, {held} of {len(asked)} {plural(held, 'hold')}"
        text += f" and {short} {plural(short, 'fall')} short." if short else "."
    return text


def plural(count: int, verb: str) -> str:
    """Return the verb in singular or plural."""
    return f"{verb}s" if count == 1 else verb


def hardware(area: Area) -> str:
    """Return the machine of an area in words."""
    parts = area["machine"]
    cache = parts.get("l3_mb")
    known = "L3 cache of unknown size" if cache is None else f"L3 cache of {cache:g} MB"
    return (
        f"{parts['processor']}, {parts['cores']} cores, {known}, {parts['memory_gb']} GB of "
        f"memory, {parts['system']}, {parts['python']}"
    )


def title(area: Area) -> str:
    """Return a short name of the machine of an area: its processor and its cores."""
    parts = area["machine"]
    processor = re.sub(r"\((R|TM)\)", "", parts["processor"]).partition(",")[0]
    return f"{processor.strip()}, {parts['cores']} cores"


def versions(areas: dict[str, Area]) -> str:
    """Return every package with its version, or with several if areas differ."""
    used: dict[str, list[str]] = {}
    for area in areas.values():
        for name, version in area["versions"].items():
            if version not in used.setdefault(name, []):
                used[name].append(version)
    return ", ".join(f"{name} {' and '.join(numbers)}" for name, numbers in used.items())


def dates(areas: dict[str, Area]) -> str:
    """Return the day of the measurements, or the first and the last day."""
    days = sorted({area["date"] for area in areas.values()})
    return days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"


def measure(value: float, unit: str) -> str:
    """Return a figure with its unit."""
    return f"{figure(value)} {unit}"


def figure(value: float) -> str:
    """Return a number with three significant digits."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def is_speed(row: Row) -> bool:
    """Return whether a row is about time."""
    return row["unit"] in SPEEDS or row["unit"].endswith("/s")


def folded(text: str, indent: str = "") -> str:
    """Return a paragraph in lines of at most 140 characters, all but the first indented."""
    return textwrap.fill(
        text, 140, break_long_words=False, break_on_hyphens=False, subsequent_indent=indent
    )


def cells(row: tuple[str, ...]) -> str:
    """Return a line of a Markdown table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


def find(area: str, rows: list[Row], what: str, peer: str) -> Row:
    """Return the row whose names begin so, or of several, the row of the strongest peer."""
    candidates = [
        row
        for row in rows
        if row["peer"] is not None and row["what"].startswith(what) and row["peer"].startswith(peer)
    ]
    if not candidates:
        raise SystemExit(f"{area} has no row that begins with {what!r} against {peer!r}")
    return min(candidates, key=lambda row: math.inf if row["ratio"] is None else row["ratio"])


def read(folder: Path) -> list[Machine]:
    """Return the results of every machine, the newest last; every area must be measured once."""
    machines = []
    for own in sorted(path for path in folder.iterdir() if path.is_dir()):
        paths = {name: own / f"{name}.json" for name in CHAPTERS}
        areas: dict[str, Area] = {
            name: json.loads(path.read_text(encoding="utf-8"))
            for name, path in paths.items()
            if path.exists()
        }
        for area in areas.values():
            for row in area["rows"]:
                row["what"] = RENAMED.get(row["what"], row["what"])
        if areas:
            note = own / "remark.md"
            remark = " ".join(note.read_text("utf-8").split()) if note.exists() else ""
            machines.append(Machine(title(next(iter(areas.values()))), areas, remark))
    for name in CHAPTERS:
        if not measured(machines, name):
            raise SystemExit(f"{name}.json is missing; run python -m benchmarks.{name}")
    return sorted(machines, key=lambda machine: max(a["date"] for a in machine.areas.values()))


def measured(machines: list[Machine], name: str) -> list[Machine]:
    """Return the machines on which an area was measured."""
    return [machine for machine in machines if name in machine.areas]


def table(folder: Path) -> str:
    """Return the table of README as Markdown."""
    machines = read(folder)
    lines = [cells(("measured", "against", *(machine.name for machine in machines)))]
    lines.append("|---|---|" + "---:|" * len(machines))
    for area, what, peer in SHOWN:
        newest = find(area, measured(machines, area)[-1].areas[area]["rows"], what, peer)
        shown = [brief(machine, area, key(newest)) for machine in machines]
        lines.append(cells((newest["what"], newest["peer"], *shown)))
    days = "; ".join(
        f"{machine.name}: {dates(machine.areas)}"
        + (" (read the remark about its runs on the benchmarks page)" if machine.remark else "")
        for machine in machines
    )
    return "\n".join([*lines, "", f"Measured on {days}."])


def brief(machine: Machine, area: str, wanted: tuple[str, str | None]) -> str:
    """Return a cell of README: the ratio and both figures."""
    rows = machine.areas.get(area, {"rows": []})["rows"]
    for row in rows:
        if key(row) == wanted:
            return f"**{ratio(row)}**: {ours(row)} against {theirs(row)}"
    return "not measured"


def between(text: str, content: str) -> str:
    """Return the text with new content between the marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"README.md has no {BEGIN} … {END}")
    return f"{before}{BEGIN}\n{content}\n{END}{after}"


def main(folder: Path) -> None:
    """Write the page and the table."""
    readme = ROOT / "README.md"
    text = between(readme.read_text(encoding="utf-8"), table(folder))
    (ROOT / "docs" / "benchmarks.md").write_text(page(folder), encoding="utf-8")
    readme.write_text(text, encoding="utf-8")
    sys.stdout.write("Wrote docs/benchmarks.md and the table of README.md.\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS)
