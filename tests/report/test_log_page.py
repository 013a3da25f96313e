"""The report of a log: true numbers, nothing from outside, labels shown as what they are."""

import html
import json
import re
import subprocess

import numpy as np
import pyarrow.csv
import pytest

import counsel
from counsel.logs.evidence import Evidence
from counsel.logs.plan import plan_advice
from counsel.logs.read import as_log
from counsel.logs.report_contents import choose_budget, prepare_report
from counsel.logs.sensitivity import sensitivity_ranges
from counsel.report.log_charts import NIGHTS
from counsel.report.log_page import log_page
from counsel.worlds.ward import ward_log
from tests.support.few_draws import draw_less
from tests.support.later import Later
from tests.support.paths import REAL_LOG
from tests.support.real_data import real_data
from tests.support.required import program

pd = Later("pandas")

HOSTILE = [
    "</script><script>document.title='taken'</script>",
    "<img src=x onerror=alert(1)>",
    "=1+1",
]


@pytest.fixture(scope="module")
def shifts():
    return ward_log(shifts=1500, rng=np.random.default_rng(1))


@pytest.fixture(scope="module")
def ward(shifts):
    with pytest.MonkeyPatch.context() as patch:
        draw_less(patch)
        return counsel.fit(shifts)


@pytest.fixture(scope="module")
def contents(shifts, ward):
    with pytest.MonkeyPatch.context() as patch:
        draw_less(patch)
        return report_of(shifts, ward, budget=1)


@pytest.fixture(scope="module")
def page(contents):
    return log_page(contents)


def report_of(log, fit=None, budget=None):
    """The report of a log; without a budget, for the one that is chosen where none is given."""
    fit = counsel.fit(log) if fit is None else fit
    plan = plan_advice(fit, budget=choose_budget(fit) if budget is None else budget)
    evidence = Evidence.load(as_log(log, None, None), fit, np.random.default_rng(0))
    return prepare_report(plan, evidence)


def rendered(page, folder):
    """What a browser makes of a page: its document after all scripts have run."""
    browser = program("chromium")
    path = folder / "page.html"
    path.write_text(page, encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"]
    options += ["--disable-background-networking", "--disable-component-update", "--dump-dom"]
    options += [f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=20000"]
    done = subprocess.run(
        [browser, *options, path.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout


def without_plotly(page):
    """The page without the largest of its scripts."""
    scripts = re.findall(r"<script>.*?</script>", page, re.DOTALL)
    return page.replace(max(scripts, key=len), "")


@pytest.mark.slow
def test_the_numbers_of_a_study_are_those_of_the_model(shifts, ward, contents):
    problem, plan = ward.problem, contents.plan.plan
    best = counsel.solve(problem, allow_reverse=False)
    never = counsel.evaluate(
        problem, counsel.Policy.never(horizon=6, n_states=problem.n_states, n_actions=3)
    )
    assert contents.alone.value == pytest.approx(never.value)
    expected = (plan.value - never.value) / (best.value - never.value)
    assert contents.share == pytest.approx(expected)
    rows = shifts.to_pandas()
    assert contents.today.value == pytest.approx(rows.reward.sum() / 1500)
    assert ward.logged_pieces == pytest.approx(rows.advice.notna().sum() / 1500)
    worth = contents.worth
    model = (worth.value.model, worth.beyond_today.model, worth.beyond_silence.model)
    for one in (contents.alone, contents.today, contents.always, *model):
        assert one.low < one.value < one.high
    # Chosen on one half and judged on the other: near what the model says of it, and not above by
    # more than chance.
    assert worth.value.model.value == pytest.approx(plan.value, abs=0.05)
    assert worth.beyond_today.model.value == pytest.approx(
        worth.value.model.value - contents.today.value, abs=0.01
    )


def test_the_frontier_of_a_study_is_the_best_there_is(ward, contents):
    assert (np.diff(contents.value) >= -1e-12).all()
    for i in (5, 20, 35):
        best = counsel.solve(ward.problem, budget=contents.budgets[i], allow_reverse=False).value
        # 200 corners are traced; between them the line lies below the frontier.
        assert contents.value[i] <= best + 1e-9
        assert contents.value[i] == pytest.approx(best, abs=1e-4)


@pytest.mark.slow
@pytest.mark.usefixtures("few_draws")
def test_a_budget_that_is_not_given_keeps_four_fifths(shifts, ward):
    chosen = report_of(shifts, ward)
    pieces = chosen.plan.plan.advice_count
    assert chosen.share >= 0.8
    if pieces > 1.0:
        less = counsel.solve(ward.problem, budget=round(pieces) - 1, allow_reverse=False).value
        best = counsel.solve(ward.problem, allow_reverse=False).value
        assert less - chosen.alone.value < 0.8 * (best - chosen.alone.value)


def test_sensitivity_is_no_range_at_one_and_grows(ward, contents):
    ranges = sensitivity_ranges(ward, contents.plan.plan.policy)
    assert ranges[0].odds == 1.0
    added = contents.plan.plan.value - contents.alone.value
    assert ranges[0].low == pytest.approx(added, rel=1e-6)
    assert ranges[0].high == pytest.approx(added, rel=1e-6)
    lows, highs = [r.low for r in ranges], [r.high for r in ranges]
    assert lows == sorted(lows, reverse=True)
    assert highs == sorted(highs)
    assert lows[-1] < lows[0] < highs[-1]


@pytest.mark.usefixtures("few_draws")
def test_sensitivity_covers_advice_that_went_to_those_who_needed_it_least():
    """Two kinds of people who are not told apart; who is advised depends on the kind."""
    rng = np.random.default_rng(0)
    n = 40_000
    keen = rng.random(n) < 0.5
    habit, lift = np.where(keen, 0.6, 0.4), 0.3
    advised = rng.random(n) < np.where(keen, 0.7, 0.3)
    does = rng.random(n) < np.where(advised, lift + (1.0 - lift) * habit, habit)
    log = pd.DataFrame(
        {
            "episode": np.arange(n),
            "step": 0,
            "state": "s",
            "advice": np.where(advised, "do", None),
            "action": np.where(does, "do", "leave"),
            "reward": does.astype(float),
        }
    )
    fit = counsel.fit(log)
    policy = counsel.Policy(
        [[fit.problem.mdp.action_labels.index("do")] * fit.problem.n_states], n_actions=2
    )
    truth = lift * 0.5  # the lift of all × those who would not have done it
    naive, *_ = ranges = sensitivity_ranges(fit, policy)
    assert naive.low > truth + 0.02, "the assumption is violated enough to matter"
    # The odds of 0.54 (the habit of the advised) and 0.46 differ by a factor of 1.38.
    wide = next(r for r in ranges if r.odds == 1.5)
    assert wide.low < truth < wide.high


def test_a_page_asks_nobody_for_anything(page):
    page = without_plotly(page)
    assert "default-src 'none'" in page
    assert not re.findall(r"""\b(?:src|href)=(?:["'](?!data:|#)|[^"'\s])""", page)
    assert "http" not in page.replace("http-equiv", "")


@pytest.mark.slow
def test_a_page_shows_its_charts_and_finding(page, contents, tmp_path):
    told = rendered(page, tmp_path)
    places = re.findall(r"<div class=.chart[^>]* id=.([a-z-]+)", page)
    assert places == [
        *("criticality", "frontier", "by-advice", "by-state"),
        *("over-time", "over-advice", "people"),
    ]
    drawn = re.findall(r'<div class="chart[^"]*js-plotly-plot[^"]*" id="([a-z-]+)"', told)
    assert drawn == places
    share = f"{100 * contents.share:.0f} % of what unlimited advice is worth"
    assert share in told
    assert f"{contents.gain.value:+.3g}" in told


def test_names_of_people_are_nowhere_on_the_page(page):
    assert "nurse-" not in page


@pytest.mark.slow
@pytest.mark.usefixtures("few_draws")
def test_the_page_says_what_the_log_says_without_the_model():
    # Found by a newcomer: the page was surer of a plan than `counsel evaluate`.
    contents = report_of(ward_log(shifts=8000, rng=np.random.default_rng(0)), budget=1)
    worth = contents.worth
    assert contents.refusal is None
    assert worth.effective > 200.0
    assert contents.gain == worth.beyond_today.model, "it agrees with the episodes, and is surer"
    page = log_page(contents)
    assert f"(effective sample {worth.effective:,.0f} episodes; " in page
    assert f"The plan brings more per episode than today: {contents.gain.value:+.3g} [" in page


@pytest.mark.slow
@pytest.mark.usefixtures("few_draws")
def test_the_page_says_that_a_log_cannot_confirm_its_plan():
    contents = report_of(ward_log(shifts=200, rng=np.random.default_rng(1)), budget=1)
    assert "the effective sample is" in contents.refusal
    page = log_page(contents)
    assert f"cannot be told without the model: {contents.refusal}." in page
    assert "and cannot confirm what it says of the plan" in page


def hostile_log():
    rng = np.random.default_rng(0)
    n = 3000
    advice = rng.choice([*HOSTILE, ""], n)
    action = np.where((advice != "") & (rng.random(n) < 0.5), advice, rng.choice(HOSTILE, n))
    return pd.DataFrame(
        {
            "episode": np.arange(n) // 3,
            "step": np.arange(n) % 3,
            "state": rng.choice(HOSTILE, n),
            "advice": advice,
            "action": action,
            "reward": (action == HOSTILE[1]) * rng.random(n),
            "person": rng.choice(["<i>ann</i>", "bob"], n),
            "timestamp": "2026-01-01T00:00",
        }
    )


@pytest.mark.slow
@pytest.mark.usefixtures("few_draws")
def test_labels_are_shown_as_text_whatever_they_hold(tmp_path):
    page = log_page(report_of(hostile_log(), budget=1))
    told = rendered(page, tmp_path)
    title = re.search(r"<title>(.*?)</title>", told).group(1)
    assert title != "taken"
    assert "<img" not in without_plotly(page)
    assert not re.search(r"<img[^>]*onerror", told)
    assert html.escape(HOSTILE[1]) in page
    assert "%27%3D1%2B1" in page, "a spreadsheet must not take a label for a formula"


@pytest.mark.slow
@pytest.mark.usefixtures("few_draws")
def test_a_log_without_advice_says_so():
    log = ward_log(shifts=50, rng=np.random.default_rng(0)).to_pandas()
    log["advice"] = None
    page = log_page(report_of(log))
    assert "No advice was seen" in page
    assert "The plan gives no advice" in page


@pytest.mark.slow
@pytest.mark.usefixtures("few_draws")
def test_real_people_and_advice_that_was_right_or_wrong():
    log = as_log(real_data(REAL_LOG), None, None)
    found = report_of(log)
    # Alone 47 % are right (the data set's own description); advice that is always right helps.
    assert found.alone.value == pytest.approx(0.47, abs=0.01)
    assert found.worth.beyond_silence.best.low > 0.2
    page = log_page(found)
    assert "The data cannot test whether people who refuse" in page, (
        "two actions cannot test the law"
    )


@pytest.mark.slow
@pytest.mark.usefixtures("few_draws")
def test_the_command_writes_a_page_or_nothing(command, tmp_path):
    log, out = tmp_path / "log.csv", tmp_path / "report.html"
    pyarrow.csv.write_csv(ward_log(shifts=300, rng=np.random.default_rng(0)), log)
    done = command("report", log, "--budget", 1, "--cautious", "-o", out)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Wrote {out}.\nNext: ")
    assert out.read_text(encoding="utf-8").startswith("<!doctype html>")
    for bad in (
        (log, "-o", tmp_path / "report.pdf"),
        (log, "-o", tmp_path / "none" / "report.html"),
        (tmp_path / "none.csv", "-o", tmp_path / "other.html"),
        (log, "--budget", -1, "-o", tmp_path / "other.html"),
        (log, "--budget", 1, "--penalty", 1, "-o", tmp_path / "other.html"),
    ):
        done = command("report", *bad)
        assert done.returncode == 2
        assert done.stderr.startswith("counsel: ")
        assert done.stderr.count("\n") == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log.csv", "report.html"]


def test_every_colour_of_a_chart_has_one_for_the_dark_theme(page):
    assert "@media screen and (prefers-color-scheme: dark)" in page
    figures = json.loads(page.rpartition("const figures = ")[2].partition(", nights = ")[0])
    colours = set(re.findall(r"#[0-9A-Fa-f]{6}|rgba\([^)]*\)", json.dumps(figures)))
    assert len(colours) > 5
    assert colours - {"rgba(0,0,0,0)"} <= set(NIGHTS)
