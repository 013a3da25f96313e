"""``MDP.over``: where an episode is over, against its definition."""

import numpy as np
import pytest

from counsel import MDP
from tests.support import oracles
from tests.support.over import slow_over
from tests.support.simulated import world


def with_idle_states(seed):
    """Draw a dense world many of whose states stay and pay nothing, at some steps or at all."""
    rng = np.random.default_rng([seed, 13])
    S, A, H = (int(n) for n in rng.integers((1, 1, 1), (6, 4, 6)))
    dense = oracles.random_problem(rng, S, A, H, masks=seed % 2 == 1)
    P, r = dense.P_hsat.copy(), dense.r_hsa.copy()
    stays = rng.random((H, S, A)) < rng.choice([0.6, 0.9, 1.0], size=(1, S, 1))
    broke = rng.random((H, S, A)) < rng.choice([0.6, 0.9, 1.0], size=(1, S, 1))
    P = np.where(stays[..., None], dense.allowed_hsa[..., None] * np.eye(S)[:, None], P)
    return P, np.where(broke, 0.0, r), dense.allowed_hsa


def test_over_is_what_its_definition_says_in_worlds_that_change():
    kinds = set()
    for seed in range(300):
        P, r, allowed = with_idle_states(seed)
        due = slow_over(P, r, allowed)
        mdp = MDP(P, r, horizon=len(r), allowed=allowed)
        np.testing.assert_array_equal(mdp.over, due, err_msg=f"seed {seed}")
        kinds |= {tuple(column) for column in due.T if len(due) == 3}
    # Never over, over from each step on; once over, always over.
    assert kinds == {(0, 0, 0), (0, 0, 1), (0, 1, 1), (1, 1, 1)}


def test_over_is_what_its_definition_says_whatever_part_of_the_world_changes():
    for seed in range(300):
        P, r, allowed = with_idle_states(seed)
        parts, shown = [], []
        if seed & 1:  # masks that change need rows at every step
            P = np.where(allowed[..., None], P, np.eye(P.shape[1])[:, None])
        for bit, table in enumerate((P, r, allowed)):
            still = bool(seed >> bit & 1)
            parts.append(table[0] if still else table)
            shown.append(np.broadcast_to(table[:1], table.shape) if still else table)
        gone = shown[2] & ~(shown[0].sum(axis=-1) > 0.5)
        if gone.any():  # an allowed action of one step has no row in the one layer of P
            continue
        mdp = MDP(parts[0], parts[1], horizon=len(r), allowed=parts[2])
        np.testing.assert_array_equal(mdp.over, slow_over(*shown), err_msg=f"seed {seed}")


@pytest.mark.parametrize("name", ["flappy-bird/safe", "flappy-bird-budget/greedy", "night-shift"])
def test_over_is_what_its_definition_says_in_named_worlds(name):
    mdp = world(name).mdp
    P = mdp.kernel.to_dense()[None]  # these worlds never change: one step stands for all
    due = slow_over(P, mdp.reward[:1], mdp.allowed[:1])
    np.testing.assert_array_equal(mdp.over, np.broadcast_to(due, mdp.over.shape))
    assert mdp.over.shape == (mdp.horizon, mdp.n_states)


def test_an_end_must_be_certain_unpaid_and_left_by_no_allowed_action():
    def over(P, r, allowed=None):
        return MDP(np.array(P), r, horizon=2, allowed=allowed).over.tolist()[0]

    stay, leave = [1.0, 0.0], [0.0, 1.0]
    assert over([[stay, stay], [leave, leave]], np.zeros((2, 2))) == [True, True]
    assert over([[stay, stay], [leave, leave]], [[0.0, -1.0], [0.0, 1e-300]]) == [False, False]
    assert over([[stay, leave], [leave, leave]], np.zeros((2, 2))) == [False, True]
    assert over([[stay, [1 - 1e-12, 1e-12]], [leave, leave]], np.zeros((2, 2))) == [False, True]
    mask = [[True, False], [True, True]]
    assert over([[stay, leave], [leave, leave]], [[0.0, 5.0], [0.0, 0.0]], mask) == [True, True]
    assert over([[stay, [0.0, 0.0]], [leave, leave]], np.zeros((2, 2)), mask) == [True, True]
