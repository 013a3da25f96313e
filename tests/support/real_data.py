"""Data of real people, which lie beside the repository and are not part of it."""

import os
from pathlib import Path

import pytest


def real_data(path: Path) -> Path:
    """Return the path of a data set; without it a test is skipped, but in CI it fails."""
    if not path.exists():
        missing = f"there is no {path.name} in {path.parent.name} beside the repository"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    return path
