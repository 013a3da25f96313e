"""All experiments end to end at a tiny scale: rows, pictures, claims, files."""

import json
import re
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

import counsel
from counsel.experiments import reproduce as whole
from counsel.experiments import workers as pool
from counsel.experiments.claim import Verdict
from counsel.experiments.experiment import Size, settings_of
from counsel.experiments.paper import EXPERIMENTS, budget
from counsel.experiments.store import RunResult, Store
from tests.support.paths import ROOT
from tests.support.reproductions import QUICK, TINY, hashes


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """A folder with every experiment, made in this process: others would load all kernels anew."""
    folder = tmp_path_factory.mktemp("all")
    return folder, whole.reproduce([], TINY, folder, workers=1)


def empty_picture(_figure, path):
    path.write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")


@pytest.fixture
def empty_pictures(monkeypatch):
    """Save empty pictures, for tests of anything else: drawing takes most of the time."""
    monkeypatch.setattr(whole, "save", empty_picture)


@pytest.fixture(scope="module")
def done_once(tmp_path_factory):
    folder = tmp_path_factory.mktemp("once")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(whole, "save", empty_picture)
        whole.reproduce(["budget-learning"], TINY, folder, workers=1)
    return folder


@pytest.fixture
def few(done_once, tmp_path):
    """A folder of its own with all runs of one experiment."""
    return shutil.copytree(done_once, tmp_path / "few")


@pytest.mark.slow
def test_every_experiment_runs_and_every_file_is_there(everything):
    folder, outcome = everything
    runs = whole.all_runs(whole.choose_experiments([]), TINY)
    assert outcome.done == len(runs)
    assert set(hashes(folder)) == {run.id for run in runs}
    names = {path.name for path in (folder / "figures").iterdir()}
    for expected in (
        "regret-greedy", "regret-safe", "regret-adherence", "value-gap-penalty", "budget-learning",
        "budget-transfer", "trajectories-greedy", "trajectories-safe", "car-regret", "car-penalty",
        "worlds-three-phases", "worlds-budget", "worlds-car", "frontier", "beyond", "misjudged",
        "scaling", "equal-terms", "fatigue-reward", "fatigue-pieces", "fatigue-regret",
    ):  # fmt: skip
        assert {f"{expected}.png", f"{expected}.svg"} <= names
    claims = json.loads((folder / "claims.json").read_text())
    assert {claim["experiment"] for claim in claims} == set(EXPERIMENTS) - {"worlds"}
    verdicts = {str(verdict) for verdict in Verdict}
    assert {claim["verdict"] for claim in claims} <= verdicts
    assert len(claims) == len(outcome.findings)


def test_the_report_is_one_page_that_asks_nobody(everything):
    folder, outcome = everything
    page = (folder / "report.html").read_text()
    assert "<script" not in page
    assert not re.findall(r"""(?:src|href)\s*=\s*['"](?!data:|#)""", page)
    for finding in outcome.findings:
        assert finding.experiment in page
    assert page.count("<figure") == len(list((folder / "figures").glob("*.svg")))
    assert sum(page.count(f" {v}</td>") for v in Verdict) == len(outcome.findings)


def test_manifests_say_settings_seed_versions_and_time(everything):
    folder, _ = everything
    path = folder / "runs" / "regret-safe" / "ucb-ad#1.parquet"
    told = json.loads(pq.read_table(path).schema.metadata[b"counsel"])
    assert told["id"] == "regret-safe/ucb-ad#1"
    assert told["settings"]["spec"]["seed"] == 1
    assert told["settings"]["spec"]["bound"] == "paper"
    assert {"counsel", "numpy", "numba", "python"} <= set(told["versions"])
    assert told["seconds"] > 0


@pytest.mark.slow
def test_figures_can_be_drawn_alone(everything):
    folder, first = everything
    files = {path: path.read_bytes() for path in (folder / "figures").iterdir()}
    drawn = whole.redraw(folder)
    claims = [  # as records: an exponent that cannot be fitted is NaN
        [(finding.experiment, finding.claim.record()) for finding in outcome.findings]
        for outcome in (drawn, first)
    ]
    assert claims[0] == claims[1]
    for path, data in files.items():
        assert path.read_bytes() == data


@pytest.mark.slow
def test_charts_name_the_person_include_zero_and_have_200_dots_an_inch(everything):
    # Found by looking at every figure: panels without a person, bands of regret below zero.
    folder, _ = everything
    charts = 0
    for experiment in EXPERIMENTS.values():
        stored = {run.id: Store(folder).read(run) for run in experiment.runs(TINY)}
        for picture in experiment.pictures({key: result.rows for key, result in stored.items()}):
            with Image.open(folder / "figures" / f"{picture.name}.png") as image:
                assert image.info["dpi"] == pytest.approx((200, 200), abs=0.01)
            for axes in (axes for axes in picture.figure.axes if axes.get_xlabel()):
                title = axes.get_title(loc="left")
                assert re.search("Policy (Greedy|Safe)|driver|Drawn people", title), picture.name
                if axes.lines and axes.get_yscale() == "linear":
                    low, high = axes.get_ylim()
                    assert low <= 0.0 < high, picture.name
                    may_be_negative = picture.name.startswith("budget")
                    assert low == 0.0 or may_be_negative, picture.name
                    charts += 1
    assert charts >= 14


@pytest.mark.usefixtures("empty_pictures")
@pytest.mark.slow
def test_finished_runs_are_skipped_and_what_was_there_before_is_still_published(few):
    first = whole.reproduce(["misjudged"], TINY, few, workers=1)
    assert {v.experiment for v in first.findings} == {"budget-learning", "misjudged"}
    again = whole.reproduce(["misjudged"], TINY, few, workers=1)
    assert (again.done, again.skipped) == (0, first.done)
    assert [v.experiment for v in again.findings] == [v.experiment for v in first.findings]


def test_ids_are_for_ever_and_mean_one_thing():
    seen = {}
    for experiment in EXPERIMENTS.values():
        for run in experiment.runs(experiment.at(Size())):
            assert re.fullmatch(r"[a-z-]+/[a-z0-9.x-]+#\d+", run.id)
            assert seen.setdefault(run.id, settings_of(run)) == settings_of(run)
    # The paper's own scale, for those whose numbers it prints, on its own map and on random ones.
    assert seen["regret-greedy/maps-ucb-ad#23"]["spec"]["episodes"] == 800_000
    assert seen["regret-greedy/maps-ucb-ad#23"]["family"] == "three-phase"
    assert seen["regret-greedy/ucb-ad#0"]["spec"]["episodes"] == 800_000
    assert seen["regret-greedy/ucb-ad#0"]["spec"]["every"] == 5000
    assert seen["regret-safe/euler#4"]["spec"]["episodes"] == 200_000
    assert seen["regret-safe/euler#4"]["spec"]["burn_in"] == 300_000
    assert seen["budget-learning/uc-cfh#0"]["episodes"] == 1500
    assert seen["budget-learning/uc-cfh#0"]["every"] == 50
    assert seen["car-regret/rfe-ad#0"]["episodes"] == 400_000
    assert seen["car-regret/rfe-ad#0"]["every"] == 8000
    assert seen["car-regret/rfe-ad#0"]["scale"] == 0.1


@pytest.mark.slow
def test_rows_do_not_depend_on_the_workers(everything, tmp_path):
    whole.reproduce(QUICK, TINY, tmp_path / "few", workers=2)  # one did everything
    few, all_of = hashes(tmp_path / "few"), hashes(everything[0])
    assert few == {key: all_of[key] for key in few}


@pytest.mark.usefixtures("empty_pictures")
@pytest.mark.parametrize("fault", ["cut", "flipped", "empty", "another's", "other settings"])
def test_a_damaged_file_is_found_and_only_that_run_is_done_again(few, fault):
    before = hashes(few)
    victim = few / "runs" / "budget-learning" / "uc-cfh#0.parquet"
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
    with pytest.raises(counsel.CounselError, match="budget-learning has 19 of 20 runs"):
        whole.redraw(few)
    again = whole.reproduce(["budget-learning"], TINY, few, workers=1)
    assert (again.done, again.skipped) == (1, 19)
    assert hashes(few) == before


def test_one_number_that_changes_is_noticed(tmp_path):
    (run, *_) = budget.runs(TINY)
    store = Store(tmp_path)
    rows = dict(run.rows())
    store.write(run, RunResult(rows, 1.0, {"counsel": "9.9"}))
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
        (["regret"], "no experiment is called 'regret'; choose one of regret-greedy"),
        (["--seeds", "0"], "seeds must be a whole number of at least 1"),
        (["--scale", "0"], "scale is 0.0; it must be above 0"),
        (["--scale", "nan"], "scale is nan; it must be above 0"),
        (["--workers", "0"], "workers must be a whole number of at least 1"),
        (["worlds", "--cluster", "tcp://127.0.0.1:1"], "no Dask scheduler answers at tcp://127"),
        (["worlds", "--cluster", "nonsense"], "cluster is 'nonsense'; give an address such as"),
        (["worlds", "--cluster", ""], "cluster is ''; give an address such as"),
        (["worlds", "-o", ""], "would be mixed with this folder"),
        (["worlds", "-o", "none"], "is not a manifest of experiments"),
        (["worlds", "-o", "deep"], "is not a manifest of experiments"),
        (["worlds", "-o", "file"], "cannot create the folder file"),
        (["worlds", "-o", "file/below"], "cannot create the folder file/below"),
        (["worlds", "-o", "there"], "there holds results at scale 0.5, not 1"),
        (
            ["worlds", "-o", "there", "--scale", "0.5", "--first-seed", "9"],
            "there holds results from seed 0, not 9",
        ),
        (["--first-seed", "-1"], "first_seed must be a whole number of at least 0"),
        (["worlds", "-o", "foreign"], "is not a manifest of experiments"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(words, fault, command, tmp_path, monkeypatch):
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
    monkeypatch.setattr(pool, "WAIT", 1.0)
    before = sorted(tmp_path.rglob("*"))
    done = command("reproduce", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("counsel: ")
    assert len(done.stderr.splitlines()) == 1
    assert fault in done.stderr
    assert sorted(tmp_path.rglob("*")) == before


def test_figures_of_a_folder_without_any_are_refused(tmp_path):
    with pytest.raises(counsel.CounselError, match="holds no experiments; run counsel reproduce"):
        whole.redraw(tmp_path)


@pytest.mark.slow
def test_a_single_seed_has_no_interval_and_its_pictures_no_band(tmp_path):
    outcome = whole.reproduce(["budget-learning"], Size(0.05, 1), tmp_path, workers=1)
    assert {f.claim.verdict for f in outcome.findings} == {Verdict.UNKNOWN}
    assert "nan" not in (tmp_path / "report.html").read_text().split("<h2 id='how'")[0].lower()


def test_the_pages_tell_of_every_experiment_and_claim(everything):
    claims = json.loads((ROOT / "docs" / "reference" / "verdicts.json").read_text())["claims"]
    published = [(claim["experiment"], claim["claim"]) for claim in claims]
    assert published == [(f.experiment, f.claim.text) for f in everything[1].findings]
    all_claims = (ROOT / "docs" / "reference" / "claims.md").read_text()
    for claim in claims:
        verdict = claim["verdict"] if claim["verdict"] == "holds" else f"**{claim['verdict']}**"
        assert f"{claim['blocks'][0]['measured']} | {verdict} |" in all_claims
    page = (ROOT / "docs" / "reference" / "experiments.md").read_text()
    for name in EXPERIMENTS:
        assert name in page


@pytest.mark.usefixtures("empty_pictures")
def test_tables_are_in_the_report_and_beside_it(few):
    whole.redraw(few)
    text = (few / "tables" / "budget-constants.md").read_text()
    assert text.startswith("| learner | factor | mean value gap |")
    assert text.count("UC-CFH") == len(budget.SCALES["uc-cfh"])
    page = (few / "report.html").read_text()
    assert "<th>factor</th>" in page
    assert "<td>0.1 (paper)</td>" in page


# A folder that several calls share.


@pytest.mark.usefixtures("empty_pictures")
def test_an_unfinished_experiment_is_left_out_and_named(few):
    victim = few / "runs" / "budget-learning" / "uc-cfh#1.parquet"
    victim.unlink()
    outcome = whole.reproduce(["misjudged"], TINY, few, workers=1)
    assert outcome.unfinished == {"budget-learning": (19, 20)}
    assert {v.experiment for v in outcome.findings} == {"misjudged"}
    assert "budget-learning is left out: 19 of its 20 runs" in (few / "report.html").read_text()
    again = whole.reproduce(["budget-learning"], TINY, few, workers=1)
    assert (again.done, again.unfinished) == (1, {})
    assert {v.experiment for v in again.findings} == {"misjudged", "budget-learning"}


@pytest.mark.usefixtures("empty_pictures")
@pytest.mark.slow
def test_seeds_may_be_added_to_one_experiment_without_losing_another(few):
    whole.reproduce(["misjudged"], TINY, few, workers=1)
    outcome = whole.reproduce(["budget-learning"], Size(TINY.scale, 3), few, workers=1)
    assert (outcome.done, outcome.skipped) == (10, 20)  # eight on maps, two on the shipped one
    assert {v.experiment for v in outcome.findings} == {"misjudged", "budget-learning"}
    told = json.loads((few / "manifest.json").read_text())
    assert told["experiments"] == {"misjudged": 2, "budget-learning": 3}
    fewer = whole.reproduce(["budget-learning"], Size(TINY.scale, 2), few, workers=1)
    assert fewer.done == 0
    told = json.loads((few / "manifest.json").read_text())
    assert told["experiments"] == {"misjudged": 2, "budget-learning": 2}


@pytest.mark.usefixtures("empty_pictures")
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


@pytest.mark.slow
@pytest.mark.usefixtures("empty_pictures")
def test_experiments_without_a_claim_of_the_paper_are_not_said_to_hold_0_of_0(tmp_path):
    # "0 of 0 claims of the paper hold." stood over experiments that have claims of their own only.
    outcome = whole.reproduce(["misjudged"], TINY, tmp_path / "ours", workers=1)
    title, lead = whole.headline([finding.claim for finding in outcome.findings])
    assert title == "0 of 4 claims of our own hold"
    assert lead.endswith("Of all 4 claims, 0 do not hold and 4 cannot be told.")  # two seeds
    whole.reproduce(["worlds"], TINY, tmp_path / "drawn", workers=1)
    assert "0 of 0" not in (tmp_path / "drawn" / "report.html").read_text()
    assert "0 of 0" not in (tmp_path / "ours" / "report.html").read_text()
