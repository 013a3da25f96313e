"""Copy claims and figures of a full reproduction into README: ``python tools/claims.py DIR``.

DIR is the folder of ``counsel reproduce``. The table is written between two marks in README.md.
"""

import json
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHOWN = ("regret-greedy", "frontier", "trajectories-safe")
BEGIN, END = "<!-- claims -->", "<!-- end of claims -->"


def summary(claims: list[dict[str, object]]) -> str:
    """Return the claims as Markdown: a table of those that fail, and a folded table of all."""
    paper = [claim for claim in claims if claim["source"] == "paper"]
    ours = [claim for claim in claims if claim["source"] != "paper"]
    failed = [claim for claim in claims if not claim["holds"]]
    held = [sum(bool(claim["holds"]) for claim in some) for some in (paper, ours)]
    return (
        f"In a full run with five seeds, {held[0]} of the paper's {len(paper)} claims and "
        f"{held[1]} of our own {len(ours)} claims hold. The claims that do not hold:\n\n"
        f"{table(failed)}\n\n"
        f"<details><summary>All {len(claims)} claims</summary>\n\n{table(claims)}\n\n</details>"
    )


def table(claims: list[dict[str, object]]) -> str:
    """Return claims as a table."""
    lines = ["| experiment | claim | measured | |", "|---|---|---|---|"]
    for claim in claims:
        source = "" if claim["source"] == "paper" else " *(ours)*"
        verdict = "holds" if claim["holds"] else "**does not hold**"
        row = (claim["experiment"], f"{claim['claim']}{source}", claim["measured"], verdict)
        lines.append("| " + " | ".join(str(cell) for cell in row) + " |")
    return "\n".join(lines)


def main(folder: Path) -> None:
    """Copy the claims and the figures, and replace the table."""
    claims = json.loads((folder / "claims.json").read_text(encoding="utf-8"))
    shutil.copy(folder / "claims.json", ROOT / "docs" / "claims.json")
    for name in SHOWN:
        shutil.copy(folder / "figures" / f"{name}.png", ROOT / "docs" / "figures" / f"{name}.png")
    page = ROOT / "README.md"
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    told = f"{summary(claims)}\n\n`python tools/claims.py reproduction` writes this section."
    page.write_text(f"{before}{BEGIN}\n{told}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
