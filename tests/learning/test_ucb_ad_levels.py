"""Learners of adherence for people with a memory: the lift of every level is learnt."""

import numpy as np
import pytest
from numpy.random import default_rng

import counsel
from counsel import UCBAD, Simulator, Thompson, learn
from counsel.learning import KL, Move, resume, suspend
from tests.support import memory_oracle as o
from tests.support.drawn_memories import draw
from tests.support.each import each_seed
from tests.support.problems import adapt_memory

DRAWN = {"H": 3, "S": 2, "A": 2, "masks": False, "required": False}


def tiring(memory=None, *, lift=0.8, fading=None, groups=None):
    """A ward of three states and twelve hours, and a nurse who tires."""
    problem = counsel.make("night-shift")
    memory = counsel.Memory.pieces(2) if memory is None else memory
    if fading is None:
        fading = 0.6 ** np.arange(memory.n_levels)
    human = counsel.Human(
        problem.human.policy[0], lift=lift, memory=memory, fading=fading, groups=groups
    )
    return counsel.AdviceProblem(problem.mdp, human)


def by_level(problem):
    """One lift for each advice on each level."""
    M, A = problem.n_levels, problem.n_actions
    return np.arange(M * A).reshape(M, A)


def play(learner, simulator, *, episodes, seed):
    """Yield the learner before each of some episodes, then learn from it."""
    rng = default_rng(seed)
    for _ in range(episodes):
        policy = learner.policy
        yield policy
        learner.update(simulator.play(policy, episodes=1, rng=rng))


# ------------------------------------------------------------------------------- optimism


def check_optimism(seed, *, episodes, may_repel):
    P = draw(seed, **DRAWN, negative=may_repel, certain=False)  # the certain teach nothing
    problem, _ = adapt_memory(P)
    penalty = (0.0, 0.2)[seed % 2]
    best = o.start_mean(P, o.plan(P, penalty)[0][0])
    learner = UCBAD(
        problem.without_adherence(),
        bound=KL(delta=1e-9),
        penalty=penalty,
        may_repel=may_repel,
    )
    for _ in play(learner, Simulator(problem), episodes=episodes, seed=seed):
        assert learner.matches.plan.value >= best - 1e-9


@each_seed(range(12))
def test_the_plan_is_optimistic_in_every_episode(seed):
    check_optimism(seed, episodes=12, may_repel=False)


@each_seed(range(12, 24))
def test_the_plan_is_optimistic_in_every_episode_where_advice_may_repel(seed):
    check_optimism(seed, episodes=12, may_repel=True)


@pytest.mark.slow
@pytest.mark.parametrize("may_repel", [False, True])
@each_seed(range(100, 180))
def test_the_plan_is_optimistic_in_every_episode_of_many_problems(may_repel, seed):
    check_optimism(seed, episodes=60, may_repel=may_repel)


def test_the_plan_is_optimistic_where_a_refusal_builds_trust():
    """The upper ends alone would expect a match at step 0, and so never the trust after a refusal.

    Only a refusal leads to level 1, where advice is taken. Silence is worth 1, a refusal 1 + 2.
    """
    mdp = counsel.MDP(np.ones((1, 2, 1)), [[[1.0, 0.0]], [[0.0, 2.0]]], horizon=2)
    memory = counsel.Memory(np.eye(2), np.eye(2), [[0, 1], [0, 1]])
    lift = np.zeros((2, 2, 1, 2))
    lift[1, 1, 0, 1] = 1.0
    problem = counsel.AdviceProblem(mdp, counsel.Human([[1.0, 0.0]], lift=lift, memory=memory))
    assert counsel.solve(problem).value == 3.0
    learner = UCBAD(problem.without_adherence(), groups=np.arange(8).reshape(2, 2, 1, 2))
    late = counsel.Policy([[2], [1]], n_actions=2)  # advice at step 1 only, where it is ignored
    learner.update(Simulator(problem).play(late, episodes=500, rng=default_rng(0)))
    assert learner.policy.advice[0].tolist() == [[1], [1]]
    assert learner.matches.plan.value >= 3.0


def test_the_plan_is_optimistic_where_rewards_are_not_known():
    problem = tiring()
    best = counsel.solve(problem, penalty=0.05).penalised_value
    setting = problem.without_adherence().without_rewards()
    learner = UCBAD(setting, bound=KL(delta=1e-6), penalty=0.05, groups=by_level(problem))
    for _ in play(learner, Simulator(problem), episodes=40, seed=0):
        assert learner.matches.plan.value >= best - 1e-9


# --------------------------------------------------------------- the plain learner as a case


def check_same(first, second, simulators, *, episodes=80, seed=0):
    """The same counts and the same advice on the cells that occur, episode by episode."""
    plays = [
        play(*pair, episodes=episodes, seed=seed)
        for pair in zip((first, second), simulators, strict=True)
    ]
    for own, plain in zip(*plays, strict=True):
        planes = own.advice.reshape(-1, *plain.advice.shape)
        assert all(np.array_equal(plane, plain.advice) for plane in planes)
        assert np.array_equal(first.given, second.given)
        assert np.array_equal(first.matched, second.matched)
    assert first.given.sum() > 0


def people(memory, fading):
    """The same nurse without a memory and with one."""
    problem = tiring(memory, fading=fading)
    return problem, problem.without_memory()


@pytest.mark.parametrize("may_repel", [False, True])
@pytest.mark.parametrize("penalty", [0.0, 0.04])
def test_one_level_is_the_plain_learner_episode_for_episode(may_repel, penalty):
    problem, plain = people(counsel.Memory([[1.0]], [[1.0]]), [1.0])
    limit = {"penalty": penalty, "may_repel": may_repel}
    learners = [UCBAD(p.without_adherence(), **limit) for p in (problem, plain)]
    check_same(*learners, [Simulator(problem), Simulator(plain)])


def test_one_level_is_plain_thompson_sampling_episode_for_episode():
    problem, plain = people(counsel.Memory([[1.0]], [[1.0]]), [1.0])
    limit = {"penalty": 0.04}
    learners = [
        Thompson(p.without_adherence(), rng=default_rng(1), **limit) for p in (problem, plain)
    ]
    check_same(*learners, [Simulator(problem), Simulator(plain)])


@pytest.mark.parametrize("kind", ["UCBAD", "Thompson"])
def test_levels_that_share_their_lifts_are_the_plain_learner(kind):
    """Without fading the memory changes nothing, and the learner knows it."""
    problem, plain = people(counsel.Memory.pieces(2), [1.0, 1.0, 1.0])
    M, S, A = problem.n_levels, problem.n_states, problem.n_actions
    shared = np.broadcast_to(np.arange(S * A).reshape(S, A), (M, S, A))
    learners = []
    for p, groups in ((problem, shared), (plain, None)):
        chance = {} if kind == "UCBAD" else {"rng": default_rng(1)}
        build = getattr(counsel, kind)
        learners.append(build(p.without_adherence(), penalty=0.04, groups=groups, **chance))
    check_same(*learners, [Simulator(problem), Simulator(plain)])


# ------------------------------------------------------------------------------- counting


def test_matches_are_counted_on_their_level():
    problem = tiring()
    learner = UCBAD(problem.without_adherence(), groups=by_level(problem))
    batch = Simulator(problem).play(learner.policy, episodes=50, rng=default_rng(0))
    learner.update(batch)
    given, matched = np.zeros((2, problem.n_levels, problem.n_actions), dtype=int)
    certain = problem.human.policy[0] == 1.0
    for s, b, a, m in zip(batch.state, batch.advice, batch.action, batch.level, strict=True):
        if b < problem.n_actions and not certain[s, b]:
            given[m, b] += 1
            matched[m, b] += a == b
    bins = learner.matches.groups.group_of_bin
    assert np.bincount(bins, learner.given, given.size).tolist() == given.reshape(-1).tolist()
    assert np.bincount(bins, learner.matched, given.size).tolist() == matched.reshape(-1).tolist()


def test_rejected_pairs_have_their_level():
    """A person who does the opposite once they are tired: θ = 0 on level 1."""
    problem = counsel.make("night-shift")
    own = problem.human.policy[0]
    safe = np.array([[0.5, 0.3, 0.2]] * len(own))
    lift = np.zeros((2, *own.shape))
    lift[0], lift[1] = 0.9, -0.25 * np.ones(own.shape)
    memory = counsel.Memory.pieces(1)
    person = counsel.Human(safe, lift=lift, memory=memory)
    repelled = counsel.AdviceProblem(problem.mdp, person)
    learner = UCBAD(repelled.without_adherence(), groups=by_level(repelled))
    always = counsel.Policy(np.zeros((12, 4), dtype=int), n_actions=3)
    learner.update(Simulator(repelled).play(always, episodes=400, rng=default_rng(0)))
    rejected = learner.rejected
    assert rejected.shape[1] == 4
    assert {tuple(row) for row in rejected[:, [0, 3]].tolist()} == {(1, 0)}
    assert (learner.policy.advice[1] != 0).all()
    assert (learner.policy.advice[0] == 0).any()


@pytest.mark.parametrize("kind", [UCBAD, Thompson])
def test_groups_that_the_person_declares_are_those_of_the_learner(kind):
    """The levels share one lift for each advice, which does not fade."""
    groups = [[0, 1, 2]] * 3
    problem = tiring(fading=[1.0, 1.0, 1.0], groups=groups)
    chance = {} if kind is UCBAD else {"rng": default_rng(0)}
    declared = kind(problem.without_adherence(), **chance)
    given = kind(tiring(fading=[1.0] * 3).without_adherence(), groups=groups, **chance)
    assert np.array_equal(declared.matches.groups.bin_lsa, given.matches.groups.bin_lsa)
    assert declared.matches.groups.first_bin.size - 1 == 3


# ------------------------------------------------------------------------------- learning


@each_seed(range(200, 204))
def test_a_learner_comes_to_the_plan_of_the_oracle(seed):
    P = draw(seed, **DRAWN, negative=False, certain=False)
    problem, _ = adapt_memory(P)
    best = o.start_mean(P, o.plan(P, 0.1)[0][0])
    groups = np.arange(P.lift.size).reshape(P.lift.shape)
    learner = UCBAD(problem.without_adherence(), penalty=0.1, groups=groups)
    for _ in range(12):
        learner.update(
            Simulator(problem).play(learner.policy, episodes=1500, rng=default_rng(seed))
        )
    outcome = counsel.evaluate(problem, learner.policy)
    assert outcome.value - 0.1 * outcome.advice_cost >= best - 0.02


def test_a_learner_that_knows_the_memory_beats_one_that_is_blind_to_it():
    """Both are measured against the best plan that knows the memory."""
    problem = tiring(counsel.Memory.pieces(3), lift=0.9, fading=[1.0, 0.2, 0.1, 0.05])
    blind = problem.without_memory().without_adherence()
    learners = {
        "knows": UCBAD(problem.without_adherence(), groups=by_level(problem)),
        "blind": UCBAD(blind, groups=[0, 1, 2]),
    }
    regret = {}
    for name, learner in learners.items():
        *_, last = learn(learner, Simulator(problem), episodes=400, rng=default_rng(0))
        regret[name] = last.regret
        assert last.value_gap > -1e-9
    assert regret["knows"] < regret["blind"]


@pytest.mark.slow
def test_the_regret_on_the_map_is_a_fifth_of_that_of_a_blind_learner():
    problem = counsel.make("flappy-bird/tiring")
    groups = by_level(problem)
    known, blind = problem.without_adherence(), problem.without_memory().without_adherence()
    regrets = []
    for learner in (UCBAD(known, groups=groups), UCBAD(blind, groups=[0, 1, 2])):
        *_, last = learn(learner, Simulator(problem), episodes=4000, rng=default_rng(0))
        regrets.append(last.regret)
    assert regrets[0] <= regrets[1] / 5.0


def test_thompson_sampling_keeps_to_a_budget():
    problem = tiring()
    learner = Thompson(
        problem.without_adherence(), rng=default_rng(1), budget=1.0, groups=by_level(problem)
    )
    *_, last = learn(learner, Simulator(problem), episodes=60, every=20, rng=default_rng(0))
    assert learner.policy.levels == problem.n_levels
    assert abs(last.advice_count - 1.0) < 0.3


# ------------------------------------------------------------------------- saved and resumed


@pytest.mark.parametrize("kind", ["UCBAD", "Thompson"])
def test_a_run_resumed_in_mid_episode_goes_on_as_if_nothing_had_happened(kind, tmp_path):
    problem = tiring()
    simulator = Simulator(problem)

    def build():
        chance = {} if kind == "UCBAD" else {"rng": default_rng(1)}
        setting = problem.without_adherence()
        return getattr(counsel, kind)(setting, penalty=0.03, groups=by_level(problem), **chance)

    def go_on(learner, rng):
        for move in (Move(1, 2, 1, 1, 0.0, 0, 1), Move(2, 0, 3, 0, 0.0, 1, 2)):
            learner.observe(move)
        learner.finish()
        list(learn(learner, simulator, episodes=20, rng=rng))
        return learner.policy.advice, learner.given, learner.matched

    first, rng = build(), default_rng(0)
    *_, record = learn(first, simulator, episodes=20, rng=rng)
    first.observe(Move(0, 1, 1, 1, 0.0, 2, 0))
    suspend(first, tmp_path / "run.npz", rng=rng, record=record)
    second = build()
    rng_again, again = resume(second, tmp_path / "run.npz")
    assert again == record
    for own, resumed in zip(go_on(first, rng), go_on(second, rng_again), strict=True):
        assert np.array_equal(own, resumed)


def test_live_levels_that_cannot_follow_are_refused():
    problem = tiring()
    learner = UCBAD(problem.without_adherence())
    learner.observe(Move(0, 1, 1, 1, 0.0, 2, 0))
    learner.observe(Move(1, 2, 1, 1, 0.0, 2, 0))
    with pytest.raises(counsel.CounselError, match="level of decision 1 is 0, which cannot follow"):
        learner.finish()


# ------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ([0, 1], r"groups is int64 of shape \(2,\); for a memory of 3 levels, expected"),
        (np.zeros((2, 3), dtype=int), r"shape \(2, 3\); .* \[m, a\] = \(3, 3\)"),
        (np.zeros((3, 3)), r"groups is float64 of shape \(3, 3\)"),
    ],
)
def test_groups_without_a_level_axis_are_refused(groups, said):
    with pytest.raises(counsel.CounselError, match=said):
        UCBAD(tiring().without_adherence(), groups=groups)


def test_one_group_for_each_level_pools_all_advice():
    learner = UCBAD(tiring().without_adherence(), groups=[0, 1, 2])
    assert learner.matches.groups.first_bin.size - 1 == 3


def test_the_level_must_be_given_to_a_learner_that_knows_the_memory():
    learner = UCBAD(tiring().without_adherence())
    with pytest.raises(counsel.CounselError, match="give level, from 0 to 2"):
        learner.advise(0, 1)
    with pytest.raises(counsel.CounselError, match="level is 3"):
        learner.advise(0, 1, 3)


def test_a_learner_for_another_memory_does_not_run():
    learner = UCBAD(tiring().without_adherence())
    for memory, said in (
        (counsel.Memory.pieces(3), "the policy is for 3 levels of memory; the person has 4"),
        (counsel.Memory.since(2), r"after_silence\[m=0, m′=0\] is 1"),
    ):
        with pytest.raises(counsel.CounselError, match=said):
            next(learn(learner, Simulator(tiring(memory)), episodes=1, rng=default_rng(0)))


def test_a_blind_learner_has_no_compiled_loop_on_a_person_with_a_memory():
    problem = tiring()
    learner = UCBAD(problem.without_memory().without_adherence())
    assert learner.can_run
    with pytest.raises(counsel.CounselError, match="no compiled loop here"):
        learner.run(Simulator(problem), best=0.0, episodes=1, every=1, rng=default_rng(0))
