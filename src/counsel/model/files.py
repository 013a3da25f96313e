"""Problems and policies on disk.

``.npz`` files contain plain arrays and a JSON header with the labels; they are written atomically
(see ``_files.py``). Policies can also be written as ``.csv`` and ``.parquet`` tables for people,
with one row per cell and possible advice: ``step``, ``state``, ``advice`` (empty for silence) and
``probability``; ``pieces_left`` first under a hard budget; ``level`` before ``step`` if advice
depends on the level of the person's memory; ``level_label``, ``state_label`` and ``advice_label``
if the problem has labels.
"""

import io
import math
import os
import zipfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counsel._arrays import brief, layers, unlayered
from counsel._files import DAMAGED, blaming, read_npz, read_stream, write_npz
from counsel._tables import TABLES, Column, Table, write_tables
from counsel.errors import CounselError
from counsel.model.advice_costs import given_cost
from counsel.model.human import Human
from counsel.model.kernel import Kernel
from counsel.model.mdp import MDP
from counsel.model.memory import Memory
from counsel.model.policy import Policy
from counsel.model.problem import AdviceProblem
from counsel.model.random_cells import RandomCells
from counsel.model.rewards import RewardLaw, bernoulli

PROBLEM, POLICY = "counsel-problem", "counsel-policy"
ROWS = ("row", "first_row", "indptr", "next_state", "probability")
RANDOM = ("cell", "indptr", "random_advice", "random_probability")
LAWS: dict[str, RewardLaw] = {"bernoulli": bernoulli}  # the laws of rewards that files can name
MOST_PARTS = 1000
"""The largest number of arrays in an uploaded file."""

LARGEST_HEADER = 4_000_000
"""Bytes of the header of an uploaded file, at most."""

MOST_TIMES, FREE_BYTES = 100, 1_000_000
"""An uploaded file may unpack to so many times its size, and so many bytes more."""

NUMBERS = "biuf"
"""Kinds of the arrays in a file: Booleans, integers and real numbers."""


def save(problem: AdviceProblem, path: str | os.PathLike[str]) -> None:
    """Write a problem to a file, atomically.

    Parameters
    ----------
    problem
        The world and the person, with labels and groups.
    path
        A file name that ends in ``.npz``.

    Raises
    ------
    CounselError
        If ``problem`` is not an ``AdviceProblem``, its ``reward_law`` is a function of your own, or
        the file cannot be written.

    Examples
    --------
    The file contains plain arrays, so nothing is unpickled when a problem is read:

    >>> import tempfile
    >>> import counsel
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     counsel.save(counsel.make("night-shift"), f"{folder}/night.npz")
    ...     counsel.load(f"{folder}/night.npz").mdp.state_labels
    ('stable', 'drifting', 'failing', 'crisis')
    """
    if not isinstance(problem, AdviceProblem):
        raise CounselError(f"expected an AdviceProblem, not {type(problem).__name__}")
    write_npz(Path(path), PROBLEM, *problem_parts(problem))


def problem_parts(problem: AdviceProblem) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays of a problem's file."""
    mdp, human, kernel = problem.mdp, problem.human, problem.mdp.kernel
    header: dict[str, Any] = {
        "horizon": None if mdp.discount is not None else mdp.horizon,
        "state_labels": mdp.state_labels,
        "action_labels": mdp.action_labels,
        "shares_lift": human.shares_lift,
        "grouped": human.input_groups is not None,
    }
    arrays: dict[str, NDArray[Any]] = {
        **{name: getattr(kernel, name) for name in ROWS},
        "reward": layers(mdp.reward),
        "start": mdp.start,
        "allowed": layers(mdp.allowed),
        "policy": human.policy,
        "given": human.input_values,
    }
    if mdp.average:
        header["average"] = True
    elif mdp.discount is not None:
        header["discount"] = mdp.discount
    if problem.reward_range is not None:
        header["reward_range"] = problem.reward_range
    if problem.reward_law is not None:
        header["reward_law"] = _law_name(problem.reward_law)
    if human.input_groups is not None:
        arrays["groups"] = human.input_groups
    if human.memory is not None:
        memory = human.memory
        header["memory"] = {
            name: getattr(memory, name) for name in ("start", "newcomer", "labels", "name")
        }
        arrays["memory"] = memory.after
        if human.input_fading is not None:
            arrays["fading"] = human.input_fading
    cost = given_cost(problem.cost)
    if cost.shape or cost != 1.0:
        arrays["cost"] = cost
    return header, arrays


def load(path: str | os.PathLike[str]) -> AdviceProblem:
    """Read a problem that ``save`` wrote and check it again.

    Parameters
    ----------
    path
        A ``.npz`` file.

    Returns
    -------
    AdviceProblem
        The world and the person.

    Raises
    ------
    CounselError
        If the file does not exist, is damaged, or contains something else.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import counsel
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "problem.npz"
    ...     _ = file.write_bytes(b"something else")
    ...     try:
    ...         counsel.load(file)
    ...     except counsel.CounselError as error:
    ...         print(str(error).replace(folder, "…"))
    …/problem.npz is truncated, damaged or not a Counsel file
    """
    return _problem(path, *read_npz(Path(path), PROBLEM))


def loads(content: bytes, *, name: str, most: int) -> AdviceProblem:
    """Read a problem from an uploaded file of at most ``most`` bytes when unpacked.

    Errors call the file ``name``.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            _check_packed(packed, name, min(most, MOST_TIMES * len(content) + FREE_BYTES))
    except CounselError:
        raise
    except DAMAGED:
        raise CounselError(f"{name} is truncated, damaged or not a Counsel file") from None
    return _problem(name, *read_stream(io.BytesIO(content), name, PROBLEM))


def _check_packed(packed: zipfile.ZipFile, name: str, most: int) -> None:
    """Raise unless a file contains arrays of numbers with the sizes that they claim to have."""
    parts = packed.infolist()
    if len(parts) > MOST_PARTS:
        raise CounselError(f"{name} has {len(parts):,} arrays; at most {MOST_PARTS} are allowed")
    size = sum(part.file_size for part in parts)
    if size > most:
        raise CounselError(
            f"{name} takes {size:,} bytes when unpacked; at most {most:,} are allowed"
        )
    for part in parts:
        array = part.filename.removesuffix(".npy")
        if array == "header" and part.file_size > LARGEST_HEADER:
            raise CounselError(
                f"{name} has a header of {part.file_size:,} bytes; at most {LARGEST_HEADER:,} are "
                "allowed"
            )
        if part.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise CounselError(f"{name} is compressed in an unknown way; save the model again")
        with packed.open(part) as stream:
            major = np.lib.format.read_magic(stream)[0]
            read = np.lib.format.read_array_header_1_0
            if major > 1:
                read = np.lib.format.read_array_header_2_0
            shape, _, dtype = read(stream)
            claimed, content = math.prod(shape) * dtype.itemsize, part.file_size - stream.tell()
        if dtype.kind not in NUMBERS:
            raise CounselError(
                f"{name} is damaged or not a Counsel file: its array {array[:40]!r} does not "
                "contain numbers"
            )
        if claimed != content or not content:
            raise CounselError(
                f"{name} has the array {array[:40]!r} of shape {brief(shape)} in {content:,} bytes;"
                " the file is damaged"
            )


def _problem(
    path: str | os.PathLike[str], header: dict[str, Any], arrays: dict[str, NDArray[Any]]
) -> AdviceProblem:
    with blaming(path):
        mdp = MDP(
            Kernel.from_rows(*(arrays[name] for name in ROWS)),
            unlayered(arrays["reward"]),
            horizon=header["horizon"],
            discount=header.get("discount"),
            average=header.get("average", False),
            start=arrays["start"],
            allowed=unlayered(arrays["allowed"]),
            state_labels=header["state_labels"],
            action_labels=header["action_labels"],
        )
        scale = "lift" if header["shares_lift"] else "adherence"
        memory = header.get("memory")
        human = Human(
            unlayered(arrays["policy"]),
            **{scale: arrays["given"]},
            groups=arrays["groups"] if header["grouped"] else None,
            memory=None if memory is None else Memory(*arrays["memory"], **memory),
            fading=arrays.get("fading"),
        )
        law = header.get("reward_law")
        if law is not None and (not isinstance(law, str) or law not in LAWS):
            raise CounselError(f"reward_law is {brief(law)}; it must be one of {', '.join(LAWS)}")
        return AdviceProblem(
            mdp,
            human,
            arrays.get("cost", np.ones(())),
            reward_range=header.get("reward_range"),
            reward_law=None if law is None else LAWS[law],
        )


def _law_name(law: RewardLaw) -> str:
    """Return the name of a law of rewards in a file."""
    for name, known in LAWS.items():
        if law is known:
            return name
    raise CounselError(
        f"reward_law is {brief(law)}, which cannot be saved; save the problem without a law and "
        "give the law again after loading"
    )


def save_policy(
    policy: Policy, path: str | os.PathLike[str], *, problem: AdviceProblem | None = None
) -> None:
    r"""Write a policy to a file, atomically.

    Parameters
    ----------
    policy
        A single policy; save the policies of a ``Mixture`` one by one.
    path
        A file name. ``.npz`` can be read back; ``.csv`` and ``.parquet`` are tables for people,
        with one row per cell and possible advice (empty for silence).
    problem
        The problem whose labels the tables show.

    Raises
    ------
    CounselError
        If the suffix is another, the policy is not for the problem, the file cannot be written, or
        ``.parquet`` is requested without pyarrow (extra ``parquet``).

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import counsel
    >>> problem = counsel.make("night-shift")
    >>> policy = counsel.solve(problem, penalty=0.1).policy
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "policy.csv"
    ...     counsel.save_policy(policy, file, problem=problem)
    ...     table = file.read_text().splitlines()
    >>> print(table[0], *table[25:28], sep="\n")
    "step","state","state_label","advice","advice_label","probability"
    6,0,"stable",,,1
    6,1,"drifting",1,"check",1
    6,2,"failing",2,"treat",1
    """
    if not isinstance(policy, Policy):
        raise CounselError(
            f"a {type(policy).__name__} cannot be saved; save single policies one by one"
        )
    if problem is not None:
        problem.check_sizes(policy)
    file = Path(path)
    if file.suffix in TABLES:
        write_tables(file, _policy_tables(policy, problem))
    elif file.suffix == ".npz":
        arrays: dict[str, NDArray[Any]] = {"advice": policy.advice}
        hard, random = policy.budget is not None, policy.random
        if not hard or random.cell.size:
            parts = (random.cell, random.indptr, random.advice, random.probability)
            arrays |= dict(zip(RANDOM, parts, strict=True))
        header: dict[str, Any] = {"n_actions": policy.n_actions, "hard": hard}
        if policy.levels is not None:
            header["levels"] = policy.levels
        write_npz(file, POLICY, header, arrays)
    else:
        raise CounselError(f"{file} must end in .csv, .parquet or .npz")


def _policy_tables(policy: Policy, problem: AdviceProblem | None) -> Iterator[Table]:
    """Yield a table per plane and step, the most pieces left first."""
    (P, H, S), M = policy.planes.shape, policy.levels or 1
    plane_and_step, random_states = np.divmod(policy.random.cell_of_entry, S)
    for left, m, h in product(range(P // M - 1, -1, -1), range(M), range(H)):
        k = left * M + m
        here = plane_and_step == k * H + h
        fixed = np.setdiff1d(np.arange(S), random_states[here])
        states = np.concatenate((fixed, random_states[here]))
        order = np.argsort(states, kind="stable")
        states = states[order]
        advice = np.concatenate((policy.planes[k, h, fixed], policy.random.advice[here]))[order]
        chance = np.concatenate((np.ones(fixed.size), policy.random.probability[here]))[order]
        silent = advice == policy.defer
        columns: dict[str, Column] = {}
        if policy.budget is not None:
            columns["pieces_left"] = Column(np.full(states.size, left, dtype=np.int32))
        if policy.levels is not None:
            columns["level"] = Column(np.full(states.size, m, dtype=np.int32))
            if problem is not None and problem.memory is not None:
                columns["level_label"] = Column(columns["level"].values, problem.memory.labels)
        columns["step"] = Column(np.full(states.size, h, dtype=np.int32))
        columns["state"] = Column(states.astype(np.int64))
        if problem is not None and problem.mdp.state_labels:
            columns["state_label"] = Column(states, problem.mdp.state_labels)
        columns["advice"] = Column(advice.astype(np.int32), missing=silent)
        if problem is not None and problem.mdp.action_labels:
            columns["advice_label"] = Column(advice, problem.mdp.action_labels, silent)
        columns["probability"] = Column(chance)
        yield columns


def load_policy(path: str | os.PathLike[str]) -> Policy:
    """Read a policy that ``save_policy`` wrote as ``.npz``.

    Parameters
    ----------
    path
        A file that ``save_policy`` wrote.

    Returns
    -------
    Policy
        The policy with its random cells.

    Raises
    ------
    CounselError
        If the file does not exist, is damaged, or is not a policy in ``.npz`` form.

    Examples
    --------
    >>> import tempfile
    >>> import counsel
    >>> plan = counsel.solve(counsel.make("night-shift"), budget=2, hard=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     counsel.save_policy(plan.policy, f"{folder}/policy.npz")
    ...     counsel.load_policy(f"{folder}/policy.npz")
    Policy(12 steps, 4 states, at most 2 pieces, advises in 28% of cells, 0 random)
    """
    if Path(path).suffix in TABLES:
        raise CounselError(f"{path} is a table for people; save the policy as .npz to load it")
    header, arrays = read_npz(Path(path), POLICY)
    with blaming(path):
        hard, random = header["hard"], None
        if not hard or "cell" in arrays:
            random = RandomCells(*(arrays[name] for name in RANDOM))
        policy = Policy(
            arrays["advice"],
            n_actions=header["n_actions"],
            random=random,
            levels=header.get("levels"),
        )
        if (policy.budget is not None) != hard:
            raise CounselError(f"advice has shape {policy.advice.shape} and hard is {hard}")
        return policy
