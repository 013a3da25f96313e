"""tools/claims.py: the claims in README and on their page, from verdicts that four blocks share."""

import importlib.util
import json
import re

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
    ours = "| worlds | It is low too. *(ours)* | median 2 [2, 2], 12 runs | **does not hold** |"
    assert text.count("| worlds |") == 1
    assert ours in text
    _, failed, unknown, held = tool.by_verdict(published()).split("## 1 claims: ")
    assert ours in failed
    assert "| worlds | It is mixed. | median 1 [0, 2], 12 runs | **cannot be told** |" in unknown
    assert "| worlds | It is low. | median 0 [0, 0], 12 runs | holds |" in held


def test_readme_and_the_page_of_claims_show_the_verdicts_on_record(tool):
    published = json.loads(tool.VERDICTS.read_text(encoding="utf-8"))
    claims = published["claims"]
    assert tool.summary(published["scale"], claims) in (ROOT / "README.md").read_text("utf-8")
    assert tool.by_verdict(claims) in tool.ALL_CLAIMS.read_text(encoding="utf-8")


def test_experiments_that_were_not_repeated_keep_their_verdicts(tool):
    def claims(experiment, text):
        return {"scale": 1, "claims": [{"experiment": experiment, "claim": text}]}

    old = {"scale": 1, "claims": []}
    for experiment in ("frontier", "misjudged", "scaling"):
        old["claims"] += claims(experiment, "old")["claims"]
    both = tool.merged(old, claims("misjudged", "new"))
    assert [(c["experiment"], c["claim"]) for c in both] == [
        ("frontier", "old"),
        ("misjudged", "new"),
        ("scaling", "old"),
    ]
    with pytest.raises(SystemExit, match="scale"):
        tool.merged(old, claims("misjudged", "new") | {"scale": 0.1})


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
    for name in ("equal-terms", "regret-adherence", "budget-constants", "beyond", "scaling"):
        assert page.count(f"<!-- {name} -->") == page.count(f"<!-- end of {name} -->") == 1


TABLE = """<!-- speed -->
| who | map | median | mean |
| --- | --- | --- | --- |
| Ann | random | 1,280 [1,100, 1,400] | 3 |
| Ann | shipped | 12.5 | 4 |
<!-- end of speed -->"""


def test_numbers_in_sentences_are_those_of_the_cells_that_they_name(tool):
    text = "It has 7<!-- speed; Ann; random; median --> and 8.25<!-- speed; shipped; mean -->."
    expected = "It has 1,280<!-- speed; Ann; random; median --> and 4<!-- speed; shipped; mean -->."
    assert tool.quote_numbers(text, TABLE) == expected
    assert tool.quote_numbers(expected, TABLE) == expected


@pytest.mark.parametrize(
    ("mark", "fault"),
    [
        ("slow; Ann; random; median", "names no table"),
        ("speed; Ann; random; mode", "names no table of experiments.md with that column"),
        ("speed; Ann; median", "fits 2 rows"),
        ("speed; Bob; median", "fits 0 rows"),
    ],
)
def test_a_mark_that_names_no_single_cell_is_refused(tool, mark, fault):
    with pytest.raises(SystemExit, match=fault):
        tool.quote_numbers(f"It has 7<!-- {mark} -->.", TABLE)


def test_every_number_in_the_pages_is_that_of_its_cell(tool):
    tables = tool.TABLES.read_text(encoding="utf-8")
    quoted = 0
    for page in tool.PAGES:
        text = page.read_text(encoding="utf-8")
        assert tool.quote_numbers(text, tables) == text, page.name
        quoted += len(tool.QUOTED.findall(text))
    assert quoted >= 20


def sentences(text):
    """The text of a page without code, formulas, tables, headings and marked numbers."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    text = re.sub(r"`[^`]*`|\$[^$]*\$", "", text)
    lines = [line for line in text.splitlines() if not line.startswith(("|", "#"))]
    return re.sub(r"[\d.,−]*\d<!-- .*? -->|<!-- .*? -->", "", " ".join(lines))


def test_no_sentence_about_the_experiments_has_a_result_without_a_mark(tool):
    settings = r"[θβδεD] = [\d.]+|(every|and) 1,000|[12]0,000 (episodes|games)"
    for page in tool.PAGES[:2]:
        text = re.sub(settings, "", sentences(page.read_text(encoding="utf-8")))
        assert not re.findall(r"\S*\d+\.\d+\S*|\S*\d{3,}\S*", text), page.name
