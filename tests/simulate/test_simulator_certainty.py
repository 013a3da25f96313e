"""The simulator draws what the law says for people who are certain, or almost."""

import numpy as np

import counsel
from counsel.simulate._episode_kernels import draw_action

ULP = 2.0**-53
SMALL = (5e-324, 1e-307, 1e-300, 1e-200, 1e-17, ULP, 1e-12)
THETA = (0.0, 5e-324, 1e-17, ULP, 0.5, 1.0 - ULP, 1.0)
DRAWS = 400
NUMBERS = np.append((np.arange(DRAWS) + 0.5) / DRAWS, [0.0, 1.0 - ULP])
"""Numbers that lie evenly in [0, 1), and the least and the largest a generator draws."""


def test_actions_are_drawn_by_the_law_and_never_what_has_no_probability():
    for small in SMALL:
        for habit in ([1.0 - small, small], [small, 1.0 - small], [1.0 - small, 0.0, small]):
            A = len(habit)
            mdp = counsel.MDP([[0] * A], [[0.0] * A], horizon=1)
            for theta in THETA:
                problem = counsel.AdviceProblem(mdp, counsel.Human([habit], theta))
                person = counsel.Simulator(problem).scene.person_lsc
                for advice in range(A + 1):
                    law = problem.law(0, 0, advice)
                    drawn = [draw_action(person, 0, 0, advice, u) for u in NUMBERS]
                    share = np.bincount(drawn[:DRAWS], minlength=A) / DRAWS
                    case = f"habit {habit}, adherence {theta!r}, advice {advice}: {share}"
                    assert np.abs(share - law).max() <= 1.0 / DRAWS, case
                    assert (law[drawn] > 0.0).all(), case
