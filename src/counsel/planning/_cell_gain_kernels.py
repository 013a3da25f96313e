"""The compiled gains of every advice in one cell, as explanations and the service show them."""

import numpy as np

from counsel._arrays import Floats
from counsel._jit import inlined, kernel
from counsel.model._kernels import cost_of, fill_advantages, layer_of
from counsel.planning._backward_kernels import Model
from counsel.planning._level_kernels import Levels

ADVANTAGE, GAIN, PRICE, BURDEN = range(4)
"""The rows that ``fill_cell_gains`` fills."""

SILENCE, MATCH, REFUSAL = range(3)
"""What moves the level of a memory, as its moves are numbered."""


@kernel
def fill_cell_gains(
    model: Model,
    levels: Levels,
    values_phs: Floats,
    h: int,
    s: int,
    level: int,
    left: int,
    gains_4a: Floats,
) -> None:
    """Fill advantage, gain, price and burden of each advice in a cell, as ``gains_at`` has them.

    ``values_phs`` have a plane for each level of memory, for each piece left where ``levels`` is
    for a hard budget. An infinite burden is left out of the gain.
    """
    A, M = gains_4a.shape[1], levels.after_cm.shape[1]
    policy_sa = model.policy_lsa[layer_of(model.policy_lsa.shape[0], h)]
    lift_sa = model.lift_lsa[layer_of(model.lift_lsa.shape[0], h)]
    permitted_sa = model.permitted_lsa[layer_of(model.permitted_lsa.shape[0], h)]
    cost_sa = model.cost_lsa[layer_of(model.cost_lsa.shape[0], h)]
    own_1a, q_1a, advantage_1a = np.empty((1, A)), np.empty((1, A)), np.empty((1, A))
    silent_1a, matched_1a, refused_1a = np.empty((1, A)), np.empty((1, A)), np.empty((1, A))
    for a in range(A):
        own_1a[0, a] = policy_sa[s, a]
    _fill_values(model, levels, values_phs, h, s, left * M, levels.after_cm[SILENCE, level], q_1a)
    alone_now = _mean(own_1a, q_1a)
    alone, filled = alone_now, -1
    for b in range(A):
        gains_4a[ADVANTAGE, b], gains_4a[GAIN, b] = np.nan, 0.0
        gains_4a[PRICE, b], gains_4a[BURDEN, b] = np.inf, 0.0
        if not permitted_sa[s, b]:
            continue
        cost, after = cost_of(cost_sa, s, b), left
        if levels.is_hard:
            after = max(left - int(cost), 0)
        if after != filled:
            for c, values_1a in ((SILENCE, silent_1a), (MATCH, matched_1a), (REFUSAL, refused_1a)):
                row = levels.after_cm[c, level]
                _fill_values(model, levels, values_phs, h, s, after * M, row, values_1a)
            alone, filled = _mean(own_1a, silent_1a), after
        for a in range(A):
            q_1a[0, a] = matched_1a[0, a] if a == b else refused_1a[0, a]
        fill_advantages(own_1a, q_1a, advantage_1a)
        lift, spoken = lift_sa[s, level * A + b], _mean(own_1a, q_1a)
        gains_4a[ADVANTAGE, b] = advantage_1a[0, b]
        if lift != 0.0:
            gains_4a[GAIN, b] = lift * advantage_1a[0, b]
        if alone != spoken:  # both may be −∞
            gains_4a[BURDEN, b] = alone - spoken
        if np.isfinite(gains_4a[BURDEN, b]):
            gains_4a[GAIN, b] -= gains_4a[BURDEN, b]
        if alone > -np.inf and cost <= left:
            gains_4a[PRICE, b] = alone_now - alone


@kernel
def _fill_values(
    model: Model,
    levels: Levels,
    values_phs: Floats,
    h: int,
    s: int,
    first: int,
    row: int,
    q_1a: Floats,
) -> None:
    """Fill the value of each action in a cell where a row of levels follows; −∞ without a row.

    Level 0 is plane ``first``.
    """
    row_sa = model.row_lsa[layer_of(model.row_lsa.shape[0], h)]
    reward_sa = model.reward_lsa[layer_of(model.reward_lsa.shape[0], h)]
    for a in range(q_1a.shape[1]):
        i = row_sa[s, a]
        q_1a[0, a] = -np.inf
        if i >= 0:
            q = 0.0
            for j in range(model.indptr[i], model.indptr[i + 1]):
                expected = 0.0
                for e in range(levels.indptr[row], levels.indptr[row + 1]):
                    plane = first + levels.level[e]
                    expected += levels.weight[e] * values_phs[plane, h + 1, model.next_state[j]]
                q += model.probability[j] * expected
            q_1a[0, a] = reward_sa[s, a] + q


@inlined
def _mean(own_1a: Floats, q_1a: Floats) -> float:
    """Return the mean of the values of the actions that the person may take."""
    total = 0.0
    for a in range(own_1a.shape[1]):
        if own_1a[0, a] > 0.0:
            total += own_1a[0, a] * q_1a[0, a]
    return total
