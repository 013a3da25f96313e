"""Every example of the gallery has a title, is short, runs, and draws without leaving a trace."""

import ast
import runpy
import shutil
import sys
import tokenize
from itertools import combinations

import matplotlib
import matplotlib.pyplot as plt
import pytest

from tests.support.paths import ROOT

pytestmark = pytest.mark.docs

EXAMPLES = sorted((ROOT / "docs" / "gallery").glob("[0-9]*.py"))
MOST_LINES = 60
BESIDE_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}

each_example = pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)


def lines_of_code(path):
    """Count the lines with code on them: neither comments nor the docstring."""
    docstring = ast.parse(path.read_text()).body[0]
    used = set()
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type not in BESIDE_CODE:
                used |= set(range(token.start[0], token.end[0] + 1))
    return len(used - set(range(docstring.lineno, docstring.end_lineno + 1)))


def test_the_examples_are_in_order():
    numbers = range(1, len(EXAMPLES) + 1)
    assert [path.name[:3] for path in EXAMPLES] == [f"{i:02d}_" for i in numbers]


@each_example
def test_an_example_has_a_title_a_paragraph_and_cells(path):
    told = ast.get_docstring(ast.parse(path.read_text()))
    title, rule, empty, *paragraph = told.splitlines()
    assert title
    assert rule == "=" * len(title)
    assert not empty
    assert paragraph
    assert 2 <= path.read_text().count("\n# %%\n# ") <= 4
    assert lines_of_code(path) < MOST_LINES


@each_example
def test_an_example_runs_and_draws_one_figure(path, tmp_path, monkeypatch):
    matplotlib.use("Agg")
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    import gallery_style

    example = tmp_path / path.name
    shutil.copy(path, example)
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(plt, "show", lambda: None)
    with matplotlib.rc_context():
        gallery_style.reset({}, path.name)
        plt.close("all")
        try:
            runpy.run_path(str(example))
            figures = [plt.figure(number) for number in plt.get_fignums()]
            assert len(figures) == 1
            assert_fit_to_print(figures[0])
        finally:
            plt.close("all")
    assert not list(folder.iterdir())
    assert sorted(tmp_path.iterdir()) == sorted([example, folder])


def assert_fit_to_print(figure):
    """Check that title and axis are named, that no word is cut off, and none lies on another."""
    figure.canvas.draw()
    axes = figure.axes[0]
    assert axes.get_title(loc="left")
    assert axes.get_xlabel() or not axes.get_xticks().size
    words = [text for text in axes.texts if text.get_text()]
    words += [axes.xaxis.label, axes.yaxis.label, axes._left_title]
    boxes = [(text.get_text(), text.get_window_extent()) for text in words if text.get_text()]
    for told, box in boxes:
        inside = figure.bbox.padded(1)
        assert inside.contains(box.x0, box.y0), f"cut off: {told}"
        assert inside.contains(box.x1, box.y1), f"cut off: {told}"
    for (one, here), (other, there) in combinations(boxes, 2):
        assert not here.padded(-1).overlaps(there.padded(-1)), f"{one} lies on {other}"


def test_words_that_are_cut_off_or_cover_each_other_are_found():
    for place, told in ((2.0, "cut off: late"), (0.5, "here lies on late")):
        figure, axes = plt.subplots()
        axes.set_title("title", loc="left")
        axes.set_xlabel("x")
        axes.text(0.5, 0.5, "here")
        axes.text(place, 0.5, "late")
        with pytest.raises(AssertionError, match=told):
            assert_fit_to_print(figure)
        plt.close(figure)
