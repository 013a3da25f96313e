"""Counsel: what to advise a person, when to stay silent, and what a piece of advice is worth."""

from counsel._lazy import lazy_names

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_names(__name__)
