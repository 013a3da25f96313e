"""Checks for people who write a learner of their own."""

from counsel.testing.check_learner import check_learner

__all__ = ["check_learner"]
