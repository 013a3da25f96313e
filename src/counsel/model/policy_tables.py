"""Policies as tables people read: one row for each cell and each advice given there.

Columns: ``step``, ``state``, ``advice`` (empty for silence), ``probability``; ``pieces_left`` first
under a hard budget; ``state_label`` and ``advice_label`` where the problem has labels.
"""

from collections.abc import Iterator
from itertools import product

import numpy as np

from counsel._tables import Column, Table
from counsel.model.policy import Policy
from counsel.model.problem import AdviceProblem


def policy_tables(policy: Policy, problem: AdviceProblem | None) -> Iterator[Table]:
    """Yield the table step by step (and, under a hard budget, by pieces left)."""
    K, H, S = policy.planes.shape
    run, random_states = np.divmod(policy.random.cell_of_entry, S)
    for k, h in product(range(K - 1, -1, -1), range(H)):
        here = run == k * H + h
        fixed = np.setdiff1d(np.arange(S), random_states[here])
        states = np.concatenate((fixed, random_states[here]))
        order = np.argsort(states, kind="stable")
        states = states[order]
        advice = np.concatenate((policy.planes[k, h, fixed], policy.random.advice[here]))[order]
        chance = np.concatenate((np.ones(fixed.size), policy.random.probability[here]))[order]
        silent = advice == policy.defer
        columns: dict[str, Column] = {}
        if policy.budget is not None:
            columns["pieces_left"] = Column(np.full(states.size, k, dtype=np.int32))
        columns["step"] = Column(np.full(states.size, h, dtype=np.int32))
        columns["state"] = Column(states.astype(np.int64))
        if problem is not None and problem.mdp.state_labels:
            columns["state_label"] = Column(states, problem.mdp.state_labels)
        columns["advice"] = Column(advice.astype(np.int32), missing=silent)
        if problem is not None and problem.mdp.action_labels:
            columns["advice_label"] = Column(advice, problem.mdp.action_labels, silent)
        columns["probability"] = Column(chance)
        yield columns
