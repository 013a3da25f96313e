"""The guarantees inside a learner: bounds that hold, Proposition 2, Theorem 1.

What is promised with probability 1 − δ is counted over seeds; what has no guarantee (``KL()``) is
measured and reported. Everywhere θ ≥ π.
"""

import math
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

import counsel
from counsel.estimate.bounds import KL, Theory, interval
from counsel.learning.learn import learn
from counsel.learning.rfe import RFE
from counsel.learning.thompson import Thompson
from counsel.learning.ucb_ad import UCBAD
from counsel.worlds import generate_map, make, make_flappy_bird
from tests.support.each import each

pytestmark = pytest.mark.slow

ROUNDING = 1e-9
"""Values here are sums of some hundred terms of order 1, so right to far less than this."""


# The bounds inside the learner, where what is tried depends on what was seen.


def extremes():
    """Two states, five adherences to learn, among them 0, 0.001, 0.999 and 1."""
    P = [[[0.7, 0.3], [0.2, 0.8], [0.5, 0.5]], [[0.4, 0.6], [1.0, 0.0], [0.1, 0.9]]]
    mdp = counsel.MDP(P, [[0.0, 1.0, 0.9], [0.2, 0.8, 1.0]], horizon=3)
    own = [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]
    theta = [[1.0, 0.001, 0.999], [1.0, 0.6, 0.0]]
    return counsel.AdviceProblem(mdp, counsel.Human(own, theta))


def pooled():
    """Three states, one adherence for each advice; two states where the person is certain."""
    P = np.random.default_rng(3).dirichlet(np.ones(3), size=(3, 3))
    mdp = counsel.MDP(P, [[0.0, 0.6, 1.0], [1.0, 0.1, 0.5], [0.9, 0.7, 0.0]], horizon=3)
    own = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.3, 0.3, 0.4]]
    human = counsel.Human(own, [0.5, 0.98, 0.6], groups=[0, 1, 2])
    return counsel.AdviceProblem(mdp, human)


def one_lift():
    """Three habits at three steps, and one lift for each advice: 0.5 and 0.3."""
    mdp = counsel.MDP([[0, 0]], [[0.9, 1.0]], horizon=3)
    own = [[[0.9, 0.1]], [[0.5, 0.5]], [[0.2, 0.8]]]
    return counsel.AdviceProblem(mdp, counsel.Human(own, lift=[0.5, 0.3], groups=[0, 1]))


def truth_of(learner, problem):
    """The true θ of each bin."""
    bin_lsa = learner.matches.groups.bin_lsa
    says, theta = bin_lsa >= 0, np.empty(learner.matches.n_bins)
    theta[bin_lsa[says]] = problem.adherence[: len(bin_lsa)][says]
    return theta


def promise_of(learner):
    """The value that the learner's plan promises."""
    plan = learner.matches.plan.cells
    return float(plan.world.start @ plan.V_c2[:-1, 0])


def follow(learner, problem, *, updates, every, seed):
    """Run; before each block note what was counted, bounded and promised."""
    simulator, rng = counsel.Simulator(problem), np.random.default_rng(seed)
    matched, given_, uppers, promises = [], [], [], []
    for _ in range(updates):
        policy = learner.policy
        matched.append(learner.matched)
        given_.append(learner.given)
        uppers.append(learner.matches.belief.upper.copy())
        promises.append(promise_of(learner))
        learner.update(simulator.play(policy, episodes=every, rng=rng))
    return np.array(matched), np.array(given_), np.array(uppers), np.array(promises)


def covered(learner, problem, bound, matched, given_):
    """Whether the true θ of every group lies in its interval, at each update."""
    sizes = {"groups": learner.matches.n_bins, "horizon": problem.horizon}
    low, high = interval(bound, matched, given_, **sizes, episode=1)
    truth = truth_of(learner, problem)
    return ((low <= truth) & (truth <= high)).all(axis=1), high


DELTA = 0.1
CASES = {
    "extremes": (extremes, {}, (80, 60, 1)),
    "extremes at a penalty": (extremes, {"penalty": 0.2}, (80, 60, 1)),
    "pooled": (pooled, {}, (80, 60, 1)),
    "one lift": (one_lift, {}, (80, 60, 1)),
    "greedy": (lambda: make("flappy-bird/greedy"), {}, (50, 60, 5)),
    "safe": (lambda: make("flappy-bird/safe"), {}, (50, 60, 5)),
    "greedy pooled": (lambda: make("flappy-bird/greedy"), {"groups": [0, 1, 2]}, (80, 60, 1)),
    "safe pooled": (lambda: make("flappy-bird/safe"), {"groups": [0, 1, 2]}, (80, 60, 1)),
}
"""A problem, options of the learner, and how many runs of how many updates of how many episodes."""


@pytest.mark.parametrize("kind", ["KL", "Theory"])
@pytest.mark.parametrize("case", CASES)
def test_inside_the_learner_valid_bounds_hold_and_promise_the_optimum(case, kind, record_property):
    make_problem, options, (runs, updates, every) = CASES[case]
    problem = make_problem()
    bound = KL(delta=DELTA) if kind == "KL" else Theory(delta=DELTA, episodes=updates * every)
    best = counsel.solve(problem, penalty=options.get("penalty", 0.0)).penalised_value
    held, kept = 0, 0
    for seed in range(runs):
        learner = UCBAD(problem.without_adherence(), bound=bound, **options)
        matched, given_, uppers, promises = follow(
            learner, problem, updates=updates, every=every, seed=seed
        )
        holds, high = covered(learner, problem, bound, matched, given_)
        if not learner.setting.shares_lift:
            np.testing.assert_array_equal(uppers, high)
        # Proposition 2: while the set holds the truth, no episode begins with too low a promise.
        assert (promises[holds] >= best - ROUNDING).all()
        held += holds.all()
        kept += (promises >= best - ROUNDING).all()
    record_property("held", float(held / runs))
    record_property("kept", float(kept / runs))
    # Were each run to fail with δ exactly, four standard errors of 150 runs more, 0.2 in all, is
    # what chance explains. (Measured: 0.925 to 1 of the runs hold. With 80 runs, bounds that
    # fail in one of three pass once in 200 times.)
    slack = 4 * math.sqrt(DELTA * (1 - DELTA) / 150)
    assert held / runs >= 1 - DELTA - slack
    assert kept / runs >= 1 - DELTA - slack


def test_advice_by_anybody_counts_and_cells_where_the_person_is_certain_do_not():
    # A log of random advice: in two of three states it often names what the person does anyhow.
    # Counted, those matches would lift the bounds of a pooled θ = 0.5 far above it.
    problem, runs, held = pooled(), 200, 0
    anything = counsel.Policy.from_probabilities(np.full((3, 3, 4), 0.25))
    simulator = counsel.Simulator(problem)
    for seed in range(runs):
        learner = UCBAD(problem.without_adherence(), bound=KL(delta=DELTA))
        rng = np.random.default_rng(seed)
        counts = []
        for _ in range(10):
            learner.update(simulator.play(anything, episodes=60, rng=rng))
            counts.append((learner.matched, learner.given))
        matched, given_ = (np.array(each) for each in zip(*counts, strict=True))
        held += covered(learner, problem, learner.bound, matched, given_)[0].all()
    assert held / runs >= 1 - DELTA - 4 * math.sqrt(DELTA * (1 - DELTA) / runs)


@each("every", [1, 7])
@pytest.mark.parametrize(
    "bound", [KL(), KL(delta=DELTA), Theory(delta=DELTA, episodes=700)], ids=str
)
def test_one_long_compiled_run_is_policy_and_update_in_turn(bound, every):
    # What is tested above by policy and update then holds of the compiled loop. One run of 700
    # episodes: its own clock, not the start of a run, must refresh the level of KL() at 1, 2, 4, …
    problem, regret = make("flappy-bird/greedy"), 0.0
    slow, fast = (UCBAD(problem.without_adherence(), bound=bound) for _ in range(2))
    simulator, rng = counsel.Simulator(problem), np.random.default_rng(11)
    (last,) = learn(fast, simulator, episodes=700, every=every, records=1, rng=rng)
    rng, best = np.random.default_rng(11), counsel.solve(problem).value
    for _ in range(700 // every):
        regret += every * (best - counsel.evaluate(problem, slow.policy).value)
        slow.update(simulator.play(slow.policy, episodes=every, rng=rng))
    np.testing.assert_array_equal(slow.given, fast.given)
    np.testing.assert_array_equal(slow.matched, fast.matched)
    np.testing.assert_array_equal(slow.policy.advice, fast.policy.advice)
    assert last.regret == pytest.approx(regret, abs=700 * ROUNDING)


# KL(), which promises nothing: how often its promise falls below the optimum.

FALLS_SHORT = {
    "pooled": (0.136, 0.0098, 0.079),
    "one lift": (0.628, 0.0430, 0.094),
    "greedy": (0.004, 0.0001, 0.001),
    "safe": (0.004, 0.0001, 0.001),
    "greedy pooled": (0.090, 0.0016, 0.007),
    "safe pooled": (0.066, 0.0010, 0.004),
}
"""Measured over 800 seeds (2,000 for "greedy pooled") of 100 episodes: the share of runs in which
some episode begins with a promise below the optimum; the share of all episodes that do, and how far
that scatters from run to run. "greedy pooled" falls short before the fifth episode in 19 runs of 20
that do: at first the level, log(1 + t), is low."""


@pytest.mark.parametrize("case", FALLS_SHORT)
def test_how_often_the_practical_bound_promises_too_little(case, record_property):
    make_problem, options, _ = CASES[case]
    problem, runs = make_problem(), 60
    best, short = counsel.solve(problem).value, []
    for seed in range(runs):
        learner = UCBAD(problem.without_adherence(), bound=KL(), **options)
        promises = follow(learner, problem, updates=100, every=1, seed=seed)[3]
        short.append((promises < best - ROUNDING).mean())
    of_runs, of_episodes = float(np.mean(np.array(short) > 0)), float(np.mean(short))
    record_property("runs_that_fall_short", of_runs)
    record_property("episodes_that_fall_short", of_episodes)
    # No promise, so no bound but what was measured: within four standard errors of that.
    share, episodes, scatter = FALLS_SHORT[case]
    assert abs(of_runs - share) <= 4 * math.sqrt(share * (1 - share) / runs)
    assert of_episodes <= episodes + 4 * scatter / math.sqrt(runs)


# Theorem 1: all but so many policies are ε-optimal.


def value_gaps(problem, *, episodes, seed):
    """What the policy of each single episode falls short, with KL(delta=…)."""
    learner = UCBAD(problem.without_adherence(), bound=KL(delta=DELTA))
    best, rng = counsel.solve(problem).value, np.random.default_rng(seed)
    simulator = counsel.Simulator(problem)
    return learner.run(simulator, best=best, episodes=episodes, every=1, rng=rng)[0]


def narrow_or_wide():
    """Two roads: narrow pays 1 to those who listen there, half of them; wide pays 0.8 to all.

    Optimism takes the narrow road first. Advice to go wide is worth 0.75 · 0.8 + 0.25 · 0.5 =
    0.725; to go narrow 0.575.
    """
    P = np.zeros((2, 3, 2, 3))
    P[:, 0, 0, 1] = P[:, 0, 1, 2] = P[:, 1, :, 1] = P[:, 2, :, 2] = 1.0
    reward = np.zeros((2, 3, 2))
    reward[1, 1, 0], reward[1, 2, :] = 1.0, 0.8
    own, theta = [[0.5, 0.5], [0.0, 1.0], [0.0, 1.0]], [[0.75, 0.75], [0.5, 1.0], [0.5, 1.0]]
    return counsel.AdviceProblem(counsel.MDP(P, reward, horizon=2), counsel.Human(own, theta))


def test_policies_that_are_not_epsilon_optimal_stop_coming():
    problem = narrow_or_wide()
    assert counsel.solve(problem).value == pytest.approx(0.725)
    for seed in range(10):
        gaps = value_gaps(problem, episodes=20_000, seed=seed)
        assert gaps[0] == pytest.approx(0.15)  # what there is to learn
        # Measured: 34 to 110 such episodes, the last of them before the 140th.
        assert 0 < (gaps > 0.1).sum() < 500
        assert np.abs(gaps[10_000:]).sum() <= 10_000 * 1e-12


def test_on_a_map_almost_none_of_them_come_late(record_property):
    # A bound that has let go of an advice may come back to it as those of others sink, so a few
    # come late. Measured over 20 seeds: 39 to 258 of 100,000 episodes, at most 15 after 50,000.
    grid = generate_map(4, 6, rng=np.random.default_rng(5))
    problem = make_flappy_bird(map=grid, human="safe", adherence=[0.6, 0.75, 0.9])
    for seed in range(6):
        gaps = value_gaps(problem, episodes=100_000, seed=seed)
        wrong = gaps > 0.1
        record_property(f"not_optimal_seed_{seed}", [int(wrong.sum()), int(wrong[50_000:].sum())])
        assert 0 < wrong.sum() <= 1000
        assert wrong[50_000:].sum() <= 40
        assert gaps[50_000:].mean() <= 1e-4


# The same seed, the same run, whoever runs it.


def one_run(task):
    """Run one learner; return its records and what it would advise, to the bit."""
    kind, seed = task
    problem = make("flappy-bird/safe")
    rng = np.random.default_rng([seed, 7])
    if kind == "UCBAD":
        learner, every = UCBAD(problem.without_adherence(), bound=KL(delta=DELTA)), 1
    elif kind == "Thompson":
        learner, every = Thompson(problem.without_adherence(), rng=rng.spawn(1)[0]), 10
    else:
        learner, every = RFE(problem.shape, rng=rng.spawn(1)[0], scale=0.1), 50
    run = learn(learner, counsel.Simulator(problem), episodes=600, every=every, records=6, rng=rng)
    records = [(r.episode, r.regret.hex(), r.value_gap.hex(), r.advice_count.hex()) for r in run]
    return kind, seed, records, learner.policy.advice.tobytes()


def test_the_same_seed_gives_the_same_run_in_this_process_and_in_two_others():
    tasks = [(kind, seed) for seed in range(3) for kind in ("UCBAD", "Thompson", "RFE")]
    here = [one_run(task) for task in tasks]
    assert len({str(run[2]) for run in here}) == len(tasks)  # all different from one another
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=2, mp_context=spawn) as pool:
        assert list(pool.map(one_run, tasks)) == here
