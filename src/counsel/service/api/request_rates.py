"""How many requests a tenant may send: a token bucket for each tenant.

A bucket holds the requests of one second and is filled at the same rate, so a tenant may send a
second's requests at once and, in the long run, no more than ``most`` per second. A request costs
two additions and a look at the clock. What is refused is refused before its body is read.
"""

import math
import time

from starlette.exceptions import HTTPException

from counsel.service.settings import variable_of


class RequestRates:
    """The buckets of all tenants of this process; ``most`` is in requests per second."""

    def __init__(self, most: float) -> None:
        self.most = most
        self._size = max(most, 1.0)
        self._full_at: dict[int, float] = {}  # when the bucket of a tenant will be full again

    def admit(self, tenant: int) -> None:
        """Take a request from the bucket of a tenant, or refuse it with 429 if that is empty."""
        now = time.monotonic()
        full_at = max(self._full_at.get(tenant, now), now) + 1.0 / self.most
        seconds = full_at - now - self._size / self.most
        if seconds > 1e-9:
            raise HTTPException(
                429,
                f"this tenant sends more than {self.most:g} requests per second; send fewer, or "
                f"raise {variable_of('requests_per_second')}",
                {"Retry-After": str(max(math.ceil(seconds), 1))},
            )
        self._full_at[tenant] = full_at
