"""The loop that runs learners, and what an episode is charged.

What an episode costs is the *value gap* of the policy it began with: the value of the best policy
less that of this one (both less the penalty times the cost of advice, where there is a penalty),
computed exactly from the truth, which the learner never sees. Where the learner has a budget, the
best policy is the best within it; a policy that spends more may beat it, and its gap is then
negative. The *regret* is the sum of the gaps above 0. Every episode of a block is charged with the
policy the block began with; charging the one planned after it would flatter learners that explore
first. A learner that explores is charged with what it would advise, not with what it tries.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from counsel._arrays import brief, check_rng, whole
from counsel.errors import CounselError
from counsel.learning.charges import Penalty, net_value
from counsel.learning.learner import Explorer, Learner, Runner, check_episodes_left
from counsel.learning.levels import check_memory
from counsel.model.policy import Policy
from counsel.planning.evaluate import forward
from counsel.planning.prepared_problem import model_of
from counsel.planning.solve import solve
from counsel.simulate.simulator import Simulator

DOUBLING = "doubling"  # the schedule that updates after 1, 2, 4, 8, … episodes


@dataclass(frozen=True, slots=True)
class Record:
    """The performance of a learner after some episodes, as ``learn`` yields it.

    Attributes
    ----------
    episode
        Episodes played so far.
    value_gap
        How far the policy of the last episode falls short of the best, in units of reward.
    regret
        The sum of the value gaps above 0 of all episodes.
    advice_count
        Expected pieces of advice per episode of the last policy.
    seconds
        Wall time since the start.

    Examples
    --------
    >>> import numpy as np
    >>> from counsel import UCBAD, Simulator, learn, make
    >>> problem = make("night-shift")
    >>> learner = UCBAD(problem.without_adherence(), groups=[0, 1, 2], penalty=0.05)
    >>> *_, last = learn(learner, Simulator(problem), episodes=500, rng=np.random.default_rng(0))
    >>> last.episode, round(last.regret, 2), round(last.advice_count, 2)
    (500, 0.51, 1.98)
    """

    episode: int
    value_gap: float
    regret: float
    advice_count: float
    seconds: float


def learn(  # noqa: PLR0913 (who, where, how long, how often, and chance)
    learner: Learner,
    simulator: Simulator,
    *,
    episodes: int,
    every: int | str = 1,
    records: int = 1000,
    rng: Generator,
    after: Record | None = None,
) -> Iterator[Record]:
    """Run a learner against simulated people and yield its performance.

    Parameters
    ----------
    learner
        Any learner, e.g. ``UCBAD`` or one of your own. A learner that is blind to the memory of the
        person is measured against the best plan, which knows the memory.
    simulator
        The world and the person.
    episodes
        The number of episodes to play, at least 1.
    every
        The number of episodes between updates, or ``"doubling"``: after 1, 2, 4, 8, …
    records
        The approximate number of records, with those of ``after``; the last is always yielded.
    rng
        The generator of the episodes.
    after
        The last record of a run to continue: episodes, regret and time are added to it, and
        ``episodes`` is the number of further episodes.

    Yields
    ------
    Record
        The value gap, the regret, the pieces of advice and the time.

    Raises
    ------
    CounselError
        At the first record, if an argument is invalid, the learner does not fit the simulator, or
        its guarantee was declared for fewer episodes.

    Examples
    --------
    A learner that knows the ward and the nurse's habit, but not how much they listen. Regret grows
    less and less:

    >>> from numpy.random import default_rng
    >>> from counsel import UCBAD, Simulator, make
    >>> problem = make("night-shift")
    >>> learner = UCBAD(problem.without_adherence(), groups=[0, 1, 2], penalty=0.05)
    >>> run = learn(learner, Simulator(problem), episodes=400, records=4, rng=default_rng(0))
    >>> [(record.episode, round(record.regret, 2)) for record in run]
    [(100, 0.22), (200, 0.42), (300, 0.46), (400, 0.48)]
    """
    whole("episodes", episodes, least=1)
    whole("records", records, least=1)
    check_rng(rng)
    if every != DOUBLING:
        whole("every", every, least=1)
    if not isinstance(simulator, Simulator):
        raise CounselError(
            f"simulator is {brief(simulator)}; give a Simulator, or in a Gymnasium environment use "
            "counsel.learning.learn_live"
        )
    check_episodes_left(learner, episodes)
    simulator.problem.check_fits(learner.policy)
    check_memory(learner, simulator.problem.memory)
    ledger = _Ledger(simulator, learner.penalty, getattr(learner, "budget", None), after)
    step = max(1, (ledger.before + episodes) // records)
    if every != DOUBLING:
        step = -(-step // int(every)) * int(every)
    is_plain = simulator.is_compiled and every != DOUBLING
    if isinstance(learner, Runner) and learner.can_run and is_plain:
        best, every = ledger.best, int(every)
        for first in range(0, episodes, step):
            size = min(step, episodes - first)
            gaps, counts = learner.run(simulator, best=best, episodes=size, every=every, rng=rng)
            # One after the other, so that the sum does not depend on how a run was cut.
            ledger.regret = float(np.cumsum(np.append(ledger.regret, np.maximum(gaps, 0.0)))[-1])
            yield ledger.record(first + size, float(gaps[-1]), float(counts[-1]))
        return
    played, shown = 0, 0
    explorer = learner if isinstance(learner, Explorer) else None
    block = max(1, ledger.before) if every == DOUBLING else int(every)
    while played < episodes:
        size = min(block, episodes - played)
        policy = learner.policy
        gap, pieces = ledger.evaluate(policy)
        if explorer is not None:
            explorer.explore(simulator, episodes=size, rng=rng)
        else:
            learner.update(simulator.play(policy, episodes=size, rng=rng))
        played += size
        ledger.regret += size * max(gap, 0.0)
        if played - shown >= step or played == episodes:
            shown = played
            yield ledger.record(played, gap, pieces)
        if every == DOUBLING:
            block = ledger.before + played


class _Ledger:
    """Computes the regret from the truth."""

    def __init__(
        self, simulator: Simulator, penalty: Penalty, budget: float | None, after: Record | None
    ) -> None:
        self._problem, self._model = simulator.problem, model_of(simulator.problem)
        self.penalty = penalty
        price = penalty if budget is None else None
        self.best = solve(self._problem, penalty=price, budget=budget).penalised_value
        self.before = 0 if after is None else after.episode
        self.regret = 0.0 if after is None else after.regret
        self._begin = time.perf_counter() - (0.0 if after is None else after.seconds)
        self._last: tuple[Policy, float, float] | None = None

    def evaluate(self, policy: Policy) -> tuple[float, float]:
        """Return the value gap of a policy and its expected pieces of advice."""
        if self._last is None or not _are_same(policy, self._last[0]):
            evaluation = forward(self._problem, self._model, policy)
            gap = self.best - net_value(evaluation, self.penalty)
            self._last = (policy, gap, evaluation.advice_count)
        return self._last[1:]

    def record(self, episode: int, gap: float, pieces: float) -> Record:
        """Return the record after so many episodes."""
        seconds = time.perf_counter() - self._begin
        return Record(self.before + episode, gap, self.regret, pieces, seconds)


def _are_same(policy: Policy, other: Policy) -> bool:
    """Return whether two policies of a learner are known to give the same advice."""
    if policy is other:
        return True
    return (
        policy.random is other.random
        and policy.advice.shape == other.advice.shape
        and policy.advice.tobytes() == other.advice.tobytes()
    )
