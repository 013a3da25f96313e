"""What the columns of a log mean.

One row is one decision. Columns may be called anything; ``Columns`` says which is which. A state
may be several columns, joined to one label. Empty advice is silence; an empty action is a fault.

=====================  =====================================================================
``episode``            which sequence of decisions the row belongs to
``step``               its place in the sequence; an episode's first row is its step 0
``state``              what the situation was
``advice``             what was advised; empty for silence
``action``             what the person did
``reward``             what came of it, higher is better
``person``             who (optional)
``next_state``         what the situation was afterwards (optional; else the next row's state)
``advice_probability`` how likely the advice, or silence, was (optional)
``seen``               false where advice was shown but not seen (optional)
``terminated``         true where nothing more could happen (optional)
``truncated``          true where only the recording ended (optional)
``timestamp``          when (optional)
=====================  =====================================================================
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from counsel._arrays import whole
from counsel.errors import CounselError

REQUIRED = ("episode", "step", "state", "advice", "action", "reward")
OPTIONAL = (
    "person",
    "next_state",
    "advice_probability",
    "seen",
    "terminated",
    "truncated",
    "timestamp",
)
ROLES = (*REQUIRED, *OPTIONAL)
MOST_BINS = 1000
"""Bins of one column."""


@dataclass(frozen=True, slots=True)
class Bins:
    """How columns of numbers that make up a state become labels.

    Parameters
    ----------
    cuts
        For each column where it is cut, in rising order, or into how many bins of equal size (2 to
        1,000). A number on a cut belongs to the bin above it.

    Raises
    ------
    CounselError
        When cuts do not rise or are not finite, or the number of bins makes no sense.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from counsel.logs import read_log
    >>> table = pa.table(
    ...     {
    ...         "episode": [1, 1, 1],
    ...         "step": [0, 1, 2],
    ...         "state": [96, 92, 85],
    ...         "advice": [None, None, "treat"],
    ...         "action": ["wait", "wait", "treat"],
    ...         "reward": [1.0, 1.0, 0.0],
    ...     }
    ... )
    >>> log = read_log(table, bins=Bins({"state": (88, 92)}))
    >>> log.table.order_by("step").state.to_pyarrow().to_pylist()
    ['state ≥ 92', 'state ≥ 92', 'state < 88']
    """

    cuts: Mapping[str, tuple[float, ...] | int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for column, cuts in self.cuts.items():
            if isinstance(cuts, int):
                if whole(f"bins of {column}", cuts, least=2) > MOST_BINS:
                    raise CounselError(f"bins of {column} are {cuts}; {MOST_BINS} are the most")
                continue
            rising = all(a < b for a, b in pairwise(cuts))
            if not cuts or not all(map(math.isfinite, cuts)) or not rising:
                shown = ", ".join(f"{cut:g}" for cut in cuts) or "nowhere"
                raise CounselError(f"bins of {column} are cut at {shown}; give rising numbers")

    @classmethod
    def parse(cls, texts: Iterable[str]) -> "Bins":
        """Read ``spo2=88,92`` (where to cut) or ``age=q4`` (four bins of equal size).

        Parameters
        ----------
        texts
            One for each column, as on the command line.

        Returns
        -------
        Bins
            What they say.

        Raises
        ------
        CounselError
            When one is written otherwise, or a column comes twice.
        """
        cuts = dict[str, tuple[float, ...] | int]()
        for text in texts:
            column, _, told = (piece.strip() for piece in text.partition("="))
            try:
                if not column or column in cuts:
                    raise ValueError
                if told[:1] in ("q", "Q"):
                    cuts[column] = int(told[1:])
                else:
                    cuts[column] = tuple(float(part) for part in told.split(","))
            except ValueError:
                raise CounselError(
                    f"bins has {text!r}; write COLUMN=CUT,CUT,… or COLUMN=q4 for four bins of "
                    "equal size, each column once"
                ) from None
        return cls(cuts)


def bin_labels(column: str, cuts: tuple[float, ...]) -> tuple[str, ...]:
    """Return what the bins of a column are called, the lowest first.

    Cuts are written with as many digits as it takes to tell them apart.
    """
    written = [f"{cut:g}" for cut in cuts]
    for digits in range(7, 18):
        if len(set(written)) == len(cuts):
            break
        written = [f"{cut:.{digits}g}" for cut in cuts]
    between = (f"{column} {a} to {b}" for a, b in pairwise(written))
    return (f"{column} < {written[0]}", *between, f"{column} ≥ {written[-1]}")


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns of a table play which role; a role that is not named has its own name.

    Parameters
    ----------
    names
        The column of each role that is called otherwise: ``{"action": "did"}``.
    state
        The columns that make up a state, where there are several.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from counsel.logs import read_log
    >>> table = pa.table(
    ...     {
    ...         "shift": ["a", "a"],
    ...         "step": [0, 1],
    ...         "ward": ["north", "north"],
    ...         "alarm": ["on", "off"],
    ...         "said": ["check", None],
    ...         "did": ["check", "wait"],
    ...         "reward": [1.0, 1.0],
    ...     }
    ... )
    >>> columns = Columns.parse("episode=shift,state=ward+alarm,advice=said,action=did")
    >>> log = read_log(table, columns)
    >>> log.table.order_by("step").state.to_pyarrow().to_pylist()
    ['north · on', 'north · off']
    """

    names: Mapping[str, str] = field(default_factory=dict)
    state: tuple[str, ...] = ("state",)

    @classmethod
    def parse(cls, text: str | None) -> "Columns":
        """Read ``state=ward_state,action=did``; a state of several columns is ``state=a+b``.

        Parameters
        ----------
        text
            Roles and their columns; None or empty where each role has its own name.

        Returns
        -------
        Columns
            What it says.

        Raises
        ------
        CounselError
            When it is written otherwise, names no role, or names one twice.
        """
        names = dict[str, str]()
        state: tuple[str, ...] = ("state",)
        for part in (text or "").split(","):
            if not part.strip():
                continue
            role, is_there, column = (piece.strip() for piece in part.partition("="))
            if role not in ROLES or not is_there or not column:
                raise CounselError(
                    f"columns has {part.strip()!r}; write role=column, the role one of "
                    f"{', '.join(ROLES)}"
                )
            if role in names or (role == "state" and state != ("state",)):
                raise CounselError(f"columns names {role} twice; name it once")
            if role == "state":
                state = tuple(piece.strip() for piece in column.split("+"))
            else:
                names[role] = column
        return cls(names, state)

    def of(self, role: str) -> str:
        """Return the column of a role other than the state.

        Parameters
        ----------
        role
            One of the roles of a log.

        Returns
        -------
        str
            What the column is called.
        """
        return self.names.get(role, role)

    def roles(self, there: tuple[str, ...], *, where: str) -> dict[str, tuple[str, ...]]:
        """Return the columns of every role that a table has.

        Parameters
        ----------
        there
            The columns of the table.
        where
            What the table is called in errors.

        Returns
        -------
        dict
            The columns of each role: one, or for the state perhaps several.

        Raises
        ------
        CounselError
            When a required column, or one that was named, is missing, or one is two things at once.
        """
        found: dict[str, tuple[str, ...]] = {}
        for role in ROLES:
            columns = self.state if role == "state" else (self.of(role),)
            missing = [column for column in columns if column not in there]
            asked = role in REQUIRED or role in self.names
            if missing and asked:
                raise CounselError(
                    f"{where} has no column {missing[0]!r} for {role}; it has {', '.join(there)}: "
                    f"{self._hint(missing[0], role, there)}"
                )
            if not missing:
                found[role] = columns
        _check_apart(found, where)
        return found

    def _hint(self, missing: str, role: str, there: tuple[str, ...]) -> str:
        """Say what to do about a column that is not there."""
        if len(there) == 1 and ";" in there[0]:
            return "its columns are separated by semicolons; save it with commas"
        for column in there:
            if column.strip().casefold() == missing.strip().casefold():
                return f"did you mean {column!r}? Say so with --columns '{role}={column}'"
        lacking = [one for one in REQUIRED if one != "state" and self.of(one) not in there]
        if not set(self.state) <= set(there):
            lacking.append("state")
        if role not in lacking or len(lacking) == 1:
            return f"say which it is with --columns {role}=…"
        return "say which they are with --columns " + ",".join(f"{one}=…" for one in lacking)


APART = ("state", "advice", "action", "reward", "next_state", "advice_probability", "seen")
"""Roles that no two may play with one column."""


def _check_apart(found: dict[str, tuple[str, ...]], where: str) -> None:
    """Raise where one column would be two things at once."""
    taken = dict[str, str]()
    for role in APART:
        for column in found.get(role, ()):
            if column in taken:
                raise CounselError(
                    f"{where}: column {column!r} is both {taken[column]} and {role}; name another"
                )
            taken[column] = role
