"""The benchmarks page and README's table come from the results on record, of every machine."""

import importlib.util
import json
import math

import pytest

from benchmarks import results
from benchmarks.timing import Race, Spread, race
from tests.support.paths import ROOT

AREAS = ("planning", "simulation", "learning", "baselines", "logs", "service")
FIELDS = {
    "what", "ours", "unit", "peer", "theirs", "ratio", "alone", "asked", "holds", "memory",
    "peer_memory", "spread", "note",
}  # fmt: skip
MACHINE = {"processor", "cores", "l3_mb", "memory_gb", "system", "python"}
LATER = {"spread", "l3_mb"}  # older results lack these


def script():
    # By its path: its name is that of the package with the benchmarks.
    told = importlib.util.spec_from_file_location("the_page", ROOT / "tools" / "benchmark_pages.py")
    module = importlib.util.module_from_spec(told)
    told.loader.exec_module(module)
    return module


docs = script()
SAVED = sorted(docs.RESULTS.glob("*/*.json"))


# What is committed.


def test_the_page_is_written_from_the_results():
    assert (ROOT / "docs/benchmarks.md").read_text() == docs.page(docs.RESULTS)


def test_the_table_of_readme_is_written_from_the_results():
    readme = (ROOT / "README.md").read_text()
    assert docs.between(readme, docs.table(docs.RESULTS)) == readme
    assert 8 <= len(docs.SHOWN) <= 12


def test_make_bench_runs_every_area_and_then_writes_the_page():
    recipe = (ROOT / "Makefile").read_text().partition("\nbench:")[2].partition("\n\n")[0]
    commands = [line.split(maxsplit=1)[1] for line in recipe.splitlines() if line[:1] == "\t"]
    assert commands == [*(f"-m benchmarks.{area}" for area in AREAS), "tools/benchmark_pages.py"]
    assert tuple(docs.CHAPTERS) == AREAS
    assert {path.stem for path in SAVED} == set(AREAS)
    assert not list(docs.RESULTS.glob("*.json"))  # each machine has its own folder


@pytest.mark.parametrize("path", SAVED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_results_are_complete(path):
    area = json.loads(path.read_text())
    assert area["area"] == path.stem
    assert results.slug(area["machine"]) == path.parent.name
    assert area["seconds"] > 0
    assert area["processor_seconds"] > 0
    assert set(area["machine"]) | LATER == MACHINE | LATER
    assert {"counsel", "numpy", "numba"} <= set(area["versions"])
    assert any(row["peer"] for row in area["rows"])
    names = [(row["what"], row["peer"]) for row in area["rows"]]
    assert len(set(names)) == len(names)
    for row in area["rows"]:
        assert set(row) | LATER == FIELDS | LATER
        assert math.isfinite(row["ours"])
        assert row["what"]
        assert row["unit"]
        assert bool(row["peer"]) != bool(row["alone"])  # a peer, or why there is none
        assert (row["peer"] is None) == (row["theirs"] is None)
        assert (row["asked"] is None) == (row["holds"] is None)
    asked = [row["holds"] for row in area["rows"] if row["holds"] is not None]
    assert area["all_hold"] == (all(asked) if asked else None)


def test_all_areas_take_less_than_15_minutes():
    for machine in docs.read(docs.RESULTS):
        assert sum(area["seconds"] for area in machine.areas.values()) < 900


@pytest.mark.parametrize("name", AREAS)
def test_the_page_has_every_row_of_every_machine(name):
    page = (ROOT / "docs/benchmarks.md").read_text()
    for machine in docs.read(docs.RESULTS):
        assert f"- **{machine.name}.** " in page
        for row in machine.areas.get(name, {"rows": []})["rows"]:
            start = f"| {row['what']}<br>{docs.beside(row)}"
            lines = [line for line in page.splitlines() if line.startswith(start)]
            assert any(docs.result(row, note=False) in line for line in lines)
            assert all(row["note"] in line for line in lines if row["note"]) or len(lines) > 1


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
    results.record("planning", iter(rows), packages=("scipy",), folder=tmp_path / "results")
    assert "ratio 0.5 (asked ratio ≥ 1) FALLS SHORT. Noted." in capsys.readouterr().out
    (written,) = tmp_path.glob("results/*/planning.json")
    assert written.parent.name == results.slug(results.machine())
    told = json.loads(written.read_text())
    assert told["all_hold"] is False
    assert told["versions"].keys() == {"counsel", "numpy", "numba", "scipy"}
    assert [set(row) for row in told["rows"]] == [FIELDS, FIELDS]
    assert told["rows"][1]["ours"] == 1.235


def test_a_run_that_fails_or_is_short_leaves_what_was_written(tmp_path, capsys):
    own = tmp_path / results.slug(results.machine())
    own.mkdir()
    (own / "logs.json").write_text("before")

    def broken():
        yield results.alone("a", 1.0, "s", "why")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        results.record("logs", broken(), folder=tmp_path)
    results.record("logs", [results.alone("a", 1.0, "s", "why")], folder=None)
    assert "Not written down" in capsys.readouterr().out
    assert list(tmp_path.rglob("*.json")) == [own / "logs.json"]
    assert (own / "logs.json").read_text() == "before"


def test_the_spread_over_turns_is_printed_and_written(tmp_path, capsys):
    row = results.against("a", 1.0, "s", "b", 2.0, spread=Spread(1.5, 1.75, 2.5))
    results.record("planning", [row], folder=tmp_path)
    assert "ratio 2 (turns 1.5 to 2.5, median 1.75)" in capsys.readouterr().out
    (written,) = tmp_path.glob("*/planning.json")
    assert json.loads(written.read_text())["rows"][0]["spread"] == [1.5, 1.75, 2.5]


def test_a_race_is_run_by_turns_and_the_best_burst_counts():
    called = []
    calls = {name: lambda name=name: called.append(name) for name in "ab"}
    timed = race(calls, turns=2, burst=2)
    assert called == [*"ab", *"aabb", *"aabb"]
    assert [len(turns) for turns in timed.turns.values()] == [2, 2]
    fixed = Race({"mine": [1.0, 2.0, 4.0], "theirs": [8.0, 6.0, 8.0]})
    assert (fixed["mine"], fixed["theirs"]) == (1.0, 6.0)
    assert fixed.spread("theirs", "mine") == (2.0, 3.0, 8.0)


@pytest.mark.parametrize(
    ("processor", "slug"),
    [
        ("Intel(R) Xeon(R) Processor, x86_64", "intel-xeon-processor-x86-64-2-cores"),
        ("AMD EPYC, x86_64", "amd-epyc-x86-64-2-cores"),
        ("Intel(R) Core(TM) i7 @ 2.80GHz, x86_64", "intel-core-i7-2-80ghz-x86-64-2-cores"),
    ],
)
def test_a_folder_is_named_after_processor_and_cores(processor, slug):
    assert results.slug({"processor": processor, "cores": 2}) == slug


def test_the_level_3_cache_is_read_or_unknown(tmp_path):
    assert results.l3_cache(tmp_path / "nowhere") is None
    for index, level, size in ((0, "1", "32K"), (3, "3", "32768K")):
        cache = tmp_path / f"index{index}"
        cache.mkdir()
        (cache / "level").write_text(f"{level}\n")
        assert results.l3_cache(tmp_path) is None  # no size, or the wrong level
        (cache / "size").write_text(f"{size}\n")
    assert results.l3_cache(tmp_path) == 32.0
    (tmp_path / "index3" / "size").write_text("16M\n")
    assert results.l3_cache(tmp_path) == 16.0


# The page, on results made up for it.


SOME = {"processor": "Some CPU", "cores": 2, "l3_mb": 8.0, "memory_gb": 8, "system": "Linux",
        "python": "CPython 3.11"}  # fmt: skip


def write(folder, more, /, areas=AREAS, **other):
    """Write results of every area: the rows of the lead and of README, and those given."""
    folder.mkdir()
    for name in areas:
        chapter = docs.CHAPTERS[name]
        named = [chapter.lead, *(shown[1:] for shown in docs.SHOWN if shown[0] == name)]
        own = [
            results.against(what, 2.0, "reward" if name == "baselines" else "s", peer, 8.0)
            for what, peer in dict.fromkeys(named)
        ]
        area = {
            "area": name, "date": "2026-01-02", "seconds": 60.0, "processor_seconds": 50.0,
            "machine": SOME, "versions": {"counsel": "1", "numpy": "2"}, "all_hold": None,
            "rows": [results.asdict(row) for row in (own + more if name == "planning" else own)],
        }  # fmt: skip
        if name == "service":
            area |= other
        (folder / f"{name}.json").write_text(json.dumps(area))


def filled(folder, more, /, **other):
    """Write the results of one machine, and return the page."""
    write(folder / "some-cpu", more, **other)
    return docs.page(folder)


def line_of(page, what):
    (found,) = (line for line in page.splitlines() if line.startswith(f"| {what}<br>"))
    return found


def test_headlines_state_what_was_found(tmp_path):
    page = filled(tmp_path, [])
    lines = page.splitlines()
    assert (
        "## Planning: one plan of Car Driving in every cell takes 2 s, 4 times as fast as QuantEcon"
        " (Some CPU, 2 cores)"
    ) in lines
    assert any(
        line.startswith("## Baselines: ") and " 25 % of the regret" in line for line in lines
    )
    hardware = "Some CPU, 2 cores, L3 cache of 8 MB, 8 GB of memory, Linux, CPython 3.11"
    unfolded = " ".join(page.split())
    assert unfolded.count(hardware) == 1
    told = "Counsel is faster in 12 of 12 comparisons and learns better in 1 of 1 comparisons."
    assert f"- **Some CPU, 2 cores.** {told} Measured on 2026-01-02 in 6 minutes." in unfolded
    assert "short" not in page
    assert all(f"`python -m benchmarks.{area}` (1.0 minutes)" in page for area in AREAS)


def test_a_shortfall_is_shown_as_such(tmp_path):
    page = filled(tmp_path, [results.against("slow", 4.0, "s", "Fast", 1.0, ratio=1.0)])
    assert line_of(page, "slow") == (
        "| slow<br>against Fast | **0.25 (slower)**<br>4 s against 1 s<br>"
        "ratio ≥ 1: **falls short** |"
    )
    assert "- slow: 4 s, ratio 0.25 (slower) to Fast; target ratio ≥ 1." in page.splitlines()
    told = "is faster in 12 of 13 comparisons and learns better in 1 of 1 comparisons."
    assert f"{told} Of the targets set beforehand, 0 of 1 hold and 1 falls short." in " ".join(
        page.split()
    )


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
        "| no regret<br>against peer | **∞**<br>0 reward against 7 reward<br>ratio ≥ 2: holds |"
    )


def test_worse_regret_is_not_called_slow(tmp_path):
    page = filled(tmp_path, [results.against("regret", 4.0, "reward", "peer", 0.0)])
    assert "| **0 (worse)**<br>" in line_of(page, "regret")


def test_a_missing_peer_is_explained(tmp_path):
    page = filled(tmp_path, [results.alone("a floor", 1.5, "times", "the loop alone")])
    assert line_of(page, "a floor") == "| a floor<br>no peer: the loop alone | **1.5 times** |"


def test_memory_stands_beside_the_figures(tmp_path):
    row = results.against("fit", 2.0, "s", "peer", 1.0, memory=0.5, peer_memory=1.25)
    page = filled(tmp_path, [row])
    assert "<br>2 s (0.50 GB) against 1 s (1.25 GB)" in line_of(page, "fit")


def test_the_page_says_how_much_the_machine_wobbled(tmp_path):
    row = results.against("a", 2.0, "s", "peer", 4.0, spread=Spread(1.5, 1.9, 2.2))
    page = filled(tmp_path, [row])
    assert "**2**<br>2 s against 4 s<br>turns 1.5 to 2.2, median 1.9 |" in line_of(page, "a")


def test_another_setup_and_other_versions_are_told(tmp_path):
    setup = SOME | {"memory_gb": 1, "l3_mb": None}
    page = filled(tmp_path, [], machine=setup, versions={"counsel": "2"}, date="2026-02-03")
    assert "Measured with another setup: Some CPU, 2 cores, L3 cache of unknown size, 1 GB" in page
    assert "counsel 1 and 2, numpy 2" in " ".join(page.split())
    assert "2026-01-02 to 2026-02-03" in " ".join(page.split())


def test_machines_stand_side_by_side_the_newest_last(tmp_path):
    both = [results.against("a", 2.0, "s", "peer", 4.0, note="Same.")]
    only = [results.against("b", 2.0, "s", "peer", 1.0, ratio=1.0, note="Old.")]
    write(tmp_path / "z-first", both + only)
    newer = [results.against("a", 1.0, "s", "peer", 4.0, note="Same.")]
    areas = [name for name in AREAS if name != "logs"]
    write(tmp_path / "a-second", newer, areas=areas)
    for path in tmp_path.glob("a-second/*.json"):
        area = json.loads(path.read_text()) | {"machine": SOME | {"processor": "Other(R) CPU, x"}}
        path.write_text(json.dumps(area | {"date": "2026-03-04"}))
    page = docs.page(tmp_path)
    lines = page.splitlines()
    heads = "Some CPU, 2 cores (2026-01-02) | Other CPU, 2 cores (2026-03-04)"
    assert f"| measured | {heads} |" in lines
    assert line_of(page, "a") == (
        "| a<br>against peer<br>Same. | **2**<br>2 s against 4 s | **4**<br>1 s against 4 s |"
    )
    assert line_of(page, "b").endswith("**falls short** | not measured |")
    assert any(line.startswith("## Planning") and "(Other CPU, 2 cores)" in line for line in lines)
    assert any(line.startswith("## Logs") and "(Some CPU, 2 cores)" in line for line in lines)
    assert "Not measured: logs." in " ".join(page.split())
    table = docs.table(tmp_path).splitlines()
    assert table[0] == "| measured | against | Some CPU, 2 cores | Other CPU, 2 cores |"
    (logs,) = (line for line in table if line.startswith("| 20 million"))
    assert logs.endswith("| **4**: 2 s against 8 s | not measured |")
    assert table[-1] == (
        "Measured on Some CPU, 2 cores: 2026-01-02; Other CPU, 2 cores: 2026-03-04."
    )


def test_a_remark_about_the_runs_is_shown(tmp_path):
    write(tmp_path / "one", [])
    (tmp_path / "one" / "remark.md").write_text("Other programs\nran.\n")
    assert "numpy 2. Other programs ran. ## Planning" in " ".join(docs.page(tmp_path).split())
    assert "2026-01-02 (read the remark about its runs" in docs.table(tmp_path)


def test_notes_that_differ_stand_with_their_machine(tmp_path):
    write(tmp_path / "one", [results.against("a", 2.0, "s", "peer", 4.0, note="First.")])
    write(tmp_path / "two", [results.against("a", 2.0, "s", "peer", 4.0, note="Second.")])
    assert line_of(docs.page(tmp_path), "a") == (
        "| a<br>against peer | **2**<br>2 s against 4 s<br>First. | "
        "**2**<br>2 s against 4 s<br>Second. |"
    )


def test_older_names_of_measurements_are_shown_under_their_names_now(tmp_path):
    old = results.against("A million states: one plan, 2 cores", 1.0, "s", "peer", 4.0)
    assert line_of(filled(tmp_path, [old]), "A million states: one plan in every cell, all cores")


def test_what_is_missing_is_named(tmp_path):
    filled(tmp_path, [])
    (tmp_path / "some-cpu" / "logs.json").unlink()
    with pytest.raises(SystemExit, match=r"logs.json is missing; run python -m benchmarks.logs"):
        docs.page(tmp_path)
    with pytest.raises(SystemExit, match="has no <!-- benchmarks -->"):
        docs.between("no marks", "table")
    with pytest.raises(SystemExit, match="service has no row"):
        docs.find("service", [], "a", "b")
