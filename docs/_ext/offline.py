"""Build the site offline: a connection to another host fails the build."""

import sys

from sphinx.application import Sphinx

HERE = ("127.0.0.1", "::1", "localhost", None)


def _refuse(event: str, details: tuple[object, ...]) -> None:
    if event == "socket.getaddrinfo":
        host = details[0]
    elif event == "socket.connect" and isinstance(details[1], tuple):
        host = details[1][0]
    else:
        return
    if host not in HERE:
        raise PermissionError(f"the build of the documentation connects to another host: {host!r}")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the audit hook."""
    sys.addaudithook(_refuse)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
