"""The machine's side of a problem in Gymnasium: its interface, its rewards and its ends."""

import subprocess
import sys
from itertools import pairwise

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers import TimeAwareObservation

import counsel
from counsel import CounselError
from counsel.worlds import AdviceEnv, GridMap, Uniform, make, make_car_driving, make_flappy_bird
from tests.support.later import Later
from tests.support.played_games import CAR, DEFER, FLAPPY, NIGHT, UP

stats = Later("scipy.stats")
IDS = sorted(name for name in gymnasium.registry if name.startswith("counsel/"))
PLAYED = {
    "flappy greedy": (FLAPPY, {"human": "greedy"}),
    "flappy safe": (FLAPPY, {"human": "safe"}),
    "car": (CAR, {}),
    "night shift": (NIGHT, {}),
}


@pytest.fixture(scope="module")
def made():
    """Environments by name, each built once: the car world takes a quarter of a second."""
    return {name: gymnasium.make(env, **options) for name, (env, options) in PLAYED.items()}


@pytest.fixture(params=PLAYED)
def env(request, made):
    return made[request.param].unwrapped


def episode(env, advise, *, seed=None):
    """Play one episode; return its steps as (observation, reward, terminated, truncated, info)."""
    state, info = env.reset(seed=seed)
    steps = [(state, 0.0, False, False, info)]
    while not (steps[-1][2] or steps[-1][3]):
        steps.append(env.step(advise(len(steps) - 1, int(steps[-1][0]))))
    return steps


def chance_advice(seed):
    """Advise anything or defer, by chance; all advice is allowed in our worlds."""
    rng = np.random.default_rng(seed)
    return lambda h, s: int(rng.integers(DEFER + 1))


def plain(steps):
    """An episode with arrays as lists, so that two can be compared."""
    return [
        (int(state), *rest, {**info, "action_mask": info["action_mask"].tolist()})
        for state, *rest, info in steps
    ]


# Gymnasium's interface.


def test_the_three_worlds_are_registered():
    assert set(IDS) == {FLAPPY, CAR, NIGHT}


@pytest.mark.parametrize("name", IDS)
def test_gymnasiums_own_checks_pass_without_a_warning(name):
    check_env(gymnasium.make(name).unwrapped)


@pytest.mark.slow
def test_an_id_with_its_module_works_in_a_process_that_knows_nothing_of_counsel():
    code = (
        "import sys, gymnasium\n"
        "assert not any(name.startswith('counsel') for name in sys.modules)\n"
        "env = gymnasium.make('counsel.worlds:counsel/FlappyBird-v0', human='safe')\n"
        "state, info = env.reset(seed=0)\n"
        "print(env.action_space, int(state), env.unwrapped.problem.horizon)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["Discrete(4)", "3", "20"]


def test_spaces_are_the_states_and_the_actions_with_defer_last(env):
    assert env.observation_space == gymnasium.spaces.Discrete(env.problem.n_states)
    assert env.action_space == gymnasium.spaces.Discrete(env.problem.n_actions + 1)
    assert env.problem.defer == env.action_space.n - 1 == DEFER


def test_one_seed_gives_one_episode_and_seeds_differ(env):
    games = {
        seed: plain(episode(env, chance_advice(5), seed=seed)) for seed in (0, 1, 2, 3, 4, 5, 6, 7)
    }
    for seed, game in games.items():
        assert plain(episode(env, chance_advice(5), seed=seed)) == game
    assert len({str(game) for game in games.values()}) > 1


def test_a_reset_without_a_seed_goes_on_with_the_same_chance(env):
    def two():
        return [plain(episode(env, chance_advice(1), seed=seed)) for seed in (3, None, None)]

    first, second = two(), two()
    assert first == second
    assert len({str(game) for game in first}) > 1


def test_info_has_the_same_keys_and_types_at_reset_and_at_every_step(env):
    for seed in range(5):
        for _, _, _, _, info in episode(env, chance_advice(seed), seed=seed):
            assert {key: type(value) for key, value in info.items()} == {
                "step": int,
                "advice": int,
                "action": int,
                "matched": bool,
                "deferred": bool,
                "cost": float,
                "action_mask": np.ndarray,
            }
            assert info["action_mask"].dtype == np.int8
            assert info["action_mask"].tolist() == [1, 1, 1, 1]
            env.action_space.sample(info["action_mask"])  # of the type Gymnasium wants


def test_info_tells_what_was_said_and_done(env):
    for seed in range(20):
        advise = chance_advice(seed)
        said = []
        steps = episode(env, lambda h, s: said.append(advise(h, s)) or said[-1], seed=seed)  # noqa: B023
        assert steps[0][4]["step"] == 0
        assert (steps[0][4]["advice"], steps[0][4]["action"]) == (DEFER, -1)
        assert (steps[0][4]["matched"], steps[0][4]["deferred"]) == (False, False)
        for h, (*_, info) in enumerate(steps[1:]):
            assert (info["step"], info["advice"]) == (h + 1, said[h])
            assert 0 <= info["action"] < DEFER
            assert info["deferred"] == (said[h] == DEFER)
            assert info["matched"] == (said[h] == info["action"])


def test_what_is_paid_and_reached_is_the_worlds_own(env):
    mdp = env.problem.mdp
    for seed in range(20):
        steps = episode(env, chance_advice(seed), seed=seed)
        assert mdp.start[steps[0][0]] > 0.0
        for h, (before, after) in enumerate(pairwise(steps)):
            s, (t, reward, *_, info) = int(before[0]), after
            assert reward == mdp.reward[h, s, info["action"]]
            assert t in mdp.kernel.successors(h, s, info["action"])[0]


def test_an_environment_works_among_others_in_a_vector():
    seeds = [11, 12, 13]
    vector = SyncVectorEnv([lambda: gymnasium.make(FLAPPY, human="safe")] * 3)
    alone = [gymnasium.make(FLAPPY, human="safe") for _ in seeds]
    states, infos = vector.reset(seed=seeds)
    assert states.tolist() == [one.reset(seed=seed)[0] for one, seed in zip(alone, seeds, strict=1)]
    assert infos["action_mask"].tolist() == [[1, 1, 1, 1]] * 3
    rng, live = np.random.default_rng(0), np.ones(3, dtype=bool)
    for _ in range(25):  # past the end of every first episode
        advice = rng.integers(DEFER + 1, size=3)
        states, rewards, over, cut, infos = vector.step(advice)
        for i in np.flatnonzero(live):
            t, reward, *ends, info = alone[i].step(advice[i])
            assert (states[i], rewards[i], over[i], cut[i]) == (t, reward, *ends)
            for key in ("step", "advice", "action", "matched", "deferred"):
                assert infos[key][i] == info[key]
            live[i] = not any(ends)
    assert not live.any()
    vector.close()


def test_the_step_can_be_added_to_the_observation_as_the_docstring_says():
    env = TimeAwareObservation(gymnasium.make(NIGHT, max_episode_steps=12), flatten=False)
    bare = gymnasium.make(NIGHT)
    (seen, _), (state, _) = env.reset(seed=0), bare.reset(seed=0)
    for h in range(12):
        assert seen in env.observation_space
        assert (seen["obs"], int(np.asarray(seen["time"]).item())) == (state, h)
        seen, *_ = env.step(1)
        state, *_ = bare.step(1)


# Ends of episodes.


def test_terminated_is_over_and_truncated_is_the_horizon_before(env):
    mdp, H = env.problem.mdp, env.problem.horizon
    over_hs = mdp.over
    for seed in range(100):
        steps = episode(env, chance_advice(seed), seed=seed)[1:]
        assert len(steps) <= H
        for h, (state, _, terminated, truncated, _) in enumerate(steps, start=1):
            assert terminated == over_hs[min(h, H - 1), state]
            assert truncated == (h == H and not terminated)


def test_each_world_ends_as_it_should(made):
    def ends(name, **options):
        env = gymnasium.make(name, **options).unwrapped if options else made[name].unwrapped
        games = [episode(env, chance_advice(seed), seed=seed) for seed in range(60)]
        return {(len(game) - 1, *game[-1][2:4]) for game in games}

    # A bird that survives leaves the last column at the last step: that too is the end of the game.
    bird = ends("flappy safe")
    assert (20, True, False) in bird
    assert all(terminated and not truncated for _, terminated, truncated in bird)
    assert {steps for steps, *_ in ends(FLAPPY, horizon=3)} == {2, 3}
    assert (3, False, True) in ends(FLAPPY, horizon=3)
    car = ends("car")
    assert (10, False, True) in car
    assert (1, True, False) in car
    assert ends("night shift") == {(12, False, True)}


def pit_problem():
    """Stay, die, or fall into a pit that can never be left and pays 1 until step 1 and 0 after."""
    alive, dead, pit = range(3)
    reward = np.zeros((4, 3, 3))
    reward[:, alive] = 0.5
    reward[:2, pit] = 1.0
    mdp = counsel.MDP(
        np.array([[alive, dead, pit], [dead] * 3, [pit] * 3]), reward, horizon=4, start=alive
    )
    return counsel.AdviceProblem(mdp, counsel.Human(np.full((3, 3), 1 / 3), 1.0))


@pytest.mark.parametrize(
    ("advice", "rewards", "ends"),
    [
        ([0, 0, 0, 0], [0.5, 0.5, 0.5, 0.5], (False, True)),
        ([0, 1], [0.5, 0.5], (True, False)),
        ([0, 0, 0, 1], [0.5, 0.5, 0.5, 0.5], (True, False)),
        # At step 1 the pit still pays, so it is not over when entered, but at step 2.
        ([2, 0], [0.5, 1.0], (True, False)),
        ([0, 2], [0.5, 0.5], (True, False)),
    ],
)
def test_an_episode_ends_when_nothing_can_be_paid_any_more(advice, rewards, ends):
    env = AdviceEnv(pit_problem())
    env.reset(seed=0)
    for i, (said, paid) in enumerate(zip(advice, rewards, strict=True)):
        _, reward, terminated, truncated, info = env.step(said)
        assert (reward, info["action"]) == (paid, said)
        last = i == len(advice) - 1
        assert (terminated, truncated) == (ends if last else (False, False))
    with pytest.raises(CounselError, match="reset"):
        env.step(DEFER)
    assert env.reset()[0] == 0
    assert env.step(0)[1] == 0.5


def test_policy_and_adherence_are_those_of_the_step():
    alive = counsel.MDP(np.zeros((1, 2), dtype=np.int64), [1.0], horizon=4, start=0)
    own = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [0.5, 0.5]])[:, None]
    theta = np.array([[1.0, 1.0], [1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])[:, None]
    env = AdviceEnv(counsel.AdviceProblem(alive, counsel.Human(own, theta)))
    for seed in range(10):
        for told, did in (([2, 2, 0, 0], [0, 1, 0, 1]), ([1, 0, 1, 1], [1, 0, 0, 1])):
            steps = episode(env, lambda h, s: told[h], seed=seed)  # noqa: B023
            assert [info["action"] for *_, info in steps[1:]] == did


def test_a_step_before_the_first_reset_is_refused():
    with pytest.raises(CounselError, match="reset"):
        AdviceEnv(pit_problem()).step(0)


# Bad input.


@pytest.mark.parametrize("wrong", [-1, 4, 1.0, 1.5, "Up", None, [1], np.array([0, 1]), np.nan])
def test_advice_out_of_range_is_refused_and_changes_nothing(made, wrong):
    env = made["flappy safe"].unwrapped
    env.reset(seed=4)
    with pytest.raises(CounselError, match=r"advice is .*0 to 3"):
        env.step(wrong)
    after = env.step(UP)
    env.reset(seed=4)
    assert plain([env.step(UP)]) == plain([after])


def masked_problem():
    """Two states, three actions; what is allowed depends on step and state."""
    allowed = np.ones((3, 2, 3), dtype=bool)
    allowed[0, 0, 2] = allowed[1, 0, 1] = allowed[1:, 1, 0] = allowed[2, 1, 1] = False
    rng = np.random.default_rng(0)
    own = np.where(allowed, rng.uniform(0.2, 1.0, size=(3, 2, 3)), 0.0)
    own /= own.sum(axis=2, keepdims=True)
    mdp = counsel.MDP(
        rng.dirichlet(np.ones(2), size=(2, 3)),
        rng.uniform(size=(2, 3)),
        horizon=3,
        allowed=allowed,
        start=0,
        state_labels=["calm", "storm"],
        action_labels=["sail", "row", "fish"],
    )
    return counsel.AdviceProblem(mdp, counsel.Human(own, 0.5))


def test_the_mask_tells_what_may_be_advised_and_the_rest_is_refused():
    env = AdviceEnv(masked_problem())
    allowed, refused = env.problem.mdp.allowed, 0
    for seed in range(40):
        env.action_space.seed(seed)
        state, info = env.reset(seed=seed)
        for h in range(3):
            assert info["action_mask"].tolist() == [*allowed[h, state].tolist(), 1]
            for advice in np.flatnonzero(~allowed[h, state]):
                with pytest.raises(CounselError, match=r"not allowed in (calm|storm) at step"):
                    env.step(advice)
                refused += 1
            state, _, _, _, info = env.step(env.action_space.sample(info["action_mask"]))
    assert refused > 60


def test_the_mask_belongs_to_whoever_gets_it():
    env = AdviceEnv(masked_problem())
    _, info = env.reset(seed=0)
    info["action_mask"][:] = 1
    with pytest.raises(CounselError, match="fish is not allowed in calm at step 0"):
        env.step(2)
    assert env.problem.mdp.allowed[0, 0].tolist() == [True, True, False]


@pytest.mark.parametrize("name", IDS)
def test_an_unknown_override_is_named(name):
    # Night shift takes none; Gymnasium itself then says so, as a TypeError.
    with pytest.raises((CounselError, TypeError), match="wings"):
        gymnasium.make(name, wings=2)


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        (FLAPPY, {"map": "no-such-map"}, "three-phases"),
        (FLAPPY, {"human": "bold"}, "greedy"),
        (FLAPPY, {"adherence": 1.5}, "1.5"),
        (CAR, {"map": "budget"}, "'map'"),
        (CAR, {"human": "greedy"}, "myopic"),
        (FLAPPY, {"penalty": -0.1}, "penalty"),
        (CAR, {"penalty": np.nan}, "penalty"),
        (NIGHT, {"penalty": "much"}, "penalty"),
        (NIGHT, {"penalty": np.inf}, "penalty"),
    ],
)
def test_a_wrong_override_is_refused_in_a_sentence(name, options, says):
    with pytest.raises(CounselError) as caught:
        gymnasium.make(name, **options)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "mode"), [(FLAPPY, "ascii"), (FLAPPY, 3), (CAR, "pdf"), (NIGHT, "rgb_array")]
)
def test_an_unknown_render_mode_is_refused(name, mode):
    with pytest.raises(CounselError, match=r"render_mode is .*ansi"):
        gymnasium.make(name, render_mode=mode)


# Penalty and overrides.


@pytest.mark.parametrize(("name", "options"), PLAYED.values(), ids=PLAYED)
def test_a_penalty_is_taken_for_each_piece_of_advice_and_for_nothing_else(made, name, options):
    free = next(made[key].unwrapped for key, entry in PLAYED.items() if entry == (name, options))
    dear = AdviceEnv(free.problem, penalty=0.3)
    spoken = 0
    for seed in range(10):
        both = [episode(env, chance_advice(seed), seed=seed) for env in (free, dear)]
        assert len(both[0]) == len(both[1])
        for (s, reward, *_, info), (t, less, *_, told) in zip(*both, strict=True):
            assert (s, info["action"]) == (t, told["action"])
            advised = info["advice"] != DEFER
            assert less == (reward - 0.3 if advised else reward)  # the same arithmetic: exact
            spoken += advised
    assert spoken > 20


@pytest.mark.parametrize("name", IDS)
def test_a_penalty_can_be_asked_for_by_id(name):
    assert gymnasium.make(name, penalty=0.25).unwrapped.penalty == 0.25
    assert gymnasium.make(name).unwrapped.penalty == 0.0


def same_problem(one, two):
    np.testing.assert_array_equal(one.policy, two.policy)
    np.testing.assert_array_equal(one.adherence, two.adherence)
    np.testing.assert_array_equal(one.human.groups, two.human.groups)
    np.testing.assert_array_equal(one.mdp.reward, two.mdp.reward)
    np.testing.assert_array_equal(one.mdp.start, two.mdp.start)
    for mine, yours in zip(one.mdp.kernel.to_sparse().T, two.mdp.kernel.to_sparse().T, strict=True):
        assert (mine != yours).nnz == 0


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"human": "greedy"},
        {"human": "safe"},
        {"human": Uniform(), "adherence": [0.1, 0.2, 0.3]},
        {"adherence": "low", "horizon": 7, "groups": [0, 0, 0]},
        {"map": "budget", "human": "safe"},
        {"map": GridMap.parse("..*\n...\n.#."), "adherence": 1.0},
    ],
)
def test_overrides_reach_flappy_bird(options):
    problem = gymnasium.make(FLAPPY, **options).unwrapped.problem
    same_problem(problem, make_flappy_bird(**options))


def test_a_map_file_reaches_flappy_bird(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text("..*\n...\n.#.\n")
    problem = gymnasium.make(FLAPPY, map=path).unwrapped.problem
    same_problem(problem, make_flappy_bird(map=GridMap.parse("..*\n...\n.#.")))


def test_overrides_reach_the_car():
    options = {"adherence": 0.25, "horizon": 3, "chances": (0.5, 0.25, 0.25)}
    mine, yours = gymnasium.make(CAR, **options).unwrapped.problem, make_car_driving(**options)
    assert mine.horizon == yours.horizon == 3
    np.testing.assert_array_equal(mine.human.adherence, yours.human.adherence)
    np.testing.assert_array_equal(mine.human.policy, yours.human.policy)
    np.testing.assert_array_equal(mine.mdp.start, yours.mdp.start)


def test_without_overrides_the_worlds_are_those_of_the_catalogue(made):
    for name, known in (
        ("flappy greedy", "flappy-bird/greedy"),
        ("flappy safe", "flappy-bird/safe"),
    ):
        same_problem(made[name].unwrapped.problem, make(known))


# What is played is what is planned.

EPISODES = 1000


@pytest.mark.slow
def test_playing_a_plan_earns_its_value_and_spends_its_count(env):
    problem = env.problem
    plan = counsel.solve(problem, penalty=0.05)
    for policy in (counsel.solve(problem).policy, plan.policy):
        games = []
        for i in range(EPISODES):
            steps = episode(env, lambda h, s: policy.advice[h, s], seed=7 if i == 0 else None)  # noqa: B023
            pieces = sum(info["advice"] != DEFER for *_, info in steps)
            games.append((sum(step[1] for step in steps), pieces))
        mean, error = np.mean(games, axis=0), np.std(games, axis=0, ddof=1) / EPISODES**0.5
        worth = counsel.evaluate(problem, policy)
        # Four standard errors: one seed in 16,000 would fail by chance, and this one does not.
        assert abs(mean[0] - worth.value) <= 4 * error[0] + 1e-12
        assert abs(mean[1] - worth.advice_count) <= 4 * error[1] + 1e-12
        assert error[0] < 0.15  # so that the comparison says something


def misfit(seen, law):
    """Return Pearson's statistic and its degrees of freedom; no count where nothing can be."""
    assert seen[law == 0.0].sum() == 0
    expected = seen.sum() * law[law > 0.0]
    return ((seen[law > 0.0] - expected) ** 2 / expected).sum(), expected.size - 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["flappy greedy", "flappy safe", "night shift"])
def test_people_act_by_the_law_whatever_they_are_told(made, name):
    env = made[name].unwrapped
    problem = env.problem
    seen = np.zeros((problem.horizon, problem.n_states, DEFER + 1, DEFER), dtype=np.int64)
    advise = chance_advice(2)
    for i in range(2000):
        steps = episode(env, advise, seed=9 if i == 0 else None)
        for h, (before, after) in enumerate(pairwise(steps)):
            seen[h, int(before[0]), after[4]["advice"], after[4]["action"]] += 1
    by_law, by_habit = [], []
    for h, s, advice in np.argwhere(seen.sum(axis=3) > 0):
        law, counts = problem.law(h, s, advice), seen[h, s, advice]
        assert counts[law == 0.0].sum() == 0
        if counts.sum() * law[law > 0.0].min() >= 5:  # or Pearson's statistic is no chi-square
            by_law.append(misfit(counts, law))
            own = problem.law(h, s, DEFER)
            if advice != DEFER and own.all() and not np.allclose(own, law):
                by_habit.append(misfit(counts, own))
    assert len(by_law) > 60
    assert stats.chi2.sf(*np.sum(by_law, axis=0)) > 1e-6
    # The test can tell: a person who did not listen would fail it.
    if name == "night shift":
        assert stats.chi2.sf(*np.sum(by_habit, axis=0)) < 1e-6


def test_drivers_act_by_the_law_and_starts_by_their_chances(made):
    env = made["car"].unwrapped
    problem, advise = env.problem, chance_advice(3)
    counts = {}
    first_lanes = np.zeros(3)
    for i in range(3000):
        state, _ = env.reset(seed=1 if i == 0 else None)
        lane, here, _, _ = np.unravel_index(int(state), (3, 27, 27, 27))
        assert lane == 1
        first_lanes += np.bincount(np.unravel_index(here, (3, 3, 3)), minlength=3)
        advice = advise(0, 0)
        *_, info = env.step(advice)
        law = problem.law(0, int(state), advice)
        tally = counts.setdefault((advice, *law.tolist()), np.zeros(3))
        tally[info["action"]] += 1
    assert first_lanes.sum() == 9000
    kept = [
        misfit(tally, np.array(law))
        for (_, *law), tally in counts.items()
        if tally.sum() * min(p for p in law if p > 0) >= 5
    ]
    assert len(kept) > 10
    assert stats.chi2.sf(*np.sum(kept, axis=0)) > 1e-6
    assert stats.chi2.sf(*misfit(first_lanes, np.array([0.4, 0.3, 0.3]))) > 1e-6


def test_any_other_world_is_told_in_words():
    env = gymnasium.make(NIGHT, render_mode="ansi")
    env.reset(seed=0)
    assert env.render() == "step 0 of 12 · reward 0\nstable\n"
    state, reward, *_, info = env.step(1)
    did = ("wait", "check", "treat")[info["action"]]
    sign = "▲" if info["matched"] else "△"
    assert env.render() == (
        f"step 1 of 12 · reward {reward:g} · {sign} advised check, did {did}\n"
        f"{('stable', 'drifting')[state]}\n"
    )


def test_without_a_render_mode_nothing_is_drawn():
    env = AdviceEnv(pit_problem())
    env.reset(seed=0)
    assert env.render() is None
