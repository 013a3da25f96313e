"""What must hold for any memory: simple memories change nothing, and order does not matter."""

from dataclasses import replace

import numpy as np

import counsel
from tests.support.drawn_memories import draw
from tests.support.each import each_seed, each_seed_up_to
from tests.support.memory_model import pieces
from tests.support.old_hard_planner import plan_hard
from tests.support.problems import adapt_memory

LIMITS = (
    {},
    {"penalty": 0.2},
    {"budget": 1.3},
    {"budget": 2, "hard": True},
)


def limits(P):
    """Return the limits that a problem can be solved under."""
    is_whole = (P.cost >= 1.0).all() and (P.cost == np.floor(P.cost)).all()
    return [limit for limit in LIMITS if is_whole or "hard" not in limit]


def without_memory(P):
    """Return Counsel's problem of a person who listens as on level 0, always."""
    mdp = counsel.MDP(P.p, P.r, horizon=P.H, start=P.start, allowed=P.allowed)
    human = counsel.Human(P.habit, lift=P.lift[0])
    return counsel.AdviceProblem(mdp, human, cost=P.cost)


def solve(problem, masks, limit):
    """Return a plan, or the message of the refusal."""
    try:
        return counsel.solve(problem, **limit, **masks)
    except counsel.CounselError as refusal:
        return str(refusal)


def check_same(plan, plain, tolerance=1e-12):
    """Every level of a plan is the plan of a person without a memory."""
    if isinstance(plain, str):
        assert plan == plain
        return
    for name in ("value", "advice_count", "advice_cost", "net_value", "price"):
        np.testing.assert_allclose(getattr(plan, name), getattr(plain, name), 0, tolerance)
    M = plan.policy.levels
    for m in range(M):
        values = plan.values.reshape(-1, M, *plain.values.shape[-2:])[:, m]
        expected = plain.values.reshape(values.shape)
        np.testing.assert_allclose(values, expected, rtol=0, atol=tolerance)


@each_seed(range(25))
def test_one_level_equals_no_memory(seed):
    P = draw(seed, H=3, S=3, memory="random", M=1)
    (problem, masks), plain = adapt_memory(P), without_memory(P)
    for limit in limits(P):
        plan, expected = solve(problem, masks, limit), solve(plain, masks, limit)
        check_same(plan, expected)
        if not isinstance(plan, str):
            same = plan.policy.advice.reshape(expected.policy.advice.shape)
            np.testing.assert_array_equal(same, expected.policy.advice)
    np.testing.assert_allclose(
        counsel.criticality(problem, **masks).lower[0],
        counsel.criticality(plain, **masks).lower,
        rtol=1e-12,
        atol=1e-12,
    )


def test_one_level_whose_rows_are_1_but_for_rounding_equals_no_memory():
    P = draw(3, memory="random", M=1, costs="one")
    (problem, masks), plain = adapt_memory(P), without_memory(P)
    almost = [[1.0 - 2.0**-53]]
    human = plain.human.with_memory(counsel.Memory([[1.0]], almost, almost))
    for limit in limits(P):
        plan = solve(counsel.AdviceProblem(problem.mdp, human), masks, limit)
        check_same(plan, solve(plain, masks, limit))


@each_seed(range(40))
def test_a_hard_budget_on_one_level_equals_no_memory_to_the_last_bit(seed):
    P = draw(seed, memory="random", M=1, costs="whole" if seed % 2 else "one")
    (problem, masks), plain = adapt_memory(P), without_memory(P)
    for budget in (0, 1, 3):
        limit = {"budget": budget, "hard": True}
        plan, expected = solve(problem, masks, limit), solve(plain, masks, limit)
        if isinstance(plan, str):
            assert plan == expected
            continue
        assert plan.values.tobytes() == expected.values.tobytes()
        assert plan.policy.advice.tobytes() == expected.policy.advice.tobytes()


@each_seed(range(20))
def test_fading_of_one_equals_no_memory(seed):
    P = draw(seed, H=3, S=3, lifts="flat")
    problem, masks = adapt_memory(P)
    human = counsel.Human(
        P.habit, lift=P.lift[0], memory=problem.memory, fading=np.ones(problem.n_levels)
    )
    faded = counsel.AdviceProblem(problem.mdp, human, cost=P.cost)
    plain = without_memory(P)
    for limit in limits(P):
        check_same(solve(faded, masks, limit), solve(plain, masks, limit))


@each_seed(range(30))
def test_more_fading_never_helps_when_pieces_are_counted(seed):
    # Where a later piece moved the person more than an earlier one, and where advice is required,
    # less lift may help; so the fading never rises with the level, and no advice is required.
    drawn = {"memory": "pieces", "M": 3, "lifts": "flat", "negative": False, "required": False}
    P = draw(seed, H=4, S=3, A=2, **drawn)
    problem, masks = adapt_memory(P)
    rng = np.random.default_rng(seed)
    fading = np.sort(rng.random(P.M))[::-1]
    last = None
    for _ in range(4):
        human = counsel.Human(P.habit, lift=P.lift[0], memory=problem.memory, fading=fading)
        faded = counsel.AdviceProblem(problem.mdp, human, cost=P.cost)
        values = [counsel.solve(faded, penalty=beta, **masks).net_value for beta in (0.0, 0.2)]
        if last is not None:
            assert (np.array(values) <= np.array(last) + 1e-12).all()
        last = values
        fading = fading * np.where(np.arange(P.M) >= rng.integers(P.M), rng.random(), 1.0)


def permuted(P, order):
    """Return the problem with its levels in another order."""
    place = np.argsort(order)
    return replace(
        P,
        lift=P.lift[order],
        K0=P.K0[np.ix_(order, order)],
        Kplus=P.Kplus[np.ix_(order, order)],
        Kminus=P.Kminus[np.ix_(order, order)],
        start_level=int(place[P.start_level]),
    )


@each_seed(range(20))
def test_permuting_levels_permutes_the_plan(seed):
    P = draw(seed, H=3, S=3, A=3)
    order = np.random.default_rng(seed).permutation(P.M)
    (problem, masks), (other, _) = adapt_memory(P), adapt_memory(permuted(P, order))
    for limit in limits(P):
        plan, again = solve(problem, masks, limit), solve(other, masks, limit)
        if isinstance(plan, str):
            assert plan == again
            continue
        axis = plan.values.ndim - 3
        np.testing.assert_allclose(again.values, plan.values.take(order, axis), 0, 1e-10)
        np.testing.assert_allclose(
            (again.value, again.advice_cost, again.price),
            (plan.value, plan.advice_cost, plan.price),
            rtol=0,
            atol=1e-8,
        )
        if "budget" not in limit or "hard" in limit:  # a budget may be spent in any of tied cells
            advice = plan.policy.advice.take(order, axis)
            np.testing.assert_array_equal(again.policy.advice, advice)
    np.testing.assert_allclose(
        counsel.criticality(other, **masks).lower,
        counsel.criticality(problem, **masks).lower[order],
        rtol=1e-9,
        atol=1e-9,
    )


@each_seed(range(20))
def test_planning_for_a_memory_is_worth_no_less_than_ignoring_it(seed):
    P = draw(seed, H=4, S=3, A=2)
    problem, masks = adapt_memory(P)
    blind = counsel.solve(without_memory(P), **masks).policy
    best = counsel.solve(problem, **masks).value
    assert counsel.evaluate(problem, blind).value <= best + 1e-10


# ------------------------------------------------------------- the old planner of hard budgets


def check_old_planner(seed, budgets):
    P = draw(seed, memory="random", M=1, costs="whole" if seed % 2 else "one")
    plain = without_memory(P)
    masks = {"forbidden": P.forbidden, "required": P.required}
    for budget in budgets:
        V_khs, advice_khs = plan_hard(plain, budget, **masks)
        plan = solve(plain, masks, {"budget": budget, "hard": True})
        if isinstance(plan, str):
            assert (V_khs[-1, 0, P.start > 0.0] == -np.inf).any()
            continue
        assert plan.values.tobytes() == V_khs.tobytes()
        assert plan.policy.advice.tobytes() == advice_khs.tobytes()


@each_seed(range(100))
def test_hard_budgets_equal_the_old_planner_to_the_last_bit(seed):
    check_old_planner(seed, (seed % 5,))


@each_seed_up_to(100, 1000)
def test_hard_budgets_of_many_problems_equal_the_old_planner_to_the_last_bit(seed):
    check_old_planner(seed, (0, 1, 2, 4, 7))


@each_seed(range(20))
def test_advice_that_does_not_tire_counts_pieces_for_nothing(seed):
    """A memory of the pieces given changes nothing if every level listens alike."""
    P = draw(seed, H=3, S=2, A=2, memory="random", M=1)
    memory = pieces(2)
    many = replace(
        P,
        lift=np.repeat(P.lift, 3, axis=0),
        K0=memory.K0,
        Kplus=memory.Kplus,
        Kminus=memory.Kminus,
        start_level=0,
    )
    problem, masks = adapt_memory(many)
    for limit in limits(P):
        check_same(solve(problem, masks, limit), solve(without_memory(P), masks, limit))
