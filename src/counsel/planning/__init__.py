"""The problem is known: plans, budgets, the frontier, evaluation and explanations."""

from counsel._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
