"""How uncertain ``Structured`` is, against the equations, and the proof of them piece by piece."""

import math

import numpy as np
import pytest
from scipy.special import rel_entr

import counsel
from counsel.learning._rfe_kernels import UNSEEN
from counsel.learning._structured_kernels import (
    fill_uncertainty,
    look_ahead,
)
from counsel.model.human import advised_law
from tests.support.each import each, each_seed
from tests.support.structured import (
    PROBLEMS,
    count_tables,
    explored,
    free_choices,
    fresh,
    group_table,
    log_likelihood,
    mostly_silent,
    random_groups,
    settled,
    small_and_random,
    tables,
)

MEMORIES = (
    counsel.Memory.pieces(2),
    counsel.Memory.refusals(1),
    counsel.Memory.dose(0.5, 3),
    counsel.Memory([[0.5, 0.5], [0.2, 0.8]], [[1, 0], [0.3, 0.7]], [[0, 1], [0.1, 0.9]], start=1),
)

# How uncertain it is.


def all_n(n, log, d):
    """f(n) = log + d log(e (1 + n / d)): what n draws of one of d + 1 things leave open."""
    return log + (d * math.log(math.e * (1 + n / d)) if d > 0 else 0.0)


def logs_of(learner, *, sure):
    """Logarithms of the confidence sets over all rows, cells, groups and rewards; δ is shared.

    Rewards have one in the stopping rule, where they are not known; else theirs is None.
    """
    H, S, A = learner._transitions.visits.shape
    learns_rewards = sure and learner.reward is None
    share = learner.delta / (4 if learns_rewards else 3)
    return (
        math.log((S * A * H + 1) / share),
        math.log(S * (A + 1) * H / share),
        math.log(learner._given.size / share),
        math.log(S * A * H / share) if learns_rewards else None,
    )


def slow_uncertainty(learner, *, sure):
    """W [h, m, s, b] straight from the equations, −1 where advice is not rated, and Φ like it.

    Without a memory there is no axis m. Deviates from the module's equations as the code does: for
    the habit, f is that of all free choices in the cell (for the stopping rule A + 1 times), rather
    than of m_b or n_0 of them; and an action that was never taken has the cap in the place of what
    is behind it, so that W is at the cap only as far as it would be taken.
    """
    visits, actions, own_hsa = learner._transitions.visits, learner._actions, learner.habit
    H, S, A = visits.shape
    after_cmn = np.ones((3, 1, 1)) if learner.memory is None else learner.memory.after
    follows_hsat, group, M = tables(learner), group_table(learner), len(after_cmn[0])
    allowed = np.broadcast_to(learner.shape.allowed, (H, S, A))
    matched, given = (learner.matched, learner.given)
    moves, habits, heeds, rewards = logs_of(learner, sure=sure)
    cap, scale = (H, 16 * H * H * learner.scale) if sure else (UNSEEN, 1.0)
    W, phi = np.full((H, M, S, A + 1), -1.0), np.full((H, M, S, A + 1), np.inf)
    most = np.zeros((H + 1, M, S))
    for h in reversed(range(H)):
        for m, s in np.ndindex(M, S):
            free, own, n_a = free_choices(actions[h, s]), own_hsa[h, s], visits[h, s]
            silent, choices = free[A].sum(), free.sum()
            # Behind each action after silence, a match and a refusal.
            doubt_a, behind_ca = np.full(A, np.inf), np.full((3, A), float(cap))
            for a in np.flatnonzero(n_a):
                kinds = S if sure else np.count_nonzero(follows_hsat[h, s, a])
                most_a = all_n(n_a[a], moves, kinds - 1)
                if rewards is not None:
                    most_a = max(most_a, all_n(n_a[a], rewards, 1))
                doubt_a[a] = most_a / n_a[a]
                ahead_c = after_cmn[:, m] @ most[h + 1] @ follows_hsat[h, s, a] / n_a[a]
                behind_ca[:, a] = scale * doubt_a[a] + (1 + 1 / H) * ahead_c
            kinds = A if sure else np.count_nonzero(own)
            habit = all_n(choices, habits, kinds - 1) * (A + 1 if sure else 1)

            def weigh(law, mine, behind_a, doubt_a=doubt_a, n_a=n_a):
                """Return W and Φ of a law of actions that is uncertain by ``mine`` itself."""
                wanted = law > 0
                value = scale * mine + law[wanted] @ behind_a[wanted]
                return min(cap, value), mine + law[wanted] @ doubt_a[wanted]

            W[h, m, s, A] = cap
            if silent > 0:
                W[h, m, s, A], phi[h, m, s, A] = weigh(own, habit / silent, behind_ca[0])
            for b in range(A):
                certain = silent > 0 and free[:, np.arange(A) != b].sum() == 0
                if not allowed[h, s, b] or certain:
                    continue
                g = group[h, s, m * A + b]
                n_g = given[g]
                m_b = silent * (1 - own[b]) + free[b].sum()
                W[h, m, s, b] = cap
                if n_g > 0 and m_b > 0 and own[b] < 1:
                    guess = 0 if sure else 1
                    theta = (matched[g] + guess) / (n_g + 2 * guess)
                    law = np.where(np.arange(A) == b, 0.0, own)
                    law *= (1 - theta) / law.sum()
                    law[b] = theta
                    mine = all_n(n_g, heeds, 1) / n_g + (1 - theta) * habit / m_b
                    behind_a = np.where(np.arange(A) == b, behind_ca[1], behind_ca[2])
                    W[h, m, s, b], phi[h, m, s, b] = weigh(law, mine, behind_a)
            most[h, m, s] = 0.0 if learner._ends.ended[h, s] else W[h, m, s].max()
    return (W, phi, most) if learner.memory is not None else (W[:, 0], phi[:, 0], most[:, 0])


def before_the_start(learner, most_s):
    """W before the first state is known: one row more, seen in every episode."""
    H, S, _ = learner._transitions.visits.shape
    if learner.shape.start is not None:
        return most_s[learner.shape.start]
    n, moves = learner.episode, logs_of(learner, sure=True)[0]
    own = 16 * H * H * learner.scale * all_n(n, moves, S - 1) / n
    return min(H, own + (1 + 1 / H) * float(learner._ends.starts @ most_s) / n)


def compiled_uncertainty(learner, doubt):
    H, S, A = learner._transitions.visits.shape
    ahead, most = np.zeros(learner._ahead_hsad.shape), np.empty(learner._most_hms.shape)
    look_ahead(learner._counts, learner._structure, doubt, ahead, most)
    W = np.empty((H, most.shape[1], S, A + 1))
    for h, m, s in np.ndindex(W.shape[:3]):
        fill_uncertainty(learner._counts, learner._structure, doubt, ahead, h, s, m, W[h, m, s])
    return (W, most) if learner.memory is not None else (W[:, 0], most[:, 0])


@each("episodes", [3, 60, 2000])
@pytest.mark.parametrize(("problem", "seed"), PROBLEMS)
def test_the_uncertainty_is_that_of_the_equations(problem, seed, episodes):
    groups = random_groups(problem, seed)
    for scale in (1e-6, 1e-3, 1.0):
        learner = explored(
            problem, episodes=episodes, seed=seed, groups=groups, scale=scale, delta=0.2
        )
        W, _, most = slow_uncertainty(learner, sure=True)
        assert learner.uncertainty == pytest.approx(before_the_start(learner, most[0]), rel=1e-9)
        for slow, fast in zip(
            (W, most), compiled_uncertainty(learner, learner._stopping), strict=True
        ):
            np.testing.assert_allclose(fast, slow, rtol=1e-9)
    # The other version, and that it is what the next advice is the largest of.
    W, _, most = slow_uncertainty(learner, sure=False)
    for slow, fast in zip(
        (W, most), compiled_uncertainty(learner, learner._exploration), strict=True
    ):
        np.testing.assert_allclose(fast, slow, rtol=1e-9)
    np.testing.assert_allclose(learner._most, most, rtol=1e-9)
    for h in range(problem.horizon):
        for s in np.flatnonzero(~learner._ends.ended[h]):
            assert W[h, s, learner.advise(h, int(s))] >= W[h, s].max() * (1 - 1e-9)


@each("memory", MEMORIES)
@each("episodes", [3, 150])
def test_the_uncertainty_on_every_level_is_that_of_the_equations(memory, episodes):
    """Also for a memory whose levels are drawn, and one in which matches and refusals differ."""
    plain = small_and_random()
    fading = 0.7 ** np.arange(memory.n_levels)
    problem = counsel.AdviceProblem(plain.mdp, plain.human.with_memory(memory, fading))
    learner = explored(problem, episodes=episodes, updates=3, scale=1e-3, delta=0.2)
    for settings, sure in ((learner._stopping, True), (learner._exploration, False)):
        W, _, most = slow_uncertainty(learner, sure=sure)
        for slow, fast in zip((W, most), compiled_uncertainty(learner, settings), strict=True):
            np.testing.assert_allclose(fast, slow, rtol=1e-9)
        if sure:
            start = before_the_start(learner, most[0, memory.start])
            assert learner.uncertainty == pytest.approx(start, rel=1e-9)
    for h, m, s in np.ndindex(W.shape[:3]):
        assert W[h, m, s, learner.advise(h, s, m)] >= W[h, m, s].max() * (1 - 1e-9)


# That its terms bound what they should: the proof, piece by piece.


def without(own):
    """π given that it is not b [..., b, a], of π [..., a]; nothing where π is certain of b."""
    left = own[..., None, :] * (1.0 - np.eye(own.shape[-1]))
    total = left.sum(axis=-1, keepdims=True)
    return left / np.where(total > 0, total, 1.0)


def divergence(learnt, true):
    """KL(learnt ‖ true) along the last axis."""
    return rel_entr(learnt, true).sum(axis=-1)


def of_a_coin(learnt, true):
    """kl(θ̂, θ)."""
    return rel_entr(learnt, true) + rel_entr(1 - learnt, 1 - true)


def test_what_the_likeliest_habit_gains_is_the_sum_of_its_divergences():
    # Σ_C n_C KL(π̂_C ‖ π_C) = log L(π̂) − log L(π), over silence and the refusals of each advice.
    rng, tried = np.random.default_rng(6), 0
    for table in count_tables(500, seed=6):
        if mostly_silent(table):
            A, tried = table.shape[1], tried + 1
            best, own = settled(table), rng.dirichlet(np.ones(A))
            refusals = free_choices(table)[:A].sum(axis=1)
            total = table[A].sum() * divergence(best, own)
            total += refusals @ divergence(without(best), without(own))
            gained = log_likelihood(table, best) - log_likelihood(table, own)
            # π̂ is settled to 10⁻⁹, and counts reach 10⁴.
            assert total == pytest.approx(gained, rel=1e-6, abs=1e-6)
    assert tried > 80


def test_the_likeliest_habit_gains_at_most_what_each_set_of_choices_would_alone():
    rng = np.random.default_rng(7)
    for table in count_tables(500, seed=7):
        free, own = free_choices(table), rng.dirichlet(np.ones(table.shape[1]))
        if free.any():
            gained = log_likelihood(table, settled(table)) - log_likelihood(table, own)
            n_c = free.sum(axis=1)
            share = free / np.maximum(n_c, 1)[:, None]
            apart = n_c @ divergence(share, np.vstack((without(own), own)))
            assert gained <= apart + 1e-9 * (1 + apart)


def test_the_divergence_of_what_advice_leads_to_is_at_most_that_of_its_three_factors():
    rng, tightest = np.random.default_rng(8), 0.0
    for _ in range(2000):
        A, S, n = int(rng.integers(2, 6)), int(rng.integers(2, 6)), int(rng.integers(5, 200))
        b, theta, own = int(rng.integers(A)), rng.random(), rng.dirichlet(np.ones(A))
        world = rng.dirichlet(np.ones(S), size=A)
        # The same, learnt from n draws of each.
        theta_n, own_n = rng.binomial(n, theta) / n, (rng.multinomial(n, own) + 0.001) / n
        own_n /= own_n.sum()
        world_n = np.stack([rng.multinomial(n, row) / n for row in world])
        law, law_n = advised_law(own, b, theta), advised_law(own_n, b, theta_n)
        bound = of_a_coin(theta_n, theta)
        bound += (1 - theta_n) * divergence(without(own_n)[b], without(own)[b])
        bound += law_n @ divergence(world_n, world)
        found = divergence(law_n @ world_n, law @ world)
        assert found <= bound * (1 + 1e-9) + 1e-15
        tightest = max(tightest, found / bound)
    assert tightest > 0.9  # the bound is not idle


def shares_of_bounds(learner, problem):
    """The largest n · divergence / f(n) of moves, silence, refusals and heeds: 1 where it fails."""
    _, S, A = learner._transitions.visits.shape
    moves, habits, heeds, _ = logs_of(learner, sure=True)

    def f(n, log, d):
        return log + d * np.log(np.e * (1 + n / d))

    n_hsa, own = learner._transitions.visits, learner.habit
    p_hat = tables(learner) / np.maximum(n_hsa, 1)[..., None]
    moved = n_hsa * divergence(p_hat, problem.mdp.kernel.to_dense()) / f(n_hsa, moves, S - 1)
    free = learner._actions * (1 - np.eye(A + 1, A, dtype=int))
    silent, refused = free[:, :, A].sum(axis=2), free[:, :, :A].sum(axis=3)
    habit = (A + 1) * f(free.sum(axis=(2, 3)), habits, A - 1)
    alone = silent * divergence(own, problem.policy) / habit
    m_hsb = silent[..., None] * (1 - own) + refused
    unmoved = m_hsb * divergence(without(own), without(problem.policy)) / habit[..., None]
    matched, given = (learner.matched, learner.given)
    heed = of_a_coin(matched / np.maximum(given, 1), problem.adherence[0].reshape(-1))
    return np.array([x.max() for x in (moved, alone, unmoved, given * heed / f(given, heeds, 1))])


@pytest.mark.slow
def test_at_all_times_at_once_each_factor_is_as_close_as_it_claims():
    # Advice follows what was seen before. After each of 150 episodes, in 60 runs.
    problem, runs = small_and_random(), 60
    simulator, most = counsel.Simulator(problem), np.zeros((runs, 4))
    for seed in range(runs):
        learner, rng = fresh(problem, seed=seed, delta=0.1), np.random.default_rng(seed + 500)
        for _ in range(150):
            learner.explore(simulator, episodes=1, rng=rng)
            most[seed] = np.maximum(most[seed], shares_of_bounds(learner, problem))
    failed = (most > 1.0).any(axis=1).mean()
    # Four standard errors of 120 runs. (Measured: none fails. With 60 runs, bounds that fail in one
    # of three pass once in 40 times.)
    assert failed <= 0.1 + 4 * math.sqrt(0.1 * 0.9 / 120)
    # The bounds are not idle: measured 0.64, 0.09, 0.11 and 0.81 of them (a habit has A + 1 sets).
    assert (most.max(axis=0) > [0.5, 0.08, 0.08, 0.5]).all()


@each_seed(range(10))
def test_what_it_has_learnt_of_each_advice_is_as_close_to_the_truth_as_it_claims(seed):
    # KL(p̂ᴹ ‖ pᴹ) ≤ Φ wherever Φ is finite. The chance that any of these fails is below 10 δ.
    problem, tightest = small_and_random(seed), 0.0
    truth, simulator = problem.machine().kernel.to_dense(), counsel.Simulator(problem)
    learner, rng = fresh(problem, seed=seed, delta=0.001), np.random.default_rng(seed)
    for episodes in (1, 5, 10, 30, 100, 300, 1000):
        learner.explore(simulator, episodes=episodes, rng=rng)
        W, phi, _ = slow_uncertainty(learner, sure=True)
        p_hat = tables(learner) / np.maximum(learner._transitions.visits, 1)[..., None]
        matched, given = (learner.matched, learner.given)
        for h, s, b in np.argwhere(np.isfinite(phi) & (W >= 0)):
            law = learner.habit[h, s]
            if b < 3:
                g = group_table(learner)[h, s, b]
                law = advised_law(law, b, matched[g] / given[g])
            off = divergence(law @ p_hat[h, s], truth[s, b])
            assert off <= phi[h, s, b]
            tightest = max(tightest, off / phi[h, s, b])
    assert tightest > 0.001  # nor is it further off than a thousandfold
