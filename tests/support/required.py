"""Programs that a newcomer may not have installed, and the continuous integration must have."""

import os
import shutil

import pytest


def leave_out(reason: str) -> None:
    """Skip a test; where the continuous integration runs, fail instead."""
    if os.environ.get("CI"):
        pytest.fail(f"required: {reason}")
    pytest.skip(reason)


def program(name: str) -> str:
    """Return where a program is."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    if found is None:
        leave_out(f"{name} is not installed")
    return str(found)
