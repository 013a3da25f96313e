"""A person in any environment: who acts, and with which chance."""

import pickle
import threading
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

import counsel
from counsel import CounselError
from counsel.worlds import AdviceWrapper, from_gymnasium
from tests.support.cart_people import DEFER, Counter, Noise, cart, evenly, hesitates, leans, trusts
from tests.support.each import each_seed
from tests.support.later import Later

stats = Later("scipy.stats")
TAXI = next(name for name in gymnasium.registry if name.startswith("Taxi-v"))


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


# Who acts.


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


# Penalty and info.


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
            "cost": float,
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


# Chance.


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


# Against the exact model.

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


# Kept and made again.


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
