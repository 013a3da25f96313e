"""Numbers as text."""

import pytest

from counsel.report.number_format import p_value_text, signed


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.013, "+0.013"), (-0.0000962, "-0.00010"), (0.0, "+0"), (-1.24, "-1.2"), (3e-9, "+0.00000")],
)
def test_a_small_difference_has_no_exponent(number, text):
    # A heading said "95 % interval -9.6e-05 to +0.026".
    assert signed(number) == text


def test_a_tiny_p_value_is_a_bound():
    assert [p_value_text(p) for p in (0.034, 0.0009)] == ["p = 0.034", "p < 0.001"]
