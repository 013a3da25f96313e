"""``solve`` for almost certain people keeps its digits."""

from fractions import Fraction

import numpy as np
import pytest

import counsel
from tests.support.each import each, each_seed


def exact_values(next_hsa, reward_hsa, own_hsa, theta_hsa):
    """Plan with fractions: V [h, s] without any rounding, by equation (1)."""
    H, S, A = reward_hsa.shape
    fractions = np.vectorize(Fraction, otypes=[object])
    reward, own, theta = fractions(reward_hsa), fractions(own_hsa), fractions(theta_hsa)
    V = [[Fraction(0)] * S for _ in range(H + 1)]
    for h in reversed(range(H)):
        for s in range(S):
            q = [reward[h, s, a] + V[h + 1][next_hsa[h, s, a]] for a in range(A)]
            mass = sum(own[h, s])
            options = [sum(own[h, s, a] * q[a] for a in range(A)) / mass]
            for b in range(A):
                rest = sum(own[h, s, c] for c in range(A) if c != b)
                away = sum(own[h, s, c] * q[c] for c in range(A) if c != b)
                if rest:
                    options.append(theta[h, s, b] * q[b] + (1 - theta[h, s, b]) * away / rest)
            V[h][s] = max(options)
    return np.array([[float(v) for v in row] for row in V])


@pytest.mark.parametrize("adherence", ["any", "just above habit", "full"])
@each("rare", [1e-6, 1e-9, 1e-12])
@each_seed(range(4))
def test_an_almost_certain_person_is_planned_for_without_losing_digits(seed, rare, adherence):
    rng = np.random.default_rng(seed)
    H, S, A = 4, 4, 3
    next_hsa = rng.integers(S, size=(H, S, A))
    reward_hsa = rng.normal(size=(H, S, A))
    own_hsa = np.full((H, S, A), rare)
    habit_hs = rng.integers(A, size=(H, S))
    np.put_along_axis(own_hsa, habit_hs[..., None], 1.0 - (A - 1) * rare, axis=-1)
    theta_hsa = {
        "any": rng.random((H, S, A)),
        "just above habit": np.minimum(1.0, own_hsa + rare * rng.random((H, S, A))),
        "full": np.ones((H, S, A)),
    }[adherence]
    problem = counsel.AdviceProblem(
        counsel.MDP(next_hsa, reward_hsa, horizon=H), counsel.Human(own_hsa, theta_hsa)
    )
    exact_hs = exact_values(next_hsa, reward_hsa, own_hsa, theta_hsa)
    plan = counsel.solve(problem)
    np.testing.assert_allclose(plan.values, exact_hs, rtol=0, atol=1e-9)
    assert counsel.evaluate(problem, plan.policy).value == pytest.approx(exact_hs[0, 0], abs=1e-9)
