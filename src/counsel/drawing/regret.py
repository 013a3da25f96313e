"""The picture of a learning run: regret and value gap against episodes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from counsel.drawing.canvas import new_figure
from counsel.drawing.figure_style import format_ticks, show_zero, style_axes, write_number
from counsel.drawing.palette import ADVICE, HARM, INK
from counsel.errors import CounselError
from counsel.learning.learn import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_learning(records: Sequence[Record], *, title: str | None = None) -> "Figure":
    """Draw regret and value gap of all records of one run against episodes."""
    if not records:
        raise CounselError("records is empty; there is nothing to draw")
    episode = np.array([record.episode for record in records])
    regret = np.array([record.regret for record in records])
    gap = np.array([record.value_gap for record in records])
    figure = new_figure(7.2, 5.4)
    above = figure.add_axes((0.11, 0.44, 0.84, 0.40))
    below = figure.add_axes((0.11, 0.11, 0.84, 0.24), sharex=above)
    above.plot(np.append(0, episode), np.append(0.0, regret), color=HARM, linewidth=1.8, zorder=3)
    # A record holds the gap of the policy with which its last block of episodes began.
    gaps = np.append(gap[0], gap)
    below.step(np.append(0, episode), gaps, color=ADVICE, linewidth=1.2, zorder=3)
    for axes, name, lowest in (
        (above, "regret", 0.0),
        (below, "value gap", min(0.0, float(gap.min()))),
    ):
        style_axes(axes).tick_params(labelsize=9)
        axes.set_ylabel(name, color=INK, fontsize=9)
        show_zero(axes, lowest, float(axes.dataLim.y1))
    above.set_xlim(0, float(episode[-1]))
    above.tick_params(labelbottom=False)
    for axes in (above, below):
        format_ticks(axes)
    below.set_xlabel("episodes", color=INK, fontsize=9)
    _write(figure, 0.955, _finding(records), 11)
    if title:
        _write(figure, 0.895, title, 9)
    return figure


def _finding(records: Sequence[Record]) -> str:
    """Return the title of the picture: its finding."""
    last, cost = records[-1], records[-1].regret
    half = next(record for record in records if record.regret >= cost / 2)
    if cost < 1e-9:
        return "The advice was the best from the start"
    return (
        f"Learning cost {write_number(float(f'{cost:.4g}'))} over {last.episode:,} episodes, "
        f"half of it by episode {half.episode:,}"
    )


def _write(figure: "Figure", height: float, text: str, size: int) -> None:
    figure.text(0.11, height, text, color=INK, fontsize=size, va="center", parse_math=False)
