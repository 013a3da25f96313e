"""The sheet that worlds are drawn on with matplotlib: sizes, and how a decision is marked.

Where the machine advised a mark is a teal triangle (hollow where the person did something else),
where it was silent a grey disc. So it can be read without colour.

Nothing here touches matplotlib's global state: no window opens, and figures need no closing.
"""

import os
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from counsel._files import whole_file
from counsel.drawing.palette import ADVICE, INK, PAPER, SILENCE
from counsel.errors import CounselError
from counsel.worlds.views import Decision

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CELL = 0.45
"""Inches of one cell."""

DOTS = 100
"""Dots per inch."""


DASHES = (0, (3, 2))

LEGEND, CAPTION, LETTER = 3.6, 4.3, 0.075
"""Inches of the legend, of the longest caption, and of a letter of the title."""


class Mark(NamedTuple):
    """How a decision is marked."""

    colour: str
    shape: str
    hollow: bool


TAKEN = Mark(ADVICE, "^", hollow=False)
REFUSED = Mark(ADVICE, "^", hollow=True)
SILENT = Mark(SILENCE, "o", hollow=False)


def mark_of(decision: Decision, *, defer: int) -> Mark:
    """Return how a decision is marked."""
    if decision.advice == defer:
        return SILENT
    return TAKEN if decision.advice == decision.action else REFUSED


def pixels(figure: "Figure") -> NDArray[np.uint8]:
    """Return a figure as [height, width, 3]."""
    canvas = _agg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def save(figure: "Figure", output: str | os.PathLike[str]) -> None:
    """Write a figure as .png or .svg, whole or not at all."""
    path = Path(output)
    if path.suffix not in (".png", ".svg"):
        raise CounselError(f"{path} must end in .png or .svg")
    # No date and no random ids: the same picture is the same file.
    import matplotlib as mpl

    fixed = mpl.rc_context({"svg.hashsalt": "counsel", "savefig.bbox": None})
    with fixed, whole_file(path) as unfinished:
        kind = path.suffix[1:]
        _agg(figure)
        dateless = {"Date": None} if kind == "svg" else None
        figure.savefig(unfinished, format=kind, dpi=DOTS, facecolor=PAPER, metadata=dateless)


def _agg(figure: "Figure"):  # type: ignore[no-untyped-def]  # noqa: ANN202
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    return FigureCanvasAgg(figure)


def sheet(  # noqa: PLR0913 (sizes)
    columns: int,
    rows: int,
    title: str | None,
    *,
    cell: float = CELL,
    least: float = 0.0,
    foot: float = 0.12,
) -> "Axes":
    """Return axes of so many cells, with room for a title above and ``foot`` inches below."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise CounselError(
            "pictures need matplotlib; install it with: pip install 'counsel[draw]'"
        ) from None
    width = max(columns * cell, least) + 0.24
    lines = textwrap.wrap(title, int((width - 0.24) / LETTER)) if title else []
    head = 0.32 + 0.17 * len(lines) if lines else 0.12
    height = rows * cell + head + foot
    figure = Figure(figsize=(width, height), dpi=DOTS, facecolor=PAPER)
    axes = figure.add_axes(
        (0.12 / width, foot / height, columns * cell / width, rows * cell / height)
    )
    axes.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5), xticks=[], yticks=[])
    axes.set_facecolor("white")
    for spine in axes.spines.values():
        spine.set_color(INK)
    if lines:
        figure.text(
            0.12 / width,
            1 - 0.17 / height,
            "\n".join(lines),
            color=INK,
            fontsize=10,
            va="top",
            ha="left",
            parse_math=False,
        )
    return axes


def paint_mark(axes: "Axes", x: float, y: float, mark: Mark, share: float) -> None:
    """Mark a decision, with a white rim so that it stands out from a star."""
    size = 10 + 36 * share
    axes.scatter(
        [x],
        [y],
        s=1.6 * size,
        marker=mark.shape,
        facecolors="white",
        edgecolors="none",
        zorder=4.5,
        clip_on=False,
    )
    axes.scatter(
        [x],
        [y],
        s=size,
        marker=mark.shape,
        facecolors="white" if mark.hollow else mark.colour,
        edgecolors=mark.colour,
        linewidths=1.4,
        alpha=min(0.35 + 0.65 * share**0.5, 1.0),
        zorder=5,
        clip_on=False,
    )
