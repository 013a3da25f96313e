"""Pictures of maps and of flights over them, with matplotlib.

One drawing for one flight or for many: steps that several episodes share are drawn once, stronger
the more episodes take them. Where the machine advised the line is green and solid, where it was
silent red and dashed, and the cell is marked as in ``canvas.py``.
"""

import os
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from counsel._arrays import brief
from counsel.errors import CounselError
from counsel.planning.criticality import Criticality
from counsel.simulate.episodes import Episodes
from counsel.worlds.canvas import (
    ADVICE,
    CAPTION,
    CELL,
    DASHES,
    GOLD,
    INK,
    LEGEND,
    LINES,
    REFUSED,
    SILENCE,
    SILENT,
    TAKEN,
    Leg,
    Mark,
    mark_of,
    paint_mark,
    save,
    sheet,
)
from counsel.worlds.flappy_bird import next_states, read_map
from counsel.worlds.grid_map import MOVES, STAR, WALL, GridMap

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw(
    map: str | os.PathLike[str] | GridMap,
    output: str | os.PathLike[str] | None = None,
    *,
    episodes: Episodes | None = None,
    criticality: Criticality | None = None,
    title: str | None = None,
) -> "Figure":
    """Draw a map, and on it flights or how critical each cell is.

    Parameters
    ----------
    map
        A ``GridMap``, the name of one of ours, or a text file.
    output
        Where to write the picture: .png or .svg.
    episodes
        Flights to draw: ``Simulator(problem).play(...)`` on this map.
    criticality
        Shade each cell by the largest penalty at which advice there still pays: what
        ``counsel.criticality`` returned for this map.
    title
        A line above the picture.

    Returns
    -------
    matplotlib.figure.Figure
        The picture, also where it was written.

    Raises
    ------
    CounselError
        When there is no such map, flights or criticality are of another, ``output`` ends otherwise
        or cannot be written, or matplotlib is not installed.

    Examples
    --------
    The same picture is the same file, so pictures can be kept under version control:

    >>> import tempfile
    >>> from pathlib import Path
    >>> import counsel
    >>> from counsel.worlds import draw, make
    >>> shade = counsel.criticality(make("flappy-bird-budget/greedy"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = [Path(folder) / "one.svg", Path(folder) / "two.svg"]
    ...     figures = [draw("budget", file, criticality=shade) for file in files]
    ...     files[0].read_bytes() == files[1].read_bytes()
    True
    """
    grid = read_map(map)
    for name, value, kind in (
        ("episodes", episodes, Episodes),
        ("criticality", criticality, Criticality),
        ("title", title, str),
    ):
        if value is not None and not isinstance(value, kind):
            raise CounselError(f"{name} is {brief(value)}; give {kind.__name__}")
    over = grid.rows * grid.columns
    room = {} if episodes is None else {"least": LEGEND, "foot": 0.55}
    axes = sheet(grid.columns, grid.rows, title, **room)
    if criticality is not None:
        _fits(criticality.lower.shape[1], over, "criticality")
        _shade(axes, grid, criticality)
    _paint_map(axes, grid)
    if episodes is not None:
        _check_flights(grid, episodes)
        columns = (episodes.state, episodes.advice, episodes.action, episodes.next_state)
        moves = Counter(Leg(*row) for row in zip(*(c.tolist() for c in columns), strict=True))
        _paint_flights(axes, grid, moves, len(episodes))
        _paint_legend(axes, grid)
    figure = axes.figure
    if output is not None:
        save(figure, output)  # type: ignore[arg-type]
    return figure  # type: ignore[return-value]


def draw_bird(grid: GridMap, moves: Sequence[Leg], state: int, title: str) -> "Figure":
    """Draw a flight so far and the bird where it is."""
    axes = sheet(grid.columns, grid.rows, title, least=CAPTION)
    _paint_map(axes, grid)
    _paint_flights(axes, grid, Counter(moves), 1)
    if state < grid.rows * grid.columns:
        column, row = divmod(state, grid.rows)
        _paint_bird(axes, column, row)
    return axes.figure  # type: ignore[return-value]


def _fits(states: int, over: int, what: str) -> None:
    if states != over + 1:
        raise CounselError(
            f"{what} is of a world with {states} states but the map has {over + 1}; "
            "give what was computed on this map"
        )


def _check_flights(grid: GridMap, episodes: Episodes) -> None:
    """Raise unless the decisions are of a bird on this map."""
    leads = next_states(grid)
    fits = episodes.defer == len(MOVES) and bool((episodes.state < len(leads)).all())
    if not fits or (leads[episodes.state, episodes.action] != episodes.next_state).any():
        raise CounselError("episodes are not flights over this map; play them on this map")


def _paint_map(axes: "Axes", grid: GridMap) -> None:
    """Paint cells, walls and stars."""
    from matplotlib.patches import Rectangle

    for x in range(1, grid.columns):
        axes.axvline(x - 0.5, color=LINES, linewidth=0.6, zorder=1)
    for y in range(1, grid.rows):
        axes.axhline(y - 0.5, color=LINES, linewidth=0.6, zorder=1)
    for row, column in np.argwhere(grid.cells == WALL):
        axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor=INK, zorder=2))
    stars = np.argwhere(grid.cells == STAR)
    axes.scatter(
        stars[:, 1], stars[:, 0], s=260, marker="*", color=GOLD, edgecolors=INK, lw=0.5, zorder=3
    )


def _shade(axes: "Axes", grid: GridMap, criticality: Criticality) -> None:
    """Shade each cell by its criticality at the step at which the bird can be there."""
    from matplotlib.colors import LinearSegmentedColormap

    heat = np.full((grid.rows, grid.columns), np.nan)
    for column in range(min(grid.columns, len(criticality.lower))):
        states = column * grid.rows + np.arange(grid.rows)
        heat[:, column] = criticality.lower[column, states]
    heat = np.where((grid.cells == WALL) | ~(heat > 0.0), np.nan, heat)
    shown = heat[np.isfinite(heat)]
    most = float(shown.max()) if shown.size else 1.0
    shades = LinearSegmentedColormap.from_list("advice", ["white", ADVICE])
    axes.imshow(np.minimum(heat, most), cmap=shades, vmin=0.0, vmax=most, zorder=0, aspect="auto")
    for row, column in np.argwhere(heat > 0.0):
        value = heat[row, column]
        axes.text(
            column,
            row + 0.47,
            f"{value:.2g}" if np.isfinite(value) else "∞",
            ha="center",
            va="bottom",
            fontsize=6.5,
            color="white" if value > 0.6 * most else INK,
            zorder=6,
        )


def _paint_flights(axes: "Axes", grid: GridMap, moves: "Counter[Leg]", episodes: int) -> None:
    """Paint how often each step was taken and each cell advised."""
    defer, over = len(MOVES), grid.rows * grid.columns
    lines: Counter[tuple[int, int, bool]] = Counter()
    marks: Counter[tuple[int, Mark]] = Counter()
    for move, times in moves.items():
        lines[move.state, move.action, move.advice != defer] += times
        marks[move.state, mark_of(move, defer=defer)] += times
    for (state, action, spoken), times in lines.items():
        column, row = divmod(state, grid.rows)
        landing = row + tuple(MOVES.values())[action]
        if column + 1 < grid.columns:
            share = times / episodes
            _line(axes, (column, row), (column + 1, landing), share, spoken=spoken)
            crashed = not 0 <= landing < grid.rows or grid.cells[landing, column + 1] == WALL
            if crashed:
                _cross(axes, column + 1, landing, ADVICE if spoken else SILENCE)
    # What happened most often comes last, on top.
    for (state, mark), times in sorted(marks.items(), key=lambda item: (item[1], item[0])):
        if state < over:
            column, row = divmod(state, grid.rows)
            paint_mark(axes, column, row, mark, times / episodes)


def _line(
    axes: "Axes", begin: tuple[int, int], end: tuple[int, int], share: float, *, spoken: bool
) -> None:
    axes.plot(
        *zip(begin, end, strict=True),
        color=ADVICE if spoken else SILENCE,
        linestyle="-" if spoken else DASHES,
        linewidth=0.8 + 2.0 * share**0.5,
        alpha=0.25 + 0.75 * share**0.5,
        zorder=4,
        clip_on=True,
    )


def _cross(axes: "Axes", column: int, row: int, colour: str) -> None:
    """Mark where the bird hits a wall or leaves the map."""
    bottom, top = axes.get_ylim()
    y = min(max(row, top + 0.12), bottom - 0.12)
    axes.scatter([column], [y], s=60, marker="x", color="white", lw=4, zorder=5)
    axes.scatter([column], [y], s=48, marker="x", color=colour, lw=2, zorder=6)


def _paint_bird(axes: "Axes", x: float, y: float) -> None:
    from matplotlib.patches import Circle, Polygon

    beak = [(x + 0.22, y - 0.12), (x + 0.47, y + 0.02), (x + 0.22, y + 0.14)]
    axes.add_patch(Polygon(beak, facecolor=SILENCE, edgecolor=INK, lw=0.6, zorder=7))
    axes.add_patch(Circle((x, y), 0.3, facecolor=GOLD, edgecolor=INK, lw=1.0, zorder=8))
    axes.add_patch(Circle((x + 0.1, y - 0.09), 0.075, facecolor="white", edgecolor=INK, zorder=9))
    axes.add_patch(Circle((x + 0.13, y - 0.09), 0.03, facecolor=INK, zorder=10))


def _paint_legend(axes: "Axes", grid: GridMap) -> None:
    """Say below the map what lines and marks mean."""
    y, x = grid.rows - 0.5 + 0.27 / CELL, -0.2
    for mark, text in ((TAKEN, "advised"), (REFUSED, "not taken"), (SILENT, "silent")):
        line = DASHES if mark is SILENT else "-"
        ends = [x - 0.25, x + 0.55]
        axes.plot(ends, [y, y], color=mark.colour, linestyle=line, linewidth=1.8, clip_on=False)
        paint_mark(axes, x + 0.15, y, mark, 1.0)
        axes.text(x + 0.75, y, text, color=INK, fontsize=9, va="center", ha="left")
        x += 1.6 + 0.18 * len(text)
