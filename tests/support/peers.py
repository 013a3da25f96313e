"""Libraries that are asked for a second opinion, and take care to import."""

import tempfile
from pathlib import Path
from types import ModuleType

from counsel._jit import _alone


def quantecon_ddp() -> ModuleType:
    """Return quantecon's dynamic programming.

    It compiles as it is imported: two processes that do so at once may crash, so one waits for the
    other.
    """
    with _alone(str(Path(tempfile.gettempdir()) / "counsel-quantecon.lock")):
        import quantecon.markov.ddp

    return quantecon.markov.ddp
