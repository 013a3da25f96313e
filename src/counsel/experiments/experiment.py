"""What an experiment is: runs, which are data; pictures and claims, which are functions of rows.

A *run* is a frozen dataclass with a permanent id such as ``regret-safe/ucb-ad#3``: the experiment,
the learner, and the seed. Its ``rows`` depend only on its fields. *Pictures* and *claims* are made
from saved rows alone, so both can be made again without running anything.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

from counsel._arrays import Floats, real, whole
from counsel.errors import CounselError
from counsel.estimate.intervals import Interval, interval
from counsel.experiments.rows import Rows, RowsByRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Size:
    """A factor on the paper's numbers of episodes, and the number of repetitions of each run."""

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
    """Return all fields of a run and its kind (``kind``, or the name of the class), for JSON."""
    settings: dict[str, Any] = asdict(run)  # type: ignore[call-overload]
    return {"kind": getattr(run, "kind", type(run).__name__)} | settings


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of one sentence, the measurement behind it in words, and whether it holds.

    ``source`` is "paper" or "ours"; ``quantity`` names the number ``value``, a mean over seeds.
    """

    text: str
    source: str
    measured: str
    quantity: str
    value: Interval
    holds: bool

    @classmethod
    def of(  # noqa: PLR0913 (the fields)
        cls,
        text: str,
        measured: str,
        quantity: str,
        values: Sequence[float] | Floats,
        holds: object,
        source: str = "paper",
    ) -> "Claim":
        """Return a claim with the mean and the interval of values over seeds."""
        return cls(text, source, measured, quantity, interval(values), bool(holds))

    @classmethod
    def below(
        cls, text: str, quantity: str, values: Floats, limit: float, form: str = "at most {:.3f}"
    ) -> "Claim":
        """Claim for the paper that a value is below a limit for every seed; show the largest."""
        return cls.of(text, form.format(values.max()), quantity, values, (values < limit).all())

    @classmethod
    def less(
        cls, text: str, quantity: str, less: Floats, more: Floats, form: str = "{:,.0f}"
    ) -> "Claim":
        """Claim for the paper that one value is below another for every seed; show both means."""
        means = f"{form.format(less.mean())} against {more.mean():,.0f} on average"
        return cls.of(text, means, quantity, more - less, (less < more).all())

    @property
    def sentence(self) -> str:
        """The claim and whether it holds, for a caption."""
        verdict = "This holds" if self.holds else "This does not hold"
        return f"{self.text} {verdict}: {self.measured}."


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
class Experiment:
    """An experiment: its runs for a size, and pictures and claims as functions of their rows.

    ``name`` is the name on the command line, ``title`` the subject in the report.
    """

    name: str
    title: str
    runs: Callable[[Size], tuple[Run, ...]]
    pictures: Callable[[RowsByRun], tuple[Picture, ...]]
    claims: Callable[[RowsByRun], tuple[Claim, ...]]
