"""Lists page by page: what a caller asks for, and the ``Link`` header to the next page."""

from typing import Annotated

from fastapi import Depends, Query, Request, Response

PAGE = 100
"""Rows on a page, unless the caller says otherwise."""

Limit = Annotated[int, Query(ge=1, le=1000, description="Rows on a page, at most.")]
After = Annotated[
    str | None,
    Query(
        description="Where the page before ended, from its ``Link`` header; rows that were deleted "
        "meanwhile do not matter."
    ),
]


def link_next(request: Request, response: Response, keys: list[str], limit: int) -> None:
    """Link to the next page, if this one, whose rows have these keys, is full."""
    if len(keys) == limit:
        following = request.url.include_query_params(after=keys[-1])
        response.headers["Link"] = f'<{following.path}?{following.query}>; rel="next"'


class _Page:
    """The page of a list that a request asks for: rows after a row, at most so many."""

    def __init__(
        self, request: Request, response: Response, limit: Limit = PAGE, after: After = None
    ) -> None:
        self.limit, self.after = limit, after
        self._request, self._response = request, response

    def link_next(self, keys: list[str]) -> None:
        """Link to the next page, if this one, whose rows have these keys, is full."""
        link_next(self._request, self._response, keys, self.limit)


Page = Annotated[_Page, Depends(_Page)]
