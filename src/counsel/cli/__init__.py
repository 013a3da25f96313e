"""The command line: parse and call; ``counsel.printing`` prints."""

from counsel.cli import demo, experiments, learning, logs, planning, service
from counsel.cli.app import main

__all__ = ["demo", "experiments", "learning", "logs", "main", "planning", "service"]
