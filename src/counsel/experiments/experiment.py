"""What an experiment is: runs, which are data; pictures and claims, which are functions of rows.

A *run* is a frozen dataclass with an id for ever, such as ``regret-safe/ucb-ad#3``: the experiment,
who learns, and the seed. Its ``rows`` depend on nothing but its fields. A *picture* and a *claim*
are made from saved rows alone, so both can be made again without running anything.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from counsel._arrays import Floats, real, whole
from counsel.errors import CounselError
from counsel.estimate.intervals import Interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Rows = Mapping[str, NDArray[Any]]
"""Columns of one run, by name. What does not apply to a row is NaN or −1."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much of the paper's scale, and how many seeds.

    Attributes
    ----------
    scale
        What the paper's episodes are multiplied by.
    seeds
        How often each run is repeated.
    """

    scale: float = 1.0
    seeds: int = 5

    def __post_init__(self) -> None:
        whole("seeds", self.seeds, least=1)
        if not 0.0 < real("scale", self.scale) <= 1000.0:
            raise CounselError(f"scale is {self.scale}; it must be above 0 and at most 1000")

    def episodes(self, full: int) -> int:
        """Return how many of the paper's episodes are played: at least ten."""
        return max(10, round(full * self.scale))

    def every(self, full: int, episodes: int) -> int:
        """Return after how many a policy is planned anew: as in the paper, but ten times a run."""
        return max(1, min(full, self.episodes(episodes) // 10))


class Run(Protocol):
    """One run: frozen data, and the rows they lead to."""

    @property
    def id(self) -> str:
        """The experiment, who learns, and the seed: ``regret-safe/ucb-ad#3``."""
        ...

    def rows(self) -> Rows:
        """Run, and return columns."""
        ...


def settings_of(run: Run) -> dict[str, Any]:
    """Return all fields of a run and what kind it is, as JSON can hold them."""
    told: dict[str, Any] = asdict(run)  # type: ignore[call-overload]
    return {"kind": type(run).__name__} | told


@dataclass(frozen=True, slots=True)
class Claim:
    """Something said of the results, what was measured, and whether it holds.

    Attributes
    ----------
    text
        What is claimed, in one sentence.
    source
        "paper" or "ours".
    measured
        What was measured, in words.
    quantity, value
        The number behind it: of what, and its mean over seeds with an interval.
    holds
        Whether it holds for the rows at hand.
    """

    text: str
    source: str
    measured: str
    quantity: str
    value: Interval
    holds: bool

    @property
    def sentence(self) -> str:
        """The claim and whether it holds, for the end of a caption."""
        verdict = "This holds" if self.holds else "This does not hold"
        return f"{self.text} {verdict}: {self.measured}."


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure, the name of its file, and its caption."""

    name: str
    figure: "Figure"
    caption: str


@dataclass(frozen=True, slots=True)
class Experiment:
    """Runs as data, and what is made of their rows.

    Attributes
    ----------
    name
        What it is called on the command line.
    title
        What it is about.
    runs
        All runs for a size.
    pictures, claims
        Made from rows by run id.
    """

    name: str
    title: str
    runs: Callable[[Size], tuple[Run, ...]]
    pictures: Callable[[Mapping[str, Rows]], tuple[Picture, ...]]
    claims: Callable[[Mapping[str, Rows]], tuple[Claim, ...]]


def seeds_of(rows: Mapping[str, Rows], name: str) -> list[Rows]:
    """Return the rows of all seeds of one learner, ``regret-safe/ucb-ad`` say, in order of seed."""
    found = sorted(
        (int(key.rsplit("#", 1)[1]), key) for key in rows if key.rsplit("#", 1)[0] == name
    )
    if not found:
        raise CounselError(f"there are no rows of {name}; run it first")
    return [rows[key] for _, key in found]


def series(
    rows: Mapping[str, Rows],
    name: str,
    column: str,
    *,
    over: str = "episode",
    **chosen: float,
) -> tuple[Floats, Floats]:
    """Return where, and a column there for each seed [seed, row], of one learner's rows.

    ``chosen`` are columns that must have these values: ``when=0``, ``penalty=0.2``.
    """
    runs = seeds_of(rows, name)
    where = np.ones(runs[0][column].size, dtype=np.bool_)
    for key, value in chosen.items():
        where &= runs[0][key] == value
    return runs[0][over][where].astype(np.float64), np.stack([run[column][where] for run in runs])


def last_of(rows: Mapping[str, Rows], name: str, column: str) -> Floats:
    """Return the last number of a column for each seed."""
    return np.array([run[column][-1] for run in seeds_of(rows, name)])


def padded(columns: Mapping[str, NDArray[Any]]) -> Rows:
    """Return columns of one length: NaN or −1 where there is nothing more."""
    most = max(column.size for column in columns.values())
    filled: dict[str, NDArray[Any]] = {}
    for name, column in columns.items():
        nothing = np.nan if column.dtype.kind == "f" else -1
        filled[name] = np.append(column, np.full(most - column.size, nothing, column.dtype))
    return filled
