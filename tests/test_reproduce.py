"""All experiments end to end at a tiny scale: rows, pictures, claims, workers, clusters."""

import json
import math
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pyarrow.parquet as pq
import pytest
import scipy.stats

import counsel
from counsel.experiments import pool
from counsel.experiments import reproduce as whole
from counsel.experiments.experiment import Size, padded, seeds_of, settings_of
from counsel.experiments.paper import EXPERIMENTS, budget, penalty, regret, scaling
from counsel.experiments.runs import commonest
from counsel.experiments.store import Done, Store, fingerprint
from counsel.report.seeds import band, interval
from counsel.worlds import make

TINY = Size(0.002, 2)
COUNSEL = [sys.executable, "-c", "from counsel.cli import main; main()"]
QUICK = ["regret-safe", "budget-learning", "misjudged"]


def hashes(folder):
    """The rows of every run in a folder."""
    found = {}
    for path in sorted((folder / "runs").rglob("*.parquet")):
        table = pq.read_table(path)
        told = json.loads(table.schema.metadata[b"counsel"])
        rows = {name: table[name].to_numpy() for name in table.column_names}
        assert told["rows"] == fingerprint(rows)
        found[told["id"]] = told["rows"]
    return found


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    folder = tmp_path_factory.mktemp("all")
    return folder, whole.reproduce([], TINY, folder, workers=2)


def test_every_experiment_runs_and_every_file_is_there(everything):
    folder, outcome = everything
    runs = whole.all_runs(whole.chosen([]), TINY)
    assert outcome.done == len(runs)
    assert set(hashes(folder)) == {run.id for run in runs}
    names = {path.name for path in (folder / "figures").iterdir()}
    for expected in (
        "regret-greedy", "regret-safe", "regret-adherence", "value-gap-penalty", "budget-learning",
        "budget-transfer", "trajectories-greedy", "trajectories-safe", "car-regret", "car-penalty",
        "worlds-three-phases", "worlds-budget", "worlds-car", "frontier", "beyond", "misjudged",
        "scaling",
    ):  # fmt: skip
        assert {f"{expected}.png", f"{expected}.svg"} <= names
    claims = json.loads((folder / "claims.json").read_text())
    assert {claim["experiment"] for claim in claims} == set(EXPERIMENTS)
    assert all(isinstance(claim["holds"], bool) for claim in claims)
    assert len(claims) == len(outcome.verdicts)


def test_the_report_is_one_page_that_asks_nobody(everything):
    folder, outcome = everything
    page = (folder / "report.html").read_text()
    assert "<script" not in page
    assert not re.findall(r"""(?:src|href)\s*=\s*['"](?!data:|#)""", page)
    for verdict in outcome.verdicts:
        assert verdict.experiment in page
    assert page.count("<figure") == len(list((folder / "figures").glob("*.svg")))
    assert page.count("holds</td>") + page.count("does not hold</td>") == len(outcome.verdicts)


def test_manifests_say_settings_seed_versions_and_time(everything):
    folder, _ = everything
    path = folder / "runs" / "regret-safe" / "ucb-ad#1.parquet"
    told = json.loads(pq.read_table(path).schema.metadata[b"counsel"])
    assert told["id"] == "regret-safe/ucb-ad#1"
    assert told["settings"]["spec"]["seed"] == 1
    assert told["settings"]["spec"]["bound"] == "paper"
    assert {"counsel", "numpy", "numba", "python"} <= set(told["versions"])
    assert told["seconds"] > 0


def test_finished_runs_are_skipped_and_figures_can_be_drawn_alone(everything):
    folder, first = everything
    again = whole.reproduce(["regret-safe"], TINY, folder, workers=1)
    assert again.done == 0
    # What was there before is still published.
    assert [v.experiment for v in again.verdicts] == [v.experiment for v in first.verdicts]
    files = {path: path.read_bytes() for path in (folder / "figures").iterdir()}
    drawn = whole.redraw(folder)
    assert {v.claim.text: v.claim.holds for v in drawn.verdicts} == {
        v.claim.text: v.claim.holds for v in first.verdicts
    }
    for path, data in files.items():
        assert path.read_bytes() == data


def test_ids_are_for_ever_and_mean_one_thing():
    seen = {}
    for experiment in EXPERIMENTS.values():
        for run in experiment.runs(Size()):
            assert re.fullmatch(r"[a-z-]+/[a-z0-9.x-]+#\d+", run.id)
            assert seen.setdefault(run.id, settings_of(run)) == settings_of(run)
    # The paper's own scale, for those whose numbers it prints.
    assert seen["regret-greedy/ucb-ad#0"]["spec"]["episodes"] == 800_000
    assert seen["regret-greedy/ucb-ad#0"]["spec"]["every"] == 5000
    assert seen["regret-safe/euler#4"]["spec"]["episodes"] == 200_000
    assert seen["regret-safe/euler#4"]["spec"]["burn_in"] == 300_000
    assert seen["budget-learning/uc-cfh#0"]["episodes"] == 1500
    assert seen["budget-learning/uc-cfh#0"]["every"] == 50
    assert seen["car-regret/rfe-ad#0"]["episodes"] == 400_000
    assert seen["car-regret/rfe-ad#0"]["every"] == 8000
    assert seen["car-regret/rfe-ad#0"]["scale"] == 0.1


@pytest.mark.parametrize("workers", [1, 2])
def test_rows_do_not_depend_on_the_workers(everything, workers, tmp_path):
    whole.reproduce(QUICK, TINY, tmp_path / "few", workers=workers)
    few, all_of = hashes(tmp_path / "few"), hashes(everything[0])
    assert few == {key: all_of[key] for key in few}


@pytest.fixture
def cluster():
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as made:
        yield made


def test_rows_do_not_depend_on_the_cluster(everything, cluster, tmp_path):
    outcome = whole.reproduce(QUICK, TINY, tmp_path / "few", cluster=cluster.scheduler_address)
    assert outcome.skipped == 0
    few, all_of = hashes(tmp_path / "few"), hashes(everything[0])
    assert few == {key: all_of[key] for key in few}


def test_a_worker_of_the_cluster_that_is_killed_loses_nothing(everything, cluster, tmp_path):
    killed = threading.Event()

    def kill_one(run, done):
        if not killed.is_set():
            killed.set()
            victim = next(iter(cluster.workers.values()))
            os.kill(victim.process.process.pid, signal.SIGKILL)

    outcome = whole.reproduce(
        QUICK, TINY, tmp_path / "few", cluster=cluster.scheduler_address, ended=kill_one
    )
    assert killed.is_set()
    few, all_of = hashes(tmp_path / "few"), hashes(everything[0])
    assert outcome.done == len(few)
    assert few == {key: all_of[key] for key in few}


def test_a_process_that_is_killed_loses_nothing(everything, tmp_path, monkeypatch):
    monkeypatch.setattr(pool, "_settle", _die_once)
    monkeypatch.setenv("COUNSEL_TEST_ONCE", str(tmp_path / "died"))
    whole.reproduce(["budget-learning"], TINY, tmp_path / "few", workers=2)
    assert (tmp_path / "died").exists()
    few, all_of = hashes(tmp_path / "few"), hashes(everything[0])
    assert few == {key: all_of[key] for key in few}


def _die_once():
    """Kill the first process of a pool a moment after it began."""
    mark = os.environ["COUNSEL_TEST_ONCE"]
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()


def test_a_reproduction_killed_in_the_middle_goes_on_and_ends_alike(tmp_path):
    words = ["reproduce", "regret-safe", "budget-learning", "--scale", "0.02", "--seeds", "2"]
    straight = subprocess.run(
        [*COUNSEL, *words, "--workers", "2", "-o", "straight"],
        cwd=tmp_path, capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    assert "claims of the paper hold" in straight.stdout
    assert straight.stdout.splitlines()[-1].startswith("Next: open ")
    begun = subprocess.Popen(
        [*COUNSEL, *words, "--workers", "2", "-o", "broken"],
        cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    files = tmp_path / "broken" / "runs"
    deadline = time.monotonic() + 120
    while not list(files.rglob("*.parquet")) and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(begun.pid, signal.SIGKILL)
    begun.wait()
    done = len(list(files.rglob("*.parquet")))
    assert not (tmp_path / "broken" / "report.html").exists() or done == 16
    again = subprocess.run(
        [*COUNSEL, *words, "--workers", "2", "-o", "broken", "--json"],
        cwd=tmp_path, capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    assert json.loads(again.stdout)["skipped"] == done
    assert hashes(tmp_path / "broken") == hashes(tmp_path / "straight")
    assert (tmp_path / "broken" / "claims.json").read_text() == (
        tmp_path / "straight" / "claims.json"
    ).read_text()


def test_ctrl_c_stops_at_once_and_leaves_what_is_done(tmp_path):
    words = ["reproduce", "regret-safe", "--scale", "0.5", "--seeds", "3", "--workers", "2"]
    begun = subprocess.Popen(
        [*COUNSEL, *words, "-o", "out"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while not list((tmp_path / "out" / "runs").rglob("*.parquet")) and time.monotonic() < deadline:
        time.sleep(0.02)
    begun.send_signal(signal.SIGINT)
    _, told = begun.communicate(timeout=30)
    assert begun.returncode == 130
    assert "Traceback" not in told
    assert "go on" in told
    assert hashes(tmp_path / "out")


@pytest.mark.parametrize("fault", ["cut", "flipped", "empty", "another's", "other settings"])
def test_a_damaged_file_is_found_and_only_that_run_is_done_again(everything, fault, tmp_path):
    folder = tmp_path / "few"
    whole.reproduce(["budget-learning"], TINY, folder, workers=1)
    before = hashes(folder)
    victim = folder / "runs" / "budget-learning" / "uc-cfh#0.parquet"
    data = victim.read_bytes()
    if fault == "cut":
        victim.write_bytes(data[: len(data) // 2])
    elif fault == "flipped":
        spoilt = bytearray(data)
        for i in range(4, 60):
            spoilt[i] ^= 0x5A
        victim.write_bytes(bytes(spoilt))
    elif fault == "empty":
        victim.write_bytes(b"")
    elif fault == "another's":
        victim.write_bytes((victim.parent / "rfe-cmdp#0.parquet").read_bytes())
    else:
        table = pq.read_table(victim)
        told = json.loads(table.schema.metadata[b"counsel"])
        told["settings"]["episodes"] += 1
        table = table.replace_schema_metadata({b"counsel": json.dumps(told).encode()})
        pq.write_table(table, victim)
    with pytest.raises(counsel.CounselError, match="budget-learning has 3 of 4 runs"):
        whole.redraw(folder)
    again = whole.reproduce(["budget-learning"], TINY, folder, workers=1)
    assert (again.done, again.skipped) == (1, 3)
    assert hashes(folder) == before


def test_one_number_that_changes_is_noticed(tmp_path):
    (run, *_) = budget.runs(TINY)
    store = Store(tmp_path)
    rows = dict(run.rows())
    store.write(run, Done(rows, 1.0, {"counsel": "9.9"}))
    assert store.read(run).seconds == 1.0
    assert store.read(run).versions == {"counsel": "9.9"}
    table = pq.read_table(store.path(run))
    column = table["value_gap"].to_numpy().copy()
    column[0] = np.nextafter(column[0], 9.0)
    spoilt = table.set_column(table.column_names.index("value_gap"), "value_gap", [column])
    pq.write_table(spoilt.replace_schema_metadata(table.schema.metadata), store.path(run))
    assert store.read(run) is None


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["regret"], "no experiment is called 'regret'; there is regret-greedy"),
        (["--seeds", "0"], "seeds must be a whole number of at least 1"),
        (["--scale", "0"], "scale is 0.0; it must be above 0"),
        (["--scale", "nan"], "scale is nan; it must be above 0"),
        (["--workers", "0"], "workers must be a whole number of at least 1"),
        (["worlds", "--cluster", "tcp://127.0.0.1:1"], "no Dask scheduler answers at tcp://127"),
        (["worlds", "--cluster", "nonsense"], "cluster is 'nonsense'; give an address such as"),
        (["worlds", "--cluster", ""], "cluster is ''; give an address such as"),
        (["worlds", "-o", ""], "would be strewn over this folder"),
        (["worlds", "-o", "none"], "is no manifest of experiments"),
        (["worlds", "-o", "deep"], "is no manifest of experiments"),
        (["worlds", "-o", "file"], "cannot make the folder file"),
        (["worlds", "-o", "file/below"], "cannot make the folder file/below"),
        (["worlds", "-o", "there"], "there holds results at scale 0.5, not 1"),
        (["worlds", "-o", "foreign"], "is no manifest of experiments"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(words, fault, tmp_path, monkeypatch, capsys):
    from counsel import cli

    (tmp_path / "file").write_text("")
    for name, told in (
        (
            "there",
            '{"kind": "counsel-reproduction", "scale": 0.5, "experiments": {"worlds": 5}}',
        ),
        ("foreign", "{}"),
        ("none", '{"kind": "counsel-reproduction", "scale": 1.0, "experiments": {}}'),
        ("deep", "[" * 100_000),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.json").write_text(told)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pool, "WAIT", 1.0)
    monkeypatch.setattr(sys, "argv", ["counsel", "reproduce", *words])
    monkeypatch.setattr(cli.app, "_be_plain", lambda: None)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2
    said, told = capsys.readouterr()
    assert said == ""
    assert told.startswith("counsel: ")
    assert len(told.splitlines()) == 1
    assert fault in told
    assert sorted(tmp_path.rglob("*")) == before


def test_figures_of_a_folder_without_any_are_refused(tmp_path):
    with pytest.raises(counsel.CounselError, match="holds no experiments; run counsel reproduce"):
        whole.redraw(tmp_path)


# Numbers over seeds.


@pytest.mark.parametrize("n", [2, 3, 5, 12, 40])
def test_intervals_are_students(n):
    values = np.random.default_rng(n).normal(3.0, 2.0, n)
    low, high = scipy.stats.t.interval(0.95, n - 1, values.mean(), scipy.stats.sem(values))
    mean, *ends = interval(values)
    assert mean == pytest.approx(values.mean())
    assert ends == pytest.approx([low, high])
    assert np.isnan(band(np.ones((1, 3)))).all()


def test_columns_of_other_lengths_are_filled_up():
    filled = padded({"a": np.array([1.0, 2.0]), "b": np.array([7]), "c": np.array([1, 2, 3])})
    assert filled["b"].tolist() == [7, -1, -1]
    assert math.isnan(filled["a"][2])


def test_seeds_come_in_order_of_their_number():
    rows = {f"a/b#{i}": {"x": np.array([i])} for i in (10, 2, 1)}
    assert [int(run["x"][0]) for run in seeds_of(rows, "a/b")] == [1, 2, 10]
    with pytest.raises(counsel.CounselError, match="no rows of a/c"):
        seeds_of(rows, "a/c")


# What claims test, on rows made up for it.


def curve(end, name="regret"):
    return {"episode": np.array([1, 2]), name: np.array([0.0, end])}


def explored_rows(end, gaps=(0.0, 0.0, 0.0), rate=None):
    episode, penalty_of = np.array([1.0, 2.0] * 3), np.repeat([0.0, 0.2, 0.4], 2)
    last = len(gaps)
    rows = {
        "when": np.append(np.zeros(6), np.ones(last)),
        "episode": np.append(episode, np.full(last, 2.0)),
        "penalty": np.append(penalty_of, [0.0, 0.2, 0.4]),
        "value_gap": np.append(np.zeros(6), gaps),
        "advice_count": np.ones(9),
        "explored": np.append(episode - 1.0, np.full(last, 2.0)),
        "regret": np.append(np.tile([0.0, end], 3), np.full(3, np.nan)),
        "best": np.ones(9),
    }
    if rate is not None:
        rows["advice_rate"] = rate
    return padded(rows)


@pytest.mark.parametrize(
    ("ends", "order", "half"),
    [
        ({"ucb-ad": 1, "rfe-ad": 2, "euler": 9}, True, True),
        ({"ucb-ad": 3, "rfe-ad": 2, "euler": 9}, False, True),
        ({"ucb-ad": 1, "rfe-ad": 8, "euler": 9}, True, False),
        ({"ucb-ad": 1, "rfe-ad": 10, "euler": 9}, False, False),
    ],
)
def test_the_order_of_regrets_must_hold_for_every_seed(ends, order, half):
    rows = {}
    for seed in range(3):
        for name, end in ends.items():
            fine = curve({"ucb-ad": 1, "rfe-ad": 2, "euler": 9}[name] if seed < 2 else end)
            if name == "rfe-ad":
                fine = explored_rows(2 if seed < 2 else end)
            rows[f"regret-safe/{name}#{seed}"] = fine
    first, second = regret.claims("safe", rows)
    assert (first.holds, second.holds) == (order, half)


def test_a_gap_that_stays_open_for_one_penalty_fails_the_claim():
    for gaps, holds in (((0.0, 0.01, 0.04), True), ((0.0, 0.06, 0.0), False)):
        rows = {f"regret-{p}/rfe-ad#0": explored_rows(1, gaps) for p in ("greedy", "safe")}
        assert [c.holds for c in penalty.claims(rows)] == [holds, holds]


def test_advice_is_counted_by_phase():
    rate = np.zeros(20)
    rate[8], rate[15] = 1.0, 2.0
    rows = {f"regret-{p}/rfe-ad#0": explored_rows(1, rate=rate) for p in ("greedy", "safe")}
    greedy, safe = penalty.trajectory_claims(rows)
    assert greedy.holds
    assert not safe.holds
    assert safe.value.mean == pytest.approx(1 / 3)


def test_transfer_needs_both_the_value_and_the_budget():
    def told(gaps, left):
        return {
            "when": np.ones(5),
            "episode": np.full(5, 1500.0),
            "budget": np.arange(1.0, 6.0),
            "value_gap": np.array(gaps, float),
            "advice_gap": np.array(left, float),
        }

    fine, late = told([0] * 5, [0] * 5), told([0, 1, 1, 1, 1], [0] * 5)
    greedy = told([0] * 5, [0, -1, 0, 0, 0])
    for rfe, uc, expected in (
        (fine, late, [True, True, True]),
        (greedy, late, [False, True, True]),
        (fine, fine, [True, False, True]),
    ):
        rows = {"budget-learning/rfe-cmdp#0": rfe, "budget-learning/uc-cfh#0": uc}
        assert [c.holds for c in budget.transfer_claims(rows)] == expected


def test_episodes_that_are_not_epsilon_optimal_are_counted_by_block():
    run = {"block": np.array([1, 1, 2, 4]), "value_gap": np.array([0.5, 0.0, 0.2, 0.05])}
    assert scaling.late(run, 0.1) == (3.0, False)
    assert scaling.late(run, 0.01) == (7.0, True)


def test_exponents_are_fitted_where_nothing_is_censored():
    clear, held = np.array([False, False]), np.array([False, True])
    powers = [(x, np.full(2, 3.0 * x**2), clear) for x in (2.0, 4.0, 8.0)]
    assert scaling.exponent(powers) == pytest.approx(2.0)
    assert scaling.exponent([*powers, (16.0, np.ones(2), held)]) == pytest.approx(2.0)
    assert math.isnan(scaling.exponent(powers[:2]))


def test_the_computed_stopping_time_is_the_first_at_which_the_rule_fires():
    # The rule itself, on counts that are all alike.
    H, height, epsilon = 3, 3, 2.0
    found = scaling.stopping_time(H, height, epsilon)
    rows = height * 4

    def fires(n):
        S = height * H + 1
        phi = 6 * math.log(4 * math.e * S * 4 * H / (epsilon * 0.1)) + S * math.log(
            8 * math.e * (n + 1)
        )
        W = 0.0
        for _ in range(H):
            W = 16 * H**2 * phi / n + (1 + 1 / H) * W
        return W + 4 * math.e * math.sqrt(W) <= epsilon / 2

    assert fires(found / rows * 1.0001)
    assert not fires(found / rows * 0.9999)
    assert scaling.stopping_time(H, height, epsilon / 2) > 3 * found


def test_the_commonest_flight_is_the_one_that_came_most_often():
    problem = make("flappy-bird-budget/greedy")
    policy = counsel.solve(problem).policy
    played = counsel.Simulator(problem).play(policy, episodes=300, rng=np.random.default_rng(0))
    first, last = commonest(played)

    def moves(part):
        columns = (played.state[part], played.advice[part], played.action[part])
        return tuple(zip(*(column.tolist() for column in columns), strict=True))

    def flights():
        for n in range(len(played)):
            part = slice(played.first[n], played.first[n + 1])
            yield moves(part)

    seen = list(flights())
    mine = moves(slice(first, last))
    assert seen.count(mine) == max(seen.count(f) for f in set(seen))


def test_a_single_seed_has_no_interval_and_its_pictures_no_band(tmp_path):
    outcome = whole.reproduce(["budget-learning"], Size(0.05, 1), tmp_path, workers=1)
    assert all(math.isnan(v.claim.value.low) for v in outcome.verdicts)
    assert "nan" not in (tmp_path / "report.html").read_text().split("<h2 id='how'")[0].lower()


def test_readme_and_page_tell_of_every_experiment_and_claim(everything):
    root = Path(__file__).parents[1]
    claims = json.loads((root / "docs" / "claims.json").read_text())
    told = [(claim["experiment"], claim["claim"]) for claim in claims]
    assert told == [(v.experiment, v.claim.text) for v in everything[1].verdicts]
    readme = (root / "README.md").read_text()
    for claim in claims:
        verdict = "holds" if claim["holds"] else "**does not hold**"
        assert f"{claim['measured']} | {verdict} |" in readme
    page = (root / "docs" / "experiments.md").read_text()
    for name in EXPERIMENTS:
        assert name in page


# A folder that several calls share.


def test_an_unfinished_experiment_is_left_out_and_named(tmp_path):
    whole.reproduce(["budget-learning"], TINY, tmp_path, workers=1)
    victim = tmp_path / "runs" / "budget-learning" / "uc-cfh#1.parquet"
    victim.unlink()
    outcome = whole.reproduce(["worlds"], TINY, tmp_path, workers=1)
    assert outcome.unfinished == {"budget-learning": (3, 4)}
    assert {v.experiment for v in outcome.verdicts} == {"worlds"}
    assert "budget-learning, of which 3 of 4 runs" in (tmp_path / "report.html").read_text()
    again = whole.reproduce(["budget-learning"], TINY, tmp_path, workers=1)
    assert (again.done, again.unfinished) == (1, {})
    assert {v.experiment for v in again.verdicts} == {"worlds", "budget-learning"}


def test_seeds_may_be_added_to_one_experiment_without_losing_another(tmp_path):
    whole.reproduce(["worlds", "misjudged"], TINY, tmp_path, workers=1)
    outcome = whole.reproduce(["budget-learning"], Size(TINY.scale, 3), tmp_path, workers=1)
    assert {v.experiment for v in outcome.verdicts} == {"worlds", "misjudged", "budget-learning"}
    fewer = whole.reproduce(["budget-learning"], Size(TINY.scale, 2), tmp_path, workers=1)
    assert fewer.done == 0
    told = json.loads((tmp_path / "manifest.json").read_text())
    assert told["experiments"] == {"misjudged": 2, "worlds": 2, "budget-learning": 2}


def test_the_report_says_with_what_the_runs_were_made(tmp_path):
    whole.reproduce(["worlds"], TINY, tmp_path, workers=1)
    path = tmp_path / "runs" / "worlds" / "budget#0.parquet"
    table = pq.read_table(path)
    told = json.loads(table.schema.metadata[b"counsel"])
    told["versions"]["numpy"] = "0.0.1"
    pq.write_table(table.replace_schema_metadata({b"counsel": json.dumps(told).encode()}), path)
    whole.redraw(tmp_path)
    assert "numpy 0.0.1" in (tmp_path / "report.html").read_text()
    told["seconds"] = "abc"
    pq.write_table(table.replace_schema_metadata({b"counsel": json.dumps(told).encode()}), path)
    with pytest.raises(counsel.CounselError, match="worlds has 0 of 1 runs"):
        whole.redraw(tmp_path)


def test_who_says_nothing_has_shown_nothing():
    silent = {
        f"regret-{p}/rfe-ad#0": explored_rows(1, rate=np.zeros(20)) for p in ("greedy", "safe")
    }
    assert [claim.holds for claim in penalty.trajectory_claims(silent)] == [False, False]


# Workers that are not there, or go.


def test_workers_go_when_their_parent_is_killed(tmp_path):
    words = ["reproduce", "regret-safe", "--seeds", "2", "--workers", "2", "-o", "out"]
    begun = subprocess.Popen(
        [*COUNSEL, *words], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    parent, deadline = psutil.Process(begun.pid), time.monotonic() + 120
    while time.monotonic() < deadline:
        if len([p for p in parent.children() if "spawn_main" in " ".join(p.cmdline())]) == 2:
            break
        time.sleep(0.05)
    time.sleep(3.0)
    workers = parent.children()
    begun.kill()
    begun.wait()
    _, alive = psutil.wait_procs(workers, timeout=30)
    for process in alive:
        process.kill()
    assert not alive


def test_a_scheduler_without_workers_is_refused(tmp_path, monkeypatch):
    from distributed import LocalCluster

    monkeypatch.setattr(pool, "WAIT", 2.0)
    with LocalCluster(n_workers=0, processes=True, dashboard_address=None) as empty:
        address = empty.scheduler_address
        with pytest.raises(counsel.CounselError, match="has no workers; start some"):
            whole.reproduce(["worlds"], TINY, tmp_path / "out", cluster=address)


def test_what_listens_and_never_speaks_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(pool, "WAIT", 1.0)
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        address = f"tcp://127.0.0.1:{deaf.getsockname()[1]}"
        with pytest.raises(counsel.CounselError, match="is no Dask scheduler: it does not answer"):
            whole.reproduce(["worlds"], TINY, tmp_path / "out", cluster=address)
    assert not (tmp_path / "out").exists()


def test_a_cluster_that_is_lost_is_one_sentence(tmp_path):
    from distributed import LocalCluster

    lost = LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None)
    try:
        with pytest.raises(counsel.CounselError, match="the cluster at tcp"):
            whole.reproduce(
                ["regret-safe"],
                Size(0.2, 2),
                tmp_path,
                cluster=lost.scheduler_address,
                begun=lambda run: threading.Timer(1.0, lost.close).start(),
            )
    finally:
        lost.close()
