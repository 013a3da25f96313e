"""The levels of a person's memory in what a learner observes."""

import numpy as np

from counsel._arrays import Bools, Ints, first, index_in
from counsel.errors import CounselError
from counsel.model.memory import MATRICES, Memory
from counsel.planning.level_planner import MOST_BYTES
from counsel.simulate.episodes import Episodes


def columns_by_level(table_mlsa: Ints) -> Ints:
    """Return a table [layer, s, m · A + a] from [m, layer, s, a]; one layer if all are the same."""
    M, _, S, A = table_mlsa.shape
    is_same = table_mlsa.strides[1] == 0
    table = np.moveaxis(table_mlsa[:, :1] if is_same else table_mlsa, 0, 2)
    return table.reshape(len(table), S, M * A)


def check_level(level: int | None, memory: Memory) -> int:
    """Return a level of a memory; raise if none is given or it is out of range."""
    if level is None:
        raise CounselError(
            f"the learner knows the memory of the person ({memory.name}); give level, from 0 to "
            f"{memory.n_levels - 1}"
        )
    return index_in("level", level, memory.n_levels)


def levels_of(batch: Episodes, memory: Memory) -> Ints:
    """Return the level of each decision; raise unless the levels can come from the memory."""
    if batch.level is None:
        raise CounselError(
            f"the episodes have no levels but the learner is for a memory of {memory.n_levels} "
            f"levels ({memory.name}); play them with a person who has this memory"
        )
    level = batch.level.astype(np.int64)
    follows = batch.episode[1:] == batch.episode[:-1]
    outcome = np.where(batch.advice == batch.defer, 0, np.where(batch.matched, 1, 2))
    check_levels(memory, level, outcome, follows=follows)
    return level


def check_room(memory: Memory | None, horizon: int, n_states: int, numbers: float) -> None:
    """Raise if ``numbers`` on each level of a memory would not fit into the machine's memory."""
    size = 0.0 if memory is None else 8.0 * memory.n_levels * numbers
    if memory is not None and size > MOST_BYTES:
        many = f"{memory.n_levels:,} levels"
        raise CounselError(
            f"a memory of {many} takes a learner of {many} × {horizon} × {n_states} cells, "
            f"{size / 2**30:.0f} GB; give a memory with fewer levels"
        )


def check_levels(memory: Memory, level: Ints, outcome: Ints, *, follows: Bools) -> None:
    """Raise unless all are levels of the memory that can follow one another.

    The outcome of a decision is 0 for silence, 1 for a match and 2 for a refusal. ``follows`` says
    whether each decision but the first is the step after the decision before it.
    """
    M = memory.n_levels
    outside = np.flatnonzero((level < 0) | (level >= M))
    if outside.size:
        i = int(outside[0])
        raise CounselError(
            f"level of decision {i} is {level[i]}; the memory of the learner ({memory.name}) has "
            f"levels 0 to {M - 1}"
        )
    chance = memory.after[outcome[:-1], level[:-1], level[1:]]
    impossible = np.flatnonzero(follows & (chance == 0.0))
    if impossible.size:
        i = int(impossible[0])
        did = ("silence", "a match", "a refusal")[outcome[i]]
        raise CounselError(
            f"level of decision {i + 1} is {level[i + 1]}, which cannot follow level {level[i]} "
            f"after {did} in the memory of the learner ({memory.name}); use the memory of the "
            "person"
        )


def check_memory(learner: object, memory: Memory | None) -> None:
    """Raise if a learner was built for another memory than that of the person it meets."""
    known: Memory | None = getattr(learner, "memory", None)
    if known is None:
        return  # the learner is blind to levels
    if memory is None or memory.n_levels != known.n_levels:
        has = "no memory" if memory is None else f"a memory of {memory.n_levels} ({memory.name})"
        raise CounselError(
            f"the learner is for a memory of {known.n_levels} levels ({known.name}); the person "
            f"has {has}"
        )
    where = first(known.after != memory.after)
    if where is not None:
        c, m, n = where
        raise CounselError(
            f"{MATRICES[c]}[m={m}, m′={n}] is {known.after[where]:g} in the memory of the learner "
            f"({known.name}) and {memory.after[where]:g} in that of the person ({memory.name}); "
            "build the learner for this person"
        )
