"""The machine's MDP: its actions are the advice 0 … A−1 and, last, silence.

    p^M(t | s, b) = Σ_a P(a | s, b) p(t | s, a)        r^M(s, b) = Σ_a P(a | s, b) r(s, a)

Planning never builds it (``planning/backward.py``); the baselines, which know nothing of people,
learn on it.
"""

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from counsel._arrays import ROW_TOLERANCE, Bools, Floats, layers, unlayered
from counsel.model.advantage import advantages, gain_of
from counsel.model.kernel import Kernel
from counsel.model.mdp import MDP

if TYPE_CHECKING:
    from counsel.model.problem import AdviceProblem


def machine_of(problem: "AdviceProblem") -> MDP:
    """Build the machine's MDP."""
    mdp, A, S = problem.mdp, problem.n_actions, problem.n_states
    varies = (mdp.kernel.row, layers(mdp.reward), problem.human.policy, problem.human.lift)
    L = max(*(len(table) for table in varies), len(layers(mdp.allowed)))
    worlds = mdp.kernel.to_sparse()
    matrices, rewards = [], []
    for h in range(L):
        law_sba = _law_table(problem, h)
        world = worlds[h] if isinstance(worlds, list) else worlds
        columns = (np.arange(S)[:, None, None] * A + np.arange(A)).repeat(A + 1, axis=1)
        indptr = np.arange(S * (A + 1) + 1) * A
        law = sp.csr_matrix((law_sba.reshape(-1), columns.reshape(-1), indptr))
        matrices.append(law @ world)
        rewards.append(np.einsum("sba,sa->sb", law_sba, mdp.reward[h]))
    labels = mdp.action_labels
    if labels is not None:
        silence = "defer"
        while silence in labels:
            silence += "′"
        labels = (*labels, silence)
    return MDP(
        Kernel.from_sparse(matrices, tolerance=3.0 * ROW_TOLERANCE),
        unlayered(np.stack(rewards)),
        horizon=None if mdp.discount is not None else mdp.horizon,
        discount=None if mdp.average else mdp.discount,
        average=mdp.average,
        start=mdp.start,
        allowed=unlayered(with_silence(layers(mdp.allowed))),
        state_labels=mdp.state_labels,
        action_labels=labels,
    )


def _law_table(problem: "AdviceProblem", step: int) -> Floats:
    """Return P(a | s, b) of one step as [s, b, a]; rows of forbidden advice are 0."""
    A = problem.n_actions
    own_sa, lift_sa = problem.policy[step], problem.lift[step]
    law = np.empty((problem.n_states, A + 1, A))
    law[:, :A] = (1.0 - lift_sa)[:, :, None] * own_sa[:, None, :]
    law[:, np.arange(A), np.arange(A)] = np.where(lift_sa != 0.0, problem.adherence[step], own_sa)
    law[:, A] = own_sa
    law[:, :A][~problem.mdp.allowed[step]] = 0.0
    return law


def machine_rewards(problem: "AdviceProblem") -> Floats:
    """Return r^M(s, b) = Σ_a P(a | s, b) r(s, a) as [s, b], or [h, s, b] if it changes."""
    reward, own = layers(problem.mdp.reward), problem.human.policy
    alone = (own * reward).sum(axis=2, keepdims=True)
    advised: Floats = alone + gain_of(problem.human.lift, advantages(own, reward))
    table = np.concatenate((advised, np.broadcast_to(alone, (*advised.shape[:2], 1))), axis=2)
    return unlayered(table)


def support_of(problem: "AdviceProblem") -> sp.csr_matrix:
    """Return which states t can follow a state s [s, t] at any step under any action."""
    matrices = problem.mdp.kernel.to_sparse()
    S, A = problem.n_states, problem.n_actions
    entries = sp.vstack(matrices if isinstance(matrices, list) else [matrices]).tocoo()
    possible = entries.data > 0.0
    pairs = (entries.row[possible] // A % S, entries.col[possible])
    return sp.csr_matrix((np.ones(pairs[0].size, dtype=np.bool_), pairs), shape=(S, S))


def with_silence(allowed: Bools) -> Bools:
    """Append silence, which is always allowed, to a mask [layer, s, a]."""
    return np.pad(allowed, ((0, 0), (0, 0), (0, 1)), constant_values=True)
