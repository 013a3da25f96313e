"""One decision as it happened."""

from typing import NamedTuple


class Move(NamedTuple):
    """One decision, as a learner sees it live: the advice, the action and what came of it.

    Parameters
    ----------
    step
        The step in the episode, from 0.
    state
        The state the person was in.
    advice
        The advice given; the number of actions for silence.
    action
        The action of the person.
    reward
        The reward of the action.
    next_state
        The state the action led to.
    level
        The level of the person's memory at the decision; 0 if they have no memory.

    Examples
    --------
    One decision of a drifting patient's nurse, who takes the advice:

    >>> from counsel import UCBAD, make
    >>> problem = make("night-shift")
    >>> learner = UCBAD(problem.without_adherence(), groups=[0, 1, 2])
    >>> advice = learner.advise(0, 1)
    >>> problem.mdp.state_labels[1], problem.mdp.action_labels[advice]
    ('drifting', 'check')
    >>> move = Move(step=0, state=1, advice=advice, action=advice, reward=0.84, next_state=0)
    >>> learner.observe(move)
    >>> learner.finish()
    >>> learner.given.tolist(), learner.matched.tolist()
    ([0, 1, 0], [0, 1, 0])
    """

    step: int
    state: int
    advice: int
    action: int
    reward: float
    next_state: int
    level: int = 0
