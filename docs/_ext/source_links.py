"""Links from a page of source code back to the reference, for modules that two packages document.

Sphinx writes them all with the package it met first: ``counsel.Record`` for
``counsel.learning.Record``.
"""

import re
from typing import Any

from sphinx.application import Sphinx


def correct_links(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: object
) -> None:
    """Replace anchors that do not exist by those of the documented name with the same ending."""
    if not pagename.startswith("_modules/"):
        return
    names = set(app.env.domains["py"].data["objects"])

    def correct(match: re.Match[str]) -> str:
        if match[1] in names:
            return match[0]
        ending = match[1].removeprefix("counsel.").removeprefix("worlds.")
        documented = [name for name in names if name.endswith(f".{ending}")]
        return f'#{min(documented, key=len, default=match[1])}"'

    context["body"] = re.sub(r'#(counsel\.[\w.]+)"', correct, context["body"])


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect to Sphinx."""
    app.connect("html-page-context", correct_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
