"""The problem is unknown: learners that advise while they find out."""

from counsel._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
