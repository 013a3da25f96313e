"""A running learner on disk, to be gone on with bit for bit.

The file holds what was learnt, where chance stands and the last record; not the settings. To go on,
build the learner as before and ``resume`` it. Nothing in a file is ever unpickled.
"""

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.random import Generator

from counsel._arrays import check_rng, generator_from
from counsel.errors import CounselError
from counsel.learning.learn import Record
from counsel.model.files import blaming, read_npz, write_npz

LEARNER = "counsel-learner"


@runtime_checkable
class Resumable(Protocol):
    """A learner whose state can be taken and put back."""

    def state(self) -> dict[str, Any]:
        """Return arrays, numbers and what JSON can hold."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        ...


def suspend(
    learner: Resumable, path: str | os.PathLike[str], *, rng: Generator, record: Record
) -> None:
    """Write a running learner to ``path`` (.npz), with the generator and the last record."""
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
    """Put a suspended learner's state into one built alike; return the generator and the record.

    ``learn(learner, …, rng=rng, after=record)`` then goes on as if nothing had happened.
    """
    header, arrays = read_npz(Path(path), LEARNER)
    with blaming(path):
        if header["learner"] != type(learner).__name__:
            raise CounselError(
                f"it holds a {header['learner']}, not a {type(learner).__name__}; "
                "build the learner as it was"
            )
        learner.restore(header["state"] | arrays)
        return generator_from(header["chance"]), Record(**header["record"])
