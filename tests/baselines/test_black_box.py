"""One test for each fault once found in the learners of the machine's world."""

import _thread
import threading

import numpy as np
import pytest

import counsel
from counsel.baselines import (
    EULER,
    UCBVI,
    UCCFH,
    UCFH,
    Fixed,
    Phases,
    QLearning,
    RFExpress,
    extended_lp,
)
from counsel.model.machine import machine_rewards, support_of
from counsel.testing import check_learner
from counsel.worlds import make
from tests.support.each import each, each_seed
from tests.support.later import Later
from tests.support.problems import adapt, draw

highspy = Later("highspy")


def rng(seed=0):
    return np.random.default_rng(seed)


def built(kind, problem, **options):
    planned = {"episodes": 1001} if kind in (EULER, UCBVI, QLearning) else {}
    if kind is UCCFH:
        planned["budget"] = 0.5
    reward = machine_rewards(problem)
    return kind(problem.shape, rng=rng(), **({"reward": reward} | planned | options))


BOXES = (EULER, UCBVI, QLearning, RFExpress, UCFH, UCCFH)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [UCFH, UCCFH])
def test_a_burn_in_with_phases_does_not_declare_everything_unreachable(kind):
    problem = make("night-shift")
    learner = built(kind, problem, phases=Phases())
    learner.burn_in(counsel.Simulator(problem), episodes=500, rng=rng(1))
    assert 0.0 < learner._unreachable[:-1].mean() < 0.9
    assert (learner.policy.advice < problem.n_actions).any()


def test_a_burn_in_of_no_episodes_is_refused():
    problem = make("night-shift")
    with pytest.raises(counsel.CounselError, match="episodes must be a whole number of at least 1"):
        built(EULER, problem).burn_in(counsel.Simulator(problem), episodes=0, rng=rng())


def rare(reward):
    """A state that a short burn-in misses; what it pays lies on one side of 0."""
    P = np.zeros((2, 3, 2))
    P[0, :, 0], P[0, :, 1], P[1, :, 1] = 0.9, 0.1, 1.0
    allowed = [[True, True, False], [True, True, True]]
    mdp = counsel.MDP(P, reward, horizon=4, start=0, allowed=allowed)
    return counsel.AdviceProblem(mdp, counsel.Human([[0.5, 0.5, 0.0]] * 2, 0.9))


@pytest.mark.slow
@pytest.mark.parametrize("kind", BOXES)
@each("sign", [1.0, -1.0])
def test_what_a_burn_in_missed_is_neither_sought_nor_breaks_plans(kind, sign):
    # Rewards far above 0: values of forbidden and of missed states were mixed up. Far below: a
    # missed state looked better than anything.
    problem = rare(sign * np.array([[10.0, 10.5, 11.0], [10.0, 10.5, 11.0]]))
    learner = built(kind, problem, scale=0.001)
    learner.burn_in(counsel.Simulator(problem), episodes=1, rng=rng(2))
    assert learner._unreachable[1:-1, 1].any()
    simulator, random = counsel.Simulator(problem), rng(3)
    for _ in range(40):
        problem.check_fits(learner.policy)
        learner.update(simulator.play(learner.drawn, episodes=25, rng=random))
    assert not learner._unreachable[1:-1, 1].all()  # seen after all
    if kind is not UCCFH:
        best = counsel.solve(problem).value
        assert counsel.evaluate(problem, learner.policy).value > best - 0.3


def half_over():
    """Half of the episodes begin where all is over."""
    P = np.zeros((2, 2, 2))
    P[0, :, 0] = P[1, :, 1] = 1.0
    mdp = counsel.MDP(P, [[0.0, 1.0], [0.0, 0.0]], horizon=2, start=[0.5, 0.5])
    return counsel.AdviceProblem(mdp, counsel.Human([[1.0, 0.0], [1.0, 0.0]], 1.0))


@pytest.mark.slow
def test_episodes_that_begin_over_count_in_the_budget():
    problem = half_over()
    learner = built(UCCFH, problem)
    *_, last = counsel.learn(
        learner, counsel.Simulator(problem), episodes=4000, every=50, rng=rng(4)
    )
    assert last.advice_count == pytest.approx(0.5, abs=0.02)
    assert last.value_gap == pytest.approx(0.0, abs=0.02)
    plan = learner.plan(budget=0.5)
    assert plan.value == pytest.approx(0.5, abs=0.02)
    assert counsel.evaluate(problem, plan.policy).advice_count == pytest.approx(0.5, abs=0.02)
    assert learner.optimistic().value >= 0.5 - 0.02


def test_mass_in_states_known_to_be_worth_nothing_is_worth_nothing_and_not_less():
    P = np.zeros((2, 2, 2))
    P[0, :, 0] = P[1, :, 1] = 1.0
    mdp = counsel.MDP(P, [[-1.0, -2.0], [0.0, 0.0]], horizon=2, start=[0.5, 0.5])
    problem = counsel.AdviceProblem(mdp, counsel.Human([[0.5, 0.5], [0.5, 0.5]], 1.0))
    for zero, value in (([False, True], -1.0), ([True, True], 0.0)):
        learner = built(UCCFH, problem, known_zero=np.array(zero))
        assert learner.optimistic().value >= value - 1e-9
        if all(zero):
            assert (learner.policy.advice == 2).all()


@pytest.mark.parametrize("kind", [EULER, UCBVI, QLearning, UCFH])
def test_promises_survive_a_restore_and_hold_before_the_first_plan(kind):
    problem = make("night-shift")
    best = counsel.solve(problem).values
    learner = built(kind, problem)
    assert (learner.upper >= best - 1e-9).all()
    assert (learner.upper[-1] == 0.0).all()
    learner.update(counsel.Simulator(problem).play(learner.policy, episodes=50, rng=rng()))
    _ = learner.policy
    twin = built(kind, problem)
    twin.restore(learner.state())
    _ = twin.policy
    np.testing.assert_array_equal(twin.upper, learner.upper)


def test_a_learner_of_another_world_is_refused_before_the_compiled_loop():
    small, large = make("night-shift"), make("flappy-bird-budget/greedy")
    for kind in (UCBVI, EULER):
        with pytest.raises(counsel.CounselError):
            next(counsel.learn(built(kind, large), counsel.Simulator(small), episodes=5, rng=rng()))


@pytest.mark.parametrize("kind", [UCFH, UCCFH])
def test_an_epsilon_next_to_nothing_is_no_division_by_zero(kind):
    learner = built(kind, make("night-shift"), epsilon=1e-200, phases=Phases())
    assert learner.sets.m > 1e300
    assert learner.policy.advice.shape == (12, make("night-shift").n_states)


@pytest.mark.parametrize("kind", BOXES)
def test_known_rewards_beyond_the_range_are_refused(kind):
    problem = make("night-shift")
    beyond = machine_rewards(problem) + 100.0
    with pytest.raises(counsel.CounselError, match=r"reward\[h=0, s=0, b=0\] is"):
        built(kind, problem, reward=beyond)


@pytest.mark.parametrize("kind", [UCBVI, UCFH, UCCFH])
def test_unknown_rewards_are_refused_at_the_door(kind):
    with pytest.raises(counsel.CounselError, match=r"reward is None; give the machine's rewards"):
        built(kind, make("night-shift"), reward=None)


def test_a_bonus_of_another_learner_is_refused():
    with pytest.raises(counsel.CounselError, match=r"bonus is Bernstein\(\); give Freedman\(\) or"):
        built(UCBVI, make("night-shift"), bonus=counsel.baselines.Bernstein())


@pytest.mark.slow
def test_the_support_of_a_large_world_is_kept_sparse():
    road = make("car-driving/myopic")
    support = support_of(road)
    assert support.nnz < 0.01 * road.n_states**2
    learner = built(UCFH, road, support=support)
    learner.update(counsel.Simulator(road).play(learner.policy, episodes=50, rng=rng()))
    assert learner.sets.most_successors == np.diff(support.indptr).max()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [EULER, UCBVI, QLearning, UCFH, RFExpress])
def test_an_episode_without_decisions_does_not_draw_a_plan_anew(kind):
    check_learner(lambda p: built(kind, p), half_over())


DAMAGE = {
    "negated": ("_visits", lambda a: -a),
    "zeroed": ("_visits", np.zeros_like),
    "multiplied": ("_links", lambda a: a * [1, 1000, 1]),
    "below none": ("_starts", lambda a: a - 5),
    "no number": ("_Q", lambda a: a * np.nan),
}
SPOILT = [
    (kind, damage)
    for kind in BOXES
    for damage, (name, _) in DAMAGE.items()
    if name in built(kind, make("night-shift")).state()
    and not (kind is QLearning and damage == "zeroed")
]


@pytest.mark.parametrize(("kind", "damage"), SPOILT)
def test_damaged_arrays_are_refused(kind, damage):
    name, spoil = DAMAGE[damage]
    problem = make("night-shift")
    learner = built(kind, problem)
    learner.update(counsel.Simulator(problem).play(learner.drawn, episodes=30, rng=rng()))
    state = learner.state()
    state[name] = spoil(state[name]).astype(state[name].dtype)
    with pytest.raises(counsel.CounselError):
        built(kind, problem).restore(state)


def test_advice_that_is_forbidden_is_not_explored_because_it_was_seen():
    problem = rare(np.array([[0.0, 0.5, 1.0], [0.0, 0.5, 1.0]]))
    learner = built(RFExpress, problem, scale=1e-6)
    batch = counsel.Simulator(problem).play(learner.drawn, episodes=20, rng=rng())
    forbidden = batch.advice.copy()
    forbidden[:] = 2
    learner.update(
        counsel.simulate.Episodes(
            **{
                name: getattr(batch, name)
                for name in (
                    "first", "state", "action", "reward", "next_state", "terminated", "defer",
                )
            },
            advice=forbidden,
        )
    )  # fmt: skip
    problem.check_fits(learner.drawn)


@each_seed(range(12))
def test_next_to_no_budget_policy_and_world_agree(seed):
    problem = adapt(draw(seed))
    learner = built(UCCFH, problem, budget=1e-9)
    simulator, random = counsel.Simulator(problem), rng(seed)
    for _ in range(3):
        told = learner.optimistic()
        chances = told.policy.probabilities()
        here = np.zeros((problem.horizon, told.world.n_states, problem.n_actions + 2))
        here[..., -1] = 1.0
        here[:, : problem.n_states, : problem.n_actions] = chances[..., :-1]
        here[:, : problem.n_states, -1] = chances[..., -1]
        worth = counsel.evaluate(told.world, counsel.Policy.from_probabilities(here))
        assert worth.value == pytest.approx(told.value, abs=1e-6)
        learner.update(simulator.play(learner.policy, episodes=20, rng=random))


@pytest.mark.parametrize("kind", BOXES)
@each("reward", [1e9, -3.0, 0.0])
def test_constant_rewards_of_any_size_are_planned(kind, reward):
    P = np.zeros((2, 2, 2))
    P[0, :, 0] = P[1, :, 1] = 1.0
    mdp = counsel.MDP(P, np.full((2, 2), reward), horizon=3, start=0)
    problem = counsel.AdviceProblem(mdp, counsel.Human(np.full((2, 2), 0.5), 0.9))
    for zero in (None, np.array([False, True])):
        learner = built(kind, problem, known_zero=zero)
        learner.update(counsel.Simulator(problem).play(learner.drawn, episodes=10, rng=rng()))
        problem.check_fits(learner.policy)
        if hasattr(learner, "upper"):
            assert np.isfinite(learner.upper).all()


def test_the_best_action_reckons_with_what_the_person_does_where_nothing_may_be_advised():
    # From 0, action 0 leads to 1, where nothing may be advised and the person loses 1 alone.
    P = np.zeros((2, 3, 2, 3))
    P[:, 0, 0, 1] = P[:, 0, 1, 2] = P[:, 1, :, 1] = P[:, 2, :, 2] = 1.0
    reward = np.zeros((2, 3, 2))
    reward[1, 1, :], reward[1, 2, :] = -1.0, -0.5
    human = counsel.Human([[0.5, 0.5], [1.0, 0.0], [0.5, 0.5]], 0.9)
    problem = counsel.AdviceProblem(counsel.MDP(P, reward, horizon=2), human)
    assert counsel.baselines.always_best_action(problem).advice[0, 0] == 1


def test_a_fixed_adviser_takes_a_generator_or_none():
    policy = counsel.Policy.never(horizon=1, n_states=1, n_actions=1)
    with pytest.raises(counsel.CounselError, match="rng is 5"):
        Fixed(policy, rng=5)


@pytest.mark.slow
def test_ctrl_c_stops_the_solver_itself():
    # HiGHS takes no notice of a cancellation unless told beforehand that there may be one: Ctrl-C
    # then waited for the whole programme, minutes on a large map. A dense programme is built at
    # once and takes the simplex method ten times as long as it is given here; presolving, which
    # looks for a cancellation only at its end, is left out.
    n, random = 2000, rng(0)
    model = highspy.HighsLp()
    model.num_row_ = model.num_col_ = n
    model.sense_ = highspy.ObjSense.kMaximize
    model.col_cost_ = random.uniform(0.5, 1.0, n)
    model.col_lower_, model.col_upper_ = np.zeros(n), np.full(n, highspy.kHighsInf)
    model.row_lower_, model.row_upper_ = np.full(n, -np.inf), random.uniform(0.5, 1.0, n)
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = np.arange(n + 1) * n
    model.a_matrix_.index_ = np.tile(np.arange(n), n)
    model.a_matrix_.value_ = random.uniform(0.0, 1.0, n * n)
    solver = highspy.Highs()
    solver.silent()
    solver.setOptionValue("solver", "simplex")
    solver.setOptionValue("presolve", "off")
    solver.passModel(model)
    threading.Timer(0.4, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        extended_lp._run(solver)
    assert solver.getModelStatus() == highspy.HighsModelStatus.kInterrupt
