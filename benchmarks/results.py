"""Results as data: rows are printed as they are measured, then written with their machine.

Every module writes ``results/<machine>/<area>.json`` in the same format, so that results of one
machine never replace those of another; ``tools/benchmark_pages.py`` turns the files into a page and
into the table of README.
"""

import json
import os
import platform
import re
import resource
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.timing import Spread
from counsel._files import write_text
from counsel._jit import cores

FOLDER = Path(__file__).parent / "results"
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
ALWAYS = ("counsel", "numpy", "numba")
"""Packages whose versions are always recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measurement.

    Attributes
    ----------
    what, ours, unit
        The name of the measurement, Counsel's figure, and its unit.
    peer, theirs, ratio
        The peer measured in the same run, its figure, and how many times better Counsel is: above 1
        it is ahead. None without a peer; the ratio is also None if Counsel's figure is 0.
    alone
        Why there is no peer.
    asked, holds
        The target, and whether it holds; None without a target.
    memory, peer_memory
        Peak memory in GB, if measured.
    spread
        The lowest, median and highest ratio of single turns, if timed by turns: how much the
        machine wobbled. Without a peer, the same for Counsel's figure if that is a ratio.
    note
        A remark.
    """

    what: str
    ours: float
    unit: str
    peer: str | None = None
    theirs: float | None = None
    ratio: float | None = None
    alone: str = ""
    asked: str | None = None
    holds: bool | None = None
    memory: float | None = None
    peer_memory: float | None = None
    spread: Spread | None = None
    note: str = ""


def against(
    what: str,
    ours: float,
    unit: str,
    peer: str,
    theirs: float,
    *,
    more: bool = False,
    ratio: float | None = None,
    **rest: Any,
) -> Row:
    """Return a row with a peer.

    Parameters
    ----------
    what, ours, unit, peer, theirs
        As in ``Row``.
    more
        Whether more is better, as in steps per second; else less is better, as in seconds.
    ratio
        The target for the ratio.
    rest
        Targets for Counsel's figure, as in ``alone``, and other fields of ``Row``.
    """
    above, below = (ours, theirs) if more else (theirs, ours)
    times = above / below if below else 1.0 if above == below else None
    if ratio is not None:
        rest |= {"asked": f"ratio ≥ {ratio:g}", "holds": times is None or times >= ratio}
    return alone(what, ours, unit, "", peer=peer, theirs=theirs, ratio=times, **rest)


def alone(
    what: str,
    ours: float,
    unit: str,
    why: str,
    *,
    least: float | None = None,
    most: float | None = None,
    **rest: Any,
) -> Row:
    """Return a row without a peer, and why there is none; ``least`` or ``most`` is the target."""
    if least is not None:
        rest |= {"asked": f"≥ {least:,g}", "holds": ours >= least}
    if most is not None:
        rest |= {"asked": f"≤ {most:,g}", "holds": ours <= most}
    return Row(what=what, ours=ours, unit=unit, alone=why, **rest)


def line(row: Row) -> str:
    """Return a row as printed."""
    text = f"{row.what}: {figure(row.ours)} {row.unit}"
    if row.peer is not None and row.theirs is not None:
        text += f"; {row.peer} {figure(row.theirs)}, ratio "
        text += "∞" if row.ratio is None else figure(row.ratio)
    if row.spread is not None:
        low, median, high = (figure(value) for value in row.spread)
        text += f" (turns {low} to {high}, median {median})"
    if row.memory is not None:
        text += f"; memory {row.memory:.2f} GB"
        text += "" if row.peer_memory is None else f" against {row.peer_memory:.2f} GB"
    if row.asked is not None:
        text += f" (asked {row.asked}) {'holds' if row.holds else 'FALLS SHORT'}"
    return f"{text}. {row.note}" if row.note else text


def figure(value: float) -> str:
    """Return a number with three significant digits."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def record(
    area: str, rows: Iterable[Row], *, packages: Sequence[str] = (), folder: Path | None = FOLDER
) -> None:
    """Print rows as they are measured, and write all of them after the last.

    Parameters
    ----------
    area
        The name of the file.
    rows
        What is measured while it is read.
    packages
        Peers and others whose version matters.
    folder
        The folder of all results, which has one folder per machine; None if a run is too short to
        be kept.
    """
    begin, before, busy = time.perf_counter(), processor_seconds(), os.getloadavg()[0]
    kept = []
    for row in rows:
        print(line(row), flush=True)
        kept.append(row)
    spent = time.perf_counter() - begin
    print(f"{area}: {len(kept)} rows in {spent:.0f} s", flush=True)
    if folder is None:
        print("Not written down: this run is shorter than the one of record.")
        return
    asked = [row.holds for row in kept if row.holds is not None]
    results = {
        "area": area,
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "seconds": rounded(spent),
        "processor_seconds": rounded(processor_seconds() - before),
        "load_before": rounded(busy),
        "machine": machine(),
        "versions": {name: version(name) for name in (*ALWAYS, *packages)},
        "all_hold": all(asked) if asked else None,
        "rows": [{k: rounded(v) for k, v in asdict(row).items()} for row in kept],
    }
    own = folder / slug(results["machine"])
    own.mkdir(parents=True, exist_ok=True)
    content = json.dumps(results, indent=1, ensure_ascii=False, allow_nan=False)
    write_text(own / f"{area}.json", content + "\n")
    print(f"Wrote benchmarks/results/{own.name}/{area}.json.")
    print("Next: python tools/benchmark_pages.py")


def rounded(value: Any) -> Any:
    """Round numbers to four significant digits; return anything else unchanged."""
    if isinstance(value, Spread):
        return [rounded(ratio) for ratio in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def processor_seconds() -> float:
    """Return the processor time of this process and of its finished children."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def machine() -> dict[str, Any]:
    """Return a description of the machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": processor(),
        "cores": cores(),
        "l3_mb": l3_cache(),
        "memory_gb": round(memory / 2**30),
        "system": system(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }


def slug(parts: dict[str, Any]) -> str:
    """Return the name of a machine's folder: its processor and its cores."""
    name = re.sub(r"\((r|tm)\)", "", f"{parts['processor']} {parts['cores']} cores".lower())
    return re.sub(r"[^a-z0-9]+", "-", name).strip("-")


def l3_cache(caches: Path = CACHES) -> float | None:
    """Return the size of the level 3 cache in MB, or None if it is not known."""
    for cache in sorted(caches.glob("index*")):
        try:
            level, size = ((cache / name).read_text().strip() for name in ("level", "size"))
        except OSError:
            continue
        number = re.fullmatch(r"(\d+)([KM])", size)
        if level == "3" and number:
            return int(number[1]) / (1024 if number[2] == "K" else 1)
    return None


def processor() -> str:
    """Return the model of the processor, and its architecture."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        text = ""
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return f"{value.strip()}, {platform.machine()}"
    return platform.processor() or platform.machine()


def system() -> str:
    """Return the operating system."""
    try:
        return str(platform.freedesktop_os_release()["PRETTY_NAME"])
    except (OSError, KeyError):
        return f"{platform.system()} {platform.release()}"
