"""Processes that a test starts, none of which outlives it."""

import contextlib
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

import psutil


@contextlib.contextmanager
def started(command: Sequence[Any], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """Start a process, as ``subprocess.Popen`` does; kill it and its children at the end."""
    with subprocess.Popen(command, **options) as process:
        try:
            yield process
        finally:
            with contextlib.suppress(psutil.NoSuchProcess):
                for child in psutil.Process(process.pid).children(recursive=True):
                    child.kill()
            process.kill()
