"""Security of requests and answers: their size, where they come from, and headers for browsers."""

import json
import re
from collections.abc import Awaitable, Callable, Iterable
from functools import lru_cache
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Scope

from counsel.service.api.errors import problem_details
from counsel.service.api.request_bodies import MANY, MANY_BYTES, SINGLE_BYTES
from counsel.service.settings import variable_of

LOOPBACK = ("127.0.0.1", "::1", "localhost")
"""Names of this machine."""

DIGITS = 15
"""Digits of a Content-Length, at most."""

HOST = re.compile(rb"([A-Za-z0-9._~-]*|\[[0-9A-Fa-f:.]*\])(:[0-9]{0,5})?")
"""A Host header: a name or an address, and perhaps a port."""

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}

Header = tuple[bytes, bytes]
"""The name and the value of a header."""

RAW_HEADERS = [(name.lower().encode(), text.encode()) for name, text in HEADERS.items()]


Refusal = tuple[int, str]
"""The status and the reason with which a request is refused."""


class RequestCheck:
    """Refuses requests that are too large, not valid, or from elsewhere."""

    def __init__(self, *, local_only: bool, model_bytes: int) -> None:
        self.local_only = local_only
        variable = variable_of("model_bytes")
        self._many, self._single = (
            (most, f"the request is larger than {most} bytes")
            for most in (MANY_BYTES, SINGLE_BYTES)
        )
        self._model = (
            model_bytes,
            f"the model is larger than {model_bytes} bytes; raise {variable}",
        )

    def __call__(self, scope: Scope) -> Refusal | None:
        """Return why a request is refused before its body is read; None if it is not."""
        headers = dict(scope["headers"])
        declared, host = headers.get(b"content-length", b"0"), headers.get(b"host", b"")
        most, too_large = self._limit(scope)
        if not declared.isdigit() or len(declared) > DIGITS:
            return 400, "Content-Length is not a number of bytes"
        if HOST.fullmatch(host) is None:
            return 400, "Host is not the name of a host"
        if len(headers) < len(scope["headers"]) and _hosts(scope) > 1:
            return 400, "the request has several Host headers"
        if int(declared) > most:
            return 413, too_large
        if "\x00" in scope["path"] or b"%00" in scope["query_string"]:
            return 400, "the address contains NUL"
        if self.local_only and not _is_local(host, headers.get(b"origin")):
            return 403, "without keys, only pages of this machine may send requests"
        return None

    def limit_body(self, scope: Scope, receive: Receive) -> Receive:
        """Return a function that receives a body as far as its size is allowed."""
        most, too_large = self._limit(scope)
        size = 0

        async def receive_counted() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > most:
                raise HTTPException(413, too_large)
            return message

        return receive_counted

    def _limit(self, scope: Scope) -> tuple[int, str]:
        path = scope["path"]
        if MANY.fullmatch(path) is not None:
            return self._many
        return self._model if path == "/v1/models" else self._single


def with_security_headers(headers: Iterable[Header]) -> list[Header]:
    """Return the headers of an answer, and those security headers that it has not set itself."""
    own = list(headers)
    names = {name for name, _ in own}
    return own + [pair for pair in RAW_HEADERS if pair[0] not in names]


def _hosts(scope: Scope) -> int:
    """Return how many Host headers a request has."""
    return sum(name == b"host" for name, _ in scope["headers"])


@lru_cache(maxsize=100)
def _is_local(host: bytes, origin: bytes | None) -> bool:
    """Whether a request is addressed to this machine and no page of another host sent it.

    A page of another host could make its host name resolve to this machine.
    """
    try:
        place = urlsplit("//" + host.decode("latin-1"))
        is_own = origin is None or urlsplit(origin.decode("latin-1")).netloc == place.netloc
        return is_own and place.hostname in LOOPBACK
    except ValueError:  # e.g. "[", which begins an address that does not end
        return False


async def refuse(send: Callable[[Message], Awaitable[None]], status: int, detail: str) -> None:
    """Answer with problem details and security headers."""
    body = json.dumps(problem_details(status, detail)).encode()
    headers = [(b"content-type", b"application/problem+json"), *RAW_HEADERS]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
