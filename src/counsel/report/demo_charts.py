"""The charts of the demo page: regret of learning, and frontiers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from counsel.drawing.figure_style import Line, draw_lines, name_axes, subplots
from counsel.drawing.palette import ADVICE, DARK_GOLD, HARM, INK, SILENCE
from counsel.report.demo_player import Player

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 4.6, 3.1
"""Inches of a chart, so that its text stays readable on a phone."""


def draw_regret(players: Sequence[Player]) -> "Figure":
    """Draw the regret of learning to advise each player."""
    figure, (axes,) = subplots(width=WIDTH, height=HEIGHT)
    lines = [
        Line(
            player.name.removeprefix("Policy "),
            np.array([0, *(record.episode for record in player.records)], dtype=np.float64),
            np.array([[0.0, *(record.regret for record in player.records)]]),
        )
        for player in players
    ]
    draw_lines(axes, lines, "flights", "regret (stars)", "Learning to advise both players")
    _enlarge(axes)
    return figure


def draw_frontier(player: Player, penalty: float) -> "Figure":
    """Draw the frontier of a player, with the learnt policy and three others."""
    figure, (axes,) = subplots(width=WIDTH, height=HEIGHT)
    axes.plot(*zip(*player.frontier, strict=True), color=ADVICE, linewidth=2.0, zorder=2)
    price = "free" if penalty == 0.0 else f"at {penalty:g} stars"
    for point, text, marker, colour, offset in (
        (player.frontier[0], "never", "o", SILENCE, (9, -3)),
        (player.learnt, f"learnt, {price}", "^", ADVICE, (4, -16)),
        (player.frontier[-1], "unlimited", "D", DARK_GOLD, (0, 9)),
        (player.always, "every step", "v", HARM, (0, -17)),
    ):
        axes.plot(*point, marker, color=colour, markersize=8, zorder=3, clip_on=False)
        align = "right" if point is player.always else "left"
        axes.annotate(
            text, point, offset, textcoords="offset points", color=INK, fontsize=9.5, ha=align
        )
    axes.set_xlim(-0.6, 1.04 * max(player.always.pieces, player.frontier[-1].pieces, 1.0))
    axes.set_ylim(0.0, 1.15 * max(player.frontier[-1].value, player.always.value, 1.0))
    name_axes(axes, "pieces of advice per flight", "stars per flight", player.name)
    _enlarge(axes)
    return figure


def _enlarge(axes: "Axes") -> None:
    """Make the numbers and names of the axes large enough for a phone."""
    axes.tick_params(labelsize=9.5)
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set_fontsize(10)
