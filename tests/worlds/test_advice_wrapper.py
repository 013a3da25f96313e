"""A person in anybody's environment: who acts, with which chance, and what is refused."""

import pickle
import threading
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from hypothesis import given
from hypothesis import strategies as st

import counsel
from counsel import CounselError
from counsel.model.human import advised_law, draw_index
from counsel.worlds import AdviceWrapper, from_gymnasium, make
from tests.support.each import each, each_seed
from tests.support.exact import exact_law
from tests.support.later import Later

stats = Later("scipy.stats")

DEFER = 2  # in CartPole
TAXI = next(name for name in gymnasium.registry if name.startswith("Taxi-v"))


def leans(observation):
    """Push to where the pole falls."""
    return int(observation[2] > 0.0)


def hesitates(observation):
    """Push to where the pole falls, the likelier the more it does."""
    right = 1.0 / (1.0 + np.exp(-20.0 * float(observation[2])))
    return [1.0 - right, right]


def evenly(observation):
    return [0.5, 0.5]


def trusts(observation, advice):
    """Listen more to the right, and less when the cart is far out."""
    return (0.9 if advice else 0.6) - min(abs(float(observation[0])), 0.4)


class Noise(gymnasium.Env):
    """Observations are chance and nothing else, whatever is done."""

    observation_space = spaces.Box(0.0, 1.0, (1,), np.float64)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.random(1), {}

    def step(self, action):
        return self.np_random.random(1), 0.0, False, False, {}


class Counter(gymnasium.Env):
    """Actions are 5, 6 and 7; the reward is the action, the observation how often each was taken.

    ``log`` keeps what it was told to do.
    """

    action_space = spaces.Discrete(3, start=5)
    observation_space = spaces.Dict(
        {"taken": spaces.Box(0, 10**6, (3,), np.int64), "last": spaces.Discrete(4, start=4)}
    )

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.log = []
        return self._seen(), {"note": "hello"}

    def step(self, action):
        assert type(action) is int
        assert action in self.action_space
        self.log.append(action)
        return self._seen(), float(action), False, False, {"note": str(action)}

    def _seen(self):
        taken = np.bincount(self.log, minlength=8)[5:8] if self.log else np.zeros(3, np.int64)
        return {"taken": taken, "last": self.log[-1] if self.log else 4}


def cart():
    return gymnasium.make("CartPole-v1")


def trajectory(env, choose, *, seed=0, steps=200):
    """Play until the end; return observations, rewards, ends and infos."""
    observation, info = env.reset(seed=seed)
    rows = [(observation.tolist(), 0.0, False, False)]
    infos = [info]
    for h in range(steps):
        observation, reward, terminated, truncated, info = env.step(choose(h, observation))
        rows.append((observation.tolist(), reward, terminated, truncated))
        infos.append(info)
        if terminated or truncated:
            break
    return rows, infos


def chosen(seed):
    """Any of two actions by chance, the same for the same step."""
    table = np.random.default_rng(seed).integers(2, size=500)
    return lambda h, observation: int(table[h])


# ---------------------------------------------------------------------------------- who acts


@each_seed(range(5))
def test_whoever_always_listens_does_what_the_bare_environment_would(seed):
    bare, _ = trajectory(cart(), chosen(seed), seed=seed)
    advised, infos = trajectory(AdviceWrapper(cart(), hesitates, 1.0), chosen(seed), seed=seed)
    assert advised == bare
    assert all(info["matched"] for info in infos[1:])


@each_seed(range(5))
def test_whoever_never_listens_does_the_other_of_two_things(seed):
    bare, _ = trajectory(cart(), lambda h, o: 1 - chosen(seed)(h, o), seed=seed)
    advised, infos = trajectory(AdviceWrapper(cart(), hesitates, 0.0), chosen(seed), seed=seed)
    assert advised == bare
    assert not any(info["matched"] for info in infos)


@each_seed(range(5))
def test_whoever_is_left_alone_does_what_they_would(seed):
    bare, _ = trajectory(cart(), lambda h, o: leans(o), seed=seed, steps=500)
    wrapped = AdviceWrapper(cart(), leans, trusts)
    silent, infos = trajectory(wrapped, lambda h, o: DEFER, seed=seed, steps=500)
    assert silent == bare
    assert len(bare) > 20
    assert all(info["deferred"] and not info["matched"] for info in infos[1:])


def test_whoever_is_certain_does_it_also_when_it_is_advised():
    # Adherence 0, but nothing else they would do: advice changes nothing (a deviation on record).
    env = AdviceWrapper(cart(), leans, 0.0)
    _, infos = trajectory(env, lambda h, o: leans(o))
    assert all(info["matched"] for info in infos[1:])
    _, infos = trajectory(env, lambda h, o: 1 - leans(o))
    assert not any(info["matched"] for info in infos)


def test_a_person_may_answer_in_single_precision():
    # Observations of CartPole are float32, and so is what NumPy computes from them: probabilities
    # then sum to 1 within 1e-7, not 1e-9.
    def human(observation):
        right = 1.0 / (1.0 + np.exp(-20.0 * observation[2]))
        assert right.dtype == np.float32
        return [1.0 - right, right]

    env = AdviceWrapper(cart(), human, trusts)
    for seed in range(5):
        rows, _ = trajectory(env, lambda h, o: h % 3, seed=seed)
        assert len(rows) > 5


def test_person_and_adherence_are_asked_about_what_is_seen_now():
    asked, heard = [], []

    def human(observation):
        asked.append(observation.tolist())
        return 0

    def adherence(observation, advice):
        heard.append((observation.tolist(), advice, type(advice)))
        return 1.0

    env = AdviceWrapper(cart(), human, adherence)
    advice = [0, 1, DEFER, 1, 0, DEFER]
    rows, _ = trajectory(env, lambda h, o: np.int64(advice[h]), steps=6)
    seen = [row[0] for row in rows[:-1]]
    assert asked == seen
    assert heard == [
        (here, said, int) for here, said in zip(seen, advice, strict=True) if said != DEFER
    ]


def test_actions_that_do_not_start_at_zero_keep_their_numbers():
    asked = []

    def adherence(observation, advice):
        asked.append((observation["last"], advice))
        return 1.0

    env = AdviceWrapper(Counter(), lambda o: 7, adherence)
    assert env.action_space == spaces.Discrete(4, start=5)
    assert env.defer == 8
    assert env.observation_space == Counter.observation_space
    observation, info = env.reset(seed=0)
    assert (info["advice"], info["action"], info["note"]) == (8, 4, "hello")
    for said, did in ((5, 5), (8, 7), (6, 6), (7, 7), (np.int64(8), 7)):
        observation, reward, _, _, info = env.step(said)
        assert observation in env.observation_space
        assert (reward, info["action"], info["advice"]) == (did, did, said)
        assert (info["matched"], info["deferred"]) == (said == did, said == 8)
        assert info["note"] == str(did)  # what the environment tells stays
    assert env.unwrapped.log == [5, 7, 6, 7, 7]
    assert observation["taken"].tolist() == [1, 1, 3]
    assert asked == [(4, 5), (7, 6), (6, 7)]
    for wrong in (4, 9, 0):
        with pytest.raises(CounselError, match=r"advice is \d; give 5 to 8"):
            env.step(wrong)


def frequencies(env, said, draws, *, seed):
    """Return how often each action was taken when told the same again and again."""
    env.reset(seed=seed)
    actions = [env.step(said)[4]["action"] for _ in range(draws)]
    return np.bincount(np.array(actions) - env.first, minlength=env.n_actions)


@pytest.mark.slow
@pytest.mark.parametrize("by", ["array", "function"])
def test_people_act_by_the_law_whatever_they_are_told(by):
    own, theta = [0.5, 0.2, 0.3], [0.9, 0.05, 0.6]
    given = theta if by == "array" else lambda observation, advice: theta[advice - 5]
    env = AdviceWrapper(Counter(), lambda o: own, given)
    # Equation 1 by hand; the second piece of advice repels: 0.05 < 0.2.
    laws = {
        5: [0.9, 0.1 * 0.2 / 0.5, 0.1 * 0.3 / 0.5],
        6: [0.95 * 0.5 / 0.8, 0.05, 0.95 * 0.3 / 0.8],
        7: [0.4 * 0.5 / 0.7, 0.4 * 0.2 / 0.7, 0.6],
        8: own,
    }
    for said, law in laws.items():
        seen, expected = frequencies(env, said, 4000, seed=said), 4000 * np.array(law)
        assert expected.sum() == pytest.approx(4000)
        assert stats.chi2.sf(((seen - expected) ** 2 / expected).sum(), 2) > 1e-6


# ----------------------------------------------------------------------------- penalty and info


def test_a_penalty_is_taken_for_each_piece_of_advice_and_for_nothing_else():
    advice = [0, 1, DEFER, DEFER, 1, 0]
    free = AdviceWrapper(cart(), hesitates, 0.7)
    dear = AdviceWrapper(cart(), hesitates, 0.7, penalty=0.3)
    one, _ = trajectory(free, lambda h, o: advice[h], steps=6)
    two, _ = trajectory(dear, lambda h, o: advice[h], steps=6)
    assert [row[1] for row in one[1:]] == [1.0] * 6
    assert [row[1] for row in two[1:]] == [0.7, 0.7, 1.0, 1.0, 0.7, 0.7]
    assert [row[0] for row in one] == [row[0] for row in two]


def test_info_has_the_same_keys_and_types_at_reset_and_at_every_step():
    env = AdviceWrapper(cart(), hesitates, 0.7)
    assert env.action_space == spaces.Discrete(3)
    _, infos = trajectory(env, lambda h, o: h % 3, steps=9)
    assert len(infos) == 10
    for info in infos:
        assert {key: type(value) for key, value in info.items()} == {
            "advice": int,
            "action": int,
            "matched": bool,
            "deferred": bool,
            "action_mask": np.ndarray,
        }
        assert info["action_mask"].dtype == np.int8
        assert info["action_mask"].tolist() == [1, 1, 1]
    assert (infos[0]["advice"], infos[0]["action"]) == (DEFER, -1)
    assert (infos[0]["matched"], infos[0]["deferred"]) == (False, False)


def test_the_mask_of_taxi_is_kept_and_defer_is_always_allowed():
    bare = gymnasium.make(TAXI)
    env = AdviceWrapper(gymnasium.make(TAXI), lambda state: 0, 1.0)
    (_, told), (_, info) = bare.reset(seed=3), env.reset(seed=3)
    rng = np.random.default_rng(0)
    masks = set()
    for _ in range(60):
        assert info["action_mask"].tolist() == [*told["action_mask"].tolist(), 1]
        assert info["action_mask"].dtype == np.int8
        assert info["prob"] == told["prob"]  # Taxi's own
        masks.add(tuple(info["action_mask"].tolist()))
        env.action_space.sample(info["action_mask"])
        action = int(rng.choice(np.flatnonzero(told["action_mask"])))
        (state, *_, told), (same, *_, info) = bare.step(action), env.step(action)
        assert state == same
    assert len(masks) > 3


# ------------------------------------------------------------------------------------- chance


def test_one_seed_gives_one_episode_and_seeds_differ():
    env = AdviceWrapper(cart(), hesitates, trusts)

    def game(seed):
        rows, infos = trajectory(env, lambda h, o: h % 3, seed=seed)
        return rows, [(info["advice"], info["action"]) for info in infos]

    games = [game(seed) for seed in range(6)]
    assert [game(seed) for seed in range(6)] == games
    assert len({str(actions) for _, actions in games}) > 1


def test_a_reset_without_a_seed_goes_on_with_the_same_chance():
    env = AdviceWrapper(Counter(), lambda o: [0.3, 0.3, 0.4], 0.5)

    def games():
        taken = []
        for seed in (1, None, None):
            env.reset(seed=seed)
            taken.append([env.step(8)[4]["action"] for _ in range(30)])
        return taken

    first = games()
    assert first == games()
    assert len({str(actions) for actions in first}) == 3


def test_the_worlds_chance_is_the_same_whoever_is_in_it():
    def world(human, adherence, advise):
        rows, _ = trajectory(AdviceWrapper(Noise(), human, adherence), advise, seed=5, steps=50)
        return rows

    bare, _ = trajectory(Noise(), lambda h, o: 0, seed=5, steps=50)
    assert world(evenly, 0.5, lambda h, o: 2) == bare
    assert world(evenly, trusts, lambda h, o: h % 3) == bare
    assert world(lambda o: 1, 0.0, lambda h, o: 1) == bare


def test_the_persons_chance_is_not_the_worlds():
    # What an even-handed person does must tell nothing of what the world draws before or after. By
    # chance a correlation of 1,000 pairs stays below 5 / sqrt(1000) but for one seed in a million.
    env = AdviceWrapper(Noise(), evenly, 0.5)
    seen, done = [], []
    for seed in range(1000):
        rows, infos = trajectory(env, lambda h, o: DEFER, seed=seed, steps=3)
        seen.append([row[0][0] for row in rows])
        done.append([info["action"] for info in infos[1:]])
    between = np.corrcoef(np.array(seen).T, np.array(done).T)[:4, 4:]
    assert np.abs(between).max() < 5 / np.sqrt(1000)


def test_the_environment_takes_gymnasiums_own_checks():
    env = AdviceWrapper(gymnasium.make("FrozenLake-v1"), lambda s: [0.25] * 4, 0.5)
    with warnings.catch_warnings():
        # It is a wrapper, so it is not the bare environment: all other warnings stay errors.
        warnings.filterwarnings("ignore", message=".*is different from the unwrapped version.*")
        check_env(env, skip_render_check=True)


# -------------------------------------------------------------------- against the exact model

EPISODES = 2000


@pytest.fixture(scope="module")
def lake():
    """FrozenLake with a person by tables: as a problem, and as functions."""
    rng = np.random.default_rng(4)
    own = rng.dirichlet(np.ones(4), size=16)
    theta = rng.uniform(0.5, 1.0, size=(16, 4))
    problem = from_gymnasium("FrozenLake-v1", horizon=50, human=counsel.Human(own, theta))
    return problem, own, theta


@pytest.mark.slow
@pytest.mark.parametrize("seeded", ["once", "each episode"])
def test_playing_a_plan_in_the_lake_earns_its_value_and_spends_its_count(lake, seeded):
    problem, own, theta = lake
    policy = counsel.solve(problem, penalty=0.002).policy
    env = AdviceWrapper(gymnasium.make("FrozenLake-v1"), lambda s: own[s], lambda s, b: theta[s, b])
    games = []
    for i in range(EPISODES):
        state, _ = env.reset(seed=i if seeded == "each episode" or i == 0 else None)
        total, pieces = 0.0, 0
        for h in range(problem.horizon):
            said = int(policy.advice[h, state])
            state, reward, terminated, _, _ = env.step(said)
            total, pieces = total + reward, pieces + (said != problem.defer)
            if terminated:
                break
        games.append((total, pieces))
    mean, error = np.mean(games, axis=0), np.std(games, axis=0, ddof=1) / EPISODES**0.5
    worth = counsel.evaluate(problem, policy)
    assert 0.1 < worth.value < 0.9
    assert abs(mean[0] - worth.value) <= 4 * error[0]
    assert abs(mean[1] - worth.advice_count) <= 4 * error[1]


# ------------------------------------------------------------------------------------ bad input


def test_a_space_of_continuous_actions_is_refused():
    with pytest.raises(CounselError, match=r"Box.*Discrete"):
        AdviceWrapper(gymnasium.make("Pendulum-v1"), lambda o: 0, 0.5)


@pytest.mark.parametrize("human", [0, "leans", None, [0.5, 0.5], {0: 1.0}])
def test_a_person_who_cannot_be_asked_is_refused(human):
    with pytest.raises(CounselError, match=r"human is .*function of the observation"):
        AdviceWrapper(cart(), human, 0.5)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (2, "is 2; actions run from 0 to 1"),
        (-1, "is -1; actions run"),
        (0.5, "is 0.5; actions run"),
        (np.nan, "is nan; actions run"),
        (np.inf, "is inf; actions run"),
        ([0.5, 0.6], "sums to 1.1"),
        ([0.0, 0.0], "sums to 0"),
        ([1.5, -0.5], "[a=1] is -0.5"),
        ([np.nan, 1.0], "[a=0] is nan"),
        ([0.5, np.inf], "sums to inf"),
        ([1.0], "has shape (1,)"),
        ([0.2, 0.3, 0.5], "has shape (3,)"),
        ([[0.5, 0.5]], "has shape (1, 2)"),
        ([], "has shape (0,)"),
        ("left", "must be numbers"),
        (None, "must be numbers"),
        ({"left": 1.0}, "must be numbers"),
        ([[1.0], [0.5, 0.5]], "ragged"),
    ],
)
@each("said", [1, DEFER])
def test_a_person_who_answers_nonsense_is_refused(answer, says, said):
    env = AdviceWrapper(cart(), lambda o: answer, 0.5)
    env.reset(seed=0)
    with pytest.raises(CounselError) as caught:
        env.step(said)
    assert str(caught.value).startswith("human(observation)")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "adherence",
    [1.5, -0.1, np.nan, np.inf, [0.5], [0.5] * 3, [[0.5, 0.5]], [0.5, 1.1], "high", None, []],
)
def test_an_adherence_out_of_range_or_shape_is_refused(adherence):
    with pytest.raises(CounselError, match=r"^adherence"):
        AdviceWrapper(cart(), leans, adherence)


@pytest.mark.parametrize("answer", [1.5, -0.1, np.nan, np.inf, [0.5], [0.5, 0.5], "high", None])
def test_an_adherence_function_that_answers_nonsense_is_refused(answer):
    env = AdviceWrapper(cart(), leans, lambda o, b: answer)
    env.reset(seed=0)
    env.step(DEFER)  # nobody asks when nothing is said
    with pytest.raises(CounselError, match=r"^adherence\(observation, advice\)"):
        env.step(1)


@pytest.mark.parametrize("penalty", [-0.1, np.nan, np.inf, "much", None, True])
def test_a_penalty_below_zero_or_no_number_is_refused(penalty):
    with pytest.raises(CounselError, match=r"^penalty"):
        AdviceWrapper(cart(), leans, 0.5, penalty=penalty)


@pytest.mark.parametrize("wrong", [-1, 3, 0.0, "left", None, [0], np.array([1])])
def test_advice_out_of_range_is_refused(wrong):
    env = AdviceWrapper(cart(), leans, 0.5)
    env.reset(seed=0)
    with pytest.raises(CounselError, match=r"advice is .*0 to 2"):
        env.step(wrong)


def test_a_step_before_the_first_reset_is_refused_before_the_person_is_asked():
    # Not with whatever the person's function makes of an observation that does not exist.
    env = AdviceWrapper(cart(), leans, 0.5)
    with pytest.raises((CounselError, gymnasium.error.ResetNeeded), match="reset"):
        env.step(0)


# --------------------------------------------------------------------------- kept and made again


def test_the_spec_makes_the_same_environment_again():
    env = AdviceWrapper(cart(), hesitates, [0.4, 0.8], penalty=0.2)
    (*_, wrapper) = env.spec.additional_wrappers
    assert wrapper.name == "AdviceWrapper"
    again = gymnasium.make(env.spec)
    assert isinstance(again, AdviceWrapper)
    one, _ = trajectory(env, lambda h, o: h % 3, seed=8)
    two, _ = trajectory(again, lambda h, o: h % 3, seed=8)
    assert one == two


def test_an_environment_without_a_spec_has_none_wrapped_either():
    assert AdviceWrapper(Counter(), lambda o: 5, 0.5).spec is None


def test_a_pickled_environment_goes_on_where_it_was():
    env = AdviceWrapper(cart(), hesitates, trusts, penalty=0.1)
    env.reset(seed=2)
    for _ in range(5):
        env.step(1)
    again = pickle.loads(pickle.dumps(env))
    for said in (0, 1, 2, 0, 1, 2):
        (here, reward, *_, info), (there, same, *_, told) = env.step(said), again.step(said)
        assert (here.tolist(), reward, info["action"]) == (there.tolist(), same, told["action"])


def test_many_people_at_once():
    envs = gymnasium.vector.SyncVectorEnv([lambda: AdviceWrapper(cart(), hesitates, 0.7)] * 3)
    alone = [AdviceWrapper(cart(), hesitates, 0.7) for _ in range(3)]
    seeds = [4, 5, 6]
    envs.reset(seed=seeds)
    for env, seed in zip(alone, seeds, strict=True):
        env.reset(seed=seed)
    for said in ([0, 1, 2], [2, 2, 2], [1, 1, 0], [0, 2, 1]):
        seen, rewards, _, _, infos = envs.step(np.array(said))
        for i, env in enumerate(alone):
            observation, reward, _, _, info = env.step(said[i])
            assert (seen[i].tolist(), rewards[i]) == (observation.tolist(), reward)
            assert infos["action"][i] == info["action"]
    envs.close()


# ---------------------------------------------------------------- the law and the draw themselves


@st.composite
def people(draw):
    """A distribution, often with zeros, sometimes certain or all but certain; an advice; θ."""
    n = draw(st.integers(1, 6))
    weights = draw(
        st.lists(
            st.one_of(st.just(0.0), st.floats(0.0, 1.0), st.floats(1e-300, 1e-290)),
            min_size=n,
            max_size=n,
        )
    )
    if sum(weights) == 0.0:
        weights[draw(st.integers(0, n - 1))] = 1.0
    own = np.array(weights) / sum(weights)
    return (
        own,
        draw(st.integers(0, n - 1)),
        draw(st.one_of(st.floats(0.0, 1.0), st.sampled_from([0.0, 1.0]))),
    )


@given(people())
def test_the_law_is_equation_one(person):
    own, advice, theta = person
    before = own.copy()
    law = advised_law(own, advice, theta)
    # A sum of six and three roundings, each within 2^-53 of what it rounds; or below all normals.
    for got, exact in zip(law.tolist(), exact_law(own.tolist(), advice, theta), strict=True):
        assert got == pytest.approx(float(exact), rel=1e-14, abs=1e-300)
    np.testing.assert_array_equal(own, before)


def test_the_law_holds_for_someone_all_but_certain():
    # A soft-optimal person gives exp(-740) to an action that is much worse: a number so small that
    # dividing by it overflows. Such a person is read as certain, here and by ``Human``; the law of
    # what was read is equation 1 without exception.
    own = np.array([1.0, 0.0, np.exp(-740.0)])
    assert own[2] > 0.0
    env = AdviceWrapper(Counter(), lambda o: own, 0.25)
    env.reset(seed=0)
    assert env._law(5).tolist() == [1.0, 0.0, 0.0]
    assert counsel.Human([own], 0.25).policy.tolist() == [[[1.0, 0.0, 0.0]]]
    assert advised_law(own, 0, 0.25).tolist() == [0.25, 0.0, 0.75]
    own = np.array([1.0, 0.0, 1e-306])
    for theta in (0.0, 0.25, 1.0):
        law = advised_law(own, 0, theta)
        exact = [float(p) for p in exact_law(own.tolist(), 0, theta)]
        assert law.tolist() == pytest.approx(exact, rel=1e-14)


@each("advice", range(3))
def test_advice_changes_nothing_for_the_certain(advice):
    own = np.eye(3)[1]
    for theta in (0.0, 0.3, 1.0):
        wanted = (
            own if advice == 1 else [theta * (a == advice) + (1 - theta) * own[a] for a in range(3)]
        )
        assert advised_law(own, advice, theta).tolist() == pytest.approx(list(wanted), abs=1e-15)


@pytest.mark.parametrize("world", ["flappy-bird/greedy", "flappy-bird/safe", "night-shift"])
def test_the_law_is_the_problems_own(world):
    problem = make(world)
    for h in range(problem.horizon):
        for s in range(problem.n_states):
            for b in range(problem.n_actions):
                law = advised_law(problem.policy[h, s], b, problem.adherence[h, s, b])
                np.testing.assert_allclose(law, problem.law(h, s, b), rtol=0, atol=1e-14)


class Fixed:
    """A generator that draws one number."""

    def __init__(self, number):
        self.number = number

    def random(self):
        return self.number


JUST_BELOW_ONE = 1.0 - 2.0**-53  # the largest number a generator draws


@given(people(), st.one_of(st.floats(0.0, JUST_BELOW_ONE), st.sampled_from([0.0, JUST_BELOW_ONE])))
def test_a_draw_never_has_probability_zero(person, number):
    probability, _, _ = person
    assert probability[draw_index(probability, Fixed(number))] > 0.0


def test_rounding_never_draws_the_impossible():
    # What is left of the largest number after all shares may be above 0 by a rounding; zeros at
    # either end must not be drawn for it.
    rng = np.random.default_rng(1)
    for _ in range(500):
        probability = np.zeros(14)
        probability[2:12] = rng.dirichlet(np.ones(10))
        assert draw_index(probability, Fixed(0.0)) == 2
        assert draw_index(probability, Fixed(JUST_BELOW_ONE)) == 11


@each(("number", "drawn"), [(0.0, 1), (0.25, 1), (0.5, 3), (0.625, 4), (0.9, 4)])
def test_a_number_on_a_border_belongs_to_what_follows(number, drawn):
    # Binary fractions, so the borders 1/2 and 5/8 are exact.
    assert draw_index(np.array([0.0, 0.5, 0.0, 0.125, 0.375, 0.0]), Fixed(number)) == drawn


@given(people(), st.floats(0.0, JUST_BELOW_ONE))
def test_a_draw_is_where_the_sum_passes_the_number(person, number):
    probability, _, _ = person
    drawn = draw_index(probability, Fixed(number))
    upto = np.cumsum(probability) / probability.sum()
    assert (upto[drawn - 1] if drawn else 0.0) <= number + 1e-12
    assert number <= upto[drawn] + 1e-12


def test_draws_come_as_often_as_their_probabilities_say():
    probability, rng = np.array([0.0, 0.5, 0.0, 0.125, 0.375, 0.0]), np.random.default_rng(0)
    seen = np.bincount([draw_index(probability, rng) for _ in range(8000)], minlength=6)
    live = probability > 0.0
    assert seen[~live].tolist() == [0, 0, 0]
    expected = 8000 * probability[live]
    assert stats.chi2.sf(((seen[live] - expected) ** 2 / expected).sum(), 2) > 1e-6


def test_a_person_who_cannot_be_copied_will_do():
    # Found by use: Gymnasium copied the person deeply, lock and all.
    class Locked:
        def __init__(self):
            self.lock = threading.Lock()

        def __call__(self, observation):
            return 0

    env = AdviceWrapper(cart(), Locked(), 0.5)
    env.reset(seed=0)
    env.step(1)
