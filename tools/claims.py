"""Publish verdicts, figures and tables: ``python tools/claims.py DIR``.

DIR is the folder of ``tools/verdict_blocks.py``; experiments that it lacks keep what is published.
README.md receives the claims that do not hold, docs/reference/claims.md all claims and
docs/reference/experiments.md the tables of the experiments, each between two marks;
docs/reference/verdicts.json and the figures in docs/figures are copied.

A number in a sentence is followed by a comment that says which cell it repeats: the table, cells of
the row and the column, as in ``128<!-- beyond; Policy Greedy; UCB-AD, KL; 50; median -->``. These
numbers are written too.
"""

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from counsel.experiments.blocks import write_verdicts
from counsel.experiments.paper import EXPERIMENTS

ROOT = Path(__file__).resolve().parents[1]
SHOWN = ("regret-greedy", "frontier", "trajectories-safe")
VERDICTS = ROOT / "docs" / "reference" / "verdicts.json"
ALL_CLAIMS = ROOT / "docs" / "reference" / "claims.md"
TABLES = ROOT / "docs" / "reference" / "experiments.md"
EXPLAINED = ("paper", "repel", "adherence-learning")
PAGES = (TABLES, *(ROOT / "docs" / "explanation" / f"{name}.md" for name in EXPLAINED))
"""The pages whose sentences repeat numbers of the tables."""
QUOTED = re.compile(r"([\d.,−]*\d)<!-- ([^;>]+; [^>]+?) -->")
HOLDS, FAILS, UNKNOWN = "holds", "does not hold", "cannot be told"


def summary(scale: float, claims: list[dict[str, Any]]) -> str:
    """Return how many claims have which verdict, and those that do not hold, as Markdown."""
    much = "at the paper's scale" if scale == 1.0 else f"at {scale:g} of the paper's scale"
    paper = [claim for claim in claims if claim["source"] == "paper"]
    ours = [claim for claim in claims if claim["source"] != "paper"]
    return (
        "Every claim has a stated statistic and a 99 % interval, and is tested on four disjoint "
        f"blocks of seeds, {much}; where the four verdicts differ, it cannot be told. Of the "
        f"paper's {count(paper)}. Of our own {count(ours)}. The numbers are those of the first "
        f"block.\n\nThe claims that do not hold:\n\n{table(having(FAILS, claims))}"
    )


def by_verdict(claims: list[dict[str, Any]]) -> str:
    """Return all claims as Markdown, with one table for each verdict."""
    chosen = {verdict: having(verdict, claims) for verdict in (FAILS, UNKNOWN, HOLDS)}
    return "\n\n".join(
        f"## {len(rows)} claims: {verdict}\n\n{table(rows)}" for verdict, rows in chosen.items()
    )


def having(verdict: str, claims: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the claims with this verdict."""
    return [claim for claim in claims if claim["verdict"] == verdict]


def count(claims: list[dict[str, Any]]) -> str:
    """Return how many claims have which verdict."""
    held, failed, unknown = (len(having(v, claims)) for v in (HOLDS, FAILS, UNKNOWN))
    hold, fail = ("holds" if held == 1 else "hold"), ("does" if failed == 1 else "do")
    return (
        f"{len(claims)} claims, {held} {hold}, {failed} {fail} not hold and {unknown} cannot be "
        "told"
    )


def table(claims: list[dict[str, Any]]) -> str:
    """Return claims as a table."""
    lines = ["| experiment | claim | measured [99 % interval] | |", "|---|---|---|---|"]
    lines += [f"| {' | '.join(row(claim))} |" for claim in claims]
    return "\n".join(lines)


def row(claim: dict[str, Any]) -> tuple[str, str, str, str]:
    """Return the cells of a claim."""
    source = "" if claim["source"] == "paper" else " *(ours)*"
    verdict = claim["verdict"] if claim["verdict"] == HOLDS else f"**{claim['verdict']}**"
    measured = claim["blocks"][0]["measured"]
    return claim["experiment"], f"{claim['claim']}{source}", measured, verdict


def replace_between(page: Path, name: str, text: str) -> None:
    """Replace the text between the marks of this name."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, mark, rest = page.read_text(encoding="utf-8").partition(begin)
    _, end_mark, after = rest.partition(end)
    if not mark or not end_mark:
        sys.exit(f"{page} lacks the marks {begin} and {end}; add them where the text belongs")
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


def cell_of(mark: str, tables: str) -> str:
    """Return the cell of a table that a mark names; ``tables`` is the page that has them all."""
    name, *cells, column = mark.split("; ")
    text = tables.partition(f"<!-- {name} -->")[2].partition(f"<!-- end of {name} -->")[0]
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]
    if not lines or column not in lines[0]:
        sys.exit(f"the mark {mark!r} names no table of {TABLES.name} with that column")
    rows = [line for line in lines[2:] if not set(cells) - set(line)]
    if len(rows) != 1:
        sys.exit(f"the mark {mark!r} fits {len(rows)} rows; name the cells of one")
    return rows[0][lines[0].index(column)]


def quote_numbers(text: str, tables: str) -> str:
    """Return a text in which every marked number is that of its cell, without an interval."""
    return QUOTED.sub(
        lambda found: f"{cell_of(found[2], tables).split(' ')[0]}<!-- {found[2]} -->", text
    )


def merged(published: dict[str, Any], new: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the claims of both, in the order of the experiments; new ones replace old ones."""
    if new["scale"] != published["scale"]:
        sys.exit(f"the verdicts have scale {new['scale']}, those published {published['scale']}")
    renewed = {claim["experiment"] for claim in new["claims"]}
    kept = [claim for claim in published["claims"] if claim["experiment"] not in renewed]
    order = list(EXPERIMENTS)
    return sorted(kept + new["claims"], key=lambda claim: order.index(claim["experiment"]))


def main(folder: Path) -> None:
    """Copy verdicts and figures, and replace the tables and the numbers in sentences."""
    published, new = (
        json.loads(path.read_text("utf-8")) for path in (VERDICTS, folder / VERDICTS.name)
    )
    published["claims"] = merged(published, new)
    write_verdicts(VERDICTS, published["scale"], published["claims"])
    first = folder / "block-0"
    for name in SHOWN:
        if (picture := first / "figures" / f"{name}.png").exists():
            shutil.copy(picture, ROOT / "docs" / "figures" / picture.name)
    text = summary(published["scale"], published["claims"])
    replace_between(ROOT / "README.md", "claims", text)
    replace_between(ALL_CLAIMS, "claims", by_verdict(published["claims"]))
    for path in sorted((first / "tables").glob("*.md")):
        replace_between(TABLES, path.stem, path.read_text(encoding="utf-8").rstrip())
    tables = TABLES.read_text(encoding="utf-8")
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        page.write_text(quote_numbers(text, tables), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
