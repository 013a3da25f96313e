"""Learning within a budget: what it is charged with, and that it gets there."""

import numpy as np
import pytest

import counsel
from counsel import RFE, UCBAD, Structured, Thompson
from counsel.worlds import make
from tests.support.each import each

BY_ADVICE = [0, 1, 2]


def rng(seed=0):
    return np.random.default_rng(seed)


LEARNERS = {
    "ucb-ad": lambda p, D: UCBAD(p.without_adherence(), budget=D, groups=BY_ADVICE),
    "thompson": lambda p, D: Thompson(p.without_adherence(), budget=D, rng=rng(), groups=BY_ADVICE),
    "rfe": lambda p, D: RFE(p.shape, rng=rng(), budget=D, reward=p.mdp.reward),
    "structured": lambda p, D: Structured(
        p.shape, rng=rng(), budget=D, groups=BY_ADVICE, reward=p.mdp.reward
    ),
}


@pytest.mark.slow
@each("budget", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("name", LEARNERS)
def test_they_come_to_the_best_within_the_budget(name, budget):
    problem = make("flappy-bird-budget/greedy")
    learner = LEARNERS[name](problem, budget)
    run = counsel.learn(
        learner, counsel.Simulator(problem), episodes=3000, every=50, records=10, rng=rng(1)
    )
    last = list(run)[-1]
    best = counsel.solve(problem, budget=budget)
    worth = counsel.evaluate(problem, learner.policy)
    assert worth.value == pytest.approx(best.value, abs=0.06)
    assert worth.advice_count <= budget + 0.05
    assert abs(last.value_gap) < 0.06


def test_the_gap_is_to_the_best_within_the_budget_and_overspending_is_no_merit():
    problem = make("flappy-bird-budget/greedy")

    class Talks(UCBAD):
        """Has a budget of one piece and advises as if it had none."""

        def _plan(self):
            return counsel.solve(problem).policy

    learner = Talks(problem.without_adherence(), budget=1.0)
    records = counsel.learn(learner, counsel.Simulator(problem), episodes=100, rng=rng())
    last = list(records)[-1]
    best = counsel.solve(problem, budget=1.0).value
    assert last.value_gap == pytest.approx(best - counsel.solve(problem).value, abs=1e-12)
    assert last.value_gap < 0.0
    assert last.regret == 0.0
    assert last.advice_count > 1.0


def test_live_advice_within_a_budget_is_drawn_where_the_policy_is():
    problem = make("flappy-bird-budget/greedy")
    learner = UCBAD(problem.without_adherence(), budget=0.5, rng=rng())
    (cell,) = learner.policy.random.cell
    step, state = divmod(int(cell), problem.n_states)
    options = learner.policy.at(step, state)
    drawn = np.array([learner.advise(step, state) for _ in range(2000)])
    for advice, chance in options.items():
        # 2,000 draws: four standard errors.
        error = 4 * np.sqrt(chance * (1 - chance) / 2000)
        assert (drawn == advice).mean() == pytest.approx(chance, abs=error)
    silent = UCBAD(problem.without_adherence(), budget=0.5)
    with pytest.raises(counsel.CounselError, match="is random; give rng"):
        silent.advise(step, state)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"budget": -1.0}, "budget is -1"),
        ({"budget": np.inf}, "budget is inf"),
        ({"budget": 1.0, "penalty": 0.1}, "one or the other"),
        ({"penalty": np.nan}, "penalty is nan"),
    ],
)
def test_limits_that_make_no_sense_are_refused(options, words):
    problem = make("night-shift")
    with pytest.raises(counsel.CounselError, match=words):
        UCBAD(problem.without_adherence(), **options)
    with pytest.raises(counsel.CounselError, match=words):
        RFE(problem.shape, rng=rng(), **options)
