"""Maps, flights and criticalities that cannot be drawn."""

import numpy as np
import pytest

import counsel
from counsel import CounselError
from counsel.drawing import draw_map
from counsel.worlds import GridMap, make, make_flappy_bird
from tests.support.map_pictures import MIXED, refused

# Problems that are no flight over MIXED, which has 5 × 8 cells and so 41 states.
OTHER = {
    "larger map": lambda: make_flappy_bird(map="three-phases"),
    "smaller map": lambda: make_flappy_bird(map=GridMap.parse("..*.\n....\n.#..")),
    "one column less": lambda: make_flappy_bird(map=GridMap(MIXED.cells[:, :-1])),
    "night shift": lambda: make("night-shift"),
    "turned": lambda: make_flappy_bird(map=GridMap(np.zeros((8, 5), int))),
    "another map of this size": lambda: make_flappy_bird(map=GridMap(np.zeros((5, 8), int))),
}


LARGER_OR_SMALLER = list(OTHER)[:4]


@pytest.mark.parametrize("name", OTHER)
def test_flights_of_another_world_are_refused_and_nothing_is_written(tmp_path, name):
    problem = OTHER[name]()
    told = counsel.solve(problem).policy
    simulator = counsel.Simulator(problem)
    episodes = simulator.play(told, episodes=50, rng=np.random.default_rng(0))
    assert "episodes" in refused(tmp_path, MIXED, tmp_path / "map.png", episodes=episodes)


@pytest.mark.parametrize("name", LARGER_OR_SMALLER)
def test_the_criticality_of_another_world_is_refused_and_nothing_is_written(tmp_path, name):
    problem = OTHER[name]()
    critical = counsel.criticality(problem)
    told = refused(tmp_path, MIXED, tmp_path / "map.svg", criticality=critical)
    assert "criticality" in told
    assert "41" in told
    assert str(problem.n_states) in told


def test_a_world_of_two_actions_is_no_flight():
    # The states fit; but silence is 2 there and Down here.
    mdp = counsel.MDP(np.zeros((41, 2), int), np.ones((41, 2)), horizon=8)
    problem = counsel.AdviceProblem(mdp, counsel.Human(np.full((41, 2), 0.5), 0.5))
    never = counsel.Policy.never(horizon=8, n_states=41, n_actions=2)
    episodes = counsel.Simulator(problem).play(never, episodes=1, rng=np.random.default_rng(0))
    with pytest.raises(CounselError, match="episodes"):
        draw_map(MIXED, episodes=episodes)


@pytest.mark.parametrize("wrong", ["nowhere", 5, None, ["..", ".."]])
def test_what_is_no_map_is_refused(tmp_path, wrong):
    assert "map" in refused(tmp_path, wrong, tmp_path / "map.png")
