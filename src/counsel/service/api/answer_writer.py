"""Writes the head of an answer together with the first part of its body.

The server writes them one after the other. Each write is a call of the system and wakes the caller,
who has no use for a head without a body.
"""

import asyncio

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
"""Comes before the head of an answer, and waits for nothing."""


class AnswerWriter:
    """The transport of one answer: holds its head back until something follows."""

    __slots__ = ("_has_head", "_head", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._has_head, self._head = False, b""

    def write(self, data: bytes) -> None:
        """Write a part of the answer; the first part is its head."""
        if self._has_head:
            self._transport.write(self._head + data if self._head else data)
            self._head = b""
        elif data == CONTINUE:
            self._transport.write(data)
        else:
            self._has_head, self._head = True, data

    def flush(self) -> None:
        """Write a head that nothing follows."""
        if self._head:
            self.write(b"")

    def close(self) -> None:
        """Close the connection once everything is written."""
        self.flush()
        self._transport.close()

    def is_closing(self) -> bool:
        """Whether the connection is closed or about to be."""
        return self._transport.is_closing()
