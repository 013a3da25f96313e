"""A thin client: the service's routes as methods, over one connection that stays open."""

import http.client
import json
import time
from typing import Any
from urllib.parse import quote, urlsplit

from counsel.errors import CounselError

__all__ = ["Client"]

IDLE = 4.0
"""Seconds after which a connection is opened again: proxies close idle connections."""

CREATING = ("/advisers", "/episodes", "/models")
"""Paths whose POST requests create something and must not be sent twice."""


class ServiceError(CounselError):
    """The service refused a request; ``status`` is the HTTP status, the message the service's."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


class Client:
    """A connection to a service.

    A request is sent once more when the connection was lost, unless it creates something. Use one
    client per thread; as a context manager it closes its connection.

    Parameters
    ----------
    url
        The address of the service, e.g. ``http://127.0.0.1:8000``.
    key
        A key that ``counsel keys add`` printed, if the service needs one.
    timeout
        Seconds to wait for an answer.

    Raises
    ------
    CounselError
        If ``url`` or ``key`` is not valid. All methods that send a request raise it if the service
        does not answer, and a ``ServiceError`` with the HTTP ``status`` if the service refuses.

    Examples
    --------
    With ``counsel serve --no-auth`` running, at most one piece of advice per episode:

    >>> counsel = Client("http://127.0.0.1:8000")
    >>> adviser = counsel.create_adviser("alerts", "ward", budget=1, hard=True)  # doctest: +SKIP
    >>> episode = counsel.start(adviser["id"], "ann")  # doctest: +SKIP
    >>> decision = counsel.advise(episode, 0, "deteriorating")  # doctest: +SKIP
    >>> decision["advice"]  # doctest: +SKIP
    'call doctor'
    >>> counsel.report(decision["id"], "call doctor", reward=0.5)  # doctest: +SKIP
    >>> decision = counsel.advise(episode, 1, "deteriorating")  # doctest: +SKIP
    >>> decision["advice"], decision["reason"]["why"]  # doctest: +SKIP
    (None, 'the budget is spent')
    >>> counsel.end(episode)  # doctest: +SKIP
    >>> counsel.close()

    A mistake in the address is found before anything is sent:

    >>> Client("127.0.0.1:8000")
    Traceback (most recent call last):
        ...
    counsel.errors.CounselError: url is '127.0.0.1:8000'; write http://HOST:PORT or https://HOST
    """

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
        self._headers = {"Content-Type": "application/json"}
        if key is not None:
            self._headers["Authorization"] = f"Bearer {key}"

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def create_adviser(self, name: str, source: str, **settings: Any) -> dict[str, Any]:  # noqa: ANN401
        """Create an adviser.

        Parameters
        ----------
        name, source
            A name for the adviser, and a world's name or the id of an uploaded model.
        **settings
            As in the API: ``penalty``, or ``budget`` and ``hard``, or ``always``; ``algorithm``
            ("ucb-ad" or "thompson"), ``mode`` ("live", "shadow" or "off"), ``knows_habit``,
            ``holdout`` (the share of episodes kept silent), ``explore`` and ``schedule`` (a trial)
            and ``must_say`` (advice by state).

        Returns
        -------
        dict
            Its ``id``, ``name``, ``settings``, ``horizon``, ``states`` and ``actions``.
        """
        body = {"name": name, "source": source, **settings}
        return self._send("POST", "/v1/advisers", body)  # type: ignore[no-any-return]

    def advisers(self) -> list[dict[str, Any]]:
        """List the advisers.

        Returns
        -------
        list of dict
            The ``id``, ``name`` and ``settings`` of each.
        """
        return self._send("GET", "/v1/advisers")  # type: ignore[no-any-return]

    def set_mode(self, adviser: str, mode: str) -> dict[str, Any]:
        """Switch an adviser to another mode.

        Parameters
        ----------
        adviser, mode
            Its id, and "off" (silent), "shadow" (records advice without showing it) or "live".

        Returns
        -------
        dict
            The adviser.
        """
        return self._send("PATCH", _path("advisers", adviser), {"mode": mode})  # type: ignore[no-any-return]

    def upload_model(self, content: bytes, name: str = "model") -> str:
        """Upload a model that ``counsel fit`` wrote.

        Parameters
        ----------
        content, name
            The content of the file, and a name for the model.

        Returns
        -------
        str
            The model's id, which is a ``source`` of advisers.
        """
        return str(self._send("POST", f"/v1/models?name={quote(name, safe='')}", content)["id"])

    def start(self, adviser: str, person: str) -> str:
        """Start an episode with a person, who is added on first use.

        Parameters
        ----------
        adviser, person
            The adviser's id, and the person's name.

        Returns
        -------
        str
            The episode's id.
        """
        path = _path("advisers", adviser, "episodes")
        return str(self._send("POST", path, {"person": person})["id"])

    def advise(self, episode: str, step: int, state: str) -> dict[str, Any]:
        """Ask what to advise at a step; a step is decided only once.

        Parameters
        ----------
        episode, step, state
            The episode's id, the step counted from 0, and the state by its label.

        Returns
        -------
        dict
            ``id``, which the outcome refers to; ``advice``, None for silence; ``shadow``, the
            advice that is not shown; the ``probability`` of this decision; and the ``reason``,
            whose ``why`` is in words.
        """
        path = _path("episodes", episode, "advice")
        return self._send("POST", path, {"step": step, "state": state})  # type: ignore[no-any-return]

    def report(self, advice_id: str, action: str, **outcome: Any) -> None:  # noqa: ANN401
        """Report the outcome of a decision.

        Parameters
        ----------
        advice_id, action
            The ``id`` that ``advise`` returned, and what the person did, by its label.
        **outcome
            As in the API: ``reward``, ``next_state``, ``seen``, ``reason_code`` and ``comment``.
        """
        self.report_all([{"advice_id": advice_id, "action": action, **outcome}])

    def report_all(self, outcomes: list[dict[str, Any]]) -> None:
        """Report many outcomes at once; they may come late, repeated and out of order.

        Parameters
        ----------
        outcomes
            At most 1,000, each with ``advice_id``, ``action`` and the other fields of ``report``.
        """
        self._send("POST", "/v1/outcomes", {"outcomes": outcomes})

    def end(self, episode: str, *, terminated: bool = True) -> None:
        """End an episode; ending it again changes nothing.

        Parameters
        ----------
        episode, terminated
            Its id, and whether it ended by itself; false where only the recording ends.
        """
        self._send("POST", _path("episodes", episode, "end"), {"terminated": terminated})

    def log(self, adviser: str, format: str = "csv") -> bytes:
        """Return the log of an adviser, as ``counsel fit`` reads it.

        Parameters
        ----------
        adviser, format
            Its id, and "csv", "parquet", or "spreadsheet": CSV in which no text is a formula.

        Returns
        -------
        bytes
            The content of the file.
        """
        query = f"?format={quote(format, safe='')}"
        return self._request("GET", _path("advisers", adviser, "log") + query, None)

    def summary(self, adviser: str) -> dict[str, Any]:
        """Return the numbers of the dashboard.

        Parameters
        ----------
        adviser
            Its id.

        Returns
        -------
        dict
            Counts, estimates and trends, as in the API.
        """
        return self._send("GET", _path("advisers", adviser, "summary"))  # type: ignore[no-any-return]

    def person(self, name: str) -> dict[str, Any]:
        """Return what each adviser believes of a person.

        Parameters
        ----------
        name
            The person's name.

        Returns
        -------
        dict
            ``name`` and, for each adviser of the person, ``episodes`` and ``listening``.
        """
        return self._send("GET", _path("people", name))  # type: ignore[no-any-return]

    def delete_person(self, name: str) -> None:
        """Delete a person with all their data, and forget what was learnt of them.

        Parameters
        ----------
        name
            The person's name.
        """
        self._send("DELETE", _path("people", name))

    def _send(self, verb: str, path: str, body: Any = None) -> Any:  # noqa: ANN401 (JSON)
        answer = self._request(verb, path, body)
        try:
            return json.loads(answer) if answer else None
        except ValueError:
            reason = f"the answer of {self._url} is not JSON; is it a Counsel service?"
            raise CounselError(reason) from None

    def _request(self, verb: str, path: str, body: Any) -> bytes:  # noqa: ANN401 (JSON)
        try:
            content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        except (TypeError, ValueError) as fault:
            raise CounselError(f"the request cannot be sent as JSON: {fault}") from None
        if time.monotonic() - self._used > IDLE:
            self._connection.close()  # the next request opens it again
        try:
            status, answer = self._exchange(verb, path, content)
        except (ConnectionError, http.client.HTTPException) as fault:
            if isinstance(fault, ConnectionRefusedError):
                raise CounselError(f"nobody answers at {self._url}") from None
            if verb == "POST" and path.split("?")[0].endswith(CREATING):
                reason = "closed the connection; the request may have been carried out"
                raise CounselError(f"{self._url} {reason}") from None
            status, answer = self._exchange(verb, path, content, last=True)
        self._used = time.monotonic()
        if not 200 <= status < 300:
            raise ServiceError(status, _detail(status, answer))
        return answer

    def _exchange(
        self, verb: str, path: str, body: bytes | None, *, last: bool = False
    ) -> tuple[int, bytes]:
        """Send a request once; on the last try a lost connection is an error of Counsel's."""
        try:
            self._connection.request(verb, self._path + path, body, self._headers)
            answer = self._connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException) as fault:
            self._connection.close()
            if isinstance(fault, ConnectionError | http.client.HTTPException) and not last:
                raise
            raise CounselError(f"{self._url} does not answer: {fault}") from None


def _path(*parts: str) -> str:
    return "/v1/" + "/".join(quote(part, safe="") for part in parts)


def _detail(status: int, content: bytes) -> str:
    try:
        return str(json.loads(content)["detail"])
    except (ValueError, KeyError, TypeError):
        return f"the service answered {status}"
