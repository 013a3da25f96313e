"""Counts and estimates of logs: against slow ones, in limits, and by how often intervals hold."""

import itertools

import numpy as np
import pyarrow as pa
import pytest

from counsel.estimate.habit import habit_of
from counsel.estimate.pooling import GRID, Heard, likeliest, pool
from counsel.estimate.rates import student, wilson
from counsel.logs.counts import CUT, ENDED, Tally, count_log
from counsel.logs.estimates import Sharing, estimate
from counsel.logs.read import read_log
from tests.support import slow_logs
from tests.support.each import each
from tests.support.later import Later

pd, stats = Later("pandas"), Later("scipy.stats")

EXTRA = ("next_state", "terminated", "truncated")
COLUMNS = [kept for size in range(4) for kept in itertools.combinations(EXTRA, size)]


def draw_log(seed, kept, *, with_seen):
    """A messy log: gaps, late beginnings, advice not seen, lost rewards, flags that are empty."""
    rng = np.random.default_rng(seed)

    def maybe(value, chance):
        return value if rng.random() < chance else None

    def one_of(names):
        return str(rng.choice(names))

    rows = []
    for episode in range(30):
        first, length = int(rng.choice([0, 0, 0, 2])), int(rng.integers(1, 6))
        steps = [first + i for i in range(length) if i == 0 or rng.random() < 0.85]
        for step in steps:
            last = step == steps[-1]
            ends = bool(rng.random() < (0.4 if last else 0.03))
            row = {
                "episode": f"e{episode}",
                "step": step,
                "state": one_of(["x", "y", "z"]),
                "advice": maybe(one_of(["a", "b", "d"]), 0.6),
                "action": one_of(["a", "b", "c"]),
                "reward": maybe(float(rng.integers(-8, 9)) / 4, 0.8),
                "next_state": maybe("heaven" if ends else one_of(["x", "y", "w"]), 0.5),
                "terminated": maybe(ends, 0.9),
                "truncated": maybe(last and not ends and bool(rng.random() < 0.5), 0.9),
                "seen": maybe(bool(rng.random() < 0.7), 0.9),
            }
            dropped = {*EXTRA} - {*kept} | (set() if with_seen else {"seen"})
            rows.append({name: value for name, value in row.items() if name not in dropped})
    order = rng.permutation(len(rows))
    return [rows[i] for i in order]


def read(rows):
    """The same rows for the engine, all empty columns with their kind."""
    kinds = {"step": pa.int64(), "reward": pa.float64()}
    flags = dict.fromkeys(("terminated", "truncated", "seen"), pa.bool_())
    names = list(rows[0])
    schema = pa.schema([(name, {**kinds, **flags}.get(name, pa.string())) for name in names])
    return read_log(pa.Table.from_pylist(rows, schema=schema))


def added(tally, where, keys, weight):
    """Sum over a tally's kinds by some of their labels; only what is not 0."""
    out = {}
    for i in np.flatnonzero(where):
        key = tuple(name(i) for name in keys)
        key = key[0] if len(key) == 1 else key
        out[key] = out.get(key, 0.0) + float(weight[i])
    return {key: value for key, value in out.items() if value}


def labels(tally):
    """How to read each column of a tally."""
    ends = {ENDED: slow_logs.ENDED, CUT: slow_logs.CUT}

    def then(i):
        code = int(tally.then[i])
        return ends[code] if code in ends else tally.states[code]

    def advice(i):
        return (*tally.actions, None)[tally.advice[i]]

    return {
        "step": lambda i: int(tally.step[i]),
        "state": lambda i: tally.states[tally.state[i]],
        "action": lambda i: tally.actions[tally.action[i]],
        "advice": advice,
        "then": then,
    }


@pytest.mark.parametrize("by_step", [False, True])
@pytest.mark.parametrize("kept", COLUMNS, ids=lambda kept: "+".join(kept) or "none")
def test_a_tally_holds_what_a_loop_over_rows_counts(kept, by_step):
    with_seen = len(kept) % 2 == 0
    rows = draw_log(COLUMNS.index(kept), kept, with_seen=with_seen)
    slow = slow_logs.totals(pd.DataFrame(rows, dtype=object), by_step=by_step)
    tally = count_log(read(rows), by_step=by_step)
    assert tally.horizon == slow.horizon
    assert tally.states == tuple(sorted(slow.states))
    assert tally.actions == tuple(sorted(slow.actions))
    at = labels(tally)
    every, spoken = np.ones(tally.times.size, dtype=bool), tally.heard < len(tally.actions)
    same = tally.advice == tally.action
    cell = [at["step"], at["state"]]
    act, say = [*cell, at["action"]], [*cell, at["advice"]]
    for name, where, keys, weight in (
        ("taken", every, act, tally.times),
        ("given", spoken, say, tally.times),
        ("matched", spoken & same, say, tally.times),
        ("refusing", spoken & ~same, [*say, at["action"]], tally.times),
        ("silent", ~spoken, act, tally.times),
        ("sent", every, say, tally.times),
        ("moves", every, [*act, at["then"]], tally.times),
        ("starts", tally.opens, [at["state"]], tally.times),
        ("priced", every, act, tally.priced),
        ("paid", every, act, tally.paid + tally.least * tally.priced),
        (
            "squares",
            every,
            act,
            tally.paid_squares + 2.0 * tally.least * tally.paid + tally.least**2 * tally.priced,
        ),
    ):
        expected = {key: value for key, value in getattr(slow, name).items() if value}
        assert added(tally, where, keys, weight) == expected, name
    assert tally.episodes == len({row["episode"] for row in rows})


@pytest.mark.parametrize("by_step", [False, True])
def test_estimates_are_shares_and_means_of_what_the_loop_counts(by_step):
    rows = draw_log(50, ("terminated",), with_seen=True)
    slow = slow_logs.totals(pd.DataFrame(rows, dtype=object), by_step=by_step)
    tally = count_log(read(rows), by_step=by_step)
    found = estimate(tally, Sharing())
    S, A = len(tally.states), len(tally.actions)
    share, low, high = found.moves()
    moves = {}
    for i, (row, then) in enumerate(zip(found.move_row, found.move_then, strict=True)):
        layer, s, a = row // A // S, row // A % S, row % A
        after = (*tally.states, slow_logs.ENDED)[then]
        moves[int(layer), tally.states[s], tally.actions[a], after] = i
    known = {key: n for key, n in slow.moves.items() if key[3] != slow_logs.CUT}
    assert set(moves) == set(known)
    for key, n in known.items():
        of = sum(times for other, times in known.items() if other[:3] == key[:3])
        ends = stats.binomtest(n, of).proportion_ci(method="wilson")
        got = share[moves[key]], low[moves[key]], high[moves[key]]
        assert got == pytest.approx((n / of, ends.low, ends.high), abs=1e-12)
    for (layer, state, action), n in slow.taken.items():
        key = layer, tally.states.index(state), tally.actions.index(action)
        name = layer, state, action
        assert found.taken[key] == n
        assert found.given[key] == slow.given[name]
        assert found.matched[key] == slow.matched[name]
        assert found.sent[key] == slow.sent[name]
        if slow.priced[name]:
            mean = slow.paid[name] / slow.priced[name]
            assert found.reward[key] == pytest.approx(mean, abs=1e-12)
            assert found.problem.mdp.reward[key] == pytest.approx(mean, abs=1e-12)
    for layer, state in {key[:2] for key in slow.taken}:
        index = [(layer, state, action) for action in tally.actions]
        silent = np.array([slow.silent[key] for key in index], dtype=float)
        refusals = np.array(
            [[slow.refusing[(*row, a)] for a in tally.actions] for row in index], dtype=float
        )
        cell = layer * S + tally.states.index(state)
        if found.habit.told[cell]:
            expected = slow_logs.habit(silent, refusals)
            np.testing.assert_allclose(found.habit.policy[cell], expected, atol=1e-3)


# Rates.


def test_wilson_is_scipys():
    for n in (1, 2, 7, 100, 5000):
        for k in {0, 1, n // 3, n - 1, n}:
            ends = stats.binomtest(k, n).proportion_ci(method="wilson")
            assert np.array(wilson(k, n)) == pytest.approx([ends.low, ends.high], abs=1e-12)
    assert np.array(wilson(0, 0)).tolist() == [0.0, 1.0]


def test_student_is_scipys():
    rng = np.random.default_rng(1)
    for n in (2, 3, 10, 500):
        x = rng.gamma(2.0, size=n)
        ends = stats.t.interval(0.95, n - 1, loc=x.mean(), scale=stats.sem(x))
        assert student(n, x.sum(), (x**2).sum()) == pytest.approx(ends, abs=1e-9)
    assert np.array(student([0, 1], [0.0, 2.0], [0.0, 4.0])).tolist() == [
        [-np.inf, -np.inf],
        [np.inf, np.inf],
    ]


# Habit.


def draw_choices(rng, *, most_actions=5, silences=(0, 1, 5, 50), refusals=(1, 3, 30, 1000)):
    """Free choices of a person: silent [a] and against advice [b, a]."""
    A = int(rng.integers(2, most_actions + 1))
    pi = rng.dirichlet(np.ones(A))
    silent = rng.multinomial(rng.choice(silences), pi).astype(float)
    against = np.zeros((A, A))
    for b in np.flatnonzero(rng.random(A) < 0.6):
        rest = np.where(np.arange(A) == b, 0.0, pi)
        against[b] = rng.multinomial(rng.choice(refusals), rest / rest.sum())
    return silent, against


def habit(silent, against):
    silent, against = np.asarray(silent, dtype=float), np.asarray(against, dtype=float)
    taken = silent + against.sum(axis=0)
    return habit_of(silent[None], against.sum(axis=0)[None], against.sum(axis=1)[None], taken[None])


def test_the_habit_is_the_one_a_general_optimiser_finds():
    rng = np.random.default_rng(2)
    compared = sized = 0
    for _ in range(80):
        silent, against = draw_choices(rng)
        found = habit(silent, against)
        if not found.told[0]:
            continue
        expected = slow_logs.habit(silent, against)
        # The optimiser stops some 1e-4 before a maximum at 0 or 1.
        np.testing.assert_allclose(found.policy[0], expected, atol=2e-4)
        compared += 1
        if expected.min() > 1e-2 and against.sum() > 0:
            sizes = slow_logs.habit_sizes(found.policy[0], silent, against)
            np.testing.assert_allclose(found.size[0], sizes, rtol=1e-2)
            sized += 1
    assert compared > 50
    assert sized > 25


def test_many_refusals_that_say_nothing_do_not_hide_a_few_silent_decisions():
    # With two actions a refusal can only be the other one: π is that of the silent decisions.
    for m in (10, 1000, 100_000):
        found = habit([2, 3], [[0, m], [2 * m, 0]])
        np.testing.assert_allclose(found.policy, [[0.4, 0.6]], atol=1e-6)
        np.testing.assert_allclose(found.size, [[5.0, 5.0]], rtol=1e-6)
        np.testing.assert_allclose(found.low[0], wilson([2, 3], 5)[0], atol=1e-6)


def test_only_silence_gives_shares_and_their_counts():
    found = habit([2, 0, 6], np.zeros((3, 3)))
    assert found.policy[0].tolist() == [0.25, 0.0, 0.75]
    assert found.size[0].tolist() == [8.0, 8.0, 8.0]
    assert found.high[0] == pytest.approx(wilson([2, 0, 6], 8)[1])


def test_a_habit_is_told_where_its_likelihood_has_one_maximum():
    rng = np.random.default_rng(3)
    seen = set()
    for _ in range(100):
        A = int(rng.integers(2, 5))
        silent = rng.integers(0, 3, A) * (rng.random() < 0.2)
        against = rng.integers(0, 3, (A, A)) * (rng.random((A, A)) < 0.6)
        against = against * (rng.random(A) < 0.6)[:, None]
        np.fill_diagonal(against, 0)
        if silent.sum() + against.sum() == 0:
            continue
        told = bool(habit(silent, against).told[0])
        assert told == slow_logs.habit_is_unique(silent, against), (silent, against)
        seen.add((told, bool(silent.sum()), int((against.sum(axis=1) > 0).sum())))
    assert len(seen) > 6


def test_refusals_of_two_that_all_went_to_the_other_tell_nothing():
    # (π₁ / (π₁ + π₂))³ (π₀ / (π₀ + π₂))² is 1 wherever π₂ = 0.
    found = habit([0, 0, 0], [[0, 3, 0], [2, 0, 0], [0, 0, 0]])
    assert not found.told[0]
    assert habit([0, 0, 0], [[0, 3, 1], [2, 0, 0], [0, 0, 0]]).told[0]


# Pooling.


def pooled(given, matched, habits, sizes=None):
    units = len(given)
    sizes = np.full(units, np.inf) if sizes is None else np.asarray(sizes, dtype=float)
    given, matched = np.asarray(given, dtype=float), np.asarray(matched, dtype=float)
    family = np.zeros(units, dtype=np.int64)
    return pool(Heard(np.arange(units), family, given, matched, np.asarray(habits, float), sizes))


@pytest.mark.parametrize(
    ("given", "matched", "habits"),
    [
        ([10, 30], [1, 6], [0.0, 0.0]),
        ([3, 1], [3, 0], [0.3, 0.6]),
        ([1, 1, 1, 1], [1, 1, 1, 0], [0.1, 0.3, 0.6, 0.3]),
        ([100, 10, 10, 10, 100], [39, 6, 7, 2, 68], [0.1, 0.1, 0.1, 0.1, 0.3]),
        ([10, 3, 3, 10, 10, 30], [10, 2, 3, 10, 10, 30], [0.1, 0.6, 0.1, 0.0, 0.3, 0.3]),
        ([10, 30, 100, 1, 10, 10], [6, 26, 72, 0, 6, 1], [0.0, 0.6, 0.6, 0.0, 0.6, 0.1]),
    ],
)
def test_pooling_is_the_posterior_summed_over_a_box(given, matched, habits):
    # The net is 12 spreads by 13 middles up to three standard errors: worth 0.02 where a family
    # says next to nothing, and 0.005 elsewhere.
    found, slow = pooled(given, matched, habits), slow_logs.pooled(given, matched, habits)
    far = 0.02 if sum(given) < 10 else 0.01
    for name in ("mean", "low", "high"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(slow, name), atol=far, err_msg=name
        )


@pytest.mark.parametrize(
    ("given", "matched", "habits", "sizes"),
    [
        ([30, 1000], [20, 498], [0.3, 0.3], [10, np.inf]),
        ([1000, 1000], [645, 460], [0.6, 0.3], [20, 20]),
        ([100, 30, 10], [62, 14, 7], [0.3, 0.1, 0.6], [10, 50, 50]),
    ],
)
def test_pooling_with_a_habit_that_is_not_well_known(given, matched, habits, sizes):
    # Five points stand for the habit and are exact for a normal one; a Beta of ten is skewed.
    found = pooled(given, matched, habits, sizes)
    slow = slow_logs.pooled(given, matched, habits, sizes)
    for name in ("mean", "low", "high"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(slow, name), atol=0.025, err_msg=name
        )


def test_the_likeliest_lift_of_one_cell_is_its_excess_over_the_habit():
    rng = np.random.default_rng(4)
    n, pi = rng.integers(1, 200, 40).astype(float), rng.uniform(0.0, 0.8, 40)
    k = rng.binomial(n.astype(int), 0.5).astype(float)
    units = np.arange(40)
    own, error = likeliest(Heard(units, units * 0, n, k, pi, np.full(40, np.inf)))
    raw = (k / n - pi) / (1.0 - pi)
    # No lift is below −1, even where a habit would allow it.
    np.testing.assert_allclose(own, np.maximum(raw, -1.0), atol=1e-9)
    inside = (k > 1) & (n - k > 1) & (n > 50) & (raw > -1.0)
    share = k / n
    expected = np.sqrt(share * (1.0 - share) / n) / (1.0 - pi)
    np.testing.assert_allclose(error[inside], expected[inside], rtol=0.05)
    assert inside.sum() > 5


def test_with_much_data_pooling_keeps_each_units_own():
    given = [40_000] * 4
    matched = [6_000, 16_000, 22_000, 38_000]
    found = pooled(given, matched, [0.1, 0.1, 0.1, 0.1])
    np.testing.assert_allclose(found.mean, (np.array(matched) / 40_000 - 0.1) / 0.9, atol=1e-6)
    half = 1.96 * np.sqrt(0.15 * 0.85 / 40_000) / 0.9
    assert found.high[0] - found.low[0] == pytest.approx(2 * half, rel=0.01)
    close = pooled([2000] * 4, [300, 800, 1100, 1900], [0.1] * 4)
    np.testing.assert_allclose(close.mean, close.own, atol=0.003)


def test_units_that_are_alike_are_pulled_together():
    rng = np.random.default_rng(5)
    matched = rng.binomial(20, 0.5, 100)
    found = pooled([20] * 100, matched, [0.0] * 100)
    assert np.std(found.own) > 0.1
    assert np.std(found.mean) < 0.3 * np.std(found.own)
    common = matched.sum() / 2000
    assert found.mean.mean() == pytest.approx(common, abs=0.005)
    apart = pooled([20] * 100, rng.binomial(20, np.linspace(0.05, 0.95, 100)), [0.0] * 100)
    assert np.std(apart.mean) > 0.8 * np.std(apart.own)


def test_a_unit_without_data_is_its_family():
    unit, family = np.array([0, 1, 3, 4]), np.array([0, 0, 0, 1, 1, 1])
    n, k = np.array([50.0, 80.0, 50.0, 80.0]), np.array([10.0, 20.0, 40.0, 70.0])
    found = pool(Heard(unit, family, n, k, np.zeros(4), np.full(4, np.inf)))
    density = found.families / found.families.sum(axis=1, keepdims=True)
    assert found.mean[[2, 5]] == pytest.approx(density @ GRID, abs=1e-9)
    assert found.mean[2] < 0.4 < 0.6 < found.mean[5]
    assert np.isnan(found.own[[2, 5]]).all()
    assert (found.high[[2, 5]] - found.low[[2, 5]] > 0.3).all()
    # Where nobody was ever heard, any lift from 0 to 1 is as likely as any other.
    nobody = pool(Heard(unit[:0], family[:2], n[:0], k[:0], n[:0], n[:0]))
    assert nobody.mean == pytest.approx([0.5, 0.5])


def test_pooling_on_adherence_is_pooling_with_habit_zero():
    rng = np.random.default_rng(6)
    tally, _ = draw_tally(rng, n=20, silent=40)
    found = estimate(tally, Sharing(scale="adherence"))
    for b in range(len(tally.actions)):
        given, matched = found.given[0, :, b], found.matched[0, :, b]
        expected = pooled(given, matched, np.zeros(given.size))
        np.testing.assert_allclose(found.adherence[0, :, b], expected.mean, atol=1e-9)


# How often intervals hold.


def draw_tally(rng, *, n, silent, S=4, A=3):
    """Counts of a stationary person and world; each advice given n times in each state."""
    pi, p = rng.dirichlet(np.full(A, 2.0), S), rng.dirichlet(np.ones(S), (S, A))
    lift = draw_lifts(rng, pi.T).T
    rows = []
    for s, b in itertools.product(range(S), range(A + 1)):
        law = pi[s]
        if b < A:
            law = lift[s, b] * (np.arange(A) == b) + (1.0 - lift[s, b]) * pi[s]
        for a, times in enumerate(rng.multinomial(silent if b == A else n, law)):
            went = rng.multinomial(times, p[s, a])
            rows += [(s, b, a, t, went[t]) for t in np.flatnonzero(went)]
    s, b, a, t, times = np.array(rows).T
    zero, yes, count = np.zeros_like(s), np.ones(s.size, dtype=bool), times.astype(float)
    tally = Tally(
        states=tuple("wxyz"[:S]),
        actions=tuple("abc"[:A]),
        horizon=3,
        block=zero,
        step=zero,
        state=s,
        advice=b,
        action=a,
        then=t,
        seen=yes,
        opens=yes,
        times=count,
        priced=count,
        paid=count * 0.5,
        paid_squares=count * 0.25,
        by_step=False,
    )
    return tally, (p, pi, lift)


def draw_lifts(rng, pi):
    """Lifts [family, unit] that are alike in a family: a normal, cut to where they are possible."""
    out = np.empty(pi.shape)
    for f, row in enumerate(pi):
        mu, tau = rng.uniform(0.0, 0.9), rng.uniform(0.0, 0.3)
        for u, own in enumerate(row):
            floor = max(-1.0, -own / (1.0 - own))
            low, high = stats.norm.cdf([(floor - mu) / tau, (1.0 - mu) / tau])
            drawn = mu + tau * stats.norm.ppf(rng.uniform(low, high))
            out[f, u] = np.clip(drawn, floor, 1.0)
    return out


def held(low, high, truth):
    return float(np.mean((low <= truth) & (truth <= high)))


@each("n", [3, 10, 100, 3000])
def test_own_intervals_of_shares_hold_as_often_as_they_say(n):
    # 12,000 shares: a standard error of 0.002. Wilson's averages 0.95 over θ, not at each θ.
    rng = np.random.default_rng(7)
    theta = rng.uniform(size=12_000)
    assert 0.94 < held(*wilson(rng.binomial(n, theta), n), theta) < 0.962
    p = rng.dirichlet(np.ones(4), 3000)
    counts = rng.multinomial(n, p)
    assert 0.94 < held(*wilson(counts, n), p) < 0.962


@each("n", [2, 3, 10, 100])
def test_intervals_of_mean_rewards_hold_as_often_as_they_say(n):
    # 10,000 means: three standard errors are 0.0065.
    rng = np.random.default_rng(8)
    x = rng.normal(3.0, 2.0, (10_000, n))
    assert held(*student(n, x.sum(axis=1), (x**2).sum(axis=1)), 3.0) == pytest.approx(
        0.95, abs=0.0065
    )


def draw_choices_of_many(rng, pi, lift, *, n, silent):
    """Counts of many cells: silent and refusing [cell, a], matched [cell, b] of n each."""
    alone = rng.multinomial(silent, pi).astype(float)
    against, matched = np.zeros(pi.shape), np.zeros(pi.shape)
    for b in range(pi.shape[1]):
        law = (1.0 - lift[:, b, None]) * pi
        law[:, b] += lift[:, b]
        acts = rng.multinomial(n, np.clip(law, 0.0, 1.0) / law.sum(axis=1, keepdims=True))
        matched[:, b] = acts[:, b]
        acts[:, b] = 0
        against += acts
    return alone, against, matched


@each("silent", [3, 20, 1000])
@each("n", [3, 10, 100, 3000])
def test_intervals_of_the_habit_hold_as_often_as_they_say(n, silent):
    # 2,000 cells of three dependent shares: a standard error of 0.0035 on two of them each.
    rng = np.random.default_rng(9)
    pi = rng.dirichlet(np.full(3, 2.0), 2000)
    lift = rng.uniform(0.0, 0.9, pi.shape)
    alone, against, matched = draw_choices_of_many(rng, pi, lift, n=n, silent=silent)
    found = habit_of(alone, against, n - matched, alone + against)
    assert found.told.all()
    assert 0.935 < held(found.low, found.high, pi) < 0.97


@pytest.mark.slow
@each(
    ("actions", "n", "silent"),
    [
        (3, 3, 90),
        (3, 10, 300),
        (3, 100, 3000),
        (3, 3000, 90_000),
        (3, 10, 3),
        (3, 100, 3),
        (3, 3000, 3),
        (2, 3, 5),
        (2, 100, 5),
        (2, 3000, 5),
        (2, 3000, 20),
    ],
)
def test_pooled_intervals_hold_as_often_as_they_say(actions, n, silent):
    # 80 families of four units for each action: 640 or 960 lifts that depend on each other a
    # little through μ, τ and π; three standard errors of 0.95 are 0.025. Where data are thin they
    # hold more often than they say, as the flat prior thinks of wider families than are drawn.
    rng = np.random.default_rng(10)
    S, families = 4, 80
    pi = rng.dirichlet(np.full(actions, 2.0), (families, S))
    by_family = np.swapaxes(pi, 1, 2).reshape(-1, S)
    lift = np.swapaxes(draw_lifts(rng, by_family).reshape(families, actions, S), 1, 2)
    flat_pi, flat_lift = pi.reshape(-1, actions), lift.reshape(-1, actions)
    alone, against, matched = draw_choices_of_many(rng, flat_pi, flat_lift, n=n, silent=silent)
    own = habit_of(alone, against, n - matched, alone + against)
    given = np.full(matched.size, float(n))
    cell, b = np.indices(matched.shape).reshape(2, -1)
    keep = own.policy.ravel() < 1.0
    family = cell // S * actions + b
    units = np.arange(matched.size)
    heard = Heard(
        units[keep],
        family,
        given[keep],
        matched.ravel()[keep],
        own.policy.ravel()[keep],
        own.size.ravel()[keep],
    )
    found = pool(heard)
    got = held(found.low[keep], found.high[keep], flat_lift.ravel()[keep])
    assert 0.925 < got < 0.99


def test_intervals_of_estimates_hold_end_to_end():
    # 40 logs; the bands are three standard errors of 480 shares, half as many for those of π.
    rng = np.random.default_rng(11)
    hits = {"p": [], "π": [], "θ": [], "λ": []}
    for _ in range(40):
        tally, (p, pi, lift) = draw_tally(rng, n=30, silent=15)
        found = estimate(tally, Sharing())
        _, low, high = found.moves()
        truth = p.reshape(-1, p.shape[-1])[found.move_row, found.move_then]
        hits["p"].append(held(low, high, truth))
        hits["π"].append(held(found.habit.low, found.habit.high, pi))
        theta = lift + (1.0 - lift) * pi
        hits["θ"].append(held(found.adherence_low[0], found.adherence_high[0], theta))
        use = found.usable[0]
        hits["λ"].append(held(found.lift_low[0][use], found.lift_high[0][use], lift[use]))
    for name, shares in hits.items():
        assert 0.915 < np.mean(shares) < 0.985, name
