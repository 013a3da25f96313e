"""A connection to a service that stays open: JSON out, JSON in, and errors in words."""

import http.client
import json
import re
import time
from collections.abc import Iterator, Mapping
from types import UnionType
from typing import Any, NamedTuple, Self
from urllib.parse import quote, urlsplit

from counsel.errors import CounselError

IDLE = 4.0
"""Seconds after which a connection is opened again: proxies close idle connections."""

PAGE = 1000
"""Rows that are asked for at once where a list is read."""

CREATING = ("/advisers", "/episodes", "/models")
"""Paths whose POST requests create something and must not be sent twice."""


PROBLEM = "application/problem+json"
"""The content type of all errors of the service; those of proxies and portals have others."""

LATER = (401, 403, 408, 429)
"""Answers of the service to requests that it may carry out later.

A key that expired is no reason to be silent about what must be said.
"""


class ServiceError(CounselError):
    """A request was not carried out; ``status`` is the HTTP status, the message the service's.

    ``is_refusal`` says whether the service itself refuses the request for good. A proxy or a portal
    that answers in its place refuses nothing, and a failure of the service may pass.
    """

    def __init__(self, status: int, detail: str, *, is_counsel: bool = True) -> None:
        super().__init__(detail)
        self.status = status
        self.is_refusal = is_counsel and 400 <= status < 500 and status not in LATER


class NoAnswerError(CounselError):
    """The service does not answer, or somebody else answers in its place."""


class _Answer(NamedTuple):
    """An answer: its HTTP status, the type of its content, and the content."""

    status: int
    kind: str
    content: bytes


class Connection:
    """Sends requests to one service; ``Client`` says which."""

    def __init__(self, url: str, key: str | None = None, timeout: float = 30.0) -> None:
        kinds = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        if not host or parts.scheme not in kinds:
            raise CounselError(f"url is {url[:60]!r}; write http://HOST:PORT or https://HOST")
        if key is not None and not (key.isascii() and key.isprintable()):
            raise CounselError("the key has characters that no key can have; copy it again")
        self._url, self._used = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}", 0.0
        self._connection = kinds[parts.scheme](host, port, timeout=timeout)
        self._path = parts.path.rstrip("/")
        self._link: str | None = None
        self._headers = {"Content-Type": "application/json"}
        if key is not None:
            self._headers["Authorization"] = f"Bearer {key}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _pages(self, path: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of a list, page by page as the ``Link`` header says."""
        following: str | None = path
        while following is not None:
            rows = self._send("GET", following)
            if not isinstance(rows, list):
                raise self._no_counsel()
            following = _next_page(self._link)  # the caller may send other requests meanwhile
            yield from rows

    def _send(
        self,
        verb: str,
        path: str,
        body: Any = None,  # noqa: ANN401 (JSON)
        headers: Mapping[str, str] | None = None,
    ) -> Any:  # noqa: ANN401 (JSON)
        """Send a request and return its answer, decoded."""
        answer = self._request(verb, path, body, headers)
        try:
            return json.loads(answer) if answer else None
        except (ValueError, RecursionError):
            reason = f"the answer of {self._url} is not JSON; is it a Counsel service?"
            raise NoAnswerError(reason) from None

    def _send_for(
        self,
        fields: Mapping[str, type | UnionType],
        verb: str,
        path: str,
        body: Any = None,  # noqa: ANN401 (JSON)
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Send a request and return its answer, an object with fields of these kinds."""
        answer = self._send(verb, path, body, headers)
        if not isinstance(answer, dict):
            raise self._no_counsel()
        if not all(isinstance(answer.get(name, ...), kind) for name, kind in fields.items()):
            raise self._no_counsel()
        return answer

    def _no_counsel(self) -> NoAnswerError:
        """Return the error of an answer that no Counsel service gives."""
        return NoAnswerError(
            f"the answer of {self._url} is none of a Counsel service; does a proxy or a portal "
            "answer in its place?"
        )

    def _request(
        self,
        verb: str,
        path: str,
        body: Any,  # noqa: ANN401 (JSON)
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """Send a request, once more if the connection was lost, and return its answer."""
        headers = self._headers | dict(headers or {})
        try:
            content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        except (TypeError, ValueError) as fault:
            raise CounselError(f"the request cannot be sent as JSON: {fault}") from None
        if time.monotonic() - self._used > IDLE:
            self._connection.close()  # the next request opens it again
        try:
            answer = self._exchange(verb, path, content, headers)
        except (ConnectionError, http.client.HTTPException) as fault:
            if isinstance(fault, ConnectionRefusedError):
                raise NoAnswerError(f"nobody answers at {self._url}") from None
            is_creating = verb == "POST" and path.split("?")[0].endswith(CREATING)
            if is_creating and "Idempotency-Key" not in headers:  # else it creates nothing twice
                reason = "closed the connection; the request may have been carried out"
                raise NoAnswerError(f"{self._url} {reason}") from None
            answer = self._exchange(verb, path, content, headers, last=True)
        self._used = time.monotonic()
        if not 200 <= answer.status < 300:
            is_counsel = answer.kind.partition(";")[0].strip().lower() == PROBLEM
            raise ServiceError(answer.status, _detail(answer), is_counsel=is_counsel)
        return answer.content

    def _exchange(
        self,
        verb: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        *,
        last: bool = False,
    ) -> _Answer:
        """Send a request once; on the last try a lost connection is an error of Counsel's."""
        try:
            try:
                self._connection.request(verb, self._path + path, body, headers)
            except (BrokenPipeError, ConnectionResetError):
                if (refusal := self._early_refusal()) is None:
                    raise
                return refusal
            return self._read()
        except (OSError, http.client.HTTPException) as fault:
            self._connection.close()
            if isinstance(fault, ConnectionError | http.client.HTTPException) and not last:
                raise
            raise NoAnswerError(f"{self._url} does not answer: {fault}") from None

    def _read(self) -> _Answer:
        """Read the answer to the request that was sent."""
        answer = self._connection.getresponse()
        self._link = answer.getheader("Link")
        return _Answer(answer.status, answer.getheader("Content-Type", ""), answer.read())

    def _early_refusal(self) -> _Answer | None:
        """Return the refusal that came before the request was sent completely, if one did.

        The service reads only a little of a body that is too large, and closes the connection.
        """
        if self._connection.sock is None:  # it broke while it was opened
            return None
        try:
            answer = self._read()
        except (OSError, http.client.HTTPException):
            return None
        finally:
            self._connection.close()
        return answer if answer.status >= 400 else None


def _next_page(link: str | None) -> str | None:
    """Return the path of the next page in a ``Link`` header, if there is one."""
    match = re.match(r'<(?:[a-z]+://[^/>]*)?(/[^>]*)>; rel="next"', link or "")
    if match is None:
        return None
    return "/v1/" + match[1].partition("/v1/")[2]  # a proxy may have put a path before it


def _detail(answer: _Answer) -> str:
    try:
        return str(json.loads(answer.content)["detail"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return f"the service answered {answer.status}"


def path_of(*parts: str) -> str:
    """Return the path of a route of the API from its parts."""
    return "/v1/" + "/".join(quote(part, safe="") for part in parts)
