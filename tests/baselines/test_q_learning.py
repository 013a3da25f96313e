"""UCB Q-learning: the numbers of the formulas, constants, and what it learns."""

import math

import numpy as np
import pytest

import counsel
from counsel.baselines import Bernstein, Hoeffding, QLearning
from counsel.baselines._q_learning_kernels import BERNSTEIN, HOEFFDING, QBonus, QTable, learn_row
from counsel.model.machine import machine_rewards
from counsel.testing import check_learner
from counsel.worlds import make
from tests.support.each import each, each_seed
from tests.support.problems import adapt, draw

LOG = math.log(2 * 2 * 600 / 0.1)


def rng(seed=0):
    return np.random.default_rng(seed)


def table_of(H, S, B):
    rows = (H, S, B)
    V = np.full((H + 1, S), float(H))
    V[H] = 0.0
    return QTable(
        np.zeros(rows, np.int64), np.full(rows, float(H)), V, *(np.zeros(rows) for _ in range(3))
    )


def test_hoeffding_by_hand():
    assert pytest.approx(10.0858091, abs=1e-7) == LOG
    table, seen = table_of(3, 2, 2), []
    for _ in range(3):
        learn_row(table, QBonus(HOEFFDING, 1.0, 1.0, LOG), 1, 0, 1, 0.5, 3.0)
        seen.append(table.Q_hsb[1, 0, 1])
    np.testing.assert_allclose(seen, [20.0020255, 16.1353604, 14.0634194], atol=1e-6)


@pytest.mark.parametrize(
    ("constants", "widths", "values"),
    [
        (
            (0.01, 10.0),
            [9.5286067, 4.7867863, 3.2014517],
            [7.2643034, 4.0933931, 3.8340592],
        ),
        (
            (1.0, 1.0),
            [16.5020255, 11.6686941, 9.5274489],
            [10.7510128, 7.5343471, 6.9970578],
        ),
    ],
)
def test_bernstein_by_hand(constants, widths, values):
    table, V = table_of(3, 2, 2), (1.0, 2.0)
    for t, width, value in zip((1, 0, 1), widths, values, strict=True):
        learn_row(table, QBonus(BERNSTEIN, *constants, LOG), 1, 0, 1, 0.5, V[t])
        assert table.width_hsb[1, 0, 1] == pytest.approx(width, abs=1e-6)
        assert table.Q_hsb[1, 0, 1] == pytest.approx(value, abs=1e-6)


@each("H", [1, 3, 20])
def test_what_is_left_of_the_past_adds_up_to_one_and_is_spread_enough_for_the_bonus(H):
    # c = 1 in the docstring rests on Σ (α_n^i)² ≤ 2 H / n.
    weights = np.zeros(0)
    for n in range(1, 2001):
        rate = (H + 1) / (H + n)
        weights = np.append(weights * (1 - rate), rate)
        assert weights.sum() == pytest.approx(1.0)
        assert weights.max() <= 2 * H / n + 1e-12
        assert (weights**2).sum() <= 2 * H / n + 1e-12
    if H == 3:
        assert (weights**2).sum() == pytest.approx(0.001142, abs=1e-6)


def built(problem, bonus, *, known=True, episodes=200, **options):
    reward = machine_rewards(problem) if known else None
    return QLearning(
        problem.shape, rng=rng(), reward=reward, episodes=episodes, bonus=bonus, **options
    )


@pytest.mark.parametrize("bonus", [Hoeffding(), Bernstein()])
@pytest.mark.parametrize("known", [True, False])
def test_it_passes_what_every_learner_must(bonus, known):
    for world in ("night-shift", "flappy-bird-budget/greedy"):
        check_learner(lambda p: built(p, bonus, known=known, scale=0.05), make(world))


def slow(problem, batches, *, c, log):
    """Hoeffding's updates straight from the paper, one dictionary for each table."""
    H, B = problem.horizon, problem.n_actions + 1
    reward = np.broadcast_to(machine_rewards(problem), (H, problem.n_states, B))
    low, high = problem.shape.reward_range
    Q, N, over = {}, {}, set()

    def V(h, s):
        if h == H:
            return 0.0
        if any((g, s) in over for g in range(h + 1)):
            return (H - h) * -low / (high - low)
        open_b = [b for b in range(B) if b == B - 1 or problem.mdp.allowed[h, s, b]]
        if not any((h, s, b) in Q for b in open_b):
            return float(H)
        return min(H, max(Q.get((h, s, b), float(H)) for b in open_b))

    for batch in batches:
        if batch.terminated[0] and batch.state.size:
            over.add((batch.state.size, int(batch.next_state[-1])))
        rows = zip(batch.step, batch.state, batch.advice, batch.next_state, strict=True)
        for h, s, b, t in ((int(x) for x in row) for row in rows):
            n = N[h, s, b] = N.get((h, s, b), 0) + 1
            rate = (H + 1) / (H + n)
            r = (reward[h, s, b] - low) / (high - low)
            target = r + V(h + 1, t) + c * math.sqrt(H**3 * log / n)
            Q[h, s, b] = (1 - rate) * Q.get((h, s, b), float(H)) + rate * target
    return Q


@pytest.mark.parametrize("world", ["night-shift", "flappy-bird-budget/greedy"])
def test_it_is_the_listing_of_the_paper(world):
    problem = make(world)
    learner, simulator, random = built(problem, Hoeffding(), scale=0.01), None, rng(4)
    simulator, batches = counsel.Simulator(problem), []
    for _ in range(150):
        batches.append(simulator.play(learner.policy, episodes=1, rng=random))
        learner.update(batches[-1])
    S, B, H = problem.n_states, problem.n_actions + 1, problem.horizon
    Q = slow(problem, batches, c=0.01, log=math.log(2 * S * B * H * 200 / 0.1))
    assert len(Q) > 30
    for (h, s, b), value in Q.items():
        assert learner._values.Q[h, s, b] == pytest.approx(value, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("bonus", [Hoeffding(), Bernstein()])
@each_seed(range(8))
def test_it_never_promises_less_than_there_is(bonus, seed):
    problem = adapt(draw(seed))
    best = counsel.solve(problem).values
    learner = built(problem, bonus, known=seed % 2 == 0, episodes=400)
    for _ in counsel.learn(learner, counsel.Simulator(problem), episodes=400, rng=rng(seed)):
        pass
    assert (learner.upper >= best - 1e-9).all()


def test_a_crash_is_worth_nothing_to_it_from_the_first_time_on():
    problem = make("flappy-bird-budget/greedy")
    learner = built(problem, Hoeffding(), episodes=20_000, scale=0.001)
    *_, last = counsel.learn(
        learner, counsel.Simulator(problem), episodes=20_000, every=10, rng=rng(5)
    )
    assert learner._ends.ended[1:, -1].any()
    assert last.value_gap < 0.05


def test_it_does_not_matter_how_episodes_are_cut_into_batches():
    problem = make("flappy-bird-budget/greedy")
    policy = counsel.Policy.from_probabilities(np.full((8, 57, 4), 0.25))
    batch = counsel.Simulator(problem).play(policy, episodes=40, rng=rng(6))
    whole, parts = built(problem, Bernstein()), built(problem, Bernstein())
    whole.update(batch)
    for n in range(40):
        begin, end = batch.first[n], batch.first[n + 1]
        columns = {
            name: getattr(batch, name)[begin:end]
            for name in ("state", "advice", "action", "reward", "next_state")
        }
        parts.update(
            counsel.simulate.Episodes(
                first=np.array([0, end - begin]),
                terminated=batch.terminated[n : n + 1],
                defer=batch.defer,
                **columns,
            )
        )
    np.testing.assert_array_equal(whole._values.Q, parts._values.Q)
    np.testing.assert_array_equal(whole._ends.ended, parts._ends.ended)


def test_settings_that_make_no_sense_are_refused():
    problem = make("night-shift")
    for options, words in (
        ({"bonus": counsel.baselines.Freedman()}, "bonus is Freedman"),
        ({"delta": 1.5}, "delta is 1.5"),
        ({"scale": 0.0}, "scale is 0"),
        ({"episodes": 0}, "episodes"),
    ):
        settings = {"bonus": Hoeffding(), "episodes": 10} | options
        with pytest.raises(counsel.CounselError, match=words):
            QLearning(problem.shape, rng=rng(), reward=None, **settings)
