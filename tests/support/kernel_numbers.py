"""What every kernel computes on small problems, to be run compiled and as plain Python.

As a script it prints the numbers as JSON.
"""

import json
import sys
import warnings

import numba
import numpy as np
from scipy.sparse import csr_array

import counsel
from counsel import baselines
from counsel.estimate.bounds import KL, PaperBonus, Theory, interval
from counsel.model.machine import machine_rewards
from counsel.worlds import make


def rng(seed=1):
    return np.random.default_rng(seed)


def small_problem(seed, *, sure=False, S=4, A=3, H=3):
    """Draw a problem; ``sure`` people do some things always, never, or all but always."""
    chance = rng(seed)
    transition = chance.dirichlet(np.full(S, 0.4), size=(S, A))
    transition[transition < 0.05] = 0.0
    transition /= transition.sum(axis=-1, keepdims=True)
    own = chance.dirichlet(np.full(A, 0.3), size=S)
    if sure:
        own = np.array([[1.0, 1e-300, 0.0], [1.0 - 1e-12, 0.0, 1e-12], [0.0, 1.0, 0.0], own[3]])
    mdp = counsel.MDP(transition, chance.normal(size=(S, A)), horizon=H)
    return counsel.AdviceProblem(mdp, counsel.Human(own, chance.random((S, A))))


def by_step(S=60, A=2, H=3):
    """Build a world whose rows change with the step and come unsorted, with zeros and repeats.

    Most states cannot be reached from the first.
    """
    chance, width = rng(7), 70
    begin = np.arange(0, width * S * A + 1, width)
    matrices = []
    for _ in range(H):
        p = chance.dirichlet(np.ones(width - 1), size=S * A)
        p = np.concatenate((p, np.zeros((S * A, 1))), axis=1)
        to = chance.integers(S // 2, S, size=p.shape)
        matrices.append(csr_array((p.ravel(), to.ravel(), begin), shape=(S * A, S)))
    start = np.eye(S)[0]
    mdp = counsel.MDP(matrices, chance.random((S, A)), horizon=H, start=start)
    return counsel.AdviceProblem(mdp, counsel.Human(np.full((S, A), 1.0 / A), 0.7))


def flat(*arrays):
    return [np.asarray(array, dtype=np.float64).ravel().tolist() for array in arrays]


def of_plans(problem):
    """Yield what planning says under every kind of limit."""
    yield "machine", flat(machine_rewards(problem), problem.machine().reward)
    required = np.arange(problem.n_states) % 3 == 0
    for name, limit in (
        ("free", {}),
        ("penalty", {"penalty": 0.1}),
        ("budget", {"budget": 1.5}),
        ("hard", {"budget": 2, "hard": True}),
        ("required", {"required": required, "allow_reverse": False}),
        ("required, hard", {"required": required, "budget": problem.horizon, "hard": True}),
    ):
        plan = counsel.solve(problem, **limit)
        worth = counsel.evaluate(problem, plan.policy)
        yield name, flat(plan.value, plan.values, plan.policy.advice, worth.value)
    ranks = counsel.criticality(problem)
    yield "criticality", flat(ranks.lower, ranks.upper)
    plan = counsel.solve(problem, penalty=0.05)
    simulator = counsel.Simulator(problem)
    for policy in (plan.policy, counsel.solve(problem, budget=0.3).policy):
        played = simulator.play(policy, episodes=30, rng=rng())
        yield "play", flat(played.state, played.advice, played.action, played.next_state)
        counted = simulator.count(policy, episodes=30, rng=rng())
        yield "count", flat(counted.decisions, counted.rewards)


def learners(problem):
    """Yield every learner, in the variants that have kernels of their own.

    The linear programmes of UC-CFH are for few states.
    """
    known, shape, reward = problem.without_adherence(), problem.shape, machine_rewards(problem)
    lifted = counsel.AdviceProblem(problem.mdp, counsel.Human(problem.policy[0], lift=0.5))
    paid = {"reward": reward, "episodes": 40}
    yield "UCBAD", counsel.UCBAD(known)
    yield "UCBAD paper", counsel.UCBAD(known, bound=PaperBonus())
    yield "UCBAD theory", counsel.UCBAD(known, bound=Theory(delta=0.1, episodes=40))
    yield "UCBAD lift", counsel.UCBAD(lifted.without_adherence())
    yield "UCBAD repel", counsel.UCBAD(known, may_repel=True)
    yield "UCBAD rewards", counsel.UCBAD(known.without_rewards())
    yield "Thompson", counsel.Thompson(known, rng=rng())
    yield "Structured", counsel.Structured(shape, delta=0.1, rng=rng())
    yield "Structured paid", counsel.Structured(shape, rng=rng(), reward=problem.mdp.reward)
    yield "RFE", counsel.RFE(shape, delta=0.1, epsilon=0.5, rng=rng())
    yield "RFE paid", counsel.RFE(shape, rng=rng(), reward=problem.mdp.reward, budget=1.5)
    yield "EULER", baselines.EULER(shape, delta=0.1, rng=rng(), **paid)
    yield "UCBVI", baselines.UCBVI(shape, rng=rng(), **paid)
    yield (
        "UCBVI hoeffding",
        baselines.UCBVI(shape, rng=rng(), bonus=baselines.Hoeffding(), **paid),
    )
    yield "QLearning", baselines.QLearning(shape, rng=rng(), **paid)
    yield (
        "QLearning bernstein",
        baselines.QLearning(shape, rng=rng(), bonus=baselines.Bernstein(), scale=0.05, **paid),
    )
    yield "RFExpress", baselines.RFExpress(shape, rng=rng(), reward=reward)
    yield "UCFH", baselines.UCFH(shape, rng=rng(), reward=reward, scale=1e-6)
    if problem.n_states < 10:
        yield (
            "UCCFH",
            baselines.UCCFH(shape, rng=rng(), reward=reward, budget=1.0, scale=1e-6),
        )


def of_learners(problem, *, episodes):
    """Yield what learners know after playing, being told, and being put back as they were."""
    simulator = counsel.Simulator(problem)
    for name, learner in learners(problem):
        list(counsel.learn(learner, simulator, episodes=episodes, records=2, rng=rng(3)))
        learner.update(simulator.play(learner.policy, episodes=3, rng=rng(4)))
        learner.restore(learner.state())
        state = {field: np.asarray(value) for field, value in learner.state().items()}
        numbers = [state[field] for field in sorted(state) if state[field].dtype.kind in "biuf"]
        yield name, flat(*numbers, learner.policy.advice)
        if isinstance(learner, counsel.RFE | counsel.Structured):
            yield f"{name}, model", flat(counsel.solve(learner.model()).value, learner.uncertainty)


def of_bounds():
    """Yield confidence bounds at the edges and inside."""
    k, n = [0, 0, 1, 0, 5, 10, 10**9 - 1, 10**9], [0, 1, 1, 10, 10, 10, 10**9, 10**9]
    for bound in (KL(), KL(delta=0.1), Theory(delta=0.1, episodes=500), PaperBonus()):
        yield str(bound), flat(*interval(bound, k, n, groups=3, horizon=4, episode=100))


def numbers():
    """Return all of it, by name."""
    told = {}
    problems = {
        "drawn": small_problem(0),
        "sure": small_problem(1, sure=True),
        "by step": by_step(),
        "bird": make("flappy-bird-budget/greedy"),
    }
    for name, problem in problems.items():
        for what, arrays in of_plans(problem):
            told.setdefault(f"{name}: {what}", []).extend(arrays)
    for name, episodes in (("drawn", 20), ("bird", 6)):
        for what, arrays in of_learners(problems[name], episodes=episodes):
            told[f"{name}: {what}"] = arrays
    told.update(of_bounds())
    return told


if __name__ == "__main__":
    warnings.simplefilter("error")
    json.dump({"off": bool(numba.config.DISABLE_JIT), "numbers": numbers()}, sys.stdout)
