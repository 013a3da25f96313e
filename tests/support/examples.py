"""Small named problems whose answers are known in closed form.

Each returns the dense arrays ``Problem(P_hsat, r_hsa, pi_hsa, theta_hsa, allowed_hsa,
start_s)`` of ``oracles``.
"""

import numpy as np

from tests.support.oracles import Problem


def silent_then_advised() -> Problem:
    """Advise at the first step only if advice is dear: H = 3, S = 3, A = 2, θ ≡ 1.

    From state 0 the person goes to state 2 (action 1) though action 0 leads to state 1.
    State 1 pays ¾ a step whatever is done. State 2 pays 1 for action 0, which the
    person never takes unasked. So with penalty β, at the first step

        defer  → 2 max(1 − β, 0)        advise → 3/2 − β.

    Silent for β < ½, advised for ½ ≤ β < 3/2, silent again for β ≥ 3/2: criticality is
    3/2, though the gain at β = 0 is −½. At β = ½ values tie and advice wins the tie
    by saying less in all (one piece against two) without strictly beating silence.
    In state 2 criticality is 1 at steps 1 and 2; every other cell has 0. Frontier:
    (0, 0), (1, 3/2), (2, 2).
    """
    P_hsat = np.zeros((3, 3, 2, 3))
    P_hsat[:, 0, 0, 1] = P_hsat[:, 0, 1, 2] = 1.0
    P_hsat[:, 1, :, 1] = P_hsat[:, 2, :, 2] = 1.0
    r_hsa = np.zeros((3, 3, 2))
    r_hsa[1:, 1, :] = 0.75
    r_hsa[1:, 2, 0] = 1.0
    pi_hsa = np.zeros((3, 3, 2))
    pi_hsa[..., 1] = 1.0
    return _problem(P_hsat, r_hsa, pi_hsa, np.ones((3, 3, 2)))


def advised_silent_advised() -> Problem:
    """Advice that comes, goes and comes back as β grows: ``silent_then_advised`` plus.

    A third action leads from state 0 to state 3, like state 2 but paying 1.1 a step
    for action 0. At the first step defer → 2 max(1 − β, 0), advise 0 → 3/2 − β,
    advise 2 → 2 max(1.1 − β, 0) − β. Advice 2 for β < 1/5, silence for 1/5 ≤ β < ½,
    advice 0 for ½ ≤ β < 3/2, silence above. The threshold rule "advise iff β is below
    the criticality" is false in this cell.
    """
    P_hsat = np.zeros((3, 4, 3, 4))
    P_hsat[:, 0, 0, 1] = P_hsat[:, 0, 1, 2] = P_hsat[:, 0, 2, 3] = 1.0
    for s in (1, 2, 3):
        P_hsat[:, s, :, s] = 1.0
    r_hsa = np.zeros((3, 4, 3))
    r_hsa[1:, 1, :] = 0.75
    r_hsa[1:, 2, 0] = 1.0
    r_hsa[1:, 3, 0] = 1.1
    pi_hsa = np.zeros((3, 4, 3))
    pi_hsa[..., 1] = 1.0
    return _problem(P_hsat, r_hsa, pi_hsa, np.ones((3, 4, 3)))


def advice_is_not_action() -> Problem:
    """Best advice differs from best action in one step with θ ≡ 0.9 ≥ π everywhere.

    Rewards (1, 0.99, 0), own policy (0.85, 0, 0.15). A person advised the best action
    0 who does not take it must, by equation (1), take the worst: 0.9 · 1 + 0.1 · 0 =
    0.9. Advised action 1, who does not take it mostly takes 0: 0.9 · 0.99 + 0.1 · 0.85
    = 0.976. Deferring is worth 0.85. Lift × advantage: ⅓ · 0.15 = 0.05 for action 0,
    0.9 · 0.14 = 0.126 for action 1.
    """
    r_hsa = np.array([[[1.0, 0.99, 0.0]]])
    pi_hsa = np.array([[[0.85, 0.0, 0.15]]])
    return _problem(np.ones((1, 1, 3, 1)), r_hsa, pi_hsa, np.full((1, 1, 3), 0.9))


def advice_is_not_action_later() -> Problem:
    """Best advice differs from best action since later advice may fail: θ ≡ ¾ ≥ π.

    Two steps. From state 0 action 0 takes the narrow road (state 1) and action 1 the
    wide one (state 2); the person picks by a fair coin. The narrow road pays 1 for
    action 0, which the person never takes unasked; the wide one pays 0.8 anyhow. Under
    full control narrow is best, 1 > 0.8; but advice there is taken with ¾, so narrow
    is worth 0.75: advise wide (0.7875), not silence (0.775), not narrow (0.7625).
    """
    P_hsat = np.zeros((2, 3, 2, 3))
    P_hsat[:, 0, 0, 1] = P_hsat[:, 0, 1, 2] = 1.0
    P_hsat[:, 1, :, 1] = P_hsat[:, 2, :, 2] = 1.0
    r_hsa = np.zeros((2, 3, 2))
    r_hsa[1, 1, 0] = 1.0
    r_hsa[1, 2, :] = 0.8
    pi_hsa = np.full((2, 3, 2), 0.5)
    pi_hsa[:, 1] = pi_hsa[:, 2] = [0.0, 1.0]
    theta_hsa = np.full((2, 3, 2), 0.75)
    theta_hsa[:, 1:, 1] = 1.0
    return _problem(P_hsat, r_hsa, pi_hsa, theta_hsa)


def advice_repels(theta: float) -> Problem:
    """V*(θ) = max(½, θ, 1 − θ) is not monotone: one step, a fair coin, rewards (1, 0).

    Advising action 0 is worth θ, advising 1 is worth 1 − θ, silence ½. For θ < ½ = π
    the optimum is reverse advice (name action 1 to repel) and falls as θ rises: 0.9
    at 0.1, 0.7 at 0.3, ½ at ½, then 0.7 at 0.7.
    """
    r_hsa, pi_hsa = np.array([[[1.0, 0.0]]]), np.full((1, 1, 2), 0.5)
    return _problem(np.ones((1, 1, 2, 1)), r_hsa, pi_hsa, np.full((1, 1, 2), theta))


def advice_can_wait() -> Problem:
    """One piece is enough, now or one step later: H = 2, S = 3, A = 2, θ ≡ 1.

    From state 0 the person goes to state 2; action 0 leads to state 1, which pays 1
    anyhow. State 2 pays 1 only for action 0, which the person never takes unasked. At
    the first step advise → 1 − β and defer → max(1 − β, 0): a tie in value and in
    pieces for all β < 1, so silence. Criticality is 0 there (never strictly better)
    and 1 in state 2 at step 1. Forbid advice in state 2 and it is 1 at the first step.
    """
    P_hsat = np.zeros((2, 3, 2, 3))
    P_hsat[:, 0, 0, 1] = P_hsat[:, 0, 1, 2] = 1.0
    P_hsat[:, 1, :, 1] = P_hsat[:, 2, :, 2] = 1.0
    r_hsa = np.zeros((2, 3, 2))
    r_hsa[1, 1, :] = 1.0
    r_hsa[1, 2, 0] = 1.0
    pi_hsa = np.zeros((2, 3, 2))
    pi_hsa[..., 1] = 1.0
    return _problem(P_hsat, r_hsa, pi_hsa, np.ones((2, 3, 2)))


def random_fork(rng: np.random.Generator, *, H: int = 3) -> Problem:
    """Draw a noisy ``silent_then_advised``; most are silent first, then advised.

    Plain random problems show that pattern about once in a hundred. Here state 2 pays
    only if advised at every step and state 1 pays a fraction of that with no advice.
    """
    P_hsat = np.zeros((H, 3, 2, 3))
    slip = 0.05 * rng.random()
    P_hsat[:, 0, 0, 1:] = 1.0 - slip, slip
    P_hsat[:, 0, 1, 1:] = slip, 1.0 - slip
    P_hsat[:, 1, :, 1] = P_hsat[:, 2, :, 2] = 1.0
    pi_hsa = np.zeros((H, 3, 2))
    pi_hsa[..., 0] = 0.2 * rng.random((H, 3)) * (rng.random((H, 3)) < 0.5)
    pi_hsa[..., 1] = 1.0 - pi_hsa[..., 0]
    lift_hsa = rng.uniform(0.7, 1.0, (H, 3, 2))
    theta_hsa = np.clip(lift_hsa + (1.0 - lift_hsa) * pi_hsa, pi_hsa, 1.0)
    r_hsa = np.zeros((H, 3, 2))
    r_hsa[1:, 2, 0] = rng.uniform(0.8, 1.0, H - 1)
    advised_h = theta_hsa[1:, 2, 0] * r_hsa[1:, 2, 0]
    r_hsa[1:, 1, :] = rng.uniform(0.8, 0.98) * advised_h[:, None]
    return _problem(P_hsat, r_hsa, pi_hsa, theta_hsa)


def _problem(
    P_hsat: np.ndarray, r_hsa: np.ndarray, pi_hsa: np.ndarray, theta_hsa: np.ndarray
) -> Problem:
    """Return the arrays with nothing masked and a start in state 0."""
    start_s = np.eye(r_hsa.shape[1])[0]
    allowed_hsa = np.ones(r_hsa.shape, dtype=bool)
    return Problem(P_hsat, r_hsa, pi_hsa, theta_hsa, allowed_hsa, start_s)
