"""A team that is simulated at once: the limit on every path, values, waits and luck."""

import pickle

import numpy as np
import pytest

import counsel
from counsel.errors import CounselError
from counsel.simulate import TeamPolicy
from counsel.simulate._team_kernels import order_statistic
from tests.support import team_oracle
from tests.support.each import each, each_seed


def rng(seed=0):
    return np.random.default_rng(seed)


def mothers(*kinds, horizon=8):
    return [counsel.make(f"call-centre{kind}", horizon=horizon) for kind in kinds]


def best(problem, per_step, **options):
    """Return a policy that says what the best plan says, to everybody alike."""
    advice = counsel.solve(problem).policy.advice
    priority = (advice < problem.defer).astype(float)
    return TeamPolicy(per_step, advice=[advice], priority=[priority], **options)


@pytest.mark.parametrize("world", ["call-centre", "call-centre/tiring", "ward", "night-shift"])
def test_with_a_piece_for_everybody_people_do_what_they_do_alone(world):
    problem = counsel.make(world)
    policy = counsel.solve(problem).policy
    team = counsel.Team([problem], counts=[20])
    outcome = team.evaluate(best(problem, 20), episodes=150, rng=rng())
    exact = counsel.evaluate(problem, policy)
    error = outcome.rewards.std(ddof=1) / np.sqrt(150)
    assert abs(outcome.value - 20 * exact.value) <= 4 * error
    assert outcome.pieces / 20 == pytest.approx(exact.advice_rate, abs=0.05)


@each_seed(range(6))
def test_two_people_earn_what_brute_force_computes(seed):
    drawn, people, _, _ = team_oracle.drawn_team(seed, 2, H=3, M=2, S=2)
    plan = counsel.share(people, per_step=1)
    exact = team_oracle.pair_value(drawn, team_oracle.ranked(plan))
    team = counsel.Team([member.problem for member in plan.members])
    outcome = team.evaluate(plan, episodes=4000, rng=rng(seed))
    error = outcome.rewards.std(ddof=1) / np.sqrt(4000)
    assert abs(outcome.value - exact) <= 4 * error + 1e-9
    assert outcome.most_pieces <= 1
    assert outcome.value <= plan.bound + 4 * error


def test_no_path_has_more_pieces_than_the_limit_and_no_value_exceeds_the_bound():
    people, counts = mothers("", "/working", "/tiring"), [30, 30, 40]
    for k in (1, 7, 40):
        plan = counsel.share(people, per_step=k, counts=counts)
        outcome = counsel.Team(people, counts).evaluate(plan, episodes=100, rng=rng())
        assert outcome.most_pieces == k
        assert (outcome.pieces <= k).all()
        assert outcome.interval[0] <= outcome.bound
        assert outcome.gap == pytest.approx(1.0 - outcome.value / plan.bound)
        assert outcome.gap < 0.02


def test_the_gap_to_the_bound_is_small_and_falls_with_the_size_of_the_team():
    people = [counsel.make(f"call-centre{kind}") for kind in ("", "/working", "/tiring")]
    gaps = []
    for size, episodes in ((100, 200), (1000, 20)):
        counts = [size // 2, size * 3 // 10, size // 5]
        plan = counsel.share(people, per_step=size // 10, counts=counts)
        gaps.append(counsel.Team(people, counts).evaluate(plan, episodes=episodes, rng=rng(3)).gap)
    assert gaps[0] <= 0.02
    assert gaps[1] <= 0.005


@each(("chances", "expected"), [((0.0, 0.0), 0.5), ((1.0, 0.0), 1.0), ((0.5, 0.0), 0.75)])
def test_equals_are_drawn_and_the_chance_of_a_cell_puts_people_first(chances, expected):
    people = [
        counsel.AdviceProblem(
            counsel.MDP([[0, 0]], [[0.0, paid]], horizon=1), counsel.Human([[1.0, 0.0]], 1.0)
        )
        for paid in (1.0, 0.0)  # the reward is 1 if the first of the two is advised
    ]
    one = np.ones((1, 1))
    policy = TeamPolicy(
        1,
        advice=[np.ones((1, 1), dtype=int)] * 2,
        priority=[one, one],
        chance=[one * chance for chance in chances],
    )
    outcome = counsel.Team(people).evaluate(policy, episodes=2000, rng=rng())
    assert outcome.value == pytest.approx(expected, abs=0.04)


def test_the_same_seed_gives_the_same_episodes_in_one_batch_or_in_many(monkeypatch):
    people, counts = mothers("", "/tiring"), [5, 4]
    plan, team = counsel.share(people, per_step=2, counts=counts), counsel.Team(people, counts)
    whole = team.evaluate(plan, episodes=30, rng=rng()).rewards
    monkeypatch.setattr("counsel.simulate.team.NUMBERS", 1000)
    parts = team.evaluate(plan, episodes=30, rng=rng()).rewards
    assert (whole == parts).all()


def test_random_rewards_have_the_same_mean_by_either_law():
    plain = counsel.make("night-shift")
    bernoulli = plain.with_random_rewards()
    drawn = counsel.AdviceProblem(
        plain.mdp,
        plain.human,
        reward_range=(-1.0, 2.0),
        reward_law=lambda cells, u: cells.mean + 0.5 * (u - 0.5),
    )
    values = []
    for problem in (plain, bernoulli, drawn):
        team = counsel.Team([problem], counts=[10])
        outcome = team.evaluate(best(plain, 2), episodes=200, rng=rng())
        values.append(outcome)
    assert values[2].rewards.std() > 0.0
    for outcome in values[1:]:
        difference = outcome.rewards - values[0].rewards
        assert abs(difference.mean()) <= 4 * difference.std() / np.sqrt(200) + 1e-12


@each(("n", "k"), [(0, 6), (1, 3), (2, 2), (5, 1), (2, 4)])
def test_nobody_waits_longer_than_agreed(n, k):
    people, counts = mothers("", "/tiring", horizon=7), [3, 3]
    plan = counsel.share(people, per_step=k, counts=counts, longest_wait=n)
    free = counsel.share(people, per_step=k, counts=counts)
    team = counsel.Team(people, counts)
    outcome = team.evaluate(plan, episodes=60, rng=rng())
    assert outcome.longest_wait <= n
    assert outcome.most_pieces <= k
    assert outcome.bound == free.bound
    if k < 4:
        assert team.evaluate(free, episodes=60, rng=rng()).longest_wait > n


def test_a_wait_as_long_as_the_episode_changes_nothing():
    people = mothers("")
    team = counsel.Team(people, counts=[50])
    plain = counsel.share(people, per_step=1, counts=[50])
    patient = counsel.share(people, per_step=1, counts=[50], longest_wait=8)
    first, second = (team.evaluate(p, episodes=20, rng=rng()) for p in (plain, patient))
    assert (first.rewards == second.rewards).all()


def test_people_whose_episode_is_over_do_not_wait():
    problem = counsel.make("ward", horizon=12)
    advice = np.ones((12, 5), dtype=int)
    policy = TeamPolicy(2, advice=[advice], priority=[advice * 0.0], longest_wait=2)
    outcome = counsel.Team([problem], counts=[6]).evaluate(policy, episodes=100, rng=rng())
    assert outcome.longest_wait == 2
    assert outcome.pieces[-3:].sum() < 5.9  # those in intensive care are told nothing


def test_a_team_that_is_too_large_for_the_wait_is_refused_with_the_numbers():
    sentence = (
        "longest_wait is 3, but 100 people wait up to 9 steps at 10 per step: at most 40 people "
        "can be served in time"
    )
    with pytest.raises(CounselError, match=sentence):
        counsel.share(mothers(""), per_step=10, counts=[100], longest_wait=3)


def test_a_wait_cannot_be_promised_where_all_advice_is_forbidden():
    ward = counsel.make("ward")
    forbidden = np.zeros((6, 5, 3), dtype=bool)
    forbidden[:, 1] = True
    front = counsel.frontier(ward, forbidden=forbidden, max_vertices=2)
    with pytest.raises(CounselError, match=r"but advice\[0\]\[h=0, s=1\] is silence"):
        counsel.share([front], per_step=1, counts=[2], longest_wait=2)
    plan = counsel.share([front], per_step=1, counts=[2])
    assert (plan.members[0].gain[:, 1] == -np.inf).all()


def test_a_team_and_its_evaluation_print_and_pickle():
    team = counsel.Team(mothers("", "/working"), counts=[2, 3])
    assert repr(pickle.loads(pickle.dumps(team))) == "Team(5 people of 2 kinds)"
    assert len(team) == 5
    outcome = counsel.Team(mothers("")).evaluate(best(mothers("")[0], 1), episodes=2, rng=rng())
    assert outcome.bound is None
    assert outcome.gap is None
    assert repr(outcome).startswith("TeamEvaluation(value ")


@each(
    ("people", "counts", "sentence"),
    [
        ([], None, r"people is \[\]; give a list of at least one problem"),
        ("ward", None, "people is 'ward'; give a list"),
        (["ward"], None, r"people\[0\] is 'ward'; give a problem"),
        ("two horizons", None, r"people\[0\] has 8 steps and people\[1\] has 6"),
        ("one", [0], r"counts\[i=0\] is 0; it must be at least 1"),
    ],
)
def test_bad_teams_are_refused_in_one_sentence(people, counts, sentence):
    if people == "two horizons":
        people = [*mothers(""), counsel.make("ward")]
    if people == "one":
        people = mothers("")
    with pytest.raises(CounselError, match=sentence):
        counsel.Team(people, counts)


@each(
    ("plan", "episodes", "sentence"),
    [
        ("best", 10, "plan is 'best'; give a TeamPolicy, or the result of share with per_step"),
        (None, 1, "episodes must be a whole number of at least 2, not 1"),
    ],
)
def test_bad_evaluations_are_refused_in_one_sentence(plan, episodes, sentence):
    (problem,) = mothers("")
    plan = best(problem, 1) if plan is None else plan
    with pytest.raises(CounselError, match=sentence):
        counsel.Team([problem]).evaluate(plan, episodes=episodes, rng=rng())


@each(
    ("kinds", "counts", "sentence"),
    [
        (("", "/working"), [2, 4], r"counts\[1\] is 3 in the plan and 4 in the team; share anew"),
        (("/working", ""), [2, 3], r"people\[0\] of the plan and of the team differ in [a-z]+; "),
        (("", "/tiring"), [2, 3], r"people\[1\] .* differ in levels of memory \(1 and 4\)"),
        (("",), [5], "the plan is for 2 kinds of people; the team has 1"),
    ],
)
def test_a_plan_for_another_team_is_refused(kinds, counts, sentence):
    plan = counsel.share(mothers("", "/working"), per_step=1, counts=[2, 3])
    team = counsel.Team(mothers(*kinds), counts)
    with pytest.raises(CounselError, match=sentence):
        team.evaluate(plan, episodes=2, rng=rng())
    same = counsel.Team(mothers("", "/working"), [2, 3])  # built anew
    assert (
        same.evaluate(pickle.loads(pickle.dumps(plan)), episodes=2, rng=rng()).bound == plan.bound
    )
    if len(kinds) == 2:
        assert team.evaluate(plan.policy, episodes=2, rng=rng()).bound is None


@each_seed(range(20))
def test_the_key_at_every_place_is_that_of_the_sorted_keys(seed):
    generator = rng(seed)
    size = int(generator.integers(1, 60))
    drawn = generator.integers(0, 8, size) if seed % 2 else generator.random(size)  # ties, or none
    keys = drawn.astype(np.float64)
    found = [order_statistic(keys.copy(), k) for k in range(size)]
    np.testing.assert_array_equal(found, np.sort(keys))
