"""A proxy in front of a database that can go silent: connections stay, and nothing passes."""

import selectors
import socket
import threading
from contextlib import contextmanager, suppress


class SilentProxy:
    """Passes bytes between callers and a port of this machine, while it is not silent."""

    def __init__(self, target):
        self.target = target
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.speaking = threading.Event()
        self.speaking.set()
        self.closing = False
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.thread.start()

    def silence(self):
        """Pass nothing on, and accept nobody, as if the network had lost every packet."""
        self.speaking.clear()

    def speak(self):
        """Pass everything on again."""
        self.speaking.set()

    def close(self):
        self.closing = True
        self.speaking.set()
        self.thread.join(5)

    def _work(self):
        chosen = selectors.DefaultSelector()
        chosen.register(self.listener, selectors.EVENT_READ)
        while not self.closing:
            self.speaking.wait()
            for key, _ in chosen.select(timeout=0.05):
                if not self.speaking.is_set():
                    break
                if key.fileobj is self.listener:
                    self._accept(chosen)
                else:
                    self._pass(chosen, key.fileobj, key.data)
        for key in list(chosen.get_map().values()):
            key.fileobj.close()

    def _accept(self, chosen):
        caller, _ = self.listener.accept()
        try:
            server = socket.create_connection(("127.0.0.1", self.target))
        except OSError:
            caller.close()
            return
        chosen.register(caller, selectors.EVENT_READ, server)
        chosen.register(server, selectors.EVENT_READ, caller)

    def _pass(self, chosen, source, sink):
        try:
            content = source.recv(65536)
            sink.sendall(content)
        except OSError:
            content = b""
        if not content:
            for end in (source, sink):
                with suppress(KeyError, ValueError):
                    chosen.unregister(end)
                end.close()


@contextmanager
def silent_proxy(target):
    proxy = SilentProxy(target)
    try:
        yield proxy
    finally:
        proxy.close()
