"""Counts and estimates of logs: against slow ones, in limits, and by how often intervals hold."""

import itertools

import numpy as np
import pyarrow as pa
import pytest

from counsel.logs.count import CUT, ENDED, Tally, count_log
from counsel.logs.estimate import Sharing, estimate
from counsel.logs.read import read_log
from tests.support import slow_logs
from tests.support.drawn_choices import draw_lifts, held, pooled
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
    slow = slow_logs.totals(pd.DataFrame(rows, dtype=object), by_step=True)
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
    told = {key: n for key, n in slow.moves.items() if key[3] != slow_logs.CUT}
    known = {key: n - slow.idle[key] for key, n in told.items() if n > slow.idle[key]}
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
        if found.habit.known[cell]:
            expected = slow_logs.habit(silent, refusals)
            np.testing.assert_allclose(found.habit.policy[cell], expected, atol=1e-3)


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


def test_pooling_on_adherence_is_pooling_with_habit_zero():
    rng = np.random.default_rng(6)
    tally, _ = draw_tally(rng, n=20, silent=40)
    found = estimate(tally, Sharing(scale="adherence"))
    for b in range(len(tally.actions)):
        given, matched = found.given[0, :, b], found.matched[0, :, b]
        expected = pooled(given, matched, np.zeros(given.size))
        np.testing.assert_allclose(found.adherence[0, :, b], expected.mean, atol=1e-9)
