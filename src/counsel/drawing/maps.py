"""Pictures of maps and of flights over them, with matplotlib.

A step that several flights share is drawn once, and the more flights share it, the stronger. The
line is teal and solid where the machine advised, grey and dashed where it was silent, and the cell
is marked as in ``canvas.py``.
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from counsel._arrays import brief, index_in
from counsel.drawing.canvas import (
    CAPTION,
    CELL,
    DASHES,
    LEGEND,
    REFUSED,
    SILENT,
    TAKEN,
    Mark,
    cell_axes,
    mark_of,
    paint_mark,
    save,
)
from counsel.drawing.palette import ADVICE, GOLD, HARM, INK, LINES, SILENCE, SILENCE_TEXT, WHITE
from counsel.errors import CounselError
from counsel.planning.criticality import Criticality
from counsel.planning.evaluate import Evaluation
from counsel.simulate.episodes import Episodes
from counsel.worlds.flappy_bird import next_states, read_map
from counsel.worlds.grid_map import MOVES, STAR, WALL, GridMap
from counsel.worlds.views import Decision

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


NEVER = 1e-9  # smaller probabilities count as 0
PHASE_NAMES = 0.22  # inches for the names of phases above a map


def draw_map(  # noqa: PLR0913 (each of these may be drawn)
    map: str | os.PathLike[str] | GridMap,
    output: str | os.PathLike[str] | None = None,
    *,
    episodes: Episodes | None = None,
    criticality: Criticality | None = None,
    evaluation: Evaluation | None = None,
    title: str | None = None,
    legend: bool = True,
    phases: Mapping[str, int] | None = None,
) -> "Figure":
    """Draw a map, and on it flights, the criticality of each cell, or the advice of a policy.

    Parameters
    ----------
    map
        A ``GridMap``, the name of one of ours, or a text file.
    output
        A .png or .svg file to write the picture to.
    episodes
        Flights to draw, as returned by ``Simulator(problem).play(...)`` on this map.
    criticality
        Shade each cell by the largest penalty at which advice there still pays, as returned by
        ``counsel.criticality`` for this map.
    evaluation
        Show the advice of a policy in each cell that its flights reach, as returned by
        ``counsel.evaluate`` for this map: an arrow along the advised move (two heads for Up-Up), or
        a grey disc for silence. Marks are fainter in cells that fewer flights reach.
    title
        A line above the picture.
    legend
        Whether to explain the marks of flights below the map.
    phases
        Parts of the map to separate by lines and to name above it: the first column of each by
        name, e.g. ``{"stars": 0, "walls": 7}``.

    Returns
    -------
    matplotlib.figure.Figure
        The picture.

    Raises
    ------
    CounselError
        If there is no such map, the flights, criticality or evaluation belong to another map,
        ``output`` is neither .png nor .svg or cannot be written, or matplotlib is not installed.

    Examples
    --------
    The same picture gives the same file, so pictures can be kept under version control:

    >>> import tempfile
    >>> from pathlib import Path
    >>> import counsel
    >>> from counsel.drawing import draw_map
    >>> from counsel.worlds import make
    >>> shade = counsel.criticality(make("flappy-bird-budget/greedy"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = [Path(folder) / "one.svg", Path(folder) / "two.svg"]
    ...     figures = [draw_map("budget", file, criticality=shade) for file in files]
    ...     files[0].read_bytes() == files[1].read_bytes()
    True
    """
    grid = read_map(map)
    for name, value, kind in (
        ("episodes", episodes, Episodes),
        ("criticality", criticality, Criticality),
        ("evaluation", evaluation, Evaluation),
        ("title", title, str),
        ("phases", phases, Mapping),
    ):
        if value is not None and not isinstance(value, kind):
            raise CounselError(f"{name} is {brief(value)}; give {kind.__name__}")
    over = grid.rows * grid.columns
    room = {"least": LEGEND, "foot": 0.55} if episodes is not None and legend else {}
    if phases:
        for name, first in phases.items():
            index_in(f"phases[{name!r}]", first, grid.columns)
        room["names"] = PHASE_NAMES
    axes = cell_axes((grid.rows, grid.columns), title, **room)
    if phases:
        _paint_phases(axes, phases)
    if criticality is not None:
        _fits(criticality.lower.shape[1], over, "criticality")
        _shade(axes, grid, criticality)
    _paint_map(axes, grid)
    if episodes is not None:
        _check_flights(grid, episodes)
        columns = (episodes.state, episodes.advice, episodes.action, episodes.next_state)
        decisions = Counter(
            Decision(*row) for row in zip(*(c.tolist() for c in columns), strict=True)
        )
        _paint_flights(axes, grid, decisions, len(episodes))
        if legend:
            _paint_legend(axes, grid)
    if evaluation is not None:
        _fits(evaluation.occupancy.shape[1], over, "evaluation")
        _paint_advice(axes, grid, evaluation)
    figure = axes.figure
    if output is not None:
        save(figure, output)  # type: ignore[arg-type]
    return figure  # type: ignore[return-value]


def draw_bird(grid: GridMap, decisions: Sequence[Decision], state: int, title: str) -> "Figure":
    """Draw a flight so far and the bird where it is."""
    axes = cell_axes((grid.rows, grid.columns), title, least=CAPTION)
    _paint_map(axes, grid)
    _paint_flights(axes, grid, Counter(decisions), 1)
    if state < grid.rows * grid.columns:
        column, row = divmod(state, grid.rows)
        _paint_bird(axes, column, row)
    return axes.figure  # type: ignore[return-value]


def _fits(states: int, over: int, what: str) -> None:
    if states != over + 1:
        raise CounselError(
            f"{what} belongs to a world with {states} states but the map has {over + 1}; "
            "compute it on this map"
        )


def _check_flights(grid: GridMap, episodes: Episodes) -> None:
    """Raise an error unless the episodes are flights over this map."""
    leads = next_states(grid)
    fits = episodes.defer == len(MOVES) and bool((episodes.state < len(leads)).all())
    if not fits or (leads[episodes.state, episodes.action] != episodes.next_state).any():
        raise CounselError("episodes are not flights over this map; play them on this map")


def _paint_phases(axes: "Axes", phases: Mapping[str, int]) -> None:
    """Draw a line where each phase begins, up to the name of the phase above the map."""
    top = -0.5 - PHASE_NAMES / CELL
    style: dict[str, Any] = {"linewidth": 1.2, "linestyle": (0, (1, 1.5)), "clip_on": False}
    for name, first in phases.items():
        if first > 0:
            bottom = axes.get_ylim()[0]
            axes.plot([first - 0.5] * 2, [top, bottom], color=SILENCE_TEXT, zorder=3.5, **style)
        axes.text(
            first - 0.5 + 0.12 * (first > 0),
            (top - 0.5) / 2.0,
            name,
            color=SILENCE_TEXT,
            fontsize=9,
            va="center",
            parse_math=False,
        )


def _paint_map(axes: "Axes", grid: GridMap) -> None:
    """Draw cells, walls and stars."""
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
    shades = LinearSegmentedColormap.from_list("advice", [WHITE, ADVICE])
    axes.imshow(np.minimum(heat, most), cmap=shades, vmin=0.0, vmax=most, zorder=0, aspect="auto")
    for row, column in np.argwhere(heat > 0.0):
        value = heat[row, column]
        text = f"{value:.2g}" if np.isfinite(value) else "∞"
        colour = WHITE if value > 0.6 * most else INK
        place: dict[str, Any] = {"ha": "center", "va": "bottom", "zorder": 6}
        axes.text(column, row + 0.47, text, fontsize=6.5, color=colour, **place)


def _paint_flights(
    axes: "Axes", grid: GridMap, decisions: "Counter[Decision]", episodes: int
) -> None:
    """Draw how often each step was taken and each cell advised."""
    defer, over = len(MOVES), grid.rows * grid.columns
    lines: Counter[tuple[int, int, bool]] = Counter()
    marks: Counter[tuple[int, Mark]] = Counter()
    for decision, times in decisions.items():
        lines[decision.state, decision.action, decision.advice != defer] += times
        marks[decision.state, mark_of(decision, defer=defer)] += times
    for (state, action, advised), times in lines.items():
        column, row = divmod(state, grid.rows)
        landing = row + tuple(MOVES.values())[action]
        if column + 1 < grid.columns:
            share, colour = (times / episodes) ** 0.5, ADVICE if advised else SILENCE
            axes.plot(
                (column, column + 1),
                (row, landing),
                color=colour,
                linestyle="-" if advised else DASHES,
                linewidth=0.8 + 2.0 * share,
                alpha=0.25 + 0.75 * share,
                zorder=4,
            )
            if not 0 <= landing < grid.rows or grid.cells[landing, column + 1] == WALL:
                _cross(axes, column + 1, landing, colour)
    # The most frequent marks are drawn last, on top.
    for (state, mark), times in sorted(marks.items(), key=lambda item: (item[1], item[0])):
        if state < over:
            column, row = divmod(state, grid.rows)
            paint_mark(axes, column, row, mark, times / episodes)


def _cross(axes: "Axes", column: int, row: int, colour: str) -> None:
    """Mark where the bird hits a wall or leaves the map."""
    bottom, top = axes.get_ylim()
    y = min(max(row, top + 0.12), bottom - 0.12)
    axes.scatter([column], [y], s=60, marker="x", color=WHITE, lw=4, zorder=5)
    axes.scatter([column], [y], s=48, marker="x", color=colour, lw=2, zorder=6)


def _paint_bird(axes: "Axes", x: float, y: float) -> None:
    from matplotlib.patches import Circle, Polygon

    beak = [(x + 0.22, y - 0.12), (x + 0.47, y + 0.02), (x + 0.22, y + 0.14)]
    axes.add_patch(Polygon(beak, facecolor=HARM, edgecolor=INK, lw=0.6, zorder=7))
    axes.add_patch(Circle((x, y), 0.3, facecolor=GOLD, edgecolor=INK, lw=1.0, zorder=8))
    axes.add_patch(Circle((x + 0.1, y - 0.09), 0.075, facecolor=WHITE, edgecolor=INK, zorder=9))
    axes.add_patch(Circle((x + 0.13, y - 0.09), 0.03, facecolor=INK, zorder=10))


def _paint_advice(axes: "Axes", grid: GridMap, evaluation: Evaluation) -> None:
    """Draw the advice in each cell that is reached, stronger the more flights reach it."""
    cells = grid.rows * grid.columns
    visits_s = evaluation.occupancy.sum(axis=0)[:cells]
    for state in np.flatnonzero(visits_s > NEVER):
        column, row = divmod(int(state), grid.rows)
        strength = 0.3 + 0.7 * min(float(visits_s[state]), 1.0) ** 0.5
        pieces_a = evaluation.pieces[state]
        for rows, pieces in zip(MOVES.values(), pieces_a, strict=True):
            if pieces > NEVER:
                _arrow(axes, column, row, rows, strength)
        if visits_s[state] - pieces_a.sum() > NEVER:
            axes.scatter([column], [row], s=52, color=WHITE, zorder=4.5)
            axes.scatter([column], [row], s=26, color=SILENCE, alpha=strength, zorder=5)


def _arrow(axes: "Axes", column: int, row: int, rows: int, strength: float) -> None:
    """Draw an arrow along a move, with two heads for two rows."""
    length = 0.84 / (1.0 + rows**2) ** 0.5

    def at(share: float) -> tuple[float, float]:
        return column + length * (share - 0.5), row + length * rows * (share - 0.5)

    style = {"arrowstyle": "-|>,head_width=0.24,head_length=0.4", "shrinkA": 0, "shrinkB": 0}
    rim = style | {"color": WHITE, "alpha": 1.0, "linewidth": 4.2}
    arrow = style | {"color": ADVICE, "alpha": strength, "linewidth": 2.2}
    for share in (1.0, 0.55) if abs(rows) > 1 else (1.0,):
        axes.annotate("", at(share), at(0.0), arrowprops=rim, zorder=4.5)
        axes.annotate("", at(share), at(0.0), arrowprops=arrow, zorder=5)


def _paint_legend(axes: "Axes", grid: GridMap) -> None:
    """Explain lines and marks below the map."""
    y, x = grid.rows - 0.5 + 0.27 / CELL, -0.2
    for mark, text in ((TAKEN, "advised"), (REFUSED, "not taken"), (SILENT, "silent")):
        line = DASHES if mark is SILENT else "-"
        ends = [x - 0.25, x + 0.55]
        axes.plot(ends, [y, y], color=mark.colour, linestyle=line, linewidth=1.8, clip_on=False)
        paint_mark(axes, x + 0.15, y, mark, 1.0)
        axes.text(x + 0.75, y, text, color=INK, fontsize=9, va="center", ha="left")
        x += 1.6 + 0.18 * len(text)
