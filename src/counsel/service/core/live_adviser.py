"""An adviser in use: its settings, its problem, and the labels of states and actions."""

from counsel.errors import CounselError
from counsel.estimate.people_counts import PeopleCounts
from counsel.learning.population import Population
from counsel.model.mdp import MDP
from counsel.model.problem import AdviceProblem
from counsel.service.core.settings import AdviserSettings


class LiveAdviser:
    """An adviser in use.

    ``state_names`` and ``action_names`` are labels by index, ``states`` and ``actions`` indices by
    label, and ``paced_episodes`` the episodes charged to the expected budget as far as known here.
    """

    def __init__(
        self, id_: str, tenant: int, name: str, settings: AdviserSettings, population: Population
    ) -> None:
        self.id, self.tenant, self.name, self.settings = id_, tenant, name, settings
        self.population, self.mdp = population, population.setting.mdp
        self.state_names, self.action_names = _labels(self.mdp)
        self.states, self.actions = _indices(self.state_names), _indices(self.action_names)
        self.paced_episodes = 0

    def action_name(self, action: int | None) -> str | None:
        """Return the label of an action; None, which is silence or not reported, has none."""
        return None if action is None else self.action_names[action]


def make_population(
    settings: AdviserSettings, problem: AdviceProblem, counts: PeopleCounts
) -> Population:
    """Return the learner that these settings describe."""
    states, actions = map(_indices, _labels(problem.mdp))
    must_say = dict[int, int]()
    for state, advice in settings.must_say.items():
        if state not in states or advice not in actions:
            pair = f"{state!r}: {advice!r}"
            raise CounselError(f"must_say has {pair}; give labels of a state and an action")
        must_say[states[state]] = actions[advice]
    return Population(
        problem.without_adherence(), settings.algorithm, settings.knows_habit, must_say, counts
    )


def _labels(mdp: MDP) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the labels of states and of actions, which are numbers where there are none."""
    return (
        mdp.state_labels or tuple(map(str, range(mdp.n_states))),
        mdp.action_labels or tuple(map(str, range(mdp.n_actions))),
    )


def _indices(labels: tuple[str, ...]) -> dict[str, int]:
    return {label: i for i, label in enumerate(labels)}
