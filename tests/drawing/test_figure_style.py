"""The rules of charts: titles, markers, bands, zero, room at the top, and the numbers at ticks."""

import inspect

import numpy as np
import pytest

from counsel.drawing.figure_style import (
    LINE_STYLES,
    Line,
    draw_lines,
    format_ticks,
    name_axes,
    show_zero,
    subplots,
    write_number,
    write_power,
)
from counsel.drawing.palette import INK
from counsel.estimate.intervals import band

FEW = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
WIDE = np.array([[0.1, 4.0, 1.0, 0.0, 0.2], [0.1, 0.0, 9.0, 0.5, 0.3], [0.2, 1.0, 0.0, 0.0, 0.1]])


def chart(*rows, x=FEW, logarithmic="", signed=False):
    """Draw a line for each array of rows [seed, x] and return the axes, laid out."""
    figure, (axes,) = subplots()
    if "x" in logarithmic:
        axes.set_xscale("log")
    if "y" in logarithmic:
        axes.set_yscale("log")
    lines = [Line(f"line {i}", x, np.atleast_2d(y_kx)) for i, y_kx in enumerate(rows)]
    draw_lines(axes, lines, "x", "y", "Policy Greedy", signed=signed)
    figure.draw_without_rendering()
    return axes


def band_of(axes):
    """Return the least and the largest y of the band drawn."""
    (drawn,) = axes.collections
    y = drawn.get_paths()[0].vertices[:, 1]
    return y.min(), y.max()


def zero_lines(axes):
    return [
        line
        for line in axes.lines
        if list(line.get_ydata()) == [0.0, 0.0] and line.get_color() == INK
    ]


def labels(axis):
    """Return the texts at the ticks that are within the limits."""
    low, high = axis.get_view_interval()
    return [
        tick.label1.get_text() for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high
    ]


# Bands and zero.


def test_a_band_of_a_quantity_that_cannot_be_negative_ends_at_zero():
    # Found by looking: with few seeds, bands of regret and value gaps fell below zero.
    low, high = band(WIDE)
    assert low.min() < 0.0
    axes = chart(WIDE)
    assert band_of(axes) == (0.0, high.max())
    assert axes.get_ylim()[0] == 0.0
    assert len(zero_lines(axes)) == 1


def test_a_band_of_a_signed_quantity_is_not_cut_and_zero_has_a_line():
    axes = chart(WIDE, signed=True)
    low, high = band(WIDE)
    assert band_of(axes) == (low.min(), high.max())
    assert axes.get_ylim()[0] < low.min()
    assert len(zero_lines(axes)) == 1


def test_a_mean_below_zero_is_shown_even_if_nobody_says_that_it_may_be():
    axes = chart([-1.0, 2.0, 3.0, 4.0, 5.0])
    assert axes.get_ylim()[0] < -1.0
    assert len(zero_lines(axes)) == 1
    rounding = chart([-1e-15, 2.0, 3.0, 4.0, 5.0])
    assert rounding.get_ylim()[0] == 0.0


def test_on_a_logarithmic_axis_a_band_ends_at_the_lower_end_of_the_axis():
    y_kx = np.array([[30.0, 40.0, 2.0, 50.0, 60.0], [50.0, 40.0, 200.0, 50.0, 60.0]])
    assert band(y_kx)[0].min() < 0.0
    axes = chart(y_kx, logarithmic="y")
    assert axes.get_ylim()[0] == 10.0
    assert band_of(axes)[0] == 10.0
    assert not zero_lines(axes)


def test_nothing_but_zeros_has_an_axis():
    assert chart(np.zeros((3, 5))).get_ylim() == pytest.approx((0.0, 1.06))
    axes = chart(np.zeros((3, 5)), logarithmic="y")
    assert axes.get_ylim()[0] == 0.1
    assert axes.lines[0].get_ydata().tolist() == [0.1] * 5


def test_the_highest_line_does_not_lie_on_the_frame():
    # Found by looking: the best values of car-penalty, all close to one another, hid in the frame.
    for signed in (False, True):
        for y in ([4.6, 4.5, 4.4, 4.4, 4.3], [0.2, 0.1, 0.0, 0.0, 0.0]):
            axes = chart(y, signed=signed)
            low, high = axes.get_ylim()
            assert (high - max(y)) / (high - low) > 0.05
    axes = chart([4.6, 4.5, 4.4, 4.4, 4.3], logarithmic="y")
    assert axes.get_ylim()[1] > 1.05 * 4.6


def test_show_zero_of_negative_numbers():
    _, (axes,) = subplots()
    show_zero(axes, -4.0, -1.0)
    low, high = axes.get_ylim()
    assert low == pytest.approx(-4.24)
    assert high == pytest.approx(0.24)


# Titles, markers and labels.


def test_every_panel_has_a_title():
    for draw in (draw_lines, name_axes):
        assert inspect.signature(draw).parameters["title"].default is inspect.Parameter.empty
    assert chart(WIDE).get_title(loc="left") == "Policy Greedy"


def test_lines_differ_in_dashes_and_markers_and_not_only_in_colour():
    for field in range(3):
        assert len({style[field] for style in LINE_STYLES}) == len(LINE_STYLES)
    axes = chart(*(np.arange(5.0) + i for i in range(6)))
    for style, line in zip(LINE_STYLES, axes.lines, strict=False):
        assert line.get_marker() == style.marker
        assert line.get_markevery() == [0, 1, 2, 3, 4]
        assert not line.get_clip_on()


@pytest.mark.parametrize("scale", ["", "x"])
def test_many_points_have_markers_at_equal_distances_along_the_axis(scale):
    x = np.linspace(1.0, 1000.0, 9991)
    axes = chart(x, x, x=x, logarithmic=scale)
    places = [
        np.log(x[line.get_markevery()]) if scale else x[line.get_markevery()]
        for line in axes.lines[:2]
    ]
    for place in places:
        assert place.size == 8
        gaps = np.diff(place)
        assert gaps.max() < 1.3 * gaps.min()
    # Lines that lie on one another: between two markers of the first there is one of the second.
    merged = np.sort(np.concatenate(places))
    assert set(places[0]) == set(merged[::2])


def test_labels_at_the_ends_stay_apart():
    axes = chart(*(np.full(5, 3.0 + 1e-3 * i) for i in range(4)))
    heights = sorted(text.xyann[1] for text in axes.texts)
    assert np.diff(heights).min() >= 0.062 - 1e-12


# Ticks.


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (-1e-12, "0"),
        (0.1 + 0.2, "0.3"),
        (-0.25, "−0.25"),
        (100_000.0, "100,000"),
        (1e6, "1,000,000"),
        (2.5e6, "2,500,000"),
        (12_345_678.5, "12,345,678.5"),
    ],
)
def test_numbers_have_commas_and_no_exponent(number, text):
    assert write_number(number) == text


def test_powers_of_ten():
    powers = [write_power(p) for p in (1e14, 1e6, 10.0, 1.0, 0.01)]
    assert powers == ["10¹⁴", "10⁶", "10¹", "10⁰", "10⁻²"]


def test_ticks_beyond_a_million_are_written_like_those_below():
    # Found by looking: 800,000 stood beside 1e+06.
    x = np.linspace(0.0, 1.5e6, 50)
    axes = chart(x, x=x)
    assert labels(axes.xaxis) == ["0", "500,000", "1,000,000", "1,500,000"]
    assert labels(axes.yaxis)[-1] == "1,500,000"
    assert all("e" not in text for text in labels(axes.yaxis))


def test_a_logarithmic_axis_has_numbers_or_powers_and_never_both():
    x = np.array([10.0, 300.0, 90_000.0])
    axes = chart([2.0, 1e5, 3e13], x=x, logarithmic="xy")
    assert labels(axes.xaxis) == ["10", "100", "1,000", "10,000", "100,000"]
    million = chart([1.0, 2.0, 3.0], x=np.array([5e3, 1e5, 8e5]), logarithmic="x")
    assert labels(million.xaxis) == ["10,000", "100,000", "1,000,000"]
    assert labels(axes.yaxis)
    assert all(text.startswith("10") and "," not in text for text in labels(axes.yaxis))
    narrow = chart([2.0, 3.0, 9.0], x=np.array([1e6, 3e6, 8e6]), logarithmic="x")
    assert labels(narrow.xaxis) == ["1,000,000", "2,000,000", "5,000,000"]


def test_whole_numbers_have_no_ticks_in_between():
    # Found by looking: budgets 1 to 5 had ticks at 1.5 and 4.5.
    assert labels(chart(WIDE).xaxis) == ["1", "2", "3", "4", "5"]
    assert labels(chart(WIDE, signed=True).xaxis) == ["1", "2", "3", "4", "5"]
    episodes = chart(np.arange(30.0), x=np.arange(30.0))
    assert labels(episodes.xaxis) == ["0", "10", "20", "30"]
    penalties = chart(WIDE, x=FEW / 10.0)
    assert labels(penalties.xaxis) == ["0.1", "0.2", "0.3", "0.4", "0.5"]
    _, (empty,) = subplots()
    format_ticks(empty)
    assert "0.2" in [text.get_text() for text in empty.get_xticklabels()]
