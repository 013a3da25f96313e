"""Toy-text environments as advice problems: every transition, plain value iteration, bad input."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.toy_text import FrozenLakeEnv
from gymnasium.wrappers import TimeLimit

import counsel
from counsel import CounselError
from counsel.worlds import Boltzmann, Uniform, from_gymnasium
from tests.support.each import each

TAXI = max(
    (spec for spec in gymnasium.registry.values() if spec.id.startswith("Taxi-v")),
    key=lambda spec: spec.version,
).id

WORLDS = {
    "Taxi": (TAXI, {}, 12),
    "rainy Taxi": (TAXI, {"is_rainy": True}, 8),
    "FrozenLake": ("FrozenLake-v1", {}, 40),
    "dry FrozenLake": ("FrozenLake-v1", {"is_slippery": False}, 10),
    "large FrozenLake": ("FrozenLake-v1", {"map_name": "8x8"}, 20),
    "CliffWalking": ("CliffWalking-v1", {}, 20),
    "slippery CliffWalking": ("CliffWalking-v1", {"is_slippery": True}, 20),
}


def anybody(mdp):
    return counsel.Human(Uniform()(mdp), 0.5)


def listens(mdp):
    return counsel.Human(Uniform()(mdp), 1.0)


@pytest.fixture(params=WORLDS)
def world(request):
    """The id, its options, a horizon, and the bare environment."""
    name, options, horizon = WORLDS[request.param]
    env = gymnasium.make(name, **options)
    yield name, options, horizon, env.unwrapped
    env.close()


def exact(P, s, a):
    """Return where a pair leads, with the end as one state more, and what it pays."""
    chances, reward = {}, 0.0
    for p, t, r, done in P[s][a]:
        if p > 0.0:
            target = len(P) if done else t
            chances[target] = chances.get(target, 0.0) + p
        reward += p * r
    return chances, reward


def plain_values(P, horizon):
    """Return V [h, s] of someone who does what is best, by value iteration as in any textbook."""
    V = [[0.0] * len(P) for _ in range(horizon + 1)]
    for h in reversed(range(horizon)):
        for s in P:
            V[h][s] = max(
                sum(p * (r + (0.0 if done else V[h + 1][t])) for p, t, r, done in P[s][a])
                for a in P[s]
            )
    return np.array(V)


# ------------------------------------------------------------------------------ what is in them


def test_every_transition_is_that_of_the_environment(world):
    name, options, horizon, env = world
    problem = from_gymnasium(name, horizon=horizon, human=anybody, **options)
    S, A = len(env.P), len(env.P[0])
    assert (problem.horizon, problem.n_states, problem.n_actions) == (horizon, S + 1, A)
    assert problem.mdp.allowed.all()
    assert problem.mdp.start.tolist() == [*env.initial_state_distrib, 0.0]
    for s in range(S):
        for a in range(A):
            states, chances = problem.mdp.kernel.successors(0, s, a)
            wanted, reward = exact(env.P, s, a)
            got = dict(zip(states.tolist(), chances.tolist(), strict=True))
            # Three thirds summed in another order differ by a rounding or two.
            assert got == pytest.approx(wanted, abs=1e-15)
            assert problem.mdp.reward[0, s, a] == pytest.approx(reward, abs=1e-13)
    for a in range(A):
        states, chances = problem.mdp.kernel.successors(0, S, a)
        assert (states.tolist(), chances.tolist()) == ([S], [1.0])
        assert problem.mdp.reward[0, S, a] == 0.0
    assert problem.mdp.over[0, S]


def test_whoever_always_listens_reaches_plain_value_iteration(world):
    name, options, horizon, env = world
    problem = from_gymnasium(name, horizon=horizon, human=listens, **options)
    plan, V_hs = counsel.solve(problem), plain_values(env.P, horizon)
    # At most 40 steps of sums of a hundred: far below 1e-9 in rounding.
    np.testing.assert_allclose(plan.values[:, :-1], V_hs, rtol=0, atol=1e-9)
    assert plan.values[:, -1].tolist() == [0.0] * (horizon + 1)
    assert plan.value == pytest.approx(env.initial_state_distrib @ V_hs[0], abs=1e-9)


def test_options_go_to_the_environment():
    dry = from_gymnasium("FrozenLake-v1", horizon=6, human=listens, is_slippery=False)
    wet = from_gymnasium("FrozenLake-v1", horizon=6, human=listens)
    # Six steps reach the goal on dry ice, never to miss; on slippery ice they may not.
    assert counsel.solve(dry).value == 1.0
    assert 0.0 < counsel.solve(wet).value < 0.1
    large = from_gymnasium("FrozenLake-v1", horizon=6, human=anybody, map_name="8x8")
    assert large.n_states == 65


def test_the_newest_installed_version_is_found_by_name_alone():
    by_name = from_gymnasium("Taxi", horizon=5, human=anybody)
    by_id = from_gymnasium(TAXI, horizon=5, human=anybody)
    assert by_name.n_states == 501
    np.testing.assert_array_equal(by_name.mdp.reward, by_id.mdp.reward)
    assert from_gymnasium("CliffWalking", horizon=5, human=anybody).n_states == 49
    assert from_gymnasium("FrozenLake", horizon=5, human=anybody).n_states == 17
    assert from_gymnasium("FrozenLake8x8", horizon=5, human=anybody).n_states == 65


class Coin(gymnasium.Env):
    """Heads again and again pays 1 each; tails ends it. ``pay`` tells versions apart."""

    observation_space = spaces.Discrete(1)
    action_space = spaces.Discrete(2)

    def __init__(self, pay=1.0):
        self.P = {0: {a: [(0.5, 0, pay, False), (0.5, 0, 0.0, True)] for a in range(2)}}
        self.initial_state_distrib = np.ones(1)
        self.closed = False

    def close(self):
        self.closed = True


@pytest.fixture
def registered():
    """Register environments for one test."""
    names = []

    def register(name, **kwargs):
        gymnasium.register(name, entry_point=lambda **options: Coin(**{**kwargs, **options}))
        names.append(name)

    yield register
    for name in names:
        del gymnasium.registry[name]


def test_the_tenth_version_is_newer_than_the_ninth(registered):
    for version in (2, 9, 10, 1):
        registered(f"tests/Coin-v{version}", pay=float(version))
    problem = from_gymnasium("tests/Coin", horizon=1, human=anybody)
    assert problem.mdp.reward[0, 0].tolist() == [5.0, 5.0]
    with pytest.warns(DeprecationWarning, match="out of date"):  # Gymnasium's own
        problem = from_gymnasium("tests/Coin-v2", horizon=1, human=anybody)
    assert problem.mdp.reward[0, 0].tolist() == [1.0, 1.0]
    with pytest.raises(CounselError, match="'tests/Coin-v3'; 'tests/Coin-v10' is installed"):
        from_gymnasium("tests/Coin-v3", horizon=1, human=anybody)


def test_a_name_may_hold_what_looks_like_a_version(registered):
    registered("tests/Coin-vending-v1")
    registered("tests/Coin-vending-v2", pay=8.0)
    problem = from_gymnasium("tests/Coin-vending", horizon=1, human=anybody)
    assert problem.mdp.reward[0, 0].tolist() == [4.0, 4.0]


def test_a_name_without_any_version_is_an_id_too(registered):
    registered("tests/Coin")
    assert from_gymnasium("tests/Coin", horizon=3, human=anybody).n_states == 2


def test_an_environment_itself_will_do_wrapped_or_not_and_stays_open():
    by_id = from_gymnasium("FrozenLake-v1", horizon=5, human=anybody, is_slippery=False)
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    for given in (env, env.unwrapped, TimeLimit(env, 3)):
        problem = from_gymnasium(given, horizon=5, human=anybody)
        np.testing.assert_array_equal(problem.mdp.reward, by_id.mdp.reward)
        assert (problem.mdp.kernel.to_sparse() != by_id.mdp.kernel.to_sparse()).nnz == 0
    assert env.reset(seed=0)[0] == 0
    assert env.step(1)[0] == 4
    mine = Coin()  # never registered
    coin = from_gymnasium(mine, horizon=4, human=anybody)
    assert not mine.closed
    assert counsel.solve(coin).value == pytest.approx(0.5 + 0.25 + 0.125 + 0.0625)


# ------------------------------------------------------------------------------------- people


def test_a_function_is_given_the_world():
    got = []

    def human(mdp):
        got.append(mdp)
        return counsel.Human(Boltzmann(temperature=0.5)(mdp), lift=0.25)

    problem = from_gymnasium("FrozenLake-v1", horizon=7, human=human)
    (mdp,) = got
    assert isinstance(mdp, counsel.MDP)
    assert problem.mdp is mdp
    assert (mdp.n_states, mdp.n_actions, mdp.horizon) == (17, 4, 7)
    np.testing.assert_array_equal(problem.policy, Boltzmann(temperature=0.5)(mdp))
    assert problem.human.shares_lift


def random_person(rng, shape, **given):
    return counsel.Human(rng.dirichlet(np.ones(shape[-1]), size=shape[:-1]), **given)


RNG = np.random.default_rng(6)
THETA, GROUPS = RNG.uniform(size=4), np.arange(16 * 4).reshape(16, 4)
PEOPLE = {
    "adherence": random_person(RNG, (16, 4), adherence=0.4),
    "adherence [a]": random_person(RNG, (16, 4), adherence=THETA),
    "adherence [s, a]": random_person(RNG, (16, 4), adherence=RNG.uniform(size=(16, 4))),
    "adherence [h, s, a]": random_person(RNG, (16, 4), adherence=RNG.uniform(size=(5, 16, 4))),
    "policy [h, s, a]": random_person(RNG, (5, 16, 4), adherence=RNG.uniform(size=(16, 4))),
    "all [h, s, a]": random_person(RNG, (5, 16, 4), adherence=RNG.uniform(size=(5, 16, 4))),
    "lift": random_person(RNG, (16, 4), lift=0.3),
    "lift [s, a]": random_person(RNG, (16, 4), lift=RNG.uniform(size=(16, 4))),
    "groups [a]": random_person(RNG, (16, 4), adherence=THETA, groups=[0, 1, 2, 3]),
    "groups [s, a]": random_person(RNG, (16, 4), adherence=0.5, groups=GROUPS // 7),
    "groups, adherence [s, a]": random_person(
        RNG, (16, 4), adherence=RNG.uniform(size=(16, 1)).repeat(4, axis=1), groups=GROUPS // 4
    ),
    "groups [h, s, a]": random_person(
        RNG, (16, 4), adherence=0.5, groups=np.arange(5 * 16 * 4).reshape(5, 16, 4) // 9
    ),
    # Almost always right, and the worse for being told so: θ = 0.85 − 0.15 there.
    "lift below zero": counsel.Human(
        np.tile([0.85, 0.05, 0.05, 0.05], (16, 1)), lift=[-1, 0, 0, 0]
    ),
    "lift below zero [s, a]": counsel.Human(
        np.tile([0.85, 0.05, 0.05, 0.05], (16, 1)), lift=np.tile([-1.0, 0.0, 0.0, 0.0], (16, 1))
    ),
}


@pytest.mark.parametrize("name", PEOPLE)
def test_a_person_for_the_states_of_the_environment_is_given_the_end(name):
    person = PEOPLE[name]
    problem = from_gymnasium("FrozenLake-v1", horizon=5, human=person)
    human = problem.human
    assert human.n_states == 17
    np.testing.assert_array_equal(human.policy[:, :16], person.policy)
    np.testing.assert_allclose(human.adherence[:, :16], person.adherence, rtol=0, atol=1e-15)
    np.testing.assert_allclose(human.lift[:, :16], person.lift, rtol=0, atol=1e-15)
    assert human.policy[:, 16].sum(axis=-1) == pytest.approx(1.0)
    assert human.shares_lift == person.shares_lift
    assert (human.input_groups is None) == (person.input_groups is None)
    if person.input_groups is not None:
        np.testing.assert_array_equal(human.groups[:, :16], person.groups)
    # The end pays nothing whatever is said there.
    assert counsel.solve(problem).values[:, 16].tolist() == [0.0] * 6


def test_a_person_who_has_the_end_already_stays_as_they_are():
    person = random_person(np.random.default_rng(0), (17, 4), adherence=0.5)
    assert from_gymnasium("FrozenLake-v1", horizon=5, human=person).human is person


def test_a_function_may_leave_the_end_out_too():
    problem = from_gymnasium("FrozenLake-v1", horizon=5, human=lambda mdp: PEOPLE["adherence"])
    np.testing.assert_array_equal(problem.human.policy[:, :16], PEOPLE["adherence"].policy)


def test_more_listening_is_worth_more_from_none_to_all():
    def value(lift):
        return counsel.solve(
            from_gymnasium(
                "FrozenLake-v1",
                horizon=30,
                human=lambda mdp: counsel.Human(Uniform()(mdp), lift=lift),
            )
        ).value

    values = [value(lift) for lift in (0.0, 0.25, 0.5, 0.75, 1.0)]
    assert all(np.diff(values) > 0.01)


# ------------------------------------------------------------------------------------ bad input


def refused(env, *, horizon=5, human=anybody, **options):
    """Return why; one sentence without a line break."""
    with pytest.raises(CounselError) as caught:
        from_gymnasium(env, horizon=horizon, human=human, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_world_without_a_table_is_sent_to_the_wrapper():
    for env in ("Blackjack-v1", "Blackjack", gymnasium.make("Blackjack-v1"), "CartPole-v1"):
        told = refused(env)
        assert "AdviceWrapper" in told
        assert "Blackjack-v1" in told or "CartPole-v1" in told


def test_a_world_that_does_not_say_where_it_starts_is_refused():
    coin = Coin()
    del coin.initial_state_distrib
    assert "start distribution" in refused(coin)


@pytest.mark.parametrize("name", ["NoSuchWorld", "NoSuchWorld-v1", "taxi", "", "-v1", "Tax"])
def test_an_unknown_id_is_refused(name):
    assert repr(name) in refused(name)


@pytest.mark.parametrize("name", ["Taxi-v99", "Taxi-v0", "Taxi-vnew"])
def test_a_version_that_is_not_installed_is_refused_with_one_that_is(name):
    told = refused(name)
    assert repr(name) in told
    assert TAXI in told


def test_options_with_an_environment_are_refused():
    told = refused(gymnasium.make("FrozenLake-v1"), is_slippery=False)
    assert "options" in told
    assert "is_slippery" in told


@pytest.mark.parametrize("env", [3, None, FrozenLakeEnv, ["Taxi"]])
def test_what_is_no_environment_is_refused(env):
    assert refused(env).startswith("env is")


@pytest.mark.parametrize("human", ["safe", 0.5, None, [[0.25] * 4] * 16, np.full((16, 4), 0.25)])
def test_what_is_no_person_is_refused(human):
    assert refused("FrozenLake-v1", human=human).startswith("human is")


def test_a_function_that_returns_no_person_is_refused():
    assert "Human" in refused("FrozenLake-v1", human=lambda mdp: 0.5)
    assert "Human" in refused("FrozenLake-v1", human=Uniform())  # a policy without an adherence


@each("states", [1, 15, 18])
def test_a_person_for_another_world_is_refused(states):
    person = counsel.Human(np.full((states, 4), 0.25), 0.5)
    told = refused("FrozenLake-v1", human=person)
    assert f"{states} states" in told
    assert "17" in told


@pytest.mark.parametrize("horizon", [0, -1, 2.5, "ten", None])
def test_a_horizon_that_is_none_is_refused(horizon):
    assert "horizon" in refused("FrozenLake-v1", horizon=horizon)


def test_a_taxi_whose_table_is_not_all_there_is_is_refused():
    # A fickle passenger changes their mind in ``step``; the table does not know of it, so a plan
    # made from the table would be for another world.
    fickle, plain = (gymnasium.make(TAXI, fickle_passenger=f).unwrapped for f in (True, False))
    assert fickle.P == plain.P
    assert "fickle" in refused(TAXI, fickle_passenger=True)


def test_an_id_may_name_its_module():
    human = counsel.Human(np.full((16, 4), 0.25), 0.5)
    problem = from_gymnasium("gymnasium:FrozenLake-v1", horizon=5, human=human)
    assert problem.n_states == 17


def test_the_range_of_rewards_is_that_of_the_table_not_of_the_means():
    # On slippery ice the goal is reached one time in three: the mean is 1/3, what is paid is 1.
    problem = from_gymnasium("FrozenLake", horizon=8, human=anybody)
    assert problem.mdp.reward.max() == pytest.approx(1 / 3)
    assert problem.shape.reward_range == (0.0, 1.0)
    assert from_gymnasium("CliffWalking", horizon=8, human=anybody).reward_range == (-100.0, 0.0)
