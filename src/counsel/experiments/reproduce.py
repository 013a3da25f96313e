"""All experiments in one folder: run what is missing, draw, test the claims, write the report.

====================  =====================================================================
``manifest.json``     at what scale, which experiments, with how many seeds each
``runs/…``            one Parquet file a run (``store.py``)
``figures/…``         every picture as PNG and SVG
``claims.json``       what is claimed, what was measured, whether it holds
``report.html``       all of it on one page
====================  =====================================================================

Pictures, claims and the report are made from the runs alone and can be made again (``publish``).
A folder holds one scale; experiments may be added, and seeds. What is not finished is left out of
the report and named.
"""

import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from counsel._files import make_folder, write_text
from counsel._jit import cores
from counsel.drawing.canvas import save
from counsel.errors import CounselError
from counsel.experiments.experiment import Claim, Experiment, Picture, Run, Size, settings_of
from counsel.experiments.paper import EXPERIMENTS
from counsel.experiments.store import Done, Store
from counsel.experiments.workers import workforce
from counsel.report.reproduction_page import (
    PageClaim,
    PagePicture,
    Section,
    reproduction_page,
)

MANIFEST, CLAIMS, REPORT, FIGURES = "manifest.json", "claims.json", "report.html", "figures"
KIND = "counsel-reproduction"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A claim and the experiment it belongs to."""

    experiment: str
    claim: Claim


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it.

    Attributes
    ----------
    verdicts
        Every claim of experiments that are finished.
    unfinished
        Experiments in the folder that lack runs, and how many of how many.
    done, skipped
        How many runs were done now, and how many were there already.
    seconds
        How long it took in all.
    files
        What was written for people.
    """

    verdicts: tuple[Verdict, ...]
    unfinished: dict[str, tuple[int, int]]
    done: int
    skipped: int
    seconds: float
    files: tuple[Path, ...]


def chosen(names: Sequence[str]) -> tuple[Experiment, ...]:
    """Return the experiments of these names; all without any."""
    for name in names:
        if name not in EXPERIMENTS:
            raise CounselError(
                f"no experiment is called {name!r}; there is {', '.join(EXPERIMENTS)}"
            )
    return tuple(e for e in EXPERIMENTS.values() if not names or e.name in names)


def all_runs(experiments: Sequence[Experiment], size: Size) -> list[Run]:
    """Return every run once: some experiments share theirs."""
    found = {run.id: run for experiment in experiments for run in experiment.runs(size)}
    return list(found.values())


def reproduce(  # noqa: PLR0913 (what, how much, where, by whom, and who is told)
    names: Sequence[str],
    size: Size,
    folder: Path,
    *,
    workers: int | None = None,
    cluster: str | None = None,
    begun: Callable[[Run], None] = lambda run: None,
    ended: Callable[[Run, Done], None] = lambda run, done: None,
    planned: Callable[[Sequence[Run], Sequence[Run]], None] = lambda left, all_of: None,
) -> Outcome:
    """Do what is missing of the experiments, then publish all that is finished in the folder.

    Parameters
    ----------
    names
        Which; all when empty.
    size
        How much of the paper's scale, and how many seeds.
    folder
        Where results are kept; what is there already is not done again.
    workers, cluster
        How many processes (all cores when not given), or the address of a Dask scheduler.
    planned, begun, ended
        Told which runs are left of which, and each that begins and ends.
    """
    begin, experiments, store = time.perf_counter(), chosen(names), Store(folder)
    count = cores() if workers is None else workers
    _check_folder(folder, size)
    with workforce(count, cluster) as serve:
        _join(folder, experiments, size)
        runs = all_runs(experiments, size)
        left = sorted(store.missing(runs), key=cost, reverse=True)
        planned(left, runs)
        for run, done in serve(left, begun):
            store.write(run, done)
            ended(run, done)
    found = publish(folder, seconds=time.perf_counter() - begin)
    return replace(found, done=len(left), skipped=len(runs) - len(left), seconds=_since(begin))


def redraw(folder: Path) -> Outcome:
    """Publish again from the runs in a folder."""
    begin = time.perf_counter()
    return replace(publish(folder, seconds=math.nan), seconds=_since(begin))


def _since(begin: float) -> float:
    return time.perf_counter() - begin


def publish(folder: Path, *, seconds: float) -> Outcome:
    """Draw pictures, test claims and write the report, for all that is finished in a folder."""
    told, store = read_manifest(folder), Store(folder)
    sections, verdicts, used = list[Section](), list[Verdict](), list[dict[str, str]]()
    unfinished, skipped = dict[str, tuple[int, int]](), 0
    figures = folder / FIGURES
    for experiment in EXPERIMENTS.values():
        if experiment.name not in told["experiments"]:
            continue
        runs = experiment.runs(Size(told["scale"], told["experiments"][experiment.name]))
        found = {run.id: store.read(run) for run in runs}
        done = {key: value for key, value in found.items() if value is not None}
        skipped += len(done)
        if len(done) < len(runs):
            unfinished[experiment.name] = (len(done), len(runs))
            continue
        rows = {key: value.rows for key, value in done.items()}
        claims, pictures = experiment.claims(rows), experiment.pictures(rows)
        verdicts += [Verdict(experiment.name, claim) for claim in claims]
        used += [value.versions for value in done.values()]
        make_folder(figures)
        for picture in pictures:
            for kind in ("png", "svg"):
                save(picture.figure, figures / f"{picture.name}.{kind}")
        sections.append(
            Section(
                experiment.name,
                experiment.title,
                [_page_picture(figures, picture) for picture in pictures],
                [_page_claim(claim) for claim in claims],
                [(run.id, _settings(run), f"{done[run.id].seconds:.1f}") for run in runs],
            )
        )
    if not sections:
        (name, (there, all_of)), *_ = unfinished.items()
        raise CounselError(
            f"{folder} holds no finished experiment: {name} has {there} of {all_of} runs; "
            "finish it with counsel reproduce"
        )
    write_text(folder / CLAIMS, json.dumps([record_of(v) for v in verdicts], indent=2) + "\n")
    title, lead = headline(verdicts)
    notes = _notes(told, unfinished, used, seconds)
    write_text(folder / REPORT, reproduction_page(title, lead, notes, sections))
    files = (folder / REPORT, folder / CLAIMS, figures)
    return Outcome(tuple(verdicts), unfinished, 0, skipped, seconds, files)


def headline(verdicts: Sequence[Verdict]) -> tuple[str, str]:
    """Return the finding in two sentences."""
    papers = [v.claim for v in verdicts if v.claim.source == "paper"]
    ours = [v.claim for v in verdicts if v.claim.source == "ours"]
    held, own = sum(claim.holds for claim in papers), sum(claim.holds for claim in ours)
    lead = "Adherence-aware advice: the paper's experiments, run again. "
    title = f"{held} of {len(papers)} claims of the paper hold"
    if ours and not papers:
        title = f"{own} of {len(ours)} claims of our own hold"
    elif ours:
        lead += f"Of {len(ours)} claims of our own {own} hold. "
    if held + own < len(verdicts):
        lead += "Those that do not are listed as such below."
    return title, lead.rstrip()


def number(claim: Claim) -> str:
    """Return the number behind a claim with its interval."""
    mean, low, high = claim.value
    if math.isnan(mean):
        return "–"
    if math.isnan(low):
        return _three(mean)
    return f"{_three(mean)} [{_three(low)}, {_three(high)}]"


def _three(x: float) -> str:
    """Return three significant digits, without powers of ten; rounding is nothing."""
    if abs(x) < 1e-9:
        return "0"
    if abs(x) < 1e-3:
        return f"{x:.4f}"
    return f"{float(f'{x:.3g}'):,.0f}" if abs(x) >= 100.0 else f"{x:.3g}"


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return what a folder holds: its scale, and the experiments with their seeds."""
    try:
        told = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if told["kind"] != KIND or not told["experiments"]:
            raise ValueError(told["kind"])
        for name, seeds in told["experiments"].items():
            chosen([name])
            Size(told["scale"], seeds)
    except FileNotFoundError:
        raise CounselError(f"{folder} holds no experiments; run counsel reproduce first") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, CounselError):
        raise CounselError(
            f"{folder / MANIFEST} is no manifest of experiments; choose another folder"
        ) from None
    return dict(told)


def _check_folder(folder: Path, size: Size) -> None:
    """Refuse the folder one is in, and one with results at another scale."""
    if str(folder) in ("", "."):
        raise CounselError("results would be strewn over this folder; name another with --out")
    if (folder / MANIFEST).exists():
        told = read_manifest(folder)
        if told["scale"] != size.scale:
            raise CounselError(
                f"{folder} holds results at scale {told['scale']:g}, not {size.scale:g}; choose "
                "another folder with --out"
            )


def _join(folder: Path, experiments: Sequence[Experiment], size: Size) -> None:
    """Note in the folder what it is going to hold, besides what it holds already."""
    make_folder(folder)
    held = read_manifest(folder)["experiments"] if (folder / MANIFEST).exists() else {}
    asked = {experiment.name: size.seeds for experiment in experiments}
    told = {"kind": KIND, "scale": size.scale, "experiments": held | asked}
    write_text(folder / MANIFEST, json.dumps(told, indent=2) + "\n")


def cost(run: Run) -> float:
    """Return about how many microseconds a run takes: the longest begin first."""
    told = settings_of(run)
    episodes = float(told.get("episodes") or told.get("spec", {}).get("episodes", 0))
    each = 2.0
    if "car" in run.id:
        each = 70.0 if told["kind"] == "Discovery" else 25.0
    return 1e5 + each * episodes


def _page_picture(figures: Path, picture: Picture) -> PagePicture:
    svg = (figures / f"{picture.name}.svg").read_text(encoding="utf-8")
    return PagePicture(picture.name, svg, picture.caption)


def _page_claim(claim: Claim) -> PageClaim:
    shown = number(claim)
    return PageClaim(claim.text, claim.source, claim.measured, shown, claim.quantity, claim.holds)


def _settings(run: Run) -> str:
    """Return the settings of a run in one line: those that are set."""
    told = settings_of(run)
    flat = {**told, **told.pop("spec", {})}
    shown = [f"{k}={v}" for k, v in flat.items() if k not in ("id", "spec") and _is_set(v)]
    return " ".join(shown)


def _is_set(value: object) -> bool:
    return not (value is None or value is False or (isinstance(value, float) and math.isnan(value)))


def record_of(verdict: Verdict) -> dict[str, Any]:
    """Return a claim for JSON."""
    claim = verdict.claim
    ends = [None if math.isnan(x) else x for x in claim.value]
    return {
        "experiment": verdict.experiment,
        "claim": claim.text,
        "source": claim.source,
        "measured": claim.measured,
        "quantity": claim.quantity,
        "mean": ends[0],
        "interval": None if ends[1] is None else ends[1:],
        "holds": claim.holds,
    }


def _notes(
    told: dict[str, Any],
    unfinished: dict[str, tuple[int, int]],
    used: Sequence[dict[str, str]],
    seconds: float,
) -> list[str]:
    scale = told["scale"]
    much = "the paper's full scale" if scale == 1.0 else f"{scale:g} of the paper's scale"
    repeats = sorted(set(told["experiments"].values()))
    seeds = " or ".join(str(n) for n in repeats) + (" seed" if repeats == [1] else " seeds")
    notes = [
        f"At {much}; every run that chance enters was repeated with {seeds}.",
        "Numbers are means over seeds with a 95 % interval (Student's t); one number without an "
        "interval has no chance in it, or a single seed.",
    ]
    if not math.isnan(seconds):
        notes.append(f"The last call took {seconds:,.0f} seconds; what was there was not redone.")
    notes += [
        f"Left out: {name}, of which {there} of {all_of} runs are done."
        for name, (there, all_of) in unfinished.items()
    ]
    made = sorted({", ".join(f"{k} {v}" for k, v in one.items()) for one in used})
    return [*notes, *(f"Runs were made with {versions}." for versions in made)]
