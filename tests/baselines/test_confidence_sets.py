"""UCFH and UC-CFH: intervals, extended value iteration, the extended programme, and phases."""

import math

import numpy as np
import pytest
import scipy.optimize

import counsel
from counsel.baselines import UCCFH, UCFH, Phases
from counsel.baselines._confidence_set_kernels import (
    fill_intervals,
    interval,
    narrow_interval,
    plan_extended,
)
from counsel.baselines.extended_lp import Flows, solve_extended
from counsel.model.problem import machine_rewards, support_of
from counsel.testing import check_learner
from counsel.worlds import make
from counsel.worlds.flappy_bird import next_column
from tests.support.boxes import box_of
from tests.support.each import each, each_seed
from tests.support.problems import adapt, draw


def rng(seed=0):
    return np.random.default_rng(seed)


# The numbers of the constants (T-C1, T-C2).


def four_states(kind, **options):
    mdp = counsel.MDP([[0, 1], [1, 2], [2, 3], [3, 0]], [[0.0, 1.0]] + [[0.5, 0.5]] * 3, horizon=3)
    problem = counsel.AdviceProblem(mdp, counsel.Human(np.full((4, 2), 0.5), 0.8))
    support = np.eye(4, dtype=bool) | np.roll(np.eye(4, dtype=bool), 1, axis=1)
    return problem, kind(
        problem.shape,
        rng=rng(),
        reward=machine_rewards(problem),
        epsilon=1.0,
        delta=0.5,
        support=support,
        **options,
    )


def test_the_constants_by_hand():
    # T-C1 has A = 2 machine actions; here silence makes it 3, so U is larger by 3/2.
    extra = math.log(1.5)
    _, ucfh = four_states(UCFH)
    _, uc_cfh = four_states(UCCFH, budget=1.0)
    assert ucfh.sets.most_successors == 2
    assert ucfh.sets.log == pytest.approx(9.2651839 + extra, abs=1e-6)
    assert uc_cfh.sets.log == pytest.approx(8.8597188 + extra, abs=1e-6)
    assert uc_cfh.sets.m == pytest.approx(2 * ucfh.sets.m)
    assert uc_cfh.sets.least_visits == pytest.approx(uc_cfh.sets.m / 48)


def test_the_rule_of_the_paper_asks_for_nine_hundred_thousand_visits():
    # S = 35, A = 4, H = 5, C = 7, ε = 1, δ = 0.5 in BASELINES 3.6.
    mdp = counsel.MDP(np.arange(35)[:, None] * np.ones((1, 3), int), np.eye(35)[:, :3], horizon=5)
    problem = counsel.AdviceProblem(mdp, counsel.Human(np.full((35, 3), 1 / 3), 0.8))
    support = (np.arange(35)[None, :] - np.arange(35)[:, None]) % 35 < 7
    learner = UCFH(
        problem.shape, rng=rng(), reward=machine_rewards(problem), delta=0.5, support=support
    )
    assert learner.sets.m == pytest.approx(6.37e8, rel=0.01)
    assert learner.sets.least_visits == pytest.approx(9.1e5, rel=0.01)
    assert learner.sets.log - math.log(6 / 4) == pytest.approx(14.1, abs=0.05)


def test_the_intervals_by_hand():
    log = 8.8597188
    for n, low, high in (
        (20, (0.0, 0.22937), (0.77063, 1.0)),
        (0, (0, 0), (1, 1)),
        (1, (0, 0), (1, 1)),
    ):
        ends = [interval(p, float(n), log) for p in (0.3, 0.7)]
        np.testing.assert_allclose(ends, np.transpose((low, high)), atol=1e-5)
    for n, width in ((2000, 0.047063), (20000, 0.014674)):
        np.testing.assert_allclose(
            interval(0.3, float(n), log), (0.3 - width, 0.3 + width), atol=1e-6
        )


def by_search(p, n, log):
    """The hull of all q within the three bounds, on a fine grid."""
    q = np.linspace(0, 1, 400_001)
    ok = np.abs(q - p) <= math.sqrt(log / (2 * n))
    if n > 1:
        ok &= np.abs(q - p) <= math.sqrt(2 * p * (1 - p) * log / n) + 7 * log / (3 * (n - 1))
        ok &= np.abs(np.sqrt(q * (1 - q)) - math.sqrt(p * (1 - p))) <= math.sqrt(2 * log / (n - 1))
    return q[ok].min(), q[ok].max()


@each_seed(range(60))
def test_the_third_bound_narrows_to_the_hull_of_what_all_three_allow(seed):
    random = rng(seed)
    n = int(10 ** random.uniform(0, 6))
    p = random.integers(0, n + 1) / n
    log = random.uniform(0.1, 12)
    # The grid has steps of 2.5e-6; √(q (1 − q)) is steep at 0 and 1, so one step of slack.
    np.testing.assert_allclose(narrow_interval(p, float(n), log), by_search(p, n, log), atol=1e-5)


def test_all_intervals_hold_at_once_as_often_as_promised():
    # 1 − δ over the whole run is what is promised for δ₁ and phases; here one look at 200 worlds.
    S, B, H, delta, held = 4, 3, 3, 0.5, 0
    log = math.log(4 * 2 * S * B * H * math.log2(4 * S * S * H * H) * S / delta)
    for seed in range(200):
        random = rng(seed)
        n = random.integers(1, 2000, (H, S, B))
        p = random.dirichlet(np.full(S, 0.5), (H, S, B))
        counts = random.multinomial(n, p)
        low, high = np.empty(p.size), np.empty(p.size)
        times = np.repeat(n.reshape(-1), S).astype(float)
        fill_intervals(counts.reshape(-1) / times, times, log, low, high)
        held += bool(((low <= p.reshape(-1)) & (p.reshape(-1) <= high)).all())
    assert held >= 200 * (1 - delta)
    assert held >= 198  # far more: the union bound is wide


# The extended programme (T-C3, T-C4).


def groups_of(low, high, reward, start):
    """All rows and flows of dense intervals [h, s, b, t]."""
    H, S, B, _ = low.shape
    step, state, advice = np.indices((H, S, B)).reshape(3, -1)
    ends = np.where(np.repeat(step, S) == H - 1, 0.0, np.nan)
    return Flows(
        step,
        state,
        advice,
        np.broadcast_to(reward, (H, S, B)).reshape(-1),
        np.arange(step.size + 1) * S,
        np.tile(np.arange(S), step.size),
        low.reshape(-1),
        high.reshape(-1),
        ends,
    ), start


def solved(low, high, reward, start, budget):
    _H, S, B, _ = low.shape
    groups, start = groups_of(low, high, reward, start)
    return solve_extended(groups, start, n_states=S, defer=B - 1, budget=budget)


def toy(width):
    """s0 leads to good or bad; advice makes good likelier; good pays 1 at the second step."""
    p = np.zeros((2, 3, 2, 3))
    p[0, 0, 0], p[0, 0, 1] = (0, 0.9, 0.1), (0, 0.5, 0.5)
    p[0, 1, :, 1] = p[0, 2, :, 2] = p[1, :, :, 0] = 1.0
    low, high = p.copy(), p.copy()
    low[0, 0, :, 1:] -= width
    high[0, 0, :, 1:] += width
    reward = np.zeros((2, 3, 2))
    reward[1, 1] = 1.0
    return low, high, reward, np.array([1.0, 0.0, 0.0])


@each(
    ("width", "budget", "value"),
    [(0, 0, 0.5), (0, 0.25, 0.6), (0, 0.5, 0.7), (0, 1, 0.9), (0, 9, 0.9), (0.05, 0.5, 0.75)],
)
def test_the_toy_by_hand(width, budget, value):
    found = solved(*toy(width), budget)
    assert found.value == pytest.approx(value, abs=1e-9)
    assert found.x[0] == pytest.approx(min(budget, 1.0), abs=1e-9)
    if budget == 0.5:
        assert found.price == pytest.approx(0.4, abs=1e-9)


def random_boxes(seed):
    random = rng(seed)
    H, S, B = int(random.integers(1, 5)), int(random.integers(2, 5)), int(random.integers(2, 4))
    p = random.dirichlet(np.full(S, 0.6), (H, S, B))
    n = random.integers(0, 10 ** int(random.integers(1, 5)), (H, S, B))
    counts = random.multinomial(n, p)
    share = counts / np.maximum(n, 1)[..., None]
    log = random.uniform(0.5, 8)
    low, high = np.empty(p.size), np.empty(p.size)
    times = np.repeat(n.reshape(-1), S).astype(float)
    fill_intervals(share.reshape(-1), times, log, low, high)
    reward, start = random.random((H, S, B)), random.dirichlet(np.ones(S))
    return p, counts, low.reshape(p.shape), high.reshape(p.shape), reward, start, log


def extended_values(low, high, reward, cost):
    """Extended value iteration at a price, slowly: the inner maxima of a step by scipy's linprog.

    They are independent of each other, so the maximum of their sum is the maximum of each.
    """
    H, S, B, _ = low.shape
    V = np.zeros(S)
    for h in reversed(range(H)):
        inner = scipy.optimize.linprog(
            np.tile(-V, S * B),
            A_eq=np.kron(np.eye(S * B), np.ones(S)),
            b_eq=np.ones(S * B),
            bounds=np.stack((low[h].reshape(-1), high[h].reshape(-1)), axis=1),
        )
        ahead = inner.x.reshape(S, B, S) @ V
        V = (reward[h] - cost * (np.arange(B) < B - 1) + ahead).max(axis=1)
    return V


@each_seed(range(12))
def test_without_a_budget_the_programme_is_extended_value_iteration(seed):
    _, _, low, high, reward, start, _ = random_boxes(seed)
    found = solved(low, high, reward, start, None)
    assert found.value == pytest.approx(start @ extended_values(low, high, reward, 0.0), abs=1e-7)


@each_seed(range(30))
def test_the_compiled_extended_value_iteration_is_the_slow_one(seed):
    _, counts, _, _, reward, _, log = random_boxes(seed)
    H, S, _B, _ = counts.shape
    n = counts.sum(axis=3)
    low, high = np.empty(counts.shape), np.empty(counts.shape)
    for index in np.ndindex(*counts.shape):
        times = float(n[index[:3]])
        low[index], high[index] = narrow_interval(counts[index] / max(times, 1.0), times, log)
    V = np.empty((H + 1, S))
    none = np.zeros(0, np.int64)
    everything = np.arange(S + 1) * S, np.tile(np.arange(S), S)
    slow = extended_values(low, high, reward, 0.0)
    for follows in ((none, none), everything):
        plan_extended(
            box_of(counts, reward), log, *follows, np.zeros((H, S)), np.zeros((H, S), np.int16), V
        )
        np.testing.assert_allclose(V[0], slow, atol=1e-9)


@each_seed(range(8))
def test_the_programme_equals_its_dual(seed):
    # max within a budget D = min over prices c ≥ 0 of (extended values at c) + c D.
    _, _, low, high, reward, start, _ = random_boxes(seed)
    budget = rng(seed).uniform(0.1, 1.5)
    found = solved(low, high, reward, start, budget)

    def dual(price):
        return start @ extended_values(low, high, reward, price) + price * budget

    least = scipy.optimize.minimize_scalar(
        dual, bounds=(0.0, 5.0), method="bounded", options={"xatol": 1e-7}
    )
    assert found.value == pytest.approx(min(least.fun, dual(0.0)), abs=1e-5)
    assert dual(found.price) == pytest.approx(found.value, abs=1e-6)


@each_seed(range(25))
def test_zero_width_is_the_plug_in_and_wider_boxes_promise_more(seed):
    p, _, low, high, reward, start, _ = random_boxes(seed)
    H, S, B, _ = p.shape
    # The same world for our exact planner: actions are the advice, and, last, to be left alone.
    alone = np.zeros((S, B))
    alone[:, -1] = 1.0
    mdp = counsel.MDP(p, reward, horizon=H, start=start)
    problem = counsel.AdviceProblem(mdp, counsel.Human(alone, 1.0))
    inside = ((low <= p) & (p <= high)).all()
    last = -np.inf
    for budget in (0.0, 0.3, 0.8, 1.7, None):
        plug_in = solved(p, p, reward, start, budget)
        best = (
            counsel.solve(problem, budget=budget) if budget is not None else counsel.solve(problem)
        )
        assert plug_in.value == pytest.approx(best.value, abs=1e-7)
        found = solved(low, high, reward, start, budget)
        assert found.value >= last - 1e-7
        last = found.value
        if inside:
            assert found.value >= best.value - 1e-7
        if budget is not None:
            assert found.advice_count <= budget + 1e-7


# The learners.


def test_what_uc_cfh_promises_comes_true_in_the_world_it_believes_in():
    problem = make("flappy-bird-budget/greedy")
    learner = UCCFH(
        problem.shape,
        rng=rng(),
        reward=machine_rewards(problem),
        budget=1.0,
        delta=0.5,
        support=next_column(problem),
    )
    simulator, random = counsel.Simulator(problem), rng(1)
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
        rng=rng(),
        reward=machine_rewards(problem),
        budget=1.0,
        support=next_column(problem),
    )
    even = counsel.Policy.from_probabilities(np.full((8, 57, 4), 0.25))
    learner.update(counsel.Simulator(problem).play(even, episodes=300_000, rng=rng(2)))
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
        "ucfh": UCFH(**known, rng=rng(), **options),
        "uc-cfh": UCCFH(**known, rng=rng(), budget=0.8, **options),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ucfh", "uc-cfh"])
@pytest.mark.parametrize("phases", [None, Phases(least=3)])
def test_they_pass_what_every_learner_must(name, phases):
    check_learner(lambda p: learners(p, phases=phases, scale=0.1)[name], make("night-shift"))
    world = make("flappy-bird-budget/greedy")
    support = next_column(world)
    check_learner(lambda p: learners(p, phases=phases, scale=0.1, support=support)[name], world)


@each_seed(range(6))
def test_uc_cfh_on_drawn_problems_with_starts_at_random_never_promises_less(seed):
    problem = adapt(draw(seed))
    learner = UCCFH(problem.shape, rng=rng(), reward=machine_rewards(problem), budget=0.7)
    even = learner.policy
    assert even.random.cell.size <= problem.n_states
    # As the law of the start is learnt too, it is given many episodes first.
    learner.update(counsel.Simulator(problem).play(even, episodes=20_000, rng=rng(seed)))
    best = counsel.solve(problem, budget=0.7).value
    assert learner.optimistic().value >= best - 0.05 * problem.horizon


def test_phases_are_those_of_a_slow_obvious_version():
    problem = make("night-shift")
    learner = learners(problem, phases=Phases(least=5), scale=0.1)["ucfh"]
    H, S, B = problem.horizon, problem.n_states, problem.n_actions + 1
    n, v = np.zeros((H, S, B), int), np.zeros((H, S, B), int)
    n_next, v_next = np.zeros((H, S, B, S), int), np.zeros((H, S, B, S), int)
    simulator, random, changes = counsel.Simulator(problem), rng(3), 0
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
        learner.update(counsel.Simulator(problem).play(policy, episodes=1000, rng=rng()))
    assert learner.policy is policy
    assert learner.state()["_visits"].sum() == 0


@pytest.mark.parametrize("name", ["ucfh", "uc-cfh"])
def test_the_regret_flattens_on_a_chain_whose_optimum_is_known(name):
    mdp = counsel.MDP([[0, 1], [0, 1]], [[0.0, 0.0], [1.0, 1.0]], horizon=3)
    problem = counsel.AdviceProblem(mdp, counsel.Human([[0.9, 0.1], [0.9, 0.1]], [0.9, 0.95]))
    learner = learners(problem, scale=0.02)[name]
    half, whole = counsel.learn(
        learner, counsel.Simulator(problem), episodes=6000, every=50, records=2, rng=rng(2)
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
            kind(problem.shape, rng=rng(), **settings)
    with pytest.raises(counsel.CounselError, match="least is 0"):
        Phases(least=0)
    with pytest.raises(counsel.CounselError, match="budget is -1"):
        UCCFH(problem.shape, rng=rng(), reward=machine_rewards(problem), budget=-1.0)


def test_a_move_that_was_declared_impossible_is_refused():
    problem = make("night-shift")
    S = problem.n_states
    learner = UCFH(
        problem.shape, rng=rng(), reward=machine_rewards(problem), support=np.eye(S, dtype=bool)
    )
    with pytest.raises(counsel.CounselError, match=r"support\[s=\d+, t=\d+\] is False but state"):
        learner.update(counsel.Simulator(problem).play(learner.policy, episodes=50, rng=rng()))


def test_a_programme_that_would_take_hours_is_refused():
    flappy, car = make("flappy-bird/greedy"), make("car-driving/myopic")
    for problem in (flappy, car):
        with pytest.raises(counsel.CounselError, match=r"unknowns, more than 400,000; say in supp"):
            UCCFH(problem.shape, rng=rng(), reward=machine_rewards(problem), budget=1.0)
    UCCFH(
        flappy.shape,
        rng=rng(),
        reward=machine_rewards(flappy),
        budget=1.0,
        support=next_column(flappy),
    )
    with pytest.raises(counsel.CounselError, match="unknowns, more than 400,000; use a smaller"):
        UCCFH(
            car.shape,
            rng=rng(),
            reward=machine_rewards(car),
            budget=1.0,
            support=support_of(car),
        )
