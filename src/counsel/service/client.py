"""A thin client: the routes of the service as methods, over one connection that stays open."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from counsel.errors import CounselError
from counsel.service.connection import (
    PAGE,
    NoAnswerError,  # noqa: F401 (callers catch the two by this address)
    ServiceError,  # noqa: F401
    path_of,
)
from counsel.service.management_client import Management

__all__ = ["Client"]


class Client(Management):
    """A connection to a service.

    A request is sent once more if the connection was lost, unless it creates something and has
    no name of its own (``request`` of ``start``). Use one client per thread. As a context manager
    the client closes its connection.

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

    def start(self, adviser: str, person: str, request: str | None = None) -> str:
        """Start an episode with a person, who is added on first use.

        Parameters
        ----------
        adviser, person
            The adviser's id, and the person's name.
        request
            Any text of yours that names this start, e.g. the id of the visit: a start that is sent
            again with the same text returns the same episode. With it, a start is sent once more
            if the connection was lost.

        Returns
        -------
        str
            The episode's id.
        """
        path, headers = path_of("advisers", adviser, "episodes"), dict[str, str]()
        if request is not None:
            if not (request.isascii() and request.isprintable() and 1 <= len(request) <= 200):
                raise CounselError(
                    f"request is {request[:40]!r}; give 1 to 200 characters of printable ASCII"
                )
            headers["Idempotency-Key"] = request
        return str(self._send_for({"id": str}, "POST", path, {"person": person}, headers)["id"])

    def episodes(self, adviser: str, person: str | None = None) -> Iterator[dict[str, Any]]:
        """Iterate over the episodes of an adviser, newest first, page by page.

        Parameters
        ----------
        adviser, person
            The adviser's id, and a person's name, if only their episodes are wanted.

        Yields
        ------
        dict
            ``id``, ``person``, ``started``, ``ended``, ``terminated``, ``held_out``, ``mode`` and
            ``spent``.
        """
        query = "" if person is None else f"person={quote(person, safe='')}&"
        return self._pages(f"{path_of('advisers', adviser, 'episodes')}?{query}limit={PAGE}")

    def episode(self, episode: str) -> dict[str, Any]:
        """Return an episode with its decisions, their outcomes, reason codes and comments.

        Parameters
        ----------
        episode
            Its id.

        Returns
        -------
        dict
            As in ``episodes``, with ``decisions``. Each decision has its last ``outcome`` and, in
            ``earlier``, the versions before it. Where people have a memory, each decision has the
            ``level`` and how ``rested`` the person was; those of the episode are after its last
            decision.
        """
        return self._send("GET", path_of("episodes", episode))  # type: ignore[no-any-return]

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
            with ``why`` in words. Where people have a memory, the reason has the ``level``, how
            ``rested`` the person is, and the ``burden`` of speaking now.
        """
        fields = {"id": str, "advice": str | None, "reason": dict}
        path = path_of("episodes", episode, "advice")
        return self._send_for(fields, "POST", path, {"step": step, "state": state})

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
        self._send_for({"taken": int}, "POST", "/v1/outcomes", {"outcomes": outcomes})

    def report_decisions(self, episode: str, decisions: list[dict[str, Any]]) -> list[str]:
        """Record decisions that were made without the service.

        Parameters
        ----------
        episode, decisions
            The episode's id, and at most 1,000 decisions, each with ``step``, ``state``,
            ``advice`` (what was shown; None for silence) and, if known, ``at`` (seconds since
            1970).

        Returns
        -------
        list of str
            The id of each decision, which its outcome refers to.
        """
        path = path_of("episodes", episode, "reported")
        answer = self._send_for({"ids": list}, "POST", path, {"decisions": decisions})
        return list(answer["ids"])

    def end(self, episode: str, *, terminated: bool = True) -> None:
        """End an episode; ending it again changes nothing.

        Parameters
        ----------
        episode, terminated
            Its id, and whether it ended by itself; false where only the recording ends.
        """
        path = path_of("episodes", episode, "end")
        if self._send("POST", path, {"terminated": terminated}) is not None:
            raise self._no_counsel()

    def log(self, adviser: str, format: str = "csv") -> bytes:
        """Return the log of an adviser, as ``counsel fit`` reads it.

        Parameters
        ----------
        adviser, format
            Its id, and "csv", "parquet", or "spreadsheet" (CSV in which no text is a formula).

        Returns
        -------
        bytes
            The content of the file.
        """
        query = f"?format={quote(format, safe='')}"
        return self._request("GET", path_of("advisers", adviser, "log") + query, None)

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
        return self._send("GET", path_of("advisers", adviser, "summary"))  # type: ignore[no-any-return]

    def person(self, name: str) -> dict[str, Any]:
        """Return what each adviser believes about a person.

        Parameters
        ----------
        name
            The person's name.

        Returns
        -------
        dict
            ``name`` and, for each adviser of the person, ``episodes`` and ``listening``, and the
            ``level`` of their memory where it lasts over episodes.
        """
        return self._send("GET", path_of("people", name))  # type: ignore[no-any-return]

    def people(self) -> Iterator[dict[str, Any]]:
        """Iterate over the people, ordered by name, page by page.

        Yields
        ------
        dict
            ``name``, ``created`` and the number of ``episodes``.
        """
        return self._pages(f"/v1/people?limit={PAGE}")

    def delete_person(self, name: str) -> list[str]:
        """Delete a person with all their data, and forget what was learnt about them.

        Parameters
        ----------
        name
            The person's name.

        Returns
        -------
        list of str
            The data that may remain in the files of the database, and what to do about it.
        """
        answer = self._send_for({"remains": list}, "POST", "/v1/erasures", {"person": name})
        return list(answer["remains"])
