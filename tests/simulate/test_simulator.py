"""The simulator: its frequencies against the law, ``evaluate`` and every trajectory counted out.

Seeds are fixed, so a test that passed once passes always; what has to be justified is how far a
frequency may lie from its probability. One number may miss by 4 standard errors, which a right
simulator does with probability 6.3e-5. Where many are compared, that probability is shared among
them (Bonferroni), and where a count is binomial its exact tail takes the place of the bell curve.
So each check below wrongly fails with probability at most ``SLIP``, however much it compares. On
top of single cells, χ² over all of them finds a bias too small to be seen in any one; its lower
tail finds chance that is too regular.
"""

import pickle
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import ndtr

import counsel
from counsel import MDP, AdviceProblem, CounselError, Human, Mixture, Policy, Simulator
from counsel.simulate import simulator as module
from counsel.simulate._episode_kernels import BLOCK, fill_alias
from counsel.simulate.simulator import NUMBERS
from counsel.worlds import make
from tests.support import examples, oracles
from tests.support.each import each, each_seed
from tests.support.later import Later
from tests.support.problems import adapt, draw
from tests.support.strategies import random_policy

stats = Later("scipy.stats")

SLIP = 2 * ndtr(-4.0)
"""The probability of more than 4 standard errors: 6.3e-5."""

RARE = 1e-6
"""The probability with which a χ² may wrongly fail."""

CAR = pytest.param("car-driving/myopic", marks=pytest.mark.slow)
WORLDS = [
    "flappy-bird/greedy",
    "flappy-bird/safe",
    "flappy-bird-budget/greedy",
    CAR,
    "night-shift",
]
PATCHWORKS = range(32)
COLUMNS = ("state", "advice", "action", "reward", "next_state")


# --------------------------------------------------------------------------- how far is too far


def check_binomial(count, trials, chance):
    """Each count is binomial: the worst exact tail, times how many were compared, is no slip."""
    count, trials, chance = (np.ravel(x) for x in np.broadcast_arrays(count, trials, chance))
    chance = np.clip(chance, 0.0, 1.0)
    assert (count[chance == 0.0] == 0).all(), "what cannot happen did"
    assert (count[chance == 1.0] == trials[chance == 1.0]).all(), "what must happen did not"
    open_ = (trials > 0) & (chance > 0.0) & (chance < 1.0)
    if not open_.any():
        return 0
    count, trials, chance = count[open_], trials[open_], chance[open_]
    below, above = stats.binom.cdf(count, trials, chance), stats.binom.sf(count - 1, trials, chance)
    tail = 2 * np.minimum(below, above)
    worst = tail.argmin()
    assert tail[worst] * tail.size >= SLIP, (
        f"{count[worst]} of {trials[worst]} where {trials[worst] * chance[worst]:.1f} were due"
    )
    return tail.size


def check_chi_square(count_xk, chance_xk):
    """Rows of counts are multinomial: χ² summed over rows is neither too large nor too small.

    Cells with fewer than 5 due are merged with the largest of their row; a row of fewer than 20
    is left out. Neither choice looks at where the counts fell. Return the degrees of freedom.
    """
    count_xk = count_xk.reshape(-1, count_xk.shape[-1])
    chance_xk = chance_xk.reshape(count_xk.shape)
    total, freedom = 0.0, 0
    for count_k, chance_k in zip(count_xk, chance_xk, strict=True):
        n = count_k.sum()
        if n < 20:
            continue
        due_k = n * chance_k
        rest = due_k < 5.0
        rest[due_k.argmax()] = True
        count_k = np.append(count_k[~rest], count_k[rest].sum())
        due_k = np.append(due_k[~rest], due_k[rest].sum())
        total += ((count_k - due_k) ** 2 / due_k).sum()
        freedom += count_k.size - 1
    if freedom:
        assert stats.chi2.sf(total, freedom) >= RARE, f"χ² is {total:.1f} where {freedom} is due"
        assert stats.chi2.cdf(total, freedom) >= RARE, f"χ² is {total:.1f} where {freedom} is due"
    return freedom


def check_means(mean, error, expected):
    """Means lie within 4 standard errors, or as many more as there are of them."""
    mean, error, expected = (np.ravel(x) for x in np.broadcast_arrays(mean, error, expected))
    limit = stats.norm.isf(SLIP / 2 / mean.size)
    off = np.abs(mean - expected) - limit * error - 1e-9 * (1.0 + np.abs(expected))
    worst = off.argmax()
    assert off[worst] <= 0.0, (
        f"{mean[worst]:.6g} ± {error[worst]:.2g}, but {expected[worst]:.6g} is due"
    )


# ------------------------------------------------------------------------------------- problems


@cache
def patchwork(seed):
    """Draw a problem whose parts change with the step or never do, one bit of the seed for each.

    Across seeds: people who are certain, who are repelled, who are certain yet have θ < 1, who are
    given by their lift; rows without chance; masks.
    """
    rng = np.random.default_rng([seed, 7])
    S, A, H = (int(n) for n in rng.integers((2, 2, 2), (6, 5, 6)))
    dense = oracles.random_problem(
        rng, S, A, H, deterministic_people=seed % 3 == 0, repel=seed % 5 < 2
    )
    P, r, pi, theta, mask = (
        table[0] if seed >> bit & 1 else table for bit, table in enumerate(dense[:5])
    )
    mask = mask & (rng.random(mask.shape) < 0.7)
    mask |= (pi > 0.0).any(axis=0) if mask.ndim < pi.ndim else pi > 0.0
    human = Human(pi, lift=rng.random(theta.shape)) if seed % 7 == 6 else Human(pi, theta)
    mdp = MDP(P, r, horizon=H, start=dense.start_s, allowed=mask)
    return AdviceProblem(mdp, human)


@cache
def world(name):
    """Return a named world, or a drawn problem by its number."""
    return make(name) if isinstance(name, str) else patchwork(name)


@cache
def ends(seed):
    """Draw a problem with ends: a state that always is one and one that becomes one.

    The last state is over at every step and some start there; the one before is over from step 2
    on (at step 1 it stays but pays); so is state 0 at the last step, unless it moves there.
    """
    rng = np.random.default_rng([seed, 8])
    S, A, H = 5, 3, 5
    dense = oracles.random_problem(rng, S, A, H, masks=seed % 2 == 1)
    P, r = dense.P_hsat.copy(), dense.r_hsa.copy()
    for s, since in ((S - 1, 0), (S - 2, 1), (0, H - 1)):
        P[since:, s] = dense.allowed_hsa[since:, s, :, None] * np.eye(S)[s]
        r[since:, s] = 0.0
    r[1, S - 2] = 1.0 * dense.allowed_hsa[1, S - 2]
    start = 0.8 * dense.start_s + 0.2 * np.eye(S)[S - 1]
    return dense._replace(P_hsat=P, r_hsa=r, start_s=start)


def everything(problem, seed=0):
    """A policy that gives every allowed advice, and silence, at least now and then."""
    rng = np.random.default_rng([seed, 9])
    weight_hsb = oracles.permitted(problem.mdp.allowed) * 1.0
    weight_hsb *= 0.2 + rng.random(weight_hsb.shape)
    return Policy.from_probabilities(weight_hsb / weight_hsb.sum(axis=-1, keepdims=True))


def drawn_hard(problem, budget, seed=0):
    """A policy of chance under a hard budget."""
    rng = np.random.default_rng([seed, 10])
    silent = np.full((problem.horizon, problem.n_states), problem.defer)
    tables = [random_policy(rng, problem.mdp.allowed).argmax(axis=-1) for _ in range(budget)]
    return Policy(np.stack([silent, *tables]), n_actions=problem.n_actions)


def never(problem):
    return Policy.never(
        horizon=problem.horizon, n_states=problem.n_states, n_actions=problem.n_actions
    )


@cache
def policies(name):
    """One of each kind: a plan, random advice where it is heard, a hard budget, a mixture."""
    problem = world(name)
    plan = counsel.solve(problem).policy
    table_hsb = plan.probabilities()
    often = counsel.evaluate(problem, plan).occupancy > 1e-3
    rng = np.random.default_rng(11)
    weight_xb = oracles.permitted(problem.mdp.allowed)[often] * (
        0.2 + rng.random((int(often.sum()), problem.defer + 1))
    )
    table_hsb[often] = weight_xb / weight_xb.sum(axis=-1, keepdims=True)
    chatty = Policy.from_probabilities(table_hsb)
    hard = counsel.solve(problem, budget=2, hard=True).policy
    mixture = Mixture((chatty, hard, plan), (0.25, 0.45, 0.3))
    return {"plan": plan, "random": chatty, "hard": hard, "mixture": mixture}


# -------------------------------------------------------------------------- 1. against the law


def law_table(problem):
    """P(action | step, state, advice) as [h, s, b, a] (equation 1)."""
    H, S, A = problem.horizon, problem.n_states, problem.n_actions
    law = [problem.law(h, s, b) for h, s, b in np.ndindex(H, S, A + 1)]
    return np.array(law).reshape(H, S, A + 1, A)


def test_the_drawn_problems_are_of_every_kind():
    drawn = [patchwork(seed) for seed in PATCHWORKS]
    spared = [(p.lift == 0.0) & (p.policy == 1.0) & (p.adherence < 1.0) for p in drawn]
    assert sum(table.any() for table in spared) >= 3  # certain, θ < 1, lift 0
    assert sum((p.lift < 0.0).any() for p in drawn) >= 3  # reactance
    assert sum((p.policy.max(axis=-1) == 1.0).all() for p in drawn) >= 3  # certain everywhere
    assert sum(p.human.shares_lift for p in drawn) >= 3
    assert sum(not p.mdp.allowed.all() for p in drawn) >= 16
    for part in ("kernel.row", "reward", "allowed"):  # with layers, and without
        tables = [p.mdp.kernel.row if "." in part else getattr(p.mdp, part) for p in drawn]
        changing = sum(len(t) > 1 and t.strides[0] > 0 for t in tables)
        assert 8 <= changing <= 24, part
    for part in ("policy", "adherence"):
        changing = sum(len(getattr(p.human, part)) > 1 for p in drawn)
        assert 8 <= changing <= 24, part


@each_seed(PATCHWORKS)
def test_people_start_hear_and_act_as_the_law_says(seed):
    problem = patchwork(seed)
    policy, law = everything(problem, seed), law_table(problem)
    n = 100_000
    counts = Simulator(problem).count(policy, episodes=n, rng=np.random.default_rng(seed))
    heard_hsb = counts.decisions.sum(axis=-1)
    check_binomial(counts.visits[0], n, problem.mdp.start)
    check_binomial(heard_hsb, counts.visits[..., None], policy.probabilities())
    compared = check_binomial(counts.decisions, heard_hsb[..., None], law)
    check_chi_square(counts.visits[0], problem.mdp.start)
    check_chi_square(heard_hsb, policy.probabilities())
    check_chi_square(counts.decisions, law)
    # Nothing is vacuous: unless the person is certain, most of what can differ was compared.
    can_be = (counts.visits > 0)[..., None, None] & (law > 0.0) & (law < 1.0)
    can_be &= policy.probabilities()[..., None] > 0.0
    assert compared >= 0.9 * can_be.sum()


@each_seed([*range(1, 25), 30, 45])
def test_worlds_move_as_the_kernel_says(seed):
    dense = draw(seed, most=(5, 4, 4))
    problem = adapt(dense)
    policy = everything(problem, seed)
    episodes = Simulator(problem).play(policy, episodes=60_000, rng=np.random.default_rng(seed))
    moves = np.zeros(dense.P_hsat.shape, dtype=np.int64)
    np.add.at(moves, (episodes.step, episodes.state, episodes.action, episodes.next_state), 1)
    check_binomial(moves, moves.sum(axis=-1, keepdims=True), dense.P_hsat)
    check_chi_square(moves, dense.P_hsat)
    # The same rows hold the person to the law, this time the oracle's.
    H, S, A = dense.r_hsa.shape
    acts = np.zeros((H, S, A + 1, A), dtype=np.int64)
    np.add.at(acts, (episodes.step, episodes.state, episodes.advice, episodes.action), 1)
    law = [
        oracles.law(dense.pi_hsa[h, s], dense.theta_hsa[h, s], b)
        for h, s, b in np.ndindex(H, S, A + 1)
    ]
    check_binomial(acts, acts.sum(axis=-1, keepdims=True), np.reshape(law, acts.shape))
    # And every reward is that of its decision.
    here = (episodes.step, episodes.state, episodes.action)
    assert (episodes.reward == dense.r_hsa[here]).all()


@pytest.mark.parametrize("name", WORLDS)
def test_the_moves_of_named_worlds_are_those_of_their_kernel(name):
    problem = world(name)
    episodes = Simulator(problem).play(
        policies(name)["random"], episodes=30_000, rng=np.random.default_rng(3)
    )
    S, A = problem.n_states, problem.n_actions
    pair = episodes.state.astype(np.int64) * A + episodes.action  # named worlds never change
    moves = sp.csr_matrix((np.ones(pair.size), (pair, episodes.next_state)), shape=(S * A, S))
    taken = np.asarray(moves.sum(axis=1))[:, 0]
    due = problem.mdp.kernel.to_sparse()
    assert moves.multiply(due > 0).sum() == pair.size, "what cannot happen did"
    rows = np.repeat(np.arange(S * A), np.diff(due.indptr))
    seen = taken[rows] > 0
    at = (rows[seen], due.indices[seen])
    check_binomial(np.asarray(moves[at])[0].astype(np.int64), taken[at[0]], due.data[seen])


# ----------------------------------------------------------------------- 2. against ``evaluate``


def check_evaluation(problem, policy, counts):
    """Hold counts against what the policy is worth."""
    n, due = len(counts), counsel.evaluate(problem, policy)
    spoken_hsa = counts.decisions[:, :, :-1].sum(axis=-1)
    check_means(counts.rewards.mean(), counts.rewards.std() / n**0.5, due.value)
    # Where all said the same, the next one may still say one piece more or less.
    said = np.hypot(counts.pieces.std() / n**0.5, 1.0 / n)
    check_means(counts.pieces.mean(), said, due.advice_count)
    check_binomial(counts.visits, n, due.occupancy)
    check_binomial(spoken_hsa.sum(axis=(1, 2)), n, due.advice_rate)
    acted_hsa = counts.decisions.sum(axis=2)
    first_h = np.einsum("hsa,hsa->h", acted_hsa, problem.mdp.reward) / n
    second_h = np.einsum("hsa,hsa->h", acted_hsa, problem.mdp.reward**2) / n
    error_h = np.sqrt(np.maximum(second_h - first_h**2, 0.0) / n)
    check_means(first_h, error_h, due.reward)
    # Pieces of (s, a) are a sum over steps; its deviation is at most the sum of theirs. With 100
    # due the bell curve holds; pairs with fewer are in the advice rate of each step above.
    assert not spoken_hsa[:, due.pieces == 0.0].any(), "what is never said was"
    often = n * due.pieces >= 100.0
    if often.any():
        rate_hx = spoken_hsa[:, often] / n
        error_x = np.sqrt(rate_hx * (1.0 - rate_hx)).sum(axis=0) / n**0.5
        check_means(rate_hx.sum(axis=0), error_x, due.pieces[often])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plan", "random", "hard", "mixture"])
@pytest.mark.parametrize("name", WORLDS)
def test_named_worlds_bring_what_evaluate_says(name, kind):
    problem, policy = world(name), policies(name)[kind]
    counts = Simulator(problem).count(policy, episodes=200_000, rng=np.random.default_rng(1))
    check_evaluation(problem, policy, counts)
    if kind == "hard":
        assert counts.pieces.max() == 2


@pytest.mark.slow
@each_seed(PATCHWORKS)
def test_drawn_problems_bring_what_evaluate_says(seed):
    problem = patchwork(seed)
    random = everything(problem, seed)
    hard, generous = drawn_hard(problem, 2, seed), drawn_hard(problem, 7, seed)
    plan = counsel.solve(problem).policy
    other = everything(problem, seed + 1_000)  # so that two parts have random cells
    mixture = Mixture((hard, random, generous, plan, other), (0.1, 0.25, 0.2, 0.15, 0.3))
    simulator, rng = Simulator(problem), np.random.default_rng(seed)
    for policy in (plan, random, hard, generous, mixture):
        counts = simulator.count(policy, episodes=50_000, rng=rng)
        check_evaluation(problem, policy, counts)
        if isinstance(policy, Policy) and policy.budget is not None:
            assert counts.pieces.max() <= policy.budget


@pytest.mark.parametrize("name", ["flappy-bird/greedy", "night-shift", 3, 12])
def test_both_forms_of_a_plan_on_an_expected_budget_bring_the_same(name):
    problem = world(name)
    plan = counsel.solve(problem, budget=0.6)
    simulator, rng = Simulator(problem), np.random.default_rng(6)
    for policy in (plan.policy, plan.mixture):
        counts = simulator.count(policy, episodes=100_000, rng=rng)
        check_evaluation(problem, policy, counts)
        check_means(counts.rewards.mean(), counts.rewards.std() / len(counts) ** 0.5, plan.value)


@each("budget", [0, 1, 2, 3, 30])
def test_no_episode_ever_has_more_pieces_than_a_hard_budget(budget):
    problem = world("flappy-bird/safe")
    plan = counsel.solve(problem, budget=budget, hard=True)
    simulator, rng = Simulator(problem), np.random.default_rng(budget)
    counts = simulator.count(plan.policy, episodes=20_000, rng=rng)
    episodes = simulator.play(plan.policy, episodes=20_000, rng=rng)
    most = min(budget, problem.horizon)
    assert counts.pieces.max() <= most
    assert episodes.pieces.max() <= most
    if budget < 4:
        assert counts.pieces.max() == episodes.pieces.max() == budget


def test_a_mixture_draws_a_policy_for_the_whole_episode():
    problem = adapt(examples.random_fork(np.random.default_rng(2), H=6))
    talks = Policy(np.zeros((6, 3), dtype=int), n_actions=2)
    mixture = Mixture((never(problem), drawn_hard(problem, 0), talks), (0.2, 0.1, 0.7))
    counts = Simulator(problem).count(mixture, episodes=50_000, rng=np.random.default_rng(5))
    assert np.isin(counts.pieces, (0, 6)).all()  # all or nothing
    check_binomial((counts.pieces == 6).sum(), 50_000, 0.7)


def test_a_policy_without_weight_is_never_drawn():
    problem = adapt(examples.random_fork(np.random.default_rng(2)))
    talks, silent = Policy(np.zeros((3, 3), dtype=int), n_actions=2), never(problem)
    for parts, weights in (
        ((talks, silent), (0.0, 1.0)),
        ((silent, talks), (1.0, 0.0)),
        ((silent, talks, silent), (0.4, 0.0, 0.6)),
    ):
        counts = Simulator(problem).count(
            Mixture(parts, weights), episodes=5_000, rng=np.random.default_rng(5)
        )
        assert not counts.pieces.any()


# ------------------------------------------------------------------- 3. same seed, same episodes


def same_records(one, other):
    assert one.defer == other.defer
    for name in ("first", *COLUMNS, "terminated"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def same_counts(one, other):
    assert one.live == other.live
    for name in ("decisions", "rewards", "pieces"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def joined(parts):
    """Put batches of records one after another."""
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in (*COLUMNS, "terminated")
    }
    lengths = np.concatenate([part.lengths for part in parts])
    first = np.concatenate(([0], np.cumsum(lengths)))
    return counsel.Episodes(first=first, defer=parts[0].defer, **columns)


def long_world():
    """So many steps that a chunk of numbers is no longer than a block of episodes."""
    P = np.array([[[0.5, 0.5], [0.1, 0.9]], [[0.3, 0.7], [1.0, 0.0]]])
    mdp = MDP(P, [[0.0, 1.0], [2.0, 0.5]], horizon=700, start=[0.5, 0.5])
    return AdviceProblem(mdp, Human([[0.5, 0.5], [0.2, 0.8]], 0.6))


def splits(chunk):
    """Ways to draw the same number of episodes, around the ends of blocks and of chunks."""
    n = 2 * chunk + BLOCK + 9
    yield n, [1, n - 1]
    yield n, [BLOCK - 1, 1, BLOCK + 1, n - 2 * BLOCK - 1]
    yield n, [BLOCK, n - BLOCK]
    yield n, [chunk - 1, chunk + 1, BLOCK + 9]
    yield n, [chunk, chunk, BLOCK + 9]
    yield n, [chunk + 1, n - chunk - 1]
    yield n, [37] * (n // 37) + [n % 37] * (n % 37 > 0)


@pytest.mark.parametrize("name", ["flappy-bird/safe", CAR, "long", 5, 18])
@pytest.mark.parametrize("kind", ["random", "mixture"])
def test_one_batch_or_many_are_the_same_episodes_to_the_last_bit(name, kind):
    problem = long_world() if name == "long" else world(name)
    if name == "long":
        policy = everything(problem)
        if kind == "mixture":
            policy = Mixture((policy, drawn_hard(problem, 3)), (0.5, 0.5))
    else:
        policy = policies(name)[kind]
    simulator = Simulator(problem)
    chunk = max(BLOCK, NUMBERS // simulator.draws)
    assert (chunk == BLOCK) == (name == "long")
    counting = name != "car-driving/myopic"  # there a batch of counts is 57 MB
    for n, parts in splits(chunk):
        assert sum(parts) == n
        once, many = np.random.default_rng(1), np.random.default_rng(1)
        whole = simulator.play(policy, episodes=n, rng=once)
        same_records(whole, joined([simulator.play(policy, episodes=k, rng=many) for k in parts]))
        assert once.bit_generator.state == many.bit_generator.state
        if counting:
            once, many = np.random.default_rng(1), np.random.default_rng(1)
            sums = [simulator.count(policy, episodes=k, rng=many) for k in parts]
            total = sums[0]
            for part in sums[1:]:
                total = total + part
            same_counts(simulator.count(policy, episodes=n, rng=once), total)
            assert once.bit_generator.state == many.bit_generator.state


def test_how_many_numbers_are_drawn_at_a_time_changes_nothing(monkeypatch):
    problem, policy = world("night-shift"), policies("night-shift")["mixture"]
    simulator = Simulator(problem)
    episodes = simulator.play(policy, episodes=1_000, rng=np.random.default_rng(2))
    counts = simulator.count(policy, episodes=1_000, rng=np.random.default_rng(2))
    for numbers in (1, 3_000, 2**20):
        monkeypatch.setattr(module, "NUMBERS", numbers)
        same_records(episodes, simulator.play(policy, episodes=1_000, rng=np.random.default_rng(2)))
        same_counts(counts, simulator.count(policy, episodes=1_000, rng=np.random.default_rng(2)))


@pytest.mark.parametrize("kind", [np.random.PCG64, np.random.MT19937, np.random.Philox])
def test_any_generator_will_do_and_is_used_equally(kind):
    problem, n = world("night-shift"), 500
    simulator, states = Simulator(problem), []
    for policy in (*policies("night-shift").values(), never(problem)):
        for draw_some in (simulator.play, simulator.count):
            rng = np.random.Generator(kind(4))
            draw_some(policy, episodes=n, rng=rng)
            states.append(rng.random(3).tolist())
    assert all(state == states[0] for state in states)
    fresh = np.random.Generator(kind(4))
    fresh.random(n * simulator.draws)
    assert fresh.random(3).tolist() == states[0]


def of_each_kind(problem, seed=0):
    """Policies that are not mixtures."""
    return (
        never(problem),
        everything(problem, seed),
        counsel.solve(problem).policy,
        drawn_hard(problem, 2, seed),
    )


def starts_of(problem, policy, seed):
    episodes = Simulator(problem).play(policy, episodes=2_000, rng=np.random.default_rng(seed))
    assert (episodes.lengths > 0).all()
    return episodes.state[episodes.first[:-1]]


def many_starts():
    """A problem that may start anywhere and never ends."""
    problem = adapt(oracles.random_problem(np.random.default_rng(0), 6, 3, 4))
    mdp = MDP(problem.mdp.kernel, problem.mdp.reward, horizon=4, start=np.full(6, 1 / 6))
    return AdviceProblem(mdp, problem.human)


def test_the_same_seed_starts_in_the_same_states_under_any_policy():
    problem = many_starts()
    starts = [starts_of(problem, policy, 3) for policy in of_each_kind(problem)]
    assert len(set(starts[0].tolist())) == 6
    for other in starts[1:]:
        np.testing.assert_array_equal(starts[0], other)


def test_the_same_seed_starts_in_the_same_states_under_a_mixture_too():
    # One number once drew both the policy and the start, so a mixture started elsewhere.
    problem = many_starts()
    mixture = Mixture(of_each_kind(problem)[:3], (0.2, 0.3, 0.5))
    np.testing.assert_array_equal(
        starts_of(problem, never(problem), 3), starts_of(problem, mixture, 3)
    )


@each_seed(range(6))
def test_policies_that_differ_later_have_the_same_luck_before(seed):
    problem = adapt(oracles.random_problem(np.random.default_rng(seed), 4, 3, 6))
    table = everything(problem, seed).probabilities()
    changed = table.copy()
    changed[3:] = everything(problem, seed + 100).probabilities()[3:]
    one, other = (
        Simulator(problem).play(
            Policy.from_probabilities(t), episodes=3_000, rng=np.random.default_rng(seed)
        )
        for t in (table, changed)
    )
    for name in COLUMNS:
        early = [getattr(e, name)[e.step < 3] for e in (one, other)]
        np.testing.assert_array_equal(*early, err_msg=name)
    assert (one.advice[one.step >= 3] != other.advice[other.step >= 3]).any()


@pytest.mark.parametrize("name", ["flappy-bird-budget/greedy", "night-shift", 4, 13])
def test_a_simulator_that_was_pickled_draws_the_same(name):
    policy = policies(name)["mixture"]
    simulator = Simulator(world(name))
    loaded, loaded_policy = pickle.loads(pickle.dumps((simulator, policy)))
    for one, other, check in (
        (simulator.play, loaded.play, same_records),
        (simulator.count, loaded.count, same_counts),
    ):
        check(
            one(policy, episodes=700, rng=np.random.default_rng(8)),
            other(loaded_policy, episodes=700, rng=np.random.default_rng(8)),
        )


def test_another_seed_gives_other_episodes():
    simulator, policy = Simulator(world("night-shift")), policies("night-shift")["plan"]
    one, other = (
        simulator.play(policy, episodes=100, rng=np.random.default_rng(seed)) for seed in (1, 2)
    )
    assert (one.action != other.action).any()


# ------------------------------------------------------------------------------ records and counts


def slow_over(P_hsat, r_hsa, allowed_hsa):
    """Where from this step on every allowed action surely stays and pays nothing."""
    H, S, A = r_hsa.shape
    over_hs = np.ones((H, S), dtype=bool)
    for h, s in np.ndindex(H, S):
        for later in range(h, H):
            for a in range(A):
                if not allowed_hsa[later, s, a]:
                    continue
                reached = {t for t in range(S) if P_hsat[later, s, a, t] > 0.0}
                if reached != {s} or r_hsa[later, s, a] != 0.0:
                    over_hs[h, s] = False
    return over_hs


def with_ends(name):
    """Return a world in which episodes end early, and where they do."""
    if isinstance(name, str):
        return world(name), world(name).mdp.over
    dense = ends(name)
    return adapt(dense), slow_over(dense.P_hsat, dense.r_hsa, dense.allowed_hsa)


RAGGED = ["flappy-bird/greedy", "flappy-bird-budget/greedy", "car-driving/myopic", *range(6)]


def check_ragged(problem, over_hs, episodes):
    """Records hang together and stop exactly where an episode is over."""
    H, n = problem.horizon, len(episodes)
    first, lengths = episodes.first, episodes.lengths
    assert first[0] == 0
    assert first[-1] == episodes.state.size
    assert first.size == n + 1 == episodes.terminated.size + 1
    assert (lengths >= 0).all()
    assert (lengths <= H).all()
    assert {getattr(episodes, name).size for name in COLUMNS} == {first[-1]}
    step, episode = episodes.step, episodes.episode
    for i, (begin, end) in enumerate(pairwise(first[:200])):
        assert step[begin:end].tolist() == list(range(end - begin))
        assert (episode[begin:end] == i).all()
    assert (np.bincount(episode, minlength=n) == lengths).all()
    goes_on = episode[1:] == episode[:-1]
    assert (step[1:][goes_on] == step[:-1][goes_on] + 1).all()
    assert (step[1:][~goes_on] == 0).all()
    assert (episodes.state[1:][goes_on] == episodes.next_state[:-1][goes_on]).all()
    # No decision is taken where it is over, and none is missing where it is not.
    assert not over_hs[step, episodes.state].any()
    rows = lengths > 0
    last = episodes.next_state[first[1:][rows] - 1]
    stopped = lengths[rows] < H
    assert over_hs[lengths[rows][stopped], last[stopped]].all()
    assert (episodes.terminated[rows] == over_hs[np.minimum(lengths[rows], H - 1), last]).all()
    assert episodes.terminated[~rows].all()  # it started where it is over


@pytest.mark.parametrize("name", RAGGED)
def test_records_stop_exactly_where_the_episode_is_over(name):
    problem, over_hs = with_ends(name)
    for policy in of_each_kind(problem) if isinstance(name, int) else policies(name).values():
        episodes = Simulator(problem).play(policy, episodes=4_000, rng=np.random.default_rng(3))
        check_ragged(problem, over_hs, episodes)
        assert len(set(episodes.lengths.tolist())) > 1
        bird = str(name).startswith("flappy-bird")  # which always ends: on a wall or past the map
        assert episodes.terminated.all() if bird else 0 < episodes.terminated.mean() < 1


@each_seed(range(6))
def test_an_episode_that_starts_where_it_is_over_has_no_decision(seed):
    problem, over_hs = with_ends(seed)
    n = 20_000
    episodes = Simulator(problem).play(
        everything(problem), episodes=n, rng=np.random.default_rng(seed)
    )
    check_binomial((episodes.lengths == 0).sum(), n, problem.mdp.start @ over_hs[0])
    assert (episodes.lengths == 0).any()
    assert not episodes.rewards[episodes.lengths == 0].any()


def test_a_world_that_is_over_from_the_start_has_no_decisions_at_all():
    mdp = MDP(np.array([[0, 0]]), [[0.0, 0.0]], horizon=4)
    problem = AdviceProblem(mdp, Human([[0.5, 0.5]], 0.5))
    simulator, policy = Simulator(problem), Policy(np.zeros((4, 1), dtype=int), n_actions=2)
    episodes = simulator.play(policy, episodes=3_000, rng=np.random.default_rng(0))
    assert (len(episodes), episodes.state.size) == (3_000, 0)
    assert episodes.terminated.all()
    assert episodes.rewards.tolist() == [0.0] * 3_000
    assert episodes.pieces.tolist() == [0] * 3_000
    assert episodes.step.size == episodes.episode.size == 0
    counts = simulator.count(policy, episodes=3_000, rng=np.random.default_rng(0))
    assert counts.live == 0
    assert (counts.pieces == 4).all()  # as ``evaluate`` has it, it is still advised


@pytest.mark.parametrize("name", [*RAGGED, "night-shift"])
def test_records_and_counts_are_the_same_episodes(name):
    problem, over_hs = with_ends(name)
    H, S, A = problem.horizon, problem.n_states, problem.n_actions
    n = 3_000
    kinds = of_each_kind(problem) if isinstance(name, int) else policies(name).values()
    for policy in kinds:
        simulator = Simulator(problem)
        episodes = simulator.play(policy, episodes=n, rng=np.random.default_rng(7))
        counts = simulator.count(policy, episodes=n, rng=np.random.default_rng(7))
        assert len(counts) == len(episodes) == n
        assert counts.live == episodes.state.size
        np.testing.assert_array_equal(counts.rewards, episodes.rewards)  # to the last bit
        # What the records leave out are the steps of those who have ended, where they ended.
        more = counts.decisions.copy()
        np.subtract.at(more, (episodes.step, episodes.state, episodes.advice, episodes.action), 1)
        assert (more >= 0).all()
        assert not more[~over_hs].any()
        rows = episodes.lengths > 0
        where = episodes.next_state[episodes.first[1:][rows] - 1]
        absorbed_hs = np.zeros((H, S), dtype=np.int64)
        for h in range(H):
            np.add.at(absorbed_hs[h], where[episodes.lengths[rows] <= h], 1)
        idle_hs = more.sum(axis=(2, 3))
        born_over = idle_hs - absorbed_hs  # those who started there have no row to say so
        assert (born_over == born_over[0]).all()
        assert born_over[0].sum() == (~rows).sum()
        assert (born_over[0][~over_hs[0]] == 0).all()
        assert (counts.decisions.sum(axis=(1, 2, 3)) == n).all()
        # And what they hear there is what the policy says.
        if isinstance(policy, Policy) and policy.advice.ndim == 2 and not policy.random.cell.size:
            for h, s in np.argwhere(over_hs & (idle_hs > 0)):
                assert more[h, s, policy.advice[h, s]].sum() == idle_hs[h, s]
            assert counts.pieces.sum() - episodes.pieces.sum() == more[:, :, :A].sum()
            assert (counts.pieces >= episodes.pieces).all()


def test_a_problem_without_chance_is_recorded_to_the_letter():
    problem = adapt(examples.silent_then_advised())
    policy = Policy([[0, 2, 2], [2, 2, 0], [2, 2, 2]], n_actions=2)
    episodes = Simulator(problem).play(policy, episodes=2, rng=np.random.default_rng(0))
    assert episodes.first.tolist() == [0, 3, 6]
    assert episodes.state.tolist() == [0, 1, 1] * 2
    assert episodes.advice.tolist() == [0, 2, 2] * 2
    assert episodes.action.tolist() == [0, 1, 1] * 2
    assert episodes.reward.tolist() == [0.0, 0.75, 0.75] * 2
    assert episodes.next_state.tolist() == [1, 1, 1] * 2
    assert episodes.matched.tolist() == [True, False, False] * 2
    assert episodes.step.tolist() == [0, 1, 2] * 2
    assert episodes.episode.tolist() == [0, 0, 0, 1, 1, 1]
    assert episodes.rewards.tolist() == [1.5, 1.5]
    assert episodes.pieces.tolist() == [1, 1]
    assert episodes.lengths.tolist() == [3, 3]
    assert not episodes.terminated.any()
    assert (len(episodes), repr(episodes)) == (2, "Episodes(2 episodes, 6 decisions)")


def test_counts_say_what_was_seen_given_and_matched():
    problem = adapt(examples.silent_then_advised())
    policy = Policy([[0, 2, 2], [2, 1, 0], [2, 2, 2]], n_actions=2)  # advice 1 is what they do
    counts = Simulator(problem).count(policy, episodes=5, rng=np.random.default_rng(0))
    assert counts.visits.tolist() == [[5, 0, 0], [0, 5, 0], [0, 5, 0]]
    assert counts.given.tolist() == [5, 5]
    assert counts.matched.tolist() == [5, 5]
    assert counts.pieces.tolist() == [2] * 5
    assert counts.rewards.tolist() == [1.5] * 5
    assert counts.live == 15
    assert (len(counts), repr(counts)) == (5, "Counts(5 episodes, 15 decisions)")
    deaf = AdviceProblem(problem.mdp, Human(problem.policy, 0.0))
    heard = Simulator(deaf).count(policy, episodes=5, rng=np.random.default_rng(0))
    # Unmoved they go to state 2, where advice 0 is given in vain.
    assert heard.visits.tolist() == [[5, 0, 0], [0, 0, 5], [0, 0, 5]]
    assert heard.given.tolist() == [10, 0]
    assert heard.matched.tolist() == [0, 0]


@each_seed(range(8))
def test_given_and_matched_are_those_of_the_records(seed):
    problem = patchwork(seed)
    policy, simulator = everything(problem), Simulator(problem)
    episodes = simulator.play(policy, episodes=2_000, rng=np.random.default_rng(seed))
    counts = simulator.count(policy, episodes=2_000, rng=np.random.default_rng(seed))
    assert counts.live == counts.decisions.sum()  # none of these problems ends early
    A = problem.n_actions
    assert counts.given.tolist() == np.bincount(episodes.advice, minlength=A + 1)[:A].tolist()
    matched = episodes.advice[episodes.matched]
    assert counts.matched.tolist() == np.bincount(matched, minlength=A).tolist()
    assert episodes.matched.tolist() == (episodes.action == episodes.advice).tolist()
    np.testing.assert_array_equal(counts.pieces, episodes.pieces)
    assert episodes.pieces.sum() == counts.given.sum()
    assert counts.visits.tolist() == [
        np.bincount(episodes.state[episodes.step == h], minlength=problem.n_states).tolist()
        for h in range(problem.horizon)
    ]


def test_counts_add_up():
    problem, policy = world("night-shift"), policies("night-shift")["random"]
    simulator, rng = Simulator(problem), np.random.default_rng(0)
    one, other = (simulator.count(policy, episodes=n, rng=rng) for n in (30, 12))
    both = one + other
    assert len(both) == 42
    assert both.live == one.live + other.live
    assert (both.decisions == one.decisions + other.decisions).all()
    assert both.rewards.tolist() == [*one.rewards, *other.rewards]
    assert both.pieces.tolist() == [*one.pieces, *other.pieces]
    for name in ("visits", "given", "matched"):
        assert (getattr(both, name) == getattr(one, name) + getattr(other, name)).all()


def test_counts_of_another_shape_or_kind_cannot_be_added():
    one, other = (
        Simulator(patchwork(seed)).count(
            never(patchwork(seed)), episodes=3, rng=np.random.default_rng(0)
        )
        for seed in (0, 1)
    )
    assert one.decisions.shape != other.decisions.shape
    for wrong in (other, 1, None, one.decisions):
        with pytest.raises(CounselError, match="same shape"):
            one + wrong


def test_what_was_drawn_cannot_be_changed():
    problem, policy = world("night-shift"), policies("night-shift")["plan"]
    simulator, rng = Simulator(problem), np.random.default_rng(0)
    counts = simulator.count(policy, episodes=3, rng=rng)
    episodes = simulator.play(policy, episodes=3, rng=rng)
    for name in ("first", *COLUMNS, "terminated"):
        assert not getattr(episodes, name).flags.writeable, name
    for name in ("decisions", "rewards", "pieces"):
        assert not getattr(counts, name).flags.writeable, name


def test_the_sum_of_counts_cannot_be_changed_either():
    # Added counts were once left open to writing.
    problem, policy = world("night-shift"), policies("night-shift")["plan"]
    counts = Simulator(problem).count(policy, episodes=3, rng=np.random.default_rng(0))
    for name in ("decisions", "rewards", "pieces"):
        assert not getattr(counts + counts, name).flags.writeable, name


# --------------------------------------------------------------- 5. every trajectory counted out


def trajectories(dense, parts):
    """Yield every trajectory with its probability: a start, then (advice, action, next state).

    ``parts`` are (weight, choose) where ``choose(pieces, h, s)`` lists (advice, probability).
    """
    over_hs = slow_over(dense.P_hsat, dense.r_hsa, dense.allowed_hsa)
    H, _, A = dense.r_hsa.shape

    def go_on(choose, path, chance, h, s, pieces):
        if h == H or over_hs[h, s]:
            yield path, chance
            return
        for b, heard in choose(pieces, h, s):
            law_a = oracles.law(dense.pi_hsa[h, s], dense.theta_hsa[h, s], b)
            for a, t in np.argwhere(law_a[:, None] * dense.P_hsat[h, s] > 0.0):
                step = heard * law_a[a] * dense.P_hsat[h, s, a, t]
                row = (b, int(a), int(t))
                yield from go_on(choose, (*path, row), chance * step, h + 1, t, pieces + (b < A))

    for weight, choose in parts:
        for s in np.flatnonzero(dense.start_s):
            yield from go_on(choose, (int(s),), weight * dense.start_s[s], 0, s, 0)


def chooser(policy):
    """What a policy says after so many pieces, as (advice, probability)."""
    return lambda pieces, h, s: list(policy.at(h, s, policy.left_after(pieces)).items())


def keys_of(episodes, starts, shape):
    """One whole number for each episode's trajectory; ``key_of`` does the same for one path."""
    H, S, A = shape
    key = starts.astype(np.int64)
    for h in range(H):
        live = episodes.lengths > h
        row = episodes.first[:-1][live] + h
        b, a, t = (
            getattr(episodes, name)[row].astype(np.int64)
            for name in ("advice", "action", "next_state")
        )
        key *= (A + 1) * A * S + 1
        key[live] += 1 + (b * A + a) * S + t
    return key


def key_of(path, shape):
    H, S, A = shape
    key, *rows = path
    for h in range(H):
        key *= (A + 1) * A * S + 1
        if h < len(rows):
            b, a, t = rows[h]
            key += 1 + (b * A + a) * S + t
    return key


def tiny_problem(seed, *, ending):
    """Three states, two actions, three steps; ``ending`` makes state 2 an end from step 1 on."""
    rng = np.random.default_rng([seed, 12])
    dense = oracles.random_problem(rng, 3, 2, 3, masks=seed % 2 == 1, repel=seed % 3 == 0)
    if not ending:
        return dense
    P, r = dense.P_hsat.copy(), dense.r_hsa.copy()
    P[1:, 2] = dense.allowed_hsa[1:, 2, :, None] * np.eye(3)[2]
    r[1:, 2] = 0.0
    return dense._replace(P_hsat=P, r_hsa=r)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["random", "hard", "mixture"])
@pytest.mark.parametrize("ending", [False, True])
@each_seed(range(4))
def test_whole_trajectories_are_as_likely_as_they_should_be(seed, ending, kind):
    dense = tiny_problem(seed, ending=ending)
    problem, n = adapt(dense), 200_000
    hard, random = drawn_hard(problem, 2, seed), everything(problem, seed)
    policy = {
        "random": random,
        "hard": hard,
        "mixture": Mixture(
            (hard, random, never(problem), everything(problem, seed + 1_000)), (0.3, 0.4, 0.1, 0.2)
        ),
    }[kind]
    parts = (
        zip(policy.weights, map(chooser, policy.policies), strict=True)
        if kind == "mixture"
        else [(1.0, chooser(policy))]
    )
    shape = (problem.horizon, problem.n_states, problem.n_actions)
    due, early = {}, 0.0
    for path, chance in trajectories(dense, parts):
        key = key_of(path, shape)
        due[key] = due.get(key, 0.0) + chance
        early += chance * (len(path) <= problem.horizon)
    assert sum(due.values()) == pytest.approx(1.0, abs=1e-12)
    episodes = Simulator(problem).play(policy, episodes=n, rng=np.random.default_rng(seed))
    assert (episodes.lengths > 0).all()  # so that the first row tells the start
    if kind == "random":  # what may say anything anywhere can always come to an end
        assert ending == (early > 0.0)
    assert ending or early == 0.0
    check_binomial((episodes.lengths < 3).sum(), n, early)
    starts = episodes.state[episodes.first[:-1]]
    keys, times = np.unique(keys_of(episodes, starts, shape), return_counts=True)
    seen = dict(zip(keys.tolist(), times.tolist(), strict=True))
    assert set(seen) <= set(due), "a trajectory that cannot happen did"
    count_k = np.array([seen.get(key, 0) for key in due])
    check_chi_square(count_k, np.array(list(due.values())))
    check_binomial(count_k, n, np.array(list(due.values())))


# ------------------------------------------------------------------------------ 6. extreme cases


def alias_shares(indptr, next_state, keep, other, S):
    """The probabilities an alias table stands for [row, t]."""
    shares = np.zeros((indptr.size - 1, S))
    for i, (begin, end) in enumerate(pairwise(indptr)):
        for j in range(begin, end):
            shares[i, next_state[j]] += keep[j] / (end - begin)
            shares[i, other[j]] += (1.0 - keep[j]) / (end - begin)
    return shares


def test_alias_tables_stand_for_their_rows_to_the_last_digits():
    rng = np.random.default_rng(0)
    rows = [rng.dirichlet(np.full(n, alpha)) for n in (1, 2, 3, 7, 64, 300) for alpha in (0.05, 5)]
    rows += [np.full(n, 1 / n) for n in (1, 2, 3, 10, 49)]
    rows += [np.append(np.full(n, 1e-12), 1 - n * 1e-12) for n in (1, 2, 299)]
    rows += [np.append(1 - 1e-12, 1e-12), 0.5 ** np.append(np.arange(1, 60), 59)]
    rows = [row[row > 0.0] for row in rows]
    S = 300
    indptr = np.cumsum([0] + [row.size for row in rows])
    state = np.concatenate([np.sort(rng.permutation(S)[: row.size]) for row in rows])
    state, probability = state.astype(np.int32), np.concatenate(rows)
    keep, other = np.empty(state.size), np.empty(state.size, dtype=np.int32)
    fill_alias(indptr, state, probability, keep, other)
    assert ((keep >= 0.0) & (keep <= 1.0)).all()
    due = np.zeros((len(rows), S))
    for i, (begin, end) in enumerate(pairwise(indptr)):
        due[i, state[begin:end]] = probability[begin:end]
    # Each of up to 300 entries is filled up in one rounded step of a number of at most 300.
    np.testing.assert_allclose(
        alias_shares(indptr, state, keep, other, S), due, rtol=0, atol=300 * 2.0**-52
    )


@each_seed(PATCHWORKS)
def test_the_tables_of_a_simulator_stand_for_the_kernel_and_the_start(seed):
    problem = patchwork(seed)
    scene, kernel = Simulator(problem).scene, problem.mdp.kernel
    shares = alias_shares(scene.indptr, scene.next_state, scene.keep, scene.other, problem.n_states)
    np.testing.assert_allclose(shares[-1], problem.mdp.start, rtol=0, atol=1e-15)
    for h, s, a in np.ndindex(*kernel.row.shape):
        due = np.zeros(problem.n_states)
        reached, chances = kernel.successors(h, s, a)
        due[reached] = chances
        leads = scene.leads_lsa[h, s, a]
        drawn = np.eye(problem.n_states)[leads] if leads >= 0 else shares[-1 - leads]
        np.testing.assert_allclose(drawn, due, rtol=0, atol=1e-15)


TINY = 1e-12


def test_what_is_almost_impossible_hardly_ever_happens_and_the_rest_is_right():
    P = np.zeros((4, 3, 4))
    P[0, 0] = [TINY, 0.5 - TINY, 0.5 - TINY, TINY]
    P[0, 1] = [1 - 3 * TINY, TINY, TINY, TINY]
    P[0, 2] = [0.25, 0.25, 0.25, 0.25]
    P[1:] = P[0][None, ::-1, ::-1]
    pi = np.array([[TINY, 1 - 2 * TINY, TINY], [0.5, 0.5 - TINY, TINY], [1 / 3] * 3, [1, 0, 0]])
    theta = np.array([[TINY, 1 - TINY, 0.5], [0.5, TINY, 1 - TINY], [0, 1, TINY], [0.3, TINY, 1]])
    start = [0.4 - TINY, TINY, 0.3, 0.3]
    problem = AdviceProblem(
        MDP(P, np.zeros((4, 3)), horizon=4, start=np.array(start)), Human(pi, theta)
    )
    table = np.tile([TINY, 0.5 - TINY, 0.3, 0.2], (4, 4, 1))
    table[:, 1] = [0.3, 0.3, 0.4 - TINY, TINY]
    table[:, 2] = [0.25, 0.25, 0.25, 0.25]
    policy = Policy.from_probabilities(table)
    n = 300_000
    simulator = Simulator(problem)
    counts = simulator.count(policy, episodes=n, rng=np.random.default_rng(2))
    heard_hsb = counts.decisions.sum(axis=-1)
    check_binomial(counts.visits[0], n, problem.mdp.start)
    check_binomial(heard_hsb, counts.visits[..., None], table)
    check_binomial(counts.decisions, heard_hsb[..., None], law_table(problem))
    check_evaluation(problem, policy, counts)
    episodes = simulator.play(policy, episodes=n, rng=np.random.default_rng(3))
    moves = np.zeros((4, 3, 4), dtype=np.int64)
    np.add.at(moves, (episodes.state, episodes.action, episodes.next_state), 1)
    check_binomial(moves, moves.sum(axis=-1, keepdims=True), P)
    check_chi_square(moves, P)


def test_rare_but_real_chances_are_met():
    # 2e-4 in a start of 1,000 states, a row of 1,000, a policy, a habit and an adherence.
    rare, S = 2e-4, 1_000
    rows = np.full(S, rare / (S - 1))
    rows[7] = 1.0 - rare
    pi, theta = [[rare, 1 - rare]] * S, [[0.5, rare]] * S
    mdp = MDP(np.tile(rows, (S, 2, 1)), np.zeros((S, 2)), horizon=2, start=rows)
    problem = AdviceProblem(mdp, Human(pi, theta))
    policy = Policy.from_probabilities(np.tile([rare, 0.5, 0.5 - rare], (2, S, 1)))
    n = 1_000_000
    counts = Simulator(problem).count(policy, episodes=n, rng=np.random.default_rng(1))
    check_binomial(counts.visits, n, rows)
    check_binomial(counts.visits[:, 7], n, 1.0 - rare)
    hsba = counts.decisions
    check_binomial(hsba[:, :, 0].sum(), 2 * n, rare)
    check_binomial(hsba[:, :, 1, 1].sum(), hsba[:, :, 1].sum(), rare)
    check_binomial(hsba[:, :, 2, 0].sum(), hsba[:, :, 2].sum(), rare)
    check_binomial(hsba[:, :, 0, 0].sum(), hsba[:, :, 0].sum(), 0.5)


def test_one_state_one_action_one_step():
    problem = AdviceProblem(MDP(np.array([[0]]), [[2.5]], horizon=1), Human([[1.0]], 0.3))
    simulator, policy = Simulator(problem), Policy([[0]], n_actions=1)
    episodes = simulator.play(policy, episodes=3, rng=np.random.default_rng(0))
    columns = [getattr(episodes, name).tolist() for name in COLUMNS]
    assert columns == [[0] * 3, [0] * 3, [0] * 3, [2.5] * 3, [0] * 3]
    assert episodes.first.tolist() == [0, 1, 2, 3]
    assert not episodes.terminated.any()
    counts = simulator.count(policy, episodes=3, rng=np.random.default_rng(0))
    assert counts.decisions.tolist() == [[[[3], [0]]]]
    assert counts.rewards.tolist() == [2.5] * 3
    assert counts.matched.tolist() == [3]  # they do it anyway, whatever θ is


@each("episodes", [1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK])
def test_as_many_episodes_are_drawn_as_were_asked_for(episodes):
    problem = patchwork(5)
    rng = np.random.default_rng(0)
    drawn = Simulator(problem).play(everything(problem), episodes=episodes, rng=rng)
    assert len(drawn) == episodes
    counts = Simulator(problem).count(everything(problem), episodes=np.int64(episodes), rng=rng)
    assert len(counts) == counts.rewards.size == counts.pieces.size == episodes
    assert (counts.decisions.sum(axis=(1, 2, 3)) == episodes).all()


@each_seed(range(6))
def test_adherence_1_always_matches_and_0_never_does_unless_they_would_anyway(seed):
    dense = oracles.random_problem(
        np.random.default_rng(seed), 4, 3, 4, deterministic_people=seed % 2 == 1
    )
    for theta in (0.0, 1.0):
        problem = adapt(dense._replace(theta_hsa=np.full_like(dense.theta_hsa, theta)))
        episodes = Simulator(problem).play(
            everything(problem), episodes=5_000, rng=np.random.default_rng(seed)
        )
        spoken = episodes.advice != problem.defer
        said = np.minimum(episodes.advice, problem.n_actions - 1)
        anyway = problem.policy[episodes.step, episodes.state, said] == 1.0
        assert spoken.any()
        assert anyway.any() or seed % 2 == 0
        due = spoken & (anyway if theta == 0.0 else True)
        np.testing.assert_array_equal(episodes.matched, due)


def test_forty_actions():
    rng = np.random.default_rng(4)
    A = 40
    pi = rng.dirichlet(np.full(A, 0.5), size=3)
    pi[2, ::2] = 0.0
    pi /= pi.sum(axis=1, keepdims=True)
    mdp = MDP(rng.dirichlet(np.ones(3), size=(3, A)), rng.random((3, A)), horizon=3)
    problem = AdviceProblem(mdp, Human(pi, rng.random((3, A))))
    policy, n = everything(problem), 300_000
    counts = Simulator(problem).count(policy, episodes=n, rng=np.random.default_rng(4))
    heard_hsb, law = counts.decisions.sum(axis=-1), law_table(problem)
    assert check_binomial(counts.decisions, heard_hsb[..., None], law) > 5_000
    check_chi_square(counts.decisions, law)
    check_chi_square(heard_hsb, policy.probabilities())
    check_evaluation(problem, policy, counts)


def test_as_many_actions_as_there_may_be():
    A = 32_766  # advice is stored in two bytes; silence is 32,766
    pi = np.full((1, A), 1 / A)
    problem = AdviceProblem(MDP(np.zeros((1, A), dtype=int), [1.0], horizon=2), Human(pi, 1.0))
    episodes = Simulator(problem).play(
        Policy([[A - 1], [A]], n_actions=A), episodes=2_000, rng=np.random.default_rng(0)
    )
    assert (episodes.advice.reshape(-1, 2) == [A - 1, A]).all()
    advised, alone = episodes.action.reshape(-1, 2).T
    assert (advised == A - 1).all()
    assert 0 <= alone.min() < A / 100  # the tenth of a thousandth smallest and largest are near
    assert A - A / 100 < alone.max() < A
    assert (episodes.pieces == 1).all()
    # Uniform: the largest gap between the shares and a straight line (Kolmogorov).
    assert stats.kstest((alone + 0.5) / A, "uniform").pvalue > SLIP


def test_a_start_with_one_tiny_entry():
    S, n = 5, 1_000_000
    start = np.array([0.25, 0.25, 1e-5, 0.25, 0.25 - 1e-5])
    mdp = MDP(np.arange(S)[:, None], np.arange(S) * 1.0, horizon=1, start=start)
    problem = AdviceProblem(mdp, Human(np.ones((S, 1)), 1.0))
    counts = Simulator(problem).count(never(problem), episodes=n, rng=np.random.default_rng(0))
    assert counts.visits[0, 2] > 0
    check_binomial(counts.visits[0], n, start)
    np.testing.assert_array_equal(np.bincount(counts.rewards.astype(int)), counts.visits[0])


@pytest.mark.slow
def test_smoke_a_million_states():
    S = 1_000_000
    rng = np.random.default_rng(0)
    step = rng.integers(1, 50, size=(2 * S, 2))
    columns = (np.arange(2 * S)[:, None] // 2 + step) % S
    matrix = sp.csr_matrix(
        (np.full(4 * S, 0.5), columns.reshape(-1), np.arange(0, 4 * S + 1, 2)), shape=(2 * S, S)
    )
    mdp = MDP(matrix, np.ones(S), horizon=3, start=np.full(S, 1 / S))
    problem = AdviceProblem(mdp, Human(np.full((S, 2), 0.5), 0.8))
    policy = Policy(np.zeros((3, S), dtype=int), n_actions=2)
    episodes = Simulator(problem).play(policy, episodes=20_000, rng=rng)
    assert (episodes.lengths == 3).all()
    check_binomial(episodes.matched.sum(), 60_000, 0.8)
    assert ((episodes.next_state - episodes.state) % S < 50).all()
    starts = episodes.state[episodes.first[:-1]]
    assert stats.kstest((starts + 0.5) / S, "uniform").pvalue > SLIP


# ---------------------------------------------------------------------------------- 7. bad input


def masked_problem():
    """Two steps, two states; action 1 is not allowed in state 1 at step 1."""
    allowed = np.ones((2, 2, 2), dtype=bool)
    allowed[1, 1, 1] = False
    mdp = MDP(np.array([[0, 1], [0, 1]]), np.ones((2, 2)), horizon=2, allowed=allowed)
    return AdviceProblem(mdp, Human(np.eye(2)[[0, 0]], 0.5))


SILENT = Policy(np.full((2, 2), 2), n_actions=2)
OFF = Policy([[2, 2], [2, 1]], n_actions=2)
OFF_TABLE = np.tile([0.0, 0.0, 1.0], (2, 2, 1))
OFF_TABLE[1, 1] = [0.0, 0.1, 0.9]
OFF_HARD = np.full((3, 2, 2), 2)
OFF_HARD[2, 1, 1] = 1


def bad(name, change, *fragments):
    return pytest.param(change, fragments, id=name)


BAD = [
    bad("no episodes", {"episodes": 0}, "episodes", "at least 1", "not 0"),
    bad("fewer than none", {"episodes": -1}, "episodes", "at least 1", "not -1"),
    bad("one and a half", {"episodes": 1.5}, "episodes", "whole number", "1.5"),
    bad("two as a float", {"episodes": 2.0}, "episodes", "whole number", "2.0"),
    bad("true", {"episodes": True}, "episodes", "whole number", "True"),
    bad("a text", {"episodes": "10"}, "episodes", "whole number", "'10'"),
    bad("nothing", {"episodes": None}, "episodes", "whole number", "None"),
    bad("too many", {"episodes": 2**31}, "episodes", "2147483648"),
    bad("no generator", {"rng": None}, "rng", "None", "default_rng"),
    bad("a seed", {"rng": 0}, "rng is 0", "default_rng"),
    bad("an old generator", {"rng": np.random.RandomState(0)}, "rng", "RandomState", "default_rng"),
    bad("the module", {"rng": np.random}, "rng", "default_rng"),
    bad("a bit generator", {"rng": np.random.PCG64(0)}, "rng", "default_rng"),
    bad("no policy", {"policy": None}, "Policy", "NoneType"),
    bad("a table", {"policy": np.full((2, 2), 2)}, "Policy", "ndarray"),
    bad("a plan", {"policy": counsel.solve(masked_problem())}, "Policy", "Plan"),
    bad("other steps", {"policy": Policy([[2, 2]], n_actions=2)}, "1 steps", "has 2, 2 and 2"),
    bad("other states", {"policy": Policy([[2], [2]], n_actions=2)}, "1 states", "has 2, 2 and 2"),
    bad("other actions", {"policy": Policy([[2, 2], [2, 2]], n_actions=3)}, "3 actions", "2 and 2"),
    bad("hard, for other states",
        {"policy": Policy(np.full((2, 2, 3), 2), n_actions=2)}, "3 states", "has 2, 2 and 2"),
    bad("a mixture for other steps",
        {"policy": Mixture((Policy([[2, 2]], n_actions=2),), (1.0,))}, "1 steps", "has 2, 2 and 2"),
    bad("not allowed", {"policy": OFF}, "not allowed", "[h=1, s=1]"),
    bad("not allowed, now and then",
        {"policy": Policy.from_probabilities(OFF_TABLE)}, "not allowed", "[h=1, s=1]"),
    bad("not allowed, with two left",
        {"policy": Policy(OFF_HARD, n_actions=2)}, "not allowed", "[h=1, s=1]"),
    bad("not allowed, in a mixture",
        {"policy": Mixture((SILENT, OFF), (0.9, 0.1))}, "not allowed", "[h=1, s=1]"),
]  # fmt: skip


@pytest.mark.parametrize("verb", ["play", "count"])
@pytest.mark.parametrize(("change", "fragments"), BAD)
def test_bad_input_is_named_in_one_line_and_draws_nothing(verb, change, fragments):
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    given = {"policy": SILENT, "episodes": 5, "rng": rng} | change
    policy = given.pop("policy")
    with pytest.raises(CounselError) as caught:
        getattr(Simulator(masked_problem()), verb)(policy, **given)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 200
    for fragment in fragments:
        assert fragment in message
    assert rng.bit_generator.state == before


def test_what_is_good_in_the_bad_input_tests_is_good():
    simulator, rng = Simulator(masked_problem()), np.random.default_rng(0)
    assert len(simulator.play(SILENT, episodes=5, rng=rng)) == 5
    assert len(simulator.count(SILENT, episodes=5, rng=rng)) == 5


@pytest.mark.parametrize("given", [None, "night-shift", masked_problem().mdp, SILENT])
def test_a_simulator_is_of_a_problem(given):
    with pytest.raises(CounselError, match=rf"AdviceProblem, not {type(given).__name__}"):
        Simulator(given)


# ------------------------------------------------------------------------- 8. where it is over


def with_idle_states(seed):
    """Draw a dense world many of whose states stay and pay nothing, at some steps or at all."""
    rng = np.random.default_rng([seed, 13])
    S, A, H = (int(n) for n in rng.integers((1, 1, 1), (6, 4, 6)))
    dense = oracles.random_problem(rng, S, A, H, masks=seed % 2 == 1)
    P, r = dense.P_hsat.copy(), dense.r_hsa.copy()
    stays = rng.random((H, S, A)) < rng.choice([0.6, 0.9, 1.0], size=(1, S, 1))
    broke = rng.random((H, S, A)) < rng.choice([0.6, 0.9, 1.0], size=(1, S, 1))
    P = np.where(stays[..., None], dense.allowed_hsa[..., None] * np.eye(S)[:, None], P)
    return P, np.where(broke, 0.0, r), dense.allowed_hsa


def test_over_is_what_its_definition_says_in_worlds_that_change():
    kinds = set()
    for seed in range(300):
        P, r, allowed = with_idle_states(seed)
        due = slow_over(P, r, allowed)
        mdp = MDP(P, r, horizon=len(r), allowed=allowed)
        np.testing.assert_array_equal(mdp.over, due, err_msg=f"seed {seed}")
        kinds |= {tuple(column) for column in due.T if len(due) == 3}
    # Never over, over from each step on; once over, always over.
    assert kinds == {(0, 0, 0), (0, 0, 1), (0, 1, 1), (1, 1, 1)}


def test_over_is_what_its_definition_says_whatever_part_of_the_world_changes():
    for seed in range(300):
        P, r, allowed = with_idle_states(seed)
        parts, shown = [], []
        if seed & 1:  # masks that change need rows at every step
            P = np.where(allowed[..., None], P, np.eye(P.shape[1])[:, None])
        for bit, table in enumerate((P, r, allowed)):
            still = bool(seed >> bit & 1)
            parts.append(table[0] if still else table)
            shown.append(np.broadcast_to(table[:1], table.shape) if still else table)
        gone = shown[2] & ~(shown[0].sum(axis=-1) > 0.5)
        if gone.any():  # an allowed action of one step has no row in the one layer of P
            continue
        mdp = MDP(parts[0], parts[1], horizon=len(r), allowed=parts[2])
        np.testing.assert_array_equal(mdp.over, slow_over(*shown), err_msg=f"seed {seed}")


@pytest.mark.parametrize("name", ["flappy-bird/safe", "flappy-bird-budget/greedy", "night-shift"])
def test_over_is_what_its_definition_says_in_named_worlds(name):
    mdp = world(name).mdp
    P = mdp.kernel.to_dense()[None]  # these worlds never change: one step stands for all
    due = slow_over(P, mdp.reward[:1], mdp.allowed[:1])
    np.testing.assert_array_equal(mdp.over, np.broadcast_to(due, mdp.over.shape))
    assert mdp.over.shape == (mdp.horizon, mdp.n_states)


def test_an_end_must_be_certain_unpaid_and_left_by_no_allowed_action():
    def over(P, r, allowed=None):
        return MDP(np.array(P), r, horizon=2, allowed=allowed).over.tolist()[0]

    stay, leave = [1.0, 0.0], [0.0, 1.0]
    assert over([[stay, stay], [leave, leave]], np.zeros((2, 2))) == [True, True]
    assert over([[stay, stay], [leave, leave]], [[0.0, -1.0], [0.0, 1e-300]]) == [False, False]
    assert over([[stay, leave], [leave, leave]], np.zeros((2, 2))) == [False, True]
    assert over([[stay, [1 - 1e-12, 1e-12]], [leave, leave]], np.zeros((2, 2))) == [False, True]
    mask = [[True, False], [True, True]]
    assert over([[stay, leave], [leave, leave]], [[0.0, 5.0], [0.0, 0.0]], mask) == [True, True]
    assert over([[stay, [0.0, 0.0]], [leave, leave]], np.zeros((2, 2)), mask) == [True, True]
