"""Advice problems: the adherence law, the machine's world, and what a learner may know."""

import copy
import gc
import pickle
import types

import numpy as np
import pytest
import scipy.sparse as sp

import counsel
from counsel import MDP, AdviceProblem, Human
from tests.support import examples, oracles
from tests.support.each import each, each_seed
from tests.support.problems import adapt, draw

SEEDS = range(40)


def stationary(seed):
    """The first step of a drawn problem, for ever: the oracle's arrays and Counsel's problem."""
    one = draw(seed)
    H = 3
    dense = oracles.Problem(*(np.tile(x[:1], (H, 1, 1, 1)[: x.ndim]) for x in one[:5]), one.start_s)
    mdp = MDP(one.P_hsat[0], one.r_hsa[0], horizon=H, start=one.start_s, allowed=one.allowed_hsa[0])
    return dense, AdviceProblem(mdp, Human(one.pi_hsa[0], one.theta_hsa[0]))


def check_machine(problem, dense):
    """The machine's world equals the oracle's wherever the advice is allowed."""
    machine = problem.machine()
    H, S, A = dense.r_hsa.shape
    P_hsbt, r_hsb = oracles.machine(*dense[:4])
    may_hsb = oracles.permitted(dense.allowed_hsa)
    assert (machine.horizon, machine.n_states, machine.n_actions) == (H, S, A + 1)
    got = np.broadcast_to(machine.kernel.to_dense(), P_hsbt.shape)
    np.testing.assert_array_equal(machine.allowed, may_hsb)
    np.testing.assert_allclose(got[may_hsb], P_hsbt[may_hsb], rtol=0, atol=1e-12)
    np.testing.assert_allclose(machine.reward[may_hsb], r_hsb[may_hsb], rtol=0, atol=1e-12)
    np.testing.assert_array_equal(machine.start, dense.start_s)
    return machine


# ---- the law -------------------------------------------------------------------------------


@each_seed(SEEDS)
def test_the_law_is_equation_one_in_every_cell(seed):
    dense = draw(seed)
    problem = adapt(dense)
    H, S, A = dense.r_hsa.shape
    for h, s, b in np.ndindex(H, S, A + 1):
        if b == A or dense.allowed_hsa[h, s, b]:
            expected = oracles.law(dense.pi_hsa[h, s], dense.theta_hsa[h, s], b)
            np.testing.assert_allclose(problem.law(h, s, b), expected, rtol=0, atol=1e-12)


@each_seed(SEEDS)
def test_the_law_of_a_person_given_by_lift_is_the_same(seed):
    dense = draw(seed)
    told = adapt(dense)
    problem = AdviceProblem(told.mdp, Human(dense.pi_hsa, lift=told.lift))
    H, S, A = dense.r_hsa.shape
    for h, s, b in np.ndindex(H, S, A + 1):
        np.testing.assert_allclose(problem.law(h, s, b), told.law(h, s, b), rtol=0, atol=1e-12)


@each_seed(SEEDS)
def test_the_law_is_lift_towards_the_advice_and_habit_for_the_rest(seed):
    problem = adapt(draw(seed))
    for h, s, b in np.argwhere(problem.mdp.allowed):
        lift, own_a = problem.lift[h, s, b], problem.policy[h, s]
        expected = lift * np.eye(problem.n_actions)[b] + (1 - lift) * own_a
        np.testing.assert_allclose(problem.law(h, s, b), expected, rtol=0, atol=1e-12)


def test_the_seeds_hold_repelled_and_certain_people_and_masks():
    drawn = [draw(seed) for seed in SEEDS]
    assert any((d.theta_hsa < d.pi_hsa)[d.pi_hsa < 1].any() for d in drawn)
    assert any((d.pi_hsa == 1.0).any() for d in drawn)
    assert any(not d.allowed_hsa.all() for d in drawn)


def test_the_numbers_of_the_example_where_the_best_advice_is_not_the_best_action():
    problem = adapt(examples.advice_is_not_action())
    np.testing.assert_allclose(problem.law(0, 0, 0), [0.9, 0.0, 0.1], atol=1e-15)
    np.testing.assert_allclose(problem.law(0, 0, 1), [0.085, 0.9, 0.015], atol=1e-15)
    np.testing.assert_allclose(problem.lift[0, 0, :2], [1 / 3, 0.9], atol=1e-15)
    np.testing.assert_array_equal(problem.law(0, 0, 3), [0.85, 0.0, 0.15])


def test_a_law_may_be_changed_without_changing_the_problem():
    problem = adapt(examples.advice_is_not_action())
    for b in range(4):
        problem.law(0, 0, b)[:] = 7.0
    np.testing.assert_array_equal(problem.policy[0, 0], [0.85, 0.0, 0.15])


# ---- joining -------------------------------------------------------------------------------


def test_sizes_are_those_of_the_world():
    problem = adapt(examples.advised_silent_advised())
    sizes = (problem.horizon, problem.n_states, problem.n_actions, problem.defer)
    assert sizes == (3, 4, 3, 3)


def test_tables_are_shown_by_step_without_a_copy():
    mdp = MDP(np.array([[0, 0]]), [0.0], horizon=1_000_000)
    problem = AdviceProblem(mdp, Human([[0.5, 0.5]], 0.7))
    for table in (problem.policy, problem.adherence, problem.lift):
        assert table.shape == (1_000_000, 1, 2)
        assert table.strides[0] == 0
        assert not table.flags.writeable


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_a_copied_or_pickled_problem_has_the_same_law(again):
    problem = adapt(draw(5))
    other = again(problem)
    for h, s, b in np.ndindex(problem.policy.shape):
        np.testing.assert_array_equal(other.law(h, s, b), problem.law(h, s, b))


# ---- the machine's world -------------------------------------------------------------------


@each_seed(SEEDS)
def test_the_machine_world_that_changes_is_the_oracle(seed):
    dense = draw(seed)
    check_machine(adapt(dense), dense)


@each_seed(SEEDS)
def test_the_machine_world_that_never_changes_is_the_oracle_in_one_layer(seed):
    dense, problem = stationary(seed)
    machine = check_machine(problem, dense)
    assert machine.kernel.n_layers == 1
    assert machine.reward.strides[0] == machine.allowed.strides[0] == 0


@pytest.mark.parametrize("changing", ["transition", "reward", "policy", "adherence", "allowed"])
def test_the_machine_world_changes_when_any_part_does(changing):
    dense = draw(11, most=(5, 3, 4))
    H = len(dense.r_hsa)
    names = ("transition", "reward", "policy", "adherence", "allowed")
    first = {name: x[0] for name, x in zip(names, dense[:5], strict=True)}
    if changing == "allowed":
        # Habit must stay inside every mask: only the actions it never takes come and go.
        moving = first["allowed"] & ((first["policy"] > 0) | (np.arange(H) % 2 == 0)[:, None, None])
        parts = first | {"allowed": moving}
    else:
        everything = np.ones_like(first["allowed"])
        dense = oracles.random_problem(np.random.default_rng(3), *first["reward"].shape, H)
        first = {name: x[0] for name, x in zip(names, dense[:5], strict=True)}
        chosen = dense[names.index(changing)]
        parts = first | {changing: chosen, "allowed": everything}
    mdp = MDP(
        parts["transition"],
        parts["reward"],
        horizon=H,
        start=dense.start_s,
        allowed=parts["allowed"],
    )
    problem = AdviceProblem(mdp, Human(parts["policy"], parts["adherence"]))
    full = [np.broadcast_to(parts[name], (H, *first[name].shape[:])) for name in names]
    check_machine(problem, oracles.Problem(*full, dense.start_s))


def test_machine_rewards_and_rows_are_the_textbook_numbers():
    machine = adapt(examples.advice_is_not_action_later()).machine()
    np.testing.assert_allclose(
        machine.kernel.to_dense()[0, 0, :, 1:], [[0.75, 0.25], [0.25, 0.75], [0.5, 0.5]]
    )
    np.testing.assert_allclose(machine.reward[1, 1], [0.75, 0.0, 0.0])


def test_the_machine_world_keeps_labels_and_names_silence_last():
    mdp = MDP(np.array([[0, 0]]), [0.0], horizon=2, state_labels=["s"], action_labels=["x", "y"])
    machine = AdviceProblem(mdp, Human([[0.5, 0.5]], 0.7)).machine()
    assert machine.state_labels == ("s",)
    assert machine.action_labels[:2] == ("x", "y")
    assert len(machine.action_labels) == 3


def test_an_action_called_defer_does_not_break_the_machine_world():
    # Found by reading: the label of silence clashed with the action's.
    mdp = MDP(np.array([[0, 0]]), [0.0], horizon=2, action_labels=["act", "defer"])
    machine = AdviceProblem(mdp, Human([[0.5, 0.5]], 0.7)).machine()
    assert machine.action_labels[:2] == ("act", "defer")
    assert len(set(machine.action_labels)) == 3


def test_rows_a_hair_off_one_do_not_break_the_machine_world():
    # Found by reading: two rows just inside the tolerance multiply to one just outside.
    hair = 1.0 + 9e-10
    mdp = MDP(np.full((2, 2, 2), 0.5 * hair), np.zeros(2), horizon=2)
    problem = AdviceProblem(mdp, Human(np.full((2, 2), 0.5 * hair), 0.75))
    assert problem.machine().n_actions == 3


def test_a_large_sparse_problem_is_never_made_dense():
    S = 50_000
    step = np.stack([np.arange(S), np.minimum(np.arange(S) + 1, S - 1)], axis=1)
    problem = AdviceProblem(MDP(step, np.ones(S), horizon=3), Human(np.full((S, 2), 0.5), 0.75))
    machine = problem.machine()
    assert sp.issparse(machine.kernel.to_sparse())
    assert machine.kernel.probability.size <= 6 * S


# ---- what may be known ---------------------------------------------------------------------


def reachable(thing):
    """Everything an object holds on to, arrays with the arrays they are views of."""
    seen, queue = {}, [thing]
    while queue:
        item = queue.pop()
        if id(item) in seen or isinstance(item, type | types.ModuleType | types.FunctionType):
            continue
        seen[id(item)] = item
        queue += gc.get_referents(item)
        if isinstance(item, np.ndarray) and item.base is not None:
            queue.append(item.base)
    return list(seen.values())


@pytest.mark.parametrize("kind", ["adherence", "lift"])
@each("steps", [1, 3])
def test_without_adherence_holds_no_number_that_tells_how_much_the_person_listens(kind, steps):
    rng = np.random.default_rng(0)
    dense = oracles.random_problem(rng, 4, 3, 3)
    heard = rng.uniform(0.5, 0.9, (steps, 4, 3))
    human = Human(dense.pi_hsa, **{kind: heard if steps > 1 else heard[0]})
    problem = AdviceProblem(MDP(dense.P_hsat, dense.r_hsa, horizon=3), human)
    secret = np.unique(np.concatenate([human.adherence.ravel(), human.lift.ravel(), heard.ravel()]))
    public = np.concatenate([x.ravel() for x in dense[:3]] + [[0.0, 1.0]])
    secret = np.setdiff1d(secret, public)
    assert secret.size >= heard.size
    found = reachable(problem.without_adherence())
    tables = [x for x in found if isinstance(x, np.ndarray)]
    assert len(tables) >= 8
    assert not any(np.isin(secret, table).any() for table in tables)
    assert not any(isinstance(x, float) and x in secret for x in found)
    assert not any(isinstance(x, Human | AdviceProblem) for x in found)


def test_without_adherence_has_no_attribute_that_names_it():
    setting = adapt(draw(1)).without_adherence()
    told = {"human", "adherence", "lift", "theta", "given", "law", "machine"}
    for thing in (setting, setting.mdp, setting.mdp.kernel):
        assert not told & set(dir(thing))


def test_without_adherence_keeps_the_world_the_habit_and_the_groups():
    problem = adapt(draw(2))
    setting = problem.without_adherence()
    assert setting.mdp is problem.mdp
    np.testing.assert_array_equal(setting.policy, problem.policy)
    assert setting.groups.shape == problem.policy.shape


def test_the_shape_of_adherence_tells_a_learner_nothing():
    mdp = MDP(np.array([[0, 0], [1, 1]]), [0.0, 1.0], horizon=3)
    habit = np.full((2, 2), 0.5)
    shapes = [0.7, [0.7, 0.7], [[0.7, 0.7], [0.7, 0.7]]]
    groups = [AdviceProblem(mdp, Human(habit, x)).without_adherence().groups for x in shapes]
    np.testing.assert_array_equal(groups[0], groups[1])
    np.testing.assert_array_equal(groups[0], groups[2])


def test_the_shape_of_a_problem_is_its_sizes_its_mask_and_the_range_of_its_rewards():
    dense = examples.advised_silent_advised()
    shape = adapt(dense).shape
    assert (shape.horizon, shape.n_states, shape.n_actions) == (3, 4, 3)
    assert shape.reward_range == (0.0, 1.1)
    np.testing.assert_array_equal(shape.allowed, dense.allowed_hsa)


@pytest.mark.parametrize("per_step", [False, True])
def test_rewards_of_actions_that_are_not_allowed_do_not_count_in_the_range(per_step):
    allowed = np.array([[True, False]])
    mdp = MDP(
        np.array([[0, 0]]),
        np.tile([[2.0, 99.0]], (2, 1, 1)) if per_step else [[2.0, 99.0]],
        horizon=2,
        allowed=allowed,
    )
    assert AdviceProblem(mdp, Human([[1.0, 0.0]], 0.5)).shape.reward_range == (2.0, 2.0)


def test_the_shape_holds_nothing_of_the_dynamics():
    problem = adapt(draw(4))
    found = reachable(problem.shape)
    assert not any(isinstance(x, Human | AdviceProblem | MDP | counsel.Kernel) for x in found)


# ---- where advice repels -------------------------------------------------------------------


@each_seed(SEEDS)
def test_repels_lists_every_cell_where_adherence_is_below_habit(seed):
    dense = draw(seed)
    report = adapt(dense).repels()
    certain = dense.pi_hsa == 1.0
    expected = (dense.theta_hsa < dense.pi_hsa) & ~certain & dense.allowed_hsa
    np.testing.assert_array_equal(report.cells, np.argwhere(expected))
    assert bool(report) == expected.any()


@each_seed(SEEDS)
def test_repels_of_a_problem_that_never_changes_lists_each_pair_once(seed):
    dense, problem = stationary(seed)
    report = problem.repels()
    certain = dense.pi_hsa[0] == 1.0
    expected = (dense.theta_hsa[0] < dense.pi_hsa[0]) & ~certain & dense.allowed_hsa[0]
    np.testing.assert_array_equal(report.cells[:, 1:], np.argwhere(expected))
    assert report.every_step


def test_repels_says_in_words_how_many_and_where():
    assert "nowhere" in str(adapt(examples.advice_repels(0.7)).repels())
    both = adapt(examples.advice_repels(0.3)).repels()
    assert "repels at 2 pairs" in str(both)
    assert "state 0, action 0" in str(both)
    mdp = MDP(np.array([[0, 0], [1, 1]]), [0.0, 0.0], horizon=2)
    one = AdviceProblem(mdp, Human([[0.5, 0.5], [0.1, 0.9]], 0.6)).repels()
    assert "repels at 1 pair of" in str(one)
    assert "state 1, action 1" in str(one)
