"""Limits of connections: nobody who keeps the service waiting takes it away from others.

A caller can keep a service waiting in four ways: with a connection on which nothing comes, with
headers that do not end, with a body that does not end, and with an answer that is not read. Each
has a limit in bytes or seconds, after which the caller is answered with 408 or 431 where an answer
makes sense, and the connection is closed. So is one on which many requests come before the first is
answered, once the requests that were accepted have their answers.

There is a largest number of connections. When one more is opened, the connection whose caller has
kept the service waiting for longest is closed, so that idle connections lock nobody out; a request
that the service is working on is never cut short.

The limits are those of ``ServiceSettings``, which the app's lifespan gives as ``settings`` of its
state; what is refused is counted in its ``metrics``. One sweep per second looks at all connections
of the process: a timer for each would cost more than the limits themselves.
"""

import asyncio
import contextlib
import json
import socket
import struct
from functools import cache
from http import HTTPStatus
from typing import Any
from weakref import WeakKeyDictionary

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from counsel.service.api.answer_writer import AnswerWriter
from counsel.service.api.errors import problem_details
from counsel.service.api.metrics import Metrics
from counsel.service.api.security import RAW_HEADERS
from counsel.service.open_files import room_for_connections
from counsel.service.settings import ServiceSettings

SWEEP_SECONDS = 1.0
"""Seconds between two looks at all connections, at most."""

LINGER_SECONDS = 2.0
"""Seconds in which a caller who was refused can read why, before the connection is reset."""

LINGER_BYTES = 1_000_000
"""Bytes of a body that are read after the answer, for callers who read only when all is sent."""

SEND_BYTES = 262_144
"""Bytes of answers that the system keeps for a caller; by itself it would keep megabytes."""

CHUNK_OVERHEAD = 8
"""Bytes of chunk sizes and trailers for each byte of a chunked body, at most."""

REASONS = {400: "invalid", 408: "slow", 431: "large"}
"""How the metrics call refusals with a status."""

_RESET = struct.pack("ii", 1, 0)


class RefusedError(Exception):
    """Stops the parser; the connection knows why."""


class ConnectionTable:
    """The connections of a process, and those that wait for their caller, in order."""

    def __init__(
        self,
        settings: ServiceSettings,
        most: int,
        loop: asyncio.AbstractEventLoop,
        metrics: Metrics | None = None,
    ) -> None:
        self.settings, self.most, self.loop, self.metrics = settings, most, loop, metrics
        self.connections = set[LimitedConnection]()
        self.waiting = dict[LimitedConnection, None]()
        seconds = (settings.header_seconds, settings.body_seconds, settings.idle_seconds)
        self.interval = min(SWEEP_SECONDS, min(*seconds, settings.send_seconds) / 4)
        self._next: asyncio.TimerHandle | None = None

    def add(self, connection: "LimitedConnection") -> None:
        """Add a connection; where there are too many, close the one that waits for longest."""
        self.connections.add(connection)
        self.waiting[connection] = None
        if self._next is None:
            self._next = self.loop.call_later(self.interval, self.sweep)
        if len(self.connections) > self.most:
            longest = next(iter(self.waiting))
            self.remove(longest)
            self.count("crowded")
            longest.break_off()
        self._count_open()

    def remove(self, connection: "LimitedConnection") -> None:
        """Remove a connection; one that is not there is no fault."""
        self.connections.discard(connection)
        self.waiting.pop(connection, None)
        self._count_open()

    def count(self, reason: str) -> None:
        """Count a connection that is closed at a limit."""
        if self.metrics is not None:
            self.metrics.refused[reason].inc()

    def _count_open(self) -> None:
        if self.metrics is not None:
            self.metrics.connections = len(self.connections)

    def sweep(self) -> None:
        """Close the connections that exceed a limit, and come again while there are any."""
        now = self.loop.time()
        for connection in list(self.connections):
            connection.check(now)
        self._next = self.loop.call_later(self.interval, self.sweep) if self.connections else None


_TABLES: WeakKeyDictionary[ServerState, ConnectionTable] = WeakKeyDictionary()


class LimitedConnection(HttpToolsProtocol):
    """A connection with limits, for ``uvicorn.Config(http=…)``."""

    __slots__ = (  # the dictionary of an object with more attributes would be slow
        *("table", "settings", "idle_since", "header_since", "header_bytes", "heads", "body_since"),
        *("body_bytes", "extra_bytes", "late_bytes", "unsent_bytes", "unsent_since", "running"),
        *("is_refused", "ends_at"),
    )

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        table = _TABLES.get(server_state)
        if table is None:
            settings = app_state.get("settings") or ServiceSettings.from_environment()
            most = min(settings.connections, room_for_connections(config.backlog))
            metrics = app_state.get("metrics")
            table = _TABLES[server_state] = ConnectionTable(settings, most, self.loop, metrics)
        self.table, self.settings = table, table.settings
        self.timeout_keep_alive = self.settings.idle_seconds  # type: ignore[assignment]

        self.idle_since = self.loop.time()
        self.header_since: float | None = None
        self.header_bytes, self.heads = 0, 0
        self.body_since: float | None = None
        self.body_bytes, self.extra_bytes, self.late_bytes = 0, 0, 0
        self.unsent_bytes, self.unsent_since = 0, 0.0
        self.running: RequestResponseCycle | None = None
        self.is_refused = False
        self.ends_at: float | None = None

    @property
    def is_answering(self) -> bool:
        """Whether a request has no complete answer yet."""
        return self.cycle is not None and not self.cycle.response_complete

    # What the transport calls

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start, and close another connection if there are too many."""
        super().connection_made(transport)
        self._set_option(socket.SO_SNDBUF, SEND_BYTES)
        self.table.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self.table.remove(self)
        super().connection_lost(exc)
        self._give_up()

    def data_received(self, data: bytes) -> None:
        """Parse what came, as far as the limits allow."""
        self._unset_keepalive_if_required()
        size = self.settings.header_bytes
        if len(data) <= size:
            self._parse(data)
            return
        for first in range(0, len(data), size):  # so that the limits are checked in between
            self._parse(data[first : first + size])

    def _parse(self, data: bytes) -> None:
        if self.is_refused:
            self._stop_reading()
            return
        is_head, heads, body_bytes = self.body_since is None, self.heads, self.body_bytes
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._refuse(400, "the service speaks HTTP/1.1 only")
        except httptools.HttpParserError:
            if not self.is_refused:
                self._refuse(400, "the request is not valid HTTP/1.1")
        if self.heads != heads or self.is_refused:
            return
        if is_head:
            self.header_bytes += len(data)
            if self.header_since is None:
                self.header_since = self.loop.time()
            if self.header_bytes > self.settings.header_bytes:
                self._refuse_headers()
        elif self.body_since is not None:
            self.extra_bytes += len(data) - (self.body_bytes - body_bytes)
            if self.extra_bytes > self.settings.header_bytes + CHUNK_OVERHEAD * self.body_bytes:
                self._refuse(400, "the request has more chunk sizes and trailers than content")

    # What the parser calls

    def on_headers_complete(self) -> None:
        """Start to answer, or queue behind requests that came before."""
        self.heads += 1
        self.header_since, self.header_bytes = None, 0
        total = len(self.url)
        for name, value in self.headers:
            total += len(name) + len(value)
        if total > self.settings.header_bytes:
            self._refuse_headers()
            raise RefusedError
        if len(self.pipeline) >= self.settings.pipelined:
            self._refuse(400, "too many requests came before the first was answered")
            raise RefusedError
        before = self.cycle
        super().on_headers_complete()
        if self.cycle is not before:
            self.cycle.transport = AnswerWriter(self.transport)  # type: ignore[assignment]
        if before is None or before.response_complete:
            self.running = self.cycle
        self.body_since = self.loop.time()
        self.body_bytes = self.extra_bytes = self.late_bytes = 0

    def on_body(self, body: bytes) -> None:
        """Take in a part of a body; after the answer, only so much more."""
        self.body_bytes += len(body)
        if self.cycle.response_complete:
            self.late_bytes += len(body)
            if self.late_bytes > LINGER_BYTES:
                self.is_refused = True
                self.break_off()
                raise RefusedError
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Let the caller wait for the service from here on."""
        self.body_since = self.ends_at = None
        super().on_message_complete()
        if not self.cycle.response_complete:
            self.table.waiting.pop(self, None)

    # What the answer calls

    def on_response_complete(self) -> None:
        """Wait for the caller again, unless another request waits for its answer."""
        now = self.loop.time()
        if self.running is not None and isinstance(self.running.transport, AnswerWriter):
            self.running.transport.flush()
        if self.pipeline:
            self.running = self.pipeline[-1][0]
        super().on_response_complete()
        if self.cycle.response_complete and self in self.table.connections:
            self.idle_since = now
            self.table.waiting[self] = None
            if self.body_since is not None:  # answered before all of the body came
                self.ends_at = now + LINGER_SECONDS

    # What the server and the table call

    def shutdown(self) -> None:
        """Stop: a request that did not arrive completely is not waited for."""
        if self.body_since is not None or self.is_refused:
            self.break_off()
        else:
            super().shutdown()

    def check(self, now: float) -> None:
        """Close the connection if its caller has kept the service waiting for too long."""
        settings = self.settings
        unsent = self.transport.get_write_buffer_size()
        if unsent == 0 or unsent != self.unsent_bytes:
            if self.unsent_bytes and self.is_answering and self.body_since is None:
                self.table.waiting.pop(self, None)
            self.unsent_bytes, self.unsent_since = unsent, now
        elif now - self.unsent_since >= settings.send_seconds:
            self.table.count("unread")
            self.break_off()
            return
        else:
            self.table.waiting.setdefault(self)
        if self.ends_at is not None and now >= self.ends_at:
            self.break_off()
        elif self.is_refused or self.flow.read_paused:
            return
        elif self.header_since is not None:
            if now - self.header_since >= settings.header_seconds:
                limit = f"{settings.header_seconds:g} s"
                self._refuse(408, f"the headers were not complete within {limit}")
        elif self.body_since is not None:
            if now - self.body_since >= settings.body_seconds:
                limit = f"{settings.body_seconds:g} s"
                self._refuse(408, f"the body was not complete within {limit}")
        elif not self.is_answering and now - self.idle_since >= settings.idle_seconds:
            self.break_off()

    def timeout_keep_alive_handler(self) -> None:
        """Close the connection after its idle time."""
        self.break_off()

    def break_off(self) -> None:
        """Close the connection now; what its caller did not read is lost."""
        if self.transport.get_write_buffer_size() or self.is_refused or self.is_answering:
            self._give_up()
            self._set_option(socket.SO_LINGER, _RESET)
            self.transport.abort()
        else:
            self.transport.close()

    def _give_up(self) -> None:
        """Tell the app that nobody waits for its answers, neither the present nor later ones."""
        self.pipeline.clear()
        if self.running is not None and not self.running.response_complete:
            self.running.disconnected = True
            self.running.message_event.set()

    def _set_option(self, option: int, value: int | bytes) -> None:
        caller = self.transport.get_extra_info("socket")
        with contextlib.suppress(OSError, AttributeError):  # e.g. closed by the caller
            caller.setsockopt(socket.SOL_SOCKET, option, value)

    def _refuse_headers(self) -> None:
        self._refuse(431, f"the headers are larger than {self.settings.header_bytes} bytes")

    def _refuse(self, status: int, detail: str) -> None:
        """Take no more requests; say why if no other answer comes first, and close."""
        self.is_refused = True
        self.table.count(REASONS[status])
        self._stop_reading()
        if self.is_answering:
            if self.body_since is None:  # the accepted requests are answered first
                self.cycle.keep_alive = False
                return
            if self.pipeline or self.cycle.response_started:
                self.break_off()
                return
            self._give_up()
        self.ends_at = self.loop.time() + LINGER_SECONDS
        if not self.transport.is_closing():
            self.transport.write(refusal(status, detail))
            if self.transport.can_write_eof():
                self.transport.write_eof()

    def _stop_reading(self) -> None:
        if not self.transport.is_closing():
            self.flow.pause_reading()


@cache
def refusal(status: int, detail: str) -> bytes:
    """Return an answer with problem details, after which the connection ends."""
    body = json.dumps(problem_details(status, detail)).encode()
    headers = [
        (b"content-type", b"application/problem+json"),
        (b"content-length", b"%d" % len(body)),
        (b"connection", b"close"),
        *RAW_HEADERS,
    ]
    first = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode()
    return first + b"".join(b"%s: %s\r\n" % pair for pair in headers) + b"\r\n" + body
