"""Write ``docs/benchmarks.md`` and the table of README from the results of ``make bench``.

``python tools/benchmark_pages.py [FOLDER]``: FOLDER holds one JSON file per area; its default is
``benchmarks/results``. The table is written between two marks in README.md.
"""

import json
import math
import sys
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
BEGIN, END = "<!-- benchmarks -->", "<!-- end of benchmarks -->"

Row = dict[str, Any]
Area = dict[str, Any]


class Chapter(NamedTuple):
    """The chapter of an area: title, headline and text.

    ``headline`` is filled from the row whose names begin with ``lead``, or of several, the row of
    the strongest peer: ``ours`` is Counsel's figure, ``speed`` compares it with the peer's,
    ``share`` is Counsel's figure in percent of the peer's.
    """

    title: str
    lead: tuple[str, str]
    headline: str
    text: str


CHAPTERS = {
    "planning": Chapter(
        "Planning",
        ("Car Driving: one plan, one thread", "QuantEcon"),
        "one plan of Car Driving takes {ours}, {speed}",
        "A plan by Counsel is the best policy and its value in every cell, with ties broken by "
        "the fewest pieces of advice; the peers solve the machine's plain MDP. Flappy Bird has "
        "141 states and 20 steps, Car Driving 59,050 states and 10 steps, and the last world a "
        "million random states and 20 steps. Values are checked against QuantEcon's and Storm's "
        "before the timing starts; each figure is the best of several bursts.",
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
    "One command, `make bench`, measures all figures on this page and writes the page. Each "
    "figure and its peer are measured in the same run. A ratio above 1 means that Counsel does "
    "better (is faster, or has less regret); below 1, the peer does better. Where a target was "
    "set beforehand, the table shows the target and whether it holds."
)

SHOWN = (
    ("planning", "Flappy Bird: one plan, one thread", "QuantEcon"),
    ("planning", "Flappy Bird: one plan, one thread", "Storm"),
    ("planning", "Flappy Bird: all budgets", "HiGHS"),
    ("planning", "Car Driving: one plan, one thread", "QuantEcon"),
    ("planning", "A million states: one plan", "scipy"),
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
    areas = read(folder)
    first = next(iter(areas.values()))
    rows = [row for area in areas.values() for row in area["rows"]]
    spent = sum(area["seconds"] for area in areas.values()) / 60
    lines = [
        "# Benchmarks",
        "",
        f"**{tally(rows)}**",
        "",
        folded(INTRODUCTION),
        "",
        folded(
            f"Measured on {dates(areas)}: {machine(first)}. All areas together took {spent:.0f} "
            "minutes."
        ),
        "",
        folded(f"Versions: {versions(areas)}."),
        "",
    ]
    for name, area in areas.items():
        lines += chapter(name, area, other=area["machine"] != first["machine"])
    return "\n".join(lines).rstrip() + "\n"


def chapter(name: str, area: Area, *, other: bool) -> list[str]:
    """Return the lines of one area; ``other`` if it was measured on another machine."""
    content, rows = CHAPTERS[name], area["rows"]
    lead = find(name, rows, *content.lead)
    headline = content.headline.format(
        ours=measure(lead["ours"], lead["unit"]),
        speed=speed(lead),
        share=share(lead),
        peer=lead["peer"].partition(",")[0],
        theirs=measure(lead["theirs"], lead["unit"]),
    )
    minutes = max(area["seconds"] / 60, 0.1)
    lines = [f"## {content.title}: {headline}", "", folded(content.text), ""]
    if other:
        lines += [f"This area was measured on another machine: {machine(area)}.", ""]
    lines += [tally(rows), ""]
    short = [row for row in rows if row["holds"] is False]
    if short:
        lines += ["Figures that miss their target:", ""]
        lines += [f"- {shortfall(row)}" for row in short]
        lines.append("")
    lines += ["| measured | Counsel | against | ratio | target | |", "|---|---:|---|---:|---|---|"]
    lines += [cells(line(row)) for row in rows]
    command = f"`python -m benchmarks.{name}` ({minutes:.1f} minutes)"
    lines += ["", f"To run only this area: {command}.", ""]
    return lines


def line(row: Row) -> tuple[str, ...]:
    """Return the cells of a row."""
    asked = ""
    if row["asked"] is not None:
        asked = f"{row['asked']}: {'holds' if row['holds'] else '**falls short**'}"
    return row["what"], ours(row), theirs(row), ratio(row), asked, row["note"]


def ours(row: Row) -> str:
    """Return Counsel's figure, with its memory unless memory is the figure."""
    text = measure(row["ours"], row["unit"])
    if row["memory"] is not None and row["peer"] is not None:
        text += f" ({row['memory']:.2f} GB)"
    return text


def theirs(row: Row) -> str:
    """Return the peer and its figure, or why there is none."""
    if row["peer"] is None:
        return f"no peer: {row['alone']}"
    text = f"{row['peer']}: {measure(row['theirs'], row['unit'])}"
    if row["peer_memory"] is not None:
        text += f" ({row['peer_memory']:.2f} GB)"
    return text


def ratio(row: Row) -> str:
    """Return how many times better Counsel is, marked if it is worse."""
    if row["peer"] is None:
        return ""
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


def machine(area: Area) -> str:
    """Return the machine of an area in words."""
    parts = area["machine"]
    return (
        f"{parts['processor']}, {parts['cores']} cores, {parts['memory_gb']} GB of memory, "
        f"{parts['system']}, {parts['python']}"
    )


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


def folded(text: str) -> str:
    """Return a paragraph in lines of at most 140 characters."""
    return textwrap.fill(text, 140, break_long_words=False, break_on_hyphens=False)


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


def read(folder: Path) -> dict[str, Area]:
    """Return the results of every area, in the order of the page."""
    areas = {}
    for name in CHAPTERS:
        path = folder / f"{name}.json"
        if not path.exists():
            raise SystemExit(f"{path.name} is missing; run python -m benchmarks.{name}")
        areas[name] = json.loads(path.read_text(encoding="utf-8"))
    return areas


def table(folder: Path) -> str:
    """Return the table of README as Markdown."""
    areas = read(folder)
    lines = ["| measured | Counsel | against | ratio |", "|---|---:|---|---:|"]
    for area, what, peer in SHOWN:
        row = find(area, areas[area]["rows"], what, peer)
        lines.append(cells((row["what"], ours(row), theirs(row), ratio(row))))
    first = areas[SHOWN[0][0]]
    return "\n".join([*lines, "", f"{machine(first)}; {dates(areas)}."])


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
