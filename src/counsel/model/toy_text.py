"""Conversion from and to Gymnasium's toy-text worlds (FrozenLake, Taxi, CliffWalking).

``P[s][a]`` is a list of (probability, next state, reward, done). Counsel's worlds do not stop; they
reach a state that is never left and pays nothing. So a done transition leads to one added state:
its reward is paid once, and nothing is paid afterwards.
"""

from collections.abc import Mapping, Sequence
from math import inf
from operator import index

import numpy as np
import scipy.sparse as sp

from counsel._arrays import Bools, Floats, brief, place
from counsel.errors import CounselError
from counsel.model.kernel import Kernel

ToyText = Mapping[int, Mapping[int, Sequence[tuple[float, int, float, bool]]]]


def read_toy_text(transitions: ToyText) -> tuple["sp.csr_matrix", Floats, Bools]:
    """Return the matrix [s·A + a, t], the rewards [s, a] and which actions are allowed [s, a].

    The last state is the added one. An action without transitions is not allowed.
    """
    if not isinstance(transitions, Mapping) or not transitions:
        raise CounselError(f"P must be a non-empty dictionary of states, not {brief(transitions)}")
    states = len(transitions)
    actions = len(transitions[0]) if isinstance(transitions.get(0), Mapping) else 0
    if actions == 0 or any(
        not isinstance(transitions.get(s), Mapping) or set(transitions[s]) != set(range(actions))
        for s in range(states)
    ):
        raise CounselError(
            "P must map every state 0, 1, … to the same actions 0, 1, …, each with its transitions"
        )
    over = states
    entries = [(over * actions + a, over, 1.0) for a in range(actions)]
    reward_sa = np.zeros((states + 1, actions))
    allowed_sa = np.ones((states + 1, actions), dtype=np.bool_)
    for s in range(states):
        for a in range(actions):
            for probability, next_state, reward, done in _read_list(transitions, s, a):
                entries.append((s * actions + a, over if done else next_state, probability))
                reward_sa[s, a] += probability * reward
            allowed_sa[s, a] = len(transitions[s][a]) > 0
    rows, columns, data = zip(*entries, strict=True)
    shape = ((states + 1) * actions, states + 1)
    return sp.coo_matrix((data, (rows, columns)), shape=shape).tocsr(), reward_sa, allowed_sa


def _read_list(transitions: ToyText, s: int, a: int) -> list[tuple[float, int, float, bool]]:
    """Return the checked transitions of one pair."""
    checked = []
    try:
        for probability, next_state, reward, done in transitions[s][a]:
            checked.append((float(probability), index(next_state), float(reward), bool(done)))
    except (TypeError, ValueError):
        raise CounselError(
            f"P{place('sa', (s, a))} is {brief(transitions[s][a])}; expected a list of "
            "(probability, next state, reward, done)"
        ) from None
    for probability, next_state, _, _ in checked:
        if not 0 <= next_state < len(transitions):
            raise CounselError(
                f"P{place('sa', (s, a))} leads to state {next_state}; "
                f"states run from 0 to {len(transitions) - 1}"
            )
        if not 0.0 <= probability < inf:
            raise CounselError(
                f"P{place('sa', (s, a))} leads to state {next_state} with probability "
                f"{probability:.10g}; a probability must be a number from 0 to 1"
            )
    return checked


def write_toy_text(kernel: Kernel, reward_sa: Floats, allowed_sa: Bools, over_s: Bools) -> ToyText:
    """Return ``P`` of a stationary kernel; each transition repeats the reward of its pair.

    An action that is not allowed has no transitions. A transition into ``over_s`` is done.
    """
    S, A = reward_sa.shape
    return {
        s: {
            a: [
                (float(p), int(t), float(reward_sa[s, a]), bool(over_s[t]))
                for t, p in zip(*kernel.successors(0, s, a), strict=True)
                if allowed_sa[s, a]
            ]
            for a in range(A)
        }
        for s in range(S)
    }
