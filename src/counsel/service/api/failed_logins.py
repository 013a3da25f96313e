"""Failed logins: whoever tries one key after another is slowed down, and nobody else is.

Failures are counted per address and minute. After some of them each further one is answered later
and later, up to a second. Only so many answers are held back at once; beyond that number a failure
is answered with 429. A valid key is answered at once wherever it comes from, so callers behind the
same proxy do not suffer. An address of IPv6 stands for its network, of which one caller has many.
"""

import ipaddress
import time
from collections import OrderedDict

WINDOW_SECONDS = 60.0
FREE = 10
"""Failures per address and window that are answered at once."""

STEP_SECONDS, MOST_SECONDS = 0.1, 1.0
"""What each further failure adds to the delay, and the longest delay."""

MOST_DELAYED = 100
"""Answers that are held back at once, in a process."""

MOST_ADDRESSES = 10_000
"""Addresses that are remembered; the ones that began to fail first are forgotten first."""


class FailedLogins:
    """The failures of each address in the last minute, and the answers that are held back."""

    def __init__(self) -> None:
        self.delayed = 0
        self._failures: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def add(self, address: str, now: float | None = None) -> int:
        """Count a failure and return how many this address has had in its window."""
        now = time.monotonic() if now is None else now
        place = network_of(address)
        since, count = self._failures.get(place, (now, 0))
        if now - since >= WINDOW_SECONDS:
            since, count = now, 0
            self._failures.pop(place)
        self._failures[place] = (since, count + 1)
        if len(self._failures) > MOST_ADDRESSES:
            self._failures.popitem(last=False)
        return count + 1

    def __len__(self) -> int:
        return len(self._failures)


def delay_of(failures: int) -> float:
    """Return for how many seconds the answer to a failure is held back."""
    return min(max(failures - FREE, 0) * STEP_SECONDS, MOST_SECONDS)


def network_of(address: str) -> str:
    """Return an address of IPv4 as it is, and the network of an address of IPv6."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:  # e.g. a socket without an address
        return address[:64]
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed)
