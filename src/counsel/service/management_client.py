"""The routes of advisers and models as methods of a client."""

from typing import Any
from urllib.parse import quote

from counsel.service.connection import PAGE, Connection, path_of


class Management(Connection):
    """A connection that manages advisers and models."""

    def create_adviser(self, name: str, source: str, **settings: Any) -> dict[str, Any]:  # noqa: ANN401
        """Create an adviser.

        Parameters
        ----------
        name, source
            A name for the adviser, and a world's name or the id of an uploaded model.
        **settings
            As in the API: ``penalty``, or ``budget`` and ``hard``, or ``always``; ``shared_limit``
            (for all episodes together, e.g. ``{"pieces": 10, "per": "day"}``); ``algorithm``
            ("ucb-ad" or "thompson"), ``mode`` ("live", "shadow" or "off"), ``knows_habit``,
            ``holdout`` (the share of episodes kept silent), ``explore`` and ``schedule`` (a trial),
            ``must_say`` (advice by state) and ``memory_across`` ("episode" or "person").

        Returns
        -------
        dict
            Its ``id``, ``name``, ``settings``, ``horizon``, ``states`` and ``actions``, and the
            ``memory`` of its people, None if they have none.
        """
        body = {"name": name, "source": source, **settings}
        return self._send("POST", "/v1/advisers", body)  # type: ignore[no-any-return]

    def advisers(self, *, archived: bool = False) -> list[dict[str, Any]]:
        """List the advisers, oldest first.

        Parameters
        ----------
        archived
            Whether to list archived advisers, too.

        Returns
        -------
        list of dict
            The ``id``, ``name``, ``settings`` and ``archived`` (None if it is in use) of each.
        """
        query = "?archived=true&" if archived else "?"
        return list(self._pages(f"/v1/advisers{query}limit={PAGE}"))

    def edit_adviser(self, adviser: str, **settings: Any) -> dict[str, Any]:  # noqa: ANN401
        """Change settings of an adviser; those that are not given stay as they are.

        Parameters
        ----------
        adviser
            Its id.
        **settings
            As in ``create_adviser``. None removes a ``penalty``, ``budget`` or ``shared_limit``.

        Returns
        -------
        dict
            The adviser.
        """
        return self._send("PATCH", path_of("advisers", adviser), settings)  # type: ignore[no-any-return]

    def archive_adviser(self, adviser: str) -> dict[str, Any]:
        """Let an adviser start no more episodes; it still answers for those under way.

        Parameters
        ----------
        adviser
            Its id.

        Returns
        -------
        dict
            The adviser, as in ``advisers``.
        """
        return self._send("POST", path_of("advisers", adviser, "archive"))  # type: ignore[no-any-return]

    def restore_adviser(self, adviser: str) -> dict[str, Any]:
        """Let an archived adviser start episodes again.

        Parameters
        ----------
        adviser
            Its id.

        Returns
        -------
        dict
            The adviser, as in ``advisers``.
        """
        return self._send("POST", path_of("advisers", adviser, "restore"))  # type: ignore[no-any-return]

    def delete_adviser(self, adviser: str, name: str) -> list[str]:
        """Delete an archived adviser with all its episodes.

        Parameters
        ----------
        adviser, name
            Its id, and its name, which confirms that it is to be deleted.

        Returns
        -------
        list of str
            The data that may remain in the files of the database, and what to do about it.
        """
        path = path_of("advisers", adviser)
        return list(self._send_for({"remains": list}, "DELETE", path, {"confirm": name})["remains"])

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
        return self._send("PATCH", path_of("advisers", adviser), {"mode": mode})  # type: ignore[no-any-return]

    def upload_model(self, content: bytes, name: str = "model") -> str:
        """Upload a model that ``counsel fit`` wrote.

        Parameters
        ----------
        content, name
            The content of the file, and a name for the model.

        Returns
        -------
        str
            The model's id, which an adviser can have as its ``source``.
        """
        path = f"/v1/models?name={quote(name, safe='')}"
        return str(self._send_for({"id": str}, "POST", path, content)["id"])

    def adviser(self, adviser: str) -> dict[str, Any]:
        """Return an adviser.

        Parameters
        ----------
        adviser
            Its id.

        Returns
        -------
        dict
            Its ``id``, ``name``, ``settings``, ``horizon``, ``states`` and ``actions``.
        """
        return self._send("GET", path_of("advisers", adviser))  # type: ignore[no-any-return]

    def models(self) -> list[dict[str, Any]]:
        """List the uploaded models, oldest first.

        Returns
        -------
        list of dict
            The ``id``, ``name``, ``created``, ``bytes`` and number of ``advisers`` of each.
        """
        return list(self._pages(f"/v1/models?limit={PAGE}"))

    def model(self, model: str) -> dict[str, Any]:
        """Return a model without its file.

        Parameters
        ----------
        model
            Its id.

        Returns
        -------
        dict
            As in ``models``, with its ``horizon``, ``states`` and ``actions``.
        """
        return self._send("GET", path_of("models", model))  # type: ignore[no-any-return]

    def model_file(self, model: str) -> bytes:
        """Return the file of a model, as it was uploaded.

        Parameters
        ----------
        model
            Its id.

        Returns
        -------
        bytes
            The content of the file.
        """
        return self._request("GET", path_of("models", model, "file"), None)

    def rename_model(self, model: str, name: str) -> dict[str, Any]:
        """Give a model another name.

        Parameters
        ----------
        model, name
            Its id, and its new name.

        Returns
        -------
        dict
            The model, as in ``models``.
        """
        return self._send("PATCH", path_of("models", model), {"name": name})  # type: ignore[no-any-return]

    def delete_model(self, model: str) -> None:
        """Delete a model that no adviser uses.

        Parameters
        ----------
        model
            Its id.
        """
        self._send("DELETE", path_of("models", model))
