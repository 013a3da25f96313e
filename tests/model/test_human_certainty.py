"""People who are certain, or almost: law, lift and the machine's view in exact arithmetic."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

import counsel
from counsel.model.advantage import advantages
from counsel.model.human import NEVER, advised_law, drop_never
from counsel.model.machine import machine_rewards
from tests.support.exact import exact_law

ULP = 2.0**-53
SMALL = (5e-324, 1e-320, 2.2e-308, 1e-307, 1e-300, 1e-200, 1e-100, 1e-17, 1e-16, ULP, 1e-12, 0.5)
HABITS = (
    *([1.0 - p, p] for p in SMALL),
    *([p, 1.0 - p] for p in SMALL),
    *([1.0 - p - q, p, q] for p in SMALL for q in (5e-324, 1e-17)),
    *([0.5, 0.5 - p, p] for p in SMALL[:-1]),
    [1.0],
    [1.0, 0.0],
    [1.0 - ULP, 1e-17],
    [1.0 - ULP, 1e-200],
    [1.0 - ULP, 5e-324, 1e-308],
)
"""Every row sums to 1 within a rounding."""


def thetas(habit):
    """Adherences at the ends, and at the habit and one rounding to either side of it."""
    some = {0.0, 5e-324, 1e-300, 1e-17, ULP, 0.5, 1.0 - ULP, 1.0}
    for p in habit:
        some |= {p, min(1.0, math.nextafter(p, 2.0)), max(0.0, math.nextafter(p, -1.0))}
    return sorted(some)


def people():
    """Yield people given by adherence, and the same people given by lift."""
    for habit in HABITS:
        for theta in thetas(habit):
            human = counsel.Human([habit], theta)
            yield f"habit {habit}, adherence {theta!r}", human
            yield f"habit {habit}, lift of {theta!r}", counsel.Human([habit], lift=human.lift)


def alone(human, reward):
    """The person in a world with one state and one step."""
    mdp = counsel.MDP([[0] * human.n_actions], [reward], horizon=1)
    return counsel.AdviceProblem(mdp, human)


def far(got, exact):
    """The largest difference of two lists."""
    return max(abs(float(Fraction(x) - y)) for x, y in zip(got, exact, strict=True))


def test_the_law_is_equation_one_for_whatever_probabilities_it_is_given():
    # Found by Hypothesis: [1, 5e-324] advised 0 at adherence 0 was [1, 0].
    for habit in HABITS:
        for theta in thetas(habit):
            for advice in range(len(habit)):
                law = advised_law(np.array(habit), advice, theta).tolist()
                exact = exact_law(habit, advice, theta)
                case = f"habit {habit}, adherence {theta!r}, advice {advice}: {law}"
                assert far(law, exact) <= 4 * ULP, case


def test_a_person_who_is_read_obeys_equation_one_by_adherence_and_by_lift():
    # Found here: below 1e-307 law and plan took the person to be certain, while other actions kept
    # a probability.
    for case, human in people():
        problem = alone(human, [0.0] * human.n_actions)
        own = human.policy[0, 0].tolist()
        for advice in range(human.n_actions):
            law = problem.law(0, 0, advice).tolist()
            exact = exact_law(own, advice, problem.adherence[0, 0, advice])
            assert far(law, exact) <= 4 * ULP, f"{case}, advice {advice}: {law}"


def test_the_lift_is_zero_exactly_where_no_other_action_has_any_probability():
    for case, human in people():
        own, theta = human.policy[0, 0].tolist(), human.adherence[0, 0].tolist()
        for a, lift in enumerate(human.lift[0, 0].tolist()):
            rest = sum(Fraction(p) for b, p in enumerate(own) if b != a)
            if rest == 0:
                assert lift == 0.0, f"{case}, action {a}: {lift}"
                continue
            if theta[a] == 1.0 or human.shares_lift:
                continue  # 1 by definition, or as given
            exact = (Fraction(theta[a]) - Fraction(own[a])) / rest
            # θ − π rounds once, at the size of a probability; the quotient rounds again.
            off = abs(Fraction(lift) - min(exact, 1)) / max(1, 1 / rest)
            assert off <= 4 * ULP, f"{case}, action {a}: lift {lift}, exactly {float(exact)}"


def test_what_is_never_done_is_stored_as_zero_and_all_else_as_it_was_given():
    for habit in HABITS:
        stored = counsel.Human([habit], 0.5).policy[0, 0].tolist()
        assert stored == [p if p >= NEVER else 0.0 for p in habit], habit


def test_what_is_never_done_is_dropped_without_touching_what_was_given():
    given = np.array([[1.0, 1e-310]])
    counsel.Human(given, 0.5)
    assert given.tolist() == [[1.0, 1e-310]]
    assert drop_never(given) is given
    assert given.tolist() == [[1.0, 0.0]]


def test_a_person_given_by_lift_and_one_given_by_adherence_are_certain_in_the_same_places():
    # Found by reading: one asked for more than 0, the other for more than 1e-307.
    for p in SMALL:
        by_adherence = counsel.Human([[1.0 - p, p]], 0.5)
        by_lift = counsel.Human([[1.0 - p, p]], lift=[[-0.25, 0.5]])
        certain = by_adherence.policy[0, 0, 1] == 0.0
        assert (by_adherence.lift[0, 0, 0] == 0.0) == (certain or p == 0.5), p
        assert (by_lift.lift[0, 0, 0] == 0.0) == certain, p


def test_the_rewards_of_the_machine_are_exact_for_an_almost_certain_person():
    # Found here: alone + lift · (reward − alone) was off by 1e184 for a habit of [1, 1e-200].
    rewards = ([0.0, 1.0, 0.3], [1e8, -1e8, 3.0], [1e-6, 0.0, 2e-6], [5.0, 5.0 + 1e-6, 4.0])
    for i, (case, human) in enumerate(people()):
        reward = rewards[i // 2 % 4][: human.n_actions]
        own, size = human.policy[0, 0].tolist(), max(map(abs, reward)) or 1.0
        problem = alone(human, reward)
        theta = problem.adherence[0, 0].tolist()
        laws = [exact_law(own, b, theta[b]) for b in range(human.n_actions)]
        laws.append([Fraction(p) for p in own])
        exact = [sum(p * Fraction(r) for p, r in zip(law, reward, strict=True)) for law in laws]
        got = machine_rewards(problem)[0].tolist()
        assert far(got, exact) <= 1e-14 * size, f"{case}, rewards {reward}: {got}"


def test_the_world_of_the_machine_is_exact_for_an_almost_certain_person():
    for i, (case, human) in enumerate(people()):
        if i % 5:
            continue  # a world takes some milliseconds
        A = human.n_actions
        # Action a leads to state a, so that rows show the law itself.
        mdp = counsel.MDP([list(range(A))] * A, [[1.0] * A] * A, horizon=1)
        own, theta = (np.tile(table[0, 0], (A, 1)) for table in (human.policy, human.adherence))
        told = {"lift": np.tile(human.lift[0, 0], (A, 1))} if human.shares_lift else {}
        person = counsel.Human(own, **(told or {"adherence": theta}))
        problem = counsel.AdviceProblem(mdp, person)
        kernel = problem.machine().kernel
        for b in range(A):
            row = np.zeros(A)
            states, chances = kernel.successors(0, 0, b)
            row[states] = chances
            exact = exact_law(own[0].tolist(), b, problem.adherence[0, 0, b])
            assert far(row.tolist(), exact) <= 4 * ULP, f"{case}, advice {b}: {row}"


def test_advantages_keep_their_digits_where_one_action_is_almost_certain():
    values = [0.3, 1.7, -0.4]
    for habit in HABITS:
        own, value = habit, values[: len(habit)]
        exact = [
            sum(Fraction(p) * (Fraction(v) - Fraction(w)) for p, w in zip(own, value, strict=True))
            for v in value
        ]
        got = advantages(np.array(own), np.array(value)).tolist()
        for a in range(len(own)):
            # Relative to the chance of anything else, which the lift divides by.
            rest = sum(p for b, p in enumerate(own) if b != a)
            off = abs(float(Fraction(got[a]) - exact[a]))
            assert off <= 8 * ULP * max(rest, 1e-300), f"habit {habit}, action {a}: {got[a]}"


def test_advantages_ignore_what_is_never_done_even_where_it_leads_nowhere():
    own = np.array([[1.0, 0.0], [0.25, 0.75], [0.0, 1.0]])
    values = np.array([[2.0, -np.inf], [1.0, 3.0], [-np.inf, 4.0]])
    expected = [[0.0, -np.inf], [-1.5, 0.5], [-np.inf, 0.0]]
    np.testing.assert_array_equal(advantages(own, values), expected)


def test_a_person_stays_the_same_through_pickle_and_file(tmp_path):
    for i, (case, human) in enumerate(people()):
        if i % 17:
            continue  # a file takes some milliseconds
        problem = alone(human, [1.0] * human.n_actions)
        counsel.save(problem, tmp_path / "problem.npz")
        for again in (
            pickle.loads(pickle.dumps(human)),
            counsel.load(tmp_path / "problem.npz").human,
        ):
            for name in ("policy", "adherence", "lift", "input_values"):
                one, other = getattr(human, name), getattr(again, name)
                assert one.tobytes() == other.tobytes(), f"{case}: {name}"


@pytest.mark.parametrize("given", ["adherence", "lift"])
def test_what_is_never_done_may_be_an_action_that_is_not_allowed(given):
    mdp = counsel.MDP([[0, 0]], [[0.0, 1.0]], horizon=1, allowed=[[True, False]])
    problem = counsel.AdviceProblem(mdp, counsel.Human([[1.0, 1e-310]], **{given: 0.5}))
    assert problem.law(0, 0, problem.defer).tolist() == [1.0, 0.0]
