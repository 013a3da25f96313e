"""Finish deletions that could not be finished: a crash came before the start, or somebody reads.

A row of a person or an adviser is there until the files of the database are scrubbed. Whoever keeps
old rows on disk ends sooner or later, and then they are removed.
"""

import logging
import threading

import sqlalchemy as sa

from counsel._arrays import brief
from counsel.errors import CounselError
from counsel.service.core.deletion import RETRY_SECONDS
from counsel.service.core.desk import Desk
from counsel.service.core.erasure import finish_erasures
from counsel.service.core.management import finish_deletions

LOG = logging.getLogger("counsel.service")


class Finisher:
    """Finishes deletions of a desk, in a thread of its own: at the start and when some are left."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="finisher", daemon=True)
        self._thread.start()

    def close(self, timeout: float = 0.0) -> None:
        """Stop; what is not done after ``timeout`` seconds is left to the next start."""
        self._stopping.set()
        self._thread.join(timeout)

    def _work(self) -> None:
        unfinished = self._desk.unfinished_deletions
        self._finish()  # a crash may have interrupted some
        while not self._stopping.wait(RETRY_SECONDS):
            if unfinished.is_set():
                unfinished.clear()
                self._finish()
                if not unfinished.is_set():
                    LOG.info("deletions that were held up are finished")

    def _finish(self) -> None:
        """Finish all deletions that can be finished now."""
        try:
            finish_erasures(self._desk)
            finish_deletions(self._desk)
        except Exception as fault:
            self._desk.unfinished_deletions.set()
            reason = brief(str(getattr(fault, "orig", fault)))
            is_expected = isinstance(fault, sa.exc.SQLAlchemyError | CounselError)
            LOG.warning("a deletion is not finished: %s", reason, exc_info=not is_expected)
