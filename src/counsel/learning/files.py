"""A running learner on disk, to be resumed bit for bit; files are never unpickled."""

import os
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.random import Generator

from counsel._arrays import check_rng, generator_from
from counsel._files import blaming, read_npz, write_npz
from counsel.errors import CounselError
from counsel.learning.learn import Record
from counsel.learning.learner import Resumable

LEARNER = "counsel-learner"


def suspend(
    learner: Resumable, path: str | os.PathLike[str], *, rng: Generator, record: Record
) -> None:
    """Write a running learner to a file, with the generator and the last record.

    The settings are not written: to continue, build the learner as before and ``resume`` it.

    Parameters
    ----------
    learner
        A learner with ``state`` and ``restore``.
    path
        The file to write; it must end in .npz.
    rng
        The generator that ``learn`` was given.
    record
        The last record that ``learn`` yielded.

    Raises
    ------
    CounselError
        If ``rng`` is no generator, or the file cannot be written.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from counsel import UCBAD, Simulator, learn, make
    >>> problem, rng = make("night-shift"), np.random.default_rng(0)
    >>> learner = UCBAD(problem.without_adherence(), penalty=0.05)
    >>> *_, record = learn(learner, Simulator(problem), episodes=200, rng=rng)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     suspend(learner, f"{folder}/run.npz", rng=rng, record=record)
    ...     os.listdir(folder)
    ['run.npz']
    """
    check_rng(rng)
    state = learner.state()
    arrays = {name: value for name, value in state.items() if isinstance(value, np.ndarray)}
    header = {
        "learner": type(learner).__name__,
        "state": {name: value for name, value in state.items() if name not in arrays},
        "chance": rng.bit_generator.state,
        "record": asdict(record),
    }
    write_npz(Path(path), LEARNER, header, arrays)


def resume(learner: Resumable, path: str | os.PathLike[str]) -> tuple[Generator, Record]:
    """Put a suspended learner's state into one that is built as it was.

    ``learn(learner, …, rng=rng, after=record)`` then continues bit for bit as if it had never
    stopped.

    Parameters
    ----------
    learner
        A new learner with the same settings.
    path
        The file that ``suspend`` wrote.

    Returns
    -------
    rng : Generator
        The generator, as it was.
    record : Record
        The last record.

    Raises
    ------
    CounselError
        If the file is missing, damaged, or of another kind of learner or other settings.

    Examples
    --------
    A run in two halves is the run in one piece:

    >>> import tempfile
    >>> import numpy as np
    >>> from counsel import UCBAD, Simulator, learn, make
    >>> from counsel.learning import suspend
    >>> problem = make("night-shift")
    >>> setting, simulator = problem.without_adherence(), Simulator(problem)
    >>> *_, whole = learn(UCBAD(setting), simulator, episodes=400, rng=np.random.default_rng(0))
    >>> rng, first = np.random.default_rng(0), UCBAD(setting)
    >>> *_, half = learn(first, simulator, episodes=200, rng=rng)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     suspend(first, f"{folder}/run.npz", rng=rng, record=half)
    ...     second = UCBAD(setting)
    ...     rng, half = resume(second, f"{folder}/run.npz")
    >>> *_, last = learn(second, simulator, episodes=200, rng=rng, after=half)
    >>> last.episode, last.regret == whole.regret
    (400, True)
    """
    header, arrays = read_npz(Path(path), LEARNER)
    with blaming(path):
        if header["learner"] != type(learner).__name__:
            raise CounselError(
                f"it contains a {header['learner']}, not a {type(learner).__name__}; "
                "build the learner as it was"
            )
        learner.restore(header["state"] | arrays)
        return generator_from(header["chance"]), Record(**header["record"])
