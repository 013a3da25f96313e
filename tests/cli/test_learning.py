"""`counsel learn`: the folder it writes, and resuming a run."""

import csv
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import psutil
import pytest

import counsel
from counsel.drawing import canvas
from counsel.drawing.regret import draw_learning
from counsel.runs import run as runs
from counsel.runs.algorithms import ALGORITHMS
from counsel.runs.run import run
from counsel.runs.spec import Spec
from counsel.worlds import make
from tests.support.processes import started
from tests.support.waiting import PATIENCE, until, until_it_worked

FILES = ["learner.npz", "manifest.json", "policy.csv", "policy.npz", "record.csv", "regret.png"]
COUNSEL = [sys.executable, "-c", "from counsel.cli import main; main()"]
NEEDS = {
    "rfe-beta": ["--penalty", "0.2"],
    "rfe-cmdp": ["--budget", "1"],
    "uc-cfh": ["--budget", "1", "--known-support"],
}


@pytest.fixture
def no_picture(monkeypatch):
    """Draw no regret.png: it takes longer than a short run."""
    monkeypatch.setattr(runs, "find_spec", lambda name: None)


def rows(folder):
    with (folder / "record.csv").open(newline="") as file:
        return [{k: float(v) for k, v in row.items()} for row in csv.DictReader(file)]


def same_run(one, other):
    """Whether two folders hold the same run, but for the wall time."""
    for a, b in zip(rows(one), rows(other), strict=True):
        assert {**a, "seconds": 0} == {**b, "seconds": 0}
    assert (one / "policy.csv").read_bytes() == (other / "policy.csv").read_bytes()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_writes_its_folder(algorithm, command, tmp_path, monkeypatch):
    monkeypatch.setattr(canvas, "PRINT_DOTS", 30)  # a small picture takes less time
    world = "flappy-bird-budget/greedy"
    words = ("--algorithm", algorithm, "--episodes", "400", *NEEDS.get(algorithm, []))
    done = command("learn", world, *words, "-o", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = done.stdout
    folder = tmp_path / "out"
    assert sorted(path.name for path in folder.iterdir()) == FILES
    for name in FILES:
        assert f"out{os.sep}{name}" in said
    assert "After 400 episodes" in said
    assert said.splitlines()[-1].startswith("Next: counsel play-out")
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["settings"]["algorithm"] == algorithm
    assert manifest["settings"]["seed"] == 0
    assert manifest["result"]["finished"]
    assert {"counsel", "numpy", "numba", "python"} <= set(manifest["versions"])
    last = rows(folder)[-1]
    assert last["episode"] == 400
    assert manifest["result"]["last"] == last
    # The policy on disk is the one that was judged.
    problem = make(world)
    worth = counsel.evaluate(problem, counsel.load_policy(folder / "policy.npz"))
    cost = manifest["settings"]["penalty"] or 0.0
    assert worth.value - cost * worth.advice_count == pytest.approx(manifest["result"]["value"])


def test_burning_in_teaches_before_anything_is_charged():
    world = "flappy-bird-budget/greedy"
    problem, ends = make(world), {}
    for burn_in in (None, 20_000):
        spec = Spec(world=world, algorithm="euler", episodes=500, scale=0.01, burn_in=burn_in)
        ends[burn_in] = run(spec, problem).records[-1]
        assert ends[burn_in].episode == 500
        assert run(spec, problem).records[-1].regret == ends[burn_in].regret
    assert ends[20_000].regret < 0.5 * ends[None].regret


def test_the_rule_of_phases_can_be_asked_for():
    spec = Spec(world="night-shift", algorithm="ucfh", episodes=100, every="phase")
    learner, _ = spec.build(make("night-shift"))
    assert learner.phases == counsel.baselines.Phases()
    result = run(spec, make("night-shift"))
    gaps = {record.value_gap for record in result.records}
    assert len(gaps) == 1  # nothing is learnt


@pytest.mark.usefixtures("no_picture")
def test_the_records_are_those_of_the_library(tmp_path):
    problem = make("flappy-bird/safe")
    spec = Spec(world="flappy-bird/safe", algorithm="ucb-ad", episodes=3000, penalty=0.3, seed=5)
    result = run(spec, problem, folder=tmp_path)
    _, play = np.random.default_rng(5).spawn(2)
    learner = counsel.UCBAD(problem.without_adherence(), penalty=0.3)
    straight = list(
        counsel.learn(learner, counsel.Simulator(problem), episodes=3000, records=1000, rng=play)
    )
    assert [r.regret for r in result.records] == [r.regret for r in straight]
    assert len(result.records) == 1000
    best = counsel.solve(problem, penalty=0.3)
    assert result.best == pytest.approx(best.penalised_value)
    np.testing.assert_array_equal(result.matches[1].sum(), learner.given.sum())


@pytest.mark.usefixtures("no_picture")
@pytest.mark.parametrize(
    ("algorithm", "options"),
    [
        ("ucb-ad", {}),
        ("ucb-ad", {"unknown_rewards": True}),  # the plan used to come back without the rewards
        ("ucb-ad", {"may_repel": True}),  # … or without the lower ends
        ("ucb-ad", {"budget": 1.0}),
        ("ucb-ad", {"unknown_rewards": True, "random_rewards": True}),
        ("thompson", {}),
        ("structured", {}),
        ("structured", {"unknown_rewards": True, "random_rewards": True}),
        ("rfe-ad", {}),
    ],
)
def test_a_run_that_was_stopped_goes_on_as_if_nothing_had_happened(algorithm, options, tmp_path):
    world = "flappy-bird-budget/greedy"
    spec = Spec(world=world, algorithm=algorithm, episodes=1500, every=50, seed=2, **options)
    problem = make(world)
    run(spec, problem, folder=tmp_path / "straight")
    seen = 0

    def stop_soon(record):
        nonlocal seen
        seen = record.episode
        if record.episode >= 500:
            os.kill(os.getpid(), signal.SIGINT)

    halved = run(spec, problem, folder=tmp_path / "halved", show=stop_soon)
    assert not halved.finished
    assert 500 <= seen < 1500
    manifest = json.loads((tmp_path / "halved" / "manifest.json").read_text())
    assert not manifest["result"]["finished"]
    whole = run(spec, problem, folder=tmp_path / "halved", resume=True)
    assert whole.finished
    same_run(tmp_path / "straight", tmp_path / "halved")


@pytest.mark.slow
def test_ctrl_c_on_the_command_line_keeps_the_run(tmp_path):
    words = ["flappy-bird/safe", "--episodes", "50000000", "-o", "out"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    manifest = tmp_path / "out" / "manifest.json"
    with started([*COUNSEL, "learn", *words], cwd=tmp_path, **pipes) as process:
        until(lambda: manifest.exists() or process.poll() is not None)
        until_it_worked(psutil.Process(process.pid), 1.0)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert said.splitlines()[-1] == "Next: counsel learn -o out --resume"
    assert json.loads(manifest.read_text())["result"]["finished"] is False
    assert rows(tmp_path / "out")[-1]["episode"] < 50_000_000


@pytest.mark.usefixtures("no_picture")
def test_a_finished_run_can_be_made_longer(tmp_path):
    problem = make("flappy-bird/safe")
    spec = Spec(world="flappy-bird/safe", algorithm="ucb-ad", episodes=1000, every=10)
    run(spec, problem, folder=tmp_path / "grown")
    longer = replace(spec, episodes=2000)
    grown = run(longer, problem, folder=tmp_path / "grown", resume=True)
    straight = run(longer, problem)
    assert grown.records[-1].episode == 2000
    assert grown.records[-1].regret == straight.records[-1].regret


@pytest.mark.slow
@pytest.mark.usefixtures("no_picture")
def test_a_crash_costs_no_more_than_since_the_last_saving(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "SAVE_EVERY", 0.0)
    problem = make("flappy-bird/safe")
    spec = Spec(world="flappy-bird/safe", algorithm="ucb-ad", episodes=1000, every=10)
    run(spec, problem, folder=tmp_path / "straight")

    class Crash(Exception):
        pass

    def crash(record):
        if record.episode >= 400:
            raise Crash

    with pytest.raises(Crash):
        run(spec, problem, folder=tmp_path / "crashed", show=crash)
    assert rows(tmp_path / "crashed")[-1]["episode"] >= 390
    run(spec, problem, folder=tmp_path / "crashed", resume=True)
    same_run(tmp_path / "straight", tmp_path / "crashed")


@pytest.mark.slow
def test_the_stopping_rule_ends_a_run():
    mdp = counsel.MDP([[0, 0]], [[0.0, 1.0]], horizon=1)
    problem = counsel.AdviceProblem(mdp, counsel.Human([[0.7, 0.3]], [0.9, 0.6]))
    spec = Spec(
        world="one.npz",
        algorithm="structured",
        episodes=10**7,
        every=10_000,
        epsilon=1.0,
        delta=0.1,
    )
    result = run(spec, problem)
    assert result.stopping_rule_fired
    assert result.finished
    assert result.records[-1].episode < 10**7
    assert result.best - result.value <= 1.0


def test_json_is_the_same_result(command, tmp_path):
    words = ("night-shift", "--episodes", "300", "--every", "doubling", "--share", "all")
    told = json.loads(command("learn", *words, "--json", cwd=tmp_path).stdout)
    result = run(
        Spec(world="night-shift", algorithm="ucb-ad", episodes=300, every="doubling", share="all"),
        make("night-shift"),
    )
    assert told["value"] == result.value
    assert [r["regret"] for r in told["records"]] == [r.regret for r in result.records]
    assert told["heard"] is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["--algorithm", "magic"], "algorithm is 'magic'; it must be one of ucb-ad"),
        (["--bound", "theory", "--algorithm", "thompson"], "bound goes with ucb-ad, not with"),
        (["--algorithm", "rfe-beta"], "rfe-beta needs a penalty"),
        (["--algorithm", "rfe-cmdp"], "rfe-cmdp needs a budget"),
        (["--algorithm", "rfe-ad", "--penalty", "1"], "penalty goes with"),
        (["--share", "some"], "share is 'some'"),
        (["--every", "0"], "every must be a whole number of at least 1"),
        (["--every", "often"], "every is 'often'; give a whole number, doubling or phase"),
        (["--budget", "1", "--penalty", "2"], "one or the other"),
        (["--bound", "theory", "--delta", "0"], "delta is 0"),
        (["--bound", "paper", "--delta", "0.1"], "no delta"),
        (["--scale", "2"], "scale goes with the paper's bonus"),
        (["--may-repel", "--budget", "1"], "not with a budget"),
        (["--episodes", "0"], "episodes must be a whole number of at least 1"),
        (["--seed", "-1"], "seed must be a whole number of at least 0"),
        (["--resume"], "give it with -o DIR"),
        (["--penalty", "0", "--budget", "1"], "one or the other"),
        (["--algorithm", "rfe-ad", "--budget", "0"], "budget goes with"),
        (["--every", "²"], "every is '²'"),
        (["-o", "mine"], "policy.csv already exists"),
        (["--resume", "-o", "other", "--seed", "8"], "holds a run with seed 7, not 8"),
        (["--resume", "-o", "other"], "another night-shift: it has changed"),
        (["--resume", "-o", "nowhere"], "nowhere contains no run to resume"),
        (["-o", "file"], "cannot create the folder file"),
        (["-o", "other"], "other holds a run with episodes 9, not 20000"),
        (["-o", "broken"], "not the manifest of a run"),
        (["--burn-in", "9"], "burn_in goes with euler"),
        (["--algorithm", "euler", "--burn-in", "0"], "burn_in must be a whole number of at least"),
        (["--every", "phase"], "every phase goes with ucfh, uc-cfh, not with ucb-ad"),
        (["--algorithm", "euler", "--known-support"], "known_support goes with ucfh, uc-cfh"),
        (["--algorithm", "uc-cfh"], "uc-cfh needs a budget"),
        (["--algorithm", "uc-cfh", "--budget", "1", "--penalty", "1"], "penalty goes with"),
        (["--algorithm", "never", "--scale", "1"], "scale goes with"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line_and_nothing_is_left(
    words, fault, command, tmp_path
):
    (tmp_path / "file").write_text("")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "manifest.json").write_text("{")
    (tmp_path / "other").mkdir()
    spec = Spec(world="night-shift", algorithm="ucb-ad", episodes=9, seed=7)
    told = {"settings": spec.settings(), "problem": ""}
    (tmp_path / "other" / "manifest.json").write_text(json.dumps(told))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "policy.csv").write_text("mine")
    before = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*"))
    done = command("learn", "night-shift", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("counsel: ")
    assert len(done.stderr.splitlines()) == 1
    assert fault in done.stderr
    assert sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*")) == before


def test_the_picture_needs_something_to_draw_and_shows_what_was_found():
    with pytest.raises(counsel.CounselError, match="records is empty"):
        draw_learning([])
    steps = [counsel.learning.Record(10 * i, 1.0 / i, float(i), 2.0, 0.1) for i in range(1, 9)]
    figure = draw_learning(steps, title="a run")
    texts = [text.get_text() for text in figure.texts]
    assert texts == ["Learning cost 8 over 80 episodes, half of it by episode 40", "a run"]
    above, below = figure.axes
    np.testing.assert_array_equal(above.lines[0].get_ydata(), range(9))
    assert above.get_ylim()[0] == below.get_ylim()[0] == 0.0
    # A large regret is written like other numbers, and the title stays on the picture.
    figure = draw_learning([counsel.learning.Record(1_600_000, 0.5, 1_234_567.0, 2.0, 0.1)])
    figure.draw_without_rendering()
    (title,) = figure.texts
    assert title.get_text().startswith("Learning cost 1,235,000 over 1,600,000 episodes, half of")
    assert title.get_window_extent().x1 < figure.bbox.x1
    assert "1,000,000" in [text.get_text() for text in figure.axes[0].get_yticklabels()]
    best = draw_learning([counsel.learning.Record(1, 0.0, 0.0, 2.0, 0.1)])
    assert best.texts[0].get_text() == "The advice was the best from the start"


@pytest.mark.usefixtures("no_picture")
def test_a_longer_run_is_not_written_over_and_fewer_episodes_are_refused(tmp_path):
    problem, spec = make("night-shift"), Spec(world="night-shift", algorithm="ucb-ad", episodes=300)
    run(spec, problem, folder=tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    shorter = replace(spec, episodes=100)
    with pytest.raises(counsel.CounselError, match="episodes 300, not 100"):
        run(shorter, problem, folder=tmp_path)
    with pytest.raises(counsel.CounselError, match="already holds 300 episodes"):
        run(shorter, problem, folder=tmp_path, resume=True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    theory = replace(spec, bound="theory")
    run(theory, problem, folder=tmp_path / "theory")
    with pytest.raises(counsel.CounselError, match="episodes 300, not 500"):
        run(replace(theory, episodes=500), problem, folder=tmp_path / "theory", resume=True)
    run(spec, problem, folder=tmp_path)  # the same run once more is the same run


@pytest.mark.usefixtures("no_picture")
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("manifest.json", b'{"settings": []}'),
        ("manifest.json", b"[" * 100_000),
        ("record.csv", b"PAR1"),
        ("record.csv", b'"episode","value_gap","regret","advice_count","seconds"\n20,0.5'),
        ("record.csv", b'"episode","value_gap","regret","advice_count","seconds"\n20,x,1,1,1\n'),
        ("record.csv", b"\xff"),
        ("learner.npz", b""),
    ],
)
def test_a_damaged_folder_is_refused_in_one_sentence(name, content, tmp_path):
    problem, spec = make("night-shift"), Spec(world="night-shift", algorithm="ucb-ad", episodes=30)
    run(spec, problem, folder=tmp_path)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(counsel.CounselError, match=name.replace(".", "[.]")):
        run(replace(spec, episodes=60), problem, folder=tmp_path, resume=True)


@pytest.mark.usefixtures("no_picture")
def test_without_matplotlib_all_but_the_picture_is_written(tmp_path):
    said = []
    spec = Spec(world="night-shift", algorithm="ucb-ad", episodes=30)
    result = run(spec, make("night-shift"), folder=tmp_path, say=said.append)
    assert sorted(path.name for path in result.files) == [n for n in FILES if n != "regret.png"]
    assert "counsel[draw]" in said[0]


def test_a_rule_that_holds_from_the_start_still_plays():
    # Rewards that are all alike leave nothing to learn: the rule fires at the first update.
    mdp = counsel.MDP([[0, 0]], [[1.0, 1.0]], horizon=1)
    problem = counsel.AdviceProblem(mdp, counsel.Human([[0.5, 0.5]], 0.7))
    for algorithm in ("structured", "rfe-ad"):
        spec = Spec(world="one.npz", algorithm=algorithm, episodes=100, epsilon=0.5)
        result = run(spec, problem)
        assert result.records
        assert result.best == result.value == 1.0


def test_a_budget_of_nothing_is_kept_while_learning():
    # What was learnt is wrong about where people get; advice there used to be given uncounted.
    problem = make("night-shift")
    for algorithm in ("rfe-cmdp", "structured", "ucb-ad"):
        spec = Spec(world="night-shift", algorithm=algorithm, episodes=50, budget=0.0)
        assert run(spec, problem).advice_count == 0.0


def test_epsilon_far_beyond_the_rewards_makes_sense():
    shape = make("night-shift").shape
    for epsilon, delta in ((1e9, 0.5), (1e-300, 1e-10)):
        learner = counsel.RFE(shape, rng=np.random.default_rng(0), epsilon=epsilon, delta=delta)
        assert np.isfinite(learner._bonus[1])
        assert learner._bonus[1] > 0.0
