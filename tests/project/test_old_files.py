"""Files that version 0.1 wrote are read as it read them."""

import csv
import json
import re
import shutil

import numpy as np
import pytest

import counsel
from counsel import Simulator, baselines
from counsel.learning import KL, PaperBonus
from counsel.model.machine import machine_rewards
from counsel.service.client import Client
from tests.support import services
from tests.support.paths import ROOT

pytestmark = pytest.mark.slow

FILES = ROOT / "tests" / "project" / "files_of_0_1"
NUMBER = re.compile(r"-?\d+(\.\d+)?(e-?\d+)?")
EXPECTED = json.loads((FILES / "expected.json").read_text(encoding="utf-8"))

LATER = {"always_low", "always_high"}
"""Fields of answers that version 0.1 did not have."""

LEARNERS = {
    "ucb-ad-kl": lambda p, rng: counsel.UCBAD(
        p.without_adherence(), bound=KL(delta=0.1), penalty=0.1
    ),
    "ucb-ad-paper": lambda p, rng: counsel.UCBAD(
        p.without_adherence(), bound=PaperBonus(), budget=0.5, rng=rng
    ),
    "thompson": lambda p, rng: counsel.Thompson(p.without_adherence(), rng=rng),
    "rfe": lambda p, rng: counsel.RFE(p.shape, rng=rng, penalty=0.1),
    "structured": lambda p, rng: counsel.Structured(p.shape, rng=rng, reward=p.mdp.reward),
    "ucbvi": lambda p, rng: baselines.UCBVI(
        p.shape, rng=rng, reward=machine_rewards(p), episodes=100
    ),
    "euler": lambda p, rng: baselines.EULER(p.shape, rng=rng, reward=None, episodes=100),
    "q-learning": lambda p, rng: baselines.QLearning(
        p.shape, rng=rng, reward=machine_rewards(p), episodes=100
    ),
    "rf-express": lambda p, rng: baselines.RFExpress(p.shape, rng=rng, reward=None),
    "ucfh": lambda p, rng: baselines.UCFH(p.shape, rng=rng, reward=machine_rewards(p)),
    "uc-cfh": lambda p, rng: baselines.UCCFH(
        p.shape, rng=rng, reward=machine_rewards(p), budget=1.0
    ),
}


@pytest.fixture(scope="module")
def drawn():
    return counsel.load(FILES / "problem-drawn.npz")


@pytest.mark.parametrize("name", EXPECTED["problems"])
def test_problems_load(name):
    problem, expected = counsel.load(FILES / f"problem-{name}.npz"), EXPECTED["problems"][name]
    assert problem.horizon == expected["horizon"]
    assert list(problem.mdp.state_labels)[:4] == expected["states"]
    assert counsel.solve(problem).value == pytest.approx(expected["value"], rel=1e-12)
    count = counsel.solve(problem, penalty=0.05).advice_count
    assert count == pytest.approx(expected["count"], rel=1e-12)


@pytest.mark.parametrize("name", EXPECTED["policies"])
def test_policies_load(name, drawn, tmp_path):
    policy, expected = counsel.load_policy(FILES / f"policy-{name}.npz"), EXPECTED["policies"][name]
    evaluation = counsel.evaluate(drawn, policy)
    assert evaluation.value == pytest.approx(expected["value"], rel=1e-12)
    assert evaluation.advice_count == pytest.approx(expected["count"], rel=1e-12)
    # As a table a person can read it has stayed the same, too.
    counsel.save_policy(policy, tmp_path / "policy.csv", problem=drawn)
    assert (tmp_path / "policy.csv").read_text() == (FILES / f"policy-{name}.csv").read_text()


@pytest.mark.parametrize("name", EXPECTED["learners"])
def test_learners_resume_as_if_nothing_had_happened(name, drawn):
    expected = EXPECTED["learners"][name]
    learner = LEARNERS[name](drawn, np.random.default_rng(1))
    rng, record = counsel.learning.resume(learner, FILES / f"learner-{name}.npz")
    assert (record.episode, record.regret) == (expected["episode"], expected["regret"])
    *_, last = counsel.learn(learner, Simulator(drawn), episodes=40, rng=rng, after=record)
    assert last.regret == pytest.approx(expected["later"], rel=1e-9)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_runs_resume(kind, command, tmp_path):
    shutil.copytree(FILES / f"run-{kind}", tmp_path / "run")
    shutil.copy(FILES / "problem-drawn.npz", tmp_path)
    ended = command("learn", "--resume", "--episodes", "80", "-o", "run", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    rows = (tmp_path / "run" / "record.csv").read_text().splitlines()
    assert [row.split(",")[0] for row in rows[1:]] == [str(n) for n in range(1, 81)]
    assert not (tmp_path / "run" / "record.parquet").exists()


def read_table(path):
    """Return the rows of a CSV file; what is a number becomes one."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [
        {name: float(text) if NUMBER.fullmatch(text) else text for name, text in row.items()}
        for row in rows
    ]


def test_models_of_logs_load_and_judge_the_plan_that_was_made_on_them(command, tmp_path):
    for name in ("ward.csv", "ward.npz", "ward-plan.csv"):
        shutil.copy(FILES / name, tmp_path)
    ended = command("plan", "ward.npz", "--budget", "1", "-o", "again.csv", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    plan, again = (read_table(tmp_path / name) for name in ("ward-plan.csv", "again.csv"))
    assert len(plan) == len(again) > 20
    for old, new in zip(plan, again, strict=True):
        # The order of sums has changed since: numbers may differ in their last digit.
        assert new.keys() == {*old.keys(), "model"}
        for name, value in old.items():
            same = pytest.approx(value, rel=1e-12, abs=0.0) if isinstance(value, float) else value
            assert new[name] == same
    ended = command("evaluate", "ward.csv", "ward-plan.csv", "--model-only", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr


def without_later(answer):
    """Return an answer without the fields that version 0.1 did not have."""
    if isinstance(answer, list):
        return [without_later(part) for part in answer]
    if isinstance(answer, dict):
        return {name: part for name, part in answer.items() if name not in LATER}
    return answer


def test_a_database_is_served_on(tmp_path):
    shutil.copy(FILES / "service.db", tmp_path / "service.db")
    expected = EXPECTED["service"]
    with services.serving(tmp_path / "service.db") as address, Client(address) as client:
        advisers = client.advisers()
        assert [adviser["name"] for adviser in advisers] == expected["advisers"]
        later = {"explore": 0.0, "schedule": {}, "memory_across": "episode", "shared_limit": None}
        old = [settings | later for settings in expected["settings"]]
        assert [adviser["settings"] for adviser in advisers] == old
        ward, drawn = (adviser["id"] for adviser in advisers)
        log, old_log = (
            list(csv.reader(text.splitlines()))
            for text in (client.log(ward).decode(), expected["log"])
        )
        later_columns = len(old_log[0])  # the version of an outcome, and what was said about it
        assert [row[:later_columns] for row in log] == old_log
        assert [row[later_columns:] for row in log[1:]] == [["1", "", ""]] * (len(log) - 1)
        assert client.person("ann") == expected["person"]
        summary = client.summary(ward)
        # All but what rests on the newest plan, which is made in the background.
        for name in expected["summary"].keys() - {"where", "frontier", "worth"}:
            assert without_later(summary[name]) == expected["summary"][name], name
        # The episode that was open goes on.
        client.report(expected["open_advice"], "x", reward=1.0)
        assert client.advise(expected["open_episode"], 1, "a")["id"]
        client.end(expected["open_episode"])
        assert client.summary(drawn)["episodes"] == 1
