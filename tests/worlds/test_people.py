"""People: uniform, noisy and soft-optimal, against a slow version, by hand and at their limits."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

import counsel
from counsel import MDP, CounselError
from counsel.worlds import Boltzmann, Noisy, Uniform, make, make_car_driving, make_flappy_bird
from counsel.worlds.flappy_bird import greedy
from counsel.worlds.grid_map import GridMap
from tests.support.each import each, each_seed
from tests.support.oracles import random_problem
from tests.support.problems import adapt, draw
from tests.support.strategies import problems

SEEDS = range(30)
TEMPERATURES = [0.01, 0.3, 1.0, 20.0]
"""On rewards of about 1: nearly optimal, in between, and nearly uniform."""


def one_sentence(fault):
    """Hold an error to one line that says something."""
    text = str(fault.value)
    assert 10 < len(text) < 300
    assert "\n" not in text
    return text


def slow_uniform(allowed_hsa):
    """The uniform policy, cell by cell."""
    policy = np.zeros(allowed_hsa.shape)
    for h, s in np.ndindex(allowed_hsa.shape[:2]):
        actions = np.flatnonzero(allowed_hsa[h, s])
        for a in actions:
            policy[h, s, a] = 1 / len(actions)
    return policy


def slow_boltzmann(dense, temperature):
    """Soft values [h, s] and the policy [h, s, a] of the docstring, cell by cell with logsumexp."""
    H, S, A = dense.r_hsa.shape
    V, policy = np.zeros((H + 1, S)), np.zeros((H, S, A))
    for h in reversed(range(H)):
        for s in range(S):
            actions = np.flatnonzero(dense.allowed_hsa[h, s])
            Q = dense.r_hsa[h, s, actions] + dense.P_hsat[h, s, actions] @ V[h + 1]
            V[h, s] = temperature * logsumexp(Q / temperature)
            policy[h, s, actions] = np.exp(Q / temperature - logsumexp(Q / temperature))
    return V[:-1], policy


def soft_value(dense, policy_hsa, temperature):
    """What a policy earns plus τ times the entropy of its actions [h, s], from each step on."""
    H, S, _ = dense.r_hsa.shape
    V = np.zeros((H + 1, S))
    for h in reversed(range(H)):
        for s in range(S):
            for a in np.flatnonzero(policy_hsa[h, s]):
                p = policy_hsa[h, s, a]
                after = dense.P_hsat[h, s, a] @ V[h + 1]
                V[h, s] += p * (dense.r_hsa[h, s, a] + after - temperature * np.log(p))
    return V[:-1]


def chance_policy(rng, allowed_hsa):
    """A random policy [h, s, a] over what is allowed, certain in some cells."""
    weight = rng.dirichlet(np.ones(allowed_hsa.shape[-1]), size=allowed_hsa.shape[:2])
    weight = np.where(rng.random((*weight.shape[:2], 1)) < 0.3, weight**50, weight) * allowed_hsa
    weight += 1e-300 * allowed_hsa
    return weight / weight.sum(axis=-1, keepdims=True)


def two_steps(reward_sa, next_sa, allowed_sa=None):
    """A small world of certain moves, for two steps."""
    return MDP(np.array(next_sa), np.array(reward_sa, float), horizon=2, allowed=allowed_sa)


# ----------------------------------------------------------------------------------- uniform


@each_seed(SEEDS)
def test_uniform_shares_equally_among_what_is_allowed_at_each_step(seed):
    dense = draw(seed)
    policy = Uniform()(adapt(dense).mdp)
    expected = slow_uniform(dense.allowed_hsa)
    np.testing.assert_array_equal(np.broadcast_to(policy, expected.shape), expected)


def test_uniform_is_one_table_unless_what_is_allowed_changes_with_the_step():
    next_sa = np.array([[0, 1, 1], [1, 1, 0]])
    reward = np.zeros((2, 3))
    free = MDP(next_sa, reward, horizon=2)
    np.testing.assert_array_equal(Uniform()(free), np.full((2, 3), 1 / 3))
    mask = [[True, False, True], [False, True, False]]
    masked = MDP(next_sa, reward, horizon=2, allowed=mask)
    np.testing.assert_array_equal(Uniform()(masked), [[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]])
    changing = MDP(next_sa, reward, horizon=2, allowed=[mask, np.ones((2, 3), bool)])
    policy = Uniform()(changing)
    np.testing.assert_array_equal(policy[0], [[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]])
    np.testing.assert_array_equal(policy[1], np.full((2, 3), 1 / 3))


# ------------------------------------------------------------------------------------- noisy


def tables(seed):
    """A random world with masks and tables for it: of one step, of all steps, of a person."""
    rng = np.random.default_rng([seed, 7])
    dense = random_problem(rng, 4, 3, 3, masks=False)
    allowed_hsa = rng.random((3, 4, 3)) < 0.6
    allowed_hsa[:, np.arange(4), rng.integers(3, size=4)] = True  # at all steps, in each state
    mdp = MDP(dense.P_hsat, dense.r_hsa, horizon=3, allowed=allowed_hsa)
    shared = allowed_hsa.all(axis=0)  # what a table without steps may use
    one_table, by_step = chance_policy(rng, shared[None])[0], chance_policy(rng, allowed_hsa)
    return mdp, dense._replace(allowed_hsa=allowed_hsa), one_table, by_step


@each("epsilon", [0, 0.0, 0.3, 1.0, 1])
@each_seed(range(5))
def test_noisy_mixes_any_table_with_uniform_entry_by_entry(seed, epsilon):
    mdp, dense, one_table, by_step = tables(seed)
    uniform = slow_uniform(dense.allowed_hsa)
    for table in (one_table, one_table.tolist(), by_step, by_step.tolist()):
        policy = np.broadcast_to(Noisy(table, epsilon)(mdp), uniform.shape)
        own = np.broadcast_to(table, uniform.shape)
        for h, s, a in np.ndindex(uniform.shape):
            wanted = own[h, s, a] * (1 - epsilon) + uniform[h, s, a] * epsilon
            # Two products and a sum of probabilities: a few units in the last place of 1.
            assert policy[h, s, a] == pytest.approx(wanted, abs=1e-15)
        assert (policy[~dense.allowed_hsa] == 0.0).all()
        counsel.AdviceProblem(mdp, counsel.Human(policy, 0.5))  # it is a policy of this world


@each_seed(range(5))
def test_no_noise_is_the_person_and_all_noise_is_uniform(seed):
    mdp, dense, one_table, by_step = tables(seed)
    for person in (one_table, by_step, Uniform(), Boltzmann(0.5), lambda _, own=one_table: own):
        alone = person(mdp) if callable(person) else person
        shape = dense.allowed_hsa.shape
        np.testing.assert_array_equal(
            np.broadcast_to(Noisy(person, 0.0)(mdp), shape), np.broadcast_to(alone, shape)
        )
        np.testing.assert_array_equal(
            np.broadcast_to(Noisy(person, 1.0)(mdp), shape), slow_uniform(dense.allowed_hsa)
        )


def test_noise_of_noise_is_noise():
    # Left alone by both with probability 0.7 × 0.6.
    mdp, _, table, _ = tables(0)
    twice, once = Noisy(Noisy(table, 0.4), 0.3)(mdp), Noisy(table, 1 - 0.7 * 0.6)(mdp)
    np.testing.assert_allclose(twice, once, atol=1e-15)


def test_noisy_leaves_the_table_it_was_given_as_it_was():
    mdp, _, table, _ = tables(1)
    before = table.copy()
    Noisy(table, 0.3)(mdp)[:] = -1.0
    np.testing.assert_array_equal(table, before)
    assert table.flags.writeable


@pytest.mark.parametrize("wrong", [-0.1, 1.0001, 2, np.nan, np.inf, -np.inf, "0.3", None, True])
def test_noise_that_is_no_share_is_refused_in_one_sentence(wrong):
    with pytest.raises(CounselError) as fault:
        Noisy(np.eye(3), wrong)
    assert one_sentence(fault).startswith("epsilon")


@pytest.mark.parametrize(
    "table",
    [
        np.full((5, 3), 1 / 3),  # another number of states
        np.full((4, 2), 1 / 2),  # another number of actions
        np.full((2, 4, 3), 1 / 3),  # another horizon
        np.full((1, 3), 1 / 3),  # one state would be spread over all
        np.full(3, 1 / 3),
        [[1.0], [0.5, 0.5]],
        "greedy",
    ],
    ids=["states", "actions", "steps", "one state", "one row", "ragged", "a name"],
)
def test_noise_of_a_table_of_another_world_is_refused(table):
    mdp = MDP(np.zeros((4, 3), int), np.zeros((4, 3)), horizon=3)
    with pytest.raises(CounselError) as fault:
        counsel.AdviceProblem(mdp, counsel.Human(Noisy(table, 0.3)(mdp), 0.5))
    one_sentence(fault)


@pytest.mark.parametrize("number", [Fraction(3, 10), np.float32(0.3), np.float64(0.3)])
def test_any_kind_of_real_number_will_do(number):
    dense = draw(2)
    mdp = adapt(dense).mdp
    # A float32 holds seven digits.
    np.testing.assert_allclose(
        np.broadcast_to(Noisy(Uniform(), number)(mdp), dense.r_hsa.shape),
        slow_uniform(dense.allowed_hsa),
        atol=1e-7,
    )
    np.testing.assert_allclose(Boltzmann(number)(mdp), slow_boltzmann(dense, 0.3)[1], atol=1e-6)


# --------------------------------------------------------------------------------- Boltzmann


@each("temperature", TEMPERATURES)
@each_seed(SEEDS)
def test_boltzmann_is_the_slow_version(seed, temperature):
    dense = draw(seed)
    policy = Boltzmann(temperature)(adapt(dense).mdp)
    # Errors of 1e-16 in Q are divided by τ ≥ 0.01 and add up over at most four steps.
    np.testing.assert_allclose(policy, slow_boltzmann(dense, temperature)[1], atol=1e-12)
    np.testing.assert_allclose(policy.sum(axis=-1), 1.0, atol=1e-14)
    assert (policy[~dense.allowed_hsa] == 0.0).all()


@each("temperature", TEMPERATURES)
@each_seed(SEEDS)
def test_boltzmann_earns_its_soft_value(seed, temperature):
    # V_h = τ log Σ exp(Q/τ) is the reward plus τ times the entropy, both counted forward.
    dense = draw(seed)
    policy = Boltzmann(temperature)(adapt(dense).mdp)
    np.testing.assert_allclose(
        soft_value(dense, policy, temperature), slow_boltzmann(dense, temperature)[0], atol=1e-10
    )


@given(problems(), st.integers(0, 2**32 - 1), st.floats(0.01, 100.0))
def test_no_policy_has_more_reward_and_entropy(dense, seed, temperature):
    own = Boltzmann(temperature)(adapt(dense).mdp)
    best = soft_value(dense, own, temperature)
    rng = np.random.default_rng(seed)
    rounding = 1e-12 * (10.0 + temperature)
    for _ in range(5):
        chance = chance_policy(rng, dense.allowed_hsa)
        # Far away, close by (where only the second order is left), and mixed by step.
        nearby = 0.99 * own + 0.01 * chance
        switched = np.where(rng.random((len(own), 1, 1)) < 0.5, own, chance)
        for other in (chance, nearby, switched):
            assert (soft_value(dense, other, temperature) <= best + rounding).all()


@each_seed(SEEDS)
def test_a_cold_person_does_what_the_best_advice_would_have_them_do(seed):
    # Someone who always listens earns the optimum of the world, so advice is the oracle. Rewards
    # are continuous: the gap between the best and the next action is far above τ = 1e-9.
    rng = np.random.default_rng([seed, 3])
    H, S, A = 4, 4, 3
    dense = random_problem(rng, S, A, H, masks=seed % 2 == 1)._replace(
        r_hsa=rng.normal(size=(H, S, A)), theta_hsa=np.ones((H, S, A))
    )
    mdp = adapt(dense).mdp
    policy = Boltzmann(1e-9)(mdp)
    listener = counsel.AdviceProblem(mdp, counsel.Human(Uniform()(mdp), 1.0))
    plan = counsel.solve(listener)
    advised = plan.policy.advice
    only = dense.allowed_hsa.sum(axis=-1) == 1  # there nothing needs to be said
    np.testing.assert_array_equal(policy.argmax(axis=-1)[~only], advised[~only])
    np.testing.assert_allclose(policy.max(axis=-1), 1.0, atol=1e-12)
    alone = counsel.AdviceProblem(mdp, counsel.Human(policy, 1.0))
    never = counsel.Policy.never(horizon=H, n_states=S, n_actions=A)
    assert counsel.evaluate(alone, never).value == pytest.approx(plan.value, abs=1e-12)


@each("temperature", [1e-300, 1e-12, 1e-6])
def test_a_cold_person_shares_ties_equally(temperature):
    next_sa = [[0, 0, 0, 0], [1, 1, 1, 1]]
    mdp = two_steps([[1, 3, 3, 0], [2, 2, 2, 2]], next_sa)
    for h in range(2):
        np.testing.assert_allclose(
            Boltzmann(temperature)(mdp)[h], [[0, 0.5, 0.5, 0], [0.25] * 4], atol=1e-12
        )


@each("temperature", [1e-6, 1e-3])
def test_a_cold_person_ties_by_how_many_best_ways_are_left(temperature):
    # Reward is 0 everywhere at state 1, and at state 2 but for one action. From state 0 the best
    # ways are 0-1-a, 0-1-b, 0-2-a: each as likely as the others, as V keeps τ log of their number.
    mdp = two_steps([[0, 0], [0, 0], [0, -1]], [[1, 2], [1, 1], [2, 2]])
    policy = Boltzmann(temperature)(mdp)
    np.testing.assert_allclose(policy[0, 0], [2 / 3, 1 / 3], atol=1e-9)
    np.testing.assert_allclose(policy[1, 1], [0.5, 0.5], atol=1e-9)
    np.testing.assert_allclose(policy[1, 2], [1.0, 0.0], atol=1e-9)


@each("temperature", [1e7, 1e12, 1e100, 1e300])
@each("seed", range(0, 30, 2))  # the seeds without masks
def test_a_hot_person_is_uniform(seed, temperature):
    dense = draw(seed)
    assert dense.allowed_hsa.all()
    policy = Boltzmann(temperature)(adapt(dense).mdp)
    # Values of four steps differ by less than 100, and exp(±100 / τ) from 1 by 2e-5 at most.
    np.testing.assert_allclose(policy, 1 / policy.shape[-1], atol=2e-5)


def test_the_hottest_person_is_uniform():
    mdp = two_steps(np.eye(2, 3), np.zeros((2, 3), int))
    np.testing.assert_allclose(Boltzmann(1.7e308)(mdp), 1 / 3, atol=1e-12)


def test_a_hot_person_under_masks_takes_every_way_alike():
    # Entropy to come counts too. State 1 has one action and state 2 has two, so there are three
    # ways and two of them begin with action 1: uniform over ways, not over actions.
    mask = [[True, True], [True, False], [True, True]]
    mdp = two_steps(np.zeros((3, 2)), [[1, 2], [1, 1], [2, 2]], mask)
    policy = Boltzmann(1e9)(mdp)
    np.testing.assert_allclose(policy[0, 0], [1 / 3, 2 / 3], atol=1e-6)
    np.testing.assert_allclose(policy[1], [[0.5, 0.5], [1.0, 0.0], [0.5, 0.5]], atol=1e-6)


@each(
    ("size", "temperature"),
    [(size, temperature) for size in (1e6, -1e6) for temperature in (1e-300, 1e-9, 1e6, 1e300)]
    + [(1.0, 1e-320), (1e6, 1e-308), (1e300, 1e-9), (1e300, 1.0), (1e300, 1e300)],
)
def test_neither_large_rewards_nor_extreme_temperatures_overflow(size, temperature):
    # Warnings are errors here. No two ways through this world earn the same.
    reward = size * np.array([[0.5, 0.8], [-1.0, 0.17]])
    mdp = MDP(np.array([[0, 1], [1, 0]]), reward, horizon=5)
    policy = Boltzmann(temperature)(mdp)
    assert np.isfinite(policy).all()
    np.testing.assert_allclose(policy.sum(axis=-1), 1.0, atol=1e-14)
    if temperature <= 1e-9:
        Q = np.zeros((2, 2))
        for h in reversed(range(5)):
            Q = reward + Q.max(axis=1)[[[0, 1], [1, 0]]]
            np.testing.assert_array_equal(policy[h], np.eye(2)[Q.argmax(axis=1)])


@each("scale", [1e-6, 1e6])
@each_seed(range(10))
def test_only_rewards_in_units_of_the_temperature_matter(seed, scale):
    dense = draw(seed)
    scaled = adapt(dense._replace(r_hsa=scale * dense.r_hsa)).mdp
    np.testing.assert_allclose(
        Boltzmann(0.5 * scale)(scaled), Boltzmann(0.5)(adapt(dense).mdp), atol=1e-12
    )


@pytest.mark.parametrize("wrong", [0, 0.0, -0.0, -1, np.inf, -np.inf, np.nan, "1", None, True])
def test_a_temperature_that_is_none_is_refused_in_one_sentence(wrong):
    with pytest.raises(CounselError) as fault:
        Boltzmann(wrong)
    assert one_sentence(fault).startswith("temperature")


# -------------------------------------------------------------------------- people in worlds

BIRD = GridMap.parse("..*.\n.#..\n...*\n..*.\n.*..")


def anybody(mdp):
    """Someone of the user's own: always the last action."""
    return np.tile(np.eye(mdp.n_actions)[-1], (mdp.n_states, 1))


PEOPLE = [Uniform(), Noisy(greedy(BIRD), 0.3), Noisy(Uniform(), 0.5), Boltzmann(0.5), anybody]
NAMES = ["uniform", "noisy table", "noisy person", "boltzmann", "own"]


@pytest.mark.parametrize("person", PEOPLE, ids=NAMES)
def test_the_bird_is_flown_by_anyone(person):
    problem = make_flappy_bird(map=BIRD, human=person)
    expected = np.broadcast_to(person(problem.mdp), problem.policy.shape)
    np.testing.assert_array_equal(problem.policy, expected)
    assert counsel.solve(problem).value > 0.0


@pytest.mark.parametrize("person", PEOPLE, ids=NAMES)
def test_a_person_is_an_override_of_a_named_world(person):
    made = make("flappy-bird/greedy", map=BIRD, human=person)
    alike = make_flappy_bird(map=BIRD, human=person)
    np.testing.assert_array_equal(made.policy, alike.policy)


def test_a_table_is_a_person():
    for table in (greedy(BIRD), np.tile(greedy(BIRD), (4, 1, 1))):
        for given_as in (table, table.tolist()):
            direct = make_flappy_bird(map=BIRD, human=given_as)
            made = make("flappy-bird/safe", map=BIRD, human=given_as)
            for problem in (direct, made):
                np.testing.assert_array_equal(
                    problem.policy, np.broadcast_to(table, problem.policy.shape)
                )


def test_a_noisy_greedy_pilot_by_hand():
    problem = make_flappy_bird(map=BIRD, human=Noisy(greedy(BIRD), 0.3))
    # In the start, row 2 of column 0, there is no star ahead within reach: Up, or any of three.
    start = problem.policy[0, BIRD.state(2, 0)]
    assert start.tolist() == pytest.approx([0.8, 0.1, 0.1], abs=1e-15)


def test_a_cold_pilot_flies_as_well_as_the_map_can_be_flown():
    never = counsel.Policy.never(horizon=20, n_states=141, n_actions=3)
    cold = make_flappy_bird(human=Boltzmann(1e-3))
    best = counsel.solve(make_flappy_bird(human=Uniform(), adherence=1.0)).value
    # Stars are whole numbers and τ is a thousandth, so a slip has a chance below exp(-900).
    assert counsel.evaluate(cold, never).value == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("person", [Uniform(), Noisy(Uniform(), 0.2), anybody, Boltzmann(0.5)])
def test_the_car_is_driven_by_anyone(person):
    problem = make_car_driving(human=person, horizon=2)
    np.testing.assert_array_equal(
        problem.policy, np.broadcast_to(person(problem.mdp), problem.policy.shape)
    )


def test_the_car_is_driven_by_a_table_and_by_a_person_with_noise():
    straight = np.tile([0.0, 1.0, 0.0], (59_050, 1))
    for table, problem in [
        (straight, make_car_driving(human=straight, horizon=1)),
        (0.7 * straight + 0.1, make("car-driving/myopic", human=Noisy(straight, 0.3), horizon=1)),
    ]:
        np.testing.assert_allclose(problem.policy[0], table, atol=1e-15)


@pytest.mark.parametrize("build", [make_flappy_bird, make_car_driving])
@pytest.mark.parametrize(
    "human",
    [np.full((2, 3), 1 / 3), lambda _: np.full((2, 3), 1 / 3), lambda _: "left", "bold", None, 0.5],
    ids=["table", "person", "word", "name", "nobody", "number"],
)
def test_a_person_of_another_world_is_refused_in_one_sentence(build, human):
    with pytest.raises(CounselError) as fault:
        build(human=human, horizon=1)
    one_sentence(fault)


def test_a_person_may_be_named_inside_noise():
    from counsel.worlds.flappy_bird import greedy
    from counsel.worlds.grid_map import GridMap

    problem = make_flappy_bird(human=Noisy("greedy", 0.3))
    own = greedy(GridMap.named("three-phases"))
    np.testing.assert_allclose(problem.policy[0], 0.7 * own + 0.1, atol=1e-15)
    for wrong in (Noisy("bold", 0.3), counsel.Human(own, 0.5), None, lambda mdp: None):
        with pytest.raises(CounselError, match="human is"):
            make_flappy_bird(human=wrong)
