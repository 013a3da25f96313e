"""The machine's side of a problem in Gymnasium: its interface, what it pays, how it looks."""

import re
import subprocess
import sys
from functools import cache
from itertools import pairwise

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers import TimeAwareObservation

import counsel
from counsel import CounselError
from counsel.drawing.palette import ADVICE, GOLD, HARM, INK, PAPER, SILENCE, STONES
from counsel.worlds import AdviceEnv, GridMap, Uniform, make, make_car_driving, make_flappy_bird
from tests.support.later import Later

stats, colors = Later("scipy.stats"), Later("matplotlib.colors")

IDS = sorted(name for name in gymnasium.registry if name.startswith("counsel/"))
FLAPPY, CAR, NIGHT = "counsel/FlappyBird-v0", "counsel/CarDriving-v0", "counsel/NightShift-v0"
DEFER = 3  # all three worlds have three actions
UP, UP_UP, DOWN = range(3)
LEFT, STRAIGHT, RIGHT = range(3)

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


# ------------------------------------------------------------------------ Gymnasium's interface


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


# ------------------------------------------------------------------------------ ends of episodes


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


# -------------------------------------------------------------------------------- bad input


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


# ------------------------------------------------------------------- penalty and overrides


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


# ------------------------------------------------------------- what is played is what is planned

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


# ------------------------------------------------------------------------------- seen as text

MAP = GridMap.parse(".....*\n......\n..#*..\n..#...\n......")
ALWAYS_DOWN = np.tile([0.0, 0.0, 1.0], (31, 1))
"""Someone who flies down unless advice moves them: what follows is certain at adherence 0 or 1."""


def flight(advice, *, adherence, mode):
    env = gymnasium.make(
        FLAPPY, map=MAP, human=ALWAYS_DOWN, adherence=adherence, render_mode=mode
    ).unwrapped
    env.reset(seed=0)
    frames = [env.render()]
    for said in advice:
        env.step(said)
        frames.append(env.render())
    return frames


def stripped(text):
    return re.sub(r"\033\[\d+m", "", text)


def test_a_flight_as_text_shows_the_map_and_the_bird():
    (text,) = flight([], adherence=1.0, mode="ansi")
    assert text == "step 0 of 6 · reward 0\n.....*\n......\n>.#*..\n..#...\n......\n"


def test_advice_that_is_taken_is_a_full_triangle_and_silence_a_disc():
    text = flight([UP, UP, DEFER], adherence=1.0, mode="ansi")[-1]
    caption, *board = stripped(text).splitlines()
    assert board == ["..●..*", ".▲.>..", "▲.#*..", "..#...", "......"]
    assert caption == "step 3 of 6 · reward 0 · ● silent, did Down"
    second = flight([UP, UP, DEFER], adherence=1.0, mode="ansi")[2]
    assert stripped(second).startswith("step 2 of 6 · reward 0 · ▲ advised Up, did Up\n")


def test_advice_that_is_not_taken_is_a_hollow_triangle():
    frames = flight([UP, UP_UP, DEFER], adherence=0.0, mode="ansi")
    caption, *board = stripped(frames[-1]).splitlines()
    # Down from the last row is out of the map: there is no bird any more.
    assert board == [".....*", "......", "△.#*..", ".△#...", "..●..."]
    assert stripped(frames[2]).startswith("step 2 of 6 · reward 0 · △ advised Up-Up, did Down\n")
    assert caption == "step 3 of 6 · reward 0 · ● silent, did Down"


def test_a_person_certain_of_an_action_takes_it_also_when_it_is_advised():
    # Adherence 0, but there is nothing else they would do: the advice changes nothing.
    board = stripped(flight([DOWN, DEFER], adherence=0.0, mode="ansi")[-1]).splitlines()[1:]
    assert board == [".....*", "......", "▲.#*..", ".●#...", "..>..."]


def test_a_new_episode_is_shown_from_its_beginning():
    env = gymnasium.make(
        FLAPPY, map=GridMap.parse("*..\n"), human="safe", adherence=1.0, render_mode="ansi"
    ).unwrapped
    env.reset(seed=0)
    env.step(UP)
    assert stripped(env.render()) == "step 1 of 3 · reward 1 · ▲ advised Up, did Up\n▲..\n"
    env.reset(seed=0)
    assert env.render() == "step 0 of 3 · reward 0\n>..\n"


def test_colours_repeat_what_the_signs_say():
    green, red, plain = "\033[32m", "\033[31m", "\033[0m"
    text = flight([UP, UP, DEFER], adherence=1.0, mode="ansi")[-1]
    caption, board = text.split("\n", 1)
    assert "\033" not in caption
    assert board.count(f"{green}▲{plain}") == board.count("▲") == 2
    assert board.count(f"{red}●{plain}") == board.count("●") == 1
    assert board.count("\033") == 6
    hollow = flight([UP], adherence=0.0, mode="ansi")[-1].split("\n", 1)[1]
    assert hollow.count(f"{green}△{plain}") == hollow.count("△") == 1


@pytest.mark.parametrize(
    ("text", "advice", "expected"),
    [
        # Stars the bird does not touch pay nothing.
        ("...\n.*.\n*..", [DOWN, UP], "reward 0 · ▲ advised Up, did Up\n...\n▲*>\n*▲.\n"),
        (".*.\n...\n...", [UP, DOWN], "reward 1 · ▲ advised Down, did Down\n.▲.\n▲.>\n...\n"),
    ],
)
def test_stars_are_counted_where_the_bird_was(text, advice, expected):
    env = gymnasium.make(
        FLAPPY, map=GridMap.parse(text), adherence=1.0, human=Uniform(), render_mode="ansi"
    ).unwrapped
    env.reset(seed=0)
    for said in advice:
        env.step(said)
    assert stripped(env.render()) == f"step 2 of 3 · {expected}"


ALWAYS_STRAIGHT = np.tile([0.0, 1.0, 0.0], (3 * 27**3 + 1, 1))


@cache
def car_env(mode, adherence, chances):
    return gymnasium.make(
        CAR, human=ALWAYS_STRAIGHT, adherence=adherence, chances=chances, render_mode=mode
    ).unwrapped


def drive(advice, *, mode, adherence=1.0, chances=(1.0, 0.0, 0.0), seed=0):
    """Drive someone who goes straight on unless advice moves them, to the end at most."""
    env = car_env(mode, adherence, chances)
    states = [int(env.reset(seed=seed)[0])]
    frames = [env.render()]
    for said in advice:
        state, _, terminated, _, _ = env.step(said)
        states.append(int(state))
        frames.append(env.render())
        if terminated:
            break
    return frames, states


def test_a_road_as_text_shows_the_driver_and_what_was_said():
    frames, _ = drive([LEFT, DEFER, LEFT], mode="ansi")
    assert [stripped(frame) for frame in frames] == [
        "step 0 of 10 · reward 0\n...\n...\n.^.\n",
        "step 1 of 10 · reward 1 · ▲ advised Left, did Left\n...\n...\n^.. ▲\n",
        "step 2 of 10 · reward 2 · ● silent, did Straight\n...\n...\n^.. ●\n",
        # Off the road: the last road is shown, with the crash on it.
        "step 3 of 10 · reward 3 · ▲ advised Left, did Left\n...\n...\nx.. ▲\n",
    ]
    assert "\033[32m▲\033[0m" in frames[1]
    assert "\033[31m●\033[0m" in frames[2]
    (_, frame), _ = drive([LEFT], adherence=0.0, mode="ansi")
    assert stripped(frame).endswith("△ advised Left, did Straight\n...\n...\n.^. △\n")
    assert "\033[32m△\033[0m" in frame


def rows_of(state):
    """Return the lane and the three rows of a state as texts, the driver's own first."""
    lane, *rows = np.unravel_index(state, (3, 27, 27, 27))
    return int(lane), ["".join(".o#"[k] for k in np.unravel_index(row, (3, 3, 3))) for row in rows]


def test_a_road_as_text_is_the_road_of_the_state():
    shown = 0
    for seed in range(6):
        frames, states = drive(
            [RIGHT, DEFER, LEFT, DEFER], mode="ansi", chances=(0.6, 0.3, 0.1), seed=seed
        )
        for frame, state in zip(frames, states, strict=True):
            if state < 3 * 27**3:
                lane, (here, ahead, beyond) = rows_of(state)
                _, *lines = stripped(frame).splitlines()
                assert lines[:2] == [beyond, ahead]
                assert lines[2][:3] == here[:lane] + "^" + here[lane + 1 :]
                shown += 1
    assert shown > 12


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


# ------------------------------------------------------------------------------ seen as a picture


def where(frame, colour):
    """Tell which pixels have exactly this colour [y, x]."""
    return (frame == np.rint(255 * np.array(colors.to_rgb(colour)))).all(axis=2)


class Board:
    """The cells of a picture: only they have pure white, the sheet around them is off-white."""

    def __init__(self, frame, rows, columns):
        self.frame, (ys, xs) = frame, np.nonzero(where(frame, "white"))
        self.top, self.left = ys.min(), xs.min()
        self.height, self.width = (np.ptp(ys) + 1) / rows, (np.ptp(xs) + 1) / columns

    def point(self, row, column):
        """The pixel of a place; whole numbers are the centres of cells."""
        y, x = self.top + (row + 0.5) * self.height, self.left + (column + 0.5) * self.width
        return int(y), int(x)

    def colour(self, row, column):
        return tuple(int(part) for part in self.frame[self.point(row, column)])

    def between(self, begin, end):
        """Tell which points on the middle half of a line between two cells are white."""
        shares = np.linspace(0.25, 0.75, 40)[:, None]
        points = np.array(begin) * (1 - shares) + np.array(end) * shares
        white = where(self.frame, "white")
        return np.array([white[self.point(*point)] for point in points])

    def cells(self, colour):
        """Return the cells that have a pixel of this colour."""
        ys, xs = np.nonzero(where(self.frame, colour))
        rows, columns = (ys - self.top) // self.height, (xs - self.left) // self.width
        return set(zip(rows.astype(int).tolist(), columns.astype(int).tolist(), strict=True))


def bytes_of(colour):
    return tuple(int(part) for part in np.rint(255 * np.array(colors.to_rgb(colour))))


def cells_like(sign):
    lines = str(MAP).splitlines()
    return {(row, column) for row in range(5) for column in range(6) if lines[row][column] == sign}


def test_pictures_are_bytes_of_one_size():
    frames = flight([UP, UP, DEFER, DEFER, UP], adherence=1.0, mode="rgb_array")
    frames += flight([UP, UP_UP, DEFER], adherence=0.0, mode="rgb_array")
    assert {(frame.dtype, frame.ndim, frame.shape) for frame in frames} == {
        (np.dtype(np.uint8), 3, frames[0].shape)
    }
    assert frames[0].shape[2] == 3
    roads, _ = drive([LEFT, DEFER, LEFT], mode="rgb_array")
    assert {(road.dtype, road.shape) for road in roads} == {(np.dtype(np.uint8), roads[0].shape)}


def test_a_picture_is_its_own():
    env = gymnasium.make(FLAPPY, map=MAP, render_mode="rgb_array").unwrapped
    env.reset(seed=0)
    one = env.render()
    before = one.copy()
    one[:] = 0
    np.testing.assert_array_equal(env.render(), before)


def test_walls_stars_and_empty_cells_are_where_the_map_has_them():
    board = Board(flight([], adherence=1.0, mode="rgb_array")[0], 5, 6)
    for cell in cells_like("#"):
        assert board.colour(*cell) == bytes_of(INK)
    for cell in cells_like("*"):
        assert board.colour(*cell) == bytes_of(GOLD)
    for cell in cells_like(".") - {(2, 0)}:
        assert board.colour(*cell) == bytes_of("white")
    assert board.colour(2, 0) == bytes_of(GOLD)  # the bird
    assert board.cells(GOLD) == cells_like("*") | {(2, 0)}


def test_the_shipped_map_is_drawn_cell_by_cell():
    env = gymnasium.make(FLAPPY, render_mode="rgb_array").unwrapped
    env.reset(seed=0)
    lines = str(GridMap.named("three-phases")).splitlines()
    board = Board(env.render(), 7, 20)
    golden = board.cells(GOLD)
    for row, line in enumerate(lines):
        for column, sign in enumerate(line):
            bird = (row, column) == (3, 0)
            assert ((row, column) in golden) == (sign == "*" or bird)
            if sign != "*" and not bird:
                assert board.colour(row, column) == bytes_of({".": "white", "#": INK}[sign])


def test_green_appears_with_advice_and_only_where_it_was_given():
    before, once, twice = flight([UP, UP], adherence=1.0, mode="rgb_array")
    assert not where(before, ADVICE).any()
    # From (2, 0) to (1, 1), past the corner that they share with two other cells.
    board = Board(once, 5, 6)
    assert (2, 0) in board.cells(ADVICE)
    assert board.cells(ADVICE) <= {(2, 0), (1, 1), (1, 0), (2, 1)}
    assert board.colour(2, 0) == bytes_of(ADVICE)
    board = Board(twice, 5, 6)
    assert board.colour(2, 0) == board.colour(1, 1) == bytes_of(ADVICE)
    assert board.cells(ADVICE) <= {(r, c) for r in range(3) for c in range(3)} - {(0, 0), (2, 2)}
    for frame in flight([DEFER, DEFER], adherence=1.0, mode="rgb_array"):
        assert not where(frame, ADVICE).any()


def test_grey_appears_with_silence_and_only_where_nothing_was_said():
    before, silent, over = flight([DEFER, UP], adherence=1.0, mode="rgb_array")
    assert Board(before, 5, 6).cells(SILENCE) == set()
    board = Board(silent, 5, 6)
    assert board.colour(2, 0) == bytes_of(SILENCE)
    assert board.cells(SILENCE) <= {(2, 0), (3, 1), (2, 1), (3, 0)}
    # Up from (3, 1) is into the wall: a cross there, green as it was advised, and no bird any more.
    board = Board(over, 5, 6)
    assert board.colour(2, 0) == bytes_of(SILENCE)
    assert board.colour(3, 1) == board.colour(2, 2) == bytes_of(ADVICE)
    assert board.cells(GOLD) == cells_like("*")
    for frame in flight([UP, UP], adherence=1.0, mode="rgb_array")[1:]:
        assert Board(frame, 5, 6).cells(SILENCE) == set()


def test_pictures_can_be_read_without_colour():
    # Advice: a solid line. Silence: a dashed one.
    board = Board(flight([UP, UP, DEFER], adherence=1.0, mode="rgb_array")[-1], 5, 6)
    assert not board.between((2, 0), (1, 1)).any()
    gaps = board.between((0, 2), (1, 3))
    assert gaps.any()
    assert not gaps.all()

    def near(board, row, column):
        """Tell which pixels at the heart of a mark are white."""
        y, x = board.point(row, column)
        return where(board.frame, "white")[y - 1 : y + 3, x - 1 : x + 2]

    # Taken: a full triangle. Not taken: a hollow one, with its rim.
    taken = Board(flight([UP, UP], adherence=1.0, mode="rgb_array")[-1], 5, 6)
    refused = Board(flight([UP, UP], adherence=0.0, mode="rgb_array")[-1], 5, 6)
    assert taken.colour(2, 0) == bytes_of(ADVICE)
    assert not near(taken, 2, 0).any()
    assert near(refused, 2, 0).any()
    assert {(2, 0), (3, 1)} <= refused.cells(ADVICE)

    # A triangle is narrow above and wide below; a disc is as wide above as below.
    def widths(board, row, column, colour):
        y, x = board.point(row, column)
        mark = where(board.frame, colour)[y - 6 : y + 7, x - 7 : x + 8].sum(axis=1)
        return mark[mark > 0]

    alone = Board(flight([DEFER], adherence=1.0, mode="rgb_array")[-1], 5, 6)
    disc = widths(alone, 2, 0, SILENCE)
    assert disc[1] >= 3
    triangle = widths(taken, 1, 1, ADVICE)
    assert triangle[-2] > triangle[1]


@pytest.mark.parametrize(
    "options",
    [
        {"map": "three-phases"},
        {"map": "budget"},
        {"map": GridMap.parse(".....\n.....\n.....\n.....\n.....")},
    ],
    ids=["20 columns", "8 columns", "5 columns"],
)
def test_the_caption_of_a_flight_is_not_cut_off(options):
    env = gymnasium.make(
        FLAPPY, human=Uniform(), adherence=1.0, render_mode="rgb_array", **options
    ).unwrapped
    env.reset(seed=0)
    env.step(UP_UP)
    frame = env.render()
    assert "▲ advised Up-Up, did Up-Up" in env.unwrapped._caption()
    above = frame[: Board(frame, env.view.grid.rows, env.view.grid.columns).top - 3]
    assert not where(above, PAPER).all()
    assert where(above, PAPER)[:, -2:].all()


def test_the_caption_of_a_drive_is_not_cut_off():
    # Stones pay a half: this is as long as a caption gets.
    frames, _ = drive([STRAIGHT] * 10, mode="rgb_array", chances=(0.0, 1.0, 0.0))
    above = frames[9][: Board(frames[9], 3, 3).top - 3]
    assert not where(above, PAPER).all()
    assert where(above, PAPER)[:, -2:].all()


ROAD = "#EFEBE3"


def test_a_road_is_drawn_cell_by_cell():
    kinds = set()
    for seed in range(8):
        frames, states = drive([], mode="rgb_array", chances=(0.4, 0.3, 0.3), seed=seed)
        board = Board(frames[0], 3, 3)
        lane, rows = rows_of(states[0])
        stones = board.cells(STONES)
        for depth, row in enumerate(rows):
            for column, kind in enumerate(row):
                y = 2 - depth  # the driver's own row is at the bottom
                if (y, column) == (2, lane):
                    assert board.colour(2.1, lane) == bytes_of(GOLD)  # below the windscreen
                    continue
                kinds.add(kind)
                assert ((y, column) in stones) == (kind == "o")
                if kind != "o":
                    assert board.colour(y, column) == bytes_of({".": ROAD, "#": INK}[kind])
        assert board.cells(GOLD) == {(2, lane)}
        assert not where(frames[0], ADVICE).any()
        assert not where(frames[0], SILENCE).any()
    assert kinds == set(".o#")


def test_a_drive_is_marked_teal_for_advice_and_grey_for_silence():
    (before, spoken, silent, lost), _ = drive([LEFT, DEFER, LEFT], mode="rgb_array")
    has = [
        (bool(where(frame, ADVICE).any()), bool(where(frame, SILENCE).any()))
        for frame in (before, spoken, silent)
    ]
    assert has == [(False, False), (True, False), (False, True)]
    assert Board(spoken, 3, 3).cells(GOLD) == {(2, 0)}
    # A crash is crossed out in vermilion; what was said last stays.
    assert not where(silent, HARM).any()
    assert where(lost, HARM).any()
    assert where(lost, ADVICE).any()
    # Not taken: hollow.
    (_, refused), _ = drive([LEFT], adherence=0.0, mode="rgb_array")
    assert 0 < where(refused, ADVICE).sum() < where(spoken, ADVICE).sum()
