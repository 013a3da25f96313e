"""Uploads of models: a large file is written in pieces, so that nobody waits for all of it.

A transaction takes as long as what it writes, and advice waits for the transaction under way. So a
file is written piece by piece, one piece of all uploads at a time, and a small row makes it a
model. Until then nobody sees it. What a crash or a caller who gives up leaves behind is removed,
piece by piece too.
"""

import asyncio
import logging
import threading
import time
from functools import partial
from uuid import uuid4

from sqlalchemy.exc import SQLAlchemyError

from counsel._arrays import brief
from counsel.errors import CounselError
from counsel.service.core.desk import Desk
from counsel.service.core.problem_sources import add_model, check_model
from counsel.service.core.quotas import check_models
from counsel.service.db.api_keys import KeyHolder
from counsel.service.db.model_queries import Pieces, abandoned, add_piece, remove_piece

LOG = logging.getLogger("counsel.service")

PIECE = 262_144
"""Bytes of a piece."""

ABANDONED = 600.0
"""Seconds after its last piece when an upload, perhaps to another service, counts as abandoned."""


class ModelUploads:
    """Writes models that are uploaded to a desk."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self._turn = asyncio.Lock()

    async def store(self, holder: KeyHolder, name: str, content: bytes, outline: str) -> str:
        """Store a checked model and return its id."""
        if len(content) <= PIECE:
            return await self._add(holder, name, outline, content)
        starts = range(0, len(content), PIECE)
        pieces = Pieces(uuid4().hex, len(starts), len(content))
        try:
            for number, start in enumerate(starts):
                await self._add_piece(pieces.model, number, content[start : start + PIECE])
            return await self._add(holder, name, outline, b"", pieces)
        except BaseException:  # also if the caller has given up
            remove = partial(_try_to_remove, self.desk, pieces.model)
            threading.Thread(target=remove, name="upload", daemon=True).start()
            raise

    async def _add_piece(self, model: str, number: int, piece: bytes) -> None:
        add = partial(add_piece, model=model, number=number, piece=piece, at=time.time())
        async with self._turn:
            await asyncio.wrap_future(self.desk.committer.submit(add))

    async def _add(
        self,
        holder: KeyHolder,
        name: str,
        outline: str,
        content: bytes,
        pieces: Pieces | None = None,
    ) -> str:
        model = (holder, name, content, self.desk.settings, outline, pieces)
        return await asyncio.wrap_future(
            self.desk.committer.submit(lambda connection: add_model(connection, *model))
        )


def check_upload(desk: Desk, tenant: int, content: bytes) -> str:
    """Return the outline of a model; raise unless it can be used and the tenant may have it."""
    with desk.reading.connect() as connection:
        check_models(connection, tenant, desk.settings)
    return check_model(content, desk.settings.model_bytes)


def remove_pieces(desk: Desk, model: str) -> None:
    """Remove the pieces of the file of a model that is not there, one per transaction."""
    while desk.committer.submit(partial(remove_piece, model=model)).result():
        pass


def remove_abandoned(desk: Desk, started: float) -> None:
    """Remove what uploads have left behind that were not finished when this service started.

    Other services on the same database may have uploads under way.
    """
    before = started - ABANDONED if desk.engine.dialect.name == "postgresql" else started
    with desk.reading.connect() as connection:
        left = abandoned(connection, before)
    for model in left:
        remove_pieces(desk, model)


def _try_to_remove(desk: Desk, model: str) -> None:
    """Remove pieces; if that cannot be done now, the next start does it."""
    try:
        remove_pieces(desk, model)
    except (SQLAlchemyError, CounselError) as fault:
        LOG.warning("an upload is not removed: %s", brief(str(getattr(fault, "orig", fault))))
