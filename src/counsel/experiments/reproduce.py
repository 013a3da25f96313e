"""All experiments in one folder: run what is missing, draw, test the claims, write the report.

====================  =====================================================================
``manifest.json``     which experiments, at what scale, how many seeds
``runs/…``            one Parquet file a run (``store.py``)
``figures/…``         every picture as PNG and SVG
``claims.json``       what is claimed, what was measured, whether it holds
``report.html``       all of it on one page
====================  =====================================================================

Pictures, claims and the report are made from the runs alone and can be made again (``publish``).
"""

import json
import math
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from counsel._jit import cores
from counsel.errors import CounselError
from counsel.experiments.experiment import Claim, Experiment, Picture, Run, Size, settings_of
from counsel.experiments.paper import EXPERIMENTS
from counsel.experiments.pool import finished
from counsel.experiments.store import Done, Store, versions
from counsel.model.files import write_text
from counsel.report.page import Section, Shown, Told, page
from counsel.worlds.draw import save

MANIFEST, CLAIMS, REPORT, FIGURES = "manifest.json", "claims.json", "report.html", "figures"


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
        Every claim.
    done, skipped
        How many runs were done now, and how many were there already.
    seconds
        How long it took in all, and the runs by themselves.
    files
        What was written for people.
    """

    verdicts: tuple[Verdict, ...]
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
    planned: Callable[[int, int], None] = lambda left, all_of: None,
) -> Outcome:
    """Do what is missing of the experiments, then publish.

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
        Told how many runs are left of how many, and each that begins and ends.
    """
    begin, experiments, store = time.perf_counter(), chosen(names), Store(folder)
    together = _prepare(folder, [e.name for e in experiments], size)
    runs = all_runs(experiments, size)
    left = store.missing(runs)
    planned(len(left), len(runs))
    count = cores() if workers is None else workers
    for run, done in finished(_longest_first(left), workers=count, cluster=cluster, begun=begun):
        store.write(run, done)
        ended(run, done)
    verdicts, files = publish(folder, together, size, seconds=time.perf_counter() - begin)
    spent = time.perf_counter() - begin
    return Outcome(verdicts, len(left), len(runs) - len(left), spent, files)


def redraw(folder: Path) -> Outcome:
    """Publish again from the runs in a folder."""
    begin, told = time.perf_counter(), read_manifest(folder)
    size = Size(told["scale"], told["seeds"])
    runs = all_runs(chosen(told["experiments"]), size)
    missing = Store(folder).missing(runs)
    if missing:
        raise CounselError(
            f"{folder} lacks {len(missing)} of {len(runs)} runs, {missing[0].id} for one; "
            "finish it with counsel reproduce"
        )
    verdicts, files = publish(folder, told["experiments"], size, seconds=math.nan)
    return Outcome(verdicts, 0, len(runs), time.perf_counter() - begin, files)


def publish(
    folder: Path, names: Sequence[str], size: Size, *, seconds: float
) -> tuple[tuple[Verdict, ...], tuple[Path, ...]]:
    """Draw pictures, test claims and write the report, from the runs in the folder."""
    store, sections, verdicts = Store(folder), list[Section](), list[Verdict]()
    figures = folder / FIGURES
    figures.mkdir(parents=True, exist_ok=True)
    for experiment in chosen(names):
        runs = experiment.runs(size)
        done = {run.id: store.read(run) for run in runs}
        lost = [key for key, found in done.items() if found is None]
        if lost:
            raise CounselError(f"{lost[0]} is missing or damaged; run counsel reproduce again")
        rows = {key: found.rows for key, found in done.items() if found is not None}
        claims, pictures = experiment.claims(rows), experiment.pictures(rows)
        verdicts += [Verdict(experiment.name, claim) for claim in claims]
        for picture in pictures:
            for kind in ("png", "svg"):
                save(picture.figure, figures / f"{picture.name}.{kind}")
        spent = {key: f"{found.seconds:.1f}" for key, found in done.items() if found is not None}
        sections.append(
            Section(
                experiment.name,
                experiment.title,
                [_shown(figures, picture) for picture in pictures],
                [_told(claim) for claim in claims],
                [(run.id, _settings(run), spent[run.id]) for run in runs],
            )
        )
    write_text(folder / CLAIMS, json.dumps([record_of(v) for v in verdicts], indent=2) + "\n")
    title, lead = headline(verdicts)
    write_text(folder / REPORT, page(title, lead, _notes(size, seconds), sections))
    return tuple(verdicts), (folder / REPORT, folder / CLAIMS, figures)


def headline(verdicts: Sequence[Verdict]) -> tuple[str, str]:
    """Return the finding in two sentences."""
    papers = [v.claim for v in verdicts if v.claim.source == "paper"]
    ours = [v.claim for v in verdicts if v.claim.source == "ours"]
    held = sum(claim.holds for claim in papers)
    title = f"{held} of {len(papers)} claims of the paper hold"
    lead = "Adherence-aware advice: the paper's experiments, run again. "
    if ours:
        lead += f"Of {len(ours)} claims of our own {sum(c.holds for c in ours)} hold. "
    return title, lead + "Those that do not are listed as such below."


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
    return f"{float(f'{x:.3g}'):,.0f}" if abs(x) >= 100.0 else f"{x:.3g}"


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return what a folder holds."""
    try:
        told = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        Size(told["scale"], told["seeds"])
        chosen(told["experiments"])
    except FileNotFoundError:
        raise CounselError(f"{folder} holds no experiments; run counsel reproduce first") from None
    except (OSError, ValueError, KeyError, TypeError, CounselError):
        raise CounselError(
            f"{folder / MANIFEST} is no manifest of experiments; choose another folder"
        ) from None
    return dict(told)


def _prepare(folder: Path, names: list[str], size: Size) -> list[str]:
    """Make the folder, or join one of the same scale; return all experiments it will hold."""
    if (folder / MANIFEST).exists():
        told = read_manifest(folder)
        if told["scale"] != size.scale:
            raise CounselError(
                f"{folder} holds results at scale {told['scale']:g}, not {size.scale:g}; choose "
                "another folder with --out"
            )
        if told["seeds"] == size.seeds:
            names = [n for n in EXPERIMENTS if n in {*names, *told["experiments"]}]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise CounselError(f"cannot make the folder {folder}: {fault.strerror}") from None
    told = {"kind": "counsel-reproduction", "experiments": names, **asdict(size)}
    write_text(folder / MANIFEST, json.dumps(told, indent=2) + "\n")
    return names


def _longest_first(runs: list[Run]) -> list[Run]:
    """Begin with what takes longest, so that no worker is left with it at the end."""

    def cost(run: Run) -> tuple[bool, float]:
        told = settings_of(run)
        episodes = told.get("episodes") or told.get("spec", {}).get("episodes", 0)
        return "car" in run.id, episodes * (3.0 if told["kind"] == "Discovery" else 1.0)

    return sorted(runs, key=cost, reverse=True)


def _shown(figures: Path, picture: Picture) -> Shown:
    svg = (figures / f"{picture.name}.svg").read_text(encoding="utf-8")
    return Shown(picture.name, svg, picture.caption)


def _told(claim: Claim) -> Told:
    shown = number(claim)
    return Told(claim.text, claim.source, claim.measured, shown, claim.quantity, claim.holds)


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


def _notes(size: Size, seconds: float) -> list[str]:
    scale = (
        "the paper's full scale" if size.scale == 1.0 else f"{size.scale:g} of the paper's scale"
    )
    used = ", ".join(f"{name} {version}" for name, version in versions().items())
    notes = [
        f"At {scale}; every run repeated with {size.seeds} seeds.",
        "Numbers are means over seeds with a 95 % interval (Student's t); one number without an "
        "interval has no chance in it, or a single seed.",
        f"Versions: {used}.",
        f"Machine: {platform.machine()}, {cores()} cores.",
    ]
    if not math.isnan(seconds):
        notes.insert(
            1, f"The last call took {seconds:,.0f} seconds, with what was there already left out."
        )
    return notes
