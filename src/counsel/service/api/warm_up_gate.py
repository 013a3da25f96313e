"""Requests that arrive while the planner is compiled: they wait, or are answered with 503.

A start that finds the planner compiled takes less time than a request may, so its first callers
wait and are answered. Pages, health checks and metrics do not wait.
"""

from starlette.types import Scope

WAITING = ("/v1/", "/cds-services/")
"""How paths begin whose requests wait."""

DOCUMENT = "/v1/openapi.json"

COMPILING = "the service has just started and is compiling the planner; try again"
"""The answer to a request that cannot wait any longer."""


def must_wait(scope: Scope) -> bool:
    """Whether a request waits until the planner is compiled."""
    path: str = scope["path"]
    return path.startswith(WAITING) and path != DOCUMENT
