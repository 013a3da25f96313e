"""Conformance checks of learners, ours and yours."""

import copy
import pickle
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from counsel.errors import CounselError
from counsel.learning.files import resume, suspend
from counsel.learning.learn import Record, learn
from counsel.learning.learner import Move
from counsel.model.problem import AdviceProblem
from counsel.simulate.episodes import Episodes
from counsel.simulate.simulator import Simulator

EPISODES = 60

Make = Callable[[AdviceProblem], Any]


def check_learner(make: Make, problem: AdviceProblem) -> None:
    """Check on one problem that a kind of learner can be trusted in the loop and in a service.

    The learner must give allowed advice only, depend on its seeds alone, keep its policy until it
    learns, learn the same live and in bulk, ignore an empty episode, pickle, resume where it was
    suspended, run in ``learn``, and leave the problem unchanged; it need not learn well. It must
    also run where some pieces of advice cost 2 instead of 1.

    Parameters
    ----------
    make
        Builds a new learner for a problem: ``lambda p: UCBAD(p.without_adherence())``, say. A
        learner that uses chance of its own must be seeded here.
    problem
        The world and the person that the learner is tried on.

    Raises
    ------
    CounselError
        If the learner fails a check; the message says what is wrong.

    Examples
    --------
    A learner that passes, and one whose seed was forgotten:

    >>> from numpy.random import default_rng
    >>> from counsel import Thompson, make
    >>> problem = make("night-shift")
    >>> check_learner(lambda p: Thompson(p.without_adherence(), rng=default_rng(1)), problem)
    >>> check_learner(lambda p: Thompson(p.without_adherence(), rng=default_rng()), problem)
    Traceback (most recent call last):
        ...
    counsel.errors.CounselError: two learners with the same seeds advise differently
    """
    simulator = Simulator(problem)
    before = pickle.dumps(problem)
    for check in (
        _check_advice,
        _check_seeds,
        _check_stable_policy,
        _check_live_and_bulk,
        _check_empty_episode,
        _check_pickling,
        _check_suspension,
        _check_loop,
    ):
        check(make, problem, simulator)
    _require(pickle.dumps(problem) == before, "the learner changed the problem")
    _check_costs(make, problem)


def _require(holds: object, fault: str) -> None:
    if not holds:
        raise CounselError(fault)


def _play(learner: Any, simulator: Simulator, *, episodes: int, seed: int) -> list[Episodes]:  # noqa: ANN401
    """Play and update in turn; return the episodes."""
    rng, batches = np.random.default_rng(seed), []
    for _ in range(episodes):
        batches.append(simulator.play(learner.policy, episodes=1, rng=rng))
        learner.update(batches[-1])
    return batches


def _same_policy(first: Any, second: Any) -> bool:  # noqa: ANN401 (policies)
    return bool(
        np.array_equal(first.advice, second.advice)
        and all(
            np.array_equal(getattr(first.random, name), getattr(second.random, name))
            for name in ("cell", "advice", "probability")
            if hasattr(first, "random")
        )
    )


def _check_advice(make: Make, problem: AdviceProblem, simulator: Simulator) -> None:
    learner = make(problem)
    for _ in range(3):
        problem.check_fits(learner.policy)
        _play(learner, simulator, episodes=10, seed=0)
    advice = learner.advise(0, int(problem.mdp.start.argmax()))
    _require(
        isinstance(advice, int) and 0 <= advice <= problem.defer,
        f"advise returned {advice!r}; it must be a whole number from 0 to {problem.defer}",
    )


def _check_seeds(make: Make, problem: AdviceProblem, simulator: Simulator) -> None:
    runs = [_play(make(problem), simulator, episodes=EPISODES, seed=1) for _ in range(2)]
    alike = all(
        np.array_equal(a.advice, b.advice) and np.array_equal(a.state, b.state)
        for a, b in zip(*runs, strict=True)
    )
    _require(alike, "two learners with the same seeds advise differently")


def _check_stable_policy(make: Make, problem: AdviceProblem, simulator: Simulator) -> None:
    learner = make(problem)
    _play(learner, simulator, episodes=5, seed=2)
    is_stable = _same_policy(learner.policy, learner.policy)
    _require(is_stable, "policy changes though nothing was learnt")


def _check_live_and_bulk(make: Make, problem: AdviceProblem, simulator: Simulator) -> None:
    live, bulk = make(problem), make(problem)
    for batch in _play(bulk, simulator, episodes=EPISODES, seed=3):
        _ = live.policy
        columns = (batch.step, batch.state, batch.advice, batch.action, batch.reward)
        for row in zip(*(c.tolist() for c in (*columns, batch.next_state)), strict=True):
            live.observe(Move(*row))
        live.finish(terminated=bool(batch.terminated[0]))
    are_alike = _same_policy(live.policy, bulk.policy)
    _require(are_alike, "observe and finish teach something else than update")


def _check_empty_episode(make: Make, problem: AdviceProblem, simulator: Simulator) -> None:
    learner = make(problem)
    _play(learner, simulator, episodes=5, seed=4)
    policy = learner.policy
    learner.finish()
    learner.finish()
    is_same = _same_policy(policy, learner.policy)
    _require(is_same, "finish without anything observed changes the policy")


def _check_pickling(make: Make, problem: AdviceProblem, simulator: Simulator) -> None:
    learner = make(problem)
    _play(learner, simulator, episodes=5, seed=5)
    twins = (pickle.loads(pickle.dumps(learner)), copy.deepcopy(learner))
    _play(learner, simulator, episodes=5, seed=6)
    for twin in twins:
        _play(twin, simulator, episodes=5, seed=6)
        _require(_same_policy(twin.policy, learner.policy), "a pickled learner goes on differently")


def _check_suspension(make: Make, problem: AdviceProblem, simulator: Simulator) -> None:
    whole_run, first_half = make(problem), make(problem)
    rng = np.random.default_rng(7)
    whole = list(learn(whole_run, simulator, episodes=EPISODES, every=5, records=4, rng=rng))
    rng = np.random.default_rng(7)
    *_, record = learn(first_half, simulator, episodes=EPISODES // 2, every=5, records=2, rng=rng)
    _ = first_half.policy  # a plan that was made is put away too
    with tempfile.TemporaryDirectory() as folder:
        suspend(first_half, Path(folder) / "run.npz", rng=rng, record=record)
        resumed = make(problem)
        rng, record = resume(resumed, Path(folder) / "run.npz")
    half = {"episodes": EPISODES // 2, "every": 5, "records": 2}
    *_, last = learn(resumed, simulator, **half, rng=rng, after=record)
    is_same = _same_policy(resumed.policy, whole_run.policy) and last.regret == whole[-1].regret
    _require(is_same, "a run that was suspended and resumed differs from one that was not")


def _check_loop(make: Make, problem: AdviceProblem, simulator: Simulator) -> None:
    for every in (1, 7, "doubling"):
        rng = np.random.default_rng(8)
        records: list[Record] = list(
            learn(make(problem), simulator, episodes=EPISODES, every=every, records=6, rng=rng)
        )
        _require(records[-1].episode == EPISODES, "the loop does not end with the last episode")
        gaps = [record.value_gap for record in records]
        overspends = getattr(make(problem), "budget", None) is not None
        _require(
            overspends or min(gaps) > -1e-9 * max(1.0, problem.mdp.reward_size),
            "a policy beats the best",
        )


def _check_costs(make: Make, problem: AdviceProblem) -> None:
    """Check the same person where every second piece of advice costs 2."""
    cost = (1 + np.arange(problem.n_actions) % 2).astype(np.float64)
    priced = replace(problem, cost=cost)
    simulator = Simulator(priced)
    try:
        _check_live_and_bulk(make, priced, simulator)
        _check_loop(make, priced, simulator)
    except CounselError as fault:
        raise CounselError(f"with costs of advice: {fault}") from fault
