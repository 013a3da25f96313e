"""An adviser in use: its settings, its problem, and the labels of states and actions."""

from counsel.errors import CounselError
from counsel.model.problem import AdviceProblem
from counsel.service.core.adviser import Adviser
from counsel.service.core.person_counts import Seen
from counsel.service.core.settings import AdviserSettings


class LiveAdviser:
    """An adviser in use.

    Attributes
    ----------
    state_names, action_names
        Labels by index.
    states, actions
        Indices by label.
    adviser
        What learns and plans.
    paced_episodes
        Episodes charged to the expected budget so far, as far as this process knows.
    """

    def __init__(
        self, id_: str, tenant: int, name: str, settings: AdviserSettings, adviser: Adviser
    ) -> None:
        self.id, self.tenant, self.name, self.settings = id_, tenant, name, settings
        self.adviser, self.problem = adviser, adviser.problem
        self.state_names, self.action_names = _labels(adviser.problem)
        self.states = _indices(self.state_names)
        self.actions = _indices(self.action_names)
        self.paced_episodes = 0

    def action_name(self, action: int | None) -> str | None:
        """Return the label of an action; None, which is silence or not reported, has none."""
        return None if action is None else self.action_names[action]


def make_adviser(settings: AdviserSettings, problem: AdviceProblem, seen: Seen) -> Adviser:
    """Return what learns and plans with these settings."""
    states, actions = map(_indices, _labels(problem))
    must_say = dict[int, int]()
    for state, advice in settings.must_say.items():
        if state not in states or advice not in actions:
            raise CounselError(
                f"must_say has {state!r}: {advice!r}; give labels of a state and an action"
            )
        must_say[states[state]] = actions[advice]
    return Adviser(problem, settings.algorithm, settings.knows_habit, must_say, seen)


def _labels(problem: AdviceProblem) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the labels of states and of actions, which are numbers where there are none."""
    mdp = problem.mdp
    return (
        mdp.state_labels or tuple(map(str, range(problem.n_states))),
        mdp.action_labels or tuple(map(str, range(problem.n_actions))),
    )


def _indices(labels: tuple[str, ...]) -> dict[str, int]:
    return {label: i for i, label in enumerate(labels)}
