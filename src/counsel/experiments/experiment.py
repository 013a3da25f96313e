"""What an experiment is: runs, which are data; pictures and claims, which are functions of rows.

A *run* is a frozen dataclass with a permanent id such as ``regret-safe/ucb-ad#3``: the experiment,
the learner, and the seed. Its ``rows`` depend only on its fields. *Pictures* and *claims* are made
from saved rows alone, so both can be made again without running anything.
"""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from counsel._arrays import real, whole
from counsel.errors import CounselError
from counsel.experiments.claim import SEEDS, Claim
from counsel.experiments.rows import Rows, RowsByRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEW = 5  # the seeds of runs that are drawn or shown but decide no claim


@dataclass(frozen=True, slots=True)
class Size:
    """A factor on the paper's numbers of episodes, and the seeds of each run.

    ``seeds`` is their number; None stands for the number that each experiment declares. The first
    is ``first_seed``: sizes whose seeds do not overlap have different runs.
    """

    scale: float = 1.0
    seeds: int | None = None
    first_seed: int = 0

    def __post_init__(self) -> None:
        if self.seeds is not None:
            whole("seeds", self.seeds, least=1)
        whole("first_seed", self.first_seed, least=0)
        if not 0.0 < real("scale", self.scale) <= 1000.0:
            raise CounselError(f"scale is {self.scale}; it must be above 0 and at most 1000")

    @property
    def repeats(self) -> range:
        """The seeds of runs that decide claims."""
        return range(self.first_seed, self.first_seed + (self.seeds or SEEDS))

    @property
    def few(self) -> "Size":
        """The size with few seeds, for runs that are drawn or shown but decide no claim."""
        return self.at_most(FEW)

    def at_most(self, seeds: int) -> "Size":
        """Return the size with at most so many seeds."""
        return replace(self, seeds=min(seeds, len(self.repeats)))

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
    """Return all fields of a run and its kind (``kind``, or the name of the class), for JSON."""
    settings: dict[str, Any] = asdict(run)  # type: ignore[call-overload]
    return {"kind": getattr(run, "kind", type(run).__name__)} | settings


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure, the name of its file, and its caption."""

    name: str
    figure: "Figure"
    caption: str

    @classmethod
    def of(cls, name: str, figure: "Figure", caption: str, claims: Iterable[Claim]) -> "Picture":
        """Return a picture whose caption ends with the claims."""
        return cls(name, figure, " ".join([caption, *(claim.sentence for claim in claims)]))


@dataclass(frozen=True, slots=True)
class Table:
    """A table of text: its name, its caption, and its rows, of which the first is the head."""

    name: str
    caption: str
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Experiment:
    """An experiment: its runs for a size; pictures, claims and tables as functions of their rows.

    ``name`` is the name on the command line, ``title`` the subject in the report, and ``seeds`` the
    number of seeds that its claims need.
    """

    name: str
    title: str
    runs: Callable[[Size], tuple[Run, ...]]
    pictures: Callable[[RowsByRun], tuple[Picture, ...]]
    claims: Callable[[RowsByRun], tuple[Claim, ...]]
    seeds: int = SEEDS
    tables: Callable[[RowsByRun], tuple[Table, ...]] = lambda _: ()

    def at(self, size: Size) -> Size:
        """Return the size with the number of seeds that this experiment needs, unless it is set."""
        return replace(size, seeds=self.seeds) if size.seeds is None else size
