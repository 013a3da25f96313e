"""Waits that do not depend on how fast the machine is, or on what else it does."""

import threading
import time
from collections.abc import Callable

import psutil

PATIENCE = 120.0
"""Seconds after which something will never happen, however busy the machine is."""


class Release:
    """What is held until it is released; ``close`` fails if something was held for too long."""

    def __init__(self) -> None:
        self._event, self._has_expired = threading.Event(), False

    def hold(self) -> None:
        """Wait until it is released."""
        if not self._event.wait(PATIENCE):
            self._has_expired = True

    def set(self) -> None:
        """Release what is held now and later."""
        self._event.set()

    def close(self) -> None:
        """Release everything; raise if somebody waited in vain for what was held."""
        self.set()
        assert not self._has_expired, "it was waited for"


def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)


def until_it_worked(process: psutil.Process, seconds: float) -> None:
    """Wait until a process has used so much more time of the processor."""
    begun, deadline = _used(process), time.monotonic() + PATIENCE
    while _used(process) < begun + seconds:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _used(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system
