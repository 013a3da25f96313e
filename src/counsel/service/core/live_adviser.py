"""An adviser in use: its settings, its problem, and the labels of states and actions."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from counsel.errors import CounselError
from counsel.estimate.people_counts import PeopleCounts
from counsel.learning.population import Population
from counsel.model.mdp import MDP
from counsel.model.problem import AdviceProblem
from counsel.service.core.episode_returns import EpisodeReturns
from counsel.service.core.level_moves import LevelMoves
from counsel.service.core.settings import AdviserSettings
from counsel.service.db.queries import Amount, amount


class Labels(NamedTuple):
    """The labels of states and actions by index, and the indices by label."""

    state_names: tuple[str, ...]
    action_names: tuple[str, ...]
    states: dict[str, int]
    actions: dict[str, int]


_LABELS: WeakKeyDictionary[MDP, Labels] = WeakKeyDictionary()
"""The labels of worlds in use, which all advisers on a world share."""


class LiveAdviser:
    """An adviser in use.

    ``state_names`` and ``action_names`` are labels by index, ``states`` and ``actions`` indices by
    label, and ``paced_episodes`` the episodes charged to the expected budget as far as known here.
    ``cost`` [h, s, a] is what a piece of advice costs; ``has_costs`` unless every piece costs 1.
    ``stored`` is the text of its settings in the database, ``archived`` when it was archived.
    ``returns`` sums the rewards of its episodes. Where the model's person has a memory, ``moves``
    follows its levels; else it is None. ``fault`` is why its model cannot be read, if so: it then
    has the names of the model and no plans. It shares its ``problem`` with other advisers.
    """

    def __init__(  # noqa: PLR0913 (its row in the database, and what it was woken with)
        self,
        id_: str,
        tenant: int,
        name: str,
        settings: AdviserSettings,
        population: Population,
        problem: AdviceProblem | None = None,
        fault: CounselError | None = None,
    ) -> None:
        self.problem, self.fault = problem, fault
        self.id, self.tenant, self.name, self.settings = id_, tenant, name, settings
        self.population, self.mdp = population, population.setting.mdp
        labels = labels_of(self.mdp)
        self.state_names, self.action_names = labels.state_names, labels.action_names
        self.states, self.actions = labels.states, labels.actions
        self.schedule = self._read_schedule()
        self.paced_episodes = 0
        self.stored = settings.model_dump_json()
        self.archived: float | None = None
        self.returns = EpisodeReturns(id_)
        shape = (self.mdp.horizon, self.mdp.n_states, self.mdp.n_actions)
        self.cost = np.broadcast_to(population.setting.cost, shape)
        self.has_costs = bool((population.setting.cost != 1.0).any())
        self.moves = None if population.memory is None else LevelMoves(population.memory)
        if self.moves is None and settings.memory_across != "episode":
            raise CounselError(
                f"memory_across is {settings.memory_across!r}, but the person of this model has no "
                "memory; leave it out"
            )
        self._check_shared_limit()

    def _check_shared_limit(self) -> None:
        """Raise if the settings have a shared limit that makes no sense with the others."""
        shared = self.settings.shared_limit
        if shared is None or self.fault is not None:
            return
        if self.settings.always:
            raise CounselError(
                f"shared_limit is {shared}, but always advising pays no price; leave one of them "
                "out"
            )
        if self.settings.limit.is_paced:
            raise CounselError(
                f"shared_limit is {shared}, beside a budget of {self.settings.budget:g} on average:"
                " what the limit withholds would be owed to the budget; give hard, or a penalty "
                "instead of the budget"
            )
        cheapest = float(self.cost[np.broadcast_to(self.mdp.allowed, self.cost.shape)].min())
        if shared.pieces < cheapest:
            raise CounselError(
                f"shared_limit is {shared}, less than any advice costs ({cheapest:g}); give more "
                "pieces"
            )

    def _read_schedule(self) -> dict[int, dict[int, float]]:
        """Return the probabilities of a trial by the indices of states and advice."""
        if self.settings.explore > 0.0 and not self.settings.schedule:
            raise CounselError(
                "explore needs a schedule of probabilities by state; `counsel power` writes one"
            )
        schedule = dict[int, dict[int, float]]()
        for state, chances in self.settings.schedule.items():
            if sum(chances.values()) > 1.0 + 1e-9:
                raise CounselError(f"the probabilities of schedule in {state!r} exceed 1")
            for advice, chance in chances.items():
                if state not in self.states or advice not in self.actions:
                    raise CounselError(
                        f"schedule has {state!r}: {advice!r}; give labels of a state and an action"
                    )
                s, a = self.states[state], self.actions[advice]
                if not self.mdp.allowed[:, s, a].any():
                    raise CounselError(f"schedule advises {advice} in {state}, where it is masked")
                schedule.setdefault(s, {})[a] = chance
        return schedule

    @property
    def most_cost(self) -> float:
        """The most that the advice of an episode can cost."""
        return self.mdp.horizon * float(self.population.setting.cost.max())

    @property
    def keeps_level(self) -> bool:
        """Whether an episode starts on the level on which the person's last one ended."""
        return self.moves is not None and self.settings.memory_across == "person"

    def level_name(self, level: int | None) -> str | None:
        """Return the label of a level; there is none without a memory."""
        memory = self.population.memory
        if memory is None or level is None or not 0 <= level < memory.n_levels:
            return None
        return memory.labels[level]

    def rested(self, level: int | None) -> float | None:
        """Return how well advice moves the person on a level, as a share of the best level."""
        fading = self.population.fading
        if fading is None or level is None or not 0 <= level < fading.size:
            return None
        most = float(fading.max())
        return float(fading[level]) / most if most > 0.0 else 1.0

    def level_fields(self, level: int) -> dict[str, Any]:
        """Return a level by its label, and how rested the person is on it."""
        return {"level": self.level_name(level), "rested": self.rested(level)}

    def name_reason(self, reason: Mapping[str, Any]) -> dict[str, Any]:
        """Return a reason on record with labels in the place of indices."""
        named = dict(reason)
        if "considered" in named:
            named["considered"] = self.action_name(named["considered"])
        if "level" in named:
            named["level"] = self.level_name(named["level"])
        return named

    def cost_of(self, step: int, state: int, advice: int | None) -> Amount:
        """Return what a piece of advice costs; silence costs nothing."""
        return 0 if advice is None else amount(self.cost[step, state, advice])

    def action_name(self, action: int | None) -> str | None:
        """Return the label of an action; None, which is silence or not reported, has none."""
        return None if action is None else self.action_names[action]


def make_population(
    settings: AdviserSettings, problem: AdviceProblem, counts: PeopleCounts
) -> Population:
    """Return the learner that these settings describe."""
    _, _, states, actions = labels_of(problem.mdp)
    must_say = dict[int, int]()
    for state, advice in settings.must_say.items():
        if state not in states or advice not in actions:
            pair = f"{state!r}: {advice!r}"
            raise CounselError(f"must_say has {pair}; give labels of a state and an action")
        must_say[states[state]] = actions[advice]
    fading = problem.human.fading
    if problem.memory is not None and fading is None:
        raise CounselError(
            f"the lifts of this model differ from level to level of its memory "
            f"({problem.memory.name}) by more than a factor per level; an adviser learns one lift "
            "and takes the fading of each level from the model: give lift and fading"
        )
    return Population(
        problem.without_adherence(),
        settings.algorithm,
        settings.knows_habit,
        must_say,
        counts,
        fading,
    )


def labels_of(mdp: MDP) -> Labels:
    """Return the labels of a world, which are numbers where it has none."""
    labels = _LABELS.get(mdp)
    if labels is None:
        states = mdp.state_labels or tuple(map(str, range(mdp.n_states)))
        actions = mdp.action_labels or tuple(map(str, range(mdp.n_actions)))
        labels = _LABELS[mdp] = Labels(states, actions, _indices(states), _indices(actions))
    return labels


def _indices(labels: tuple[str, ...]) -> dict[str, int]:
    return {label: i for i, label in enumerate(labels)}
