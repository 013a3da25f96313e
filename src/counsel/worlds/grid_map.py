"""Maps of cells as text: ``.`` empty, ``*`` star, ``#`` wall; one line per row, top to bottom.

    ..*#
    .*..
    ..*.

A map may have any size. Errors name the line and column of a bad character or of a row with another
length, counted from 1 as in editors. ``generate_map`` draws maps that can be flown from end to end.
"""

import os
import re
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from counsel._arrays import (
    ROW_TOLERANCE,
    Bytes,
    Floats,
    brief,
    check_rng,
    numbers,
    rectangular,
    sealed,
    whole,
)
from counsel.errors import CounselError

EMPTY, STAR, WALL = 0, 1, 2
SIGNS = ".*#"  # the sign of each kind of cell, in the order of their numbers
MOVES = {"Up": -1, "Up-Up": -2, "Down": 1}
"""The moves of the bird and how many rows down each goes; every move goes one column ahead."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GridMap:
    r"""A map of cells; ``parse``, ``read`` and ``named`` build one from text.

    Parameters
    ----------
    cells
        Kinds [row, column]: 0 empty, 1 a star, 2 a wall; row 0 is the top.

    Raises
    ------
    CounselError
        If the cells are not a table of these kinds, a sign of a text is unknown, its rows differ
        in length, a file cannot be read, or there is no such map.

    Examples
    --------
    >>> import counsel
    >>> from counsel.worlds import GridMap
    >>> GridMap.parse("..*#\n.*..\n..*.").cells.tolist()
    [[0, 0, 1, 2], [0, 1, 0, 0], [0, 0, 1, 0]]

    Errors name the line and the column:

    >>> try:
    ...     GridMap.parse("..*#\n.*x.\n..*.")
    ... except counsel.CounselError as error:
    ...     print(error)
    the map, line 2, column 3: 'x' is not a cell; use . (empty), * (star) or # (wall)
    """

    cells: Bytes

    def __post_init__(self) -> None:
        cells = rectangular("cells", self.cells)
        if cells.ndim != 2 or cells.size == 0 or cells.dtype.kind not in "iu":
            raise CounselError(
                f"cells is {cells.dtype} of shape {cells.shape}; expected kinds [row, column]"
            )
        if cells.min() < EMPTY or cells.max() > WALL:
            raise CounselError(f"cells holds {cells.min()} to {cells.max()}; kinds run from 0 to 2")
        object.__setattr__(self, "cells", sealed(cells.astype(np.uint8)))

    @classmethod
    def parse(cls, text: str, *, name: str = "the map") -> "GridMap":
        """Read a map from its text.

        Parameters
        ----------
        text
            One line per row, top to bottom: ``.`` empty, ``*`` a star, ``#`` a wall.
        name
            The name of the map in errors.
        """
        if not isinstance(text, str):
            raise CounselError(f"{name} is {brief(text)}; give its text")
        lines = re.split("\r\n|\n|\r", text)
        while lines and not lines[-1]:
            lines.pop()
        if not lines or not lines[0]:
            where = ", line 1, column 1: the row" if lines else ""
            raise CounselError(f"{name}{where} has no cells; write rows of {' '.join(SIGNS)}")
        for i, line in enumerate(lines, start=1):
            for j, sign in enumerate(line, start=1):
                if sign not in SIGNS:
                    raise CounselError(
                        f"{name}, line {i}, column {j}: {sign!r} is not a cell; "
                        "use . (empty), * (star) or # (wall)"
                    )
            if len(line) != len(lines[0]):
                raise CounselError(
                    f"{name}, line {i}, column {min(len(line), len(lines[0])) + 1}: the row has "
                    f"{len(line)} cells where line 1 has {len(lines[0])}; make all rows alike"
                )
        return cls(np.array([[SIGNS.index(sign) for sign in line] for line in lines]))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "GridMap":
        """Read a map from a text file in UTF-8.

        Parameters
        ----------
        path
            A file with the text that ``parse`` takes.
        """
        if not isinstance(path, str | os.PathLike):
            raise CounselError(f"the map is {brief(path)}; give the path of a text file")
        try:
            text = Path(path).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError, ValueError) as fault:
            reason = getattr(fault, "strerror", None) or "it is not a text file in UTF-8"
            raise CounselError(f"cannot read the map {path}: {reason}") from None
        return cls.parse(text, name=str(path))

    @classmethod
    def named(cls, name: str) -> "GridMap":
        """Return one of the maps that come with Counsel.

        Parameters
        ----------
        name
            "three-phases" or "budget".
        """
        if name not in map_names():
            raise CounselError(f"no map is called {name!r}; choose one of {', '.join(map_names())}")
        return cls.parse(_folder().joinpath(f"{name}.txt").read_text(encoding="utf-8"), name=name)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.cells.shape[0])

    @property
    def columns(self) -> int:
        """The number of columns."""
        return int(self.cells.shape[1])

    @property
    def start_row(self) -> int:
        """The row in which the bird starts: the middle row, or the lower of the two middle rows."""
        return self.rows // 2

    def state(self, row: int, column: int) -> int:
        """Return the state in ``make_flappy_bird`` of the bird in a cell.

        Parameters
        ----------
        row, column
            The cell, counted from 0.
        """
        return column * self.rows + row

    def __str__(self) -> str:
        return "\n".join("".join(SIGNS[kind] for kind in row) for row in self.cells)

    def __repr__(self) -> str:
        return f"GridMap({self.rows} × {self.columns})"


def map_names() -> tuple[str, ...]:
    """Return the names of the maps that come with Counsel."""
    files = (Path(file.name) for file in _folder().iterdir())
    return tuple(sorted(file.stem for file in files if file.suffix == ".txt"))


def generate_map(
    rows: int,
    columns: int,
    *,
    rng: np.random.Generator,
    stars: ArrayLike = 0.2,
    walls: ArrayLike = 0.2,
) -> GridMap:
    """Draw a random map; each cell after the first column may be a star or a wall.

    A random flight from the start to the last column stays free of walls (if there are enough rows
    to fly), so the bird can survive the map.

    Parameters
    ----------
    rows, columns
        The size, at least 1 each.
    rng
        The random generator.
    stars, walls
        The probabilities that a cell is a star or a wall, for all columns or [column]; together
        at most 1.

    Returns
    -------
    GridMap
        The map.

    Raises
    ------
    CounselError
        If a size or a probability is out of range.

    Examples
    --------
    With walls everywhere, only the random flight remains:

    >>> import numpy as np
    >>> from counsel.worlds import generate_map
    >>> print(generate_map(5, 12, rng=np.random.default_rng(0), stars=0.0, walls=1.0))
    ..#.######.#
    .#.#.#.#.##.
    .####.#.#.##
    .###########
    .###########
    """
    rows, columns = whole("rows", rows, least=1), whole("columns", columns, least=1)
    check_rng(rng)
    filled = np.stack([_by_column("stars", stars, columns), _by_column("walls", walls, columns)])
    if not (filled.min() >= 0.0 and filled.sum(axis=0).max() <= 1.0 + ROW_TOLERANCE):
        raise CounselError(
            f"stars is {brief(stars)} and walls is {brief(walls)}; give shares of at least 0 that "
            "sum to at most 1"
        )
    empty = np.maximum(1.0 - filled.sum(axis=0), 0.0)
    shares = np.vstack([empty, filled]).cumsum(axis=0)
    bounds = shares / shares[-1]  # [kind, column]
    cells = (rng.random((rows, columns)) >= bounds[:-1, None]).sum(axis=0).astype(np.uint8)
    cells[:, 0] = EMPTY
    row = rows // 2
    for column in range(1, columns):
        ahead = [row + move for move in MOVES.values() if 0 <= row + move < rows]
        if not ahead:
            break
        row = int(rng.choice(ahead))
        if cells[row, column] == WALL:
            cells[row, column] = EMPTY
    return GridMap(cells)


def _by_column(name: str, share: ArrayLike, columns: int) -> Floats:
    """Return a share for each column."""
    given = numbers(name, share)
    if given.shape not in ((), (columns,)):
        raise CounselError(f"{name} has shape {given.shape}; give a number or {columns} of them")
    return np.broadcast_to(given, (columns,))


def _folder() -> "resources.abc.Traversable":
    return resources.files("counsel.worlds").joinpath("maps")
