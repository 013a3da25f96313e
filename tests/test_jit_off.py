"""Kernels as plain Python (``NUMBA_DISABLE_JIT=1``): the same results, and no warning."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.slow

SCRIPT = """
import json, sys, warnings
warnings.simplefilter("error")
import numba
import numpy as np
import counsel
from counsel.estimate.intervals import KL, PaperBonus, Theory, interval
from counsel.model.problem import machine_rewards

numbers = {}


def note(name, *arrays):
    numbers[name] = [np.asarray(array, dtype=np.float64).ravel().tolist() for array in arrays]


def problem(seed, *, sure, S=4, A=3, H=3):
    rng = np.random.default_rng(seed)
    transition = rng.dirichlet(np.full(S, 0.4), size=(S, A))
    transition[transition < 0.05] = 0.0
    transition /= transition.sum(axis=-1, keepdims=True)
    own = rng.dirichlet(np.full(A, 0.3), size=S)
    if sure:
        own = np.array([[1.0, 1e-300, 0.0], [1.0 - 1e-12, 0.0, 1e-12], [0.0, 1.0, 0.0], own[3]])
    mdp = counsel.MDP(transition, rng.normal(size=(S, A)), horizon=H)
    return counsel.AdviceProblem(mdp, counsel.Human(own, rng.random((S, A))))


for seed, sure in ((0, False), (1, True)):
    world = problem(seed, sure=sure)
    note(f"machine {seed}", machine_rewards(world), world.machine().reward)
    for name, limit in (
        ("free", {}),
        ("penalty", {"penalty": 0.1}),
        ("budget", {"budget": 1.5}),
        ("hard", {"budget": 2, "hard": True}),
        ("required", {"required": [True, False, False, True], "allow_reverse": False}),
    ):
        plan = counsel.solve(world, **limit)
        worth = counsel.evaluate(world, plan.policy)
        note(f"{name} {seed}", plan.value, plan.values, plan.policy.advice, worth.value)
    ranks = counsel.criticality(world)
    note(f"criticality {seed}", ranks.lower, ranks.upper)
    simulator = counsel.Simulator(world)
    played = simulator.play(plan.policy, episodes=30, rng=np.random.default_rng(seed))
    note(f"play {seed}", played.state, played.advice, played.action, played.next_state)
    counted = simulator.count(plan.policy, episodes=30, rng=np.random.default_rng(seed))
    note(f"count {seed}", counted.decisions, counted.rewards)

k, n = [0, 0, 1, 0, 5, 10, 10**9 - 1, 10**9], [0, 1, 1, 10, 10, 10, 10**9, 10**9]
for bound in (KL(), KL(delta=0.1), Theory(delta=0.1, episodes=500), PaperBonus()):
    note(str(bound), *interval(bound, k, n, groups=3, horizon=4, episode=100))

world = problem(2, sure=False)
known, reward, rng = world.without_adherence(), machine_rewards(world), np.random.default_rng
lifted = counsel.AdviceProblem(world.mdp, counsel.Human(world.policy[0], lift=0.5))
for name, learner in (
    ("UCBAD", counsel.UCBAD(known)),
    ("UCBAD lift", counsel.UCBAD(lifted.without_adherence())),
    ("UCBAD repel", counsel.UCBAD(known, may_repel=True)),
    ("UCBAD rewards", counsel.UCBAD(known.without_rewards())),
    ("Thompson", counsel.Thompson(known, rng=rng(1))),
    ("Structured", counsel.Structured(world.shape, delta=0.1, rng=rng(1))),
    ("RFE", counsel.RFE(world.shape, delta=0.1, epsilon=0.5, rng=rng(1))),
    ("EULER", counsel.EULER(world.shape, delta=0.1, reward=reward, episodes=20, rng=rng(1))),
):
    list(counsel.learn(learner, counsel.Simulator(world), episodes=20, rng=rng(3)))
    state = {name: np.asarray(value) for name, value in learner.state().items()}
    note(name, *(state[key] for key in sorted(state) if state[key].dtype.kind in "biuf"))

json.dump({"off": bool(numba.config.DISABLE_JIT), "numbers": numbers}, sys.stdout)
"""


def results(*, jit):
    setting = {**os.environ, "NUMBA_DISABLE_JIT": "0" if jit else "1"}
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=setting, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr[-2000:]
    told = json.loads(run.stdout)
    assert told["off"] is not jit
    return told["numbers"]


def test_plans_episodes_bounds_and_learners_are_the_same_without_compiling():
    # Found by use: the hash of rows warned of an overflow, so that no world could be built where
    # warnings are errors. Logarithms of NumPy and of the compiler differ in the last bit.
    compiled, plain = results(jit=True), results(jit=False)
    assert compiled.keys() == plain.keys()
    for name, arrays in compiled.items():
        assert len(arrays) == len(plain[name]), name
        for one, other in zip(arrays, plain[name], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-15, err_msg=name)
