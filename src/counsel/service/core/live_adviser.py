"""An adviser at work, its settings, and the episodes it advises in."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from counsel.errors import CounselError
from counsel.model.problem import AdviceProblem
from counsel.service.core.adviser import Adviser, Limit
from counsel.service.core.person_counts import Seen

MODES = ("off", "shadow", "live")


@dataclass(frozen=True, slots=True)
class Settings:
    """How an adviser works.

    Attributes
    ----------
    source
        What its world is called, or the id of a model.
    penalty, budget, hard, always
        What advice may cost (``adviser.Limit``).
    algorithm
        "ucb-ad" or "thompson".
    mode
        "live" shows advice, "shadow" only writes down what it would say, "off" is silent.
    knows_habit
        Whether the world's person is known to act so when left alone.
    holdout
        The share of episodes that are kept silent, so that the worth of advice stays measurable.
    must_say
        Advice by state, both by label, that is given whatever the budget.
    """

    source: str
    penalty: float | None = None
    budget: float | None = None
    hard: bool = False
    always: bool = False
    algorithm: str = "ucb-ad"
    mode: str = "live"
    knows_habit: bool = False
    holdout: float = 0.0
    must_say: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise CounselError(f"mode is {self.mode!r}; it must be one of {', '.join(MODES)}")
        if not 0.0 <= self.holdout <= 1.0:
            raise CounselError(f"holdout is {self.holdout}; it must lie in [0, 1]")

    @property
    def limit(self) -> Limit:
        """What advice may cost."""
        return Limit(self.penalty, self.budget, self.hard, self.always)


class Live:
    """An adviser at work, and the numbers of its labels.

    ``episodes`` are those that a paced budget is known to have been for.
    """

    def __init__(
        self, tenant: int, name: str, settings: Settings, problem: AdviceProblem, seen: Seen
    ) -> None:
        self.tenant, self.name, self.settings, self.problem = tenant, name, settings, problem
        mdp = problem.mdp
        self.state_names = mdp.state_labels or tuple(map(str, range(problem.n_states)))
        self.action_names = mdp.action_labels or tuple(map(str, range(problem.n_actions)))
        self.states = {label: i for i, label in enumerate(self.state_names)}
        self.actions = {label: i for i, label in enumerate(self.action_names)}
        must = dict[int, int]()
        for state, advice in settings.must_say.items():
            if state not in self.states or advice not in self.actions:
                raise CounselError(
                    f"must_say has {state!r}: {advice!r}; give labels of a state and an action"
                )
            must[self.states[state]] = self.actions[advice]
        self.adviser = Adviser(problem, settings.algorithm, settings.knows_habit, must, seen)
        self.episodes = 0

    def limit_in(self, episode: "Episode") -> Limit:
        """Return what advice may cost in an episode: its own limit, or that of the adviser."""
        return episode.limit or self.settings.limit


@dataclass(slots=True)
class Episode:
    """An episode as far as it does not change."""

    id: str
    number: int
    adviser: str
    person: int
    held_out: bool
    mode: str
    limit: Limit | None

    @property
    def advised(self) -> bool:
        """Whether its person was to be advised, and as the adviser has it."""
        return self.mode == "live" and not self.held_out and self.limit is None
