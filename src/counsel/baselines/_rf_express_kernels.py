"""Compiled planning of RF-Express: where most is uncertain, and what is best on p̂.

Rewards lie in [0, 1] here: units are changed outside. Kernels trust their input.
"""

import numpy as np

from counsel._arrays import Floats, Ints
from counsel._jit import kernel
from counsel.baselines._optimism_kernels import EmpiricalMDP, fixed_value
from counsel.learning._rfe_kernels import phi, pick_top
from counsel.learning._transition_kernels import expect_chain
from counsel.model._kernels import layer_of


@kernel
def plan_express(
    model: EmpiricalMDP, scale: float, base: float, tie_hs: Floats, advice_hs: Ints, W_hs: Floats
) -> None:
    """Fill the advice of the largest W and W itself.

    W_h(s, b) = min{H, ``scale`` 15 H² φ(n) / n + (1 + 1/H) Σ p̂ max W_{h+1}}, H where n = 0, with
    φ(n) = ln(3 S B H / δ) + S ln(8 e (n + 1)); ``base`` is the first part.
    """
    H, S, B = model.chains.visits_hsx.shape
    value_b = np.empty(B)
    W_hs[H] = 0.0
    for h in range(H - 1, -1, -1):
        layer = layer_of(model.open_lsb.shape[0], h)
        for s in range(S):
            if model.over_hs[h, s] or model.unreachable_hs[h, s]:
                advice_hs[h, s], W_hs[h, s] = B - 1, 0.0
                continue
            for b in range(B):
                value_b[b] = -np.inf
                if not model.open_lsb[layer, s, b]:
                    continue
                value_b[b] = float(H)
                n = float(model.chains.visits_hsx[h, s, b])
                if n > 0.0:
                    own = scale * 15.0 * H * H * phi(n, base, S) / n
                    onward = (1.0 + 1.0 / H) * expect_chain(model.chains, h, s, b, W_hs[h + 1])
                    value_b[b] = min(float(H), own + onward)
            b = pick_top(value_b, tie_hs[h, s])
            advice_hs[h, s], W_hs[h, s] = b, value_b[b]


@kernel
def plan_plug_in(model: EmpiricalMDP, advice_hs: Ints, V_hs: Floats) -> None:
    """Fill the best advice on p̂ and its values; where nothing was seen p̂ is even over all states.

    Ties go to silence, then to the lowest advice.
    """
    H, S, B = model.chains.visits_hsx.shape
    V_hs[H] = 0.0
    for h in range(H - 1, -1, -1):
        l_open, l_pay = layer_of(model.open_lsb.shape[0], h), layer_of(model.reward_lsb.shape[0], h)
        anywhere = V_hs[h + 1].mean()
        for s in range(S):
            worth = fixed_value(model, h, s, H)
            if worth == worth:
                advice_hs[h, s], V_hs[h, s] = B - 1, worth
                continue
            best, top = -1, 0.0
            for i in range(B):
                b = B - 1 if i == 0 else i - 1
                if not model.open_lsb[l_open, s, b]:
                    continue
                onward = anywhere
                if model.chains.visits_hsx[h, s, b] > 0:
                    onward = expect_chain(model.chains, h, s, b, V_hs[h + 1])
                value = model.reward_lsb[l_pay, s, b] + onward
                if best < 0 or value > top + 1e-12 * (1.0 + abs(top)):
                    best, top = b, value
            advice_hs[h, s], V_hs[h, s] = best, top
