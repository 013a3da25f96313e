"""Callers of the service over raw sockets, so that what is measured is the service.

Fifty of them share one thread and ``epoll``. Requests are bytes made beforehand but for ids and
states, and of an answer only the status, the id and the advice are looked at.
"""

import selectors
import socket
import time
from dataclasses import dataclass, field
from random import Random

COLUMNS, ROWS = 20, 7


@dataclass(slots=True)
class Load:
    """What callers saw; ``before`` is what was acknowledged to them while they warmed up."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    acknowledged: int = 0
    episodes: int = 0
    faults: list[bytes] = field(default_factory=list)
    before: int = 0

    @property
    def rate(self) -> float:
        """Round trips of advice and outcome in a second."""
        return self.acknowledged / self.seconds

    def percentile(self, share: float) -> float:
        """Milliseconds within which this share of requests is answered."""
        ordered = sorted(self.latencies)
        return 1000.0 * ordered[min(int(share * len(ordered)), len(ordered) - 1)]


class Caller:
    """One person with a connection: begins an episode, asks and reports at each step, ends it."""

    def __init__(self, port: int, adviser: str, number: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.begin = request(f"/v1/advisers/{adviser}/episodes", b'{"person":"person %d"}' % number)
        self.rng, self.step, self.sent = Random(number), -1, 0.0
        self.episode, self.doing, self.heard = b"", "begin", b""

    def send(self, content: bytes, doing: str) -> None:
        """Send a request."""
        self.doing, self.heard, self.sent = doing, b"", time.perf_counter()
        self.socket.sendall(content)

    def receive(self) -> bytes | None:
        """Return the answer once it is whole."""
        self.heard += self.socket.recv(65536)
        end = self.heard.find(b"\r\n\r\n")
        if end < 0:
            return None
        head = self.heard[:end].lower()
        at = head.find(b"content-length: ")
        size = 0 if at < 0 else int(head[at + 16 :].split(b"\r\n", 1)[0])
        return self.heard if len(self.heard) >= end + 4 + size else None

    def next(self, answer: bytes, load: Load, *, last: bool) -> bool:
        """Go on after an answer; False where nothing more is to be done."""
        took = time.perf_counter() - self.sent
        if self.doing in ("ask", "report"):
            load.latencies.append(took)
        if not answer.startswith((b"HTTP/1.1 20", b"HTTP/1.1 204")):
            load.faults.append(answer[:300])
            return False
        if self.doing == "begin":
            self.episode, self.step = between(answer, b'"id":"', b'"'), 0
            load.episodes += 1
            self.ask()
        elif self.doing == "ask":
            id_ = between(answer, b'"id":"', b'"')
            advice = between(answer, b'"advice":', b",").strip(b'"')
            action = advice if advice != b"null" else b"Up"
            body = b'{"outcomes":[{"advice_id":"%s","action":"%s","reward":1.0}]}' % (id_, action)
            self.send(request("/v1/outcomes", body), "report")
        elif self.doing == "report":
            load.acknowledged += 1
            self.step += 1
            if self.step < COLUMNS and not last:
                self.ask()
            else:
                path = f"/v1/episodes/{self.episode.decode()}/end"
                self.send(request(path, b'{"terminated":true}'), "end")
        elif last:
            return False
        else:
            self.send(self.begin, "begin")
        return True

    def ask(self) -> None:
        """Ask for advice."""
        state = b"c%dr%d" % (self.step, self.rng.randrange(ROWS))
        body = b'{"step":%d,"state":"%s"}' % (self.step, state)
        self.send(request(f"/v1/episodes/{self.episode.decode()}/advice", body), "ask")


def request(path: str, body: bytes) -> bytes:
    """Return a request as it goes over the wire."""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body


def between(text: bytes, left: bytes, right: bytes) -> bytes:
    """Return what stands between two marks."""
    begin = text.index(left) + len(left)
    return text[begin : text.index(right, begin)]


def call(port: int, adviser: str, *, callers: int, seconds: float) -> Load:
    """Let callers do so for some time, and finish what they have begun."""
    load, chosen = Load(), selectors.DefaultSelector()
    everybody = [Caller(port, adviser, i) for i in range(callers)]
    began = time.perf_counter()
    for caller in everybody:
        chosen.register(caller.socket, selectors.EVENT_READ, caller)
        caller.send(caller.begin, "begin")
    while chosen.get_map():
        for key, _ in chosen.select():
            caller = key.data
            answer = caller.receive()
            if answer is None:
                continue
            last = time.perf_counter() - began >= seconds
            if not caller.next(answer, load, last=last):
                chosen.unregister(caller.socket)
                caller.socket.close()
    load.seconds = time.perf_counter() - began
    return load
