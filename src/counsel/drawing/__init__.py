"""The palette, and everything that draws."""

from counsel.drawing.maps import draw_map
from counsel.drawing.roads import draw_road

__all__ = ["draw_map", "draw_road"]
