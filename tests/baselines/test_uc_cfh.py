"""UCFH and UC-CFH: phases, promises, budgets, and settings that are refused."""

import numpy as np
import pytest
from numpy.random import default_rng

import counsel
from counsel.baselines import UCCFH, UCFH, Phases
from counsel.model.machine import machine_rewards, support_of
from counsel.testing import check_learner
from counsel.worlds import make
from counsel.worlds.flappy_bird import next_column
from tests.support.each import each_seed
from tests.support.problems import adapt, draw

# The learners.


def test_what_uc_cfh_promises_comes_true_in_the_world_it_believes_in():
    problem = make("flappy-bird-budget/greedy")
    learner = UCCFH(
        problem.shape,
        rng=default_rng(0),
        reward=machine_rewards(problem),
        budget=1.0,
        delta=0.5,
        support=next_column(problem),
    )
    simulator, random = counsel.Simulator(problem), default_rng(1)
    best = counsel.solve(problem, budget=1.0).value
    for _ in range(12):
        told = learner.optimistic()
        H, S, A = problem.horizon, problem.n_states, problem.n_actions
        table = np.zeros((H, S + 1, A + 2))
        table[:, :S, : A + 1] = told.policy.probabilities()
        table[:, S, A] = 1.0
        table[..., A + 1] = table[..., A]  # to be left alone is silence there
        table[..., A] = 0.0
        worth = counsel.evaluate(told.world, counsel.Policy.from_probabilities(table))
        assert worth.value == pytest.approx(told.value, abs=1e-6)
        assert worth.advice_count == pytest.approx(told.advice_count, abs=1e-6)
        assert told.advice_count <= 1.0 + 1e-7
        assert told.value >= best - 1e-9
        assert told.policy.random.cell.size <= 1
        learner.update(simulator.play(learner.policy, episodes=100, rng=random))


def test_uc_cfh_plans_other_budgets_on_what_it_saw():
    problem = make("flappy-bird-budget/greedy")
    learner = UCCFH(
        problem.shape,
        rng=default_rng(0),
        reward=machine_rewards(problem),
        budget=1.0,
        support=next_column(problem),
    )
    even = counsel.Policy.from_probabilities(np.full((8, 57, 4), 0.25))
    learner.update(counsel.Simulator(problem).play(even, episodes=300_000, rng=default_rng(2)))
    for budget in (0.5, 1.0, 2.0, 5.0):
        best = counsel.solve(problem, budget=budget)
        plan = learner.plan(budget=budget)
        assert plan.value == pytest.approx(best.value, abs=0.03)
        worth = counsel.evaluate(problem, plan.policy)
        assert worth.value >= best.value - 0.03
        assert worth.advice_count <= budget + 0.03
    assert learner.plan().value == pytest.approx(counsel.solve(problem).value, abs=0.03)
    assert learner.plan(penalty=0.3).policy.advice.shape == (8, 57)


def learners(problem, **options):
    known = {"shape": problem.shape, "reward": machine_rewards(problem)}
    return {
        "ucfh": UCFH(**known, rng=default_rng(0), **options),
        "uc-cfh": UCCFH(**known, rng=default_rng(0), budget=0.8, **options),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ucfh", "uc-cfh"])
@pytest.mark.parametrize(
    "phases", [None, pytest.param(Phases(least=3), marks=pytest.mark.long)], ids=["no", "phases"]
)
def test_they_pass_what_every_learner_must(name, phases):
    check_learner(lambda p: learners(p, phases=phases, scale=0.1)[name], make("night-shift"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ucfh", pytest.param("uc-cfh", marks=pytest.mark.long)])
@pytest.mark.parametrize("phases", [None, Phases(least=3)])
def test_they_pass_with_a_known_support(name, phases):
    world = make("flappy-bird-budget/greedy")
    support = next_column(world)
    check_learner(lambda p: learners(p, phases=phases, scale=0.1, support=support)[name], world)


@each_seed(range(6))
def test_uc_cfh_on_drawn_problems_with_starts_at_random_never_promises_less(seed):
    problem = adapt(draw(seed))
    learner = UCCFH(problem.shape, rng=default_rng(0), reward=machine_rewards(problem), budget=0.7)
    even = learner.policy
    assert even.random.cell.size <= problem.n_states
    # As the law of the start is learnt too, it is given many episodes first.
    learner.update(counsel.Simulator(problem).play(even, episodes=20_000, rng=default_rng(seed)))
    best = counsel.solve(problem, budget=0.7).value
    assert learner.optimistic().value >= best - 0.05 * problem.horizon


def test_phases_are_those_of_a_slow_obvious_version():
    problem = make("night-shift")
    learner = learners(problem, phases=Phases(least=5), scale=0.1)["ucfh"]
    H, S, B = problem.horizon, problem.n_states, problem.n_actions + 1
    n, v = np.zeros((H, S, B), int), np.zeros((H, S, B), int)
    n_next, v_next = np.zeros((H, S, B, S), int), np.zeros((H, S, B, S), int)
    simulator, random, changes = counsel.Simulator(problem), default_rng(3), 0
    for _ in range(400):
        policy = learner.policy
        batch = simulator.play(policy, episodes=1, rng=random)
        for h, s, b, t in zip(batch.step, batch.state, batch.advice, batch.next_state, strict=True):
            v[h, s, b] += 1
            v_next[h, s, b, t] += 1
        ripe = v >= np.maximum(5, n)
        changes += bool(ripe.any())
        n[ripe] += v[ripe]
        n_next[ripe] += v_next[ripe]
        v[ripe], v_next[ripe] = 0, 0
        learner.update(batch)
        assert (learner.policy is policy) == (not ripe.any())
        np.testing.assert_array_equal(learner.sets.counts.transitions.visits, n)
        np.testing.assert_array_equal(learner.sets.waiting.visits, v)
    assert changes > 5
    for transitions, table in (
        (learner.sets.counts.transitions, n_next),
        (learner.sets.waiting, v_next),
    ):
        chains = transitions.chains
        for h, s, b in np.ndindex(H, S, B):
            j, seen = chains.head_hsx[h, s, b], np.zeros(S, int)
            while j >= 0:
                seen[chains.links[j, 0]] += chains.links[j, 1]
                j = chains.links[j, 2]
            np.testing.assert_array_equal(seen, table[h, s, b])


def test_with_the_phases_of_the_paper_nothing_is_learnt():
    problem = make("night-shift")
    learner = learners(problem, phases=Phases())["ucfh"]
    policy = learner.policy
    for _ in range(3):
        learner.update(counsel.Simulator(problem).play(policy, episodes=1000, rng=default_rng(0)))
    assert learner.policy is policy
    assert learner.state()["_visits"].sum() == 0


@pytest.mark.parametrize("name", ["ucfh", "uc-cfh"])
def test_the_regret_flattens_on_a_chain_whose_optimum_is_known(name):
    mdp = counsel.MDP([[0, 1], [0, 1]], [[0.0, 0.0], [1.0, 1.0]], horizon=3)
    problem = counsel.AdviceProblem(mdp, counsel.Human([[0.9, 0.1], [0.9, 0.1]], [0.9, 0.95]))
    learner = learners(problem, scale=0.02)[name]
    half, whole = counsel.learn(
        learner, counsel.Simulator(problem), episodes=6000, every=50, records=2, rng=default_rng(2)
    )
    assert half.regret > 0.0
    assert whole.regret - half.regret < 0.15 * half.regret


def test_the_support_of_a_world_is_what_can_follow():
    for world in ("night-shift", "flappy-bird-budget/greedy"):
        problem = make(world)
        dense = problem.mdp.kernel.to_dense()
        dense = dense.reshape(-1, *dense.shape[-3:])
        support = support_of(problem).toarray()
        np.testing.assert_array_equal(support, (dense > 0).any(axis=(0, 2)))
    assert not (support & ~next_column(problem)).any()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"support": np.ones((2, 2))}, "support is float64 of shape"),
        ({"support": np.zeros((57, 57), bool)}, r"support\[s=0\] is empty"),
        ({"epsilon": -1.0}, "epsilon is -1"),
        ({"delta": 2.0}, "delta is 2"),
        ({"scale": 0.0}, "scale is 0"),
        ({"reward": np.zeros((3, 3))}, "reward has shape"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options, words):
    problem = make("flappy-bird-budget/greedy")
    for kind, more in ((UCFH, {}), (UCCFH, {"budget": 1.0})):
        settings = {"reward": machine_rewards(problem)} | more | options
        with pytest.raises(counsel.CounselError, match=words):
            kind(problem.shape, rng=default_rng(0), **settings)
    with pytest.raises(counsel.CounselError, match="least is 0"):
        Phases(least=0)
    with pytest.raises(counsel.CounselError, match="budget is -1"):
        UCCFH(problem.shape, rng=default_rng(0), reward=machine_rewards(problem), budget=-1.0)


def test_a_move_that_was_declared_impossible_is_refused():
    problem = make("night-shift")
    S = problem.n_states
    learner = UCFH(
        problem.shape,
        rng=default_rng(0),
        reward=machine_rewards(problem),
        support=np.eye(S, dtype=bool),
    )
    with pytest.raises(counsel.CounselError, match=r"support\[s=\d+, t=\d+\] is False but state"):
        learner.update(
            counsel.Simulator(problem).play(learner.policy, episodes=50, rng=default_rng(0))
        )


def test_a_programme_that_would_take_hours_is_refused():
    flappy, car = make("flappy-bird/greedy"), make("car-driving/myopic")
    for problem in (flappy, car):
        with pytest.raises(counsel.CounselError, match=r"unknowns, more than 400,000; say in supp"):
            UCCFH(problem.shape, rng=default_rng(0), reward=machine_rewards(problem), budget=1.0)
    UCCFH(
        flappy.shape,
        rng=default_rng(0),
        reward=machine_rewards(flappy),
        budget=1.0,
        support=next_column(flappy),
    )
    with pytest.raises(counsel.CounselError, match="unknowns, more than 400,000; use a smaller"):
        UCCFH(
            car.shape,
            rng=default_rng(0),
            reward=machine_rewards(car),
            budget=1.0,
            support=support_of(car),
        )
