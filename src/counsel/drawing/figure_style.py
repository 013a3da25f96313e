"""One style for all figures: lines are means over seeds, bands their 95 % intervals.

Who is who is told by dashes and markers as well as by colour, and by a label at the end of each
line instead of a legend. Axes of gaps and regret begin at zero.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from counsel._arrays import Floats
from counsel.drawing.canvas import DOTS
from counsel.drawing.palette import ADVICE, HARM, INK, LINES, PAPER, SILENCE
from counsel.errors import CounselError
from counsel.estimate.intervals import band

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DARK_GOLD = "#9A6B0F"


class Look(NamedTuple):
    """Colour, dashes and marker of a line."""

    colour: str
    dashes: str | tuple[int, tuple[float, ...]]
    marker: str


LOOKS = (
    Look(ADVICE, "-", "^"),
    Look(HARM, (0, (5, 2)), "o"),
    Look(INK, (0, (1, 1.4)), "s"),
    Look(DARK_GOLD, (0, (6, 2, 1, 2)), "D"),
    Look(SILENCE, (0, (9, 3)), "v"),
    Look("#3C5A99", (0, (3, 1.5)), "P"),
)


class Line(NamedTuple):
    """A line: its label, where, and one row of values for each seed [seed, x]."""

    label: str
    x: Floats
    y_kx: Floats


def sheet(
    columns: int = 1, *, height: float = 3.6, width: float = 7.2
) -> "tuple[Figure, list[Axes]]":
    """Return an empty figure with panels side by side."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise CounselError(
            "pictures need matplotlib; install it with: pip install 'counsel[draw]'"
        ) from None
    figure = Figure(figsize=(width, height), dpi=DOTS, facecolor=PAPER, layout="constrained")
    panels = figure.subplots(1, columns, squeeze=False)[0]
    return figure, [dressed(axes) for axes in panels]


def dressed(axes: "Axes") -> "Axes":
    """Return the axes in our style."""
    axes.set_facecolor("white")
    axes.grid(visible=True, color=LINES, linewidth=0.8)
    axes.tick_params(colors=INK, labelsize=8, length=0)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(LINES)
    return axes


def name_axes(axes: "Axes", x: str, y: str, title: str | None = None) -> None:
    """Label the axes; thousands get commas."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    axes.set_xlabel(x, color=INK, fontsize=9)
    axes.set_ylabel(y, color=INK, fontsize=9)
    if title is not None:
        axes.set_title(title, color=INK, fontsize=9, loc="left", parse_math=False)
    for axis, most in ((axes.xaxis, 4), (axes.yaxis, 7)):
        if axis.get_scale() == "linear":
            axis.set_major_locator(MaxNLocator(most))
            axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.6g}"))
    if axes.get_xscale() == "log":
        low, high = axes.get_xlim()
        steps = (1.0,) if high > 50.0 * low else (1.0, 2.0, 5.0)
        axes.xaxis.set_major_locator(LogLocator(subs=steps))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.6g}"))
        axes.xaxis.set_minor_locator(NullLocator())


def draw_lines(
    axes: "Axes", lines: Sequence[Line], *, zero: bool = True, bands: bool = True
) -> None:
    """Draw means over seeds, their 95 % intervals, and a label at the end of each line."""
    ends = []
    for look, line in zip(_looks(len(lines)), lines, strict=True):
        middle = line.y_kx.mean(axis=0)
        marks = np.unique(np.linspace(0, line.x.size - 1, 7).astype(int)).tolist()
        axes.plot(
            line.x,
            middle,
            color=look.colour,
            linestyle=look.dashes,
            marker=look.marker,
            markevery=marks,
            markersize=4.5,
            linewidth=1.6,
        )
        if bands and len(line.y_kx) > 1:
            low, high = band(line.y_kx)
            axes.fill_between(line.x, low, high, color=look.colour, alpha=0.18, linewidth=0)
        ends.append((float(middle[-1]), line.label, look.colour))
    if zero:
        bottom, top = axes.get_ylim()
        least = float(axes.dataLim.y0)
        axes.set_ylim(bottom if least < -1e-9 else 0.0, top if top > 1e-9 else 1.0)
    label_ends(axes, ends)


def label_ends(axes: "Axes", ends: Sequence[tuple[float, str, str]]) -> None:
    """Write labels right of the last points, moved apart where they would overlap."""
    low, high = axes.get_ylim()
    logarithmic = axes.get_yscale() == "log"

    def share(y: float) -> float:
        if logarithmic:
            y, a, b = np.log(max(y, low)), np.log(low), np.log(high)
            return float((y - a) / (b - a))
        return (y - low) / (high - low)

    placed = sorted(((share(y), label, colour) for y, label, colour in ends), key=lambda e: e[0])
    heights = [height for height, _, _ in placed]
    gap = 0.062
    for i in range(1, len(heights)):
        heights[i] = max(heights[i], heights[i - 1] + gap)
    for i in range(len(heights) - 1, -1, -1):
        most = 1.02 if i == len(heights) - 1 else heights[i + 1] - gap
        heights[i] = min(heights[i], most)
    for height, (_, label, colour) in zip(heights, placed, strict=True):
        axes.annotate(
            label,
            (1.015, height),
            xycoords="axes fraction",
            color=colour,
            fontsize=8,
            va="center",
            annotation_clip=False,
            parse_math=False,
        )


def _looks(count: int) -> list[Look]:
    return [LOOKS[i % len(LOOKS)] for i in range(count)]
