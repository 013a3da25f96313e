"""The benchmarks page and README's table come from the results on record, and tell all of them."""

import importlib.util
import json
import math

import pytest

from benchmarks import results
from tests.support.paths import ROOT

AREAS = ("planning", "simulation", "learning", "baselines", "logs", "service")
FIELDS = {
    "what", "ours", "unit", "peer", "theirs", "ratio", "alone", "asked", "holds", "memory",
    "peer_memory", "note",
}  # fmt: skip


def script():
    # By its path: its name is that of the package with the benchmarks.
    told = importlib.util.spec_from_file_location("the_page", ROOT / "tools" / "benchmark_pages.py")
    module = importlib.util.module_from_spec(told)
    told.loader.exec_module(module)
    return module


docs = script()


# What is committed.


def test_the_page_is_written_from_the_results():
    assert (ROOT / "docs/benchmarks.md").read_text() == docs.page(docs.RESULTS)


def test_the_table_of_readme_is_written_from_the_results():
    readme = (ROOT / "README.md").read_text()
    assert docs.between(readme, docs.table(docs.RESULTS)) == readme
    assert 8 <= len(docs.SHOWN) <= 10


def test_make_bench_runs_every_area_and_then_writes_the_page():
    recipe = (ROOT / "Makefile").read_text().partition("\nbench:")[2].partition("\n\n")[0]
    commands = [line.split(maxsplit=1)[1] for line in recipe.splitlines() if line[:1] == "\t"]
    assert commands == [*(f"-m benchmarks.{area}" for area in AREAS), "tools/benchmark_pages.py"]
    assert tuple(docs.CHAPTERS) == AREAS
    assert sorted(path.stem for path in docs.RESULTS.glob("*.json")) == sorted(AREAS)


@pytest.mark.parametrize("name", AREAS)
def test_results_are_complete(name):
    area = json.loads((docs.RESULTS / f"{name}.json").read_text())
    assert area["area"] == name
    assert area["seconds"] > 0
    assert area["processor_seconds"] > 0
    assert set(area["machine"]) == {"processor", "cores", "memory_gb", "system", "python"}
    assert {"counsel", "numpy", "numba"} <= set(area["versions"])
    assert any(row["peer"] for row in area["rows"])
    names = [(row["what"], row["peer"]) for row in area["rows"]]
    assert len(set(names)) == len(names)
    for row in area["rows"]:
        assert set(row) == FIELDS
        assert math.isfinite(row["ours"])
        assert row["what"]
        assert row["unit"]
        assert bool(row["peer"]) != bool(row["alone"])  # a peer, or why there is none
        assert (row["peer"] is None) == (row["theirs"] is None)
        assert (row["asked"] is None) == (row["holds"] is None)
    asked = [row["holds"] for row in area["rows"] if row["holds"] is not None]
    assert area["all_hold"] == (all(asked) if asked else None)


def test_all_areas_take_less_than_15_minutes():
    spent = (json.loads((docs.RESULTS / f"{name}.json").read_text()) for name in AREAS)
    assert sum(area["seconds"] for area in spent) < 900


# Rows as they are made.


def test_a_ratio_above_one_means_that_counsel_does_better():
    assert results.against("a", 2.0, "s", "peer", 6.0).ratio == 3.0
    assert results.against("a", 6.0, "steps/s", "peer", 2.0, more=True).ratio == 3.0
    assert results.against("a", 0.0, "reward", "peer", 6.0).ratio is None
    assert results.against("a", 0.0, "reward", "peer", 0.0).ratio == 1.0


@pytest.mark.parametrize(
    ("row", "asked", "holds"),
    [
        (results.against("a", 1.0, "s", "b", 5.0, ratio=5.0), "ratio ≥ 5", True),
        (results.against("a", 1.0, "s", "b", 4.9, ratio=5.0), "ratio ≥ 5", False),
        (results.against("a", 0.0, "s", "b", 1.0, ratio=5.0), "ratio ≥ 5", True),
        (results.against("a", 1.0, "s", "b", 4.9, most=1.0), "≤ 1", True),
        (results.alone("a", 1.1, "s", "why", most=1.0), "≤ 1", False),
        (results.alone("a", 1e5, "steps/s", "why", least=100_000.0), "≥ 100,000", True),
        (results.alone("a", 1.0, "s", "why"), None, None),
    ],
)
def test_what_was_asked_is_judged(row, asked, holds):
    assert (row.asked, row.holds) == (asked, holds)


def test_rows_are_printed_and_written_whole(tmp_path, capsys):
    rows = [
        results.against("one plan", 1.0, "ms", "peer", 0.5, ratio=1.0, note="Noted."),
        results.alone("a floor", 1.23456, "times", "nothing is faster"),
    ]
    results.record("planning", iter(rows), packages=("scipy",), folder=tmp_path)
    assert "ratio 0.5 (asked ratio ≥ 1) FALLS SHORT. Noted." in capsys.readouterr().out
    (written,) = tmp_path.iterdir()
    told = json.loads(written.read_text())
    assert told["all_hold"] is False
    assert told["versions"].keys() == {"counsel", "numpy", "numba", "scipy"}
    assert [set(row) for row in told["rows"]] == [FIELDS, FIELDS]
    assert told["rows"][1]["ours"] == 1.235


def test_a_run_that_fails_or_is_short_leaves_what_was_written(tmp_path, capsys):
    (tmp_path / "logs.json").write_text("before")

    def broken():
        yield results.alone("a", 1.0, "s", "why")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        results.record("logs", broken(), folder=tmp_path)
    results.record("logs", [results.alone("a", 1.0, "s", "why")], folder=None)
    assert "Not written down" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["logs.json"]
    assert (tmp_path / "logs.json").read_text() == "before"


# The page, on results made up for it.


def filled(folder, more, /, **other):
    """Write results of every area: the rows of the lead and of README, and those given."""
    for name, chapter in docs.CHAPTERS.items():
        named = [chapter.lead, *(shown[1:] for shown in docs.SHOWN if shown[0] == name)]
        own = [
            results.against(what, 2.0, "reward" if name == "baselines" else "s", peer, 8.0)
            for what, peer in dict.fromkeys(named)
        ]
        area = {
            "area": name, "date": "2026-01-02", "seconds": 60.0, "processor_seconds": 50.0,
            "machine": {"processor": "Some CPU", "cores": 2, "memory_gb": 8, "system": "Linux",
                        "python": "CPython 3.11"},
            "versions": {"counsel": "1", "numpy": "2"}, "all_hold": None,
            "rows": [results.asdict(row) for row in (own + more if name == "planning" else own)],
        }  # fmt: skip
        if name == "service":
            area |= other
        (folder / f"{name}.json").write_text(json.dumps(area))
    return docs.page(folder)


def line_of(page, what):
    (found,) = (line for line in page.splitlines() if line.startswith(f"| {what} |"))
    return found


def test_headlines_state_what_was_found(tmp_path):
    page = filled(tmp_path, [])
    lines = page.splitlines()
    assert "## Planning: one plan of Car Driving takes 2 s, 4 times as fast as QuantEcon" in lines
    assert any(
        line.startswith("## Baselines: ") and " 25 % of the regret" in line for line in lines
    )
    assert "Some CPU, 2 cores, 8 GB of memory, Linux, CPython 3.11" in page
    assert page.count("Some CPU") == 1
    told = "Counsel is faster in 10 of 10 comparisons and learns better in 1 of 1 comparisons."
    assert f"**{told}**" in lines
    assert "short" not in page
    assert all(f"`python -m benchmarks.{area}` (1.0 minutes)" in page for area in AREAS)


def test_a_shortfall_is_shown_as_such(tmp_path):
    page = filled(tmp_path, [results.against("slow", 4.0, "s", "Fast", 1.0, ratio=1.0)])
    assert line_of(page, "slow") == (
        "| slow | 4 s | Fast: 1 s | 0.25 (slower) | ratio ≥ 1: **falls short** |  |"
    )
    assert "- slow: 4 s, ratio 0.25 (slower) to Fast; target ratio ≥ 1." in page.splitlines()
    told = "is faster in 10 of 11 comparisons and learns better in 1 of 1 comparisons."
    assert f"{told} Of the targets set beforehand, 0 of 1 hold and 1 falls short." in page


def test_a_slow_lead_is_called_slow(tmp_path):
    lead = docs.CHAPTERS["service"].lead
    rows = [results.asdict(results.against(lead[0], 8.0, "s", lead[1], 2.0))]
    page = filled(tmp_path, [], rows=rows)
    assert "each on disk before its answer, slower than plain FastAPI (ratio 0.25)" in page


def test_headlines_are_about_the_strongest_peer():
    rows = [
        results.asdict(row)
        for row in (
            results.alone("plan", 1.0, "s", "why"),
            results.against("plan", 0.0, "s", "endless", 1.0),
            results.against("plan", 1.0, "s", "weak", 9.0),
            results.against("plan", 1.0, "s", "strong", 2.0),
            results.against("another", 1.0, "s", "stronger", 1.0),
        )
    ]
    assert docs.find("planning", rows, "plan", "")["peer"] == "strong"
    assert docs.find("planning", rows, "plan", "w")["peer"] == "weak"
    assert docs.find("planning", rows, "plan", "e")["peer"] == "endless"


def test_a_ratio_may_have_no_end(tmp_path):
    row = results.against("no regret", 0.0, "reward", "peer", 7.0, ratio=2.0)
    page = filled(tmp_path, [row])
    assert line_of(page, "no regret") == (
        "| no regret | 0 reward | peer: 7 reward | ∞ | ratio ≥ 2: holds |  |"
    )


def test_worse_regret_is_not_called_slow(tmp_path):
    page = filled(tmp_path, [results.against("regret", 4.0, "reward", "peer", 0.0)])
    assert "| 0 (worse) |" in line_of(page, "regret")


def test_a_missing_peer_is_explained(tmp_path):
    page = filled(tmp_path, [results.alone("a floor", 1.5, "times", "nothing is faster")])
    assert (
        line_of(page, "a floor") == "| a floor | 1.5 times | no peer: nothing is faster |  |  |  |"
    )


def test_memory_stands_beside_the_figures(tmp_path):
    row = results.against("fit", 2.0, "s", "peer", 1.0, memory=0.5, peer_memory=1.25)
    page = filled(tmp_path, [row])
    assert "| 2 s (0.50 GB) | peer: 1 s (1.25 GB) |" in line_of(page, "fit")


def test_another_machine_and_other_versions_are_told(tmp_path):
    machine = {"processor": "Other", "cores": 4, "memory_gb": 1, "system": "L", "python": "P"}
    page = filled(tmp_path, [], machine=machine, versions={"counsel": "2"}, date="2026-02-03")
    assert "This area was measured on another machine: Other, 4 cores" in page
    assert "counsel 1 and 2, numpy 2" in page
    assert "2026-01-02 to 2026-02-03" in page


def test_what_is_missing_is_named(tmp_path):
    filled(tmp_path, [])
    (tmp_path / "logs.json").unlink()
    with pytest.raises(SystemExit, match=r"logs.json is missing; run python -m benchmarks.logs"):
        docs.page(tmp_path)
    with pytest.raises(SystemExit, match="has no <!-- benchmarks -->"):
        docs.between("no marks", "table")
    with pytest.raises(SystemExit, match="service has no row"):
        docs.find("service", [], "a", "b")
