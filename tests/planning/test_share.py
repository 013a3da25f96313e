"""One budget for many people: against one linear programme for all, and by properties."""

import importlib

import numpy as np
import pytest

import counsel
from counsel.errors import CounselError
from counsel.planning.frontier import frontier_within
from tests.support import drawn_memories, team_oracle
from tests.support.each import each, each_seed, each_seed_up_to
from tests.support.problems import adapt_memory

share_module = importlib.import_module("counsel.planning.share")


def drawn_team(seed, size):
    """Draw people, plain problems or with masks, as oracles and as Counsel takes them."""
    rng, drawn, people = np.random.default_rng(seed), [], []
    for i in range(size):
        is_plain = {"masks": False, "required": False} if rng.random() < 0.5 else {}
        drawn.append(drawn_memories.draw(1000 * seed + i, **is_plain))
        problem, masks = adapt_memory(drawn[-1])
        most = 2 if rng.random() < 0.5 else 1000  # a frontier that is not complete
        people.append(
            problem if is_plain else counsel.frontier(problem, max_vertices=most, **masks)
        )
    return drawn, people, rng.integers(1, 4, size).tolist(), rng


def check_team(seed, size):
    drawn, people, counts, rng = drawn_team(seed, size)
    team = counsel.share(people, budget=1e3, counts=counts).frontier
    for budget in (team.budget[0], *rng.uniform(team.budget[0], 1.1 * team.budget[-1] + 0.1, 2)):
        shared = counsel.share(people, budget=budget, counts=counts)
        value, _, _ = team_oracle.team_lp(drawn, counts, budget=budget)
        near = 1e-8 * (1.0 + abs(value))
        assert shared.value == pytest.approx(value, abs=near)
        assert team.at(budget) == pytest.approx(value, abs=near)
        assert shared.advice_cost <= budget + near
        unspent = budget - shared.advice_cost
        assert shared.price * unspent == pytest.approx(0.0, abs=near)
        for member in shared.members:
            outcome = counsel.evaluate(member.problem, member.plan.policy)
            assert outcome.value == pytest.approx(member.value, abs=near)
            assert outcome.advice_cost == pytest.approx(member.advice_cost, abs=near)


@each_seed(range(12))
def test_a_small_team_equals_one_linear_programme_for_all(seed):
    check_team(seed, size=3)


@each_seed_up_to(60, 1000)
def test_many_teams_equal_one_linear_programme_for_all(seed):
    check_team(seed, size=5)


def test_the_plan_of_a_member_is_theirs_where_another_ties_at_the_price():
    check_team(573, size=5)  # their plan at the price of the team had fewer pieces and less value


@each_seed(range(6))
def test_nobody_earns_more_from_a_piece_than_the_price(seed):
    _, people, counts, rng = drawn_team(seed, 4)
    shared = counsel.share(people, budget=rng.uniform(1.0, 6.0) + 20.0, counts=counts)
    for member in shared.members:
        front = frontier_within(member.problem, member.constraints)
        more = front.at_budget(member.advice_cost + 0.25).value - member.value
        assert more <= 0.25 * shared.price + 1e-9


def test_people_who_are_alike_are_treated_alike_whether_counted_or_listed():
    ward, night = counsel.make("ward"), counsel.make("night-shift")
    counted = counsel.share([ward, night], budget=5, counts=[3, 2])
    listed = counsel.share([ward, night, ward, night, ward], budget=5)
    assert listed.value == pytest.approx(counted.value, rel=1e-12)
    costs = [member.advice_cost for member in listed.members]
    assert costs[0] == costs[2] == costs[4] == counted.members[0].advice_cost
    again = counsel.share([counsel.make("ward"), counsel.make("ward")], budget=1.3)
    first, second = (member.advice_cost for member in again.members)
    assert first == pytest.approx(second, rel=1e-9)


def test_one_person_shares_with_nobody():
    ward = counsel.make("ward")
    shared, alone = counsel.share([ward], budget=1.5), counsel.solve(ward, budget=1.5)
    assert shared.value == pytest.approx(alone.value, rel=1e-12)
    assert shared.price == pytest.approx(alone.price, rel=1e-9)
    assert shared.members[0].plan.value == pytest.approx(alone.value, rel=1e-12)


def test_a_budget_that_nobody_can_use_up_has_no_price():
    shared = counsel.share([counsel.make("ward")] * 2, budget=1e6)
    assert shared.price == 0.0
    assert shared.value == pytest.approx(2 * counsel.solve(counsel.make("ward")).value)
    assert shared.members[0].plan.price == 0.0


def test_a_large_team_plans_for_few_people_in_later_rounds(monkeypatch):
    rng, plans = np.random.default_rng(0), []
    people = [
        adapt_memory(drawn_memories.draw(i, masks=False, required=False))[0] for i in range(60)
    ]
    plain = share_module.planner_for

    def counted(*arguments, **named):
        plans.append(arguments[0])
        return plain(*arguments, **named)

    monkeypatch.setattr(share_module, "planner_for", counted)
    counsel.share(people, budget=float(rng.uniform(20, 60)))
    assert len(plans) <= 12 * len(people)  # two ends each, and about as many rounds as digits


@each(
    ("people", "options", "sentence"),
    [
        ([], {"budget": 1}, "people is empty; a team has at least one person"),
        ("ward", {"budget": 1}, "people is 'ward'; give a list of problems or frontiers"),
        (["ward"], {"budget": 1}, r"people\[0\] is 'ward'; give a problem or a frontier"),
        (None, {"budget": -1}, "budget is -1"),
        (None, {"budget": 1, "at_least": 1.5}, "at_least is 1.5; it must lie between 0 and 1"),
        (None, {"budget": 1, "at_least": "all"}, "at_least must be a number, not 'all'"),
        (None, {"budget": 1, "counts": [1, 2]}, r"counts is int64 of shape \(2,\); give a whole"),
        (None, {"budget": 1, "counts": [0]}, r"counts\[i=0\] is 0; it must be at least 1"),
        (None, {"budget": 1, "counts": [1.5]}, "counts is float64"),
    ],
)
def test_bad_input_is_one_sentence(people, options, sentence):
    with pytest.raises(CounselError, match=sentence):
        counsel.share([counsel.make("ward")] if people is None else people, **options)


@each_seed(range(4))
def test_with_a_floor_everybody_gets_their_share_or_what_they_can_use(seed):
    _, people, counts, _ = drawn_team(seed, 3)
    people = [p for p in people if not isinstance(p, counsel.Frontier)] or [counsel.make("ward")]
    counts, size = counts[: len(people)], sum(counts[: len(people)])
    most = [counsel.solve(p).advice_cost for p in people]
    budget = 0.6 * sum(n * cost for n, cost in zip(counts, most, strict=True))
    free = counsel.share(people, budget=budget, counts=counts)
    values = [free.value]
    for at_least in (0.0, 0.5, 1.0):
        shared = counsel.share(people, budget=budget, counts=counts, at_least=at_least)
        assert shared.advice_cost <= budget + 1e-9
        for member, cost in zip(shared.members, most, strict=True):
            floor = min(at_least * budget / size, cost)
            assert member.advice_cost >= floor - 1e-9
            outcome = counsel.evaluate(member.problem, member.plan.policy)
            assert outcome.value == pytest.approx(member.value, abs=1e-8)
            assert outcome.advice_cost == pytest.approx(member.advice_cost, abs=1e-8)
            front = frontier_within(member.problem, member.constraints)
            assert member.value == pytest.approx(front.at_budget(member.advice_cost).value)
        values.append(shared.value)
    assert values[0] == pytest.approx(values[1], abs=1e-9)
    assert values[1] >= values[2] - 1e-9 >= values[3] - 2e-9


@each_seed(range(12))
def test_a_team_with_floors_equals_one_linear_programme_with_floors(seed):
    rng = np.random.default_rng(seed)
    drawn = [
        drawn_memories.draw(1000 * seed + i, masks=False, required=False, costs="one")
        for i in range(3)
    ]
    people, counts = [adapt_memory(P)[0] for P in drawn], rng.integers(1, 4, 3).tolist()
    most = np.array([counsel.solve(person).advice_cost for person in people])
    for at_least in (0.5, 1.0):
        budget = rng.uniform(0.2, 1.0) * float(most @ counts)
        floors = np.minimum(at_least * budget / sum(counts), most)
        shared = counsel.share(people, budget=budget, counts=counts, at_least=at_least)
        value, _, _ = team_oracle.team_lp(drawn, counts, budget=budget, floors=floors - 1e-9)
        assert shared.value == pytest.approx(value, abs=1e-7 * (1.0 + abs(value)))
        assert shared.advice_cost <= budget + 1e-9
        for member, floor in zip(shared.members, floors, strict=True):
            assert member.advice_cost >= floor - 1e-9


def test_whoever_cannot_use_their_floor_gets_all_they_can_use():
    ward, night = counsel.make("ward"), counsel.make("night-shift")
    shared = counsel.share([ward, night], budget=12, at_least=1.0)
    most = counsel.solve(ward).advice_cost
    assert most < 6.0
    assert shared.members[0].advice_cost == pytest.approx(most, rel=1e-12)
    assert shared.members[0].plan.advice_cost == pytest.approx(most, rel=1e-12)
    assert shared.members[1].advice_cost == pytest.approx(12 - most, rel=1e-12)


@each(
    ("names", "discount", "budget"),
    [
        (("machine-repair", "ward"), 0.999999, 1e5),
        (("ward", "ward/tiring"), 0.999999, 3e3),
        (("call-centre", "call-centre/working"), 0.99999, 1e5),
    ],
)
def test_a_budget_is_shared_where_the_discount_is_almost_1(names, discount, budget):
    people = [counsel.make(name).without_end(discount) for name in names]
    shared = counsel.share(people, budget=budget)
    assert shared.value == pytest.approx(shared.frontier.at(budget), rel=1e-9)
    assert shared.advice_cost <= budget * (1.0 + 1e-9)


def test_a_floor_costs_no_more_than_the_best_split_that_keeps_it():
    people = [counsel.make("night-shift"), counsel.make("ward")]
    fronts = [counsel.frontier(person) for person in people]
    shared = counsel.share(people, budget=3, at_least=0.9)
    assert counsel.share(people, budget=3).members[1].advice_cost < 1.35
    costs = np.linspace(1.35, 1.65, 31)
    split = [
        fronts[0].at_budget(3 - cost).value + fronts[1].at_budget(cost).value for cost in costs
    ]
    assert shared.value == pytest.approx(max(split), abs=1e-9)
    assert counsel.share(fronts, budget=3, at_least=0.9).value == pytest.approx(shared.value)


def test_a_floor_with_required_advice_may_need_a_larger_budget():
    ward = counsel.make("ward")
    front = counsel.frontier(ward, required=np.ones(ward.n_states, dtype=bool))
    with pytest.raises(CounselError, match="at_least is 1 but with the required advice of others"):
        counsel.share([front, ward], budget=7, at_least=1)


def test_a_budget_below_what_must_be_said_is_refused_with_the_number():
    ward = counsel.make("ward")
    required = np.zeros(ward.n_states, dtype=bool)
    required[3] = True
    front = counsel.frontier(ward, required=required)
    least = front.vertices[0].advice_cost
    assert least > 0.0
    with pytest.raises(CounselError, match=f"the required advice takes {10 * least:.6g} pieces"):
        counsel.share([front], budget=9.9 * least, counts=[10])
