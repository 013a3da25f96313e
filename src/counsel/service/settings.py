"""The settings of a service: deadlines, limits of connections, quotas of tenants, and its log.

Each has a default, which an environment variable replaces (``COUNSEL_REQUEST_SECONDS=10`` for
``request_seconds``); an option of ``counsel serve`` replaces both.
"""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from itertools import pairwise
from typing import Any

from counsel.errors import CounselError

PREFIX = "COUNSEL_"
"""The beginning of the names of environment variables."""

IN_ORDER = ("transaction_seconds", "lock_seconds", "statement_seconds", "request_seconds")
"""Deadlines each of which must be shorter than the next."""

LEAST_SECONDS = 0.001
"""The shortest deadline: PostgreSQL counts milliseconds, and takes 0 for none."""

ALIKE = 0.85
"""From this ratio on two names are taken for the same, misspelt (``difflib``)."""

LOG_LEVELS = ("debug", "info", "warning", "error")
TRUE, FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """How a service answers, what it refuses, and what it writes into its log.

    Deadlines are ordered (``IN_ORDER``): a transaction of a service that was frozen ends before
    others give up waiting for its lock, and they give up before their callers are answered with
    503.
    """

    # Deadlines, in seconds.
    request_seconds: float = 5.0  # of a request; after it the answer is 503
    reading_seconds: float = 60.0  # of lists, summaries and exports
    connect_seconds: float = 3.0  # to connect to PostgreSQL
    lock_seconds: float = 3.0  # to wait for the lock of the database
    statement_seconds: float = 4.0  # of a statement, and of a server that does not answer
    transaction_seconds: float = 2.0  # that a transaction may do nothing
    stop_seconds: float = 6.0  # to finish requests when the service stops

    # The edge, per process.
    connections: int = 4000  # open at once; beyond, the one idle for longest is closed
    header_bytes: int = 16_384
    header_seconds: float = 5.0  # until a request's headers are complete
    body_seconds: float = 20.0  # until its body is complete
    idle_seconds: float = 75.0  # between requests of a connection
    send_seconds: float = 20.0  # that a caller may take no part of an answer
    pipelined: int = 16  # requests that a connection may send before it is answered
    queue: int = 5000  # decisions and outcomes that wait to be written; beyond, 503

    # Threads and quotas.
    reading_threads: int = 4
    models: int = 200  # per tenant
    model_bytes: int = 20_000_000  # of one model
    advisers: int = 20_000  # per tenant
    people: int = 1_000_000  # per tenant
    requests_per_second: float = 10_000.0  # per tenant and process

    # CDS Hooks; several values are separated by commas.
    cds_hooks: str = "patient-view"  # at which services are called; empty: there are no services
    cds_origins: str = ""  # whose pages may call, e.g. https://records.example.org; empty: none

    # What an operator reads.
    log_level: str = "info"
    access_log: bool = False  # whether every request has a line, not only those that fail
    disk_bytes: int = 100_000_000  # with less free, the service is not ready

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if is_number and not 0 < value < math.inf:
                raise CounselError(f"{field.name} is {value}; it must be above 0")
            if field.name.endswith("_seconds") and value < LEAST_SECONDS:
                raise CounselError(f"{field.name} is {value}; it must be {LEAST_SECONDS} or more")
        for shorter, longer in pairwise(IN_ORDER):
            less, more = getattr(self, shorter), getattr(self, longer)
            if less >= more:
                raise CounselError(
                    f"{shorter} is {less:g} and {longer} is {more:g}; {shorter} must be below "
                    f"{longer}: change {variable_of(shorter)} or {variable_of(longer)}"
                )
        if self.log_level not in LOG_LEVELS:
            raise CounselError(
                f"log_level is {self.log_level!r}; it must be one of {', '.join(LOG_LEVELS)}"
            )

    @classmethod
    def from_environment(cls, variables: Mapping[str, str] | None = None) -> "ServiceSettings":
        """Return the defaults, replaced by environment variables where those are set."""
        variables = os.environ if variables is None else variables
        given = dict[str, Any]()
        for field in fields(cls):
            name = variable_of(field.name)
            if name in variables:
                given[field.name] = _read(name, variables[name], type(field.default))
        return cls(**given)

    def with_options(self, **options: Any) -> "ServiceSettings":  # noqa: ANN401 (checked on birth)
        """Return the settings with those options that are not None in their place."""
        return replace(self, **{name: x for name, x in options.items() if x is not None})


def variable_of(field: str) -> str:
    """Return the environment variable of a setting."""
    return PREFIX + field.upper()


def misspelt(variables: Mapping[str, str]) -> list[str]:
    """Return a sentence for each environment variable that looks like one of a setting."""
    known = [variable_of(field.name) for field in fields(ServiceSettings)]
    own = sorted(name for name in variables if name.startswith(PREFIX) and name not in known)
    near = {name: get_close_matches(name, known, 1, ALIKE) for name in own}
    return [f"{name} is no setting; is it {match[0]}?" for name, match in near.items() if match]


def _read(name: str, text: str, kind: type) -> Any:  # noqa: ANN401 (of the kind)
    if kind is bool:
        word = text.strip().lower()
        if word not in TRUE + FALSE:
            raise CounselError(f"{name} is {text[:40]!r}; write 1 or 0")
        return word in TRUE
    try:
        return kind(text)
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise CounselError(f"{name} is {text[:40]!r}; it must be {what}") from None
