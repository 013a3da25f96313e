"""What is not said: comparisons that are not fair, gains that are unknown, parts set beside wholes.

Each was found by a referee who ran the chain on logs of his own.
"""

import json

import numpy as np
import pytest

import counsel
from counsel.logs import evaluate_policy, plan_advice
from counsel.logs.adherence_breakdown import overall
from counsel.logs.evaluate_log import LEAST_SAMPLE, TRUSTED_SAMPLE
from counsel.logs.evidence import Evidence
from counsel.logs.plan_table import ranked_entries
from counsel.logs.read import read_log
from counsel.logs.report_contents import prepare_report
from counsel.planning.reference_policies import never_advise
from counsel.report import findings
from counsel.report.log_page import log_page
from tests.support.later import Later
from tests.support.log_scenarios import BROKEN, WELL_SPECIFIED, Scenario, play

pd = Later("pandas")
pytestmark = pytest.mark.usefixtures("few_draws")


def frame_of(scenario, episodes=1200, seed=0):
    return play(scenario, episodes, np.random.default_rng(seed)).frame(scenario)


def contents_of(frame, **options):
    log = read_log(frame)
    fit = counsel.fit(log, **options)
    plan = plan_advice(fit)
    return prepare_report(plan, Evidence.load(log, fit, np.random.default_rng(0)))


@pytest.mark.slow
def test_episodes_that_cannot_be_compared_say_nothing_of_advice(capsys):
    # It said "+0.139 [+0.047, +0.231] doubly robust" where the truth was −0.052.
    frame = frame_of(BROKEN["failing"])
    fit = counsel.fit(frame)
    evaluation = evaluate_policy(frame, plan_advice(fit, budget=1.0).plan.policy, fitted=fit)
    assert not evaluation.is_fair
    assert evaluation.policy.weighted is evaluation.policy.doubly_robust is None
    assert evaluation.policy.beyond_today.best is None
    assert evaluation.effects == ()
    lines = list(findings.without_model(contents_of(frame)))
    assert lines == [
        "Nothing about advice: episodes with advice may differ from the others in what is not "
        "recorded, so they cannot be compared."
    ]


def half_identified(episodes=800, seed=1):
    """One state is always advised, the other at random; the lift is 0.4 in both."""
    rng = np.random.default_rng(seed)
    rows = []
    for episode in range(episodes):
        for step in range(4):
            state = ("always", "sometimes")[rng.integers(2)]
            advised = state == "always" or rng.random() < 0.5
            habit = 0.3 if state == "always" else 0.5
            walks = (advised and rng.random() < 0.4) or rng.random() < habit
            reward = float(rng.random() < (0.6 if walks else 0.4))
            action = "walk" if walks else "stay"
            rows.append((episode, step, state, "walk" if advised else None, action, reward))
    names = ["episode", "step", "state", "advice", "action", "reward"]
    return pd.DataFrame(rows, columns=names)


def test_what_people_would_do_anyway_is_said_of_the_pieces_where_it_is_known():
    # "62 % … 52 % anyway … moves 34 %": of 3,479, of 1,271 and of 1,271 pieces.
    frame = half_identified()
    fit = counsel.fit(frame)
    by = overall(fit.tally, fit.estimates)
    known = ((frame.state == "sometimes") & frame.advice.notna()).sum()
    assert by.is_partial[0]
    assert by.known[0] == known < by.given[0]
    assert f"{known:,} pieces where silence is on record" in findings.overall_lift(by)
    assert findings.anyway_cell(by, 0).endswith(f" of {known:,}")
    assert "elsewhere it is" in findings.match_rate_details(by)[1]


def test_advice_that_is_kept_has_no_gain_and_does_not_lead():
    # "Advice pays most in “lo”": gain 0, lift 0, criticality ∞.
    fit = counsel.fit(half_identified())
    plan = plan_advice(fit)
    entries = ranked_entries(plan)
    assert [entry.state for entry in entries] == ["sometimes", "always"]
    assert entries[0].is_known
    assert not entries[1].is_known
    assert findings.number_or_unknown(entries[1].gain) == "unknown"
    assert "“sometimes”" in findings.where_advice_pays(entries)
    assert "silence" not in findings.honest_value(counsel.logs.cross_fit.CrossFit.of(
        plan, np.random.default_rng(0)))  # fmt: skip


@pytest.mark.slow
def test_a_page_about_kept_advice_alone_prices_nothing(command, tmp_path):
    frame = frame_of(BROKEN["deterministic"])
    contents = contents_of(frame)
    assert contents.plan.keeps_all
    page = log_page(contents)
    assert "The plan brings what is brought today" in page
    assert "In the model no budget buys more" not in page
    assert "odds up to" not in page
    frame.to_csv(tmp_path / "log.csv", index=False)
    fitted = command("fit", tmp_path / "log.csv", "-o", tmp_path / "m.npz")
    following = fitted.stdout.strip().splitlines()[-1].removeprefix("Next: counsel ")
    done = command(*following.split(), "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert all(cell["criticality"] is None for cell in json.loads(done.stdout)["cells"]
               if cell["advice"] is not None)  # fmt: skip


@pytest.mark.slow
def test_pieces_per_episode_are_those_of_whole_episodes():
    # "3.2791 with 2.82 pieces", of episodes that were cut; evaluate said 4.03.
    scenario = Scenario(cut=0.25, ends=False)
    frame = frame_of(scenario, 1500)
    fit = counsel.fit(frame)
    evaluation = evaluate_policy(frame, plan_advice(fit).plan.policy, fitted=fit)
    assert fit.logged_pieces == pytest.approx(evaluation.logged_pieces, rel=0.02)
    assert fit.logged_pieces > 1.2 * frame.advice.notna().sum() / frame.episode.nunique()
    whole = frame_of(Scenario(ends=False), 1500)
    plain = whole.advice.notna().sum() / whole.episode.nunique()
    assert counsel.fit(whole).logged_pieces == pytest.approx(plain, rel=1e-9)


def test_a_plan_whose_value_is_withheld_has_no_gains_either(command, tmp_path):
    frame = frame_of(BROKEN["nagging"])
    frame.to_csv(tmp_path / "log.csv", index=False)
    command("fit", tmp_path / "log.csv", "-o", tmp_path / "m.npz")
    done = command("plan", tmp_path / "m.npz", "--budget", 1, "-o", tmp_path / "p.csv", "--json")
    record = json.loads(done.stdout)
    assert record["value"] is record["price"] is None
    assert all(cell["gain"] is cell["criticality"] is None for cell in record["cells"])
    written = pd.read_csv(tmp_path / "p.csv")
    assert written[["gain", "lift", "advantage", "criticality"]].isna().all().all()


@pytest.mark.slow
def test_silent_arms_answer_on_the_page_and_where_the_log_refuses(command, tmp_path):
    frame = frame_of(WELL_SPECIFIED["arms"])
    lines = list(findings.without_model(contents_of(frame, unit="episode")))
    assert any(line.startswith("By the episodes without advice, silence brings") for line in lines)
    frame.to_csv(tmp_path / "log.csv", index=False)
    assert any("--unit episode" in note.what for note in counsel.fit(frame).notes)
    command("fit", tmp_path / "log.csv", "--unit", "episode", "-o", tmp_path / "m.npz")
    command("plan", tmp_path / "m.npz", "-o", tmp_path / "p.csv")
    done = command("evaluate", tmp_path / "log.csv", tmp_path / "p.csv", "--model",
                   tmp_path / "m.npz")  # fmt: skip
    assert done.returncode in (0, 2)
    assert "never advise" in done.stdout


@pytest.mark.parametrize(
    ("unit", "drop", "what"),
    [
        ("person", ["person"], "has no column person"),
        ("episode", [], "no episode wholly without advice"),
    ],
)
def test_a_unit_that_the_log_does_not_have_is_refused(unit, drop, what):
    frame = frame_of(Scenario(ends=False), 60).drop(columns=drop)
    spoken = frame[frame.advice.notna()].episode.unique()
    with pytest.raises(counsel.CounselError, match=what):
        counsel.fit(frame[frame.episode.isin(spoken)], unit=unit)


@pytest.mark.slow
def test_a_policy_beside_itself_brings_the_same():
    frame = frame_of(Scenario(), 400)
    fit = counsel.fit(frame)
    policy = plan_advice(fit).plan.policy
    evaluation = evaluate_policy(frame, policy, other=policy, fitted=fit)
    sentence = findings.difference("A", "B", evaluation.beyond_other)
    assert sentence == "A brings the same as B."


def test_advised_blocks_without_silence_show_no_trend():
    # "People listen more as advice accumulates: +0.2 per piece, p = 0.024"; the truth was 0.
    rng = np.random.default_rng(3)
    rows = []
    for episode in range(600):
        condition = ("control", "A", "B")[episode % 3]
        lift = {"control": 0.0, "A": 0.2, "B": 0.7}[condition]
        for step in range(4):
            advice = None if condition == "control" else "act"
            acts = rng.random() < lift or rng.random() < 0.3
            rows.append((episode, step, "s", advice, "act" if acts else "wait", 1.0, condition))
    names = ["episode", "step", "state", "advice", "action", "reward", "condition"]
    fit = counsel.fit(pd.DataFrame(rows, columns=names), columns="context=condition")
    assert fit.over_advice is None


@pytest.mark.slow
def test_few_episodes_give_a_number_and_decide_nothing():
    # evaluate drew conclusions from 50 effective episodes, the report from 200.
    scenario = WELL_SPECIFIED["arms"]
    for episodes, decides in ((300, False), (1200, True)):
        log = read_log(play(scenario, episodes, np.random.default_rng(3)).frame(scenario))
        fit = counsel.fit(log, unit="episode")
        quiet = evaluate_policy(log, never_advise(fit.problem), fitted=fit)
        assert quiet.refusal is None
        assert quiet.policy.effective > LEAST_SAMPLE
        assert (quiet.policy.effective >= TRUSTED_SAMPLE) is decides
        assert quiet.policy.doubly_robust is not None
        assert (quiet.policy.beyond_today.doubly_robust is not None) is decides
        told = " ".join(findings.evaluation_warnings(quiet))
        assert ("only the model compares policies" in told) is not decides
