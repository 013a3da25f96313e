"""What the paper's learners are compared with, and advisers that do not learn."""

from counsel._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
