"""Limits of connections, with a clock and a transport of our own: nothing waits or is sent."""

import asyncio
import json
from types import SimpleNamespace

import prometheus_client
import pytest
import uvicorn
from uvicorn.server import ServerState

from counsel.service.api.connection_limits import (
    CHUNK_OVERHEAD,
    LINGER_BYTES,
    LINGER_SECONDS,
    LimitedConnection,
)
from counsel.service.api.metrics import REFUSED
from counsel.service.settings import ServiceSettings

SETTINGS = ServiceSettings(
    connections=3,
    header_bytes=1000,
    header_seconds=5.0,
    body_seconds=20.0,
    idle_seconds=75.0,
    send_seconds=10.0,
    pipelined=4,
)
HEAD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST /v1/outcomes HTTP/1.1\r\nHost: localhost\r\n"


class Clock:
    """A loop whose time is set by hand; tasks are kept and never run."""

    def __init__(self):
        self.now, self.calls, self.tasks = 100.0, [], []

    def time(self):
        return self.now

    def call_later(self, seconds, call, *arguments):
        self.calls.append((self.now + seconds, call))
        return self

    def cancel(self):
        """Timers of idle connections are left to the sweep here."""

    def create_task(self, coroutine):
        coroutine.close()
        self.tasks.append(self)
        return self

    def add_done_callback(self, _):
        pass


class Transport:
    """Keeps what is written; what the caller did not take is in ``unsent``."""

    def __init__(self):
        self.written, self.unsent, self.reads, self.ended = b"", 0, True, False
        self.end = None

    def write(self, content):
        self.written += content

    def get_write_buffer_size(self):
        return self.unsent

    def is_closing(self):
        return self.end is not None

    def close(self):
        self.end = self.end or "closed"

    def abort(self):
        self.end = self.end or "reset"

    def pause_reading(self):
        self.reads = False

    def resume_reading(self):
        self.reads = True

    def can_write_eof(self):
        return True

    def write_eof(self):
        self.ended = True

    def get_extra_info(self, _):
        return None


class Edge:
    """A process without sockets."""

    def __init__(self, settings=SETTINGS):
        self.clock, self.state = Clock(), ServerState()
        refused = {reason: prometheus_client.Counter(reason, "", registry=None)
                   for reason in REFUSED}  # fmt: skip
        self.metrics = SimpleNamespace(connections=0, refused=refused)
        self.config = uvicorn.Config(lambda *_: None, lifespan="off", ws="none", backlog=100)
        self.settings = settings

    def connect(self):
        connection = LimitedConnection(
            self.config,
            self.state,
            {"settings": self.settings, "metrics": self.metrics},
            self.clock,
        )
        connection.connection_made(Transport())
        return connection

    def after(self, seconds):
        """Let time pass, with a sweep at the end."""
        self.clock.now += seconds
        next(iter(self.state.connections)).table.sweep()


@pytest.fixture
def edge():
    return Edge()


def drive(coroutine):
    """Run a coroutine that waits for nothing."""
    with pytest.raises(StopIteration):
        coroutine.send(None)


def answer(connection, cycle=None, *, more_body=False, body=b"ok"):
    """Answer a request as the app does."""
    cycle = cycle or connection.cycle
    if not cycle.response_started:
        drive(cycle.send({"type": "http.response.start", "status": 200, "headers": []}))
    drive(cycle.send({"type": "http.response.body", "body": body, "more_body": more_body}))


def status(connection):
    return connection.transport.written[9:12]


def detail(connection):
    return json.loads(connection.transport.written.partition(b"\r\n\r\n")[2])["detail"]


def test_a_request_is_answered_and_the_connection_stays(edge):
    connection = edge.connect()
    for _ in range(3):
        connection.data_received(HEAD + b"\r\n")
        answer(connection)
        edge.after(60.0)
    assert connection.transport.written.count(b"200 OK") == 3
    assert connection.transport.end is None


@pytest.mark.parametrize(
    "part",
    [b"x", b"\r\n", b"a: b\r\n", b"a: " + b"b" * 90 + b"\r\n"],
    ids=["one", "empty", "many", "long"],
)
def test_headers_without_end_are_refused(edge, part):
    connection = edge.connect()
    connection.data_received(b"" if part == b"\r\n" else HEAD + b"X: ")
    sent = 0
    while not connection.is_refused:
        connection.data_received(part)
        sent += len(part)
        assert sent < 1200
    assert status(connection) == b"431"
    assert "1000 bytes" in detail(connection)
    assert connection.transport.ended
    assert not connection.transport.reads


@pytest.mark.parametrize("size", [50_000, 500_000])
def test_large_headers_in_one_part_are_refused(edge, size):
    for content in (b"a: b\r\n" * (size // 6) + b"\r\n", b"a: " + b"b" * size + b"\r\n\r\n"):
        connection = edge.connect()
        connection.data_received(HEAD + content)
        assert status(connection) == b"431"
        assert not edge.clock.tasks
        connection.connection_lost(None)


def test_a_long_address_counts_as_a_header(edge):
    connection = edge.connect()
    connection.data_received(b"GET /" + b"a" * 1000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert status(connection) == b"431"


def test_a_large_body_is_not_counted_as_headers(edge):
    connection = edge.connect()
    connection.data_received(POST + b"Content-Length: 50000\r\n\r\n" + b"a" * 20_000)
    connection.data_received(b"a" * 30_000 + HEAD[:20])
    assert not connection.is_refused
    assert len(connection.cycle.body) == 50_000
    answer(connection)
    connection.data_received(HEAD[20:] + b"\r\n")
    assert len(edge.clock.tasks) == 2


def test_what_was_refused_is_reset_after_a_moment(edge):
    connection = edge.connect()
    connection.data_received(b"\xff\xfe" * 10)
    assert status(connection) == b"400"
    connection.data_received(HEAD + b"\r\n")
    assert not edge.clock.tasks, "nothing is parsed after an error"
    edge.after(LINGER_SECONDS / 2)
    assert connection.transport.end is None, "the caller has time to read why"
    edge.after(LINGER_SECONDS / 2)
    assert connection.transport.end == "reset"


def test_slow_headers_are_refused_however_steadily_they_come(edge):
    connection = edge.connect()
    connection.data_received(HEAD)
    for _ in range(4):
        edge.after(1.0)
        connection.data_received(b"a")
    assert not connection.is_refused
    edge.after(1.0)
    assert status(connection) == b"408"


def test_a_slow_body_is_refused_and_its_request_given_up(edge):
    connection = edge.connect()
    connection.data_received(POST + b"Content-Length: 100\r\n\r\n")
    for _ in range(19):
        edge.after(1.0)
        connection.data_received(b"a")
    assert not connection.is_refused
    edge.after(1.0)
    assert status(connection) == b"408"
    assert connection.cycle.disconnected
    drive(connection.cycle.send({"type": "http.response.start", "status": 200, "headers": []}))
    assert connection.transport.written.count(b"HTTP/1.1") == 1


def test_a_body_that_the_app_does_not_take_yet_is_not_slow(edge):
    connection = edge.connect()
    connection.data_received(POST + b"Content-Length: 100000\r\n\r\n" + b"a" * 70_000)
    assert not connection.transport.reads
    edge.after(30.0)
    assert not connection.is_refused


@pytest.mark.parametrize("part", [b"1;" + b"a" * 500, b"a" * 500], ids=["extension", "trailer"])
def test_chunks_need_content(edge, part):
    connection = edge.connect()
    connection.data_received(POST + b"Transfer-Encoding: chunked\r\n\r\n")
    if part[:1] == b"a":
        connection.data_received(b"2\r\n{}\r\n0\r\nx: ")
    for _ in range(5):
        connection.data_received(part)
        part = b"a" * 500
    assert status(connection) == b"400"


def test_small_chunks_are_accepted(edge):
    connection = edge.connect()
    connection.data_received(POST + b"Transfer-Encoding: chunked\r\n\r\n")
    for _ in range(1000):
        connection.data_received(b"1\r\na\r\n")
    connection.data_received(b"0\r\n\r\n")
    assert not connection.is_refused
    assert len(b"1\r\n\r\n") < CHUNK_OVERHEAD
    assert connection.cycle.body == b"a" * 1000
    assert not connection.cycle.more_body


def test_a_connection_without_a_request_is_closed_after_the_idle_time(edge):
    connection = edge.connect()
    edge.after(74.0)
    assert connection.transport.end is None
    edge.after(1.0)
    assert connection.transport.end == "closed"


def test_a_request_in_progress_is_never_idle(edge):
    connection = edge.connect()
    connection.data_received(HEAD + b"\r\n")
    edge.after(1000.0)
    assert connection.transport.end is None


def test_an_answer_that_nobody_takes_is_given_up(edge):
    connection = edge.connect()
    connection.data_received(HEAD + b"\r\n")
    answer(connection, more_body=True)
    for unsent in (90_000, 80_000, 70_000):
        connection.transport.unsent = unsent
        edge.after(9.0)
        edge.after(0.5)
        assert connection.transport.end is None, "the caller takes part of it"
    edge.after(10.0)
    assert connection.transport.end == "reset"


def test_requests_beyond_the_pipeline_are_neither_parsed_nor_answered(edge):
    connection = edge.connect()
    connection.data_received((HEAD + b"\r\n") * 500)
    assert connection.is_refused
    assert len(connection.pipeline) == 4
    assert len(edge.clock.tasks) == 1
    assert connection.transport.written == b"", "an error would be read as the first answer"


def test_the_answers_of_a_full_pipeline_come_in_order_and_then_the_end(edge):
    connection = edge.connect()
    connection.data_received(HEAD + b"\r\n")
    running = connection.cycle
    connection.data_received((HEAD + b"\r\n") * 10)
    queued = [cycle for cycle, _ in reversed(connection.pipeline)]
    for cycle in (running, *queued):
        assert connection.transport.end is None
        answer(connection, cycle)
    assert connection.transport.written.count(b"200 OK") == 5
    assert connection.transport.written.count(b"connection: close") == 1
    assert connection.transport.end == "closed"


def test_the_end_of_a_connection_ends_all_its_requests(edge):
    closed, reset = edge.connect(), edge.connect()
    for connection in (closed, reset):
        connection.data_received((HEAD + b"\r\n") * 3)
        answer(connection, connection.running)
    running = [connection.running for connection in (closed, reset)]
    assert running[0] is not closed.cycle
    closed.connection_lost(None)
    reset.break_off()
    for connection, cycle in zip((closed, reset), running, strict=True):
        written = connection.transport.written
        answer(connection, cycle)
        assert connection.transport.written == written
        assert not connection.pipeline


def test_garbage_behind_a_request_does_not_spoil_its_answer(edge):
    connection = edge.connect()
    connection.data_received(HEAD + b"\r\n\xff\xff\xff\r\n\r\n")
    assert connection.transport.written == b""
    answer(connection)
    assert status(connection) == b"200"
    assert b"connection: close" in connection.transport.written
    assert connection.transport.end == "closed"


def test_a_body_after_its_answer_is_read_only_so_far(edge):
    connection = edge.connect()
    connection.data_received(POST + b"Content-Length: 999999999999\r\n\r\n")
    answer(connection)
    assert connection.transport.end is None, "a caller who sends first can read it"
    for _ in range(LINGER_BYTES // 100_000):
        connection.data_received(b"a" * 100_000)
    assert connection.transport.end is None
    connection.data_received(b"a")
    assert connection.transport.end == "reset"


def test_a_body_after_its_answer_is_read_only_so_long(edge):
    early, complete = edge.connect(), edge.connect()
    for connection in (early, complete):
        connection.data_received(POST + b"Content-Length: 10\r\n\r\n")
        answer(connection)
    complete.data_received(b"a" * 10)
    edge.after(LINGER_SECONDS)
    assert early.transport.end is not None
    assert complete.transport.end is None
    complete.data_received(HEAD + b"\r\n")
    answer(complete)
    assert complete.transport.written.count(b"200 OK") == 2


def test_one_connection_too_many_closes_the_one_that_waits_for_longest(edge):
    first, second, third = (edge.connect() for _ in range(3))
    first.data_received(HEAD + b"\r\n")
    second.data_received(HEAD + b"\r\n")
    answer(second)
    edge.connect()
    assert [c.transport.end for c in (first, second, third)] == [None, None, "closed"]
    edge.connect()
    assert [c.transport.end for c in (first, second)] == [None, "closed"]
    assert len(first.table.connections) == 3


def test_a_connection_that_sends_half_a_request_waits_too(edge):
    half_headers, half_body, late = (edge.connect() for _ in range(3))
    half_headers.data_received(HEAD)
    half_body.data_received(POST + b"Content-Length: 5\r\n\r\n")
    edge.connect()
    edge.connect()
    assert half_headers.transport.end is not None
    assert half_body.transport.end == "reset"
    assert late.transport.end is None


def test_no_request_in_progress_is_given_up_for_a_new_connection(edge):
    busy = [edge.connect() for _ in range(3)]
    for connection in busy:
        connection.data_received(HEAD + b"\r\n")
    late = edge.connect()
    assert late.transport.end == "closed"
    assert all(connection.transport.end is None for connection in busy)


def test_callers_who_do_not_read_make_room(edge):
    reading, stuck, _ = (edge.connect() for _ in range(3))
    for connection in (reading, stuck):
        connection.data_received(HEAD + b"\r\n")
        answer(connection, more_body=True)
        connection.transport.unsent = 100_000
    edge.after(1.0)
    reading.transport.unsent = 50_000
    edge.after(1.0)
    edge.connect()
    edge.connect()
    assert stuck.transport.end == "reset"
    assert reading.transport.end is None


def test_shutdown_waits_for_requests_and_not_for_their_callers(edge):
    idle, unfinished, busy = (edge.connect() for _ in range(3))
    unfinished.data_received(POST + b"Content-Length: 5\r\n\r\n")
    busy.data_received(HEAD + b"\r\n")
    for connection in (idle, unfinished, busy):
        connection.shutdown()
    assert [c.transport.end for c in (idle, unfinished, busy)] == ["closed", "reset", None]
    answer(busy)
    assert busy.transport.end == "closed"


def test_what_is_closed_at_a_limit_is_counted(edge):
    # Refused connections were in no metric and no log, so nobody saw an attack.
    slow, unread, _ = (edge.connect() for _ in range(3))
    slow.data_received(HEAD)
    unread.data_received(HEAD + b"\r\n")
    answer(unread, more_body=True)
    unread.transport.unsent = 100_000
    edge.after(1.0)
    edge.after(10.0)
    assert status(slow) == b"408"
    unread.connection_lost(None)
    for content in (b"\xff\r\n\r\n", HEAD + b"X: " + b"a" * 1000):
        connection = edge.connect()
        connection.data_received(content)
        connection.connection_lost(None)
    assert edge.metrics.connections == 2
    for _ in range(2):
        edge.connect()
    assert edge.metrics.connections == 3
    counted = {name: count._value.get() for name, count in edge.metrics.refused.items()}
    assert counted == dict.fromkeys(REFUSED, 1.0)


def test_sweeps_end_with_the_last_connection(edge):
    connection = edge.connect()
    assert len(edge.clock.calls) == 1
    edge.after(1.0)
    assert len(edge.clock.calls) == 2
    connection.connection_lost(None)
    connection.table.sweep()
    assert len(edge.clock.calls) == 2
    edge.connect()
    assert len(edge.clock.calls) == 3


def test_an_upgrade_is_answered_as_a_plain_request(edge):
    connection = edge.connect()
    connection.data_received(HEAD + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
    answer(connection)
    assert status(connection) == b"200"
    assert connection.transport.end == "closed"


def test_an_upgrade_without_a_service_for_it_is_refused(edge):
    connection = edge.connect()
    connection.data_received(b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert status(connection) == b"400"


@pytest.mark.parametrize(
    ("method", "parts"), [(b"GET", [b"ok"]), (b"GET", [b"o", b"k"]), (b"HEAD", [b"ok"])]
)
def test_an_answer_is_written_from_its_head_to_its_end(method, parts):
    connection = Edge().connect()
    connection.data_received(HEAD.replace(b"GET", method) + b"\r\n")
    written = []

    async def answer():
        head = {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"content-length", b"2")],
        }
        await connection.cycle.send(head)
        written.append(connection.transport.written)
        for i, part in enumerate(parts):
            more = i + 1 < len(parts)
            body = {"type": "http.response.body", "body": part, "more_body": more}
            await connection.cycle.send(body)

    asyncio.run(answer())
    head, _, body = connection.transport.written.partition(b"\r\n\r\n")
    assert written == [b""]
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert body == (b"" if method == b"HEAD" else b"ok")
