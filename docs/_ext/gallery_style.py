"""Draw the figures of the gallery in the style of all figures of Counsel."""

from typing import Any


def reset(gallery_conf: dict[str, Any], name: str) -> None:
    """Reset the style before every example."""
    import matplotlib

    from counsel.drawing.canvas import DOTS, PRINT_DOTS
    from counsel.drawing.palette import ADVICE, DARK_GOLD, INK, LINES, PAPER, STONES

    matplotlib.rcdefaults()
    matplotlib.rcParams.update(
        {
            "figure.figsize": (7.2, 3.6),
            "figure.dpi": DOTS,
            "savefig.dpi": PRINT_DOTS,
            "figure.facecolor": PAPER,
            "savefig.facecolor": PAPER,
            "figure.constrained_layout.use": True,
            "figure.constrained_layout.h_pad": 0.08,
            "figure.constrained_layout.w_pad": 0.08,
            "axes.prop_cycle": matplotlib.cycler(color=[ADVICE, STONES, INK, DARK_GOLD]),
            "axes.edgecolor": LINES,
            "axes.labelcolor": INK,
            "text.color": INK,
            "font.size": 10.5,
            "axes.labelsize": 10.5,
            "axes.titlesize": 12,
            "axes.titlepad": 10,
            "axes.titlelocation": "left",
            "axes.grid": True,
            "grid.color": LINES,
            "axes.axisbelow": True,
            "xtick.major.size": 0,
            "ytick.major.size": 0,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "xtick.color": INK,
            "ytick.color": INK,
            "legend.frameon": False,
        }
    )
