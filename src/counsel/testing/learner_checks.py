"""What every learner must do, ours and yours.

``check_learner`` does not test that a learner learns well; it tests that it can be trusted in the
loop, behind a service and in an experiment: that it keeps to what it may say, does not touch what
it was given, is decided by its seeds, and can be put away and taken out again.
"""

import copy
import pickle
import tempfile
from collections.abc import Callable
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


def check_learner(make: Callable[[AdviceProblem], Any], problem: AdviceProblem) -> None:
    """Check on one problem that a kind of learner can be trusted in the loop and in a service.

    It must keep to what may be said, be decided by its seeds, keep its policy until it learns,
    learn alike live and in bulk, take no note of an empty episode, pickle, go on where it was
    suspended, run in ``learn``, and leave the problem as it is. Whether it learns well is not
    tested.

    Parameters
    ----------
    make
        Builds a new learner for a problem: ``lambda p: UCBAD(p.without_adherence())``, say. A
        learner that uses chance of its own must be seeded here.
    problem
        A world and a person to try it on.

    Raises
    ------
    CounselError
        When the learner fails; it says what is wrong.

    Examples
    --------
    A learner that passes, and one whose seed was forgotten:

    >>> from numpy.random import default_rng
    >>> from counsel import Thompson
    >>> from counsel.worlds import make
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
        _keeps_to_what_may_be_said,
        _is_decided_by_its_seeds,
        _keeps_a_policy_until_it_learns,
        _learns_alike_live_and_in_bulk,
        _ends_an_empty_episode_without_a_trace,
        _can_be_pickled,
        _can_be_suspended,
        _goes_through_the_loop,
    ):
        check(make, problem, simulator)
    _hold(pickle.dumps(problem) == before, "the learner changed the problem")


def _hold(holds: object, fault: str) -> None:
    if not holds:
        raise CounselError(fault)


def _played(learner: Any, simulator: Simulator, *, episodes: int, seed: int) -> list[Episodes]:  # noqa: ANN401
    """Play and update by turns."""
    rng, seen = np.random.default_rng(seed), []
    for _ in range(episodes):
        seen.append(simulator.play(learner.policy, episodes=1, rng=rng))
        learner.update(seen[-1])
    return seen


def _same(one: Any, other: Any) -> bool:  # noqa: ANN401 (policies)
    return bool(
        np.array_equal(one.advice, other.advice)
        and all(
            np.array_equal(getattr(one.random, name), getattr(other.random, name))
            for name in ("cell", "advice", "probability")
            if hasattr(one, "random")
        )
    )


def _keeps_to_what_may_be_said(
    make: Callable[[AdviceProblem], Any], problem: AdviceProblem, simulator: Simulator
) -> None:
    learner = make(problem)
    for _ in range(3):
        problem.check_fits(learner.policy)
        _played(learner, simulator, episodes=10, seed=0)
    advice = learner.advise(0, int(problem.mdp.start.argmax()))
    _hold(
        isinstance(advice, int) and 0 <= advice <= problem.defer,
        f"advise returned {advice!r}; it must be a whole number from 0 to {problem.defer}",
    )


def _is_decided_by_its_seeds(
    make: Callable[[AdviceProblem], Any], problem: AdviceProblem, simulator: Simulator
) -> None:
    runs = [_played(make(problem), simulator, episodes=EPISODES, seed=1) for _ in range(2)]
    alike = all(
        np.array_equal(a.advice, b.advice) and np.array_equal(a.state, b.state)
        for a, b in zip(*runs, strict=True)
    )
    _hold(alike, "two learners with the same seeds advise differently")


def _keeps_a_policy_until_it_learns(
    make: Callable[[AdviceProblem], Any], problem: AdviceProblem, simulator: Simulator
) -> None:
    learner = make(problem)
    _played(learner, simulator, episodes=5, seed=2)
    _hold(_same(learner.policy, learner.policy), "policy changes though nothing was learnt")


def _learns_alike_live_and_in_bulk(
    make: Callable[[AdviceProblem], Any], problem: AdviceProblem, simulator: Simulator
) -> None:
    live, bulk = make(problem), make(problem)
    for batch in _played(bulk, simulator, episodes=EPISODES, seed=3):
        _ = live.policy
        columns = (batch.step, batch.state, batch.advice, batch.action, batch.reward)
        for row in zip(*(c.tolist() for c in (*columns, batch.next_state)), strict=True):
            live.observe(Move(*row))
        live.finish(terminated=bool(batch.terminated[0]))
    _hold(_same(live.policy, bulk.policy), "observe and finish teach something else than update")


def _ends_an_empty_episode_without_a_trace(
    make: Callable[[AdviceProblem], Any], problem: AdviceProblem, simulator: Simulator
) -> None:
    learner = make(problem)
    _played(learner, simulator, episodes=5, seed=4)
    policy = learner.policy
    learner.finish()
    learner.finish()
    _hold(_same(policy, learner.policy), "finish without anything observed changes the policy")


def _can_be_pickled(
    make: Callable[[AdviceProblem], Any], problem: AdviceProblem, simulator: Simulator
) -> None:
    learner = make(problem)
    _played(learner, simulator, episodes=5, seed=5)
    twins = (pickle.loads(pickle.dumps(learner)), copy.deepcopy(learner))
    _played(learner, simulator, episodes=5, seed=6)
    for twin in twins:
        _played(twin, simulator, episodes=5, seed=6)
        _hold(_same(twin.policy, learner.policy), "a pickled learner goes on differently")


def _can_be_suspended(
    make: Callable[[AdviceProblem], Any], problem: AdviceProblem, simulator: Simulator
) -> None:
    straight, halved = make(problem), make(problem)
    rng = np.random.default_rng(7)
    whole = list(learn(straight, simulator, episodes=EPISODES, every=5, records=4, rng=rng))
    rng = np.random.default_rng(7)
    *_, record = learn(halved, simulator, episodes=EPISODES // 2, every=5, records=2, rng=rng)
    _ = halved.policy  # a plan that was made is put away too
    with tempfile.TemporaryDirectory() as folder:
        suspend(halved, Path(folder) / "run.npz", rng=rng, record=record)
        again = make(problem)
        rng, record = resume(again, Path(folder) / "run.npz")
    more = learn(
        again, simulator, episodes=EPISODES // 2, every=5, records=2, rng=rng, after=record
    )
    *_, last = more
    _hold(
        _same(again.policy, straight.policy) and last.regret == whole[-1].regret,
        "a run that was suspended and resumed differs from one that was not",
    )


def _goes_through_the_loop(
    make: Callable[[AdviceProblem], Any], problem: AdviceProblem, simulator: Simulator
) -> None:
    for every in (1, 7, "doubling"):
        rng = np.random.default_rng(8)
        records: list[Record] = list(
            learn(make(problem), simulator, episodes=EPISODES, every=every, records=6, rng=rng)
        )
        _hold(records[-1].episode == EPISODES, "the loop does not end with the last episode")
        gaps = [record.value_gap for record in records]
        overspends = getattr(make(problem), "budget", None) is not None
        _hold(
            overspends or min(gaps) > -1e-9 * max(1.0, problem.mdp.reward_size),
            "a policy beats the best",
        )
