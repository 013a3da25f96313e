"""Problems and policies on disk.

``.npz`` files hold plain arrays and a JSON header with the labels, and are written whole or not at
all (see ``_files.py``). Policies can also be written as tables that people read: ``.csv`` and
``.parquet`` (see ``policy_tables.py``).
"""

import io
import os
import zipfile
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from counsel._arrays import layers, unlayered
from counsel._files import DAMAGED, blaming, read_npz, read_stream, write_npz
from counsel._tables import TABLES, write_tables
from counsel.errors import CounselError
from counsel.model.human import Human
from counsel.model.kernel import Kernel
from counsel.model.mdp import MDP
from counsel.model.policy import Policy, RandomCells
from counsel.model.policy_tables import policy_tables
from counsel.model.problem import AdviceProblem

PROBLEM, POLICY = "counsel-problem", "counsel-policy"


def save(problem: AdviceProblem, path: str | os.PathLike[str]) -> None:
    """Write a problem to a file, whole or not at all.

    Parameters
    ----------
    problem
        The world and the person, with labels and groups.
    path
        Where to; it ends in ``.npz``.

    Raises
    ------
    CounselError
        When it is no ``AdviceProblem``, or the file cannot be written.

    Examples
    --------
    The file is plain arrays, so a problem can be read back anywhere without unpickling anything:

    >>> import tempfile
    >>> import counsel
    >>> from counsel.worlds import make
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     counsel.save(make("night-shift"), f"{folder}/night.npz")
    ...     counsel.load(f"{folder}/night.npz").mdp.state_labels
    ('stable', 'drifting', 'failing', 'crisis')
    """
    if not isinstance(problem, AdviceProblem):
        raise CounselError(f"expected an AdviceProblem, not {type(problem).__name__}")
    write_npz(Path(path), PROBLEM, *problem_parts(problem))


def problem_parts(problem: AdviceProblem) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays of a problem's file."""
    mdp, human, kernel = problem.mdp, problem.human, problem.mdp.kernel
    header = {
        "horizon": mdp.horizon,
        "state_labels": mdp.state_labels,
        "action_labels": mdp.action_labels,
        "shares_lift": human.shares_lift,
        "grouped": human.given_groups is not None,
    }
    arrays: dict[str, NDArray[Any]] = {
        "row": kernel.row,
        "first_row": kernel.first_row,
        "indptr": kernel.indptr,
        "next_state": kernel.next_state,
        "probability": kernel.probability,
        "reward": layers(mdp.reward),
        "start": mdp.start,
        "allowed": layers(mdp.allowed),
        "policy": human.policy,
        "given": human.given,
    }
    if human.given_groups is not None:
        arrays["groups"] = human.given_groups
    return header, arrays


def load(path: str | os.PathLike[str]) -> AdviceProblem:
    """Read a problem that ``save`` wrote; everything in it is checked again.

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
        When the file does not exist, is damaged, or holds something else.

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


MOST_PARTS = 1000
"""Arrays in a file that somebody sent."""


def loads(content: bytes, *, name: str, most: int) -> AdviceProblem:
    """Read a problem from the content of a file that somebody sent.

    Parameters
    ----------
    content
        What is in the file.
    name
        What to call it in errors.
    most
        How many bytes its arrays may take when they are unpacked.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            parts = packed.infolist()
            size = sum(part.file_size for part in parts)
    except DAMAGED:
        raise CounselError(f"{name} is truncated, damaged or not a Counsel file") from None
    if len(parts) > MOST_PARTS:
        raise CounselError(f"{name} has {len(parts):,} parts; {MOST_PARTS} are the most")
    if size > most:
        raise CounselError(f"{name} takes {size:,} bytes when unpacked; {most:,} are the most")
    return _problem(name, *read_stream(io.BytesIO(content), name, PROBLEM))


def _problem(
    path: str | os.PathLike[str], header: dict[str, Any], arrays: dict[str, NDArray[Any]]
) -> AdviceProblem:
    with blaming(path):
        kernel = Kernel.from_rows(
            arrays["row"],
            arrays["first_row"],
            arrays["indptr"],
            arrays["next_state"],
            arrays["probability"],
        )
        mdp = MDP(
            kernel,
            unlayered(arrays["reward"]),
            horizon=header["horizon"],
            start=arrays["start"],
            allowed=unlayered(arrays["allowed"]),
            state_labels=header["state_labels"],
            action_labels=header["action_labels"],
        )
        scale = "lift" if header["shares_lift"] else "adherence"
        human = Human(
            unlayered(arrays["policy"]),
            **{scale: arrays["given"]},
            groups=arrays["groups"] if header["grouped"] else None,
        )
        return AdviceProblem(mdp, human)


def save_policy(
    policy: Policy,
    path: str | os.PathLike[str],
    *,
    problem: AdviceProblem | None = None,
) -> None:
    r"""Write a policy to a file, whole or not at all.

    Parameters
    ----------
    policy
        The policies of a ``Mixture`` are saved one by one.
    path
        Where to. ``.npz`` can be read back; ``.csv`` and ``.parquet`` are tables for people, with
        one row for each cell and each advice given there (empty for silence).
    problem
        Gives the tables its labels.

    Raises
    ------
    CounselError
        When the ending is another, the policy is not for the problem, the file cannot be written,
        or ``.parquet`` is asked for without pyarrow (extra ``parquet``).

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import counsel
    >>> from counsel.worlds import make
    >>> problem = make("night-shift")
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
            f"a {type(policy).__name__} cannot be saved; save its policies one by one"
        )
    if problem is not None:
        policy.check_fits(problem.horizon, problem.n_states, problem.n_actions)
    place = Path(path)
    if place.suffix in TABLES:
        write_tables(place, policy_tables(policy, problem))
    elif place.suffix == ".npz":
        arrays: dict[str, NDArray[Any]] = {"advice": policy.advice}
        hard = policy.budget is not None
        if not hard or policy.random.cell.size:
            arrays |= {
                "cell": policy.random.cell,
                "indptr": policy.random.indptr,
                "random_advice": policy.random.advice,
                "random_probability": policy.random.probability,
            }
        header = {"n_actions": policy.n_actions, "hard": hard}
        write_npz(place, POLICY, header, arrays)
    else:
        raise CounselError(f"{place} must end in .csv, .parquet or .npz")


def load_policy(path: str | os.PathLike[str]) -> Policy:
    """Read a policy that ``save_policy`` wrote as ``.npz``.

    Parameters
    ----------
    path
        A ``.npz`` file.

    Returns
    -------
    Policy
        The policy that was saved.

    Raises
    ------
    CounselError
        When the file does not exist, is a table, is damaged, or holds something else.

    Examples
    --------
    >>> import tempfile
    >>> import counsel
    >>> from counsel.worlds import make
    >>> plan = counsel.solve(make("night-shift"), budget=2, hard=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     counsel.save_policy(plan.policy, f"{folder}/policy.npz")
    ...     counsel.load_policy(f"{folder}/policy.npz")
    Policy(12 steps, 4 states, at most 2 pieces, advises in 28% of cells, 0 random)
    """
    if Path(path).suffix in TABLES:
        raise CounselError(
            f"{path} is a table for people; write the policy as .npz to read it back"
        )
    header, arrays = read_npz(Path(path), POLICY)
    with blaming(path):
        hard, random = header["hard"], None
        if not hard or "cell" in arrays:
            random = RandomCells(
                arrays["cell"],
                arrays["indptr"],
                arrays["random_advice"],
                arrays["random_probability"],
            )
        policy = Policy(arrays["advice"], n_actions=header["n_actions"], random=random)
        if (policy.budget is not None) != hard:
            raise CounselError(f"advice has shape {policy.advice.shape} and hard is {hard}")
        return policy
