"""The simulator's frequencies against the law of people and worlds."""

import numpy as np
import pytest
import scipy.sparse as sp

from counsel import Simulator
from tests.support import oracles
from tests.support.each import each_seed
from tests.support.frequencies import check_binomial, check_chi_square
from tests.support.problems import adapt, draw
from tests.support.simulated import (
    PATCHWORKS,
    WORLDS,
    everything,
    law_table,
    patchwork,
    policies,
    world,
)


def test_the_drawn_problems_are_of_every_kind():
    drawn = [patchwork(seed) for seed in PATCHWORKS]
    spared = [(p.lift == 0.0) & (p.policy == 1.0) & (p.adherence < 1.0) for p in drawn]
    assert sum(table.any() for table in spared) >= 3  # certain, θ < 1, lift 0
    assert sum((p.lift < 0.0).any() for p in drawn) >= 3  # reactance
    assert sum((p.policy.max(axis=-1) == 1.0).all() for p in drawn) >= 3  # certain everywhere
    assert sum(p.human.shares_lift for p in drawn) >= 3
    assert sum(not p.mdp.allowed.all() for p in drawn) >= 16
    for part in ("kernel.row", "reward", "allowed"):  # with layers, and without
        tables = [p.mdp.kernel.row if "." in part else getattr(p.mdp, part) for p in drawn]
        changing = sum(len(t) > 1 and t.strides[0] > 0 for t in tables)
        assert 8 <= changing <= 24, part
    for part in ("policy", "adherence"):
        changing = sum(len(getattr(p.human, part)) > 1 for p in drawn)
        assert 8 <= changing <= 24, part


@each_seed(PATCHWORKS)
def test_people_start_hear_and_act_as_the_law_says(seed):
    problem = patchwork(seed)
    policy, law = everything(problem, seed), law_table(problem)
    n = 100_000
    counts = Simulator(problem).count(policy, episodes=n, rng=np.random.default_rng(seed))
    heard_hsb = counts.decisions.sum(axis=-1)
    check_binomial(counts.visits[0], n, problem.mdp.start)
    check_binomial(heard_hsb, counts.visits[..., None], policy.probabilities())
    compared = check_binomial(counts.decisions, heard_hsb[..., None], law)
    check_chi_square(counts.visits[0], problem.mdp.start)
    check_chi_square(heard_hsb, policy.probabilities())
    check_chi_square(counts.decisions, law)
    # Nothing is vacuous: unless the person is certain, most of what can differ was compared.
    can_be = (counts.visits > 0)[..., None, None] & (law > 0.0) & (law < 1.0)
    can_be &= policy.probabilities()[..., None] > 0.0
    assert compared >= 0.9 * can_be.sum()


@each_seed([*range(1, 25), 30, 45])
def test_worlds_move_as_the_kernel_says(seed):
    dense = draw(seed, most=(5, 4, 4))
    problem = adapt(dense)
    policy = everything(problem, seed)
    episodes = Simulator(problem).play(policy, episodes=60_000, rng=np.random.default_rng(seed))
    moves = np.zeros(dense.P_hsat.shape, dtype=np.int64)
    np.add.at(moves, (episodes.step, episodes.state, episodes.action, episodes.next_state), 1)
    check_binomial(moves, moves.sum(axis=-1, keepdims=True), dense.P_hsat)
    check_chi_square(moves, dense.P_hsat)
    # The same rows hold the person to the law, this time the oracle's.
    H, S, A = dense.r_hsa.shape
    acts = np.zeros((H, S, A + 1, A), dtype=np.int64)
    np.add.at(acts, (episodes.step, episodes.state, episodes.advice, episodes.action), 1)
    law = [
        oracles.law(dense.pi_hsa[h, s], dense.theta_hsa[h, s], b)
        for h, s, b in np.ndindex(H, S, A + 1)
    ]
    check_binomial(acts, acts.sum(axis=-1, keepdims=True), np.reshape(law, acts.shape))
    # And every reward is that of its decision.
    here = (episodes.step, episodes.state, episodes.action)
    assert (episodes.reward == dense.r_hsa[here]).all()


@pytest.mark.parametrize("name", WORLDS)
def test_the_moves_of_named_worlds_are_those_of_their_kernel(name):
    problem = world(name)
    episodes = Simulator(problem).play(
        policies(name)["random"], episodes=30_000, rng=np.random.default_rng(3)
    )
    S, A = problem.n_states, problem.n_actions
    pair = episodes.state.astype(np.int64) * A + episodes.action  # named worlds never change
    moves = sp.csr_matrix((np.ones(pair.size), (pair, episodes.next_state)), shape=(S * A, S))
    taken = np.asarray(moves.sum(axis=1))[:, 0]
    due = problem.mdp.kernel.to_sparse()
    assert moves.multiply(due > 0).sum() == pair.size, "what cannot happen did"
    rows = np.repeat(np.arange(S * A), np.diff(due.indptr))
    seen = taken[rows] > 0
    at = (rows[seen], due.indices[seen])
    check_binomial(np.asarray(moves[at])[0].astype(np.int64), taken[at[0]], due.data[seen])
