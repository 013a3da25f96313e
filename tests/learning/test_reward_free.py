"""RFE and Structured learn random rewards: estimates, intervals, and the stopping rule."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import rel_entr
from scipy.stats import binom

import counsel
from counsel import MDP, RFE, AdviceProblem, Human, Structured
from counsel.baselines import EULER, QLearning
from counsel.learning._rfe_kernels import phi
from counsel.learning._structured_kernels import fill_uncertainty
from counsel.model.human import advised_law
from counsel.simulate import bernoulli
from counsel.testing import check_learner
from counsel.worlds import make
from tests.support.each import each

KINDS = [RFE, Structured]


def rng(seed=0):
    return np.random.default_rng(seed)


def paid_at_random(low=-1.0, high=2.0):
    """Two states, two actions, two steps; every reward is −1 or 2."""
    P = np.array([[[0.7, 0.3], [0.2, 0.8]], [[0.5, 0.5], [0.9, 0.1]]])
    mdp = MDP(P, [[0.1, 0.4], [0.9, 0.3]], horizon=2)
    person = Human([[0.6, 0.4], [0.3, 0.7]], 0.8)
    return AdviceProblem(mdp, person, reward_range=(low, high), reward_law=bernoulli)


def truth_of(kind, problem):
    return problem.mdp.reward if kind is Structured else problem.machine().reward


def leaves_its_interval(kind, problem, seed, *, updates, episodes, delta):
    """Return whether some mean reward ever leaves its interval."""
    learner = kind(problem.shape, rng=rng(seed), delta=delta)
    simulator, random, truth = counsel.Simulator(problem), rng(seed + 5000), truth_of(kind, problem)
    for _ in range(updates):
        learner.explore(simulator, episodes=episodes, rng=random)
        low, high = learner.reward_bounds()
        if ((truth < low - 1e-12) | (truth > high + 1e-12)).any():
            return True
    return False


@pytest.mark.parametrize("kind", KINDS)
def test_intervals_contain_the_mean_rewards_and_shrink(kind):
    problem = paid_at_random()
    learner, simulator = kind(problem.shape, rng=rng(), delta=0.1), counsel.Simulator(problem)
    low, high = learner.reward_bounds()
    assert (low == -1.0).all()
    assert (high == 2.0).all()
    learner.explore(simulator, episodes=20_000, rng=rng(1))
    low, high = learner.reward_bounds()
    truth, estimate = truth_of(kind, problem), learner.expected_reward()
    seen = high - low < 3.0
    assert seen.sum() >= 6  # every episode begins in state 0
    assert ((low <= truth) & (truth <= high)).all()
    assert ((low <= estimate) & (estimate <= high))[seen].all()
    assert (high - low)[seen].max() < 0.5


def test_known_rewards_of_structured_have_no_interval():
    problem = paid_at_random()
    learner = Structured(problem.shape, rng=rng(), reward=problem.mdp.reward)
    for end in learner.reward_bounds():
        np.testing.assert_array_equal(end, problem.mdp.reward)


@pytest.mark.slow
@pytest.mark.parametrize("runs", [250, pytest.param(1000, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", KINDS)
def test_in_many_runs_a_mean_reward_leaves_its_interval_in_at_most_a_fourth_of_delta(kind, runs):
    # The count that a failure rate of δ / 4 exceeds with probability 0.001.
    problem, delta = paid_at_random(0.0, 1.0), 0.4
    failed = [
        leaves_its_interval(kind, problem, seed, updates=30, episodes=3, delta=delta)
        for seed in range(runs)
    ]
    assert sum(failed) <= binom.ppf(0.999, runs, delta / 4)


@pytest.mark.parametrize("kind", KINDS)
def test_random_rewards_are_learnt_by_compiled_loops_and_by_functions(kind):
    # A function that compiled loops do not know is played step by step.
    for law, episodes in ((bernoulli, 3000), (lambda cells, u: bernoulli(cells, u), 250)):
        problem = replace(make("night-shift"), reward_range=(-0.2, 1.0), reward_law=law)
        options = {"groups": [0, 1, 2]} if kind is Structured else {}
        learner = kind(problem.shape, rng=rng(1), **options)
        *_, last = counsel.learn(
            learner, counsel.Simulator(problem), episodes=episodes, every=250, rng=rng(0)
        )
        estimate, n = learner.expected_reward(), learner._row_visits
        # Six standard errors of a reward within a range of 1.2.
        error = np.abs(estimate - truth_of(kind, problem))[n > 0]
        assert (error <= 6 * 0.6 / np.sqrt(n[n > 0])).all()
        assert last.value_gap < 0.6


@pytest.mark.parametrize("kind", [RFE, Structured, EULER, QLearning])
def test_explorers_and_baselines_refuse_a_reward_outside_the_range(kind):
    problem = paid_at_random()
    narrow = replace(problem.shape, reward_range=(-1.0, 1.0))
    options = {} if kind in KINDS else {"reward": None, "episodes": 100}
    learner = kind(narrow, rng=rng(), **options)
    policy = counsel.solve(problem).policy
    batch = counsel.Simulator(problem).play(policy, episodes=20, rng=rng())
    with pytest.raises(counsel.CounselError, match=r"is 2, outside reward_range \(-1, 1\)"):
        learner.update(batch)
    if kind in KINDS:
        message = r"simulator pays from -1 to 2, outside reward_range \(-1, 1\)"
        with pytest.raises(counsel.CounselError, match=message):
            learner.explore(counsel.Simulator(problem), episodes=5, rng=rng())
    assert learner.episode == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_they_pass_what_every_learner_must_with_random_rewards(kind):
    check_learner(lambda p: kind(p.shape, rng=rng(3)), make("night-shift", random_rewards=True))


def coin_divergence(p, q):
    return rel_entr(p, q) + rel_entr(1 - p, 1 - q)


def test_the_error_of_the_machines_reward_is_at_most_the_root_of_the_divergences():
    # The step of Structured's proof: |r̂^M − r^M| ≤ √(Σ P̂ kl(r̂, r) + KL(P̂ ‖ P)).
    random, tightest = rng(4), 0.0
    for _ in range(3000):
        A, n = int(random.integers(2, 6)), int(random.integers(3, 100))
        b, theta, own = int(random.integers(A)), random.random(), random.dirichlet(np.ones(A))
        mean = random.random(A)
        paid = random.binomial(n, mean) / n
        theta_n, own_n = random.binomial(n, theta) / n, (random.multinomial(n, own) + 1e-3) / n
        own_n /= own_n.sum()
        law, law_n = advised_law(own, b, theta), advised_law(own_n, b, theta_n)
        error = abs(law_n @ paid - law @ mean)
        bound = math.sqrt(law_n @ coin_divergence(paid, mean) + rel_entr(law_n, law).sum())
        assert error <= bound * (1 + 1e-9)
        tightest = max(tightest, error / bound)
    assert tightest > 0.6  # the bound is not idle


def test_the_bound_of_rfe_leaves_room_for_random_rewards():
    # √(log(4 H S B (n + 1) / δ) / (2 n)) ≤ √(φ(n) / n): what Theorem 2 needs of rewards.
    for H, S, B, delta in ((1, 1, 2, 0.99), (20, 141, 4, 1e-6), (5, 59_050, 4, 0.1)):
        base = 6.0 * math.log(4 * math.e * S * B * H / delta)
        for n in (1, 2, 10, 1000, 10**6, 10**12):
            assert math.log(4 * H * S * B * (n + 1) / delta) <= 2 * phi(float(n), base, S)


def one_state(reward=None):
    """One state, so that moves are certain and only the person and rewards are to be learnt."""
    mdp = MDP([[0, 0]], [[0.2, 0.8]], horizon=1)
    person = Human([[1.0, 0.0]], [1.0, 0.95])
    problem = AdviceProblem(mdp, person, reward_range=(0, 1), reward_law=bernoulli)
    return problem, Structured(problem.shape, rng=rng(), epsilon=0.9, reward=reward)


def test_the_stopping_rule_of_structured_has_a_term_for_unknown_rewards():
    # With one state there is no move to learn: with known rewards, their part is log(3 (A + 1) / δ)
    # over n at any n; unknown ones need log(4 A / δ) + log(e (1 + n)), over n.
    problem, unknown = one_state()
    _, known = one_state(problem.mdp.reward)
    policy = counsel.Policy.from_probabilities([[[0.25, 0.4, 0.35]]])
    batch = counsel.Simulator(problem).play(policy, episodes=100_000, rng=rng(1))
    for learner in (known, unknown):
        learner.update(batch)
    n_a = unknown._row_visits[0, 0]
    silent = np.flatnonzero(batch.advice == 2).size
    assert (batch.action[batch.advice == 2] == 0).all()
    own, alone = [], []
    for learner, share in ((known, 3), (unknown, 4)):
        moves = math.log(share / 0.1 * 3)
        if share == 4:
            moves = max(moves, math.log(4 / 0.1 * 2) + 1 + math.log(1 + n_a[0]))
        choices = (batch.action != batch.advice).sum()
        habit = 3 * (math.log(share / 0.1 * 3) + 1 + math.log(1 + choices))
        own.append(16 * (moves / n_a[0] + habit / silent))
        value_b, tables = np.empty(3), (learner._counts, learner._structure, learner._stopping)
        fill_uncertainty(*tables, np.zeros((1, 1, 2, 1)), 0, 0, 0, value_b)
        alone.append(value_b[2])
    np.testing.assert_allclose(alone, own, rtol=1e-12)
    assert alone[1] > alone[0]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [RFE, pytest.param(Structured, marks=pytest.mark.long)])
@each("seed", range(2))
def test_once_done_with_random_rewards_the_plan_is_good_enough(kind, seed):
    # Scale 1, as proved. Silence falls short by more than ε.
    epsilon = 0.95
    mdp = MDP([[0, 0]], [[0.0, 1.0]], horizon=1)
    person = Human([[1.0, 0.0]], [1.0, 0.98])
    problem = AdviceProblem(mdp, person, reward_range=(0, 1), reward_law=bernoulli)
    learner = kind(problem.shape, rng=rng(seed), epsilon=epsilon, delta=0.1)
    simulator, random = counsel.Simulator(problem), rng(seed + 10)
    best = counsel.solve(problem).value
    silent = counsel.Policy([[2]], n_actions=2)
    assert best - counsel.evaluate(problem, silent).value > epsilon
    while not learner.done:
        assert learner.episode < 20_000_000
        learner.explore(simulator, episodes=250_000, rng=random)
    assert best - counsel.evaluate(problem, learner.policy).value <= epsilon
    assert learner.plan().value == pytest.approx(best, abs=0.01)
