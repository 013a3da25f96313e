"""Logs of people who do almost always the same: lifts far below 0 keep their digits."""

from fractions import Fraction

import numpy as np

import counsel
from counsel.logs.count import ENDED, Tally
from counsel.logs.estimate import Sharing, estimate, least_lift
from counsel.logs.fitted_model import Fit
from counsel.logs.importance_weights import _ahead, _model
from counsel.logs.sensitivity import sensitivity_ranges

SMALL = (0.5, 1e-3, 1e-6, 1e-8, 1e-12, 1e-15, 1e-17, 1e-100)


def counted(rows):
    """Counts of one state; rows are (advice, action, times), 2 for silence. Action 1 pays 1."""
    advice, action, times = np.array(rows).T
    n = times.size
    zero, count = np.zeros(n, dtype=np.int64), times.astype(float)
    return Tally(
        states=("here",),
        actions=("stay", "go"),
        horizon=1,
        block=zero,
        step=zero,
        state=zero,
        advice=advice.astype(np.int64),
        action=action.astype(np.int64),
        then=zero + ENDED,
        seen=np.ones(n, dtype=bool),
        opens=np.ones(n, dtype=bool),
        times=count,
        priced=count,
        paid=count * action,
        paid_squares=count * action,
        by_step=False,
        least=0.0,
        other=1.0,
    )


def test_the_lift_at_which_nobody_matches_is_one_that_a_person_may_have():
    # Found by reading: −π / (1 − π) had lost so many digits that ``Human`` took it for an adherence
    # below 0 and refused the person.
    for small in SMALL:
        own = np.array([[1.0 - small, small], [1.0, 0.0]])
        lift = least_lift(own)
        human = counsel.Human(own, lift=lift)
        assert np.abs(human.adherence[0, 0]).max() <= 1e-15, f"habit {small!r}: {human.adherence}"
        assert lift[1].tolist() == [0.0, 0.0]


def test_a_log_of_people_who_are_almost_certain_and_refuse_can_be_fitted():
    # Left alone, nearly everybody stays; when advised to stay, everybody goes. The bootstrap gives
    # weight 1e-6 to rows that it did not draw, so it produces such habits from any log.
    for rare in (1.0, 1e-3, 1e-6):
        rows = [(2, 0, 1e6), (2, 1, rare), (0, 1, 1e6), (1, 1, 5e5), (1, 0, 5e5)]
        for scale in ("lift", "adherence"):
            found = estimate(counted(rows), Sharing(scale=scale))
            theta = found.adherence[0, 0]
            assert np.isfinite(found.lift).all(), f"{rare}, {scale}"
            assert ((theta >= 0.0) & (theta <= 1.0)).all(), f"{rare}, {scale}: {theta}"
            if scale == "adherence":
                assert theta[0] <= 1e-5, f"{rare}, {scale}: {theta}"
                stored = found.problem.human.adherence[0, 0]
                assert abs(stored[0] - theta[0]) <= 1e-12, f"{rare}, {scale}: {stored}, {theta}"
            assert abs(theta[1] - 0.5) <= 1e-2, f"{rare}, {scale}: {theta}"


def test_sensitivity_at_odds_of_one_is_what_the_fit_says_itself():
    # Found by reading: 1 − π' lost its digits as 1 − π did.
    for rare in (1.0, 1e-3, 1e-6):
        rows = [(2, 0, 1e6), (2, 1, rare), (0, 1, 1e6), (1, 1, 5e5), (1, 0, 5e5)]
        tally, sharing = counted(rows), Sharing(scale="adherence")
        found = estimate(tally, sharing)
        fit = Fit("drawn", tally, found, sharing, {}, {}, None, (), None)
        S = fit.problem.n_states
        policy = counsel.Policy(np.zeros((1, S), dtype=np.int64), n_actions=2)
        silent = counsel.Policy(np.full((1, S), 2), n_actions=2)
        brings = (
            counsel.evaluate(fit.problem, policy).value
            - counsel.evaluate(fit.problem, silent).value
        )
        assert brings > 0.9, f"{rare}: {brings}"
        swayed = sensitivity_ranges(fit, policy)
        for end in (swayed[0].low, swayed[0].high):
            assert abs(end - brings) <= 1e-9, f"{rare}: {end}, {brings}"
        # Found here: for advice that repels to good effect the ends came in the wrong order.
        assert all(each.low <= each.high for each in swayed), f"{rare}: {swayed}"


def test_what_lies_ahead_of_advice_is_exact_for_the_almost_certain():
    # Found by reading: alone + lift · (Q − alone) was off by the whole reward.
    mdp = counsel.MDP([[0, 1], [1, 0]], [[5.0, 6.0], [0.25, 0.0]], horizon=2)
    policy = counsel.Policy(np.zeros((2, 2), dtype=np.int64), n_actions=2)
    values = np.array([[3.0, 7.0]])
    for small in SMALL:
        own = [1.0 - small, small]
        for theta in (0.0, 0.5, 1.0 - 2.0**-53, 1.0):
            problem = counsel.AdviceProblem(mdp, counsel.Human([own, own[::-1]], theta))
            got = _ahead(problem, _model(problem), policy, 0, values[:, None])[0, 0]
            for s in range(2):
                q = ((Fraction(8), Fraction(13)), (Fraction(29, 4), Fraction(3)))[s]
                for b in range(2):
                    t = Fraction(theta)
                    exact = t * q[b] + (1 - t) * q[1 - b]  # with two actions the habit is no matter
                    off = abs(float(Fraction(float(got[s, b])) - exact))
                    assert off <= 1e-13, f"habit {small!r}, adherence {theta!r}, {s, b}: {got}"


def test_what_lies_ahead_of_advice_at_a_level_is_exact_for_the_almost_certain():
    mdp = counsel.MDP([[0, 1], [1, 0]], [[5.0, 6.0], [0.25, 0.0]], horizon=2)
    policy = counsel.Policy(np.zeros((2, 2), dtype=np.int64), n_actions=2)
    memory = counsel.Memory.pieces(1)
    values = np.array([[[3.0, 7.0], [1.0, 2.0]]])  # by level: after advice the level is 1
    for small in SMALL:
        own = [1.0 - small, small]
        for theta in (0.0, 0.5, 1.0):
            lift = counsel.Human([own, own[::-1]], theta).lift[0]
            human = counsel.Human([own, own[::-1]], lift=lift, memory=memory, fading=[1.0, 1.0])
            problem = counsel.AdviceProblem(mdp, human)
            got = _ahead(problem, _model(problem), policy, 0, values)[0, 0]
            for s in range(2):
                q = ((Fraction(6), Fraction(8)), (Fraction(9, 4), Fraction(1)))[s]
                for b in range(2):
                    exact = Fraction(theta) * q[b] + (1 - Fraction(theta)) * q[1 - b]
                    off = abs(float(Fraction(float(got[s, b])) - exact))
                    assert off <= 1e-9, f"habit {small!r}, adherence {theta!r}, {s, b}: {got}"
