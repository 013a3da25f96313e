"""The frontier: every vertex, its range of penalties, and what is known when it is cut short."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import counsel
from counsel.planning import prepared_problem
from tests.support import examples, oracles
from tests.support.each import each, each_seed
from tests.support.problems import adapt
from tests.support.strategies import case, problems, rules, tiny, tiny_hull

SEEDS = range(40)


def rich(seed):
    """Draw a problem with a dozen vertices or more."""
    dense = oracles.random_problem(np.random.default_rng(seed), 5, 3, 6)
    return dense, adapt(dense)


# -------------------------------------------------------------------------- all of it


@each_seed(SEEDS)
def test_the_vertices_are_the_brute_force_hull(seed):
    _, problem = tiny(seed)
    x, y = tiny_hull(seed)
    front = counsel.frontier(problem)
    assert front.complete
    np.testing.assert_allclose([v.advice_count for v in front.vertices], x, rtol=0, atol=1e-9)
    np.testing.assert_allclose([v.value for v in front.vertices], y, rtol=0, atol=1e-9)


@each_seed(range(0, 60, 3))
def test_the_vertices_under_rules_are_the_brute_force_hull(seed):
    dense, problem = tiny(seed)
    forbidden_hs, required_hs = rules(seed, dense.r_hsa.shape)
    x, y = oracles.hull(
        *oracles.brute_force(*dense, forbidden_hs=forbidden_hs, required_hs=required_hs)
    )
    front = counsel.frontier(problem, forbidden=forbidden_hs, required=required_hs)
    np.testing.assert_allclose([v.advice_count for v in front.vertices], x, rtol=0, atol=1e-9)
    np.testing.assert_allclose([v.value for v in front.vertices], y, rtol=0, atol=1e-9)


def test_some_required_frontiers_start_above_zero():
    least = []
    for seed in range(0, 60, 3):
        dense, problem = tiny(seed)
        _, required_hs = rules(seed, dense.r_hsa.shape)
        least.append(counsel.frontier(problem, required=required_hs).vertices[0].advice_count)
    assert sum(count > 0.01 for count in least) >= 5


@given(problems(most=(5, 3, 5)))
def test_the_frontier_is_strictly_concave_and_rising(dense):
    front = counsel.frontier(adapt(dense))
    counts = np.array([v.advice_count for v in front.vertices])
    values = np.array([v.value for v in front.vertices])
    assert counts[0] == 0.0
    assert (np.diff(counts) > 0.0).all()
    slopes = np.diff(values) / np.diff(counts)
    assert (slopes > 0.0).all()
    assert (np.diff(slopes) < 0.0).all()


@each_seed(range(15))
def test_each_vertex_policy_evaluates_to_its_point(seed):
    _, problem = rich(seed)
    for vertex in counsel.frontier(problem).vertices:
        reached = counsel.evaluate(problem, vertex.policy)
        assert reached.value == pytest.approx(vertex.value, abs=1e-10)
        assert reached.advice_count == pytest.approx(vertex.advice_count, abs=1e-10)
        assert vertex.policy.random.cell.size == 0


@each_seed([*range(15), 1271629987])  # the last one: an edge whose slope is off by a rounding
def test_the_ranges_of_penalties_follow_on_each_other_from_zero_to_infinity(seed):
    _, problem = rich(seed)
    vertices = counsel.frontier(problem).vertices
    assert vertices[-1].penalties[0] == 0.0
    assert vertices[0].penalties[1] == np.inf
    for less, more in pairwise(vertices):
        assert less.penalties[0] == more.penalties[1]
        slope = (more.value - less.value) / (more.advice_count - less.advice_count)
        assert less.penalties[0] == pytest.approx(slope, rel=1e-12)


@each_seed(range(15))
def test_a_penalty_inside_a_range_gives_that_vertex(seed):
    _, problem = rich(seed)
    front = counsel.frontier(problem)
    for vertex in front.vertices:
        low, high = vertex.penalties
        inside = (low + high) / 2 if high < np.inf else low + 1.0
        for plan in (counsel.solve(problem, penalty=inside), front.at_penalty(inside)):
            assert plan.advice_count == pytest.approx(vertex.advice_count, abs=1e-9)
            assert plan.value == pytest.approx(vertex.value, abs=1e-9)


@each_seed(range(15))
def test_the_rich_problems_are_rich(seed):
    assert len(counsel.frontier(rich(seed)[1]).vertices) >= 5


@each_seed(SEEDS)
def test_at_penalty_is_solve(seed):
    _, problem = case(seed)
    front = counsel.frontier(problem)
    for penalty in (0.0, 0.1, 0.7):
        here, there = front.at_penalty(penalty), counsel.solve(problem, penalty=penalty)
        assert here.values.tobytes() == there.values.tobytes()
        assert here.policy.advice.tobytes() == there.policy.advice.tobytes()
        assert (here.value, here.price) == (there.value, there.price)


@each_seed(SEEDS)
def test_at_budget_is_solve(seed):
    _, problem = case(seed)
    front = counsel.frontier(problem)
    for budget in np.linspace(0.0, front.vertices[-1].advice_count + 0.2, 6):
        here, there = front.at_budget(budget), counsel.solve(problem, budget=budget)
        assert here.value == pytest.approx(there.value, abs=1e-10)
        assert here.advice_count == pytest.approx(there.advice_count, abs=1e-10)
        assert here.price == pytest.approx(there.price, rel=1e-9, abs=1e-9)


@given(problems(), st.floats(0.0, 5.0))
def test_at_budget_never_exceeds_the_budget(dense, budget):
    problem = adapt(dense)
    plan = counsel.frontier(problem).at_budget(budget)
    assert counsel.evaluate(problem, plan.policy).advice_count <= budget + 1e-9
    assert counsel.evaluate(problem, plan.mixture).advice_count <= budget + 1e-9


@each_seed([*range(8), 241])  # 241: high and low differ off their paths
def test_one_random_cell_reaches_every_point_of_every_edge(seed):
    _, problem = rich(seed)
    front = counsel.frontier(problem)
    for less, more in pairwise(front.vertices):
        for share in (0.1, 0.5, 0.9):
            budget = (1 - share) * less.advice_count + share * more.advice_count
            policy = front.at_budget(budget).policy
            reached = counsel.evaluate(problem, policy)
            on_edge = (1 - share) * less.value + share * more.value
            assert policy.random.cell.size <= 1
            assert reached.value == pytest.approx(on_edge, abs=1e-9)
            assert reached.advice_count == pytest.approx(budget, abs=1e-9)


def test_named_example():
    front = counsel.frontier(adapt(examples.silent_then_advised()))
    points = [(v.advice_count, v.value) for v in front.vertices]
    assert points == [(0.0, 0.0), (1.0, 1.5), (2.0, 2.0)]
    assert [v.penalties for v in front.vertices] == [(1.5, np.inf), (0.5, 1.5), (0.0, 0.5)]


def test_where_advice_never_helps_there_is_one_vertex():
    dense = examples.advice_repels(0.5)  # θ = π: advice changes nothing
    front = counsel.frontier(adapt(dense))
    (vertex,) = front.vertices
    assert front.complete
    assert (vertex.advice_count, vertex.value, vertex.penalties) == (0.0, 0.5, (0.0, np.inf))
    plan = front.at_budget(3)
    assert (plan.value, plan.advice_count, plan.price) == (0.5, 0.0, 0.0)
    assert front.bounds(0.3) == (0.5, 0.5)


def test_where_everything_must_be_said_there_is_one_vertex():
    mdp = counsel.MDP(np.zeros((1, 2), dtype=int), [[0.0, 1.0]], horizon=3)
    problem = counsel.AdviceProblem(mdp, counsel.Human([[1.0, 0.0]], 0.5))
    (vertex,) = counsel.frontier(problem, required=[True]).vertices
    assert (vertex.advice_count, vertex.value) == (3.0, 1.5)


@each("scale", [1e-9, 1e9])
@each_seed(range(10))
def test_the_unit_of_reward_scales_values_and_penalties_only(seed, scale):
    dense, problem = rich(seed)
    front = counsel.frontier(problem)
    scaled = counsel.frontier(adapt(dense._replace(r_hsa=scale * dense.r_hsa)))
    assert len(front.vertices) == len(scaled.vertices)
    for a, b in zip(front.vertices, scaled.vertices, strict=True):
        assert b.advice_count == pytest.approx(a.advice_count, abs=1e-9)
        assert b.value == pytest.approx(scale * a.value, rel=1e-9)
        assert b.penalties == pytest.approx(tuple(scale * p for p in a.penalties), rel=1e-6)


def rare_slips(seed):
    """Draw a problem with cells that are reached only once in 10³ to 10¹² episodes."""
    rng = np.random.default_rng(seed)
    S, A, H = (int(rng.integers(1, most)) for most in (7, 5, 8))
    dense = oracles.random_problem(rng, S, A, H, masks=True)
    rare = 10.0 ** -rng.integers(3, 13)
    own_hsa = np.where(dense.allowed_hsa, rare, 0.0)
    habit_hs1 = dense.pi_hsa.argmax(axis=-1)[..., None]
    np.put_along_axis(own_hsa, habit_hs1, 0.0, axis=-1)
    np.put_along_axis(own_hsa, habit_hs1, 1.0 - own_hsa.sum(axis=-1, keepdims=True), axis=-1)
    return dense._replace(pi_hsa=own_hsa)


@each_seed([*range(10), 10217, 903877])
def test_rounding_never_adds_a_vertex_that_says_more_and_earns_no_more(seed):
    dense = rare_slips(seed)
    forbidden_hs, required_hs = rules(seed, dense.r_hsa.shape)
    for masks in ({}, {"forbidden": forbidden_hs, "required": required_hs}):
        vertices = counsel.frontier(adapt(dense), **masks).vertices
        assert (np.diff([v.value for v in vertices]) > 0.0).all()
        assert min(v.penalties[0] for v in vertices) == 0.0


# ------------------------------------------------------------- where few cells can occur


def corridor(seed, *, per_step):
    """Draw a world crossed column by column: the state says the step, 1 cell in 5 can occur."""
    rng = np.random.default_rng(seed)
    width, H, A = 3, 5, 3
    S = width * H
    P_hsat = np.zeros((H, S, A, S))
    for h, c in np.ndindex(H, H):
        here, there = slice(c * width, (c + 1) * width), min(c + 1, H - 1) * width
        if h == 0 or per_step:
            weight = rng.dirichlet(np.full(width, 0.5), size=(width, A))
        else:
            weight = P_hsat[0, here, :, there : there + width]
        P_hsat[h, here, :, there : there + width] = weight
    drawn = oracles.random_problem(rng, S, A, H, masks=seed % 2 == 1)
    start_s = np.append(rng.dirichlet(np.ones(width)), np.zeros(S - width))
    return drawn._replace(P_hsat=P_hsat * drawn.allowed_hsa[..., None], start_s=start_s)


def points(front):
    return np.array([(v.advice_count, v.value, *v.penalties) for v in front.vertices])


@pytest.mark.parametrize("per_step", [False, True])
@each_seed(range(8))
def test_leaving_out_what_cannot_occur_changes_nothing(seed, per_step, monkeypatch):
    dense = corridor(seed, per_step=per_step)
    forbidden_hs, required_hs = rules(seed, dense.r_hsa.shape)
    problem = adapt(dense)
    for masks in ({}, {"forbidden": forbidden_hs}, {"required": required_hs}):
        short = counsel.frontier(problem, **masks)
        with monkeypatch.context() as patch:
            patch.setattr(prepared_problem, "reachable_problem", lambda *_: None)
            full = counsel.frontier(adapt(dense), **masks)
        assert len(full.vertices) >= 4
        np.testing.assert_allclose(points(short), points(full), rtol=1e-9, atol=1e-12)
        for vertex in short.vertices:
            reached = counsel.evaluate(problem, vertex.policy)
            assert reached.value == pytest.approx(vertex.value, abs=1e-10)
            assert reached.advice_count == pytest.approx(vertex.advice_count, abs=1e-10)


@each_seed(range(8))
def test_from_a_single_start_it_changes_no_bit(seed, monkeypatch):
    dense = corridor(seed, per_step=False)
    problem = adapt(dense._replace(start_s=np.eye(len(dense.start_s))[0]))
    short = counsel.frontier(problem)
    assert prepared_problem.prepare(problem).reachable is not None
    with monkeypatch.context() as patch:
        patch.setattr(prepared_problem, "reachable_problem", lambda *_: None)
        full = counsel.frontier(counsel.AdviceProblem(problem.mdp, problem.human))
    assert points(short).tobytes() == points(full).tobytes()


@pytest.mark.parametrize("per_step", [False, True])
@each_seed(range(4))
def test_budgets_where_few_cells_can_occur_equal_the_lp(seed, per_step):
    dense = corridor(seed, per_step=per_step)
    _, required_hs = rules(seed, dense.r_hsa.shape)
    front = counsel.frontier(adapt(dense), required=required_hs)
    least, most = (front.vertices[i].advice_count for i in (0, -1))
    for budget in np.linspace(least, most + 0.1, 4):
        lp = oracles.occupancy_lp(*dense, budget=budget + 1e-12, required_hs=required_hs)
        plan = counsel.solve(adapt(dense), budget=budget, required=required_hs)
        assert plan.value == pytest.approx(lp.value, abs=1e-7)
        assert front.at_budget(budget).value == pytest.approx(plan.value, abs=1e-10)


def test_few_cells_of_a_corridor_can_occur():
    problem = adapt(corridor(0, per_step=False))
    plan = counsel.solve(problem)
    assert (counsel.evaluate(problem, plan.policy).occupancy > 0.0).mean() <= 0.2


# ----------------------------------------------------------------------- cut short


@each("most", [2, 3, 5])
@each_seed(range(10))
def test_a_frontier_cut_short_says_so_and_holds_true_vertices(seed, most):
    _, problem = rich(seed)
    whole = counsel.frontier(problem)
    short = counsel.frontier(problem, max_vertices=most)
    assert len(whole.vertices) > most
    assert not short.complete
    assert len(short.vertices) == most
    points = [(v.advice_count, v.value) for v in whole.vertices]
    for vertex in short.vertices:
        nearest = min(points, key=lambda point: abs(point[0] - vertex.advice_count))
        assert (vertex.advice_count, vertex.value) == pytest.approx(nearest, abs=1e-9)
    ends = (short.vertices[0].advice_count, short.vertices[-1].advice_count)
    assert ends == pytest.approx((points[0][0], points[-1][0]))


@each("most", [2, 3, 5])
@each_seed(range(10))
def test_bounds_of_a_frontier_cut_short_hold_the_truth_and_at_budget_is_exact(seed, most):
    dense, problem = rich(seed)
    short = counsel.frontier(problem, max_vertices=most)
    for budget in np.linspace(0.0, short.vertices[-1].advice_count + 0.2, 9):
        true = counsel.solve(problem, budget=budget).value
        lower, upper = short.bounds(budget)
        assert lower - 1e-9 <= true <= upper + 1e-9
        assert short.at_budget(budget).value == pytest.approx(true, abs=1e-10)
    middle = short.vertices[-1].advice_count / 2
    lp = oracles.occupancy_lp(*dense, budget=middle)
    assert short.at_budget(middle).value == pytest.approx(lp.value, abs=1e-7)


@each_seed(range(10))
def test_more_vertices_narrow_the_bounds(seed):
    _, problem = rich(seed)
    fronts = [counsel.frontier(problem, max_vertices=most) for most in (2, 4, 8, 1000)]
    for budget in (0.2, 0.7, 1.5):
        bounds = [front.bounds(budget) for front in fronts]
        for (low, high), (lower, higher) in pairwise(reversed(bounds)):
            assert lower <= low + 1e-12
            assert high <= higher + 1e-12
        assert bounds[-1][0] == pytest.approx(bounds[-1][1], abs=1e-10)


@each_seed(range(10))
def test_a_vertex_of_a_frontier_cut_short_is_optimal_at_the_penalties_it_names(seed):
    _, problem = rich(seed)
    for vertex in counsel.frontier(problem, max_vertices=4).vertices:
        for penalty in vertex.penalties:
            if penalty < np.inf:
                best = counsel.solve(problem, penalty=penalty).penalised_value
                here = vertex.value - penalty * vertex.advice_count
                assert here == pytest.approx(best, abs=1e-10)


def test_a_limit_that_is_not_hit_changes_nothing():
    _, problem = rich(3)
    whole = counsel.frontier(problem)
    enough = counsel.frontier(problem, max_vertices=len(whole.vertices) + 1)
    assert enough.complete
    assert [v.value for v in enough.vertices] == [v.value for v in whole.vertices]


def test_with_required_cells_bounds_and_at_budget_refuse_what_does_not_fit():
    problem = adapt(examples.silent_then_advised())
    required = np.zeros((3, 3), dtype=bool)
    required[1:, 2] = True
    front = counsel.frontier(problem, required=required)
    assert front.vertices[0].advice_count == 1.0
    for ask in (front.at_budget, front.bounds):
        with pytest.raises(counsel.CounselError, match="takes 1 pieces"):
            ask(0.5)
    assert front.at_budget(1).value == pytest.approx(1.5)


@pytest.mark.parametrize("most", [1, 0, -3, 2.5, "all", True])
def test_the_limit_must_be_a_whole_number_from_two_up(most):
    with pytest.raises(counsel.CounselError, match="max_vertices must be a whole number"):
        counsel.frontier(case(7)[1], max_vertices=most)


@each("penalty", [-1.0, np.nan, np.inf])
def test_at_penalty_refuses_what_solve_refuses(penalty):
    with pytest.raises(counsel.CounselError, match="penalty is"):
        counsel.frontier(case(7)[1]).at_penalty(penalty)
