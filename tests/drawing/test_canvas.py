"""The files of pictures, and the settings of matplotlib, which stay as they are."""

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from PIL import Image

from counsel.drawing import draw_map
from counsel.drawing.canvas import DOTS, PRINT_DOTS, pixels, save
from counsel.drawing.palette import ADVICE, GOLD, INK, SILENCE
from tests.support.later import Later
from tests.support.map_pictures import DEFER, MIXED, UP, flights, read_png, refused, same_file
from tests.support.paths import ROOT

mpl, figures = Later("matplotlib"), Later("matplotlib.figure")


# The files.


@pytest.mark.slow
def test_png_and_svg_are_what_they_say(tmp_path, played):
    play, critical = played
    png, svg = tmp_path / "flight.png", tmp_path / "flight.svg"
    for path in (png, str(svg)):
        draw_map(
            "three-phases", path, episodes=play(5), criticality=critical, title="Five <flights> &"
        )
    assert sorted(os.listdir(tmp_path)) == ["flight.png", "flight.svg"]
    assert png.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    height, width, _ = read_png(png).shape
    with Image.open(png) as image:
        assert image.info["dpi"] == pytest.approx((200, 200), abs=0.01)
    root = ET.parse(svg).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    # SVG counts in points, 72 an inch; PNG cuts a part of a dot off.
    for side, dots in (("width", width), ("height", height)):
        points = float(root.get(side).removesuffix("pt"))
        assert round(points / 72 * PRINT_DOTS, 6) == pytest.approx(dots, abs=1)
    paint = svg.read_text().lower()
    for colour in (ADVICE, SILENCE, GOLD, INK):
        assert colour.lower() in paint


def test_a_file_that_is_there_is_replaced(tmp_path):
    path = tmp_path / "map.png"
    path.write_text("something else")
    draw_map(MIXED, path)
    assert read_png(path).ndim == 3
    assert os.listdir(tmp_path) == ["map.png"]


@pytest.mark.parametrize("kind", [pytest.param("png", marks=pytest.mark.slow), "svg"])
def test_the_same_picture_is_the_same_file(tmp_path, played, kind):
    play, critical = played
    for name in ("one", "two"):
        path = tmp_path / f"{name}.{kind}"
        draw_map("three-phases", path, episodes=play(20), criticality=critical, title="Twice")
        draw_map(MIXED, tmp_path / f"between.{kind}")
    assert same_file(tmp_path / f"one.{kind}", tmp_path / f"two.{kind}")


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_a_saved_picture_does_not_depend_on_what_was_done_with_the_figure(tmp_path, kind):
    figure = draw_map(MIXED, tmp_path / f"one.{kind}")
    pixels(figure)
    save(figure, tmp_path / f"two.{kind}")
    assert same_file(tmp_path / f"one.{kind}", tmp_path / f"two.{kind}")


def test_a_png_is_what_pixels_gives_with_twice_as_many_dots(tmp_path):
    figure = draw_map(MIXED, tmp_path / "map.png", title="Alike")
    screen = pixels(figure)
    figure.set_dpi(PRINT_DOTS)
    np.testing.assert_array_equal(read_png(tmp_path / "map.png"), pixels(figure))
    assert PRINT_DOTS == 2 * DOTS
    figure.set_dpi(DOTS)
    np.testing.assert_array_equal(pixels(figure), screen)


@pytest.mark.parametrize("name", ["map.jpg", "map.pdf", "map", "map.png.txt", ".png", "png"])
def test_a_file_of_another_kind_is_refused(tmp_path, name):
    told = refused(tmp_path, MIXED, tmp_path / name)
    assert ".png or .svg" in told
    assert name in told


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_a_missing_folder_is_named_and_not_made(tmp_path, kind):
    path = tmp_path / "none" / f"map.{kind}"
    told = refused(tmp_path, MIXED, path)
    assert str(path) in told
    assert "No such file" in told


def test_a_folder_is_not_written_over(tmp_path):
    (tmp_path / "map.png").mkdir()
    assert "map.png" in refused(tmp_path, MIXED, tmp_path / "map.png")
    assert os.listdir(tmp_path / "map.png") == []


@pytest.mark.parametrize("kind", ["png", "svg"])
@pytest.mark.parametrize("there", [True, False])
def test_a_picture_half_written_is_not_left_behind(tmp_path, monkeypatch, kind, there):
    path = tmp_path / f"map.{kind}"
    if there:
        path.write_text("as it was")

    def fill_the_disk(self, file, **told):
        with open(file, "wb") as stream:
            stream.write(b"half of")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(figures.Figure, "savefig", fill_the_disk)
    assert "No space left" in refused(tmp_path, MIXED, path)
    assert not there or path.read_text() == "as it was"


# Matplotlib is left alone.


def run(code, **environment):
    """Run code in a process of its own and return what it prints as JSON."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_importing_the_worlds_does_not_import_matplotlib_and_drawing_needs_no_pyplot(tmp_path):
    code = f"""
import json, sys
import counsel.drawing, counsel.worlds
before = [name for name in sys.modules if name.split(".")[0] in ("matplotlib", "PIL")]
counsel.worlds.make("flappy-bird/greedy")
later = [name for name in sys.modules if name.split(".")[0] in ("matplotlib", "PIL")]
import matplotlib
settings = matplotlib.rcParams.copy()  # to read "backend" would load pyplot
for kind in ("png", "svg"):
    counsel.drawing.draw_map("budget", {str(tmp_path)!r} + "/other." + kind, title="Alone")
pyplot = "matplotlib.pyplot" in sys.modules
print(json.dumps([before, later, pyplot, matplotlib.rcParams.copy() == settings]))
"""
    told = run(code, PYTHONHASHSEED="77")
    assert told == [[], [], False, True]
    # And another process writes the very same files.
    for kind in ("png", "svg"):
        draw_map("budget", tmp_path / f"here.{kind}", title="Alone")
        assert same_file(tmp_path / f"here.{kind}", tmp_path / f"other.{kind}")


def test_drawing_leaves_the_settings_of_matplotlib_as_they_are(tmp_path):
    for kind in ("png", "svg"):
        with mpl.rc_context({"svg.hashsalt": "mine", "lines.linewidth": 7.0}):
            before = mpl.rcParams.copy()
            draw_map(MIXED, tmp_path / f"map.{kind}", episodes=flights(MIXED, [(DEFER, UP)]))
            assert mpl.rcParams.copy() == before


@pytest.mark.parametrize(
    "settings",
    [{"savefig.bbox": "tight"}, {"figure.dpi": 200.0}, {"savefig.facecolor": "red"}],
    ids=lambda settings: next(iter(settings)),
)
def test_the_settings_of_matplotlib_do_not_change_the_picture(tmp_path, settings):
    # Many people have these in their matplotlibrc, or set by a notebook.
    draw_map(MIXED, tmp_path / "plain.png")
    plain = pixels(draw_map(MIXED))
    with mpl.rc_context(settings):
        draw_map(MIXED, tmp_path / "set.png")
        np.testing.assert_array_equal(pixels(draw_map(MIXED)), plain)
    assert same_file(tmp_path / "set.png", tmp_path / "plain.png")


def test_without_matplotlib_one_sentence_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    told = refused(tmp_path, MIXED, tmp_path / "map.png")
    assert "matplotlib" in told
    assert "pip install 'counsel[draw]'" in told


@pytest.mark.slow
def test_without_matplotlib_everything_else_works():
    code = """
import json, sys

class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "matplotlib":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Nothing())
import counsel.drawing, counsel.worlds
states = counsel.worlds.make("flappy-bird/greedy").n_states
try:
    counsel.drawing.draw_map("budget", "/nowhere/map.png")
except counsel.CounselError as fault:
    print(json.dumps([states, str(fault)]))
"""
    states, told = run(code)
    assert states == 141
    assert "counsel[draw]" in told
    assert "\n" not in told


@pytest.mark.slow
def test_the_pictures_in_the_docs_are_what_the_script_draws(tmp_path):
    if mpl.__version_info__ < (3, 11, 2):
        pytest.skip("older Matplotlib cuts a row of dots off")
    run = [sys.executable, ROOT / "tools/pictures.py", tmp_path]
    subprocess.run(run, check=True, timeout=120)
    kept = ROOT / "docs/images"
    assert sorted(os.listdir(tmp_path)) == sorted(os.listdir(kept))
    for name in os.listdir(kept):
        drawn, stored = (np.asarray(Image.open(f / name).convert("RGB")) for f in (tmp_path, kept))
        assert drawn.shape == stored.shape
        # Another version of matplotlib may smooth a letter otherwise.
        assert (drawn != stored).any(axis=-1).mean() < 0.02
