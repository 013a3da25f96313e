"""The style of all charts: lines are means over seeds, bands their 95 % intervals.

These rules hold for every chart, so that no figure has to repeat them:

* Every panel has a title, which names the person or the world.
* Lines differ in dashes and markers as well as in colour, and each has a label at its end.
* A linear axis of y includes zero, which has a line of its own, and leaves room above the highest
  line. A band ends at zero unless the quantity may be negative (``signed``). A logarithmic axis
  begins at a power of ten, where bands end and means of zero are drawn.
* Numbers on an axis are written in one way: with commas between thousands, or all as powers of ten
  (logarithmic axes beyond a million). Whole numbers, e.g. budgets, have no ticks in between.
"""

from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from counsel._arrays import Floats, Ints
from counsel.drawing.canvas import new_figure
from counsel.drawing.palette import ADVICE, BLUE, DARK_GOLD, HARM, INK, LINES, SILENCE, WHITE
from counsel.estimate.intervals import band

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

MARKS = 8  # markers on a line with many points
ROOM = 0.06  # the share of the axis that stays free above the highest line
POWERS = "⁰¹²³⁴⁵⁶⁷⁸⁹"


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
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK, labelsize=8, length=0, pad=5)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(LINES)
    return axes


def name_axes(axes: "Axes", x: str, y: str, title: str) -> None:
    """Name the axes and the panel, and choose the ticks; the lines must be drawn before."""
    axes.set_xlabel(x, color=INK, fontsize=9)
    axes.set_ylabel(y, color=INK, fontsize=9)
    axes.set_title(title, color=INK, fontsize=9, loc="left", parse_math=False)
    format_ticks(axes)


def format_ticks(axes: "Axes") -> None:
    """Choose the ticks of both axes, and write their numbers in one way."""
    room = 4 if axes.get_xlim()[1] >= 1e4 else 5  # long numbers need more room side by side
    for axis, most in ((axes.xaxis, room), (axes.yaxis, 7)):
        if axis.get_scale() == "linear":
            _linear_ticks(axis, most, whole=axis is axes.xaxis and _has_whole_x(axes))
        elif axis.get_scale() == "log":
            _logarithmic_ticks(axis)


def write_number(number: float) -> str:
    """Return a number with commas between thousands and without powers of ten."""
    digits = f"{abs(number):,.9f}".rstrip("0").rstrip(".")
    return f"−{digits}" if number < 0.0 and digits != "0" else digits


def write_power(number: float) -> str:
    """Return a power of ten, e.g. 10⁶."""
    exponent = str(round(float(np.log10(number))))
    return "10" + exponent.translate(str.maketrans("-0123456789", "⁻" + POWERS))


def _linear_ticks(axis: "Axis", most: int, *, whole: bool) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator, MultipleLocator

    low, high = axis.get_view_interval()
    nice = MaxNLocator(most, steps=[1, 2, 2.5, 5, 10], integer=whole)
    axis.set_major_locator(MultipleLocator(1) if whole and high - low <= 10.0 else nice)
    axis.set_major_formatter(FuncFormatter(lambda number, _: write_number(number)))


def _logarithmic_ticks(axis: "Axis") -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    low, high = axis.get_view_interval()
    is_wide = high > 50.0 * low
    write = write_power if is_wide and high >= 1e7 else write_number
    axis.set_major_locator(LogLocator(subs=(1.0,) if is_wide else (1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda number, _: write(number)))
    axis.set_minor_locator(NullLocator())


def _has_whole_x(axes: "Axes") -> bool:
    """Return whether every line is drawn at whole numbers of x."""
    x = [
        np.asarray(line.get_xdata(), float)
        for line in axes.lines
        if line.get_transform().contains_branch_seperately(axes.transData)[0]
    ]
    numbers = np.concatenate([*x, [] if x else [0.5]])
    return bool((numbers == np.round(numbers)).all())


def draw_lines(  # noqa: PLR0913 (where, what, three names and the one exception)
    axes: "Axes", lines: Sequence[Line], x: str, y: str, title: str, *, signed: bool = False
) -> None:
    """Draw means over seeds, their 95 % intervals, and a label at the end of each line.

    ``signed`` says that the quantity may be negative, e.g. the gap of a policy that may overspend.
    """
    means = [line.y_kx.mean(axis=0) for line in lines]
    signed = signed or min(float(mean.min()) for mean in means) < -1e-9
    floor = -np.inf if signed else 0.0
    if axes.get_yscale() == "log":
        floor = _log_floor(means)
    bands = [_band_above(floor, line.y_kx) for line in lines]
    ends = []
    for i, (style, line) in enumerate(zip(cycle(LINE_STYLES), lines, strict=False)):
        axes.plot(
            line.x,
            np.maximum(means[i], floor),
            color=style.colour,
            linestyle=style.dashes,
            marker=style.marker,
            markevery=_marked(line.x, (i + 0.5) / len(lines), axes.get_xscale()).tolist(),
            markersize=4.5,
            linewidth=1.6,
            clip_on=False,
            zorder=3,
        )
        if len(line.y_kx) > 1:
            axes.fill_between(line.x, *bands[i], color=style.colour, alpha=0.18, linewidth=0)
        ends.append((float(means[i][-1]), line.label, style.colour))
    _set_limits(axes, bands, floor)
    label_ends(axes, ends)
    name_axes(axes, x, y, title)


def _band_above(floor: float, y_kx: Floats) -> tuple[Floats, Floats]:
    """Return the 95 % interval at each x, cut at ``floor``; for one seed, its values."""
    low, high = band(y_kx) if len(y_kx) > 1 else (y_kx[0], y_kx[0])
    return np.maximum(low, floor), np.maximum(high, floor)


def _log_floor(means: Sequence[Floats]) -> float:
    """Return the power of ten below all means that a logarithmic axis can show."""
    above = np.concatenate([mean[mean > 0.0] for mean in means])
    return float(10.0 ** np.floor(np.log10(above.min()))) if above.size else 0.1


def _set_limits(axes: "Axes", bands: Sequence[tuple[Floats, Floats]], floor: float) -> None:
    """Set the limits of y to show every band, with zero on a linear axis and room at the top."""
    low = min(float(low.min()) for low, _ in bands)
    high = max(float(high.max()) for _, high in bands)
    if axes.get_yscale() == "log":
        axes.set_ylim(floor, 1.1 * high * (high / floor) ** ROOM)
    else:
        show_zero(axes, low, high)


def show_zero(axes: "Axes", low: float, high: float) -> None:
    """Set the limits of a linear y for numbers from ``low`` to ``high``, with zero and its line."""
    low, high = min(low, 0.0), max(high, 0.0)
    high = high if high - low > 1e-9 else low + 1.0
    span = high - low
    axes.set_ylim(low - ROOM * span if low < -1e-9 else 0.0, high + ROOM * span)
    axes.axhline(0.0, color=INK, linewidth=0.8, zorder=2.6)


def _marked(x: Floats, shift: float, scale: str) -> Ints:
    """Return which points have a marker: all if few, or some at equal distances along the axis.

    ``shift``, from 0 to 1, moves the markers of lines that lie on one another apart.
    """
    if x.size <= 1.5 * MARKS:
        return np.arange(x.size)
    place = np.log(np.maximum(x, 1e-300)) if scale == "log" else x
    wanted = place[0] + (np.arange(MARKS) + shift) / MARKS * (place[-1] - place[0])
    return np.unique(np.abs(place[:, None] - wanted).argmin(axis=0))


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
        most = 0.97 if i == len(heights) - 1 else heights[i + 1] - gap
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
