"""Conformance checks of learners, ours and yours."""

import copy
import pickle
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from counsel._arrays import layers, sealed, unlayered
from counsel.errors import CounselError
from counsel.learning.charges import net_value
from counsel.learning.files import resume, suspend
from counsel.learning.learn import Record, learn
from counsel.learning.learner import Explorer, Runner
from counsel.model.advice_costs import given_cost
from counsel.model.human import Human
from counsel.model.mdp import MDP
from counsel.model.problem import AdviceProblem
from counsel.planning.evaluate import evaluate
from counsel.simulate.advisers import level_adviser
from counsel.simulate.episodes import Episodes
from counsel.simulate.move import Move
from counsel.simulate.simulator import Simulator

EPISODES = 60

Make = Callable[[AdviceProblem], Any]


def check_learner(make: Make, problem: AdviceProblem) -> None:
    """Check on one problem that a kind of learner can be trusted in the loop and in a service.

    The learner must give allowed advice only, depend on its seeds alone, not see the truth, keep
    its policy until it learns, learn the same live and in bulk, ignore an empty episode, pickle, do
    the same in a loop of its own, resume where it was suspended, run in ``learn``, and leave the
    problem unchanged; it need not learn well. It must also run where some pieces of advice cost 2
    instead of 1. A learner whose guarantee is for a number of episodes must declare at least 60.

    A learner that is built for another person or another world, and given the same episodes, must
    advise the same in at least one of the two cases: one that sees both plans on the truth.

    On a person with a memory, a learner that knows the memory (``LevelLearner``) must have a policy
    with a plane for each level, advise by the level, and refuse episodes without levels. A learner
    without an attribute ``memory`` is blind to the memory, which is allowed.

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
        _check_levels,
        _check_advice,
        _check_seeds,
        _check_stable_policy,
        _check_secret,
        _check_live_and_bulk,
        _check_empty_episode,
        _check_pickling,
        _check_own_loop,
        _check_exploring,
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


def _check_levels(make: Make, problem: AdviceProblem, simulator: Simulator) -> None:
    """Check that a learner which knows the memory learns and advises by its levels."""
    learner = make(problem)
    if getattr(learner, "memory", None) is None:
        return  # blind to the memory, or there is none
    M = problem.n_levels
    _require(
        learner.policy.levels == M,
        f"the learner knows the memory ({learner.memory.name}) but its policy has "
        f"{learner.policy.levels or 'no'} levels; give it a plane for each of {M} levels",
    )
    _play(learner, simulator, episodes=EPISODES, seed=10)
    if not isinstance(learner, Explorer):
        _check_advice_by_level(learner)
    batch = simulator.play(learner.policy, episodes=1, rng=np.random.default_rng(10))
    try:
        learner.update(replace(batch, level=None))
    except CounselError:
        return
    raise CounselError("update takes episodes without levels though the learner knows the memory")


def _check_advice_by_level(learner: Any) -> None:  # noqa: ANN401
    advise, policy = level_adviser(learner.advise, learner.memory), learner.policy
    left = policy.left_after(0)
    for level, step, state in np.ndindex(policy.advice.shape[-3:]):
        said, planned = advise(step, state, level), policy.at(step, state, left, level)
        _require(
            said in planned,
            f"advise returns {said} at step {step} in state {state} on level {level}, where the "
            f"policy has {max(planned, key=planned.__getitem__)}; it must read the level",
        )


def _check_advice(make: Make, problem: AdviceProblem, simulator: Simulator) -> None:
    learner = make(problem)
    for _ in range(3):
        problem.check_fits(learner.policy)
        _play(learner, simulator, episodes=10, seed=0)
    advise = level_adviser(learner.advise, problem.memory)
    advice = advise(0, int(problem.mdp.start.argmax()), problem.level_of(None))
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


def _check_secret(make: Make, problem: AdviceProblem, simulator: Simulator) -> None:
    """Check that a learner does not see the whole truth.

    It may know the world, or the machine's rewards, which the adherence is part of. So its advice
    may depend, other than through the episodes, on the world or on the adherence: not on both.
    """
    people = [_with_adherence(problem, share) for share in (0.0, 1.0)]
    sees_person = any(_tells_apart(make, problem, other, simulator) for other in people)
    if sees_person and _tells_apart(make, problem, _with_other_moves(problem), simulator):
        raise CounselError(
            "the policy depends on the true adherence and on the true world, not on the episodes "
            "alone; build the learner from problem.without_adherence() or problem.shape: it must "
            "not see more"
        )
    if isinstance(make(problem), Explorer):
        for other in people:
            disguised = copy.copy(simulator)
            object.__setattr__(disguised, "problem", other)
            learners = make(problem), make(problem)
            for learner, played in zip(learners, (simulator, disguised), strict=True):
                learner.explore(played, episodes=20, rng=np.random.default_rng(9))
            _require(
                _same_policy(learners[0].policy, learners[1].policy),
                "explore reads the adherence from simulator.problem; it must learn from the "
                "episodes only",
            )


def _tells_apart(
    make: Make, problem: AdviceProblem, other: AdviceProblem, simulator: Simulator
) -> bool:
    """Return whether learners built for two problems advise differently after the same episodes."""
    learner, twin, rng = make(problem), make(other), np.random.default_rng(9)
    for episodes in (1, 1, 8, 30):
        if not _same_policy(learner.policy, twin.policy):
            return True
        batch = simulator.play(learner.policy, episodes=episodes, rng=rng)
        learner.update(batch)
        twin.update(batch)
    return not _same_policy(learner.policy, twin.policy)


def _with_adherence(problem: AdviceProblem, share: float) -> AdviceProblem:
    """Return the same problem with a person whose adherence, or lift, is this in every cell."""
    human = problem.human
    scale = "lift" if human.shares_lift else "adherence"
    values: dict[str, Any] = {scale: np.full_like(human.input_values, share)}
    if human.memory is not None:
        values = {"lift": share, "fading": None}
    twin = Human(unlayered(human.policy), **human.inputs | values)
    return AdviceProblem(problem.mdp, twin, given_cost(problem.cost))


def _with_other_moves(problem: AdviceProblem) -> AdviceProblem:
    """Return the same problem in a world where every move leads to the state after the true one."""
    mdp, kernel = problem.mdp, problem.mdp.kernel
    row = np.repeat(np.arange(kernel.n_rows), np.diff(kernel.indptr))
    after = ((kernel.next_state + 1) % problem.n_states).astype(np.int32)
    order = np.lexsort((after, row))
    moved = replace(
        kernel, next_state=sealed(after[order]), probability=sealed(kernel.probability[order])
    )
    world = MDP(
        moved,
        unlayered(layers(mdp.reward)),
        horizon=mdp.horizon,
        start=mdp.start,
        allowed=unlayered(layers(mdp.allowed)),
    )
    return AdviceProblem(world, problem.human, given_cost(problem.cost))


def _check_stable_policy(make: Make, problem: AdviceProblem, simulator: Simulator) -> None:
    learner = make(problem)
    _play(learner, simulator, episodes=5, seed=2)
    is_stable = _same_policy(learner.policy, learner.policy)
    _require(is_stable, "policy changes though nothing was learnt")


def _check_live_and_bulk(make: Make, problem: AdviceProblem, simulator: Simulator) -> None:
    live, bulk = make(problem), make(problem)
    for batch in _play(bulk, simulator, episodes=EPISODES, seed=3):
        _ = live.policy
        level = np.zeros_like(batch.state) if batch.level is None else batch.level
        columns = (batch.step, batch.state, batch.advice, batch.action, batch.reward)
        rows = (column.tolist() for column in (*columns, batch.next_state, level))
        for row in zip(*rows, strict=True):
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


def _check_own_loop(make: Make, problem: AdviceProblem, simulator: Simulator) -> None:
    """Check that ``run`` does what ``policy`` and ``update`` do in turn."""
    learner, plain = make(problem), make(problem)
    if not (_has_own_loop(learner) and simulator.is_compiled):
        return
    rng = np.random.default_rng(6)
    gaps, _ = learner.run(simulator, best=0.0, episodes=EPISODES, every=1, rng=rng)
    rng, values = np.random.default_rng(6), []
    for _ in range(EPISODES):
        values.append(net_value(evaluate(problem, plain.policy), plain.penalty))
        plain.update(simulator.play(plain.policy, episodes=1, rng=rng))
    size = max(1.0, problem.mdp.reward_size)
    _require(
        _same_policy(learner.policy, plain.policy)
        and np.allclose(-gaps, values, rtol=0.0, atol=1e-9 * size),
        "run does something else than policy and update in turn; if a subclass overrides a method "
        "that run stands for, can_run must be False",
    )


def _has_own_loop(learner: Any) -> bool:  # noqa: ANN401
    return isinstance(learner, Runner) and learner.can_run


def _check_exploring(make: Make, problem: AdviceProblem, simulator: Simulator) -> None:
    """Check that an inherited ``explore`` calls the methods that a subclass overrides."""
    kind = type(make(problem))
    if not isinstance(make(problem), Explorer):
        return
    for name in ("advise", "update"):
        owner, explorer = (_owner(kind, method) for method in (name, "explore"))
        if owner is explorer or not issubclass(owner, explorer):
            continue
        learner = make(problem)
        calls = _count_calls(learner, name)
        learner.explore(simulator, episodes=5, rng=np.random.default_rng(6))
        _require(
            calls,
            f"explore ignores {name}, which {owner.__name__} overrides; call it, or override "
            "explore too",
        )


def _owner(kind: type, name: str) -> type:
    """Return the class that a method comes from."""
    return next(base for base in kind.__mro__ if name in vars(base))


def _count_calls(learner: Any, name: str) -> list[str]:  # noqa: ANN401
    """Put a method that counts its calls into the place of one of the learner; return the calls."""
    calls, original = list[str](), getattr(learner, name)

    def counted(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 (stands for a method)
        calls.append(name)
        return original(*arguments, **named)

    setattr(learner, name, counted)
    return calls


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
