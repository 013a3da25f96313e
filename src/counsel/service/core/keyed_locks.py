"""A lock for each key: of several who need the same thing one makes it, and only these wait."""

import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class _UsedLock:
    """A lock, and how many hold it or wait for it."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    users: int = 0


class KeyedLocks:
    """Locks by their keys, each there for as long as somebody uses it."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._locks: dict[Hashable, _UsedLock] = {}

    @contextmanager
    def hold(self, key: Hashable) -> Iterator[None]:
        """Hold the lock of a key."""
        with self._guard:
            used = self._locks.setdefault(key, _UsedLock())
            used.users += 1
        try:
            with used.lock:
                yield
        finally:
            with self._guard:
                used.users -= 1
                if not used.users:
                    del self._locks[key]
