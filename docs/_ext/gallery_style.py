"""The look of the gallery's figures: that of all figures of Counsel."""

from typing import Any


def reset(gallery_conf: dict[str, Any], name: str) -> None:
    """Begin every example with the same style, whatever the last one did."""
    import matplotlib

    from counsel.worlds.draw import ADVICE, DOTS, INK, LINES, PAPER, SILENCE

    matplotlib.rcdefaults()
    matplotlib.rcParams.update(
        {
            "figure.figsize": (7.2, 3.6),
            "figure.dpi": DOTS,
            "savefig.dpi": DOTS,
            "figure.facecolor": PAPER,
            "savefig.facecolor": PAPER,
            "figure.constrained_layout.use": True,
            "axes.prop_cycle": matplotlib.cycler(color=[ADVICE, SILENCE, INK, "#9A6B0F"]),
            "axes.edgecolor": LINES,
            "axes.labelcolor": INK,
            "axes.titlesize": 11,
            "axes.titlelocation": "left",
            "axes.grid": True,
            "grid.color": LINES,
            "axes.axisbelow": True,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "xtick.color": INK,
            "ytick.color": INK,
            "legend.frameon": False,
        }
    )
