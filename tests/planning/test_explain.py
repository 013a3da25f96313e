"""``explain``: the numbers against the oracles, and the sentence that carries them."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import counsel
from tests.support import examples, oracles
from tests.support.each import each, each_seed
from tests.support.problems import adapt
from tests.support.strategies import case, problems, rules

SEEDS = range(40)


def cells(problem):
    return list(np.ndindex(problem.horizon, problem.n_states))


def alone_and_advised(dense, h, s, V_s):
    """Return what the person gets alone, what each advice leads to [b], and Q [a]."""
    q_a = dense.r_hsa[h, s] + dense.P_hsat[h, s] @ V_s
    pi_a, theta_a = dense.pi_hsa[h, s], dense.theta_hsa[h, s]
    advised_b = np.array([oracles.law(pi_a, theta_a, b) @ q_a for b in range(len(q_a))])
    return float(pi_a @ q_a), advised_b, q_a


def check_numbers(dense, explanation, V_s):
    """Compare gain, advantage and lift with equation (1) and the value to go ``V_s``."""
    h, s, b = explanation.step, explanation.state, explanation.considered
    np.testing.assert_array_equal(explanation.own, dense.pi_hsa[h, s])
    assert explanation.gain == pytest.approx(explanation.lift * explanation.advantage, abs=1e-15)
    alone, advised_b, q_a = alone_and_advised(dense, h, s, V_s)
    assert explanation.gain == pytest.approx(advised_b[b] - alone, abs=1e-9)
    assert explanation.advantage == pytest.approx(q_a[b] - alone, abs=1e-9)
    if explanation.advice is None:
        allowed_a = dense.allowed_hsa[h, s]
        best = np.where(allowed_a, advised_b, -np.inf).max()
        assert advised_b[b] == pytest.approx(best, abs=1e-9)


def check_decision(explanation):
    """Advised iff the gain exceeds the price, but for ties."""
    if abs(explanation.gain - explanation.price) > 1e-9:
        assert (explanation.advice is not None) == (explanation.gain > explanation.price)


# ------------------------------------------------------------------------------- numbers


@each("penalty", [0.0, 0.1])
@each_seed(SEEDS)
def test_at_a_penalty_gain_is_weighed_against_it(seed, penalty):
    dense, problem = case(seed)
    oracle = oracles.plan(*dense, penalty=penalty)
    plan = counsel.solve(problem, penalty=penalty)
    known = counsel.criticality(problem)
    for h, s in cells(problem):
        explanation = counsel.explain(problem, plan, step=h, state=s, criticality=known)
        advice = None if oracle.advice_hs[h, s] == problem.defer else oracle.advice_hs[h, s]
        assert explanation.advice == advice
        assert explanation.price == penalty
        check_numbers(dense, explanation, oracle.V_hs[h + 1])
        check_decision(explanation)


@each_seed(SEEDS)
def test_under_a_budget_gain_is_weighed_against_its_dual_price(seed):
    dense, problem = case(seed)
    plan = counsel.solve(problem, budget=0.4)
    oracle = oracles.plan(*dense, penalty=plan.price)
    reached = counsel.evaluate(problem, plan.policy).occupancy > 0.0
    known = counsel.criticality(problem)
    for h, s in cells(problem):
        explanation = counsel.explain(problem, plan, step=h, state=s, criticality=known)
        assert explanation.price == plan.price
        check_numbers(dense, explanation, oracle.V_hs[h + 1])
        if reached[h, s]:
            check_decision(explanation)


@each_seed(SEEDS)
def test_under_a_hard_budget_the_price_is_what_the_piece_is_worth_later(seed):
    dense, problem = case(seed)
    budget = min(2, problem.horizon)
    V_khs = oracles.hard_budget(*dense[:5], budget)
    plan = counsel.solve(problem, budget=budget, hard=True)
    known = counsel.criticality(problem)
    for h, s in cells(problem):
        for k in range(1, budget + 1):
            explanation = counsel.explain(
                problem, plan, step=h, state=s, pieces_left=k, criticality=known
            )
            kept, _, _ = alone_and_advised(dense, h, s, V_khs[k, h + 1])
            spent, _, _ = alone_and_advised(dense, h, s, V_khs[k - 1, h + 1])
            assert explanation.price == pytest.approx(kept - spent, abs=1e-9)
            assert explanation.pieces_left == k
            check_numbers(dense, explanation, V_khs[k - 1, h + 1])
            check_decision(explanation)


@given(problems(), st.floats(0.0, 0.5), st.data())
def test_any_cell_of_any_plan_can_be_explained(dense, penalty, data):
    problem = adapt(dense)
    plan = counsel.solve(problem, penalty=penalty)
    h = data.draw(st.integers(0, problem.horizon - 1))
    s = data.draw(st.integers(0, problem.n_states - 1))
    explanation = counsel.explain(problem, plan, step=h, state=s)
    assert np.isfinite([explanation.lift, explanation.advantage, explanation.gain]).all()
    check_decision(explanation)
    assert "nan" not in str(explanation)


@each_seed(SEEDS)
def test_any_cell_under_rules_can_be_explained(seed):
    dense, problem = case(seed)
    forbidden_hs, required_hs = rules(seed, dense.r_hsa.shape)
    masks = {"forbidden": forbidden_hs, "required": required_hs}
    plan = counsel.solve(problem, penalty=0.05, **masks)
    known = counsel.criticality(problem, **masks)
    for h, s in cells(problem):
        explanation = counsel.explain(problem, plan, step=h, state=s, criticality=known)
        assert explanation.must == required_hs[h, s]
        assert (explanation.considered is None) == forbidden_hs[h, s]
        if forbidden_hs[h, s]:
            assert explanation.advice is None
        if required_hs[h, s]:
            assert explanation.advice is not None
        assert "nan" not in str(explanation)


@each_seed(SEEDS)
def test_a_hard_plan_with_must_say_cells_can_be_explained_wherever_it_can_be_kept(seed):
    dense, problem = case(seed)
    _, required_hs = rules(seed, dense.r_hsa.shape)
    plan = counsel.solve(problem, budget=problem.horizon, hard=True, required=required_hs)
    known = counsel.criticality(problem, required=required_hs)
    for k, h, s in np.argwhere(plan.values[:, :-1] > -np.inf):
        explanation = counsel.explain(
            problem, plan, step=int(h), state=int(s), pieces_left=int(k), criticality=known
        )
        advice = plan.policy.advice[k, h, s]
        assert explanation.advice == (None if advice == problem.defer else advice)
        assert not np.isnan([explanation.gain, explanation.price]).any()
        assert "nan" not in str(explanation)


def test_a_piece_that_must_be_kept_is_beyond_price():
    # From state 0 the way leads to state 2, where the last piece must be spent.
    problem = adapt(examples.silent_then_advised())
    required = np.zeros((3, 3), dtype=bool)
    required[2, 2] = True
    plan = counsel.solve(problem, budget=1, hard=True, required=required)
    explanation = counsel.explain(problem, plan, step=1, state=2)
    assert (explanation.advice, explanation.price) == (None, np.inf)
    assert "stay silent" in str(explanation)


@each_seed(range(0, 40, 4))
def test_criticality_is_the_same_whether_passed_or_worked_out(seed):
    _, problem = case(seed)
    plan = counsel.solve(problem, penalty=0.1)
    known = counsel.criticality(problem)
    for h, s in cells(problem):
        passed = counsel.explain(problem, plan, step=h, state=s, criticality=known)
        found = counsel.explain(problem, plan, step=h, state=s)
        assert found.criticality == passed.criticality == (known.lower[h, s], known.upper[h, s])


def test_criticality_follows_the_rules_of_the_plan():
    problem = adapt(examples.advice_can_wait())
    forbidden = np.zeros((2, 3), dtype=bool)
    forbidden[1, 2] = True
    free = counsel.solve(problem, penalty=0.2)
    bound = counsel.solve(problem, penalty=0.2, forbidden=forbidden)
    assert counsel.explain(problem, free, step=0, state=0).criticality == (0.0, 0.0)
    assert counsel.explain(problem, bound, step=0, state=0).criticality == pytest.approx((1, 1))


def test_all_pieces_are_left_unless_said_otherwise():
    problem = adapt(examples.silent_then_advised())
    plan = counsel.solve(problem, budget=2, hard=True)
    assert counsel.explain(problem, plan, step=0, state=0).pieces_left == 2


def test_reverse_is_the_mark_of_the_plan():
    dense = oracles.random_problem(np.random.default_rng(4), 3, 3, 3, repel=True)
    problem = adapt(dense)
    plan = counsel.solve(problem)
    marked = {
        (h, s) for h, s in cells(problem) if counsel.explain(problem, plan, step=h, state=s).reverse
    }
    assert marked == {tuple(cell) for cell in plan.reverse.tolist()}
    assert marked


# ------------------------------------------------------------------------------ sentences


def road():
    """Return a road: alone the driver turns left 70 % of the time, though right earns 2 more."""
    mdp = counsel.MDP(
        np.array([[1, 1], [1, 1]]),
        [[0.0, 2.0], [0.0, 0.0]],
        horizon=2,
        state_labels=["fork", "home"],
        action_labels=["left", "right"],
    )
    return counsel.AdviceProblem(mdp, counsel.Human([[0.7, 0.3], [0.7, 0.3]], lift=0.5))


def sentence(problem, plan, step=0, state=0, **more):
    return str(counsel.explain(problem, plan, step=step, state=state, **more))


def test_the_sentence_for_advice_names_the_habit_the_lift_the_advantage_and_the_price():
    problem = road()
    text = sentence(problem, counsel.solve(problem, penalty=0.25))
    assert text == (
        "At step 0 in fork, advise right: alone the person most often takes left (70%), the advice "
        "moves them with probability 0.5 and right is worth 1.4 more than what they would do, a "
        "gain of 0.7 against its price of 0.25; advice here stays worthwhile up to a penalty of "
        "0.7 per piece."
    )


def test_without_a_price_the_sentence_names_none():
    problem = road()
    text = sentence(problem, counsel.solve(problem))
    assert "a gain of 0.7;" in text
    assert "price" not in text


def test_the_sentence_for_silence_names_the_advice_that_comes_closest():
    problem = road()
    text = sentence(problem, counsel.solve(problem, penalty=0.9))
    assert text == (
        "At step 0 in fork, stay silent: alone the person most often takes left (70%), and the "
        "best advice, right, would gain 0.7 (lift 0.5 × advantage 1.4), no more than its price of "
        "0.9; advice here stays worthwhile up to a penalty of 0.7 per piece."
    )


def test_the_sentence_where_nothing_can_be_gained():
    problem = road()
    text = sentence(problem, counsel.solve(problem), step=1, state=1)
    assert text.startswith("At step 1 in home, stay silent: ")
    assert text.endswith("and no advice would gain anything.")


def test_the_sentence_for_a_certain_person():
    problem = adapt(examples.silent_then_advised())
    text = sentence(problem, counsel.solve(problem, penalty=0.7))
    assert text.startswith("At step 0 in state 0, advise action 0: alone the person always takes")
    assert "against its price of 0.7; advice here stays worthwhile up to" in text


def test_the_sentence_under_an_expected_budget_names_the_dual_price():
    problem = adapt(examples.silent_then_advised())
    plan = counsel.solve(problem, budget=1)
    explanation = counsel.explain(problem, plan, step=0, state=0)
    assert explanation.price == pytest.approx(0.5)
    assert explanation.probability == 1.0


def test_the_sentence_of_the_random_cell_says_how_often():
    problem = road()
    plan = counsel.solve(problem, budget=0.3)
    explanation = counsel.explain(problem, plan, step=0, state=0)
    assert explanation.probability == pytest.approx(0.3)
    assert explanation.advice == 1
    assert "advise right in 30.0% of cases: " in str(explanation)
    assert (explanation.gain, explanation.price) == pytest.approx((0.7, 0.7))  # it is a toss-up


def test_a_random_cell_that_is_mostly_advised_says_how_often_too():
    problem = road()
    explanation = counsel.explain(problem, counsel.solve(problem, budget=0.8), step=0, state=0)
    assert explanation.probability == pytest.approx(0.8)
    assert "in 80.0% of cases" in str(explanation)


def test_the_sentence_under_a_hard_budget_names_the_price_of_a_piece():
    problem = adapt(examples.silent_then_advised())
    plan = counsel.solve(problem, budget=2, hard=True)
    # Two left: silence keeps both for state 2, worth 2; with one left that way is worth 1.
    explanation = counsel.explain(problem, plan, step=0, state=0)
    assert (explanation.advice, explanation.price) == (None, pytest.approx(1.0))
    assert explanation.gain == pytest.approx(0.5)  # 1.5 on the safe way instead of 1
    assert (
        "would gain 0.5 (lift 1 × advantage 0.5), no more than the 1 a piece is worth later"
        in str(explanation)
    )
    one_left = counsel.explain(problem, plan, step=0, state=0, pieces_left=1)
    assert (one_left.advice, one_left.price) == (0, pytest.approx(1.0))
    assert "a gain of 1.5 against the 1 a piece is worth later" in str(one_left)


def test_the_sentence_when_no_piece_is_left():
    problem = adapt(examples.silent_then_advised())
    plan = counsel.solve(problem, budget=1, hard=True)
    explanation = counsel.explain(problem, plan, step=1, state=2, pieces_left=0)
    assert explanation.price == np.inf
    assert "stay silent: no piece of advice is left" in str(explanation)


def test_the_sentence_where_no_advice_is_permitted():
    problem = road()
    plan = counsel.solve(problem, forbidden=[True, False])
    explanation = counsel.explain(problem, plan, step=0, state=0)
    assert str(explanation) == "At step 0 in fork, stay silent: no advice is permitted here."
    assert explanation.considered is None
    assert not explanation.must


def test_the_sentence_where_something_must_be_said():
    problem = road()
    plan = counsel.solve(problem, penalty=0.9, required=[True, False])
    explanation = counsel.explain(problem, plan, step=0, state=0)
    assert explanation.must
    assert explanation.criticality == (np.inf, np.inf)
    assert str(explanation) == (
        "At step 0 in fork, advise right because advice is required here, "
        "a gain of 0.7, no more than its price of 0.9."
    )


def test_the_sentence_where_it_must_be_said_and_would_be_anyway():
    problem = road()
    text = sentence(problem, counsel.solve(problem, penalty=0.2, required=[True, False]))
    assert "required" not in text
    assert "a gain of 0.7 against its price of 0.2." in text


def test_the_sentence_for_reverse_advice_says_that_it_repels():
    problem = adapt(examples.advice_repels(0.1))
    explanation = counsel.explain(problem, counsel.solve(problem, penalty=0.1), step=0, state=0)
    assert explanation.reverse
    assert (explanation.lift, explanation.advantage) == pytest.approx((-0.8, -0.5))
    text = str(explanation)
    assert "advise action 1 because it repels" in text
    assert "less likely to take it (lift -0.8)" in text
    assert "worth 0.5 less than what they would do, a gain of 0.4 against its price of 0.1" in text


def test_the_sentence_gives_two_bounds_where_criticality_is_only_bracketed():
    problem = road()
    rough = counsel.criticality(problem, max_kinks=0, grid=4)
    text = sentence(problem, counsel.solve(problem, penalty=0.1), criticality=rough)
    low, high = rough.lower[0, 0], rough.upper[0, 0]
    assert f"up to a penalty between {low:.3g} and {high:.3g} per piece." in text


@each_seed(range(20))
def test_every_explanation_is_one_sentence_with_the_labels(seed):
    _, problem = case(seed)
    plan = counsel.solve(problem, penalty=0.05)
    for h, s in cells(problem):
        text = sentence(problem, plan, h, s)
        assert text.startswith(f"At step {h} in state {s}, ")
        assert text.endswith(".")
        assert ". " not in text


# ------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize("name", ["step", "state"])
@pytest.mark.parametrize("given", [2, -1, 1.0, "nowhere", None, True])
def test_a_cell_that_is_not_there_is_an_error_that_names_it(name, given):
    problem = road()
    cell = {"step": 0, "state": 0} | {name: given}
    with pytest.raises(counsel.CounselError, match=f"^{name} "):
        counsel.explain(problem, counsel.solve(problem), **cell)


def test_a_state_goes_by_its_label_as_well():
    problem = road()
    plan = counsel.solve(problem)
    for number, label in enumerate(problem.mdp.state_labels):
        by_label = counsel.explain(problem, plan, step=0, state=label)
        assert str(by_label) == str(counsel.explain(problem, plan, step=0, state=number))


@pytest.mark.parametrize("pieces_left", [2, -1, 0.5, "one"])
def test_pieces_left_beyond_the_budget_are_an_error(pieces_left):
    problem = road()
    plan = counsel.solve(problem, budget=1, hard=True)
    with pytest.raises(counsel.CounselError, match="pieces_left"):
        counsel.explain(problem, plan, step=0, state=0, pieces_left=pieces_left)


def test_pieces_left_without_a_hard_budget_are_an_error():
    problem = road()
    with pytest.raises(counsel.CounselError, match="pieces_left is for a hard budget"):
        counsel.explain(problem, counsel.solve(problem), step=0, state=0, pieces_left=1)


def test_a_plan_for_another_problem_is_an_error():
    other = counsel.solve(adapt(examples.advice_repels(0.1)))
    with pytest.raises(counsel.CounselError, match=r"another problem: .* in steps \(1 and 2\)"):
        counsel.explain(road(), other, step=0, state=0)
    read_again = pickle.loads(pickle.dumps(other))
    with pytest.raises(counsel.CounselError, match="the policy is for 1 steps"):
        counsel.explain(road(), read_again, step=0, state=0)


def test_a_plan_for_other_rewards_or_another_discount_is_an_error():
    """Its criticality was that of the other problem, and an average divided by zero."""
    ward = counsel.make("ward")
    paid_twice = counsel.AdviceProblem(ward.mdp.paying(2.0 * ward.mdp.reward), ward.human)
    for problem, other, word in [
        (ward, paid_twice, "rewards"),
        (ward.without_end(0.9), ward.without_end(0.8), "discount"),
        (ward.without_end(average=True), ward.without_end(0.8), "average"),
    ]:
        step = None if problem.mdp.discount else 0
        with pytest.raises(counsel.CounselError, match=f"another problem: .* differ in {word}"):
            counsel.explain(problem, counsel.solve(other), step=step, state=0)
        again = pickle.loads(pickle.dumps(problem))
        why = counsel.explain(again, counsel.solve(problem), step=step, state=0)
        assert str(why) == str(counsel.explain(problem, counsel.solve(problem), step=step, state=0))


def test_work_without_end_has_no_step():
    problem = counsel.make("ward").without_end(0.9)
    with pytest.raises(counsel.CounselError, match="step is 0, but in work without end every step"):
        counsel.explain(problem, counsel.solve(problem), step=0, state=0)


@pytest.mark.parametrize("end", [{}, {"discount": 0.9}])
def test_a_label_that_begins_with_in_is_not_told_twice(end):
    world = {"discount": 0.9} if end else {"horizon": 1}
    mdp = counsel.MDP([[0, 0]], reward=[[0.0, 1.0]], state_labels=["in repair"], **world)
    problem = counsel.AdviceProblem(mdp, counsel.Human([[1.0, 0.0]], adherence=1.0))
    step = None if end else 0
    why = counsel.explain(problem, counsel.solve(problem), step=step, state=0)
    assert why.place == ("In repair" if end else "At step 0 in repair")


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ([0.0, 1.0, 0.0], "alone the person always takes action 1"),
        ([0.2, 0.6, 0.2], "alone the person most often takes action 1 (60%)"),
        ([0.5, 0.5, 0.0], "alone the person most often takes action 0 or action 1 (50% each)"),
        ([1 / 3, 1 / 3, 1 / 3], "alone the person takes any action"),
    ],
)
def test_the_sentence_says_what_the_person_does_alone(own, words):
    mdp = counsel.MDP(np.full((1, 3, 1), 1.0), np.array([[0.0, 1.0, 2.0]]), horizon=1)
    problem = counsel.AdviceProblem(mdp, counsel.Human(np.array([own]), lift=0.5))
    told = counsel.explain(problem, counsel.solve(problem), step=0, state=0)
    assert words in told.sentence
    assert ("each" in told.sentence) == (" each" in words)


def test_advice_that_must_be_said_and_harms_is_not_called_reverse():
    # It attracts to a worse action; reverse advice repels from one.
    mdp = counsel.MDP(np.full((1, 2, 1), 1.0), np.array([[0.0, 1.0]]), horizon=1)
    problem = counsel.AdviceProblem(mdp, counsel.Human(np.array([[0.2, 0.8]]), lift=0.5))
    plan = counsel.solve(problem, forbidden=np.array([[[False, True]]]), required=np.array([True]))
    told = counsel.explain(problem, plan, step=0, state=0)
    assert (told.advice, told.must, told.reverse) == (0, True, False)
    assert told.gain == pytest.approx(-0.4)
    assert told.lift > 0.0 > told.advantage
