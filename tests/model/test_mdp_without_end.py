"""Work without end: a world with a discount instead of a horizon."""

import pickle

import numpy as np
import pytest

import counsel
from tests.support.bad_input import case, check_refused
from tests.support.saved import assert_same

NEXT, REWARD = [[1, 2], [0, 2], [2, 2]], [0.0, 1.0, 0.0]
HABIT = np.full((3, 2), 0.5)


def endless(**changes):
    settings = {"discount": 0.95} | changes
    return counsel.MDP(NEXT, settings.pop("reward", REWARD), **settings)


def problem_of(mdp=None, **person):
    mdp = endless() if mdp is None else mdp
    cost = person.pop("cost", 1.0)
    return counsel.AdviceProblem(mdp, counsel.Human(HABIT, **({"lift": 0.5} | person)), cost)


def test_a_world_without_end_has_a_discount_and_tables_of_one_step():
    mdp = endless(state_labels=["a", "b", "c"])
    assert (mdp.discount, mdp.n_steps, mdp.reward.shape) == (0.95, 1, (1, 3, 2))
    assert repr(mdp) == "MDP(3 states, 2 actions, no end, discount 0.95)"
    assert mdp.over.tolist() == [[False, False, True]]
    assert mdp.paying(np.ones(3)).discount == 0.95


def test_a_world_with_a_horizon_has_no_discount():
    mdp = counsel.MDP(NEXT, REWARD, horizon=4)
    assert (mdp.discount, mdp.n_steps, mdp.horizon) == (None, 4, 4)


def test_the_machine_of_work_without_end_has_its_discount():
    assert problem_of().machine().discount == 0.95


def test_a_toy_text_dictionary_may_be_discounted():
    toy_text = {0: {0: [(1.0, 0, 1.0, False)]}}
    assert counsel.MDP.from_toy_text(toy_text, discount=0.5).discount == 0.5


def test_a_problem_without_end_is_saved_loaded_and_pickled(tmp_path):
    problem = problem_of(endless(state_labels=["a", "b", "c"]), cost=[1.0, 3.0])
    counsel.save(problem, tmp_path / "problem.npz")
    for back in (counsel.load(tmp_path / "problem.npz"), pickle.loads(pickle.dumps(problem))):
        assert_same(back, problem)
        assert back.discount == 0.95


def test_an_average_per_step_is_saved_loaded_pickled_and_passed_on(tmp_path):
    problem = problem_of(counsel.MDP(NEXT, REWARD, average=True))
    assert (problem.average, problem.discount, problem.n_steps) == (True, 1.0, 1)
    assert repr(problem.mdp) == "MDP(3 states, 2 actions, no end, average per step)"
    assert problem.machine().average
    assert problem.mdp.paying(np.ones(3)).average
    assert problem_of().without_end(average=True).average
    assert counsel.MDP.from_toy_text({0: {0: [(1.0, 0, 1.0, False)]}}, average=True).average
    counsel.save(problem, tmp_path / "problem.npz")
    for back in (counsel.load(tmp_path / "problem.npz"), pickle.loads(pickle.dumps(problem))):
        assert_same(back, problem)
        assert back.average
    with pytest.raises(counsel.CounselError, match=r"no end \(average per step\)"):
        _ = problem.horizon


WORLDS = [
    case("average of a horizon", lambda: counsel.MDP(NEXT, REWARD, horizon=3, average=True),
         "horizon is 3", "average is True"),
    case("average and discount", lambda: endless(average=True), "discount is 0.95", "average"),
    case("average 1", lambda: counsel.MDP(NEXT, REWARD, average=1), "average is 1", "True or"),
    case("discount 1", lambda: endless(discount=1.0), "discount", "give average for"),
    case("discount just above 1", lambda: endless(discount=1.000001), "discount", "1.000001"),
    case("discount -0.1", lambda: endless(discount=-0.1), "discount", "-0.1"),
    case("discount NaN", lambda: endless(discount=np.nan), "discount", "nan"),
    case("discount text", lambda: endless(discount="0.9"), "discount", "'0.9'"),
    case("discount True", lambda: endless(discount=True), "discount", "True"),
    case("horizon and discount", lambda: endless(horizon=3), "horizon is 3", "0.95"),
    case("neither", lambda: endless(discount=None), "horizon is None", "discount is None"),
    case("reward of four steps", lambda: endless(reward=np.ones((4, 3, 2))),
         "reward has 4 steps", "work without end has none"),
    case("allowed of four steps", lambda: endless(allowed=np.ones((4, 3, 2), bool)),
         "allowed has 4 steps", "work without end has none"),
    case("transition of two steps", lambda: counsel.MDP([NEXT, NEXT], REWARD, discount=0.9),
         "transition has 2 steps", "work without end has none"),
    case("reward of another size", lambda: endless(reward=np.ones(2)), "reward", "(2,)", "(3,)"),
    case("adherence of four steps",
         lambda: problem_of(lift=np.full((4, 3, 2), 0.5)),
         "adherence has 4 steps", "work without end has none"),
    case("cost of four steps", lambda: problem_of(cost=np.ones((4, 3, 2))),
         "cost has 4 steps", "work without end has none"),
]  # fmt: skip


@pytest.mark.parametrize(("build", "texts"), WORLDS)
def test_bad_work_without_end_is_refused(build, texts):
    check_refused(build, texts)


@pytest.mark.parametrize(
    "use",
    [
        lambda problem: problem.horizon,
        lambda problem: problem.shape,
        lambda problem: problem.without_adherence(),
        counsel.baselines.always_best_action,
    ],
)
def test_what_needs_a_horizon_refuses_work_without_end(use):
    with pytest.raises(counsel.CounselError, match=r"no end \(discount 0\.95\)"):
        use(problem_of())


def test_a_world_with_a_horizon_can_be_made_endless():
    problem = counsel.make("ward").without_end(0.9)
    assert problem.discount == 0.9
    np.testing.assert_array_equal(problem.mdp.reward, counsel.make("ward").mdp.reward[:1])


def test_a_world_that_changes_with_the_step_cannot_be_made_endless():
    mdp = counsel.MDP(NEXT, np.arange(12.0).reshape(2, 3, 2), horizon=2)
    with pytest.raises(counsel.CounselError, match="reward changes over 2 steps"):
        mdp.without_end(0.9)
