"""Advisers that do not learn: what they say, what they are worth, and that they can be run."""

import numpy as np
import pytest

import counsel
from counsel import Policy
from counsel.baselines import Fixed, always_best_action, as_if_all_listened
from counsel.testing import check_learner
from counsel.worlds import make
from tests.support.each import each_seed
from tests.support.problems import adapt, draw


@each_seed(range(30))
def test_always_the_best_action_is_the_best_of_the_world_itself(seed):
    dense = draw(seed)
    problem = adapt(dense)
    policy = always_best_action(problem)
    H, S, A = dense.r_hsa.shape
    allowed = np.broadcast_to(dense.allowed_hsa, (H, S, A))
    V = np.zeros(S)
    for h in reversed(range(H)):
        Q = np.where(allowed[h], dense.r_hsa[h] + dense.P_hsat[h] @ V, -np.inf)
        for s in range(S):
            said = policy.advice[h, s]
            if problem.mdp.over[h, s]:
                assert said == A
            else:
                assert Q[s, said] == pytest.approx(Q[s].max(), abs=1e-12)
        V = Q.max(axis=1)
    # Whoever listens always gets that value.
    listens = counsel.AdviceProblem(problem.mdp, counsel.Human(dense.pi_hsa, 1.0))
    assert counsel.evaluate(listens, policy).value == pytest.approx(dense.start_s @ V, abs=1e-9)


@each_seed(range(20))
def test_nobody_who_does_not_know_beats_the_optimum(seed):
    problem = adapt(draw(seed))
    for limit in ({}, {"penalty": 0.2}, {"budget": 0.6}):
        best = counsel.solve(problem, **limit)
        policy = as_if_all_listened(problem, **limit)
        worth = counsel.evaluate(problem, policy)
        price = limit.get("penalty", 0.0)
        if "budget" not in limit:
            assert worth.value - price * worth.advice_count <= best.penalised_value + 1e-9
    listens = counsel.AdviceProblem(problem.mdp, counsel.Human(problem.policy, 1.0))
    promised = counsel.solve(listens, penalty=0.2)
    same = counsel.evaluate(listens, as_if_all_listened(problem, penalty=0.2))
    assert same.value - 0.2 * same.advice_count == pytest.approx(promised.penalised_value)


def test_planning_as_if_all_listened_may_be_worse_than_silence():
    # The paper's opening: up the ladder pays if taken to the end, but half the way down is a fall.
    # Advised to climb, the person goes on at the second step only half the time.
    P = np.zeros((2, 3, 2, 3))
    P[0, 0, 0, 1] = P[0, 0, 1, 2] = P[1, 1, :, 1] = P[1, 2, :, 2] = P[0, 1, :, 1] = 1.0
    P[0, 2, :, 2] = P[1, 0, :, 0] = 1.0
    reward = np.zeros((2, 3, 2))
    reward[1, 1, 0], reward[1, 1, 1], reward[1, 2, :] = 1.0, -2.0, 0.4
    own = [[0.0, 1.0], [0.0, 1.0], [0.5, 0.5]]
    problem = counsel.AdviceProblem(
        counsel.MDP(P, reward, horizon=2), counsel.Human(own, [[0.9, 1.0], [0.5, 1.0], [0.9, 0.9]])
    )
    values = {
        "never": Policy.never(horizon=2, n_states=3, n_actions=2),
        "all listen": as_if_all_listened(problem),
        "best action": always_best_action(problem),
        "optimum": counsel.solve(problem).policy,
    }
    worth = {name: counsel.evaluate(problem, policy).value for name, policy in values.items()}
    assert worth["never"] == worth["optimum"] == pytest.approx(0.4)
    # 0.9 · (0.5 · 1 − 0.5 · 2) + 0.1 · 0.4
    assert worth["all listen"] == pytest.approx(-0.41)
    assert worth["best action"] == pytest.approx(-0.41)


@pytest.mark.parametrize("world", ["night-shift", "flappy-bird-budget/greedy"])
def test_they_pass_what_every_learner_must(world):
    def policies(problem):
        return (
            Policy.never(
                horizon=problem.horizon, n_states=problem.n_states, n_actions=problem.n_actions
            ),
            always_best_action(problem),
            as_if_all_listened(problem),
        )

    for i in range(3):
        check_learner(
            lambda p, i=i: Fixed(policies(p)[i], penalty=0.1, rng=np.random.default_rng(0)),
            make(world),
        )


def test_the_best_policy_is_no_learner():
    def optimum(problem):
        return Fixed(counsel.solve(problem, budget=0.7).policy, rng=np.random.default_rng(0))

    with pytest.raises(counsel.CounselError, match="true adherence and on the true world"):
        check_learner(optimum, make("night-shift"))


def test_a_fixed_adviser_says_what_its_policy_says():
    problem = make("night-shift")
    policy = counsel.solve(problem, budget=0.7).policy
    (cell,) = policy.random.cell
    h, s = divmod(int(cell), problem.n_states)
    adviser = Fixed(policy, budget=0.7, rng=np.random.default_rng(1))
    said = [adviser.advise(h, s) for _ in range(4000)]
    for advice, chance in policy.at(h, s).items():
        # Four standard errors of a share of 4000.
        assert np.mean(np.array(said) == advice) == pytest.approx(chance, abs=4 * 0.5 / 63)
    with pytest.raises(counsel.CounselError, match=r"advice\[h=\d, s=\d\] is random; give rng"):
        Fixed(policy).advise(h, s)
    with pytest.raises(counsel.CounselError, match="policy is 3; give a Policy"):
        Fixed(3)


def test_the_optimum_has_no_regret_and_silence_has_the_gap():
    problem = make("flappy-bird/safe")
    for policy, gap in (
        (counsel.solve(problem, penalty=0.2).policy, 0.0),
        (
            Policy.never(horizon=20, n_states=problem.n_states, n_actions=3),
            counsel.solve(problem, penalty=0.2).penalised_value
            - counsel.evaluate(
                problem, Policy.never(horizon=20, n_states=problem.n_states, n_actions=3)
            ).value,
        ),
    ):
        *_, last = counsel.learn(
            Fixed(policy, penalty=0.2),
            counsel.Simulator(problem),
            episodes=100,
            every=10,
            rng=np.random.default_rng(0),
        )
        assert last.regret == pytest.approx(100 * gap, abs=1e-9)


def test_a_policy_with_levels_advises_by_the_level():
    problem = counsel.make("flappy-bird/tiring")
    policy = counsel.solve(problem).policy
    adviser = Fixed(policy)
    for level in range(problem.n_levels):
        assert adviser.advise(1, 16, level) == policy.advice[level, 1, 16]
