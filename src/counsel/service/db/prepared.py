"""Statements that change many rows, compiled once.

SQLAlchemy looks at every value of every row before it gives them to the driver. The rows of
decisions and outcomes have plain values, so here the driver gets them as they are. Faults are
SQLAlchemy's as always.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa


class PreparedStatement:
    """A statement with these parameters, ready for the driver of each database."""

    def __init__(self, statement: sa.Insert | sa.Update, names: Iterable[str]) -> None:
        self._statement, self._names = statement, list(names)
        self._compiled: dict[str, tuple[str, list[str] | None]] = {}

    def run(self, connection: sa.Connection, rows: Iterable[Mapping[str, Any]]) -> None:
        """Run the statement for each row, which has at least its parameters."""
        dialect = connection.dialect
        compiled = self._compiled.get(dialect.name)
        if compiled is None:
            compiled = self._compiled[dialect.name] = self._compile(dialect)
        text, order = compiled
        values: list[Any]
        if order is None:  # the driver takes parameters by name
            values = [{name: row[name] for name in self._names} for row in rows]
        else:
            values = [tuple([row[name] for name in order]) for row in rows]
        if values:
            connection.exec_driver_sql(text, values)

    def _compile(self, dialect: sa.Dialect) -> tuple[str, list[str] | None]:
        statement, keys = self._statement, None
        if isinstance(statement, sa.Insert):
            statement, keys = statement.inline(), self._names  # numbers of new rows are not read
        compiled = statement.compile(dialect=dialect, column_keys=keys)
        order = compiled.positiontup if compiled.positional else None
        return str(compiled), order
