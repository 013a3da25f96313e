"""The limit of open files: each connection is one, and a database needs some too."""

import sys

from counsel.errors import CounselError

RESERVE = 200
"""Files kept free for the database, logs and models."""

MOST = 1_048_576
"""The largest limit that is asked for; some systems name one that they refuse."""

UNLIMITED = 65_536
"""The limit on systems that do not name it."""


def raise_limit() -> int:
    """Raise this process's limit of open files as far as it may, and return the limit."""
    if sys.platform == "win32":
        return UNLIMITED
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limit in (hard, MOST, 10_240):
        if limit == resource.RLIM_INFINITY or limit <= soft:
            continue
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(limit, MOST), hard))
            break
        except (ValueError, OSError):  # more than this system allows; try less
            continue
    return current_limit()


def current_limit() -> int:
    """Return this process's limit of open files."""
    if sys.platform == "win32":
        return UNLIMITED
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return UNLIMITED if soft == resource.RLIM_INFINITY else soft


def room_for_connections(backlog: int) -> int:
    """Return how many connections may be open, if ``backlog`` more can come at once.

    Raises an error if there is room for none.
    """
    room = current_limit() - RESERVE - backlog
    if room < 1:
        raise CounselError(
            f"the limit of open files is {current_limit()}; raise it with ulimit -n, to 1024 at "
            "least"
        )
    return room
