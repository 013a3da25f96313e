"""The call centre: its rules written out again, and what makes it worth sharing calls."""

import numpy as np
import pytest

import counsel
from counsel.errors import CounselError
from tests.support import slow_worlds as slow


@pytest.mark.parametrize(("name", "mother"), [("", "at home"), ("/working", "working")])
def test_every_transition_reward_and_habit_agrees_with_the_rules(name, mother):
    problem, rules = counsel.make(f"call-centre{name}"), slow.call_centre(mother)
    dense_sat = problem.mdp.kernel.to_dense()
    assert problem.horizon == 26
    for s, state in enumerate(problem.mdp.state_labels):
        assert problem.mdp.start[s] == pytest.approx(float(rules.start[state]))
        for a, action in enumerate(problem.mdp.action_labels):
            expected = [float(rules.next[state, action].get(t, 0)) for t in slow.ENGAGEMENT]
            assert dense_sat[s, a].tolist() == pytest.approx(expected)
            assert problem.mdp.reward[0, s, a] == (action == "listen")
            assert problem.policy[0, s, a] == pytest.approx(float(rules.habit[state, action]))
            assert problem.law(0, s, a)[a] == pytest.approx(float(rules.advised[state, action]))


def test_a_tiring_mother_listens_less_in_the_weeks_after_a_call():
    tiring, plain = counsel.make("call-centre/tiring"), counsel.make("call-centre")
    fading = tiring.level_lift[:, 0, 1, 1] / plain.lift[0, 1, 1]
    assert fading == pytest.approx([0.4, 0.6, 0.8, 1.0])
    assert tiring.level_of(None) == 3


def test_whom_to_call_is_not_obvious():
    people = [counsel.make("call-centre"), counsel.make("call-centre/working")]
    gain_hs = counsel.share(people, per_step=30, counts=[50, 50]).members[0].gain
    engaged, wavering, drifting, lost = gain_hs.T
    assert (engaged < np.minimum(wavering, lost)).all()  # they would listen anyway
    assert (drifting > np.maximum(wavering, lost)).all()
    assert lost[0] > wavering[0]  # worth winning back while there is time
    assert lost[-1] < wavering[-1]


def test_an_unknown_mother_is_refused():
    with pytest.raises(CounselError, match="mother is 'busy'; choose one of at home, working"):
        counsel.make("call-centre", mother="busy")
    assert np.isclose(counsel.make("call-centre", horizon=3).mdp.start.sum(), 1.0)
