"""A thin client: the service's routes as methods, over one connection that is kept open."""

import http.client
import json
import time
from types import TracebackType
from typing import Any
from urllib.parse import quote, urlsplit

from counsel.errors import CounselError

__all__ = ["Client"]

IDLE = 4.0
"""Seconds after which a connection is opened anew: proxies close those that nobody uses."""

MAKES = ("/advisers", "/episodes", "/models")
"""What must not be sent twice."""


class ServiceError(CounselError):
    """The service refused; the message is its own.

    Attributes
    ----------
    status
        Its HTTP status: 404 where something does not exist, say.
    """

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


class Client:
    """Talks to a service.

    A request that a lost connection may have swallowed is sent once more: all of them may be
    repeated but those that make something. One client is for one thread; as a context manager it
    closes its connection.

    Parameters
    ----------
    url
        Where it is: ``http://127.0.0.1:8000``.
    key
        What ``counsel keys add`` showed; none where the service asks for none.
    timeout
        Seconds after which an answer is given up.

    Raises
    ------
    CounselError
        When ``url`` or ``key`` cannot be one. All methods that ask the service raise it when nobody
        answers, and a ``ServiceError`` with the HTTP ``status`` when the service refuses.

    Examples
    --------
    With ``counsel serve --no-auth`` running, at most one piece of advice in an episode:

    >>> counsel = Client("http://127.0.0.1:8000")
    >>> adviser = counsel.create_adviser("alerts", "ward", budget=1, hard=True)  # doctest: +SKIP
    >>> episode = counsel.start(adviser["id"], "ann")  # doctest: +SKIP
    >>> told = counsel.advise(episode, 0, "deteriorating")  # doctest: +SKIP
    >>> told["advice"]  # doctest: +SKIP
    'call doctor'
    >>> counsel.report(told["id"], "call doctor", reward=0.5)  # doctest: +SKIP
    >>> told = counsel.advise(episode, 1, "deteriorating")  # doctest: +SKIP
    >>> told["advice"], told["reason"]["why"]  # doctest: +SKIP
    (None, 'the budget is spent')
    >>> counsel.end(episode)  # doctest: +SKIP
    >>> counsel.close()

    A mistake in the address is told before anything is sent:

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
            raise CounselError("the key has characters that no key has")
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
        """Make an adviser.

        Parameters
        ----------
        name
            What to call it.
        source
            A world's name, or the id of a model that was uploaded.
        **settings
            As in the API: ``penalty``, or ``budget`` and ``hard``, or ``always``; ``algorithm``
            ("ucb-ad" or "thompson"), ``mode`` ("live", "shadow" or "off"), ``knows_habit``,
            ``holdout`` (the share of episodes that are kept silent) and ``must_say`` (advice by
            state).

        Returns
        -------
        dict
            Its ``id``, ``name``, ``settings``, ``horizon``, ``states`` and ``actions``.
        """
        told = {"name": name, "source": source, **settings}
        return self._send("POST", "/v1/advisers", told)  # type: ignore[no-any-return]

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
            "off" is silent, "shadow" only writes down what it would say, "live" shows it.

        Returns
        -------
        dict
            The adviser.
        """
        return self._send("PATCH", f"/v1/advisers/{quote(adviser, safe='')}", {"mode": mode})  # type: ignore[no-any-return]

    def upload_model(self, content: bytes, name: str = "model") -> str:
        """Upload what ``counsel fit`` wrote.

        Parameters
        ----------
        content
            What is in the file.
        name
            What to call the model.

        Returns
        -------
        str
            Its id: a ``source`` of advisers.
        """
        path = f"/v1/models?name={quote(name, safe='')}"
        return str(self._send("POST", path, content)["id"])

    def start(self, adviser: str, person: str) -> str:
        """Begin an episode with a person, who is made on first use.

        Parameters
        ----------
        adviser
            The adviser's id.
        person
            What the person is called.

        Returns
        -------
        str
            The episode's id.
        """
        path = f"/v1/advisers/{quote(adviser, safe='')}/episodes"
        return str(self._send("POST", path, {"person": person})["id"])

    def advise(self, episode: str, step: int, state: str) -> dict[str, Any]:
        """Ask what to advise at a step; the same step gets the same answer.

        Parameters
        ----------
        episode
            The episode's id.
        step
            The step, from 0.
        state
            The state by its label.

        Returns
        -------
        dict
            ``id``, to report by; ``advice``, None for silence; ``shadow``, what would have been
            said in shadow mode; ``probability`` of what is said; and ``reason``, whose ``why``
            is in words.
        """
        path = f"/v1/episodes/{quote(episode, safe='')}/advice"
        return self._send("POST", path, {"step": step, "state": state})  # type: ignore[no-any-return]

    def report(self, advice_id: str, action: str, **outcome: Any) -> None:  # noqa: ANN401
        """Report what came of a piece of advice, or of silence.

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
        """Report many outcomes at once; late, repeated and out of order is fine.

        Parameters
        ----------
        outcomes
            Up to 1,000, each with ``advice_id``, ``action`` and what ``report`` takes besides.
        """
        self._send("POST", "/v1/outcomes", {"outcomes": outcomes})

    def end(self, episode: str, *, terminated: bool = True) -> None:
        """End an episode; to end it again changes nothing.

        Parameters
        ----------
        episode
            The episode's id.
        terminated
            Whether it ended by itself, or was cut.
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
            What to write to a file.
        """
        path = f"/v1/advisers/{quote(adviser, safe='')}/log?format={quote(format, safe='')}"
        return self._ask("GET", path, None)

    def summary(self, adviser: str) -> dict[str, Any]:
        """Return what the dashboard shows.

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
        """Return what is believed of a person.

        Parameters
        ----------
        name
            What the person is called.

        Returns
        -------
        dict
            ``name`` and, for each adviser that met them, ``episodes`` and ``listening``.
        """
        return self._send("GET", f"/v1/people/{quote(name, safe='')}")  # type: ignore[no-any-return]

    def delete_person(self, name: str) -> None:
        """Delete a person with all their data; what was learnt of them is forgotten.

        Parameters
        ----------
        name
            What the person is called.
        """
        self._send("DELETE", f"/v1/people/{quote(name, safe='')}")

    def _send(self, verb: str, path: str, told: Any = None) -> Any:  # noqa: ANN401 (JSON)
        answer = self._ask(verb, path, told)
        try:
            return json.loads(answer) if answer else None
        except ValueError:
            raise CounselError(f"{self._url} answered something that is no JSON") from None

    def _ask(self, verb: str, path: str, told: Any) -> bytes:  # noqa: ANN401 (JSON)
        try:
            body = told if isinstance(told, bytes | None) else json.dumps(told).encode()
        except (TypeError, ValueError) as fault:
            raise CounselError(f"this cannot be sent as JSON: {fault}") from None
        if time.monotonic() - self._used > IDLE:
            self._connection.close()  # the service may have closed it; it is opened again
        try:
            status, content = self._exchange(verb, path, body)
        except (ConnectionError, http.client.HTTPException) as fault:
            self._connection.close()
            if isinstance(fault, ConnectionRefusedError):
                raise CounselError(f"nobody answers at {self._url}") from None
            if verb == "POST" and path.split("?")[0].endswith(MAKES):
                raise CounselError(f"{self._url} went away; whether it did so is unknown") from None
            status, content = self._again(verb, path, body)
        except OSError as fault:
            self._connection.close()
            raise CounselError(f"{self._url} does not answer: {fault}") from None
        self._used = time.monotonic()
        if not 200 <= status < 300:
            raise ServiceError(status, _detail(status, content))
        return content

    def _again(self, verb: str, path: str, body: bytes | None) -> tuple[int, bytes]:
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
