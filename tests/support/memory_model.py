"""The model of advice to a person with a memory, as plain tables: for the oracles of tests only.

Written from the formulas of the model alone, without sight of the package.

Letters, used everywhere: H steps h, S states s (and t, the next one), A actions a, advice b, M
levels m (and n, the next one). A *choice* c of the machine is 0 … A−1 (advice) or A (silence). P is
the problem.

What happens in one step at (h, s, m):

1. The machine picks c. Advice b costs cost[h, s, b].
2. The person takes an action. After silence its probability is π(a); advised b, it is
   (1 − λ) π(a) for a ≠ b and λ + (1 − λ) π(b) for b.
3. The reward is r[h, s, a]. The next state is t ~ p[h, s, a, :]. The next level is n ~ K0[m] after
   silence, Kplus[m] if a = b, and Kminus[m] if a ≠ b. Given (s, a, m, c), t and n are independent.
"""

from dataclasses import dataclass, field

import numpy as np

TIE = 1e-12
"""Values that differ by less are tied, relative to the largest of them and at least 1."""


@dataclass
class Memory:
    """Three stochastic matrices [m, n] and the level at the start."""

    K0: np.ndarray  # after silence
    Kplus: np.ndarray  # after advice that was matched
    Kminus: np.ndarray  # after advice that was refused
    start: int = 0

    @property
    def levels(self):
        return len(self.K0)


def _moves(M, where):
    """Return the matrix of the certain moves m → where(m)."""
    K = np.zeros((M, M))
    for m in range(M):
        K[m, where(m)] = 1.0
    return K


def pieces(n):
    """Return the pieces given so far: levels 0 … n, where n means n or more; the start is 0."""
    up = _moves(n + 1, lambda m: min(m + 1, n))
    stay = _moves(n + 1, lambda m: m)
    return Memory(stay, up, up.copy(), 0)


def since(n):
    """Return the silent steps since the last piece: levels 0 … n, where n is the start.

    Level 0 is the step right after a piece, n means n or more, or never. Any piece leads to level
    0; silence adds one, up to n.
    """
    up = _moves(n + 1, lambda m: min(m + 1, n))
    zero = _moves(n + 1, lambda m: 0)
    return Memory(up, zero, zero.copy(), n)


def dose(decay, levels):
    """Return m ← decay · m + 1{spoke} on equally spaced points from 0 to 1 / (1 − decay).

    A value between two points is spread over them so that the mean is exact. The start is 0. Needs
    0 ≤ decay < 1 and at least 2 levels.
    """
    top = 1.0 / (1.0 - decay)
    grid = np.linspace(0.0, top, levels)
    gap = top / (levels - 1)

    def spread(spoke):
        K = np.zeros((levels, levels))
        for m in range(levels):
            x = decay * grid[m] + spoke  # the exact landing point
            x = min(max(x, 0.0), top)  # rounding only
            place = x / gap
            if abs(place - round(place)) < 1e-12:  # on a grid point, but for rounding
                K[m, round(place)] = 1.0
            else:
                low = int(np.floor(place))
                K[m, low] = 1.0 - (place - low)
                K[m, low + 1] = place - low
        return K

    return Memory(spread(0.0), spread(1.0), spread(1.0), 0)


def refusals(n):
    """Return the refusals in a row: levels 0 … n.

    A refusal adds one, up to n; a match leads to 0, the start; silence changes nothing.
    """
    up = _moves(n + 1, lambda m: min(m + 1, n))
    zero = _moves(n + 1, lambda m: 0)
    stay = _moves(n + 1, lambda m: m)
    return Memory(stay, zero, up, 0)


def join(a, b):
    """Return two memories side by side that hear of the same events and are independent otherwise.

    The level is m_a · M_b + m_b.
    """
    Ma, Mb = a.levels, b.levels

    def product(Ka, Kb):
        K = np.zeros((Ma * Mb, Ma * Mb))
        for i in range(Ma):
            for j in range(Mb):
                for k in range(Ma):
                    for n in range(Mb):
                        K[i * Mb + j, k * Mb + n] = Ka[i, k] * Kb[j, n]
        return K

    return Memory(
        product(a.K0, b.K0),
        product(a.Kplus, b.Kplus),
        product(a.Kminus, b.Kminus),
        a.start * Mb + b.start,
    )


@dataclass
class Problem:
    """All tables by step; a stationary problem repeats them."""

    p: np.ndarray  # [h,s,a,t]
    r: np.ndarray  # [h,s,a]
    start: np.ndarray  # [s]
    allowed: np.ndarray  # [h,s,a] bool
    habit: np.ndarray  # [h,s,a], zero where not allowed
    lift: np.ndarray  # [m,h,s,a]
    K0: np.ndarray  # [m,n]
    Kplus: np.ndarray  # [m,n]
    Kminus: np.ndarray  # [m,n]
    start_level: int = 0
    cost: np.ndarray = None  # [h,s,a], 1 by default
    forbidden: np.ndarray = None  # [h,s,a] bool, nothing by default
    required: np.ndarray = None  # [h,s] bool, nothing by default
    info: dict = field(default_factory=dict)  # how it was drawn

    def __post_init__(self):
        H, S, A = self.r.shape
        if self.cost is None:
            self.cost = np.ones((H, S, A))
        if self.forbidden is None:
            self.forbidden = np.zeros((H, S, A), bool)
        if self.required is None:
            self.required = np.zeros((H, S), bool)

    @property
    def H(self):
        return self.r.shape[0]

    @property
    def S(self):
        return self.r.shape[1]

    @property
    def A(self):
        return self.r.shape[2]

    @property
    def M(self):
        return len(self.K0)


def check(P):
    """Raise AssertionError where the tables break a rule of the model."""
    H, S, A, M = P.H, P.S, P.A, P.M
    assert P.p.shape == (H, S, A, S)
    assert P.habit.shape == (H, S, A)
    assert P.lift.shape == (M, H, S, A)
    assert np.all(P.p >= 0)
    assert np.allclose(P.p.sum(-1), 1)
    assert np.all(P.habit >= 0)
    assert np.allclose(P.habit.sum(-1), 1)
    assert np.all(P.start >= 0)
    assert np.isclose(P.start.sum(), 1)
    assert np.all(P.habit[~P.allowed] == 0)
    for K in (P.K0, P.Kplus, P.Kminus):
        assert K.shape == (M, M)
        assert np.all(K >= 0)
        assert np.allclose(K.sum(-1), 1)
    assert np.all(P.lift <= 1)
    for m in range(M):
        assert np.all((P.lift[m] + (1 - P.lift[m]) * P.habit)[P.allowed] >= -1e-12)
    for h in range(H):
        for s in range(S):
            if P.required[h, s]:
                assert choices(P, h, s), "required, but no advice is possible"


def choices(P, h, s):
    """Return the possible choices: allowed advice that is not forbidden, and silence (A).

    Silence is not possible where advice is required.
    """
    out = [b for b in range(P.A) if P.allowed[h, s, b] and not P.forbidden[h, s, b]]
    if not P.required[h, s]:
        out.append(P.A)
    return out


def lift_at(P, m, h, s, b):
    """Return the lift, which counts as 0 if the person is certain to take b."""
    others = [a for a in range(P.A) if a != b]
    if all(P.habit[h, s, a] == 0 for a in others):
        return 0.0
    return float(P.lift[m, h, s, b])


def action_probabilities(P, m, h, s, c):
    """Return the probability of each action [a] when the machine chooses c."""
    pi = P.habit[h, s]
    if c == P.A:
        return pi.copy()
    lam = lift_at(P, m, h, s, c)
    out = (1 - lam) * pi
    out[c] = lam + (1 - lam) * pi[c]
    if -1e-12 < out[c] < 0:  # rounding at the lowest lift that is possible
        out[c] = 0.0
    return out


def level_row(P, m, c, a):
    """Return the distribution [n] of the next level after choice c and action a."""
    if c == P.A:
        return P.K0[m]
    return P.Kplus[m] if a == c else P.Kminus[m]


def price_of(P, h, s, c):
    """Return the cost of choice c; silence is free."""
    return 0.0 if c == P.A else float(P.cost[h, s, c])


def mean_next(row, move, table):
    """Return Σ_n Σ_t row[n] move[t] table[n, t], where 0 · (−∞) counts as 0."""
    if np.all(np.isfinite(table)):
        return float(row @ table @ move)
    total = 0.0
    for n in range(len(row)):
        for t in range(len(move)):
            if row[n] > 0 and move[t] > 0:
                total += row[n] * move[t] * table[n, t]
    return float(total)


def choice_value(P, h, m, s, c, table, reward=True):
    """Return the expected reward (if ``reward``) plus the expected table[n, t], after choice c."""
    prob = action_probabilities(P, m, h, s, c)
    total = 0.0
    for a in range(P.A):
        if prob[a] > 0:
            q = mean_next(level_row(P, m, c, a), P.p[h, s, a], table)
            if reward:
                q += P.r[h, s, a]
            total += prob[a] * q
    return total


def near(x, best, values):
    """Return whether x ties with the best of some values."""
    finite = [abs(v) for v in values if np.isfinite(v)]
    return x == best or abs(x - best) <= TIE * max([1.0, *finite])


def pick(P, options):
    """Return the best of the options {choice: (value, expected cost from here on)}.

    Ties go to the least cost, then to silence, then to the lowest index.
    """
    values = [v for v, _ in options.values()]
    best = max(values)
    kept = [c for c in options if near(options[c][0], best, values)]
    costs = [options[c][1] for c in kept]
    least = min(costs)
    kept = [c for c in kept if near(options[c][1], least, costs)]
    return P.A if P.A in kept else min(kept)
