"""The pages: the dashboard at ``/`` and the playground at ``/play``, and the files they need.

All files are read once, when the service starts; what a request names is looked up among them and
never reaches the file system.
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
"""What pages may load and run: our own files."""


def add_pages(app: FastAPI) -> None:
    """Add the pages and their files."""
    folder = resources.files("counsel.service") / "static"
    files = {
        one.name: (one.read_bytes(), KINDS[one.name[one.name.rindex(".") :]])
        for one in folder.iterdir()
    }

    def answer(name: str) -> Response:
        if name not in files:
            raise HTTPException(404, "there is no such file")
        content, kind = files[name]
        headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-cache"}
        return Response(content, media_type=kind, headers=headers)

    @app.get("/", include_in_schema=False)
    async def dashboard() -> Response:
        """Show the dashboard."""
        return answer("dashboard.html")

    @app.get("/play", include_in_schema=False)
    async def play() -> Response:
        """Show the playground."""
        return answer("play.html")

    @app.get("/static/{name}", include_in_schema=False)
    async def file(name: str) -> Response:
        """Return a file of the pages."""
        return answer(name)
