"""What ``learn`` evaluates: every policy once for as long as a learner says the same."""

import numpy as np
import pytest

import counsel
from counsel import Policy
from counsel.learning import learn as module
from counsel.worlds import make


class Scripted:
    """Follows a list of policies, one per episode."""

    penalty = 0.0

    def __init__(self, policies):
        self.policies, self.episode = policies, 0

    @property
    def policy(self):
        return self.policies[min(self.episode, len(self.policies) - 1)]

    def update(self, batch):
        self.episode += len(batch)


@pytest.fixture
def evaluated(monkeypatch):
    policies, forward = [], module.forward

    def spy(problem, model, policy):
        policies.append(policy)
        return forward(problem, model, policy)

    monkeypatch.setattr(module, "forward", spy)
    return policies


def records_of(policies):
    problem, rng = make("night-shift"), np.random.default_rng(0)
    learner, simulator = Scripted(policies), counsel.Simulator(problem)
    return list(counsel.learn(learner, simulator, episodes=len(policies), rng=rng))


def test_a_policy_is_evaluated_again_only_if_it_gives_other_advice(evaluated):
    best = counsel.solve(make("night-shift")).policy
    silent = np.full((12, 4), 3)
    policies = [best, best, *(Policy(silent, n_actions=3) for _ in range(3)), best]
    records = records_of(policies)
    assert evaluated == [policies[0], policies[2], policies[5]]
    gaps = [record.value_gap for record in records]
    assert gaps[0] == gaps[1] == gaps[5] < gaps[2] == gaps[3] == gaps[4]
    assert records[-1].regret == pytest.approx(3 * gaps[2])


def test_policies_that_differ_only_in_their_random_cells_are_evaluated_each(evaluated):
    problem = make("night-shift")
    policies = [counsel.solve(problem, budget=budget).policy for budget in (1.9, 2.0, 2.1)]
    tables = {policy.advice.tobytes() for policy in policies}
    assert len(tables) < len(policies)
    counts = [record.advice_count for record in records_of(policies)]
    assert evaluated == policies
    np.testing.assert_allclose(counts, [1.9, 2.0, 2.1])
