"""The simulator's alias tables stand for the rows they are built from."""

from itertools import pairwise

import numpy as np

from counsel import Simulator
from counsel.simulate._episode_kernels import fill_alias
from tests.support.each import each_seed
from tests.support.simulated import PATCHWORKS, patchwork


def alias_shares(indptr, next_state, keep, other, S):
    """The probabilities an alias table stands for [row, t]."""
    shares = np.zeros((indptr.size - 1, S))
    for i, (begin, end) in enumerate(pairwise(indptr)):
        for j in range(begin, end):
            shares[i, next_state[j]] += keep[j] / (end - begin)
            shares[i, other[j]] += (1.0 - keep[j]) / (end - begin)
    return shares


def test_alias_tables_stand_for_their_rows_to_the_last_digits():
    rng = np.random.default_rng(0)
    rows = [rng.dirichlet(np.full(n, alpha)) for n in (1, 2, 3, 7, 64, 300) for alpha in (0.05, 5)]
    rows += [np.full(n, 1 / n) for n in (1, 2, 3, 10, 49)]
    rows += [np.append(np.full(n, 1e-12), 1 - n * 1e-12) for n in (1, 2, 299)]
    rows += [np.append(1 - 1e-12, 1e-12), 0.5 ** np.append(np.arange(1, 60), 59)]
    rows = [row[row > 0.0] for row in rows]
    S = 300
    indptr = np.cumsum([0] + [row.size for row in rows])
    state = np.concatenate([np.sort(rng.permutation(S)[: row.size]) for row in rows])
    state, probability = state.astype(np.int32), np.concatenate(rows)
    keep, other = np.empty(state.size), np.empty(state.size, dtype=np.int32)
    fill_alias(indptr, state, probability, keep, other)
    assert ((keep >= 0.0) & (keep <= 1.0)).all()
    due = np.zeros((len(rows), S))
    for i, (begin, end) in enumerate(pairwise(indptr)):
        due[i, state[begin:end]] = probability[begin:end]
    # Each of up to 300 entries is filled up in one rounded step of a number of at most 300.
    np.testing.assert_allclose(
        alias_shares(indptr, state, keep, other, S), due, rtol=0, atol=300 * 2.0**-52
    )


@each_seed(PATCHWORKS)
def test_the_tables_of_a_simulator_stand_for_the_kernel_and_the_start(seed):
    problem = patchwork(seed)
    scene, kernel = Simulator(problem).scene, problem.mdp.kernel
    shares = alias_shares(scene.indptr, scene.next_state, scene.keep, scene.other, problem.n_states)
    np.testing.assert_allclose(shares[-1], problem.mdp.start, rtol=0, atol=1e-15)
    for h, s, a in np.ndindex(*kernel.row.shape):
        due = np.zeros(problem.n_states)
        reached, chances = kernel.successors(h, s, a)
        due[reached] = chances
        leads = scene.leads_lsa[h, s, a]
        drawn = np.eye(problem.n_states)[leads] if leads >= 0 else shares[-1 - leads]
        np.testing.assert_allclose(drawn, due, rtol=0, atol=1e-15)
