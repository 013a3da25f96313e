"""A thin client: the service's routes as methods, over one connection that stays open."""

import http.client
import json
import time
from types import TracebackType
from typing import Any
from urllib.parse import quote, urlsplit

from counsel.errors import CounselError

__all__ = ["Client"]

IDLE = 4.0
"""Seconds after which a connection is opened again: proxies close idle connections."""

CREATING = ("/advisers", "/episodes", "/models")
"""Paths whose POST requests create something and must not be sent twice."""


class ServiceError(CounselError):
    """The service refused a request; the message is the service's.

    Attributes
    ----------
    status
        The HTTP status, e.g. 404 where something does not exist.
    """

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

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def create_adviser(self, name: str, source: str, **settings: Any) -> dict[str, Any]:  # noqa: ANN401
        """Create an adviser.

        Parameters
        ----------
        name
            A name for the adviser.
        source
            A world's name, or the id of an uploaded model.
        **settings
            As in the API: ``penalty``, or ``budget`` and ``hard``, or ``always``; ``algorithm``
            ("ucb-ad" or "thompson"), ``mode`` ("live", "shadow" or "off"), ``knows_habit``,
            ``holdout`` (the share of episodes kept silent) and ``must_say`` (advice by state).

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
        adviser
            Its id.
        mode
            "off" is silent, "shadow" records advice without showing it, "live" shows it.

        Returns
        -------
        dict
            The adviser.
        """
        return self._send("PATCH", f"/v1/advisers/{quote(adviser, safe='')}", {"mode": mode})  # type: ignore[no-any-return]

    def upload_model(self, content: bytes, name: str = "model") -> str:
        """Upload a model that ``counsel fit`` wrote.

        Parameters
        ----------
        content
            The content of the file.
        name
            A name for the model.

        Returns
        -------
        str
            The model's id, which is a ``source`` of advisers.
        """
        path = f"/v1/models?name={quote(name, safe='')}"
        return str(self._send("POST", path, content)["id"])

    def start(self, adviser: str, person: str) -> str:
        """Start an episode with a person, who is added on first use.

        Parameters
        ----------
        adviser
            The adviser's id.
        person
            The person's name.

        Returns
        -------
        str
            The episode's id.
        """
        path = f"/v1/advisers/{quote(adviser, safe='')}/episodes"
        return str(self._send("POST", path, {"person": person})["id"])

    def advise(self, episode: str, step: int, state: str) -> dict[str, Any]:
        """Ask what to advise at a step; a step is decided only once.

        Parameters
        ----------
        episode
            The episode's id.
        step
            The step, counted from 0.
        state
            The state by its label.

        Returns
        -------
        dict
            ``id``, which the outcome refers to; ``advice``, None for silence; ``shadow``, the
            advice that is not shown; the ``probability`` of this decision; and the ``reason``,
            whose ``why`` is in words.
        """
        path = f"/v1/episodes/{quote(episode, safe='')}/advice"
        return self._send("POST", path, {"step": step, "state": state})  # type: ignore[no-any-return]

    def report(self, advice_id: str, action: str, **outcome: Any) -> None:  # noqa: ANN401
        """Report the outcome of a decision.

        Parameters
        ----------
        advice_id
            The ``id`` that ``advise`` returned.
        action
            What the person did, by its label.
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
        episode
            The episode's id.
        terminated
            Whether the episode ended by itself; false where only the recording ends.
        """
        path = f"/v1/episodes/{quote(episode, safe='')}/end"
        self._send("POST", path, {"terminated": terminated})

    def log(self, adviser: str, format: str = "csv") -> bytes:
        """Return the log of an adviser, as ``counsel fit`` reads it.

        Parameters
        ----------
        adviser
            Its id.
        format
            "csv" or "parquet".

        Returns
        -------
        bytes
            The content of the file.
        """
        path = f"/v1/advisers/{quote(adviser, safe='')}/log?format={quote(format, safe='')}"
        return self._request("GET", path, None)

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
        return self._send("GET", f"/v1/advisers/{quote(adviser, safe='')}/summary")  # type: ignore[no-any-return]

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
        return self._send("GET", f"/v1/people/{quote(name, safe='')}")  # type: ignore[no-any-return]

    def delete_person(self, name: str) -> None:
        """Delete a person with all their data, and forget what was learnt of them.

        Parameters
        ----------
        name
            The person's name.
        """
        self._send("DELETE", f"/v1/people/{quote(name, safe='')}")

    def _send(self, verb: str, path: str, body: Any = None) -> Any:  # noqa: ANN401 (JSON)
        answer = self._request(verb, path, body)
        try:
            return json.loads(answer) if answer else None
        except ValueError:
            raise CounselError(
                f"the answer of {self._url} is not JSON; is it a Counsel service?"
            ) from None

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
            self._connection.close()
            if isinstance(fault, ConnectionRefusedError):
                raise CounselError(f"nobody answers at {self._url}") from None
            if verb == "POST" and path.split("?")[0].endswith(CREATING):
                raise CounselError(
                    f"{self._url} closed the connection; the request may have been carried out"
                ) from None
            status, answer = self._retry(verb, path, content)
        except OSError as fault:
            self._connection.close()
            raise CounselError(f"{self._url} does not answer: {fault}") from None
        self._used = time.monotonic()
        if not 200 <= status < 300:
            raise ServiceError(status, _detail(status, answer))
        return answer

    def _retry(self, verb: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        try:
            return self._exchange(verb, path, body)
        except (OSError, http.client.HTTPException) as fault:
            self._connection.close()
            raise CounselError(f"{self._url} does not answer: {fault}") from None

    def _exchange(self, verb: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        self._connection.request(verb, self._path + path, body, self._headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read()


def _detail(status: int, content: bytes) -> str:
    try:
        return str(json.loads(content)["detail"])
    except (ValueError, KeyError, TypeError):
        return f"the service answered {status}"
