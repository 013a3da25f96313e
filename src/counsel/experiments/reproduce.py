"""Experiments in a folder: execute missing runs, draw figures, test claims, write the report.

Pictures, claims and the report are made from the stored runs and can be made again (``publish``).
A folder has one scale and one first seed; experiments and seeds may be added. The report leaves out
unfinished experiments and names them.
"""

import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from counsel._files import make_folder, write_text
from counsel._jit import cores
from counsel.drawing.canvas import save
from counsel.errors import CounselError
from counsel.experiments.claim import Claim, Verdict
from counsel.experiments.experiment import Experiment, Run, Size, Table, settings_of
from counsel.experiments.paper import EXPERIMENTS
from counsel.experiments.store import RunResult, Store
from counsel.experiments.workers import open_workers
from counsel.report.reproduction_page import (
    PageClaim,
    PagePicture,
    PageTable,
    Section,
    reproduction_page,
)

MANIFEST, CLAIMS, REPORT = "manifest.json", "claims.json", "report.html"
FIGURES, TABLES = "figures", "tables"
KIND = "counsel-reproduction"


@dataclass(frozen=True, slots=True)
class Finding:
    """A claim and the experiment it belongs to."""

    experiment: str
    claim: Claim


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a reproduction.

    ``unfinished`` has the experiments in the folder that lack runs: how many are done, of how many.
    ``done`` and ``skipped`` count the runs executed now and those stored before.
    """

    findings: tuple[Finding, ...]
    unfinished: dict[str, tuple[int, int]]
    done: int
    skipped: int
    seconds: float
    files: tuple[Path, ...]


class Progress:
    """Follows a reproduction; by default it shows nothing."""

    def plan(self, left: Sequence[Run], runs: Sequence[Run]) -> None:
        """Learn which of all runs are left to execute."""

    def start(self, run: Run) -> None:
        """Learn that a run starts."""

    def end(self, run: Run, result: RunResult) -> None:
        """Learn that a run has ended."""


SILENT = Progress()


def choose_experiments(names: Sequence[str]) -> tuple[Experiment, ...]:
    """Return the experiments of these names, or all if there are no names."""
    for name in names:
        if name not in EXPERIMENTS:
            raise CounselError(
                f"no experiment is called {name!r}; choose one of {', '.join(EXPERIMENTS)}"
            )
    return tuple(e for e in EXPERIMENTS.values() if not names or e.name in names)


def all_runs(experiments: Sequence[Experiment], size: Size) -> list[Run]:
    """Return every run of the experiments once; some experiments share runs."""
    runs = {run.id: run for e in experiments for run in e.runs(e.at(size))}
    return list(runs.values())


def reproduce(  # noqa: PLR0913 (six, all of which a caller may choose)
    names: Sequence[str],
    size: Size,
    folder: Path,
    *,
    workers: int | None = None,
    cluster: str | None = None,
    progress: Progress = SILENT,
) -> Outcome:
    """Execute the missing runs of experiments, then publish all finished ones in the folder.

    No ``names`` means all experiments. ``workers`` is the number of processes, by default one per
    core; ``cluster`` is the address of a Dask scheduler to use instead.
    """
    begin, experiments = time.perf_counter(), choose_experiments(names)
    store = Store(folder)
    _check_folder(folder, size)
    with open_workers(cores() if workers is None else workers, cluster) as execute:
        _extend_manifest(folder, experiments, size)
        runs = all_runs(experiments, size)
        left = sorted(store.missing(runs), key=cost, reverse=True)
        progress.plan(left, runs)
        for run, result in execute(left, progress.start):
            store.write(run, result)
            progress.end(run, result)
    outcome = publish(folder, seconds=time.perf_counter() - begin)
    seconds = time.perf_counter() - begin
    return replace(outcome, done=len(left), skipped=len(runs) - len(left), seconds=seconds)


def redraw(folder: Path) -> Outcome:
    """Publish again from the runs in a folder."""
    begin = time.perf_counter()
    outcome = publish(folder, seconds=math.nan)
    return replace(outcome, seconds=time.perf_counter() - begin)


def publish(folder: Path, *, seconds: float) -> Outcome:
    """Draw figures, test claims and write the report, for all finished experiments in a folder.

    ``seconds`` is the time the runs took, for the report; NaN if nothing was run.
    """
    manifest, store = read_manifest(folder), Store(folder)
    sections, findings, used = list[Section](), list[Finding](), list[dict[str, str]]()
    unfinished, skipped = dict[str, tuple[int, int]](), 0
    figures = folder / FIGURES
    for experiment in EXPERIMENTS.values():
        if experiment.name not in manifest["experiments"]:
            continue
        runs = experiment.runs(_size_of(manifest, experiment.name))
        stored = {run.id: store.read(run) for run in runs}
        done = {key: result for key, result in stored.items() if result is not None}
        skipped += len(done)
        if len(done) < len(runs):
            unfinished[experiment.name] = (len(done), len(runs))
            continue
        rows = {key: result.rows for key, result in done.items()}
        claims, pictures = experiment.claims(rows), experiment.pictures(rows)
        findings += [Finding(experiment.name, claim) for claim in claims]
        tables = experiment.tables(rows)
        for table in tables:
            make_folder(folder / TABLES)
            write_text(folder / TABLES / f"{table.name}.md", markdown(table))
        used += [result.versions for result in done.values()]
        make_folder(figures)
        for picture in pictures:
            for kind in ("png", "svg"):
                save(picture.figure, figures / f"{picture.name}.{kind}")
        sections.append(
            Section(
                experiment.name,
                experiment.title,
                [
                    PagePicture(p.name, (figures / f"{p.name}.svg").read_text("utf-8"), p.caption)
                    for p in pictures
                ],
                [PageClaim(c.text, c.source, c.stated, c.measured, c.verdict) for c in claims],
                [PageTable(table.caption, table.rows) for table in tables],
                [(run.id, _settings(run), f"{done[run.id].seconds:.1f}") for run in runs],
            )
        )
    if not sections:
        (name, (there, total)), *_ = unfinished.items()
        raise CounselError(
            f"{folder} holds no finished experiment: {name} has {there} of {total} runs; "
            "finish it with counsel reproduce"
        )
    write_text(folder / CLAIMS, json.dumps([record_of(f) for f in findings], indent=1) + "\n")
    title, lead = headline([finding.claim for finding in findings])
    notes = _notes(manifest, unfinished, used, seconds)
    write_text(folder / REPORT, reproduction_page(title, lead, notes, sections))
    files = (folder / REPORT, folder / CLAIMS, figures)
    return Outcome(tuple(findings), unfinished, 0, skipped, seconds, files)


def headline(claims: Sequence[Claim]) -> tuple[str, str]:
    """Return the title and the first paragraph of the report."""
    papers = [claim.verdict for claim in claims if claim.source == "paper"]
    ours = [claim.verdict for claim in claims if claim.source == "ours"]
    lead = "Adherence-aware advice: the paper's experiments, run again. "
    title = f"{papers.count(Verdict.HOLDS)} of {len(papers)} claims of the paper hold"
    if not claims:
        title = "Figures without claims"
    elif not papers:
        title = f"{ours.count(Verdict.HOLDS)} of {len(ours)} claims of our own hold"
    elif ours:
        lead += f"Of {len(ours)} claims of our own, {ours.count(Verdict.HOLDS)} hold. "
    failed, unknown = ((papers + ours).count(v) for v in (Verdict.FAILS, Verdict.UNKNOWN))
    if failed + unknown:
        lead += f"Of all {len(claims)} claims, {failed} do not hold and {unknown} cannot be told."
    return title, lead.rstrip()


def markdown(table: Table) -> str:
    """Return a table as Markdown, with its caption below."""
    head, *rows = table.rows
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + f"\n\n{table.caption}\n"


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the scale and first seed of a folder, and its experiments with numbers of seeds."""
    try:
        manifest = {"first_seed": 0} | json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if manifest["kind"] != KIND or not manifest["experiments"]:
            raise ValueError(manifest["kind"])
        for name in manifest["experiments"]:
            choose_experiments([name])
            _size_of(manifest, name)
    except FileNotFoundError:
        raise CounselError(f"{folder} holds no experiments; run counsel reproduce first") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, CounselError):
        raise CounselError(
            f"{folder / MANIFEST} is not a manifest of experiments; choose another folder"
        ) from None
    return dict(manifest)


def _size_of(manifest: dict[str, Any], name: str) -> Size:
    """Return the size of an experiment in a folder."""
    return Size(manifest["scale"], manifest["experiments"][name], manifest["first_seed"])


def _check_folder(folder: Path, size: Size) -> None:
    """Refuse the current folder, and a folder with results at another scale or first seed."""
    if str(folder) in ("", "."):
        raise CounselError("results would be mixed with this folder; name another with --out")
    if (folder / MANIFEST).exists():
        manifest = read_manifest(folder)
        for name, there, here in (
            ("at scale", manifest["scale"], size.scale),
            ("from seed", manifest["first_seed"], size.first_seed),
        ):
            if there != here:
                raise CounselError(
                    f"{folder} holds results {name} {there:g}, not {here:g}; choose another "
                    "folder with --out"
                )


def _extend_manifest(folder: Path, experiments: Sequence[Experiment], size: Size) -> None:
    """Add the experiments to the manifest of the folder."""
    make_folder(folder)
    before = read_manifest(folder)["experiments"] if (folder / MANIFEST).exists() else {}
    added = {experiment.name: experiment.at(size).seeds for experiment in experiments}
    start = {"kind": KIND, "scale": size.scale, "first_seed": size.first_seed}
    manifest = start | {"experiments": before | added}
    write_text(folder / MANIFEST, json.dumps(manifest, indent=2) + "\n")


def cost(run: Run) -> float:
    """Return a rough estimate of the microseconds a run takes; the longest runs start first."""
    settings = settings_of(run)
    episodes = float(settings.get("episodes") or settings.get("spec", {}).get("episodes", 0))
    each = 2.0
    if "car" in run.id:
        each = 70.0 if settings["kind"] == "Discovery" else 25.0
    return 1e5 + each * episodes


def _settings(run: Run) -> str:
    """Return the settings of a run that are set, in one line."""
    settings = settings_of(run)
    flat = {**settings, **settings.pop("spec", {})}
    words = [f"{k}={v}" for k, v in flat.items() if k not in ("id", "spec") and _is_set(v)]
    return " ".join(words)


def _is_set(value: object) -> bool:
    return not (value is None or value is False or (isinstance(value, float) and math.isnan(value)))


def record_of(finding: Finding) -> dict[str, Any]:
    """Return a finding for JSON."""
    return {"experiment": finding.experiment} | finding.claim.record()


def _notes(
    manifest: dict[str, Any],
    unfinished: dict[str, tuple[int, int]],
    used: Sequence[dict[str, str]],
    seconds: float,
) -> list[str]:
    """Return sentences on how the experiments were run."""
    scale = manifest["scale"]
    much = "the paper's full scale" if scale == 1.0 else f"{scale:g} of the paper's scale"
    counts = sorted(set(manifest["experiments"].values()))
    seeds = " or ".join(str(n) for n in counts) + (" seed" if counts == [1] else " seeds")
    notes = [
        f"Runs are at {much}; claims rest on {seeds}, from seed {manifest['first_seed']} on.",
        "A claim holds, or does not hold, if the whole 99 % interval of its statistic lies on one "
        "side of its limit and each quarter of the runs agrees; otherwise it cannot be told. "
        "Intervals of shares are exact (Clopper and Pearson), those of medians lie between two "
        "ordered values. Numbers that are computed exactly have no interval.",
        "Lines in figures are means over seeds, bands their 95 % intervals (Student's t).",
    ]
    if not math.isnan(seconds):
        notes.append(f"The last call took {seconds:,.0f} seconds; stored runs were not repeated.")
    notes += [
        f"{name} is left out: {there} of its {total} runs are done."
        for name, (there, total) in unfinished.items()
    ]
    packages = {", ".join(f"{k} {v}" for k, v in versions.items()) for versions in used}
    return [*notes, *(f"Runs used {versions}." for versions in sorted(packages))]
