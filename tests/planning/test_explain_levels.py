"""``explain`` for people with a memory: the burden, levels by name, and the sentences."""

import numpy as np
import pytest

import counsel
from counsel.planning.gains import nearest_advice
from tests.support import memory_oracle as o
from tests.support.drawn_memories import draw
from tests.support.each import each, each_seed
from tests.support.memory_model import choice_value, choices, mean_next
from tests.support.problems import adapt_memory, without_slips

SMALL = {"H": 3, "S": 2, "A": 2}
NAMES = ("lift", "advantage", "burden", "gain")


def alone(P, V, h, m, s):
    """Return the value of silence in one cell, from the values V[h, m, s] of what follows."""
    q = [P.r[h, s, a] + mean_next(P.K0[m], P.p[h, s, a], V[h + 1]) for a in range(P.A)]
    return sum(p * x for p, x in zip(P.habit[h, s], q, strict=True) if p > 0.0)


def check_terms(explanation, tables, cell):
    """Compare with the oracle's lift, advantage, burden and gain [h, m, s, b]."""
    own = [float(table[(*cell, explanation.considered)]) for table in tables]
    for name, expected in zip(NAMES, own, strict=True):
        assert getattr(explanation, name) == pytest.approx(expected, abs=1e-9), name
    assert explanation.gain == pytest.approx(
        explanation.lift * explanation.advantage - explanation.burden, abs=1e-12
    )


def check_decision(explanation):
    """Advice is given if the gain exceeds the price, but for ties and required advice."""
    difference = explanation.gain - explanation.price
    if abs(difference) > 1e-9 and not explanation.must:
        assert (explanation.advice is not None) == (difference > 0.0)


@each("penalty", [0.0, 0.15])
@each_seed(range(10))
def test_gain_is_lift_times_advantage_less_the_burden_as_the_oracle_has_them(seed, penalty):
    P = draw(seed, **SMALL)
    problem, masks = adapt_memory(P)
    plan = counsel.solve(problem, penalty=penalty, **masks)
    V, advice = o.plan(P, penalty)
    tables, known = o.terms(P, V), counsel.criticality(problem, **masks)
    for h, m, s in np.ndindex(advice.shape):
        explanation = counsel.explain(problem, plan, step=h, state=s, level=m, criticality=known)
        assert (explanation.level, explanation.level_name) == (m, f"level {m}")
        if explanation.considered is None:
            continue
        check_terms(explanation, tables, (h, m, s))
        check_decision(explanation)
        expected = None if advice[h, m, s] == P.A else advice[h, m, s]
        assert explanation.advice == expected
        assert "worth -" not in explanation.sentence
        assert explanation.price == pytest.approx(penalty * explanation.cost)
        assert explanation.criticality == (known.lower[m, h, s], known.upper[m, h, s])


@each_seed(range(8))
def test_under_a_hard_budget_the_burden_is_that_of_the_pieces_left_afterwards(seed):
    P = draw(seed, **SMALL, costs="whole" if seed % 2 else "one", required=False)
    problem, masks = adapt_memory(P)
    budget = 2
    plan = counsel.solve(problem, budget=budget, hard=True, **masks)
    V_k = o.hard_budget(P, budget).V.transpose(0, 2, 1, 3)
    terms_k = [o.terms(P, V) for V in V_k]
    known = counsel.criticality(problem, **masks)
    for k, h, m, s in np.ndindex(budget + 1, P.H, P.M, P.S):
        cell = {"step": h, "state": s, "pieces_left": k, "level": m}
        explanation = counsel.explain(problem, plan, **cell, criticality=known)
        assert (explanation.pieces_left, explanation.level) == (k, m)
        if explanation.considered is None or explanation.cost > k:
            assert explanation.advice is None
            continue
        after = V_k[k - int(explanation.cost)]
        check_terms(explanation, terms_k[k - int(explanation.cost)], (h, m, s))
        price = alone(P, V_k[k], h, m, s) - alone(P, after, h, m, s)
        assert explanation.price == pytest.approx(price, abs=1e-9)
        check_decision(explanation)


@each_seed(range(8))
def test_required_advice_under_a_hard_budget_is_explained_on_every_level(seed):
    # Found by this test: where silence and advice were both infeasible, their difference was NaN.
    P = draw(seed, H=2, S=2, A=2, M=2, costs="whole" if seed % 2 else "one", required=True)
    P = without_slips(P)
    problem, masks = adapt_memory(P)
    plan = counsel.solve(problem, budget=3 * P.H, hard=True, **masks)
    V_k = o.hard_budget(P, plan.policy.budget).V.transpose(0, 2, 1, 3)
    known = counsel.criticality(problem, **masks)
    for k, m, h, s in np.argwhere(plan.values[:, :, :-1] > -np.inf).tolist():
        cell = {"step": h, "state": s, "pieces_left": k, "level": m}
        explanation = counsel.explain(problem, plan, **cell, criticality=known)
        advice = plan.policy.advice[k, m, h, s]
        assert explanation.advice == (None if advice == problem.defer else advice)
        assert not np.isnan([explanation.burden, explanation.gain, explanation.price]).any()
        assert "nan" not in str(explanation)
        if explanation.considered is None:
            continue
        assert explanation.considered in choices(P, h, s)
        if explanation.cost > k:
            continue
        after = V_k[k - int(explanation.cost)]
        silent = alone(P, after, h, m, s)
        if silent > -np.inf:
            advised = choice_value(P, h, m, s, explanation.considered, after[h + 1])
            assert explanation.gain == pytest.approx(advised - silent, abs=1e-9)
            check_decision(explanation)


def test_forbidden_advice_is_not_considered_where_no_other_can_be_afforded():
    """Found by a drawn problem: all gains were −∞, and the first advice was forbidden."""
    gain, price = np.full(2, -np.inf), np.full(2, np.inf)
    assert nearest_advice(gain, price, np.array([False, True])) == 1
    assert nearest_advice(gain, np.array([np.inf, 1.0]), np.array([True, True])) == 1


# ------------------------------------------------------------------------------- sentences


def tiring(*, horizon=2, later=1.0, fading=(1.0, 0.2), lift=0.8):
    """One state; action 1 is worth 1, and ``later`` at the last step; the person prefers 0."""
    reward = np.zeros((horizon, 1, 2))
    reward[:, 0, 1] = 1.0
    reward[-1, 0, 1] = later
    mdp = counsel.MDP(
        np.zeros((1, 2), dtype=int),
        reward,
        horizon=horizon,
        state_labels=["bedside"],
        action_labels=["wait", "wash"],
    )
    memory = counsel.Memory.pieces(1)
    human = counsel.Human([[0.75, 0.25]], lift=lift, memory=memory, fading=list(fading))
    return counsel.AdviceProblem(mdp, human)


def test_a_sentence_says_what_advice_costs_of_later_listening():
    problem = tiring()
    why = counsel.explain(problem, counsel.solve(problem), step=0, state="bedside")
    # The gain later falls from 0.8 × 0.75 to 0.16 × 0.75.
    assert (why.lift, why.advantage) == pytest.approx((0.8, 0.75))
    assert (why.burden, why.gain) == pytest.approx((0.48, 0.12))
    assert str(why) == (
        "At step 0 in bedside (no piece so far), advise wash: alone the person most often takes "
        "wait (75%), the advice moves them with probability 0.8 and wash is worth 0.75 more than "
        "what they would do, and saying it now costs 0.48 of later listening, a gain of 0.12; "
        "advice here stays worthwhile up to a penalty of 0.12 per piece."
    )


def test_silence_that_lets_the_person_rest_says_so():
    problem = tiring(later=2.0)
    plan = counsel.solve(problem)
    why = counsel.explain(problem, plan, step=0, state=0)
    assert why.advice is None
    assert (why.burden, why.gain) == pytest.approx((0.96, -0.36))
    assert str(why) == (
        "At step 0 in bedside (no piece so far), stay silent: letting them rest, because the best "
        "advice, wash, would gain 0.6 now (lift 0.8 × advantage 0.75) but cost 0.96 of later "
        "listening."
    )
    tired = counsel.explain(problem, plan, step=0, state=0, level="1 or more pieces so far")
    assert (tired.level, tired.burden, tired.advice) == (1, 0.0, 1)
    assert "in bedside (1 or more pieces so far), advise wash" in str(tired)
    assert "later listening" not in str(tired)


def test_letting_them_rest_names_the_price_as_well():
    problem = tiring(later=2.0)
    why = counsel.explain(problem, counsel.solve(problem, penalty=0.1), step=0, state=0)
    assert "letting them rest" in str(why)
    assert "but cost 0.96 of later listening and its price of 0.1" in str(why)


def test_advice_that_wakes_the_person_adds_by_later_listening():
    problem = tiring(fading=(0.5, 1.0))
    why = counsel.explain(problem, counsel.solve(problem), step=0, state=0)
    assert why.burden == pytest.approx(-0.3)
    assert "and saying it now adds 0.3 by later listening, a gain of 0.6" in str(why)


def test_pieces_left_and_level_are_both_part_of_the_cell():
    problem = tiring(horizon=3)
    plan = counsel.solve(problem, budget=2, hard=True)
    why = counsel.explain(problem, plan, step=0, state=0)
    assert (why.pieces_left, why.level) == (2, 0)
    last = counsel.explain(problem, plan, step=2, state=0, pieces_left=1, level=1)
    assert (last.pieces_left, last.level, last.advice) == (1, 1, 1)
    none = counsel.explain(problem, plan, step=2, state=0, pieces_left=0, level=1)
    assert "stay silent: no piece of advice is left" in str(none)


@each("level", [2, -1, "tired", 0.5])
def test_a_level_that_the_memory_does_not_have_is_an_error(level):
    problem = tiring()
    with pytest.raises(counsel.CounselError, match="level"):
        counsel.explain(problem, counsel.solve(problem), step=0, state=0, level=level)


def test_a_criticality_or_a_plan_for_other_levels_is_an_error():
    problem, plain = tiring(), adapt_memory(draw(0, H=2, S=1, A=2, M=3, memory="pieces"))[0]
    plan = counsel.solve(problem)
    message = (
        "for 4 levels of memory, 2 steps and 1 states; the problem has 2 levels of memory, 2 a"
    )
    with pytest.raises(counsel.CounselError, match=message):
        counsel.explain(problem, plan, step=0, state=0, criticality=counsel.criticality(plain))
    with pytest.raises(
        counsel.CounselError, match=r"another problem: .* in levels of memory \(2 and 4"
    ):
        counsel.explain(plain, plan, step=0, state=0)


def test_a_person_without_a_memory_has_only_level_0():
    problem = counsel.make("night-shift")
    plan = counsel.solve(problem)
    assert counsel.explain(problem, plan, step=0, state=0, level=0).level is None
    for level in (1, "tired"):
        with pytest.raises(counsel.CounselError, match="level"):
            counsel.explain(problem, plan, step=0, state=0, level=level)
