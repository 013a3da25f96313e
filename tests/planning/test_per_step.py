"""Pieces of each step shared by a team: prices, bound and ranking."""

import pickle

import numpy as np
import pytest

import counsel
from counsel.errors import CounselError
from counsel.planning import crowd, step_prices
from counsel.planning.people import read_people
from tests.support import team_oracle
from tests.support.each import each, each_seed, each_seed_up_to


def check_bound(seed, size, **options):
    drawn, people, counts, rng = team_oracle.drawn_team(seed, size, **options)
    k = int(rng.integers(1, sum(counts) + 1))
    plan = counsel.share(people, per_step=k, counts=counts)
    value, _, _ = team_oracle.team_lp(drawn, counts, per_step=k)
    near = 1e-8 * (1.0 + abs(value))
    assert plan.bound == pytest.approx(value, abs=near)
    assert plan.gap <= 1e-8
    assert sum(m.count * m.value for m in plan.members) == pytest.approx(value, abs=10 * near)
    assert (plan.prices >= 0.0).all()
    return people, counts, plan


@each_seed(range(5))
def test_the_bound_equals_one_linear_programme_for_all(seed):
    check_bound(seed, size=2, S=2)


@each_seed_up_to(20, 300)
def test_the_bound_of_many_teams_equals_one_linear_programme_for_all(seed):
    check_bound(seed, size=4)


@each_seed(range(5))
def test_the_search_without_turns_equals_one_linear_programme_for_all(seed):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crowd, "MOST_TURNS", 1)
        check_bound(seed, size=2, S=2)


def bandit_arm(seed, S, H):
    """A textbook arm: passive alone, and active if advised; only activity is advised."""
    rng = np.random.default_rng(seed)
    mdp = counsel.MDP(
        rng.dirichlet(np.ones(S), (S, 2)), rng.random((S, 2)), horizon=H, start=np.full(S, 1.0 / S)
    )
    problem = counsel.AdviceProblem(mdp, counsel.Human(np.tile([1.0, 0.0], (S, 1)), 1.0))
    forbidden = np.tile([True, False], (H, S, 1))
    return counsel.frontier(problem, max_vertices=2, forbidden=forbidden)


@pytest.mark.slow
@each("seed", (1, 2, 3))
def test_prices_of_fifty_steps_are_exact(seed):
    plan = counsel.share([bandit_arm(seed, 4, 50)], per_step=30, counts=[100])
    assert plan.gap <= 1e-12  # a search by cutting planes ended 17 in a million above the minimum


@each_seed(range(6))
def test_bandits_need_no_search(seed):
    team, counts = read_people([bandit_arm(seed, 6, 12)], [10])
    kinds, _ = step_prices.distinct_kinds(team, counts)
    prices, served = crowd.Crowd(kinds, 3).take_turns()
    assert prices.bound - served.value <= 1e-8 * abs(prices.bound)


@each_seed(range(6))
def test_one_kind_at_once_moves_like_two_kinds_step_by_step(seed):
    _, people, _, rng = team_oracle.drawn_team(seed, 1)
    problem = people[0].problem if isinstance(people[0], counsel.Frontier) else people[0]
    nowhere = np.zeros(problem.n_states, dtype=bool)  # new masks make new kinds
    copies = [counsel.frontier(problem, max_vertices=2, forbidden=nowhere) for _ in range(2)]
    teams = [read_people(copies[:1], [8]), read_people(copies, [5, 3])]
    one, two = [crowd.Crowd(step_prices.distinct_kinds(*team)[0], 3) for team in teams]
    price_h = rng.uniform(0, 0.2, problem.horizon)
    alone, both = one.look_back(price_h=price_h), two.look_back(price_h=price_h)
    assert both.bound == pytest.approx(alone.bound, rel=1e-12)
    served, both_served = one.serve(alone.gains), two.serve(both.gains)
    assert both_served.value == pytest.approx(served.value, rel=1e-12)
    for kind in range(2):
        for ours, theirs in zip(both.gains, alone.gains, strict=True):
            np.testing.assert_array_equal(two.table(ours, kind), one.table(theirs, 0))
        chance = served.mixes[0].chance
        np.testing.assert_allclose(both_served.mixes[kind].chance, chance, rtol=0, atol=1e-9)


@each_seed(range(8))
def test_nobody_can_beat_the_bound_and_the_ranking_is_close_to_the_best_of_two_people(seed):
    drawn, people, _, _ = team_oracle.drawn_team(seed, 2, H=2, M=2, S=2)
    plan = counsel.share(people, per_step=1)
    best = team_oracle.pair_value(drawn)
    ranked = team_oracle.pair_value(drawn, team_oracle.ranked(plan))
    quiet = tuple(P.A for P in drawn)
    silent = team_oracle.pair_value(drawn, lambda h, pair: [(1.0, quiet)])
    assert silent <= ranked + 1e-9
    assert ranked <= best + 1e-9 <= plan.bound + 2e-9
    assert best - ranked <= 0.25 * (best - silent) + 1e-9


def test_a_price_per_step_is_what_one_more_piece_in_every_step_brings():
    mothers = [
        counsel.make("call-centre", horizon=6),
        counsel.make("call-centre/working", horizon=6),
    ]
    low, high = (counsel.share(mothers, per_step=k, counts=[1000, 1000]) for k in (200, 201))
    assert high.bound - low.bound <= low.prices.sum() + 1e-9
    assert high.bound - low.bound >= high.prices.sum() - 1e-9
    assert low.prices.sum() > 0.0


def test_a_limit_that_nobody_feels_has_no_price():
    ward = counsel.make("ward")
    plan = counsel.share([ward], per_step=50, counts=[50])
    assert plan.bound == pytest.approx(50 * counsel.solve(ward).value)
    assert (plan.prices == 0.0).all()


def test_advice_gain_and_rank_are_those_of_a_plan_at_the_prices():
    ward = counsel.make("ward")
    plan = counsel.share([ward], per_step=1, counts=[5])
    (member,) = plan.members
    alone = counsel.solve(ward, penalty=plan.prices)
    spoken = alone.policy.advice < ward.defer
    assert (member.advice[spoken] == alone.policy.advice[spoken]).all()
    assert (
        member.gain[spoken] >= np.broadcast_to(plan.prices[:, None], spoken.shape)[spoken]
    ).all()
    for gain_s, rank_s in zip(member.gain, member.rank, strict=True):
        served = rank_s > 0
        assert (gain_s[~served] <= 1e-8).all()
        order = np.argsort(rank_s[served], kind="stable")
        assert (np.diff(gain_s[served][order]) <= 1e-8).all()
        assert not served.any() or rank_s[served].min() == 1


def test_people_who_are_alike_count_like_people_who_are_listed():
    ward, tiring = counsel.make("ward"), counsel.make("ward/tiring")
    counted = counsel.share([ward, tiring], per_step=2, counts=[3, 2])
    listed = counsel.share([ward, tiring, ward, tiring, ward], per_step=2)
    assert listed.bound == pytest.approx(counted.bound, rel=1e-9)
    assert [member.count for member in listed.members] == [1] * 5
    assert listed.members[0].gain is not None
    assert (listed.members[0].rank == listed.members[2].rank).all()


def test_more_kinds_than_groups_share_their_mixtures(monkeypatch):
    wards = [counsel.make("ward", horizon=4) for _ in range(6)]
    apart = counsel.share(wards, per_step=2)
    monkeypatch.setattr(crowd, "MOST_TURNS", 1)
    monkeypatch.setattr(step_prices, "MOST_GROUPS", 2)
    together = counsel.share(wards, per_step=2)
    assert together.bound == pytest.approx(apart.bound, rel=1e-7)


def test_the_bound_holds_even_if_the_search_is_cut_short(monkeypatch):
    mothers, counts = [counsel.make("call-centre", horizon=8)], [50]
    exact = counsel.share(mothers, per_step=5, counts=counts)
    monkeypatch.setattr(crowd, "MOST_TURNS", 1)
    monkeypatch.setattr(step_prices, "MOST_ROUNDS", 2)
    short = counsel.share(mothers, per_step=5, counts=counts)
    assert short.bound >= exact.bound - 1e-9
    assert short.gap > 0.0


def test_a_team_plan_can_be_pickled():
    plan = counsel.share([counsel.make("ward")], per_step=1, counts=[3])
    again = pickle.loads(pickle.dumps(plan))
    assert again.bound == plan.bound
    assert (again.policy.priority[0] == plan.policy.priority[0]).all()
    assert repr(plan) == f"TeamPlan(3 people, 1 per step, value ≤ {plan.bound:.6g})"
    assert repr(plan.members[0]).startswith("TeamMember(3 people, each about ")


def required_ward():
    ward = counsel.make("ward")
    required = np.zeros(ward.n_states, dtype=bool)
    required[3] = True
    return counsel.frontier(ward, required=required, max_vertices=2)


def costly_ward():
    ward = counsel.make("ward")
    return counsel.AdviceProblem(ward.mdp, ward.human, cost=2.0)


@each(
    ("people", "options", "sentence"),
    [
        ([], {"per_step": 1}, "people is empty; a team has at least one person"),
        (None, {}, "give a budget or per_step, and not both"),
        (None, {"budget": 1, "per_step": 1}, "give a budget or per_step, and not both"),
        (None, {"per_step": 0}, "per_step must be a whole number of at least 1, not 0"),
        (None, {"per_step": 1.5}, "per_step must be a whole number, not 1.5"),
        (None, {"per_step": True}, "per_step must be a whole number"),
        (None, {"per_step": 3}, "per_step is 3; it may be at most 2, the size of the team"),
        (None, {"per_step": 1, "at_least": 0.5}, "at_least goes with a budget"),
        (None, {"budget": 1, "longest_wait": 2}, "longest_wait goes with per_step"),
        (None, {"per_step": 1, "longest_wait": -1}, "longest_wait must be a whole number"),
        (
            ["ward", "night-shift"],
            {"per_step": 1},
            r"people\[0\] has 6 steps and people\[1\] has 12; people who share pieces at each",
        ),
        (required_ward, {"per_step": 1}, r"people\[0\] requires advice at \[h=0, s=3\]"),
        (costly_ward, {"per_step": 1}, r"people\[0\] has advice that costs other than 1"),
    ],
)
def test_bad_input_is_one_sentence(people, options, sentence):
    if callable(people):
        people = [people()]
    elif people is None:
        people = [counsel.make("ward")] * 2
    else:
        people = [counsel.make(name) for name in people]
    with pytest.raises(CounselError, match=sentence):
        counsel.share(people, **options)
