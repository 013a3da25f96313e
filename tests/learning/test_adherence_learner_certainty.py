"""Learners of people who are almost certain somewhere."""

import numpy as np

import counsel
from counsel.estimate._bound_kernels import KL_LEVEL, Rule
from counsel.learning._adherence_kernels import set_bin

ULP = 2.0**-53


def shared_lift(small):
    """One lift for all pairs; in state 1 the person is all but certain of action 1, which pays."""
    mdp = counsel.MDP([[1, 1], [0, 0]], [[0.0, 1.0], [0.0, 1.0]], horizon=4)
    own = [[0.9, 0.1], [small, 1.0 - small]]
    human = counsel.Human(own, lift=0.5, groups=0)
    return counsel.AdviceProblem(mdp, human)


def test_one_almost_certain_pair_does_not_silence_the_group_that_shares_its_lift():
    # Found by reading: of a pair never advised the adherence is at most 1; as a lift that bound was
    # (1 − π) / Σ_{b≠a} π(b) = 0 where π rounds to 1, and the least bound of a group holds for all.
    for small in (1e-12, ULP, 1e-16, 1e-17, 1e-100, 1e-300, 1e-310, 0.0):
        problem = shared_lift(small)
        for learner in (
            counsel.UCBAD(problem.without_adherence()),
            counsel.UCBAD(problem.without_adherence(), may_repel=True),
        ):
            assert learner.policy.advice[0, 0] == 1, f"habit {small!r}, {learner}"


def test_the_lift_of_a_bin_that_was_never_refused_is_at_most_one_and_not_less():
    for small in (1e-12, ULP, 1e-16, 1e-17, 1e-100, 1e-300):
        matches = counsel.UCBAD(shared_lift(small).without_adherence()).matches
        for i in range(matches.n_bins):
            for times in (0, 1, 10**6):
                matches.belief.given[i] = matches.belief.matched[i] = times
                set_bin(Rule(KL_LEVEL, 0.0, 0.0), matches.groups, matches.belief, i, 3.0)
                case = f"habit {small!r}, bin {i}, {times} matches: {matches.belief.upper[i]}"
                assert matches.belief.upper[i] == 1.0, case


def test_learners_of_almost_certain_people_stay_finite():
    for small in (1e-12, 1e-17, 1e-300, 1e-310):
        problem = shared_lift(small)
        by_pair = counsel.AdviceProblem(problem.mdp, counsel.Human(problem.policy[0], 0.0))
        for truth in (problem, by_pair):
            setting = truth.without_adherence()
            for learner in (
                counsel.UCBAD(setting),
                counsel.UCBAD(setting, may_repel=True),
                counsel.UCBAD(setting, budget=1.0),
                counsel.Thompson(setting, rng=np.random.default_rng(0)),
            ):
                rng = np.random.default_rng(1)
                *_, last = counsel.learn(learner, counsel.Simulator(truth), episodes=40, rng=rng)
                case = f"habit {small!r}, {type(learner).__name__}"
                assert np.isfinite(last.regret), case


def test_reverse_advice_to_the_almost_certain_is_found():
    # Advised what they always do, these people do the other thing, which pays. Found here: with a
    # habit of 1e-16 the gain, 1, was computed as 0, and the learner never said so at step 0.
    mdp = counsel.MDP([[0, 0]], [[0.0, 1.0]], horizon=2)
    for small in (1e-12, 1e-17, 1e-100, 1e-300):
        problem = counsel.AdviceProblem(mdp, counsel.Human([[1.0 - small, small]], [[0.0, 0.0]]))
        learner = counsel.UCBAD(problem.without_adherence(), may_repel=True)
        rng = np.random.default_rng(2)
        list(counsel.learn(learner, counsel.Simulator(problem), episodes=200, rng=rng))
        assert learner.policy.advice.tolist() == [[0], [0]], f"habit {small!r}"
        worth = counsel.evaluate(problem, learner.policy).value
        assert abs(worth - 2.0) <= 1e-14, f"habit {small!r}: {worth}"
