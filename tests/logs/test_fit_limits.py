"""What a log cannot tell is noted, and nothing is planned on it."""

import numpy as np
import pytest

import counsel
from counsel.logs import count
from tests.support.drawn_tables import spoken, table
from tests.support.later import Later

pd = Later("pandas")

pytestmark = pytest.mark.usefixtures("few_draws")


def alike(fit):
    """Everything a plan without limit says."""
    return set(np.unique(counsel.logs.plan_advice(fit).plan.policy.advice).tolist())


def noted(fit, words):
    found = [note for note in fit.notes if words in note.what]
    assert len(found) == 1, [note.what for note in fit.notes]
    return found[0]


def paying(action, best="b"):
    """A reward of 1 for what one would like to advise."""
    return [float(a == best) for a in action]


def test_without_silence_and_refusals_of_one_advice_nothing_is_planned():
    rng = np.random.default_rng(0)
    said = np.ones(400, dtype=int)
    advice, action = spoken(rng, 400, [0.5, 0.2, 0.3], 0.5, said=said)
    fit = counsel.fit(table(advice=advice, action=action, reward=paying(action)))
    assert noted(fit, "nobody was left without advice").examples == ("only",)
    assert not fit.problem.lift.any()
    assert not fit.estimates.usable.any()
    assert alike(fit) == {1}, "what was done is kept: nobody knows what silence brings"
    # A few silent decisions tell the habit, and the plan speaks.
    quiet = table(advice=[None] * 40, action=["a"] * 20 + ["b"] * 8 + ["c"] * 12, reward=0.0)
    quiet = quiet.assign(episode="q" + quiet.episode, reward=paying(quiet.action))
    rows = pd.concat((table(advice=advice, action=action, reward=paying(action)), quiet))
    told = counsel.fit(rows)
    assert not [note for note in told.notes if "nobody was left without advice" in note.what]
    assert alike(told) == {1}


def test_refusals_alone_tell_the_habit_where_three_pieces_were_refused():
    rng = np.random.default_rng(1)
    advice, action = spoken(rng, 3000, [0.5, 0.2, 0.3], 0.5, said=rng.integers(3, size=3000))
    fit = counsel.fit(table(advice=advice, action=action, reward=paying(action)))
    assert not [note for note in fit.notes if "nobody was left without advice" in note.what]
    # Half of 3,000 are refusals or would have been: each π is known to about 0.03.
    np.testing.assert_allclose(fit.problem.policy[0, 0], [0.5, 0.2, 0.3], atol=0.1)
    assert alike(fit) == {1}


def test_with_two_actions_refusals_tell_nothing():
    rng = np.random.default_rng(2)
    advice, action = spoken(rng, 400, [0.6, 0.4], 0.5, said=rng.integers(2, size=400))
    fit = counsel.fit(table(advice=advice, action=action, reward=paying(action)))
    assert noted(fit, "nobody was left without advice").count == 1
    assert not fit.problem.lift.any()
    often = int(np.mean([x == "b" for x in advice]) > 0.5)
    assert alike(fit) == {often}, "what was done most is kept"


def test_what_was_never_advised_is_not_planned():
    rng = np.random.default_rng(3)
    said = np.where(rng.random(600) < 0.5, 0, 3)
    advice, action = spoken(rng, 600, [0.5, 0.2, 0.3], 0.5, said=said)
    fit = counsel.fit(table(advice=advice, action=action, reward=paying(action)))
    assert noted(fit, "actions that were never advised").examples == ("b", "c")
    assert not fit.problem.lift[..., 1:].any()
    assert fit.problem.lift[0, 0, 0] == pytest.approx(0.5, abs=0.1)  # 300 pieces: 0.03, three times
    assert alike(fit) == {3}  # "b" pays, and "a" does not


def test_advice_that_was_never_refused_may_have_any_lift():
    rng = np.random.default_rng(4)
    said = np.where(rng.random(60) < 0.5, 1, 3)
    advice, action = spoken(rng, 60, [0.5, 0.2, 0.3], 1.0, said=said)
    fit = counsel.fit(table(advice=advice, action=action, reward=paying(action)))
    assert noted(fit, "advice that was never refused").examples == ("b",)
    assert fit.estimates.lift_high[0, 0, 1] > 0.98
    assert 0.0 < fit.estimates.lift_low[0, 0, 1] < 0.95
    assert fit.estimates.matched[0, 0, 1] == fit.estimates.given[0, 0, 1] == (said == 1).sum()


def test_without_any_advice_nothing_is_planned():
    rng = np.random.default_rng(5)
    advice, action = spoken(rng, 200, [0.5, 0.2, 0.3], 1.0, said=np.full(200, 3))
    rows = table(advice=advice, action=action, reward=paying(action), person="x")
    fit = counsel.fit(rows.assign(advice=""))
    assert [note.what.partition(":")[0] for note in fit.notes] == ["no advice was seen"]
    assert not fit.problem.lift.any()
    assert alike(fit) == {3}
    assert fit.law is fit.people is fit.over_time is fit.over_advice is None
    np.testing.assert_allclose(
        fit.problem.policy[0, 0], [np.mean([x == name for x in action]) for name in "abc"]
    )


def test_what_happens_at_gaps_and_ends_is_noted():
    rows = table(
        action=["a", "b", "a", "b", "a", "a"],
        advice=[None, "a", None, "b", None, "b"],
        episode=["x", "x", "x", "y", "z", "z"],
        step=[0, 2, 3, 0, 0, 1],
        state=["s", "t", "s", "t", "s", "t"],
        reward=[1.0, None, 1.0, 0.0, 1.0, 1.0],
    )
    fit = counsel.fit(rows)
    assert noted(fit, "decisions without a reward").count == 1
    assert noted(fit, "shorter than the longest (4 decisions)").count == 2
    assert fit.tally.episodes == 3


@pytest.mark.slow
def test_too_many_states_actions_and_cells_are_refused_before_they_are_counted(monkeypatch):
    rows = pd.DataFrame(
        {
            "episode": [1, 1, 2],
            "step": [0, 1, 0],
            "state": ["a", "b", "c"],
            "next_state": ["b", "d", None],
            "advice": ["x", None, "y"],
            "action": ["x", "y", "z"],
            "reward": [0.0, 1.0, 0.5],
        }
    )
    monkeypatch.setattr(count, "MOST_CELLS", 2 * 4 * 3)  # 5 labels of states, 5 of actions
    monkeypatch.setattr(count, "MOST_ACTIONS", 3)
    monkeypatch.setattr(count, "MOST_STATES", 3)
    assert len(counsel.fit(rows, by_step=True).tally.states) == 4
    monkeypatch.setattr(count, "link_decisions", None)
    monkeypatch.setattr(count, "MOST_CELLS", 2 * 4 * 3 - 1)
    with pytest.raises(counsel.CounselError, match="a fit by step has 2 × 4 × 3 numbers"):
        counsel.fit(rows, by_step=True)
    monkeypatch.setattr(count, "MOST_ACTIONS", 2)
    with pytest.raises(counsel.CounselError, match="log has 3 different actions; the maximum is 2"):
        counsel.fit(rows)
    monkeypatch.setattr(count, "MOST_STATES", 2)
    with pytest.raises(counsel.CounselError, match="log has more than 2 different states"):
        counsel.fit(rows)


@pytest.mark.slow
def test_only_two_rewards_are_known_as_two():
    rng = np.random.default_rng(3)
    advice, action = spoken(rng, 90, [0.5, 0.2, 0.3], 0.5)
    for rewards, other in (([2.0, 5.0], 5.0), ([2.0, 2.5, 5.0], None), ([2.0], None)):
        rows = table(advice=advice, action=action, reward=np.resize(rewards, 90))
        tally = counsel.fit(rows).tally
        assert (tally.least, tally.other) == (2.0, other)
