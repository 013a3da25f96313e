"""Runs what a page shows: its Python, its commands, and whether they print what it says.

The blocks of a page run one after the other in one folder and one namespace. A ``text`` block
right after a ``python`` or ``sh`` block is what that prints; a line ``…`` in it stands for any
lines. What cannot be run has a comment above it, ``<!-- not run: why -->``.
"""

import contextlib
import io
import itertools
import re
import shlex
import sys
import types
from typing import NamedTuple

from tests.support.paths import ROOT

FENCE = re.compile(
    r"(?:<!-- not run: (?P<why>[^\n]+) -->\n\n?)?^```(?P<kind>[a-z]+)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)


class Block(NamedTuple):
    """A block of a page: what it is, what it holds, what it prints, why it is not run."""

    kind: str
    text: str
    line: int
    prints: str | None
    why: str | None


def written():
    """Return the pages that are written by hand."""
    made = {"cli.md", "http.md"}
    found = [path for path in (ROOT / "docs").rglob("*.md") if path.name not in made]
    found = [path for path in found if not {"_build", "_gallery"} & set(path.parts)]
    return sorted([*found, ROOT / "README.md", ROOT / "CONTRIBUTING.md"])


def blocks(path):
    """Return the blocks of a page that can be run."""
    page = path.read_text(encoding="utf-8")
    matches = list(FENCE.finditer(page))
    found = []
    for here, after in itertools.pairwise([*matches, None]):
        if here["kind"] not in ("python", "sh"):
            continue
        prints = None
        if after is not None and after["kind"] == "text":
            between = page[here.end() : after.start()]
            prints = after["text"] if not between.strip() else None
        line = page.count("\n", 0, here.start("kind")) + 1
        found.append(Block(here["kind"], here["text"], line, prints, here["why"]))
    return found


def lines(text):
    """Return the commands of a block, without what explains them."""
    joined = re.sub(r"\\\n\s*", " ", text)
    found = [shlex.split(line, comments=True) for line in joined.splitlines()]
    return [words for words in found if words]


def same(told, printed):
    """Whether what a page says is what was printed, a line ``…`` standing for any lines."""
    pattern = r"\n".join(
        r"(?:.*\n)*?.*" if line.strip() == "…" else re.escape(line.rstrip()) + r"[ ]*"
        for line in told.strip("\n").split("\n")
    )
    return re.fullmatch(pattern, printed.strip("\n")) is not None


def run(path, command, folder, others=None):
    """Run the blocks of a page.

    Parameters
    ----------
    path
        The page.
    command
        Runs ``counsel`` in this process: the fixture of that name.
    folder
        Where to.
    others
        What runs commands that are not run as they stand, by how they begin: called with the words.
    """
    main, others = types.ModuleType("__main__"), others or {}
    with _as_main(main):
        _run(path, command, folder, others, vars(main))


@contextlib.contextmanager
def _as_main(module):
    """Let a page be the main module, as a script is: what it defines can be pickled."""
    before = sys.modules["__main__"]
    sys.modules["__main__"] = module
    try:
        yield
    finally:
        sys.modules["__main__"] = before


def _run(path, command, folder, others, names):
    for block in blocks(path):
        if block.why is not None:
            continue
        place = f"{path.name}, line {block.line}"
        if block.kind == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.chdir(folder):
                exec(compile(block.text, place, "exec"), names)
            printed = out.getvalue()
        else:
            printed = ""
            for words in lines(block.text):
                known = next((one for one in others if " ".join(words).startswith(one)), None)
                if known is not None:
                    others[known](words)
                    continue
                assert words[0] == "counsel", f"{place}: {words} cannot be run here"
                done = command(*words[1:], cwd=folder)
                assert done.returncode == 0, f"{place}: {words}: {done.stderr}"
                printed += done.stdout
        if block.prints is not None:
            assert same(block.prints, printed), f"{place} prints otherwise:\n{printed}"
