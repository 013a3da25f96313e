"""Random rewards: the declared range, the law that draws them, and what leaves the range."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest

import counsel
from counsel import MDP, AdviceProblem, Human
from counsel.model.advice_costs import with_costs
from counsel.simulate import RewardCells, bernoulli
from tests.support.bad_input import HALF, INF, NAN, case, check_refused, world

PERSON = Human(HALF, 0.5)


def spread(cells, u):
    """Rewards spread evenly by up to 0.25 around their means."""
    return cells.mean + 0.5 * (u - 0.5)


def paying(reward, **rewards):
    return AdviceProblem(world(reward=reward), PERSON, **rewards)


BAD = [
    case("one number", lambda: paying(np.zeros((2, 2)), reward_range=1.0), "reward_range is 1.0"),
    case("three numbers", lambda: paying(np.zeros((2, 2)), reward_range=(0, 1, 2)), "(0, 1, 2)"),
    case("a text", lambda: paying(np.zeros((2, 2)), reward_range="01"), "reward_range", "'01'"),
    case("largest first", lambda: paying(np.zeros((2, 2)), reward_range=(1, 0)), "(1, 0)", "least"),
    case("not a number", lambda: paying(np.zeros((2, 2)), reward_range=(NAN, 1)), "nan"),
    case("without end", lambda: paying(np.zeros((2, 2)), reward_range=(0, INF)), "inf"),
    case("a mean above the range",
         lambda: paying([[0.5, 1.0], [2.5, 0.0]], reward_range=(0, 1)),
         "reward[h=0, s=1, a=0]", "2.5", "(0, 1)", "contains every reward"),
    case("a mean below the range at one step",
         lambda: paying(np.stack([HALF, HALF, HALF - [[0, 0], [0, 0.75]]]), reward_range=(0, 1)),
         "reward[h=2, s=1, a=1]", "-0.25", "(0, 1)"),
    case("a law without a range",
         lambda: paying(HALF, reward_law=bernoulli), "reward_law", "reward_range=(low, high)"),
    case("a law by name",
         lambda: paying(HALF, reward_range=(0, 1), reward_law="bernoulli"),
         "reward_law is 'bernoulli'", "counsel.simulate.bernoulli"),
]  # fmt: skip


@pytest.mark.parametrize(("build", "fragments"), BAD)
def test_a_bad_range_or_law_is_refused_in_one_line(build, fragments):
    check_refused(build, fragments)


def test_an_action_that_is_not_allowed_needs_no_place_in_the_range():
    mdp = MDP([[0, 0]], [[5.0, 0.0]], horizon=1, allowed=[[True, False]])
    assert AdviceProblem(mdp, Human([[1.0, 0.0]], 0.5), reward_range=(4, 6)).reward_range == (4, 6)


def test_without_a_declared_range_rewards_are_certain_and_the_range_is_theirs():
    problem = paying([[0.5, 1.0], [2.5, 0.0]])
    assert problem.reward_range is None
    assert problem.shape.reward_range == (0.0, 2.5)
    assert problem.without_adherence().reward_range == (0.0, 2.5)
    cells = np.array([0, 2]), np.array([1, 0]), np.array([0, 1])
    assert problem.draw_rewards(*cells, np.array([0.1, 0.9])).tolist() == [2.5, 1.0]


def test_a_declared_range_says_nothing_of_the_truth():
    # Two worlds with other means but the same range look the same to a learner.
    views = []
    for seed in range(2):
        means = np.random.default_rng(seed).uniform(0.2, 0.8, (3, 2, 2))
        problem = paying(means, reward_range=(0, 1))
        assert problem.shape.reward_range == (0.0, 1.0)
        setting = problem.without_adherence().without_rewards()
        assert not setting.knows_rewards
        views.append((setting.mdp.reward, setting.reward_range))
    np.testing.assert_array_equal(views[0][0], views[1][0])
    assert views[0][1] == views[1][1] == (0.0, 1.0)


def test_bernoulli_pays_either_end_with_the_mean_of_the_cell():
    # A reward is a step function of u, so the mean over a grid of 1,000 is right to 1 / 1,000.
    u = (np.arange(1000) + 0.5) / 1000
    for mean in (-2.0, -1.25, 0.0, 0.7, 3.0):
        zeros = np.zeros(1000, int)
        reward = bernoulli(RewardCells(zeros, zeros, zeros, np.full(1000, mean), -2.0, 3.0), u)
        assert set(reward) <= {-2.0, 3.0}
        assert reward.mean() == pytest.approx(mean, abs=5.0 / 1000)
    assert (reward == 3.0).all()  # at the upper end of the range nothing else is paid


def test_a_law_that_leaves_the_range_is_refused_where_it_does():
    problem = paying([[0.5, 0.9], [0.5, 0.5]], reward_range=(0, 1), reward_law=spread)
    cells = np.array([0, 2]), np.array([1, 0]), np.array([0, 1])
    assert problem.draw_rewards(*cells, np.array([0.0, 0.5])).tolist() == [0.25, 0.9]
    with pytest.raises(counsel.CounselError, match=r"at \[h=2, s=0, a=1\] is 1.1.*\(0, 1\)"):
        problem.draw_rewards(*cells, np.array([0.0, 0.9]))
    lazy = replace(problem, reward_law=lambda cells, u: 0.5)
    with pytest.raises(counsel.CounselError, match=r"shape \(\) for 2 decisions"):
        lazy.draw_rewards(*cells, np.array([0.0, 0.9]))


def test_range_and_law_are_pickled_saved_and_kept_with_other_costs(tmp_path):
    plain = paying(HALF, reward_range=(0, 1.5))
    problem = replace(plain, reward_law=bernoulli)
    for given in (plain, problem):
        counsel.save(given, tmp_path / "problem.npz")
        copies = counsel.load(tmp_path / "problem.npz"), pickle.loads(pickle.dumps(given))
        for copy in (*copies, with_costs(given, {"1": 3.0})):
            assert copy.reward_range == (0.0, 1.5)
            assert copy.reward_law is given.reward_law
    assert with_costs(problem, {"1": 3.0}).cost[0, 0].tolist() == [1.0, 3.0]


def test_a_law_of_ones_own_cannot_be_saved(tmp_path):
    problem = paying(HALF, reward_range=(0, 1), reward_law=spread)
    with pytest.raises(counsel.CounselError, match=r"spread.* cannot be saved; save the problem"):
        counsel.save(problem, tmp_path / "problem.npz")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("reward_law", "gauss", "reward_law is 'gauss'; it must be one of bernoulli"),
        ("reward_law", ["bernoulli"], "reward_law is"),
        ("reward_range", [0.75, 2.0], "outside reward_range"),
        ("reward_range", "wide", "reward_range is 'wide'"),
    ],
)
def test_a_file_with_a_bad_range_or_law_is_refused(tmp_path, name, value, message):
    path = tmp_path / "problem.npz"
    counsel.save(paying(HALF, reward_range=(0, 1), reward_law=bernoulli), path)
    with np.load(path) as file:
        arrays = dict(file)
    header = json.loads(bytes(arrays["header"]).decode()) | {name: value}
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    np.savez(path, **arrays)
    with pytest.raises(counsel.CounselError, match=message) as caught:
        counsel.load(path)
    assert "problem.npz" in str(caught.value)


def test_random_rewards_keep_their_means_and_range():
    problem = paying([[0.5, 1.0], [2.5, 0.0]])
    random = problem.with_random_rewards()
    assert random.reward_range == (0.0, 2.5)
    assert random.reward_law is bernoulli
    assert random.mdp is problem.mdp
    assert random.with_random_rewards() is random
    assert random.machine().reward.shape == problem.machine().reward.shape
