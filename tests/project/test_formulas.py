"""Formulas of the documentation are drawn as they are meant."""

import sys

import pytest

from tests.support.paths import ROOT

pytest.importorskip("sphinx")
tex2mathml = pytest.importorskip("docutils.utils.math.latex2mathml").tex2mathml


@pytest.fixture
def placed(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    import mathml

    yield lambda formula: "".join(mathml.fix_scripts(tex2mathml(formula)).split())
    sys.modules.pop("mathml", None)


@pytest.mark.parametrize("formula", [r"\bar V_h", r"\hat p_h", r"\bar{V}_{h}", r"\tilde x_h"])
def test_an_index_stands_beside_a_letter_with_an_accent(placed, formula):
    # Docutils draws it below the letter, as it does the limits of a sum.
    drawn = placed(formula)
    assert "munderover" not in drawn
    assert "</mover><mi>h</mi></msub>" in drawn


def test_what_a_brace_says_stands_below_it(placed):
    drawn = placed(r"\underbrace{x}_{\text{gain}}")
    assert drawn.endswith("</munder><mtext>gain</mtext></munder></math>")


@pytest.mark.parametrize("formula", [r"|x|", r"\|x\|", r"\Vert x \Vert"])
def test_two_bars_are_of_one_height(placed, formula):
    # Browsers stretch what opens, and the second bar does not look like something that closes.
    drawn = placed(formula)
    assert drawn.count('<mostretchy="false">') == drawn.count("<mo") == 2


def test_other_formulas_are_left_alone(placed):
    for formula in (r"\sum_a^b x_a", r"\hat p^M_h", r"\max_b W_h", r"\frac{a < b}{c}"):
        assert placed(formula) == "".join(tex2mathml(formula).split())
