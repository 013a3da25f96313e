"""EULER and UCBVI: the numbers of the formulas, bounds on both sides, and the trap of the end."""

import math

import numpy as np
import pytest

import counsel
from counsel.baselines import EULER, UCBVI, Freedman, Hoeffding
from counsel.baselines._optimism_kernels import (
    FREEDMAN,
    HOEFFDING,
    Bonus,
    euler_bonus,
    freedman_bonus,
    hoeffding_bonus,
    plan_euler,
    plan_ucbvi,
)
from counsel.model.machine import machine_rewards
from counsel.testing import check_learner
from counsel.worlds import generate_map, make, make_flappy_bird
from tests.support.boxes import box_of
from tests.support.each import each, each_seed
from tests.support.problems import adapt, draw


def rng(seed=0):
    return np.random.default_rng(seed)


def test_the_bonus_of_euler_by_hand():
    # L = 5, H = 3, n = 10, p̂ = (0.4, 0.6): V̄ = (2, 1) has variance 0.24, V̲ = (1, 0.5) 0.06.
    gap = math.sqrt(0.4 * 1.0 + 0.6 * 0.25)
    assert gap == pytest.approx(0.7416198487)
    assert euler_bonus(10.0, 0.24, gap, 5.0, 3) == pytest.approx(4.7357566509, abs=1e-9)
    assert euler_bonus(10.0, 0.06, gap, 5.0, 3) == pytest.approx(4.4908076766, abs=1e-9)


COUNTS = np.array(
    [
        [[[600, 400], [100, 900]], [[50, 50], [0, 0]]],
        [[[2000, 0], [0, 2000]], [[1000, 1000], [500, 1500]]],
    ]
)
REWARDS = np.array([[[0.1, 0.3], [0.2, 0.0]], [[1.0, 0.4], [0.5, 0.25]]])


def test_a_whole_plan_of_euler_by_hand():
    advice = np.zeros((2, 2), dtype=np.int16)
    upper, lower = np.empty((3, 2)), np.empty((3, 2))
    plan_euler(
        box_of(COUNTS, REWARDS), np.zeros((1, 2, 2)), 5.0, np.zeros((2, 2)), advice, upper, lower
    )
    np.testing.assert_allclose(upper[:2], [[0.953230, 2.0], [1.0, 0.511496]], atol=1e-6)
    np.testing.assert_allclose(lower[:2], [[0.839309, 0.0], [0.988504, 0.488504]], atol=1e-6)
    assert advice[0].tolist() == [0, 1]


def test_the_bonuses_of_ucbvi_by_hand():
    assert hoeffding_bonus(10.0, 5.0, 3) == pytest.approx(33.2039154, abs=1e-7)
    # N' = 1000 is far too few for the last term: it stays at H² = 9.
    assert freedman_bonus(10.0, 0.24, 9.0, 5.0, 3) == pytest.approx(10.6630775, abs=1e-6)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (FREEDMAN, [[[1.197875, 1.128885], [2, 2]], [[1.023333, 0.423333], [0.523333, 0.273333]]]),
        (HOEFFDING, [[[2, 2], [2, 2]], [[2, 1.965248], [2, 1.815248]]]),
    ],
)
def test_a_whole_plan_of_ucbvi_by_hand(kind, expected):
    Q, V = np.full((2, 2, 2), 2.0), np.empty((3, 2))
    advice = np.zeros((2, 2), dtype=np.int16)
    bonus = Bonus(kind, 1.0, 5.0, 100.0**2 * 2**3 * 2**2 * 2 * 5.0**2)
    plan_ucbvi(box_of(COUNTS, REWARDS), bonus, np.zeros((2, 2)), advice, Q, V)
    np.testing.assert_allclose(Q, expected, atol=1e-6)
    np.testing.assert_allclose(V[:2], np.max(expected, axis=2), atol=1e-6)


def slow_euler(counts, reward, L):
    """V̄ and V̲ straight from the box, dense."""
    H, S, _, _ = counts.shape
    up, low = np.zeros((H + 1, S)), np.zeros((H + 1, S))
    for h in reversed(range(H)):
        n = counts[h].sum(axis=2)
        N, N1 = np.maximum(n, 1), np.maximum(n - 1, 1)
        p = counts[h] / N[..., None]
        gap = np.sqrt(p @ (up[h + 1] - low[h + 1]) ** 2)
        corr = (4 * H * L / 3 + H * np.sqrt(2 * L)) / N + np.sqrt(2 * L) * gap / np.sqrt(N)

        def width(V, p=p, N=N, N1=N1):
            spread = np.maximum(p @ V**2 - (p @ V) ** 2, 0)
            return np.sqrt(2 * spread * L / N) + H * L / (3 * N1)

        Q = np.minimum(H - h, reward[h] + p @ up[h + 1] + width(up[h + 1]) + corr)
        Q[n == 0] = H - h
        worst = np.maximum(0, reward[h] + p @ low[h + 1] - width(low[h + 1]) - corr)
        worst[n == 0] = 0
        best = Q.argmax(axis=1)
        up[h], low[h] = Q[np.arange(S), best], worst[np.arange(S), best]
    return up, low


@each_seed(range(30))
def test_bounds_lie_on_both_sides_of_the_optimum_and_plans_are_those_of_the_box(seed):
    random = rng(seed)
    H, S, B = (int(random.integers(2, 6)) for _ in range(3))
    p = random.dirichlet(np.ones(S), (H, S, B))
    reward = random.random((H, S, B))
    visits = random.integers(0, 10 ** int(random.integers(1, 6)), (H, S, B))
    counts = np.array(
        [
            random.multinomial(n, row)
            for n, row in zip(visits.ravel(), p.reshape(-1, S), strict=True)
        ]
    )
    counts = counts.reshape(H, S, B, S)
    best = np.zeros((H + 1, S))
    for h in reversed(range(H)):
        best[h] = (reward[h] + p[h] @ best[h + 1]).max(axis=1)
    L = math.log(4 * S * B * 1000 * H * 7 / 0.1)
    advice = np.zeros((H, S), dtype=np.int16)
    upper, lower = np.empty((H + 1, S)), np.empty((H + 1, S))
    plan_euler(
        box_of(counts, reward), np.zeros((1, S, B)), L, np.zeros((H, S)), advice, upper, lower
    )
    slow = slow_euler(counts, reward, L)
    np.testing.assert_allclose(upper, slow[0], atol=1e-9)
    assert (lower[:H] <= best[:H] + 1e-9).all()
    assert (best <= upper + 1e-9).all()
    assert (upper[:H] <= H - np.arange(H)[:, None]).all()
    Q, V = np.full((H, S, B), float(H)), np.empty((H + 1, S))
    for kind in (HOEFFDING, FREEDMAN):
        bonus = Bonus(kind, 1.0, L, 1e9)
        plan_ucbvi(box_of(counts, reward), bonus, np.zeros((H, S)), advice, Q, V)
        assert (best <= V + 1e-9).all()


def learners(problem, *, episodes, scale=1.0, seed=0, **options):
    known = {"reward": machine_rewards(problem), "episodes": episodes, "scale": scale}
    return {
        "euler": EULER(problem.shape, rng=rng(seed), **known, **options),
        "freedman": UCBVI(problem.shape, rng=rng(seed), **known, bonus=Freedman(), **options),
        "hoeffding": UCBVI(problem.shape, rng=rng(seed), **known, bonus=Hoeffding(), **options),
    }


@each_seed(range(12))
def test_the_rewards_of_the_machine_are_those_of_its_world(seed):
    problem = adapt(draw(seed))
    machine = problem.machine()
    table = np.broadcast_to(machine_rewards(problem), machine.reward.shape)
    may = machine.allowed
    np.testing.assert_allclose(table[may], machine.reward[may], atol=1e-9)


@pytest.mark.parametrize("name", ["euler", "freedman", "hoeffding"])
@pytest.mark.parametrize("world", ["night-shift", "flappy-bird-budget/greedy"])
def test_they_pass_what_every_learner_must(name, world):
    check_learner(lambda p: learners(p, episodes=200, scale=0.1)[name], make(world))


@each("every", [1, 7])
@pytest.mark.parametrize("seed", [*range(6), "night-shift", "flappy-bird-budget/greedy"])
def test_the_compiled_loop_of_ucbvi_is_the_plain_one(seed, every):
    problem = make(seed) if isinstance(seed, str) else adapt(draw(seed))
    fast, plain = (
        learners(problem, episodes=200, scale=0.1, penalty=0.1)["freedman"] for _ in "ab"
    )
    simulator, random = counsel.Simulator(problem), rng(7)
    _ = fast.policy, plain.policy
    best = counsel.solve(problem, penalty=0.1).penalised_value
    for size in (60, 1, 139):
        gaps, pieces = fast.run(simulator, best=best, episodes=size, every=every, rng=rng(size))
        random = rng(size)
        for begin in range(0, size, every):
            block = min(every, size - begin)
            worth = counsel.evaluate(problem, plain.policy)
            gap = best - (worth.value - 0.1 * worth.advice_count)
            assert gaps[begin : begin + block] == pytest.approx(gap, abs=1e-12)
            assert pieces[begin] == pytest.approx(worth.advice_count, abs=1e-12)
            plain.update(simulator.play(plain.policy, episodes=block, rng=random))
        saved, expected = fast.state(), plain.state()
        for name in (name for name in saved if name.startswith("_")):
            used = int(saved["_used"][0]) if name == "_links" else None
            np.testing.assert_array_equal(saved[name][:used], expected[name][:used])
        np.testing.assert_array_equal(fast.policy.advice, plain.policy.advice)


def test_euler_learns_rewards_that_are_not_known():
    mdp = counsel.MDP([[1, 0], [0, 1]], [[0.2, 0.9], [0.6, 0.1]], horizon=2)
    problem = counsel.AdviceProblem(mdp, counsel.Human([[0.7, 0.3], [0.3, 0.7]], 0.9))
    learner = EULER(problem.shape, rng=rng(), reward=None, episodes=60_000, scale=0.05)
    records = list(
        counsel.learn(learner, counsel.Simulator(problem), episodes=60_000, every=200, rng=rng(1))
    )
    assert records[-1].value_gap < 1e-9
    check_learner(
        lambda p: EULER(p.shape, rng=rng(), reward=None, episodes=200, scale=0.05), problem
    )


@pytest.mark.parametrize("name", ["euler", "freedman", "hoeffding"])
@each("penalty", [0.0, 0.3])
def test_the_regret_flattens_on_a_chain_whose_optimum_is_known(name, penalty):
    # Two states; the second pays. Alone the person drifts back to the first.
    mdp = counsel.MDP([[0, 1], [0, 1]], [[0.0, 0.0], [1.0, 1.0]], horizon=3)
    problem = counsel.AdviceProblem(mdp, counsel.Human([[0.9, 0.1], [0.9, 0.1]], [0.9, 0.95]))
    learner = learners(problem, episodes=30_000, scale=0.02, penalty=penalty)[name]
    half, whole = counsel.learn(
        learner, counsel.Simulator(problem), episodes=30_000, every=50, records=2, rng=rng(2)
    )
    assert half.regret > 0.0
    # A regret that grows like √T adds 0.41 of the first half, a linear one all of it.
    assert whole.regret - half.regret < 0.15 * half.regret


def test_in_other_units_the_same_is_learnt():
    problem = make("night-shift")
    dearer = counsel.AdviceProblem(problem.mdp.paying(64.0 * problem.mdp.reward[0]), problem.human)
    for name in ("euler", "freedman"):
        ends = []
        for world, factor in ((problem, 1.0), (dearer, 64.0)):
            learner = learners(world, episodes=500, scale=0.01, penalty=0.25 * factor)[name]
            *_, last = counsel.learn(
                learner, counsel.Simulator(world), episodes=500, every=5, rng=rng(3)
            )
            ends.append(last.regret / factor)
        assert ends[0] == pytest.approx(ends[1], rel=1e-9)


class Forgetful(EULER):
    """Does not count where episodes end: the trap."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self._ends.count = lambda batch: None


def test_a_crash_looks_best_for_ever_where_its_end_is_not_noted():
    # The named trap (BASELINES 2.4): nothing is recorded after the crash, so optimism about what
    # was not seen makes crashing the best plan. Noting the end, or declaring it, heals that.
    grid = generate_map(5, 8, rng=rng(4))
    problem = make_flappy_bird(map=grid, human="safe", adherence=0.8)
    over = problem.mdp.over[0]
    gaps = {}
    for name, kind, zero in (
        ("trapped", Forgetful, None),
        ("noted", EULER, None),
        ("declared", Forgetful, over),
    ):
        learner = kind(
            problem.shape,
            rng=rng(),
            reward=machine_rewards(problem),
            episodes=20_000,
            scale=0.1,
            known_zero=zero,
        )
        *_, last = counsel.learn(
            learner, counsel.Simulator(problem), episodes=20_000, every=200, rng=rng(5)
        )
        gaps[name] = last.value_gap
    assert gaps["noted"] < 0.1
    assert gaps["declared"] < 0.1
    assert gaps["trapped"] > 0.5


def test_burning_in_keeps_counts_and_declares_the_rest_unreachable():
    problem = make("flappy-bird-budget/greedy")
    learner = learners(problem, episodes=3000)["euler"]
    learner.burn_in(counsel.Simulator(problem), episodes=3000, rng=rng(6))
    assert learner.episode == 3000
    seen = learner.state()["_visits"].sum(axis=2) > 0
    np.testing.assert_array_equal(learner._unreachable[:-1], ~seen)
    lives = counsel.Policy.from_probabilities(np.full((8, 57, 4), 0.25))
    reached = counsel.evaluate(problem, lives).occupancy > 1e-3
    assert (seen | problem.mdp.over)[reached].all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"delta": 0.0}, "delta is 0"),
        ({"scale": -1.0}, "scale is -1"),
        ({"episodes": 0}, "episodes"),
        ({"reward": np.zeros((2, 2))}, "reward has shape"),
        ({"known_zero": np.zeros(3)}, "known_zero is float64 of shape"),
        ({"penalty": -1.0}, "penalty is -1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options, words):
    problem = make("night-shift")
    known = {"reward": machine_rewards(problem), "episodes": 10}
    for kind in (EULER, UCBVI):
        with pytest.raises(counsel.CounselError, match=words):
            kind(problem.shape, rng=rng(), **(known | options))
