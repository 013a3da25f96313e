"""The log: one JSON object per line on standard error, and one line per request that needs it.

A request has an id: the caller's ``X-Request-Id`` if that is short and printable, otherwise a new
one. The id is in the answer's headers and in every line that is written while the request is
handled, whichever thread writes it. A request is named by the template of its route
(``/v1/people/{person}``) and never by its address: addresses, queries and bodies contain names of
people. Exceptions are written as their kind and the places in the code, without their messages,
for the same reason.
"""

import json
import logging
import random
import re
import sys
import traceback
from contextvars import ContextVar
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from starlette.types import Scope

from counsel.service.settings import ServiceSettings

LOG = logging.getLogger("counsel.service.requests")

SLOW_SECONDS = 1.0
"""Requests that take longer have a line in the log, whatever the settings."""

HEADER = b"x-request-id"
ACCEPTED_ID = re.compile(rb"[!-~]{1,64}")
"""Ids of callers that are used as they are; others are replaced by a new one."""

METHODS = ("GET", "POST", "PATCH", "DELETE", "PUT", "HEAD", "OPTIONS")
NO_ROUTE = "none"
"""The route of a request that matches none."""

STACK = 30
"""Places of an exception that are written, the innermost ones."""


class RequestInfo:
    """The request that is being handled, as the log may show it."""

    __slots__ = ("_scope", "id")

    def __init__(self, scope: Scope) -> None:
        self._scope, self.id = scope, _request_id(scope)

    @property
    def method(self) -> str:
        """The method, one of a few."""
        method = self._scope["method"]
        return method if method in METHODS else "other"

    @property
    def route(self) -> str:
        """The template of the route, e.g. ``/v1/people/{person}``."""
        return getattr(self._scope.get("route"), "path_format", NO_ROUTE)


CURRENT: ContextVar[RequestInfo | None] = ContextVar("request", default=None)
"""The request that this task or thread works for."""


def _request_id(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == HEADER and ACCEPTED_ID.fullmatch(value):
            return str(value, "ascii")
    # Not a secret; asking the system would let go of the interpreter's lock at every request.
    return f"{random.getrandbits(128):032x}"


def write_line(status: int, seconds: float, *, writes_all: bool) -> None:
    """Write the line of a request that was answered, if it needs one or every request has one."""
    is_notable = status >= 500 or seconds > SLOW_SECONDS
    if writes_all or is_notable:
        level = logging.INFO
        if is_notable:
            level = logging.ERROR if status == 500 else logging.WARNING
        numbers = {"status": status, "milliseconds": round(1000.0 * seconds, 1)}
        LOG.log(level, "answered", extra={"answer": numbers})


class JsonFormatter(logging.Formatter):
    """Writes a record as one JSON object, with the request that it belongs to."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {
            "time": when.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage().partition("\n")[0],
        }
        request = CURRENT.get()
        if request is not None:
            line |= {"request": request.id, "method": request.method, "route": request.route}
        line |= getattr(record, "answer", {})
        if record.exc_info and record.exc_info[0] is not None:
            line["exception"] = record.exc_info[0].__name__
            line["stack"] = _places(record.exc_info[2])
        return json.dumps(line)


def _places(where: TracebackType | None) -> list[str]:
    """Return the places of an exception in the code, the innermost last."""
    frames = traceback.extract_tb(where)[-STACK:]
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]


def configure_logging(settings: ServiceSettings) -> None:
    """Send what this process logs to standard error as JSON.

    The level is that of Counsel and of the server. Other packages write warnings only: their
    details contain rows of the database.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    for name in ("counsel", "uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.setLevel(settings.log_level.upper())
        logger.handlers.clear()  # a server that ran before in this process may have left its own
        logger.propagate = True
