"""Thompson sampling: draws against the posteriors they should come from, and that it learns."""

import numpy as np
import pytest

import counsel
from counsel import Thompson
from counsel.worlds import make
from tests.support.later import Later

stats = Later("scipy.stats")


def learner_of(problem, **options):
    return Thompson(problem.without_adherence(), rng=np.random.default_rng(0), **options)


def draws(learner, count):
    """Return many draws [n, bin]."""
    seen = []
    for _ in range(count):
        learner.believe()
        seen.append(learner.matches.belief.upper.copy())
    return np.array(seen)


@pytest.mark.parametrize("prior", [(1.0, 1.0), (0.5, 3.0)])
def test_draws_are_from_the_beta_posterior(prior):
    learner = learner_of(make("flappy-bird/safe"), groups=[0, 1, 2], prior=prior)
    learner.matches.belief.given[:] = (0, 10, 2000)
    learner.matches.belief.matched[:] = (0, 9, 1400)
    seen = draws(learner, 4000)
    for i, (k, n) in enumerate(((0, 0), (9, 10), (1400, 2000))):
        law = stats.beta(prior[0] + k, prior[1] + n - k)
        assert stats.kstest(seen[:, i], law.cdf).pvalue > 1e-4


def test_draws_of_a_shared_lift_are_from_its_posterior():
    mdp = counsel.MDP([[0, 0]], [[0.0, 1.0]], horizon=3)
    own = [[[0.9, 0.1]], [[0.5, 0.5]], [[0.2, 0.8]]]
    human = counsel.Human(own, lift=0.5, groups=np.zeros((1, 2), int))
    learner = learner_of(counsel.AdviceProblem(mdp, human))
    belief, habit = learner.matches.belief, learner.matches.groups.own_of_bin
    belief.given[:] = (12, 30, 7, 0, 22)
    belief.matched[:] = (6, 20, 6, 0, 22)
    seen = draws(learner, 4000)
    assert (seen == seen[:, :1]).all()  # one lift for all bins of the group
    x = np.linspace(0.0, 1.0, 20_001)[1:-1]
    match = habit[:, None] + x * (1.0 - habit[:, None])
    k, n = belief.matched[:, None], belief.given[:, None]
    score = (k * np.log(match) + (n - k) * np.log(1.0 - match)).sum(axis=0)
    upto = np.cumsum(np.exp(score - score.max()))
    upto /= upto[-1]
    # The grid of 400 cells moves the distribution by far less than 4,000 draws can show.
    assert stats.kstest(seen[:, 0], lambda v: np.interp(v, x, upto)).pvalue > 1e-4


@pytest.mark.parametrize("person", ["greedy", "safe"])
def test_it_learns_and_pooling_helps(person):
    problem = make(f"flappy-bird/{person}")
    simulator = counsel.Simulator(problem)

    def regret(**options):
        rng = np.random.default_rng(1)
        run = counsel.learn(
            learner_of(problem, **options), simulator, episodes=3000, every=5, rng=rng
        )
        records = list(run)
        assert records[-1].episode == 3000
        return records[-1].regret, records[-1].regret - records[len(records) // 2].regret

    whole, second_half = regret()
    pooled, _ = regret(groups=[0, 1, 2])
    assert second_half < 0.5 * whole
    assert pooled < whole


def test_the_same_seeds_give_the_same_run():
    problem = make("flappy-bird/safe")
    runs = []
    for _ in range(2):
        run = counsel.learn(
            learner_of(problem),
            counsel.Simulator(problem),
            episodes=300,
            every=10,
            rng=np.random.default_rng(3),
        )
        runs.append([(record.episode, record.value_gap, record.regret) for record in run])
    assert runs[0] == runs[1]


def test_what_cannot_be_a_prior_or_a_setting_is_refused():
    problem = make("night-shift")
    with pytest.raises(counsel.CounselError, match="prior"):
        learner_of(problem, prior=(0.0, 1.0))
    with pytest.raises(counsel.CounselError, match="rng"):
        Thompson(problem.without_adherence(), rng=0)
    with pytest.raises(counsel.CounselError, match="without_adherence"):
        Thompson(problem, rng=np.random.default_rng(0))
    with pytest.raises(counsel.CounselError, match="penalty"):
        learner_of(problem, penalty=-1.0)
