"""The pages: the dashboard at ``/``, the playground at ``/play``, and their files.

All files are read once, when the service starts; requests are answered from memory and never reach
the file system.
"""

from importlib import resources

from fastapi import FastAPI, Response
from starlette.exceptions import HTTPException

KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
}

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
"""Pages may load and run the service's own files only."""


def add_pages(app: FastAPI) -> None:
    """Add the pages and their files."""
    folder = resources.files("counsel.service") / "static"
    files = {
        path.name: (path.read_bytes(), KINDS[path.name[path.name.rindex(".") :]])
        for path in folder.iterdir()
    }

    def answer(name: str) -> Response:
        if name not in files:
            raise HTTPException(404, "there is no such file")
        content, kind = files[name]
        headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-cache"}
        return Response(content, media_type=kind, headers=headers)

    @app.get("/", include_in_schema=False)
    async def dashboard() -> Response:
        return answer("dashboard.html")

    @app.get("/play", include_in_schema=False)
    async def play() -> Response:
        return answer("play.html")

    @app.get("/static/{name}", include_in_schema=False)
    async def file(name: str) -> Response:
        return answer(name)
