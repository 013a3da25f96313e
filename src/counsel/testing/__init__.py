"""Checks for people who write a learner of their own."""

from counsel.testing.learner_checks import check_learner

__all__ = ["check_learner"]
