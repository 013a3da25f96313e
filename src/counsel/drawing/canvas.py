"""Shared by all pictures: figures, axes of cells, marks of decisions, and saving to a file.

A teal triangle marks a decision with advice (hollow if the person did something else), a grey disc
one without, so that pictures can be read without colour.

Nothing here touches matplotlib's global state: no window opens, and figures need no closing.
"""

import os
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from counsel._files import whole_file
from counsel.drawing.palette import ADVICE, INK, PAPER, SILENCE, WHITE
from counsel.errors import CounselError
from counsel.worlds.views import Decision

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CELL = 0.45  # inches per cell
DOTS = 100  # dots per inch on a screen
PRINT_DOTS = 200  # dots per inch of PNG files
DASHES = (0, (3, 2))

LEGEND, CAPTION, LETTER = 3.6, 4.3, 0.075  # inches: the legend, the longest caption, a letter
MARGIN = 0.12  # inches around a picture of cells


class Mark(NamedTuple):
    """The mark of a decision."""

    colour: str
    shape: str
    hollow: bool


TAKEN = Mark(ADVICE, "^", hollow=False)
REFUSED = Mark(ADVICE, "^", hollow=True)
SILENT = Mark(SILENCE, "o", hollow=False)


def mark_of(decision: Decision, *, defer: int) -> Mark:
    """Return the mark of a decision."""
    if decision.advice == defer:
        return SILENT
    return TAKEN if decision.matched else REFUSED


def new_figure(
    width: float, height: float, *, layout: Literal["constrained"] | None = None
) -> "Figure":
    """Return an empty figure of this size in inches."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise CounselError(
            "pictures need matplotlib; install it with: pip install 'counsel[draw]'"
        ) from None
    return Figure(figsize=(width, height), dpi=DOTS, facecolor=PAPER, layout=layout)


def pixels(figure: "Figure") -> NDArray[np.uint8]:
    """Return a figure as pixels [height, width, 3]."""
    canvas = _agg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def save(figure: "Figure", output: str | os.PathLike[str]) -> None:
    """Write a figure to a .png or .svg file, atomically."""
    path = Path(output)
    if path.suffix not in (".png", ".svg"):
        raise CounselError(f"{path} must end in .png or .svg")
    import matplotlib as mpl

    # Without a date and random ids, the same picture gives the same file.
    fixed = mpl.rc_context({"svg.hashsalt": "counsel", "savefig.bbox": None})
    with fixed, whole_file(path) as unfinished:
        kind = path.suffix[1:]
        _agg(figure)
        dateless = {"Date": None} if kind == "svg" else None
        figure.savefig(unfinished, format=kind, dpi=PRINT_DOTS, facecolor=PAPER, metadata=dateless)


def _agg(figure: "Figure"):  # type: ignore[no-untyped-def]  # noqa: ANN202
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    return FigureCanvasAgg(figure)


def cell_axes(  # noqa: PLR0913 (the sizes of a picture)
    shape: tuple[int, int],
    title: str | None,
    *,
    cell: float = CELL,
    least: float = 0.0,
    foot: float = MARGIN,
    names: float = 0.0,
) -> "Axes":
    """Return axes for a grid of rows and columns, with a title above it.

    In inches: ``cell`` is the side of a cell, ``least`` the least width of the picture, ``foot``
    the room below the cells, and ``names`` the room for names between title and cells.
    """
    rows, columns = shape
    width = max(columns * cell, least) + 2 * MARGIN
    lines = textwrap.wrap(title, int((width - 2 * MARGIN) / LETTER)) if title else []
    head = names + (0.32 + 0.17 * len(lines) if lines else MARGIN)
    height = rows * cell + head + foot
    figure = new_figure(width, height)
    axes = figure.add_axes(
        (MARGIN / width, foot / height, columns * cell / width, rows * cell / height)
    )
    axes.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5), xticks=[], yticks=[])
    axes.set_facecolor(WHITE)
    for spine in axes.spines.values():
        spine.set_color(INK)
    if lines:
        figure.text(
            MARGIN / width,
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
    """Draw the mark of a decision, with a white rim so that it stands out on a star."""
    size = 10 + 36 * share
    shape: dict[str, Any] = {"marker": mark.shape, "clip_on": False}
    axes.scatter([x], [y], s=1.6 * size, facecolors=WHITE, edgecolors="none", zorder=4.5, **shape)
    axes.scatter(
        [x],
        [y],
        s=size,
        facecolors=WHITE if mark.hollow else mark.colour,
        edgecolors=mark.colour,
        linewidths=1.4,
        alpha=min(0.35 + 0.65 * share**0.5, 1.0),
        zorder=5,
        **shape,
    )
