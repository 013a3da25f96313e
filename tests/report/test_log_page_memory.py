"""The report of a log whose people tire: what was compared, and what it is worth to know."""

import numpy as np
import pytest

import counsel
from counsel.logs import plan_advice
from counsel.logs.evidence import Evidence
from counsel.logs.read import read_log
from counsel.logs.report_contents import prepare_report
from counsel.report import findings
from counsel.report.log_charts import fading_chart
from counsel.report.log_page import log_page
from tests.support.few_draws import draw_less
from tests.support.memory_logs import tiring_ward, ward_rows


@pytest.fixture(scope="module")
def contents():
    log = read_log(ward_rows(tiring_ward(0.6), 800, seed=1))
    with pytest.MonkeyPatch.context() as patch:
        draw_less(patch)
        fit = counsel.fit(log, memory="auto")
        evidence = Evidence.load(log, fit, np.random.default_rng(0))
        return prepare_report(plan_advice(fit, budget=1), evidence)


@pytest.mark.slow
def test_the_report_says_that_people_tire_and_what_that_is_worth(contents):
    page = log_page(contents)
    assert "<h2>People tire: lift falls with pieces of advice so far</h2>" in page
    assert "Planned for the memory, advice brings" in page
    assert "id='fading'" in page
    for test in contents.fit.memories.tests:
        assert test.kind.words in page


@pytest.mark.slow
def test_the_chart_has_the_numbers_of_the_fading(contents):
    fading = contents.fit.fading
    chart = fading_chart(fading)
    assert [row[0] for row in chart.rows] == list(fading.kind.labels)
    np.testing.assert_allclose(chart.traces[0]["y"], 100 * fading.factor)
    is_open = [colour != chart.traces[0]["line"]["color"] for colour in
               chart.traces[0]["marker"]["color"]]  # fmt: skip
    assert is_open == (~np.isfinite(fading.high)).tolist()


def test_a_report_without_a_memory_says_nothing_about_one():
    table = ward_rows(tiring_ward(1.0), 60, seed=1)
    fit = counsel.fit(table)
    assert list(findings.memory_findings(fit)) == []
    assert findings.memory_headline(fit) == ""


def test_a_memory_that_was_asked_for_is_no_claim():
    fit = counsel.fit(ward_rows(tiring_ward(1.0), 60, seed=1), memory="refusals=2")
    assert findings.memory_headline(fit) == "How much people listen by refusals in a row"
    (words,) = findings.memory_findings(fit)
    assert words == (
        "The model has a memory of refusals in a row, though no level's lift is clearly below or "
        "above 100 %."
    )
