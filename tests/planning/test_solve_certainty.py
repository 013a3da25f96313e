"""Plans for people who are certain, or almost, against backward induction with fractions."""

import math
from fractions import Fraction

import numpy as np

import counsel
from counsel.planning.gains import gains

ULP = 2.0**-53
SMALL = (0.0, 5e-324, 1e-307, 1e-300, 1e-200, 1e-100, 1e-17, 1e-16, ULP, 1e-12)
THETA = (0.0, 5e-324, 1e-300, 1e-17, ULP, 0.5, 1.0 - ULP, 1.0)
S, A, H = 3, 3, 3
CLOSE = 1e-12
"""How far a value may be off, relative to the largest value of an episode."""


def draw_habit(rng):
    """Two small probabilities and what they leave, in any order."""
    p, q = (float(rng.choice(SMALL)) for _ in range(2))
    return rng.permutation([1.0 - p - q, p, q] if rng.random() < 0.8 else [0.5, 0.5 - p, p])


def draw_adherence(rng, habit):
    """An end of [0, 1], the habit, or one rounding beside it."""
    near = rng.choice([-1.0, 0.0, 2.0])
    beside = [p if near == 0.0 else min(max(math.nextafter(p, near), 0.0), 1.0) for p in habit]
    return np.where(rng.random(A) < 0.6, rng.choice(THETA, size=A), beside)


def draw_problem(seed, *, size=1.0, by="adherence"):
    """A small world with chance, and a person close to certain in every state."""
    rng = np.random.default_rng(seed)
    transition = rng.multinomial(8, [1 / S] * S, size=(S, A)) / 8.0
    reward = size * rng.choice([0.0, 1.0, -0.5, 0.3, 1.0 + 1e-6], size=(S, A))
    own = np.array([draw_habit(rng) for _ in range(S)])
    theta = np.array([draw_adherence(rng, habit) for habit in own])
    human = counsel.Human(own, theta)
    if by == "lift":
        human = counsel.Human(own, lift=human.lift)
    return counsel.AdviceProblem(counsel.MDP(transition, reward, horizon=H), human)


def problems(count):
    """Yield problems of all sizes of reward, by adherence and by lift."""
    for seed in range(count):
        size, by = (1.0, 1e8, 1e-6)[seed % 3], ("adherence", "lift")[seed // 3 % 2]
        yield f"seed {seed}, size {size:g}, by {by}", draw_problem(seed, size=size, by=by), size


def exact_law(problem, s, b):
    """Equation 1 with fractions, of the habit and the adherence that are stored."""
    own = [Fraction(p) for p in problem.policy[0, s].tolist()]
    rest = sum(p for a, p in enumerate(own) if a != b)
    if b == A or rest == 0:
        return own
    theta = Fraction(float(problem.adherence[0, s, b]))
    return [theta if a == b else (1 - theta) * p / rest for a, p in enumerate(own)]


class Exact:
    """The machine's problem with fractions."""

    def __init__(self, problem):
        world = problem.mdp.kernel.to_sparse().toarray().reshape(S, A, S)
        self.p = [[[Fraction(p) for p in row] for row in rows] for rows in world.tolist()]
        self.r = [[Fraction(r) for r in row] for row in problem.mdp.reward[0].tolist()]
        self.laws = [[exact_law(problem, s, b) for b in range(A + 1)] for s in range(S)]

    def ahead(self, values):
        """Q of every state and advice, silence last."""
        table = []
        for s in range(S):
            q = [
                self.r[s][a] + sum(p * v for p, v in zip(self.p[s][a], values, strict=True))
                for a in range(A)
            ]
            table.append([sum(x * y for x, y in zip(law, q, strict=True)) for law in self.laws[s]])
        return table

    def best(self, penalty):
        """Values [h, s] of the best advice."""
        values = [[Fraction(0)] * S]
        for _ in range(H):
            rows = self.ahead(values[0])
            values.insert(0, [max([row[A], *(x - penalty for x in row[:A])]) for row in rows])
        return values

    def hard(self, pieces):
        """The value of the best advice with so many pieces at most, from state 0."""
        values = [[Fraction(0)] * S for _ in range(pieces + 1)]
        for _ in range(H):
            rows = [self.ahead(each) for each in values]
            values = [
                [max([rows[k][s][A], *(rows[k - 1][s][:A] if k else ())]) for s in range(S)]
                for k in range(pieces + 1)
            ]
        return values[pieces][0]

    def worth(self, advice_hs):
        """The value of given advice from state 0."""
        values = [Fraction(0)] * S
        for h in reversed(range(H)):
            rows = self.ahead(values)
            values = [rows[s][advice_hs[h][s]] for s in range(S)]
        return values[0]


def off(got, exact):
    return abs(float(Fraction(float(got)) - exact))


def test_the_best_plan_is_worth_what_exact_arithmetic_says():
    # Found here: for habits below 1e-307 plan and law differed by the whole reward.
    for case, problem, size in problems(60):
        exact, most = Exact(problem), CLOSE * H * size
        for penalty in (0.0, 0.125 * size):
            plan, best = counsel.solve(problem, penalty=penalty), exact.best(Fraction(penalty))
            assert off(plan.penalised_value, best[0][0]) <= most, f"{case}, penalty {penalty}"
            for h in range(H):
                for s in range(S):
                    assert off(plan.values[h, s], best[h][s]) <= most, f"{case}, h {h}, s {s}"
            told = plan.policy.advice.tolist()
            got = counsel.evaluate(problem, plan.policy).value
            assert off(got, exact.worth(told)) <= most, f"{case}, penalty {penalty}: evaluate"


def test_a_hard_budget_is_worth_what_exact_arithmetic_says():
    for case, problem, size in problems(30):
        exact = Exact(problem)
        for pieces in (0, 1, 2):
            plan = counsel.solve(problem, budget=pieces, hard=True)
            assert off(plan.value, exact.hard(pieces)) <= CLOSE * H * size, f"{case}, {pieces}"


def test_gains_are_what_exact_arithmetic_says():
    # Found here: lift × (Q − alone) in NumPy was off by 1e184 for a habit of [1, 1e-200], and the
    # service and the tables of a plan show it.
    for case, problem, size in problems(60):
        exact = Exact(problem)
        values = counsel.solve(problem).values
        _, gain = gains(problem, values)
        for h in range(H):
            rows = exact.ahead([Fraction(v) for v in values[h + 1].tolist()])
            for s in range(S):
                for b in range(A):
                    wanted = rows[s][b] - rows[s][A]
                    assert off(gain[h, s, b], wanted) <= CLOSE * H * size, f"{case}, {h, s, b}"


def test_explanations_and_criticality_are_what_exact_arithmetic_says():
    for case, problem, size in problems(24):
        exact = Exact(problem)
        plan, ranks = counsel.solve(problem), counsel.criticality(problem)
        last = exact.ahead([Fraction(0)] * S)
        for s in range(S):
            top = max(0, *(x - last[s][A] for x in last[s][:A]))
            # What is within 1e-12 of the values of all actions is a tie, and says nothing.
            assert off(ranks.lower[H - 1, s], top) <= 1e-11 * size, f"{case}, s {s}: criticality"
            why = counsel.explain(problem, plan, step=H - 1, state=s, criticality=ranks)
            wanted = last[s][why.considered] - last[s][A]
            assert off(why.gain, wanted) <= CLOSE * size, f"{case}, s {s}: explain"


def test_the_machines_own_mdp_is_worth_the_same():
    for case, problem, size in problems(24):
        machine = problem.machine()
        world = machine.kernel.to_sparse().toarray().reshape(S, A + 1, S)
        value = np.zeros(S)
        for _ in range(H):
            value = (machine.reward[0] + world @ value).max(axis=1)
        best = Exact(problem).best(Fraction(0))[0]
        for s in range(S):
            assert off(value[s], best[s]) <= CLOSE * H * size, f"{case}, s {s}"
