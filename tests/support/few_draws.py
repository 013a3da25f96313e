"""Fewer draws where logs are fitted, planned on and judged: draws take most of the time."""

import importlib

NUMBERS = {
    ("law_test", "DRAWS"): 19,
    ("plan", "DRAWS"): 20,
    ("report_contents", "DRAWS"): 20,
    ("evaluate_log", "MODELS"): 20,
}


def draw_less(patch):
    """Draw less, for tests of anything else than what is drawn."""
    for (module, name), number in NUMBERS.items():
        patch.setattr(importlib.import_module(f"counsel.logs.{module}"), name, number)
