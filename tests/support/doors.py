"""A door before a service: a forwarder on loopback that can be shut, or lose answers."""

import contextlib
import socket
import threading
from contextlib import contextmanager
from urllib.parse import urlsplit


class Door:
    """Forwards connections to a service, as its ``mode`` says.

    ``open`` forwards both ways; ``shut`` closes connections at once; ``silent`` takes requests and
    does nothing; ``deaf`` forwards requests and loses the answers.
    """

    def __init__(self, address, port=0):
        self.target = (urlsplit(address).hostname, urlsplit(address).port)
        self.mode = "open"
        self.callers = 0
        self._listener = socket.create_server(("127.0.0.1", port))
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._open, self._threads = [], []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def turn(self, mode):
        """Change the mode and end the connections of the mode before."""
        self.mode = mode
        for connection in self._open:
            _end(connection)
        for thread in self._threads:
            thread.join()
        for connection in self._open:
            connection.close()
        self._open.clear()
        self._threads.clear()

    def close(self):
        self.turn("shut")
        _end(self._listener)
        self._thread.join()
        self._listener.close()

    def _accept(self):
        while True:
            try:
                caller, _ = self._listener.accept()
            except OSError:
                return
            self.callers += 1
            if self.mode == "shut":
                caller.close()
                continue
            self._open.append(caller)
            if self.mode == "silent":
                continue
            service = socket.create_connection(self.target)
            self._open.append(service)
            back = [(service, caller)] if self.mode == "open" else [(service, None)]
            for source, sink in [(caller, service), *back]:
                thread = threading.Thread(target=_pour, args=(source, sink), daemon=True)
                self._threads.append(thread)
                thread.start()


def _pour(source, sink):
    with contextlib.suppress(OSError):
        while content := source.recv(65536):
            if sink is not None:
                sink.sendall(content)
    for end in (source, sink):
        if end is not None:
            _end(end)


def _end(connection):
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


@contextmanager
def door_to(address, port=0):
    door = Door(address, port)
    try:
        yield door
    finally:
        door.close()
