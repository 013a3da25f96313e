"""What is answered with 404 and 409."""

from counsel.errors import CounselError


class MissingError(CounselError):
    """There is no such thing, or it is somebody else's."""


class ConflictError(CounselError):
    """It was said otherwise before, or is over."""
