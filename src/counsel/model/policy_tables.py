"""Policies as tables people read: one row for each cell and each advice given there.

Columns: ``step``, ``state``, ``advice`` (empty for silence), ``probability``; ``pieces_left`` first
under a hard budget; ``state_label`` and ``advice_label`` where the problem has labels.
"""

from collections.abc import Iterator

import numpy as np

from counsel._arrays import Floats, Ints
from counsel._tables import Column, Table
from counsel.model.policy import HardPolicy, Policy
from counsel.model.problem import AdviceProblem


def policy_tables(policy: Policy | HardPolicy, problem: AdviceProblem | None) -> Iterator[Table]:
    """Yield the table step by step (and, under a hard budget, by pieces left)."""
    if isinstance(policy, HardPolicy):
        for k in range(policy.budget, -1, -1):
            for h in range(policy.advice.shape[1]):
                states = np.arange(policy.advice.shape[2])
                advice, sure = policy.advice[k, h], np.ones(states.size)
                yield _table(policy, problem, (k, h), states, advice, sure)
        return
    S = policy.advice.shape[1]
    cells = policy.random.cell_of_entry
    for h in range(policy.advice.shape[0]):
        here = (cells >= h * S) & (cells < (h + 1) * S)
        fixed = np.setdiff1d(np.arange(S), cells[here] - h * S)
        states = np.concatenate((fixed, cells[here] - h * S))
        advice = np.concatenate((policy.advice[h, fixed], policy.random.advice[here]))
        chance = np.concatenate((np.ones(fixed.size), policy.random.probability[here]))
        order = np.argsort(states, kind="stable")
        yield _table(policy, problem, (None, h), states[order], advice[order], chance[order])


def _table(  # noqa: PLR0913 (one column each)
    policy: Policy | HardPolicy,
    problem: AdviceProblem | None,
    at: tuple[int | None, int],
    states: Ints,
    advice: Ints,
    chance: Floats,
) -> Table:
    k, h = at
    silent = advice == policy.defer
    columns: dict[str, Column] = {}
    if k is not None:
        columns["pieces_left"] = Column(np.full(states.size, k, dtype=np.int32))
    columns["step"] = Column(np.full(states.size, h, dtype=np.int32))
    columns["state"] = Column(states.astype(np.int64))
    if problem is not None and problem.mdp.state_labels:
        columns["state_label"] = Column(states, problem.mdp.state_labels)
    columns["advice"] = Column(advice.astype(np.int32), missing=silent)
    if problem is not None and problem.mdp.action_labels:
        columns["advice_label"] = Column(advice, problem.mdp.action_labels, silent)
    columns["probability"] = Column(chance)
    return columns
