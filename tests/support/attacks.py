"""Hostile callers, in a process of their own so that they slow down nobody but the service.

Each kind keeps some connections open and opens a new one a moment after the service closes one:

- ``endless``: headers without end, as fast as the service takes them;
- ``slow``: headers at one byte per second;
- ``idle``: nothing at all;
- ``unread``: asks for a large answer and never reads any of it;
- ``pipelined``: 500 requests at once, again and again.

``attack`` starts such a process and ends it; what it saw is in the report.
"""

import asyncio
import contextlib
import json
import select
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.support.paths import ROOT

KINDS = ("endless", "slow", "idle", "unread", "pipelined")
PAUSE = 0.1
"""Seconds until a connection that was closed is opened again."""

PATIENCE = 60.0
"""Seconds after which the service will close no more connections."""

MANY, SMALL = 500, 4096
"""Requests that are sent at once, and the bytes that the caller who never reads has room for."""

HEAD = b"GET %s HTTP/1.1\r\nHost: localhost\r\n"


@dataclass(slots=True)
class Report:
    """What hostile callers saw: connections opened and closed on them, and first answers."""

    opened: int = 0
    closed: int = 0
    statuses: Counter[str] = field(default_factory=Counter)


@contextlib.contextmanager
def attack(
    kind: str, port: int, count: int, path: str = "/healthz", *, least: int = 0
) -> Iterator[Report]:
    """Attack a service until the end of the block, and until ``least`` connections were closed.

    The report is filled in then.
    """
    numbers = [str(number) for number in (port, count, least)]
    command = [sys.executable, "-m", "tests.support.attacks", kind, path, *numbers]
    report = Report()
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdout.readline()  # all connections were opened once
            yield report
            process.stdin.close()
            seen = json.loads(process.stdout.readline())
            report.opened, report.closed = seen["opened"], seen["closed"]
            report.statuses = Counter(seen["statuses"])
        finally:
            process.kill()


class Attacker:
    """Some hostile connections of one kind."""

    def __init__(self, kind: str, path: str, port: int, count: int, least: int) -> None:
        self.behave, self.path = getattr(self, kind), path.encode()
        self.port, self.count, self.least = port, count, least
        self.report, self.first = Report(), 0

    async def run(self) -> None:
        """Attack until standard input ends."""
        loop = asyncio.get_running_loop()
        tasks = [loop.create_task(self.again(number)) for number in range(self.count)]
        while self.first < self.count:
            await asyncio.sleep(0.01)
        tell("ready")
        await loop.run_in_executor(None, sys.stdin.read)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                while self.report.closed < self.least:
                    await asyncio.sleep(0.01)
        for task in tasks:
            task.cancel()
        seen = self.report
        told = {"opened": seen.opened, "closed": seen.closed, "statuses": seen.statuses}
        tell(json.dumps(told))

    async def again(self, number: int) -> None:
        """Open a connection whenever the last one was closed."""
        loop, is_first = asyncio.get_running_loop(), True
        while True:
            with socket.socket() as caller:
                caller.setblocking(False)
                if self.behave == self.unread:
                    caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
                try:
                    await loop.sock_connect(caller, ("127.0.0.1", self.port))
                    self.report.opened += 1
                    self.first, is_first = self.first + is_first, False
                    await self.behave(caller, number)
                except OSError:
                    self.first, is_first = self.first + is_first, False
                with contextlib.suppress(OSError):
                    answer = caller.recv(65536)
                    self.report.statuses[answer[9:12].decode("latin-1")] += 1
            self.report.closed += 1
            await asyncio.sleep(PAUSE)

    async def endless(self, caller: socket.socket, number: int) -> None:
        """Send headers without end: many of them, or one, by turns."""
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(caller, HEAD % self.path + b"X-Long: ")
        part = b"a: b\r\n" * 10_000 if number % 2 else b"a" * 60_000
        while True:
            await loop.sock_sendall(caller, part)

    async def slow(self, caller: socket.socket, _: int) -> None:
        """Send a header byte by byte."""
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(caller, HEAD % self.path)
        while not closed(caller):
            await loop.sock_sendall(caller, b"a")
            await asyncio.sleep(1.0)

    async def idle(self, caller: socket.socket, _: int) -> None:
        """Send nothing."""
        while not closed(caller):
            await asyncio.sleep(0.5)

    async def unread(self, caller: socket.socket, _: int) -> None:
        """Ask and never read."""
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(caller, (HEAD % self.path + b"\r\n") * 4)
        while not broken(caller):
            await asyncio.sleep(0.2)

    async def pipelined(self, caller: socket.socket, _: int) -> None:
        """Send many requests at once, and read the answers."""
        loop = asyncio.get_running_loop()
        while True:
            await loop.sock_sendall(caller, (HEAD % self.path + b"\r\n") * MANY)
            rest = MANY
            while rest > 0:
                answer = await loop.sock_recv(caller, 65536)
                if not answer:
                    return
                rest -= answer.count(b"HTTP/1.1 ")


def tell(line: str) -> None:
    """Write a line to whoever started this process."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def closed(caller: socket.socket) -> bool:
    """Whether the service has answered or closed; nothing is taken out of the answer."""
    try:
        caller.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def broken(caller: socket.socket) -> bool:
    """Whether the service has broken the connection off, however much was not read."""
    poll = select.poll()
    poll.register(caller, 0)
    return bool(poll.poll(0))


if __name__ == "__main__":
    asyncio.run(Attacker(*sys.argv[1:3], *map(int, sys.argv[3:])).run())
