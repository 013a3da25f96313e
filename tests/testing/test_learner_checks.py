"""The conformance suite: our learners pass, and learners with one fault each do not."""

import numpy as np
import pytest

import counsel
from counsel import UCBAD, CounselError, Structured, Thompson
from counsel.learning import KL, Move, PaperBonus, Theory
from counsel.learning._adherence_kernels import ucb_episodes
from counsel.learning.files import resume, suspend
from counsel.learning.rfe import RFE
from counsel.testing import check_learner
from counsel.worlds import make
from tests.support.problems import adapt, draw
from tests.support.structured import small_and_random


def rng():
    return np.random.default_rng(5)


LEARNERS = {
    "ucb-ad": lambda p: UCBAD(p.without_adherence()),
    "ucb-ad, theory": lambda p: UCBAD(p.without_adherence(), bound=Theory(delta=0.1, episodes=99)),
    "ucb-ad, kl": lambda p: UCBAD(p.without_adherence(), bound=KL(delta=0.1), penalty=0.1),
    "ucb-ad, paper": lambda p: UCBAD(p.without_adherence(), bound=PaperBonus()),
    "ucb-ad, pooled": lambda p: UCBAD(p.without_adherence(), groups=np.zeros(p.n_actions, int)),
    "thompson": lambda p: Thompson(p.without_adherence(), rng=rng()),
    "rfe": lambda p: RFE(p.shape, rng=rng(), scale=0.1, reward=p.mdp.reward),
    "rfe, rewards unknown": lambda p: RFE(p.shape, rng=rng(), penalty=0.1),
    "rfe, budget": lambda p: RFE(p.shape, rng=rng(), budget=1.5),
    "structured": lambda p: Structured(p.shape, rng=rng()),
    "structured, pooled": lambda p: Structured(
        p.shape, rng=rng(), groups=np.zeros(p.n_actions, int), reward=p.mdp.reward, penalty=0.1
    ),
    "ucb-ad, budget": lambda p: UCBAD(p.without_adherence(), budget=1.0, rng=rng()),
    "thompson, budget": lambda p: Thompson(p.without_adherence(), budget=0.5, rng=rng()),
}
WORLDS = {
    "safe": lambda: make("flappy-bird/safe"),
    "budget": lambda: make("flappy-bird-budget/greedy"),
    "night": lambda: make("night-shift"),
    "random": lambda: adapt(draw(13, most=(6, 4, 5))),
}


@pytest.mark.parametrize(
    "world",
    [
        pytest.param("safe", marks=pytest.mark.slow),
        pytest.param("budget", marks=pytest.mark.slow),
        pytest.param("night", marks=pytest.mark.slow),
        "random",
    ],
)
@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_passes(name, world):
    check_learner(LEARNERS[name], WORLDS[world]())


TIRED = {
    "ucb-ad": lambda p: UCBAD(p.without_adherence(), penalty=0.05),
    "thompson": lambda p: Thompson(p.without_adherence(), rng=rng()),
    "rfe": lambda p: RFE(p.shape, rng=rng(), penalty=0.05),
    "structured": lambda p: Structured(p.shape, rng=rng()),
    "ucb-ad, blind": lambda p: UCBAD(p.without_memory().without_adherence()),
    "rfe, blind": lambda p: RFE(p.without_memory().shape, rng=rng()),
}
TIRED_SLOWLY = {
    "ucb-ad, rewards unknown": lambda p: UCBAD(p.without_adherence().without_rewards()),
    "ucb-ad, may repel": lambda p: UCBAD(p.without_adherence(), may_repel=True),
    "thompson, budget": lambda p: Thompson(p.without_adherence(), rng=rng(), budget=1.0),
    "rfe, budget": lambda p: RFE(p.shape, rng=rng(), budget=1.0, reward=p.mdp.reward),
    "structured, budget": lambda p: Structured(p.shape, rng=rng(), budget=1.0),
    "structured, blind": lambda p: Structured(p.without_memory().shape, rng=rng()),
}


def tired(memory, plain):
    """A person who listens less and less."""
    fading = 0.6 ** np.arange(memory.n_levels)
    person = counsel.Human(plain.human.policy[0], lift=0.7, memory=memory, fading=fading)
    return counsel.AdviceProblem(plain.mdp, person)


@pytest.mark.parametrize("name", TIRED)
def test_every_learner_passes_on_a_person_with_a_memory(name):
    check_learner(TIRED[name], tired(counsel.Memory.refusals(1), small_and_random()))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name, marks=pytest.mark.long if name.startswith(("rfe, b", "structured")) else ()
        )
        for name in TIRED | TIRED_SLOWLY
    ],
)
def test_every_learner_passes_where_levels_are_drawn(name):
    problem = tired(counsel.Memory.dose(0.5, 3), make("night-shift"))
    check_learner((TIRED | TIRED_SLOWLY)[name], problem)


class Deaf(UCBAD):
    """Knows the memory, and advises as if everybody were rested."""

    def advise(self, step, state, level=None):
        return super().advise(step, state, 0)


class Flat(UCBAD):
    """Knows the memory, and has one plan for all levels."""

    @property
    def policy(self):
        advice = super().policy.advice
        return counsel.Policy(advice[0], n_actions=self.setting.policy.shape[2])


class Blurs(UCBAD):
    """Learns from episodes without levels, as if the person were always on level 0."""

    def update(self, batch):
        if batch.level is None:
            return
        super().update(batch)


@pytest.mark.parametrize(
    ("build", "fault"),
    [
        (lambda p: Deaf(p.without_adherence()), "it must read the level"),
        (lambda p: Flat(p.without_adherence()), r"knows the memory \(pieces=2\) but its policy"),
        (lambda p: Blurs(p.without_adherence()), "update takes episodes without levels"),
    ],
    ids=["deaf", "flat", "blurs"],
)
def test_a_learner_that_knows_the_memory_and_ignores_levels_does_not_pass(build, fault):
    with pytest.raises(counsel.CounselError, match=fault):
        check_learner(build, tired(counsel.Memory.pieces(2), make("night-shift")))


class Repeats(UCBAD):
    """Learns from each batch twice when in bulk."""

    def update(self, batch):
        super().update(batch)
        super().update(batch)


class Wavers(Thompson):
    """Draws anew whenever it is asked."""

    @property
    def policy(self):
        self._due = True
        return super().policy


class Forgets(UCBAD):
    """Does not put its counts back."""

    def restore(self, state):
        super().restore(state | {"given": 0 * state["given"], "matched": 0 * state["matched"]})


class Counts(UCBAD):
    """Ends an episode that never was."""

    def finish(self, *, terminated=False):
        super().finish(terminated=terminated)
        self.matches.belief.given[:] += 50
        self._due = True


class Shouts(UCBAD):
    """Advises what does not exist."""

    def advise(self, step, state):
        return 99


class Chances:
    """Is not decided by its seeds."""

    def __call__(self, problem):
        rng = np.random.default_rng()  # the fault: no seed
        return Thompson(problem.without_adherence(), rng=rng)


@pytest.mark.parametrize(
    ("build", "fault"),
    [
        (lambda p: Repeats(p.without_adherence()), "teach something else"),
        (lambda p: Wavers(p.without_adherence(), rng=rng()), "differently|nothing was learnt"),
        (lambda p: Forgets(p.without_adherence()), "suspended and resumed"),
        (lambda p: Counts(p.without_adherence()), "teach something else|anything observed"),
        (lambda p: Shouts(p.without_adherence()), "advise returned 99"),
        (Chances(), "same seeds"),
    ],
    ids=["repeats", "wavers", "forgets", "counts", "shouts", "chances"],
)
def test_a_learner_with_a_fault_does_not_pass(build, fault):
    with pytest.raises(counsel.CounselError, match=fault):
        check_learner(build, make("flappy-bird/greedy"))


class Peeks(UCBAD):
    """Plans on the true problem, from the start or once it has been asked ten times."""

    def __init__(self, problem, *, after):
        super().__init__(problem.without_adherence())
        self.truth, self.after = counsel.solve(problem).policy, after

    @property
    def policy(self):
        return self.truth if self.episode >= self.after else super().policy


class Spies(RFE):
    """Explores honestly, and plans on the problem that the simulator holds."""

    def explore(self, simulator, *, episodes, rng):
        super().explore(simulator, episodes=episodes, rng=rng)
        self._policy = counsel.solve(simulator.problem).policy


@pytest.mark.parametrize("after", [0, 10])
@pytest.mark.parametrize("world", ["night-shift", "flappy-bird-budget/greedy"])
def test_a_learner_that_plans_on_the_true_problem_does_not_pass(world, after):
    # It passed: every other check compares it with itself.
    with pytest.raises(CounselError, match="depends on the true adherence and on the true world"):
        check_learner(lambda p: Peeks(p, after=after), make(world))


def test_an_explorer_that_plans_on_the_simulators_problem_does_not_pass():
    with pytest.raises(CounselError, match=r"explore reads the adherence from simulator\.problem"):
        check_learner(lambda p: Spies(p.shape, rng=rng()), make("night-shift"))


class Ignores(UCBAD):
    """Overrides what it believes, and keeps the compiled loop, which knows nothing of that."""

    def believe(self):
        super().believe()
        self.matches.plan.pull[:] = np.minimum(self.matches.plan.pull, 0.3)

    def _loop(self):
        return ucb_episodes


class IgnoresLive(RFE):
    """Overrides what to try, and keeps the compiled loop that does not ask."""

    def advise(self, step, state):
        return self.shape.n_actions


def test_a_loop_that_ignores_an_overridden_method_is_named_as_the_fault():
    # It was reported as a fault of suspending: only there the method was called, and it differed.
    with pytest.raises(CounselError, match=r"^run does something else than policy and update"):
        check_learner(lambda p: Ignores(p.without_adherence()), make("flappy-bird/greedy"))


def test_an_explorer_that_ignores_an_overridden_method_is_named(monkeypatch):
    monkeypatch.setattr("counsel.learning.rfe.is_overridden", lambda *_: False)
    with pytest.raises(CounselError, match=r"^explore ignores advise, which IgnoresLive overrides"):
        check_learner(lambda p: IgnoresLive(p.shape, rng=rng()), make("night-shift"))


def test_a_suspended_run_goes_on_bit_for_bit_in_the_compiled_loop(tmp_path):
    problem = make("flappy-bird/safe")
    simulator = counsel.Simulator(problem)
    straight, halved, again = (UCBAD(problem.without_adherence()) for _ in range(3))
    chance = np.random.default_rng(0)
    *_, whole = counsel.learn(straight, simulator, episodes=3000, rng=chance)
    chance = np.random.default_rng(0)
    *_, record = counsel.learn(halved, simulator, episodes=1200, rng=chance)
    suspend(halved, tmp_path / "run.npz", rng=chance, record=record)
    chance, record = resume(again, tmp_path / "run.npz")
    *_, last = counsel.learn(again, simulator, episodes=1800, rng=chance, after=record)
    assert (last.episode, last.value_gap) == (whole.episode, whole.value_gap)
    assert last.regret == pytest.approx(whole.regret, rel=1e-12)  # sums in another order
    np.testing.assert_array_equal(again.given, straight.given)
    np.testing.assert_array_equal(again.policy.advice, straight.policy.advice)


@pytest.mark.parametrize("name", ["ucb-ad", "thompson", "rfe", "structured"])
def test_episodes_of_another_problem_are_refused_before_anything_is_counted(name):
    # Compiled loops would read and write beyond their arrays.
    learner, other = LEARNERS[name](make("night-shift")), make("flappy-bird/safe")
    never = counsel.Policy.never(horizon=20, n_states=141, n_actions=3)
    batch = counsel.Simulator(other).play(never, episodes=3, rng=rng())
    with pytest.raises(counsel.CounselError, match=r"decisions; the problem has|it runs from 0 to"):
        learner.update(batch)
    for move in (
        Move(0, 99, 0, 0, 0.0, 0),
        Move(0, 0, 0, 7, 0.0, 0),
    ):
        fresh = LEARNERS[name](make("night-shift"))
        fresh.observe(move)
        with pytest.raises((counsel.CounselError, IndexError)):
            fresh.finish()


@pytest.mark.parametrize(
    ("name", "array", "spoil"),
    [
        ("structured", "_links", lambda a: a[:3]),
        ("structured", "_links", lambda a: a + 10**6),
        ("structured", "_head", lambda a: a + 10**6),
        ("structured", "_used", lambda a: a - 10**6),
        ("structured", "_visits", lambda a: a.astype(np.float64)),
        ("rfe", "_key", lambda a: a[::-1].copy()),
        ("rfe", "_key", lambda a: a + 10**9),
        ("rfe", "_times", lambda a: a[:-1]),
        ("ucb-ad", "matched", lambda a: a + 10**6),
    ],
)
def test_a_file_that_was_spoilt_is_refused(name, array, spoil, tmp_path):
    problem = make("night-shift")
    learner = LEARNERS[name](problem)
    *_, record = counsel.learn(
        learner, counsel.Simulator(problem), episodes=40, every=10, rng=rng()
    )
    honest = learner.state
    learner.state = lambda: honest() | {array: spoil(honest()[array])}
    suspend(learner, tmp_path / "run.npz", rng=rng(), record=record)
    with pytest.raises(counsel.CounselError, match=r"run\.npz"):
        resume(LEARNERS[name](problem), tmp_path / "run.npz")


def test_a_file_of_another_learner_is_refused(tmp_path):
    problem = make("flappy-bird/safe")
    simulator, learner = counsel.Simulator(problem), UCBAD(problem.without_adherence())
    *_, record = counsel.learn(learner, simulator, episodes=10, rng=rng())
    suspend(learner, tmp_path / "run.npz", rng=rng(), record=record)
    with pytest.raises(counsel.CounselError, match="contains a UCBAD, not a Thompson"):
        resume(Thompson(problem.without_adherence(), rng=rng()), tmp_path / "run.npz")
    with pytest.raises(counsel.CounselError, match="same settings"):
        resume(UCBAD(problem.without_adherence(), groups=[0, 1, 2]), tmp_path / "run.npz")
    with pytest.raises(counsel.CounselError, match="does not exist"):
        resume(learner, tmp_path / "none.npz")


class TakesEveryPieceForOne(UCBAD):
    """Fails where advice costs something else than 1."""

    def update(self, batch):
        if (self.setting.cost != 1.0).any():
            raise CounselError("every piece costs 1 here")
        super().update(batch)


def test_a_learner_is_also_tried_where_advice_has_costs():
    with pytest.raises(CounselError, match=r"^with costs of advice: every piece costs 1 here$"):
        check_learner(lambda p: TakesEveryPieceForOne(p.without_adherence()), make("night-shift"))


@pytest.mark.parametrize(
    "name", ["ucb-ad, kl", "thompson", "rfe, rewards unknown", "structured, pooled"]
)
def test_learners_pass_with_costs_that_change_with_the_step(name):
    problem = WORLDS["random"]()
    cost = np.random.default_rng(0).random(problem.policy.shape) * 2.0
    check_learner(LEARNERS[name], counsel.AdviceProblem(problem.mdp, problem.human, cost=cost))
