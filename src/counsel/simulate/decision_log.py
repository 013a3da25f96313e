"""Simulated episodes as a log with one row per decision.

Columns: ``episode``, ``step``, ``person``, ``state``, ``advice`` (empty for silence), ``action``,
``reward``, ``next_state``, ``terminated`` (the episode ended here) and ``truncated`` (the horizon
cut it here). States and actions appear by label if the problem has labels, else by number. An
episode that is over at its start has no row.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from counsel._arrays import Ints, brief
from counsel._tables import Column, Table, write_tables
from counsel.errors import CounselError
from counsel.model.problem import AdviceProblem
from counsel.model.rewards import check_observed
from counsel.simulate.episodes import Episodes

DECISION_COLUMNS: dict[str, type | str] = {
    "episode": str,
    "step": "int32",
    "person": str,
    "timestamp": str,
    "state": str,
    "advice": str,
    "advice_probability": "float64",
    "seen": "bool",
    "action": str,
    "reward": "float64",
    "next_state": str,
    "terminated": "bool",
    "truncated": "bool",
}
"""Every column of a log that Counsel writes, in order, with its type."""


def save_log(
    episodes: Episodes | Iterable[Episodes],
    path: str | os.PathLike[str],
    *,
    problem: AdviceProblem,
    person: str = "simulated",
) -> None:
    """Write episodes as a log with one row per decision, atomically.

    Parameters
    ----------
    episodes
        A result of ``Simulator.play``, or an iterable of several: only one batch needs to be in
        memory at a time.
    path
        A file name that ends in ``.csv`` or ``.parquet``.
    problem
        The problem of the episodes, with its labels.
    person
        The value of the column ``person``.

    Raises
    ------
    CounselError
        If the episodes are not from this problem, there are none, the file cannot be written, or
        ``.parquet`` is requested without pyarrow (extra ``parquet``).

    Examples
    --------
    ``counsel.fit`` reads this table. Six of its ten columns for the first decisions, which are
    silence, a match, and advice without a match:

    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import counsel
    >>> problem = counsel.make("night-shift")
    >>> policy = counsel.solve(problem, penalty=0.1).policy
    >>> rng = np.random.default_rng(24)
    >>> episodes = counsel.Simulator(problem).play(policy, episodes=1, rng=rng)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "log.csv"
    ...     counsel.save_log(episodes, file, problem=problem)
    ...     table = file.read_text().splitlines()
    >>> for line in table[:4]:
    ...     print(",".join(line.replace('"', "").split(",")[:6]))
    episode,step,person,state,advice,action
    0,0,simulated,stable,,wait
    0,1,simulated,drifting,check,check
    0,2,simulated,drifting,check,wait
    """
    batches = [episodes] if isinstance(episodes, Episodes) else episodes
    if not isinstance(batches, Iterable):
        raise CounselError(f"episodes is {brief(episodes)}; give a result of Simulator.play")
    write_tables(Path(path), _tables(batches, problem, person))


def _tables(batches: Iterable[Episodes], problem: AdviceProblem, person: str) -> Iterator[Table]:
    states, actions = problem.mdp.state_labels, problem.mdp.action_labels
    first = 0
    for batch in batches:
        _check_origin(batch, problem)
        last = np.zeros(batch.state.size, dtype=np.bool_)
        last[batch.first[1:][batch.lengths > 0] - 1] = True
        ended = batch.terminated[batch.episode]
        yield {
            "episode": Column(first + batch.episode),
            "step": Column(batch.step.astype(np.int32)),
            "person": Column(np.zeros(batch.state.size, dtype=np.int64), [person]),
            "state": _named(batch.state, states),
            "advice": _named(batch.advice, actions, empty=batch.defer),
            "action": _named(batch.action, actions),
            "reward": Column(batch.reward),
            "next_state": _named(batch.next_state, states),
            "terminated": Column(last & ended),
            "truncated": Column(last & ~ended),
        }
        first += len(batch)


def _check_origin(batch: object, problem: AdviceProblem) -> None:
    """Raise unless the episodes may come from this problem."""
    if not isinstance(batch, Episodes):
        raise CounselError(f"episodes contains {brief(batch)}; give results of Simulator.play")
    fits = batch.defer == problem.n_actions and batch.step.max(initial=0) < problem.horizon
    for states in (batch.state, batch.next_state):
        fits = fits and states.max(initial=0) < problem.n_states
    cells = batch.step, batch.state, batch.action
    if fits and problem.reward_law is None:
        fits = bool((problem.mdp.reward[cells] == batch.reward).all())
    if not fits:
        raise CounselError("the episodes are not from this problem; give the problem they are from")
    check_observed(*cells, batch.reward, problem.shape.reward_range)


def _named(codes: Ints, labels: tuple[str, ...] | None, *, empty: int | None = None) -> Column:
    """Return a column of labels, or of numbers without labels; ``empty`` codes are missing."""
    missing = None if empty is None else codes == empty
    return Column(codes.astype(np.int64), labels, missing)
