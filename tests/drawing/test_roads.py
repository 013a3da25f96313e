"""The road of Car Driving: words on the frames cover neither stones nor cars."""

import pytest
from matplotlib.patches import Ellipse, FancyBboxPatch

from counsel.drawing import draw_road
from counsel.drawing.canvas import pixels
from counsel.worlds.car_driving import CAR, EMPTY, STONE, state_of

ROWS = {
    "stones": ((STONE, STONE, STONE),) * 3,
    "cars": ((EMPTY, CAR, CAR), (CAR, CAR, CAR), (CAR, CAR, CAR)),
}


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_words_do_not_cover_what_is_on_the_road(rows):
    # Found by looking: "the machine sees" stood on a stone.
    figure = draw_road(state_of(0, rows), None, "A full road", sight=True)
    pixels(figure)  # places the texts
    axes = figure.axes[0]
    things = [p for p in axes.patches if isinstance(p, Ellipse | FancyBboxPatch)]
    assert len(things) >= 9
    for text in axes.texts:
        box = text.get_bbox_patch().get_window_extent()
        assert figure.bbox.contains(box.x0, box.y0)
        assert figure.bbox.contains(box.x1, box.y1)
        for thing in things:
            assert not box.overlaps(thing.get_window_extent()), text.get_text()
