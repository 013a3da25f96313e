"""Random maps: of the kind that is described, the same for a seed, and other for another."""

import numpy as np
import pytest

from counsel import solve
from counsel.experiments.map_families import PHASES, budget_map, problem_of, three_phase_map
from counsel.worlds import GridMap, make


def test_maps_of_three_phases_are_as_dense_as_the_shipped_map():
    # 300 maps of 42 cells or more in each phase: shares to 3 standard deviations, and the flight
    # that stays free removes some walls.
    maps = np.stack([three_phase_map(np.random.default_rng(s)).cells for s in range(300)])
    shipped = GridMap.named("three-phases").cells
    for first, end in PHASES.values():
        columns = slice(max(first, 1), end)
        for kind in (1, 2):
            share = (maps[:, :, columns] == kind).mean()
            there = (shipped[:, columns] == kind).mean()
            assert share == pytest.approx(there, abs=0.05)
    assert (maps[:, :, 0] == 0).all()
    assert (maps[:, :, 1:7] != 2).all()


def test_a_budget_of_one_binds_on_every_budget_map():
    for seed in range(10):
        problem = problem_of("flappy-bird-budget/greedy", "budget", seed)
        plan = solve(problem)
        assert plan.advice_count >= 2.0
        assert solve(problem, budget=1.0).value < plan.value - 1e-9
    assert budget_map(np.random.default_rng(3)).cells.shape == (7, 8)


def test_every_map_can_be_flown_to_the_end():
    for family, world in (
        ("three-phase", "flappy-bird/safe"),
        ("budget", "flappy-bird-budget/greedy"),
    ):
        for seed in range(20):
            mdp = problem_of(world, family, seed).mdp
            reached = mdp.start.astype(bool)
            for _ in range(mdp.horizon - 1):
                reached = (mdp.kernel.to_sparse().T @ np.repeat(reached, 3).astype(float)) > 0.0
            assert reached[:-1].any()


def test_a_seed_is_one_map_and_each_family_has_its_own():
    one, again, other = (problem_of("flappy-bird/safe", "three-phase", s) for s in (1, 1, 2))
    assert np.array_equal(one.mdp.reward, again.mdp.reward)
    assert not np.array_equal(one.mdp.reward, other.mdp.reward)
    own = problem_of("flappy-bird/safe")
    assert np.array_equal(own.mdp.reward, make("flappy-bird/safe").mdp.reward)
    low = problem_of("flappy-bird/safe", "three-phase", 1, adherence="low")
    assert np.array_equal(low.mdp.reward, one.mdp.reward)
    assert low.human.adherence.max() == 0.4
