"""Prints a folder for what is compiled, of its own for each state of the code.

Kernels that are kept do not see edits in other files, so a changed file means another folder; the
last one is removed.
"""

import hashlib
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def main() -> None:
    """Print the folder of the code as it is."""
    state = hashlib.sha256(sys.version.encode())
    for path in [*sorted((ROOT / "src").rglob("*.py")), ROOT / "requirements.lock"]:
        state.update(path.read_bytes())
    kept = Path(sys.prefix) / "compiled"
    mine = kept / state.hexdigest()[:16]
    if not mine.exists():
        shutil.rmtree(kept, ignore_errors=True)
        mine.mkdir(parents=True)
    sys.stdout.write(str(mine))


if __name__ == "__main__":
    main()
