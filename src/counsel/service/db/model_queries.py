"""Queries about the files of models: whole in the row of the model, or in pieces beside it.

A large file is written in pieces, each in a transaction of its own, before the row of its model.
Pieces without a model are not visible to anybody.
"""

from typing import NamedTuple

import sqlalchemy as sa

from counsel.service.db.tables import model_pieces, models

_PIECE_SIZES = sa.func.coalesce(sa.func.sum(sa.func.length(model_pieces.c.content)), 0)
_IS_THERE = sa.exists().where(models.c.id == model_pieces.c.model)
_OF_MODEL = sa.select(_PIECE_SIZES).where(model_pieces.c.model == models.c.id)

SIZE = (sa.func.length(models.c.content) + _OF_MODEL.scalar_subquery()).label("bytes")
"""The bytes of a model's file."""


class Pieces(NamedTuple):
    """The pieces of a file that was written: the id of its model, their number, and their size."""

    model: str
    total: int
    size: int


def content_of(connection: sa.Connection, tenant: int, model: str) -> bytes | None:
    """Return the file of a model of a tenant; None if there is no such model."""
    mine = (models.c.id == model) & (models.c.tenant == tenant)
    content: bytes | None = connection.scalar(sa.select(models.c.content).where(mine))
    if content != b"":
        return content
    pieces = sa.select(model_pieces.c.content).where(model_pieces.c.model == model)
    return b"".join(connection.scalars(pieces.order_by(model_pieces.c.number)))


def add_piece(connection: sa.Connection, model: str, number: int, piece: bytes, at: float) -> None:
    """Add a piece of the file of a model that is not there yet."""
    row = {"model": model, "number": number, "content": piece, "at": at}
    connection.execute(sa.insert(model_pieces), row)


def pieces_of(connection: sa.Connection, model: str) -> Pieces:
    """Return which pieces are there of a file."""
    query = sa.select(sa.func.count(), _PIECE_SIZES).where(model_pieces.c.model == model)
    count, size = connection.execute(query).one()
    return Pieces(model, int(count), int(size))


def remove_piece(connection: sa.Connection, model: str) -> bool:
    """Remove the first piece of a file whose model is not there; return whether there was one."""
    first = sa.select(sa.func.min(model_pieces.c.number)).where(model_pieces.c.model == model)
    one = (model_pieces.c.model == model) & (model_pieces.c.number == first.scalar_subquery())
    return bool(connection.execute(sa.delete(model_pieces).where(one & ~_IS_THERE)).rowcount)


def abandoned(connection: sa.Connection, before: float) -> list[str]:
    """Return the models that have pieces and no row, though nothing was added since a time."""
    query = sa.select(model_pieces.c.model).where(~_IS_THERE).group_by(model_pieces.c.model)
    return list(connection.scalars(query.having(sa.func.max(model_pieces.c.at) < before)))
