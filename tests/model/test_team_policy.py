"""Policies for teams: what is refused, and in which words."""

import numpy as np
import pytest

import counsel
from counsel.errors import CounselError
from counsel.simulate import TeamPolicy
from tests.support.each import each

ADVICE, ONES = np.ones((6, 5), dtype=int), np.ones((6, 5))
NAN = np.where(np.arange(5) == 3, np.nan, ONES)


def test_a_policy_prints_its_limits():
    policy = TeamPolicy(2, advice=[ADVICE], priority=[ONES], longest_wait=3)
    expected = "TeamPolicy(1 kind of person, at most 2 pieces per step, nobody waits more than 3)"
    assert repr(policy) == expected


@each(
    ("tables", "sentence"),
    [
        ({"per_step": 0}, "per_step must be a whole number of at least 1, not 0"),
        ({"advice": [ONES]}, r"advice\[0\] is .* give whole numbers \[h, s\]"),
        ({"advice": [[1, 1]]}, r"advice\[0\] is \[1, 1\]; give whole numbers"),
        ({"priority": []}, "priority has 0 tables but advice has 1; give one for each kind"),
        ({"priority": [ONES[:2]]}, r"priority\[0\] has shape \(2, 5\) but advice\[0\] has \(6, 5"),
        ({"priority": [NAN]}, r"priority\[0\]\[h=0, s=3\] is NaN; give a number"),
        ({"chance": [ONES * 1.5]}, r"chance\[0\]\[h=0, s=0\] is 1.5; it must lie in \[0, 1\]"),
        ({"longest_wait": -1}, "longest_wait must be a whole number of at least 0, not -1"),
    ],
)
def test_bad_tables_are_refused(tables, sentence):
    with pytest.raises(CounselError, match=sentence):
        TeamPolicy(**{"per_step": 1, "advice": [ADVICE], "priority": [ONES]} | tables)


@each(
    ("advice", "counts", "options", "sentence"),
    [
        ([ADVICE] * 2, [1], {}, "the policy is for 2 kinds of people; the team has 1"),
        (
            [ADVICE],
            [1],
            {"per_step": 2},
            "per_step is 2; it may be at most 1, the size of the team",
        ),
        ([ADVICE[:2]], [3], {}, r"advice\[0\] has shape \(2, 5\); expected \(6, 5\)"),
        ([ADVICE + 3], [3], {}, r"advice\[0\]\[h=0, s=0\] is 4; it runs from 0 to 3, which means"),
        ([ADVICE], [9], {"longest_wait": 2}, "longest_wait is 2, but 9 people wait up to 8 steps"),
        ([ADVICE + 2], [2], {"longest_wait": 2}, r"advice\[0\]\[h=0, s=0\] is silence; give"),
    ],
)
def test_a_policy_that_does_not_fit_the_team_is_refused(advice, counts, options, sentence):
    given = {"per_step": 1, "advice": advice, "priority": [a * 1.0 for a in advice]} | options
    team = counsel.Team([counsel.make("ward")], counts)
    with pytest.raises(CounselError, match=sentence):
        team.evaluate(TeamPolicy(**given), episodes=2, rng=np.random.default_rng(0))


def test_advice_that_is_not_allowed_is_refused():
    allowed = np.array([[True, True], [True, False]])
    mdp = counsel.MDP([[0, 1], [0, 1]], np.ones((2, 2)), horizon=2, allowed=allowed)
    person = counsel.AdviceProblem(mdp, counsel.Human([[0.5, 0.5], [1.0, 0.0]], 0.7))
    policy = TeamPolicy(1, advice=[np.ones((2, 2), dtype=int)], priority=[np.ones((2, 2))])
    with pytest.raises(CounselError, match=r"advice\[0\]\[h=0, s=1\] is an action that is not all"):
        counsel.Team([person]).evaluate(policy, episodes=2, rng=np.random.default_rng(0))


def test_a_table_without_levels_fits_a_person_with_a_memory():
    tiring = counsel.make("ward/tiring")
    policy = TeamPolicy(1, advice=[ADVICE], priority=[ONES])
    outcome = counsel.Team([tiring], [2]).evaluate(policy, episodes=5, rng=np.random.default_rng(0))
    assert outcome.most_pieces == 1
