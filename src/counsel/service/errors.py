"""Errors that the HTTP API answers with 404, 409 and 503."""

from counsel.errors import CounselError


class NotFoundError(CounselError):
    """Something does not exist, or belongs to another tenant."""


class ConflictError(CounselError):
    """A request contradicts the record, or its episode has ended."""


class BusyError(CounselError):
    """The service cannot answer now; the caller may try again."""
