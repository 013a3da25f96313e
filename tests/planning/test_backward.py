"""The compiled planner against a plain NumPy one, on problems too large for the other oracles.

The reference works on the machine's MDP, with the law of equation (1) written out; it knows
nothing of lift × advantage, shared rows or threads.
"""

import numpy as np
import pytest
import scipy.sparse as sp

import counsel
from counsel.planning import backward
from counsel.planning._backward_kernels import FAR
from tests.support import oracles
from tests.support.each import each, each_seed
from tests.support.problems import draw

TIE = 1e-12


def reference(matrices, reward_hsa, own_hsa, theta_hsa, penalty):
    """Plan by backward induction; ``matrices`` are one sparse [s·A + a, t] a step."""
    H, S, A = reward_hsa.shape
    V_hs, N_s, advice_hs = np.zeros((H + 1, S)), np.zeros(S), np.empty((H, S), dtype=int)
    spoken_b = np.arange(A + 1) < A
    for h in reversed(range(H)):
        q_sa = reward_hsa[h] + (matrices[h] @ V_hs[h + 1]).reshape(S, A)
        n_sa = (matrices[h] @ N_s).reshape(S, A)
        law_sba = law(own_hsa[h], theta_hsa[h])
        Q_sb = np.einsum("sba,sa->sb", law_sba, q_sa) - penalty * spoken_b
        N_sb = np.einsum("sba,sa->sb", law_sba, n_sa) + spoken_b
        V_hs[h] = Q_sb.max(axis=1)
        tied_sb = Q_sb >= (V_hs[h] - TIE * np.maximum(1.0, abs(V_hs[h])))[:, None]
        fewest_s = np.where(tied_sb, N_sb, np.inf).min(axis=1)
        tied_sb &= N_sb <= (fewest_s + TIE * np.maximum(1.0, fewest_s))[:, None]
        advice_hs[h] = np.where(tied_sb[:, A], A, tied_sb.argmax(axis=1))
        N_s = N_sb[np.arange(S), advice_hs[h]]
    return V_hs, advice_hs, N_s


def law(own_sa, theta_sa):
    """Return P(a | s, b) [s, b, a] by equation (1), the last b being silence."""
    A = own_sa.shape[1]
    others_sba = own_sa[:, None, :] * (1.0 - np.eye(A))
    rest_sb1 = others_sba.sum(axis=2, keepdims=True)
    certain_sb1 = rest_sb1 == 0.0
    away_sba = (1.0 - theta_sa[:, :, None]) * others_sba / np.where(certain_sb1, 1.0, rest_sb1)
    advised_sba = away_sba + theta_sa[:, :, None] * np.eye(A)
    return np.concatenate(
        (np.where(certain_sb1, own_sa[:, None], advised_sba), own_sa[:, None]), axis=1
    )


def sparse_rows(rng, S, A, successors):
    """Draw a matrix [s·A + a, t] with ``successors`` entries in each row."""
    next_state = rng.integers(S, size=(S * A, successors))
    weight = rng.dirichlet(np.ones(successors), size=S * A)
    entry = np.repeat(np.arange(S * A), successors)
    return sp.coo_matrix((weight.ravel(), (entry, next_state.ravel())), shape=(S * A, S)).tocsr()


def own_rows(seed, S, A, H, *, per_step):
    """No two pairs share a row; everything but the kernel changes with the step."""
    rng = np.random.default_rng(seed)
    matrices = [sparse_rows(rng, S, A, 6) for _ in range(H if per_step else 1)]
    return world(rng, matrices, S, A, H)


def shared_rows(seed, S, A, H, *, per_step):
    """A handful of distinct rows stand behind all pairs."""
    rng = np.random.default_rng(seed)
    few = [sparse_rows(rng, S, 1, 9)[: S // 8] for _ in range(H if per_step else 1)]
    matrices = [rows[rng.integers(rows.shape[0], size=S * A)] for rows in few]
    return world(rng, matrices, S, A, H)


def many_states(seed, S, A, H, *, per_step):
    """So many that values are prefetched; nobody is so certain that rounding ties two choices."""
    rng = np.random.default_rng(seed)
    matrices = [sparse_rows(rng, S, A, 6) for _ in range(H if per_step else 1)]
    return world(rng, matrices, S, A, H, spread=1.0)


def world(rng, matrices, S, A, H, spread=0.3):
    reward_hsa = np.where(rng.random((H, S, A)) < 0.5, rng.integers(-4, 5, (H, S, A)) / 4, 0.0)
    own_hsa = rng.dirichlet(np.full(A, spread), size=(H, S))
    theta_hsa = rng.choice([0.0, 0.4, 0.8, 1.0], size=(H, S, A))
    theta_hsa = np.where(rng.random((H, S, A)) < 0.8, np.maximum(theta_hsa, own_hsa), theta_hsa)
    mdp = counsel.MDP(
        matrices if len(matrices) > 1 else matrices[0],
        reward_hsa,
        horizon=H,
        start=rng.dirichlet(np.ones(S)),
    )
    problem = counsel.AdviceProblem(mdp, counsel.Human(own_hsa, theta_hsa))
    steps = matrices if len(matrices) > 1 else matrices * H
    return problem, (steps, reward_hsa, own_hsa, theta_hsa)


LARGE = {
    "own rows, stationary": (own_rows, (300, 5, 12), False),
    "own rows, changing with the step": (own_rows, (300, 5, 12), True),
    "shared rows, stationary": (shared_rows, (300, 5, 12), False),
    "shared rows, changing with the step": (shared_rows, (300, 5, 12), True),
    "many rows of their own": (own_rows, (1300, 3, 5), False),
    "many rows of their own, changing with the step": (own_rows, (1300, 3, 5), True),
    "shared rows, more states than a tile": (shared_rows, (1300, 3, 5), False),
    "more states than the nearest caches hold": (many_states, (FAR + 1, 2, 2), False),
}


@pytest.fixture(params=LARGE, scope="module")
def large(request):
    make, shape, per_step = LARGE[request.param]
    return make(len(request.param), *shape, per_step=per_step)


@each("penalty", [0.0, 0.1, 0.6])
def test_compiled_values_policy_and_count_equal_the_plain_planner(large, penalty):
    problem, arrays = large
    V_hs, advice_hs, N_s = reference(*arrays, penalty)
    plan = counsel.solve(problem, penalty=penalty)
    np.testing.assert_allclose(plan.values, V_hs, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(plan.policy.advice, advice_hs)
    assert plan.advice_count == pytest.approx(problem.mdp.start @ N_s, abs=1e-10)
    assert plan.penalised_value == pytest.approx(problem.mdp.start @ V_hs[0], abs=1e-10)
    assert 0.05 < (advice_hs < problem.n_actions).mean() < 0.95  # both kinds of cell are there


def test_a_large_plan_evaluates_to_what_it_claims(large):
    problem, _ = large
    plan = counsel.solve(problem, penalty=0.1)
    reached = counsel.evaluate(problem, plan.policy)
    assert reached.value == pytest.approx(plan.value, abs=1e-10)
    assert reached.advice_count == pytest.approx(plan.advice_count, abs=1e-10)


@each("threads", [2, 3])
def test_the_number_of_threads_changes_no_bit(large, threads, monkeypatch):
    problem, _ = large
    monkeypatch.setattr(backward, "WORTH_THREADS", 0)
    for penalty in (0.0, 0.1):
        alone = counsel.solve(problem, penalty=penalty, threads=1)
        shared = counsel.solve(problem, penalty=penalty, threads=threads)
        assert alone.values.tobytes() == shared.values.tobytes()
        assert alone.policy.advice.tobytes() == shared.policy.advice.tobytes()
        assert (alone.value, alone.advice_count) == (shared.value, shared.advice_count)


def test_a_budget_on_many_threads_is_the_budget_on_one(large, monkeypatch):
    problem, _ = large
    monkeypatch.setattr(backward, "WORTH_THREADS", 0)
    alone = counsel.solve(problem, budget=0.8, threads=1)
    shared = counsel.solve(problem, budget=0.8, threads=3)
    assert (alone.value, alone.price) == (shared.value, shared.price)
    assert alone.policy.advice.tobytes() == shared.policy.advice.tobytes()


def test_the_kernels_drawn_for_this_file_take_the_paths_they_are_named_for():
    several = own_rows(1, 1300, 3, 5, per_step=False)[0].mdp.kernel
    assert several.n_rows == 1300 * 3
    shared = shared_rows(1, 1300, 3, 5, per_step=False)[0].mdp.kernel
    assert shared.n_rows < 1300
    assert own_rows(1, 300, 5, 12, per_step=True)[0].mdp.kernel.n_layers == 12


@each_seed(range(0, 60, 2))
def test_the_plain_planner_equals_the_dense_oracle(seed):
    dense = draw(seed)  # even seeds mask nothing
    H, S, A = dense.r_hsa.shape
    matrices = [sp.csr_matrix(dense.P_hsat[h].reshape(S * A, S)) for h in range(H)]
    V_hs, advice_hs, _ = reference(matrices, dense.r_hsa, dense.pi_hsa, dense.theta_hsa, 0.1)
    oracle = oracles.plan(*dense, penalty=0.1)
    np.testing.assert_allclose(V_hs, oracle.V_hs, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(advice_hs, oracle.advice_hs)
