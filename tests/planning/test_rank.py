"""Whom to advise now: the order, the price and ties."""

import numpy as np
import pytest

import counsel
from counsel.errors import CounselError
from counsel.planning.rank import Cell, rank_cells
from tests.support.each import each_seed


def rng(seed=0):
    return np.random.default_rng(seed)


@each_seed(range(6))
def test_the_most_critical_are_told_what_the_plan_at_the_price_says(seed):
    world = ("call-centre", "call-centre/tiring", "night-shift")[seed % 3]
    problem, draw = counsel.make(world), rng(seed)
    cells = [
        Cell(*(int(draw.integers(n)) for n in (problem.horizon, 4, problem.n_levels)))
        for _ in range(12)
    ]
    ranking = rank_cells(problem, cells, pieces=4, rng=draw)
    plan = counsel.solve(problem, penalty=ranking.price, allow_reverse=False)
    critical = [person.criticality for person in ranking.people]
    assert critical == sorted(critical, reverse=True)
    told = [person for person in ranking.people if person.advice is not None]
    assert len(told) <= 4
    for person in told:
        step, state, level = cells[person.row]
        where = (level, step, state) if problem.memory else (step, state)
        assert person.advice == plan.policy.advice[where]
        assert person.explanation.gain > ranking.price
    assert sorted(person.row for person in ranking.people) == list(range(12))


def test_equals_are_drawn_with_the_seed():
    problem = counsel.make("call-centre")
    cells = [Cell(3, 2, 0)] * 20
    firsts = {rank_cells(problem, cells, pieces=1, rng=rng(s)).people[0].row for s in range(20)}
    assert len(firsts) > 5
    again = [rank_cells(problem, cells, pieces=1, rng=rng(1)).people[0].row for _ in range(2)]
    assert again[0] == again[1]
    ranking = rank_cells(problem, cells, pieces=3, rng=rng())
    assert [person.advice is not None for person in ranking.people] == [True] * 3 + [False] * 17
    # Whoever just misses a piece would gain as much as those who get one.
    assert ranking.price == counsel.criticality(problem, allow_reverse=False).lower[3, 2] > 0.0
    assert rank_cells(problem, cells, pieces=20, rng=rng()).price == 0.0


@each_seed(range(4))
def test_the_price_is_the_criticality_of_the_first_person_who_is_left_out(seed):
    problem, draw = counsel.make("call-centre"), rng(seed)
    cells = [Cell(int(draw.integers(3)), int(draw.integers(4)), 0) for _ in range(12)]
    for pieces in range(1, 13):
        ranking = rank_cells(problem, cells, pieces=pieces, rng=draw)
        missing = [p.criticality for p in ranking.people if p.advice is None]
        assert ranking.price == (missing[0] if missing else 0.0)
        assert len(missing) == 12 - pieces or missing[0] == 0.0


def test_people_whose_advice_is_required_come_first_and_take_a_piece():
    problem = counsel.make("call-centre")
    required = np.array([True, False, False, False])  # engaged, the least critical otherwise
    cells = [Cell(3, 2, 0), Cell(3, 0, 0), Cell(3, 3, 0)]
    ranking = rank_cells(problem, cells, pieces=2, rng=rng(), required=required)
    assert [person.row for person in ranking.people] == [1, 0, 2]
    assert [person.is_required for person in ranking.people] == [True, False, False]
    assert [person.advice is not None for person in ranking.people] == [True, True, False]
    assert ranking.price == ranking.people[2].criticality > 0.0


def test_the_ranking_is_that_of_the_whittle_index_of_a_restless_arm():
    """Criticality is the index: a passive habit, advice that is always taken, one more step."""
    stay, fix = np.eye(3), np.array([[1.0, 0, 0], [1.0, 0, 0], [0.4, 0.6, 0]])
    transition = np.stack([stay, fix], axis=1)
    mdp = counsel.MDP(transition, np.array([[1.0, 1], [0.6, 0.6], [0, 0]]), horizon=2)
    arm = counsel.AdviceProblem(mdp, counsel.Human([[1.0, 0]] * 3, 1.0))
    index = counsel.criticality(arm).lower[0]
    assert index.tolist() == pytest.approx([0.0, 0.4, 0.76])  # what one step in a better state adds
    cells = [Cell(0, s, 0) for s in range(3)]
    ranking = rank_cells(arm, cells, pieces=1, rng=rng())
    assert [person.row for person in ranking.people] == [2, 1, 0]
    assert ranking.price == pytest.approx(0.4)


def test_costs_other_than_one_are_refused():
    ward = counsel.make("ward")
    costly = counsel.AdviceProblem(ward.mdp, ward.human, cost=2.0)
    with pytest.raises(CounselError, match="pieces cost other than 1; a ranking counts pieces"):
        rank_cells(costly, [Cell(0, 0, 0)], pieces=1, rng=rng())


def arm_on_a_circle(horizon, subsidy=0.0):
    """Return the arm with circulant dynamics of Fu et al. (2019) as a person who is passive alone.

    ``subsidy`` is paid for every piece of advice.
    """
    passive = 0.5 * (np.eye(4) + np.roll(np.eye(4), -1, axis=1))
    transition = np.stack([passive, passive.T], axis=1)
    reward = np.array([-1.0, 0.0, 0.0, 1.0])
    mdp = counsel.MDP(transition, np.stack([reward, reward + subsidy], axis=1), horizon=horizon)
    return counsel.AdviceProblem(mdp, counsel.Human([[1.0, 0.0]] * 4, 1.0))


def test_criticality_equals_the_published_whittle_indices_of_an_arm_on_a_circle():
    """Avrachenkov and Borkar (2022) give −1/2, 1/2, 1 and −1 for the average reward."""
    index = counsel.criticality(arm_on_a_circle(40, subsidy=1.5)).lower[0] - 1.5
    assert index.tolist() == pytest.approx([-0.5, 0.5, 1.0, -1.0], abs=1e-6)


def test_a_team_plan_earns_no_less_than_the_published_whittle_indices():
    arm, (H, S) = arm_on_a_circle(20), (20, 4)
    plan = counsel.share([arm], per_step=4, counts=[20])
    index = np.broadcast_to([-0.5, 0.5, 1.0, -1.0], (H, S))
    whittle = counsel.simulate.TeamPolicy(4, advice=[np.ones((H, S), int)], priority=[index])
    team = counsel.Team([arm], counts=[20])
    ours, theirs = (team.evaluate(p, episodes=600, rng=rng()) for p in (plan, whittle))
    difference = ours.rewards - theirs.rewards
    error = difference.std(ddof=1) / np.sqrt(difference.size)
    assert difference.mean() >= -2.0 * error
    assert ours.interval[0] <= plan.bound


def test_a_piece_is_not_kept_for_somebody_who_should_rest_now():
    """At a low price silence at the fork, with two pieces later, is better than one piece now.

    Its criticality is the largest all the same, so nobody was given the piece at hand.
    """
    mdp = counsel.MDP(
        [[1, 2], [1, 1], [2, 2], [2, 2]],
        [[0.0, 0.9], [0.0, 0.6], [0.0, 0.0], [0.0, 0.1]],
        horizon=3,
        state_labels=["fork", "busy", "over", "small"],
        action_labels=["wait", "act"],
    )
    problem = counsel.AdviceProblem(mdp, counsel.Human([[1.0, 0.0]] * 4, lift=1.0))
    fork, small = Cell(0, 0, 0), Cell(0, 3, 0)
    ranking = rank_cells(problem, [fork, small], pieces=1, rng=rng())
    told = {person.row: person.advice for person in ranking.people}
    assert told == {0: None, 1: 1}
    assert [person.row for person in ranking.people] == [1, 0]
    assert ranking.price == 0.0
    assert ranking.people[1].criticality == pytest.approx(0.9)
    sentence = ranking.people[1].explanation.sentence
    assert "stay silent" in sentence
    assert "with less advice later, advice here would pay up to a penalty of 0.9" in sentence
    busy = [Cell(0, 1, 0)] * 2  # at their criticality of 0.6 the fork is worth a piece
    ranking = rank_cells(problem, [fork, *busy], pieces=1, rng=rng())
    assert ranking.price == pytest.approx(0.6)
    assert ranking.people[0].row == 0
    assert ranking.people[0].advice == 1
