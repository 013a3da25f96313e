"""tools/claims.py: README's table of claims, from verdicts that four blocks share."""

import importlib.util

import pytest

from counsel.experiments.blocks import publish
from counsel.experiments.claim import Claim
from tests.support.paths import ROOT


@pytest.fixture
def tool():
    spec = importlib.util.spec_from_file_location("claims_tool", ROOT / "tools" / "claims.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def published():
    """One claim for each verdict; the second is ours."""
    low, high, mixed = [0.0] * 12, [2.0] * 12, [0.0, 2.0] * 6
    claims = [
        Claim.median("It is low.", "x", low, below=1.0),
        Claim.median("It is low too.", "x", high, below=1.0, source="ours"),
        Claim.median("It is mixed.", "x", mixed, below=1.0),
    ]
    return publish([[{"experiment": "worlds"} | claim.record() for claim in claims]] * 4)


def test_the_summary_counts_verdicts_and_lists_what_does_not_hold(tool):
    text = tool.summary(1.0, published())
    assert "Of the paper's 2 claims, 1 holds, 0 do not hold and 1 cannot be told." in text
    assert "Of our own 1 claims, 0 hold, 1 does not hold and 0 cannot be told." in text
    assert "at the paper's scale" in text
    assert "at 0.01 of the paper's scale" in tool.summary(0.01, published())
    failed, unknown, everything = text.split("<details>")
    assert "1 claims that cannot be told" in unknown
    assert "3 claims in all" in everything
    ours = "| worlds | It is low too. *(ours)* | median 2 [2, 2], 12 runs | **does not hold** |"
    assert ours in failed
    assert ours not in unknown
    assert "| worlds | It is mixed. | median 1 [0, 2], 12 runs | **cannot be told** |" in unknown
    assert "| worlds | It is low. | median 0 [0, 0], 12 runs | holds |" in everything


def test_only_the_text_between_the_marks_is_replaced(tool, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- claims -->\nold\n<!-- end of claims -->\nafter\n")
    tool.replace_between(page, "claims", "new")
    expected = "before\n<!-- claims -->\nnew\n<!-- end of claims -->\nafter\n"
    assert page.read_text() == expected
    with pytest.raises(SystemExit, match="lacks the marks"):
        tool.replace_between(page, "others", "new")
    assert page.read_text() == expected


def test_every_table_of_an_experiment_has_its_place_on_the_page():
    page = (ROOT / "docs" / "reference" / "experiments.md").read_text(encoding="utf-8")
    for name in ("equal-terms", "budget-constants", "beyond", "scaling"):
        assert page.count(f"<!-- {name} -->") == page.count(f"<!-- end of {name} -->") == 1
