"""The command line: one module per family of commands; large ones print in ``…_output``."""

from counsel.cli import demo, experiments, learning, logs, planning, ranking, service
from counsel.cli.app import main

__all__ = ["demo", "experiments", "learning", "logs", "main", "planning", "ranking", "service"]
