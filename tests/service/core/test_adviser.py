"""The adviser behind the service: what it learns from the log, and what it plans for whom."""

import numpy as np
import pytest

import counsel
from counsel import CounselError
from counsel.estimate.bounds import KL, interval, level_at
from counsel.model.human import draw_index
from counsel.service.core.adviser import POOL, Adviser, Limit, _upper, advice_at
from counsel.service.core.person_counts import SILENCE, Observation, Seen, pack, unpack
from counsel.worlds import make

WARD = make("ward")
PRIOR = counsel.AdviceProblem(WARD.mdp, counsel.Human(np.full((5, 3), 1 / 3), lift=0.0))
"""The ward for a machine that knows nothing of the people in it."""


def person_like(lift):
    return counsel.AdviceProblem(WARD.mdp, counsel.Human(WARD.policy[0], lift=lift))


def learn(adviser, events):
    for one in events:
        adviser.seen.learn(one)


def tables(adviser, person=-1):
    return adviser.seen.tables(person, 5, 3)[person == -1]


def lived(adviser, person, truth, episodes, rng, *, silent=0.2, limit=None):
    """Let an adviser advise somebody for some episodes, some of them in silence."""
    events, A = [], truth.n_actions
    moves = truth.mdp.kernel.to_sparse().toarray()
    for _ in range(episodes):
        made, quiet, spent = adviser.plan(person, limit or Limit(), rng), rng.random() < silent, 0
        began = len(events)
        state = draw_index(truth.mdp.start, rng)
        for step in range(truth.horizon):
            chances = advice_at(made.plan, step, state, spent)
            said = A if quiet else int(rng.choice(list(chances), p=list(chances.values())))
            spent += said < A
            action = draw_index(truth.law(step, state, said), rng)
            events.append(Observation(person, state, said if said < A else SILENCE, action))
            state = draw_index(moves[state * A + action], rng)
            if truth.mdp.over[step, state]:
                break
        learn(adviser, events[began:])
    return events


def test_the_same_log_in_any_order_makes_the_same_adviser():
    rng = np.random.default_rng(0)
    first, limit = Adviser(PRIOR), Limit(budget=1.0)
    events = lived(first, 7, WARD, 30, rng, limit=limit)
    events += lived(first, 8, WARD, 10, rng, limit=limit)
    again = Adviser(PRIOR)
    learn(again, (events[i] for i in rng.permutation(len(events))))
    for person in (7, 8, 9):
        mine, other = first.plan(person, limit), again.plan(person, limit)
        np.testing.assert_array_equal(mine.plan.policy.advice, other.plan.policy.advice)
        np.testing.assert_array_equal(mine.believed.optimistic, other.believed.optimistic)
        np.testing.assert_array_equal(mine.believed.habit, other.believed.habit)


def test_every_decision_is_counted_once():
    adviser = Adviser(PRIOR)
    events = lived(adviser, 1, WARD, 40, np.random.default_rng(1))
    counts = tables(adviser)
    assert counts.silent.sum() + counts.given.sum() == len(events)
    assert counts.given.sum() == counts.matched.sum() + counts.refusing.sum()
    assert counts.matched.sum() == sum(e.action == e.heard for e in events)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["ucb-ad", "thompson"])
def test_it_learns_who_listens_and_what_they_do_alone(algorithm):
    rng = np.random.default_rng(2)
    adviser, limit = Adviser(PRIOR, algorithm), Limit(penalty=0.02)
    keen, deaf = person_like(0.8), person_like(0.1)
    for _ in range(3):
        lived(adviser, 1, keen, 120, rng, limit=limit)
        lived(adviser, 2, deaf, 120, rng, limit=limit)
    call = 2  # what is mostly advised: "call doctor"
    believed = [adviser.believe(person, rng) for person in (1, 2)]
    for one, truth in zip(believed, (0.8, 0.1), strict=True):
        # The standard error by the person's own pieces, and what leaning on the other costs.
        error = 0.5 / np.sqrt(one.room[call])
        lean = POOL / (POOL + one.room[call]) * 0.5
        assert one.room[call] > 25
        assert abs(one.lift[call] - truth) < 4 * error + lean
    often = tables(adviser).silent.sum(axis=1) > 100
    assert often.sum() >= 2
    np.testing.assert_allclose(believed[0].habit[often], WARD.policy[0, often], atol=0.1)
    # Planned for the keen one it is worth nearly what there is to have.
    best = counsel.solve(keen, penalty=0.02)
    made = adviser.plan(1, limit, rng).plan.policy
    got = counsel.evaluate(keen, made)
    alone = counsel.evaluate(keen, counsel.Policy.never(horizon=6, n_states=5, n_actions=3)).value
    assert got.value - 0.02 * got.advice_count - alone > 0.8 * (best.penalised_value - alone)


def test_a_new_person_starts_as_everybody_and_drifts_to_their_own():
    adviser = Adviser(WARD, knows_habit=True)
    rng = np.random.default_rng(3)

    def told(person, n, lift):
        matches = rng.random(n) < lift + (1 - lift) * WARD.policy[0, 1, 2]
        learn(adviser, (Observation(person, 1, 2, 2 if m else 0) for m in matches))

    for person in range(20):
        told(person, 100, 0.7)
    new = adviser.believe(99)
    assert new.lift[2] == pytest.approx(0.7, abs=4 * 0.5 / np.sqrt(2000))
    lifts = [new.lift[2]]
    for _ in range(4):
        told(99, 50, 0.0)
        lifts.append(adviser.believe(99).lift[2])
    assert lifts == sorted(lifts, reverse=True)
    assert lifts[-1] < 0.12
    assert adviser.believe(0).lift[2] == pytest.approx(0.7, abs=0.15)


def test_the_optimistic_lift_is_the_upper_end_of_the_learners_bound():
    """Against the compiled bound of UCB-AD, which counts whole numbers."""
    given = np.array([1, 5, 40, 300, 300, 7])
    matched = np.array([0, 3, 22, 299, 0, 7])
    for episode in (1, 64, 2**20):
        _, high = interval(KL(), matched, given, groups=1, horizon=1, episode=episode)
        found = _upper(matched / given, given.astype(float), level_at(episode))
        np.testing.assert_allclose(found, high, atol=1e-6)


def test_optimism_shrinks_with_pieces_and_is_never_below_the_estimate():
    adviser = Adviser(WARD, knows_habit=True)
    gaps = []
    for _ in range(5):
        learn(adviser, [Observation(1, 1, 2, 2, 40), Observation(1, 1, 2, 0, 40)])
        one = adviser.believe(1)
        assert (one.optimistic >= one.lift).all()
        gaps.append(one.optimistic[2] - one.lift[2])
    assert gaps == sorted(gaps, reverse=True)


def test_what_must_be_said_is_outside_the_budget_and_known_to_the_planner():
    critical, call = WARD.mdp.state_labels.index("critical"), 2
    free = Adviser(WARD, knows_habit=True)
    bound = Adviser(WARD, knows_habit=True, must_say={critical: call})
    made = bound.plan(1, Limit(budget=1.0))
    assert (made.plan.policy.advice[:, critical] == WARD.defer).all()
    assert made.plan.advice_count == pytest.approx(1.0)
    # The planner's person acts in that state as one who is advised so.
    lift = made.believed.optimistic[call]
    expected = (1 - lift) * WARD.policy[0, critical]
    expected[call] += lift
    np.testing.assert_allclose(made.problem.policy[0, critical], expected)
    # What need not be paid for there is spent elsewhere: it is worth more than the budget alone.
    assert made.plan.value > free.plan(1, Limit(budget=1.0)).plan.value


def test_a_hard_budget_counts_what_was_spent():
    plan = Adviser(WARD, knows_habit=True).plan(1, Limit(budget=2, hard=True)).plan
    state = WARD.mdp.state_labels.index("deteriorating")
    assert next(iter(advice_at(plan, 0, state, 0))) != WARD.defer
    for spent in (2, 3):
        for step in range(6):
            for s in range(5):
                assert advice_at(plan, step, s, spent) == {WARD.defer: 1.0}


def test_forgetting_somebody_leaves_no_trace():
    rng = np.random.default_rng(5)
    one, both = Adviser(PRIOR), Adviser(PRIOR)
    kept = lived(one, 1, WARD, 20, rng)
    learn(both, kept)
    learn(both, lived(Adviser(PRIOR), 2, WARD, 20, rng))
    both.seen.forget(2)
    both.seen.forget(3)
    assert one.seen.everybody.cells == both.seen.everybody.cells
    assert one.seen.amount(2) == both.seen.amount(2) == (0, len(kept))
    assert one.seen.everybody.pieces == both.seen.everybody.pieces
    assert list(both.seen.people) == [1]


def test_what_was_seen_is_the_same_after_packing():
    rng, seen = np.random.default_rng(6), {"a": Seen(), "b": Seen(), "nothing seen": Seen()}
    for name in ("a", "b"):
        lived(Adviser(PRIOR, seen=seen[name]), 3, WARD, 5, rng)
        lived(Adviser(PRIOR, seen=seen[name]), 4, WARD, 5, rng)
    again = {name: Seen() for name in seen}
    for name, happened in unpack(pack(seen)):
        again[name].learn(happened)
    for name, one in seen.items():
        assert again[name].everybody.cells == one.everybody.cells
        assert {p: c.cells for p, c in again[name].people.items()} == {
            p: c.cells for p, c in one.people.items()
        }


def test_always_is_the_best_action_at_every_step():
    made = Adviser(WARD, knows_habit=True, must_say={3: 2}).plan(1, Limit(always=True))
    advice, ends = made.plan.policy.advice, WARD.mdp.over[0]
    assert (advice[:, 3] == WARD.defer).all(), "what must be said is said apart"
    assert (advice[:, ~ends & (np.arange(5) != 3)] != WARD.defer).all()
    worth = counsel.evaluate(made.problem, made.plan.policy)
    assert made.plan.advice_count == pytest.approx(worth.advice_count)
    with pytest.raises(CounselError, match="takes no penalty"):
        Limit(always=True, budget=1.0)


def test_the_criticality_of_a_cell_is_the_penalty_it_bears():
    made = Adviser(WARD, knows_habit=True).plan(1, Limit(penalty=0.1))
    expected = counsel.criticality(made.problem, allow_reverse=False).upper
    np.testing.assert_allclose(made.criticality, expected)


def test_people_who_change_over_the_episode_are_learnt_but_not_taken_as_known():
    shift = make("night-shift")
    Adviser(shift).plan(1, Limit(budget=1.0))
    with pytest.raises(CounselError, match="knows_habit is for people"):
        Adviser(shift, knows_habit=True)


def test_plans_are_made_anew_when_something_was_seen():
    adviser = Adviser(WARD, knows_habit=True)
    learn(adviser, [Observation(1, 1, 2, 2, 100)])
    made = adviser.plan(2, Limit())
    assert not adviser.moved(made, 2)
    learn(adviser, [Observation(1, 1, 2, 2, 5)])
    assert not adviser.moved(made, 2), "a few pieces of others change little"
    learn(adviser, [Observation(1, 1, 2, 2, 10)])
    assert adviser.moved(made, 2)
    again = adviser.plan(2, Limit())
    learn(adviser, [Observation(2, 1, 2, 0)])
    assert adviser.moved(again, 2), "the first of their own counts"
    learn(adviser, [Observation(2, 1, 2, 0, 99)])
    last = adviser.plan(2, Limit())
    learn(adviser, [Observation(2, 1, SILENCE, 0, 5)])
    assert not adviser.moved(last, 2), "a few of many change little"


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"algorithm": "magic"}, "algorithm is 'magic'"),
        ({"must_say": {9: 0}}, "must_say has state 9"),
        ({"must_say": {0: 7}}, "advice 7"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong, what):
    with pytest.raises(CounselError, match=what):
        Adviser(WARD, **wrong)


def test_thompson_needs_somewhere_to_draw_from():
    with pytest.raises(CounselError, match="give rng"):
        Adviser(WARD, algorithm="thompson").plan(1, Limit())
