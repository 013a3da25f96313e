"""Everything that draws with matplotlib, and the palette of pictures and pages."""

from counsel.drawing.maps import draw_map
from counsel.drawing.roads import draw_road

__all__ = ["draw_map", "draw_road"]
