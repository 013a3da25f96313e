"""Errors that the HTTP API answers with 404 and 409."""

from counsel.errors import CounselError


class NotFoundError(CounselError):
    """Something does not exist, or belongs to another tenant."""


class ConflictError(CounselError):
    """A request contradicts the record, or its episode has ended."""
