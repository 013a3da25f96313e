"""The columns of a log: their roles, and the mapping from roles to a table's own column names.

Each row of a log is one decision. A state may consist of several columns, which are joined to one
label. Empty advice is silence; an empty action is a fault.

=====================  =====================================================================
``episode``            the sequence of decisions that the row belongs to
``step``               the position in the sequence; an episode's first row is its step 0
``state``              the situation
``advice``             the advice; empty for silence
``action``             what the person did
``reward``             the reward of the decision, higher is better
``person``             the person (optional)
``next_state``         the situation afterwards (optional; by default the next row's state)
``advice_probability`` the probability of the advice, or of silence (optional)
``seen``               false if the advice was shown but not seen (optional)
``terminated``         true if the episode ended with this decision (optional)
``truncated``          true if only the recording ended (optional)
``timestamp``          the time of the decision (optional)
``cluster``            what is alike, if not the person: a ward (optional; only if it is named)
``context``            what changes listening and nothing else (optional; only if it is named)
=====================  =====================================================================
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

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
    "cluster",
    "context",
)
NAMED = ("cluster", "context")
"""Roles that no column has by its name alone."""

ROLES = (*REQUIRED, *OPTIONAL)

EXCLUSIVE = ("state", "advice", "action", "reward", "next_state", "advice_probability", "seen")
"""Roles that need a column of their own."""


@dataclass(frozen=True, slots=True)
class Columns:
    """A mapping from roles to columns; a role that is not mapped has a column of the same name.

    Parameters
    ----------
    names
        The column of each role with another name: ``{"action": "did"}``.
    state
        The columns that make up a state.
    hint
        What to do about a missing column; by default to name it with ``--columns``.

    Examples
    --------
    >>> from counsel.logs import read_log
    >>> from counsel.logs.example_log import alarm_log
    >>> table = alarm_log().rename_columns(["shift", "hour", "ward", "said", "did", "reward"])
    >>> columns = Columns.parse("episode=shift,step=hour,state=ward+hour,advice=said,action=did")
    >>> log = read_log(table, columns)
    >>> sorted(log.table.distinct(on="state").state.to_pyarrow().to_pylist())
    ['alarm · 0', 'quiet · 0']
    """

    names: Mapping[str, str] = field(default_factory=dict)
    state: tuple[str, ...] = ("state",)
    hint: str | None = None

    @classmethod
    def parse(cls, text: str | None) -> "Columns":
        """Parse ``state=ward_state,action=did``; a state of several columns is ``state=a+b``.

        Parameters
        ----------
        text
            Roles and their columns; None or empty if each role has a column of the same name.

        Returns
        -------
        Columns
            The mapping.

        Raises
        ------
        CounselError
            If the text has another form, or names an unknown role or a role twice.
        """
        names = dict[str, str]()
        state: tuple[str, ...] = ("state",)
        for part in (text or "").split(","):
            if not part.strip():
                continue
            role, equals, column = (piece.strip() for piece in part.partition("="))
            if role not in ROLES or not equals or not column:
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

    def also(self, role: str, column: str | None) -> "Columns":
        """Return the mapping with one more column.

        Parameters
        ----------
        role
            A role that is not mapped yet.
        column
            Its column; None to change nothing.

        Returns
        -------
        Columns
            The mapping.

        Raises
        ------
        CounselError
            If the role is mapped already.
        """
        if column is None:
            return self
        if role in self.names:
            raise CounselError(f"columns names {role} twice; name it once")
        return Columns({**self.names, role: column}, self.state, self.hint)

    def of(self, role: str) -> str:
        """Return the column of a role other than the state.

        Parameters
        ----------
        role
            One of the roles of a log.

        Returns
        -------
        str
            The name of the column.
        """
        return self.names.get(role, role)

    def roles(self, available: tuple[str, ...], *, where: str) -> dict[str, tuple[str, ...]]:
        """Return the columns of every role that a table has.

        Parameters
        ----------
        available
            The columns of the table.
        where
            The name of the table in errors.

        Returns
        -------
        dict
            The columns of each role: one, or for the state possibly several.

        Raises
        ------
        CounselError
            If a required or mapped column is missing, or one column has two roles.
        """
        columns_of: dict[str, tuple[str, ...]] = {}
        for role in ROLES:
            if role in NAMED and role not in self.names:
                continue
            columns = self.state if role == "state" else (self.of(role),)
            missing = [column for column in columns if column not in available]
            if missing and (role in REQUIRED or role in self.names):
                raise CounselError(
                    f"{where} has no column {missing[0]!r} for {role}; it has "
                    f"{', '.join(available)}: {self._hint(missing[0], role, available)}"
                )
            if not missing:
                columns_of[role] = columns
        taken = dict[str, str]()
        for role in EXCLUSIVE:
            for column in columns_of.get(role, ()):
                if column in taken:
                    raise CounselError(
                        f"{where}: column {column!r} is both {taken[column]} and {role}; name "
                        "another"
                    )
                taken[column] = role
        return columns_of

    def _hint(self, missing: str, role: str, available: tuple[str, ...]) -> str:
        """Say what to do about a missing column."""
        if self.hint is not None:
            return self.hint
        if len(available) == 1 and ";" in available[0]:
            return "its columns are separated by semicolons; save it with commas"
        for column in available:
            if column.strip().casefold() == missing.strip().casefold():
                return f"did you mean {column!r}? Write --columns '{role}={column}'"
        lacking = [name for name in REQUIRED if name != "state" and self.of(name) not in available]
        if not set(self.state) <= set(available):
            lacking.append("state")
        if role not in lacking or len(lacking) == 1:
            return f"name it with --columns {role}=…"
        return "name them with --columns " + ",".join(f"{name}=…" for name in lacking)
