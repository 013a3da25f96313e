"""Pacing: how an expected budget is met on average though the model may be wrong.

With a budget of D pieces per episode and m pieces given in n episodes so far, plans aim at

    D + (D n − m) / w

pieces per episode, each counted by its cost. w is the number of episodes in which to correct the
difference: ``WINDOW``, and at least twice as many as have started since the last plan, so that
pacing stays steady however rarely plans are made.
"""

WINDOW = 10
"""Episodes in which a difference from the budget is corrected."""


def paced_budget(budget: float, episodes: int, spent: float, planned_at: int | None) -> float:
    """Return the budget that the next plan should aim at.

    ``planned_at`` is how many of the episodes there were when the last plan was made, if any was.
    """
    window = WINDOW if planned_at is None else max(WINDOW, 2 * (episodes - planned_at))
    return max(budget + (budget * episodes - spent) / window, 0.0)
