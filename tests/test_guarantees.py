"""The guarantees: bounds that hold inside a learner, Lemmas 1 and 2, Theorems 1 and 2, Corollary 1.

What a theorem promises with probability 1 − δ is computed exactly where that can be done, counted
over seeds elsewhere; what has no guarantee (``KL()``) is measured and reported. Everywhere θ ≥ π.
"""

import math
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import counsel
from counsel.estimate.intervals import KL, Theory, interval
from counsel.learning.learn import learn
from counsel.learning.plans import SmallPlan
from counsel.learning.reward_free import RFE
from counsel.learning.thompson import Thompson
from counsel.learning.ucb_ad import UCBAD
from counsel.worlds import flappy_bird, generate_map, make

ROUNDING = 1e-9
"""Values here are sums of some hundred terms of order 1, so right to far less than this."""


# The bounds alone, exactly: n pieces of advice, k matches, every path.


def ends(bound, n, *, groups=1, horizon=1):
    """Return both ends for k = 0 … n matches."""
    k = np.arange(n + 1)
    return interval(bound, k, np.full(n + 1, n), groups=groups, horizon=horizon, episode=1)


def chance_outside(bound, theta, n, **sizes):
    """The exact probability that θ lies outside after n pieces of advice."""
    low, high = ends(bound, n, **sizes)
    chance = [math.comb(n, k) * theta**k * (1.0 - theta) ** (n - k) for k in range(n + 1)]
    return sum(p for p, a, b in zip(chance, low, high, strict=True) if not a <= theta <= b)


def chance_ever_outside(bound, thetas, longest, **sizes):
    """The same for: at some n up to ``longest``. ``alive`` follows (n, k) along every path."""
    alive, missed = np.ones((len(thetas), 1)), np.zeros(len(thetas))
    theta = thetas[:, None]
    for n in range(1, longest + 1):
        refused, matched = alive * (1.0 - theta), alive * theta
        alive = np.pad(refused, ((0, 0), (0, 1))) + np.pad(matched, ((0, 0), (1, 0)))
        low, high = ends(bound, n, **sizes)
        out = (theta < low) | (theta > high)
        missed += np.where(out, alive, 0.0).sum(axis=1)
        alive[out] = 0.0
    return missed


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("delta", [0.01, 0.1, 0.5, 0.9])
def test_after_none_one_or_two_pieces_of_advice_the_valid_bounds_miss_as_seldom_as_they_say(
    delta, groups
):
    share = delta / groups
    # By hand, KL: one match says θ ≥ δ/2G; two say θ² ≥ δ/3G; one of two says 4θ(1−θ) ≥ δ/3G.
    one, two, half = share / 2, math.sqrt(share / 3), (1 - math.sqrt(1 - share / 3)) / 2
    edges = np.array([one, two, half])
    near = np.concatenate((edges * (1 - 1e-9), edges * (1 + 1e-9)))
    grid = np.concatenate((np.linspace(0.0, 1.0, 198), [0.001, 0.999], near, 1.0 - near))
    theory = Theory(delta=delta, episodes=2)
    for theta in grid:
        for bound in (KL(delta=delta), theory):
            for n in (0, 1, 2):
                assert chance_outside(bound, theta, n, groups=groups) <= share
        kl, sides = KL(delta=delta), (theta, 1.0 - theta)
        by_hand = sum(x for x in sides if x < one)
        assert chance_outside(kl, theta, 1, groups=groups) == pytest.approx(by_hand)
        by_hand = sum(x**2 for x in sides if x < two)
        by_hand += sum(2 * x * (1 - x) for x in sides if x < half)
        assert chance_outside(kl, theta, 2, groups=groups) == pytest.approx(by_hand)


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("delta", [0.05, 0.5])
def test_valid_bounds_miss_at_any_count_up_to_400_with_exactly_computed_probability_below_delta(
    delta, groups, record_property
):
    ends_too = np.array([0.0, 0.001, 0.01, 0.99, 0.999, 1.0])
    thetas = np.concatenate((ends_too, np.linspace(0.02, 0.98, 33)))
    by_kl = chance_ever_outside(KL(delta=delta), thetas, 400, groups=groups)
    theory = Theory(delta=delta, episodes=200)
    by_theory = chance_ever_outside(theory, thetas, 400, groups=groups, horizon=2)
    record_property("most_missed_kl", float(by_kl.max()))
    record_property("most_missed_theory", float(by_theory.max()))
    assert (by_kl <= delta / groups).all()
    assert (by_theory <= delta / groups).all()
    # Nor is KL valid by saying nothing: at its worst θ it uses a fifth of what it may.
    assert by_kl.max() >= 0.2 * delta / groups


# Lemma 1's set, by a scan.


def in_the_set(theta, k, n, wide, narrow):
    """The three inequalities of Lemma 1's set as they should read, for each θ."""
    p = k / n
    hoeffding = np.abs(theta - p) <= 2 * np.sqrt(wide / n)
    spread, rest = np.inf, np.inf
    if n > 1:
        spread = np.sqrt(2 * p * (1 - p) * wide / n) + 7 * wide / (3 * (n - 1))
        rest = np.sqrt(2 * narrow / (n - 1))
    bernstein = np.abs(theta - p) <= spread
    deviation = np.sqrt(theta * (1 - theta)) >= np.sqrt(p * (1 - p)) - rest
    return hoeffding & bernstein & deviation


def scan(k, n, wide, narrow):
    """The least and the largest θ in the set: a grid, then halving beside its last members."""
    if n == 0:
        return 0.0, 1.0
    p, near = k / n, np.geomspace(1e-8, 1.0, 400)
    grid = np.unique(np.clip(np.concatenate((p - near, [p], p + near)), 0.0, 1.0))
    member = np.flatnonzero(in_the_set(grid, k, n, wide, narrow))
    assert (np.diff(member) == 1).all()  # the set is one interval
    found = []
    for last, step in ((member[0], -1), (member[-1], 1)):
        inside = float(grid[last])
        if 0 <= last + step < grid.size:
            beyond = float(grid[last + step])
            for _ in range(60):
                middle = (inside + beyond) / 2
                if in_the_set(np.float64(middle), k, n, wide, narrow):
                    inside = middle
                else:
                    beyond = middle
        found.append(inside)
    return found[0], found[1]


def test_the_interval_of_the_theory_is_the_set_of_lemma_1_found_by_a_scan():
    # Ends are found to 1e-16 by halving; 1e-9 leaves room where the third line is flat, near θ = ½.
    rng = np.random.default_rng(0)
    bound_by = np.zeros(2, dtype=int)
    for case in range(4000):
        n = case % 3 if case < 60 else int(10 ** rng.uniform(0.3, 7))
        k = int(rng.integers(n + 1))
        if case % 4 == 3:  # near the ends
            k = min(n, int(rng.integers(4)))
        G, T, H = (int(10 ** rng.uniform(0, most)) for most in (3, 6, 2))
        delta = float(rng.choice([0.01, 0.1, 0.5, rng.uniform(0.001, 0.999)]))
        union = G * T * H / delta
        wide, narrow = math.log(12 * union), math.log(union)
        low, high = interval(
            Theory(delta=delta, episodes=T),
            np.array([k, n - k]),
            np.array([n, n]),
            groups=G,
            horizon=H,
            episode=1,
        )
        least, most = scan(k, n, wide, narrow)
        assert low[0] == pytest.approx(least, abs=1e-9)
        assert high[0] == pytest.approx(most, abs=1e-9)
        assert (low[1], high[1]) == pytest.approx((1 - most, 1 - least), abs=1e-9)
        if n > 1 and most < 1.0:
            third = in_the_set(np.float64(min(most + 1e-6, 1.0)), k, n, 1e9, narrow)
            bound_by[int(third)] += 1
    # Both kinds of line decide: the third (not met just beyond the end) and the first two.
    assert (bound_by > 100).all()


def test_the_third_line_is_one_sided_as_in_the_bound_c_of_the_paper():
    # The set is printed with |√θ(1−θ) − √p(1−p)| ≤ …, and C is said to give its largest element.
    # Not so where p is near 0 or 1: after refusals only, the left-out side would bound θ(1−θ) by
    # 2 log(…)/(n − 1) and say more than C. Nor is it proved: √p(1−p) is below the deviation that
    # Maurer and Pontil bound (with n − 1), which the other side does not mind.
    n, union = 1000, 1000 / 0.1
    high = ends(Theory(delta=0.1, episodes=1000), n)[1][0]
    assert in_the_set(high, 0, n, math.log(12 * union), math.log(union))
    assert math.sqrt(high * (1 - high)) > 1.1 * math.sqrt(2 * math.log(union) / (n - 1))


# Lemma 2: from adherence to transitions.


def transitions(own_a, P_at, a, theta):
    """p^M(t | a) of one state from equation 1, with the two terms of the paper: ζ₁ θ + ζ₂."""
    others = np.arange(len(own_a)) != a
    zeta2_t = own_a[others] @ P_at[others] / (1.0 - own_a[a])
    zeta1_t = P_at[a] - zeta2_t
    return zeta1_t * theta + zeta2_t, zeta1_t, zeta2_t


@st.composite
def advised_states(draw):
    """One state: a person, a world, an advice, and counts of how often it was matched."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    A, S = draw(st.integers(2, 4)), draw(st.integers(2, 4))
    own_a = rng.dirichlet(np.full(A, draw(st.sampled_from([0.2, 1.0]))))
    P_at = rng.dirichlet(np.full(S, draw(st.sampled_from([0.05, 1.0]))), size=A)
    n = draw(st.one_of(st.integers(2, 50), st.integers(51, 10**6)))
    k = draw(st.integers(0, n))
    a = int(own_a.argmin())  # so that the person does not take it for certain
    return own_a, P_at, a, k, n, draw(st.floats(0.0, 1.0)), draw(st.sampled_from([0.05, 0.9]))


@settings(max_examples=500, derandomize=True, deadline=None)
@given(advised_states())
def test_lemma_2_bounds_the_error_of_every_transition(drawn):
    """Lemma 2 as it should read, for the optimistic θ̄ (upper end) and any θ in Lemma 1's set.

    |p^M − p̄^M| = |ζ₁| |θ − θ̄| ≤ √(8 p̄ (1 − p̄) L / n) + 26 L / (3 (n − 1)), p̄ = ζ₁ θ̄ + ζ₂,
    by way of |ζ₁| θ̄ (1 − θ̄) ≤ p̄ (1 − p̄), which is right. As printed the lemma is not: between
    the two sides it puts |ζ₁ (θ − θ̂)|, which may be the smallest of the three (see below).
    """
    own_a, P_at, a, k, n, where, delta = drawn
    T, H, A = 1000, 1, len(own_a)
    L = math.log(12 * A * T * H / delta)
    low, high = interval(
        Theory(delta=delta, episodes=T),
        np.array([k]),
        np.array([n]),
        groups=A,
        horizon=H,
        episode=1,
    )
    optimistic = float(high[0])
    theta = float(low[0] + where * (high[0] - low[0]))
    p_t, zeta1_t, zeta2_t = transitions(own_a, P_at, a, theta)
    pbar_t, _, _ = transitions(own_a, P_at, a, optimistic)
    assert (zeta1_t + zeta2_t <= 1.0 + 1e-12).all()  # it is p(t | s, a): what the proof needs
    # 1e-12: rounding of a handful of numbers in [0, 1].
    variance = pbar_t * (1.0 - pbar_t)
    for any_theta, any_t in ((theta, p_t), (optimistic, pbar_t)):
        least = np.abs(zeta1_t) * any_theta * (1.0 - any_theta)
        assert (least <= any_t * (1.0 - any_t) + 1e-12).all()
    np.testing.assert_allclose(
        np.abs(p_t - pbar_t), np.abs(zeta1_t) * (optimistic - theta), atol=1e-12
    )
    most = np.sqrt(8.0 * np.maximum(variance, 0.0) * L / n) + 26.0 * L / (3.0 * (n - 1.0))
    assert (np.abs(p_t - pbar_t) <= most + 1e-12).all()
    # Lemma C.5 of Dann and Brunskill, on which it rests.
    spread = math.sqrt(8.0 * optimistic * (1.0 - optimistic) * L / n)
    assert optimistic - theta <= spread + 26.0 * L / (3.0 * (n - 1.0)) + 1e-12


def test_the_transitions_of_lemma_2_are_those_of_the_machine():
    rng = np.random.default_rng(5)
    own, P = rng.dirichlet(np.ones(3), size=2), rng.dirichlet(np.ones(2), size=(2, 3))
    theta = rng.uniform(own, 1.0)
    mdp = counsel.MDP(P, np.zeros((2, 3)), horizon=1)
    machine = counsel.AdviceProblem(mdp, counsel.Human(own, theta)).machine()
    rows = machine.kernel.to_sparse().toarray().reshape(2, 4, 2)
    for s in range(2):
        for a in range(3):
            p_t, _, _ = transitions(own[s], P[s], a, theta[s, a])
            np.testing.assert_allclose(rows[s, a], p_t, atol=1e-15)


def test_what_is_printed_of_lemma_2_has_counterexamples():
    # 1. |p^M − p̄^M| ≤ |ζ₁ (θ − θ̂)|: where θ̂ happens to be θ, only the left side is above 0.
    own_a, P_at, theta = np.array([1.0, 0.0]), np.eye(2), 0.5
    _, high = interval(
        Theory(delta=0.1, episodes=10),
        np.array([50]),
        np.array([100]),
        groups=1,
        horizon=1,
        episode=1,
    )
    p_t, zeta1_t, _ = transitions(own_a, P_at, 1, theta)
    pbar_t, _, _ = transitions(own_a, P_at, 1, float(high[0]))
    assert (np.abs(zeta1_t * (theta - 50 / 100)) == 0.0).all()
    assert (np.abs(p_t - pbar_t) > 0.2).all()
    # 2. The quadratic the proof gets to ends in ζ₂² − ζ₁; it should end in ζ₂² − ζ₂.
    zeta1, zeta2, bar = 0.1, 0.9, 1.0
    assert (zeta1**2 - zeta1) * bar**2 + 2 * zeta1 * zeta2 * bar + zeta2**2 - zeta1 > 0.7
    right = (zeta1**2 - zeta1) * bar**2 + 2 * zeta1 * zeta2 * bar + zeta2**2 - zeta2
    assert right == pytest.approx(0.0, abs=1e-15)
    # 3. ζ₁, ζ₂ ≤ 1, which the proof calls on, is not enough: its discriminant is
    # 4 ζ₁ ζ₂ (ζ₁ + ζ₂ − 1), and it is ζ₁ + ζ₂ = p(t | s, a) ≤ 1 that makes it none too large.
    zeta1, zeta2, bar = 0.9, 0.9, 0.5
    p = zeta1 * bar + zeta2
    assert zeta1 * bar * (1 - bar) > p * (1 - p)


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
    bin_lsa = learner.known.groups.bin_lsa
    says, theta = bin_lsa >= 0, np.empty(learner.known.n_bins)
    theta[bin_lsa[says]] = problem.adherence[: len(bin_lsa)][says]
    return theta


def promise_of(learner):
    """The value that the learner's plan promises."""
    plan = learner.known.plan
    if isinstance(plan, SmallPlan):
        return float(plan.world.start @ plan.V_c2[:-1, 0])
    return float(learner.setting.mdp.start @ plan.V_hs[0])


def follow(learner, problem, *, updates, every, seed):
    """Run; before each block note what was counted, bounded and promised."""
    simulator, rng = counsel.Simulator(problem), np.random.default_rng(seed)
    matched, given_, uppers, promises = [], [], [], []
    for _ in range(updates):
        policy = learner.policy
        matched.append(learner.matched)
        given_.append(learner.given)
        uppers.append(learner.known.belief.upper.copy())
        promises.append(promise_of(learner))
        learner.update(simulator.play(policy, episodes=every, rng=rng))
    return np.array(matched), np.array(given_), np.array(uppers), np.array(promises)


def covered(learner, problem, bound, matched, given_):
    """Whether the true θ of every group lies in its interval, at each update."""
    sizes = {"groups": learner.known.n_bins, "horizon": problem.horizon}
    low, high = interval(bound, matched, given_, **sizes, episode=1)
    truth = truth_of(learner, problem)
    return ((low <= truth) & (truth <= high)).all(axis=1), high


DELTA = 0.1
CASES = {
    "extremes": (extremes, {}, (150, 60, 1)),
    "extremes at a penalty": (extremes, {"penalty": 0.2}, (80, 60, 1)),
    "pooled": (pooled, {}, (150, 60, 1)),
    "one lift": (one_lift, {}, (150, 60, 1)),
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
    # Were each run to fail with δ exactly, four standard errors more is what chance explains.
    slack = 4 * math.sqrt(DELTA * (1 - DELTA) / runs)
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


@pytest.mark.parametrize("every", [1, 7])
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
    problem = flappy_bird(map=grid, human="safe", adherence=[0.6, 0.75, 0.9])
    for seed in range(6):
        gaps = value_gaps(problem, episodes=100_000, seed=seed)
        wrong = gaps > 0.1
        record_property(f"not_optimal_seed_{seed}", [int(wrong.sum()), int(wrong[50_000:].sum())])
        assert 0 < wrong.sum() <= 1000
        assert wrong[50_000:].sum() <= 40
        assert gaps[50_000:].mean() <= 1e-4


# Theorem 2 and Corollary 1: when exploration may stop, and what it is then good for.


def slow_uncertainty(learner, *, epsilon, delta, scale):
    """W straight from equation 4 with Lemma 5's φ; a start that is drawn is one row more.

    The lemma has ε ≤ 1; a larger one counts as 1 in φ.
    """
    n_hsb, starts = learner._visits, learner._starts
    H, S, B = n_hsb.shape
    then = np.zeros(H * S * B * S)
    then[learner._key] = learner._times
    then = then.reshape(H, S, B, S)

    def row(n, next_s, most_s):
        phi = 6 * math.log(4 * math.e * S * B * H / (min(1.0, epsilon) * delta))
        phi += S * math.log(8 * math.e * (n + 1))
        ahead = (1 + 1 / H) * (next_s / n) @ most_s
        return float(min(H, scale * 16 * H * H * phi / n + ahead))

    most = np.zeros(S)
    for h in reversed(range(H)):
        W = np.full((S, B), float(H))
        for s, b in zip(*np.nonzero(n_hsb[h]), strict=True):
            W[s, b] = row(int(n_hsb[h, s, b]), then[h, s, b], most)
        most = W.max(axis=1)
    if np.count_nonzero(starts) == 1:  # one and the same state in every episode
        return float(most[starts > 0][0])
    return row(int(starts.sum()), starts, most)


def explored(problem, *, block, seed, epsilon, most_penalty, scale=1.0):
    """Explore in blocks until the rule fires; check at each that it should, or should not.

    Rewards lie in [0, 1], so the threshold is ε / 2(1 + β). The first block is small: there W is
    still at its cap.
    """
    learner = RFE(
        problem.shape,
        rng=np.random.default_rng(seed),
        delta=DELTA,
        epsilon=epsilon,
        most_penalty=most_penalty,
        scale=scale,
    )
    simulator, rng = counsel.Simulator(problem), np.random.default_rng(seed + 1000)
    for size in [30] + 400 * [block]:
        assert not learner.done
        learner.explore(simulator, episodes=size, rng=rng)
        W = slow_uncertainty(learner, epsilon=epsilon, delta=DELTA, scale=scale)
        assert learner.uncertainty == pytest.approx(W, rel=1e-9)
        if W + 4 * math.e * math.sqrt(W) <= epsilon / (2 * (1 + most_penalty)):
            assert learner.done
            return learner
    pytest.fail(f"not done after {learner.episode} episodes")


def shortfalls(learner, problem, penalties, budgets):
    """What plans for penalties and budgets fall short, and by how much budgets are exceeded."""
    by_penalty, by_budget, over = [], [], []
    for penalty in penalties:
        worth = counsel.evaluate(problem, learner.plan(penalty=penalty).policy)
        best = counsel.solve(problem, penalty=penalty).penalised_value
        by_penalty.append(best - (worth.value - penalty * worth.advice_count))
    for budget in budgets:
        worth = counsel.evaluate(problem, learner.plan(budget=budget).policy)
        by_budget.append(counsel.solve(problem, budget=budget).value - worth.value)
        over.append(worth.advice_count - budget)
    return max(by_penalty), max(by_budget), max(over)


def silence(problem):
    advice = np.full((problem.horizon, problem.n_states), problem.defer)
    return counsel.evaluate(problem, counsel.Policy(advice, n_actions=problem.n_actions)).value


def one_step(seed):
    """One step, one or two states, two or three actions; alone the person earns nothing."""
    rng = np.random.default_rng(seed)
    S, A = (2, 2) if seed == 9 else (1, 3 if seed % 3 == 2 else 2)
    reward = np.sort(rng.random((S, A)), axis=1)
    reward[:, 0], reward[:, -1] = 0.0, 1.0
    own, theta = np.eye(A)[np.zeros(S, int)], rng.random((S, A))
    theta[:, 0], theta[:, -1] = 1.0, rng.uniform(0.93, 1.0, S)
    start = np.full(S, 1.0 / S)
    mdp = counsel.MDP(rng.dirichlet(np.ones(S), size=(S, A)), reward, horizon=1, start=start)
    return counsel.AdviceProblem(mdp, counsel.Human(own, theta))


def test_at_horizon_one_the_true_constants_stop_and_the_family_is_epsilon_optimal(record_property):
    # ε = 0.9 excludes something: silence falls short by 0.93 and more.
    epsilon, beta, stops, worst = 0.9, 0.25, [], np.full(3, -np.inf)
    for seed in range(30):
        problem = one_step(seed)
        learner = explored(problem, block=250_000, seed=seed, epsilon=epsilon, most_penalty=beta)
        assert counsel.solve(problem).value - silence(problem) > epsilon
        found = shortfalls(learner, problem, np.linspace(0.0, beta, 6), (0.1, 0.5, 0.9))
        stops.append(learner.episode)
        worst = np.maximum(worst, found)
    record_property("episodes", [min(stops), max(stops)])
    record_property("worst", [float(x) for x in worst])
    # Theorem 2, then Corollary 1: 2 ε below the best, ε over the budget. None of 30 runs fails.
    assert worst[0] <= epsilon
    assert worst[1] <= 2 * epsilon
    assert worst[2] <= epsilon
    # The constants are generous: with a million visits of each advice estimates are off by some
    # thousandths (four standard errors are 0.002), and so is what a plan loses by them.
    assert (worst <= 0.01).all()


def two_steps():
    """Two steps, two states, two actions; alone the person earns nothing, advised up to 1.8."""
    P = [[[0.8, 0.2], [0.3, 0.7]], [[0.5, 0.5], [0.9, 0.1]]]
    mdp = counsel.MDP(P, [[0.0, 1.0], [0.0, 0.9]], horizon=2)
    return counsel.AdviceProblem(mdp, counsel.Human([[1.0, 0.0]] * 2, [[1.0, 0.9], [1.0, 0.95]]))


def test_at_horizon_two_the_true_constants_stop_and_the_family_is_epsilon_optimal(record_property):
    # Once, with a small penalty; 1.5 of the 1.76 there are to be gained.
    problem, epsilon, beta = two_steps(), 1.5, 0.1
    assert counsel.solve(problem).value - silence(problem) > epsilon
    learner = explored(problem, block=1_000_000, seed=0, epsilon=epsilon, most_penalty=beta)
    worst = shortfalls(learner, problem, (0.0, 0.05, 0.1), (0.25, 1.0, 1.75))
    record_property("episodes", learner.episode)
    record_property("worst", [float(x) for x in worst])
    assert worst[0] <= epsilon
    assert worst[1] <= 2 * epsilon
    assert worst[2] <= epsilon
    assert max(worst) <= 0.01  # as above: millions of visits


def several_steps(seed):
    """Two or three steps, two or three states, two actions; rewards reach from 0 to 1."""
    rng = np.random.default_rng(seed)
    H, S, A = 2 + seed % 2, 2 + seed % 3 // 2, 2
    own = rng.dirichlet(np.ones(A), size=S)
    theta = rng.uniform(own, 1.0)
    reward = rng.random((S, A))
    reward[0] = 0.0, 1.0
    mdp = counsel.MDP(rng.dirichlet(np.ones(S), size=(S, A)), reward, horizon=H)
    return counsel.AdviceProblem(mdp, counsel.Human(own, theta))


def test_with_a_declared_scale_longer_problems_stop_and_the_family_is_epsilon_optimal(
    record_property,
):
    # The bonus is multiplied by a declared 1e-4, which voids δ and brings the visits of each advice
    # down to tens of thousands. Of what there is to gain, ε is a part: in most of these problems
    # silence is not ε-optimal, as is counted.
    epsilon, beta, stops, worst, silent = 0.25, 0.5, [], np.full(3, -np.inf), 0
    for seed in range(8):
        problem = several_steps(seed)
        learner = explored(
            problem,
            block=50_000,
            seed=seed,
            epsilon=epsilon,
            most_penalty=beta,
            scale=1e-4,
        )
        H = problem.horizon
        found = shortfalls(learner, problem, np.linspace(0.0, beta, 6), np.arange(1, 8) * H / 8)
        stops.append(learner.episode)
        worst = np.maximum(worst, found)
        silent += counsel.solve(problem).value - silence(problem) <= epsilon
    record_property("episodes", [min(stops), max(stops)])
    record_property("worst", [float(x) for x in worst])
    record_property("silence_will_do", int(silent))
    assert worst[0] <= epsilon
    assert worst[1] <= 2 * epsilon
    assert worst[2] <= epsilon
    assert silent <= 3
    assert (worst <= 0.01).all()  # measured: 0.004 at most


# Rewards in other units.


def in_units(problem, factor, shift):
    """The same problem with every reward r paid as factor · r + shift."""
    mdp = problem.mdp
    rewards = factor * mdp.reward + shift
    other = counsel.MDP(mdp.kernel, rewards, horizon=mdp.horizon, start=mdp.start)
    return counsel.AdviceProblem(other, problem.human)


def stopped(problem, factor, *, block, scale, most=400):
    """Explore until the rule fires, with ε and penalties in the problem's own units."""
    learner = RFE(
        problem.shape,
        rng=np.random.default_rng(1),
        epsilon=0.9 * factor,
        delta=DELTA,
        most_penalty=0.25 * factor,
        scale=scale,
    )
    simulator, rng = counsel.Simulator(problem), np.random.default_rng(2)
    while not learner.done and learner.episode < most * block:
        learner.explore(simulator, episodes=block, rng=rng)
    assert learner.done
    return learner


def check_units(problem, factor, shift, *, block, scale):
    one = stopped(problem, 1.0, block=block, scale=scale)
    other = stopped(in_units(problem, factor, shift), factor, block=block, scale=scale)
    assert other.episode == one.episode
    np.testing.assert_array_equal(other._visits, one._visits)
    np.testing.assert_array_equal(other.policy.advice, one.policy.advice)
    for penalty in (0.0, 0.1, 0.25):
        plans = (one.plan(penalty=penalty), other.plan(penalty=penalty * factor))
        np.testing.assert_array_equal(plans[0].policy.advice, plans[1].policy.advice)
    H = problem.horizon
    shares = [each.plan(budget=0.4 * H).policy.probabilities() for each in (one, other)]
    np.testing.assert_allclose(*shares, atol=ROUNDING)


PROBLEMS_IN_UNITS = [
    pytest.param(one_step(0), {"block": 50_000, "scale": 1.0}, id="one step"),
    pytest.param(several_steps(1), {"block": 10_000, "scale": 0.002}, id="three steps"),
]


@pytest.mark.parametrize(("problem", "how"), PROBLEMS_IN_UNITS)
@pytest.mark.parametrize(
    ("factor", "shift"), [(1.0, -37.0), (1.0, 0.25), (1000.0, -37.0), (1e6, 0.0), (0.01, 0.0)]
)
def test_rewards_in_other_units_stop_after_the_same_episodes_with_the_same_plans(
    problem, how, factor, shift
):
    # φ once took ε as it was given, in units of reward. Paid in [0, 10⁴] with ε = 4,000, RFE
    # stopped after its first six episodes, and 54 of 100 runs were not ε-optimal.
    check_units(problem, factor, shift, **how)


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


def test_the_same_seed_gives_the_same_run_in_this_process_and_in_one_or_two_others():
    tasks = [(kind, seed) for seed in range(3) for kind in ("UCBAD", "Thompson", "RFE")]
    here = [one_run(task) for task in tasks]
    assert len({str(run[2]) for run in here}) == len(tasks)  # all different from one another
    spawn = multiprocessing.get_context("spawn")
    for workers in (1, 2):
        with ProcessPoolExecutor(max_workers=workers, mp_context=spawn) as pool:
            assert list(pool.map(one_run, tasks)) == here
