"""Pictures of the road of Car Driving, with matplotlib."""

from typing import TYPE_CHECKING, Any

from counsel.drawing.canvas import CAPTION, CELL, DASHES, cell_axes, mark_of, paint_mark
from counsel.drawing.palette import DARK_GOLD, GOLD, HARM, INK, PAPER, ROAD, STONES, WHITE
from counsel.worlds.car_driving import CAR, STONE, TURNS, road_of
from counsel.worlds.views import Decision

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_road(
    state: int, last: Decision | None, title: str, *, over: bool = False, sight: bool = False
) -> "Figure":
    """Draw the three rows of Car Driving that the machine sees, the driver's row at the bottom.

    Parameters
    ----------
    state
        A state of ``make_car_driving`` that is not over.
    last
        The previous decision, marked beside the driver; None for none.
    title
        A line above the picture.
    over
        Whether the drive ended here.
    sight
        Whether to frame the rows that the machine sees and those that the driver sees.

    Returns
    -------
    matplotlib.figure.Figure
        Three rows of three cells.

    Raises
    ------
    CounselError
        If matplotlib is not installed.

    Examples
    --------
    >>> from counsel.drawing import draw_road
    >>> figure = draw_road(0, None, "An empty road", sight=True)
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['the machine sees', 'the driver sees']
    """
    lane, rows = road_of(state)
    axes = cell_axes((3, 3), title, cell=3 * CELL, least=CAPTION)
    for depth, row in enumerate(rows):
        for where, kind in enumerate(row):
            _paint_road_cell(axes, where, 2 - depth, int(kind))
    _paint_driver(axes, lane, lost=over)
    if last is not None:
        paint_mark(axes, lane, 1.6, mark_of(last, defer=len(TURNS)), 3.0)
    if sight:
        _frame(axes, 0.5, INK, "the machine sees")
        _frame(axes, 1.5, DARK_GOLD, "the driver sees")
    return axes.figure  # type: ignore[return-value]


def _paint_road_cell(axes: "Axes", x: float, y: float, kind: int) -> None:
    from matplotlib.patches import Ellipse, Rectangle

    axes.add_patch(
        Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=ROAD, edgecolor=WHITE, lw=3, zorder=1)
    )
    if kind == STONE:
        for dx, dy, size in ((-0.3, 0.1, 0.26), (0.3, 0.14, 0.22), (-0.26, -0.3, 0.2)):
            axes.add_patch(
                Ellipse((x + dx, y + dy), size, 0.75 * size, facecolor=STONES, ec=INK, lw=0.6)
            )
    elif kind == CAR:
        _paint_car(axes, x, y, facecolor=INK, edgecolor="none", zorder=3)


def _paint_driver(axes: "Axes", lane: int, *, lost: bool) -> None:
    from matplotlib.patches import Rectangle

    _paint_car(axes, lane, 2, facecolor=GOLD, edgecolor=INK, lw=1.2, zorder=5)
    axes.add_patch(Rectangle((lane - 0.13, 2 - 0.14), 0.26, 0.12, facecolor=WHITE, zorder=6))
    if lost:
        axes.scatter([lane], [2], s=700, marker="x", color=HARM, lw=5, zorder=8)


def _paint_car(axes: "Axes", x: float, y: float, **style: Any) -> None:  # noqa: ANN401 (matplotlib's)
    from matplotlib.patches import FancyBboxPatch

    shape = "round,pad=0.03,rounding_size=0.1"
    axes.add_patch(FancyBboxPatch((x - 0.17, y - 0.28), 0.34, 0.56, boxstyle=shape, **style))


def _frame(axes: "Axes", top: float, colour: str, text: str) -> None:
    """Frame the rows from ``top`` down."""
    from matplotlib.patches import Rectangle

    inset = 0.03 if top > 1.0 else 0.0
    width, height = 2.96 - 2 * inset, 2.48 - top + 0.98 - 2 * inset
    line = "-" if top > 1.0 else DASHES
    style: dict[str, Any] = {"fill": False, "edgecolor": colour, "linestyle": line, "lw": 2.5}
    corner = (-0.48 + inset, top - 0.98 + inset)
    axes.add_patch(Rectangle(corner, width, height, zorder=9, **style))
    axes.text(  # on the frame, where no stone can be
        -0.4,
        corner[1],
        text,
        color=colour,
        fontsize=9,
        va="center",
        zorder=10,
        bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 1.5},
    )
