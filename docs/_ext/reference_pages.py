"""Generate the reference pages of the command line and the HTTP API from the program.

Every build of the site writes them again (``reference/cli.md``, ``reference/http.md``), so they
are always up to date.
"""

import json
import logging
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from sphinx.application import Sphinx

DOCS = Path(__file__).resolve().parents[1]


def commands() -> dict[str, Any]:
    """Return every command by its full name."""
    from counsel import cli

    def walk(name: str, command: Any) -> Iterator[tuple[str, Any]]:
        if hasattr(command, "commands"):
            for word, inner in command.commands.items():
                yield from walk(f"{name} {word}", inner)
        else:
            yield name, command

    return dict(walk("counsel", typer.main.get_command(cli.app.app)))


def cli_page() -> str:
    """Return the page about the command line."""
    lines = [
        "# Command line",
        "",
        "`counsel COMMAND --help` shows the same. Errors are one line on stderr and exit code 2;"
        " `--debug` before the command shows the traceback. Ctrl-C ends with exit code 130 and"
        " leaves nothing half-written. `counsel --install-completion` completes words with Tab.",
    ]
    for name, command in sorted(commands().items()):
        lines += ["", f"## {name}", "", _plain(command.help)]
        options = [option for option in command.params if option.name != "help"]
        words = [option.metavar or option.name.upper() for option in options if _is_word(option)]
        lines += ["", "```text", " ".join([name, "[OPTIONS]", *words]), "```", ""]
        lines += ["| | default | |", "|---|---|---|"]
        lines += [_option_row(option) for option in options]
    return "\n".join(lines) + "\n"


def _is_word(option: Any) -> bool:
    return bool(option.param_type_name == "argument")


def _option_row(option: Any) -> str:
    if _is_word(option):
        names = option.metavar or option.name.upper()
    else:
        names = ", ".join([*option.opts, *option.secondary_opts])
        if not option.is_flag and option.metavar:
            names += f" {option.metavar}"
    default = option.default() if callable(option.default) else option.default
    shown = "" if default is None or default is False else f"`{default}`"
    return f"| `{names}` | {'needed' if option.required else shown} | {_cell(option.help)} |"


def document() -> dict[str, Any]:
    """Return the OpenAPI document of the service."""
    logging.getLogger("alembic").setLevel(logging.WARNING)
    import numpy as np

    from counsel.service.api.app import make_app
    from counsel.service.core.desk import Desk
    from counsel.service.core.problem_sources import ProblemSources
    from counsel.service.db.engine import open_engine

    with tempfile.TemporaryDirectory() as folder:
        engine = open_engine(f"sqlite:///{folder}/counsel.db")
        desk = Desk(engine, ProblemSources(engine, {}), np.random.default_rng(0))
        try:
            return dict(make_app(desk).openapi())
        finally:
            desk.close()
            engine.dispose()


def http_page(document: dict[str, Any]) -> str:
    """Return the page about the HTTP API."""
    lines = [
        "# HTTP API",
        "",
        "Every request except those for pages, `/healthz`, `/readyz` and `/metrics` carries a key:"
        " `Authorization: Bearer KEY`. A key has a role: *read* may read, *advise* may also ask for"
        " advice and report outcomes, *admin* may do everything. Errors are problem details"
        " (`application/problem+json`) with one sentence in `detail`. A running service has this"
        " document at `/v1/openapi.json`. [The service](../how-to/service.md) explains how they"
        " work together.",
    ]
    for path, methods in document["paths"].items():
        for method, route in methods.items():
            lines += ["", f"## {method.upper()} {path}", "", _plain(route["description"])]
            ((_, (role,)),) = route["security"][0].items()
            lines += ["", f"Role: *{role}*."]
            lines += _parameters(route.get("parameters", []))
            lines += _body("Request", route.get("requestBody"))
            for code, answer in route["responses"].items():
                if code.startswith("2"):
                    lines += _body(f"Answer {code}", answer)
    lines += ["", "## Fields of requests and answers"]
    for name, schema in sorted(document["components"]["schemas"].items()):
        lines += ["", f"### {name}", "", _plain(schema.get("description", "")), ""]
        lines += ["| field | kind | default | |", "|---|---|---|---|"]
        needed = schema.get("required", [])
        for field, kind in schema.get("properties", {}).items():
            default = "needed" if field in needed else f"`{json.dumps(kind.get('default'))}`"
            description = _cell(kind.get("description", ""))
            lines.append(f"| `{field}` | {_kind(kind)} | {default} | {description} |")
    return "\n".join(lines) + "\n"


def _parameters(parameters: list[dict[str, Any]]) -> list[str]:
    if not parameters:
        return []
    lines = ["", "| parameter | in | kind | |", "|---|---|---|---|"]
    for parameter in parameters:
        description = _cell(parameter.get("description", ""))
        name, place, kind = parameter["name"], parameter["in"], _kind(parameter["schema"])
        lines.append(f"| `{name}` | {place} | {kind} | {description} |")
    return lines


def _body(what: str, body: dict[str, Any] | None) -> list[str]:
    if not body or "content" not in body:
        return ["", f"{what}: nothing."] if body else []
    kinds = [
        f"{_kind(content['schema'])} ({name})" if content.get("schema") else name
        for name, content in body["content"].items()
    ]
    return ["", f"{what}: {', '.join(kinds)}."]


def _kind(schema: dict[str, Any]) -> str:
    """Return a kind of value in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_kind(choice) for choice in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    kind = schema.get("type", "anything")
    if kind == "array":
        return f"list of {_kind(schema['items'])}"
    if kind == "object":
        inner = schema.get("additionalProperties")
        return f"object of {_kind(inner)}" if isinstance(inner, dict) and inner else "object"
    bounds = [
        f"{sign} {schema[name]:g}"
        for name, sign in (("minimum", "≥"), ("maximum", "≤"))
        if name in schema
    ]
    return f"{kind} {', '.join(bounds)}".strip()


def _plain(text: str | None) -> str:
    return re.sub(r"\s+", " ", (text or "").replace("``", "`")).strip()


def _cell(text: str | None) -> str:
    return _plain(text).replace("|", "\\|")


def pages() -> dict[str, str]:
    """Return the generated pages by their path."""
    return {"reference/cli.md": cli_page(), "reference/http.md": http_page(document())}


def _write(app: Sphinx) -> None:
    for path, text in pages().items():
        target = DOCS / path
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            target.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages when the build starts."""
    app.connect("builder-inited", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
