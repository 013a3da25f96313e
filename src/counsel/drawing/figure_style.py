"""The style of all charts: lines are means over seeds, bands their 95 % intervals.

Lines differ in dashes and markers as well as in colour, and each has a label at its end instead of
a legend. Axes of gaps and regret begin at zero.
"""

from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from counsel._arrays import Floats
from counsel.drawing.canvas import new_figure
from counsel.drawing.palette import ADVICE, BLUE, DARK_GOLD, HARM, INK, LINES, SILENCE, WHITE
from counsel.estimate.intervals import band

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class LineStyle(NamedTuple):
    """Colour, dashes and marker of a line."""

    colour: str
    dashes: str | tuple[int, tuple[float, ...]]
    marker: str


LINE_STYLES = (
    LineStyle(ADVICE, "-", "^"),
    LineStyle(HARM, (0, (5, 2)), "o"),
    LineStyle(INK, (0, (1, 1.4)), "s"),
    LineStyle(DARK_GOLD, (0, (6, 2, 1, 2)), "D"),
    LineStyle(SILENCE, (0, (9, 3)), "v"),
    LineStyle(BLUE, (0, (3, 1.5)), "P"),
)


class Line(NamedTuple):
    """A line: its label, x, and one row of y for each seed [seed, x]."""

    label: str
    x: Floats
    y_kx: Floats


def subplots(
    columns: int = 1, *, height: float = 3.6, width: float = 7.2
) -> "tuple[Figure, list[Axes]]":
    """Return a figure of this size in inches, and its empty panels side by side."""
    figure = new_figure(width, height, layout="constrained")
    panels = figure.subplots(1, columns, squeeze=False)[0]
    return figure, [style_axes(axes) for axes in panels]


def style_axes(axes: "Axes") -> "Axes":
    """Apply our style to the axes, and return them."""
    axes.set_facecolor(WHITE)
    axes.grid(visible=True, color=LINES, linewidth=0.8)
    axes.tick_params(colors=INK, labelsize=8, length=0)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(LINES)
    return axes


def name_axes(axes: "Axes", x: str, y: str, title: str | None = None) -> None:
    """Label the axes, and write their numbers with commas between thousands."""
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
    axes: "Axes", lines: Sequence[Line], x: str, y: str, title: str | None = None
) -> None:
    """Draw means over seeds, their 95 % intervals, and a label at the end of each line.

    A linear axis of y begins at zero unless values are negative.
    """
    ends = []
    for style, line in zip(cycle(LINE_STYLES), lines, strict=False):
        mean = line.y_kx.mean(axis=0)
        marks = np.unique(np.linspace(0, line.x.size - 1, 7).astype(int)).tolist()
        axes.plot(
            line.x,
            mean,
            color=style.colour,
            linestyle=style.dashes,
            marker=style.marker,
            markevery=marks,
            markersize=4.5,
            linewidth=1.6,
        )
        if len(line.y_kx) > 1:
            low, high = band(line.y_kx)
            axes.fill_between(line.x, low, high, color=style.colour, alpha=0.18, linewidth=0)
        ends.append((float(mean[-1]), line.label, style.colour))
    if axes.get_yscale() == "linear":
        bottom, top = axes.get_ylim()
        least = float(axes.dataLim.y0)
        axes.set_ylim(bottom if least < -1e-9 else 0.0, top if top > 1e-9 else 1.0)
    label_ends(axes, ends)
    name_axes(axes, x, y, title)


def label_ends(axes: "Axes", ends: Sequence[tuple[float, str, str]]) -> None:
    """Write labels (y, text, colour) to the right of the last points, moved apart if too close."""
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
