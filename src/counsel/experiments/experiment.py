"""What an experiment is: runs, which are data; pictures and claims, which are functions of rows.

A *run* is a frozen dataclass with a permanent id such as ``regret-safe/ucb-ad#3``: the experiment,
the learner, and the seed. Its ``rows`` depend only on its fields. *Pictures* and *claims* are made
from saved rows alone, so both can be made again without running anything.
"""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

from counsel._arrays import real, whole
from counsel.errors import CounselError
from counsel.estimate.intervals import Interval
from counsel.experiments.rows import Rows, RowsByRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Size:
    """The scale of a reproduction, and the number of seeds.

    Attributes
    ----------
    scale
        A factor on the paper's numbers of episodes.
    seeds
        The number of repetitions of each run.
    """

    scale: float = 1.0
    seeds: int = 5

    def __post_init__(self) -> None:
        whole("seeds", self.seeds, least=1)
        if not 0.0 < real("scale", self.scale) <= 1000.0:
            raise CounselError(f"scale is {self.scale}; it must be above 0 and at most 1000")

    def episodes(self, full: int) -> int:
        """Return the number of episodes at this scale: at least ten."""
        return max(10, round(full * self.scale))

    def every(self, full: int, episodes: int) -> int:
        """Return the number of episodes between plans: as in the paper, but ten plans per run."""
        return max(1, min(full, self.episodes(episodes) // 10))


class Run(Protocol):
    """A run: frozen data, and the rows that follow from them."""

    @property
    def id(self) -> str:
        """The experiment, the learner, and the seed: ``regret-safe/ucb-ad#3``."""
        ...

    def rows(self) -> Rows:
        """Run, and return the columns."""
        ...


def settings_of(run: Run) -> dict[str, Any]:
    """Return the kind and all fields of a run, for JSON.

    The kind is the name of the class, or its attribute ``kind``.
    """
    settings: dict[str, Any] = asdict(run)  # type: ignore[call-overload]
    return {"kind": getattr(run, "kind", type(run).__name__)} | settings


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim about the results, the measurement behind it, and whether it holds.

    Attributes
    ----------
    text
        The claim, in one sentence.
    source
        "paper" or "ours".
    measured
        The measurement in words.
    quantity, value
        A number: its name, and its mean over seeds with an interval.
    holds
        Whether the claim holds for these rows.
    """

    text: str
    source: str
    measured: str
    quantity: str
    value: Interval
    holds: bool

    @property
    def sentence(self) -> str:
        """The claim and whether it holds, for a caption."""
        verdict = "This holds" if self.holds else "This does not hold"
        return f"{self.text} {verdict}: {self.measured}."


def sentences(claims: Iterable[Claim]) -> str:
    """Return the sentences of claims, for a caption."""
    return " ".join(claim.sentence for claim in claims)


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure, the name of its file, and its caption."""

    name: str
    figure: "Figure"
    caption: str


@dataclass(frozen=True, slots=True)
class Experiment:
    """An experiment: its runs, and the pictures and claims that follow from their rows.

    Attributes
    ----------
    name
        The name on the command line.
    title
        The subject, for the report.
    runs
        Returns all runs for a size.
    pictures, claims
        Functions of the rows by run id.
    """

    name: str
    title: str
    runs: Callable[[Size], tuple[Run, ...]]
    pictures: Callable[[RowsByRun], tuple[Picture, ...]]
    claims: Callable[[RowsByRun], tuple[Claim, ...]]
