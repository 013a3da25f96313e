"""The command line: each family of commands parses and calls; its ``_output`` module prints."""

from counsel.cli import demo, experiments, learning, logs, planning, service
from counsel.cli.app import main

__all__ = ["demo", "experiments", "learning", "logs", "main", "planning", "service"]
